"""Partition of a grid by a kd-tree whose cuts must pay for themselves.

Serves the two-step kd-tree: like `kd_split`, on cells that are noisy already. A cut
divides a box of n cells into parts of f n and (1 - f) n; the contrast D is how far the
total of the first part lies from f times the total of the box, and noise alone gives
D^2 the expectation n f (1 - f) times the variance of a cell. A rectangle whose border
falls inside an uncut box is off by up to D, and borders fall there in proportion to
the length of the side that is cut; but every further box has a count of its own:

    gain of a cut  =  (D^2 - caution * noise in D^2) * length / side  -  price of a box

Every box is cut at that quarter of an axis (or that cell, of a short one) where D^2,
relative to its noise, times length / side is largest, down to single cells. Then, from
below, a subtree stays if the gains in it add up to more than 0. Of m places to cut the
best has about 1 + ln m times the noise of one by itself, which is what is taken off; a
cut that shows less counts as 0, and may still be kept for what lies below it.

The contrasts of a subtree are orthogonal: their squares, relative to n f (1 - f), add
up to the squared deviations of the box from its mean. This bounds what can be gained.
Boxes too even or too small to pay for a cut are not entered; the result is the same.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.space.summed_area import summed_area_table

from .kd_split import add_leaf, copy_row, grid_table, slab_totals

_PLACES = 4
"""Sides of eight cells and more are cut at multiples of this part of their length."""

_ROUNDING = 2.0**-40
"""A contrast smaller than this part of the total is that of an even box."""


@kernel
def _box_totals(
    table: FloatArray,
    square_table: FloatArray,
    strides: IntArray,
    low: IntArray,
    high: IntArray,
) -> tuple[float, float]:
    """Return the sum of the cells of a box, and that of their squares."""
    total, squares = 0.0, 0.0
    for corner in range(1 << low.size):
        offset, sign = 0, 1.0
        for axis in range(low.size):
            if corner >> axis & 1:
                offset += low[axis] * strides[axis]
                sign = -sign
            else:
                offset += high[axis] * strides[axis]
        total += sign * table[offset]
        squares += sign * square_table[offset]
    return total, squares


@kernel
def _step(length: int) -> int:
    """Return how far apart the places are where a side may be cut."""
    return max(length // _PLACES, 1)


@kernel
def _best_cut(
    table: FloatArray,
    sides: IntArray,
    strides: IntArray,
    low: IntArray,
    high: IntArray,
    total: float,
    slabs: FloatArray,
) -> tuple[int, int, int, float, float]:
    """Return axis and place of the cut of largest weighted contrast.

    Also how many cuts there were, its squared contrast divided by n f (1 - f), and
    n f (1 - f) times the part of the side.
    """
    size = 1
    for axis in range(sides.size):
        size *= high[axis] - low[axis]
    best, best_axis, best_cut, best_contrast, best_reach = -1.0, 0, 1, 0.0, 0.0
    cuts = 0
    for axis in range(sides.size):
        length = high[axis] - low[axis]
        step = _step(length)
        places = (length - 1) // step
        slab_totals(table, strides, low, high, axis, step, slabs[:places])
        cuts += places
        weight = length / sides[axis]
        for place in range(places):
            part = (place + 1) * step / length
            difference = slabs[place] - part * total
            if abs(difference) <= _ROUNDING * (abs(total) + abs(slabs[place])):
                difference = 0.0
            reach = size * part * (1.0 - part)
            contrast = difference * difference / reach
            if contrast * weight > best:
                best, best_axis, best_cut = contrast * weight, axis, (place + 1) * step
                best_contrast, best_reach = contrast, reach * weight
    return best_axis, best_cut, cuts, best_contrast, best_reach


@kernel
def _most_gain(
    total: float,
    squares: float,
    size: int,
    weight: float,
    cell_variance: float,
    caution: float,
) -> float:
    """Bound what all cuts inside a box can gain before they are paid for."""
    deviations = squares - total * total / size
    if deviations <= caution * cell_variance:
        return 0.0
    return (deviations - caution * cell_variance) * weight * size / 4.0


@kernel
def _gain_leaves(
    table: FloatArray,
    square_table: FloatArray,
    sides: IntArray,
    strides: IntArray,
    cell_variance: float,
    caution: float,
    price: float,
    depth: int,
) -> IntArray:
    """Return the corners of the boxes that remain, one row ``low..., high...`` each.

    A walk through the tree: the boxes below a node stand at the end of the list when
    the walk comes back to it, and are replaced by the node itself if they do not pay.
    """
    axes = sides.size
    leaves = np.empty((64, 2 * axes), dtype=np.int64)
    found = 0
    slabs = np.empty(2 * _PLACES)
    low = np.empty((depth + 1, axes), dtype=np.int64)
    high = np.empty((depth + 1, axes), dtype=np.int64)
    cut_axis = np.empty(depth + 1, dtype=np.int64)
    cut_end = np.empty(depth + 1, dtype=np.int64)
    done = np.empty(depth + 1, dtype=np.int64)
    before = np.empty(depth + 1, dtype=np.int64)
    gain = np.empty(depth + 1)
    for axis in range(axes):
        low[0, axis], high[0, axis] = 0, sides[axis]
    done[0] = 0
    below = 0
    while below >= 0:
        if done[below] == 0:
            before[below], gain[below] = found, 0.0
            size, weight = 1, 0.0
            for axis in range(axes):
                length = high[below, axis] - low[below, axis]
                size *= length
                weight = max(weight, length / sides[axis])
            total, squares = _box_totals(
                table, square_table, strides, low[below], high[below]
            )
            bound = _most_gain(total, squares, size, weight, cell_variance, caution)
            done[below] = 2
            if size > 1 and below < depth and bound > price:
                axis, place, cuts, contrast, reach = _best_cut(
                    table, sides, strides, low[below], high[below], total, slabs
                )
                # The largest of many squares of noise; see the module docstring.
                noise = cell_variance * (1.0 + np.log(np.float64(cuts)))
                gain[below] = max(contrast - caution * noise, 0.0) * reach - price
                cut_axis[below] = axis
                cut_end[below] = high[below, axis]
                done[below] = 1
                copy_row(low[below + 1], low[below])
                copy_row(high[below + 1], high[below])
                high[below + 1, axis] = low[below, axis] + place
                done[below + 1] = 0
                below += 1
                continue
        elif done[below] == 1:
            axis = cut_axis[below]
            # The left part was the last to stand one level deeper.
            place = high[below + 1, axis]
            copy_row(low[below + 1], low[below])
            copy_row(high[below + 1], high[below])
            low[below + 1, axis] = place
            high[below + 1, axis] = cut_end[below]
            done[below], done[below + 1] = 2, 0
            below += 1
            continue
        kept = gain[below]
        if kept <= 0.0:
            kept = 0.0
            found = before[below]
            leaves = add_leaf(leaves, found, low[below], high[below])
            found += 1
        below -= 1
        if below >= 0:
            gain[below] += kept
    return leaves[:found].copy()


def gain_boxes(
    cells: AnyArray,
    *,
    cell_variance: float,
    price: float,
    caution: float,
    depth: int,
) -> tuple[IntArray, IntArray]:
    """Return the boxes of a kd-tree whose cuts gain more than they cost.

    Parameters
    ----------
    cells : (n1, ..., nd) array of numbers
        Noisy counts.
    cell_variance : float
        Variance of the noise of a cell.
    price : float
        What each further box costs, in squared counts.
    caution : float
        How many times the squared contrast of noise alone is taken off a squared
        contrast; 1 leaves nothing of it on average.
    depth : int
        Most cuts above a box. A single cell is never cut.

    Returns
    -------
    lows, highs : (boxes, d) int64
        Corners [low, high), in the order of the tree.

    Notes
    -----
    O(cells) for the tables and O(d 2^d) for each box that is entered, at most two per
    cell; memory O(cells).

    Examples
    --------
    >>> cells = np.array([[9, 9, 0, 0], [9, 9, 1, 0]])
    >>> gain_boxes(cells, cell_variance=0.1, price=1, caution=2, depth=9)
    (array([[0, 0],
           [0, 2]]), array([[2, 2],
           [2, 4]]))
    """
    if not (cell_variance >= 0 and price >= 0 and caution >= 0 and depth >= 0):
        raise InputError(
            "variance, price, caution and depth must not be negative; received "
            f"{cell_variance!r}, {price!r}, {caution!r} and {depth!r}"
        )
    grid, table, sides, strides = grid_table(cells)
    squares = summed_area_table((grid * grid).reshape(sides.tolist())).reshape(-1)
    leaves = _gain_leaves(
        table,
        squares,
        sides,
        strides,
        float(cell_variance),
        float(caution),
        float(price),
        int(depth),
    )
    return leaves[:, : sides.size].copy(), leaves[:, sides.size :].copy()
