"""Boxes of a grid: cut into parts, listed by cells, and as runs of bucket numbers.

Sides are cut nearly equally: side 5 cut in 3 gives 2 + 2 + 1, children in C order.

A query covers most buckets wholly or not at all; those that its outline cuts, in part.
A tree of bounding boxes over the bucket numbers finds the runs:

    numbers      0 1 2 3 | 4 5 6 7 | 8 9 ..
    bounds      [  all   |   of    | these ]      inside the query: one run of whole
    of eight    [ 0..7 ] | [ 8..15 ] ..           buckets; apart from it: nothing;
    of 64       [  0..63  ] ..                    otherwise: look at the eight below

Along a Hilbert curve neighbours have neighbouring numbers, so that few bounds are cut:
the time follows the pieces that come out, whatever the size of the grid.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import (
    SUMS_BELOW,
    as_input,
    check_corners,
    largest_size,
    refuse_nan,
    rises,
)
from blowfish_fast.kernels._jit import kernel


@kernel
def _divide(
    lows: IntArray,
    highs: IntArray,
    parts: IntArray,
    place: IntArray,
    owners: IntArray,
    child_lows: IntArray,
    child_highs: IntArray,
) -> None:
    """Fill in the children; `place` is a zero for each axis, which counts parts."""
    axes = lows.shape[1]
    box = 0
    for child in range(owners.size):
        owners[child] = box
        for axis in range(axes):
            side = highs[box, axis] - lows[box, axis]
            cuts = parts[box, axis]
            begin = place[axis] * side + cuts - 1
            child_lows[child, axis] = lows[box, axis] + begin // cuts
            child_highs[child, axis] = lows[box, axis] + (begin + side) // cuts
        axis = axes - 1
        while axis >= 0:
            place[axis] += 1
            if place[axis] < parts[box, axis]:
                break
            place[axis] = 0
            axis -= 1
        box += axis < 0


def divide_boxes(
    lows: IntArray, highs: IntArray, parts: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Cut each box [low, high) into nearly equal intervals per axis.

    Parameters
    ----------
    lows : ndarray of int64, shape (boxes, axes)
        The first cell of each box along each axis.
    highs : ndarray of int64, shape (boxes, axes)
        The cell after its last.
    parts : ndarray of int64, shape (boxes, axes)
        Into how many parts each side is cut: from 1 to as many as it has cells.

    Returns
    -------
    owners : ndarray of int64, shape (children,)
        The box that each child lies in, in order.
    lows : ndarray of int64, shape (children, axes)
        The first cell of each child; children of one box in C order.
    highs : ndarray of int64, shape (children, axes)
        The cell after its last.

    Raises
    ------
    InputError
        If shapes differ, or a side is cut into more parts than it has cells.

    Examples
    --------
    >>> owners, lows, highs = divide_boxes(
    ...     np.array([[0, 0]]), np.array([[1, 5]]), np.array([[1, 3]])
    ... )
    >>> lows.tolist(), highs.tolist()
    ([[0, 0], [0, 2], [0, 4]], [[1, 2], [1, 4], [1, 5]])
    """
    lows, highs, parts = (as_input(array, np.int64) for array in (lows, highs, parts))
    if lows.ndim != 2 or not lows.shape == highs.shape == parts.shape:
        raise InputError(
            "lows, highs and parts must all have shape (boxes, axes); they have "
            f"{lows.shape}, {highs.shape} and {parts.shape}"
        )
    if lows.size and ((parts < 1) | (parts > highs - lows)).any():
        raise InputError("each side is cut into 1 part up to as many as it has cells")
    if lows.size:
        # Sides times parts are worked out in 64 bits; corners bound the sides.
        furthest = max(largest_size(lows), largest_size(highs))
        if 4 * furthest * int(parts.max()) >= SUMS_BELOW:
            raise InputError(
                "corners and parts are so large that their products do not fit 64 bits",
                received=f"corners up to {furthest:,} and {parts.max():,} parts",
            )
    count, axes = int(np.prod(parts, axis=1).sum()), lows.shape[1]
    owners = np.empty(count, dtype=np.int64)
    child_lows = np.empty((count, axes), dtype=np.int64)
    child_highs = np.empty((count, axes), dtype=np.int64)
    place = np.zeros(axes, dtype=np.int64)
    _divide(lows, highs, parts, place, owners, child_lows, child_highs)
    return owners, child_lows, child_highs


