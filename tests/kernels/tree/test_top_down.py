"""Non-negative fits against all active sets, on trees with exact and free nodes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from blowfish_fast import kernels
from blowfish_fast.kernels.tree.fit import top_down_fit
from blowfish_fast.kernels.tree.shape import regular_tree, tree_of_parents, tree_totals

pytestmark = pytest.mark.kernel


def best_family(up, variances, low, total):
    """Return the cheapest values over every set of children that rest on bounds."""
    best, least = None, np.inf
    for above in product([False, True], repeat=up.size):
        free = np.array(above)
        if not free.any():
            continue
        values = low.copy()
        left = total - low[~free].sum() - up[free].sum()
        values[free] = up[free] + left * variances[free] / variances[free].sum()
        cost = (np.square(values - up) / variances).sum()
        if (values >= low - 1e-12).all() and cost < least:
            best, least = values, cost
    return best


@pytest.mark.parametrize("seed", range(100))
def test_a_family_is_the_best_of_all_active_sets(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    up, variances = 3 * rng.normal(size=size), 10 ** rng.uniform(-2, 2, size)
    total = abs(rng.normal())
    fit = top_down_fit(
        np.append(up, total), np.append(variances, 0.0), regular_tree(size, size)
    )
    expected = best_family(up, variances, np.zeros(size), total)
    np.testing.assert_allclose(fit[:size], expected, atol=1e-12)


def random_measurement(seed):
    """Return a tree, true totals, noisy ones and variances, some 0 or infinite."""
    rng = np.random.default_rng(seed)
    leaves = int(rng.integers(1, 60))
    tree = regular_tree(leaves, int(rng.choice([2, 3, 4, 16])))
    counts = rng.integers(0, 5, leaves) * (rng.random(leaves) < 0.4)
    truth = tree_totals(counts, tree)
    variances = 10 ** rng.uniform(-1, 1, tree.nodes)
    variances[rng.random(tree.nodes) < 0.2] = np.inf
    variances[rng.random(tree.nodes) < 0.1] = 0.0
    size = np.sqrt(np.where(np.isfinite(variances), variances, 0.0))
    noisy = truth + size * rng.normal(size=tree.nodes)
    noisy[np.isinf(variances)] = np.nan  # must never be read
    return tree, truth, noisy, variances


@pytest.mark.parametrize("seed", range(100))
def test_totals_add_up_are_not_negative_and_keep_exact_nodes(seed):
    tree, truth, noisy, variances = random_measurement(seed)
    fit = top_down_fit(noisy, variances, tree)
    assert fit.min() >= 0
    edges = tree.first_child
    for node in range(tree.nodes):
        if edges[node] < edges[node + 1]:
            children = fit[edges[node] : edges[node + 1]]
            assert children.sum() == pytest.approx(fit[node], abs=1e-9)
    exact = variances == 0
    np.testing.assert_allclose(fit[exact], truth[exact], atol=1e-9)
    # Those above the first family that is changed keep the least-squares total.
    squares = kernels.tree_fit(noisy, variances, tree)
    if squares[-1] >= 0:
        assert fit[-1] == pytest.approx(squares[-1], abs=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_without_a_negative_leaf_it_is_least_squares(seed):
    tree, _, noisy, variances = random_measurement(seed)
    shift = 100 * tree_totals(np.ones(tree.leaves, dtype=np.int64), tree)
    squares = kernels.tree_fit(noisy + shift, variances, tree)
    assert squares[: tree.leaves].min() >= 0
    np.testing.assert_allclose(
        top_down_fit(noisy + shift, variances, tree), squares, atol=1e-9
    )


def test_a_negative_node_takes_from_its_sibling_and_the_cells_below_that():
    """The counter-example of the note: a becomes 6, its cells 3 each."""
    tree = tree_of_parents(np.array([4, 4, 5, 5, 6, 6, -1]))
    noisy = np.array([6.0, 6.0, -3.0, -3.0, 12.0, -6.0, 6.0])
    fit = top_down_fit(noisy, np.ones(7), tree)
    np.testing.assert_allclose(fit, [3, 3, 0, 0, 6, 0, 6], atol=1e-12)


def test_exact_nodes_below_a_negative_estimate_bound_it_from_below():
    tree = tree_of_parents(np.array([4, 4, 5, 5, 6, 6, -1]))
    noisy = np.array([7.0, 0.0, 3.0, 4.0, -20.0, 9.0, 10.0])
    variances = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    fit = top_down_fit(noisy, variances, tree)
    assert fit[0] == 7
    assert fit[4] == pytest.approx(7)
    assert fit[5] == pytest.approx(3)


def test_free_leaves_take_up_what_is_left_and_nothing_below_zero():
    tree = regular_tree(3, 3)
    open_leaf = np.array([1.0, 1.0, np.inf, 1.0])
    left = top_down_fit(np.array([2.0, 3.0, np.nan, 9.0]), open_leaf, tree)
    np.testing.assert_allclose(left, [2, 3, 4, 9], atol=1e-12)
    none_left = top_down_fit(np.array([2.0, 5.0, np.nan, 3.0]), open_leaf, tree)
    np.testing.assert_allclose(none_left, [0, 3, 0, 3], atol=1e-12)
    negative = top_down_fit(np.array([2.0, -5.0, np.nan, 3.0]), open_leaf, tree)
    np.testing.assert_allclose(negative, [2, 0, 1, 3], atol=1e-12)


def test_everything_negative_is_zero():
    tree = regular_tree(8, 2)
    assert not top_down_fit(np.full(15, -4.0), np.ones(15), tree).any()
