"""Levels of a grid: what is measured, and that all levels agree in one tree."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Account, Handle
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.strategies.trees.box_tree import BoxTree, rough_total
from blowfish_fast.mechanisms.maps.grids import (
    cut_level,
    joined_levels,
    measure_leaves,
)

GRID = bf.Domain((6, 4))
COUNTS = np.arange(24)


def measured_levels(policy):
    """Return two levels of a 2 x 2 grid whose boxes are halved, and what was bought."""
    account = Account(Budget(Fraction(10**6)))
    private = Handle(COUNTS, policy, account, Randomness(1))
    _, bought = rough_total(private, None, budget=Budget(Fraction(10)))
    whole = BoxTree.whole(GRID.shape)
    coarse = cut_level(whole, whole.leaves, np.array([[2, 2]]))
    boxes = coarse.tree.leaves
    fine = cut_level(coarse.tree, boxes, np.tile([1, 2], (boxes.size, 1)))
    budget = Budget(Fraction(10**5))
    return bought, [measure_leaves(private, one, budget) for one in (coarse, fine)]


@pytest.mark.parametrize("family", [bf.policies.AddRemove, bf.policies.Full])
def test_two_levels_give_the_totals_of_their_boxes(family):
    bought, levels = measured_levels(family(GRID))
    assert len(bought) == (family is bf.policies.AddRemove)
    estimate = joined_levels(bought, levels).estimate().reshape(GRID.shape)
    boxes = COUNTS.reshape(2, 3, 4).sum(axis=1)
    np.testing.assert_allclose(estimate.reshape(2, 3, 4).sum(axis=1), boxes, atol=0.01)


def test_every_box_at_the_bottom_is_measured_once_and_nothing_else():
    _, (coarse, fine) = measured_levels(bf.policies.AddRemove(GRID))
    assert coarse.scales.measured.sum() == 4
    assert fine.scales.measured.sum() == 8


def test_one_level_without_a_bought_total_stays_as_it_is():
    _, levels = measured_levels(bf.policies.Full(GRID))
    assert joined_levels([], levels[:1]) is levels[0]
