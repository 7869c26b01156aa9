"""The draws that floating point cannot decide: more random bits, exact arithmetic.

Serves ``kernels.discrete_laplace``. A draw is the number of thresholds above a uniform
number U. When a threshold falls inside the interval known to hold U, further words
lengthen U until none does:

    thresholds      t3         t2              t1
    U, 63 bits  ----|------[---|----]----------|----    t2 inside: 1 or 2?
    U, 127 bits                [-]                      t2 left of it: 1

In decimal arithmetic the interval of U becomes one of sizes, and the draw is decided
when both its ends have the same floor.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache
from typing import TypeAlias

from blowfish_fast._support.typing import WordArray

# words(position, count): `count` words from `position` on, always the same ones.
WordSource: TypeAlias = Callable[[int, int], WordArray]

# A draw takes one word below POSITION_LIMIT. If it stays undecided, U goes on with
# the words from RESOLVER_BASE + position * 2^16, which no draw begins with.
RESOLVER_BASE = 1 << 90
RESOLVER_BITS = 16
POSITION_LIMIT = 1 << 74


def resolve(
    words: WordSource,
    position: int,
    word: int,
    numerator: int,
    denominator: int,
    *,
    signed: bool,
) -> int:
    """Return the draw of one word for certain, for any positive rational scale.

    Lemma EN6.

    Discrete Laplace if `signed`, else geometric. No threshold is rational, so each
    round decides but for a chance of about ``scale / 2^64`` to the power of the round.
    """
    known, bits = word >> 1, 63
    for place in itertools.count(RESOLVER_BASE + (position << RESOLVER_BITS)):
        if known > 0:
            least, most = _size_between(known, bits, numerator, denominator, signed)
            if least == most:
                return -least if signed and word & 1 else least
        known = (known << 64) | int(words(place, 1)[0])
        bits += 64
    raise AssertionError("the count of words has no end")


def _size_between(
    known: int, bits: int, numerator: int, denominator: int, signed: bool
) -> tuple[int, int]:
    """Bound the size of a draw whose U lies in ``[known, known + 1) / 2^bits``.

    Every decimal operation rounds to nearest, logarithm and exponential included, so
    the error stays far below the slack; and the digits are enough to make the slack
    small beside what is not known of U.
    """
    exact, scale, summit, slack = _terms(bits, numerator, denominator, signed)
    lowest_logarithm = exact.ln(Decimal(known))
    most = exact.multiply(scale, exact.subtract(summit, lowest_logarithm))
    # The logarithm rises by less than 1 / known up to the end of the interval.
    least = exact.subtract(most, exact.divide(scale, Decimal(known)))
    least, most = exact.subtract(least, slack), exact.add(most, slack)
    return max(math.floor(least), 0), math.floor(most)


@lru_cache(maxsize=256)
def _terms(
    bits: int, numerator: int, denominator: int, signed: bool
) -> tuple[Context, Decimal, Decimal, Decimal]:
    """Return what all draws of a scale share: context, scale, summit and slack.

    The size of a draw is the floor of ``scale * (summit - ln(U * 2^bits))``.
    """
    bits_of_scale = max(numerator.bit_length() - denominator.bit_length() + 1, 0)
    digits = (bits + bits_of_scale) * 302 // 1000 + 25
    exact = Context(
        prec=digits,
        rounding=ROUND_HALF_EVEN,
        Emin=MIN_EMIN,
        Emax=MAX_EMAX,
        traps=[],
    )
    scale = exact.divide(Decimal(numerator), Decimal(denominator))
    summit = exact.ln(Decimal(1 << bits))
    if signed:
        rate = exact.divide(Decimal(denominator), Decimal(numerator))
        both_signs = exact.add(Decimal(1), exact.exp(rate.copy_negate()))
        shift = exact.subtract(exact.ln(Decimal(2)), exact.ln(both_signs))
        summit = exact.add(summit, shift)
    units = exact.scaleb(Decimal(10 * (bits + 10)), Decimal(1 - digits))
    slack = exact.multiply(scale, units)
    return exact, scale, summit, slack
