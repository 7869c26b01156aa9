"""Penalised piecewise-linear fit from the definition: every cover by windows."""

from __future__ import annotations

import numpy as np


def line_through(values):
    """Return the least-squares line through a window, at its places."""
    if len(values) <= 2:
        return np.asarray(values, dtype=float)
    places = np.arange(len(values))
    slope, level = np.polynomial.polynomial.polyfit(places, values, 1)[::-1]
    return level + slope * places


def window_cost(values, penalty):
    error = ((line_through(values) - values) ** 2).sum()
    return error + penalty * (1 if len(values) == 1 else 2)


def cover_cost(values, cover, penalty):
    """Return the cost of a list of window lengths."""
    total, start = 0.0, 0
    for length in cover:
        total += window_cost(values[start : start + length], penalty)
        start += length
    return total


def covers(size):
    """Yield every list of powers of two that add up to `size`."""
    if size == 0:
        yield []
    length = 1
    while length <= size:
        for rest in covers(size - length):
            yield [length, *rest]
        length *= 2


def cheapest_cost(values, penalty):
    return min(cover_cost(values, cover, penalty) for cover in covers(len(values)))
