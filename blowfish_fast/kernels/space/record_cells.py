"""The cell of each record's value, and how many records each cell holds.

Serves `Histogram.from_records`, block by block. Edges may lie anywhere; a guide of
evenly spaced steps says between which cells to look, so that most values are placed
without a search:

    edges    0   1   2       10              100
    steps    |----|----|----|----|----|----|----|
    first    0    3    3    3    3    3    3        first cell that a step may hold
    last     3    3    3    3    3    3    3        last one; between them, bisection

The step of a value never decreases along the axis, in floating point too, so an edge
in an earlier step lies below the value and one in a later step above it. That is all
the guide relies on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
    """Return the cell of each value, and which kinds of stray value occurred.

    Cell i holds [edges[i], edges[i + 1]), the last one also its end if `closed`; NaN is
    missing. The two truth values say whether some value lay outside, whether one was
    missing; not how many.
    """
    cells = np.empty(values.size, dtype=np.int64)
    strays = np.zeros(2, dtype=np.bool_)
    _place(
        np.ascontiguousarray(values, dtype=np.float64),
        guide,
        Targets(*map(int, targets)),
        closed,
        cells,
        strays,
    )
    return cells, strays


@kernel
def _place(
    values: FloatArray,
    guide: EdgeGuide,
    targets: Targets,
    closed: bool,
    cells: IntArray,
    strays: BoolArray,
) -> None:
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


def count_into(counts: IntArray, cells: IntArray) -> None:
    """Add one to ``counts[cell]`` for each record; `counts` is changed in place."""
    if cells.size and (cells.min() < 0 or cells.max() >= counts.size):
        raise InputError(f"cells must lie between 0 and {counts.size - 1}; some do not")
    _count(counts, cells)


@kernel
def _count(counts: IntArray, cells: IntArray) -> None:
    for at in range(cells.size):
        counts[cells[at]] += 1
