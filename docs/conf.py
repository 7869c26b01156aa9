"""Settings of the documentation's site.

    python -m sphinx -W --keep-going -q -b html docs build/docs

builds it from a checkout with the extra ``docs`` (``pip install -e '.[docs]'``),
without a network and without running a notebook; a warning is an error. The part
``docs`` of ``.ci/run`` does the same.
"""

from __future__ import annotations

import importlib
import os
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent)]
# The reference reads signatures and docstrings; nothing has to be compiled for that.
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")

_metadata = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]

project = "blowfish_fast"
author = "the authors of blowfish_fast"
version = release = _metadata["version"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "docstring_forms",
    "public_names",
    "code_links",
    "notebook_pages",
    "navigation_titles",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_*", "conftest.py", "data"]
# Dashes, but no curled quotes: quotes are often those of code.
smartquotes_action = "D"

myst_enable_extensions = ["colon_fence", "deflist", "tasklist"]
myst_heading_anchors = 4

# Drawings in docstrings and indented formulas are not Python.
highlight_language = "text"
default_role = "py:obj"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_inherit_docstrings = False
# The names of arrays, not what numpy makes of them.
autodoc_type_aliases = {
    name: name
    for name in dir(importlib.import_module("blowfish_fast._support.typing"))
    if name.endswith("Array") and name != "NDArray"
}
toc_object_entries_show_parents = "hide"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_use_rtype = False
napoleon_preprocess_types = False
viewcode_line_numbers = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"blowfish_fast {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "code_colours.ReadableStyle"
pygments_dark_style = "native"
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {
        "color-brand-primary": "#0b5c8a",
        "color-brand-content": "#0b5c8a",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7cc4ea",
        "color-brand-content": "#7cc4ea",
    },
}
