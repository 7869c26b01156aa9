"""The test for scatter: exact laws of its answer, and planted bugs that they catch."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import audit_invariants, audit_measurements
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.selections import ONE, ScatterTest
from blowfish_fast.policies import ABSENT

pytestmark = pytest.mark.audit

GRID = bf.Domain((2, 2))
FLAT = [[1.0, 1.0], [1.0, 1.0]]
POLICIES = {
    "add_remove": bf.policies.AddRemove(GRID),
    "full": bf.policies.Full(GRID),
    "both": bf.policies.Graph(GRID, [(0, 1), (1, 3), (0, ABSENT), (2, ABSENT)]),
}


def log_probabilities(test, counts, policy, epsilon):
    """Return the exact log-probabilities of no and of yes."""
    above, below = test.scale(policy, epsilon)
    rate = below / above
    value = test.statistic(counts, (2, 2))
    # P(noise >= k) = e^(-rate k) / (1 + e^-rate) for k >= 1, and 1 less its mirror.
    needed = 1 - value
    far = -rate * abs(needed - 0.5) - rate / 2 - math.log1p(math.exp(-rate))
    far, near = far, math.log1p(-math.exp(far))
    return (near, far) if needed >= 1 else (far, near)


def worst_loss(test, policy, epsilon, most=2):
    """Return the largest log-ratio over all small counts and all edges."""
    worst = 0.0
    laws = {}
    for counts in product(range(most), repeat=4):
        for start, end in np.concatenate(list(policy.edges())):
            pair = []
            for cell in (start, end):
                one = np.array(counts, dtype=np.int64)
                if cell != ABSENT:
                    one[cell] += 1
                key = one.tobytes()
                if key not in laws:
                    laws[key] = log_probabilities(test, one, policy, epsilon)
                pair.append(laws[key])
            worst = max(worst, *(abs(a - b) for a, b in zip(*pair, strict=True)))
    return worst


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("threshold", [0.002, 0.1, 0.25])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(4)])
@pytest.mark.parametrize("price", [0.01, 0.7, 50.0])
def test_answers_stay_within_epsilon(name, threshold, epsilon, price):
    test = ScatterTest(FLAT, price=price, threshold=threshold)
    assert worst_loss(test, POLICIES[name], epsilon) <= epsilon + 1e-12


def test_the_law_is_that_of_the_draws():
    policy, epsilon = POLICIES["add_remove"], Fraction(1)
    test = ScatterTest(FLAT, price=0.2, threshold=0.25)
    counts = np.array([5, 0, 1, 0])
    rng = Randomness(3)
    yes = [
        test.select(counts, policy=policy, epsilon=epsilon, rng=rng)
        for _ in range(4000)
    ]
    expected = math.exp(log_probabilities(test, counts, policy, epsilon)[1])
    assert abs(np.mean(yes) - expected) < 0.035


def test_a_sensitivity_of_one_half_is_caught(monkeypatch):
    """Planted: enough for large thresholds, too little for small ones."""
    monkeypatch.setattr(ScatterTest, "sensitivity", lambda self, policy: ONE // 2)
    small = ScatterTest(FLAT, price=50.0, threshold=0.002)
    assert worst_loss(small, POLICIES["add_remove"], Fraction(1)) > 1.2
    large = ScatterTest(FLAT, price=50.0, threshold=0.25)
    assert worst_loss(large, POLICIES["add_remove"], Fraction(1)) <= 1 + 1e-12


def test_a_move_charged_as_one_record_is_caught(monkeypatch):
    """Planted: the two changes of a move add up."""
    right = ScatterTest.sensitivity
    monkeypatch.setattr(
        ScatterTest, "sensitivity", lambda self, _: right(self, POLICIES["add_remove"])
    )
    test = ScatterTest(FLAT, price=50.0, threshold=0.25)
    assert worst_loss(test, POLICIES["full"], Fraction(1)) > 1.2


def test_level_weights_above_one_are_caught():
    """Planted: a weight multiplies what one record changes."""
    test = ScatterTest([[1.0, 2.0], [2.0, 2.0]], price=50.0, threshold=0.002)
    assert worst_loss(test, POLICIES["add_remove"], Fraction(1)) > 1.2


@pytest.mark.parametrize("scattered", [True, False])
@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
def test_both_ways_charge_what_they_draw(monkeypatch, scattered, policy):
    monkeypatch.setattr(ScatterTest, "select", lambda *_, **__: scattered)
    dawa, data = bf.Dawa.example(bf.Domain((4, 5)), policy(bf.Domain((4, 5))), 1)
    assert all(price.passed for price in audit_measurements(dawa, data))
    assert not list(audit_invariants(dawa, data))
