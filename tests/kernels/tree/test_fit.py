from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.fit import subtree_variances, tree_fit
from blowfish_fast.kernels.tree.shape import (
    regular_tree,
    tree_levels,
    tree_of_parents,
    tree_totals,
)
from tests.generated import example_count
from tests.reference import tree_inference as reference
from tests.reference import trees

pytestmark = pytest.mark.kernel

EXAMPLES = 30 if config.DISABLE_JIT else example_count(150)
BRANCHINGS = st.sampled_from([2, 3, 4, 8, 64])
LEAVES = st.integers(1, 40)
SEEDS = st.integers(0, 2**32 - 1)


def random_tree(leaves, branching, seed, *, unmeasured, exact, decades=1.0):
    """Return true node totals, noisy ones and variances of a random measurement."""
    rng = np.random.default_rng(seed)
    rows = reference.node_rows(leaves, branching)
    truth = rows @ rng.integers(0, 100, leaves)
    variances = 10.0 ** rng.uniform(-decades, decades, truth.size)
    variances[rng.random(truth.size) < unmeasured] = np.inf
    variances[rng.random(truth.size) < exact] = 0.0
    noise = rng.normal(size=truth.size)
    noise *= np.sqrt(np.where(np.isfinite(variances), variances, 0.0))
    return truth, truth + noise, variances


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    LEAVES,
    BRANCHINGS,
    SEEDS,
    st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)
def test_equals_dense_least_squares(leaves, branching, seed, unmeasured, exact):
    truth, noisy, variances = random_tree(
        leaves, branching, seed, unmeasured=unmeasured, exact=exact
    )
    noisy[np.isinf(variances)] = np.nan  # must never be read
    found = tree_fit(noisy, variances, regular_tree(leaves, branching))
    expected = reference.least_squares(noisy, variances, leaves, branching)
    rows = reference.node_rows(leaves, branching)
    np.testing.assert_allclose(found[:leaves], expected, atol=1e-8)
    np.testing.assert_allclose(found, rows @ found[:leaves], atol=1e-9)
    if exact == 1.0:
        np.testing.assert_array_equal(found, truth)


