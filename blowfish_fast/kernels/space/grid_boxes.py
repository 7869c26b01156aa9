"""Runs of cells of a grid put together into boxes.

Runs of the C order are cut at the ends of lines. Then, axis by axis from the last but
one to the first, a box with the same extent and value as one in the slab before grows
by one slab. Boxes stay sorted by their low corner, so both lists are walked once.
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
def _order_beyond(corners: IntArray, one: int, two: int, axis: int) -> int:
    """Compare two boxes behind an axis: 0 same extent, -1 first lies before, else 1."""
    for other in range(axis + 1, corners.shape[2]):
        if corners[one, 0, other] != corners[two, 0, other]:
            return -1 if corners[one, 0, other] < corners[two, 0, other] else 1
    for other in range(axis + 1, corners.shape[2]):
        if corners[one, 1, other] != corners[two, 1, other]:
            return 1
    return 0


@kernel
def _slab_step(corners: IntArray, one: int, two: int, axis: int) -> int:
    """Return how many slabs lie between two boxes; -1 if they are in other stacks."""
    for other in range(axis):
        if corners[one, 0, other] != corners[two, 0, other]:
            return -1
    step: int = corners[two, 0, axis] - corners[one, 0, axis]
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
    """Let boxes of one slab grow along an axis, in place; return how many are left."""
    kept = old = new = at = 0
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
            _copy_box(corners, box, corners, kept)
            weights[kept] = weights[box]
            reached[new] = kept
            kept += 1
        new += 1
    return kept


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
    found = np.empty((room, 2, axes), dtype=np.int64)
    kept_weights = np.empty(room)
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
                _copy_box(found, box, wider, box)
                longer[box] = kept_weights[box]
            found = wider
            kept_weights = longer
        for box in range(count):
            _copy_box(corners, box, found, used + box)
            kept_weights[used + box] = weights[box]
        used += count
        counts[query + 1] = used
    return counts, found[:used], kept_weights[:used]


def runs_to_boxes(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    shape: tuple[int, ...],
) -> Boxes:
    """Return the runs of each query as disjoint boxes with one value each.

    Query i owns the runs ``pointers[i]`` up to ``pointers[i + 1]``, half-open in C
    order, sorted and disjoint, with a coefficient each; the boxes [low, high) of the
    result are owned in the same way. A query that is constant on a box and 0 elsewhere
    becomes that box; any other becomes several, never more than its runs have lines.

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
