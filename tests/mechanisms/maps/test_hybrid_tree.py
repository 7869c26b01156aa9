"""HybridTree end to end: medians above, cells below, both paid for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import audit_measurements
from blowfish_fast.audit.invariants import audit_invariants
from blowfish_fast.audit.plan import QUICK, AuditTask
from blowfish_fast.audit.walk import examine
from blowfish_fast.errors import InputError
from blowfish_fast.measure.selectors.selections import Medians

GRID = bf.Domain((9, 6))
BOXES = bf.workloads.Rectangles.random(GRID, 12, rng=1)
COUNTS = np.arange(54).reshape(9, 6) ** 2 // 30
POLICIES = [bf.policies.AddRemove, bf.policies.Full]


@pytest.mark.parametrize("shape", [(1,), (9,), (3, 50), (16, 16), (3, 4, 5)])
def test_large_epsilon_gives_back_any_shape(shape, generator):
    domain = bf.Domain(shape)
    counts = generator.integers(0, 30, shape)
    for policy in POLICIES:
        mechanism = bf.mechanisms.HybridTree(
            policy(domain), bf.workloads.Identity(domain), epsilon=10_000
        )
        np.testing.assert_allclose(
            mechanism.release(counts, rng=1).estimate, counts, atol=1e-6
        )


def test_the_boxes_of_the_medians_are_told():
    release = bf.mechanisms.HybridTree(
        bf.policies.AddRemove(GRID), BOXES, epsilon=4, levels=2
    ).release(COUNTS, rng=1)
    lows, highs = release.details["lows"], release.details["highs"]
    assert lows.shape == highs.shape == (7, 2)
    assert highs[0].tolist() == [9, 6]
    # The counts grow along the longest side, so its median lies behind the middle.
    assert lows[2, 0] > 4


def test_medians_and_counts_share_epsilon():
    mechanism = bf.mechanisms.HybridTree(
        bf.policies.AddRemove(GRID), BOXES, epsilon="0.7", share="0.3"
    )
    prices = audit_measurements(mechanism, COUNTS)
    assert prices[0].charged == Fraction(49, 100)
    assert prices[-1].worst == Fraction(7, 10)
    assert audit_invariants(mechanism, COUNTS) == []


@pytest.mark.long
def test_nearly_exact_medians_are_caught(monkeypatch):
    """Planted: a rate a hundred times too high, which the walk sees in the choice."""
    task = AuditTask("mechanism", "hybrid_tree", 4, "add_remove")
    plan = QUICK._replace(batch=20_000, noise=2_000, runs=0, releases=0)

    def failed():
        return {one.check for one in examine(task, plan) if not one.passed}

    assert failed() == set()
    right = Medians.rate
    monkeypatch.setattr(Medians, "rate", lambda self, *given: 100 * right(self, *given))
    assert "choice" in failed()


@pytest.mark.parametrize("levels", [0, -1, 41, 1.5])
def test_levels_that_make_no_sense_are_refused(levels):
    with pytest.raises(InputError, match="levels"):
        bf.mechanisms.HybridTree(
            bf.policies.AddRemove(GRID), BOXES, epsilon=1, levels=levels
        )