@kernel
def _list_cells(
    lows: IntArray,
    highs: IntArray,
    strides: IntArray,
    edges: IntArray,
    place: IntArray,
    order: IntArray,
) -> None:
    """Fill in the order of the cells; `place` has room for one cell's position."""
    boxes, axes = lows.shape
    for box in range(boxes):
        cell = 0
        for axis in range(axes):
            place[axis] = lows[box, axis]
            cell += place[axis] * strides[axis]
        for step in range(edges[box], edges[box + 1]):
            order[step] = cell
            axis = axes - 1
            while axis >= 0:
                place[axis] += 1
                cell += strides[axis]
                if place[axis] < highs[box, axis]:
                    break
                cell -= (place[axis] - lows[box, axis]) * strides[axis]
                place[axis] = lows[box, axis]
                axis -= 1


def cells_of_boxes(
    lows: IntArray, highs: IntArray, shape: tuple[int, ...]
) -> tuple[IntArray, IntArray]:
    """List the cells of disjoint boxes [low, high) that fill a grid, box by box.

    Parameters
    ----------
    lows : ndarray of int64, shape (boxes, axes)
        The first cell of each box along each axis.
    highs : ndarray of int64, shape (boxes, axes)
        The cell after its last.
    shape : tuple[int, ...]
        Cells of each axis.

    Returns
    -------
    edges : ndarray of int64, shape (boxes + 1,)
        Box b holds the places from ``edges[b]`` up to ``edges[b + 1]``.
    order : ndarray of int64, shape (cells,)
        C-order index of the cell at each place.

    Raises
    ------
    InputError
        If the boxes do not fill the grid, each cell once.

    Examples
    --------
    >>> edges, order = cells_of_boxes(
    ...     np.array([[0, 1], [0, 0]]), np.array([[2, 3], [2, 1]]), (2, 3)
    ... )
    >>> edges.tolist(), order.tolist()
    ([0, 4, 6], [1, 2, 4, 5, 0, 3])
    """
    lows = as_input(lows, np.int64)
    highs = as_input(highs, np.int64)
    sides = np.array(shape, dtype=np.int64)
    check_corners(lows, highs, sides.size)
    inside = (lows >= 0) & (lows < highs) & (highs <= sides)
    edges = np.zeros(len(lows) + 1, dtype=np.int64)
    np.cumsum(np.prod(highs - lows, axis=1), out=edges[1:])
    if not inside.all() or edges[-1] != np.prod(sides):
        raise InputError(
            f"the boxes must fill the grid of shape {shape}, each cell once"
        )
    strides = np.append(np.cumprod(sides[:0:-1])[::-1], 1)
    order = np.empty(int(edges[-1]), dtype=np.int64)
    _list_cells(lows, highs, strides, edges, np.empty_like(sides), order)
    return edges, order


_FAN_OUT = 8


@kernel
def _bucket_boxes(
    order: IntArray, edges: IntArray, sides: IntArray, boxes: AnyArray
) -> bool:
    """Write down the bounds of every bucket; return whether all are filled."""
    axes = sides.size
    filled = True
    for bucket in range(edges.size - 1):
        for axis in range(axes):
            boxes[bucket, 0, axis] = sides[axis]
            boxes[bucket, 1, axis] = 0
        for place in range(edges[bucket], edges[bucket + 1]):
            rest = order[place]
            for axis in range(axes - 1, -1, -1):
                along = rest % sides[axis]
                rest //= sides[axis]
                boxes[bucket, 0, axis] = min(boxes[bucket, 0, axis], along)
                boxes[bucket, 1, axis] = max(boxes[bucket, 1, axis], along + 1)
        volume = np.int64(1)
        for axis in range(axes):
            volume *= np.int64(boxes[bucket, 1, axis] - boxes[bucket, 0, axis])
        filled &= volume == edges[bucket + 1] - edges[bucket]
    return filled


