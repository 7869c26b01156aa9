"""Boxes over the cells of a grid, cell by cell."""

from __future__ import annotations

import itertools

import numpy as np


def holds(low, high, cell):
    return all(a <= c < b for a, c, b in zip(low, cell, high, strict=True))


def coverage(shape, lows, highs):
    cells = itertools.product(*(range(side) for side in shape))
    boxes = list(zip(lows, highs, strict=True))
    counts = [sum(holds(low, high, cell) for low, high in boxes) for cell in cells]
    return np.array(counts).reshape(shape)


def largest_separation(shape, lows, highs, steps):
    """Return the most boxes with exactly one of two cells that are a step apart."""
    cells = set(itertools.product(*(range(side) for side in shape)))
    boxes = list(zip(lows, highs, strict=True))
    best = 0
    for cell in cells:
        for step in steps:
            there = tuple(int(a + b) for a, b in zip(cell, step, strict=True))
            if there in cells:
                apart = sum(
                    holds(low, high, cell) != holds(low, high, there)
                    for low, high in boxes
                )
                best = max(best, apart)
    return best


def matrix(shape, first, last, first_weight, last_weight):
    """Return boxes by cells; only the end slabs of a box are held in part."""
    cells = list(itertools.product(*(range(side) for side in shape)))
    dense = np.zeros((len(first), len(cells)))
    for box, column in itertools.product(range(len(first)), range(len(cells))):
        weight = 1.0
        for axis, place in enumerate(cells[column]):
            if place == first[box][axis]:
                weight *= first_weight[box][axis]
            elif place == last[box][axis]:
                weight *= last_weight[box][axis]
            elif not first[box][axis] < place < last[box][axis]:
                weight = 0.0
        dense[box, column] = weight
    return dense
