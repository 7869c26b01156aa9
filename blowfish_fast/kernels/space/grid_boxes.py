"""Runs of cells of a grid put together into boxes.

A rectangle arrives as runs of the C order, one for each of its lines, and leaves as one
box again.

    . # # .    runs [1, 3) [5, 7) [9, 11)
    . # # .    box  rows [0, 3), columns [1, 3)
    . # # .

A run is first cut at the ends of lines. Then, axis by axis from the last but one to the
first, the boxes of one slab are laid beside those that ended at the slab before; a box
with the same extent and value grows by one slab. Boxes stay sorted by their low corner,
so both lists are walked once.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .interval_pieces import check_pieces, check_values

Boxes: TypeAlias = tuple[IntArray, IntArray, IntArray, FloatArray]


@kernel
def _cut_at_lines(
    begin: int,
    end: int,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    sides: IntArray,
    corners: IntArray,
    weights: FloatArray,
) -> int:
    """Write the part of each run, on each line, as a box; return how many there are."""
    last = sides.size - 1
    count = 0
    for run in range(begin, end):
        place = starts[run]
        while place < ends[run]:
            rest = place // sides[last]
            low = place - rest * sides[last]
            high = min(sides[last], low + ends[run] - place)
            corners[count, 0, last] = low
            corners[count, 1, last] = high
            for axis in range(last - 1, -1, -1):
                corners[count, 0, axis] = rest % sides[axis]
                corners[count, 1, axis] = corners[count, 0, axis] + 1
                rest //= sides[axis]
            weights[count] = values[run]
            count += 1
            place += high - low
    return count


@kernel
def _copy_box(source: IntArray, box: int, target: IntArray, place: int) -> None:
    for axis in range(source.shape[2]):
        target[place, 0, axis] = source[box, 0, axis]
        target[place, 1, axis] = source[box, 1, axis]


@kernel
def _order_beyond(corners: IntArray, first: int, second: int, axis: int) -> int:
    """Compare two boxes behind an axis: 0 same extent, -1 first lies before, else 1."""
    for other in range(axis + 1, corners.shape[2]):
        if corners[first, 0, other] != corners[second, 0, other]:
            return -1 if corners[first, 0, other] < corners[second, 0, other] else 1
    for other in range(axis + 1, corners.shape[2]):
        if corners[first, 1, other] != corners[second, 1, other]:
            return 1
    return 0


@kernel
def _slab_step(corners: IntArray, first: int, second: int, axis: int) -> int:
    """Return how many slabs lie between two boxes; -1 if they are in other stacks."""
    for other in range(axis):
        if corners[first, 0, other] != corners[second, 0, other]:
            return -1
    step: int = corners[second, 0, axis] - corners[first, 0, axis]
    return step


@kernel
def _stack_slabs(
    corners: IntArray,
    weights: FloatArray,
    count: int,
    axis: int,
    touching: IntArray,
    reached: IntArray,
) -> int:
    """Let boxes of one slab grow along an axis, in place; return how many are left.

    `touching` lists those that ended at the slab before, `reached` those that end at
    this one.
    """
    count_left = old = new = at = 0
    # A box that starts the current slab; its corner is kept aside, since the place it
    # came from may be overwritten.
    slab = corners.shape[0] - 1
    for box in range(count):
        step = _slab_step(corners, slab, box, axis) if box > 0 else -1
        if step != 0:
            old = new if step == 1 else 0
            for earlier in range(old):
                touching[earlier] = reached[earlier]
            new = 0
            at = 0
            _copy_box(corners, box, corners, slab)
        beside = 1
        while at < old:
            beside = _order_beyond(corners, touching[at], box, axis)
            if beside >= 0:
                break
            at += 1
        if at < old and beside == 0 and weights[touching[at]] == weights[box]:
            corners[touching[at], 1, axis] += 1
            reached[new] = touching[at]
            at += 1
        else:
            _copy_box(corners, box, corners, count_left)
            weights[count_left] = weights[box]
            reached[new] = count_left
            count_left += 1
        new += 1
    return count_left


@kernel
def _boxes_of(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    sides: IntArray,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return pointers, corners (boxes, 2, d) and values of the boxes of all queries."""
    queries = pointers.size - 1
    axes = sides.size
    line = sides[axes - 1]
    most = 0
    for query in range(queries):
        lines = 0
        for run in range(pointers[query], pointers[query + 1]):
            if starts[run] < ends[run]:
                lines += (ends[run] - 1) // line - starts[run] // line + 1
        most = max(most, lines)
    corners = np.empty((most + 1, 2, axes), dtype=np.int64)
    weights = np.empty(most)
    touching = np.empty(most, dtype=np.int64)
    reached = np.empty(most, dtype=np.int64)
    room = max(queries, most)
    all_corners = np.empty((room, 2, axes), dtype=np.int64)
    all_weights = np.empty(room)
    counts = np.zeros(queries + 1, dtype=np.int64)
    used = 0
    for query in range(queries):
        begin, end = pointers[query], pointers[query + 1]
        count = _cut_at_lines(begin, end, starts, ends, values, sides, corners, weights)
        for axis in range(axes - 2, -1, -1):
            count = _stack_slabs(corners, weights, count, axis, touching, reached)
        if used + count > room:
            room = 2 * (used + count)
            wider = np.empty((room, 2, axes), dtype=np.int64)
            longer = np.empty(room)
            for box in range(used):
                _copy_box(all_corners, box, wider, box)
                longer[box] = all_weights[box]
            all_corners = wider
            all_weights = longer
        for box in range(count):
            _copy_box(corners, box, all_corners, used + box)
            all_weights[used + box] = weights[box]
        used += count
        counts[query + 1] = used
    return counts, all_corners[:used], all_weights[:used]


