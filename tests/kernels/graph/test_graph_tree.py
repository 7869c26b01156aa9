from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.graph.graph_distance import adjacency
from blowfish_fast.kernels.graph.graph_tree import (
    breadth_first_tree,
    lowest_common,
    path_crossings,
    path_sums,
    subtract_children,
    subtree_totals,
    sums_to_root,
    top_down_order,
)
from tests.generated import example_count
from tests.reference import graph_tree as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 30 if config.DISABLE_JIT else example_count(150)


@st.composite
def forests(draw):
    """Return parents: each node hangs below an earlier one, or is a root."""
    nodes = draw(st.integers(1, 14))
    above = [draw(st.integers(-1, node - 1)) for node in range(nodes)]
    names = draw(st.permutations(range(nodes)))
    parents = np.full(nodes, -1, dtype=np.int64)
    for node, parent in enumerate(above):
        parents[names[node]] = -1 if parent < 0 else names[parent]
    return parents


@st.composite
def forests_with_pairs(draw):
    parents = draw(forests())
    node = st.integers(-1, parents.size - 1)
    pairs = draw(st.lists(st.tuples(node, node), min_size=1, max_size=12))
    first, second = np.array(pairs, dtype=np.int64).T
    return parents, first.copy(), second.copy()


@settings(deadline=None, max_examples=EXAMPLES)
@given(forests(), st.randoms(use_true_random=False))
def test_totals_equal_the_definition_and_are_undone(parents, shuffler):
    values = np.array([shuffler.randint(-9, 9) for _ in parents])
    order = top_down_order(parents)
    totals = subtree_totals(values, parents, order)
    assert totals.tolist() == reference.subtree_totals(values.tolist(), parents)
    assert (subtract_children(totals, parents) == values).all()
    floats = subtree_totals(values.astype(np.float64), parents, order)
    assert (floats == totals).all()


@settings(deadline=None, max_examples=EXAMPLES)
@given(forests_with_pairs())
def test_meeting_points_and_paths_equal_the_definition(case):
    parents, first, second = case
    order = top_down_order(parents)
    tops = lowest_common(parents, order, first, second)
    weights = np.arange(1, parents.size + 1)
    sums = path_sums(sums_to_root(weights, parents, order), first, second, tops)
    crossed = np.zeros(parents.size, dtype=int)
    for pair, (one, two) in enumerate(zip(first, second, strict=True)):
        assert tops[pair] == reference.lowest_common(parents, int(one), int(two))
        rows = reference.changed_rows(parents, one, two)
        assert sums[pair] == sum(weights[row] for row in rows)
        crossed[list(rows)] += 1
    found = path_crossings(parents, order, first, second, tops)
    assert found.tolist() == crossed.tolist()


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(1, 10), st.data())
def test_trees_span_every_part_along_edges_and_by_shortest_ways(nodes, data):
    node = st.integers(0, nodes - 1)
    pairs = data.draw(st.lists(st.tuples(node, node), max_size=16))
    edges = [(u, v) for u, v in pairs if u != v]
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    starts = np.array(data.draw(st.permutations(range(nodes))), dtype=np.int64)
    parents = breadth_first_tree(*adjacency(ends[:, 0], ends[:, 1], nodes), starts)
    graph = nx.Graph(edges)
    graph.add_nodes_from(range(nodes))
    depth = sums_to_root(np.ones(nodes, np.int64), parents, top_down_order(parents))
    for part in nx.connected_components(graph):
        root = next(int(one) for one in starts if one in part)
        assert parents[root] == -1
        for one in part - {root}:
            assert graph.has_edge(one, parents[one])
            assert depth[one] - 1 == nx.shortest_path_length(graph, root, one)


def test_a_cycle_of_nine_has_stretch_eight():
    # Oracle T5.
    cycle = np.arange(9), (np.arange(9) + 1) % 9
    parents = breadth_first_tree(*adjacency(*cycle, 9), np.arange(9))
    order = top_down_order(parents)
    tops = lowest_common(parents, order, *cycle)
    above = sums_to_root(np.ones(9, np.int64), parents, order)
    assert path_sums(above, *cycle, tops).max() == 8


@settings(deadline=None, max_examples=EXAMPLES)
@given(forests(), st.randoms(use_true_random=False))
def test_queries_keep_their_answers_along_the_tree(parents, shuffler):
    # Oracle T6: Wx = W_G x_G + (total of each tree) * (coefficient of its root).
    counts = np.array([shuffler.randint(0, 9) for _ in parents])
    query = np.array([shuffler.randint(-4, 4) for _ in parents])
    totals = subtree_totals(counts, parents, top_down_order(parents))
    inner = parents >= 0
    along = np.where(inner, query - query[parents], 0)
    roots = query[~inner] @ totals[~inner]
    assert query @ counts == along @ totals + roots


def test_bad_trees_are_refused():
    with pytest.raises(InputError, match="circle"):
        top_down_order(np.array([1, 0, -1]))
    with pytest.raises(InputError, match="0 to 2"):
        top_down_order(np.array([3, -1, 0]))
    with pytest.raises(InputError, match="one entry per node"):
        subtree_totals(np.ones(3), np.array([-1, 0]), np.array([0, 1]))
    with pytest.raises(InputError, match="one entry per node"):
        sums_to_root(np.ones(3), np.array([-1, 0]), np.array([0, 1]))
    with pytest.raises(InputError, match="0 to 1"):
        subtract_children(np.ones(2), np.array([-1, 7]))
    graph = adjacency(np.array([0]), np.array([1]), 2)
    for starts in ([0, 0], [0], [0, -1]):
        with pytest.raises(InputError, match="once"):
            breadth_first_tree(*graph, np.array(starts))
    tree = np.array([-1, 0]), np.array([0, 1])
    with pytest.raises(InputError, match="one length"):
        lowest_common(*tree, np.array([0]), np.array([0, 1]))
    with pytest.raises(InputError, match="nodes from -1"):
        lowest_common(*tree, np.array([0]), np.array([2]))
    for order in ([1, 0], [0, 0], [0, -1]):
        with pytest.raises(InputError, match="once, after its parent"):
            lowest_common(tree[0], np.array(order), np.array([0]), np.array([1]))
    with pytest.raises(InputError, match="once, after its parent"):
        lowest_common(np.array([1, 0]), tree[1], np.array([0]), np.array([1]))
