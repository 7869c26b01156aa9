"""Sums above the centre of a window that slides by one cell at a time.

A window costs the distance of its cells from a centre: their mean (deviation) or one of
their order statistics (pinball). A *tally* counts the window's cells by rank; a pointer
parts the ranks above the centre from the others; the number and the sum of the cells
above it are kept up to date.

    rank       1   2   3   4   5   6        window  {10, 30, 30, 90},  mean 40
    value     10  20  30  50  80  90        above: one cell, sum 90
    tally      1   0   2   0   0   1
                             ^ pointer: the lowest rank above the centre

Ranks run from 1; a sentinel at either end of the table of values spares the pointer a
test. One slide moves the centre a little, so the pointer walks a few ranks. Where a
walk has taken too many steps on average, a Fenwick tree takes over: node i covers the
ranks (i - lowbit(i), i], ``tree[2 i]`` is its number of cells, ``tree[2 i + 1]`` their
sum, and a descent finds the centre.

Each window yields two integers, from which the caller finishes its cost exactly:

    centre      whole                        part
    mean        sum above - count * floor    count * (total - length * floor)
    statistic   sum above - count * centre   total - length * centre

with `floor` the mean rounded down. Then deviation = 2 whole - 2 part / length, and the
pinball cost of level t is whole - (1 - t) part. In the drawing: whole = 90 - 40 = 50,
part = 0, deviation 100 = 30 + 10 + 10 + 50.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray, WordArray
from blowfish_fast.kernels._jit import kernel, popcount, prefetch

# The state of one sliding window, in the order of a small int64 array.
TOTAL, COUNT, SUM, POINTER, STEPS, WINDOWS, MODE = range(7)
STATE_SIZE = 8

CLOSED, WALKING, EXHAUSTED, TREE = range(4)

# A walk may take this many steps per window on average, and this many per
# distinct value besides: above it the Fenwick tree is cheaper.
STEPS_PER_WINDOW = 48
STEPS_PER_VALUE = 4

# Tallies beyond this many entries leave the nearest cache; fetching ahead pays.
FAR = 32768
AHEAD = 16

MEAN = -1  # in place of the number of cells above an order statistic


class Slides(NamedTuple):
    """What leaves and enters the window: slide i drops ``old[i]``, takes ``new[i]``.

    Attributes
    ----------
    old : ndarray of int64
        The values that leave.
    new : ndarray of int64
        The values that enter.
    old_ranks : ndarray of int32
        Their ranks.
    new_ranks : ndarray of int32
        Their ranks.
    """

    old: IntArray
    new: IntArray
    old_ranks: AnyArray
    new_ranks: AnyArray


@kernel
def floor_mean(total: np.int64, length: int, shift: int) -> np.int64:
    """Return ``total // length``; a shift is much cheaper than a division.

    Parameters
    ----------
    total : int
        The sum of a window.
    length : int
        Its cells.
    shift : int
        Binary logarithm of the length, or negative if that is no whole number.

    Returns
    -------
    int
        The mean, rounded down.
    """
    if shift >= 0:
        return total >> shift
    return total // length


@kernel
def open_window(
    values: IntArray,
    ranks: AnyArray,
    length: int,
    shift: int,
    above: int,
    table: IntArray,
    tally: AnyArray,
    state: IntArray,
    whole: IntArray,
    part: IntArray,
) -> None:
    """Set the pointer for the window of the first `length` cells, and emit it.

    Parameters
    ----------
    values : ndarray of int64
        Cells, from the first one of the window on.
    ranks : ndarray of int32
        Their ranks, from 1.
    length : int
        Cells of the window.
    shift : int
        Binary logarithm of the length, or negative.
    above : int
        How many cells lie above the centre; negative for the mean.
    table : ndarray of int64, shape (distinct + 2,)
        The value of each rank, between two sentinels.
    tally : ndarray of int32, shape (distinct + 2,)
        Receives the number of cells by rank.
    state : ndarray of int64, shape (STATE_SIZE,)
        Receives where the pointer stands.
    whole : ndarray of int64
        Receives the first number of the window.
    part : ndarray of int64
        Receives the second one.
    """
    distinct = table.size - 2
    for rank in range(distinct + 2):
        tally[rank] = 0
    total = np.int64(0)
    for cell in range(length):
        total += values[cell]
        tally[np.uintp(ranks[cell])] += 1
    count = np.int64(0)
    high = np.int64(0)
    if above < 0:
        centre = floor_mean(total, length, shift)
        pointer = np.int64(1)
        beyond = np.int64(distinct + 1)
        while pointer < beyond:
            middle = (pointer + beyond) >> 1
            if table[middle] <= centre:
                pointer = middle + 1
            else:
                beyond = middle
        for cell in range(length):
            is_above = np.int64(values[cell] > centre)
            count += is_above
            high += (-is_above) & values[cell]
        whole[0] = high - count * centre
        part[0] = count * (total - centre * length)
    else:
        pointer = np.int64(distinct + 1)
        while count + np.int64(tally[pointer - 1]) <= above:
            pointer -= 1
            copies = np.int64(tally[pointer])
            count += copies
            high += copies * table[pointer]
        centre = table[pointer - 1]
        whole[0] = high - count * centre
        part[0] = total - centre * length
    state[TOTAL] = total
    state[COUNT] = count
    state[SUM] = high
    state[POINTER] = pointer
    state[STEPS] = 0
    state[WINDOWS] = 1
    state[MODE] = WALKING


@kernel
def walk_windows(
    slides: Slides,
    length: int,
    shift: int,
    above: int | None,
    table: IntArray,
    tally: AnyArray,
    state: IntArray,
    whole: IntArray,
    part: IntArray,
) -> int:
    """Slide on and emit ``whole.size`` windows.

    The walk ends early after the window that exhausts its steps. Indices are unsigned
    because Numba adds a test for negative ones to every signed, computed index.

    Parameters
    ----------
    slides : Slides
        What leaves and enters.
    length : int
        Cells of the window.
    shift : int
        Binary logarithm of the length, or negative.
    above : int or None
        The centre is the order statistic with so many cells over it; None for the mean.
        The compiler leaves the other branches out.
    table : ndarray of int64, shape (distinct + 2,)
        The value of each rank, between two sentinels.
    tally : ndarray of int32, shape (distinct + 2,)
        Cells of the window by rank; changed.
    state : ndarray of int64, shape (STATE_SIZE,)
        Where the pointer stands; changed.
    whole : ndarray of int64
        Receives the first number of each window.
    part : ndarray of int64
        Receives the second one.

    Returns
    -------
    int
        How many windows were emitted.
    """
    old, new = slides.old, slides.new
    old_ranks, new_ranks = slides.old_ranks, slides.new_ranks
    total = state[TOTAL]
    count = state[COUNT]
    high = state[SUM]
    pointer = state[POINTER]
    steps = state[STEPS]
    allowed = STEPS_PER_VALUE * table.size + STEPS_PER_WINDOW * state[WINDOWS]
    wanted = whole.size
    far = wanted - AHEAD if table.size > FAR else 0
    at_pointer = table[pointer]
    under_pointer = table[pointer - 1]
    centre = under_pointer if above is not None else floor_mean(total, length, shift)
    emitted = wanted
    for i in range(wanted):
        leaving = old[i]
        entering = new[i]
        if i < far:
            prefetch(tally, np.int64(old_ranks[i + AHEAD]))
            prefetch(tally, np.int64(new_ranks[i + AHEAD]))
        if leaving != entering:
            leaving_rank = np.int64(old_ranks[i])
            entering_rank = np.int64(new_ranks[i])
            tally[np.uintp(leaving_rank)] -= 1
            tally[np.uintp(entering_rank)] += 1
            total += entering - leaving
            was_above = np.int64(leaving_rank >= pointer)
            is_above = np.int64(entering_rank >= pointer)
            count += is_above - was_above
            high += ((-is_above) & entering) - ((-was_above) & leaving)
            begun = pointer
            if above is None:
                centre = total >> shift if shift >= 0 else total // length
                while at_pointer <= centre:
                    copies = np.int64(tally[np.uintp(pointer)])
                    count -= copies
                    high -= copies * at_pointer
                    pointer += 1
                    under_pointer = at_pointer
                    at_pointer = table[np.uintp(pointer)]
                while under_pointer > centre:
                    pointer -= 1
                    copies = np.int64(tally[np.uintp(pointer)])
                    count += copies
                    high += copies * under_pointer
                    at_pointer = under_pointer
                    under_pointer = table[np.uintp(pointer - 1)]
            else:
                while count > above:
                    copies = np.int64(tally[np.uintp(pointer)])
                    count -= copies
                    high -= copies * table[np.uintp(pointer)]
                    pointer += 1
                while count + np.int64(tally[np.uintp(pointer - 1)]) <= above:
                    pointer -= 1
                    copies = np.int64(tally[np.uintp(pointer)])
                    count += copies
                    high += copies * table[np.uintp(pointer)]
            if pointer != begun:
                if above is not None:
                    centre = table[np.uintp(pointer - 1)]
                steps += abs(pointer - begun)
                if steps > allowed + STEPS_PER_WINDOW * i:
                    emitted = i + 1
        whole[i] = high - count * centre
        rest = total - centre * length
        part[i] = rest if above is not None else count * rest
        if emitted == i + 1:
            break
    state[TOTAL] = total
    state[COUNT] = count
    state[SUM] = high
    state[POINTER] = pointer
    state[STEPS] = steps
    state[WINDOWS] += emitted
    if emitted < wanted:
        state[MODE] = EXHAUSTED
    return emitted


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

    A bit for each parent rank that occurs, and the number of bits before each word,
    give dense ranks without sorting.

    Parameters
    ----------
    parent : ndarray of int32
        Ranks of the cells in a longer array (or small values themselves).
    parent_distinct : int
        The largest of them.
    values : ndarray of int64
        The value of each cell.
    bitmap : ndarray of uint64
        Scratch for parent_distinct // 64 + 1 words.
    marks_before : ndarray of int32
        Scratch for as many.
    ranks : ndarray of int32
        Receives dense ranks from 1 on.
    table : ndarray of int64
        Receives the value of each rank, between two sentinels.

    Returns
    -------
    int
        The number of different values.
    """
    words = (parent_distinct >> 6) + 1
    six = np.uint64(6)
    low_bits = np.uint64(63)
    lowest_bit = np.uint64(1)
    for word in range(words):
        bitmap[word] = np.uint64(0)
    for cell in range(values.size):
        rank = np.uint64(parent[cell])
        bitmap[rank >> six] |= lowest_bit << (rank & low_bits)
    following = 1
    for word in range(words):
        marks_before[word] = following
        following += popcount(bitmap[word])
    for cell in range(values.size):
        rank = np.uint64(parent[cell])
        word_of_rank = rank >> six
        marks_below = (lowest_bit << (rank & low_bits)) - lowest_bit
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

    O(n) when the largest value is at most about 16 n, else one sort.
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


