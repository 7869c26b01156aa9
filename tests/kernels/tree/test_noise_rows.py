"""Rows of noise of each node: shares, keeps, and sums over whole subtrees."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.kernels.tree.noise_rows import KEEP, OWN, SHARE, WHOLE, tree_noise
from blowfish_fast.kernels.tree.shape import regular_tree

pytestmark = pytest.mark.kernel


def test_a_parent_weighs_its_own_row_against_the_sum_of_its_children():
    tree = regular_tree(2, 2)
    rows = tree_noise(np.array([1.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0]), tree)
    # Children known to 1 and 3: the surplus is shared 1 to 3, and half of it is kept.
    np.testing.assert_allclose(rows[:, SHARE], [0.25, 0.75, 1.0])
    np.testing.assert_allclose(rows[:, KEEP], [0.0, 0.0, 0.5])
    np.testing.assert_allclose(rows[2, OWN : OWN + 5], [1.0, 2.25, 1.5, 0.25, 3.0])
    np.testing.assert_allclose(rows[2, WHOLE : WHOLE + 5], [2.0, 3.5, 1.5, 0.75, 3.0])


def test_exact_and_unmeasured_rows_let_no_noise_of_their_own_through():
    tree = regular_tree(2, 2)
    rows = tree_noise(np.array([0.0, 2.0, np.inf]), np.array([0.0, 1.0, 0.0]), tree)
    assert rows[0, OWN] == rows[2, OWN] == 0.0
    assert rows[2, KEEP] == 1.0
    assert rows[2, WHOLE] == 2.0


def test_several_draws_in_a_row_count_by_their_squares():
    tree = regular_tree(1, 2)
    rows = tree_noise(np.array([5.0]), np.array([1.0]), tree, np.array([4.0]))
    assert rows[0, OWN + 3] == 4.0
