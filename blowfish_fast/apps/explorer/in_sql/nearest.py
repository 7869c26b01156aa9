"""The nearest SELECT that works, for one that was refused.

    refused     SELECT ward, STDDEV(cost) FROM visits GROUP BY ward ORDER BY ward
    nearest     SELECT ward, AVG(cost) FROM visits GROUP BY ward

Parts without a question are left out, aggregates and columns are replaced by the ones
nearest to them, and of the SELECTs that come of it the first is taken that is read
without a refusal. Texts and descriptions of tables alone are looked at.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sqlglot import exp

from blowfish_fast.apps.explorer.catalog import TableSpec

MOST_SHOWN = 300
"""Letters of a proposal; a longer one is no help."""
LOW, HIGH = 0.05, 0.95
"""Parts that stand for the least and the largest value."""
BINNED: tuple[Any, ...] = (exp.Floor, exp.TimestampTrunc, exp.DateTrunc)
"""What makes bins of a column."""
NEAR = 0.4
"""How alike a column and an attribute are whose names are taken for each other."""


def nearest_select(
    tree: exp.Expression,
    table: TableSpec,
    dropped: Iterable[str],
    works: Callable[[exp.Select], bool],
) -> str | None:
    """Return the nearest SELECT of a table that works. Free; no data.

    Parameters
    ----------
    tree : Expression
        What was refused.
    table : TableSpec
        The described table that is asked.
    dropped : iterable of str
        Parts of a SELECT that have no question.
    works : callable
        Whether a SELECT is a question of the table.

    Returns
    -------
    str or None
        SQL. None where nothing near works.
    """
    for select in _selects(tree, table, dropped):
        text = select.sql(dialect="postgres")
        if len(text) <= MOST_SHOWN and works(select):
            return text
    return None


def _selects(
    tree: exp.Expression, table: TableSpec, dropped: Iterable[str]
) -> Iterator[exp.Select]:
    """Yield SELECTs, the ones that differ least first."""
    plain = tree.copy() if isinstance(tree, exp.Select) else exp.Select()
    for part in dropped:
        plain.set(part, None)
    columns = _Columns(table)
    columns.rename(plain)
    group = plain.args.get("group")
    groups = [] if group is None else list(group.expressions)
    shown = [_bare(each) for each in plain.expressions]
    wheres = list(_wheres(plain, columns))
    for measured in _measured(shown, columns):
        for by in _groups(groups, shown, columns, wheres[0]):
            for where in wheres:
                yield _select(table, by, measured, where)


def _select(
    table: TableSpec, by: list[Any], measured: Any, where: Any | None
) -> exp.Select:
    """Return one aggregate of a table by groups."""
    select = exp.select(*(each.copy() for each in by), measured.copy())
    select = select.from_(exp.Table(this=_quoted(table.name)))
    if where is not None:
        select = select.where(where.copy())
    return select.group_by(*(each.copy() for each in by)) if by else select


def _measured(shown: list[Any], columns: _Columns) -> Iterator[Any]:
    """Yield aggregates for those of a SELECT, the nearest first, and COUNT last."""
    count = exp.Count(this=exp.Star())
    for each in shown:
        if isinstance(each, (exp.Column, exp.Star, *BINNED)):
            continue
        if isinstance(each, exp.Count):
            yield count
            continue
        yield each
        number = columns.number_in(each)
        if number is None:
            continue
        if isinstance(each, exp.Max | exp.Min):
            yield _quantile(number, HIGH if isinstance(each, exp.Max) else LOW)
        yield exp.Avg(this=number)
    yield count


def _quantile(column: Any, part: float) -> Any:
    """Return the quantile of a column as SQL."""
    of = exp.PercentileCont(this=exp.Literal.number(part))
    order = exp.Order(expressions=[exp.Ordered(this=column)])
    return exp.WithinGroup(this=of, expression=order)


def _groups(
    groups: list[Any], shown: list[Any], columns: _Columns, where: Any | None
) -> Iterator[list[Any]]:
    """Yield groups: those stated, columns that are shown, or one that fits."""
    bare = [_bare(each) for each in groups]
    yield [each for each in bare if columns.is_group(each)]
    listed = [each for each in shown if isinstance(each, exp.Column)]
    some = [each for each in listed if columns.is_group(each)]
    if some:
        yield some
    binned = [each for each in (*bare, *shown) if isinstance(each, BINNED)]
    inside = [column for each in binned for column in each.find_all(exp.Column)]
    if inside and columns.is_group(inside[0]):
        yield inside[:1]
    yield []
    named = [] if where is None else list(where.find_all(exp.Column))
    for each in (*named, *columns.all):
        yield [each]


def _wheres(select: exp.Select, columns: _Columns) -> Iterator[Any | None]:
    """Yield conditions: all of them, those that have a question each, and none."""
    where = select.args.get("where")
    if where is None:
        yield None
        return
    yield where.this
    parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else []
    for part in parts or [where.this]:
        plain = _bare(part)
        for each in plain.flatten() if isinstance(plain, exp.Or) else [plain]:
            if columns.are_there(each):
                yield each
    yield None


class _Columns:
    """The attributes of a table as columns of a text."""

    def __init__(self, table: TableSpec) -> None:
        self.kinds = {
            spec.name: spec.kind for spec in table.attributes if spec.kind != "words"
        }
        self.all = [exp.Column(this=_quoted(name)) for name in self.kinds]

    def rename(self, select: exp.Select) -> None:
        """Name columns that are not there by the attributes that are like them."""
        for column in list(select.find_all(exp.Column)):
            column.set("table", None)
            if column.name in self.kinds:
                column.set("this", _quoted(column.name))
                continue
            like = difflib.get_close_matches(column.name, self.kinds, 1, NEAR)
            if like:
                column.set("this", _quoted(like[0]))

    def is_group(self, each: Any) -> bool:
        """Return whether something is a column, or bins of one, of the table."""
        return isinstance(each, exp.Column | exp.Floor) and self.are_there(each)

    def are_there(self, each: Any) -> bool:
        """Return whether all columns of a part are attributes."""
        named = [column.name for column in each.find_all(exp.Column)]
        return bool(named) and all(name in self.kinds for name in named)

    def number_in(self, each: Any) -> Any | None:
        """Return the first column of numbers inside an expression."""
        for column in each.find_all(exp.Column):
            if self.kinds.get(column.name) == "number":
                return exp.Column(this=_quoted(column.name))
        return None


def _quoted(name: str) -> exp.Identifier:
    """Return a name that SQL reads as it is."""
    plain = name.isidentifier() and name.islower() and name.isascii()
    return exp.to_identifier(name, quoted=not plain)


def _bare(tree: Any) -> Any:
    """Return what stands inside parentheses and names for columns of the answer."""
    while isinstance(tree, exp.Paren | exp.Alias):
        tree = tree.this
    return tree