@kernel
def plant_tree(tally: AnyArray, table: IntArray, tree: IntArray) -> None:
    """Turn the tally of a window into its Fenwick tree. O(distinct).

    Parameters
    ----------
    tally : ndarray of int32
        Cells of the window by rank.
    table : ndarray of int64, shape (distinct + 2,)
        The value of each rank.
    tree : ndarray of int64
        Receives 2 ``table.size`` numbers.
    """
    distinct = table.size - 2
    tree[: 2 * (distinct + 1)] = 0
    for rank in range(1, distinct + 1):
        copies = np.int64(tally[rank])
        tree[2 * rank] += copies
        tree[2 * rank + 1] += copies * table[rank]
        above = rank + (rank & -rank)
        if above <= distinct:
            tree[2 * above] += tree[2 * rank]
            tree[2 * above + 1] += tree[2 * rank + 1]


@kernel
def add_cell(
    tree: IntArray, distinct: int, rank: np.int64, copies: int, value: np.int64
) -> None:
    """Add one cell to the nodes over its rank, or take it out. O(log distinct).

    Parameters
    ----------
    tree : ndarray of int64
        The tree; changed.
    distinct : int
        Number of ranks.
    rank : int
        Rank of the cell.
    copies : int
        1 to add it, -1 to take it out.
    value : int
        Its value, negative to take it out.
    """
    node = np.int64(rank)
    while node <= distinct:
        tree[2 * node] += copies
        tree[2 * node + 1] += value
        node += node & -node


