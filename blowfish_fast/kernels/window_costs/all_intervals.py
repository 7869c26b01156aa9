"""Least-cost partition into intervals of any length, for up to 4096 cells.

For each end the interval grows to the left, one cell at a time; a pointer over the
ranks follows its mean (or its order statistic) as in `moving_pointer`, with the Fenwick
tree for the worst case. So all intervals with one end are costed in one sweep, and the
dynamic programme takes them at once.

    cells      2   3   8   1   0          end 5
    grows                     [0]         deviation 0
                         [1   0]          1
                     [8   1   0]          10

Without noise O(n) memory serves. With noise, each length has its own scale: blocks of
ends are costed, turned so that a length lies in a row, and turned back.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.kernels._arguments import Words
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.sampling.discrete_laplace import subtract_geometric

from .count_grid import IMPOSSIBLE, counts_on_grid
from .moving_pointer import (
    STEPS_PER_VALUE,
    STEPS_PER_WINDOW,
    add_cell,
    dense_ranks,
    part_cells,
    plant_tree,
)

MOST_CELLS = 4096
NOISY_BLOCK = 1024

# The noise of an interval of some length that ends at e uses word
# (length << LENGTH_BITS) + e.
LENGTH_BITS = 40


@kernel
def costs_to_end(
    values: IntArray,
    ranks: AnyArray,
    table: IntArray,
    exponent: int,
    level: tuple[int, int] | None,
    tally: AnyArray,
    tree: IntArray,
    costs: IntArray,
) -> int:
    """Cost the intervals of 1, 2, ... cells that end with the last of the `values`.

    Parameters
    ----------
    values : ndarray of int64, shape (n,)
        Whole counts.
    ranks : ndarray of int32, shape (n,)
        Dense rank of each value, from 1.
    table : ndarray of int64, shape (distinct + 2,)
        The value of each rank, between two sentinels.
    exponent : int
        Costs are rounded down to a multiple of 2^exponent.
    level : tuple of two ints, or None
        Numerator and denominator of a pinball cost; None for the deviation. The
        compiler sees which, and leaves the other branches out.
    tally : ndarray of int32
        Scratch for distinct + 2 numbers.
    tree : ndarray of int64
        Scratch for 2 distinct + 4 numbers.
    costs : ndarray of int64, shape (n,)
        ``costs[length - 1]`` receives the cost of the last `length` cells.

    Returns
    -------
    int
        The length up to which the pointer walked; the tree did the rest.
    """
    doubled = 1 if level is None else 0
    up = max(doubled - exponent, 0)
    down = max(exponent - doubled, 0)
    end = values.size
    tally[: table.size] = 0
    total = np.int64(0)
    count = np.int64(0)
    high = np.int64(0)
    pointer = np.int64(ranks[end - 1]) + 1
    steps = np.int64(0)
    walked = end
    for length in range(1, end + 1):
        value = values[end - length]
        rank = np.int64(ranks[end - length])
        total += value
        centre = total // length
        if level is not None:
            weight = level[1] - level[0]
            above = min(weight * length // level[1], length - 1)
        if length <= walked:
            tally[rank] += 1
            is_above = np.int64(rank >= pointer)
            count += is_above
            high += (-is_above) & value
            begun = pointer
            while (
                table[np.uintp(pointer)] <= centre if level is None else count > above
            ):
                copies = np.int64(tally[np.uintp(pointer)])
                count -= copies
                high -= copies * table[np.uintp(pointer)]
                pointer += 1
            while (
                table[np.uintp(pointer - 1)] > centre
                if level is None
                else count + np.int64(tally[np.uintp(pointer - 1)]) <= above
            ):
                pointer -= 1
                copies = np.int64(tally[np.uintp(pointer)])
                count += copies
                high += copies * table[np.uintp(pointer)]
            if level is not None:
                centre = table[np.uintp(pointer - 1)]
            steps += abs(pointer - begun)
            if steps > STEPS_PER_VALUE * table.size + STEPS_PER_WINDOW * length:
                walked = length
                plant_tree(tally, table, tree)
        else:
            add_cell(tree, table.size - 2, rank, 1, value)
            sought = None if level is None else above
            centre, count, high = part_cells(tree, table, length, total, centre, sought)
        whole = high - count * centre
        part = total - centre * length
        if level is None:
            # deviation / 2^exponent = (whole - part / length) * 2^(1 - exponent)
            part = (count * part << up) + length - 1
            low = np.int64(np.uint64(part) // np.uint64(length))
        else:
            # cost / 2^exponent = (whole - weight * part / denominator) * 2^-exponent
            quotient = part // level[1]
            remainder = part - quotient * level[1]
            low = ((weight * remainder << up) + level[1] - 1) // level[1]
            whole -= weight * quotient
        costs[length - 1] = ((whole << up) - low) >> down
    return walked


@kernel
def _costs_of_ends(
    values: IntArray,
    ranks: AnyArray,
    table: IntArray,
    exponent: int,
    level: tuple[int, int] | None,
    begin: int,
    costs: IntArray,
) -> None:
    """Fill ``costs[i, length - 1]`` for the ends ``begin + 1 + i``, 0 if too long."""
    tally = np.empty(table.size, dtype=np.int32)
    tree = np.empty(2 * table.size, dtype=np.int64)
    for i in range(costs.shape[0]):
        end = begin + 1 + i
        costs[i, end:] = 0
        costs_to_end(values[:end], ranks, table, exponent, level, tally, tree, costs[i])


@kernel
def _extend_intervals(
    costs: IntArray, penalties: IntArray, begin: int, least: IntArray, chosen: IntArray
) -> None:
    """Find the cheapest partition before each end ``begin + 1 + i``.

    ``chosen[end]`` is where its last interval starts; ties go to the longest.
    """
    for i in range(costs.shape[0]):
        end = begin + 1 + i
        row = costs[i]
        best = np.int64(IMPOSSIBLE)
        start_of_best = 0
        for start in range(end):
            length = end - start
            candidate = least[start] + row[length - 1] + penalties[length - 1]
            if candidate < best:
                best = candidate
                start_of_best = start
        least[end] = best
        chosen[end] = start_of_best


def _prepare(
    x: AnyArray,
    penalties: FloatArray,
    scales: FloatArray | None,
    step: float,
    quantile: tuple[int, int] | None,
) -> tuple[IntArray, int, IntArray, FloatArray | None]:
    """Check the arguments; return values, grid exponent, penalties and scales."""
    if x.size > MOST_CELLS:
        raise SizeError(
            f"all intervals of at most {MOST_CELLS} cells are compared: got {x.size} "
            "cells. Use least_cost_partition, with power-of-two lengths."
        )
    on_grid = counts_on_grid(x, penalties, scales, step, quantile)
    if x.size**2 * 2.0 ** (1 - on_grid[1]) > 2.0**62:
        raise InputError(
            f"a grid of {step!r} is too fine for {x.size} cells. Take the step from "
            "partition_grid(cells, scale)."
        )
    return on_grid


def _by_length(given: FloatArray | float, cells: int, name: str) -> FloatArray:
    """Return one entry for each length 1 .. cells."""
    array = np.asarray(given, dtype=np.float64)
    if array.ndim == 0:
        return np.full(cells, float(array))
    if array.shape != (cells,):
        raise InputError(
            f"{name} are one number, or one for each length 1 .. {cells}: got shape "
            f"{array.shape}."
        )
    return array


def interval_costs(
    x: AnyArray, *, step: float, quantile: tuple[int, int] | None = None
) -> IntArray:
    """Return the cost of every interval, rounded down to whole steps.

    It takes O(n^2 log n) time at worst.

    Parameters
    ----------
    x : array-like, shape (n,)
        Whole numbers or floats, at most 4096.
    step : float
        The grid, a power of two.
    quantile : tuple[int, int], optional
        Numerator and denominator of a pinball cost, in place of the deviation.

    Returns
    -------
    ndarray of int64, shape (n, n)
        ``costs[end - 1, length - 1]`` for the interval [end - length, end); zero where
        the length exceeds the end.

    Raises
    ------
    InputError
        If there are more cells, or costs do not fit 64 bits on this grid.

    Examples
    --------
    >>> interval_costs(np.array([2, 3, 8]), step=0.5)
    array([[ 0,  0,  0],
           [ 0,  2,  0],
           [ 0, 10, 14]])
    """
    x = np.asarray(x)
    values, grid, _, _ = _prepare(x, np.zeros(1), None, step, quantile)
    ranks, table = dense_ranks(values)
    costs = np.empty((x.size, x.size), dtype=np.int64)
    _costs_of_ends(values, ranks, table, grid, quantile, 0, costs)
    return costs


def least_cost_partition_all(
    x: AnyArray,
    penalty: FloatArray | float,
    scales: FloatArray | None = None,
    words: Words | None = None,
    *,
    step: float,
    quantile: tuple[int, int] | None = None,
) -> IntArray:
    """Return the boundaries of the cheapest partition into intervals of any length.

    Costs, noise, exactness and ties are those of
    `interval_partition.least_cost_partition`; every interval is a candidate. It takes
    O(n^2 log n) time at worst, and O(n) memory, times 2^10 with noise.

    Parameters
    ----------
    x : array-like, shape (n,)
        Counts of at most 4096 cells.
    penalty : float or ndarray of float64, shape (n,)
        Price of an interval, in counts; one number, or one for each of the lengths 1 ..
        n.
    scales : ndarray of float64, shape (n,), optional
        Noise scale by length, in counts; None for no noise.
    words : callable, optional
        ``words(position, count)``, needed with `scales`: the interval of some length
        that ends at e takes the word at ``(length << 40) + e``.
    step : float
        The public grid, a power of two.
    quantile : tuple[int, int], optional
        Numerator and denominator of a pinball cost, in place of the deviation.

    Returns
    -------
    ndarray of int64, shape (intervals + 1,)
        The boundaries, from 0 to n.

    Raises
    ------
    InputError
        If noise has no words, or counts and prices do not fit 64 bits on this grid.

    Examples
    --------
    >>> cells = np.array([2, 3, 8, 1, 0, 2, 0, 4, 2, 4])
    >>> least_cost_partition_all(cells, 2.0, step=2.0**-8)
    array([ 0,  2,  3,  7, 10])
    """
    x = np.asarray(x)
    cells = x.size
    if scales is not None:
        if words is None:
            raise InputError(
                "noise needs a source of words: got scales and no words. Pass both."
            )
        scales = _by_length(scales, cells, "scales")
    prices = _by_length(penalty, cells, "penalties")
    values, grid, penalties, noise = _prepare(x, prices, scales, step, quantile)
    ranks, table = dense_ranks(values)
    least = np.zeros(cells + 1, dtype=np.int64)
    chosen = np.zeros(cells + 1, dtype=np.int64)
    size = 32 if noise is None else NOISY_BLOCK
    for begin in range(0, cells, size):
        end = min(begin + size, cells)
        costs = np.empty((end - begin, end), dtype=np.int64)
        _costs_of_ends(values, ranks, table, grid, quantile, begin, costs)
        if noise is not None and words is not None:
            costs = _with_noise(costs, begin, noise, words)
        _extend_intervals(costs, penalties, begin, least, chosen)
    boundaries = [cells]
    while boundaries[-1] > 0:
        boundaries.append(int(chosen[boundaries[-1]]))
    return np.array(boundaries[::-1], dtype=np.int64)


def _with_noise(
    costs: IntArray, begin: int, scales: FloatArray, words: Words
) -> IntArray:
    by_length = np.ascontiguousarray(costs.T)
    for length in range(1, by_length.shape[0] + 1):
        first = max(begin + 1, length)
        row = by_length[length - 1, first - begin - 1 :]
        start = (length << LENGTH_BITS) + first
        subtract_geometric(row, words, start, float(scales[length - 1]))
    return np.ascontiguousarray(by_length.T)
