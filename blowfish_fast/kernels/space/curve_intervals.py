"""Rectangles of a grid as intervals of a walk through its cells.

    the walk         a rectangle       its intervals
     0  3  4  5      .  #  #  .
     1  2  7  6      .  #  #  .        [2, 5) [7, 9) [13, 14)
    14 13  8  9      .  #  #  .
    15 12 11 10      .  .  .  .

An interval begins or ends where the share of a cell that lies in the rectangle changes
from one step to the next. There are three ways to find these changes:

    rows     the walk is the C order: they are the rectangle's ends along each row
    outline  the walk goes to neighbouring cells of a plane: one of the two cells around
             a change is on the outline, among the outermost cells of the rectangle
    cells    any other walk: every cell of the rectangle is looked at

The last two find the changes out of order. Bits in a map that is read from left to
right sort them, with two coarser maps above it, a bit for each 64 below that are not
all 0, to skip what is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray, WordArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import as_input, check_corners
from blowfish_fast.kernels._jit import kernel, popcount

from .hilbert import NO_STEP, step_directions

BitMaps: TypeAlias = tuple[WordArray, WordArray, WordArray]
Intervals: TypeAlias = tuple[IntArray, IntArray, IntArray, FloatArray]

_ROWS, _OUTLINE, _CELLS = 0, 1, 2


@kernel
def _share(low: float, high: float, cell: int) -> float:
    """Return how much of [cell, cell + 1) lies in [low, high)."""
    return max(0.0, min(high, cell + 1.0) - max(low, cell + 0.0))


@kernel
def _mark(places: IntArray, stride: int, shift: int, flip: bool, maps: BitMaps) -> None:
    """Set, or flip, the bit `shift` behind each `stride`-th place."""
    # Loops over cells hand no array to another kernel: counting the references to it
    # would cost more than the work.
    words, groups, tops = maps
    lowest_bit = np.uint64(1)
    for i in range(0, places.size, stride):
        place = places[i] + shift
        word, group = place >> 6, place >> 12
        bits = words[word]
        if bits == np.uint64(0):
            groups[group] |= lowest_bit << np.uint64(word & 63)
            tops[group >> 6] |= lowest_bit << np.uint64(group & 63)
        bit = lowest_bit << np.uint64(place & 63)
        words[word] = bits ^ bit if flip else bits | bit


@kernel
def _lowest(word: np.uint64) -> int:
    """Return the place of the lowest one of a word that is not 0."""
    return int(popcount(~word & (word - np.uint64(1))))


@kernel
def _read_sorted(maps: BitMaps, changes: IntArray) -> int:
    """Write the places of all ones into `changes`, clear the maps, return the count."""
    words, groups, tops = maps
    zero, lowest_bit = np.uint64(0), np.uint64(1)
    count = 0
    for top in range(tops.size):
        marked_groups = tops[top]
        tops[top] = zero
        while marked_groups != zero:
            group = 64 * top + _lowest(marked_groups)
            marked_groups &= marked_groups - lowest_bit
            marked_words = groups[group]
            groups[group] = zero
            while marked_words != zero:
                word = 64 * group + _lowest(marked_words)
                marked_words &= marked_words - lowest_bit
                marked_places = words[word]
                words[word] = zero
                while marked_places != zero:
                    changes[count] = 64 * word + _lowest(marked_places)
                    marked_places &= marked_places - lowest_bit
                    count += 1
    return count


@kernel
def _next_row(place: IntArray, box: IntArray) -> bool:
    """Move to the next row, in C order, of a box of cells; False behind the last."""
    for axis in range(place.size - 2, -1, -1):
        place[axis] += 1
        if place[axis] < box[1, axis]:
            return True
        place[axis] = box[0, axis]
    return False


@kernel
def _changes_by_row(
    box: IntArray, strides: IntArray, whole: bool, changes: IntArray
) -> int:
    """List the steps of the C order where the share may change; repeats may occur."""
    first, last = box[0, -1], box[1, -1]
    place = box[0].copy()
    count = 0
    more = True
    while more:
        row = 0
        for axis in range(place.size - 1):
            row += place[axis] * strides[axis]
        changes[count] = row + first
        if not whole:
            changes[count + 1] = row + first + 1
            changes[count + 2] = row + max(first + 1, last - 1)
            count += 2
        changes[count + 1] = row + last
        count += 2
        more = _next_row(place, box)
    return count


@kernel
def _mark_cells(
    position: IntArray,
    rectangle: FloatArray,
    box: IntArray,
    strides: IntArray,
    whole: bool,
    maps: BitMaps,
) -> None:
    """Mark where the share may change, by every cell of the rectangle.

    Flipping both ends of each cell's step leaves a one exactly where the walk enters or
    leaves the rectangle. Both ends of a cell that is cut are set afterwards.
    """
    first, last = box[0, -1], box[1, -1]
    for sweep in range(1 if whole else 2):
        flip = sweep == 0
        place = box[0].copy()
        more = True
        while more:
            row, share = 0, 1.0
            for axis in range(place.size - 1):
                row += place[axis] * strides[axis]
                share *= _share(rectangle[0, axis], rectangle[1, axis], place[axis])
            # In a row that is not cut itself, only the first and last cell can be.
            stride = 1 if flip or share < 1.0 else max(1, last - first - 1)
            steps = position[row + first : row + last]
            _mark(steps, stride, 0, flip, maps)
            _mark(steps, stride, 1, flip, maps)
            more = _next_row(place, box)


@kernel
def _fill_shares(rectangle: FloatArray, box: IntArray, shares: FloatArray) -> None:
    """Write the shares along both axes, each with a 0 before and behind."""
    for axis in range(2):
        low, high = rectangle[0, axis], rectangle[1, axis]
        first, cells = box[0, axis], box[1, axis] - box[0, axis]
        for i in range(-1, cells + 1):
            shares[axis, i + 1] = _share(low, high, first + i)


@kernel
def _edge_changes(
    directions: AnyArray,
    cell: int,
    row: int,
    column: int,
    stride: int,
    cells: int,
    shares: FloatArray,
    changes: IntArray,
    count: int,
) -> int:
    """Append the changes at the cells of one edge; return how many there are now.

    The first cell has the index `cell` and lies at `row`, `column` of the rectangle. A
    change before a cell is written as twice its index, one behind it as that plus 1.
    """
    right_step = 1 if stride == 1 else 0
    for _ in range(cells):
        direction = np.int64(directions[np.uintp(cell)])
        share = shares[0, np.uintp(row + 1)] * shares[1, np.uintp(column + 1)]
        before = after = 0.0
        if direction & 15 != NO_STEP:
            before = shares[0, np.uintp(row + (direction & 3))]
            before *= shares[1, np.uintp(column + (direction >> 2 & 3))]
        if direction >> 4 != NO_STEP:
            after = shares[0, np.uintp(row + (direction >> 4 & 3))]
            after *= shares[1, np.uintp(column + (direction >> 6))]
        # No branches here: whether the walk crosses the edge is not predictable.
        changes[np.uintp(count)] = 2 * cell
        count += int(before != share)
        changes[np.uintp(count)] = 2 * cell + 1
        count += int(after != share)
        cell += stride
        row += 1 - right_step
        column += right_step
    return count


@kernel
def _changes_by_outline(
    position: IntArray,
    directions: AnyArray,
    columns: int,
    box: IntArray,
    shares: FloatArray,
    changes: IntArray,
) -> int:
    """List where the share changes, by the outermost cells; unsorted, with repeats."""
    height, width = box[1, 0] - box[0, 0], box[1, 1] - box[0, 1]
    corner = box[0, 0] * columns + box[0, 1]
    # Not a literal, for which the callee would be compiled a second time.
    count = int(0)  # noqa: RUF046, UP018
    for row in range(0, height, max(1, height - 1)):
        count = _edge_changes(
            directions, corner + row * columns, row, 0, 1, width, shares, changes, count
        )
    for column in range(0, width, max(1, width - 1)):
        cell = corner + columns + column
        count = _edge_changes(
            directions, cell, 1, column, columns, height - 2, shares, changes, count
        )
    for i in range(count):
        changes[i] = position[changes[i] >> 1] + (changes[i] & 1)
    return count


@kernel
def _append_intervals(
    changes: IntArray,
    order: IntArray,
    strides: IntArray,
    rectangle: FloatArray,
    whole: bool,
    output: tuple[IntArray, IntArray, FloatArray],
    used: int,
) -> int:
    """Append the intervals between `changes` to the output; return its new length.

    The changes of a whole rectangle are its starts and ends by turns.
    """
    starts, ends, values = output
    row_start = used
    for i in range(changes.size - 1):
        start, end = changes[i], changes[i + 1]
        if start == end or (whole and i % 2 == 1):
            continue
        value = 1.0
        if not whole:
            rest = np.uintp(order[start])
            for axis in range(strides.size - 1):
                stride = np.uintp(strides[axis])
                coordinate = rest // stride
                rest -= coordinate * stride
                low, high = rectangle[0, axis], rectangle[1, axis]
                value *= _share(low, high, int(coordinate))
            value *= _share(rectangle[0, -1], rectangle[1, -1], int(rest))
            if value == 0.0:
                continue
        if used > row_start and ends[used - 1] == start and values[used - 1] == value:
            ends[used - 1] = end
        else:
            starts[used], ends[used], values[used] = start, end, value
            used += 1
    return used


@kernel
def _enlarge(array: AnyArray, used: int, size: int) -> AnyArray:
    larger = np.empty(size, dtype=array.dtype)
    for i in range(used):
        larger[i] = array[i]
    return larger


@kernel
def _find_intervals(
    way: int,
    order: IntArray,
    position: IntArray,
    directions: AnyArray,
    sides: IntArray,
    rectangles: FloatArray,
    boxes: IntArray,
    rooms: IntArray,
) -> Intervals:
    """Return how many intervals each rectangle has, and all of them in a row.

    A rectangle has at most `rooms` changes, none if it is empty.
    """
    strides = np.ones(sides.size, dtype=np.int64)
    for axis in range(sides.size - 2, -1, -1):
        strides[axis] = strides[axis + 1] * sides[axis + 1]
    places = 0 if way == _ROWS else order.size
    maps = (
        np.zeros((places >> 6) + 1, dtype=np.uint64),
        np.zeros((places >> 12) + 1, dtype=np.uint64),
        np.zeros((places >> 18) + 1, dtype=np.uint64),
    )
    shares = np.empty((2, max(sides[0], sides[-1]) + 2 if way == _OUTLINE else 0))
    changes = np.empty(0, dtype=np.int64)
    starts, ends = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    values = np.empty(0)
    counts = np.zeros(rooms.size, dtype=np.int64)
    # As above, `used` is no literal.
    used, seen_room, total_room = int(0), 0, rooms.sum()  # noqa: RUF046, UP018
    for number in range(rooms.size):
        if rooms[number] == 0:
            continue
        seen_room += rooms[number]
        if changes.size < rooms[number]:
            changes = np.empty(2 * rooms[number], dtype=np.int64)
        rectangle, box = rectangles[number], boxes[number]
        whole = True
        for axis in range(sides.size):
            whole &= rectangle[0, axis] == box[0, axis]
            whole &= rectangle[1, axis] == box[1, axis]

        if way == _ROWS:
            changes_found = _changes_by_row(box, strides, whole, changes)
        else:
            if way == _OUTLINE:
                _fill_shares(rectangle, box, shares)
                changes_found = _changes_by_outline(
                    position, directions, sides[1], box, shares, changes
                )
                _mark(changes[:changes_found], 1, 0, False, maps)
            else:
                _mark_cells(position, rectangle, box, strides, whole, maps)
            changes_found = _read_sorted(maps, changes)

        if starts.size < used + changes_found:
            # A quarter more than the rectangles so far let expect, within reason.
            expected = 1.25 * (used + changes_found) * total_room / seen_room
            size = min(int(expected) + 1, 4 * (used + changes_found))
            starts, ends = _enlarge(starts, used, size), _enlarge(ends, used, size)
            values = _enlarge(values, used, size)
        before, output = used, (starts, ends, values)
        used = _append_intervals(
            changes[:changes_found], order, strides, rectangle, whole, output, used
        )
        counts[number] = used - before
    return counts, starts[:used], ends[:used], values[:used]


def rectangle_intervals(
    order: IntArray,
    position: IntArray,
    shape: Sequence[int],
    lows: AnyArray,
    highs: AnyArray,
    *,
    threads: int = 1,
) -> Intervals:
    """Cut rectangles into intervals of a walk through the cells of a grid.

    A cell weighs what the rectangle covers of it: the product over the axes of the
    covered fractions. Each rectangle becomes the shortest sorted list of disjoint
    intervals of equal, non-zero weight.

    Time per rectangle is O(perimeter) on a plane whose walk goes to neighbouring cells,
    diagonals included, O(volume / last side) if the walk is the C order and O(volume)
    otherwise, also if all rectangles together have fewer cells than the grid.

    Parameters
    ----------
    order : ndarray of int64, shape (cells,)
        C-order index of the cell at each step, as from `hilbert_order`.
    position : ndarray of int64, shape (cells,)
        Step at which each cell is visited, the inverse of `order`.
    shape : Sequence[int]
        Number of cells along each axis.
    lows : array-like of float64, shape (m, axes)
        Lower corners of the rectangles, in cells; they may cut cells. What lies outside
        the grid is ignored.
    highs : array-like of float64, shape (m, axes)
        Upper corners. A rectangle with low >= high (or NaN) on an axis is empty.
    threads : int, default 1
        Number of threads; the result does not depend on it.

    Returns
    -------
    tuple of four ndarrays
        ``(pointers, starts, ends, values)``. Rectangle i has the intervals
        ``pointers[i]`` up to ``pointers[i + 1]``; these are intervals [start, end) of
        steps, int64, whose cells have the weight ``values``, float64 in (0, 1].

    Raises
    ------
    InputError
        If order, position and shape do not fit each other, or corners the shape.

    Examples
    --------
    >>> order = np.array([0, 1, 2, 5, 4, 3])
    >>> position = np.argsort(order)
    >>> rectangle_intervals(order, position, (2, 3), [[0, 0], [0, 1]], [[2, 2], [2, 3]])
    (array([0, 2, 3]), array([0, 4, 1]), array([2, 6, 5]), array([1., 1., 1.]))
    """
    order = as_input(order, np.int64)
    position = as_input(position, np.int64)
    low, high = np.asarray(lows, np.float64), np.asarray(highs, np.float64)
    sides = np.array(shape, dtype=np.int64).reshape(-1)
    cells = int(sides.prod())
    if order.shape != (cells,) or position.shape != (cells,):
        raise InputError(
            f"order and position must each hold the {cells} cells of the grid; "
            f"received arrays of shape {order.shape} and {position.shape}"
        )
    if not sides.size:
        raise InputError("a grid has one axis at least; received none")
    check_corners(low, high, sides.size)
    span = (order.min(), order.max()) if cells else (0, -1)
    if span != (0, cells - 1) or (position[order] != np.arange(cells)).any():
        raise InputError(
            f"order must name the cells 0 to {cells - 1}, and position invert it; "
            "received arrays that do not. Use numpy.argsort(order)"
        )
    rectangles = np.stack([low, high], axis=1).clip(0, sides)
    filled = np.all(rectangles[:, 0] < rectangles[:, 1], axis=1)
    rectangles = np.where(filled[:, None, None], rectangles, 0.0)
    boxes = rectangles.astype(np.int64)
    boxes[:, 1] += boxes[:, 1] < rectangles[:, 1]
    extent = boxes[:, 1] - boxes[:, 0]
    volume = extent.prod(axis=1)
    directions = np.empty(0, dtype=np.uint8)
    if (order[1:] > order[:-1]).all():
        way, rooms = _ROWS, 4 * extent[:, :-1].prod(axis=1) * filled
    else:
        way, rooms = _CELLS, np.minimum(2 * volume, cells + 1)
        # A direction costs about as much as looking at one cell of a rectangle.
        if sides.size == 2 and sides[1] >= 3 and volume.sum() > cells:
            directions = step_directions(order, sides[1])
        if directions.size:
            way, rooms = _OUTLINE, 4 * extent.sum(axis=1)

    def run(part: slice) -> Intervals:
        chosen = rectangles[part], boxes[part], rooms[part]
        return _find_intervals(way, order, position, directions, sides, *chosen)

    work = np.cumsum(rooms)
    if threads > 1 and work.size > 1:
        inner = np.searchsorted(work, work[-1] * np.arange(1, threads) / threads)
        cuts = [0, *inner.tolist(), work.size]
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(run, map(slice, cuts, cuts[1:])))
        columns = zip(*parts, strict=True)
        counts, starts, ends, values = (np.concatenate(part) for part in columns)
    else:
        counts, starts, ends, values = run(slice(None))
    pointers = np.zeros(rooms.size + 1, dtype=np.int64)
    np.cumsum(counts, out=pointers[1:])
    return pointers, starts, ends, values
