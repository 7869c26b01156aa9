"""Variances of nodes after least squares, beside dense ones."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.least_squares_variances import node_variances
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


@pytest.mark.parametrize("seed", range(25))
def test_variances_are_those_of_dense_least_squares(seed):
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, int(rng.integers(1, 14)))
    variances = rng.uniform(0.2, 5, parents.size)
    variances[rng.random(parents.size) < 0.3] = np.inf
    found = node_variances(variances, tree_of_parents(parents))
    np.testing.assert_allclose(
        found, reference.variances_after(variances, parents), rtol=1e-6
    )


def test_exact_nodes_have_no_variance_and_help_their_siblings():
    # Two leaves below an exact node: what is known of one is known of the other.
    tree = tree_of_parents(np.array([2, 2, -1]))
    found = node_variances(np.array([1.0, 3.0, 0.0]), tree)
    np.testing.assert_allclose(found, [0.75, 0.75, 0.0])
    assert (node_variances(np.zeros(3), tree) == 0).all()


def test_negative_variances_are_refused():
    with pytest.raises(InputError, match="must not be negative"):
        node_variances(
            np.array([1.0, -1.0, 1.0]), tree_of_parents(np.array([2, 2, -1]))
        )
