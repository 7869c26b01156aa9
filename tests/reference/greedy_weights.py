"""Greedy scaling with dense matrices, from Eq. 9 of the DAWA paper.

Every node keeps the inverse of its subtree's information matrix; the share is found
on a fine grid and polished. Nothing is shared with the kernels.
"""

from __future__ import annotations

from typing import NamedTuple

import mpmath
import numpy as np
from scipy.optimize import minimize_scalar

LARGEST = 1.0 - 2.0**-10


class Dense(NamedTuple):
    weights: np.ndarray
    objective: float
    margin: float  # least relative gap between taking nothing and the other minimum


def node_rows(leaves, fan_out):
    """One 0/1 row per node, leaves first, the root last."""
    rows, span = [], 1
    while True:
        for start in range(0, leaves, span):
            row = np.zeros(leaves)
            row[start : start + span] = 1.0
            rows.append(row)
        if span >= leaves:
            return np.array(rows)
        span *= fan_out


def range_rows(first, head, last, tail, leaves):
    rows = np.zeros((len(first), leaves))
    for row, a, x, b, z in zip(rows, first, head, last, tail, strict=True):
        row[a : b + 1] = 1.0
        row[b] = z
        row[a] = x
    return rows


def piece_rows(pointers, starts, ends, values, leaves):
    rows = np.zeros((len(pointers) - 1, leaves))
    for query, row in enumerate(rows):
        for piece in range(pointers[query], pointers[query + 1]):
            row[starts[piece] : ends[piece]] = values[piece]
    return rows


def cell_rows(starts, ends, edges):
    """Rows over buckets of cell ranges: the covered fraction of every bucket."""
    low, high = np.asarray(edges[:-1]), np.asarray(edges[1:])
    inner_start = np.maximum(np.asarray(starts)[:, None], low)
    inner_end = np.minimum(np.asarray(ends)[:, None], high)
    return np.maximum(inner_end - inner_start, 0) / (high - low)


def information(weights, leaves, fan_out):
    """The matrix M of the measurements: sum over nodes of weight squared times 1 1'."""
    rows = node_rows(leaves, fan_out)
    return (rows * (np.asarray(weights) ** 2)[:, None]).T @ rows


def inverse_information(weights, leaves, fan_out, root_exact=False):
    """Covariance of the leaves; with a known total, conditional on it."""
    matrix = information(weights, leaves, fan_out)
    if not root_exact:
        return np.linalg.inv(matrix)
    # On the space of vectors that sum to zero.
    basis = np.linalg.svd(np.ones((1, leaves)))[2][1:].T
    return basis @ np.linalg.inv(basis.T @ matrix @ basis) @ basis.T


def squared_error(rows, weights, fan_out, root_exact=False):
    """Summed squared error of the rows' answers, tr(W M^-1 W')."""
    leaves = rows.shape[1]
    if min(weights[:leaves]) > 0.01:
        inverse = inverse_information(weights, leaves, fan_out, root_exact)
        return float((rows.T @ rows * inverse).sum())
    # Small weights beside large ones: doubles would not tell the matrix is regular.
    with mpmath.workdps(150):
        nodes = mpmath.matrix(node_rows(leaves, fan_out).tolist())
        scales = mpmath.diag([mpmath.mpf(float(w)) ** 2 for w in weights])
        inverse = (nodes.T * scales * nodes) ** -1
        if root_exact:
            known = inverse * mpmath.ones(leaves, 1)
            inverse -= known * known.T / sum(known)
        asked = mpmath.matrix(rows.tolist())
        covariance = asked * inverse * asked.T
        return float(sum(covariance[query, query] for query in range(len(rows))))


def path_sums(weights, leaves, fan_out):
    return np.asarray(weights) @ node_rows(leaves, fan_out)


def _best_share(error, variance, gain):
    """Share minimising (1-s)^-2 [error - s^2 gain / ((1-s)^2 + s^2 variance)]."""

    def after(share):
        rest = (1.0 - share) ** 2
        return (error - share**2 * gain / (rest + share**2 * variance)) / rest

    grid = np.linspace(0.0, LARGEST, 1501)
    found = after(grid)
    # Minima away from zero only: the function first rises.
    inner = 1 + int(np.argmin(found[1:]))
    if inner == 1:
        return 0.0, np.inf
    low, high = grid[inner - 1], grid[min(inner + 1, grid.size - 1)]
    polished = minimize_scalar(
        after, bounds=(low, high), method="bounded", options={"xatol": 1e-13}
    )
    share, value = float(polished.x), float(polished.fun)
    if found[inner] < value:
        share, value = float(grid[inner]), float(found[inner])
    margin = abs(value / error - 1.0) if error > 0.0 else np.inf
    return (share if value < error else 0.0), margin


