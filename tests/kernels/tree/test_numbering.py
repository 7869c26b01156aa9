"""Trees given by parents get node numbers, and what is no tree is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.shape import (
    leaf_first_numbers,
    renumber_nodes,
    tree_of_parents,
)
from tests.generated import example_count
from tests.reference import trees as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 20 if config.DISABLE_JIT else example_count(80)
TREES = {"leaves": st.integers(1, 30), "seed": st.integers(0, 2**32 - 1)}
trees = st.tuples(st.integers(1, 60), st.integers(2, 9))


@settings(deadline=None, max_examples=EXAMPLES)
@given(**TREES)
def test_any_numbering_of_a_tree_can_be_put_in_order(leaves, seed):
    generator = np.random.default_rng(seed)
    parents = reference.random_parents(generator, leaves)
    shuffled = renumber_nodes(parents, generator.permutation(parents.size))
    numbers = leaf_first_numbers(shuffled)
    assert sorted(numbers.tolist()) == list(range(parents.size))
    again = renumber_nodes(shuffled, numbers)
    sizes = reference.leaf_sets(parents).sum(axis=1)
    tree = tree_of_parents(again)
    assert sorted((tree.ends - tree.starts).tolist()) == sorted(sizes.tolist())


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
