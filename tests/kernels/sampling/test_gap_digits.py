"""Gaps between lifted cells: digits are independent, and every set has its law."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import special

from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import RESOLVER_BASE
from blowfish_fast.kernels.sampling import gap_digits
from blowfish_fast.kernels.sampling.gap_digits import GapDigits, lifted_places
from blowfish_fast.kernels.sampling.tail_bounds import laplace_tail
from blowfish_fast.measure.randomness import Randomness
from tests.reference.gap_digits import gap_law, lifted_law

pytestmark = pytest.mark.kernel


def known(p: Fraction, bits: int) -> tuple[int, int]:
    return math.floor(p * 2**bits), math.ceil(p * 2**bits)


@pytest.mark.parametrize("q", [Fraction(13, 17), Fraction(1, 2), Fraction(999, 1000)])
def test_digits_multiply_to_the_law_of_a_gap(q):
    levels = 6
    ones = [q ** (1 << j) / (1 + q ** (1 << j)) for j in range(levels)]
    for gap, wanted in gap_law(q, levels).items():
        chance = math.prod(
            one if gap >> j & 1 else 1 - one for j, one in enumerate(ones)
        )
        assert chance == wanted
    law = GapDigits(partial(known, 1 - q), levels)
    for digit, one in enumerate(ones):
        low, high = law.enclose(digit, 200)
        assert low <= one * 2**200 <= high + 1
        assert high - low <= 1
    low, high = law.enclose(levels, 200)
    assert low <= q ** (1 << levels) * 2**200 <= high + 1


@pytest.mark.parametrize("levels", [1, 7, 62])
@pytest.mark.parametrize("threshold", [1, 3, 40, 10**6])
def test_words_decide_all_but_a_sliver(levels, threshold):
    law = GapDigits(partial(laplace_tail, Fraction(1), threshold), levels)
    assert (law.high - law.low <= 1).all()


def test_a_word_between_the_bounds_is_decided_by_further_bits():
    # p = 1/2: the lowest digit is 1 with probability 1/3 = .0101...
    law = GapDigits(partial(known, Fraction(1, 2)), 2)
    third = (1 << 64) // 3
    asked = []

    def words(further, position, count):
        asked.append(position)
        word = third if position < RESOLVER_BASE else further
        return np.full(count, word, dtype=np.uint64)

    assert law.decide(0, partial(words, 0), 5)
    assert not law.decide(0, partial(words, 2**64 - 1), 5)
    assert asked[1] == RESOLVER_BASE + (5 << 16)
    # Twice equal to the bits of 1/3: a third word decides.
    asked.clear()
    depth = iter([third, third, 0])
    assert law.decide(0, lambda at, n: np.array([next(depth)], dtype=np.uint64), 5)


@pytest.mark.long
@pytest.mark.parametrize("cells", [1, 3, 4])
def test_every_set_of_lifted_cells_has_its_law(cells):
    p, draws = Fraction(3, 10), 6000
    law = GapDigits(partial(known, p), 2)
    rng = Randomness(cells)
    seen = Counter(
        tuple(lifted_places(rng.stream(), cells, law, 9).tolist()) for _ in range(draws)
    )
    wanted = lifted_law(float(p), cells)
    assert seen.keys() <= wanted.keys()
    square = sum((seen[s] - draws * c) ** 2 / (draws * c) for s, c in wanted.items())
    assert special.chdtrc(len(wanted) - 1, square) > 1e-4


def test_places_ascend_up_to_the_end_of_a_domain_of_2_to_the_62():
    law = GapDigits(partial(laplace_tail, Fraction(1, 10), 350), 62)
    mean = 2**62 * law.tail(128)[0] / 2**128
    counts = []
    for seed in range(20):
        places = lifted_places(Randomness(seed).stream(), 2**62, law, 10**6)
        assert (np.diff(places) > 0).all()
        assert places[0] >= 0
        assert places[-1] < 2**62
        counts.append(places.size)
    assert abs(np.mean(counts) - mean) < 4 * np.sqrt(mean / 20)


def test_the_walk_ends_after_as_many_places_as_are_allowed():
    law = GapDigits(partial(known, Fraction(1, 2)), 20)
    whole = lifted_places(Randomness(1).stream(), 2**20, law, 10**6)
    assert whole.size > 2**18
    short = lifted_places(Randomness(1).stream(), 2**20, law, 100)
    np.testing.assert_array_equal(short, whole[:100])


@pytest.mark.parametrize("levels", [0, 1025])
def test_digits_that_do_not_fit_words_are_refused(levels):
    with pytest.raises(InputError, match="1 to 1024 digits"):
        GapDigits(partial(known, Fraction(1, 2)), levels)


@pytest.mark.parametrize("cells", [0, 5])
def test_more_cells_than_gaps_reach_are_refused(cells):
    law = GapDigits(partial(known, Fraction(1, 2)), 2)
    with pytest.raises(InputError, match="walk along 1 to 4 cells"):
        lifted_places(Randomness(1).stream(), cells, law, 9)


def test_places_of_any_length_are_those_of_64_bits_from_the_same_words(monkeypatch):
    law = GapDigits(partial(laplace_tail, Fraction(1), 12), 24)
    near = lifted_places(Randomness(3).stream(), 2**24 - 5, law, 10**6)
    monkeypatch.setattr(gap_digits, "LEVELS_IN_WORDS", 23)
    far = lifted_places(Randomness(3).stream(), 2**24 - 5, law, 10**6)
    assert near.size > 20
    assert far.tolist() == near.tolist()
    cut = lifted_places(Randomness(3).stream(), 2**24 - 5, law, 7)
    assert cut.tolist() == near[:7].tolist()


def test_gaps_beyond_64_bits_have_their_mean_and_doubt_is_resolved():
    levels, mean = 300, 2000
    law = GapDigits(partial(known, Fraction(mean, 2**levels)), levels)
    places = lifted_places(Randomness(4).stream(), 2**levels, law, 10**6)
    assert abs(places.size - mean) < 5 * math.sqrt(mean)
    assert (np.diff(places) > 0).all()
    assert 0 <= places[0] <= places[-1] < 2**levels
    halves = sum(one >= 2 ** (levels - 1) for one in places.tolist())
    assert abs(halves - mean / 2) < 5 * math.sqrt(mean)

    def doubtful(position, count):
        if position >= RESOLVER_BASE:
            return np.zeros(count, dtype=np.uint64)
        return law.low[:count].copy()

    # Zeros behind equal words lie below the bound or on it: each digit is decided.
    assert lifted_places(doubtful, 2**levels, law, 3).size <= 3
