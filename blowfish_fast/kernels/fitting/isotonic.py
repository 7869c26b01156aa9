"""Closest values that never decrease, or that are not negative and have given sums.

Isotonic regression, in O(n):

    values   2 [3]  9  1 [5]  7         [ ] known; bounds 0 .. 6
    fitted   2 [3]  5  5 [5]  6         each stretch pooled by itself, then clipped

Pools of equal value form a stack. A pool that falls below the one before it is merged
with it (pool adjacent violators), and a known point empties the stack. Clipping the
unbounded fit gives the bounded one: within a pool the squared distance grows from its
mean on (Lemma OR10, ``docs/proofs/ordered.md``).

A sum-constrained fit lowers all values of a part by one number and cuts below 0:

    values   5  3  -1    total 6        lowered by 1:  4  2  0
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import as_input, refuse_infinite, whole_numbers
from blowfish_fast.kernels._jit import kernel


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
        is_fixed = place == size or fixed[place]
        if not is_fixed:
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

    Parameters
    ----------
    values : ndarray, shape (n,)
        The sequence.
    known : ndarray of bool, shape (n,), optional
        Where the value is known. Known values do not decrease and lie within the
        bounds. None is known by default.
    low : float, default -np.inf
        The lower bound; an infinite one does not bind.
    high : float, default np.inf
        The upper bound, not below `low`.

    Returns
    -------
    ndarray of float64, shape (n,)
        The sequence with the least sum of squared differences from `values`.

    Raises
    ------
    InputError
        If shapes differ, or known values fall or lie outside the bounds.

    Examples
    --------
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
    refuse_infinite(values, "values")
    rising = np.concatenate([[low], values[fixed], [high]])
    if not (rising[:-1] <= rising[1:]).all():
        raise InputError(
            "a fit needs low <= high, and known values that do not decrease from the "
            f"one to the other; got {rising[:4]} ..."
        )
    return _pool(values, fixed, float(low), float(high))


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

    Closest means the least sum of squares. It takes O(n log n).

    Parameters
    ----------
    values : ndarray, shape (n,)
        The values.
    parts : ndarray of int64, shape (n,)
        The part of each value, numbered from 0.
    totals : ndarray, shape (parts,)
        What each part has to add up to, not negative.

    Returns
    -------
    ndarray of float64, shape (n,)
        The closest values.

    Raises
    ------
    InputError
        If shapes differ, a part has no total, or a total is negative.

    Examples
    --------
    >>> parts = np.zeros(3, dtype=np.int64)
    >>> non_negative_with_totals(np.array([5.0, 3.0, -1.0]), parts, np.array([6.0]))
    array([4., 2., 0.])
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    totals = np.ascontiguousarray(totals, dtype=np.float64)
    parts = np.ascontiguousarray(whole_numbers(parts))
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
    refuse_infinite(totals, "totals")
    if not (totals >= 0).all():
        raise InputError("values that are not negative have no negative total")
    refuse_infinite(values, "values")
    order = np.argsort(-values, kind="stable")
    if totals.size > 1:
        order = order[np.argsort(parts[order], kind="stable")]
    return _lower(values, order, parts, totals)
