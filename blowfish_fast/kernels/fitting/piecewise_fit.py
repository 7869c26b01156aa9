"""Penalised piecewise-linear fit of a noisy sequence, by windows of powers of two.

Serves the ordered mechanism: prefix sums of counts are nearly straight wherever
neighbouring cells are alike. Each window pays the squared error of its own
least-squares line and one penalty per parameter (a window of one value has a level, a
longer one a level and a slope); dynamic programming finds the cheapest windows.

    values    1 2 3 4 9 9 9 9 6      windows  [1 2 3 4][9 9 9 9][6]
    lengths   1 2 4 8 ...            any start; only the length is a power of two

A window is known by its mean, its slope and its squared error. Two neighbours of one
length merge into one of twice that length, and the three numbers of the whole follow
from those of its halves by sums of squares: nothing cancels, however steep the values.

    halves  [  a  ][  b  ]       error = error a + error b
    means      /  ---               + (slope between the means - mean slope)^2 * ...
    slopes    / ---                 + (slope b - slope a)^2 * ...

For each length one ring holds the windows that ended in the last `length` places: the
left half of the next window of twice the length is the entry about to be overwritten.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

MEAN = 0
SLOPE = 1
ERROR = 2


@kernel
def _merge_factors(levels: int) -> FloatArray:
    """Return, for each level, what merging two windows of 2^level values needs.

    With s the squared deviation of the places in one half: the weight of the slope
    between the means in the slope of the whole, the factor of (that slope - mean
    slope)^2 and the factor of (difference of slopes)^2 in the squared error.
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
    """Return the cheapest piecewise-linear fit of each stretch, in O(n log n).

    Half-open stretches are fitted each by itself; values outside are returned as they
    are. A penalty is what one parameter costs, in squared units of the values.
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    starts = np.ascontiguousarray(starts, dtype=np.int64)
    ends = np.ascontiguousarray(ends, dtype=np.int64)
    penalties = np.ascontiguousarray(penalties, dtype=np.float64)
    shapes = {starts.shape, ends.shape, penalties.shape}
    if values.ndim != 1 or starts.ndim != 1 or len(shapes) != 1:
        raise InputError(
            "a fit needs one row of values and one penalty per stretch; got shapes "
            f"{values.shape}, {starts.shape}, {ends.shape} and {penalties.shape}"
        )
    if starts.size and (
        starts.min() < 0 or ends.max() > values.size or (starts > ends).any()
    ):
        raise InputError(
            f"stretches lie within 0..{values.size} and end after they start; got "
            f"starts from {starts.min()} and ends up to {ends.max()}"
        )
    return _fit_stretches(values, starts, ends, penalties)
