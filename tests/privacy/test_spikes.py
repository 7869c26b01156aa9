"""The test for spikes: exact laws of its grades, and planted bugs that they catch."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import audit_invariants, audit_measurements, audit_selector
from blowfish_fast.measure.selectors.selections import ONE, RoughnessTest, SpikeTest
from blowfish_fast.mechanisms import dawa as recipe

from .test_roughness import FLAT, LONG, POLICIES, worst_loss

pytestmark = pytest.mark.audit


def spike_test(price=50.0, steps=(0.01, 0.8)):
    return SpikeTest(FLAT, price=price, largest=1, steps=steps)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(4)])
@pytest.mark.parametrize("price", [0.3, 50.0])
def test_grades_stay_within_epsilon(name, epsilon, price):
    test = spike_test(price, steps=(-0.3, 0.4))
    assert worst_loss(test, POLICIES[name], epsilon) <= epsilon + 1e-9


@pytest.mark.parametrize("name", ["add_remove", "full"])
def test_the_noise_of_buckets_alone_is_caught(name, monkeypatch):
    """Planted: what single cells cost is not counted, only what buckets cost."""
    monkeypatch.setattr(SpikeTest, "sensitivity", RoughnessTest.sensitivity)
    assert worst_loss(spike_test(), POLICIES[name], Fraction(1)) > 1.2


def test_a_move_charged_as_one_record_is_caught(monkeypatch):
    """Planted: the two changes of a move add up."""
    monkeypatch.setattr(SpikeTest, "sensitivity", lambda *_: ONE)
    assert worst_loss(spike_test(), POLICIES["full"], Fraction(1)) > 1.2


@pytest.mark.parametrize("grades", [(0,), (1, 0), (1, 1), (2,)])
@pytest.mark.parametrize("grade", [0, 1, 2])
def test_all_ways_charge_what_they_draw(monkeypatch, grade, grades):
    monkeypatch.setattr(recipe, "FEWEST_CELLS", 16)
    monkeypatch.setattr(recipe, "LOOK_CELLS", 2)
    monkeypatch.setattr(RoughnessTest, "select", lambda *_, **__: grade)
    # A test of two bounds is the first, one of a single bound the second.
    monkeypatch.setattr(
        SpikeTest,
        "select",
        lambda self, *_, **__: grades[0] if len(self.steps) == 2 else grades[-1],
    )
    asked = bf.workloads.Identity(LONG)
    dawa = bf.Dawa(bf.policies.AddRemove(LONG), asked, epsilon=1)
    data = np.arange(16) % 5 * 3
    assert dawa.looks_first
    assert all(price.passed for price in audit_measurements(dawa, data))
    assert not list(audit_invariants(dawa, data))


def test_noise_that_is_drawn_too_small_is_caught(monkeypatch):
    """Planted: what is drawn has a quarter of the scale that is stated."""
    settings = {"epsilon": Fraction(1), "samples": 40_000, "runs": 0}
    test = spike_test(price=1.0, steps=(-0.5, 0.2))
    reports = list(audit_selector(test, POLICIES["add_remove"], **settings))
    assert reports
    assert all(report.passed for report in reports)
    right = SpikeTest.scale

    def quarter(self, policy, epsilon):
        above, below = right(self, policy, epsilon)
        return above, 4 * below

    monkeypatch.setattr(SpikeTest, "scale", quarter)
    reports = list(audit_selector(test, POLICIES["add_remove"], **settings))
    assert not all(report.passed for report in reports)
