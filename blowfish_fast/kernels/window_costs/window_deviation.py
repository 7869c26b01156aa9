"""Deviation of every window: the distance of its cells from their mean, summed.

Serves DAWA's first stage, whose buckets cost their deviation. Windows of up to 32
cells are summed cell by cell, for many windows at once; longer ones slide
(`window_slide`), on the ranks of the whole array if it has few distinct values, else
on ranks local to tiles of ends.

    cells        3   1   0   2   4
    window           [1   0   2]        mean 1, deviation |1-1| + |0-1| + |2-1| = 2
    times 3           3   0   6         minus the total 3:  0 + 3 + 3 = 3 * 2

The second line is what a short window computes: `length` times the deviation is a
whole number.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .count_grid import fixed_point
from .window_slide import (
    CHUNK,
    EXPONENT,
    FLOAT_DEVIATION,
    PENALTY,
    all_windows,
    window_recipe,
)

SHORT_LEVELS = 6  # windows of 1, 2, ... 32 cells are short
SHORT = 1 << (SHORT_LEVELS - 1)


@kernel
def _add_distances(cells: IntArray, centres: IntArray, sums: IntArray) -> None:
    """Add to each sum the distances of four consecutive cells from its centre."""
    second = cells[1:]
    third = cells[2:]
    fourth = cells[3:]
    for i in range(sums.size):
        centre = centres[i]
        sums[i] += (abs(cells[i] - centre) + abs(second[i] - centre)) + (
            abs(third[i] - centre) + abs(fourth[i] - centre)
        )


@kernel
def short_deviations(
    values: IntArray,
    first: int,
    ends: int,
    recipes: IntArray,
    scratch: IntArray,
    rows: IntArray,
) -> None:
    """Cost windows of 1, 2, 4, ... 32 cells on the grid of their recipes.

    There is a recipe for each power of two, at most `SHORT_LEVELS`; `rows` receives
    level by level the costs for `ends` ends from `first` on, at least 1. Cells before
    the array count as zeros. `scratch` is of shape (4, CHUNK + SHORT).
    """
    levels = recipes.shape[0]
    for begun in range(0, ends, CHUNK):
        size = min(CHUNK, ends - begun)
        # cells[SHORT + i - 1] is the last cell of window i.
        reach = SHORT + size - 1
        cells = scratch[0, :reach]
        totals = scratch[1, :reach]
        times = scratch[2, :reach]
        sums = scratch[3, :size]
        from_cell = first + begun - SHORT
        outside = max(-from_cell, 0)
        for j in range(outside):
            cells[j] = 0
        source = values[from_cell + outside :]
        for j in range(reach - outside):
            cells[outside + j] = source[j]
        for j in range(reach):
            totals[j] = cells[j]
        for level in range(levels):
            length = 1 << level
            row = rows[level, begun : begun + size]
            penalty = recipes[level, PENALTY]
            exponent = level + recipes[level, EXPONENT]
            left = max(-exponent, 0)
            right = min(max(exponent, 0), 63)
            begin = SHORT - length
            if level == 0:
                for i in range(size):
                    row[i] = penalty
                continue
            half = length >> 1
            ahead = totals[half:]
            for j in range(reach - half):
                totals[j] += ahead[j]
            if level == 1:
                earlier = cells[begin:]
                later = cells[begin + 1 :]
                for i in range(size):
                    row[i] = ((abs(earlier[i] - later[i]) << 1 << left) >> right) + (
                        penalty
                    )
                continue
            for j in range(reach):
                times[j] = cells[j] << level
            for i in range(size):
                sums[i] = 0
            for j in range(begin, SHORT, 4):
                _add_distances(times[j:], totals[begin:], sums)
            for i in range(size):
                row[i] = ((sums[i] << left) >> right) + penalty


@kernel
def _short_floats(values: IntArray, length: int, deviations: FloatArray) -> None:
    """Deviation of all windows of a few cells, many windows at a time."""
    totals = np.empty(CHUNK, dtype=np.int64)
    sums = np.empty(CHUNK, dtype=np.int64)
    for begun in range(0, deviations.size, CHUNK):
        size = min(CHUNK, deviations.size - begun)
        totals[:size] = 0
        sums[:size] = 0
        for j in range(length):
            cells = values[begun + j :]
            for i in range(size):
                totals[i] += cells[i]
        for j in range(length):
            cells = values[begun + j :]
            for i in range(size):
                sums[i] += abs(length * cells[i] - totals[i])
        for i in range(size):
            deviations[begun + i] = np.float64(sums[i]) / np.float64(length)


def window_deviations(x: AnyArray, length: int) -> FloatArray:
    """Return the sum of distances from the mean, for every window of `length` cells.

    O(n) for short windows, else O(n log n) at worst; ordinarily the same few
    nanoseconds per window at any length.

    Parameters
    ----------
    x : (n,) integers or floats
        Floats that are not whole numbers are rounded to 51 bits below the largest
        (fewer for windows beyond 2^10 cells), and summed exactly.
    length : int
        From 1 to n.

    Returns
    -------
    (n - length + 1,) float64
        The entry i belongs to the window [i, i + length). For integers it is the
        exact deviation, correctly rounded if `length` is a power of two and the
        deviation below 2^52, within two units in the last place otherwise.

    Examples
    --------
    >>> window_deviations(np.array([2, 3, 8, 1, 0, 2, 0]), 4)
    array([ 9. , 10. , 10.5,  3. ])
    """
    x = np.asarray(x)
    if x.ndim != 1 or not 1 <= length <= x.size:
        raise InputError(
            "a window needs one axis of cells and a length from 1 to their number: "
            f"got shape {x.shape} and length {length}. Choose a shorter window."
        )
    values, exponent = fixed_point(x, length)
    if length <= SHORT and int(values.max()) * length**2 < 1 << 62:
        deviations = np.empty(x.size - length + 1)
        _short_floats(values, length, deviations)
    else:
        recipe = window_recipe(FLOAT_DEVIATION, length)
        deviations = all_windows(values, recipe).view(np.float64)
    return np.ldexp(deviations, exponent) if exponent else deviations
