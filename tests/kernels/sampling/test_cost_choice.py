"""Choices by integer cost: the rate rounds down, the law is the exponential one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.sampling.exponential_choice import (
    LOG_BITS,
    MOST_FRACTION_BITS,
    NO_CANDIDATE,
    RATE_BITS,
    choose_by_cost,
    integer_rate,
    prior_weights,
)
from tests.generated import example_count
from tests.reference.cost_choice import law

pytestmark = pytest.mark.kernel


def evenly(position, count):
    """Return words that spell 0, 1/1024, 2/1024 ... of the unit interval."""
    places = (np.arange(position, position + count) % 1024).astype(np.uint64)
    return places << np.uint64(54)


@settings(max_examples=example_count(200))
@given(st.fractions(Fraction(1, 10**14), Fraction(10**14)))
def test_the_integer_rate_is_close_below(rate):
    number, bits = integer_rate(rate)
    assert 0 <= bits <= MOST_FRACTION_BITS
    assert 0 <= number < 2**RATE_BITS
    rounded = Fraction(number, 2**bits)
    assert rounded <= rate
    if Fraction(1, 2**25) <= rate < 2 ** (RATE_BITS - 1):
        assert rounded >= rate * (1 - Fraction(1, 2**29))


@settings(max_examples=example_count(40))
@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=6),
    st.fractions(Fraction(1, 1000), Fraction(3)),
)
def test_the_law_is_the_exponential_one(costs, rate):
    rows = np.tile(np.array(costs), (1024, 1))
    drawn = np.bincount(choose_by_cost(evenly, 0, rows, rate), minlength=len(costs))
    # 1024 evenly spaced numbers: each part of the interval holds its share, give or
    # take one at both ends.
    for count, probability in zip(drawn, law(costs, rate), strict=True):
        assert abs(count - 1024 * probability) <= 2


def test_absent_candidates_are_never_drawn():
    costs = np.array([[NO_CANDIDATE, 5, NO_CANDIDATE, 5]] * 1024)
    drawn = choose_by_cost(evenly, 0, costs, Fraction(1, 10))
    assert np.bincount(drawn).tolist() == [0, 512, 0, 512]


def test_rows_do_not_depend_on_a_shift_of_all_costs():
    generator = np.random.default_rng(1)
    costs = generator.integers(0, 60, size=(200, 9))
    words = evenly
    rate = Fraction(1, 7)
    one = choose_by_cost(words, 5, costs, rate)
    two = choose_by_cost(words, 5, costs + 2**60, rate)
    assert (one == two).all()


def test_extreme_gaps_and_rates_do_not_overflow():
    costs = np.array([[-(2**60), 2**60]])
    for rate in (Fraction(1, 10**18), Fraction(1), Fraction(10**18)):
        assert choose_by_cost(evenly, 7, costs, rate)[0] == 0
    number, _ = integer_rate(Fraction(1))
    assert number * ((1 << LOG_BITS) // number) < 2**62


def test_a_rate_too_small_to_matter_draws_evenly():
    costs = np.tile(np.arange(4), (1024, 1))
    drawn = choose_by_cost(evenly, 0, costs, Fraction(1, 10**30))
    assert np.bincount(drawn).tolist() == [256] * 4


def test_many_candidates_follow_their_weights():
    generator = np.random.default_rng(7)
    costs = generator.integers(0, 40, size=500)
    rows = np.tile(costs, (2000, 1))

    def words(position, count):
        return generator.integers(0, 2**64, size=count, dtype=np.uint64)

    words.by_place = True  # Each place is read once.
    drawn = costs[choose_by_cost(words, 0, rows, Fraction(1, 4))]
    weights = np.exp(-costs / 4)
    expected = np.array([weights[costs == c].sum() for c in range(12)])
    seen = np.array([(drawn == c).sum() for c in range(12)])
    expected *= seen.sum() / expected.sum()
    assert stats.chisquare(seen, expected).pvalue > 1e-4


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="rows and candidates"):
        choose_by_cost(evenly, 0, np.zeros(3, dtype=np.int64), Fraction(1))
    with pytest.raises(InputError, match="positive"):
        integer_rate(Fraction(0))
    with pytest.raises(InputError, match="not absent"):
        choose_by_cost(evenly, 0, np.array([[NO_CANDIDATE]]), Fraction(1))


def test_a_prior_weighs_candidates_beforehand():
    costs = np.zeros((1024, 3), dtype=np.int64)
    prior = np.log([1.0, 2.0, 5.0]) + 700.0
    for rate in (Fraction(1), Fraction(1, 10**20)):
        drawn = choose_by_cost(evenly, 0, costs, rate, prior)
        assert np.bincount(drawn).tolist() == [128, 256, 640]


def test_a_prior_multiplies_the_weights_of_costs():
    costs = np.tile([3, 5, 4], (1024, 1))
    prior = np.array([-2.0, 0.0, -1e300])
    drawn = choose_by_cost(evenly, 0, costs, Fraction(1), prior)
    # e^-3 e^-2 and e^-5: the same; the third has no chance beforehand.
    assert np.bincount(drawn, minlength=3).tolist() == [512, 512, 0]
    assert (prior_weights(prior, 30) <= 0).all()
