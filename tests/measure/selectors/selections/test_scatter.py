"""The test of scattered data: its statistic, its noise and its answer."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import EpsilonError
from blowfish_fast.measure.selectors.selections import MOST_BITS, ONE, ScatterTest
from tests.reference.handed import Handed

POLICY = bf.policies.AddRemove(bf.Domain((2, 2)))
TEST = ScatterTest([[1.0, 1.0]] * 2, price=1.0, threshold=0.25)


@pytest.mark.parametrize("epsilon", ["1", "0.1", "1/3", f"1/{2**MOST_BITS}"])
def test_the_scale_is_never_below_the_sensitivity_over_epsilon(epsilon):
    stated = Fraction(epsilon)
    scale = Fraction(*TEST.scale(POLICY, stated))
    exact = TEST.sensitivity(POLICY) / stated
    assert exact <= scale <= exact * (1 + Fraction(1, 2**28))


def test_an_epsilon_that_rounds_to_nothing_is_refused():
    with pytest.raises(EpsilonError, match="how to divide a map needs more than"):
        TEST.scale(POLICY, Fraction(1, 2 ** (MOST_BITS + 1)))


@pytest.mark.parametrize(
    ("threshold", "kept"),
    [(0.25, ONE // 4), (0.1, round(0.1 * ONE)), (0, 0), (-1, 0), (0.9, ONE // 4)],
)
def test_a_threshold_is_kept_in_units_between_nothing_and_a_quarter(threshold, kept):
    test = ScatterTest([[1.0]], price=1.0, threshold=threshold)
    assert test.threshold == kept


def test_the_statistic_is_what_no_rectangle_makes_even_less_a_part_of_all():
    # Two full cells and two empty ones: two buckets, of a record each.
    assert TEST.statistic(np.array([90, 90, 0, 0]), (2, 2)) == 2 * ONE - 180 * ONE // 4
    none = ScatterTest([[1.0, 1.0]] * 2, price=1.0, threshold=0)
    assert none.statistic(np.array([90, 90, 0, 0]), (2, 2)) == 2 * ONE


@pytest.mark.parametrize(
    ("policy", "threshold", "most"),
    [
        (bf.policies.Full(bf.Domain((2, 2))), 0.25, ONE),
        (bf.policies.Full(bf.Domain((2, 2))), 0.125, ONE),
        (POLICY, 0.25, ONE // 2),
        (POLICY, 0.125, 5 * ONE // 8),
        (POLICY, 0, 3 * ONE // 4),
        (bf.policies.Blocks(bf.Domain((2, 2)), np.arange(4)), 0.25, 0),
    ],
)
def test_an_edge_moves_the_statistic_by_what_the_lemma_says(policy, threshold, most):
    test = ScatterTest([[1.0, 1.0]] * 2, price=1.0, threshold=threshold)
    assert test.sensitivity(policy) == most


def test_large_epsilons_are_kept_exactly_and_small_ones_to_thirty_bits():
    sensitivity = TEST.sensitivity(POLICY)
    assert TEST.scale(POLICY, Fraction(2**30)) == (sensitivity, 2**30)
    assert TEST.scale(POLICY, Fraction(2**30 - 1)) == (
        2 * sensitivity,
        2 * (2**30 - 1),
    )
    assert TEST.scale(POLICY, Fraction(1)) == (sensitivity << 30, 2**30)
    least = Fraction(1, 2**MOST_BITS)
    assert TEST.scale(POLICY, least) == (sensitivity << MOST_BITS, 1)


def test_the_answer_is_whether_statistic_and_noise_are_above_nothing():
    counts = np.array([90, 90, 0, 0])
    value = TEST.statistic(counts, (2, 2))
    case = {"policy": POLICY, "epsilon": Fraction(1)}
    rng = Handed([-value, 1 - value, -1 - value, 5 - value, 6 - value])
    noise = TEST.noise(4, draws=5, rng=rng, **case)
    assert TEST.decide(counts, POLICY, noise).sum() == 3
    assert rng.asked == [(*TEST.scale(POLICY, Fraction(1)), 5)]
    for noise, answer in ((-value, False), (1 - value, True)):
        assert TEST.select(counts, rng=Handed([noise]), **case) is answer


@pytest.mark.parametrize(
    ("counts", "answer"), [([90, 90, 0, 0], False), ([0, 0, 0, 0], True)]
)
def test_public_counts_are_compared_without_noise(counts, answer):
    alone = bf.policies.Blocks(bf.Domain((2, 2)), np.arange(4))
    rng = Handed([])
    noise = TEST.noise(4, alone, Fraction(1), draws=7, rng=rng)
    assert TEST.decide(np.array(counts), alone, noise).tolist() == [answer] * 7
    assert rng.asked == []


def test_nothing_above_nothing_is_no_scatter(monkeypatch):
    alone = bf.policies.Blocks(bf.Domain((1, 1)), np.arange(1))
    free = ScatterTest([[1.0]], price=0.0, threshold=0.25)
    counts = np.array([0])
    assert free.statistic(counts, (1, 1)) == 0
    case = {"policy": alone, "epsilon": Fraction(1), "rng": Handed([])}
    assert free.select(counts, **case) is False
    monkeypatch.setattr(ScatterTest, "statistic", lambda *_: 1)
    assert free.select(counts, **case) is True
