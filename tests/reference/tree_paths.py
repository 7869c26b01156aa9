"""Distances of leaves, prices and exact nodes of a tree by listing every pair."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def leaf_distances(rates, sets):
    """Return the summed rates of nodes that hold exactly one of two leaves.

    `sets` holds the leaves below each node as rows of zeros and ones; the last row and
    column are those of "absent", which no node holds.
    """
    held = np.hstack([sets > 0, np.zeros((len(sets), 1), dtype=bool)])
    size = held.shape[1]
    distances = np.zeros((size, size), dtype=np.int64)
    for one, two in combinations(range(size), 2):
        total = sum(int(rate) for rate in rates[held[:, one] != held[:, two]])
        distances[one, two] = distances[two, one] = total
    return distances


def uncrossed(sets, labels, private):
    """Return for each node whether all edges inside parts leave its total as it is."""
    leaves = len(labels)
    edges = [
        (one, two)
        for one, two in combinations(range(leaves), 2)
        if labels[one] == labels[two]
    ]
    edges += [(leaf, -1) for leaf in range(leaves) if private[labels[leaf]]]
    return [
        all((held[one] > 0) == (two >= 0 and held[two] > 0) for one, two in edges)
        for held in sets
    ]


def worst_edge(rates, sets, policy, leaf_of_cell=None):
    """Return the price of a policy edge by edge, the leaf of each cell given."""
    distances = leaf_distances(rates, sets)
    leaves = np.arange(sets.shape[1]) if leaf_of_cell is None else leaf_of_cell
    held = np.append(leaves, sets.shape[1])
    worst = 0
    for chunk in policy.edges():
        for one, two in chunk.tolist():
            worst = max(worst, int(distances[held[one], held[two]]))
    return worst
