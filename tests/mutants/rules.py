"""Mutants by rule: small changes to a file's syntax tree that a test should notice.

    if epsilon <= 0: raise ...   ->   if False: raise ...       a dropped check
    check_same(request)          ->   pass                      a dropped check
    share < 1                    ->   share <= 1                a swapped comparison
    2 * reach                    ->   1 * reach                 a factor of two
    cells + 1                    ->   cells                     off by one
    a and b, min, x + y, True    ->   a or b, max, x - y, False

What only words a message is left alone: text, what stands in ``raise`` or in a
representation, annotations; so is what states that something cannot happen, ``assert``
and the ``strict`` of ``zip``. A mutant is known by its file, its rule, its line's text,
the column in that text and what stands there then, so that a list of mutants survives
lines that move.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}
EXTREMES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "any": "all",
    "all": "any",
    "floor": "ceil",
    "ceil": "floor",
}
CHECKS = ("check", "refuse", "require", "reject", "verify", "confirm", "ensure")
"""A statement that only calls a function with such a beginning is a check."""
WORDS_ONLY = ("__repr__", "__str__", "_repr_html_", "describe", "explain")


Key = tuple[str, str, str, int, str]
"""File, rule, text, column, and what the change makes of it."""


class Mutant(NamedTuple):
    """One change of one file."""

    path: str
    """The file, from the root of the checkout."""
    line: int
    rule: str
    before: str
    """The line's text, without what surrounds it."""
    after: str
    """What the changed expression or statement becomes."""
    column: int
    """Where the change begins in the line's text, from 0."""
    number: int
    """Its place among the mutants of its file."""

    @property
    def key(self) -> Key:
        """What names the mutant while lines move."""
        return self.path, self.rule, self.before, self.column, self.after

    def __str__(self) -> str:
        return f"{self.path}:{self.line} [{self.rule}] {self.before}  ->  {self.after}"


class Change(NamedTuple):
    """A node of the tree, and what takes its place."""

    node: ast.AST
    rule: str
    instead: ast.AST


def mutants(path: Path) -> list[Mutant]:
    """Return every mutant of a file, in the order of its lines."""
    source = path.read_text()
    lines = source.splitlines()
    name = str(path.relative_to(ROOT))
    found = []
    for number, one in enumerate(_changes(ast.parse(source))):
        line, offset = _place(one.node)
        text = lines[line - 1].encode()
        column = offset - (len(text) - len(text.lstrip()))
        after = ast.unparse(one.instead).splitlines()[0]
        before = text.decode().strip()
        found.append(Mutant(name, line, one.rule, before, after, column, number))
    return found


def mutated_tree(path: Path, number: int) -> ast.Module:
    """Return the tree of a file with one change made."""
    tree = ast.parse(path.read_text())
    change = list(_changes(tree))[number]
    for holder in ast.walk(tree):
        for field, value in ast.iter_fields(holder):
            if value is change.node:
                setattr(holder, field, change.instead)
            elif isinstance(value, list):
                for place, one in enumerate(value):
                    if one is change.node:
                        value[place] = change.instead
    ast.copy_location(change.instead, change.node)
    return ast.fix_missing_locations(tree)


def _changes(tree: ast.Module) -> list[Change]:
    found = [change for node in _code(tree) for change in _of_node(node)]
    return sorted(found, key=lambda one: _place(one.node))


def _place(node: ast.AST) -> tuple[int, int]:
    """Return the line and the column, in bytes, at which a node begins."""
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that compute something: no annotations, messages or text."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, ast.AST):
                continue
            if isinstance(one, ast.FunctionDef) and one.name in WORDS_ONLY:
                continue
            if isinstance(one, ast.Raise | ast.JoinedStr | ast.Assert):
                continue
            if isinstance(one, ast.keyword) and one.arg == "strict":
                continue
            if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING":
                continue
            if isinstance(one, ast.Call) and ast.unparse(one.func) == "TypeVar":
                continue
            yield one
            yield from _code(one)


def _of_node(node: ast.AST) -> Iterator[Change]:
    """Yield the changes of one node."""
    if isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise):
        dropped = copy.copy(node)
        dropped.test = ast.Constant(value=False)
        yield Change(node, "dropped check", dropped)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = ast.unparse(node.value.func).rpartition(".")[2].lstrip("_")
        if called.startswith(CHECKS):
            yield Change(node, "dropped check", ast.Pass())
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = COMPARISONS[type(node.ops[0])]
        swapped = ast.Compare(node.left, [other()], node.comparators)
        yield Change(node, "swapped comparison", swapped)
    elif isinstance(node, ast.Compare):
        first = COMPARISONS[type(node.ops[0])]
        swapped = ast.Compare(node.left, [first(), *node.ops[1:]], node.comparators)
        yield Change(node, "swapped comparison", swapped)
        last = COMPARISONS[type(node.ops[-1])]
        swapped = ast.Compare(node.left, [*node.ops[:-1], last()], node.comparators)
        yield Change(node, "swapped comparison", swapped)
    elif isinstance(node, ast.BoolOp):
        joined = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield Change(node, "and, or", ast.BoolOp(joined, node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield Change(node, "dropped not", node.operand)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        if not isinstance(node.operand, ast.Constant):
            yield Change(node, "sign", node.operand)
    elif isinstance(node, ast.BinOp):
        yield from _of_arithmetic(node)
    elif isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name in EXTREMES:
            other_name = copy.copy(node)
            setattr(
                other_name,
                "id" if isinstance(node, ast.Name) else "attr",
                EXTREMES[name],
            )
            yield Change(node, "extreme", other_name)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield Change(node, "truth", ast.Constant(value=not node.value))
    elif isinstance(node, ast.Constant) and _is(node, 0):
        yield Change(node, "off by one", ast.Constant(value=1))


def _of_arithmetic(node: ast.BinOp) -> Iterator[Change]:
    left, right, kind = node.left, node.right, type(node.op)
    if isinstance(left, ast.Constant | ast.JoinedStr) and isinstance(
        getattr(left, "value", ""), str
    ):
        return
    if kind in (ast.Add, ast.Sub) and _is(right, 1):
        yield Change(node, "off by one", left)
    elif kind in (ast.Mult, ast.Div, ast.FloorDiv) and _is(right, 2):
        yield Change(node, "factor of two", left)
    elif kind is ast.Mult and _is(left, 2):
        yield Change(node, "factor of two", right)
    elif kind is ast.Pow and _is(right, 2):
        yield Change(node, "power", left)
    elif kind in OPERATORS:
        yield Change(node, "arithmetic", ast.BinOp(left, OPERATORS[kind](), right))


def _is(node: ast.AST, value: int) -> bool:
    if not isinstance(node, ast.Constant):
        return False
    return type(node.value) is int and node.value == value
