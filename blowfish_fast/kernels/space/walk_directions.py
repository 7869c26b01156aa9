"""Where a walk through the cells of a plane comes from and goes to at each cell.

Serves ``curve_intervals``: where every step leads to a neighbouring cell, only the
outline of a rectangle has to be looked at.

    0  1        at cell 1 of the walk 0, 1, 3, 2: from the left, on downwards
    2  3
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast.kernels._jit import kernel

NO_STEP = 15
"""Stands for the ends of the walk."""


@kernel
def step_directions(order: IntArray, columns: int) -> AnyArray:
    """Return where the walk comes from and goes to at each cell; nothing if it jumps.

    Four pairs of bits from the lowest on: rows and columns to the cell before, rows and
    columns to the cell behind, 0, 1, 2 for -1, 0, 1. From three columns on the
    difference of two indices gives both. `NO_STEP` stands for the ends of the walk.
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
