"""Sums over rectangles of a grid of any dimension, and how many rectangles hold a cell.

An entry of the table is the sum of all cells before it on every axis; a box is a signed
sum of the entries at its corners.

    counts      table           the box [1, 2) x [0, 2)
    1 2 3       0  0  0  0
    4 5 6       0  1  3  6      = table[2, 2] - table[1, 2] - table[2, 0] + table[1, 0]
                0  5 12 21      = 12 - 3 - 0 + 0

A box that cuts cells is split along each axis into the cut cell at its start, the whole
cells, and the cut cell at its end. Each part is the sum of whole cells, times the
fractions that are covered: no part is the small difference of large numbers, and of
whole counts each part is exact.

    |  .--|-----|-----|-.   |        fractions  0.4, 1, 0.3
    0     1     2     3     4        box        [0.6, 3.3)
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import (
    as_input,
    check_corners,
    refuse_wide_sums,
    whole_numbers,
)
from blowfish_fast.kernels._jit import kernel


@kernel
def _accumulate(table: AnyArray, blocks: int, length: int, stride: int) -> None:
    """Add up a flat array in place along an axis of `length` cells `stride` apart."""
    for block in range(blocks):
        first = block * length * stride
        for i in range(first + stride, first + length * stride):
            table[i] += table[i - stride]


@kernel
def _box_sum(table: AnyArray, lows: IntArray, highs: IntArray) -> Any:
    """Return the signed sum of a box; its ends are offsets in the flat table."""
    total = table[0] - table[0]
    for corner in range(1 << lows.size):
        offset, negative = 0, False
        for axis in range(lows.size):
            if corner >> axis & 1:
                offset += lows[axis]
                negative = not negative
            else:
                offset += highs[axis]
        if negative:
            total -= table[offset]
        else:
            total += table[offset]
    return total


@kernel
def _whole_sums(
    table: AnyArray,
    sides: IntArray,
    strides: IntArray,
    lows: IntArray,
    highs: IntArray,
    low_offsets: IntArray,
    high_offsets: IntArray,
    sums: AnyArray,
) -> None:
    """Add, to zeros, each rectangle whose ends lie between cells.

    The offsets are room for the ends of one rectangle, a number for each axis.
    """
    for number in range(lows.shape[0]):
        empty = False
        for axis in range(sides.size):
            low = max(0, lows[number, axis])
            high = min(sides[axis], highs[number, axis])
            if low >= high:
                empty = True
                break
            low_offsets[axis] = low * strides[axis]
            high_offsets[axis] = high * strides[axis]
        if not empty:
            sums[number] = _box_sum(table, low_offsets, high_offsets)


@kernel
def _cut_axis(low: float, high: float, edges: IntArray, weights: FloatArray) -> None:
    """Split [low, high), not empty, into a cut cell, whole cells and a cut cell.

    Part i goes from ``edges[i]`` to ``edges[i + 1]``, with the fraction ``weights[i]``.
    """
    first, last = int(np.floor(low)), int(np.ceil(high))
    edges[0], edges[3] = first, last
    edges[1], edges[2] = first, last
    weights[0] = weights[2] = 0.0
    weights[1] = 1.0
    if last - first == 1:
        weights[1] = high - low
        return
    if first < low:
        edges[1] = first + 1
        weights[0] = first + 1 - low
    if high < last:
        edges[2] = last - 1
        weights[2] = high - (last - 1)
    if edges[1] == edges[2]:
        weights[1] = 0.0


@kernel
def _fractional_sums(
    table: AnyArray,
    sides: IntArray,
    strides: IntArray,
    lows: FloatArray,
    highs: FloatArray,
) -> FloatArray:
    """Return the sum of each rectangle, cut cells in proportion."""
    axes = sides.size
    sums = np.zeros(lows.shape[0])
    edges = np.empty((axes, 4), dtype=np.int64)
    weights = np.empty((axes, 3))
    low_offsets, high_offsets = np.empty_like(strides), np.empty_like(strides)
    parts = 3**axes
    for number in range(lows.shape[0]):
        empty = False
        for axis in range(axes):
            low, high = lows[number, axis], highs[number, axis]
            if not (low < high and low < sides[axis] and high > 0.0):
                empty = True
                break
            low, high = max(0.0, low), min(np.float64(sides[axis]), high)
            _cut_axis(low, high, edges[axis], weights[axis])
        if empty:
            continue
        for code in range(parts):
            rest, weight = code, 1.0
            for axis in range(axes):
                part = rest % 3
                rest //= 3
                weight *= weights[axis, part]
                low_offsets[axis] = edges[axis, part] * strides[axis]
                high_offsets[axis] = edges[axis, part + 1] * strides[axis]
            if weight > 0.0:
                part_sum = _box_sum(table, low_offsets, high_offsets)
                sums[number] += weight * np.float64(part_sum)
    return sums


def summed_area_table(counts: AnyArray) -> AnyArray:
    """Return the (n1 + 1, ..., nd + 1) sums of all cells before each corner of a grid.

    ``table[i, j]`` is the sum of ``counts[:i, :j]``. Whole numbers give int64 and exact
    sums; counts whose sums do not stay below 2^63 are refused. Floats give float64.

    Examples
    --------
    >>> summed_area_table(np.array([[1, 2, 3], [4, 5, 6]]))
    array([[ 0,  0,  0,  0],
           [ 0,  1,  3,  6],
           [ 0,  5, 12, 21]])
    """
    counts = np.asarray(counts)
    if counts.ndim == 0:
        raise InputError(f"a grid has at least one axis; received the number {counts}")
    dtype = np.float64 if counts.dtype.kind == "f" else np.int64
    table = np.zeros([side + 1 for side in counts.shape], dtype=dtype)
    if dtype is np.int64:
        counts = whole_numbers(counts)
        refuse_wide_sums(counts, "counts")
    table[(slice(1, None),) * counts.ndim] = counts
    flat = table.reshape(-1)
    stride = 1
    for length in reversed(table.shape):
        _accumulate(flat, flat.size // (length * stride), length, stride)
        stride *= length
    return table


def rectangle_sums(table: AnyArray, lows: AnyArray, highs: AnyArray) -> AnyArray:
    """Return the sum of the cells of each rectangle [low, high).

    Parameters
    ----------
    table : ndarray of int64 or float64, shape (n1 + 1, ..., nd + 1)
        From `summed_area_table`.
    lows : array-like of int64, shape (m, axes)
        Lower corners, between cells. What lies outside the grid is ignored.
    highs : array-like of int64, shape (m, axes)
        Upper corners. A rectangle with low >= high on an axis is empty.

    Returns
    -------
    ndarray of the table's dtype, shape (m,)
        The sums; exact for int64.

    Raises
    ------
    InputError
        If corners and table have different axes.

    Examples
    --------
    >>> table = summed_area_table(np.array([[1, 2, 3], [4, 5, 6]]))
    >>> rectangle_sums(table, [[1, 0], [0, 0]], [[2, 2], [2, 3]])
    array([ 9, 21])
    """
    low = as_input(lows, np.int64)
    high = as_input(highs, np.int64)
    flat, sides, strides = _flat_table(table, low, high)
    sums = np.zeros(low.shape[0], dtype=flat.dtype)
    low_offsets, high_offsets = np.empty((2, sides.size), dtype=np.int64)
    _whole_sums(flat, sides, strides, low, high, low_offsets, high_offsets, sums)
    return sums


def fractional_rectangle_sums(
    table: AnyArray, lows: AnyArray, highs: AnyArray
) -> FloatArray:
    """Return the sum of each rectangle [low, high) whose ends may cut cells.

    A cell counts in proportion to the part that is covered, as if its contents were
    spread evenly: the table is interpolated linearly along each axis. Of whole counts
    below 2^53 only the fractions are rounded.

    Parameters
    ----------
    table : ndarray of int64 or float64, shape (n1 + 1, ..., nd + 1)
        From `summed_area_table`.
    lows : array-like of float64, shape (m, axes)
        Lower corners, in cells. What lies outside the grid is ignored.
    highs : array-like of float64, shape (m, axes)
        Upper corners. A rectangle with low >= high (or NaN) on an axis is empty.

    Returns
    -------
    ndarray of float64, shape (m,)
        The sums.

    Raises
    ------
    InputError
        If corners and table have different axes.

    Examples
    --------
    >>> table = summed_area_table(np.array([[1, 2, 3], [4, 5, 6]]))
    >>> fractional_rectangle_sums(table, [[0.5, 0]], [[2, 1.5]])
    array([7.5])
    """
    low = as_input(lows, np.float64)
    high = as_input(highs, np.float64)
    flat, sides, strides = _flat_table(table, low, high)
    return _fractional_sums(flat, sides, strides, low, high)


def _flat_table(
    table: AnyArray, lows: AnyArray, highs: AnyArray
) -> tuple[AnyArray, IntArray, IntArray]:
    """Check that rectangles fit a table; return it flat, with its sides and strides."""
    table = np.asarray(table)
    check_corners(lows, highs, table.ndim)
    if table.ndim == 0 or 0 in table.shape:
        raise InputError(
            "a table has one entry more than the grid has cells along each axis; "
            f"received one of shape {table.shape}"
        )
    dtype = np.float64 if table.dtype.kind == "f" else np.int64
    flat = as_input(table, dtype).reshape(-1)
    sides = np.array(table.shape, dtype=np.int64)
    strides = flat.size // np.cumprod(sides)
    return flat, sides - 1, strides


@kernel
def _largest_sum(cells: IntArray) -> int:
    """For each pair of rows find the best stretch of columns in one pass (Kadane)."""
    rows, columns = cells.shape
    best = 0
    totals = np.zeros(columns, dtype=np.int64)
    for top in range(rows):
        totals[:] = 0
        for bottom in range(top, rows):
            high, low = 0, 0
            for column in range(columns):
                totals[column] += cells[bottom, column]
                high = max(high + totals[column], 0)
                low = min(low + totals[column], 0)
                best = max(best, high, -low)
    return best


def largest_rectangle_sum(cells: IntArray) -> int:
    """Return the largest absolute sum over all rectangles of a line or a grid.

    O(rows^2 columns). Sums of all cells must fit int64.
    """
    grid = np.atleast_2d(np.asarray(cells, dtype=np.int64))
    if grid.shape[0] > grid.shape[1]:
        grid = grid.T
    return int(_largest_sum(as_input(grid, np.int64)))


def box_coverage(shape: tuple[int, ...], lows: IntArray, highs: IntArray) -> IntArray:
    """Return how many boxes [low, high) hold each cell. O(boxes * 2^d + cells * d).

    A box is added at its corners, with alternating signs; running sums fill it in.

    Parameters
    ----------
    shape : tuple[int, ...]
        Cells of each axis.
    lows : ndarray of int64, shape (boxes, axes)
        The first cell of each box along each axis.
    highs : ndarray of int64, shape (boxes, axes)
        The cell after its last.

    Returns
    -------
    ndarray of int64, shape `shape`
        The numbers.

    Raises
    ------
    InputError
        If a box leaves the grid.
    """
    _check_boxes(shape, lows, highs)
    wide = tuple(side + 1 for side in shape)
    cells = int(np.prod(wide))
    changes = np.zeros(cells, dtype=np.int64)
    for corner in product((False, True), repeat=len(shape)):
        places = np.where(corner, highs, lows)
        flat = np.ravel_multi_index(tuple(places.T), wide)
        sign = -1 if sum(corner) % 2 else 1
        changes += sign * np.bincount(flat, minlength=cells)
    table = changes.reshape(wide)
    for axis in range(len(shape)):
        np.cumsum(table, axis=axis, out=table)
    return np.ascontiguousarray(table[tuple(slice(side) for side in shape)])


def step_slices(
    shape: tuple[int, ...], step: IntArray
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return the cells that a step leaves inside the grid, and where it takes them.

    Parameters
    ----------
    shape : tuple[int, ...]
        Cells of each axis.
    step : ndarray of int64, shape (axes,)
        How far the step goes along each axis.

    Returns
    -------
    here : tuple[slice, ...]
        Slices of the cells from which the step stays inside.
    there : tuple[slice, ...]
        Slices of the cells that it takes them to.
    """
    here = tuple(
        slice(max(0, -move), side - max(0, move))
        for side, move in zip(shape, step.tolist(), strict=True)
    )
    there = tuple(
        slice(max(0, move), side - max(0, -move))
        for side, move in zip(shape, step.tolist(), strict=True)
    )
    return here, there


