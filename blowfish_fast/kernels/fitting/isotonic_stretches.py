"""Least-squares fit of a non-decreasing sequence that passes through known points.

Serves the ordered mechanisms under policies that split the line: the number of records
up to the end of each part is public, so the prefix sums in between climb from one known
value to the next.

    values   2 [3]  9  1 [5]  7         [ ] known; bounds 0 .. 6
    fitted   2 [3]  5  5 [5]  6         each stretch pooled by itself, then clipped

Pools of equal value form a stack, as in ``kernels.isotonic``; a known point empties it.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel


@kernel
def _through(
    values: FloatArray, fixed: BoolArray, low: float, high: float
) -> FloatArray:
    size = values.size
    fitted = np.empty(size)
    level = np.empty(size)
    width = np.empty(size, dtype=np.int64)
    top = -1
    written = 0
    floor = low
    for place in range(size + 1):
        known = place == size or fixed[place]
        if not known:
            pool = values[place]
            members = 1
            while top >= 0 and level[top] > pool:
                merged = width[top] + members
                pool += (level[top] - pool) * (width[top] / merged)
                members = merged
                top -= 1
            top += 1
            level[top] = pool
            width[top] = members
            continue
        ceiling = high if place == size else values[place]
        for number in range(top + 1):
            end = written + width[number]
            fitted[written:end] = min(max(level[number], floor), ceiling)
            written = end
        top = -1
        if place < size:
            fitted[place] = ceiling
            written = place + 1
            floor = ceiling
    return fitted


def isotonic_through(
    values: AnyArray, fixed: BoolArray, low: float, high: float
) -> FloatArray:
    """Return the closest non-decreasing sequence through the known points, in O(n).

    Within each stretch between known points it is the isotonic fit, clipped to the
    values at both ends, which is the closest one within these bounds.

    Parameters
    ----------
    values : (n,) float64 or int64
        Any sequence.
    fixed : (n,) bool
        Where the value is known; known values do not decrease and lie in the bounds.
    low, high : float
        Bounds before the first and after the last known point; infinite ones do not
        bind.

    Returns
    -------
    (n,) float64

    Examples
    --------
    >>> known = np.array([False, True, False, False, True, False])
    >>> isotonic_through(np.array([2, 3, 9, 1, 5, 7]), known, 0, 6)
    array([2., 3., 5., 5., 5., 6.])
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    fixed = np.ascontiguousarray(fixed, dtype=np.bool_)
    if values.ndim != 1 or fixed.shape != values.shape:
        raise InputError(
            "a fit needs one row of values and a mark for each; got shapes "
            f"{values.shape} and {fixed.shape}"
        )
    known = np.concatenate([[low], values[fixed], [high]])
    if not (known[:-1] <= known[1:]).all():
        raise InputError(
            "known values must not decrease from the lower to the upper bound; got "
            f"{known[:4]} ..."
        )
    return _through(values, fixed, float(low), float(high))
