"""Half-widths for sums of independent discrete Gaussian noise.

An answer is off by S = sum a_i Z_i, Z_i discrete Gaussian of parameter v_i. Three
bounds, proved in ``docs/proofs/zcdp.md``; the least is taken:

    sub-Gaussian   s sqrt(2 ln(2 / miss)),  s^2 = sum a_i^2 v_i
    smoothed       Z_i with a normal variable of variance tau^2 added has at most
                   (1 + d) times the density of N(0, v_i + tau^2)
    law            of sums of equal draws: ``equal_sums``
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray

from .equal_sums import equal_sum_half_widths
from .noise import Spread

_SMOOTHING = (1.0, 2.0, 4.0)
_ROUNDING = 1.0 + 1e-9


def gaussian_half_widths(spread: Spread, miss: float) -> FloatArray:
    """Return h with P(|sum a_i Z_i| > h) <= miss for discrete Gaussian noise.

    With N standard normal and R = tau sum a_i N_i, S > x and R >= -r give
    S + R > x - r; so P(S > x) is at most the product of the (1 + d_i) times
    Phibar((x - r) / sqrt(s^2 + tau^2 A)) / Phi(r / (tau sqrt(A))), A = sum a_i^2.
    """
    widest = math.sqrt(2.0 * math.log(2.0 / miss))
    margins = _margins(spread.least, spread.gaussian_rows, miss)
    square, steps = (np.ascontiguousarray(one) for one in (spread.square, spread.steps))
    if spread.least > 0.0:
        steps = np.minimum(steps, square / spread.least**2)
    return kernels.gaussian_half_widths(square, steps, widest, *margins)


@lru_cache(maxsize=64)
def _margins(least: float, rows: int, miss: float) -> tuple[FloatArray, FloatArray]:
    """Return values of tau^2 that may be tried, and distances for each offset.

    The distance is that of the normal law of the smoothed sum, in deviations.
    """
    from scipy.special import ndtr, ndtri

    excess = [_excess_density(least**2, one) * rows for one in _SMOOTHING]
    tried = [at for at, one in enumerate(excess) if least > 0.0 and one <= 1.0]
    # Here, since a module that is imported compiles nothing.
    offsets = kernels.GAUSSIAN_OFFSETS
    chances = [0.5 * miss * ndtr(offsets) * math.exp(-excess[at]) for at in tried]
    distances = np.maximum(-ndtri(np.reshape(chances, (-1, offsets.size))), 0.0)
    return np.array([_SMOOTHING[at] for at in tried]), distances


def gaussian_draw_half_widths(sigmas: FloatArray, miss: float) -> FloatArray:
    """Return h with P(|Z| > h) <= miss for single draws, one for each sigma."""
    found: dict[float, float] = {0.0: 0.0}
    for sigma in np.unique(sigmas[sigmas > 0.0]).tolist():
        one = np.ones(1)
        alone = Spread(one, one * sigma**2, one * sigma, one, one * sigma, sigma, 1)
        law = equal_sum_half_widths(sigma, np.ones(1, dtype=np.int64), miss, power=2)
        found[sigma] = float(min(law[0], gaussian_half_widths(alone, miss)[0]))
    return np.array([found[float(sigma)] for sigma in sigmas])


def _excess_density(variance: float, smoothing: float) -> float:
    """Return d: by how much smoothed noise may exceed the normal density."""
    kappa = variance * smoothing / (variance + smoothing)
    rate = 2.0 * math.pi**2 * kappa
    if rate < 0.1:
        return math.inf
    return 2.0 * math.exp(-rate) / (1.0 - math.exp(-rate)) * _ROUNDING
