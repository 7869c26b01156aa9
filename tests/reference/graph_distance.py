"""Distances and components through networkx."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np


def graph(edges, nodes):
    made = nx.Graph()
    made.add_nodes_from(range(nodes))
    made.add_edges_from(edges)
    return made


def distances(edges, nodes):
    steps = dict(nx.all_pairs_shortest_path_length(graph(edges, nodes)))
    return np.array(
        [[steps[u].get(v, np.inf) for v in range(nodes)] for u in range(nodes)]
    )


def components(edges, nodes):
    return {frozenset(part) for part in nx.connected_components(graph(edges, nodes))}


def corner_distances(shape, steps):
    """Return distances from the first corner, in a directed graph of steps."""
    cells = list(itertools.product(*(range(side) for side in shape)))
    moves = nx.DiGraph()
    moves.add_nodes_from(cells)
    for cell in cells:
        for step in steps:
            there = tuple(int(a + b) for a, b in zip(cell, step, strict=True))
            if there in moves and there != cell:
                moves.add_edge(cell, there)
    found = nx.single_source_shortest_path_length(moves, cells[0])
    return [found.get(cell, -1) for cell in cells]
