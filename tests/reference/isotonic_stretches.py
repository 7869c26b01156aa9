"""Monotone fits through known points: each stretch by quadratic programming."""

from __future__ import annotations

import numpy as np

from .isotonic import isotonic_between


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
