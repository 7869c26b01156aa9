"""Deviation or pinball cost of every window of one length, and of all short windows.

The deviation sums the distances of a window's cells from their mean. The pinball cost
of level t weighs what a cell has above the centre by t and what it lacks below by 1 -
t; the best centre is the t-quantile, and one record moves the cost by at most 1.

    cells        3   1   0   2   4
    window           [1   0   2]        mean 1, deviation |1-1| + |0-1| + |2-1| = 2
    times 3           3   0   6         minus the total 3:  0 + 3 + 3 = 3 * 2

    cells       4  0  9  1        t = 3/4: the centre is the third smallest, 4
    sorted      0  1 [4] 9        cost  3/4 * (9 - 4)  +  1/4 * (4 + 3)  =  22/4

Windows of up to 32 cells are summed cell by cell in whole numbers, many windows at
once, or stay sorted while they slide; longer ones go through `window_slide`. For so few
cells a loop that the compiler turns into vectors beats any cleverer structure.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .count_grid import check_quantile, fixed_point
from .moving_pointer import dense_ranks
from .window_slide import (
    ABOVE,
    CHUNK,
    EXACT_PINBALL,
    EXPONENT,
    FLOAT_DEVIATION,
    LENGTH,
    PENALTY,
    SMALLEST_TILE,
    VALUES_PER_CELL,
    Slide,
    finish_windows,
    slide_tiles,
    tile_room,
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

    Parameters
    ----------
    values : ndarray of int64, shape (cells,)
        Whole counts; cells before the array count as zeros.
    first : int
        The first end, at least 1.
    ends : int
        How many ends.
    recipes : ndarray of int64, shape (levels, 8)
        A recipe for each length.
    scratch : ndarray of int64, shape (4, CHUNK + SHORT)
        Room.
    rows : ndarray of int64, shape (levels, ends)
        Receives the costs, level by level.
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
        cells[:outside] = 0
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

    Parameters
    ----------
    x : array-like, shape (n,)
        Whole numbers or floats. Floats that are not whole numbers are rounded to 51
        bits below the largest (fewer for windows beyond 2^10 cells), and summed
        exactly.
    length : int
        Cells of a window, from 1 to n.

    Returns
    -------
    ndarray of float64, shape (n - length + 1,)
        Entry i belongs to the window [i, i + length). For integers it is the exact
        deviation, correctly rounded if `length` is a power of two and the deviation
        below 2^52, within two units in the last place otherwise.

    Raises
    ------
    InputError
        If there are fewer cells, or values are not finite.

    Examples
    --------
    >>> window_deviations(np.array([2, 3, 8, 1, 0, 2, 0]), 4)
    array([ 9. , 10. , 10.5,  3. ])
    """
    x = _row_of(x, length)
    values, exponent = fixed_point(x, length)
    if length <= SHORT and int(values.max()) * length**2 < 1 << 62:
        deviations = np.empty(x.size - length + 1)
        _short_floats(values, length, deviations)
    else:
        recipe = window_recipe(FLOAT_DEVIATION, length)
        deviations = all_windows(values, recipe).view(np.float64)
    return np.ldexp(deviations, exponent) if exponent else deviations


@kernel
def _replace_sorted(ordered: IntArray, leaving: int, entering: int) -> None:
    """Put `entering` for one copy of `leaving` in a sorted window."""
    place = 0
    while ordered[place] != leaving:
        place += 1
    if entering > leaving:
        while place + 1 < ordered.size and ordered[place + 1] < entering:
            ordered[place] = ordered[place + 1]
            place += 1
    else:
        while place > 0 and ordered[place - 1] > entering:
            ordered[place] = ordered[place - 1]
            place -= 1
    ordered[place] = entering


