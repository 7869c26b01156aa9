"""Leverages: the diagonal of the projection, and a bound on every coefficient."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.block_trees import trees_over_blocks
from blowfish_fast.kernels.tree.hat_matrix import hat_diagonal
from tests.reference import ordered_hierarchy as reference
from tests.reference.hierarchy_problems import problems

pytestmark = pytest.mark.kernel

EXAMPLES = 25 if config.DISABLE_JIT else 120


@settings(deadline=None, max_examples=EXAMPLES)
@given(problems())
def test_leverage_bounds_every_coefficient_of_a_range(problem):
    trees, rows, variances = problem
    leverage = hat_diagonal(variances, trees)
    own = reference.dense_coefficients(variances, rows, rows)
    np.testing.assert_allclose(leverage, np.diagonal(own), atol=1e-6)
    cells = rows.shape[1]
    ranges = np.array(
        [
            (np.arange(cells) >= start) & (np.arange(cells) < end)
            for start in range(cells)
            for end in range(start + 1, cells + 1)
        ]
    ).astype(float)
    largest = np.abs(reference.dense_coefficients(variances, rows, ranges)).max(axis=0)
    assert (largest <= leverage + 1e-6).all()


def test_a_row_that_stands_alone_follows_itself():
    trees = trees_over_blocks(np.arange(4), np.full(3, 2))
    assert hat_diagonal(np.array([3.0, 5.0, 0.0]), trees).tolist() == [1.0, 1.0, 0.0]


def test_misfits_are_refused():
    trees = trees_over_blocks(np.array([0, 2]), np.array([2]))
    with pytest.raises(InputError, match="3 rows"):
        hat_diagonal(np.ones(2), trees)
