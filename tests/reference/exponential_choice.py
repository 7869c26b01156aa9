"""Choices by high-precision arithmetic, straight from the definition."""

from __future__ import annotations

from fractions import Fraction

import mpmath

from blowfish_fast.kernels._arguments import RESOLVER_BASE
from blowfish_fast.kernels.sampling.exponential_choice import ABSENT

PRECISION = 2000  # bits, far beyond what any test needs to tell two numbers apart


def weights(row, fraction_bits):
    """Return exp(t / 2**fraction_bits) of each candidate, over the largest."""
    best = max(row)
    with mpmath.workprec(PRECISION):
        return [
            mpmath.mpf(0)
            if weight == ABSENT
            else mpmath.exp(-mpmath.mpf(int(best) - int(weight)) / 2**fraction_bits)
            for weight in row
        ]


def probabilities(row, fraction_bits):
    """Return the exact probability of each candidate, to 2000 bits."""
    with mpmath.workprec(PRECISION):
        parts = weights(row, fraction_bits)
        return [part / mpmath.fsum(parts) for part in parts]


def borders(row, fraction_bits):
    """Return the right end of each candidate's part of [0, 1), but the last's."""
    with mpmath.workprec(PRECISION):
        parts = probabilities(row, fraction_bits)
        return [mpmath.fsum(parts[: i + 1]) for i in range(len(parts) - 1)]


def log_total(row, fraction_bits):
    """Return the logarithm of the sum of the weights, in nats."""
    with mpmath.workprec(PRECISION):
        total = mpmath.log(mpmath.fsum(weights(row, fraction_bits)))
        return total + mpmath.mpf(int(max(row))) / 2**fraction_bits


def uniform(words, position, continuation):
    """Return the number that a word and `continuation` further words spell."""
    value, bits = int(words(position, 1)[0]), 64
    for j in range(continuation):
        further = int(words(RESOLVER_BASE + (position << 16) + j, 1)[0])
        value, bits = (value << 64) | further, bits + 64
    return Fraction(value, 1 << bits)


def choice(number, row, fraction_bits):
    """Return the candidate whose part of [0, 1) holds `number`."""
    with mpmath.workprec(PRECISION):
        place = mpmath.mpf(number.numerator) / number.denominator
        return sum(place >= border for border in borders(row, fraction_bits))


def binary_words(number, count):
    """Return the first 64-bit words of the binary expansion of a number in [0, 1)."""
    with mpmath.workprec(PRECISION):
        digits = int(mpmath.floor(number * mpmath.mpf(2) ** (64 * count)))
    return [(digits >> (64 * j)) & (2**64 - 1) for j in reversed(range(count))]
