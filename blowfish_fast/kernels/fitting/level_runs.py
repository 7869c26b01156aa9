"""Runs of neighbouring buckets of one height, found in what was measured of them.

A partition into halves of halves cuts a level stretch that begins anywhere into a chain
of buckets, one for each halving on either side:

    counts       5 5 5 5 5 5 5 5 5 5 5 9 9 9 9 9
    buckets      |-------------| |---| |||-----|       four of one height, two of one
    runs         |---------------------||------|       two

Each bucket has noise of its own, so cells of short ones are far off. The model: a run
ends after each bucket with a public chance; its height is 0, or lies anywhere between
0 and the largest; a bucket of m cells in a run of height h holds m h records, with a
variance of `spread` times as many, and has been measured with noise of a public
variance. What all runs together suggest is averaged by the chain of their ends:

    totals        y_1   y_2   y_3   ...   y_k
    ends of runs      |     |     |            before[i]: all runs up to here
                                               after[i]: all runs from here on

The chance and the spread are those of most evidence. With a spread of 0 stretches are
exactly level, with 1 their cells scatter as draws of records do, with more they are
rough. Noise counts as normal; it reads public numbers only and costs no epsilon.
"""

from __future__ import annotations

import math

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.kernels._jit import kernel

from .posterior_mean import evidence_of_shrinkage

SPREADS = (0.0, 1.0, 4.0, 16.0, 64.0)
"""Variance of a bucket's records inside a run, over their number."""
LONGEST_RUN = 32
"""Buckets of a run at most: a level stretch of 2^16 cells is cut into 32 by halves."""
MOST_BUCKETS = 6144
"""Above, heights of their own are kept: the runs would take longer than the release."""
FEWEST_BUCKETS = 8
BLOCK = 64
SAMPLE_BLOCKS = 16
"""Chance and spread are chosen on so many blocks of neighbours, evenly spread."""
FIRST_STEPS, LATER_STEPS = 5, 2
FIRST_CHANCE = 0.3
LEAST_CHANCE = 0.002
EMPTY = 0.2
"""Chance that a run is empty."""
# A run that fits its buckets worse, in nats, is never taken.
WORST_FIT = 50.0
LEAST_GAIN = 10.0
"""Evidence that runs need over totals that are shrunk one by one, in nats."""
# A bucket lies across a border if the runs beside it differ, over its cells, by so many
# deviations of the noise, and are level up to this part of their difference.
LEAST_RISE, LEVEL, MOST_ASTRAY = 3.0, 0.1, 64.0

ROOT = math.sqrt(2.0)
LOG_ROOT = 0.5 * math.log(2.0 * math.pi)
FAR = 5.0


@kernel
def _log_chance_above(z: float) -> float:
    """Return the logarithm of the chance that a normal number exceeds -z."""
    if z > FAR:
        return 0.0
    if z > -FAR:
        return math.log(0.5 * math.erfc(-z / ROOT))
    return -0.5 * z * z - math.log(-z) - LOG_ROOT


