"""Trees given by parents, from the definition: sets of leaves and dense algebra."""

from __future__ import annotations

import numpy as np


def random_parents(generator, leaves, most_children=4):
    """Join neighbouring trees at random until one is left; some have one child."""
    roots = list(range(leaves))
    parents = [-1] * leaves
    while len(roots) > 1:
        count = int(generator.integers(1, min(most_children, len(roots)) + 1))
        place = int(generator.integers(0, len(roots) - count + 1))
        new = len(parents)
        parents.append(-1)
        for child in roots[place : place + count]:
            parents[child] = new
        roots[place : place + count] = [new]
    return np.array(parents, dtype=np.int64)


def leaf_sets(parents):
    """Return the leaves below each node, as rows of zeros and ones."""
    parents = list(parents)
    leaves = [node for node in range(len(parents)) if node not in parents]
    rows = np.zeros((len(parents), len(leaves)))
    for leaf in leaves:
        node = leaf
        while node != -1:
            rows[node, leaf] = 1.0
            node = parents[node]
    return rows


def dense_fit(noisy, variances, parents):
    """Return the least-squares leaves of least norm; variance 0 weighs 1e12."""
    rows = leaf_sets(parents)
    kept = np.isfinite(variances)
    weights = 1.0 / np.sqrt(np.maximum(variances[kept], 1e-12))
    return np.linalg.lstsq(
        rows[kept] * weights[:, None], noisy[kept] * weights, rcond=1e-14
    )[0]


def worst_edge(rates, parents, edges):
    """Return the largest sum of rates over the nodes that one edge changes."""
    rows = np.hstack([leaf_sets(parents), np.zeros((len(parents), 1))])
    return max(
        sum(rates[rows[:, start] != rows[:, end]].tolist()) for start, end in edges
    )
