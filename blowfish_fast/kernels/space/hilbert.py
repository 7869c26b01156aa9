"""A walk through every cell of a grid that keeps neighbours together.

In the plane the walk crosses a block from one corner to the next corner along the
block's length. A block is cut into three that are crossed the same way, or, when it is
long, into two; on sides that are powers of two this is Hilbert's curve.

    +-----------------+        +--------+--------+
    | >>>    2    >>> |        |        |        |
    +--------+--------+        | >> 1 >>| >> 2 >>|
    | ^  1   |   3  v |        |        |        |
    S--------+--------E        S--------+--------E

A walk of single steps from corner to corner exists if the length is even or both sides
are odd. All cuts fall at even distances, so the parts inherit this and no step is ever
diagonal. When the longer side is odd and the shorter even, the walk ends at the
opposite corner instead: blocks of even length, then the same for what is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.kernels._jit import helper, kernel

# A part has at most two thirds of the cells of its block, so 2^62 cells nest at most
# 106 deep, with at most two parts waiting at each depth.
_DEEPEST_STACK = 256

MOST_CELLS = 2**40
"""Cells of a grid that a walk is made for; an index takes 8 bytes, together 8 TiB."""

NO_STEP = 15
"""Stands for the ends of a walk in `step_directions`."""


@helper
def _even_half(cells: int) -> int:
    """Return the even number nearest to half of `cells`."""
    return 2 * ((cells + 2) // 4)


@kernel
def _cross_block(
    order: IntArray,
    stack: IntArray,
    step: int,
    first_cell: int,
    forth: int,
    aside: int,
    length: int,
    width: int,
) -> int:
    """Write the walk across one block into `order` from `step` on; return its end.

    The block holds the cells ``first_cell + i * forth + j * aside`` for i < length and
    j < width; the walk starts at (0, 0) and ends at (length - 1, 0). `stack` has room
    for the blocks that wait, five numbers each.
    """
    stack[0, 0], stack[0, 1], stack[0, 2] = first_cell, forth, aside
    stack[0, 3], stack[0, 4] = length, width
    waiting = 1
    while waiting > 0:
        waiting -= 1
        start, along, across = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2]
        long, wide = stack[waiting, 3], stack[waiting, 4]
        if wide == 1:
            for i in range(long):
                order[step + i] = start + i * along
            step += long
        elif wide == 2:
            for i in range(0, long, 2):
                cell = start + i * along
                order[step] = cell
                order[step + 1] = cell + across
                order[step + 2] = cell + across + along
                order[step + 3] = cell + along
                step += 4
        elif 2 * long > 3 * wide:
            cut = _even_half(long)
            far = start + cut * along
            # The stack is read backwards: what comes last on the walk goes in first.
            stack[waiting, 0] = far
            stack[waiting, 3] = long - cut
            stack[waiting + 1, 0] = start
            stack[waiting + 1, 1], stack[waiting + 1, 2] = along, across
            stack[waiting + 1, 3], stack[waiting + 1, 4] = cut, wide
            waiting += 2
        else:
            cut, half = _even_half(wide), long // 2
            return_cell = start + (long - 1) * along + (cut - 1) * across
            stack[waiting, 0] = return_cell
            stack[waiting, 1], stack[waiting, 2] = -across, -along
            stack[waiting, 3], stack[waiting, 4] = cut, long - half
            stack[waiting + 1, 0] = start + cut * across
            stack[waiting + 1, 1], stack[waiting + 1, 2] = along, across
            stack[waiting + 1, 3], stack[waiting + 1, 4] = long, wide - cut
            stack[waiting + 2, 0] = start
            stack[waiting + 2, 1], stack[waiting + 2, 2] = across, along
            stack[waiting + 2, 3], stack[waiting + 2, 4] = cut, half
            waiting += 3
    return step


@kernel
def _plane_walk(
    order: IntArray, stack: IntArray, forth: int, aside: int, length: int, width: int
) -> None:
    """Walk through a grid whose length, with stride `forth`, is its longer side."""
    # No literals, for each of which the crossing would be compiled once more.
    step, start, single = int(0), int(0), int(1)  # noqa: RUF046, UP018
    if length % 2 == 0 or width % 2 == 1:
        _cross_block(order, stack, step, start, forth, aside, length, width)
        return
    if 2 * length <= 3 * width:
        _cross_block(order, stack, step, start, aside, forth, width, length)
        return
    while length > 1:
        if length > width:
            cut = _even_half(length)
            step = _cross_block(order, stack, step, start, forth, aside, cut, width)
            start += cut * forth
            length -= cut
        else:
            cut = _even_half(width)
            step = _cross_block(order, stack, step, start, aside, forth, cut, length)
            start += cut * aside
            width -= cut
    _cross_block(order, stack, step, start, aside, forth, width, single)


@helper
def _rotate(word: int, turns: int, bits: int) -> int:
    """Return `word` with its `bits` bits rotated left by `turns`, 0 to `bits`."""
    return ((word << turns) | (word >> (bits - turns))) & ((1 << bits) - 1)


@kernel
def _cube_walk(sides: IntArray, longest: int, levels: int) -> IntArray:
    """Walk through a grid along the Hilbert curves of a row of cubes.

    The cubes have 2^levels cells to a side and follow one another along the axis
    `longest`. A cube has 2^d parts, half as long in each of the d axes. A corner, and
    the part that lies there, is a word of d bits, one per axis. The walk enters a cube
    at a corner and leaves it at the next corner along its exit axis. Before it is
    turned to the cube's own entry and exit, the walk visits the parts in the order of
    the Gray code, in which one bit changes at a time. In the plane, that is an arch:

        part           0    1    2    3
        part_corner   00   01   11   10     where the part lies: p ^ (p >> 1)
        part_entry    00   00   00   11     at which of its own corners it is entered
        part_axis      0    1    1    0     its exit axis

    The last two are those of C. Hamilton and A. Rau-Chaplin, Compact Hilbert indices,
    Information Processing Letters 105 (2008). Instead of recursion the loop keeps for
    each depth the next part, the entry, the exit axis and the lowest cell of its cube.
    """
    axes = sides.size
    parts = 1 << axes
    part_corner = np.zeros(parts, dtype=np.int64)
    part_entry = np.zeros(parts, dtype=np.int64)
    part_axis = np.zeros(parts, dtype=np.int64)
    for part in range(parts):
        part_corner[part] = part ^ (part >> 1)
        if part > 0:
            before = (part - 1) // 2 * 2
            part_entry[part] = before ^ (before >> 1)
            # Trailing ones of the odd number among part and its predecessor.
            ones = (part - 1) | 1 if part % 2 == 0 else part
            while ones & 1:
                part_axis[part] += 1
                ones >>= 1
            part_axis[part] %= axes

    strides = np.ones(axes, dtype=np.int64)
    for axis in range(axes - 2, -1, -1):
        strides[axis] = strides[axis + 1] * sides[axis + 1]
    order = np.empty(strides[0] * sides[0], dtype=np.int64)
    next_part = np.zeros(levels + 1, dtype=np.int64)
    entry = np.zeros(levels + 1, dtype=np.int64)
    exit_axis = np.zeros(levels + 1, dtype=np.int64)
    corner = np.zeros((levels + 1, axes), dtype=np.int64)
    exit_axis[0] = longest
    step, depth = 0, 0
    while step < order.size:
        part = next_part[depth]
        if part == parts and depth == 0:
            corner[0, longest] += 1 << levels
            next_part[0] = 0
            continue
        if part == parts:
            depth -= 1
            continue
        next_part[depth] = part + 1
        turns = exit_axis[depth] + 1
        place = _rotate(part_corner[part], turns, axes) ^ entry[depth]
        shift = levels - 1 - depth
        cell, outside = 0, False
        for axis in range(axes):
            coordinate = corner[depth, axis] + (((place >> axis) & 1) << shift)
            outside |= coordinate >= sides[axis]
            corner[depth + 1, axis] = coordinate
            cell += coordinate * strides[axis]
        if outside:
            continue
        if shift == 0:
            order[step] = cell
            step += 1
        else:
            depth += 1
            next_part[depth] = 0
            entry[depth] = entry[depth - 1] ^ _rotate(part_entry[part], turns, axes)
            exit_axis[depth] = (exit_axis[depth - 1] + part_axis[part] + 1) % axes
    return order


def hilbert_order(shape: Sequence[int]) -> IntArray:
    """Return the cells of a grid in the order of a space-filling walk.

    Two axes of any sizes are walked in steps to one of the four adjoining cells; equal
    powers of two give Hilbert's curve. From three axes on it is Hilbert's curve on
    cubes, in a row along the longest axis, that just enclose the other axes, restricted
    to the cells that exist: jumps occur where the cubes are not full.

    Parameters
    ----------
    shape : sequence of int
        Cells along each axis, 0 or more.

    Returns
    -------
    ndarray of int64, shape (cells,)
        The C-order index of the cell at each step. Each cell occurs once, cell 0 first.

    Raises
    ------
    InputError
        If a side is negative.
    SizeError
        If the grid has more than `MOST_CELLS` cells.

    Examples
    --------
    >>> hilbert_order((2, 3))
    array([0, 1, 2, 5, 4, 3])
    """
    sides = [int(side) for side in shape]
    if any(side < 0 for side in sides):
        raise InputError(
            f"a grid has 0 or more cells along each axis; received {tuple(sides)}"
        )
    if 0 in sides:
        return np.empty(0, dtype=np.int64)
    if math.prod(sides) > MOST_CELLS:
        raise SizeError(
            f"a walk through a grid holds each of its cells, at most {MOST_CELLS}",
            received=f"a grid of shape {tuple(sides)}",
        )
    wide = [side for side in sides if side > 1]
    if len(wide) < 2:
        return np.arange(wide[0] if wide else 1, dtype=np.int64)
    if len(wide) == 2:
        rows, columns = wide
        order = np.empty(rows * columns, dtype=np.int64)
        stack = np.empty((_DEEPEST_STACK, 5), dtype=np.int64)
        if rows >= columns:
            _plane_walk(order, stack, columns, 1, rows, columns)
        else:
            _plane_walk(order, stack, 1, columns, columns, rows)
        return order
    longest = wide.index(max(wide))
    second = max(wide[:longest] + wide[longest + 1 :])
    levels = (second - 1).bit_length()
    return _cube_walk(np.array(wide, dtype=np.int64), longest, levels)


@kernel
def step_directions(order: IntArray, columns: int) -> AnyArray:
    """Return where a walk in the plane comes from and goes to; nothing if it jumps.

    Each cell gets one byte of four pairs of bits. A pair is 0, 1 or 2 for a difference
    of -1, 0 or 1. The walk 0, 1, 2, 5, 4, 3 at cell 2, which it enters from the left
    and leaves downwards:

        0  1  2     bits 0-1   row of the cell before, less its own        0    1
        3  4  5     bits 2-3   column of the cell before, less its own    -1    0
                    bits 4-5   row of the cell behind, less its own        1    2
                    bits 6-7   column of the cell behind, less its own     0    1
                    together   1 + 0 * 4 + 2 * 16 + 1 * 64 = 97

    The two ends of the walk have `NO_STEP`, four bits, in place of two pairs. With
    three columns or more, the difference of two indices tells rows and columns apart.

    Parameters
    ----------
    order : ndarray of int64, shape (cells,)
        C-order index of the cell at each step.
    columns : int
        Cells of a row, at least 3.

    Returns
    -------
    ndarray of uint8, shape (cells,)
        The directions by cell; empty if some step does not lead to one of the eight
        neighbours.
    """
    directions = np.zeros(order.size, dtype=np.uint8)
    backward = NO_STEP
    column = order[0] % columns
    for step in range(order.size - 1):
        cell = order[step]
        ahead = order[step + 1] - cell
        down = int(ahead > 1) - int(ahead < -1)
        right = ahead - down * columns
        column += right
        if right < -1 or right > 1 or column < 0 or column >= columns:
            return directions[:0]
        forward = (1 + down) | (1 + right) << 2
        directions[cell] = backward | forward << 4
        backward = (1 - down) | (1 - right) << 2
    directions[order[order.size - 1]] = backward | NO_STEP << 4
    return directions
