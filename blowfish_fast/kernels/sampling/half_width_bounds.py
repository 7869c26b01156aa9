"""Half-widths for sums of discrete noise, one query after the other.

A query is off by S = sum a_i Z_i, known by five moments of its coefficients; the table
of `measure.tails` bounds sums of continuous noise, and three bounds lead from it to S
(``docs/proofs/intervals.md``). The least of them and of Chernoff's is taken:

    (A) shift    the row of the largest part is moved, the others are smoothed by it
    (B) spread   every draw is spread over its cell, and the spreading taken off
    (C) one      one draw outweighs all others together; no table is needed

(A) and (C) need a row that is the largest; where only a bound is known, `width` is not
a number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.kernels._jit import kernel

# Density of the standard normal law at 1, over 12: see bound (A) on the proof page.
SMOOTHING = math.exp(-0.5) / math.sqrt(2.0 * math.pi) / 12.0
LOG_2 = math.log(2.0)
STEP = 0.05
# Margins that are tried for Gaussian noise, in deviations of what was added.
GAUSSIAN_OFFSETS = np.linspace(0.6, 4.2, 13)
# ln Phi(x) for x = 0, .05, .., 6: what bound (B) pays for a margin of x.
LOG_WITHIN = np.array([math.log(NormalDist().cdf(STEP * k)) for k in range(121)])


@kernel
def _cell(theta: float, borders: FloatArray) -> int:
    """Return the place of vectors of at least `theta` equal parts in the table."""
    place = int(np.searchsorted(borders, max(theta, 1.0) * (1.0 - 1e-12), side="right"))
    return max(place - 1, 0)


@kernel
def _half_widths(
    variance: FloatArray,
    square: FloatArray,
    largest: FloatArray,
    steps: FloatArray,
    width: FloatArray,
    least: float,
    miss: float,
    borders: FloatArray,
    quantiles: FloatArray,
    chernoff: FloatArray,
) -> FloatArray:
    nats = -math.log(miss)
    half = np.zeros(square.size)
    for query in range(square.size):
        total, loud, rows = square[query], largest[query], steps[query]
        if not (total > 0.0 and loud > 0.0):
            continue
        # (B), for the margin x at which the slopes turn; any x is valid.
        even = variance[query] / 2.0 + rows / 4.0
        top = min(loud * loud + rows / 4.0, even)
        base = math.sqrt(even) * quantiles[_cell(even / top, borders)]
        rise = math.sqrt(rows / (2.0 * math.pi))
        low, high = 0, LOG_WITHIN.size - 1
        while low < high:
            middle = (low + high) // 2
            gain = base * (LOG_WITHIN[middle + 1] - LOG_WITHIN[middle]) / nats
            if gain > rise * STEP:
                low = middle + 1
            else:
                high = middle
        ratio = total / (loud * loud)
        cell = _cell(ratio, borders)
        best = math.sqrt(total) * chernoff[cell]
        if rows < np.inf:
            spread = base * (1.0 - LOG_WITHIN[low] / nats) + STEP * low * rise
            best = min(best, spread)
        scale = width[query]
        if scale > 0.0 and scale < np.inf:
            # (A)
            own = loud / scale
            loss = max(rows - own * own, 0.0) / (12.0 * loud * loud)
            if least > 0.0:
                many = 1.0 / 6.0 + SMOOTHING * (2.0 + math.log(max(1.0, ratio - 3.0)))
                loss = min(loss, many / (least * least))
            fade = math.exp(-1.0 / scale)
            if loss < 1.0:
                # ln((1 + q) / (2 q)) with q = exp(-1 / width)
                shift = loud * (1.0 / scale + math.log1p(fade) - LOG_2)
                grown = 1.0 - math.log1p(-loss) / nats
                base = math.sqrt(total) * quantiles[cell]
                best = min(best, shift + base * grown)
            # (C)
            rest = max(ratio - 1.0, 0.0) + 1e-12
            if rest < 0.2:
                mean = 1.0 / (1.0 - rest) + math.sqrt(2.0 * rest / (1.0 - 4.0 * rest))
                alone = loud * max(math.log(2.0 / (1.0 + fade) * mean / miss), 0.0)
                best = min(best, alone * (1.0 + 2.0**-30))
        half[query] = best
    return half


def laplace_half_widths(
    moments: Sequence[FloatArray],
    least: float,
    miss: float,
    table: Sequence[FloatArray],
) -> FloatArray:
    """Return h with P(|sum a_i Z_i| > h) <= miss for each query: Lemma IN4.

    Parameters
    ----------
    moments : sequence of five ndarrays of float64, shape (queries,)
        Variance of the sum; sum of (a_i b_i)^2; largest |a_i b_i|, or more; sum of
        a_i^2, or more; scale b of the row with the largest, NaN where only a bound is
        known.
    least : float
        The smallest scale of any row; 0 where it is not known.
    miss : float
        The probability that an answer may be farther off than h.
    table : sequence of ndarray of float64
        Borders; from ``borders[i]`` on, quantiles of sums of continuous Laplace noise
        of square 1 whose largest squared part is 1 / theta; and half-widths of
        Chernoff's bound, which holds for discrete noise as it is.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The half-widths.
    """
    variance, square, largest, steps, width = (
        np.ascontiguousarray(moment, dtype=np.float64) for moment in moments
    )
    return _half_widths(variance, square, largest, steps, width, least, miss, *table)


@kernel
def gaussian_half_widths(
    square: FloatArray,
    steps: FloatArray,
    widest: float,
    smoothing: FloatArray,
    distances: FloatArray,
) -> FloatArray:
    """Return h with P(|sum a_i Z_i| > h) <= miss for discrete Gaussian noise: ZC9.

    The probability `miss` is the one that `widest` and `distances` were made for.

    Parameters
    ----------
    square : ndarray of float64, shape (queries,)
        Sum of (a_i sigma_i)^2.
    steps : ndarray of float64, shape (queries,)
        Sum of a_i^2, or more.
    widest : float
        A half-width in deviations that always holds.
    smoothing : ndarray of float64, shape (n,)
        Variances tau^2 of the smoothing that are tried.
    distances : ndarray of float64, shape (n, offsets)
        For each of them and each offset, a distance in deviations of the smoothed sum.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The half-widths: the least of all bounds.
    """
    half = np.empty(square.size)
    for query in range(square.size):
        best = widest * math.sqrt(square[query])
        for at in range(smoothing.size):
            added = smoothing[at] * steps[query]
            deviation, blur = math.sqrt(square[query] + added), math.sqrt(added)
            for k in range(GAUSSIAN_OFFSETS.size):
                margin = GAUSSIAN_OFFSETS[k] * blur
                best = min(best, distances[at, k] * deviation + margin)
        half[query] = best * (1.0 + 1e-9)
    return half


@kernel
def interval_bounds(
    centre: FloatArray,
    half: FloatArray,
    answers: FloatArray,
    roundings: tuple[float, float, float],
    counts: bool,
) -> FloatArray:
    """Return an interval around each centre that also holds the published answer.

    Centres and answers come out of floating-point sums. Two of the roundings repair
    whole numbers: the centre of an interval without width, and the published answer.

    Parameters
    ----------
    centre : ndarray of float64, shape (queries,)
        The middle of each interval.
    half : ndarray of float64, shape (queries,)
        Its half-width.
    answers : ndarray of float64, shape (queries,)
        The published answers.
    roundings : tuple[float, float, float]
        Three tolerances. The first one is the half-width below which an interval counts
        as a single point. The second one is how far the centre of such a point may lie
        from a whole number and still be replaced by it. The third one is the same for
        answers; 0 leaves them as they are.
    counts : bool
        Whether the true answers are counts: what lies below 0 is cut off then. An
        interval that noise took below 0 as a whole reaches up to one record instead.
        "0 to 0" would be right as often, and be taken for certain.

    Returns
    -------
    ndarray of float64, shape (queries, 2)
        The lower and the upper end of each interval.
    """
    none, near_centre, near_answer = roundings
    bounds = np.empty((half.size, 2))
    for query in range(half.size):
        middle, answer, reach = centre[query], answers[query], half[query]
        if reach < none and abs(middle - np.rint(middle)) <= near_centre:
            middle = np.rint(middle)
        if near_answer > 0.0 and abs(answer - np.rint(answer)) <= near_answer:
            answer = np.rint(answer)
        low, high = middle - reach, middle + reach
        if counts:
            high = 1.0 if low < 0.0 and high <= 0.0 else high
            low = max(low, 0.0)
        bounds[query, 0], bounds[query, 1] = min(low, answer), max(high, answer)
    return bounds
