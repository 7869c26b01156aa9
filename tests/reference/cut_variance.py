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
    # One edge more, without noise: some graphs have none.
    weighted = np.hstack([weighted, np.zeros((len(weighted), 1))])
    return np.stack(
        [
            amounts**2 @ variances,
            (weighted**2).sum(axis=1),
            weighted.max(axis=1, initial=0.0),
            (amounts**2).sum(axis=1),
            np.append(widths, 0.0)[weighted.argmax(axis=1)],
        ]
    )
