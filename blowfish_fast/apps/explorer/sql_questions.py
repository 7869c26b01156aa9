"""Questions in SQL: exactly those that the explorer can answer, and no others.

    SELECT ward, AVG(cost) FROM visits WHERE age BETWEEN 20 AND 40 GROUP BY ward

        kind "mean" of cost, by ward, filtered by age from 20 to 41     whole ages

One table, one aggregate, conditions joined by AND, groups that are bins. The text is
parsed by sqlglot and never sent to a database. What has no question is refused with the
nearest one that has; joins are declared by the curator, as a view. Nothing here looks
at records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from datetime import date, timedelta
from typing import Any, NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from blowfish_fast.errors import BlowfishError, CatalogError, QuestionError

from .catalog import AttributeSpec, TableSpec
from .in_sql.nearest import nearest_select
from .layout import lay_out
from .questions import Question, adds_up, read_question

MOST_CHARACTERS = 4000
"""Of a text."""
REFUSED_PARTS = {
    "joins": "joins are declared by the curator, as a view that is a table here",
    "laterals": "joins are declared by the curator, as a view that is a table here",
    "having": "HAVING would look at true counts; filter the answer yourself",
    "order": "answers stand in the order of bins; sort the answer yourself",
    "limit": "all groups are answered; cut the answer yourself",
    "offset": "all groups are answered; cut the answer yourself",
    "distinct": "distinct values are not counted; records are",
    "with_": "one table is asked, without parts that are named before",
    "with": "one table is asked, without parts that are named before",
    "windows": "windows have no question here",
    "qualify": "windows have no question here",
}
"""Parts of a SELECT without a question, and what stands for them."""
TURNED: dict[Any, Any] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
}
"""Comparisons whose sides are swapped."""
AMOUNTS: dict[Any, str] = {exp.Sum: "sum", exp.Avg: "mean"}
MEDIANS: tuple[Any, ...] = (
    getattr(exp, "Median", exp.PercentileCont),
    exp.PercentileCont,
)


class _Bounds(NamedTuple):
    """What is known of one attribute: a stretch, levels, and missing values."""

    low: float | str | None = None
    high: float | str | None = None
    values: list[Any] | None = None
    missing: bool | None = None

    @property
    def lets_missing_pass(self) -> bool:
        """Whether records without a value pass: nothing is stated, or that they do."""
        return self.missing is True or self == _Bounds()


def question_from_sql(
    text: str,
    tables: Mapping[str, TableSpec],
    cost: Mapping[str, Any],
    *,
    at_least: int | None = None,
    stepped: Callable[[TableSpec], Collection[str]] | None = None,
) -> Question:
    """Read a question from SQL.

    Parameters
    ----------
    text : str
        One SELECT of one table.
    tables : mapping
        The described tables, by name.
    cost : mapping
        The accuracy or the budget, which SQL has no words for.
    at_least : int, optional
        The size of groups from which on the accuracy of a mean holds.
    stepped : callable, optional
        Returns the attributes of a table whose column's type has steps: whole numbers,
        or days. There "up to 40" is "below 41".

    Returns
    -------
    Question
        What the text asks for.

    Raises
    ------
    QuestionError
        If it asks for anything else; the message names the nearest question.

    Examples
    --------
    >>> from .catalog import as_table
    >>> age = {"name": "age", "cells": {"start": 0, "stop": 80, "width": 1}}
    >>> ward = {"name": "ward", "levels": ["a", "b"]}
    >>> visits = as_table({"name": "visits", "attributes": [age, ward]})
    >>> text = "SELECT ward, COUNT(*) FROM visits WHERE age < 18 GROUP BY ward"
    >>> question = question_from_sql(text, {"visits": visits}, {"alpha": 20})
    >>> question.kind, question.axes, question.filters[0].high
    ('histogram', ['ward'], 18.0)
    """
    tree = _parsed(text, tables)
    table = _table_of(tree, tables)
    try:
        plain = _plain_question(tree, table, stepped)
    except RecursionError:
        raise QuestionError(
            "conditions stand too deep inside one another; list levels by IN"
        ) from None
    except (QuestionError, CatalogError) as problem:
        near = _nearest(tree, table, stepped)
        refusal = type(problem)(problem.rule, received=problem.received, way_out=near)
        raise refusal from None
    if at_least is not None and plain["kind"] == "mean":
        plain["at_least"] = at_least
    return read_question({**plain, "table": table.name, "cost": dict(cost)})


def _nearest(
    tree: exp.Expression,
    table: TableSpec,
    stepped: Callable[[TableSpec], Collection[str]] | None = None,
) -> str:
    """Say which question is nearest to a text that has none."""

    def works(select: exp.Select) -> bool:
        try:
            plain = _plain_question(select, table, stepped)
            stated = {**plain, "table": table.name, "cost": {"epsilon": 1}}
            asked = read_question(stated)
            if not adds_up(asked):
                lay_out(table, asked)
        except BlowfishError:
            return False
        return True

    try:
        near = nearest_select(tree, table, REFUSED_PARTS, works)
    except RecursionError:
        near = None
    if near is None:
        return f"Its attributes are {[spec.name for spec in table.attributes]}"
    return f"The nearest question that works: {near}"


def _some_question(tables: Mapping[str, TableSpec]) -> str | None:
    """Name a question of the first table, for a text that asks none of them."""
    return next((_nearest(exp.Select(), table) for table in tables.values()), None)


def _plain_question(
    tree: exp.Select,
    table: TableSpec,
    stepped: Callable[[TableSpec], Collection[str]] | None,
) -> dict[str, Any]:
    """Return what a SELECT asks for, as plain data without table and cost."""
    steps = () if stepped is None else stepped(table)
    reader = _Reader(table, {*steps})
    for part, why in REFUSED_PARTS.items():
        if tree.args.get(part):
            raise reader.refusal(why)
    where = tree.args.get("where")
    conditions = {} if where is None else reader.read_conditions(where.this)
    groups = [reader.group(each) for each in _groups_of(tree)]
    measured = reader.selected(tree.expressions, [name for name, _ in groups])
    return reader.question(measured, groups, conditions)


def _parsed(text: str, tables: Mapping[str, TableSpec]) -> exp.Select:
    """Return one SELECT as a tree; sqlglot's own words stay here."""
    if len(text) > MOST_CHARACTERS:
        raise QuestionError(f"a question in SQL has at most {MOST_CHARACTERS} letters")
    try:
        trees = [tree for tree in sqlglot.parse(text, read="postgres") if tree]
    except (SqlglotError, RecursionError, ValueError):
        raise QuestionError(
            "this is no SQL that can be read", way_out=_some_question(tables)
        ) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Select):
        raise QuestionError(
            "one SELECT is asked at a time, and nothing is ever changed",
            way_out=_some_question(tables),
        )
    return trees[0]


