"""Noise on edges as queries see it: dense matrices."""

from __future__ import annotations

import numpy as np


def incidence(heads, tails, cells):
    """Return the (cells, edges) matrix that adds draws to heads, takes from tails."""
    matrix = np.zeros((cells, len(heads)))
    for edge, (head, tail) in enumerate(zip(heads, tails, strict=True)):
        matrix[head, edge] += 1
        if tail >= 0:
            matrix[tail, edge] -= 1
    return matrix


def cut_variance(queries, heads, tails, variances, widths):
    """Return the five moments of each dense query, as the kernel does."""
    amounts = queries @ incidence(heads, tails, queries.shape[1])
    weighted = np.abs(amounts) * widths
    largest = weighted.max(axis=1, initial=0.0)
    # The scale of the row with the largest part: the smaller one of equals.
    own = np.where((weighted == largest[:, None]) & (weighted > 0), widths, np.inf)
    width = np.where(largest > 0, own.min(axis=1, initial=np.inf), 0.0)
    return np.stack(
        [
            amounts**2 @ variances,
            (weighted**2).sum(axis=1),
            largest,
            (amounts**2).sum(axis=1),
            width,
        ]
    )
