"""The layout of a tree, and the two forms of its weights."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.shape import (
    regular_tree,
    shares_from_weights,
    shift_of,
    tree_levels,
    tree_of_parents,
    tree_totals,
    weights_from_shares,
)
from tests.generated import example_count
from tests.reference import trees as reference
from tests.reference.greedy_weights import node_rows, path_sums

pytestmark = pytest.mark.kernel

EXAMPLES = 20 if config.DISABLE_JIT else example_count(80)
TREES = {"leaves": st.integers(1, 30), "seed": st.integers(0, 2**32 - 1)}
trees = st.tuples(st.integers(1, 60), st.integers(2, 9))


@settings(deadline=None, max_examples=example_count(60))
@given(trees)
def test_levels_shrink_by_the_branching_down_to_the_root(tree):
    leaves, branching = tree
    sizes, offsets = tree_levels(leaves, branching)
    assert sizes.dtype == offsets.dtype == np.int64
    assert sizes[0] == leaves
    assert sizes[-1] == 1
    for level, size in enumerate(sizes):
        assert size == -(-leaves // branching**level)
    assert offsets.tolist() == [0, *np.cumsum(sizes).tolist()]
    assert len(node_rows(leaves, branching)) == offsets[-1]


def test_a_single_leaf_is_its_own_root():
    sizes, offsets = tree_levels(1, 5)
    assert sizes.tolist() == [1]
    assert offsets.tolist() == [0, 1]


@pytest.mark.parametrize(("leaves", "branching"), [(0, 2), (-1, 2), (4, 1), (1, 2**64)])
def test_refuses_what_is_no_tree(leaves, branching):
    with pytest.raises(InputError, match="at least"):
        tree_levels(leaves, branching)


@pytest.mark.parametrize("branching", range(2, 70))
def test_a_shift_divides_by_powers_of_two_only(branching):
    shift = shift_of(branching)
    if shift:
        assert 2**shift == branching
    else:
        assert np.log2(branching) % 1 != 0


@settings(deadline=None, max_examples=example_count(60))
@given(trees, st.integers(0, 2**32 - 1))
def test_weights_add_up_to_one_along_every_path(tree, seed):
    leaves, branching = tree
    sizes, offsets = tree_levels(leaves, branching)
    shares = np.random.default_rng(seed).uniform(0.0, 0.99, offsets[-1])
    weights = weights_from_shares(shares, sizes, offsets, branching)
    np.testing.assert_allclose(path_sums(weights, leaves, branching), 1.0, rtol=1e-14)
    assert weights[-1] == (shares[-1] if leaves > 1 else 1.0)
    back = shares_from_weights(weights, sizes, offsets, branching)
    np.testing.assert_allclose(back[leaves:], shares[leaves:], rtol=1e-12)
    assert (back[:leaves] == 1.0).all()


def test_shares_of_a_pruned_tree_are_one_below_the_pruned_node():
    sizes, offsets = tree_levels(4, 2)
    weights = np.array([0.0, 0.0, 0.25, 0.25, 0.75, 0.5, 0.25])
    shares = shares_from_weights(weights, sizes, offsets, 2)
    np.testing.assert_allclose(shares, [1, 1, 1, 1, 1, 2 / 3, 0.25])


@settings(deadline=None, max_examples=example_count(60))
@given(trees)
def test_a_regular_tree_is_the_tree_of_its_parents(tree):
    regular = regular_tree(*tree)
    again = tree_of_parents(regular.row_parents)
    assert again.first_child.tolist() == regular.first_child.tolist()
    assert again.by_row(np.arange(again.nodes)).tolist() == list(range(again.nodes))
    assert regular.offsets.tolist() == tree_levels(*tree)[1].tolist()
    sets = node_rows(*tree).astype(bool)
    for node, held in enumerate(sets):
        run = np.arange(regular.starts[node], regular.ends[node])
        assert run.tolist() == np.flatnonzero(held).tolist()


@settings(deadline=None, max_examples=EXAMPLES)
@given(**TREES)
def test_shape_and_totals_equal_the_definition(leaves, seed):
    generator = np.random.default_rng(seed)
    parents = reference.random_parents(generator, leaves)
    tree = tree_of_parents(parents)
    sets = reference.leaf_sets(parents)
    assert tree.leaves == leaves
    starts, ends = tree.by_row(tree.starts), tree.by_row(tree.ends)
    row_of = np.argsort(tree.by_row(np.arange(tree.nodes)))
    for row in range(tree.nodes):
        assert sets[row, starts[row] : ends[row]].all()
        assert sets[row].sum() == ends[row] - starts[row]
        node = int(np.flatnonzero(row_of == row)[0])
        below = row_of[tree.first_child[node] : tree.first_child[node + 1]]
        assert sorted(below) == np.flatnonzero(parents == row).tolist()
        assert (np.diff(starts[below]) > 0).all()
    assert tree.row_parents.tolist() == parents.tolist()
    assert (np.diff(tree.offsets) > 0).all()
    counts = generator.integers(0, 2**40, leaves)
    exact = [sum(counts[row > 0].tolist()) for row in sets]
    assert tree_totals(counts, tree).tolist() == exact


def test_arrays_of_another_length_are_refused():
    tree = tree_of_parents(np.array([2, 2, -1]))
    with pytest.raises(InputError, match="2 leaves"):
        tree_totals(np.zeros(3, np.int64), tree)
    with pytest.raises(InputError, match="rates holds one number per node"):
        tree.integers(np.zeros(2, np.int64), "rates")


@pytest.mark.long
def test_a_regular_tree_in_use_is_shared_and_forgotten_with_its_last_user():
    tree = regular_tree(1000, 3)
    assert regular_tree(1000, 3) is tree
    assert regular_tree(1000, 4) is not tree
    gone = weakref.ref(tree)
    del tree
    gc.collect()
    assert gone() is None