def _table_of(tree: exp.Select, tables: Mapping[str, TableSpec]) -> TableSpec:
    source = tree.args.get("from_") or tree.args.get("from")
    plain = source.this if source is not None else None
    if not isinstance(plain, exp.Table) or plain.args.get("joins"):
        raise QuestionError(
            "one described table is asked; joins and queries inside queries are "
            f"declared by the curator, as a view. There are {sorted(tables)}"
        )
    name = ".".join(part.name for part in plain.parts)
    if name not in tables:
        raise QuestionError(f"there is no table {name!r}; there are {sorted(tables)}")
    return tables[name]


def _groups_of(tree: exp.Select) -> list[Any]:
    group = tree.args.get("group")
    if group is None:
        return []
    if any(group.args.get(part) for part in ("rollup", "cube", "grouping_sets")):
        raise QuestionError("groups are bins of attributes; ask for each table alone")
    return list(group.expressions)


class _Reader:
    """Reads the parts of a SELECT of one table, or refuses them."""

    def __init__(self, table: TableSpec, stepped: set[str]) -> None:
        self.table, self.stepped = table, stepped

    def refusal(self, why: str) -> QuestionError:
        """Return what refuses a text; whoever reads it names what works."""
        return QuestionError(why)

    def attribute(self, column: Any) -> AttributeSpec:
        """Return the attribute that a column of the text names."""
        if not isinstance(column, exp.Column):
            raise self.refusal(f"{column.sql()[:80]!r} is no column of the table")
        return self.table.attribute(column.name)

    def group(self, each: Any) -> tuple[str, int]:
        """Return an attribute and cells per bin: a column, or FLOOR(column / width)."""
        if isinstance(each, exp.Floor) and isinstance(each.this, exp.Div):
            spec = self.attribute(_bare(each.this.this))
            wide = self.number(each.this.expression)
            cells = spec.cells
            if cells is None or wide % cells.width or cells.start % wide:
                raise self.refusal(
                    f"bins of {wide:g} do not begin where cells of {spec.name!r} do"
                )
            return spec.name, int(wide // cells.width)
        if isinstance(each, exp.TimestampTrunc | exp.DateTrunc):
            spec, unit = self.attribute(each.this), str(each.unit or "").lower()
            raise self.refusal(
                f"bins of {spec.name!r} have its own cells; state each "
                f"{unit or 'part'} "
                'as a stretch, {"kind": "ranges"}, or choose it in the form'
            )
        return self.attribute(_bare(each)).name, 1

    def selected(self, expressions: list[Any], groups: list[str]) -> Any:
        """Return the one aggregate; all else is a column of the groups."""
        measured = []
        for each in expressions:
            plain = _bare(each)
            if isinstance(plain, exp.Star):
                raise self.refusal(
                    "records stay where they are: counts, sums and means leave"
                )
            if isinstance(plain, exp.Column):
                if self.attribute(plain).name not in groups:
                    raise self.refusal(f"{plain.name!r} is shown, and is no group")
            elif isinstance(plain, exp.Floor | exp.TimestampTrunc | exp.DateTrunc):
                self.group(plain)
            else:
                measured.append(plain)
        if len(measured) != 1:
            raise self.refusal("one COUNT, SUM, AVG or MEDIAN is asked at a time")
        return measured[0]

    def question(
        self,
        measured: Any,
        groups: list[tuple[str, int]],
        conditions: dict[str, _Bounds],
    ) -> dict[str, Any]:
        """Return the question of an aggregate, as plain data."""
        names, widths = [name for name, _ in groups], [width for _, width in groups]
        if type(measured) in AMOUNTS:
            if isinstance(measured.this, exp.Distinct | exp.Case):
                raise self.refusal(
                    "sums and means are of a column; the part of records with a "
                    'property is {"kind": "share"}'
                )
            spec = self.attribute(_bare(measured.this))
            about = {"attribute": spec.name, "by": names or None}
            wide = {"granularity": widths} if names else {}
            kind = AMOUNTS[type(measured)]
            return {"kind": kind, **about, **wide, "filters": _filters(conditions)}
        if isinstance(measured, (*MEDIANS, exp.WithinGroup)):
            return self.quantile(measured, names, conditions)
        if not isinstance(measured, exp.Count):
            ends = isinstance(measured, exp.Max | exp.Min)
            why = ": the least and the largest value are quantiles" if ends else ""
            raise self.refusal(
                f"{measured.sql()[:60]!r} has no private answer here{why}"
            )
        return self.count(measured, names, widths, conditions)

    def count(
        self,
        measured: Any,
        names: list[str],
        widths: list[int],
        conditions: dict[str, _Bounds],
    ) -> dict[str, Any]:
        """Return the question of COUNT(*), or of COUNT(column)."""
        counted = measured.this
        if isinstance(counted, exp.Distinct):
            raise self.refusal("distinct values are not counted; records are: COUNT(*)")
        if counted is not None and not isinstance(counted, exp.Star | exp.Literal):
            spec = self.attribute(_bare(counted))
            before = conditions.get(spec.name, _Bounds())
            if spec.missing == "cell":
                there = _Bounds(missing=False)
                conditions[spec.name] = self.both(spec.name, before, there)
        if len(names) == 1:
            return {
                "kind": "histogram",
                "attribute": names[0],
                "width": widths[0],
                "filters": _filters(conditions),
            }
        if names:
            return {
                "kind": "marginal",
                "attributes": names,
                "granularity": widths,
                "filters": _filters(conditions),
            }
        # One number: a stretch of an ordered attribute, the other conditions beside it.
        for name, bounds in conditions.items():
            spec = self.table.attribute(name)
            alone = bounds.missing is None and bounds.values is None
            if spec.kind in ("number", "date") and alone:
                ends = _ends(spec)
                low = ends[0] if bounds.low is None else bounds.low
                high = ends[1] if bounds.high is None else bounds.high
                others = {
                    other: conditions[other] for other in conditions if other != name
                }
                return {
                    "kind": "ranges",
                    "attribute": name,
                    "ranges": [[low, high]],
                    "filters": _filters(others),
                }
        for name, bounds in conditions.items():
            if bounds.values is not None and len(bounds.values) == 1:
                return {
                    "kind": "histogram",
                    "attribute": name,
                    "filters": _filters(conditions),
                }
        raise self.refusal("one count of records needs a stretch or a level, or groups")

    def quantile(
        self, measured: Any, names: list[str], conditions: dict[str, _Bounds]
    ) -> dict[str, Any]:
        """Return the question of a median or percentile."""
        if names:
            raise self.refusal("quantiles are of all records; filter them by one group")
        part, column = 0.5, measured.this
        if isinstance(measured, exp.WithinGroup):
            column = measured.expression.expressions[0].this
            part = self.number(measured.this.this)
        elif isinstance(measured, exp.PercentileCont):
            part = self.number(measured.expression)
        spec = self.attribute(_bare(column))
        if not 0 <= part <= 1:
            raise self.refusal(f"a part lies between 0 and 1, not at {part:g}")
        filters = _filters(conditions)
        return {
            "kind": "quantiles",
            "attribute": spec.name,
            "q": [part],
            "filters": filters,
        }

    def read_conditions(self, tree: Any) -> dict[str, _Bounds]:
        """Return what conditions say of each attribute; they are joined by AND."""
        conditions: dict[str, _Bounds] = {}
        waiting = [tree]
        while waiting:
            each = _bare(waiting.pop())
            if isinstance(each, exp.And):
                waiting += [each.this, each.expression]
                continue
            name, bounds = self.condition(each)
            conditions[name] = self.both(name, conditions.get(name, _Bounds()), bounds)
        return conditions

    def both(self, name: str, before: _Bounds, added: _Bounds) -> _Bounds:
        """Join two conditions on one attribute: a lower and an upper end."""
        missing = before.lets_missing_pass and added.lets_missing_pass
        if _Bounds(missing=True) in (before, added):
            if missing:
                return _Bounds(missing=True)
            raise self.refusal(f"nothing passes all conditions on {name!r}")
        merged = {}
        for part in ("low", "high", "values"):
            first, second = getattr(before, part), getattr(added, part)
            if first is not None and second is not None and first != second:
                raise self.refusal(
                    f"{name!r} has two conditions that are not one stretch"
                )
            merged[part] = second if first is None else first
        stretch = merged["low"] is not None or merged["high"] is not None
        if stretch and merged["values"] is not None:
            raise self.refusal(f"{name!r} has conditions that are not one stretch")
        if stretch or merged["values"] is not None:
            # A stretch holds values that are there.
            return _Bounds(**merged, missing=missing or None)
        return _Bounds(missing=None if missing else False)

    def condition(self, each: Any) -> tuple[str, _Bounds]:
        """Return the attribute of one condition, and what it says."""
        if isinstance(each, exp.Or):
            return self.either(each)
        negated = isinstance(each, exp.Not)
        plain = _bare(each.this) if negated else each
        if isinstance(plain, exp.Is) and isinstance(plain.expression, exp.Null):
            missing = negated == bool(plain.args.get("negate"))
            return self.attribute(_bare(plain.this)).name, _Bounds(missing=missing)
        if negated:
            raise self.refusal("NOT stands before NULL alone; state what passes")
        if isinstance(plain, exp.Between):
            spec = self.attribute(_bare(plain.this))
            low = self.value(spec, plain.args["low"])
            high = self.after(spec, plain.args["high"])
            return spec.name, _Bounds(low=low, high=high)
        if isinstance(plain, exp.In):
            spec = self.attribute(_bare(plain.this))
            listed = [self.value(spec, level) for level in plain.expressions]
            if spec.kind != "category" or not listed:
                raise self.refusal(f"IN is for levels; {spec.name!r} is a {spec.kind}")
            return spec.name, _Bounds(values=listed)
        if not isinstance(plain, exp.EQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
            raise self.refusal(
                f"the condition {plain.sql()[:80]!r} has no question here"
            )
        return self.compared(plain)

    def compared(self, plain: Any) -> tuple[str, _Bounds]:
        """Return what a comparison of a column with a constant says."""
        column, constant = plain.this, plain.expression
        kind: Any = type(plain)
        if not isinstance(_bare(column), exp.Column):
            column, constant = constant, column
            kind = TURNED.get(kind, kind)
        spec = self.attribute(_bare(column))
        if kind is exp.EQ:
            if spec.kind == "category":
                return spec.name, _Bounds(values=[self.value(spec, constant)])
            low, high = self.value(spec, constant), self.after(spec, constant)
            return spec.name, _Bounds(low=low, high=high)
        if spec.kind == "category":
            raise self.refusal(f"{spec.name!r} is a category: compare it by = or IN")
        if kind is exp.GTE:
            return spec.name, _Bounds(low=self.value(spec, constant))
        if kind is exp.LT:
            return spec.name, _Bounds(high=self.value(spec, constant))
        end = self.after(spec, constant)
        return spec.name, _Bounds(low=end) if kind is exp.GT else _Bounds(high=end)

    def either(self, each: Any) -> tuple[str, _Bounds]:
        """Join levels of one attribute, or a stretch with what is missing, by OR."""
        (name, first), (same_name, second) = (
            self.condition(_bare(side)) for side in (each.this, each.expression)
        )
        if name == same_name:
            if first.values is not None and second.values is not None:
                missing = first.missing or second.missing
                levels = first.values + second.values
                return name, _Bounds(values=levels, missing=missing)
            only = _Bounds(missing=True)
            if only in (first, second):
                rest = second if first == only else first
                if rest.missing is None:
                    return name, rest._replace(missing=True)
        raise self.refusal(
            "OR joins levels of one column, or IS NULL with a condition on it"
        )

    def value(self, spec: AttributeSpec, constant: Any) -> Any:
        """Return a constant as a value of an attribute."""
        plain = _bare(constant)
        if isinstance(plain, exp.Cast):
            plain = _bare(plain.this)
        if spec.kind == "number":
            return self.number(plain)
        if isinstance(plain, exp.Literal):
            if spec.kind == "date" or plain.is_string:
                return plain.this
            return self.number(plain)
        raise self.refusal(f"{plain.sql()[:60]!r} is no constant")

    def after(self, spec: AttributeSpec, constant: Any) -> float | str:
        """Return the first value that lies beyond one: a step further, if it has any.

        Up to 40 years is below 41 where ages are whole, and has no edge where not.
        """
        value = self.value(spec, constant)
        if not (spec.whole or spec.name in self.stepped):
            raise self.refusal(
                f"{spec.name!r} is cut at edges, so stretches include their lower end "
                f"and not their upper: write {spec.name} >= ... AND {spec.name} < ..."
            )
        if spec.kind == "date":
            try:
                return (date.fromisoformat(value) + timedelta(days=1)).isoformat()
            except (ValueError, OverflowError):
                raise self.refusal(f"{value!r} is no day") from None
        return float(math.floor(value) + 1)

    def number(self, tree: Any) -> float:
        """Return a constant number."""
        plain, sign = _bare(tree), 1.0
        if isinstance(plain, exp.Neg):
            plain, sign = _bare(plain.this), -1.0
        if not isinstance(plain, exp.Literal) or plain.is_string:
            raise self.refusal(f"{plain.sql()[:60]!r} is no number")
        try:
            value = sign * float(plain.this)
        except ValueError:
            raise self.refusal(f"{plain.sql()[:60]!r} is no number") from None
        return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _bare(tree: Any) -> Any:
    """Return what stands inside parentheses and names for columns of the answer."""
    while isinstance(tree, exp.Paren | exp.Alias):
        tree = tree.this
    return tree


def _ends(spec: AttributeSpec) -> tuple[Any, Any]:
    """Return the first and the last edge of an ordered attribute."""
    if spec.dates is not None:
        first, last = (day.isoformat() for day in (spec.dates[0], spec.dates[-1]))
        return first.removesuffix("T00:00:00"), last.removesuffix("T00:00:00")
    edges = spec.edges if spec.cells is None else spec.cells.edges()
    assert edges is not None
    return edges[0], edges[-1]


def _filters(conditions: dict[str, _Bounds]) -> list[dict[str, Any]]:
    """Return conditions as filters, as plain data."""
    return [
        {
            "attribute": name,
            **{part: end for part, end in bounds._asdict().items() if end is not None},
        }
        for name, bounds in conditions.items()
    ]
