"""Partitions of a grid of noisy cells by kd-trees: at medians, or where cuts pay.

The median tree (DPCube) cuts a box across its longest side, at the median of its
marginal; a box stays whole once its cells deviate little from their mean.

    cells  9 9 0 0      longest side 4, marginal 18 18 1 0      [9 9] [0 0]
           9 9 1 0      half of 37 is reached after 2 cells     [9 9] [1 0]

The other tree cuts where it gains. A cut divides a box of n cells into parts of f n and
(1 - f) n; the contrast D is how far the total of the first part lies from f times the
total of the box, and noise alone gives D^2 the expectation n f (1 - f) times the
variance of a cell. A rectangle whose border falls inside an uncut box is off by up to
D, and borders fall there in proportion to the length of the side that is cut; but every
further box has a count of its own:

    gain of a cut  =  (D^2 - caution * noise in D^2) * length / side  -  price of a box

Every box is cut at that quarter of an axis (or that cell, of a short one) where D^2,
relative to its noise, times length / side is largest, down to single cells. Then, from
below, a subtree stays if the gains in it add up to more than 0. Of m places to cut the
best has about 1 + ln m times the noise of one by itself, which is what is taken off; a
cut that shows less counts as 0, and may still stay for what lies below it. The
contrasts of a subtree are orthogonal: their squares, relative to n f (1 - f), add up to
the squared deviations of the box from its mean, so boxes too even or too small to pay
for a cut are not entered.

Totals and marginals are read from a summed-area table. Boxes come out in the order of
the tree, from left to right.
"""

from __future__ import annotations

import math

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import refuse_infinite, rises, whole_numbers
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.space.summed_area import summed_area_table

MODES = ("or", "and", "uniformity")
"""When `median_boxes` cuts; `_median_leaves` is told the place in this list."""
# Sides of eight cells and more are cut at multiples of a quarter of their length,
# rounded down; shorter ones after every cell. So a side has at most six places to cut:
# one of seven cells after each, one of 15 at every third.
_PLACES = 4
# A contrast smaller than this part of the total is that of an even box.
_ROUNDING = 2.0**-40


@kernel
def _slab_totals(
    table: FloatArray,
    strides: IntArray,
    low: IntArray,
    high: IntArray,
    axis: int,
    step: int,
    totals: FloatArray,
) -> None:
    """Write the totals of the first `step`, 2 `step`, ... slabs of a box on an axis.

    A slab is one layer of cells across the axis. The total of a part of the box is a
    signed sum of the table at its corners (`kernels.space.summed_area`). Those at the
    low end of the axis are the same for all parts, and are read once, as `before`.
    """
    totals[:] = 0.0
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
    """Return the sum of |cell - mean| over a box, row by row of the last axis.

    The places of the other axes count up like the digits of a number: the last of them
    first, and one that is full goes back to its start and carries to the one before.
    """
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

    Negative slabs count as 0; a box without anything positive is cut in the middle.
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
def _copy_row(target: IntArray, source: IntArray) -> None:
    """Copy a row; whole rows assigned to slices compile eight times as long."""
    for place in range(source.size):
        target[place] = source[place]


@kernel
def _add_leaf(leaves: IntArray, count: int, low: IntArray, high: IntArray) -> IntArray:
    """Write a box behind `count` others; return the leaves, with room for more."""
    axes = low.size
    if count == leaves.shape[0]:
        more = np.empty((2 * count, 2 * axes), dtype=np.int64)
        for leaf in range(count):
            _copy_row(more[leaf], leaves[leaf])
        leaves = more
    _copy_row(leaves[count, :axes], low)
    _copy_row(leaves[count, axes:], high)
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
    """Return the corners of all leaves, one row ``low..., high...`` each.

    `mode` is a place in `MODES`: 0 cuts what is uneven or crowded, 1 what is both, 2
    what is uneven. Whether a box is crowded is read from the table at once, and its
    deviation takes a walk over its cells; so that is looked at only where it decides.
    """
    axes = sides.size
    leaves = np.empty((64, 2 * axes), dtype=np.int64)
    count_of_leaves = 0
    # Not a literal, for which `_slab_totals` would be compiled once more.
    single_step = int(1)  # noqa: RUF046, UP018
    # Boxes that are still to be looked at, the next one last: low corner, high corner,
    # and how many cuts stand above the box.
    waiting = np.empty((depth + 2, 2 * axes + 1), dtype=np.int64)
    waiting[0, :axes] = 0
    _copy_row(waiting[0, axes : 2 * axes], sides)
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
            _slab_totals(table, strides, low, high, longest, single_step, totals)
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
            leaves = _add_leaf(leaves, count_of_leaves, low, high)
            count_of_leaves += 1
            continue
        # The stack is read backwards: the left half goes in last.
        for half in range(2):
            top += 1
            _copy_row(waiting[top, :axes], low)
            _copy_row(waiting[top, axes : 2 * axes], high)
            waiting[top, 2 * axes] = below + 1
            if half == 0:
                waiting[top, longest] = low[longest] + cut
            else:
                waiting[top, axes + longest] = low[longest] + cut
    return leaves[:count_of_leaves].copy()


