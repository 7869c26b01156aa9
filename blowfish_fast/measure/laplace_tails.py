"""Half-widths for sums of independent Laplace noise, from a few of its moments.

An answer is off by S = sum a_i Z_i, Z_i discrete Laplace of scale b_i. Three steps, all
proved in ``docs/proofs/intervals.md``:

    worst vector   of w_i = (a_i b_i)^2 / square, only square and the largest matter:
                   the heaviest tail has r equal entries and at most one smaller one
    table          quantiles of these vectors over theta = 1 / largest w, rounded up
    discreteness   `kernels.laplace_half_widths` leads from continuous to discrete noise

The table of a miss probability takes a tenth of a second and is kept, beside one of
Chernoff's bound, which is the lesser for small scales and needed for tiny
probabilities; a lookup takes some tens of nanoseconds a query. Sums of equal draws have
their exact law, by a transform.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray

from .gaussian_tails import gaussian_half_widths
from .noise import Spread, chernoff_half_width

_NODES = 160
_RANGE = 5.2
_RATIO = 1.006
_TOP = 1.0e6
_SLACK = 0.008
_ROUNDING = 1.0e-9
_LEAST_MISS = 1.0e-12
_LARGEST_MISS = 0.9


class _Family:
    """Sums of `count` Laplace draws of squared scale `each` and one of `rest`."""

    def __init__(self, each: FloatArray, count: FloatArray, rest: FloatArray) -> None:
        self.each, self.count, self.rest = each, count, rest
        self.top = np.maximum(each, rest)

    def tail(self, distance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return P(|T| > distance) and its slope, by an integral through the saddle.

        P(T > h) = 1 / (2 pi i) times the integral of e^(-sh) M(s) / s, where
        M(s) = prod 1 / (1 - w_i s^2); all poles are real, so the path may be bent.
        """
        start, curvature = self._saddle(distance)
        bend = 0.25 * np.sqrt(self.top)[:, None]
        nodes = (np.arange(_NODES) + 0.5) * (_RANGE / _NODES)
        unit = 1.0 / np.sqrt(curvature)[:, None]
        along = unit * np.sinh(nodes)
        step = unit * np.cosh(nodes) * (_RANGE / _NODES)
        s = start[:, None] + 1j * along + bend * along * along
        exponent = -s * distance[:, None]
        exponent -= self.count[:, None] * np.log(1.0 - self.each[:, None] * s * s)
        exponent -= np.log(1.0 - self.rest[:, None] * s * s)
        value = np.exp(exponent) * (1j + 2.0 * bend * along)
        tail = 2.0 / np.pi * (np.imag(value / s) * step).sum(axis=1)
        slope = 2.0 / np.pi * (np.imag(value) * step).sum(axis=1)
        return tail, slope

    def _saddle(self, distance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return where K'(s) - 1 / s = distance, and the curvature there."""
        low, high = np.zeros(distance.size), 1.0 / np.sqrt(self.top)
        for _ in range(50):
            s = 0.5 * (low + high)
            first = 2.0 * self.count * self.each * s / (1.0 - self.each * s * s)
            first += 2.0 * self.rest * s / (1.0 - self.rest * s * s)
            above = first - 1.0 / s > distance
            high = np.where(above, s, high)
            low = np.where(above, low, s)
        s = low
        each, rest = self.each * s * s, self.rest * s * s
        curvature = 2.0 * self.count * self.each * (1.0 + each) / (1.0 - each) ** 2
        curvature += 2.0 * self.rest * (1.0 + rest) / (1.0 - rest) ** 2
        return s, curvature + 1.0 / s**2

    def quantile(self, miss: float, start: FloatArray) -> FloatArray:
        """Return the distances with tail `miss`: Newton's steps on its logarithm."""
        distance = start
        for _ in range(60):
            tail, slope = self.tail(distance)
            step = np.log(tail / miss) * tail / slope
            step = np.clip(step, -0.4 * distance, 0.5 * distance + 1.0)
            distance = distance + step
            if (np.abs(step) <= 1e-11 * distance).all():
                break
        return distance


def _cells() -> tuple[FloatArray, _Family]:
    """Return borders of theta, and for each cell a vector above all of its vectors.

    Tails grow with every entry (Birnbaum), so inside [r, r + 1] the cell [lo, hi] is
    covered by r entries 1 / lo and one 1 - r / hi; a cell over several whole numbers by
    floor(hi) + 1 entries 1 / lo.
    """
    borders = [1.0]
    while borders[-1] < _TOP:
        after, whole = borders[-1] * _RATIO, math.floor(borders[-1]) + 1.0
        borders.append(whole if after > whole and whole <= 200 else after)
    edges = np.array(borders)
    low, high = edges[:-1], edges[1:]
    whole = np.floor(low)
    inside = high <= whole + 1.0
    count = np.where(inside, whole, np.floor(high) + 1.0)
    rest = np.where(inside, np.maximum(1.0 - whole / high, 0.0), 0.0)
    return edges, _Family(1.0 / low, count, rest)


@lru_cache(maxsize=64)
def _worst_quantiles(miss: float) -> tuple[FloatArray, FloatArray]:
    """Return borders of theta, and the largest quantile of all vectors beyond each.

    Beyond the last border the mixing variable is nearly constant: a normal law of
    variance 2 (1 + slack), and the probability that it is not.
    """
    edges, family = _cells()
    if miss < _LEAST_MISS:
        # No table is sharp enough.
        return edges, np.full(edges.size, np.inf)
    guess = math.sqrt(2.0) * max(0.05, math.sqrt(math.log(1.0 / miss)) - 0.3)
    rough = slice(None, None, 25)
    few = _Family(family.each[rough], family.count[rough], family.rest[rough])
    start = few.quantile(miss, np.full(few.each.size, guess))
    places = np.log(edges[:-1])
    quantiles = family.quantile(miss, np.interp(places, places[rough], start))
    far = math.exp(-_TOP * (_SLACK - math.log1p(_SLACK)))
    normal = -NormalDist().inv_cdf((miss - far) / 2.0)
    last = normal * math.sqrt(2.0 * (1.0 + _SLACK))
    worst = np.maximum.accumulate(np.append(quantiles, last)[::-1])[::-1]
    return edges, worst * (1.0 + _ROUNDING)


@lru_cache(maxsize=64)
def _chernoff_quantiles(miss: float) -> FloatArray:
    """Return Chernoff's half-widths at the borders of theta, for sums of square 1.

    The bound grows with the largest part, so that of a border holds beyond it.
    """
    edges, _ = _cells()
    ones = np.ones(edges.size)
    spread = Spread.bounded(ones, ones, 1.0 / np.sqrt(edges), 0.0)
    return chernoff_half_width(spread, miss)


def noise_half_widths(spread: Spread, miss: float) -> FloatArray:
    """Return h with P(|sum a_i Z_i| > h) <= miss for the noise of a spread.

    The least of the bounds of `kernels.laplace_half_widths` for Laplace noise; Gaussian
    noise has `gaussian_half_widths`.
    """
    if spread.gaussian_rows:
        return gaussian_half_widths(spread, miss)
    borders, quantiles = _worst_quantiles(min(miss, _LARGEST_MISS))
    table = (borders, quantiles, _chernoff_quantiles(miss))
    return kernels.laplace_half_widths(spread[:5], spread.least, miss, table)
