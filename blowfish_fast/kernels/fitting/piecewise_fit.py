"""Straight pieces of a noisy sequence: cheapest windows, and lines between knots.

Each window of a power of two values, of any start, pays the squared error of its own
least-squares line and one penalty per parameter (one value: a level; more: a level and
a slope); dynamic programming finds the cheapest cover. With a penalty of 1:

    values     3  3  3  3  9            one window of four (two parameters, no error)
    pays       |--- 2 ---| |1|          and one of one: 3 in all

A window is known by its mean, slope and squared error, and those of two neighbours of
one length give those of the whole by sums of squares: nothing cancels (Lemma OR11,
``docs/proofs/ordered.md``). For each length one ring holds the windows that ended in
the last `length` places: the left half of the next larger one is the entry to be
overwritten.

Totals that are straight between knots have tridiagonal normal equations: elimination
from either end gives heights and the inverse next to its diagonal, and with it the
squared error that a knot saves, all others free to move. O(knots).
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast.kernels._jit import kernel

MEAN = 0
SLOPE = 1
ERROR = 2


@kernel
def _merge_factors(levels: int) -> FloatArray:
    """Return, for each level, what merging two windows of 2^level values needs.

    That is the weight of the slope between the means in the slope of the whole, and the
    factors of (that slope - mean slope)^2 and (difference of slopes)^2 in the squared
    error (Lemma OR11).
    """
    factors = np.empty((levels, 3))
    for level in range(levels):
        length = 2.0**level
        between = 0.5 * length**3
        within = length * (length * length - 1.0) / 6.0
        factors[level, 0] = between / (between + within)
        factors[level, 1] = between * (within / (between + within))
        factors[level, 2] = 0.25 * within
    return factors


@kernel
def _cheapest_windows(
    values: FloatArray, penalty: float, factors: FloatArray, rings: FloatArray
) -> IntArray:
    """Return, for each end, the level of the last window of the cheapest cover."""
    size = values.size
    cost = np.empty(size + 1)
    cost[0] = 0.0
    choice = np.zeros(size + 1, dtype=np.int64)
    for end in range(1, size + 1):
        mean = values[end - 1]
        slope = 0.0
        error = 0.0
        best = cost[end - 1] + penalty
        chosen = 0
        level = 0
        length = 1
        base = 0
        # `mean`, `slope` and `error` describe the window of `length` that ends here.
        while True:
            slot = base + (end & (length - 1))
            if end < 2 * length:
                rings[slot, MEAN] = mean
                rings[slot, SLOPE] = slope
                rings[slot, ERROR] = error
                break
            left_mean = rings[slot, MEAN]
            left_slope = rings[slot, SLOPE]
            left_error = rings[slot, ERROR]
            rings[slot, MEAN] = mean
            rings[slot, SLOPE] = slope
            rings[slot, ERROR] = error
            between = (mean - left_mean) / length
            middle = 0.5 * (slope + left_slope)
            turn = between - middle
            bend = slope - left_slope
            error += left_error
            error += factors[level, 1] * (turn * turn)
            error += factors[level, 2] * (bend * bend)
            slope = middle + factors[level, 0] * turn
            mean = 0.5 * (mean + left_mean)
            base += length
            length *= 2
            level += 1
            total = cost[end - length] + error + 2.0 * penalty
            if total < best:
                best = total
                chosen = level
        cost[end] = best
        choice[end] = chosen
    return choice


@kernel
def _fill_lines(values: FloatArray, choice: IntArray, fitted: FloatArray) -> None:
    """Write the line of each chosen window, from the last one back."""
    end = values.size
    while end > 0:
        length = 1 << choice[end]
        start = end - length
        if length <= 2:
            for place in range(start, end):
                fitted[place] = values[place]
        else:
            level = values[start]
            centre = 0.5 * (length - 1)
            mean = 0.0
            for place in range(length):
                mean += values[start + place] - level
            mean /= length
            moment = 0.0
            for place in range(length):
                deviation = values[start + place] - level - mean
                moment += (place - centre) * deviation
            slope = moment / (length * (length * length - 1.0) / 12.0)
            for place in range(length):
                fitted[start + place] = level + mean + slope * (place - centre)
        end = start


@kernel
def _fit_stretches(
    values: FloatArray, starts: IntArray, ends: IntArray, penalties: FloatArray
) -> FloatArray:
    fitted = values.copy()
    longest = 1
    for stretch in range(starts.size):
        longest = max(longest, ends[stretch] - starts[stretch])
    levels = 1
    while 1 << levels <= longest:
        levels += 1
    factors = _merge_factors(levels)
    rings = np.empty((1 << levels, 3))
    for stretch in range(starts.size):
        part = values[starts[stretch] : ends[stretch]]
        choice = _cheapest_windows(part, penalties[stretch], factors, rings)
        _fill_lines(part, choice, fitted[starts[stretch] : ends[stretch]])
    return fitted


def piecewise_linear(
    values: AnyArray, starts: IntArray, ends: IntArray, penalties: FloatArray
) -> FloatArray:
    """Return the cheapest piecewise-linear fit of half-open stretches, in O(n log n).

    Each stretch is fitted by itself; values outside all of them stay as they are.

    Parameters
    ----------
    values : ndarray, shape (n,)
        The sequence.
    starts : ndarray of int64, shape (stretches,)
        The first value of each stretch.
    ends : ndarray of int64, shape (stretches,)
        The value after its last.
    penalties : ndarray of float64, shape (stretches,)
        What one parameter costs, in squared units of the values.

    Returns
    -------
    ndarray of float64, shape (n,)
        The fitted sequence.
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    starts = np.ascontiguousarray(starts, dtype=np.int64)
    ends = np.ascontiguousarray(ends, dtype=np.int64)
    penalties = np.ascontiguousarray(penalties, dtype=np.float64)
    return _fit_stretches(values, starts, ends, penalties)


