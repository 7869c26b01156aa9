"""Cheapest pairing within a window: every pairing, costs from the definition."""

from __future__ import annotations

from fractions import Fraction
from math import floor

from blowfish_fast.kernels.sampling.discrete_laplace import geometric

from .matching_pairs import pairings, total


def deviation(totals, sizes, i, j):
    """Return how far the cells of two even buckets lie from their common mean."""
    mean = Fraction(totals[i] + totals[j], sizes[i] + sizes[j])
    return sum(sizes[k] * abs(Fraction(totals[k], sizes[k]) - mean) for k in (i, j))


def window_mates(
    totals, sizes, parts, window, grid, price, pair_price, scales=None, words=None
):
    def noise(distance, cell):
        if scales is None:
            return 0
        scale = scales[min(distance, 1)]
        place = (distance << 40) + cell
        return int(geometric(words, place, scale.numerator, scale.denominator, 1)[0])

    cells = len(totals)
    alone = [price - noise(0, i) for i in range(cells)]
    paired = {
        (i, j): floor(deviation(totals, sizes, i, j) / Fraction(2) ** grid)
        + pair_price
        - noise(j - i, i)
        for i in range(cells)
        for j in range(i + 1, min(i + window + 1, cells))
        if parts[i] == parts[j]
    }

    def order(mates):
        return [
            -1 if mate < i else mate - i for i, mate in reversed(list(enumerate(mates)))
        ]

    possible = [
        mates
        for mates in pairings(cells, window)
        if all((i, mate) in paired for i, mate in enumerate(mates) if mate > i)
    ]
    return min(possible, key=lambda mates: (total(mates, alone, paired), order(mates)))
