"""Half-widths for sums of equal draws of noise, from the exact law of the sum.

The law of a sum of m independent draws is the transform of the m-th power of the
characteristic function of one, Laplace or Gaussian:

    law of one  ->  transform  ->  m-th power  ->  back  ->  tails, largest first
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray

FFT_ERROR = 1e-11
"""Added to every tail computed by a transform: wrapped mass and rounding."""
LONGEST_TRANSFORM = 2**18
MOST_TRANSFORMED = 2**23
EACH = 64
"""Terms up to which every number has a transform of its own."""
GRID = np.unique(
    [*range(EACH), *(math.ceil(EACH * 1.02**step) for step in range(1200))]
).astype(np.int64)
"""Numbers of terms, to which others are rounded up.

Draws are symmetric and unimodal, so a longer sum is less likely to stay near 0, and its
bound holds for the shorter one.
"""
FINE = 5.0
"""Scale from which longer Laplace sums have a bound within 1.3 % of their law."""


def equal_sum_half_widths(
    width: float, terms: IntArray, miss: float, power: int = 1
) -> FloatArray:
    """Return half-widths for sums of independent draws of one scale, from their law.

    Laplace draws of scale `width`, or Gaussian ones for power 2. Infinite where the
    transform would be too long or gain nothing, or `miss` is too small for it.
    """
    place = np.searchsorted(GRID, terms)
    if terms.size == 1:
        return np.array([_half_width(width, int(GRID[place[0]]), miss, power)])
    found = np.full(GRID.size, math.inf)
    spent = 0
    for at in np.flatnonzero(np.bincount(place)).tolist():
        spent += _size(width, int(GRID[at]), power)
        if spent <= MOST_TRANSFORMED:
            found[at] = _half_width(width, int(GRID[at]), miss, power)
    half: FloatArray = found[place]
    return half


@lru_cache(maxsize=2**14)
def _size(width: float, count: int, power: int) -> int:
    """Return a length beyond which the sum lies with a negligible probability.

    0 where no transform is needed. Chernoff's bound at a rate that is nearly the best.
    """
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
        one = np.exp(-0.5 * (place / width) ** 2)
        # Symmetric, so its transform is real.
        summed = np.fft.rfft(one / one.sum()).real ** count
    law = np.maximum(np.fft.irfft(summed, n=size), 0.0)
    # P(|S| > h), largest distances first so that small numbers are added up exactly.
    beyond = np.cumsum(law[1 : size // 2][::-1])[::-1]
    tails = 2.0 * np.append(beyond, 0.0) + FFT_ERROR
    enough = np.flatnonzero(tails <= miss)
    return float(enough[0]) if enough.size else math.inf
