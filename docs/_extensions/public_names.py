"""Entries of the reference, written from the lists of public names.

A page asks for them with one line, which is invisible elsewhere:

    <!-- public names of blowfish_fast.policies -->     a table, then every name in full
    <!-- guide of dawa -->                              one registered mechanism
    <!-- table of mechanisms -->                        what each of them does

A guide ends with the pages that use its mechanism, and the proof of a mechanism begins
with a line that leads to its guide. A name that ``blowfish_fast`` itself offers is
entered under that short name, on the page of its package; so each object has one entry,
and a name added to a list needs no edit here.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = "blowfish_fast"
DOCS = Path(__file__).parent.parent
EXAMPLES = ("tutorial.md", "howto/*.md", "notebooks/*.md")
MEASURED = (
    "accuracy.md",
    "explanation/how_the_defaults_were_chosen.md",
    "performance.md",
)
REQUEST = re.compile(r"^<!-- (public names|guide|table) of ([\w.]+) -->$", re.MULTILINE)


def public_names(module: ModuleType) -> list[str]:
    """Return what a module lists in ``__all__``, or else its functions and classes."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if not _is_module(module, name)]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isroutine(value))
        and value.__module__ == module.__name__
    ]


def module_named(dotted: str) -> ModuleType:
    """Return a module by its path, or by the short name that the package offers."""
    root = importlib.import_module(ROOT)
    short = dotted.removeprefix(f"{ROOT}.")
    if short in root.__all__:
        module: ModuleType = getattr(root, short)
        return module
    return importlib.import_module(dotted)


def entry_name(module: ModuleType, name: str) -> str:
    """Return the dotted name under which an object is entered."""
    root = importlib.import_module(ROOT)
    if name in root.__all__ and getattr(root, name) is getattr(module, name):
        return f"{ROOT}.{name}"
    short = module.__name__.rpartition(".")[2]
    if short in root.__all__ and getattr(root, short) is module:
        return f"{ROOT}.{short}.{name}"
    return f"{module.__name__}.{name}"


def data_docstring(module: ModuleType, name: str) -> str:
    """Return the string below the assignment of a name, wherever it is assigned."""
    folder = Path(module.__file__ or "").parent
    told = data_docstrings(folder).get(name)
    if told is not None:
        return told
    raise LookupError(
        f"{module.__name__}.{name} has no string below it that says what it is"
    )


@cache
def data_docstrings(folder: Path) -> dict[str, str]:
    """Return the string below each assignment at the head of a module, by its name.

    Of several modules that assign a name, the first one counts.
    """
    told: dict[str, str] = {}
    for path in folder.rglob("*.py"):
        for statement, below in pairwise(ast.parse(path.read_text()).body):
            value = getattr(below, "value", None)
            if not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
                continue
            targets = getattr(
                statement, "targets", [getattr(statement, "target", None)]
            )
            for target in targets:
                told.setdefault(
                    getattr(target, "id", ""), " ".join(value.value.split())
                )
    return told


def first_sentence(value: Any) -> str:
    """Return the first paragraph of a docstring on one line, fit for a table."""
    text = inspect.getdoc(value) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def expanded(text: str) -> str:
    """Return a page with every request replaced by the entries it asks for."""
    kinds = {"public names": _package, "guide": _guide, "table": _table}
    return REQUEST.sub(lambda asked: kinds[asked[1]](asked[2]), text)


def _package(dotted: str) -> str:
    module = module_named(dotted)
    names = public_names(module)
    if dotted == ROOT:
        names = [name for name in names if _home(name) is None]
    elif dotted.removeprefix(f"{ROOT}.") not in importlib.import_module(ROOT).__all__:
        # A module of building blocks; its public functions stand on the first page.
        names = [n for n in names if entry_name(module, n) != f"{ROOT}.{n}"]
    # A mechanism has a page of its own.
    in_full = [name for name in names if _guide_of(getattr(module, name)) is None]
    rows = [_row(module, name) for name in names]
    entries = [_entry(module, name) for name in in_full]
    return "\n".join([*_table_of(rows), "", *entries])


def _registry() -> dict[str, Any]:
    """Return every mechanism that has a guide, those of tables and lists too."""
    module = importlib.import_module(f"{ROOT}.mechanisms.registry")
    lists = {**module.TABLE_MECHANISMS, **module.LIST_MECHANISMS}
    return {**module.MECHANISMS, **lists}


def _guide(name: str) -> str:
    registry = _registry()
    mechanisms = importlib.import_module(f"{ROOT}.mechanisms")
    kind = registry[name].__name__
    return _entry(mechanisms, kind) + _uses(kind, name)


def _uses(kind: str, name: str) -> str:
    """Return the last lines of a guide: where its mechanism is used and measured."""
    used = pages_with(rf"\bbf\.(?:mechanisms\.)?{kind}\(", EXAMPLES)
    # Pages of figures say `Dawa`, DAWA, or the name of the registry in a first column.
    spelt = rf"\b(?:{kind}|{kind.upper()})\b|^\| {name}\b"
    measured = pages_with(f"(?m){spelt}", MEASURED)
    lines = [
        *([f"**In use:** {', '.join(used)}."] if used else []),
        *([f"**Measured:** {', '.join(measured)}."] if measured else []),
        "**Common to all mechanisms** (`release`, `expected_error`, `memory_needed`): "
        "{py:obj}`Mechanism <blowfish_fast.mechanisms.Mechanism>`. "
        "[Choose a mechanism](/howto/choose_a_mechanism.md) compares them.",
    ]
    return "\n\n".join(["", *lines, ""])


