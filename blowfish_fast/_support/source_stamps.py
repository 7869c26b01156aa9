"""A stamp of the sources that a compiled kernel was made from.

    fit.py ---imports---> shape.py ---imports---> _arguments.py
      stamp of fit.py = digest(text of fit.py, stamps of what it imports)

The stamp of a file changes with its own text and with that of every kernel file that it
imports, directly or through others. Machine code on disk carries the stamp that it was
compiled under and serves only while the stamp is the same. Reading a stamp loads
neither the kernels nor the compiler: a command asks beforehand whether it will have to
compile.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from contextlib import suppress
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

KERNELS = "blowfish_fast.kernels"
_ROOT = Path(__file__).parents[2]
_LOADER: Any = __spec__.loader


@cache
def source_stamp(name: str) -> str:
    """Return a digest that changes whenever code that a module's kernels run changes.

    Parameters
    ----------
    name : str
        The full name of a module, which need not be loaded if it is a kernel file.

    Returns
    -------
    str
        64 hexadecimal digits: a digest of its text and of the stamps of all kernel
        files that it imports.

    Raises
    ------
    OSError
        If there is no such file.

    Examples
    --------
    >>> len(source_stamp("blowfish_fast.kernels.tree_scaling.weight_sweeps"))
    64
    """
    text, package = _text_and_package(name)
    stamp = hashlib.sha256(text)
    for statement in ast.parse(import_head(text)).body:
        # Kernel files are imported by `from` alone.
        if not isinstance(statement, ast.ImportFrom):
            continue
        home = "." * statement.level + (statement.module or "")
        imported_from = resolve_name(home, package)
        # `from .tree import shape` imports a file, `from .tree.shape import Tree` a
        # class of one: both the place itself and what is named may be a file.
        for word in ("", *(imported.name for imported in statement.names)):
            module = f"{imported_from}.{word}".rstrip(".")
            # A function or a class has no file of its own.
            with suppress(OSError):
                if module.startswith(KERNELS):
                    stamp.update(source_stamp(module).encode())
    return stamp.hexdigest()


def import_head(text: bytes) -> bytes:
    """Return a file up to the end of its last import; to parse the rest takes longer.

    The end is the first empty line after the last line that begins with ``from``. That
    is right as no import of a kernel file holds an empty line, and none that begins at
    the left edge follows the first kernel.

    Parameters
    ----------
    text : bytes
        What the file holds.

    Returns
    -------
    bytes
        Its beginning; nothing where it imports no names.
    """
    before, mark, last = (b"\n" + text).rpartition(b"\nfrom ")
    return before + mark + last.partition(b"\n\n")[0] if mark else b""


def _text_and_package(name: str) -> tuple[bytes, str]:
    """Return the text of a module, loaded or not, and the package that it lies in."""
    module: Any = sys.modules.get(name)
    if module is not None:
        return module.__loader__.get_data(module.__file__), module.__package__
    path = _ROOT.joinpath(*name.split("."))
    try:
        return _LOADER.get_data(str(path.with_suffix(".py"))), name.rpartition(".")[0]
    except OSError:
        return _LOADER.get_data(str(path / "__init__.py")), name
