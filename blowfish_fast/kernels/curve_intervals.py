"""Rectangles of a grid as intervals of a walk through its cells.

Serves the rectangle workloads of DAWA on grids: along a space-filling curve a
rectangle is a union of intervals, and the tree over the curve answers intervals.

    the walk         a rectangle       its intervals
     0  3  4  5      .  #  #  .
     1  2  7  6      .  #  #  .        [2, 5) [7, 9) [13, 14)
    14 13  8  9      .  #  #  .
    15 12 11 10      .  .  .  .

An interval begins or ends where the share of a cell that lies in the rectangle
changes from one step to the next. There are three ways to find these steps:

rows     the walk is the C order: they are the rectangle's ends along each row
outline  the walk goes to neighbouring cells of a plane: one of the two cells of such
         a step is on the outline, the outermost cells of the rectangle
cells    any other walk: every cell of the rectangle is looked at

The last two find the steps out of order. They are sorted without comparisons, by bits
in a map that is read from left to right, with two coarser maps above it to skip what
is empty:

    tops    1                          a bit tells that the 64 below it are not all 0
    groups  1 0 .. 1
    words   0100100.. 0000000.. .. 0001000..
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np

from blowfish_fast._typing import AnyArray, FloatArray, IntArray, WordArray
from blowfish_fast.errors import InputError

from ._jit import helper, kernel, popcount

Intervals: TypeAlias = tuple[IntArray, IntArray, IntArray, FloatArray]

_ROWS, _OUTLINE, _CELLS = 0, 1, 2


@kernel
def _share(low: float, high: float, cell: int) -> float:
    """Return how much of [cell, cell + 1) lies in [low, high)."""
    return max(0.0, min(high, cell + 1.0) - max(low, cell + 0.0))


@kernel
def _mark(
    places: IntArray,
    shift: int,
    flip: bool,
    words: WordArray,
    groups: WordArray,
    tops: WordArray,
) -> None:
    """Set, or flip, the bit `shift` behind each place."""
    one = np.uint64(1)
    for i in range(places.size):
        place = places[i] + shift
        word, group = place >> 6, place >> 12
        bits = words[word]
        if bits == np.uint64(0):
            groups[group] |= one << np.uint64(word & 63)
            tops[group >> 6] |= one << np.uint64(group & 63)
        bit = one << np.uint64(place & 63)
        words[word] = bits ^ bit if flip else bits | bit


@kernel
def _lowest(word: np.uint64) -> int:
    """Return the place of the lowest one of a word that is not 0."""
    return popcount(~word & (word - np.uint64(1)))


@kernel
def _read_sorted(
    words: WordArray, groups: WordArray, tops: WordArray, changes: IntArray
) -> int:
    """Write the places of all ones into `changes`, clear the maps, return the count."""
    zero, one = np.uint64(0), np.uint64(1)
    found = 0
    for top in range(tops.size):
        marked_groups = tops[top]
        tops[top] = zero
        while marked_groups != zero:
            group = 64 * top + _lowest(marked_groups)
            marked_groups &= marked_groups - one
            marked_words = groups[group]
            groups[group] = zero
            while marked_words != zero:
                word = 64 * group + _lowest(marked_words)
                marked_words &= marked_words - one
                marked_places = words[word]
                words[word] = zero
                while marked_places != zero:
                    changes[found] = 64 * word + _lowest(marked_places)
                    marked_places &= marked_places - one
                    found += 1
    return found


@kernel
def _next_row(place: IntArray, firsts: IntArray, lasts: IntArray) -> bool:
    """Move to the next row, in C order, of the box of cells; False behind the last."""
    for axis in range(place.size - 2, -1, -1):
        place[axis] += 1
        if place[axis] < lasts[axis]:
            return True
        place[axis] = firsts[axis]
    return False


@kernel
def _changes_by_row(
    firsts: IntArray,
    lasts: IntArray,
    strides: IntArray,
    whole: bool,
    changes: IntArray,
) -> int:
    """List the steps of the C order where the share may change; repeats may occur."""
    last_axis = firsts.size - 1
    first, last = firsts[last_axis], lasts[last_axis]
    place = firsts.copy()
    found = 0
    more = True
    while more:
        row = 0
        for axis in range(last_axis):
            row += place[axis] * strides[axis]
        changes[found] = row + first
        found += 1
        if not whole:
            changes[found] = row + first + 1
            changes[found + 1] = row + max(first + 1, last - 1)
            found += 2
        changes[found] = row + last
        found += 1
        more = _next_row(place, firsts, lasts)
    return found


@kernel
def _mark_cells(
    position: IntArray,
    firsts: IntArray,
    lasts: IntArray,
    strides: IntArray,
    low: FloatArray,
    high: FloatArray,
    whole: bool,
    words: WordArray,
    groups: WordArray,
    tops: WordArray,
) -> None:
    """Mark where the share may change, by every cell of the rectangle.

    Flipping both ends of each cell's step leaves a one exactly where the walk enters or
    leaves the rectangle. Both ends of a cell that is cut are set afterwards.
    """
    last_axis = firsts.size - 1
    first, last = firsts[last_axis], lasts[last_axis]
    for flip in (True, False):
        if whole and not flip:
            break
        place = firsts.copy()
        more = True
        while more:
            row, share = 0, 1.0
            for axis in range(last_axis):
                row += place[axis] * strides[axis]
                share *= _share(low[axis], high[axis], place[axis])
            # In a row that is not cut itself, only the first and last cell can be.
            stride = 1 if flip or share < 1.0 else max(1, last - first - 1)
            steps = position[row + first : row + last : stride]
            _mark(steps, 0, flip, words, groups, tops)
            _mark(steps, 1, flip, words, groups, tops)
            more = _next_row(place, firsts, lasts)


@kernel
def _fill_shares(low: float, high: float, shares: FloatArray) -> None:
    """Write the shares of a rectangle along one axis, with a 0 before and behind."""
    first, last = int(np.floor(low)), int(np.ceil(high))
    width = last - first
    shares[0] = 0.0
    shares[1 : width + 1] = 1.0
    shares[1] = _share(low, high, first)
    shares[width] = _share(low, high, last - 1)
    shares[width + 1] = 0.0


@helper
def _direction(ahead: int, columns: int) -> tuple[int, int]:
    """Return rows and columns between neighbours whose indices differ by `ahead`.

    Unique from three columns on. Cells that are no neighbours give more than one
    column, or lie across the end of a row.
    """
    down = int(ahead > 1) - int(ahead < -1)
    return down, ahead - down * columns


@kernel
def _changes_by_outline(
    order: IntArray,
    position: IntArray,
    columns: int,
    firsts: IntArray,
    lasts: IntArray,
    row_shares: FloatArray,
    column_shares: FloatArray,
    changes: IntArray,
) -> int:
    """List where the share changes, by the outermost cells; unsorted, with repeats."""
    height, width = lasts[0] - firsts[0], lasts[1] - firsts[1]
    corner = firsts[0] * columns + firsts[1]
    found = 0
    for row in range(height):
        rim = row == 0 or row == height - 1
        stride = 1 if rim else max(1, width - 1)
        column = 0
        while column < width:
            cell = corner + row * columns + column
            step = position[np.uintp(cell)]
            share = row_shares[np.uintp(row + 1)] * column_shares[np.uintp(column + 1)]
            before = after = 0.0
            if step > 0:
                down, right = _direction(order[np.uintp(step - 1)] - cell, columns)
                if -1 <= right and right <= 1:
                    before = row_shares[np.uintp(row + 1 + down)]
                    before *= column_shares[np.uintp(column + 1 + right)]
            if step + 1 < order.size:
                down, right = _direction(order[np.uintp(step + 1)] - cell, columns)
                if -1 <= right and right <= 1:
                    after = row_shares[np.uintp(row + 1 + down)]
                    after *= column_shares[np.uintp(column + 1 + right)]
            # Written without branches, which nothing could predict.
            changes[np.uintp(found)] = step
            found += int(before != share)
            changes[np.uintp(found)] = step + 1
            found += int(after != share)
            column += stride
    return found


@kernel
def _append_intervals(
    changes: IntArray,
    order: IntArray,
    strides: IntArray,
    low: FloatArray,
    high: FloatArray,
    whole: bool,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    used: int,
) -> int:
    """Append the intervals between `changes` to the output; return its new length.

    The changes of a whole rectangle are its starts and ends by turns.
    """
    row_start = used
    for i in range(changes.size - 1):
        start, end = changes[i], changes[i + 1]
        if start == end or (whole and i % 2 == 1):
            continue
        value = 1.0
        if not whole:
            rest = order[start]
            for axis in range(strides.size):
                coordinate = rest // strides[axis]
                rest -= coordinate * strides[axis]
                value *= _share(low[axis], high[axis], coordinate)
            if value == 0.0:
                continue
        if used > row_start and ends[used - 1] == start and values[used - 1] == value:
            ends[used - 1] = end
        else:
            starts[used], ends[used], values[used] = start, end, value
            used += 1
    return used


@kernel
def _enlarged(array: AnyArray, used: int, size: int) -> AnyArray:
    larger = np.empty(size, dtype=array.dtype)
    larger[:used] = array[:used]
    return larger


@kernel
def _find_intervals(
    way: int,
    order: IntArray,
    position: IntArray,
    sides: IntArray,
    lows: FloatArray,
    highs: FloatArray,
) -> Intervals:
    """Return how many intervals each rectangle has, and all of them in a row."""
    rectangles, axes = lows.shape
    strides = np.ones(axes, dtype=np.int64)
    for axis in range(axes - 2, -1, -1):
        strides[axis] = strides[axis + 1] * sides[axis + 1]
    places = 0 if way == _ROWS else order.size
    words = np.zeros((places >> 6) + 1, dtype=np.uint64)
    groups = np.zeros((places >> 12) + 1, dtype=np.uint64)
    tops = np.zeros((places >> 18) + 1, dtype=np.uint64)
    longest = sides.max() + 2 if way == _OUTLINE else 0
    row_shares, column_shares = np.empty(longest), np.empty(longest)
    firsts, lasts = np.empty(axes, dtype=np.int64), np.empty(axes, dtype=np.int64)
    changes = np.empty(64, dtype=np.int64)
    starts, ends = np.empty(64, dtype=np.int64), np.empty(64, dtype=np.int64)
    values = np.empty(64)
    counts = np.zeros(rectangles, dtype=np.int64)
    used = 0
    for rectangle in range(rectangles):
        low, high = lows[rectangle], highs[rectangle]
        if not np.all(low < high):
            continue
        firsts[:] = np.floor(low).astype(np.int64)
        lasts[:] = np.ceil(high).astype(np.int64)
        whole = bool(np.all(firsts == low) and np.all(lasts == high))
        rows = np.prod((lasts - firsts)[: axes - 1])
        width = lasts[axes - 1] - firsts[axes - 1]

        # Room for every change, of which each row, outline cell or cell has a few.
        if way == _ROWS:
            room = 4 * rows
        elif way == _OUTLINE:
            room = 4 * (rows + width)
        else:
            room = min(2 * rows * width, order.size + 1)
        if changes.size < room:
            changes = np.empty(2 * room, dtype=np.int64)
        if way == _ROWS:
            found = _changes_by_row(firsts, lasts, strides, whole, changes)
        elif way == _OUTLINE:
            _fill_shares(low[0], high[0], row_shares)
            _fill_shares(low[1], high[1], column_shares)
            found = _changes_by_outline(
                order, position, sides[1], firsts, lasts,
                row_shares, column_shares, changes,
            )  # fmt: skip
            _mark(changes[:found], 0, False, words, groups, tops)
            found = _read_sorted(words, groups, tops, changes)
        else:
            _mark_cells(
                position, firsts, lasts, strides,
                low, high, whole, words, groups, tops,
            )  # fmt: skip
            found = _read_sorted(words, groups, tops, changes)

        if starts.size < used + found:
            size = 2 * (used + found)
            starts, ends = _enlarged(starts, used, size), _enlarged(ends, used, size)
            values = _enlarged(values, used, size)
        before = used
        used = _append_intervals(
            changes[:found], order, strides, low, high, whole,
            starts, ends, values, used,
        )  # fmt: skip
        counts[rectangle] = used - before
    return counts, starts[:used].copy(), ends[:used].copy(), values[:used].copy()


@kernel
def _is_identity(order: IntArray) -> bool:
    for step in range(order.size):  # noqa: SIM110 - all() is not compiled
        if order[step] != step:
            return False
    return True


@kernel
def _visits_neighbours(order: IntArray, columns: int) -> bool:
    """Tell whether each step goes to one of the eight neighbours of a cell."""
    column = order[0] % columns
    for step in range(1, order.size):
        _, right = _direction(order[step] - order[step - 1], columns)
        column += right
        if not (-1 <= right <= 1 and 0 <= column < columns):
            return False
    return True


def rectangle_intervals(
    order: IntArray,
    position: IntArray,
    shape: Sequence[int],
    lows: AnyArray,
    highs: AnyArray,
    *,
    continuous: bool | None = None,
    threads: int = 1,
) -> Intervals:
    """Cut rectangles into intervals of a walk through the cells of a grid.

    A cell weighs what the rectangle covers of it: the product over the axes of the
    covered fractions. Each rectangle becomes the shortest sorted list of disjoint
    intervals of equal, non-zero weight.

    Parameters
    ----------
    order : (cells,) int64
        C-order index of the cell at each step, as from `hilbert_order`.
    position : (cells,) int64
        Step at which each cell is visited, the inverse of `order`.
    shape : sequence of int
        Number of cells along each of the d axes.
    lows, highs : (m, d) float64
        Rectangles [low, high), in cells; the ends may cut cells. What lies outside
        the grid is ignored; a rectangle with low >= high (or NaN) on an axis is empty.
    continuous : bool, optional
        Whether each step of the walk goes to a neighbouring cell, diagonals included.
        None: this is found out. True is believed; if it is wrong, so is the result.
    threads : int
        Number of threads; the result does not depend on it.

    Returns
    -------
    pointers : (m + 1,) int64
        Rectangle i has the intervals ``pointers[i]`` up to ``pointers[i + 1]``.
    starts, ends : (intervals,) int64
        Intervals [start, end) of steps.
    values : (intervals,) float64
        Weight of the cells of each interval, in (0, 1].

    Raises
    ------
    InputError
        If the arrays do not fit the shape or one another.

    Notes
    -----
    Time per rectangle is O(perimeter) on a plane with a continuous walk, O(volume /
    last side) if the walk is the C order, and O(volume) otherwise; finding out whether
    the walk is one of these costs O(cells), once. Memory is that of the result, three
    times while it grows, plus cells / 8 bytes per thread and, for walks of the last
    kind, two words per cell of the largest rectangle.

    Examples
    --------
    >>> order = np.array([0, 3, 4, 1, 2, 5])
    >>> position = np.argsort(order)
    >>> rectangle_intervals(order, position, (2, 3), [[0, 0], [0, 1]], [[1, 2], [2, 3]])
    (array([0, 2, 3]), array([0, 3, 2]), array([1, 4, 6]), array([1., 1., 1.]))
    """
    sides = np.array([int(side) for side in shape], dtype=np.int64)
    low = np.ascontiguousarray(lows, dtype=np.float64)
    high = np.ascontiguousarray(highs, dtype=np.float64)
    order = np.ascontiguousarray(order, dtype=np.int64)
    position = np.ascontiguousarray(position, dtype=np.int64)
    cells = int(np.prod(sides))
    if order.shape != (cells,) or position.shape != (cells,):
        raise InputError(
            f"order and position must hold the {cells} cells of a grid of shape "
            f"{tuple(shape)}; received arrays of shape {order.shape} and "
            f"{position.shape}"
        )
    if low.shape != high.shape or low.ndim != 2 or low.shape[1] != sides.size:
        raise InputError(
            f"lows and highs must have shape (m, {sides.size}), one column per axis; "
            f"received {low.shape} and {high.shape}"
        )
    low, high = np.clip(low, 0, sides), np.clip(high, 0, sides)
    extent = np.ceil(np.nan_to_num(high)) - np.floor(np.nan_to_num(low))
    extent = np.maximum(extent, 0)
    planar = continuous is not False and sides.size == 2 and sides[1] >= 3 and cells > 0
    if _is_identity(order):
        way, effort = _ROWS, extent[:, :-1].prod(axis=1)
    elif planar and (continuous or _visits_neighbours(order, sides[1])):
        way, effort = _OUTLINE, extent.sum(axis=1)
    else:
        way, effort = _CELLS, extent.prod(axis=1)

    work = np.cumsum(effort + 1)
    shares = np.arange(1, max(1, threads)) / max(1, threads)
    cuts = np.searchsorted(work, shares * (work[-1] if work.size else 0))
    jobs = list(
        zip(np.split(low, cuts), np.split(high, cuts), strict=True)
    )

    def run(job: tuple[FloatArray, FloatArray]) -> Intervals:
        return _find_intervals(way, order, position, sides, *job)

    if len(jobs) == 1:
        counts, starts, ends, values = run(jobs[0])
    else:
        with ThreadPoolExecutor(len(jobs)) as pool:
            parts = list(zip(*pool.map(run, jobs), strict=True))
        counts, starts, ends, values = (np.concatenate(part) for part in parts)
    pointers = np.zeros(low.shape[0] + 1, dtype=np.int64)
    np.cumsum(counts, out=pointers[1:])
    return pointers, starts, ends, values
