"""Monotone fits from the definition: least-squares programmes with bounds."""

from __future__ import annotations

import numpy as np
from scipy.optimize import lsq_linear


def isotonic_increasing(values):
    """Return the fit by the min-max formula over all windows around each place."""
    size = len(values)
    prefix = np.concatenate([[0.0], np.cumsum(values)])
    return np.array(
        [
            max(
                min((prefix[end] - prefix[start]) / (end - start) for end in ends)
                for start in range(place + 1)
            )
            for place in range(size)
            for ends in [range(place + 1, size + 1)]
        ]
    )


def isotonic_between(values, low, high):
    """Return the bounded fit by quadratic programming.

    The unknowns are the first value and the steps, all scaled to be bounded below; the
    upper bound on the last value is met by trying each number of values held at it.
    """
    size = len(values)
    best, distance = None, np.inf
    for held in range(size + 1):
        # The last `held` values sit at the upper bound, the others climb from `low`.
        free = size - held
        fitted = np.full(size, float(high))
        if free:
            steps = np.tril(np.ones((free, free)))
            solved = lsq_linear(
                steps, np.asarray(values[:free]) - low, (0, np.inf), tol=1e-12
            )
            fitted[:free] = low + steps @ solved.x
        if free == 0 or fitted[free - 1] <= high + 1e-9:
            miss = ((fitted - values) ** 2).sum()
            if miss < distance:
                best, distance = fitted, miss
    return best


def isotonic_through(values, fixed, low, high):
    """Return the fit, stretch by stretch between known points."""
    values = np.asarray(values, dtype=float)
    fitted = values.copy()
    ends = [*np.flatnonzero(fixed).tolist(), len(values)]
    start, floor = 0, low
    for end in ends:
        ceiling = values[end] if end < len(values) else high
        if start < end:
            fitted[start:end] = isotonic_between(values[start:end], floor, ceiling)
        start, floor = end + 1, ceiling
    return fitted
