"""Dense ranks of whole arrays and of stretches of them.

Serves the sliding windows of DAWA's first stage: a pointer that walks over ranks
needs them dense, and near each other in memory. The whole array is ranked once, by
one sort or, when its values are small, by a bitmap. A stretch is ranked again from
the ranks it already has, without sorting: mark the ranks that occur, count the marks.

    parent ranks of a stretch    7  3  9  3
    bitmap                       0 0 0 1 0 0 0 1 0 1      marks at 3, 7, 9
    marks below, plus one        3 -> 1, 7 -> 2, 9 -> 3
    ranks in the stretch         2  1  3  1

Ranks run from 1 to `distinct`. The table of values has a sentinel at either end,
below every value and above every value, so that a pointer needs no test for them.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray, WordArray
from blowfish_fast.kernels._jit import kernel, popcount

BELOW_ALL = -1
ABOVE_ALL = np.iinfo(np.int64).max


@kernel
def rank_stretch(
    parent: AnyArray,
    parent_distinct: int,
    values: IntArray,
    bitmap: WordArray,
    marks_before: AnyArray,
    ranks: AnyArray,
    table: IntArray,
) -> int:
    """Rank a stretch from its `parent` ranks; return how many values differ.

    `parent` holds ranks of the cells in a longer array (or small values themselves), at
    most `parent_distinct`, and `values` what is behind them, not negative. `bitmap` and
    `marks_before` are scratch for parent_distinct // 64 + 1 words; `ranks` receives
    dense ranks from 1 on, `table` the value of each, between two sentinels.
    """
    words = (parent_distinct >> 6) + 1
    six = np.uint64(6)
    low_bits = np.uint64(63)
    one = np.uint64(1)
    for word in range(words):
        bitmap[word] = np.uint64(0)
    for cell in range(values.size):
        rank = np.uint64(parent[cell])
        bitmap[rank >> six] |= one << (rank & low_bits)
    following = 1
    for word in range(words):
        marks_before[word] = following
        following += popcount(bitmap[word])
    for cell in range(values.size):
        rank = np.uint64(parent[cell])
        word_of_rank = rank >> six
        marks_below = (one << (rank & low_bits)) - one
        dense = np.int64(marks_before[word_of_rank]) + popcount(
            bitmap[word_of_rank] & marks_below
        )
        ranks[cell] = dense
        table[np.uintp(dense)] = values[cell]
    table[0] = BELOW_ALL
    table[following] = ABOVE_ALL
    return following - 1


@kernel
def _rank_sorted(
    ordered: IntArray, order: IntArray, ranks: AnyArray, table: IntArray
) -> int:
    distinct = 0
    last = np.int64(BELOW_ALL)
    table[0] = BELOW_ALL
    for position in range(ordered.size):
        value = ordered[position]
        if value != last:
            last = value
            distinct += 1
            table[distinct] = value
        ranks[np.uintp(order[position])] = distinct
    table[distinct + 1] = ABOVE_ALL
    return distinct


def dense_ranks(values: IntArray) -> tuple[AnyArray, IntArray]:
    """Return the int32 rank of every value, from 1, and the value of every rank.

    Values are not negative. The table of values has a sentinel at either end. O(n) when
    the largest value is at most about 16 n, else one sort.
    """
    cells = values.size
    largest = int(values.max(initial=0))
    index_bits = max(cells - 1, 1).bit_length()
    ranks = np.empty(cells, dtype=np.int32)
    table = np.empty(min(cells, largest + 1) + 2, dtype=np.int64)
    if largest <= 16 * cells + 1024:
        words = (largest >> 6) + 1
        bitmap = np.empty(words, dtype=np.uint64)
        marks_before = np.empty(words, dtype=np.int32)
        distinct = rank_stretch(
            values, largest, values, bitmap, marks_before, ranks, table
        )
    elif largest.bit_length() + index_bits <= 63:
        # Value and position share a word: sorting plain words is several times
        # faster than sorting positions by the values they point at.
        packed = values << index_bits
        packed |= np.arange(cells)
        packed.sort()
        order = packed & ((1 << index_bits) - 1)
        packed >>= index_bits
        distinct = _rank_sorted(packed, order, ranks, table)
    else:
        order = np.argsort(values)
        distinct = _rank_sorted(values[order], order, ranks, table)
    return ranks, table[: distinct + 2]
