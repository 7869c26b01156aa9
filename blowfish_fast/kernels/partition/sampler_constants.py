"""Fixed-point constants of the sampled partitions, the same on every machine.

Serves `dyadic_partition` and `rectangle_prior`. Log-weights are int64 multiples of
2**-f; f leaves room for every sum formed. Nothing here may depend on counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import NamedTuple, TypeAlias

from blowfish_fast.errors import InputError

Number: TypeAlias = int | float | Fraction

LARGEST = 1 << 10  # nats for a unit of cost, or for a bucket; more would be no use
_MOST_BITS = 48
_DECIMAL = Context(prec=60)


class FixedPoint(NamedTuple):
    """Fraction bits, and in their units what a unit of cost and a bucket weigh."""

    fraction_bits: int
    unit: Fraction
    penalty: int


def fixed_point(
    rate: Number, penalty: Number, base: Iterable[float], levels: int, floor: int
) -> FixedPoint:
    """Return the constants for a rate, rounded down, and the price of a bucket.

    No sum over 2**levels buckets leaves 62 bits; `floor` bounds log-weights from below
    in nats, times what the caller adds up of them.
    """
    if min(rate, penalty) < 0 or min(base) <= 0:
        raise InputError(
            "rate and penalty may not be negative and base weights must be positive, "
            f"but they are {rate}, {penalty} and {base}"
        )
    cost = Fraction(penalty)
    speed = min(Fraction(rate), Fraction(LARGEST) / max(cost, Fraction(1)))
    bound = ceil((speed * cost * (1 << levels)) + speed) + floor
    bits = min(_MOST_BITS, 62 - bound.bit_length())
    scaled = speed * (1 << bits)
    return FixedPoint(bits, scaled, round(scaled * cost))


@lru_cache(maxsize=256)
def logarithm(value: Fraction) -> Fraction:
    """Return a natural logarithm to 60 digits."""
    quotient = _DECIMAL.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Fraction(_DECIMAL.ln(quotient))


def cut_to_one(weight: Number) -> Fraction:
    """Return a public factor on costs, cut to [0, 1]."""
    return max(min(Fraction(weight), Fraction(1)), Fraction(0))