@kernel
def _sweep(
    totals: FloatArray,
    sizes: FloatArray,
    variances: FloatArray,
    noise: float,
    chance: float,
    prior: FloatArray,
    before: FloatArray,
    after: FloatArray,
    sums: FloatArray,
    backward: bool,
) -> float:
    """Weigh all runs that end (or begin) at each bucket; return the expected number.

    Forward it fills `before`; backward `after`, and in `sums` the steps from bucket to
    bucket of the chance that a run is not empty, and of that chance times its height.
    Both ways meet the same runs: a part of a run never fits worse than the whole.
    """
    buckets = totals.size
    log_change, log_stay = math.log(chance), math.log(1.0 - chance)
    log_empty, log_filled, least_height = prior
    log_noise = LOG_ROOT + 0.5 * math.log(noise)
    log_spreads = LOG_ROOT + 0.5 * np.log(variances)
    runs = 0.0
    for step in range(buckets):
        end = buckets - 1 - step if backward else step
        weighed = weight = squares = misfit = log_spread = 0.0
        top, mass = -math.inf, 0.0
        most = min(LONGEST_RUN, buckets - end if backward else end + 1)
        for length in range(most):
            at = end + length if backward else end - length
            size, total = sizes[at], totals[at]
            own = size * size / variances[at]
            if length > 0:
                off = total - size * weighed / weight
                misfit += off * off / variances[at] * weight / (weight + own)
            weighed += size * total / variances[at]
            weight += own
            squares += total * total
            log_spread += log_spreads[at]
            if misfit > 2.0 * WORST_FIT and squares > 2.0 * WORST_FIT * noise:
                break
            root = math.sqrt(weight)
            height, z = weighed / weight, weighed / root
            above = _log_chance_above(z)
            filled = log_filled + above + LOG_ROOT - 0.5 * misfit - log_spread
            filled -= math.log(root * (max(height, 0.0) + least_height))
            empty = log_empty - 0.5 * squares / noise - (length + 1) * log_noise
            full = 1.0
            score = filled + length * log_stay
            # Mostly nobody doubts that a run is not empty.
            if empty > filled - WORST_FIT:
                larger = max(filled, empty)
                full = math.exp(filled - larger)
                both = full + math.exp(empty - larger)
                full /= both
                score += larger + math.log(both) - filled
            if (end if backward else at) > 0:
                score += log_change
            score += after[at + 1] if backward else before[at]
            if score > top:
                mass = mass * math.exp(top - score) + 1.0
                top = score
            else:
                mass += math.exp(score - top)
            if backward:
                likely = math.exp(before[end] + score - before[buckets])
                runs += likely
                likely *= full
                # A height cannot be negative: the mean of what is left of its law.
                if z > -FAR:
                    mean = height + math.exp(-0.5 * z * z - above - LOG_ROOT) / root
                else:
                    mean = -1.0 / (z * root)
                sums[0, end] += likely
                sums[0, at + 1] -= likely
                sums[1, end] += likely * mean
                sums[1, at + 1] -= likely * mean
        if backward:
            after[end] = top + math.log(mass)
        else:
            before[end + 1] = top + math.log(mass)
    return runs


class _Chain:
    """Noisy totals of neighbouring buckets, and what is assumed of their heights."""

    def __init__(
        self, totals: FloatArray, sizes: FloatArray, noise: float, prior: FloatArray
    ) -> None:
        self.totals, self.sizes, self.noise, self.prior = totals, sizes, noise, prior

    def weigh(
        self, spread: FloatArray, chance: float
    ) -> tuple[float, float, FloatArray, FloatArray]:
        """Return evidence, expected runs, and per bucket fullness and mean records."""
        buckets = self.totals.size
        before, after = np.zeros(buckets + 1), np.zeros(buckets + 1)
        sums = np.zeros((2, buckets + 1))
        chain = (self.totals, self.sizes, self.noise + spread, self.noise, chance)
        runs = 0.0
        for backward in (False, True):
            runs = _sweep(*chain, self.prior, before, after, sums, backward)
        fullness, height = np.cumsum(sums[:, :-1], axis=1)
        return float(before[-1]), runs, fullness, height * self.sizes

    def settle(
        self, spread: FloatArray, chance: float, steps: int
    ) -> tuple[float, float, FloatArray]:
        """Return evidence, the chance of an end that suits, and mean records."""
        evidence, records = 0.0, np.zeros(0)
        for _ in range(steps):
            evidence, runs, _, records = self.weigh(spread, chance)
            chance = (runs - 0.5) / self.totals.size
            chance = min(max(chance, LEAST_CHANCE), 1.0 - LEAST_CHANCE)
        return evidence, chance, np.maximum(records, 0.0)


