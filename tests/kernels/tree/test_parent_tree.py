"""Trees given by parents: their shape, totals and heaviest ways."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.parent_tree import (
    heaviest_ways,
    leaf_first_numbers,
    parent_totals,
    renumbered,
    tree_of_parents,
)
from tests.reference import parent_tree as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 20 if config.DISABLE_JIT else 80
TREES = {"leaves": st.integers(1, 30), "seed": st.integers(0, 2**32 - 1)}


@settings(deadline=None, max_examples=EXAMPLES)
@given(**TREES)
def test_shape_and_totals_equal_the_definition(leaves, seed):
    generator = np.random.default_rng(seed)
    parents = reference.random_parents(generator, leaves)
    tree = tree_of_parents(parents)
    sets = reference.leaf_sets(parents)
    assert tree.leaves == leaves
    for node in range(tree.nodes):
        assert sets[node, tree.starts[node] : tree.ends[node]].all()
        assert sets[node].sum() == tree.ends[node] - tree.starts[node]
        below = tree.children[tree.pointers[node] : tree.pointers[node + 1]]
        assert sorted(below) == np.flatnonzero(parents == node).tolist()
        assert (np.diff(tree.starts[below]) > 0).all()
    counts = generator.integers(0, 2**40, leaves)
    exact = [sum(counts[row > 0].tolist()) for row in sets]
    assert parent_totals(counts, tree).tolist() == exact


@settings(deadline=None, max_examples=EXAMPLES)
@given(**TREES)
def test_any_numbering_of_a_tree_can_be_put_in_order(leaves, seed):
    generator = np.random.default_rng(seed)
    parents = reference.random_parents(generator, leaves)
    shuffled = renumbered(parents, generator.permutation(parents.size))
    numbers = leaf_first_numbers(shuffled)
    assert sorted(numbers.tolist()) == list(range(parents.size))
    again = renumbered(shuffled, numbers)
    sizes = reference.leaf_sets(parents).sum(axis=1)
    tree = tree_of_parents(again)
    assert sorted((tree.ends - tree.starts).tolist()) == sorted(sizes.tolist())


@settings(deadline=None, max_examples=EXAMPLES)
@given(**TREES)
def test_heaviest_ways_equal_the_definition(leaves, seed):
    generator = np.random.default_rng(seed)
    parents = reference.random_parents(generator, leaves)
    rates = generator.integers(0, 2**50, parents.size)
    path, pair = heaviest_ways(rates, tree_of_parents(parents))
    absent = [(leaf, -1) for leaf in range(leaves)]
    assert path == reference.worst_edge(rates, parents, absent)
    moves = [(one, two) for one in range(leaves) for two in range(one)]
    if moves:
        assert pair == reference.worst_edge(rates, parents, moves)
    else:
        assert pair == 0


@pytest.mark.parametrize(
    "parents",
    [
        [],
        [0],
        [-1, -1],
        [2, 0, -1],
        [4, 3, 4, 4, -1, 5],
        [3, 4, 3, 4, -1],
        [5, 5, -1],
        [2, 2, 3, 4, -1, -1],
    ],
    ids=str,
)
def test_parents_in_another_order_are_refused(parents):
    with pytest.raises(InputError):
        tree_of_parents(np.array(parents, dtype=np.int64))


def test_several_roots_and_circles_are_refused():
    with pytest.raises(InputError, match="one root"):
        leaf_first_numbers(np.array([-1, -1]))
    with pytest.raises(InputError, match="circle"):
        leaf_first_numbers(np.array([1, 0, -1]))


def test_arrays_of_another_length_are_refused():
    tree = tree_of_parents(np.array([2, 2, -1]))
    with pytest.raises(InputError, match="2 leaves"):
        parent_totals(np.zeros(3, np.int64), tree)
    with pytest.raises(InputError, match="one integer per node"):
        heaviest_ways(np.zeros(2, np.int64), tree)