def largest_box_separation(
    shape: tuple[int, ...], lows: IntArray, highs: IntArray, steps: IntArray
) -> int:
    """Return the most boxes that hold exactly one of two cells, a step apart.

    The boxes that hold both u and u + step are boxes again, so they are counted for all
    u at once.

    Parameters
    ----------
    shape : tuple[int, ...]
        Cells of each axis.
    lows : ndarray of int64, shape (boxes, axes)
        The first cell of each box along each axis.
    highs : ndarray of int64, shape (boxes, axes)
        The cell after its last.
    steps : ndarray of int64, shape (steps, axes)
        Differences of coordinates; those that leave the grid are passed over.

    Returns
    -------
    int
        The largest number over all steps and cells.

    Raises
    ------
    InputError
        If a box leaves the grid.
    """
    coverage = box_coverage(shape, lows, highs)
    sides = np.array(shape)
    best = 0
    for step in steps:
        if (np.abs(step) >= sides).any():
            continue
        both_lows = np.maximum(lows, lows - step)
        both_highs = np.minimum(highs, highs - step)
        held = (both_lows < both_highs).all(axis=1)
        both = box_coverage(shape, both_lows[held], both_highs[held])
        here, there = step_slices(shape, step)
        apart = coverage[here] + coverage[there] - 2 * both[here]
        best = max(best, int(apart.max()))
    return best


