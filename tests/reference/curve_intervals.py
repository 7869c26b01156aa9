"""Rectangles along a walk, cell by cell from the definition."""

from __future__ import annotations

from itertools import groupby

import numpy as np


def cell_weights(shape, low, high):
    """Return the part of each cell that lies in [low, high), as an array of `shape`."""
    weights = np.ones(())
    for side, start, end in zip(shape, low, high, strict=True):
        cells = np.arange(side)
        covered = np.minimum(end, cells + 1.0) - np.maximum(start, cells)
        weights = np.multiply.outer(weights, np.maximum(0.0, covered))
    return weights


def rectangle_intervals(order, shape, low, high):
    """Return (start, end, weight) of each longest run of equal weight, 0 left out."""
    along = cell_weights(shape, low, high).reshape(-1)[order]
    runs, start = [], 0
    for weight, group in groupby(along.tolist()):
        end = start + len(list(group))
        if weight:
            runs.append((start, end, weight))
        start = end
    return runs


def zigzag_order(rows, columns):
    """Return the cells diagonal by diagonal, back and forth, always to a neighbour."""
    cells = [(i, j) for i in range(rows) for j in range(columns)]
    cells.sort(key=lambda c: (sum(c), c[0] if sum(c) % 2 else c[1]))
    return np.array([i * columns + j for i, j in cells])


def snake_order(rows, columns):
    """Return the cells row by row, every other row backwards."""
    order = np.arange(rows * columns).reshape(rows, columns)
    order[1::2] = order[1::2, ::-1].copy()
    return order.reshape(-1)
