"""A descent by unevenness: the scores of its nodes, and what a record changes of them.

A score is the largest pinball cost of a node and of all nodes below it, so that even
regions stay whole however many records they hold. A record moves it by -1 to 3 along
its path, and nowhere else.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.data.sparse import FilledCells
from blowfish_fast.kernels.sampling.decimal_bounds import exponential_bounds

MOST_RISE = 3
"""By how much a record that is added lifts a score at most; it lowers it by 1."""

DIGITS = 50
"""Decimal digits of exponentials."""

WORK_BITS = 96
"""Of the fractions in which a price is added up."""


class NodeScores:
    """Scores of the nodes of a regular tree, by height.

    Parameters
    ----------
    filled : FilledCells
        The cells that hold records.
    heights : list of int
        Heights of the levels, from the root down, without single cells.
    """

    def __init__(self, filled: FilledCells, heights: list[int]) -> None:
        # Loaded here: short commands weigh no node, and start without the compiler.
        from blowfish_fast.kernels.window_costs import node_unevenness

        self.filled = filled
        self._most_counted = node_unevenness.MOST_COUNTED
        raised = np.zeros(filled.keys.size, dtype=np.int64)
        self._levels: dict[int, tuple[IntArray, IntArray]] = {}
        for height in reversed(heights):
            scores = node_unevenness.raise_scores(*filled, raised, height)
            self._levels[height] = scores

    def of(self, begin: IntArray, end: IntArray, height: int) -> IntArray:
        """Return the scores of nodes of one height.

        Parameters
        ----------
        begin, end : ndarray of int64, shape (nodes,)
            The first cells of nodes, and the cells behind their last.
        height : int
            Their height, at least 1.

        Returns
        -------
        ndarray of int64, shape (nodes,)
            The scores; 0 of empty nodes.
        """
        keys, counts = self.filled
        first, last = np.searchsorted(keys, begin), np.searchsorted(keys, end)
        scores = np.zeros(begin.size, dtype=np.int64)
        many, lone = last - first > 1, last - first == 1
        firsts, level_scores = self._levels[height]
        scores[many] = level_scores[np.searchsorted(firsts, first[many])]
        # One window of two is its own quantile; of four or more it lies above.
        each = np.minimum(counts[first[lone]], self._most_counted)
        scores[lone] = each if height == 1 else MOST_RISE * each
        return scores


def ends_of_loss(scale: Fraction, bias: int) -> tuple[Fraction, Fraction]:
    """Return how far a record that is added lifts and lowers log-odds: Lemma DS10.

    Parameters
    ----------
    scale : Fraction
        Of the noise, b.
    bias : int
        By how much scores fall short a level deeper, D.

    Returns
    -------
    tuple of two Fraction
        R_3 + 1/b and R_1 + 3/b, rounded up.
    """
    up = _steps(scale, bias, MOST_RISE) + 1 / scale
    return up, _steps(scale, bias, 1) + MOST_RISE / scale


def _steps(scale: Fraction, bias: int, rise: int) -> Fraction:
    """Return the sum of ln p(w + m) / p(w), w = max(-D, kD - D + 1 - m), rounded up."""
    _, shrink = exponential_bounds(bias / scale, DIGITS)
    total, level = Fraction(0), 0
    while True:
        weight = max(-bias, (level - 1) * bias + 1 - rise)
        _, reached = _at_least(weight + rise, scale)
        before, _ = _at_least(weight, scale)
        excess = _rounded_up(reached / before - 1)
        if weight >= 0 and excess <= total / 2**60:
            # What follows falls by `shrink` at least, and ln(1 + v) <= v.
            return total + excess / (1 - shrink)
        total += log_above(excess)
        level += 1


def _at_least(weight: int, scale: Fraction) -> tuple[Fraction, Fraction]:
    """Enclose P(Z >= -weight) for discrete Laplace noise Z."""
    low, high = exponential_bounds(1 / scale, DIGITS)
    if weight < 0:
        tail_low, tail_high = exponential_bounds(-weight / scale, DIGITS)
        return tail_low / (1 + high), tail_high / (1 + low)
    tail_low, tail_high = exponential_bounds((weight + 1) / scale, DIGITS)
    return 1 - tail_high / (1 + low), 1 - tail_low / (1 + high)


def _rounded_up(value: Fraction) -> Fraction:
    return Fraction(math.ceil(value * 2**WORK_BITS), 2**WORK_BITS)


def log_above(excess: Fraction) -> Fraction:
    """Return a number that is at least ln(1 + excess), and close to it.

    Floats propose, an exponential in fractions decides.
    """
    guess = Fraction(math.log1p(float(excess))) * (1 + Fraction(1, 2**40))
    while exponential_bounds(guess, DIGITS)[1] * (1 + excess) > 1:
        guess += guess / 2**30
    return _rounded_up(guess)


def near_loss(scale: float, bias: int) -> tuple[float, float]:
    """Return both ends in floats, which may be a little off.

    Parameters
    ----------
    scale : float
        Of the noise.
    bias : int
        By how much scores fall short a level deeper.

    Returns
    -------
    tuple of two float
        As `ends_of_loss`.
    """
    fade = math.exp(-1.0 / scale)

    def log_chance(weight: int) -> float:
        if weight < 0:
            return weight / scale - math.log1p(fade)
        return math.log1p(-math.exp(-(weight + 1) / scale) / (1.0 + fade))

    def steps(rise: int) -> float:
        total, level = 0.0, 0
        while True:
            weight = max(-bias, (level - 1) * bias + 1 - rise)
            step = log_chance(weight + rise) - log_chance(weight)
            total += step
            level += 1
            if step <= 1e-15 * total and weight >= 0:
                return total

    return steps(MOST_RISE) + 1.0 / scale, steps(1) + MOST_RISE / scale
