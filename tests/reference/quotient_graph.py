"""Graphs and cliques with sets."""

from __future__ import annotations

import itertools


def neighbour_lists(pairs, nodes):
    """Return the sorted neighbours of every node."""
    lists = [set() for _ in range(nodes)]
    for low, high in pairs:
        lists[low].add(high)
        lists[high].add(low)
    return [sorted(one) for one in lists]


def clique_pairs(groups, labels):
    """Return the pairs of bins that share a group."""
    found = set()
    for group in set(groups):
        bins = {bin for one, bin in zip(groups, labels, strict=True) if one == group}
        found |= set(itertools.combinations(sorted(bins), 2))
    return found