@kernel
def part_cells(
    tree: IntArray,
    table: IntArray,
    length: int,
    total: np.int64,
    centre: np.int64,
    above: int | None,
) -> tuple[np.int64, np.int64, np.int64]:
    """Return the centre, and the number and the sum of the window's cells above it.

    Copies of an order statistic count as above: they add nothing to the sum of
    distances.

    Parameters
    ----------
    tree : ndarray of int64
        The window's tree.
    table : ndarray of int64, shape (distinct + 2,)
        The value of each rank.
    length : int
        Cells of the window.
    total : int
        Their sum.
    centre : int
        The centre, if `above` is None.
    above : int or None
        The centre is the order statistic with so many cells over it.

    Returns
    -------
    centre : int
        The centre.
    count : int
        Cells above it.
    high : int
        Their sum.
    """
    distinct = table.size - 2
    reach = np.int64(1)
    while reach * 2 <= distinct:
        reach *= 2
    node = np.int64(0)
    count = np.int64(length)
    high = np.int64(total)
    while reach > 0:
        below = node + reach
        if below <= distinct:
            if above is None:
                moves = table[below] <= centre
            else:
                moves = count - tree[2 * below] > above
            if moves:
                node = below
                count -= tree[2 * below]
                high -= tree[2 * below + 1]
        reach >>= 1
    return centre if above is None else table[node + 1], count, high


