"""Least-cost partition into buckets of power-of-two lengths, at every offset.

A bucket costs its deviation (or pinball cost), rounded down to a public grid, plus a
penalty, minus exact geometric noise; the partition of least total is found exactly, in
int64.

    block of 2^15 ends       0             1             2
    costs, less noise        level jobs    level jobs    level jobs    `dyadic_costs`
    cheapest up to an end                  block 0       block 1       ...

The noise of a bucket takes the word at a place that depends on its level and its end
alone, so the partition does not depend on blocks or threads. The dynamic programme is
``least[e] = min over k of least[e - 2^k] + costs[k][e]``:

    ends         c                            c + 1024
    2^10 ...     |----------------------------|        all at once: they look back
    2^6 .. 2^9   |------|------|------|------|         64 at once      past the chunk
    2^0 .. 2^5   | one end after another

Why not one loop over ends and lengths? Long buckets look back so far that a whole chunk
of ends can be improved by one vector operation, several times as fast.

Ties go to the longest bucket: lengths are tried from long to short and only a strictly
smaller sum replaces an earlier one. A proof of privacy needs some fixed order.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from blowfish_fast._support.machine import buffers_needed, run_blocks
from blowfish_fast._support.typing import AnyArray, ByteArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import Words, rises, whole_numbers
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.sampling.discrete_laplace import (
    geometric,
    subtract_geometric,
)
from blowfish_fast.kernels.window_costs.count_grid import (
    IMPOSSIBLE,
    counts_on_grid,
    fixed_point,
)
from blowfish_fast.kernels.window_costs.dyadic_costs import (
    BLOCK,
    LevelJob,
    Room,
    level_jobs,
)
from blowfish_fast.kernels.window_costs.short_windows import SHORT_LEVELS
from blowfish_fast.kernels.window_costs.window_slide import (
    GRID_DEVIATION,
    GRID_PINBALL,
    window_recipe,
)

# The noise of a bucket of 2^level cells that ends at e uses word
# (level << LEVEL_BITS) + e.
LEVEL_BITS = 40

# Cells of a partition whose cuts are the bits of a number.
MOST_CUT = 62
DRAWS_AT_ONCE = 2**14


def _noisy_job(
    job: LevelJob,
    scales: FloatArray | None,
    words: Words | None,
    cells: int,
    buffers: list[IntArray],
) -> Callable[[int, Room], None]:
    """Return the job that costs some levels of a block and subtracts their noise."""

    def run(block: int, room: Room) -> None:
        begin = block * BLOCK
        end = min(begin + BLOCK, cells)
        rows = buffers[block % len(buffers)]
        job.fill(begin, end, rows, room)
        if scales is None or words is None:
            return
        for level in job.levels:
            first = max(begin + 1, 1 << level)
            if first <= end:
                row = rows[level, first - begin - 1 : end - begin]
                start = (level << LEVEL_BITS) + first
                subtract_geometric(row, words, start, float(scales[level]))

    return run


def least_cost_partition(
    x: AnyArray,
    penalties: FloatArray,
    scales: FloatArray | None = None,
    words: Words | None = None,
    *,
    step: float,
    threads: int = 1,
    quantile: tuple[int, int] | None = None,
) -> IntArray:
    """Return the boundaries of the cheapest partition into power-of-two buckets.

    A bucket of 2^k cells, at any offset, costs in steps of the grid

        floor(deviation / step) + round(penalties[k] / step) - noise,

    the noise geometric of scale ``scales[k] / step``, drawn for every bucket that could
    be chosen and never clamped. Sums and their minimum are exact. Among partitions of
    equal cost the one with the longest last bucket wins, then the longest last but one,
    and so on. It takes O(n log^2 n) time at worst, ordinarily a few nanoseconds per
    bucket, and O(n) memory.

    Parameters
    ----------
    x : ndarray, shape (cells,)
        Counts from 0 to the cap of `partition_grid`. Floats must be whole numbers if
        there is noise; otherwise they are rounded to fixed point.
    penalties : ndarray of float64, shape (levels,)
        Price of a bucket of 2^k cells, in counts; levels = ``cells.bit_length()``.
    scales : ndarray of float64, shape (levels,), optional
        Noise scale of a bucket of 2^k cells, in counts; None for no noise.
    words : callable, optional
        ``words(position, count)``, needed with `scales`: random uint64 words, always
        the same ones at a position, and safe to call from several threads. The bucket
        of 2^k cells that ends at e takes the word at ``(k << 40) + e``.
    step : float
        The public grid, a power of two.
    threads : int, default 1
        How many threads to use; the result does not depend on it.
    quantile : tuple[int, int], optional
        Numerator and denominator: the pinball cost of this quantile is used in place of
        the deviation.

    Returns
    -------
    ndarray of int64, shape (buckets + 1,)
        The boundaries, from 0 to the number of cells.

    Raises
    ------
    InputError
        If counts, prices or scales are out of range, or noise has no words.

    Examples
    --------
    >>> cells = np.array([2, 3, 8, 1, 0, 2, 0, 4, 2, 4])
    >>> least_cost_partition(cells, np.full(4, 2.0), step=2.0**-8)
    array([ 0,  2,  3,  7,  8, 10])
    """
    values, recipes, noise = _recipes(x, penalties, scales, step, quantile)
    if threads < 1 or (noise is not None and words is None):
        raise InputError(
            "a partition needs a thread, and noise a source of words: got "
            f"{threads} threads, words {words!r}"
        )
    return _cheapest(values, recipes, noise, words, threads)


def least_cost_partitions(
    x: AnyArray,
    penalties: FloatArray,
    scales: FloatArray,
    words: Words,
    draws: int,
    *,
    step: float,
    quantile: tuple[int, int] | None = None,
) -> IntArray:
    """Choose as `least_cost_partition` does, many times: costs once, noise each time.

    Parameters
    ----------
    x : ndarray, shape (cells,)
        Counts of at most 62 cells.
    penalties : ndarray of float64, shape (levels,)
        Price of a bucket of 2^k cells, in counts.
    scales : ndarray of float64, shape (levels,)
        Noise scale of a bucket of 2^k cells, in counts.
    words : callable
        ``words(position, count)`` gives random uint64 words.
    draws : int
        How many partitions are chosen, independently.
    step : float
        The public grid, a power of two.
    quantile : tuple[int, int], optional
        Numerator and denominator of a pinball cost, in place of the deviation.

    Returns
    -------
    ndarray of int64, shape (draws,)
        A draw cuts before cell c + 1 where its bit c is set.

    Raises
    ------
    InputError
        If there are more cells, or no noise.
    """
    values, recipes, noise = _recipes(x, penalties, scales, step, quantile)
    cells, levels = values.size, len(recipes)
    if cells > MOST_CUT or noise is None:
        raise InputError(
            f"many noisy choices are made on at most {MOST_CUT} cells; received {cells}"
        )
    costs = np.zeros((max(levels, SHORT_LEVELS), cells), dtype=np.int64)
    jobs, make_room = level_jobs(values, recipes)
    room = make_room()
    for job in jobs:
        job.fill(0, cells, costs, room)
    cuts = np.empty(draws, dtype=np.int64)
    for first in range(0, draws, DRAWS_AT_ONCE):
        size = min(DRAWS_AT_ONCE, draws - first)
        noisy = noisy_costs(costs, noise, words, first, size)
        _cut_many(noisy, levels, cuts[first : first + size])
    return cuts


def noisy_costs(
    costs: IntArray, noise: FloatArray, words: Words, first: int, size: int
) -> IntArray:
    """Return the costs less noise of its own in every draw.

    Parameters
    ----------
    costs : ndarray of int64, shape (levels, ends)
        Costs of the buckets of 2^level cells that end at each place.
    noise : ndarray of float64, shape (levels,)
        Noise scale of each level, in steps of the grid.
    words : callable
        ``words(position, count)`` gives random uint64 words.
    first : int
        The number of the first draw.
    size : int
        How many draws.

    Returns
    -------
    ndarray of int64, shape (draws, levels, ends)
        The noisy costs.
    """
    noisy = np.repeat(costs[None], size, axis=0)
    for level, scale in enumerate(noise.tolist()):
        ends = costs.shape[1] - (1 << level) + 1
        start = (level << LEVEL_BITS) + first * costs.shape[1]
        above, below = scale.as_integer_ratio()
        drawn = geometric(words, start, above, below, size=size * ends)
        noisy[:, level, (1 << level) - 1 :] -= drawn.reshape(size, ends)
    return noisy


@kernel
def _cut_many(noisy: IntArray, levels: int, cuts: IntArray) -> None:
    cells = noisy.shape[2]
    least = np.full(PAD + cells + 1, np.int64(IMPOSSIBLE))
    chosen = np.zeros(cells + 1, dtype=np.int8)
    # Not a literal, for which the callee would be compiled a second time.
    begin = int(0)  # noqa: RUF046, UP018
    for draw in range(cuts.size):
        least[PAD] = 0
        extend_partitions(noisy[draw], levels, begin, cells, least, chosen)
        cut = np.int64(0)
        end = cells - (1 << int(chosen[cells]))
        while end > 0:
            cut |= np.int64(1) << (end - 1)
            end -= 1 << int(chosen[end])
        cuts[draw] = cut


def _recipes(
    x: AnyArray,
    penalties: FloatArray,
    scales: FloatArray | None,
    step: float,
    quantile: tuple[int, int] | None,
) -> tuple[IntArray, IntArray, FloatArray | None]:
    """Return the counts, what each level costs, and its noise, on the public grid."""
    x = np.asarray(x)
    penalties = np.asarray(penalties, dtype=np.float64)
    scales = None if scales is None else np.asarray(scales, dtype=np.float64)
    levels = x.size.bit_length()
    if penalties.shape != (levels,) or (
        scales is not None and scales.shape != (levels,)
    ):
        raise InputError(
            f"{x.size} cells need {levels} penalties, one for each power of two, and "
            f"as many scales: got {penalties.shape} and "
            f"{None if scales is None else scales.shape}. Pass all."
        )
    values, grid, prices, noise = counts_on_grid(x, penalties, scales, step, quantile)
    form = GRID_DEVIATION if quantile is None else GRID_PINBALL
    recipes = [
        window_recipe(form, 1 << k, exponent=grid, penalty=price, quantile=quantile)
        for k, price in enumerate(prices.tolist())
    ]
    return values, np.stack(recipes), noise


def _cheapest(
    values: IntArray,
    recipes: IntArray,
    noise: FloatArray | None,
    words: Words | None,
    threads: int,
) -> IntArray:
    cells = values.size
    levels = len(recipes)
    blocks = -(-cells // BLOCK)
    # One row for each short level, even if no bucket is that long.
    shape = (max(levels, SHORT_LEVELS), min(cells, BLOCK))
    buffers = [
        np.zeros(shape, dtype=np.int64) for _ in range(buffers_needed(blocks, threads))
    ]
    least = np.full(PAD + cells + 1, IMPOSSIBLE, dtype=np.int64)
    least[PAD] = 0
    chosen = np.zeros(cells + 1, dtype=np.int8)

    def close(block: int, room: Room) -> None:
        begin = block * BLOCK
        end = min(begin + BLOCK, cells)
        rows = buffers[block % len(buffers)]
        extend_partitions(rows, levels, begin, end, least, chosen)

    jobs, make_room = level_jobs(values, recipes)
    noisy = [_noisy_job(job, noise, words, cells, buffers) for job in jobs]
    run_blocks(
        blocks,
        noisy,
        close,
        threads=threads,
        make_room=make_room,
        in_order=[job.in_order for job in jobs],
    )
    return read_partition(chosen)


@kernel
def _bucket_deviations(
    values: IntArray, boundaries: IntArray, whole: IntArray, part: IntArray
) -> None:
    """Emit, for every bucket, what the sliding windows emit (`moving_pointer`)."""
    for bucket in range(boundaries.size - 1):
        cells = values[boundaries[bucket] : boundaries[bucket + 1]]
        total = cells.sum()
        mean = total // cells.size
        count = np.int64(0)
        high = np.int64(0)
        for value in cells:
            if value > mean:
                count += 1
                high += value - mean
        whole[bucket] = high
        part[bucket] = count * (total - mean * cells.size)


def partition_cost(x: AnyArray, boundaries: IntArray) -> float:
    """Return the deviation of all buckets of a partition together, in O(n).

    Parameters
    ----------
    x : array-like, shape (cells,)
        Counts, whole numbers or floats.
    boundaries : ndarray of int64, shape (buckets + 1,)
        Increasing, from 0 to the number of cells.

    Returns
    -------
    float
        The sum over the buckets of the distances of their counts from their mean.

    Raises
    ------
    InputError
        If the boundaries are not those of a partition of these cells.

    Examples
    --------
    >>> partition_cost(np.array([2, 3, 8, 1, 0, 2, 0]), np.array([0, 2, 3, 7]))
    4.0
    """
    x = np.asarray(x)
    boundaries = whole_numbers(boundaries)
    if x.ndim != 1 or x.size == 0 or not rises(boundaries, x.size, 1):
        raise InputError(
            f"boundaries must increase from 0 to the {x.size} cells: got "
            f"{boundaries.reshape(-1).tolist()[:8]} ... Pass those of a partition of "
            "these cells."
        )
    values, exponent = fixed_point(x, x.size)
    whole = np.empty(boundaries.size - 1, dtype=np.int64)
    part = np.empty_like(whole)
    _bucket_deviations(values, boundaries, whole, part)
    lengths = np.diff(boundaries)
    quotient = 2 * part // lengths
    remainder = 2 * part - quotient * lengths
    fractions = (remainder / lengths).tolist()
    total = math.fsum([int((2 * whole - quotient).sum()), *(-f for f in fractions)])
    return math.ldexp(total, exponent)


# `least` begins with this many impossible entries: a bucket that would begin before
# the first cell needs no test.
PAD = 64

LONG_CHUNK = 1024
SHORT_CHUNK = 64


@kernel
def _improve(
    costs: IntArray, before: IntArray, sums: IntArray, choices: IntArray, level: int
) -> None:
    for i in range(sums.size):
        # Both loads come first: a load inside a conditional stops vectorisation.
        old_sum = sums[i]
        old_choice = choices[i]
        new_sum = before[i] + costs[i]
        better = new_sum < old_sum
        sums[i] = new_sum if better else old_sum
        choices[i] = level if better else old_choice


@kernel
def _improve_short(
    least: IntArray,
    costs_1: IntArray,
    costs_2: IntArray,
    costs_4: IntArray,
    costs_8: IntArray,
    costs_16: IntArray,
    costs_32: IntArray,
    sums: IntArray,
    choices: IntArray,
    chosen: ByteArray,
) -> None:
    """Add the buckets of up to 32 cells; ``least[i + 32]`` belongs to end i."""
    for i in range(chosen.size):
        best = sums[i]
        choice = choices[i]
        with_32 = least[i] + costs_32[i]
        with_16 = least[i + 16] + costs_16[i]
        with_8 = least[i + 24] + costs_8[i]
        with_4 = least[i + 28] + costs_4[i]
        with_2 = least[i + 30] + costs_2[i]
        with_1 = least[i + 31] + costs_1[i]
        choice = 5 if with_32 < best else choice
        best = min(with_32, best)
        choice = 4 if with_16 < best else choice
        best = min(with_16, best)
        choice = 3 if with_8 < best else choice
        best = min(with_8, best)
        choice = 2 if with_4 < best else choice
        best = min(with_4, best)
        choice = 1 if with_2 < best else choice
        best = min(with_2, best)
        choice = 0 if with_1 < best else choice
        best = min(with_1, best)
        least[i + 32] = best
        chosen[i] = choice


@kernel
def _improve_levels(
    costs: IntArray,
    offset: int,
    end: int,
    longest: int,
    shortest: int,
    least: IntArray,
    sums: IntArray,
    choices: IntArray,
) -> None:
    """Try levels `longest` down to `shortest` for the ends `end`, `end` + 1, ..."""
    for level in range(longest, shortest - 1, -1):
        length = 1 << level
        skipped = max(length - end, 0)
        if skipped < sums.size:
            before = least[PAD + end + skipped - length :]
            row = costs[level, offset + skipped :]
            _improve(row, before, sums[skipped:], choices[skipped:], level)


@kernel
def extend_partitions(
    costs: IntArray,
    levels: int,
    begin: int,
    end: int,
    least: IntArray,
    chosen: ByteArray,
) -> None:
    """Fill `least` and `chosen` for the ends ``begin + 1 .. end``.

    Parameters
    ----------
    costs : ndarray of int64, shape (levels, ends)
        ``costs[k, e - begin - 1]`` is the cost of the bucket [e - 2^k, e), anything
        moderate where 2^k > e.
    levels : int
        How many lengths are allowed.
    begin : int
        The last end that is filled already.
    end : int
        The last end to fill.
    least : ndarray of int64, shape (PAD + cells + 1,)
        ``least[PAD + e]`` is the cost of the cheapest partition of the first e cells.
    chosen : ndarray of int8, shape (cells + 1,)
        The binary logarithm of the length of its last bucket.
    """
    sums = np.empty(LONG_CHUNK, dtype=np.int64)
    choices = np.empty(LONG_CHUNK, dtype=np.int64)
    for chunk in range(begin, end, LONG_CHUNK):
        size = min(LONG_CHUNK, end - chunk)
        for i in range(size):
            sums[i] = IMPOSSIBLE
            choices[i] = 0
        _improve_levels(
            costs, chunk - begin, chunk + 1, levels - 1, 10, least, sums[:size],
            choices[:size],
        )  # fmt: skip
        for done in range(0, size, SHORT_CHUNK):
            few = min(SHORT_CHUNK, size - done)
            at = chunk - begin + done
            some_sums = sums[done : done + few]
            some_choices = choices[done : done + few]
            _improve_levels(
                costs, at, chunk + done + 1, min(levels - 1, 9), SHORT_LEVELS, least,
                some_sums, some_choices,
            )  # fmt: skip
            _improve_short(
                least[PAD + chunk + done + 1 - 32 :],
                costs[0, at:], costs[1, at:], costs[2, at:],
                costs[3, at:], costs[4, at:], costs[5, at:],
                some_sums, some_choices, chosen[chunk + done + 1 :][:few],
            )  # fmt: skip


@kernel
def read_partition_into(chosen: ByteArray, boundaries: IntArray) -> int:
    """Write the boundaries that `chosen` describes.

    Parameters
    ----------
    chosen : ndarray of int8, shape (cells + 1,)
        What `extend_partitions` filled.
    boundaries : ndarray of int64
        Receives the boundaries, from 0 to the number of cells.

    Returns
    -------
    int
        The number of buckets.
    """
    buckets = 0
    end = chosen.size - 1
    while end > 0:
        end -= 1 << int(chosen[end])
        buckets += 1
    end = chosen.size - 1
    boundaries[buckets] = end
    for bucket in range(buckets - 1, -1, -1):
        end -= 1 << int(chosen[end])
        boundaries[bucket] = end
    return buckets


def read_partition(chosen: ByteArray) -> IntArray:
    """Return the boundaries 0 .. cells of the partition that `chosen` describes."""
    boundaries = np.empty(chosen.size, dtype=np.int64)
    return boundaries[: read_partition_into(chosen, boundaries) + 1].copy()
