"""Deviation of windows, from the definition, in whole numbers and fractions."""

from __future__ import annotations

from fractions import Fraction

from sortedcontainers import SortedList


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


def sliding_deviations(cells, length):
    """Return the deviations from one sorted list that slides: one cell in, one out.

    Twice what lies above the mean is the deviation, since as much lies below.
    """
    window, total = SortedList(), 0
    deviations = []
    for place, cell in enumerate(exact(cell) for cell in cells):
        window.add(cell)
        total += cell
        if len(window) > length:
            oldest = exact(cells[place - length])
            window.remove(oldest)
            total -= oldest
        if len(window) == length:
            mean = Fraction(total) / length
            above = window[window.bisect_right(mean) :]
            deviations.append(2 * (sum(above) - len(above) * mean))
    return deviations
