"""Half-widths for sums of independent noise, Laplace or Gaussian.

An answer is off by S = sum a_i Z_i. The least of several bounds is taken, proved in
``docs/proofs/intervals.md`` (Laplace) and ``docs/proofs/zcdp.md`` (Gaussian).
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray

from .noise import Scales, Spread, chernoff_half_width

_NODES = 64
_RANGE = 5.2
_RATIO = 1.006
_ROUGH_RATIO = 1.04
_TOP = 1.0e6
_SLACK = 0.008
_ROUNDING = 1.0 + 1.0e-9
_LEAST_MISS = 1.0e-12
_LARGEST_MISS = 0.9

_SMOOTHING = (1.0, 2.0, 4.0)

FFT_ERROR = 1e-11
"""Added to every tail computed by a transform: wrapped mass and rounding."""
LONGEST_TRANSFORM = 2**18
MOST_TRANSFORMED = 2**23
EACH = 64
"""Terms up to which every number has a transform of its own."""
GRID = np.unique(
    [*range(EACH), *(math.ceil(EACH * 1.02**step) for step in range(1200))]
).astype(np.int64)
"""Numbers of terms, to which others are rounded up: longer sums spread further."""
FINE = 5.0
"""Scale from which longer Laplace sums have a bound within 1.3 % of their law."""


class _Family:
    """Sums of `count` Laplace draws of squared scale `each` and one of `rest`."""

    def __init__(self, each: FloatArray, count: FloatArray, rest: FloatArray) -> None:
        self.each, self.count, self.rest = each, count, rest
        self.top = np.maximum(each, rest)

    def tail(self, distance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return P(|T| > distance) and its slope, by an integral through the saddle.

        All poles are real, so the path may be bent.
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
        more = self.rest > 0.0
        exponent[more] -= np.log(1.0 - self.rest[more, None] * s[more] ** 2)
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
        """Return distances with tails of at most `miss`: Newton's steps on logarithms.

        The logarithm of the tail is concave, so its tangents reach that of `miss` no
        sooner than it does: every step that is not clipped ends at the quantile or
        above. Steps after one of 1e-5 would take off less than 1e-10 (Lemma IN3).
        """
        distance, far = start.copy(), np.arange(start.size)
        while far.size:
            here = distance[far]
            tail, slope = self.part(far).tail(here)
            step = np.log(tail / miss) * tail / slope
            step = np.clip(step, -0.4 * here, 0.5 * here + 1.0)
            distance[far] = here + step
            far = far[np.abs(step) > 1e-5 * here]
        return distance

    def part(self, some: IntArray | slice) -> _Family:
        """Return some of the sums."""
        return _Family(self.each[some], self.count[some], self.rest[some])


def _cells(ratio: float) -> tuple[FloatArray, _Family]:
    """Return borders of theta, and for each cell a vector above all of its vectors."""
    borders = [1.0]
    while borders[-1] < _TOP:
        after, whole = borders[-1] * ratio, math.floor(borders[-1]) + 1.0
        borders.append(whole if after > whole and whole <= 200 else after)
    edges = np.array(borders)
    low, high = edges[:-1], edges[1:]
    whole = np.floor(low)
    inside = high <= whole + 1.0
    count = np.where(inside, whole, np.floor(high) + 1.0)
    rest = np.where(inside, np.maximum(1.0 - whole / high, 0.0), 0.0)
    return edges, _Family(1.0 / low, count, rest)


@lru_cache(maxsize=256)
def _worst_quantiles(
    miss: float, ratio: float = _RATIO
) -> tuple[FloatArray, FloatArray]:
    """Return borders of theta, and the largest quantile of all vectors beyond each."""
    edges, family = _cells(ratio)
    if miss < _LEAST_MISS:
        # No table is sharp enough.
        return edges, np.full(edges.size, np.inf)
    guess = math.sqrt(2.0) * max(0.05, math.sqrt(math.log(1.0 / miss)) - 0.3)
    rough, places = slice(None, None, 25), np.log(edges[:-1])
    few = family.part(rough).quantile(miss, np.full(places[rough].size, guess))
    size = np.sqrt(family.count * family.each + family.rest)
    start = size * np.interp(places, places[rough], few / size[rough])
    quantiles = family.quantile(miss, start)
    # Beyond the last border the mixing variable is nearly constant: a normal law of
    # variance 2 (1 + slack), but for the probability that it is not.
    far = math.exp(-_TOP * (_SLACK - math.log1p(_SLACK)))
    normal = -NormalDist().inv_cdf((miss - far) / 2.0)
    last = normal * math.sqrt(2.0 * (1.0 + _SLACK))
    worst = np.maximum.accumulate(np.append(quantiles, last)[::-1])[::-1]
    return edges, worst * _ROUNDING


@lru_cache(maxsize=256)
def _chernoff_quantiles(miss: float, ratio: float = _RATIO) -> FloatArray:
    """Return Chernoff's half-widths, which fall with theta, at its borders."""
    edges, _ = _cells(ratio)
    ones = np.ones(edges.size)
    spread = Spread.bounded(ones, ones, 1.0 / np.sqrt(edges), 0.0)
    return chernoff_half_width(spread, miss)


