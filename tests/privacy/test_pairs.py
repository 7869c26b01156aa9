"""The test for pairs: exact laws of its grades, and planted bugs that they catch."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import audit_invariants, audit_measurements, audit_selector
from blowfish_fast.measure.selectors.selections import ONE, PairTest, RoughnessTest
from blowfish_fast.mechanisms import dawa as recipe

from .test_roughness import LONG, POLICIES, worst_loss

pytestmark = pytest.mark.audit


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(4)])
def test_grades_stay_within_epsilon(name, epsilon):
    test = PairTest(steps=(0.3, 0.9))
    assert worst_loss(test, POLICIES[name], epsilon) <= epsilon + 1e-9


def test_a_move_charged_as_one_record_is_caught(monkeypatch):
    """Planted: the two changes of a move add up."""
    monkeypatch.setattr(PairTest, "sensitivity", lambda *_: ONE)
    test = PairTest(steps=(0.3, 0.9))
    assert worst_loss(test, POLICIES["full"], Fraction(1)) > 1.2


@pytest.mark.parametrize("differ", [0, 1])
@pytest.mark.parametrize(
    "policy", [bf.policies.AddRemove(LONG), bf.policies.Full(LONG)]
)
def test_both_ways_charge_what_they_draw(monkeypatch, policy, differ):
    monkeypatch.setattr(recipe, "FEWEST_CELLS", 16)
    monkeypatch.setattr(recipe, "LOOK_CELLS", 2)
    monkeypatch.setattr(RoughnessTest, "select", lambda *_, **__: 1)
    monkeypatch.setattr(PairTest, "select", lambda *_, **__: differ)
    asked = bf.workloads.Ranges.random(LONG, 20, rng=1)
    dawa = bf.Dawa(policy, asked, epsilon=1)
    data = np.arange(16) % 5 * 3
    assert dawa.looks_first
    assert all(price.passed for price in audit_measurements(dawa, data))
    assert not list(audit_invariants(dawa, data))


def test_noise_that_is_drawn_too_small_is_caught(monkeypatch):
    """Planted: what is drawn has a quarter of the scale that is stated."""
    settings = {"epsilon": Fraction(1), "samples": 40_000, "runs": 0}
    test = PairTest(steps=(0.4, 1.2))
    reports = list(audit_selector(test, POLICIES["add_remove"], **settings))
    assert reports
    assert all(report.passed for report in reports)
    right = PairTest.scale

    def quarter(self, policy, epsilon):
        above, below = right(self, policy, epsilon)
        return above, 4 * below

    monkeypatch.setattr(PairTest, "scale", quarter)
    reports = list(audit_selector(test, POLICIES["add_remove"], **settings))
    assert not all(report.passed for report in reports)