@kernel
def knot_heights(
    diagonal: FloatArray,
    beside: FloatArray,
    right: FloatArray,
    lengths: FloatArray,
    fixed: BoolArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the height of each knot, and the squared error that it saves. O(knots).

    Parameters
    ----------
    diagonal : ndarray of float64, shape (knots,)
        The diagonal of the normal equations.
    beside : ndarray of float64, shape (knots,)
        Entry i couples knot i with the one before it.
    right : ndarray of float64, shape (knots,)
        The right-hand side; at a fixed knot its height.
    lengths : ndarray of float64, shape (knots,)
        Cells from the knot before, or from the start, to each knot.
    fixed : ndarray of bool, shape (knots,)
        Which knots have a known height; the last one is always fixed.

    Returns
    -------
    heights : ndarray of float64, shape (knots,)
        The fitted heights.
    gains : ndarray of float64, shape (knots,)
        The squared error that each knot saves while all others are free to move;
        infinity at a fixed knot.
    """
    count = diagonal.size
    pivots, heights = diagonal.copy(), right.copy()
    for knot in range(count):
        if fixed[knot]:
            continue
        if knot > 0:
            if fixed[knot - 1]:
                heights[knot] -= beside[knot] * right[knot - 1]
            else:
                ratio = beside[knot] / pivots[knot - 1]
                pivots[knot] -= ratio * beside[knot]
                heights[knot] -= ratio * heights[knot - 1]
        if fixed[knot + 1]:
            heights[knot] -= beside[knot + 1] * right[knot + 1]
    for knot in range(count - 2, -1, -1):
        if not fixed[knot]:
            if not fixed[knot + 1]:
                heights[knot] -= beside[knot + 1] * heights[knot + 1]
            heights[knot] /= pivots[knot]
    # The inverse: on its diagonal, and beside it towards the knot before.
    inverse, before = np.zeros(count), np.zeros(count)
    for knot in range(count - 1, -1, -1):
        if fixed[knot]:
            continue
        inverse[knot] = 1.0 / pivots[knot]
        if not fixed[knot + 1]:
            ratio = beside[knot + 1] / pivots[knot]
            inverse[knot] += ratio * ratio * inverse[knot + 1]
            before[knot + 1] = -ratio * inverse[knot + 1]
    gains = np.full(count, np.inf)
    for knot in range(count):
        if fixed[knot]:
            continue
        part = lengths[knot] / (lengths[knot] + lengths[knot + 1])
        low = heights[knot - 1] if knot > 0 else 0.0
        bend = heights[knot] - low - part * (heights[knot + 1] - low)
        spread = inverse[knot] + part * part * inverse[knot + 1]
        spread -= 2.0 * part * before[knot + 1]
        if knot > 0:
            rest = 1.0 - part
            spread += rest * rest * inverse[knot - 1] - 2.0 * rest * before[knot]
            if inverse[knot] > 0.0:
                far = before[knot] * before[knot + 1] / inverse[knot]
                spread += 2.0 * part * rest * far
        gains[knot] = bend * bend / spread
    return heights, gains
