"""Policy-specific sensitivity from its definition: a dense matrix, every edge."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from blowfish_fast import workloads


def rows(workload):
    """Return the queries as rows of exact fractions over the cells."""
    shape, cells = workload.domain.shape, workload.domain.size
    unit = [[Fraction(int(u == v)) for v in range(cells)] for u in range(cells)]
    if isinstance(workload, workloads.Identity):
        return unit
    if isinstance(workload, workloads.Total):
        return [[Fraction(1)] * cells]
    if isinstance(workload, workloads.Prefixes):
        return [[Fraction(int(v <= u)) for v in range(cells)] for u in range(cells)]
    if isinstance(workload, workloads.AllRanges):
        bounds = [(a, b) for a in range(cells) for b in range(a + 1, cells + 1)]
        return [[Fraction(int(a <= v < b)) for v in range(cells)] for a, b in bounds]
    if isinstance(workload, workloads.Ranges):
        bounds = zip(workload.starts.tolist(), workload.ends.tolist(), strict=True)
        return [[Fraction(int(a <= v < b)) for v in range(cells)] for a, b in bounds]
    if isinstance(workload, workloads.Sum):
        return [[Fraction(weight) for weight in workload.weights.tolist()]]
    if isinstance(workload, workloads.Linear):
        dense = workload.matrix.toarray().tolist()
        return [[Fraction(value) for value in row] for row in dense]
    places = list(itertools.product(*(range(side) for side in shape)))
    if isinstance(workload, workloads.Marginals):
        kept = [tuple(place[axis] for axis in workload.axes) for place in places]
        table = itertools.product(*(range(shape[axis]) for axis in workload.axes))
        return [[Fraction(int(one == entry)) for one in kept] for entry in table]
    assert isinstance(workload, workloads.Rectangles)
    boxes = zip(workload.starts.tolist(), workload.ends.tolist(), strict=True)
    return [[_held(place, low, high) for place in places] for low, high in boxes]


def _held(place, low, high):
    part = Fraction(1)
    for cell, start, end in zip(place, low, high, strict=True):
        held = min(Fraction(end), cell + 1) - max(Fraction(start), cell)
        part *= max(held, Fraction(0))
    return part


def sensitivity(edges, matrix):
    """Return the largest sum of absolute changes over the edges, as a fraction."""
    worst = Fraction(0)
    for low, high in edges:
        change = sum(abs(row[low] - (0 if high == -1 else row[high])) for row in matrix)
        worst = max(worst, change)
    return worst


def all_range_separation(u, v, cells):
    """Return how many of all ranges hold exactly one of two cells, by counting."""
    bounds = [(a, b) for a in range(cells) for b in range(a + 1, cells + 1)]
    return sum((a <= u < b) != (a <= v < b) for a, b in bounds)


def record_sum(edges, low_ends, high_ends, heaviest):
    """Return the largest weighted change of a record's value along an edge."""
    longest = 0.0
    for u, v in edges:
        if v == -1:
            longest = max(longest, abs(low_ends[u]), abs(high_ends[u]))
        else:
            longest = max(longest, high_ends[v] - low_ends[u])
    return heaviest * longest


def dense(workload):
    """Return the rows as floats."""
    return np.array([[float(value) for value in row] for row in rows(workload)])
