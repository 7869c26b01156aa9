"""Deviation of windows, from the definition, in whole numbers and fractions."""

from __future__ import annotations

from fractions import Fraction


def exact(cell):
    return cell if isinstance(cell, int) else Fraction(cell)


def deviation(cells):
    cells = [exact(cell) for cell in cells]
    mean = Fraction(sum(cells)) / len(cells)
    # |cell - mean| on the common denominator of the mean.
    above, below = mean.numerator, mean.denominator
    return Fraction(sum(abs(cell * below - above) for cell in cells)) / below


def window_deviations(cells, length):
    return [
        deviation(cells[start : start + length])
        for start in range(len(cells) - length + 1)
    ]
