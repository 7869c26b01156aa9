"""The look at a line: exact laws of its grades, and planted bugs that they catch."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import audit_invariants, audit_measurements, audit_selector
from blowfish_fast.measure.selectors.selections import ONE, RoughnessTest
from blowfish_fast.mechanisms import dawa as recipe
from blowfish_fast.policies import ABSENT

pytestmark = pytest.mark.audit

LINE = bf.Domain(4)
FLAT = [1.0] * 3
POLICIES = {
    "add_remove": bf.policies.AddRemove(LINE),
    "full": bf.policies.Full(LINE),
    "both": bf.policies.Graph(LINE, [(0, 1), (1, 3), (0, ABSENT), (2, ABSENT)]),
}


def log_tail(needed, rate):
    """Return the logarithms of P(noise >= needed) and of P(noise < needed)."""
    far = -rate * abs(needed - 0.5) - rate / 2 - math.log1p(math.exp(-rate))
    near = math.log1p(-math.exp(far))
    return (far, near) if needed >= 1 else (near, far)


def log_probabilities(test, counts, policy, epsilon):
    """Return the exact log-probability of every grade."""
    above, below = test.scale(policy, epsilon)
    value = test.statistic(counts, (4,))
    tails = [log_tail(bound - value + 1, below / above) for bound in test.bounds(4)]
    logs = [tails[0][1]]
    for lower, upper in pairwise(tails):
        # P(lower) - P(upper), by the logarithm of one and the ratio of both.
        logs.append(lower[0] + math.log1p(-math.exp(upper[0] - lower[0])))
    return [*logs, tails[-1][0]]


def worst_loss(test, policy, epsilon, most=2):
    """Return the largest log-ratio of a grade over all small counts and all edges."""
    worst = 0.0
    edges = np.concatenate(list(policy.edges()))
    for counts in product(range(most), repeat=4):
        for edge in edges:
            laws = []
            for cell in edge:
                moved = np.array(counts, dtype=np.int64)
                if cell != ABSENT:
                    moved[cell] += 1
                laws.append(log_probabilities(test, moved, policy, epsilon))
            worst = max(worst, *(abs(a - b) for a, b in zip(*laws, strict=True)))
    return worst


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(4)])
@pytest.mark.parametrize("price", [0.3, 50.0])
def test_grades_stay_within_epsilon(name, epsilon, price):
    test = RoughnessTest(FLAT, price=price, steps=(0.3, 0.8))
    assert worst_loss(test, POLICIES[name], epsilon) <= epsilon + 1e-9


@pytest.mark.parametrize("name", ["add_remove", "full"])
def test_half_of_the_sensitivity_is_caught(name, monkeypatch):
    """Planted: half of the noise."""
    right = RoughnessTest.sensitivity
    monkeypatch.setattr(
        RoughnessTest, "sensitivity", lambda self, policy: right(self, policy) // 2
    )
    test = RoughnessTest(FLAT, price=50.0, steps=(0.01, 0.8))
    assert worst_loss(test, POLICIES[name], Fraction(1)) > 1.2


def test_a_move_charged_as_one_record_is_caught(monkeypatch):
    """Planted: the two changes of a move add up."""
    monkeypatch.setattr(RoughnessTest, "sensitivity", lambda *_: 3 * ONE // 4)
    test = RoughnessTest(FLAT, price=50.0, steps=(0.01, 0.8))
    assert worst_loss(test, POLICIES["full"], Fraction(1)) > 1.2


def test_length_weights_above_one_are_caught():
    """Planted: a weight multiplies what one record changes."""
    test = RoughnessTest([1.0, 2.0, 2.0], price=50.0, steps=(0.01, 0.8))
    assert worst_loss(test, POLICIES["add_remove"], Fraction(1)) > 1.2


LONG = bf.Domain(16)


def looked_at(monkeypatch, policy):
    """Return a recipe that looks at a line of 16 cells, and made-up counts."""
    monkeypatch.setattr(recipe, "FEWEST_CELLS", 16)
    monkeypatch.setattr(recipe, "LOOK_CELLS", 2)
    asked = bf.workloads.Ranges.random(LONG, 20, rng=1)
    return bf.Dawa(policy(LONG), asked, epsilon=1), np.arange(16) % 5 * 3


@pytest.mark.parametrize("grade", [0, 1, 2])
@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
def test_all_ways_charge_what_they_draw(monkeypatch, grade, policy):
    monkeypatch.setattr(RoughnessTest, "select", lambda *_, **__: grade)
    dawa, data = looked_at(monkeypatch, policy)
    assert dawa.looks_first
    assert all(price.passed for price in audit_measurements(dawa, data))
    assert not list(audit_invariants(dawa, data))


def test_noise_that_is_drawn_too_small_is_caught(monkeypatch):
    """Planted: what is drawn has a quarter of the scale that is stated."""
    settings = {"epsilon": Fraction(1), "samples": 40_000, "runs": 0}
    test = RoughnessTest(FLAT, price=1.0, steps=(0.3, 0.8))
    found = list(audit_selector(test, POLICIES["add_remove"], **settings))
    assert found
    assert all(one.passed for one in found)
    right = RoughnessTest.scale

    def quarter(self, policy, epsilon):
        above, below = right(self, policy, epsilon)
        return above, 4 * below

    monkeypatch.setattr(RoughnessTest, "scale", quarter)
    found = list(audit_selector(test, POLICIES["add_remove"], **settings))
    assert not all(one.passed for one in found)
