"""Sums over rectangles, cell by cell, and by interpolation of the table."""

from __future__ import annotations

from itertools import product

import numpy as np

from .curve_intervals import cell_weights


def summed_area_table(counts):
    """Return the sum of all cells before each corner, one slice at a time."""
    table = np.zeros([side + 1 for side in counts.shape], dtype=counts.dtype)
    for corner in np.ndindex(table.shape):
        table[corner] = counts[tuple(slice(0, end) for end in corner)].sum()
    return table


def rectangle_sums(counts, lows, highs):
    """Return the sum of the cells of each rectangle, one slice at a time."""
    sums = []
    for low, high in zip(lows, highs, strict=True):
        box = tuple(slice(max(0, a), max(0, b)) for a, b in zip(low, high, strict=True))
        sums.append(counts[box].sum())
    return np.array(sums)


def fractional_rectangle_sums(counts, lows, highs):
    """Return the sum of each rectangle from the covered part of every cell."""
    return np.array(
        [
            (cell_weights(counts.shape, low, high) * counts).sum()
            for low, high in zip(lows, highs, strict=True)
        ]
    )


def interpolated_sum(table, low, high):
    """Return the signed sum of the linearly interpolated table at the corners."""
    total = 0.0
    for chosen in product((0, 1), repeat=table.ndim):
        corner = [(low, high)[end][axis] for axis, end in enumerate(chosen)]
        value = table.astype(float)
        for place, side in zip(corner, table.shape, strict=True):
            floor = min(int(place), side - 2)
            value = value[floor] + (place - floor) * (value[floor + 1] - value[floor])
        total += (-1) ** (table.ndim - sum(chosen)) * value
    return total
