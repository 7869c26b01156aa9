"""Shares, variances and whole numbers on trees, slow and from their definitions."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize


def leaf_sets(parents):
    """Return, for each row, which leaves lie below it: a dense matrix of 0 and 1."""
    parents = np.asarray(parents)
    leaves = np.setdiff1d(np.arange(parents.size), parents)
    rows = np.zeros((parents.size, leaves.size))
    for place, leaf in enumerate(leaves):
        node = leaf
        while node >= 0:
            rows[node, place] = 1.0
            node = parents[node]
    return rows


def merged_costs(costs, parents):
    """Hand the cost of a node with an only child down, from the top."""
    costs = np.array(costs, dtype=float)
    for node in range(costs.size - 1, -1, -1):
        children = np.flatnonzero(np.asarray(parents) == node)
        if children.size == 1:
            costs[children[0]] += costs[node]
            costs[node] = 0.0
    return costs


def least_cost(costs, parents, exponent):
    """Return the least sum of cost / weight^exponent with path sums at most 1."""
    costs = merged_costs(costs, parents)
    used = np.flatnonzero(costs > 0)
    paths = leaf_sets(parents)[used].T

    def total(weights):
        return float((costs[used] / weights**exponent).sum())

    start = np.full(used.size, 1.0 / used.size)
    found = minimize(
        total,
        start,
        method="SLSQP",
        bounds=[(0.01, 1.0)] * used.size,
        constraints={"type": "ineq", "fun": lambda weights: 1.0 - paths @ weights},
        options={"maxiter": 500, "ftol": 1e-10},
    )
    return found.fun


def variances_after(variances, parents):
    """Return the variance of every row by dense least squares; infinity if not fixed.

    A row without noise is imposed by a tiny variance.
    """
    rows = leaf_sets(parents)
    used = np.isfinite(variances)
    weights = 1.0 / np.maximum(np.asarray(variances)[used], 1e-9)
    design = rows[used] * np.sqrt(weights)[:, None]
    gram = design.T @ design
    inverse = np.linalg.pinv(gram, rcond=1e-13)
    projector = np.linalg.pinv(design) @ design
    fixed = np.abs(rows @ projector - rows).max(axis=1) < 1e-6
    spread = np.einsum("ij,jk,ik->i", rows, inverse, rows)
    return np.where(fixed, spread, np.inf)