def bucket_boxes(
    order: IntArray, edges: IntArray, shape: tuple[int, ...]
) -> IntArray | None:
    """Return the corners of buckets that are boxes of a grid.

    Parameters
    ----------
    order : ndarray of int64, shape (cells,)
        C-order index of the cell at each place.
    edges : ndarray of int64, shape (buckets + 1,)
        Bucket b holds the places from ``edges[b]`` up to ``edges[b + 1]``.
    shape : tuple[int, ...]
        Cells of each axis.

    Returns
    -------
    ndarray of int64, shape (buckets, 2, axes), or None
        Low and high corner of each bucket; None if some bucket is not a box.

    Raises
    ------
    InputError
        If order and edges do not cover the grid.

    Examples
    --------
    >>> cells = np.array([0, 1, 3, 4, 2, 5])
    >>> bucket_boxes(cells, np.array([0, 4, 6]), (2, 3)).tolist()
    [[[0, 0], [2, 2]], [[0, 2], [2, 3]]]
    """
    return _corners(order, edges, shape, np.int64)


def bucket_corners(
    order: IntArray, edges: IntArray, shape: tuple[int, ...]
) -> npt.NDArray[np.int32] | None:
    """Return what `bucket_boxes` does in half the memory, for sides below 2^31.

    Parameters
    ----------
    order : ndarray of int64, shape (cells,)
        C-order index of the cell at each place.
    edges : ndarray of int64, shape (buckets + 1,)
        Bucket b holds the places from ``edges[b]`` up to ``edges[b + 1]``.
    shape : tuple[int, ...]
        Cells of each axis.

    Returns
    -------
    ndarray of int32, shape (buckets, 2, axes), or None
        Low and high corner of each bucket; None if some bucket is not a box.

    Raises
    ------
    InputError
        If order and edges do not cover the grid, or a side is longer.
    """
    if max(shape, default=0) >= 2**31:
        raise InputError(
            f"corners of 32 bits need sides below 2^31; got the shape {shape}. "
            "Use bucket_boxes"
        )
    return _corners(order, edges, shape, np.int32)


def _corners(
    order: IntArray, edges: IntArray, shape: tuple[int, ...], width: type[np.integer]
) -> AnyArray | None:
    cells = int(np.prod(shape))
    order = as_input(order, np.int64)
    edges = as_input(edges, np.int64)
    covered = order.shape == (cells,) and cells > 0 and rises(edges, cells, 1)
    if not covered or (order.min(), order.max()) != (0, cells - 1):
        raise InputError(
            f"order and edges must cover the {cells} cells of a grid of shape {shape}"
        )
    boxes = np.empty((edges.size - 1, 2, len(shape)), dtype=width)
    filled = _bucket_boxes(order, edges, np.array(shape, dtype=np.int64), boxes)
    return boxes if filled else None


@kernel
def _bounds(boxes: IntArray) -> tuple[IntArray, IntArray]:
    """Return bounding boxes of 8, 64 .. buckets, all in a row, and where rows begin."""
    count, _, axes = boxes.shape
    starts = np.zeros(24, dtype=np.int64)
    levels = 0
    total = 0
    while count > 1:
        count = (count + _FAN_OUT - 1) // _FAN_OUT
        levels += 1
        starts[levels] = total
        total += count
    bounds = np.empty((total, 2, axes), dtype=np.int64)
    below = boxes
    for level in range(1, levels + 1):
        count = (below.shape[0] + _FAN_OUT - 1) // _FAN_OUT
        here = bounds[starts[level] : starts[level] + count]
        for node in range(count):
            first = node * _FAN_OUT
            for axis in range(axes):
                low, high = below[first, 0, axis], below[first, 1, axis]
                for child in range(first + 1, min(first + _FAN_OUT, below.shape[0])):
                    low = min(low, below[child, 0, axis])
                    high = max(high, below[child, 1, axis])
                here[node, 0, axis], here[node, 1, axis] = low, high
        below = here
    return bounds, starts[: levels + 1].copy()


