"""Deviation of every prefix and suffix of a cluster, so that all its splits are priced.

Serves hierarchical partitioning (P-HP), which cuts clusters of cells in two, level by
level. `before` and `after` hold, for each cell, the deviation from the mean of its
cluster's cells up to it, and from it on:

    cluster     3  0  2 | 7  1        a split in front of cell i costs
    before      0  3  3 | 0  6            before[i - 1] + after[i]
    after       3  2  0 | 6  0

A sweep from one end keeps the cells met so far in a Fenwick tree over the cluster's
distinct values (number and sum, as in ``kernels.fenwick_window``), and a descent finds
those above the mean. A left child keeps `before` and a right child `after`, so a
split is followed by one sweep per child. O(n log n) a level; values stay sorted by
stable parting.

Costs are whole numbers of 2^-bits: the exact deviation, rounded down.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.sampling.cost_choice import NO_CANDIDATE

from .fenwick_window import add_cell, part_cells

BEFORE, AFTER = 1, 2
"""Which ends a cluster is swept from; 3 for both."""

FINEST_BITS = 8


def bisection_grid(cells: int) -> tuple[int, int]:
    """Return the fraction bits of costs and the count at which cells are cut.

    Both depend on the number of cells alone: costs of all clusters together, with a
    price of at most 2^57 for all their buckets, stay below 2^61.

    Examples
    --------
    >>> bisection_grid(2**20)
    (8, 2147483648)
    """
    if not 1 <= cells <= 1 << 28:
        raise InputError(
            f"bisections are priced for 1 to 2^28 cells, not {cells}. Use a coarser "
            "domain"
        )
    size = (cells - 1).bit_length()
    # A remainder below one cell, times cells, times two, in fraction bits.
    bits = min(FINEST_BITS, 60 - 2 * size)
    return bits, 1 << (59 - bits - size)


@kernel
def _sweep(
    values: IntArray,
    ranks: IntArray,
    levels: IntArray,
    tree: IntArray,
    first: int,
    step: int,
    count: int,
    bits: int,
    costs: IntArray,
) -> None:
    """Write the cost of the cells met, from `first` on in steps of +1 or -1."""
    tree[: 2 * levels.size] = 0
    total = np.int64(0)
    cell = first
    for met in range(1, count + 1):
        value = values[cell]
        total += value
        add_cell(tree, levels.size - 2, ranks[cell], 1, value)
        # A whole number exceeds the mean exactly if it exceeds its whole part.
        mean = total // met
        _, above, high = part_cells(tree, levels, met, total, mean, None)
        part = above * (total - mean * met) << (bits + 1)
        costs[cell] = ((high - above * mean) << (bits + 1)) - (part + met - 1) // met
        cell += step


@kernel
def _sweep_clusters(
    values: IntArray,
    ranked: IntArray,
    starts: IntArray,
    ends: IntArray,
    sides: IntArray,
    bits: int,
    before: IntArray,
    after: IntArray,
    longest: int,
) -> None:
    ranks = np.empty(values.size, dtype=np.int64)
    levels = np.empty(longest + 2, dtype=np.int64)
    tree = np.empty(2 * (longest + 2), dtype=np.int64)
    for cluster in range(starts.size):
        start = starts[cluster]
        end = ends[cluster]
        # Not a literal, for which the sweeps below would be compiled a second time.
        distinct = int(0)  # noqa: RUF046, UP018
        for place in range(start, end):
            cell = ranked[place]
            if distinct == 0 or values[cell] != levels[distinct]:
                distinct += 1
                levels[distinct] = values[cell]
            ranks[cell] = distinct
        size, table = end - start, levels[: distinct + 2]
        if sides[cluster] & BEFORE:
            _sweep(values, ranks, table, tree, start, 1, size, bits, before)
        if sides[cluster] & AFTER:
            _sweep(values, ranks, table, tree, end - 1, -1, size, bits, after)


def sweep_clusters(
    values: IntArray,
    ranked: IntArray,
    starts: IntArray,
    ends: IntArray,
    sides: IntArray,
    bits: int,
    before: IntArray,
    after: IntArray,
) -> None:
    """Fill in the deviations of prefixes and suffixes of some clusters.

    Clusters are disjoint, non-empty stretches [start, end) of `values`, counts up to
    the cap of `bisection_grid`; their places in `ranked` hold their cells by increasing
    value. `sides` says what to fill in, `BEFORE`, `AFTER` or their sum: the cost of
    each cell's cluster up to the cell, and from it on, in units of 2^-bits.
    """
    cells = values.size
    shapes = {ranked.shape, before.shape, after.shape, values.shape}
    if shapes != {(cells,)} or not starts.shape == ends.shape == sides.shape:
        raise InputError("values, ranks and costs have one number for each cell")
    if starts.size == 0:
        return
    if starts.min() < 0 or ends.max() > cells or (starts >= ends).any():
        raise InputError(f"clusters are stretches of the {cells} cells")
    longest = int((ends - starts).max())
    _sweep_clusters(values, ranked, starts, ends, sides, bits, before, after, longest)


@kernel
def _part_clusters(
    ranked: IntArray, starts: IntArray, middles: IntArray, ends: IntArray
) -> None:
    right = np.empty(ranked.size, dtype=np.int64)
    for cluster in range(starts.size):
        kept = starts[cluster]
        moved = 0
        for place in range(starts[cluster], ends[cluster]):
            cell = ranked[place]
            if cell < middles[cluster]:
                ranked[kept] = cell
                kept += 1
            else:
                right[moved] = cell
                moved += 1
        for place in range(moved):
            ranked[kept + place] = right[place]


def part_clusters(
    ranked: IntArray, starts: IntArray, middles: IntArray, ends: IntArray
) -> None:
    """Part the sorted cells of clusters that are cut in two, in place and stably."""
    if not starts.shape == middles.shape == ends.shape:
        raise InputError("each cluster has a start, a middle and an end")
    if starts.size and (starts.min() < 0 or ends.max() > ranked.size):
        raise InputError(f"clusters are stretches of the {ranked.size} cells")
    _part_clusters(ranked, starts, middles, ends)


@kernel
def _split_table(
    before: IntArray, after: IntArray, starts: IntArray, price: int, costs: IntArray
) -> None:
    for row in range(starts.size):
        start = starts[row]
        for split in range(1, costs.shape[1]):
            if costs[row, split] != NO_CANDIDATE:
                cell = start + split
                costs[row, split] = before[cell - 1] + after[cell] + 2 * price
        costs[row, 0] = after[start] + price


def split_table(
    before: IntArray,
    after: IntArray,
    starts: IntArray,
    ends: IntArray,
    price: int,
) -> IntArray:
    """Return the cost of leaving each cluster whole, and of each of its splits.

    Clusters are stretches of cells, `before` and `after` from `sweep_clusters`; every
    bucket costs `price` more. Column 0: the cluster as it is; column j: cut in front of
    its cell j. Beyond the cluster's end there is `NO_CANDIDATE`.
    """
    sizes = ends - starts
    if sizes.size == 0 or sizes.min() < 1 or starts.min() < 0:
        raise InputError("clusters hold one cell or more")
    if ends.max() > before.size or before.shape != after.shape:
        raise InputError(f"clusters are stretches of the {before.size} cells")
    columns = np.arange(int(sizes.max()))
    costs = np.where(columns < sizes[:, None], np.int64(0), np.int64(NO_CANDIDATE))
    _split_table(before, after, starts, price, costs)
    return costs
