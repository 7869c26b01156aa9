"""Whether records stand in spikes: the statistic, its sensitivity and its grades."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.measure.selectors.selections import ONE, SpikeTest
from tests.reference.handed import Handed

LINE = bf.Domain(4)
POLICY = bf.policies.AddRemove(LINE)
TEST = SpikeTest([1.0] * 3, price=1.0, largest=2, steps=(-0.5, 0.25))


@pytest.mark.parametrize(
    ("counts", "buckets", "seen"),
    [
        ([0, 0, 0, 0], 1, 0),
        ([0, 90, 0, 0], 3, 2),
        ([7, 7, 7, 7], 1, 8),
        ([1, 1, 90, 90], 2, 6),
    ],
)
def test_records_up_to_the_largest_count_against_buckets(counts, buckets, seen):
    expected = buckets * ONE - 3 * seen * ONE // 4
    assert TEST.statistic(np.array(counts), (4,)) == expected


@pytest.mark.parametrize(
    ("policy", "most"),
    [
        (POLICY, ONE),
        (bf.policies.Full(LINE), 7 * ONE // 4),
        (bf.policies.Line(LINE), 7 * ONE // 4),
        (bf.policies.Blocks(LINE, np.arange(4)), 0),
    ],
)
def test_an_edge_moves_the_statistic_by_what_the_lemma_says(policy, most):
    assert TEST.sensitivity(policy) == most


@pytest.mark.parametrize("price", [0.3, 1.0, 50.0])
def test_the_sensitivity_is_reached_and_never_passed(price):
    test = SpikeTest([1.0] * 3, price=price, largest=2, steps=(0.0,))
    added, moved = [], []
    for counts in product(range(4), repeat=4):
        beside = []
        for cell in range(4):
            more = np.array(counts)
            more[cell] += 1
            beside.append(test.statistic(more, (4,)))
        own = test.statistic(np.array(counts), (4,))
        added += [abs(value - own) for value in beside]
        moved += [max(beside) - min(beside)]
    assert max(added) <= ONE
    assert max(moved) <= 7 * ONE // 4
    if price == 50.0:
        assert max(added) == ONE


def test_one_draw_is_compared_with_every_bound():
    counts = np.array([0, 90, 0, 0])
    assert TEST.bounds(4) == [-2 * ONE, ONE]
    value = TEST.statistic(counts, (4,))
    first, second = (bound - value for bound in TEST.bounds(4))
    noise = TEST.noise(
        4, POLICY, Fraction(1), draws=4, rng=Handed([first, first + 1, 0, second])
    )
    assert TEST.decide(counts, POLICY, noise).tolist() == [0, 1, 2, 1]
