from __future__ import annotations

import decimal
import random

import mpmath
import numpy as np
import pytest

from blowfish_fast.kernels._arguments import (
    POSITION_LIMIT,
    RESOLVER_BASE,
    RESOLVER_BITS,
)
from blowfish_fast.kernels.sampling.discrete_laplace import resolve
from tests.reference import discrete_laplace as reference

SCALES = [(1, 100), (1, 3), (5, 2), (1000, 7), (10**9 + 7, 1), (2**56, 1), (1, 10**30)]
POSITION = 12345


def source(word, further):
    """Give `word` at its position and `further` words to the resolver."""

    def words(position, count):
        if position == POSITION:
            return np.array([word], dtype=np.uint64)
        place = position - RESOLVER_BASE - (POSITION << RESOLVER_BITS)
        return np.array([further[place]], dtype=np.uint64)

    return words


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(("numerator", "denominator"), SCALES)
def test_equals_the_definition(numerator, denominator, signed):
    rng = random.Random(11)
    for _ in range(15):
        word = rng.getrandbits(64) >> rng.choice([0, 0, 30, 60, 63, 64])
        words = source(word, [rng.getrandbits(64) for _ in range(8)])
        drawn = resolve(words, POSITION, word, numerator, denominator, signed=signed)
        assert drawn == reference.draw(
            words, POSITION, numerator, denominator, signed=signed
        )


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(("numerator", "denominator"), SCALES[1:5])
def test_a_tie_takes_as_many_words_as_it_needs(numerator, denominator, signed, rounds):
    size = max(1, numerator // denominator)
    border = reference.threshold(size, numerator, denominator, signed=signed)
    with mpmath.workprec(reference.PRECISION):
        digits = int(mpmath.floor(border * mpmath.mpf(2) ** (63 + 64 * rounds)))
    for step, expected in ((-1, size), (1, size - 1)):
        number = digits + step
        further = [(number >> 64 * i) & (2**64 - 1) for i in range(rounds)][::-1]
        word = number >> (64 * rounds) << 1
        asked = []

        def words(position, count, further=further, asked=asked):
            asked.append(position)
            return np.array([further[len(asked) - 1]], dtype=np.uint64)

        drawn = resolve(words, POSITION, word, numerator, denominator, signed=signed)
        assert drawn == expected
        first = RESOLVER_BASE + (POSITION << RESOLVER_BITS)
        assert asked == list(range(first, first + rounds))


def test_does_not_depend_on_the_decimal_context_of_the_thread():
    word = 0x5DEECE66D1234567
    words = source(word, [7, 8, 9])
    expected = resolve(words, POSITION, word, 10**9 + 9, 1, signed=True)
    with decimal.localcontext(prec=2, rounding=decimal.ROUND_UP) as context:
        context.traps[decimal.Inexact] = True
        assert resolve(words, POSITION, word, 10**9 + 9, 1, signed=True) == expected


def test_places_of_further_words_never_meet():
    last = POSITION_LIMIT - 1
    assert last < RESOLVER_BASE
    assert RESOLVER_BASE + (last << RESOLVER_BITS) + 2**RESOLVER_BITS <= 2**100
