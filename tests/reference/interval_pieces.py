"""Queries over cells as dense rows of exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise


def cell_rows(pointers, starts, ends, values, cells):
    """Return each query as a list of exact coefficients, one per cell."""
    rows = []
    for row in range(len(pointers) - 1):
        coefficients = [Fraction(0)] * cells
        for interval in range(pointers[row], pointers[row + 1]):
            for cell in range(starts[interval], ends[interval]):
                coefficients[cell] += Fraction(float(values[interval]))
        rows.append(coefficients)
    return rows


def bucket_rows(rows, edges):
    """Return the averages of the coefficients over each bucket."""
    buckets = [(int(a), int(b)) for a, b in pairwise(edges)]
    return [[sum(row[a:b]) / (b - a) for a, b in buckets] for row in rows]