@kernel
def _median_cuts(slabs: FloatArray, edges: IntArray) -> IntArray:
    """Return what `median_cuts` does, for arguments that were checked."""
    cuts = np.empty(edges.size - 1, dtype=np.int64)
    for box in range(cuts.size):
        first, last = edges[box], edges[box + 1]
        cuts[box] = 0
        if last - first > 1:
            cuts[box] = _median_cut(np.cumsum(slabs[first:last]))
    return cuts


def grid_table(cells: AnyArray) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """Return cells and summed-area table, both flat, with sides and strides.

    Parameters
    ----------
    cells : array-like, shape (n1, ..., nd)
        Noisy counts.

    Returns
    -------
    grid : ndarray of float64, shape (n1 ... nd,)
        The cells, the last axis fastest.
    table : ndarray of float64, shape ((n1 + 1) ... (nd + 1),)
        The summed-area table, which begins with a layer of zeros on each axis.
    sides : ndarray of int64, shape (axes,)
        How many cells each axis has.
    strides : ndarray of int64, shape (axes,)
        How far apart entries of the table are that are neighbours along each axis.

    Raises
    ------
    InputError
        If there is no cell, or one is not a finite number.

    Examples
    --------
    >>> grid_table([[1, 2, 3], [4, 5, 6]])[1].reshape(3, 4)
    array([[ 0.,  0.,  0.,  0.],
           [ 0.,  1.,  3.,  6.],
           [ 0.,  5., 12., 21.]])
    """
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
    cells : array-like, shape (n1, ..., nd)
        Noisy counts.
    level : float
        A box of n cells is uneven when the deviations of its cells from their mean add
        up to more than ``level * n + slack * sqrt(n)``.
    slack : float
        The part of that limit that grows with the square root.
    count : float
        A box is crowded when its total exceeds this.
    mode : {"or", "and", "uniformity"}
        Cut a box that is uneven or crowded, that is both, or that is uneven.
    depth : int
        Most cuts above a box. A single cell is never cut.

    Returns
    -------
    lows : ndarray of int64, shape (boxes, axes)
        The first cell of each box along each axis.
    highs : ndarray of int64, shape (boxes, axes)
        The cell after its last.

    Raises
    ------
    InputError
        If the mode is another one, or the depth is negative.

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
    limits = float(level), float(slack), float(count)
    if any(map(math.isnan, limits)):
        raise InputError(
            "level, slack and count are numbers", received=f"{level}, {slack}, {count}"
        )
    leaves = _median_leaves(*grid_table(cells), *limits, MODES.index(mode), int(depth))
    return _corners(leaves)


def _corners(leaves: IntArray) -> tuple[IntArray, IntArray]:
    """Split rows ``low..., high...`` into the low corners and the high ones."""
    axes = leaves.shape[1] // 2
    return leaves[:, :axes].copy(), leaves[:, axes:].copy()


def median_cuts(slabs: AnyArray, edges: AnyArray) -> IntArray:
    """Return where to cut boxes whose slabs are known, so that both parts hold half.

    Parameters
    ----------
    slabs : array-like of float64
        Counts of the slabs of all boxes along the axis to be cut, box after box.
    edges : array-like of int64, shape (boxes + 1,)
        Where the slabs of each box begin.

    Returns
    -------
    ndarray of int64, shape (boxes,)
        Slabs of the first part; 0 for a box of a single slab, which cannot be cut.

    Raises
    ------
    InputError
        If the edges do not rise from 0 to the number of slabs, or a count is not
        finite.

    Examples
    --------
    >>> median_cuts([5.0, 1.0, 1.0, 1.0, 7.0], [0, 4, 5])
    array([1, 0])
    """
    counts = np.ascontiguousarray(slabs, dtype=np.float64)
    begins = np.ascontiguousarray(whole_numbers(edges))
    if not rises(begins, counts.size, 1):
        raise InputError(
            f"edges rise from 0 to the number of slabs, here {counts.size}; received "
            f"an array of shape {begins.shape}"
        )
    refuse_infinite(counts, "counts of slabs")
    return _median_cuts(counts, begins)