def one_sided_margin(scales: Scales, miss: float) -> int:
    """Return the least whole t with P(Z < -t) <= miss for one draw; 0 without noise.

    Parameters
    ----------
    scales : Scales
        The noise.
    miss : float
        The probability.

    Returns
    -------
    int
        The margin t.
    """
    width = float(scales.widths.max(initial=0.0))
    if width == 0.0:
        return 0
    if scales.power == 2:
        reach = width * math.sqrt(2.0 * math.log(1.0 / miss))
    else:
        reach = -width * math.log(miss * (1.0 + math.exp(-1.0 / width)))
    # Rounding is far below this margin, which at worst costs one step.
    return max(math.ceil(reach * (1.0 + 2.0**-40)) - 1, 0)


def noise_half_widths(spread: Spread, miss: float) -> FloatArray:
    """Return h with P(|sum a_i Z_i| > h) <= miss for the noise of a spread.

    Parameters
    ----------
    spread : Spread
        The law of the noise.
    miss : float
        The probability.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The half-widths.
    """
    if spread.gaussian_rows:
        return gaussian_half_widths(spread, miss)
    return _table_half_widths(spread, miss, _RATIO)


def rough_half_widths(spread: Spread, miss: float) -> FloatArray:
    """Return the same from a table with fewer borders, which is made far sooner.

    Every border of Lemma IN3 is valid; with fewer of them the half-widths are wider by
    less than two in a hundred. For ladders of many misses.

    Parameters
    ----------
    spread : Spread
        The law of the noise.
    miss : float
        The probability.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The half-widths.
    """
    if spread.gaussian_rows:
        return gaussian_half_widths(spread, miss)
    return _table_half_widths(spread, miss, _ROUGH_RATIO)


def _table_half_widths(spread: Spread, miss: float, ratio: float) -> FloatArray:
    # What holds for a smaller miss holds too. Bounds divide by its logarithm, and that
    # of 1 is 0.
    miss = min(miss, _LARGEST_MISS)
    borders, quantiles = _worst_quantiles(miss, ratio)
    table = (borders, quantiles, _chernoff_quantiles(miss, ratio))
    return kernels.laplace_half_widths(spread[:5], spread.least, miss, table)


def gaussian_half_widths(spread: Spread, miss: float) -> FloatArray:
    """Return h with P(|sum a_i Z_i| > h) <= miss for discrete Gaussian noise.

    Parameters
    ----------
    spread : Spread
        The law of the noise.
    miss : float
        The probability.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The half-widths.
    """
    widest = math.sqrt(2.0 * math.log(2.0 / miss))
    margins = _margins(spread.least, spread.gaussian_rows, miss)
    square, steps = (
        np.ascontiguousarray(array) for array in (spread.square, spread.steps)
    )
    if spread.least > 0.0:
        steps = np.minimum(steps, square / spread.least**2)
    return kernels.gaussian_half_widths(square, steps, widest, *margins)


@lru_cache(maxsize=64)
def _margins(least: float, rows: int, miss: float) -> tuple[FloatArray, FloatArray]:
    """Return values of tau^2 to try, and normal distances for each offset."""
    from scipy.special import ndtr, ndtri

    excess = [_excess_density(least**2, smoothing) * rows for smoothing in _SMOOTHING]
    tried = [at for at, mass in enumerate(excess) if least > 0.0 and mass <= 1.0]
    # Here, since a module that is imported compiles nothing.
    offsets = kernels.GAUSSIAN_OFFSETS
    chances = [0.5 * miss * ndtr(offsets) * math.exp(-excess[at]) for at in tried]
    distances = np.maximum(-ndtri(np.reshape(chances, (-1, offsets.size))), 0.0)
    return np.array([_SMOOTHING[at] for at in tried]), distances


