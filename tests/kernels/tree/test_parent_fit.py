"""Least squares on trees given by parents equals dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.parent_fit import parent_tree_fit
from blowfish_fast.kernels.tree.parent_tree import tree_of_parents
from blowfish_fast.kernels.tree.tree_inference import tree_fit
from blowfish_fast.kernels.tree.tree_shape import tree_levels
from tests.reference import parent_tree as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 20 if config.DISABLE_JIT else 80


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(1, 20), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 0.8]))
def test_equals_dense_least_squares(leaves, seed, unmeasured):
    generator = np.random.default_rng(seed)
    parents = reference.random_parents(generator, leaves)
    variances = generator.uniform(0.1, 3.0, parents.size)
    variances[generator.random(parents.size) < unmeasured] = np.inf
    noisy = generator.normal(size=parents.size)
    fit = parent_tree_fit(noisy, variances, tree_of_parents(parents))
    expected = reference.dense_fit(noisy, variances, parents)
    np.testing.assert_allclose(fit[:leaves], expected, rtol=1e-7, atol=1e-9)
    sets = reference.leaf_sets(parents)
    np.testing.assert_allclose(fit, sets @ fit[:leaves], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("leaves", "branching"), [(1, 2), (8, 2), (11, 3), (16, 4)])
def test_equals_the_fit_of_a_regular_tree(leaves, branching, generator):
    sizes, offsets = tree_levels(leaves, branching)
    parents = np.full(int(offsets[-1]), -1, dtype=np.int64)
    for level in range(sizes.size - 1):
        index = np.arange(sizes[level]) // branching
        parents[offsets[level] : offsets[level + 1]] = offsets[level + 1] + index
    variances = generator.uniform(0.1, 9.0, parents.size)
    variances[-1] = 0.0
    noisy = generator.normal(size=parents.size)
    np.testing.assert_allclose(
        parent_tree_fit(noisy, variances, tree_of_parents(parents)),
        tree_fit(noisy, variances, leaves, branching),
        atol=1e-12,
    )


def test_an_exact_ancestor_wins_over_exact_children():
    tree = tree_of_parents(np.array([2, 3, 3, -1]))
    variances = np.array([0.0, 0.0, np.inf, 0.0])
    fit = parent_tree_fit(np.array([1.0, 2.0, 0.0, 5.0]), variances, tree)
    np.testing.assert_allclose(fit, [2.0, 3.0, 2.0, 5.0])


def test_digits_survive_a_huge_and_a_tiny_variance(generator):
    tree = tree_of_parents(np.array([4, 4, 4, 5, 5, -1]))
    variances = np.array([1e24, 1e-12, 1.0, 1e12, np.inf, 1.0])
    fit = parent_tree_fit(generator.normal(size=6), variances, tree)
    assert abs(fit[:3].sum() - fit[4]) <= 1e-9
    assert abs(fit[3] + fit[4] - fit[5]) <= 1e-9


def test_arrays_of_another_length_are_refused():
    tree = tree_of_parents(np.array([2, 2, -1]))
    with pytest.raises(InputError, match="variances holds one number per node"):
        parent_tree_fit(np.zeros(3), np.ones(2), tree)


@pytest.mark.parametrize(
    ("noisy", "expected"),
    [([0.5, 0.5, 0.0], [1 / 6, 1 / 6]), ([1.0, 0.0, 0.0], [2 / 3, -1 / 3])],
    ids=str,
)
def test_b2_the_published_examples(noisy, expected):
    tree = tree_of_parents(np.array([2, 2, -1]))
    fit = parent_tree_fit(np.array(noisy), np.ones(3), tree)
    np.testing.assert_allclose(fit[:2], expected)
