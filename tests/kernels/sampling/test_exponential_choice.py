from __future__ import annotations

import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config
from scipy import stats

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.sampling import exponential_choice as module
from blowfish_fast.kernels.sampling.exponential_choice import (
    ABSENT,
    RESOLVER_BASE,
    choose,
    exponential_bounds,
    resolve_choice,
    total_error,
    weigh_rows,
)
from tests.generated import example_count
from tests.reference import exponential_choice as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 15 if config.DISABLE_JIT else example_count(60)
ALL_ONES = 2**64 - 1


def scripted(words):
    """Return a source that reads a dictionary, and zero where it is silent."""

    def source(position, count):
        found = [words.get(position + i, 0) for i in range(count)]
        return np.array(found, dtype=np.uint64)

    return source


def seeded(seed):
    """Return a source whose word at a position is a hash of both."""

    def source(position, count):
        found = [
            random.Random(f"{seed}/{position + i}").getrandbits(64)
            for i in range(count)
        ]
        return np.array(found, dtype=np.uint64)

    return source


@st.composite
def tables(draw, most=8):
    """Rows of log-weights near and far, with absent candidates among them."""
    fraction_bits = draw(st.sampled_from([0, 3, 20, 44, 48, 55]))
    candidates = draw(st.integers(1, most))
    nats = st.one_of(
        st.floats(-3, 3), st.floats(-60, 60), st.floats(-4000, 4000), st.just(0.0)
    )
    limit = 2**62 - 1

    def weight(value):
        return max(-limit, min(limit, round(value * 2**fraction_bits)))

    cell = st.one_of(nats.map(weight), nats.map(weight), st.just(ABSENT))
    row = st.lists(cell, min_size=candidates, max_size=candidates)
    rows = draw(
        st.lists(row.filter(lambda r: max(r) != ABSENT), min_size=1, max_size=4)
    )
    return np.array(rows, dtype=np.int64), fraction_bits


def filter_of(table, words, fraction_bits):
    """Return choices, totals and the set of doubtful rows."""
    choices, totals, doubtful = np.empty((3, len(table)), dtype=np.int64)
    doubts = weigh_rows(table, words, fraction_bits, choices, totals, doubtful)
    return choices, totals, set(doubtful[:doubts].tolist())


@settings(deadline=None, max_examples=EXAMPLES)
@given(tables(), st.integers(0, 2**32))
def test_equals_the_definition(table, seed):
    rows, fraction_bits = table
    words = seeded(seed)
    drawn = choose(words, 7, rows, fraction_bits)
    for i, row in enumerate(rows.tolist()):
        number = reference.uniform(words, 7 + i, 12)
        assert drawn[i] == reference.choice(number, row, fraction_bits)


@settings(deadline=None, max_examples=EXAMPLES)
@given(tables(), st.randoms(use_true_random=False))
def test_is_right_for_words_beside_a_border(table, rng):
    rows, fraction_bits = table
    script = {}
    offsets = [0, 1, -1, rng.randrange(-(2**9), 2**9), rng.randrange(-(2**14), 2**14)]
    for i, row in enumerate(rows.tolist()):
        borders = reference.borders(row, fraction_bits) or [mpmath.mpf(0)]
        leading = reference.binary_words(rng.choice(borders), 1)[0]
        script[i] = min(max(leading + rng.choice(offsets), 0), ALL_ONES)
        # Odd, for words of zeros may agree with a border for thousands of bits.
        script[RESOLVER_BASE + (i << 16)] = rng.getrandbits(64) | 1
    words = scripted(script)
    leading = words(0, len(rows))
    filtered, _, doubtful = filter_of(rows, leading, fraction_bits)
    for i, row in enumerate(rows.tolist()):
        number = reference.uniform(words, i, 60)
        right = reference.choice(number, row, fraction_bits)
        assert resolve_choice(words, i, row, fraction_bits) == right
        if i not in doubtful:
            # Every continuation of the word must lead to the same candidate.
            assert filtered[i] == right
            last = scripted({i: script[i]} | dict.fromkeys(further(i, 60), ALL_ONES))
            number = reference.uniform(last, i, 60)
            if number != 1:
                assert filtered[i] == reference.choice(number, row, fraction_bits)


def further(position, count):
    first = RESOLVER_BASE + (position << 16)
    return range(first, first + count)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("agreeing", [1, 2, 5])
def test_reads_on_until_the_number_leaves_the_border(agreeing, side):
    row = [0, -(3 << 40), 1 << 41]
    border = reference.borders(row, 44)[1]
    expansion = reference.binary_words(border, agreeing + 1)
    expansion[-1] += 1 if side else -1
    script = dict(zip([3, *further(3, agreeing)], expansion, strict=True))
    words = scripted(script)
    assert choose(words, 3, np.array([row]), 44)[0] == 1 + side
    assert filter_of(np.array([row]), words(3, 1), 44)[2] == {0}


@pytest.mark.long
def test_reaches_a_candidate_far_below_the_smallest_double():
    # exp(-1500) has 2165 leading zero bits: the resolver must read past them.
    fraction_bits = 40
    row = np.array([[-(1500 << fraction_bits), 0]])
    assert choose(scripted({}), 0, row, fraction_bits)[0] == 0
    border = reference.borders(row[0].tolist(), fraction_bits)[0]
    zeros = int(-mpmath.log(border, 2)) // 64
    for j, expected in ((zeros - 1, 1), (zeros + 1, 0)):
        words = scripted({RESOLVER_BASE + j - 1: 1 << 63})
        assert choose(words, 0, row, fraction_bits)[0] == expected


