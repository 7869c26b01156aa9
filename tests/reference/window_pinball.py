"""Pinball cost of windows, from the definition: the best of all centres."""

from __future__ import annotations

from fractions import Fraction


def tilted(cells, centre, numerator, denominator):
    return sum(
        numerator * (cell - centre)
        if cell > centre
        else (denominator - numerator) * (centre - cell)
        for cell in cells
    )


def pinball(cells, numerator, denominator):
    """Return the minimum over all centres; it is attained at one of the cells."""
    best = min(tilted(cells, centre, numerator, denominator) for centre in set(cells))
    return Fraction(best, denominator)


def window_pinball_costs(cells, length, numerator, denominator):
    return [
        denominator * pinball(cells[start : start + length], numerator, denominator)
        for start in range(len(cells) - length + 1)
    ]
