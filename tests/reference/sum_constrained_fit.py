"""Closest non-negative values with known sums, by bisection on the level."""

from __future__ import annotations

import numpy as np


def non_negative_with_totals(values, parts, totals):
    fitted = np.zeros(len(values))
    for part, total in enumerate(totals):
        inside = parts == part
        if not inside.any():
            continue
        low, high = values[inside].min() - total - 1, values[inside].max()
        for _ in range(200):
            level = (low + high) / 2
            if np.maximum(values[inside] - level, 0).sum() > total:
                low = level
            else:
                high = level
        fitted[inside] = np.maximum(values[inside] - high, 0)
    return fitted