@settings(deadline=None, max_examples=EXAMPLES // 5)
@given(st.integers(2, 9), st.sampled_from([2, 3, 4]), SEEDS)
def test_keeps_its_digits_when_variances_span_24_decades(leaves, branching, seed):
    _, noisy, variances = random_tree(
        leaves, branching, seed, unmeasured=0.0, exact=0.0, decades=12.0
    )
    found = tree_fit(noisy, variances, regular_tree(leaves, branching))[:leaves]
    expected = reference.least_squares_in_fractions(noisy, variances, leaves, branching)
    for mine, right in zip(found, expected, strict=True):
        assert abs(float(mine) - right) <= 1e-12 * max(abs(right), 1)


@settings(deadline=None, max_examples=EXAMPLES // 5)
@given(LEAVES, BRANCHINGS, SEEDS)
def test_subtree_variances_are_those_of_dense_algebra(leaves, branching, seed):
    _, _, variances = random_tree(leaves, branching, seed, unmeasured=0.4, exact=0.1)
    tree = regular_tree(leaves, branching)
    found = subtree_variances(variances, tree.first_child)
    rows = reference.node_rows(leaves, branching)
    inside = rows @ rows.T == rows.sum(axis=1)  # [node, other]: other lies in node
    spreads = np.where(np.isfinite(variances), variances, 0.0)
    for node in range(found.size):
        # Unary chains repeat a set of leaves: below means "not later in the order".
        below = inside[node] & (np.arange(found.size) <= node)
        own = np.where(below, variances, np.inf)
        estimate = reference.coefficients(own, leaves, branching)
        weights = rows[node] @ estimate
        measured = rows[np.isfinite(own)]
        with_node = np.vstack([measured, rows[node]])
        fixed = np.linalg.matrix_rank(with_node) == np.linalg.matrix_rank(
            np.vstack([measured, np.zeros(leaves)])
        )
        assert fixed == (found[node] >= 0)
        if fixed:
            expected = (weights**2 * spreads).sum()
            assert found[node] == pytest.approx(expected, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("branching", [2, 7, 16])
def test_satisfies_the_normal_equations_of_a_large_tree(branching):
    leaves = 300 if config.DISABLE_JIT else 20000
    rng = np.random.default_rng(3)
    sizes, offsets = tree_levels(leaves, branching)
    variances = rng.uniform(1, 100, offsets[-1])
    noisy = rng.normal(size=offsets[-1]) * 1000
    fit = tree_fit(noisy, variances, regular_tree(leaves, branching))
    # The gradient at a leaf: weighed residuals of the nodes above it, root to leaf.
    residuals = (fit - noisy) / variances
    gradient = np.zeros(1)
    for level in range(sizes.size - 1, -1, -1):
        if level < sizes.size - 1:
            gradient = np.repeat(gradient, branching)[: sizes[level]]
        gradient = gradient + residuals[offsets[level] : offsets[level + 1]]
    np.testing.assert_allclose(gradient, 0, atol=1e-9)
    np.testing.assert_allclose(fit[-1], fit[:leaves].sum(), rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize(
    ("root", "leaves", "expected"),
    [(0, (0.5, 0.5), (1 / 6, 1 / 6)), (0, (1, 0), (2 / 3, -1 / 3))],
)
def test_agrees_with_the_example_of_hay(root, leaves, expected):
    found = tree_fit(np.array([*leaves, root]), np.ones(3), regular_tree(2, 2))[:2]
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_total_of_two_binary_levels_has_four_thirds_of_the_variance():
    variances = np.array([1.0] * 6 + [np.inf])
    found = subtree_variances(variances, regular_tree(4, 2).first_child)
    assert found[-1] == pytest.approx(4 / 3, rel=1e-15)


def test_unmeasured_leaves_share_what_their_ancestor_leaves_over():
    variances = np.full(11, np.inf)
    variances[[0, 8]] = 1.0  # leaf 0 and the node over leaves 0..3
    noisy = np.zeros(11)
    noisy[[0, 8]] = 4.0, 10.0
    found = tree_fit(noisy, variances, regular_tree(5, 2))[:5]
    np.testing.assert_array_equal(found, [4, 2, 2, 2, 0])


def test_nothing_measured_gives_zeros():
    found = tree_fit(np.full(7, np.nan), np.full(7, np.inf), regular_tree(4, 2))
    np.testing.assert_array_equal(found, np.zeros(7))


def test_of_two_contradicting_exact_values_the_ancestor_wins():
    #    root 10        exact; its children say 3 + 4, and theirs 1 + 1 and 2 + 2
    noisy = np.array([1, 1, 2, 2, 3, 4, 10])
    found = tree_fit(noisy, np.zeros(7), regular_tree(4, 2))
    np.testing.assert_array_equal(found, [2.25, 2.25, 2.75, 2.75, 4.5, 5.5, 10])
    ragged = tree_fit(np.array([0, 0, 0, 0, 0, 3]), np.zeros(6), regular_tree(3, 2))
    np.testing.assert_array_equal(ragged, [1, 1, 1, 2, 1, 3])


def test_whole_numbers_are_accepted_as_they_are():
    noisy = np.array([3, 5, 9])
    found = tree_fit(noisy, np.array([1.0, 1.0, 0.0]), regular_tree(2, 2))[:2]
    np.testing.assert_array_equal(found, [3.5, 5.5])
    np.testing.assert_array_equal(noisy, [3, 5, 9])


@settings(deadline=None, max_examples=EXAMPLES // 3)
@given(LEAVES, BRANCHINGS, SEEDS)
def test_totals_are_exact_integers(leaves, branching, seed):
    counts = np.random.default_rng(seed).integers(0, 2**57, leaves)
    totals = tree_totals(counts, regular_tree(leaves, branching))
    members = reference.node_rows(leaves, branching).astype(bool)
    expected = [sum(int(count) for count in counts[row]) for row in members]
    assert totals.dtype == np.int64
    assert totals.tolist() == expected


def test_arrays_of_the_wrong_length_are_refused():
    with pytest.raises(InputError, match="one number per node of the tree, here 7"):
        tree_fit(np.zeros(6), np.ones(7), regular_tree(4, 2))
    with pytest.raises(InputError, match="variances"):
        tree_fit(np.zeros(7), np.ones(8), regular_tree(4, 2))[:4]
    with pytest.raises(InputError, match="not be negative"):
        tree_fit(np.zeros(3), np.array([1.0, -1.0, 1.0]), regular_tree(2, 2))[:2]
    with pytest.raises(InputError, match="4 leaves; got counts of shape"):
        tree_totals(np.zeros((2, 2), dtype=np.int64), regular_tree(4, 2))


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(1, 20), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 0.8]))
def test_irregular_trees_equal_dense_least_squares(leaves, seed, unmeasured):
    generator = np.random.default_rng(seed)
    parents = trees.random_parents(generator, leaves)
    variances = generator.uniform(0.1, 3.0, parents.size)
    variances[generator.random(parents.size) < unmeasured] = np.inf
    noisy = generator.normal(size=parents.size)
    fit = tree_fit(noisy, variances, tree_of_parents(parents))
    expected = trees.dense_fit(noisy, variances, parents)
    np.testing.assert_allclose(fit[:leaves], expected, rtol=1e-7, atol=1e-9)
    sets = trees.leaf_sets(parents)
    np.testing.assert_allclose(fit, sets @ fit[:leaves], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("leaves", "branching"), [(1, 2), (8, 2), (11, 3), (16, 4)])
def test_a_regular_tree_by_its_parents_has_the_same_fit(leaves, branching, generator):
    sizes, offsets = tree_levels(leaves, branching)
    parents = np.full(int(offsets[-1]), -1, dtype=np.int64)
    for level in range(sizes.size - 1):
        index = np.arange(sizes[level]) // branching
        parents[offsets[level] : offsets[level + 1]] = offsets[level + 1] + index
    variances = generator.uniform(0.1, 9.0, parents.size)
    variances[-1] = 0.0
    noisy = generator.normal(size=parents.size)
    np.testing.assert_allclose(
        tree_fit(noisy, variances, tree_of_parents(parents)),
        tree_fit(noisy, variances, regular_tree(leaves, branching)),
        atol=1e-12,
    )


def test_an_exact_ancestor_wins_over_exact_children():
    tree = tree_of_parents(np.array([2, 3, 3, -1]))
    variances = np.array([0.0, 0.0, np.inf, 0.0])
    fit = tree_fit(np.array([1.0, 2.0, 0.0, 5.0]), variances, tree)
    np.testing.assert_allclose(fit, [2.0, 3.0, 2.0, 5.0])


def test_digits_survive_a_huge_and_a_tiny_variance(generator):
    tree = tree_of_parents(np.array([4, 4, 4, 5, 5, -1]))
    variances = np.array([1e24, 1e-12, 1.0, 1e12, np.inf, 1.0])
    fit = tree_fit(generator.normal(size=6), variances, tree)
    assert abs(fit[:3].sum() - fit[4]) <= 1e-9
    assert abs(fit[3] + fit[4] - fit[5]) <= 1e-9


def test_variances_of_another_length_are_refused():
    tree = tree_of_parents(np.array([2, 2, -1]))
    with pytest.raises(InputError, match="variances holds one number per node"):
        tree_fit(np.zeros(3), np.ones(2), tree)


@pytest.mark.parametrize(
    ("noisy", "expected"),
    [([0.5, 0.5, 0.0], [1 / 6, 1 / 6]), ([1.0, 0.0, 0.0], [2 / 3, -1 / 3])],
    ids=str,
)
def test_b2_the_published_examples(noisy, expected):
    tree = tree_of_parents(np.array([2, 2, -1]))
    fit = tree_fit(np.array(noisy), np.ones(3), tree)
    np.testing.assert_allclose(fit[:2], expected)
