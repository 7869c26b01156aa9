"""The cell of each record's value, and how many records each cell or table holds.

Edges may lie anywhere; a guide of evenly spaced steps says between which cells to look,
so that most values are placed without a search:

    edges    0   1   2       10              100
    steps    |----|----|----|----|----|----|----|
    first    0    3    3    3    3    3    3        first cell that a step may hold
    last     3    3    3    3    3    3    3        last one; between them, bisection

The step of a value never decreases along the axis, in floating point too, so an edge in
an earlier step lies below the value and one in a later step above it.

Contingency tables are counted many at a time, their cells in one array:

    columns   age   0 3 3 1        one row per attribute, a cell number per record
              sex   1 0 0 1
    tables    (age)  (age, sex)    counts   1 1 0 2 | 0 1 ...
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
    """Edges of cells, and between which of them each step of the axis lies.

    Attributes
    ----------
    edges : ndarray of float64, shape (cells + 1,)
        The edges, rising.
    scale : float
        Steps per unit of the axis.
    first : ndarray of int64, shape (steps,)
        The first cell that a value of each step may lie in.
    last : ndarray of int64, shape (steps,)
        The last one.
    """

    edges: FloatArray
    scale: float
    first: IntArray
    last: IntArray


class Targets(NamedTuple):
    """The cells for values that lie in no cell; -1 for none.

    Attributes
    ----------
    below : int
        For values below the first edge.
    above : int
        For values above the last edge.
    missing : int
        For values that are not a number.
    """

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
    """Return the cell of each value, and which kinds of stray value occurred.

    Cell i holds [edges[i], edges[i + 1]).

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        The values; NaN is missing.
    guide : EdgeGuide
        What `edge_guide` returned.
    targets : Targets
        Where values without a cell go.
    closed : bool
        Whether the last cell holds the last edge too.

    Returns
    -------
    cells : ndarray of int64, shape (n,)
        The cells.
    strays : ndarray of bool, shape (2,)
        Whether some value lay outside, and whether one was missing.
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
    """Add one to ``counts[cell]`` for each record; `counts` is changed in place.

    Parameters
    ----------
    counts : ndarray of int64, shape (cells,)
        The counts.
    cells : ndarray of int64, shape (n,)
        The cell of each record.

    Raises
    ------
    InputError
        If a record lies in no cell.
    """
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

    Parameters
    ----------
    counts : ndarray of int64
        The cells of all tables, one table after the other, each in C order.
    columns : ndarray of int32, shape (attributes, records)
        The cell number of each record in each attribute.
    sizes : Sequence[int]
        The number of cells of each attribute.
    tables : Sequence[tuple[int, ...]]
        The attributes of each table, in the order of its axes.

    Raises
    ------
    InputError
        If a record lies in no cell, or `counts` has another size.
    """
    shape = np.array(sizes, dtype=np.int64)
    fits = columns.ndim == 2 and columns.shape[0] == shape.size
    inside = fits and (columns >= 0).all()
    if not inside or not (columns < shape[:, None]).all():
        raise InputError("every record needs a cell number within each attribute")
    axes = np.array([axis for table in tables for axis in table], dtype=np.int64)
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
                first_column = columns[axes[first]]
                for at in range(low, high):
                    counts[start + first_column[at]] += 1
            elif end - first == 2:
                first_column, second_column = (
                    columns[axes[first]],
                    columns[axes[first + 1]],
                )
                side = steps[first]
                for at in range(low, high):
                    counts[start + first_column[at] * side + second_column[at]] += 1
            elif end - first == 3:
                first_column, second_column = (
                    columns[axes[first]],
                    columns[axes[first + 1]],
                )
                third_column = columns[axes[first + 2]]
                side, edge = steps[first], steps[first + 1]
                for at in range(low, high):
                    counts[
                        start
                        + first_column[at] * side
                        + second_column[at] * edge
                        + third_column[at]
                    ] += 1
            else:
                for at in range(low, high):
                    cell = start
                    for part in range(first, end):
                        cell += columns[axes[part], at] * steps[part]
                    counts[cell] += 1
