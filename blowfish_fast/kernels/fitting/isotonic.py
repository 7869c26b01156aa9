"""Least-squares fit of a non-decreasing sequence.

Serves the ordered mechanisms: noisy prefix sums must not decrease, and where the total
is public they stay between zero and it. Pools of equal value form a stack; a pool that
falls below its elder is merged with it.

    values   3  1  2      pools  [3] -> [2 2] -> [2 2][2]
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel


@kernel
def _pooled(values: FloatArray, low: float, high: float) -> FloatArray:
    """Return the fit, each pool clipped to the bounds as it is written out."""
    level = np.empty(values.size)
    width = np.empty(values.size, dtype=np.int64)
    top = -1
    for value in values:
        pool = value
        members = 1
        while top >= 0 and level[top] > pool:
            merged = width[top] + members
            pool += (level[top] - pool) * (width[top] / merged)
            members = merged
            top -= 1
        top += 1
        level[top] = pool
        width[top] = members
    fitted = np.empty(values.size)
    end = 0
    for number in range(top + 1):
        start = end
        end += width[number]
        fitted[start:end] = min(max(level[number], low), high)
    return fitted


def isotonic_between(values: AnyArray, low: float, high: float) -> FloatArray:
    """Return the closest non-decreasing sequence within ``[low, high]``, in O(n).

    Clipping the unbounded fit gives it: clipped pools stay in order, and within a pool
    the squared distance grows on both sides of the pool's mean.

    Parameters
    ----------
    values : (n,) float64 or int64
        Any sequence.
    low, high : float
        Bounds, ``low <= high``; infinite ones do not bind.

    Returns
    -------
    (n,) float64

    Examples
    --------
    >>> isotonic_between(np.array([-1.0, 3.0, 1.0, 9.0]), 0, 8)
    array([0., 2., 2., 8.])
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.ndim != 1 or not low <= high:
        raise InputError(
            "a bounded fit needs one row of values and low <= high, got shape "
            f"{values.shape}, low={low} and high={high}"
        )
    return _pooled(values, float(low), float(high))


def isotonic_increasing(values: AnyArray) -> FloatArray:
    """Return the closest non-decreasing sequence, in O(n).

    Parameters
    ----------
    values : (n,) float64 or int64
        Any sequence.

    Returns
    -------
    (n,) float64

    Examples
    --------
    >>> isotonic_increasing(np.array([3.0, 1.0, 2.0]))
    array([2., 2., 2.])
    """
    return isotonic_between(values, -np.inf, np.inf)