@kernel
def _cover(
    lows: FloatArray,
    highs: FloatArray,
    boxes: IntArray,
    bounds: IntArray,
    levels: IntArray,
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    first_query: int,
) -> int:
    """Write pieces from `first_query` on; return the first query without room."""
    axes = lows.shape[1]
    buckets = boxes.shape[0]
    top_level = levels.size - 1
    stack = np.empty((_FAN_OUT * levels.size + 1, 2), dtype=np.int64)
    used = pointers[first_query]
    for query in range(first_query, lows.shape[0]):
        begin = used
        stack[0, 0], stack[0, 1] = top_level, 0
        depth = 1
        while depth > 0:
            depth -= 1
            level, node = stack[depth, 0], stack[depth, 1]
            share = 1.0
            for axis in range(axes):
                if level == 0:
                    low, high = boxes[node, 0, axis], boxes[node, 1, axis]
                else:
                    low = bounds[levels[level] + node, 0, axis]
                    high = bounds[levels[level] + node, 1, axis]
                begin_in, end_in = lows[query, axis], highs[query, axis]
                if not (end_in > low and begin_in < high):
                    share = 0.0
                    break
                if begin_in > low or end_in < high:
                    inside = min(end_in, high) - max(begin_in, low)
                    share *= max(inside, 0.0) / (high - low)
            if share == 0.0:
                continue
            if share < 1.0 and level > 0:
                # The last child first, so that the first is looked at first.
                reach = buckets
                if level > 1:
                    reach = levels[level] - levels[level - 1]
                last = min((node + 1) * _FAN_OUT, reach)
                for child in range(last - 1, node * _FAN_OUT - 1, -1):
                    stack[depth, 0], stack[depth, 1] = level - 1, child
                    depth += 1
                continue
            width = 1
            for _ in range(level):
                width *= _FAN_OUT
            start, end = node * width, min((node + 1) * width, buckets)
            if used > begin and ends[used - 1] == start and values[used - 1] == share:
                ends[used - 1] = end
                continue
            if used == starts.size:
                return query
            starts[used], ends[used], values[used] = start, end, share
            used += 1
        pointers[query + 1] = used
    return int(lows.shape[0])


def boxes_to_pieces(
    lows: FloatArray, highs: FloatArray, boxes: IntArray
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Cut boxes [low, high) into runs of buckets with one covered share each.

    Parameters
    ----------
    lows : ndarray of float64, shape (queries, axes)
        The lower corner of each query, in cells; it may cut cells.
    highs : ndarray of float64, shape (queries, axes)
        The upper corner.
    boxes : ndarray of int64, shape (buckets, 2, axes)
        Disjoint boxes, from `bucket_boxes`.

    Returns
    -------
    pointers : ndarray of int64, shape (queries + 1,)
        Query i owns the pieces ``pointers[i]`` up to ``pointers[i + 1]``.
    starts : ndarray of int64, shape (pieces,)
        The first bucket of each run; runs are sorted and as long as they can be.
    ends : ndarray of int64, shape (pieces,)
        The bucket after its last.
    values : ndarray of float64, shape (pieces,)
        The part of the volume of each bucket of the run that the query covers; never 0.

    Raises
    ------
    InputError
        If corners and boxes do not have the same axes.

    Examples
    --------
    >>> boxes = np.array([[[0, 0], [2, 2]], [[0, 2], [2, 3]]])
    >>> query = np.array([[0.0, 1.0]]), np.array([[2.0, 3.0]])
    >>> boxes_to_pieces(*query, boxes)[1:]
    (array([0, 1]), array([1, 2]), array([0.5, 1. ]))
    """
    lows = as_input(lows, np.float64)
    highs = as_input(highs, np.float64)
    boxes = as_input(boxes, np.int64)
    if boxes.ndim != 3 or boxes.shape[1] != 2 or 0 in boxes.shape:
        raise InputError(
            "boxes have a low and a high corner each, (buckets, 2, axes); they have "
            f"shape {boxes.shape}"
        )
    check_corners(lows, highs, boxes.shape[2])
    refuse_nan(lows, "low corners")
    refuse_nan(highs, "high corners")
    bounds, levels = _bounds(boxes)
    pointers = np.zeros(len(lows) + 1, dtype=np.int64)
    room = 64 * (len(lows) + 1)
    starts, ends = np.empty((2, room), dtype=np.int64)
    values = np.empty(room)
    done = 0
    while True:
        done = _cover(
            lows, highs, boxes, bounds, levels, pointers, starts, ends, values, done
        )
        used = int(pointers[done])
        if done == len(lows):
            return pointers, starts[:used], ends[:used], values[:used]
        # At least as much again, and enough for any one query.
        more = np.empty(2 * starts.size + len(boxes) - used, dtype=np.int64)
        starts, ends = (np.append(array[:used], more) for array in (starts, ends))
        values = np.append(values[:used], np.empty(more.size))
