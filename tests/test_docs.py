"""The pages of the documentation hang together; the part docs of `.ci/run` builds them.

These checks need no Sphinx: every page can be reached from the first one, every link
leads to a file, and every public name has an entry in the reference.
"""

from __future__ import annotations

import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

import blowfish_fast as bf
from blowfish_fast.mechanisms.registry import (
    LIST_MECHANISMS,
    MECHANISMS,
    TABLE_MECHANISMS,
)

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
# Pages that stand beside the documentation and lead into it.
CHECKOUT_PAGES = [
    ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "README.md")
]
PACKAGES = (
    *(
        "accounting",
        "advice",
        "audit",
        "budgets",
        "errors",
        "explorer",
        "interop",
        "kernels",
        "mechanisms",
    ),
    *("partitions", "plotting", "policies", "selections", "series", "strategies"),
    "sampling",
    "usefulness",
    "workloads",
)


@pytest.fixture(scope="module", autouse=True)
def _extensions():
    sys.path.insert(0, str(DOCS / "_extensions"))
    yield
    sys.path.remove(str(DOCS / "_extensions"))


@pytest.mark.parametrize(
    "page",
    [
        *(DOCS / f"{name}.md" for name in ("index", "tutorial", "tables")),
        *(DOCS / f"{name}.md" for name in ("command_line", "pictures")),
        *sorted((DOCS / "howto").glob("*.md")),
    ],
    ids=lambda one: one.stem,
)
def test_pages_for_newcomers_show_a_picture_and_tell_it_in_words(page):
    found = re.findall(r"^!\[(.*?)\]\((.*?)\)$", page.read_text(), re.MULTILINE)
    assert found
    for words, file in found:
        assert len(words.split()) >= 5
        assert (page.parent / file).is_file()
    if page.stem in ("index", "tutorial"):
        assert "![" in "\n".join(page.read_text().splitlines()[:10])


def toctrees(page: Path) -> list[str]:
    """Return the entries of the tables of contents of a page."""
    text = page.read_text()
    bodies = re.findall(r"^:::\{toctree\}\n(.*?)^:::$", text, re.DOTALL | re.MULTILINE)
    lines = [line.strip() for body in bodies for line in body.splitlines()]
    return [line for line in lines if line and not line.startswith(":")]


def reachable(page: Path) -> set[Path]:
    """Return the pages below a page, itself included."""
    found = {page}
    for entry in toctrees(page):
        named = sorted(page.parent.glob(f"{entry}.md"))
        assert named, (
            f"{page.relative_to(ROOT)} lists {entry}, and there is no such page"
        )
        for one in named:
            if one not in found:
                found |= reachable(one) if one != page else set()
    return found


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(
        r"^ *```.*?^ *```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE
    )


def test_every_page_can_be_reached_from_the_first():
    assert sorted(set(PAGES) - reachable(DOCS / "index.md")) == []


@pytest.mark.parametrize(
    "page", [*PAGES, *CHECKOUT_PAGES], ids=lambda page: str(page.relative_to(ROOT))
)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = DOCS / path[1:] if path.startswith("/") else page.parent / path
        there = there if path else page
        assert there.exists(), f"{page.relative_to(ROOT)} leads to {target}"
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), f"{page.relative_to(ROOT)}: {target}"
    for target in re.findall(r"\{doc\}`(?:[^`<]*<)?([\w/]+)>?`", prose(page)):
        there = DOCS / target[1:] if target.startswith("/") else page.parent / target
        assert there.with_suffix(".md").exists(), f"{page.relative_to(ROOT)}: {target}"


def anchors(page: Path) -> set[str]:
    """Return what a link may name inside a page: headings, ids, labels."""
    text = page.read_text()
    titles = re.findall(r"^#+ (?:<a id=.*?></a>)?(.*)$", text, re.MULTILINE)
    slugs = {
        re.sub(r"[^\w\- ]", "", one.lower()).strip().replace(" ", "-") for one in titles
    }
    ids = re.findall(r'<a id="([\w-]+)">|^\(([\w-]+)\)=$', text, re.MULTILINE)
    return slugs | {first or second for first, second in ids}


def test_every_row_of_a_table_has_the_cells_of_its_head():
    # A bar inside a cell that is not escaped drops what follows it on the site.
    for page in PAGES:
        cells = 0
        for line in prose(page).splitlines():
            is_row = line.startswith("|") and line.endswith("|")
            found = len(re.findall(r"(?<!\\)\|", line)) if is_row else 0
            assert not (cells and found) or found == cells, (page, line)
            cells = found


