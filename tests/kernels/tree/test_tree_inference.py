from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.tree_inference import (
    subtree_variances,
    tree_fit,
    tree_least_squares,
    tree_totals,
)
from blowfish_fast.kernels.tree.tree_shape import tree_levels
from tests.reference import tree_inference as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 30 if config.DISABLE_JIT else 150
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
    found = tree_fit(noisy, variances, leaves, branching)
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
    found = tree_least_squares(noisy, variances, leaves, branching)
    expected = reference.least_squares_in_fractions(noisy, variances, leaves, branching)
    for mine, right in zip(found, expected, strict=True):
        assert abs(float(mine) - right) <= 1e-12 * max(abs(right), 1)


@settings(deadline=None, max_examples=EXAMPLES // 5)
@given(LEAVES, BRANCHINGS, SEEDS)
def test_subtree_variances_are_those_of_dense_algebra(leaves, branching, seed):
    _, _, variances = random_tree(leaves, branching, seed, unmeasured=0.4, exact=0.1)
    sizes, offsets = tree_levels(leaves, branching)
    found = subtree_variances(variances, sizes, offsets, branching)
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
    fit = tree_fit(noisy, variances, leaves, branching)
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
    found = tree_least_squares(np.array([*leaves, root]), np.ones(3), 2, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_total_of_two_binary_levels_has_four_thirds_of_the_variance():
    variances = np.array([1.0] * 6 + [np.inf])
    found = subtree_variances(variances, *tree_levels(4, 2), 2)
    assert found[-1] == pytest.approx(4 / 3, rel=1e-15)


def test_unmeasured_leaves_share_what_their_ancestor_leaves_over():
    variances = np.full(11, np.inf)
    variances[[0, 8]] = 1.0  # leaf 0 and the node over leaves 0..3
    noisy = np.zeros(11)
    noisy[[0, 8]] = 4.0, 10.0
    found = tree_least_squares(noisy, variances, 5, 2)
    np.testing.assert_array_equal(found, [4, 2, 2, 2, 0])


def test_nothing_measured_gives_zeros():
    found = tree_fit(np.full(7, np.nan), np.full(7, np.inf), 4, 2)
    np.testing.assert_array_equal(found, np.zeros(7))


def test_of_two_contradicting_exact_values_the_ancestor_wins():
    #    root 10        exact; its children say 3 + 4, and theirs 1 + 1 and 2 + 2
    noisy = np.array([1, 1, 2, 2, 3, 4, 10])
    found = tree_fit(noisy, np.zeros(7), 4, 2)
    np.testing.assert_array_equal(found, [2.25, 2.25, 2.75, 2.75, 4.5, 5.5, 10])
    ragged = tree_fit(np.array([0, 0, 0, 0, 0, 3]), np.zeros(6), 3, 2)
    np.testing.assert_array_equal(ragged, [1, 1, 1, 2, 1, 3])


def test_whole_numbers_are_accepted_as_they_are():
    noisy = np.array([3, 5, 9])
    found = tree_least_squares(noisy, np.array([1.0, 1.0, 0.0]), 2, 2)
    np.testing.assert_array_equal(found, [3.5, 5.5])
    np.testing.assert_array_equal(noisy, [3, 5, 9])


@settings(deadline=None, max_examples=EXAMPLES // 3)
@given(LEAVES, BRANCHINGS, SEEDS)
def test_totals_are_exact_integers(leaves, branching, seed):
    counts = np.random.default_rng(seed).integers(0, 2**57, leaves)
    totals = tree_totals(counts, branching)
    members = reference.node_rows(leaves, branching).astype(bool)
    expected = [sum(int(count) for count in counts[row]) for row in members]
    assert totals.dtype == np.int64
    assert totals.tolist() == expected


def test_arrays_of_the_wrong_length_are_refused():
    with pytest.raises(InputError, match="one number per node of the tree, here 7"):
        tree_fit(np.zeros(6), np.ones(7), 4, 2)
    with pytest.raises(InputError, match="variances"):
        tree_least_squares(np.zeros(7), np.ones(8), 4, 2)
    with pytest.raises(InputError, match="not be negative"):
        tree_least_squares(np.zeros(3), np.array([1.0, -1.0, 1.0]), 2, 2)
    with pytest.raises(InputError, match="one-dimensional"):
        tree_totals(np.zeros((2, 2), dtype=np.int64), 2)
