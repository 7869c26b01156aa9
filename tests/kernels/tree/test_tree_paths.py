from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.tree_paths import (
    heaviest_pair,
    heaviest_path,
    path_sums,
)
from blowfish_fast.kernels.tree.tree_shape import tree_levels
from tests.reference import tree_paths as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 30 if config.DISABLE_JIT else 100
TREES = {
    "leaves": st.integers(1, 40),
    "branching": st.sampled_from([2, 3, 4, 8, 64]),
    "seed": st.integers(0, 2**32 - 1),
    "largest": st.sampled_from([1, 2, 1000, 2**52]),
}


def random_rates(leaves, branching, seed, largest):
    nodes = tree_levels(leaves, branching)[1][-1]
    return np.random.default_rng(seed).integers(0, largest + 1, nodes)


@settings(deadline=None, max_examples=EXAMPLES)
@given(**TREES)
def test_paths_equal_the_definition(leaves, branching, seed, largest):
    rates = random_rates(leaves, branching, seed, largest)
    expected = reference.path_sums(rates, leaves, branching)
    found = path_sums(rates, leaves, branching)
    assert found.dtype == np.int64
    assert found.tolist() == expected
    assert heaviest_path(rates, leaves, branching) == max(expected)


@settings(deadline=None, max_examples=EXAMPLES)
@given(**TREES)
def test_pair_equals_the_definition(leaves, branching, seed, largest):
    rates = random_rates(leaves, branching, seed, largest)
    expected = reference.heaviest_pair(rates, leaves, branching)
    found = heaviest_pair(rates, leaves, branching)
    assert type(found) is int
    assert found == expected


def test_large_rates_are_summed_exactly():
    rates = np.array([2**60 + 1, 2**60 - 7, 2**60 + 3])
    assert heaviest_path(rates, 2, 2) == 2**61 + 4
    assert heaviest_pair(rates, 2, 2) == 2**61 - 6


def test_a_single_leaf_has_no_pair():
    assert heaviest_pair(np.array([7]), 1, 2) == 0
    assert heaviest_path(np.array([7]), 1, 2) == 7


def test_the_rates_are_left_as_they_were():
    rates = np.array([1, 4, 3, 2, 0, 5])
    path_sums(rates, 3, 2)
    heaviest_pair(rates, 3, 2)
    assert rates.tolist() == [1, 4, 3, 2, 0, 5]


def test_arrays_of_the_wrong_length_are_refused():
    with pytest.raises(InputError, match="one integer per node of the tree, here 7"):
        heaviest_path(np.ones(6, dtype=np.int64), 4, 2)