def test_reaches_a_tiny_last_candidate():
    row = np.array([[0, -(100 << 40)]])
    ones = scripted({0: ALL_ONES} | dict.fromkeys(further(0, 9), ALL_ONES))
    assert choose(ones, 0, row, 40)[0] == 1
    short = scripted({0: ALL_ONES, RESOLVER_BASE: ALL_ONES})
    assert choose(short, 0, row, 40)[0] == 0


def test_never_takes_an_absent_candidate():
    row = [ABSENT, 0, ABSENT, 5, ABSENT]
    for leading in (0, 1, ALL_ONES, ALL_ONES - 1, 1 << 63):
        script = {0: leading} | dict.fromkeys(further(0, 3), ALL_ONES)
        assert choose(scripted(script), 0, np.array([row]), 8)[0] in (1, 3)


@settings(deadline=None, max_examples=EXAMPLES)
@given(tables(most=26), st.integers(0, 2**32))
def test_totals_keep_their_error_bound(table, seed):
    rows, fraction_bits = table
    words = seeded(seed)(0, len(rows))
    _, totals, _ = filter_of(rows, words, fraction_bits)
    bound = total_error(rows.shape[1], fraction_bits)
    for row, total in zip(rows.tolist(), totals.tolist(), strict=True):
        with mpmath.workprec(reference.PRECISION):
            exact = reference.log_total(row, fraction_bits)
            error = abs(mpmath.mpf(total) / 2**fraction_bits - exact)
            assert error * bound.denominator <= bound.numerator


@settings(deadline=None, max_examples=4 * EXAMPLES)
@given(st.integers(0, 2**50), st.integers(0, 55), st.integers(20, 120))
def test_bounds_of_the_exponential_enclose_it_tightly(exponent, bits, digits):
    low, high = exponential_bounds(Fraction(exponent, 2**bits), digits)
    with mpmath.workprec(reference.PRECISION):
        value = mpmath.exp(-mpmath.mpf(exponent) / 2**bits)
        assert mpmath.mpf(low.numerator) / low.denominator <= value
        assert mpmath.mpf(high.numerator) / high.denominator >= value
    assert high - low <= Fraction(10) ** (2 - digits)


def test_bounds_far_out_are_short_and_twice_as_fine():
    assert exponential_bounds(Fraction(101), 20) == (0, Fraction(1, 10**40))
    # One step before, they are those of the exponential itself.
    low, high = exponential_bounds(Fraction(100), 20)
    assert 0 < low < high < Fraction(1, 10**40)


def test_constants_are_correctly_rounded():
    with mpmath.workprec(200):
        step = mpmath.log(2) / 128
        assert float(mpmath.log(2)) == module._LOG_TWO
        assert float(1 / step) == module._STEPS_PER_NAT
        assert float(mpmath.log(mpmath.mpf(module._CENTRE))) == module._CENTRE_LOG
        assert float(step - mpmath.mpf(module._STEP_HIGH)) == module._STEP_LOW
        powers = [float(mpmath.exp(-j * step)) for j in range(128)]
    assert module._STEP_POWERS.tolist() == powers
    assert module._STEP_HIGH.as_integer_ratio()[0].bit_length() <= 38


@pytest.mark.parametrize("nats", [[0.0, 0.5], [1, 0, -2, 0.3], [0, 0, 0, 0, -5, 2, 1]])
def test_frequencies_follow_the_weights(nats):
    draws = 3000 if config.DISABLE_JIT else 300_000
    row = np.round(np.array(nats) * 2**44).astype(np.int64)
    generator = np.random.default_rng(len(nats))
    drawn = generator.integers(0, 2**64, draws, dtype=np.uint64)

    def words(position, count):
        return drawn[position : position + count]

    seen = np.bincount(choose(words, 0, np.tile(row, (draws, 1)), 44))
    expected = [float(p) * draws for p in reference.probabilities(row, 44)]
    assert stats.chisquare(seen, expected).pvalue > 1e-4


def test_blocks_do_not_change_the_result():
    rows = 20_000 if not config.DISABLE_JIT else 300
    generator = np.random.default_rng(2)
    table = generator.integers(-(2**46), 2**46, (rows, 3))
    drawn = generator.integers(0, 2**64, rows + 5, dtype=np.uint64)
    drawn.flags.writeable = False

    def words(position, count):
        return drawn[position : position + count]

    whole = choose(words, 5, table, 44)
    for first, last in ((0, 1), (100, 250), (rows - 7, rows)):
        part = choose(words, 5 + first, table[first:last], 44)
        assert np.array_equal(part, whole[first:last])
    assert choose(words, 5, table[:0], 44).size == 0


@pytest.mark.parametrize(
    ("table", "bits", "message"),
    [
        (np.zeros(3, dtype=np.int64), 8, "rows and candidates"),
        (np.zeros((2, 0), dtype=np.int64), 8, "rows and candidates"),
        (np.zeros((2, 2), dtype=np.int64), 56, "fraction bits"),
        (np.full((2, 2), ABSENT), 8, "not absent"),
    ],
)
def test_refuses_what_it_cannot_read(table, bits, message):
    with pytest.raises(InputError, match=message):
        choose(scripted({}), 0, table, bits)


def test_refuses_a_source_that_gives_too_few_words():
    def words(position, count):
        return np.zeros(1, dtype=np.uint64)

    with pytest.raises(InputError, match="as many words of uint64"):
        choose(words, 0, np.zeros((3, 2), dtype=np.int64), 8)
