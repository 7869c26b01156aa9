"""Costs of buckets for two mechanisms of the literature, `Php` and `StructureFirst`.

`Php` (hierarchical partitioning) cuts clusters of cells in two, level by level. A
cluster costs its *deviation*: the sum of the distances of its cells from their mean.
For each cell, `before` holds the deviation of its cluster's cells up to it and `after`
that of its cluster's cells from it on. Here two clusters, with deviations rounded down
to whole numbers (3, 0 and 2 deviate by 10/3 from their mean 5/3):

    cluster     3  0  2 | 7  1        a split in front of cell i costs
    before      0  3  3 | 0  6            before[i - 1] + after[i]
    after       3  2  0 | 6  0        in front of the 2: before 3 + after 0 = 3

A sweep from one end keeps the cells met so far in a Fenwick tree over the cluster's
distinct values. After a split the left part keeps its `before` and the right part its
`after`, so one sweep for each part is enough. A level takes O(n log n). Values are
sorted once: a part takes its cells out of the sorted ones in their order.

`StructureFirst` lists the squared errors of all buckets between few public borders, and
then finds the best buckets by dynamic programming:

    borders     0     1     2     3             errors[2, 0] = error of one bucket
    cells       |--3--|--5--|--5--|                            from border 0 to 2

    heads[i, j] = least error of i + 1 buckets from border 0 to border j
                = min over b of heads[i - 1, b] + errors[j, b]

All costs are integers in units of 2^-bits: the exact costs, rounded down.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import rises
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.sampling.exponential_choice import NO_CANDIDATE

from .moving_pointer import add_cell, part_cells

BEFORE, AFTER = 1, 2
"""Which of the two arrays a sweep fills; their sum, 3, stands for both."""

FINEST_BITS = 8
"""The most bits behind the point of a cost."""


def bisection_grid(cells: int) -> tuple[int, int]:
    """Return the bits behind the point of costs, and the count at which cells are cut.

    With these two, the costs of all clusters together, and a price of at most 2^57 for
    all their buckets, stay below 2^61, whatever the counts are.

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
    # `_sweep` multiplies a remainder, which is below the number of cells, by a number
    # of cells and by 2^(bits + 1); the product has to stay below 2^61.
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
    """Write the deviation of the cells met so far, from `first` on in steps of 1 or -1.

    With `above` cells over the mean, which add up to `high`, the deviation is
    2 (high - above mean): what is over the mean and what is under it are equal. The
    mean is a whole part and a rest, (total - mean met) / met, and both are exact.
    """
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
    """Fill in the deviations of prefixes and suffixes of disjoint clusters.

    Parameters
    ----------
    values : ndarray of int64, shape (cells,)
        Counts up to the cap of `bisection_grid`.
    ranked : ndarray of int64, shape (cells,)
        The places of a cluster hold its cells by increasing value.
    starts : ndarray of int64, shape (clusters,)
        The first cell of each cluster.
    ends : ndarray of int64, shape (clusters,)
        The cell after its last.
    sides : ndarray of int64, shape (clusters,)
        `BEFORE`, `AFTER` or their sum: which of the two is filled.
    bits : int
        Costs are multiples of 2^-bits.
    before : ndarray of int64, shape (cells,)
        Receives the deviations of the cluster's cells up to each cell.
    after : ndarray of int64, shape (cells,)
        Receives those from each cell on.

    Raises
    ------
    InputError
        If clusters leave the cells, or arrays differ in length.
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
        left_place = starts[cluster]
        moved = 0
        for place in range(starts[cluster], ends[cluster]):
            cell = ranked[place]
            if cell < middles[cluster]:
                ranked[left_place] = cell
                left_place += 1
            else:
                right[moved] = cell
                moved += 1
        for place in range(moved):
            ranked[left_place + place] = right[place]


def part_clusters(
    ranked: IntArray, starts: IntArray, middles: IntArray, ends: IntArray
) -> None:
    """Part the sorted cells of clusters that are cut in two, in place and in order.

    Parameters
    ----------
    ranked : ndarray of int64, shape (cells,)
        The cells of each cluster by increasing value; changed.
    starts : ndarray of int64, shape (clusters,)
        The first cell of each cluster.
    middles : ndarray of int64, shape (clusters,)
        The cell in front of which it is cut.
    ends : ndarray of int64, shape (clusters,)
        The cell after its last.

    Raises
    ------
    InputError
        If clusters leave the cells, or arrays differ in length.
    """
    if not starts.shape == middles.shape == ends.shape:
        raise InputError("each cluster has a start, a middle and an end")
    if starts.size and (starts.min() < 0 or ends.max() > ranked.size):
        raise InputError(f"clusters are stretches of the {ranked.size} cells")
    _part_clusters(ranked, starts, middles, ends)


def split_table(
    before: IntArray,
    after: IntArray,
    starts: IntArray,
    ends: IntArray,
    price: int,
) -> IntArray:
    """Return the cost of leaving each cluster whole, and of each of its splits.

    Parameters
    ----------
    before : ndarray of int64, shape (cells,)
        What `sweep_clusters` filled.
    after : ndarray of int64, shape (cells,)
        What `sweep_clusters` filled.
    starts : ndarray of int64, shape (clusters,)
        The first cell of each cluster.
    ends : ndarray of int64, shape (clusters,)
        The cell after its last.
    price : int
        What every bucket costs beside its deviation, in the same units.

    Returns
    -------
    ndarray of int64, shape (clusters, longest)
        Column 0: the cluster as it is; column j: cut in front of its cell j; beyond the
        cluster's end `NO_CANDIDATE`.

    Raises
    ------
    InputError
        If a cluster is empty or leaves the cells.
    """
    sizes = ends - starts
    if sizes.size == 0 or sizes.min() < 1 or starts.min() < 0:
        raise InputError("clusters hold one cell or more")
    if ends.max() > before.size or before.shape != after.shape:
        raise InputError(f"clusters are stretches of the {before.size} cells")
    columns = np.arange(int(sizes.max()))
    cells = np.minimum(starts[:, None] + columns, ends[:, None] - 1)
    costs: IntArray = before[cells - 1] + after[cells] + 2 * price
    costs[:, 0] = after[starts] + price
    costs[columns >= sizes[:, None]] = NO_CANDIDATE
    return costs


ROOM_BITS = 60
"""Squares of all counts together stay below 2 to this power."""
# Borders that are passed over together where none of them can be the best.
_GROUP = 32


def squares_grid(cells: int, largest: int) -> int:
    """Return the fraction bits of the squared errors of some counts.

    Parameters
    ----------
    cells : int
        Number of cells.
    largest : int
        The largest count.

    Returns
    -------
    int
        The number of bits behind the point.

    Raises
    ------
    InputError
        If the squares of the counts would not fit 60 bits together.
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
    """Return the squared errors of all buckets between public borders. O(n + m^2).

    Parameters
    ----------
    values : ndarray of int64, shape (cells,)
        Counts.
    borders : ndarray of int64, shape (m + 1,)
        Rising from 0 to the number of cells.
    bits : int
        Errors are multiples of 2^-bits, from `squares_grid`.

    Returns
    -------
    ndarray of int64, shape (m + 1, m + 1)
        Entry (j, i) for i < j: the cells from border i to border j; 0 elsewhere.

    Raises
    ------
    InputError
        If the borders do not rise from 0 to the number of cells.
    """
    if values.size == 0 or not rises(borders, values.size, 1):
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
def _best_heads(errors: IntArray, most: int) -> IntArray:
    """Find the least errors; most borders are never looked at.

    The last bucket of a head begins at some border. Borders are taken in groups: the
    least error before a group and the least error of a bucket from it on bound what the
    group can give, and it is searched only if that is below the best so far. From one
    end to the next the best border hardly moves, so its group is searched first.
    """
    count = errors.shape[0]
    heads = np.zeros((most, count), dtype=np.int64)
    groups = (count + _GROUP - 1) // _GROUP
    least_errors = np.zeros((count, groups), dtype=np.int64)
    least_heads = np.zeros(groups, dtype=np.int64)
    for end in range(1, count):
        heads[0, end] = errors[end, 0]
        _group_minima(errors[end], 0, end, least_errors[end])
    for buckets in range(1, most):
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
                least_of_group = least
                for place in range(begin, past):
                    least_of_group = min(least_of_group, shorter[place] + row[place])
                if least_of_group < least:
                    least, likely = least_of_group, group
            heads[buckets, end] = least
    return heads


def best_heads(errors: IntArray, buckets: int) -> IntArray:
    """Return the least errors of 1, 2, ... buckets up to each border.

    It takes O(m^2 buckets) at worst, mostly a third of it.

    Parameters
    ----------
    errors : ndarray of int64, shape (m + 1, m + 1)
        What `bucket_errors` returned.
    buckets : int
        The largest number of buckets.

    Returns
    -------
    ndarray of int64, shape (buckets, m + 1)
        Entry (i, j) for j > i: the least error of i + 1 buckets from border 0 to border
        j. Entries with fewer borders than buckets are 0.

    Raises
    ------
    InputError
        If there are more buckets than borders allow.
    """
    borders = errors.shape[0] - 1
    if errors.shape != (borders + 1, borders + 1) or not 1 <= buckets <= borders:
        raise InputError(
            f"between {borders + 1} borders lie 1 to {borders} buckets, not {buckets}"
        )
    return _best_heads(errors, buckets)
