"""Kd-trees under audit: published bugs and shortcuts are caught."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import policy_families
from blowfish_fast.audit.grey_box import audit_measurements
from blowfish_fast.audit.invariants import audit_invariants
from blowfish_fast.audit.witness import WatchedRandomness
from blowfish_fast.errors import BudgetError
from blowfish_fast.measure.strategies import Cells
from blowfish_fast.mechanisms.maps.trees import KdTree

GRID = bf.Domain((3, 4))
FAMILIES = sorted(policy_families(GRID))
COUNTS = np.array([[9, 9, 0, 0], [9, 9, 0, 0], [0, 0, 0, 40]])


def tree(kind=KdTree, family="add_remove", **given):
    policy = policy_families(GRID)[family]
    asked = bf.workloads.Rectangles.random(GRID, 8, rng=1)
    return kind(policy, asked, epsilon=1, **given)


def names(mechanism):
    return {breach.invariant for breach in audit_invariants(mechanism, COUNTS)}


@pytest.mark.audit
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rule", ["or", "and", "uniformity", "gain", None])
def test_every_rule_pays_for_every_edge(family, rule):
    mechanism = tree(family=family, rule=rule, fit=None)
    for seed in range(3):
        prices = audit_measurements(mechanism, COUNTS, seed=seed)
        assert all(price.passed for price in prices)
    assert not audit_invariants(mechanism, COUNTS)


def test_noise_that_is_the_same_in_both_steps_is_caught():
    """As in a public DPCube, where both steps began from one seed."""
    assert not names(tree())
    right = WatchedRandomness.stream

    def from_the_seed_anew(self):
        self._opened = 0
        return right(self)

    with patch.object(WatchedRandomness, "stream", from_the_seed_anew):
        assert "no stream twice" in names(tree())


class Peeking(KdTree):
    """Builds the tree on the true cells."""

    name = "peeking"

    def _noisy_cells(self, cells, private):
        if private._counts is not None:
            shifted = cells._replace(
                noisy=np.append(private._counts, cells.noisy[GRID.size :])
            )
            return super()._noisy_cells(shifted, private)
        return super()._noisy_cells(cells, private)


def test_a_tree_over_true_cells_is_caught():
    found = set()
    for seed in range(4):
        mechanism = tree(Peeking)
        found |= {
            breach.invariant
            for breach in audit_invariants(mechanism, COUNTS, seed=seed)
        }
    assert "post-processing only" in found


class Twice(KdTree):
    """Spends all of epsilon on the cells, and again on the boxes."""

    name = "twice"

    def _run(self, private):
        private.measure(Cells.under(private.policy), budget=self.epsilon)
        return super()._run(private)


def test_spending_twice_is_refused():
    with pytest.raises(BudgetError, match="left"):
        tree(Twice).release(COUNTS, rng=1)
