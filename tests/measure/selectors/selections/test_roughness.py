"""How rough a line is: the statistic, its bounds, its noise and its grades."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import EpsilonError
from blowfish_fast.measure.selectors.selections import MOST_BITS, ONE, RoughnessTest
from tests.reference.handed import Handed

LINE = bf.Domain(4)
POLICY = bf.policies.AddRemove(LINE)
TEST = RoughnessTest([1.0] * 3, price=1.0, steps=(0.4, 0.9))


@pytest.mark.parametrize(
    ("counts", "buckets"),
    [
        ([7, 7, 7, 7], 1),
        ([90, 90, 20, 20], 2),
        ([90, 0, 20, 20], 3),
        ([9, 90, 0, 9], 4),
    ],
)
def test_the_statistic_is_the_least_cost_of_buckets(counts, buckets):
    assert TEST.statistic(np.array(counts), (4,)) == buckets * ONE


def test_a_bucket_that_costs_less_than_its_price_stays_uneven():
    # At the quantile 3/4 a cell that lacks two records costs half of one.
    assert TEST.statistic(np.array([4, 2, 4, 4]), (4,)) == ONE + ONE // 2
    halved = RoughnessTest([1.0, 1.0, 0.5], price=1.0, steps=(0.4, 0.9))
    assert halved.statistic(np.array([4, 2, 4, 4]), (4,)) == ONE + ONE // 4


def test_grades_begin_at_parts_of_what_single_cells_cost():
    assert TEST.bounds(4) == [int(1.6 * ONE), int(3.6 * ONE)]
    dear = RoughnessTest([1.0] * 3, price=1e30, steps=(0.5, 1.0))
    # The price is cut at a public number, and bounds are parts of what is left.
    half, whole = dear.bounds(1024)
    assert 2 * half == whole <= 2**60


@pytest.mark.parametrize(
    ("policy", "most"),
    [
        (POLICY, 3 * ONE // 4),
        (bf.policies.Full(LINE), ONE),
        (bf.policies.Line(LINE), ONE),
        (bf.policies.Blocks(LINE, np.arange(4)), 0),
    ],
)
def test_an_edge_moves_the_statistic_by_what_the_lemma_says(policy, most):
    assert TEST.sensitivity(policy) == most


def test_one_draw_is_compared_with_every_bound():
    counts = np.array([90, 90, 20, 20])
    first, second = (bound - 2 * ONE for bound in TEST.bounds(4))
    case = {"policy": POLICY, "epsilon": Fraction(1)}
    rng = Handed([first, first + 1, 0, second, second + 1, second + 9])
    noise = TEST.noise(4, draws=6, rng=rng, **case)
    assert TEST.decide(counts, POLICY, noise).tolist() == [0, 1, 1, 1, 2, 2]
    assert rng.asked == [(*TEST.scale(POLICY, Fraction(1)), 6)]
    assert TEST.select(counts, rng=Handed([second + 1]), **case) == 2


def test_public_counts_are_graded_without_noise():
    alone = bf.policies.Blocks(LINE, np.arange(4))
    noise = TEST.noise(4, alone, Fraction(1), draws=3, rng=Handed([]))
    graded = TEST.decide(np.array([9, 90, 0, 9]), alone, noise)
    assert graded.tolist() == [2, 2, 2]


def test_an_epsilon_that_rounds_to_nothing_is_refused_in_words_about_lines():
    with pytest.raises(EpsilonError, match="how to divide a line needs more than"):
        TEST.check_feasible(POLICY, 4, Fraction(1, 2 ** (MOST_BITS + 1)))