@kernel
def _visit_boxes(
    shape: IntArray,
    first: IntArray,
    last: IntArray,
    first_weight: FloatArray,
    last_weight: FloatArray,
    slots: IntArray,
    rows: IntArray,
    values: FloatArray,
    fill: bool,
) -> None:
    """Visit each cell of each box; count it, or store the box in its column."""
    axes = shape.size
    place = np.empty(axes, dtype=np.int64)
    for box in range(first.shape[0]):
        for axis in range(axes):
            place[axis] = first[box, axis]
        inside = True
        while inside:
            cell = 0
            weight = 1.0
            for axis in range(axes):
                cell = cell * shape[axis] + place[axis]
                if place[axis] == first[box, axis]:
                    weight *= first_weight[box, axis]
                elif place[axis] == last[box, axis]:
                    weight *= last_weight[box, axis]
            if fill:
                rows[slots[cell]] = box
                values[slots[cell]] = weight
            slots[cell] += 1
            axis = axes - 1
            while axis >= 0:
                place[axis] += 1
                if place[axis] <= last[box, axis]:
                    break
                place[axis] = first[box, axis]
                axis -= 1
            inside = axis >= 0


def box_columns(
    shape: tuple[int, ...],
    first: IntArray,
    last: IntArray,
    first_weight: FloatArray,
    last_weight: FloatArray,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the matrix of boxes by cells in compressed columns.

    Parameters
    ----------
    shape : tuple[int, ...]
        Cells of each axis.
    first : ndarray of int64, shape (boxes, axes)
        The first cell of each box along each axis.
    last : ndarray of int64, shape (boxes, axes)
        Its last cell, inclusive. Cells between are held whole.
    first_weight : ndarray of float64, shape (boxes, axes)
        Which part of the first cell is held; it alone counts where first and last are
        one cell.
    last_weight : ndarray of float64, shape (boxes, axes)
        Which part of the last cell is held.

    Returns
    -------
    pointers : ndarray of int64, shape (cells + 1,)
        The entries of cell c begin at ``pointers[c]``.
    rows : ndarray of int64
        The box of each entry.
    values : ndarray of float64
        The part of the cell that the box holds.

    Raises
    ------
    InputError
        If a box leaves the grid, or shapes differ.
    """
    _check_boxes(shape, first, last + 1)
    if not first.shape == last.shape == first_weight.shape == last_weight.shape:
        raise InputError("cells and weights of the boxes must have one shape")
    if (first > last).any():
        raise InputError("each box must hold a cell: its last is not before its first")
    sides = np.array(shape, dtype=np.int64)
    slots = np.zeros(int(np.prod(sides)), dtype=np.int64)
    nothing, empty = np.zeros(0, dtype=np.int64), np.zeros(0)
    weights = (first_weight, last_weight)
    _visit_boxes(sides, first, last, *weights, slots, nothing, empty, False)
    pointers = np.concatenate([[0], np.cumsum(slots)]).astype(np.int64)
    rows = np.empty(pointers[-1], dtype=np.int64)
    values = np.empty(pointers[-1])
    slots = pointers[:-1].copy()
    _visit_boxes(sides, first, last, *weights, slots, rows, values, True)
    return pointers, rows, values


def _check_boxes(shape: tuple[int, ...], lows: IntArray, highs: IntArray) -> None:
    check_corners(lows, highs, len(shape))
    if not ((lows >= 0) & (lows <= highs) & (highs <= np.array(shape))).all():
        raise InputError(
            f"boxes must lie inside the grid of shape {shape}, low before high"
        )
