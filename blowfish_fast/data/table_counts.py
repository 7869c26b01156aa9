"""Cells of a table and how many records each holds, counted where the table is.

Serves ``Histogram.from_ibis`` and ``SparseHistogram.from_ibis``: one GROUP BY, on any
engine that ibis speaks to. Records stay there; what travels is a row of 16 bytes per
cell that holds records, in batches.

    SELECT CASE WHEN age IS NULL THEN -1 ... ELSE cell END AS cell, COUNT(*)
    GROUP BY 1

    cell     17   42  -2           negative: a kind of value that was to be refused
    records   3    1   1
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import BlowfishError, EngineError, InputError

from .axes import MISSING, OUTSIDE, Attribute
from .cell_expressions import (
    as_level,
    as_number,
    clamped_cell,
    comparable_edges,
    compared_levels,
    double,
    ibis_module,
    is_missing,
)
from .domain import Attributes
from .records import Rule, refuse_fractions, refuse_strays

ROWS_AT_ONCE = 2**20
"""Counted cells that travel in one batch."""

PIECE_ROWS = 2**23
"""Counted cells that are asked of Spark at a time."""

KINDS = ("missing", "outside", "fraction")
"""What may be refused, in the order in which it is noticed."""


class CellCounts(NamedTuple):
    """Cells that hold records, and how many each holds."""

    cells: IntArray
    records: IntArray


def counted_cells(
    domain: Attributes,
    rules: list[Rule],
    table: Any,
    columns: Mapping[Any, str] | None = None,
) -> Iterator[CellCounts]:
    """Yield the cells of `domain` that hold records of `table`, batch by batch.

    No cell comes twice. Strays that `rules` refuse raise as they do for records at
    hand, before anything is yielded for them.

    Examples
    --------
    >>> import ibis
    >>> from blowfish_fast import Domain
    >>> ages = Domain.from_edges([0, 18, 65, 120], name="age")
    >>> people = ibis.duckdb.connect().sql("SELECT unnest([3, 70, 71]) AS age")
    >>> (batch,) = counted_cells(ages, [Rule("refuse", "refuse")], people)
    >>> sorted(zip(batch.cells.tolist(), batch.records.tolist()))
    [(0, 1), (2, 2)]
    """
    counted = cell_table(domain, rules, table, columns)
    for batch in _batches(counted, domain.size):
        _refuse(domain, rules, batch.cells)
        yield batch


def cell_table(
    domain: Attributes,
    rules: list[Rule],
    table: Any,
    columns: Mapping[Any, str] | None = None,
) -> Any:
    """Return the counted cells as an expression that nobody has run yet.

    Examples
    --------
    >>> import ibis
    >>> from blowfish_fast import Domain
    >>> towns = Domain.from_levels(["Bern", "Chur"], name="town")
    >>> people = ibis.table({"town": "string"}, name="people")
    >>> cell_table(towns, [Rule("refuse", "refuse")], people).columns
    ('cell', 'records')
    """
    ibis = ibis_module()
    if not isinstance(table, ibis.expr.types.Table):
        raise InputError(
            "a table of a database is an ibis table, such as "
            f'ibis.duckdb.connect("visits.duckdb").table("visits"); received '
            f"{type(table).__name__}. Frames and arrays go to from_records"
        )
    named: Any = {} if columns is None else columns
    if not isinstance(named, Mapping):
        raise InputError(
            "columns is a mapping from attributes to columns of the table; received "
            f"{named!r}"
        )
    sources = [_source(table, domain, axis, named) for axis in range(domain.ndim)]
    number: Any = None
    refused: list[tuple[Any, int]] = []
    for axis, (attribute, rule, column) in enumerate(
        zip(domain.attributes, rules, sources, strict=True)
    ):
        cell, strays = _placed(column, attribute, rule)
        refused += [
            (condition, -1 - len(KINDS) * axis - KINDS.index(kind))
            for kind, condition in strays.items()
        ]
        number = cell if number is None else number * attribute.size + cell
    if refused:
        number = ibis.cases(*refused, else_=number)
    return table.group_by(cell=number.cast("int64")).aggregate(records=table.count())


def _source(
    table: Any, domain: Attributes, axis: int, columns: Mapping[Any, str]
) -> Any:
    """Return the column of an attribute, judged by its type."""
    attribute = domain.attributes[axis]
    by_axis = {domain.axis(one): name for one, name in columns.items()}
    name = by_axis.get(axis, attribute.name)
    if not isinstance(name, str) or name not in table.columns:
        raise InputError(
            f"the table has no column {name!r} for attribute {axis}; its columns are "
            f'{list(table.columns)}. Say which with columns={{"attribute": "column"}}'
        )
    column = table[name]
    kind = column.type()
    if attribute.levels is not None:
        texts = all(isinstance(one, str) for one in compared_levels(attribute))
        fits = kind.is_string() if texts else kind.is_numeric() or kind.is_boolean()
        wanted = "texts" if texts else "whole numbers or truth values"
    elif attribute.unit is not None:
        fits, wanted = kind.is_date() or kind.is_timestamp(), "dates"
    else:
        fits, wanted = kind.is_numeric() or kind.is_boolean(), "numbers"
    if not fits:
        raise InputError(
            f"{attribute.name or name!r} has cells of {wanted}, and column {name!r} is "
            f"of type {kind}; cast it first: table.mutate({name}=...)"
        )
    return column


def _placed(
    column: Any, attribute: Attribute, rule: Rule
) -> tuple[Any, dict[str, Any]]:
    """Return the cell of each record, and the conditions under which it is refused."""
    if attribute.levels is not None:
        return _by_level(column, attribute, rule)
    return _by_order(column, attribute, rule)


def _by_level(
    column: Any, attribute: Attribute, rule: Rule
) -> tuple[Any, dict[str, Any]]:
    ibis = ibis_module()
    value, absent = as_level(column), is_missing(column)
    levels = compared_levels(attribute)
    branches = [(absent, attribute.extra_cell(MISSING) or 0)]
    branches += [(value == level, cell) for cell, level in enumerate(levels)]
    outside = attribute.extra_cell(OUTSIDE)
    cell = ibis.cases(*branches, else_=outside or 0).cast("int64")
    refused = {}
    if rule.missing == "refuse":
        refused["missing"] = absent
    if rule.outside == "refuse":
        refused["outside"] = ~(absent | value.isin(levels))
    return cell, refused


def _by_order(
    column: Any, attribute: Attribute, rule: Rule
) -> tuple[Any, dict[str, Any]]:
    ibis = ibis_module()
    absent, value = is_missing(column), as_number(column, attribute)
    numbered = attribute.cuts is None
    cuts = np.array([0.0, attribute.regular]) if numbered else None
    edges = comparable_edges(attribute) if cuts is None else cuts
    first, last = double(edges[0]), double(edges[-1])
    # The last edge belongs to the last cell, of numbers between edges.
    closed = not numbered and attribute.unit is None
    beyond = (value < first) | (value > last if closed else value >= last)
    # What is no number has no cell: it counts as the start, or is told apart below.
    safe = absent.ifelse(first, value)
    if numbered:
        top = double(attribute.regular - 1)
        whole = ibis.least(ibis.greatest(safe, first), top)
        cell = whole.floor().cast("int64")
    else:
        cell = clamped_cell(safe, edges, attribute.name)
    branches = []
    if rule.missing == "cell":
        branches.append((absent, attribute.extra_cell(MISSING)))
    if rule.outside == "cell":
        branches.append((beyond, attribute.extra_cell(OUTSIDE)))
    if branches:
        cell = ibis.cases(*branches, else_=cell).cast("int64")
    refused = {}
    if rule.missing == "refuse":
        refused["missing"] = absent
    if rule.outside == "refuse":
        refused["outside"] = ~absent & beyond
    if numbered and not column.type().is_integer():
        refused["fraction"] = ~absent & ~beyond & (value.floor() != value)
    return cell, refused


def _refuse(domain: Attributes, rules: list[Rule], cells: IntArray) -> None:
    """Raise what records at hand would, for the first attribute that has strays."""
    if cells.size == 0 or cells.min() >= 0:
        return
    axis, kind = divmod(-1 - int(cells[cells < 0].max()), len(KINDS))
    if KINDS[kind] == "fraction":
        refuse_fractions()
    refuse_strays(
        domain.attributes[axis],
        rules[axis],
        outside=KINDS[kind] == "outside",
        missing=KINDS[kind] == "missing",
    )


def _batches(counted: Any, cells: int) -> Iterator[CellCounts]:
    try:
        # Spark collects an answer whole, so a large one is asked for in pieces.
        if counted.get_backend().name == "pyspark" and cells > PIECE_ROWS:
            yield from _in_pieces(counted)
            return
        for batch in counted.to_pyarrow_batches(chunk_size=ROWS_AT_ONCE):
            yield _numbers(batch)
    except BlowfishError:
        raise
    except Exception as problem:
        # The engine's own words could quote records.
        raise EngineError(
            f"the database could not count the table ({type(problem).__name__})"
        ) from None


def _in_pieces(counted: Any) -> Iterator[CellCounts]:
    """Keep the counted cells on the cluster and fetch them piece by piece."""
    kept = counted.cache()
    try:
        rows = int(kept.count().execute())
        pieces = max(1, math.ceil(rows / PIECE_ROWS))
        for piece in range(pieces):
            # Negative numbers have a negative remainder.
            mine = kept.cell.abs() % pieces == piece
            here = kept if pieces == 1 else kept.filter(mine)
            yield _numbers(here.to_pyarrow())
    finally:
        kept.release()


def _numbers(batch: Any) -> CellCounts:
    cells, records = (
        np.asarray(batch.column(name)).astype(np.int64, copy=False)
        for name in ("cell", "records")
    )
    return CellCounts(cells, records)
