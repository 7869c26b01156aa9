"""Half-widths for sums of independent discrete Gaussian noise.

An answer is off by S = sum a_i Z_i, Z_i discrete Gaussian of parameter v_i. Three
bounds, proved in ``docs/proofs/zcdp.md``; the least is taken:

    sub-Gaussian   s sqrt(2 ln(2 / miss)),  s^2 = sum a_i^2 v_i
    smoothed       Z_i with a normal variable of variance tau^2 added has at most
                   (1 + d) times the density of N(0, v_i + tau^2)
    law            of sums of equal draws, by a transform
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray

from .noise import FFT_ERROR, LONGEST_TRANSFORM, MOST_TRANSFORMED, Spread

_SMOOTHING = (1.0, 2.0, 4.0)
_OFFSETS = np.linspace(0.6, 4.2, 13)
_ROUNDING = 1.0 + 1e-9


def gaussian_half_widths(spread: Spread, miss: float) -> FloatArray:
    """Return h with P(|sum a_i Z_i| > h) <= miss for discrete Gaussian noise.

    With N standard normal and R = tau sum a_i N_i, S > x and R >= -r give
    S + R > x - r; so P(S > x) is at most the product of the (1 + d_i) times
    Phibar((x - r) / sqrt(s^2 + tau^2 A)) / Phi(r / (tau sqrt(A))), A = sum a_i^2.
    """
    from scipy.special import ndtr, ndtri

    half: FloatArray = np.sqrt(2.0 * spread.square * math.log(2.0 / miss))
    if spread.least <= 0.0:
        return half * _ROUNDING
    least = spread.least**2
    steps = np.minimum(spread.steps, spread.square / least)
    for smoothing in _SMOOTHING:
        excess = _excess_density(least, smoothing) * spread.gaussian_rows
        if excess > 1.0:
            continue
        deviation = np.sqrt(spread.square + smoothing * steps)
        blur = np.sqrt(smoothing * steps)
        for offset in _OFFSETS:
            chance = 0.5 * miss * float(ndtr(offset)) * math.exp(-excess)
            distance = max(-float(ndtri(chance)), 0.0)
            np.minimum(half, distance * deviation + offset * blur, out=half)
    return half * _ROUNDING


def gaussian_draw_half_widths(sigmas: FloatArray, miss: float) -> FloatArray:
    """Return h with P(|Z| > h) <= miss for single draws, one for each sigma."""
    found: dict[float, float] = {0.0: 0.0}
    for sigma in np.unique(sigmas[sigmas > 0.0]).tolist():
        one = np.ones(1)
        alone = Spread(one, one * sigma**2, one * sigma, one, one * sigma, sigma, 1)
        law = gaussian_sum_half_width(sigma, np.ones(1, dtype=np.int64), miss)
        found[sigma] = float(min(law[0], gaussian_half_widths(alone, miss)[0]))
    return np.array([found[float(sigma)] for sigma in sigmas])


def _excess_density(variance: float, smoothing: float) -> float:
    """Return d: by how much smoothed noise may exceed the normal density."""
    kappa = variance * smoothing / (variance + smoothing)
    rate = 2.0 * math.pi**2 * kappa
    if rate < 0.1:
        return math.inf
    return 2.0 * math.exp(-rate) / (1.0 - math.exp(-rate)) * _ROUNDING


def gaussian_sum_half_width(sigma: float, terms: IntArray, miss: float) -> FloatArray:
    """Return half-widths for sums of independent draws of one sigma, from their law.

    Infinite where the transform would be too long, or `miss` too small for it.
    """
    found: dict[int, float] = {0: 0.0}
    spent = 0
    for count in np.unique(terms).tolist():
        if count == 0:
            continue
        reach = sigma * math.sqrt(2.0 * count * math.log(16.0 / FFT_ERROR)) + 2.0
        size = int(2 ** math.ceil(math.log2(2.0 * reach + 4.0)))
        spent += size
        fits = size <= LONGEST_TRANSFORM and spent <= MOST_TRANSFORMED
        found[count] = _transformed(sigma, count, size, miss) if fits else math.inf
    return np.array([found[count] for count in terms.tolist()])


@lru_cache(maxsize=2**12)
def _transformed(sigma: float, count: int, size: int, miss: float) -> float:
    place = np.arange(size, dtype=np.float64)
    place = np.minimum(place, size - place)
    law = np.exp(-0.5 * (place / sigma) ** 2)
    law = np.fft.irfft(np.fft.rfft(law / law.sum()) ** count, n=size)
    beyond = np.cumsum(np.maximum(law[1 : size // 2], 0.0)[::-1])[::-1]
    tails = 2.0 * np.append(beyond, 0.0) + FFT_ERROR
    enough = np.flatnonzero(tails <= miss)
    return float(enough[0]) if enough.size else math.inf
