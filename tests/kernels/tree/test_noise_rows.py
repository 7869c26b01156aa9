"""Rows of noise of each node: shares, keeps, and sums over whole subtrees."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.kernels.tree.noise_rows import (
    EARLIER,
    KEEP,
    LATER,
    OWN,
    SHARE,
    WHOLE,
    subtree_kinds,
    tree_noise,
)
from blowfish_fast.kernels.tree.shape import regular_tree, tree_of_parents

pytestmark = pytest.mark.kernel


def by_node(*arguments):
    """Return the row of every node."""
    noise = tree_noise(*arguments)
    return noise.rows[noise.row_of]


def test_a_parent_weighs_its_own_row_against_the_sum_of_its_children():
    tree = regular_tree(2, 2)
    rows = by_node(np.array([1.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0]), tree)
    # Children known to 1 and 3: the surplus is shared 1 to 3, and half of it is kept.
    np.testing.assert_allclose(rows[:, SHARE], [0.25, 0.75, 1.0])
    np.testing.assert_allclose(rows[:, KEEP], [0.0, 0.0, 0.5])
    np.testing.assert_allclose(rows[2, OWN : OWN + 5], [1.0, 2.25, 1.5, 0.25, 3.0])
    np.testing.assert_allclose(rows[2, WHOLE : WHOLE + 5], [2.0, 3.5, 1.5, 0.75, 3.0])


def test_exact_and_unmeasured_rows_let_no_noise_of_their_own_through():
    tree = regular_tree(2, 2)
    rows = by_node(np.array([0.0, 2.0, np.inf]), np.array([0.0, 1.0, 0.0]), tree)
    assert rows[0, OWN] == rows[2, OWN] == 0.0
    assert rows[2, KEEP] == 1.0
    assert rows[2, WHOLE] == 2.0


def test_several_draws_in_a_row_count_by_their_squares():
    tree = regular_tree(1, 2)
    rows = by_node(np.array([5.0]), np.array([1.0]), tree, np.array([4.0]))
    assert rows[0, OWN + 3] == 4.0


def test_subtrees_that_are_alike_share_a_kind_and_others_do_not():
    # Three families of two leaves; the last family has another leaf, the root is alone.
    tree = tree_of_parents(np.array([6, 6, 7, 7, 8, 8, 9, 9, 9, -1]))
    words = np.array([[1, 2, 1, 2, 2, 1, 5, 5, 5, 5]])
    kinds, firsts = subtree_kinds(words, tree.first_child)
    assert kinds.tolist() == [0, 1, 0, 1, 1, 0, 2, 2, 3, 4]
    assert firsts.tolist() == [0, 1, 6, 8, 9]


def test_a_tree_of_one_scale_per_level_has_one_family_of_rows_per_level():
    tree = regular_tree(64, 4)
    noise = tree_noise(np.full(85, 2.0), np.ones(85), tree)
    assert noise.rows.shape == (3 * 4 + 1, 24)
    assert noise.row_of[:8].tolist() == [*noise.row_of[:4]] * 2


def test_siblings_on_either_side_are_summed_up_in_each_row():
    variances = np.array([1.0, 2.0, 5.0, np.inf])
    rows = by_node(variances, np.sqrt(variances), regular_tree(3, 3))
    np.testing.assert_allclose(rows[:3, EARLIER], [0.0, 0.125, 0.375])
    np.testing.assert_allclose(rows[:3, EARLIER + 1], [0.0, 1.0, 3.0])
    np.testing.assert_allclose(rows[:3, LATER], [0.875, 0.625, 0.0])
    np.testing.assert_allclose(rows[:3, LATER + 1], [7.0, 5.0, 0.0])
