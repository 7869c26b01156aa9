"""Least squares on a chain of blocks with trees: equal to the dense solution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.block_trees import trees_over_blocks
from blowfish_fast.kernels.tree.fit import tree_fit
from blowfish_fast.kernels.tree.ordered_hierarchy_inference import (
    chain_variances,
    hierarchy_least_squares,
    tree_variances,
)
from blowfish_fast.kernels.tree.shape import regular_tree
from tests.reference import ordered_hierarchy as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 20 if config.DISABLE_JIT else 80


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=4),
    st.integers(2, 4),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_equals_dense_least_squares(sizes, fan_out, exact_total, seed):
    rng = np.random.default_rng(seed)
    edges = np.append(0, np.cumsum(sizes))
    trees = trees_over_blocks(edges, np.full(len(sizes), fan_out))
    rows = reference.dense_rows(edges, [fan_out] * len(sizes))
    variances = rng.uniform(0.1, 5.0, trees.rows)
    if exact_total:
        variances[len(sizes) - 1] = 0.0
    noisy = rng.normal(scale=20, size=trees.rows)
    found = hierarchy_least_squares(noisy, variances, trees)
    np.testing.assert_allclose(
        found, reference.dense_fit(noisy, variances, rows), atol=1e-7
    )


def test_o3_the_linear_solution_equals_the_dense_one():
    cells, theta, fan_out = 23, 6, 2
    edges = np.append(np.arange(0, cells, theta), cells)
    trees = trees_over_blocks(edges, np.full(4, fan_out))
    variances = np.full(trees.rows, 8 * 9 / 0.7**2)
    variances[:4] = 2 / 0.3**2
    variances[3] = 0.0
    noisy = np.random.default_rng(3).normal(scale=20, size=trees.rows)
    noisy[3] = 37.0
    found = hierarchy_least_squares(noisy, variances, trees)
    rows = reference.dense_rows(edges, [fan_out] * 4)
    np.testing.assert_allclose(found, reference.dense_fit(noisy, variances, rows))
    assert found.sum() == pytest.approx(37.0)


def test_o7_a_block_total_has_four_thirds_of_a_nodes_variance():
    trees = trees_over_blocks(np.array([0, 4]), np.array([2]))
    inside = tree_variances(np.append(np.inf, np.full(6, 3.0)), trees)
    assert inside.known[0] == pytest.approx(4 * 3.0 / 3)


def test_exact_borders_part_the_line():
    edges = np.array([0, 3, 5, 9])
    trees = trees_over_blocks(edges, np.full(3, 2))
    rng = np.random.default_rng(5)
    variances = rng.uniform(1, 2, trees.rows)
    variances[[1, 2]] = 0.0
    noisy = rng.integers(0, 50, trees.rows).astype(float)
    found = hierarchy_least_squares(noisy, variances, trees)
    assert found[:5].sum() == pytest.approx(noisy[1])
    assert found[5:].sum() == pytest.approx(noisy[2] - noisy[1])
    other = noisy.copy()
    other[[0, 3, 4, 5, 6]] += 7.0
    again = hierarchy_least_squares(other, variances, trees)
    np.testing.assert_allclose(again[5:], found[5:], atol=1e-9)
    chain = chain_variances(variances, trees, tree_variances(variances, trees))
    assert chain.smoothed[[0, 2, 3]].tolist() == [0.0, 0.0, 0.0]
    assert chain.follow[2] == 0.0


def test_blocks_of_one_cell_are_differences_of_borders():
    trees = trees_over_blocks(np.arange(6), np.full(5, 2))
    noisy = np.array([3, 1, 4, 1, 5])
    found = hierarchy_least_squares(noisy, np.array([2.0, 2.0, 2.0, 2.0, 0.0]), trees)
    np.testing.assert_array_equal(found, np.diff(noisy, prepend=0))


def test_one_block_is_the_plain_tree():
    trees = trees_over_blocks(np.array([0, 16]), np.array([4]))
    rng = np.random.default_rng(6)
    noisy = rng.normal(size=21)
    variances = rng.uniform(1, 3, 21)
    # Here the root comes first and leaves last; there, leaves first and the root last.
    level_by_level = np.concatenate([np.arange(5, 21), np.arange(1, 5), [0]])
    expected = tree_fit(
        noisy[level_by_level], variances[level_by_level], regular_tree(16, 4)
    )[:16]
    found = hierarchy_least_squares(noisy, variances, trees)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("unmeasured", [[0], [2, 3, 4], list(range(4, 14)), [1, 4, 9]])
def test_rows_that_were_not_measured_tell_nothing(unmeasured):
    edges = np.array([0, 4, 6, 9, 12])
    trees = trees_over_blocks(edges, np.full(4, 3))
    rows = reference.dense_rows(edges, [3] * 4)
    counts = np.arange(12) ** 2
    variances = np.full(trees.rows, 2.0)
    variances[3] = 0.0
    variances[unmeasured] = np.inf
    noisy = rows @ counts
    noisy[unmeasured] = 0.0
    found = hierarchy_least_squares(noisy, variances, trees)
    # Whatever is left open, every measured row is met.
    measured = np.isfinite(variances)
    np.testing.assert_allclose((rows @ found)[measured], noisy[measured], atol=1e-6)


def test_variances_of_very_different_size_keep_their_digits():
    trees = trees_over_blocks(np.array([0, 4, 8]), np.array([2, 2]))
    rows = reference.dense_rows(trees.edges, [2, 2])
    counts = np.array([5, 0, 3, 9, 1, 1, 8, 2])
    for size in (1e-200, 1e-12, 1e12, 1e150):
        variances = np.full(trees.rows, 1.0)
        variances[2:8] = size
        found = hierarchy_least_squares(rows @ counts, variances, trees)
        np.testing.assert_allclose(found, counts, atol=1e-9)


def test_misfits_are_refused():
    trees = trees_over_blocks(np.array([0, 2]), np.array([2]))
    with pytest.raises(InputError, match="3 rows"):
        hierarchy_least_squares(np.zeros(3), np.ones(2), trees)
    with pytest.raises(InputError, match="0 or more"):
        hierarchy_least_squares(np.zeros(3), np.array([1.0, -1.0, 1.0]), trees)
    with pytest.raises(InputError, match="noisy holds"):
        hierarchy_least_squares(np.zeros(4), np.ones(3), trees)
