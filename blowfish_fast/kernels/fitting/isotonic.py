"""Isotonic regression by pooling adjacent violators, in O(n).

Each stretch between known points is pooled by itself; clipping the unbounded fit gives
the bounded one (Lemma OR10, ``docs/proofs/ordered.md``).
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import as_input, kernel


@kernel
def _pool(values: FloatArray, fixed: BoolArray, low: float, high: float) -> FloatArray:
    """Return the fit, each pool clipped to its bounds as it is written out."""
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


def isotonic_fit(
    values: AnyArray,
    known: BoolArray | None = None,
    *,
    low: float = -np.inf,
    high: float = np.inf,
) -> FloatArray:
    """Return the closest non-decreasing sequence, within bounds, through known points.

    Values marked in `known` must not decrease and must lie within the bounds.

    >>> isotonic_fit(np.array([3.0, 1.0, 2.0]))
    array([2., 2., 2.])
    >>> known = np.array([False, True, False, False, True, False])
    >>> isotonic_fit(np.array([2, 3, 9, 1, 5, 7]), known, low=0, high=6)
    array([2., 3., 5., 5., 5., 6.])
    """
    values = as_input(values, np.float64)
    if known is None:
        known = np.zeros(values.shape, dtype=np.bool_)
    fixed: BoolArray = as_input(known, np.bool_)
    if values.ndim != 1 or fixed.shape != values.shape:
        raise InputError(
            "a fit needs one row of values and a mark for each; got shapes "
            f"{values.shape} and {fixed.shape}"
        )
    rising = np.concatenate([[low], values[fixed], [high]])
    if not (rising[:-1] <= rising[1:]).all():
        raise InputError(
            "a fit needs low <= high, and known values that do not decrease from the "
            f"one to the other; got {rising[:4]} ..."
        )
    return _pool(values, fixed, float(low), float(high))
