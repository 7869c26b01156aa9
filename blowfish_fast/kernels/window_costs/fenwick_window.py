"""The sliding window of `moving_pointer` on a Fenwick tree, for the worst case.

Serves DAWA's first stage where values are arranged so that the centre of a window
jumps over many ranks at every slide. The tree keeps, for stretches of ranks, the
number of the window's cells and their sum; a descent finds the centre.

    rank        1     2     3     4     5     6     7     8
    node 1     [1]         [3]         [5]         [7]
    node 2     [1 -- 2]                [5 -- 6]
    node 4     [1 -------------- 4]
    node 8     [1 ---------------------------------------- 8]

Node i covers the ranks (i - lowbit(i), i]; ``tree[2 i]`` is its number of cells and
``tree[2 i + 1]`` their sum. A slide and a descent cost O(log distinct).
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast.kernels._jit import kernel

from .moving_pointer import TOTAL, Slides, floor_mean


@kernel
def plant_tree(tally: AnyArray, table: IntArray, tree: IntArray) -> None:
    """Turn the tally of a window into its tree, in O(distinct).

    `tree` holds at least twice ``table.size`` entries.
    """
    distinct = table.size - 2
    for entry in range(2 * (distinct + 1)):
        tree[entry] = 0
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
    """Add one cell to the nodes over its rank, or take it out (both negative)."""
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

    `centre` itself, or with `above` the statistic with so many cells over it, whose
    copies count as above: they add nothing to the sum of distances.
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
    """Slide on and emit ``whole.size`` windows around the mean or a statistic.

    `above` is negative for the mean, else the number of cells over the statistic;
    the other arguments are those of the walks in `moving_pointer`.
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
            found = part_cells(tree, table, length, total, centre, above)
            centre, count, high = found
            part[i] = total - centre * length
        whole[i] = high - count * centre
    state[TOTAL] = total
