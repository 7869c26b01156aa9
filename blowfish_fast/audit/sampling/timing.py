"""Whether the time that noise takes to draw says anything about its size.

Batches of noise are drawn and timed. If time followed noise, batches with much of it
would take longer; the rank correlation of the two is 0 within a few standard errors if
it does not. The times of a busy machine drift, but the noise does not drift with them,
so its standard error is one over the root of the number of batches all the same.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np

from blowfish_fast.measure.randomness import Randomness

DRAWS = 1024
SCALE = (20, 1)
STANDARD_ERRORS = 3.0


class Timing(NamedTuple):
    """The correlation of batch time and size of the noise."""

    correlation: float
    batches: int

    @property
    def standard_errors(self) -> float:
        """How many standard errors the correlation is away from 0."""
        return abs(self.correlation) * math.sqrt(self.batches - 1)

    @property
    def passed(self) -> bool:
        """Whether it is within three standard errors of 0."""
        return self.standard_errors <= STANDARD_ERRORS

    def __str__(self) -> str:
        return (
            f"correlation of batch time and noise {self.correlation:+.4f}, "
            f"{self.standard_errors:.1f} standard errors from 0 ({self.batches:,} "
            f"batches of {DRAWS:,} draws)"
        )


def timing_correlation(batches: int) -> Timing:
    """Time so many batches of secure noise and compare time with noise."""
    from scipy.stats import spearmanr

    rng = Randomness()
    rng.laplace(*SCALE, size=DRAWS)
    times = np.empty(batches)
    sizes = np.empty(batches)
    for batch in range(batches):
        start = time.perf_counter_ns()
        noise = rng.laplace(*SCALE, size=DRAWS, threads=1)
        times[batch] = time.perf_counter_ns() - start
        sizes[batch] = float(np.abs(noise).sum())
    return Timing(float(spearmanr(times, sizes).statistic), batches)
