"""Shares by importance, beside a solver."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.kernels.tree.level_shares import shared_weights
from blowfish_fast.kernels.tree.shape import (
    leaf_first_numbers,
    renumber_nodes,
    tree_of_parents,
)
from tests.reference import nested as reference

pytestmark = pytest.mark.kernel


def random_parents(rng, nodes):
    """Return the parents of a random tree, in the order that kernels take."""
    above = [rng.integers(0, node) for node in range(1, nodes)]
    parents = np.array([-1, *above], dtype=np.int64)
    return renumber_nodes(parents, leaf_first_numbers(parents))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("power", "exponent"), [(1, 2), (2, 1)])
def test_shares_cost_what_a_solver_finds_least(seed, power, exponent):
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, 8)
    costs = rng.uniform(0.1, 3, 8) * (rng.random(8) < 0.7)
    costs[np.setdiff1d(np.arange(8), parents)] += 0.1
    weights = shared_weights(costs, tree_of_parents(parents), power)
    paths = reference.leaf_sets(parents).T @ weights
    np.testing.assert_allclose(paths, 1.0)
    merged = reference.merged_costs(costs, parents)
    assert (weights[merged == 0] == 0).all()
    used = merged > 0
    total = (merged[used] / weights[used] ** exponent).sum()
    least = reference.least_cost(costs, parents, exponent)
    assert total == pytest.approx(least, rel=1e-3)


def test_a_chain_of_only_children_is_measured_once_at_its_end():
    tree = tree_of_parents(np.array([1, 2, -1]))
    weights = shared_weights(np.array([0.0, 1.0, 5.0]), tree, 1)
    np.testing.assert_array_equal(weights, [1.0, 0.0, 0.0])


def test_below_the_last_node_that_matters_nothing_is_measured():
    tree = tree_of_parents(np.array([4, 4, 5, 5, 6, 6, -1]))
    weights = shared_weights(np.array([0, 0, 0, 0, 1.0, 1.0, 0]), tree, 1)
    np.testing.assert_array_equal(weights, [0, 0, 0, 0, 1, 1, 0])