def pages_with(pattern: str, patterns: Sequence[str]) -> list[str]:
    """Return links to the pages, in the order of `patterns`, whose text matches."""
    pages = [page for one in patterns for page in sorted(DOCS.glob(one))]
    return [
        f"[{_title(text)}](/{page.relative_to(DOCS)})"
        for page, text in ((page, _told(page)) for page in pages)
        if re.search(pattern, text)
    ]


@cache
def _told(page: Path) -> str:
    """Return a page, or the source of the notebook that it shows."""
    text = page.read_text()
    asked = re.search(r"<!-- notebook ([\w/.]+)\.ipynb -->", text)
    return (DOCS.parent / f"{asked[1]}.py").read_text() if asked else text


def _title(text: str) -> str:
    found = re.search(r"^#(?: #)? (?!%%)(.+)$", text, re.MULTILINE)
    return found[1] if found else ""


def with_guide(docname: str, text: str) -> str:
    """Return a page of proofs with lines that lead to the guides of its mechanisms.

    The line stands below the title of the page, or below the heading of the part, that
    is the mechanism's name.
    """
    if not docname.startswith("proofs/"):
        return text
    for name, mechanism in _registry().items():
        kind = mechanism.__name__
        line = f"*When to use it, its signature and an example:* [{kind}]"
        told = f"{line}({guide_place(name)})."
        text = re.sub(
            rf"^(##? {kind})$", rf"\1\n\n{told}", text, count=1, flags=re.MULTILINE
        )
    return text


@cache
def proof_place(name: str) -> str:
    """Return where a mechanism is proved: a page of its name, or a part of one."""
    kind = _registry()[name].__name__
    for page in sorted(DOCS.glob("proofs/*.md")):
        title, *parts = re.findall(r"^##? (.+)$", page.read_text(), re.MULTILINE)
        if title == kind:
            return f"/proofs/{page.name}"
        if kind in parts:
            return f"/proofs/{page.name}#{kind.lower()}"
    raise LookupError(
        f"no page of docs/proofs has {kind} for its title or for one of its headings; "
        "write the proof under that heading"
    )


@cache
def guide_place(name: str) -> str:
    """Return where the guide to a mechanism stands: a page, or a part of one."""
    asked = f"<!-- guide of {name} -->"
    (page,) = [
        path for path in DOCS.glob("mechanisms/*.md") if asked in path.read_text()
    ]
    part = "" if page.stem == name else f"#{_registry()[name].__name__.lower()}"
    return f"/mechanisms/{page.name}{part}"


def _table(what: str) -> str:
    registry = _registry()
    rows = []
    for name, mechanism in sorted(registry.items()):
        says = first_sentence(mechanism)
        rows.append(
            f"| [`{mechanism.__name__}`]({guide_place(name)}) | {says} "
            f"| [proof]({proof_place(name)}) |"
        )
    return "\n".join(["| mechanism | what it does | proof |", "|---|---|---|", *rows])


def _entry(module: ModuleType, name: str) -> str:
    value = getattr(module, name)
    if inspect.isclass(value):
        options = [":members:", *_bases(value)]
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
    elif callable(value):
        options, kind = [], "autofunction"
    else:
        says = data_docstring(module, name)
        body = [f".. py:data:: {entry_name(module, name)}", "", f"   {says}"]
        return "\n".join(["```{eval-rst}", *body, "```", ""])
    body = [f".. {kind}:: {entry_name(module, name)}", *(f"   {o}" for o in options)]
    return "\n".join(["```{eval-rst}", *body, "```", ""])


def _bases(kind: type) -> list[str]:
    """Return options that name a base with an entry, or take over one without."""
    entered = entered_objects()
    own = [one for one in kind.__mro__[1:] if one.__module__.startswith(f"{ROOT}.")]
    hidden = [one for one in own if one not in entered]
    options = []
    if own and own[0] in entered:
        options.append(":show-inheritance:")
    if hidden:
        told = [one.__name__ for one in kind.__mro__[1:] if one not in hidden]
        options.append(f":inherited-members: {', '.join(told)}")
    return options


@cache
def entered_objects() -> frozenset[Any]:
    """Return every class that a page of the reference enters."""
    pages = (Path(__file__).parent.parent / "reference").glob("*.md")
    asked = [asked for page in pages for asked in REQUEST.findall(page.read_text())]
    modules = [module_named(dotted) for _, dotted in asked]
    found = [getattr(one, name) for one in modules for name in public_names(one)]
    return frozenset(value for value in found if inspect.isclass(value))


def _row(module: ModuleType, name: str) -> str:
    entry, value = entry_name(module, name), getattr(module, name)
    is_data = not (inspect.isclass(value) or callable(value))
    says = data_docstring(module, name) if is_data else first_sentence(value)
    short = entry.removeprefix(f"{ROOT}.")
    return f"| {{py:obj}}`{short} <{entry}>` | {says} |"


def _table_of(rows: list[str]) -> list[str]:
    return ["| name | what it is |", "|---|---|", *rows]


def _guide_of(value: Any) -> str | None:
    registry = _registry()
    return next((name for name, one in registry.items() if one is value), None)


def _home(name: str) -> str | None:
    """Return the public package whose page holds a name of the package itself."""
    root = importlib.import_module(ROOT)
    for package in root.__all__:
        if _is_module(root, package) and name in public_names(getattr(root, package)):
            return package
    return None


def _is_module(module: ModuleType, name: str) -> bool:
    return isinstance(getattr(module, name), ModuleType)


def _read(app: Any, docname: str, content: list[str]) -> None:
    content[0] = with_guide(docname, expanded(content[0]))


def setup(app: Any) -> dict[str, bool]:
    """Register the listener with Sphinx."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