def gaussian_draw_half_widths(sigmas: FloatArray, miss: float) -> FloatArray:
    """Return h with P(|Z| > h) <= miss for single draws.

    Parameters
    ----------
    sigmas : ndarray of float64
        The sigma of each draw; 0 for none.
    miss : float
        The probability.

    Returns
    -------
    ndarray of float64
        The half-widths.
    """
    half_width_of: dict[float, float] = {0.0: 0.0}
    for sigma in np.unique(sigmas[sigmas > 0.0]).tolist():
        unit = np.ones(1)
        alone = Spread(
            unit, unit * sigma**2, unit * sigma, unit, unit * sigma, sigma, 1
        )
        law = equal_sum_half_widths(sigma, np.ones(1, dtype=np.int64), miss, power=2)
        half_width_of[sigma] = float(min(law[0], gaussian_half_widths(alone, miss)[0]))
    return np.array([half_width_of[float(sigma)] for sigma in sigmas])


def _excess_density(variance: float, smoothing: float) -> float:
    """Return d: by how much smoothed noise may exceed the normal density."""
    kappa = variance * smoothing / (variance + smoothing)
    rate = 2.0 * math.pi**2 * kappa
    if rate < 0.1:
        return math.inf
    return 2.0 * math.exp(-rate) / (1.0 - math.exp(-rate)) * _ROUNDING


def equal_sum_half_widths(
    width: float, terms: IntArray, miss: float, power: int = 1
) -> FloatArray:
    """Return half-widths for sums of independent draws of one scale, from their law.

    Parameters
    ----------
    width : float
        The scale, or sigma.
    terms : ndarray of int64, shape (queries,)
        How many draws each sum has.
    miss : float
        The probability.
    power : int, default 1
        1 for Laplace noise, 2 for Gaussian noise.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The half-widths; infinite where the transform would be too long, gain nothing,
        or be too coarse.
    """
    place = GRID.searchsorted(terms)
    if terms.size == 1:
        return np.array([_half_width(width, int(GRID[place[0]]), miss, power)])
    half_widths = np.full(GRID.size, math.inf)
    spent = 0
    for at in np.flatnonzero(np.bincount(place)).tolist():
        spent += _size(width, int(GRID[at]), power)
        if spent <= MOST_TRANSFORMED:
            half_widths[at] = _half_width(width, int(GRID[at]), miss, power)
    half: FloatArray = half_widths[place]
    return half


@lru_cache(maxsize=2**14)
def _size(width: float, count: int, power: int) -> int:
    """Return a length that the sum hardly exceeds, by Chernoff; 0 if none is needed."""
    if count == 0 or (power == 1 and count > EACH and width >= FINE):
        return 0
    nats = math.log(16.0 / FFT_ERROR)
    reach = width * math.sqrt(2.0 * count * nats) + 2.0
    if power == 1:
        rate = min(math.sqrt(nats / count), 0.7)
        reach = width * (nats - count * math.log1p(-rate * rate)) / rate
    return int(2 ** math.ceil(math.log2(2.0 * reach + 4.0)))


@lru_cache(maxsize=2**14)
def _half_width(width: float, count: int, miss: float, power: int) -> float:
    size = _size(width, count, power)
    if count == 0:
        return 0.0
    if not 0 < size <= LONGEST_TRANSFORM:
        return math.inf
    if power == 1:
        decay = math.exp(-1.0 / width)
        angle = 2.0 * math.pi * np.arange(size // 2 + 1) / size
        # 1 - 2 q cos t + q^2 over (1 - q)^2, without cancellation near t = 0.
        base = 1.0 + 4.0 * decay * np.sin(angle / 2.0) ** 2 / (1.0 - decay) ** 2
        summed = base**-count
    else:
        place = np.arange(size, dtype=np.float64)
        place = np.minimum(place, size - place)
        bell = np.exp(-0.5 * (place / width) ** 2)
        # Symmetric, so its transform is real.
        summed = np.fft.rfft(bell / bell.sum()).real ** count
    law = np.maximum(np.fft.irfft(summed, n=size), 0.0)
    # P(|S| > h), largest distances first so that small numbers are added up exactly.
    beyond = np.cumsum(law[1 : size // 2][::-1])[::-1]
    tails = 2.0 * np.append(beyond, 0.0) + FFT_ERROR
    enough = np.flatnonzero(tails <= miss)
    return float(enough[0]) if enough.size else math.inf