def test_every_column_of_a_table_has_a_name():
    # Screen readers read the head of a column before each of its cells; axe, which runs
    # in a browser and on a few pages only, calls an empty one a violation.
    heads = [
        (page, above)
        for page in PAGES
        for above, below in pairwise(page.read_text().splitlines())
        if re.fullmatch(r"\|(\s*:?-+:?\s*\|)+", below)
    ]
    assert heads
    for page, head in heads:
        assert not re.search(r"(?<!\\)\|\s*\|", head), (page, head)


def test_every_page_has_one_title():
    for page in PAGES:
        if (
            "<!-- notebook" in page.read_text()
            or ":::{include} ../../" in page.read_text()
        ):
            continue
        titles = re.findall(r"^# .+$", prose(page), re.MULTILINE)
        assert len(titles) == 1, f"{page.relative_to(ROOT)}: {titles}"


def entries() -> set[str]:
    """Return the names that the reference and the guides enter in full."""
    from public_names import expanded

    pages = [*DOCS.glob("reference/*.md"), *DOCS.glob("mechanisms/*.md")]
    text = "\n".join(expanded(page.read_text()) for page in pages)
    entered = re.findall(r"^\.\. (?:auto\w+|py:data):: ([\w.]+)$", text, re.MULTILINE)
    assert sorted({one for one in entered if entered.count(one) > 1}) == []
    return set(entered)


def test_every_public_name_has_an_entry():
    from public_names import entry_name, public_names

    entered = entries()
    missing = [
        entry_name(module, name)
        for module in [
            bf,
            *(getattr(bf, package) for package in PACKAGES),
        ]
        for name in public_names(module)
        if entry_name(module, name) not in entered
    ]
    assert missing == []
    packages = {
        name for name in bf.__all__ if type(getattr(bf, name)).__name__ == "module"
    }
    assert packages - set(PACKAGES) == set()


def test_every_mechanism_has_its_guide():
    from public_names import proof_place

    every = {**MECHANISMS, **TABLE_MECHANISMS, **LIST_MECHANISMS}
    guides = {}
    for page in DOCS.glob("mechanisms/*.md"):
        named = re.findall(r"<!-- guide of (\w+) -->", page.read_text())
        # A page of several has a part for each.
        level = "#" if len(named) == 1 else "##"
        parts = re.split(rf"^(?={level} )", page.read_text(), flags=re.MULTILINE)
        for name in named:
            (guides[name],) = [one for one in parts if f"guide of {name} -->" in one]
            assert guides[name].startswith(f"{level} {every[name].__name__}\n")
    assert set(guides) == set(every)
    for name, text in guides.items():
        assert "**Use it**" in text
        assert "**Use instead**" in text
        assert f"(..{proof_place(name)})" in text


def test_guides_and_proofs_of_mechanisms_lead_to_each_other():
    from public_names import expanded, with_guide

    guide = expanded("<!-- guide of ordered -->")
    assert "](/tutorial.md)" in guide
    assert "](/howto/choose_a_mechanism.md)" in guide
    proof = with_guide("proofs/ordered", "# Ordered\n\n**Statement.**\n")
    assert proof.startswith("# Ordered\n\n*When to use it")
    of_maps = with_guide("proofs/for_maps", "# Maps\n\n## QuadTree\n\n**Statement.**\n")
    assert of_maps.startswith("# Maps\n\n## QuadTree\n\n*When to use it")
    assert "[QuadTree](/mechanisms/for_maps.md#quadtree)" in of_maps
    assert "[Ordered](/mechanisms/known_error.md#ordered)" in proof
    assert with_guide("proofs/handle", "# The handle\n") == "# The handle\n"


def test_every_notebook_has_its_page():
    notebooks = {path.stem for path in (ROOT / "examples").glob("notebooks/*.ipynb")}
    pages = {page.stem for page in DOCS.glob("notebooks/*.md")}
    assert pages == notebooks
    for name in pages:
        asked = f"<!-- notebook examples/notebooks/{name}.ipynb -->"
        page = (DOCS / "notebooks" / f"{name}.md").read_text()
        assert asked in page
        # Each picture is told in words to those who do not see it.
        drawn = (ROOT / "examples" / "notebooks" / f"{name}.ipynb").read_text()
        assert page.count("<!-- picture: ") == drawn.count('"image/png"')


COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_that_is_read_in_the_checkout_shows_something(page):
    text = COMMENT.sub("", page.read_text())
    assert "literalinclude" not in text, "the code would be missing in the checkout"
    filled = re.findall(r"^:::\{include\} (.+)$", text, re.MULTILINE)
    for name in filled:
        assert (page.parent / name).is_file()
    prose = [line for line in text.splitlines() if line and line[0].isalpha()]
    assert prose or filled
    if page.parent.name == "notebooks":
        name = f"examples/notebooks/{page.stem}"
        for link in (f"{name}.ipynb", f"{name}.py"):
            assert f"](../../{link})" in text
            assert (ROOT / link).is_file()


def test_the_site_shows_a_notebook_in_place_of_the_way_to_it():
    from notebook_pages import _read

    noted = []
    app = SimpleNamespace(env=SimpleNamespace(note_dependency=noted.append))
    content = [(DOCS / "notebooks" / "city_map.md").read_text()]
    title = re.search("^# .+$", content[0], re.MULTILINE)[0]
    _read(app, "notebooks/city_map", content)
    (shown,) = content
    assert len(re.findall(f"^{title}$", shown, re.MULTILINE)) == 1
    assert "````python" in shown
    assert "../../examples/" not in shown
    assert "<!--" not in shown
    assert noted == [str(ROOT / "examples" / "notebooks" / "city_map.ipynb")]


def test_notebooks_are_shown_with_what_they_printed():
    from notebook_pages import page_of

    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "words"]},
        {
            "cell_type": "code",
            "source": "print(1)",
            "outputs": [
                {"output_type": "stream", "text": ["\x1b[31m1\x1b[0m\n"]},
                {"output_type": "stream", "text": "2\n"},
                {"output_type": "display_data", "data": {"image/png": "AB\nC="}},
                {"output_type": "execute_result", "data": {"text/html": "<b>2</b>"}},
            ],
        },
        {"cell_type": "code", "source": "", "outputs": []},
    ]
    page = page_of(json.loads(json.dumps({"cells": cells})), ["a 'dot'"])
    assert page.startswith("# Title\nwords\n\n````python\nprint(1)\n````")
    assert "\n1\n2\n````" in page
    assert 'alt="a &#x27;dot&#x27;"' in page
    assert "base64,ABC=" in page
    assert "<b>2</b>" in page


def test_docstrings_are_rewritten_where_sphinx_needs_it():
    from docstring_forms import rewritten

    lines = [
        *(
            "Guarantee: epsilon, by [1]_ and |x|;",
            "    proof in ``docs/proofs/dawa.md``.",
        ),
        *("Error: none.", "", ".. [1] A. Author.", ""),
        *(">>> a[1]", "| kept |"),
    ]
    assert rewritten(lines) == [
        *(
            "**Guarantee**",
            "    epsilon, by [1] and \\|x\\|;",
            "    proof in :doc:`/proofs/dawa`.",
        ),
        *("**Error**", "    none.", "", "1. A. Author.", ""),
        *(">>> a[1]", "| kept |"),
    ]


def test_a_colon_in_the_sentence_of_a_property_makes_no_type():
    napoleon = pytest.importorskip("sphinx.ext.napoleon")
    from docstring_forms import _rewrite

    lines = ['Whether some edge reaches "absent": then totals are private.']
    _rewrite(None, "property", "has_bottom", None, None, lines)
    config = napoleon.Config(napoleon_use_param=False)
    told = napoleon.NumpyDocstring(lines, config, None, "property", "has_bottom")
    assert ":type:" not in str(told)
    assert 'absent": then totals are private.' in str(told)


def test_signatures_have_the_names_of_the_source():
    from docstring_forms import readable

    inside = "~numpy.ndarray[tuple[~typing.Any, ...], ~numpy.dtype[~numpy.uint64]]"
    assert readable(f"(words: Callable[[int, int], {inside}])") == (
        "(words: Callable[[int, int], WordArray])"
    )
    given = "(of: list[~blowfish_fast.measure.handle.Measurement] = <factory>)"
    assert readable(given) == "(of: list[Measurement] = ...)"


