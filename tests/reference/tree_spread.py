"""The noise of each answer from the dense matrix of the fit."""

from __future__ import annotations

import numpy as np

from .tree_inference import coefficients


def spreads(queries, variances, scales, leaves, branching):
    """Return variance, sum of squared scales and largest scale per row of `queries`."""
    noisy = np.isfinite(variances) & (variances > 0)
    weights = queries @ coefficients(variances, leaves, branching)[:, noisy]
    scaled = weights * scales[noisy]
    return (
        (weights**2 * variances[noisy]).sum(axis=1),
        (scaled**2).sum(axis=1),
        np.abs(scaled).max(axis=1, initial=0.0),
    )


def rows_of_ranges(leaves, first, first_fraction, last, last_fraction):
    """Return the matrix (queries, leaves) of ranges with fractional ends."""
    queries = np.zeros((len(first), leaves))
    for row, *ends in zip(
        queries, first, first_fraction, last, last_fraction, strict=True
    ):
        begin, begin_fraction, end, end_fraction = ends
        row[begin : end + 1] = 1.0
        row[end] = end_fraction
        row[begin] = begin_fraction
    return queries


def rows_of_pieces(leaves, pointers, starts, ends, values):
    """Return the matrix (queries, leaves) of piecewise constant queries."""
    queries = np.zeros((len(pointers) - 1, leaves))
    for row in range(len(queries)):
        for piece in range(pointers[row], pointers[row + 1]):
            queries[row, starts[piece] : ends[piece]] = values[piece]
    return queries