def dense_scaling(rows, fan_out, *, decay=True, root_exact=False, prune=False) -> Dense:
    """Greedy scaling of the workload matrix `rows`, queries by leaves."""
    leaves = rows.shape[1]
    if not rows.any():
        return Dense(_weights_of_leaves(leaves, fan_out, root_exact), 0.0, np.inf)
    inverses = [np.ones((1, 1)) for _ in range(leaves)]
    spans = [(leaf, leaf + 1) for leaf in range(leaves)]
    height = 0
    while fan_out**height < leaves:
        height += 1
    levels, margin = [], np.inf

    def unsplit(span):
        part = rows[:, span[0] : span[1]]
        return bool((part == part[:, :1]).all())

    for level in range(1, height + 1):
        mu = float(fan_out) ** (-(height - level) / 2) if decay else 1.0
        size = fan_out**level
        shares, new_inverses, new_spans = [], [], []
        for parent in range(-(-len(spans) // fan_out)):
            children = range(parent * fan_out, min((parent + 1) * fan_out, len(spans)))
            span = (spans[children[0]][0], spans[children[-1]][1])
            new_spans.append(span)
            if len(children) == 1:
                shares.append(0.0)
                new_inverses.append(inverses[children[0]])
                continue
            width = span[1] - span[0]
            inverse = np.zeros((width, width))
            block = np.zeros((width, width), dtype=bool)
            for child in children:
                low, high = (place - span[0] for place in spans[child])
                inverse[low:high, low:high] = inverses[child]
                block[low:high, low:high] = True
            gram = rows[:, span[0] : span[1]].T @ rows[:, span[0] : span[1]]
            gram = np.where(block, gram, mu * gram)
            known = inverse @ np.ones(width)
            error, variance = float((gram * inverse).sum()), float(known.sum())
            if root_exact and level == height:
                share = 0.0
            elif unsplit(span) and prune:
                share = 1.0
            elif unsplit(span) and mu == 1.0:
                larger = _next_larger(span, size, fan_out, leaves)
                share = LARGEST
                if error == 0.0 or (larger is not None and unsplit(larger)):
                    share = 0.0
            else:
                share, gap = _best_share(error, variance, float(known @ gram @ known))
                margin = min(margin, gap)
            shares.append(share)
            outer = np.outer(known, known)
            if share == 1.0:
                new_inverses.append(outer / variance**2)
                continue
            odds = (share / (1.0 - share)) ** 2
            lowered = inverse - odds / (1.0 + odds * variance) * outer
            new_inverses.append(lowered / (1.0 - share) ** 2)
        levels.append(shares)
        inverses, spans = new_inverses, new_spans

    covariance = inverses[0]
    if root_exact:
        known = covariance.sum(axis=1)
        covariance = covariance - np.outer(known, known) / known.sum()
    weights = _weights(levels, leaves, fan_out)
    if root_exact:
        weights[-1] = 0.0
    return Dense(weights, float((rows.T @ rows * covariance).sum()), margin)


def _weights_of_leaves(leaves, fan_out, root_exact):
    weights = np.zeros(len(node_rows(leaves, fan_out)))
    weights[:leaves] = 1.0
    if root_exact:
        weights[-1] = 0.0
    return weights


def _next_larger(span, size, fan_out, leaves):
    """Leaves of the nearest ancestor that has more of them."""
    while size < leaves:
        size *= fan_out
        low = span[0] // size * size
        larger = (low, min(low + size, leaves))
        if larger != span:
            return larger
    return None


def _weights(levels, leaves, fan_out):
    """From the shares of levels 1, 2, ...: each node takes its part of what is left."""
    below = [leaves, *(len(shares) for shares in levels)]
    # A level may be shorter than `fan_out` times its parents.
    parts, left = [], np.ones(1)
    for height in range(len(levels), 0, -1):
        shares = np.array(levels[height - 1])
        parts.append(shares * left)
        left = np.repeat((1.0 - shares) * left, fan_out)[: below[height - 1]]
    parts.append(left)
    return np.concatenate(parts[::-1])