def test_names_in_prose_lead_to_the_one_entry_they_can_mean():
    pytest.importorskip("docutils")
    pytest.importorskip("sphinx")
    from code_links import endings_of, entry_of

    names = {
        "blowfish_fast.Dawa": "blowfish_fast.Dawa",
        "blowfish_fast.mechanisms.dawa.Dawa": "blowfish_fast.Dawa",
        "blowfish_fast.Dawa.release": "blowfish_fast.Dawa.release",
        "blowfish_fast.partitions.KBuckets": "blowfish_fast.partitions.KBuckets",
        "blowfish_fast.KBuckets": "blowfish_fast.KBuckets",
        "blowfish_fast.risk": "blowfish_fast.risk",
        "blowfish_fast.policies.Attribute": "blowfish_fast.policies.Attribute",
        "blowfish_fast.explorer.Attribute": "blowfish_fast.explorer.Attribute",
    }
    endings = endings_of(names)
    assert entry_of("bf.risk", endings) == "blowfish_fast.risk"
    assert entry_of("Dawa", endings) == "blowfish_fast.Dawa"
    assert (
        entry_of("mechanisms.dawa.Dawa.release", endings)
        == "blowfish_fast.Dawa.release"
    )
    assert (
        entry_of("partitions.KBuckets", endings) == "blowfish_fast.partitions.KBuckets"
    )
    assert entry_of("Attribute", endings) == "blowfish_fast.policies.Attribute"
    assert entry_of("explorer.Attribute", endings) == "blowfish_fast.explorer.Attribute"
    assert entry_of("release", endings) is None
    assert entry_of("not a name", endings) is None


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour written as six hexadecimal digits."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (
        one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4
        for one in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_code_can_be_read_on_its_ground():
    pytest.importorskip("pygments")
    from code_colours import ReadableStyle

    pale = {}
    for token, form in ReadableStyle:
        ground = form["bgcolor"] or ReadableStyle.background_color.lstrip("#")
        if form["color"] and "Whitespace" not in str(token):
            dark, bright = sorted([luminance(form["color"]), luminance(ground)])
            contrast = (bright + 0.05) / (dark + 0.05)
            pale |= {str(token): round(contrast, 2)} if contrast < 4.5 else {}
    assert pale == {}


def test_pages_read_in_the_checkout_show_their_code():
    assert not [page for page in PAGES if "{literalinclude}" in page.read_text()]
    page = (DOCS / "howto" / "write_a_mechanism.md").read_text()
    block = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[0]
    shown = [line[4:] for line in block.splitlines() if line[4:]]
    assert "class EqualWidths(Mechanism):" in shown
    file = ROOT / "examples" / "outside_mechanism" / "equal_widths.py"
    written = [line for line in file.read_text().splitlines() if line]
    # The page begins below the docstring of the file.
    assert written[1 : 1 + len(shown)] == shown


NESTED_SITE = {
    "conf.py": """
import sys
sys.path.insert(0, {extensions!r})
extensions = ["myst_parser", "sphinx.ext.viewcode", *{added!r}]
html_theme = "furo"
html_copy_source = False
""",
    "index.md": """# Site

```{{toctree}}
:maxdepth: 2
first
folder/second
```

```{{toctree}}
:hidden:
third
```
""",
    "first.md": "# First *page*\n\n## Part\n\n### Piece\n\n## Other part\n",
    "folder/second.md": """# Second

## Part with pages

### Piece with pages

```{{toctree}}
deep
Another title <deeper>
```

```{{only}} nobody
## For nobody
```

## Part without
""",
    "folder/deep.md": "# Deep\n\n## Part\n\n```{{toctree}}\n:maxdepth: 1\nlast\n```\n",
    "folder/deeper.md": "# Deeper\n\nNo parts.\n",
    "folder/last.md": "# Last\n\n## Part of it\n",
    "third.md": "# Third\n\n# Second title on a page\n\n## Part\n",
}


@pytest.mark.long
def test_navigation_of_titles_alone_is_that_of_the_theme_to_the_byte(tmp_path):
    application = pytest.importorskip("sphinx.application")
    for needed in ("furo", "myst_parser"):
        pytest.importorskip(needed)
    sites = {}
    for added in ([], ["navigation_titles"]):
        source, built = (tmp_path / f"{kind}{len(added)}" for kind in ("docs", "html"))
        for name, text in NESTED_SITE.items():
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            extensions = str(DOCS / "_extensions")
            path.write_text(text.format(extensions=extensions, added=added))
        site = application.Sphinx(
            source, source, built, tmp_path / f"trees{len(added)}", "html", status=None
        )
        site.build(force_all=True)
        sites[len(added)] = {
            path.relative_to(built): path.read_bytes() for path in built.rglob("*.html")
        }
        assert hasattr(site, "_contents_by_title") == bool(added)
    assert len(sites[0]) > len(NESTED_SITE)
    assert sites[1] == sites[0]
    # Pages below parts are led to, and parts are not.
    (navigation,) = re.findall(
        rb'class="sidebar-tree">(.*?)</div>', sites[0][Path("index.html")], re.DOTALL
    )
    assert b"folder/last.html" in navigation
    assert b"#part" not in navigation
