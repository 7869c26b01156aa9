"""Deviations of prefixes and suffixes in exact fractions, cluster by cluster."""

from __future__ import annotations

import math
from fractions import Fraction


def deviation(values):
    """Return the sum of distances from the mean."""
    mean = Fraction(sum(values), len(values))
    return sum((abs(value - mean) for value in values), Fraction(0))


def prefix_costs(values, bits):
    """Return the deviation of each prefix in whole units of 2^-bits, rounded down."""
    return [
        math.floor(deviation(values[: end + 1]) * 2**bits) for end in range(len(values))
    ]


def suffix_costs(values, bits):
    """Return the deviation of what follows each place, itself included."""
    return prefix_costs(values[::-1], bits)[::-1]


def split_costs(values, price, bits):
    """Return the cost of no split, and of a split in front of each later cell."""
    whole = math.floor(deviation(values) * 2**bits) + price
    return [whole] + [
        math.floor(deviation(values[:cut]) * 2**bits)
        + math.floor(deviation(values[cut:]) * 2**bits)
        + 2 * price
        for cut in range(1, len(values))
    ]
