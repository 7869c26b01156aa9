"""Which tests run a line, as a run of the whole suite with coverage noted it.

    coverage combine  ->  build/coverage/data; `dynamic_context = "test_function"`
    line  ->  functions of tests that ran it, those that ran the least code first

A line outside every function is run by no test: those of the lines that use its name
stand in, or those of its file. A line that tests reach by a fixture or by another
process alone has none. What was noted of other code than is tried can only make
survivors, because a test that does not run a mutant does not fail.
"""

from __future__ import annotations

import ast
import re
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from .rules import ROOT, Mutant

ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Contexts:
    """The functions of tests that ran each line of the package."""

    def __init__(self, data: Path) -> None:
        self._data = sqlite3.connect(f"file:{data}?mode=ro", uri=True)
        self._files = {
            path[path.rindex("blowfish_fast/") :]: number
            for number, path in self._data.execute("SELECT id, path FROM file")
        }
        self._names = {
            number: function
            for number, name in self._data.execute("SELECT id, context FROM context")
            if (function := _function(name))
        }
        self._sizes: dict[int, int] = dict(
            self._data.execute("SELECT context_id, count(*) FROM arc GROUP BY 1")
        )
        self._lines: dict[str, dict[int, set[int]]] = {}

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return functions such as ``tests/test_x.py::test_y``, the smallest first."""
        tree = ast.parse((ROOT / mutant.path).read_text())
        chain = list(_around(tree, mutant.line))
        if _inside_a_body(chain, mutant.line):
            found = self._at(mutant.path, _statement_lines(chain, mutant.line))
        else:
            found = self._at_uses(mutant, chain)
        smallest = sorted(found, key=lambda one: (self._sizes[one], self._names[one]))
        return [self._names[one] for one in smallest]

    def _at(self, path: str, lines: Iterable[int]) -> set[int]:
        """Return the tests of the first of some lines that has any."""
        noted = self._noted(path)
        return next((noted[line] for line in lines if line in noted), set())

    def _at_uses(self, mutant: Mutant, chain: list[ast.AST]) -> set[int]:
        """Return the tests of what a value outside all bodies is used by."""
        noted = self._noted(mutant.path)
        inner = chain[-1] if chain else None
        if isinstance(inner, FUNCTIONS):
            body = range(inner.lineno, (inner.end_lineno or 0) + 1)
            return set().union(*(noted.get(line, set()) for line in body))
        targets = [
            name.id
            for one in chain
            if isinstance(one, ASSIGNMENTS)
            for target in (one.targets if isinstance(one, ast.Assign) else [one.target])
            for name in ast.walk(target)
            if isinstance(name, ast.Name)
        ]
        used = re.compile(rf"\b(?:{'|'.join(targets)})\b") if targets else None
        found: set[int] = set()
        for path in self._files if used else ():
            text = (ROOT / path).read_text() if (ROOT / path).exists() else ""
            for number, line in enumerate(text.splitlines(), 1):
                if used and used.search(line):
                    found |= self._noted(path).get(number, set())
        return found or set().union(*noted.values())

    def _noted(self, path: str) -> dict[int, set[int]]:
        """Return the tests of every line of a file."""
        if path not in self._lines:
            rows = self._data.execute(
                "SELECT context_id, fromno, tono FROM arc WHERE file_id = ?",
                (self._files.get(path, -1),),
            )
            found: dict[int, set[int]] = {}
            for test, *ends in rows:
                for line in ends if test in self._names else ():
                    if line > 0:
                        found.setdefault(line, set()).add(test)
            self._lines[path] = found
        return self._lines[path]


def _function(context: str) -> str:
    """Return ``tests/room/test_x.py::test_y`` for ``tests.room.test_x.test_y``.

    The tests of this harness try mutants themselves and are left out.
    """
    module, _, function = context.rpartition(".")
    path = Path(*module.split(".")).with_suffix(".py") if module else Path()
    ours = module.startswith("tests.") and not module.startswith("tests.mutants.")
    return f"{path}::{function}" if ours else ""


def _around(tree: ast.AST, line: int) -> Iterator[ast.AST]:
    """Yield the statements that hold a line, from the outermost."""
    for one in ast.iter_child_nodes(tree):
        if isinstance(one, ast.stmt) and one.lineno <= line <= (one.end_lineno or 0):
            yield one
            yield from _around(one, line)
            return
        if not isinstance(one, ast.stmt | ast.expr):
            yield from _around(one, line)


def _inside_a_body(chain: list[ast.AST], line: int) -> bool:
    return any(
        isinstance(one, FUNCTIONS) and one.body[0].lineno <= line for one in chain
    )


def _statement_lines(chain: list[ast.AST], line: int) -> Iterator[int]:
    """Yield a line and those of its statement before it: a part may have none."""
    begins = getattr(chain[-1], "lineno", line) if chain else line
    yield from range(line, begins - 1, -1)
