"""Discrete Laplace and geometric draws by the definition, in high precision.

A draw counts the thresholds above a uniform number: |Z| >= k exactly when U < t_k,
t_k = P(|Z| >= k). U is read to 319 bits and thresholds are found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np

RESOLVER_BASE = 1 << 90
EXTRA_WORDS = 4
PRECISION = 600


def uniform(words: Callable[[int, int], np.ndarray], position: int) -> mpmath.mpf:
    """The number that the word at `position` begins, cut after 319 bits."""
    fraction = int(words(position, 1)[0]) >> 1
    for further in range(EXTRA_WORDS):
        place = RESOLVER_BASE + (position << 16) + further
        fraction = (fraction << 64) | int(words(place, 1)[0])
    with mpmath.workprec(PRECISION):
        return mpmath.mpf(fraction) / mpmath.mpf(2) ** (63 + 64 * EXTRA_WORDS)


def threshold(k: int, numerator: int, denominator: int, *, signed: bool) -> mpmath.mpf:
    """P(|Z| >= k) of the discrete Laplace law, or P(G >= k) of the geometric one."""
    with mpmath.workprec(PRECISION):
        if k <= 0:
            return mpmath.mpf(1)
        rate = mpmath.mpf(denominator) / numerator
        tail = mpmath.exp(-k * rate)
        return 2 * tail / (1 + mpmath.exp(-rate)) if signed else tail


def draw(
    words: Callable[[int, int], np.ndarray],
    position: int,
    numerator: int,
    denominator: int,
    *,
    signed: bool,
) -> int:
    number = uniform(words, position)

    def reaches(k: int) -> bool:
        return number < threshold(k, numerator, denominator, signed=signed)

    low, high = 0, 1
    while reaches(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return -low if signed and int(words(position, 1)[0]) & 1 else low
