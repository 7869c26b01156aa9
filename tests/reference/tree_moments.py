"""The summed variance of a workload from the list of all its queries."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .tree_spread import spreads


def implicit_queries(kind, edges):
    """Return every query of the workload as a row over the leaves."""
    cells = edges[-1]
    ranges = {
        "all_ranges": [(a, b) for a in range(cells) for b in range(a + 1, cells + 1)],
        "prefixes": [(0, b) for b in range(1, cells + 1)],
        "identity": [(a, a + 1) for a in range(cells)],
        "bucket_identity": list(pairwise(edges)),
        "total": [(0, cells)],
    }[kind]
    queries = np.zeros((len(ranges), len(edges) - 1))
    for row, (start, end) in zip(queries, ranges, strict=True):
        inside = np.minimum(end, edges[1:]) - np.maximum(start, edges[:-1])
        row[:] = np.maximum(inside, 0) / np.diff(edges)
    return queries


def total_variance(variances, leaves, branching, kind, edges):
    """Return the sum of the variances of all queries."""
    queries = implicit_queries(kind, edges)
    return spreads(queries, variances, np.ones(len(variances)), leaves, branching)[
        0
    ].sum()
