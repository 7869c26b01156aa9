"""Bins of a question as expressions of the database: records never leave it.

    x  ->  cell  ->  bin of this attribute  ->  number of the coarse cell  ->  GROUP BY

Every engine must put a record into the same cell as numpy would; ``cell_expressions``
sees to that.
"""

from __future__ import annotations

from typing import Any

from blowfish_fast.data.axes import MISSING, OUTSIDE
from blowfish_fast.data.cell_expressions import (
    as_level,
    as_number,
    clamped_cell,
    comparable_edges,
    compared_levels,
    double,
    ibis_module,
    is_missing,
)

from .layout import AxisBins, Layout


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
    ibis = ibis_module()
    (attribute,) = axis.spec.domain().attributes
    levels, column = compared_levels(attribute), as_level(column)
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
    ibis = ibis_module()
    spec = axis.spec
    (attribute,) = spec.domain().attributes
    assert attribute.cuts is not None
    value, cuts = as_number(column, attribute), comparable_edges(attribute)
    last_edge_inside = attribute.unit is None
    # What is no number has no cell; it is told apart below, or counts as the start.
    safe = is_missing(column).ifelse(double(cuts[0]), value)
    number = _binned(clamped_cell(safe, cuts, attribute.name), axis)
    branches = []
    missing = attribute.extra_cell(MISSING)
    if missing is not None:
        branches.append((is_missing(column), int(axis.labels[missing])))
    outside = attribute.extra_cell(OUTSIDE)
    if outside is not None:
        last = double(cuts[-1])
        above = value > last if last_edge_inside else value >= last
        below = value < double(cuts[0])
        branches.append((below | above, int(axis.labels[outside])))
    return ibis.cases(*branches, else_=number).cast("int64") if branches else number


def _binned(cell: Any, axis: AxisBins) -> Any:
    """Return the bin of a cell."""
    ibis = ibis_module()
    first, end, width, rest = axis.stretch
    number = ((cell - first) / width).floor() if width > 1 else cell - first
    (attribute,) = axis.spec.domain().attributes
    if first == 0 and end == attribute.regular:
        return number.cast("int64")
    beyond = (cell < first) | (cell >= end)
    return ibis.cases((beyond, rest), else_=number.cast("int64"))
