"""Squared error of all buckets between public borders, and of the best k of them.

Serves StructureFirst. Borders are few, so that all pairs can be listed:

    borders     0     1     2     3             table[2, 0] = error of one bucket
    cells       |--3--|--5--|--5--|                           from border 0 to 2

    heads[i, j] = least error of i + 1 buckets from border 0 to border j

Errors are whole numbers of 2^-bits: the exact sum of squared distances from the
bucket's mean, rounded down.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

FINEST_BITS = 8
ROOM_BITS = 60
# Borders that are passed over together where none of them can be the best.
_GROUP = 32


def squares_grid(cells: int, largest: int) -> int:
    """Return the fraction bits of errors of `cells` counts of at most `largest`.

    Refused where the squares of the counts would not fit 60 bits together.
    """
    size = (cells - 1).bit_length()
    bits = ROOM_BITS - max(size + 2 * largest.bit_length(), 2 * size)
    if bits < 0:
        most = 2 ** ((ROOM_BITS - size) // 2) - 1
        raise InputError(
            f"squares of counts up to {largest} on {cells} cells do not fit 64 bits; "
            f"cut the counts at {most} or below, or use a coarser domain"
        )
    return min(bits, FINEST_BITS)


@kernel
def _bucket_errors(
    sums: IntArray, squares: IntArray, borders: IntArray, bits: int
) -> IntArray:
    count = borders.size
    errors = np.zeros((count, count), dtype=np.int64)
    for end in range(1, count):
        for begin in range(end):
            cells = borders[end] - borders[begin]
            total = sums[end] - sums[begin]
            mean = total // cells
            rest = total - mean * cells
            # total^2 / cells = mean^2 cells + 2 mean rest + rest^2 / cells
            whole = squares[end] - squares[begin] - mean * (mean * cells + 2 * rest)
            part = (rest * rest) << bits
            errors[end, begin] = (whole << bits) - (part + cells - 1) // cells
    return errors


def bucket_errors(values: IntArray, borders: IntArray, bits: int) -> IntArray:
    """Return the (m + 1, m + 1) squared errors of all buckets between m + 1 borders.

    Entry (j, i) for i < j: the cells from border i to border j; 0 elsewhere. Borders
    rise from 0 to the number of cells; counts and `bits` are as in `squares_grid`.
    O(n + m^2).
    """
    rising = borders.size > 1 and borders[0] == 0 and (np.diff(borders) > 0).all()
    if not rising or borders[-1] != values.size:
        raise InputError(f"borders must rise from 0 to {values.size}, the cells")
    counts = np.asarray(values, dtype=np.int64)
    sums = np.concatenate([[0], np.cumsum(counts)])[borders]
    squares = np.concatenate([[0], np.cumsum(counts * counts)])[borders]
    return _bucket_errors(sums, squares, borders, bits)


@kernel
def _group_minima(row: IntArray, first: int, past: int, minima: IntArray) -> None:
    """Fill in the least entry of each group, of those from `first` to `past`."""
    for group in range(first // _GROUP, (past + _GROUP - 1) // _GROUP):
        begin, end = max(first, group * _GROUP), min(past, (group + 1) * _GROUP)
        least = row[begin]
        for place in range(begin + 1, end):
            least = min(least, row[place])
        minima[group] = least


@kernel
def _best_heads(errors: IntArray, heads: IntArray) -> None:
    """Fill in the heads; a group is searched only where its bound is below the best.

    The best last bucket begins in the same group for one end as for the next, or
    nearly, so that group is searched first.
    """
    count = errors.shape[0]
    groups = (count + _GROUP - 1) // _GROUP
    least_errors = np.zeros((count, groups), dtype=np.int64)
    least_heads = np.zeros(groups, dtype=np.int64)
    for end in range(1, count):
        heads[0, end] = errors[end, 0]
        _group_minima(errors[end], 0, end, least_errors[end])
    for buckets in range(1, heads.shape[0]):
        shorter = heads[buckets - 1]
        _group_minima(shorter, buckets, count, least_heads)
        lowest = buckets // _GROUP
        likely = lowest
        for end in range(buckets + 1, count):
            row, bounds = errors[end], least_errors[end]
            begin, past = max(buckets, likely * _GROUP), min(end, (likely + 1) * _GROUP)
            least = shorter[begin] + row[begin]
            for place in range(begin + 1, past):
                least = min(least, shorter[place] + row[place])
            for group in range(lowest, (end + _GROUP - 1) // _GROUP):
                if least_heads[group] + bounds[group] >= least:
                    continue
                begin = max(buckets, group * _GROUP)
                past = min(end, (group + 1) * _GROUP)
                found = least
                for place in range(begin, past):
                    found = min(found, shorter[place] + row[place])
                if found < least:
                    least, likely = found, group
            heads[buckets, end] = least


def best_heads(errors: IntArray, buckets: int) -> IntArray:
    """Return the (buckets, m + 1) least errors of 1, 2, ... buckets up to each border.

    Entry (i, j) for j > i: i + 1 buckets from border 0 to border j; 0 where there are
    not enough borders. `errors` are from `bucket_errors`. O(m^2 buckets) at worst,
    mostly a third of it.
    """
    borders = errors.shape[0] - 1
    if errors.shape != (borders + 1, borders + 1) or not 1 <= buckets <= borders:
        raise InputError(
            f"between {borders + 1} borders lie 1 to {borders} buckets, not {buckets}"
        )
    heads = np.zeros((buckets, borders + 1), dtype=np.int64)
    _best_heads(errors, heads)
    return heads
