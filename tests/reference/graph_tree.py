"""Trees and paths from their definitions, by networkx."""

from __future__ import annotations

import networkx as nx


def as_tree(parents):
    """Return the tree with -1 above all roots."""
    graph = nx.DiGraph()
    graph.add_node(-1)
    graph.add_edges_from((int(parent), node) for node, parent in enumerate(parents))
    return graph


def subtree_totals(values, parents):
    tree = as_tree(parents)
    return [
        values[node] + sum(values[below] for below in nx.descendants(tree, node))
        for node in range(len(values))
    ]


def changed_rows(parents, first, second):
    """Return the nodes whose subtree holds exactly one of the two."""
    tree = as_tree(parents)
    rows = set()
    for node in range(len(parents)):
        below = nx.descendants(tree, node) | {node}
        if (first in below) != (second in below):
            rows.add(node)
    return rows


def lowest_common(parents, first, second):
    def way_up(node):
        way = [node]
        while node != -1:
            node = int(parents[node])
            way.append(node)
        return way

    others = set(way_up(second))
    return next(node for node in way_up(first) if node in others)
