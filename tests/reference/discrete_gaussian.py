"""Discrete Gaussian draws from the definition of the ziggurat, with 80 digits."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

from mpmath import floor, mp, mpf

from blowfish_fast.kernels.sampling.gaussian_strips import BORDER, ENDS, HEIGHTS, RATE

mp.dps = 80


def _ratio(value):
    return mpf(value.numerator) / mpf(value.denominator)


def point(words, stretch, variance):
    """Return the draw of three words, or None where the point is not kept.

    A number is taken at the middle of what its bits leave open, so words on a border
    may be judged either way; generated ones are not.
    """
    word, second, third = words
    strip, negative = word & 255, (word >> 8) & 1
    across = (mpf(word >> 9) + mpf(0.5)) / 2**55
    upward = (mpf(second) + mpf(0.5)) / 2**64
    beyond = (mpf(third) + mpf(0.5)) / 2**64
    x = across * _ratio(ENDS[strip])
    low, high = _ratio(HEIGHTS[strip]), _ratio(HEIGHTS[strip + 1])
    if strip == 0 and x > BORDER:
        x = mpf(BORDER) - mp.log(beyond) / _ratio(RATE)
        low, high = mpf(0), _ratio(HEIGHTS[1]) * beyond
    size = int(floor(mpf(stretch) * x + mpf(0.5)))
    exponent = mpf(size) ** 2 / (2 * _ratio(variance))
    exponent += 1 / (8 * (mpf(stretch) ** 2 - _ratio(variance)))
    if low + upward * (high - low) >= mp.exp(-exponent):
        return None
    return -size if negative else size


def probabilities(variance, most):
    """Return P(Z = k) for k = -most .. most."""
    weights = [
        mp.exp(-(mpf(k) ** 2) / (2 * _ratio(variance))) for k in range(-most, most + 1)
    ]
    whole = sum(
        mp.exp(-(mpf(k) ** 2) / (2 * _ratio(variance)))
        for k in range(-9 * most - 99, 9 * most + 100)
    )
    return [float(one / whole) for one in weights]


@lru_cache(maxsize=1000)
def _tails(variance):
    """Return P(|Z| >= k) for k = 1, 2, .., down to about 10^-60."""
    last = math.isqrt(math.ceil(280 * variance)) + 2
    weights = [mp.exp(-(mpf(k) ** 2) / (2 * _ratio(variance))) for k in range(last)]
    sums = list(itertools.accumulate(2 * one for one in reversed(weights[1:])))[::-1]
    return [one / (sums[0] + weights[0]) for one in sums]


def size(uniform, variance):
    """Return how many k have P(|Z| >= k) above a number in [0, 1)."""
    return sum(tail > _ratio(uniform) for tail in _tails(variance))