@kernel
def _box_totals(
    table: FloatArray,
    square_table: FloatArray,
    strides: IntArray,
    low: IntArray,
    high: IntArray,
) -> tuple[float, float]:
    """Return the sum of the cells of a box, and that of their squares.

    Of the 2^axes corners of the box, those at the low end of an odd number of axes are
    taken off.
    """
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

    Also how many cuts there were, its squared contrast divided by n f (1 - f), and n f
    (1 - f) times the part of the side.
    """
    size = 1
    for axis in range(sides.size):
        size *= high[axis] - low[axis]
    best, best_axis, best_cut, best_contrast, best_reach = -1.0, 0, 1, 0.0, 0.0
    cuts = 0
    for axis in range(sides.size):
        length = high[axis] - low[axis]
        step = max(length // _PLACES, 1)
        places = (length - 1) // step
        _slab_totals(table, strides, low, high, axis, step, slabs[:places])
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

    The boxes below a node stand at the end of the list when the walk comes back to it,
    and are replaced by the node itself if they do not pay. The walk keeps one box for
    each depth, the path from the whole grid to where it stands; ``done`` says how far
    it has come with each of them:

        0    not looked at yet
        1    cut, and its left part was walked to: the right one is next
        2    left whole, or both parts were walked to: its gain can be settled
    """
    axes = sides.size
    leaves = np.empty((64, 2 * axes), dtype=np.int64)
    count_of_leaves = 0
    slabs = np.empty(2 * _PLACES)
    low = np.empty((depth + 1, axes), dtype=np.int64)
    high = np.empty((depth + 1, axes), dtype=np.int64)
    cut_axis = np.empty(depth + 1, dtype=np.int64)
    cut_end = np.empty(depth + 1, dtype=np.int64)
    done = np.empty(depth + 1, dtype=np.int64)
    # How many boxes were listed when the walk came to the box for the first time.
    before = np.empty(depth + 1, dtype=np.int64)
    gain = np.empty(depth + 1)
    for axis in range(axes):
        low[0, axis], high[0, axis] = 0, sides[axis]
    done[0] = 0
    below = 0
    while below >= 0:
        if done[below] == 0:
            before[below], gain[below] = count_of_leaves, 0.0
            size, weight = 1, 0.0
            for axis in range(axes):
                length = high[below, axis] - low[below, axis]
                size *= length
                weight = max(weight, length / sides[axis])
            total, squares = _box_totals(
                table, square_table, strides, low[below], high[below]
            )
            # What all cuts inside the box can gain before they are paid for: their
            # contrasts add up to the deviations, and n f (1 - f) is n / 4 at most.
            deviations = squares - total * total / size
            bound = max(deviations - caution * cell_variance, 0.0) * weight * size / 4.0
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
                _copy_row(low[below + 1], low[below])
                _copy_row(high[below + 1], high[below])
                high[below + 1, axis] = low[below, axis] + place
                done[below + 1] = 0
                below += 1
                continue
        elif done[below] == 1:
            axis = cut_axis[below]
            # The left part was the last to stand one level deeper.
            place = high[below + 1, axis]
            _copy_row(low[below + 1], low[below])
            _copy_row(high[below + 1], high[below])
            low[below + 1, axis] = place
            high[below + 1, axis] = cut_end[below]
            done[below], done[below + 1] = 2, 0
            below += 1
            continue
        gain_below = gain[below]
        if gain_below <= 0.0:
            gain_below = 0.0
            count_of_leaves = before[below]
            leaves = _add_leaf(leaves, count_of_leaves, low[below], high[below])
            count_of_leaves += 1
        below -= 1
        if below >= 0:
            gain[below] += gain_below
    return leaves[:count_of_leaves].copy()


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
    cells : array-like, shape (n1, ..., nd)
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
    lows : ndarray of int64, shape (boxes, axes)
        The first cell of each box along each axis, in the order of the tree.
    highs : ndarray of int64, shape (boxes, axes)
        The cell after its last.

    Raises
    ------
    InputError
        If one of the numbers is negative.

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
    prices = float(cell_variance), float(caution), float(price)
    return _corners(_gain_leaves(table, squares, sides, strides, *prices, int(depth)))
