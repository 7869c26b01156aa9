"""How many boxes hold each cell of a grid, or exactly one of two cells a step apart.

Serves policy-specific sensitivity of rectangle workloads. A box is added at its
corners, with alternating signs, and running sums along each axis fill it in:

    corners    + . -         sums    1 1 .
               . . .                 1 1 .
               - . +                 . . .

The boxes that hold both u and u + step are boxes again, so those that hold exactly
one are counted for all u at once.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel


def box_coverage(shape: tuple[int, ...], lows: IntArray, highs: IntArray) -> IntArray:
    """Return how many boxes [low, high) hold each cell. O(boxes * 2^d + cells * d)."""
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
    """Return the cells that a step leaves inside the grid, and where it takes them."""
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

    Steps are differences of coordinates; those that leave the grid are passed over.
    O(steps * (boxes * 2^d + cells * d)).
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
def _walk(
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
    """Return pointers, rows and values of the matrix of boxes by cells, in columns.

    `first` and `last` (boxes, d) are cells, both inclusive; the weights say which part
    of them is held. Cells between are held whole; the first weight alone counts where
    first and last are one cell.
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
    _walk(sides, first, last, *weights, slots, nothing, empty, False)
    pointers = np.concatenate([[0], np.cumsum(slots)]).astype(np.int64)
    rows = np.empty(pointers[-1], dtype=np.int64)
    values = np.empty(pointers[-1])
    slots = pointers[:-1].copy()
    _walk(sides, first, last, *weights, slots, rows, values, True)
    return pointers, rows, values


def _check_boxes(shape: tuple[int, ...], lows: IntArray, highs: IntArray) -> None:
    fits = lows.ndim == 2 and lows.shape == highs.shape and lows.shape[1] == len(shape)
    if fits and lows.size:
        inside = (lows >= 0) & (lows <= highs) & (highs <= np.array(shape))
        fits = bool(inside.all())
    if not fits:
        raise InputError(
            f"boxes must have corners of shape (boxes, {len(shape)}) inside the grid "
            f"of shape {shape}, low before high"
        )
