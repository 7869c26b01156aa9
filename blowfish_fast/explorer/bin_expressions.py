"""Bins of a question as expressions of the database: records never leave it.

    x  ->  cell  ->  bin of this attribute  ->  number of the coarse cell  ->  GROUP BY

Every engine must put a record into the same cell as numpy would. Equal widths are
divided and then corrected by comparing with the two edges, which are computed from the
same doubles everywhere; other edges are found by nested comparisons.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._optional import require
from ..axes import MICROSECONDS, MISSING, OUTSIDE
from ..errors import CatalogError
from .attributes import AttributeSpec
from .layout import AxisBins, Layout

MOST_COMPARED = 2**12
"""Edges of unequal cells, or levels, that are written into a query."""

SHORTEST_UNIT = 1_000_000
"""Dates are compared to the second, in microseconds."""


def coarse_number(table: Any, layout: Layout) -> Any:
    """Return the number of the coarse cell of each record, in C order."""
    number = None
    for axis in layout.axes:
        one = bin_number(table[axis.spec.source], axis)
        number = one if number is None else number * axis.bins + one
    assert number is not None
    return number


def bin_number(column: Any, axis: AxisBins) -> Any:
    """Return the bin of each record along one attribute."""
    if axis.spec.kind == "category":
        return _category(column, axis)
    return _ordered(column, axis)


def _category(column: Any, axis: AxisBins) -> Any:
    ibis = _ibis()
    (attribute,) = axis.spec.domain().attributes
    assert attribute.levels is not None
    levels = attribute.levels[: attribute.regular]
    if len(levels) > MOST_COMPARED:
        raise CatalogError(
            f"{axis.spec.name!r} has {len(levels):,} levels; at most 2^12 = "
            f"{MOST_COMPARED:,} are compared in the database"
        )
    if column.type().is_boolean():
        column = column.cast("int64")
    # Levels of one bin share a branch.
    members: dict[int, list[Any]] = {}
    for cell, level in enumerate(levels):
        members.setdefault(int(axis.labels[cell]), []).append(level)
    branches = [(column.isin(group), at) for at, group in members.items()]
    outside = attribute.extra_cell(OUTSIDE)
    assert outside is not None
    other = int(axis.labels[outside])
    missing = attribute.extra_cell(MISSING)
    if missing is not None:
        branches.insert(0, (column.isnull(), int(axis.labels[missing])))
    return ibis.cases(*branches, else_=other).cast("int64")


def _ordered(column: Any, axis: AxisBins) -> Any:
    ibis = _ibis()
    spec = axis.spec
    (attribute,) = spec.domain().attributes
    assert attribute.cuts is not None
    value, cuts = _number(column, spec), np.asarray(attribute.cuts)
    if attribute.unit is not None:
        cuts = cuts * (MICROSECONDS[attribute.unit] / SHORTEST_UNIT)
    last_edge_inside = attribute.unit is None
    # What is no number has no cell; it is told apart below, or counts as the start.
    safe = _is_missing(column).ifelse(_double(cuts[0]), value)
    number = _binned(_cell(safe, cuts, spec), axis)
    branches = []
    missing = attribute.extra_cell(MISSING)
    if missing is not None:
        branches.append((_is_missing(column), int(axis.labels[missing])))
    outside = attribute.extra_cell(OUTSIDE)
    if outside is not None:
        last = _double(cuts[-1])
        above = value > last if last_edge_inside else value >= last
        below = value < _double(cuts[0])
        branches.append((below | above, int(axis.labels[outside])))
    return ibis.cases(*branches, else_=number).cast("int64") if branches else number


def _number(column: Any, spec: AttributeSpec) -> Any:
    """Return the value as a double; dates in seconds since 1970."""
    if spec.kind == "date":
        return column.cast("timestamp").epoch_seconds().cast("float64")
    return column.cast("float64")


def _is_missing(column: Any) -> Any:
    absent = column.isnull()
    return absent | column.isnan() if column.type().is_floating() else absent


def _double(number: float) -> Any:
    """Return a literal that no engine takes for a decimal, which would be slow."""
    return _ibis().literal(float(number), "float64")


def _cell(value: Any, cuts: Any, spec: AttributeSpec) -> Any:
    """Return the cell, values outside clamped to the ends."""
    ibis = _ibis()
    cells = cuts.size - 1
    width = float(cuts[1] - cuts[0])
    start = float(cuts[0])
    if (start + np.arange(cuts.size) * width == cuts).all():
        # Clamped before it becomes an integer: values may be infinite.
        scaled = (value - _double(start)) / _double(width)
        near = ibis.least(ibis.greatest(scaled, _double(-1.0)), _double(cells))
        near = near.floor().cast("float64")
        late = value >= (near + _double(1.0)) * _double(width) + _double(start)
        early = value < near * _double(width) + _double(start)
        one, none = _double(1.0), _double(0.0)
        exact = near + late.ifelse(one, none) - early.ifelse(one, none)
        within = ibis.least(ibis.greatest(exact, _double(0.0)), _double(cells - 1))
        return within.cast("int64")
    if cells > MOST_COMPARED:
        raise CatalogError(
            f"{spec.name!r} has {cells:,} cells of unequal width; at most 2^12 = "
            f"{MOST_COMPARED:,} are compared in the database. Use cells of one width"
        )
    return _bisected(value, cuts, 0, cells)


def _bisected(value: Any, cuts: Any, low: int, high: int) -> Any:
    """Return the cell in [low, high) by nested comparisons: log2 of them per record."""
    ibis = _ibis()
    if high - low == 1:
        return ibis.literal(low, "int64")
    middle = (low + high) // 2
    return (value < _double(cuts[middle])).ifelse(
        _bisected(value, cuts, low, middle), _bisected(value, cuts, middle, high)
    )


def _binned(cell: Any, axis: AxisBins) -> Any:
    """Return the bin of a cell."""
    ibis = _ibis()
    first, end, width, rest = axis.stretch
    number = ((cell - first) / width).floor() if width > 1 else cell - first
    (attribute,) = axis.spec.domain().attributes
    if first == 0 and end == attribute.regular:
        return number.cast("int64")
    beyond = (cell < first) | (cell >= end)
    return ibis.cases((beyond, rest), else_=number.cast("int64"))


def _ibis() -> Any:
    return require("ibis", extra="sql", purpose="asking a database")
