"""The law of lowered noise from its definition, in fractions.

Rates r < s enter by q = exp(-r) and t = exp(-s), which are any fractions 0 < t < q < 1
here: the identities are algebra in q and t. First noise of ratio q is noise of ratio t
and an independent rest; the law of the second, given the first, is Bayes' rule.
"""

from __future__ import annotations

import random
from fractions import Fraction


def laplace(ratio: Fraction, size: int) -> Fraction:
    """P(Z = size) of discrete Laplace noise."""
    return (1 - ratio) / (1 + ratio) * ratio ** abs(size)


def rest(q: Fraction, t: Fraction, size: int) -> Fraction:
    """P(W = size) of the rest: an atom at 0, and otherwise noise of ratio q."""
    atom = t / q * ((1 - q) / (1 - t)) ** 2
    return atom * (size == 0) + (1 - atom) * laplace(q, size)


def by_bayes(first: int, q: Fraction, t: Fraction, second: int) -> Fraction:
    """P(second noise | first noise)."""
    return laplace(t, second) * rest(q, t, first - second) / laplace(q, first)


def coin(rate: Fraction, rng: random.Random) -> bool:
    """True with probability exp(-rate), by Forsythe's series of falling numbers."""
    while rate > 1:
        if not coin(Fraction(1), rng):
            return False
        rate -= 1
    length = 1
    while rng.randrange(rate.denominator * length) < rate.numerator:
        length += 1
    return length % 2 == 1


def geometric(rate: Fraction, rng: random.Random) -> int:
    """Successes of a coin before it first fails."""
    successes = 0
    while coin(rate, rng):
        successes += 1
    return successes


def lowered(first: int, slow: Fraction, fast: Fraction, rng: random.Random) -> int:
    """Draw the second noise by races of coins, with fresh coins at every step."""
    size, side = abs(first), -1 if first < 0 else 1
    both, gap = slow + fast, fast - slow
    while coin(both, rng):
        if not coin(gap, rng):
            return -side * (1 + geometric(both, rng))
    between = geometric(gap, rng)
    if between <= size:
        return side * between
    while coin(2 * slow, rng):
        if not coin(gap, rng):
            return side * (size + 1 + geometric(both, rng))
    return side * size
