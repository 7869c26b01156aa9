"""The exact price of a tree under every family of policies equals enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast import Domain, kernels
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.strategies.trees.tree import worst_edge
from blowfish_fast.policies import (
    AddRemove,
    Attribute,
    Band,
    Blocks,
    CountConstraints,
    Full,
    Graph,
    Line,
    Product,
    Threshold,
)
from tests.generated import example_count
from tests.reference import tree_paths as reference
from tests.reference.trees import leaf_sets, random_parents

SEEDS = st.integers(0, 2**32 - 1)


def random_tree(rng, leaves):
    """Return a tree and rates, a third of them 0, with the leaves of every node."""
    parents = random_parents(rng, leaves)
    rates = rng.integers(0, 20, parents.size) * (rng.random(parents.size) < 0.7)
    return kernels.tree_of_parents(parents), rates, leaf_sets(parents)


def random_edges(rng, cells, count):
    ends = rng.integers(-1, cells, (count, 2))
    return ends[ends[:, 0] != ends[:, 1]]


def line_policies(rng, domain):
    cells = domain.size
    theta = int(rng.integers(1, cells + 2))
    steps = np.arange(cells) + rng.integers(0, 4, cells)
    far = np.minimum(np.maximum.accumulate(steps), cells - 1)
    return [
        AddRemove(domain),
        Full(domain),
        Line(domain),
        Threshold(domain, theta=theta),
        Band(domain, far),
        Blocks(domain, rng.integers(0, 4, cells)),
        Graph(domain, random_edges(rng, cells, cells)),
        Attribute(domain),
        Full(domain).with_constraints(
            CountConstraints(domain, rng.random((1, cells)) < 0.5)
        ),
    ]


def grid_policies(rng, domain):
    theta = int(rng.integers(1, 5))
    axes = [Domain(side) for side in domain.shape]
    factors = [
        rng.choice(
            [
                Line(axis),
                Full(axis),
                Threshold(axis, theta=2),
                Blocks(axis, rng.integers(0, 2, axis.size)),
                Graph(axis, [[0, axis.size - 1]]) if axis.size > 1 else Line(axis),
            ]
        )
        for axis in axes
    ]
    return [
        Attribute(domain),
        Threshold(domain, theta=theta),
        Threshold(domain, theta=theta, metric="linf"),
        Threshold(domain, theta=float(rng.uniform(1, 4)), metric="l2"),
        Product(*factors),
        Blocks(domain, rng.integers(0, 3, domain.size)),
        Graph(domain, random_edges(rng, domain.size, 10)),
        AddRemove(domain),
        Full(domain),
    ]


@settings(deadline=None, max_examples=example_count(250))
@given(cells=st.integers(1, 14), seed=SEEDS)
def test_prices_on_a_line_equal_enumeration(cells, seed):
    rng = np.random.default_rng(seed)
    tree, rates, sets = random_tree(rng, cells)
    for policy in line_policies(rng, Domain(cells)):
        expected = reference.worst_edge(rates, sets, policy)
        assert worst_edge(rates, tree, policy) == expected, policy


@pytest.mark.long
@settings(deadline=None, max_examples=example_count(400))
@given(
    shape=st.sampled_from([(3, 4), (2, 7), (4, 4), (1, 5), (2, 2, 3), (5, 1, 2)]),
    seed=SEEDS,
)
def test_prices_on_grids_along_any_curve_equal_enumeration(shape, seed):
    rng = np.random.default_rng(seed)
    domain = Domain(shape)
    tree, rates, sets = random_tree(rng, domain.size)
    curve = Buckets.single_cells(domain.size, rng.permutation(domain.size))
    for policy in grid_policies(rng, domain):
        expected = reference.worst_edge(rates, sets, policy, curve.labels)
        assert worst_edge(rates, tree, policy.project(curve)) == expected, policy


@pytest.mark.long
@settings(deadline=None, max_examples=example_count(120))
@given(shape=st.sampled_from([(13,), (3, 4), (2, 2, 3)]), seed=SEEDS)
def test_prices_through_buckets_equal_enumeration(shape, seed):
    rng = np.random.default_rng(seed)
    domain = Domain(shape)
    count = int(rng.integers(1, domain.size + 1))
    labels = np.unique(rng.integers(0, count, domain.size), return_inverse=True)[1]
    if rng.random() < 0.5:
        labels = np.sort(labels)
    buckets = Buckets.from_labels(labels)
    tree, rates, sets = random_tree(rng, buckets.count)
    offered = line_policies if domain.ndim == 1 else grid_policies
    for policy in offered(rng, domain):
        expected = reference.worst_edge(rates, sets, policy, buckets.labels)
        quotient = policy.project(buckets)
        assert worst_edge(rates, tree, quotient) == expected, policy
        parts = quotient.components()
        found = kernels.uncrossed_nodes(tree, *parts)
        crossed = [
            reference.worst_edge(np.arange(len(sets)) == node, sets, policy, labels)
            for node in range(len(sets))
        ]
        assert found.tolist() == [price == 0 for price in crossed], policy


def test_a_wide_threshold_on_a_square_map_is_priced_by_sum_and_difference():
    rng = np.random.default_rng(5)
    domain = Domain((12, 12))
    tree = kernels.regular_tree(144, 2)
    rates = rng.integers(0, 50, tree.nodes)
    curve = Buckets.single_cells(144, rng.permutation(144))
    sets = np.zeros((tree.nodes, 144))
    for node in range(tree.nodes):
        sets[node, tree.starts[node] : tree.ends[node]] = 1.0
    policy = Threshold(domain, theta=9)
    assert policy.maximal_boxes().shape[0] > 8
    expected = reference.worst_edge(rates, sets, policy, curve.labels)
    assert worst_edge(rates, tree, policy.project(curve)) == expected


@pytest.mark.parametrize("metric", ["l1", "l2", "linf"])
def test_cells_are_joined_exactly_where_a_maximal_box_holds_both(metric):
    for theta in (1, 2, 3.7, 6):
        policy = Threshold(Domain((4, 3, 5)), theta=theta, metric=metric)
        cells = np.arange(60)
        joined = policy.joins(cells[:, None], cells[None]) | np.eye(60, dtype=bool)
        places = np.indices((4, 3, 5)).reshape(3, -1)
        steps = abs(places[:, :, None] - places[:, None, :])
        held = np.zeros((60, 60), dtype=bool)
        for sides in policy.maximal_boxes():
            held |= (steps < sides[:, None, None]).all(axis=0)
        assert (held == joined).all()
