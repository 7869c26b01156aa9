"""Policy graphs from their definitions: every pair of cells is looked at.

Edges are a set of pairs (low, high) of cell numbers; (cell, -1) joins "absent".
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import networkx as nx
import numpy as np


def coordinates(shape):
    return list(itertools.product(*(range(side) for side in shape)))


def edges_of(policy):
    """Return the edges by the definition of each kind of policy."""
    cells = coordinates(policy.domain.shape)
    if policy.kind == "add_remove":
        return {(cell, -1) for cell in range(len(cells))}
    if policy.kind == "graph":
        return {tuple(pair) for chunk in policy.edges() for pair in chunk.tolist()}
    if policy.kind == "projection":
        return quotient(edges_of(policy.source), policy.bins.labels)
    found = set()
    for low, high in itertools.combinations(range(len(cells)), 2):
        if _joined(policy, low, high, cells[low], cells[high]):
            found.add((low, high))
    return found


def _joined(policy, low, high, one, two):
    apart = [abs(a - b) for a, b in zip(one, two, strict=True)]
    if policy.kind == "full":
        return True
    if policy.kind == "line":
        return high - low == 1
    if policy.kind == "attribute":
        return sum(step > 0 for step in apart) == 1
    if policy.kind == "blocks":
        return policy.labels[low] == policy.labels[high]
    if policy.kind == "band":
        return high <= policy.far[low]
    if policy.kind == "threshold":
        return _close(policy, low, high, apart)
    assert policy.kind == "product"
    return _one_moves(policy, low, high)


def _close(policy, low, high, apart):
    if policy.unit == "value":
        edges = policy.domain.attributes[0].edges
        gap = Fraction(edges[high]) - Fraction(edges[low + 1])
        return gap < Fraction(policy.theta)
    if policy.metric == "l1":
        return sum(apart) <= policy.theta
    if policy.metric == "l2":
        return sum(step**2 for step in apart) <= policy.theta**2 * (1 + 1e-12)
    return max(apart) <= policy.theta


def _one_moves(policy, low, high):
    sizes = [one.domain.size for one in policy.factors]
    ones, others = np.unravel_index(low, sizes), np.unravel_index(high, sizes)
    moved = [
        (one, int(min(a, b)), int(max(a, b)))
        for one, a, b in zip(policy.factors, ones, others, strict=True)
        if a != b
    ]
    return len(moved) == 1 and moved[0][1:] in edges_of(moved[0][0])


def listed(policy):
    """Return the edges that the policy lists, each seen once."""
    pairs = [tuple(pair) for chunk in policy.edges() for pair in chunk.tolist()]
    ordered = {
        (max(u, v), -1) if -1 in (u, v) else (min(u, v), max(u, v)) for u, v in pairs
    }
    assert len(ordered) == len(pairs), "an edge was listed twice"
    return ordered


def quotient(edges, labels):
    """Join two bins where an edge joins their cells; drop edges inside a bin."""
    bins = set()
    for low, high in edges:
        one = int(labels[low])
        two = -1 if high == -1 else int(labels[high])
        if two == -1:
            bins.add((one, -1))
        elif one != two:
            bins.add((min(one, two), max(one, two)))
    return bins


def network(edges, cells):
    """Return the graph for networkx; "absent" is a node if it has an edge."""
    graph = nx.Graph()
    graph.add_nodes_from(range(cells))
    graph.add_edges_from(edges)
    return graph


def distances(edges, cells):
    """Return all distances between cells, infinite without a path."""
    steps = dict(nx.all_pairs_shortest_path_length(network(edges, cells)))
    return np.array(
        [[steps[u].get(v, np.inf) for v in range(cells)] for u in range(cells)]
    )
