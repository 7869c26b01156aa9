"""Answers over conditions, cell by cell, from the definition."""

from __future__ import annotations

import itertools


def covered(low, high, start, end):
    """Return the part of [start, end) that lies in [low, high), and its middle."""
    first, last = max(low, start), min(high, end)
    if first >= last:
        return 0.0, 0.0
    return (last - first) / (end - start), (first + last) / 2


def brute_force(estimate, axes, conditions, value_axis=None):
    """Return count, sum, least and largest value.

    `axes` lists, per axis, the (start, end) of every cell; `conditions` lists, per
    axis, disjoint (low, high) ranges of values.
    """
    count = total = 0.0
    values = []
    for cell in itertools.product(*(range(len(axis)) for axis in axes)):
        parts = []
        for axis, place in enumerate(cell):
            pieces = [
                covered(low, high, *axes[axis][place]) for low, high in conditions[axis]
            ]
            parts.append([one for one in pieces if one[0] > 0])
        for pieces in itertools.product(*parts):
            share = 1.0
            for part, _ in pieces:
                share *= part
            count += share * estimate[cell]
            if value_axis is not None:
                value = pieces[value_axis][1]
                total += share * value * estimate[cell]
                values.append(value)
    return count, total, min(values, default=0.0), max(values, default=0.0)
