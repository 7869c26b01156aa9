"""How likely noise alone reaches a threshold: enclosed in whole numbers, and public.

A probability p is enclosed by two integers, low <= 2^bits p <= high. What is decided by
comparing random words with them is exact, since more bits can always be had:

    p            .00000001 01000010 ... P(Z >= 5) = e^-5 / (1 + e^-1) at scale 1
    8 bits       1 and 2                a word of 0 is below, one of 2 or more above
    16 bits      322 and 323
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from blowfish_fast.errors import SizeError

from .decimal_bounds import exponential_bounds

Enclosure = tuple[int, int]
"""Whole numbers below and above 2^bits times a probability."""

MOST_TERMS = 2**20
"""Values of Gaussian noise that are added up at most; a second's work."""

SPARE_BITS = 64
"""Beyond those asked for: rounding grows with the square of the number of terms."""


def laplace_tail(rate: Fraction, threshold: int, bits: int) -> Enclosure:
    """Enclose P(Z >= T) = a^T / (1 + a), a = exp(-rate), T at least 1: Lemma SL2.

    Parameters
    ----------
    rate : Fraction
        One over the scale of the noise.
    threshold : int
        T.
    bits : int
        Of the enclosure.

    Returns
    -------
    tuple of two int
        Whole numbers below and above 2^bits times the probability.

    Examples
    --------
    >>> low, high = laplace_tail(Fraction(1), 3, 40)
    >>> high - low, round(low / 2**40, 6)        # e^-3 / (1 + e^-1)
    (1, 0.036397)
    """
    digits = bits // 3 + 20
    fade_low, fade_high = exponential_bounds(rate, digits)
    reach_low, reach_high = exponential_bounds(threshold * rate, digits)
    low, high = reach_low / (1 + fade_high), reach_high / (1 + fade_low)
    return math.floor(low * (1 << bits)), math.ceil(high * (1 << bits))


def gaussian_tail(variance: Fraction, threshold: int, bits: int) -> Enclosure:
    """Enclose P(Z >= T), Z on the integers as exp(-z^2 / 2v), T at least 1: Lemma SL2.

    Parameters
    ----------
    variance : Fraction
        v, the parameter of the discrete Gaussian law.
    threshold : int
        T.
    bits : int
        Of the enclosure.

    Returns
    -------
    tuple of two int
        Whole numbers below and above 2^bits times the probability.

    Examples
    --------
    >>> low, high = gaussian_tail(Fraction(1), 1, 40)
    >>> high - low, round(low / 2**40, 6)
    (1, 0.300529)
    """
    work = bits + SPARE_BITS
    unit = 1 << work
    below_low = below_high = all_low = all_high = 0
    for place, (low, high) in enumerate(_gaussian_terms(variance, work)):
        all_low, all_high = all_low + low, all_high + high
        if place < threshold - 1:
            below_low, below_high = below_low + low, below_high + high
    # Terms of 1, 2, ...: the law has them on both sides, and one more at 0.
    whole_low, whole_high = unit + 2 * all_low, unit + 2 * all_high
    low, high = max(all_low - below_high, 0), all_high - below_low
    return (low << bits) // whole_high, -(-(high << bits) // whole_low)


def _gaussian_terms(variance: Fraction, work: int) -> Iterator[Enclosure]:
    """Yield exp(-k^2 / 2v) for k = 1, 2, ..., then all that is left as one term.

    From term to term the ratio falls by the same factor, exp(-1/v):

        k            1          2              3
        term         r          r * (r f)      r * (r f) * (r f f)
        ratio        r = exp(-1/2v)            f = exp(-1/v)
    """
    count = math.isqrt(math.ceil(2 * variance * work)) + 2
    if count > MOST_TERMS:
        raise SizeError(
            "the noise of a list of cells is added up value by value, at most 2^20 of "
            "them",
            received=f"a standard deviation of {float(variance) ** 0.5:,.0f}",
            way_out="Raise rho, or list with SparseLaplace",
        )
    unit = 1 << work
    digits = work // 3 + 10
    ratio_low, ratio_high = _scaled(1 / (2 * variance), digits, work)
    fall_low, fall_high = _scaled(1 / variance, digits, work)
    low = high = unit
    for _ in range(count):
        low, high = low * ratio_low >> work, -(-(high * ratio_high) >> work)
        yield low, high
        ratio_low, ratio_high = (
            ratio_low * fall_low >> work,
            -(-(ratio_high * fall_high) >> work),
        )
    # Beyond, every ratio is smaller still: a geometric sum bounds the rest.
    yield 0, -(-(high * ratio_high) // (unit - ratio_high))


def _scaled(exponent: Fraction, digits: int, work: int) -> Enclosure:
    low, high = exponential_bounds(exponent, digits)
    return math.floor(low * (1 << work)), min(math.ceil(high * (1 << work)), 1 << work)


def least_laplace_threshold(rate: Fraction, cells: int, most: Fraction) -> int:
    """Return the least T with cells * P(Z >= T) <= most for certain, at least 1.

    Parameters
    ----------
    rate : Fraction
        One over the scale of the noise.
    cells : int
        How many cells get noise.
    most : Fraction
        How many of them may reach T in the mean.

    Returns
    -------
    int
        T.

    Examples
    --------
    >>> least_laplace_threshold(Fraction(1, 10), 2**60, Fraction(1))
    410
    """
    bits = _bits_for(cells, most)

    def enough(threshold: int) -> bool:
        _, high = laplace_tail(rate, threshold, bits)
        return cells * high <= most * (1 << bits)

    below, reached = 0, 1
    while not enough(reached):
        below, reached = reached, 2 * reached
    while reached - below > 1:
        middle = (below + reached) // 2
        below, reached = (below, middle) if enough(middle) else (middle, reached)
    return reached


def least_gaussian_threshold(variance: Fraction, cells: int, most: Fraction) -> int:
    """Return the least T with cells * P(Z >= T) <= most for certain, at least 1.

    Parameters
    ----------
    variance : Fraction
        The parameter of the discrete Gaussian law.
    cells : int
        How many cells get noise.
    most : Fraction
        How many of them may reach T in the mean.

    Returns
    -------
    int
        T.

    Examples
    --------
    >>> least_gaussian_threshold(Fraction(33), 2**60, Fraction(1))
    51
    """
    bits = _bits_for(cells, most)
    terms = list(_gaussian_terms(variance, bits))
    whole = (1 << bits) + 2 * sum(low for low, _ in terms)
    allowed = most * whole / cells
    # Everything from 1 on, less one term after the other.
    left, threshold = sum(high for _, high in terms), 1
    for low, _ in terms:
        if left <= allowed:
            break
        left, threshold = left - low, threshold + 1
    return threshold


def _bits_for(cells: int, most: Fraction) -> int:
    """Return how many bits tell a probability of most / cells from its neighbours."""
    ratio = Fraction(cells) / most
    return 2 * SPARE_BITS + max(math.ceil(ratio).bit_length(), 1)
