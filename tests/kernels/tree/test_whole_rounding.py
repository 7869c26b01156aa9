"""Whole numbers on trees: they add up, and stay next to the fit."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.shape import (
    leaf_first_numbers,
    renumber_nodes,
    tree_of_parents,
)
from blowfish_fast.kernels.tree.whole_rounding import whole_families
from tests.reference import nested as reference

pytestmark = pytest.mark.kernel


def random_parents(rng, nodes):
    """Return the parents of a random tree, in the order that kernels take."""
    above = [rng.integers(0, node) for node in range(1, nodes)]
    parents = np.array([-1, *above], dtype=np.int64)
    return renumber_nodes(parents, leaf_first_numbers(parents))


@pytest.mark.parametrize("seed", range(20))
def test_whole_numbers_add_up_and_stay_next_to_the_fit(seed):
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, int(rng.integers(2, 60)))
    tree, rows = tree_of_parents(parents), reference.leaf_sets(parents)
    leaves = rng.exponential(3, tree.leaves) * (rng.random(tree.leaves) < 0.8)
    fit = rows @ leaves
    whole = whole_families(fit, np.zeros(fit.size, bool), tree, rng)
    np.testing.assert_array_equal(whole, rows @ whole[: tree.leaves])
    assert (np.abs(whole - fit) < 1 + 1e-6).all()
    assert whole.min() >= 0


def test_the_mean_of_many_roundings_is_the_fit():
    parents = np.array([5, 5, 5, 6, 6, 7, 7, -1])
    tree, rows = tree_of_parents(parents), reference.leaf_sets(parents)
    fit = rows @ np.array([0.2, 1.7, 0.5, 0.35, 0.9])
    rng, trials = np.random.default_rng(1), 4000
    total = np.zeros(fit.size)
    for _ in range(trials):
        total += whole_families(fit, np.zeros(fit.size, bool), tree, rng)
    # A rounding is one of two neighbours: its standard deviation is at most a half.
    np.testing.assert_allclose(total / trials, fit, atol=4 * 0.5 / np.sqrt(trials))


@pytest.mark.parametrize("seed", range(10))
def test_exact_totals_are_kept_whatever_is_lost_in_fractions(seed):
    rng = np.random.default_rng(seed)
    # Three families of thirds, whose fractions do not add up to a whole in binary.
    parents = np.r_[np.repeat([9, 10, 11], 3), 12, 12, 12, -1]
    tree, rows = tree_of_parents(parents), reference.leaf_sets(parents)
    leaves = np.full(9, 1 / 3)
    exact = np.zeros(13, bool)
    exact[9:] = True
    whole = whole_families(rows @ leaves, exact, tree, rng)
    assert whole[9:].tolist() == [1, 1, 1, 3]
    np.testing.assert_array_equal(whole, rows @ whole[:9])


def test_negative_cells_are_refused():
    tree = tree_of_parents(np.array([2, 2, -1]))
    with pytest.raises(InputError, match="without negative cells"):
        whole_families(
            np.array([-1.0, 2, 1]), np.zeros(3, bool), tree, np.random.default_rng(1)
        )
