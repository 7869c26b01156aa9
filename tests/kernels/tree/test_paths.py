"""Distances of leaves in a tree, and the largest over families of pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.paths import (
    LeafDistances,
    heaviest_pair,
    heaviest_path,
    uncrossed_nodes,
    within_reach,
)
from blowfish_fast.kernels.tree.shape import regular_tree, tree_of_parents
from tests.generated import example_count
from tests.reference import tree_paths as reference
from tests.reference.trees import leaf_sets, random_parents

pytestmark = pytest.mark.kernel

EXAMPLES = 30 if config.DISABLE_JIT else example_count(250)
TREES = {"leaves": st.integers(1, 24), "seed": st.integers(0, 2**32 - 1)}


def random_case(leaves, seed, largest=20):
    """Return a generator, an irregular tree, its metric and all distances."""
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, leaves)
    rates = rng.integers(0, largest + 1, parents.size) * (
        rng.random(parents.size) < 0.7
    )
    tree = tree_of_parents(parents)
    distances = reference.leaf_distances(rates, leaf_sets(parents))
    return rng, tree, LeafDistances(rates, tree), rates, distances


@settings(deadline=None, max_examples=EXAMPLES)
@given(**TREES, largest=st.sampled_from([1, 1000, 2**52]))
def test_paths_and_pairs_equal_the_definition(leaves, seed, largest):
    _, tree, metric, rates, distances = random_case(leaves, seed, largest)
    path, pair = heaviest_path(rates, tree), heaviest_pair(rates, tree)
    assert type(path) is type(pair) is int
    assert path == distances[-1].max()
    assert pair == distances[:-1, :-1].max()
    one, two = np.indices((leaves, leaves)).reshape(2, -1)
    assert metric.of_pairs(one, two) == pair
    assert metric.of_pairs(np.arange(leaves), np.full(leaves, -1)) == path


@settings(deadline=None, max_examples=EXAMPLES)
@given(**TREES)
def test_groups_and_windows_equal_the_definition(leaves, seed):
    rng, _, metric, _, distances = random_case(leaves, seed)
    cells = int(rng.integers(1, 2 * leaves + 1))
    # Several cells may share a leaf, in any order: a quotient along a curve.
    held = rng.integers(0, leaves, cells)
    among = distances[np.ix_(held, held)]
    one, two = np.indices((cells, cells))
    groups = rng.integers(0, 4, cells)
    same = groups[one] == groups[two]
    assert metric.in_groups(held, groups) == among[same].max()
    theta = int(rng.integers(0, cells + 2))
    near = abs(one - two) <= theta
    assert metric.in_boxes(held, np.array([theta + 1])) == among[near].max()
    steps = np.arange(cells) + rng.integers(0, 4, cells)
    far = np.minimum(np.maximum.accumulate(steps), cells - 1)
    reached = (one <= two) & (two <= far[one])
    assert metric.within_reach(held[None], far) == among[reached].max()


@settings(deadline=None, max_examples=EXAMPLES)
@given(**TREES)
def test_windows_of_leaves_in_their_order_equal_the_definition(leaves, seed):
    rng, tree, metric, _, distances = random_case(leaves, seed)
    steps = np.arange(leaves) + rng.integers(0, rng.integers(1, 9), leaves)
    far = np.minimum(np.maximum.accumulate(steps), leaves - 1)
    one, two = np.indices((leaves, leaves))
    expected = distances[:-1, :-1][(one <= two) & (two <= far[one])].max()
    line = np.arange(leaves)
    assert metric.within_reach(line[None], far) == expected
    assert within_reach(tree.leaf_nodes, far, metric.rates, tree.parents) == expected


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    shape=st.sampled_from([(3, 4), (1, 7), (5, 5), (2, 3, 4)]),
    seed=st.integers(0, 2**32 - 1),
)
def test_boxes_on_grids_equal_the_definition(shape, seed):
    cells = int(np.prod(shape))
    rng, _, metric, _, distances = random_case(cells, seed)
    grid = rng.permutation(cells).reshape(shape)
    grid[rng.random(shape) < 0.1] = -1
    sides = rng.integers(1, 5, len(shape))
    places = np.indices(shape).reshape(len(shape), -1)
    steps = abs(places[:, :, None] - places[:, None, :])
    inside = (steps < sides[:, None, None]).all(axis=0)
    held = grid.reshape(-1)
    inside &= (held[:, None] >= 0) & (held[None] >= 0)
    expected = distances[np.ix_(held, held)][inside].max(initial=0)
    assert metric.in_boxes(grid, sides) == expected


@settings(deadline=None, max_examples=EXAMPLES)
@given(**TREES)
def test_uncrossed_nodes_are_those_that_no_edge_crosses(leaves, seed):
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, leaves)
    labels = np.unique(
        rng.integers(0, 4, leaves) * (rng.random(leaves) < 0.8), return_inverse=True
    )[1]
    private = rng.random(labels.max() + 1) < 0.3
    found = uncrossed_nodes(tree_of_parents(parents), labels, private)
    assert found.tolist() == reference.uncrossed(leaf_sets(parents), labels, private)
    if (labels == 0).all():
        whole = uncrossed_nodes(tree_of_parents(parents), None, private)
        assert whole.tolist() == found.tolist()


def test_a_node_whose_part_holds_absent_is_crossed():
    tree = regular_tree(4, 2)
    halves = np.array([0, 0, 1, 1])
    public = uncrossed_nodes(tree, halves, np.array([False, False]))
    assert public.tolist() == [False] * 4 + [True] * 3
    private = uncrossed_nodes(tree, halves, np.array([True, False]))
    assert private.tolist() == [False] * 5 + [True, False]


def test_large_rates_are_summed_exactly():
    rates = np.array([2**60 + 1, 2**60 - 7, 2**60 + 3])
    assert heaviest_path(rates, regular_tree(2, 2)) == 2**61 + 4
    assert heaviest_pair(rates, regular_tree(2, 2)) == 2**61 - 6


def test_a_single_leaf_has_no_pair():
    tree = regular_tree(1, 2)
    assert heaviest_pair(np.array([7]), tree) == 0
    assert heaviest_path(np.array([7]), tree) == 7
    assert (
        LeafDistances(np.array([7]), tree).of_pairs(np.array([0]), np.array([-1])) == 7
    )


def test_no_pairs_cost_nothing():
    metric = LeafDistances(np.ones(3, dtype=np.int64), regular_tree(2, 2))
    none = np.zeros(0, dtype=np.int64)
    assert metric.of_pairs(none, none) == 0
    assert metric.in_groups(none, none) == 0


def test_the_rates_are_left_as_they_were():
    rates = np.array([1, 4, 3, 2, 0, 5])
    heaviest_pair(rates, regular_tree(3, 2))
    assert rates.tolist() == [1, 4, 3, 2, 0, 5]


def test_arrays_of_the_wrong_length_and_unknown_leaves_are_refused():
    tree = regular_tree(4, 2)
    with pytest.raises(InputError, match="rates holds one number per node of the tree"):
        heaviest_path(np.ones(6, dtype=np.int64), tree)
    with pytest.raises(InputError, match="leaves are numbered from 0 to 3"):
        LeafDistances(np.ones(7, dtype=np.int64), tree).of_pairs(
            np.array([4]), np.array([0])
        )
