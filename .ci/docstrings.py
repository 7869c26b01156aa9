"""Check by numpydoc's rules that everything public says what it takes and returns.

    python .ci/docstrings.py                     the whole package
    python .ci/docstrings.py blowfish_fast/data  some files and folders

A name is public if no part of it begins with an underscore: neither a folder nor a
file, a class, or the name itself. Names of `_support`, which every room uses, count as
public here. From two parameters on, a public function lists its
`Parameters` and `Returns`, also where it overrides another one; a class lists what its
`__init__` takes. A class without an `__init__` that is made from its fields, as
dataclasses and named tuples are, lists these fields, under `Attributes` or
`Parameters`. Nothing is exempt but commands, their options and routes, see `FACES` and
`OPTIONS`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numpydoc.docscrape import NumpyDocString
from numpydoc.hooks.validate_docstrings import AstValidator
from numpydoc.validate import validate

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "blowfish_fast"
FACES = ("command", "callback", "get", "post", "put", "delete")
"""Decorators that show a function to people: as a command of `typer`, or as a route of
`fastapi`. Their parameters are described where people see them, in `--help` and in the
OpenAPI schema; `test_application.py` and `test_access.py` see to that.
"""
COMMANDS = "blowfish_fast/apps/cli/commands"
"""Where every function ``run_NAME`` is a command, too."""
OPTIONS = ("option", "_in")
"""Functions that make a field an option of a command, which ``--help`` describes."""
FIELD_BASES = ("NamedTuple", "TypedDict")
"""Bases whose classes are made from their fields."""
CHECKS = {
    "GL03": "no two blank lines",
    "GL06": "only the sections of numpydoc",
    "GL07": "sections in numpydoc's order",
    "SS03": "the summary ends with a period",
    "PR01": "every parameter is listed",
    "PR02": "no parameter is listed that is not there",
    "PR03": "parameters stand in the order of the signature",
    "PR04": "each has a type",
    "PR07": "each has a description",
    "PR09": "which ends with a period",
    "PR10": "a space stands before the colon",
    "RT01": "what is returned is described",
    "RT03": "in words, not by its type alone",
    "RT05": "which end with a period",
    "YD01": "what is yielded is described",
}
"""Rules of numpydoc's own; those of this file about fields are FD01 to FD03."""
FROM_TWO_PARAMETERS_ON = ("PR01", "RT01", "YD01")


def main(words: list[str]) -> int:
    """Print the faults of the named files, or of the package; 1 if any."""
    faults = 0
    for word in words or [PACKAGE.name]:
        place = ROOT / word
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            for line in file_faults(path):
                print(line)  # noqa: T201
                faults += 1
    return 1 if faults else 0


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    taken = function.args
    plain = (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)
    starred = (taken.vararg, taken.kwarg)
    names = [argument.arg for argument in (*plain, *starred) if argument is not None]
    return [name for name in names if name not in ("self", "cls")]


def file_faults(path: Path) -> Iterator[str]:
    """Yield a line for each fault of a file's public names."""
    inside = path.relative_to(ROOT)
    shared = ("__init__.py", "_support")
    if any(part.startswith("_") and part not in shared for part in inside.parts):
        return
    module = ast.parse(path.read_text())
    for node, ancestry in _public(module.body, [module]):
        if _is_face(node, inside):
            continue
        report = validate(
            node.name, AstValidator, ast_node=node, filename=path, ancestry=ancestry
        )
        short = _is_short(node)
        for code, text in report["errors"]:
            if _inherits_init(node) and code in ("PR01", "PR02", "PR03"):
                # What it takes stands in its fields, or in the class above.
                continue
            if code in CHECKS and not (short and code in FROM_TWO_PARAMETERS_ON):
                name = ".".join(outer.name for outer in (*ancestry[1:], node))
                yield f"{inside}:{node.lineno}: {code} {name}: {text}"
        if isinstance(node, ast.ClassDef) and _inherits_init(node):
            name = ".".join(outer.name for outer in (*ancestry[1:], node))
            for fault in field_faults(node):
                yield f"{inside}:{node.lineno}: {fault[:4]} {name}{fault[4:]}"


def field_faults(node: ast.ClassDef) -> Iterator[str]:
    """Yield what is wrong with the list of a class's fields, from two fields on."""
    taken = _fields(node)
    text = NumpyDocString(ast.get_docstring(node) or "")
    listed = {
        name.lstrip("*"): " ".join(entry.desc).strip()
        for section in ("Parameters", "Attributes")
        for entry in text[section]
        for name in entry.name.split(", ")
    }
    if len(taken) >= 2:
        lacking = [name for name in taken if name not in listed]
        if lacking:
            yield f"FD01: fields {lacking} are not listed"
    for name in taken:
        if name in listed and not listed[name]:
            yield f"FD02: field {name!r} has no description"
        elif name in listed and not listed[name].endswith("."):
            yield f"FD03: the description of {name!r} does not end with a period"


def _fields(node: ast.ClassDef) -> list[str]:
    """Return the public fields that a dataclass, named tuple or typed dict takes."""
    words = [ast.unparse(part) for part in (*node.decorator_list, *node.bases)]
    kinds = {word.split("(")[0].rpartition(".")[2] for word in words}
    if not kinds & {"dataclass", *FIELD_BASES}:
        return []
    taken = []
    for line in node.body:
        if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name):
            continue
        value = ast.unparse(line.value) if line.value is not None else ""
        is_option = value.split("(")[0] in OPTIONS
        is_fixed = "ClassVar" in ast.unparse(line.annotation) or "init=False" in value
        if not (is_option or is_fixed or line.target.id.startswith("_")):
            taken.append(line.target.id)
    return taken


def _is_face(node: Any, path: Path) -> bool:
    """Return whether a function is a command or a route."""
    words = [ast.unparse(decorator) for decorator in node.decorator_list]
    if any(word.split("(")[0].rpartition(".")[2] in FACES for word in words):
        return True
    is_command = path.as_posix().startswith(COMMANDS) and node.name.startswith("run_")
    return is_command and isinstance(node, ast.FunctionDef)


def _is_short(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a name takes less than two parameters, or is no plain function."""
    if not isinstance(node, ast.ClassDef):
        return len(_parameters(node)) < 2
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
            return len(_parameters(inner)) < 2
    return True


def _inherits_init(node: ast.AST) -> bool:
    """Return whether a class has no `__init__` of its own, as dataclasses have none."""
    return isinstance(node, ast.ClassDef) and not any(
        isinstance(inner, ast.FunctionDef) and inner.name == "__init__"
        for inner in node.body
    )


def _public(
    body: list[ast.stmt], ancestry: list[Any]
) -> Iterator[
    tuple[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, list[ast.AST]]
]:
    """Yield the public classes, functions and methods, each with what it stands in."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _public(node.body, ancestry)
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        words = [ast.unparse(decorator) for decorator in node.decorator_list]
        if node.name.startswith("_") or "overload" in words:
            continue
        yield node, ancestry
        if isinstance(node, ast.ClassDef):
            yield from _public(node.body, [*ancestry, node])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