def fit_level_runs(
    noisy: AnyArray, sizes: IntArray, width: float, variance: float
) -> FloatArray | None:
    """Return the mean records of each cell, given that neighbours may share a height.

    Parameters
    ----------
    noisy : ndarray of float64, shape (buckets,)
        Measured totals of buckets along a line, finite.
    sizes : ndarray of int64, shape (buckets,)
        Cells in each bucket, at least 1.
    width : float
        Scale of the Laplace noise in each.
    variance : float
        Its variance, above 0: that of whole numbers is a little less than twice the
        square of the scale.

    Returns
    -------
    ndarray of float64, shape (cells,), or None
        Posterior means, none negative. None where runs have not clearly more evidence
        than totals that are shrunk one by one, and for fewer than 8 or more than 6,144
        buckets. It takes O(32 buckets + cells).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> sizes = np.array([1, 2, 4, 8, 8, 4, 2, 1] * 2)
    >>> cells = np.repeat([50, 90], sizes.sum() // 2)
    >>> noisy = np.repeat([50, 90], 8) * sizes + rng.laplace(0, 10, 16)
    >>> float(np.abs(np.repeat(noisy / sizes, sizes) - cells).mean().round(1))
    2.2
    >>> float(np.abs(fit_level_runs(noisy, sizes, 10, 200) - cells).mean().round(1))
    0.6
    """
    noisy = np.ascontiguousarray(noisy, dtype=np.float64)
    cells = np.ascontiguousarray(sizes, dtype=np.float64)
    if not FEWEST_BUCKETS <= noisy.size <= MOST_BUCKETS:
        return None
    least_height = math.sqrt(variance / 2.0) / float(np.median(cells))
    largest = max(float((noisy / cells).max()), least_height)
    spans = math.log1p(largest / least_height)
    prior = np.array([math.log(EMPTY), math.log((1.0 - EMPTY) / spans), least_height])
    sampled = [
        _Chain(noisy[part], cells[part], variance, prior)
        for part in _sample(noisy.size)
    ]
    alone = evidence_of_shrinkage(noisy, np.full(noisy.size, float(width)), sizes)
    best, spread, chance = _most_likely(sampled)
    if best - sum(alone[part].sum() for part in _sample(noisy.size)) < LEAST_GAIN:
        return None
    whole = _Chain(noisy, cells, variance, prior)
    _, _, fullness, records = whole.weigh(np.zeros(noisy.size), chance[0])
    if spread == 0.0:
        return _placed(np.maximum(records, 0.0), sizes, variance)
    added = spread * np.maximum(records, 0.0)
    _, _, fullness, records = whole.weigh(added, chance[1])
    # Where records scatter inside a run, a bucket's own noisy total tells of them.
    own_part = added / (added + variance)
    records = np.maximum(records + own_part * (fullness * noisy - records), 0.0)
    return np.repeat(records / sizes, sizes)


def _placed(records: FloatArray, sizes: IntArray, variance: float) -> FloatArray:
    """Return cells of level runs, with borders inside buckets that lie across one.

    Such a bucket has a height between those of two runs beside it, of two buckets or
    more each; its records say how many of its cells belong to the left one:

        runs       9 9 9 9 |        | 2 2 2        of 4 cells and 22 records
        bucket     . . . . | 5.5  x4| . . .        2 cells of 9, 2 of 2

    """
    heights = records / sizes
    cells = np.repeat(heights, sizes)
    if records.size < 5:
        return cells
    left, own, right = heights[1:-3], heights[2:-2], heights[3:-1]
    rise = np.abs(right - left)
    across = (own - left) * (right - own) > 0.0
    across &= rise * sizes[2:-2] > LEAST_RISE * math.sqrt(variance)
    across &= np.abs(left - heights[:-4]) < LEVEL * rise
    across &= np.abs(right - heights[4:]) < LEVEL * rise
    # Records that would have to change sides: of many, the bucket would be divided.
    astray = np.minimum(np.abs(own - left), np.abs(right - own)) * sizes[2:-2]
    across &= astray < MOST_ASTRAY * math.sqrt(variance)
    ends = np.cumsum(sizes)[2:-2]
    for at in np.flatnonzero(across):
        size = int(sizes[at + 2])
        belong = size * (own[at] - right[at]) / (left[at] - right[at])
        part = np.clip(belong - np.arange(size), 0.0, 1.0)
        cells[ends[at] - size : ends[at]] = right[at] + part * (left[at] - right[at])
    return cells


def _sample(buckets: int) -> list[slice]:
    """Return all buckets, or blocks of neighbours that lie evenly among them."""
    if buckets <= BLOCK * SAMPLE_BLOCKS:
        return [slice(0, buckets)]
    starts = np.linspace(0, buckets - BLOCK, SAMPLE_BLOCKS).astype(np.int64)
    return [slice(int(start), int(start) + BLOCK) for start in starts]


def _most_likely(parts: list[_Chain]) -> tuple[float, float, tuple[float, float]]:
    """Return the most evidence, its spread, and chances of ends without and with it.

    Evidence has one peak along the spreads where they fit at all: the first that falls
    twice ends the search.
    """
    chances = [FIRST_CHANCE]
    best, best_at, means = -math.inf, 0, [np.zeros(part.totals.size) for part in parts]
    for number, spread in enumerate(SPREADS):
        steps = LATER_STEPS if number else FIRST_STEPS
        settled = [
            part.settle(spread * records, chances[-1], steps)
            for part, records in zip(parts, means, strict=True)
        ]
        evidence = sum(each[0] for each in settled)
        sizes = [part.totals.size for part in parts]
        chance = float(np.average([each[1] for each in settled], weights=sizes))
        chances.append(chance)
        if number == 0:
            means = [each[2] for each in settled]
        if evidence > best:
            best, best_at = evidence, number
        elif number > best_at + 1:
            break
    return best, SPREADS[best_at], (chances[1], chances[best_at + 1])