@kernel
def short_pinball(
    values: IntArray, first: int, recipe: IntArray, scratch: IntArray, row: IntArray
) -> None:
    """Cost the windows that end at `first`, `first` + 1, ... until `row` is full.

    A sorted window slides: the cell that leaves is overwritten.

    Parameters
    ----------
    values : ndarray of int64, shape (cells,)
        Whole counts.
    first : int
        The first end, at least the length.
    recipe : ndarray of int64, shape (8,)
        How a window is finished; its length is at most `SHORT`.
    scratch : ndarray of int64, shape (2, CHUNK)
        Room.
    row : ndarray of int64
        Receives the costs.
    """
    length = recipe[LENGTH]
    above = recipe[ABOVE]
    centre_at = length - above - 1
    ordered = np.sort(values[first - length : first])
    total = ordered.sum()
    for begun in range(0, row.size, CHUNK):
        size = min(CHUNK, row.size - begun)
        whole = scratch[0, :size]
        part = scratch[1, :size]
        for i in range(size):
            end = first + begun + i
            if begun + i > 0:
                leaving = values[end - 1 - length]
                entering = values[end - 1]
                if leaving != entering:
                    _replace_sorted(ordered, leaving, entering)
                    total += entering - leaving
            high = np.int64(0)
            for place in range(centre_at + 1, length):
                high += ordered[place]
            centre = ordered[centre_at]
            whole[i] = high - above * centre
            part[i] = total - centre * length
        finish_windows(whole, part, recipe, row[begun : begun + size])


def window_pinball_costs(
    x: AnyArray, length: int, numerator: int, denominator: int
) -> IntArray:
    """Return `denominator` times the pinball cost of every window, exactly.

    The cost of level t = numerator / denominator is the minimum over c of the sum of
    ``t * max(x_j - c, 0) + (1 - t) * max(c - x_j, 0)``.

    Parameters
    ----------
    x : ndarray, shape (n,)
        Whole numbers whose windows sum to less than 2^60 above the smallest.
    length : int
        Cells of a window, from 1 to n.
    numerator : int
        Numerator of the level.
    denominator : int
        Its denominator, at most 1024.

    Returns
    -------
    ndarray of int64, shape (n - length + 1,)
        Entry i belongs to the window [i, i + length).

    Raises
    ------
    InputError
        If values are fractions or too large, or the level is out of range.

    Examples
    --------
    >>> window_pinball_costs(np.array([4, 0, 9, 1, 1]), 4, 3, 4)
    array([22, 25])
    """
    x = _row_of(x, length)
    check_quantile(numerator, denominator)
    values, exponent = fixed_point(x, length * denominator)
    if exponent != 0:
        raise InputError(
            "exact pinball costs need whole numbers whose sums fit 64 bits: "
            "got fractions or larger values. Scale or clip the cells."
        )
    recipe = window_recipe(EXACT_PINBALL, length, quantile=(numerator, denominator))
    if length > SHORT:
        return all_windows(values, recipe)
    row = np.empty(x.size - length + 1, dtype=np.int64)
    short_pinball(values, length, recipe, np.empty((2, CHUNK), dtype=np.int64), row)
    return row


def _row_of(x: AnyArray, length: int) -> AnyArray:
    x = np.asarray(x)
    if x.ndim != 1 or not 1 <= length <= x.size:
        raise InputError(
            "a window needs one axis of cells and a length from 1 to their number: "
            f"got shape {x.shape} and length {length}. Choose a shorter window."
        )
    return x


def all_windows(values: IntArray, recipe: IntArray) -> IntArray:
    """Return the cost of every window of one length, from left to right.

    Parameters
    ----------
    values : ndarray of int64, shape (n,)
        Whole counts.
    recipe : ndarray of int64, shape (8,)
        Length of the window, and how it is finished.

    Returns
    -------
    ndarray of int64, shape (n - length + 1,)
        The costs.
    """
    length = int(recipe[LENGTH])
    row = np.empty(values.size - length + 1, dtype=np.int64)
    scratch = np.empty((2, CHUNK), dtype=np.int64)
    ranks, table = dense_ranks(values)
    distinct = table.size - 2
    tile = max(SMALLEST_TILE, 2 << (length - 1).bit_length())
    if distinct > VALUES_PER_CELL * length and 2 * tile < values.size:
        slide_tiles(
            values, ranks, distinct, length, row.size, tile, recipe[np.newaxis],
            tile_room(tile, (distinct >> 6) + 1, scratch), row[np.newaxis],
        )  # fmt: skip
        return row
    slide = Slide(recipe, np.empty(table.size, dtype=np.int32))
    slide.fill(values, ranks, table, length, scratch, row)
    return row
