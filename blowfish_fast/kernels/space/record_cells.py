"""The cell of each record's value, and how many records each cell or table holds.

A guide of evenly spaced steps says between which cells to look, so that most values are
placed without a search. The step of a value never decreases along the axis, in floating
point too, so an edge in an earlier step lies below the value and one in a later step
above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

STEPS_PER_CELL = 4


class EdgeGuide(NamedTuple):
    """Edges of cells, and between which of them each step of the axis lies."""

    edges: FloatArray
    scale: float
    first: IntArray
    last: IntArray


class Targets(NamedTuple):
    """Cells for values below and above the edges and for missing ones; -1 for none."""

    below: int
    above: int
    missing: int


def edge_guide(edges: FloatArray) -> EdgeGuide:
    """Return the guide of increasing, finite edges. O(cells)."""
    cuts = np.ascontiguousarray(edges, dtype=np.float64)
    with np.errstate(over="ignore"):
        width = cuts[-1] - cuts[0]
    steps = STEPS_PER_CELL * (cuts.size - 1) if np.isfinite(width) else 1
    scale = steps / width if steps > 1 else 0.0
    if not np.isfinite(scale):
        steps, scale = 1, 0.0
    place = np.zeros(cuts.size, dtype=np.int64)
    if steps > 1:
        place = np.minimum(((cuts - cuts[0]) * scale).astype(np.int64), steps - 1)
    numbers = np.arange(steps)
    first = np.searchsorted(place, numbers, side="left") - 1
    last = np.searchsorted(place, numbers, side="right") - 1
    most = cuts.size - 2
    return EdgeGuide(cuts, scale, np.clip(first, 0, most), np.clip(last, 0, most))


def cells_between_edges(
    values: FloatArray, guide: EdgeGuide, targets: Targets, *, closed: bool
) -> tuple[IntArray, BoolArray]:
    """Return the cell of each value, and whether some lay outside, some were missing.

    Cell i holds [edges[i], edges[i + 1]), the last one also its end if `closed`.
    """
    placed = np.ascontiguousarray(values, dtype=np.float64)
    return _place(placed, guide, Targets(*map(int, targets)), closed)


@kernel
def _place(
    values: FloatArray, guide: EdgeGuide, targets: Targets, closed: bool
) -> tuple[IntArray, BoolArray]:
    cells = np.empty(values.size, dtype=np.int64)
    strays = np.zeros(2, dtype=np.bool_)
    edges, scale, first, last = guide.edges, guide.scale, guide.first, guide.last
    start, end = edges[0], edges[-1]
    steps = first.size
    final = edges.size - 2
    for at in range(values.size):
        value = values[at]
        if value >= start and value < end:
            step = 0
            if steps > 1:
                step = min(int((value - start) * scale), steps - 1)
            low, high = first[step], last[step]
            while low < high:
                middle = (low + high + 1) >> 1
                if edges[middle] <= value:
                    low = middle
                else:
                    high = middle - 1
            cells[at] = low
        elif value == end and closed:
            cells[at] = final
        elif value < start:
            cells[at] = targets.below
            strays[0] = True
        elif value >= end:
            cells[at] = targets.above
            strays[0] = True
        else:
            cells[at] = targets.missing
            strays[1] = True
    return cells, strays


def count_into(counts: IntArray, cells: IntArray) -> None:
    """Add one to ``counts[cell]`` for each record; `counts` is changed in place."""
    if cells.size and (cells.min() < 0 or cells.max() >= counts.size):
        raise InputError(f"cells must lie between 0 and {counts.size - 1}; some do not")
    _count(counts, cells)


@kernel
def _count(counts: IntArray, cells: IntArray) -> None:
    for at in range(cells.size):
        counts[cells[at]] += 1


ROWS_AT_ONCE = 2**13
"""Records whose cells stay in the nearest cache while all tables are counted."""


def count_tables(
    counts: IntArray,
    columns: npt.NDArray[np.int32],
    sizes: Sequence[int],
    tables: Sequence[tuple[int, ...]],
) -> None:
    """Add one to a cell of every table for each record; `counts` is changed in place.

    `counts` holds the cells of all tables, each in C order; `columns` (attributes,
    records) the cell numbers; `tables` the attributes of each table.
    """
    shape = np.array(sizes, dtype=np.int64)
    fits = columns.ndim == 2 and columns.shape[0] == shape.size
    inside = fits and (columns >= 0).all()
    if not inside or not (columns < shape[:, None]).all():
        raise InputError("every record needs a cell number within each attribute")
    axes = np.array([one for table in tables for one in table], dtype=np.int64)
    pointers = np.cumsum([0, *map(len, tables)]).astype(np.int64)
    steps, cells = _steps(sizes, tables)
    starts = np.cumsum([0, *cells]).astype(np.int64)
    if starts[-1] != counts.size:
        raise InputError(
            f"these tables have {starts[-1]} cells; received room for {counts.size}"
        )
    _count_tables(counts, np.ascontiguousarray(columns), pointers, axes, steps, starts)


def _steps(
    sizes: Sequence[int], tables: Sequence[tuple[int, ...]]
) -> tuple[IntArray, list[int]]:
    """Return how far a step along each axis of each table leads, and their cells."""
    steps: list[int] = []
    cells = []
    for table in tables:
        after, own = 1, []
        for axis in reversed(table):
            own.append(after)
            after *= int(sizes[axis])
        steps += reversed(own)
        cells.append(after)
    return np.array(steps, dtype=np.int64), cells


@kernel
def _count_tables(
    counts: IntArray,
    columns: npt.NDArray[np.int32],
    pointers: IntArray,
    axes: IntArray,
    steps: IntArray,
    starts: IntArray,
) -> None:
    records = columns.shape[1]
    for low in range(0, records, ROWS_AT_ONCE):
        high = min(low + ROWS_AT_ONCE, records)
        for table in range(pointers.size - 1):
            first, end, start = pointers[table], pointers[table + 1], starts[table]
            if end - first == 1:
                one = columns[axes[first]]
                for at in range(low, high):
                    counts[start + one[at]] += 1
            elif end - first == 2:
                one, two = columns[axes[first]], columns[axes[first + 1]]
                side = steps[first]
                for at in range(low, high):
                    counts[start + one[at] * side + two[at]] += 1
            elif end - first == 3:
                one, two = columns[axes[first]], columns[axes[first + 1]]
                three = columns[axes[first + 2]]
                side, edge = steps[first], steps[first + 1]
                for at in range(low, high):
                    counts[start + one[at] * side + two[at] * edge + three[at]] += 1
            else:
                for at in range(low, high):
                    cell = start
                    for part in range(first, end):
                        cell += columns[axes[part], at] * steps[part]
                    counts[cell] += 1
