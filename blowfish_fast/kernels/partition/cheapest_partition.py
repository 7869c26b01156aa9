"""Dynamic programme over buckets whose lengths are powers of two.

Serves DAWA's first stage: given the integer cost of every bucket, block by block,
find for every end the cheapest partition of the cells before it.

    least[e] = min over k of  least[e - 2^k] + costs[k][e]

    ends         c                            c + 1024
    2^10 ...     |----------------------------|        all at once: they look back
    2^6 .. 2^9   |------|------|------|------|         64 at once      past the chunk
    2^0 .. 2^5   | one end after another

Sums are int64 and exact. Ties go to the longest bucket: lengths are tried from long to
short and only a strictly smaller sum replaces an earlier one; the partition is
read off from the right. A proof of privacy needs some fixed order; any would do.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import ByteArray, IntArray
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.window_costs.count_grid import IMPOSSIBLE

# `least` begins with this many impossible entries: a bucket that would begin before
# the first cell needs no test.
PAD = 64

LONG_CHUNK = 1024
SHORT_CHUNK = 64
SHORT_LEVELS = 6


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
            _improve(
                costs[level, offset + skipped :],
                least[PAD + end + skipped - length :],
                sums[skipped:],
                choices[skipped:],
                level,
            )


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

    ``costs[k, e - begin - 1]`` is the cost of the bucket [e - 2^k, e); entries with 2^k
    > e may hold anything moderate. ``least[PAD + e]`` is the cost of the cheapest
    partition of the first e cells, ``chosen[e]`` the binary logarithm of its last
    bucket's length.
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
    """Write the boundaries 0 .. cells that `chosen` describes; return the buckets."""
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