def runs_to_boxes(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    shape: tuple[int, ...],
) -> Boxes:
    """Return the runs of each query as disjoint boxes with one value each.

    A query that is constant on a box and 0 elsewhere becomes that box; any other
    becomes several, never more than its runs have lines.

    Parameters
    ----------
    pointers : ndarray of int64, shape (queries + 1,)
        Query `i` owns the runs ``pointers[i]`` up to ``pointers[i + 1]``.
    starts : ndarray of int64, shape (runs,)
        The first cell of each run in C order; runs of a query are sorted and disjoint.
    ends : ndarray of int64, shape (runs,)
        The cell after its last.
    values : ndarray of float64, shape (runs,)
        Coefficient of the query on each cell of the run.
    shape : tuple[int, ...]
        Cells of each axis.

    Returns
    -------
    tuple of four ndarrays
        ``(pointers, lows, highs, values)``: query `i` owns the boxes [low, high) from
        ``pointers[i]`` up to ``pointers[i + 1]``; corners have the shape (boxes, axes).

    Raises
    ------
    InputError
        If an axis has no cell, or runs overlap, are unsorted or leave the grid.

    Examples
    --------
    >>> runs = np.array([0, 3]), np.array([1, 5, 9]), np.array([3, 7, 11]), np.ones(3)
    >>> runs_to_boxes(*runs, (3, 4))
    (array([0, 1]), array([[0, 1]]), array([[3, 3]]), array([1.]))
    """
    sides = np.array(shape, dtype=np.int64).reshape(-1)
    if sides.size == 0 or sides.min() < 1:
        raise InputError(f"every axis needs at least one cell; received {shape!r}")
    pointers, starts, ends = check_pieces(pointers, starts, ends, int(sides.prod()))
    values = check_values(values, starts.size)
    if sides.size == 1:
        # Along one axis a run is a box.
        return pointers, starts[:, None].copy(), ends[:, None].copy(), values
    pointers, corners, values = _boxes_of(pointers, starts, ends, values, sides)
    return pointers, corners[:, 0].copy(), corners[:, 1].copy(), values
