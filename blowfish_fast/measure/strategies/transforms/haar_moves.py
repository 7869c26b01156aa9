"""The dearest move of a record over Haar rows of a grid.

A record in cell u pays the rows that count u; one that moves to v pays those of u and
of v, except for rows that count both with one sign, which keep their value. Along one
axis the rows that count both cells are those above their meeting point, with one sign,
and that of the meeting point itself, with two. A product of such rows keeps its value
if it takes an even number of meeting points:

    price of a move = paid(u) + paid(v) - 2 * (rows in common, even)

Every cell is counted by the total and the top difference of each axis, and it is enough
to tell, axis by axis, whether a move crosses the middle:

    crosses    total +, top difference -         stays    total +, top difference +

Axes of three cells are looked at more closely, since their last cell is counted by
fewer rows than the first two: a move crosses the middle either way, stays in the last
cell or in the first two, and there changes between them or not.
"""

from __future__ import annotations

import math

import numpy as np

from blowfish_fast._support.typing import IntArray

# Ways of a move along one axis: the sign of each of the first rows, 0 if not in common.
STAYS_OR_CROSSES = np.array([[1, 1], [1, -1]])
OF_THREE = np.array([[1, -1, 0], [1, -1, 0], [1, 1, 0], [1, 1, 1], [1, 1, -1]])
# On which side of three cells (first two: 0, last: 1) each of these begins and ends.
BEGINS = np.array([0, 1, 1, 0, 0])
ENDS = np.array([1, 0, 1, 0, 0])
MOST_WAYS = 2**20


def worst_grid_move(weights: IntArray, paid: IntArray) -> int:
    """Return the largest price of a move between two cells, or a bound above.

    `weights` of the rows and `paid`, their sum over the rows that count each cell, have
    the grid's shape. Exact where weights are equal and all sides powers of two or 3.
    With the weights of `Haar` a move across all middles meets it on any other grid, up
    to their rounding: either half of an axis of four cells or more has a cell that pays
    in full.
    """
    close = _looked_at_closely(weights.shape)
    signed = weights[tuple(slice(3 if three else 2) for three in close)]
    common, begins, ends = signed, paid, paid
    for axis, three in enumerate(close):
        if three:
            signs = OF_THREE
            begins, ends = (
                np.maximum.reduceat(part, [0, 2], axis=axis).take(of_way, axis=axis)
                for part, of_way in ((begins, BEGINS), (ends, ENDS))
            )
        else:
            # An axis of one cell has the total alone, and no middle.
            top = signed.shape[axis]
            signs = STAYS_OR_CROSSES[:top, :top]
            begins = begins.max(axis=axis, keepdims=True)
            ends = ends.max(axis=axis, keepdims=True)
        signed = _along(signs, signed, axis)
        common = _along(np.abs(signs), common, axis)
    # Even less odd, and even plus odd: their sum is twice the even part.
    return int((begins + ends - (signed + common)).max())


def _along(signs: IntArray, rows: IntArray, axis: int) -> IntArray:
    """Replace the rows of one axis by their sums for each way of a move."""
    summed: IntArray = np.moveaxis(np.tensordot(signs, rows, (1, axis)), 0, axis)
    return summed


def _looked_at_closely(shape: tuple[int, ...]) -> list[bool]:
    """Mark the axes of three cells, or none if there are very many ways to move."""
    close = [side == 3 for side in shape]
    ways = 5 ** sum(close) * 2 ** sum(side > 1 and side != 3 for side in shape)
    return close if ways <= max(MOST_WAYS, math.prod(shape)) else [False] * len(shape)
