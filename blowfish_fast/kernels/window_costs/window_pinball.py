"""Pinball cost of every window: the least tilted distance of its cells from a centre.

Serves the partition with quantile costs: what a cell has above the centre weighs t,
what it lacks below weighs 1 - t, and the best centre is the t-quantile. One record
moves such a cost by at most 1 in all, four times less than it moves two deviations.

    cells       4  0  9  1        t = 3/4: the centre is the third smallest, 4
    sorted      0  1 [4] 9        cost  3/4 * (9 - 4)  +  1/4 * (4 + 3)  =  22/4

Windows of up to 32 cells are kept sorted as they slide: the cell that leaves is
overwritten, and its successor moves to its place. Longer ones run through
`window_slide` with a pointer right above the centre.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .count_grid import fixed_point
from .window_slide import (
    ABOVE,
    CHUNK,
    EXACT_PINBALL,
    LENGTH,
    all_windows,
    finish_windows,
    window_recipe,
)

SHORT = 32
LARGEST_DENOMINATOR = 1024


@kernel
def _replace_sorted(ordered: IntArray, leaving: int, entering: int) -> None:
    """Put `entering` for one copy of `leaving` in a sorted window."""
    place = 0
    while ordered[place] != leaving:
        place += 1
    if entering > leaving:
        while place + 1 < ordered.size and ordered[place + 1] < entering:
            ordered[place] = ordered[place + 1]
            place += 1
    else:
        while place > 0 and ordered[place - 1] > entering:
            ordered[place] = ordered[place - 1]
            place -= 1
    ordered[place] = entering


@kernel
def short_pinball(
    values: IntArray, first: int, recipe: IntArray, scratch: IntArray, row: IntArray
) -> None:
    """Cost the windows that end at `first`, `first` + 1, ... until `row` is full.

    `first` is at least the length, which is at most `SHORT`; `scratch` has room for two
    rows of CHUNK numbers.
    """
    length = recipe[LENGTH]
    above = recipe[ABOVE]
    centre_at = length - above - 1
    ordered = np.sort(values[first - length : first])
    total = ordered.sum()
    for begun in range(0, row.size, CHUNK):
        size = min(CHUNK, row.size - begun)
        whole = scratch[0, :size]
        part = scratch[1, :size]
        for i in range(size):
            end = first + begun + i
            if begun + i > 0:
                leaving = values[end - 1 - length]
                entering = values[end - 1]
                if leaving != entering:
                    _replace_sorted(ordered, leaving, entering)
                    total += entering - leaving
            high = np.int64(0)
            for place in range(centre_at + 1, length):
                high += ordered[place]
            centre = ordered[centre_at]
            whole[i] = high - above * centre
            part[i] = total - centre * length
        finish_windows(whole, part, recipe, row[begun : begun + size])


def check_quantile(numerator: int, denominator: int) -> None:
    """Refuse a pinball level outside 0 .. 1, or with a large denominator."""
    if not (0 <= numerator <= denominator and 1 <= denominator <= LARGEST_DENOMINATOR):
        raise InputError(
            f"a quantile is a fraction from 0 to 1 in parts of at most "
            f"{LARGEST_DENOMINATOR}: got {numerator}/{denominator}. "
            "Round it to a smaller denominator."
        )


def window_pinball_costs(
    x: AnyArray, length: int, numerator: int, denominator: int
) -> IntArray:
    """Return `denominator` times the pinball cost of every window, exactly.

    The cost of level t = numerator / denominator is the minimum over c of the sum of
    ``t * max(x_j - c, 0) + (1 - t) * max(c - x_j, 0)``. O(n) for short windows, else
    O(n log n) at worst.

    Parameters
    ----------
    x : (n,) int64
        Integers whose windows sum to less than 2^60 above the smallest.
    length : int
        From 1 to n.
    numerator, denominator : int
        The level, from 0 to 1.

    Returns
    -------
    (n - length + 1,) int64
        The entry i belongs to the window [i, i + length).

    Examples
    --------
    >>> window_pinball_costs(np.array([4, 0, 9, 1, 1]), 4, 3, 4)
    array([22, 25])
    """
    x = np.asarray(x)
    if x.ndim != 1 or not 1 <= length <= x.size:
        raise InputError(
            "a window needs one axis of cells and a length from 1 to their number: "
            f"got shape {x.shape} and length {length}. Choose a shorter window."
        )
    check_quantile(numerator, denominator)
    values, exponent = fixed_point(x, length * denominator)
    if exponent != 0:
        raise InputError(
            "exact pinball costs need whole numbers whose sums fit 64 bits: "
            "got fractions or larger values. Scale or clip the cells."
        )
    recipe = window_recipe(EXACT_PINBALL, length, quantile=(numerator, denominator))
    if length > SHORT:
        return all_windows(values, recipe)
    row = np.empty(x.size - length + 1, dtype=np.int64)
    short_pinball(values, length, recipe, np.empty((2, CHUNK), dtype=np.int64), row)
    return row
