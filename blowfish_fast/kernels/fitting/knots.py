"""Totals that are straight between knots: least squares, and what each knot is worth.

Serves the fit of running totals of data that are even between few places. Every total
lies on the line between the two knots around it, so the normal equations of the heights
at the knots are tridiagonal:

    totals     . . o . . . . o . . x        o free knot, x exact total
    diagonal       a         a     1        sums of squared parts on either side
    beside           b         0            sums of products of the two parts

Elimination from either end gives heights and the inverse next to its diagonal, and with
it the squared error that a knot saves, all others free to move. O(knots).
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray
from blowfish_fast.kernels._jit import kernel


@kernel
def knot_heights(
    diagonal: FloatArray,
    beside: FloatArray,
    right: FloatArray,
    lengths: FloatArray,
    fixed: BoolArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the height of each knot, and the squared error that it saves.

    `diagonal` and `right` are those of the normal equations; at a `fixed` knot, as the
    last one is, `right` holds its height. Entry i of `beside` couples knot i with the
    one before it; `lengths` are the cells from there, or from the start, to each knot.
    """
    count = diagonal.size
    pivots, heights = diagonal.copy(), right.copy()
    for knot in range(count):
        if fixed[knot]:
            continue
        if knot > 0:
            if fixed[knot - 1]:
                heights[knot] -= beside[knot] * right[knot - 1]
            else:
                ratio = beside[knot] / pivots[knot - 1]
                pivots[knot] -= ratio * beside[knot]
                heights[knot] -= ratio * heights[knot - 1]
        if fixed[knot + 1]:
            heights[knot] -= beside[knot + 1] * right[knot + 1]
    for knot in range(count - 2, -1, -1):
        if not fixed[knot]:
            if not fixed[knot + 1]:
                heights[knot] -= beside[knot + 1] * heights[knot + 1]
            heights[knot] /= pivots[knot]
    # The inverse: on its diagonal, and beside it towards the knot before.
    inverse, before = np.zeros(count), np.zeros(count)
    for knot in range(count - 1, -1, -1):
        if fixed[knot]:
            continue
        inverse[knot] = 1.0 / pivots[knot]
        if not fixed[knot + 1]:
            ratio = beside[knot + 1] / pivots[knot]
            inverse[knot] += ratio * ratio * inverse[knot + 1]
            before[knot + 1] = -ratio * inverse[knot + 1]
    gains = np.full(count, np.inf)
    for knot in range(count):
        if fixed[knot]:
            continue
        part = lengths[knot] / (lengths[knot] + lengths[knot + 1])
        low = heights[knot - 1] if knot > 0 else 0.0
        bend = heights[knot] - low - part * (heights[knot + 1] - low)
        spread = inverse[knot] + part * part * inverse[knot + 1]
        spread -= 2.0 * part * before[knot + 1]
        if knot > 0:
            rest = 1.0 - part
            spread += rest * rest * inverse[knot - 1] - 2.0 * rest * before[knot]
            if inverse[knot] > 0.0:
                far = before[knot] * before[knot + 1] / inverse[knot]
                spread += 2.0 * part * rest * far
        gains[knot] = bend * bend / spread
    return heights, gains
