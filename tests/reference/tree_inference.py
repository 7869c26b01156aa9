"""Least squares on a tree from the definition: dense matrices, exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def node_rows(leaves, branching):
    """Return the 0/1 matrix (nodes, leaves): which leaves each node adds up."""
    level = [[leaf] for leaf in range(leaves)]
    nodes = list(level)
    while len(level) > 1:
        level = [
            [leaf for node in level[first : first + branching] for leaf in node]
            for first in range(0, len(level), branching)
        ]
        nodes += level
    rows = np.zeros((len(nodes), leaves))
    for node, members in enumerate(nodes):
        rows[node, members] = 1.0
    return rows


def coefficients(variances, leaves, branching):
    """Return the matrix (leaves, nodes) that maps noisy totals to estimated leaves.

    Exact rows are constraints, the others are weighed by their variances, and among
    equally good solutions the one of least norm is taken.
    """
    rows = node_rows(leaves, branching)
    exact = variances == 0
    noisy = np.isfinite(variances) & ~exact
    estimate = np.zeros((leaves, rows.shape[0]))
    open_directions = np.eye(leaves)
    if exact.any():
        estimate[:, exact] = np.linalg.pinv(rows[exact], rcond=1e-10)
        _, singular, right = np.linalg.svd(rows[exact])
        open_directions = right[(singular > 1e-10).sum() :].T
    if noisy.any() and open_directions.shape[1]:
        weights = np.sqrt(1 / variances[noisy])[:, None]
        select = np.eye(rows.shape[0])[noisy] - rows[noisy] @ estimate
        reach = rows[noisy] @ open_directions
        reach[abs(reach) < 1e-12] = 0.0  # rows that the exact ones already settle
        solve = np.linalg.pinv(weights * reach, rcond=1e-10)
        estimate = estimate + open_directions @ solve @ (weights * select)
    return estimate


def least_squares(noisy, variances, leaves, branching):
    """Return the estimated leaves by dense algebra."""
    values = np.where(np.isfinite(variances), noisy, 0.0)
    return coefficients(variances, leaves, branching) @ values


def least_squares_in_fractions(noisy, variances, leaves, branching):
    """Return the estimated leaves without any rounding; all must be determined."""
    rows = node_rows(leaves, branching).astype(int)
    size = leaves
    system = [[Fraction(0)] * (size + 1) for _ in range(size)]
    for row, value, variance in zip(rows, noisy, variances, strict=True):
        if np.isfinite(variance):
            weight = 1 / Fraction(float(variance))
            members = np.flatnonzero(row)
            for i in members:
                for j in members:
                    system[i][j] += weight
                system[i][size] += weight * Fraction(float(value))
    for pivot in range(size):
        scale = 1 / system[pivot][pivot]
        system[pivot] = [entry * scale for entry in system[pivot]]
        for other in range(size):
            if other != pivot and system[other][pivot]:
                factor = system[other][pivot]
                system[other] = [
                    a - factor * b
                    for a, b in zip(system[other], system[pivot], strict=True)
                ]
    return [line[size] for line in system]
