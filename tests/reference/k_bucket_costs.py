"""Squared errors in exact fractions, and the best k buckets by trying them all."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, pairwise


def squared_error(values):
    """Return the sum of squared distances from the mean."""
    mean = Fraction(sum(values), len(values))
    return sum(((value - mean) ** 2 for value in values), Fraction(0))


def bucket_error(values, bits):
    """Return the squared error in whole units of 2^-bits, rounded down."""
    return math.floor(squared_error(values) * 2**bits)


def best_head(values, borders, buckets, bits):
    """Return the least error of `buckets` buckets that cover all of `borders`."""
    inner = borders[1:-1]
    return min(
        sum(
            bucket_error(values[start:end], bits)
            for start, end in pairwise([borders[0], *chosen, borders[-1]])
        )
        for chosen in combinations(inner, buckets - 1)
    )
