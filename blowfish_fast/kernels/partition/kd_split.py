"""Partition of a grid by a kd-tree that cuts at medians until boxes look uniform.

Serves the two-step kd-tree of DPCube: the cells are noisy already, so that building
the tree costs nothing. A box is cut across its longest side, at the median of its
marginal; it stays whole once its cells deviate little from their mean.

    cells  9 9 0 0      longest side 4, marginal 18 18 1 0      [9 9] [0 0]
           9 9 1 0      half of 37 is reached after 2 cells     [9 9] [1 0]

Totals and marginals are read from a summed-area table, deviations in one scan of the
box: O(cells) per level of the tree, in any number of dimensions. Boxes come out in the
order of the tree, from left to right.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.space.summed_area import summed_area_table

MODES = ("or", "and", "uniformity")
"""When to cut: either threshold is passed, both are, or that of uniformity alone."""


@kernel
def slab_totals(
    table: FloatArray,
    strides: IntArray,
    low: IntArray,
    high: IntArray,
    axis: int,
    step: int,
    totals: FloatArray,
) -> None:
    """Write the totals of the first `step`, 2 `step`, ... slabs of a box on an axis."""
    for place in range(totals.size):
        totals[place] = 0.0
    for corner in range(1 << low.size):
        if corner >> axis & 1:
            continue
        offset, sign = low[axis] * strides[axis], 1.0
        for other in range(low.size):
            if other == axis:
                continue
            if corner >> other & 1:
                offset += low[other] * strides[other]
                sign = -sign
            else:
                offset += high[other] * strides[other]
        before = table[offset]
        for place in range(totals.size):
            offset += step * strides[axis]
            totals[place] += sign * (table[offset] - before)


@kernel
def _deviation(
    cells: FloatArray, sides: IntArray, low: IntArray, high: IntArray, mean: float
) -> float:
    """Return the sum of |cell - mean| over a box, row by row of the last axis."""
    last = sides.size - 1
    place = low.copy()
    width = high[last] - low[last]
    total = 0.0
    while True:
        first = 0
        for axis in range(sides.size):
            first = first * sides[axis] + place[axis]
        for cell in range(first, first + width):
            total += abs(cells[cell] - mean)
        axis = last - 1
        while axis >= 0:
            place[axis] += 1
            if place[axis] < high[axis]:
                break
            place[axis] = low[axis]
            axis -= 1
        if axis < 0:
            return total


@kernel
def _median_cut(totals: FloatArray) -> int:
    """Return after how many slabs half of the marginal is reached; no part is empty.

    Negative slabs count as 0. A box without anything positive is cut in the middle.
    """
    previous, positive = 0.0, 0.0
    for total in totals:
        positive += max(total - previous, 0.0)
        previous = total
    if positive <= 0.0:
        return totals.size // 2
    previous, reached = 0.0, 0.0
    for place in range(totals.size - 1):
        reached += max(totals[place] - previous, 0.0)
        previous = totals[place]
        if 2.0 * reached >= positive:
            return place + 1
    return int(totals.size - 1)


@kernel
def copy_row(target: IntArray, source: IntArray) -> None:
    """Copy a row; whole rows assigned to slices compile eight times as long."""
    for place in range(source.size):
        target[place] = source[place]


@kernel
def add_leaf(leaves: IntArray, found: int, low: IntArray, high: IntArray) -> IntArray:
    """Write a box behind `found` others; return the leaves, with room for more."""
    axes = low.size
    if found == leaves.shape[0]:
        more = np.empty((2 * found, 2 * axes), dtype=np.int64)
        for leaf in range(found):
            copy_row(more[leaf], leaves[leaf])
        leaves = more
    copy_row(leaves[found, :axes], low)
    copy_row(leaves[found, axes:], high)
    return leaves


@kernel
def _median_leaves(
    cells: FloatArray,
    table: FloatArray,
    sides: IntArray,
    strides: IntArray,
    level: float,
    slack: float,
    count: float,
    mode: int,
    depth: int,
) -> IntArray:
    """Return the corners of all leaves, one row ``low..., high...`` each."""
    axes = sides.size
    leaves = np.empty((64, 2 * axes), dtype=np.int64)
    found = 0
    # Not a literal, for which `slab_totals` would be compiled once more.
    one = int(1)  # noqa: RUF046, UP018
    waiting = np.empty((depth + 2, 2 * axes + 1), dtype=np.int64)
    waiting[0, :axes] = 0
    copy_row(waiting[0, axes : 2 * axes], sides)
    waiting[0, 2 * axes] = 0
    top = 0
    while top >= 0:
        low, high = waiting[top, :axes].copy(), waiting[top, axes : 2 * axes].copy()
        below = waiting[top, 2 * axes]
        top -= 1
        size, longest = 1, 0
        for axis in range(axes):
            size *= high[axis] - low[axis]
            if high[axis] - low[axis] > high[longest] - low[longest]:
                longest = axis
        cut = 0
        if size > 1 and below < depth:
            totals = np.empty(high[longest] - low[longest])
            slab_totals(table, strides, low, high, longest, one, totals)
            total = totals[-1]
            crowded = mode != 2 and total > count
            if mode == 0 and crowded:
                split = True
            elif mode == 1 and not crowded:
                split = False
            else:
                uneven = _deviation(cells, sides, low, high, total / size)
                split = uneven > level * size + slack * np.sqrt(np.float64(size))
            if split:
                cut = _median_cut(totals)
        if cut == 0:
            leaves = add_leaf(leaves, found, low, high)
            found += 1
            continue
        # The stack is read backwards: the left half goes in last.
        for half in range(2):
            top += 1
            copy_row(waiting[top, :axes], low)
            copy_row(waiting[top, axes : 2 * axes], high)
            waiting[top, 2 * axes] = below + 1
            if half == 0:
                waiting[top, longest] = low[longest] + cut
            else:
                waiting[top, axes + longest] = low[longest] + cut
    return leaves[:found].copy()


@kernel
def _median_cuts(slabs: FloatArray, edges: IntArray) -> IntArray:
    cuts = np.empty(edges.size - 1, dtype=np.int64)
    for box in range(cuts.size):
        first, last = edges[box], edges[box + 1]
        cuts[box] = 0
        if last - first > 1:
            cuts[box] = _median_cut(np.cumsum(slabs[first:last]))
    return cuts


def grid_table(cells: AnyArray) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """Return cells and summed-area table, both flat, with sides and strides."""
    grid = np.ascontiguousarray(cells, dtype=np.float64)
    if grid.ndim == 0 or grid.size == 0 or not np.isfinite(grid).all():
        raise InputError(
            "a kd-tree partitions a grid of finite numbers with at least one cell; "
            f"received an array of shape {grid.shape}"
        )
    table = summed_area_table(grid)
    sides = np.array(grid.shape, dtype=np.int64)
    strides = table.size // np.cumprod(np.array(table.shape, dtype=np.int64))
    return grid.reshape(-1), table.reshape(-1), sides, strides


def median_boxes(
    cells: AnyArray,
    *,
    level: float,
    slack: float,
    count: float,
    mode: str,
    depth: int,
) -> tuple[IntArray, IntArray]:
    """Return the boxes of a kd-tree that cuts at medians, as corners [low, high).

    Parameters
    ----------
    cells : (n1, ..., nd) array of numbers
        Noisy counts.
    level, slack : float
        A box of n cells is uneven when the deviations of its cells from their mean add
        up to more than ``level * n + slack * sqrt(n)``.
    count : float
        A box is crowded when its total exceeds this.
    mode : {"or", "and", "uniformity"}
        Cut a box that is uneven or crowded, that is both, or that is uneven.
    depth : int
        Most cuts above a box. A single cell is never cut.

    Returns
    -------
    lows, highs : (boxes, d) int64

    Notes
    -----
    O(cells) time per level of the tree; memory O(cells).

    Examples
    --------
    >>> cells = np.array([[9, 9, 0, 0], [9, 9, 1, 0]])
    >>> median_boxes(cells, level=0.5, slack=0, count=99, mode="uniformity", depth=9)
    (array([[0, 0],
           [0, 2]]), array([[2, 2],
           [2, 4]]))
    """
    if mode not in MODES or depth < 0:
        raise InputError(
            f"mode must be one of {MODES} and depth at least 0; received {mode!r} and "
            f"{depth!r}"
        )
    leaves = _median_leaves(
        *grid_table(cells),
        float(level),
        float(slack),
        float(count),
        MODES.index(mode),
        int(depth),
    )
    axes = leaves.shape[1] // 2
    return leaves[:, :axes].copy(), leaves[:, axes:].copy()


def median_cuts(slabs: AnyArray, edges: AnyArray) -> IntArray:
    """Return where to cut boxes whose slabs are known, so that both parts hold half.

    Parameters
    ----------
    slabs : (slabs,) float64
        Counts of the slabs of all boxes along the axis to be cut, box after box.
    edges : (boxes + 1,) int64
        Where the slabs of each box begin.

    Returns
    -------
    cuts : (boxes,) int64
        Slabs of the first part; 0 for a box of a single slab, which cannot be cut.

    Examples
    --------
    >>> median_cuts([5.0, 1.0, 1.0, 1.0, 7.0], [0, 4, 5])
    array([1, 0])
    """
    counts = np.ascontiguousarray(slabs, dtype=np.float64)
    begins = np.ascontiguousarray(edges, dtype=np.int64)
    if (
        begins.ndim != 1
        or begins.size == 0
        or begins[0] != 0
        or begins[-1] != counts.size
        or (np.diff(begins) < 1).any()
    ):
        raise InputError(
            f"edges rise from 0 to the number of slabs, here {counts.size}; received "
            f"an array of shape {begins.shape}"
        )
    return _median_cuts(counts, begins)
