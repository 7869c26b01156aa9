"""Sum-constrained fit: lower all values of a part by one number and cut below 0."""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel


@kernel
def _lower(
    values: FloatArray, order: IntArray, parts: IntArray, totals: FloatArray
) -> FloatArray:
    fitted = np.empty(values.size)
    begin = 0
    while begin < order.size:
        part = parts[order[begin]]
        end = begin
        # Largest first: as long as the next value stays above the level, it counts.
        running = 0.0
        level = -np.inf
        while end < order.size and parts[order[end]] == part:
            value = values[order[end]]
            if value > level:
                running += value
                level = (running - totals[part]) / (end - begin + 1)
            end += 1
        for place in range(begin, end):
            fitted[order[place]] = max(values[order[place]] - level, 0.0)
        begin = end
    return fitted


def non_negative_with_totals(
    values: AnyArray, parts: IntArray, totals: AnyArray
) -> FloatArray:
    """Return the closest values, none negative, that add up to the total of each part.

    Closest in the sum of squares; O(n log n). Parts are numbered from 0.

    >>> parts = np.zeros(3, dtype=np.int64)
    >>> non_negative_with_totals(np.array([5.0, 3.0, -1.0]), parts, np.array([6.0]))
    array([4., 2., 0.])
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    totals = np.ascontiguousarray(totals, dtype=np.float64)
    parts = np.ascontiguousarray(parts, dtype=np.int64)
    if values.ndim != 1 or parts.shape != values.shape or totals.ndim != 1:
        raise InputError(
            "each value needs its part and each part its total; received shapes "
            f"{values.shape}, {parts.shape} and {totals.shape}"
        )
    if values.size and (parts.min() < 0 or parts.max() >= totals.size):
        raise InputError(
            f"parts are numbered from 0 to {totals.size - 1}; received {parts.min()} "
            f"to {parts.max()}"
        )
    if not (totals >= 0).all():
        raise InputError("values that are not negative have no negative total")
    order = np.argsort(-values, kind="stable")
    if totals.size > 1:
        order = order[np.argsort(parts[order], kind="stable")]
    return _lower(values, order, parts, totals)
