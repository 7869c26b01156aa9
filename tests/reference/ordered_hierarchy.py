"""Ordered hierarchies from the definition: rows as a matrix, dense least squares."""

from __future__ import annotations

import numpy as np


def block_nodes(start, end, fan_out):
    """Return the cells of every node of one block, level by level."""
    level, nodes = [(start, end)], []
    while level:
        nodes += level
        below = []
        for low, high in level:
            if high - low > 1:
                parts = np.array_split(np.arange(low, high), min(fan_out, high - low))
                below += [(int(part[0]), int(part[-1]) + 1) for part in parts]
        level = below
    return nodes


def dense_rows(edges, fan_outs):
    """Return the (rows, cells) matrix: borders first, then nodes below roots."""
    cells = int(edges[-1])
    rows = [np.arange(cells) < end for end in edges[1:]]
    for block, fan_out in enumerate(fan_outs):
        for low, high in block_nodes(int(edges[block]), int(edges[block + 1]), fan_out)[
            1:
        ]:
            rows.append((np.arange(cells) >= low) & (np.arange(cells) < high))
    return np.array(rows, dtype=float)


def _system(variances, rows):
    exact, measured = variances == 0, (variances > 0) & np.isfinite(variances)
    normal = rows[measured].T / variances[measured] @ rows[measured]
    constraints = rows[exact]
    corner = np.zeros((exact.sum(), exact.sum()))
    kkt = np.block([[normal, constraints.T], [constraints, corner]])
    return np.linalg.pinv(kkt), exact, measured


def dense_fit(noisy, variances, rows):
    """Return the generalised least-squares cells by solving the optimality system."""
    inverse, exact, measured = _system(variances, rows)
    right = np.concatenate(
        [rows[measured].T @ (noisy[measured] / variances[measured]), noisy[exact]]
    )
    return (inverse @ right)[: rows.shape[1]]


def dense_coefficients(variances, rows, queries):
    """Return how the noise of each row enters each answer, shape (queries, rows)."""
    inverse, _, measured = _system(variances, rows)
    cells = rows.shape[1]
    coefficients = np.zeros((queries.shape[0], variances.size))
    weighted = rows[measured].T / variances[measured]
    coefficients[:, measured] = queries @ inverse[:cells, :cells] @ weighted
    return coefficients


def worst_move(weights, rows, far, bottom):
    """Return the costliest edge by trying all of them."""
    cells = rows.shape[1]
    worst = 0
    for cell in range(cells):
        for other in range(cell + 1, int(far[cell]) + 1):
            moved = rows[:, cell] != rows[:, other]
            worst = max(worst, int(weights[moved].sum()))
        if bottom[cell]:
            worst = max(worst, int(weights[rows[:, cell] > 0].sum()))
    return worst


def printed_rates(edges, fan_outs, levels, border_epsilon, node_epsilon):
    """Return the rate of each row as the paper prints it.

    The first block's nodes and its border have noise of scale 2 levels / epsilon, the
    whole of it, on the grounds that the border is the root of the first tree.
    """
    both = border_epsilon + node_epsilon
    borders = np.full(len(fan_outs), border_epsilon)
    borders[0] = both / (2 * levels)
    borders[-1] = 0.0
    rates = [borders]
    for block, fan_out in enumerate(fan_outs):
        nodes = len(block_nodes(int(edges[block]), int(edges[block + 1]), fan_out)) - 1
        rates.append(
            np.full(nodes, (both if block == 0 else node_epsilon) / (2 * levels))
        )
    return np.concatenate(rates)
