"""Pinball cost of aligned dyadic windows, every centre tried."""

from __future__ import annotations


def pinball_cost(counts, numerator, denominator):
    """Return `denominator` times the least pinball cost around any cell's count."""

    def around(centre):
        return sum(
            numerator * max(count - centre, 0)
            + (denominator - numerator) * max(centre - count, 0)
            for count in counts
        )

    return min(around(centre) for centre in counts)


def window_costs(x, numerator, denominator):
    """Return the cost of every window that has a cell, level by level."""
    counts = [int(count) for count in x]
    costs = []
    length = 1
    while True:
        costs.append(
            [
                pinball_cost(counts[start : start + length], numerator, denominator)
                for start in range(0, len(counts), length)
            ]
        )
        if length >= len(counts):
            return costs
        length *= 2
