"""The layout of a tree, and the two forms of its weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.tree_shape import (
    shares_from_weights,
    shift_of,
    tree_levels,
    weights_from_shares,
)
from tests.reference.greedy_weights import node_rows, path_sums

pytestmark = pytest.mark.kernel

trees = st.tuples(st.integers(1, 60), st.integers(2, 9))


@settings(deadline=None, max_examples=60)
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


@settings(deadline=None, max_examples=60)
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