@kernel
def slide_tree(
    slides: Slides,
    length: int,
    shift: int,
    above: int,
    table: IntArray,
    tree: IntArray,
    state: IntArray,
    whole: IntArray,
    part: IntArray,
) -> None:
    """Slide on and emit ``whole.size`` windows; as `walk_windows`, on the tree.

    Parameters
    ----------
    slides : Slides
        What leaves and enters.
    length : int
        Cells of the window.
    shift : int
        Binary logarithm of the length, or negative.
    above : int
        How many cells lie above the centre; negative for the mean.
    table : ndarray of int64, shape (distinct + 2,)
        The value of each rank.
    tree : ndarray of int64
        The window's tree; changed.
    state : ndarray of int64, shape (STATE_SIZE,)
        The window's total; changed.
    whole : ndarray of int64
        Receives the first number of each window.
    part : ndarray of int64
        Receives the second one.
    """
    old, new = slides.old, slides.new
    old_ranks, new_ranks = slides.old_ranks, slides.new_ranks
    distinct = table.size - 2
    total = state[TOTAL]
    for i in range(whole.size):
        leaving = old[i]
        entering = new[i]
        if leaving != entering:
            add_cell(tree, distinct, old_ranks[i], -1, -leaving)
            add_cell(tree, distinct, new_ranks[i], 1, entering)
            total += entering - leaving
        centre = floor_mean(total, length, shift)
        if above < 0:
            _, count, high = part_cells(tree, table, length, total, centre, None)
            part[i] = count * (total - centre * length)
        else:
            centre, count, high = part_cells(tree, table, length, total, centre, above)
            part[i] = total - centre * length
        whole[i] = high - count * centre
    state[TOTAL] = total
