"""The core of DAWA, written into arrays of the caller: partition, weights, leaves.

Serves `c_entries`, whose callers bring pointers and no Python objects. Each kernel
checks what it is given and returns a number, negative for an error: `ERRORS` lists the
meanings. Nothing is drawn here; noise arrives as an array.

    counts, prices, noise     partition_into     boundaries       `interval_partition`
    ranges of buckets         weights_into       node weights     `greedy_weights`
    noisy nodes, variances    leaves_into        leaves           `tree.fit`

The partition does in one compiled function, on one thread, what `dyadic_costs` plans as
jobs for several; costs, ties and therefore results are the same.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.partition import interval_partition as programme
from blowfish_fast.kernels.tree.fit import (
    fill_variances,
    fit_downward,
    fit_upward,
)
from blowfish_fast.kernels.tree.shape import regular_first_child, weights_from_shares
from blowfish_fast.kernels.tree_scaling.budget_shares import Priorities, RegularLevels
from blowfish_fast.kernels.tree_scaling.greedy_weights import greedy_shares
from blowfish_fast.kernels.tree_scaling.range_queries import (
    SortedRanges,
    order_by_first,
)
from blowfish_fast.kernels.window_costs import count_grid, window_slide
from blowfish_fast.kernels.window_costs.dyadic_costs import BLOCK
from blowfish_fast.kernels.window_costs.moving_pointer import (
    MEAN,
    STATE_SIZE,
    _rank_sorted,
    rank_stretch,
)
from blowfish_fast.kernels.window_costs.short_windows import (
    SHORT,
    SHORT_LEVELS,
    short_deviations,
)
from blowfish_fast.kernels.window_costs.window_slide import CHUNK, VALUES_PER_CELL

BAD_SIZE, BAD_VALUE, TOO_LARGE, OUT_OF_MEMORY = -1, -2, -3, -4
ERRORS = {
    BAD_SIZE: ("BAD_SIZE", "sizes out of range, or not fitting one another"),
    BAD_VALUE: ("BAD_VALUE", "a value is negative, not a number or out of range"),
    TOO_LARGE: ("TOO_LARGE", "sums could leave 64 bits: use a coarser grid"),
    OUT_OF_MEMORY: ("OUT_OF_MEMORY", "no room for scratch"),
}
"""Every negative result: its name in C and its meaning."""

DECAY, ROOT_EXACT, PRUNE = 1, 2, 4
"""Flags of ``blowfish_greedy_weights``, as the arguments of `greedy_scaling`."""

MOST_CELLS = 1 << 28
MOST_LEVELS = 29
NOISE_BITS = 60
BLOCK_LEVEL = 15  # buckets as long as a block of ends
DIGIT_BITS = 11
DIGITS = 1 << DIGIT_BITS


@kernel
def _levels(leaves: int, fan_out: int) -> tuple[IntArray, IntArray]:
    """Return the sizes and offsets of `shape.tree_levels`."""
    sizes = np.full(MOST_LEVELS, leaves)
    offsets = np.zeros(MOST_LEVELS + 1, dtype=np.int64)
    offsets[1] = leaves
    count = 1
    while sizes[count - 1] > 1:
        sizes[count] = (sizes[count - 1] + fan_out - 1) // fan_out
        offsets[count + 1] = offsets[count] + sizes[count]
        count += 1
    return sizes[:count], offsets[: count + 1]


@kernel
def tree_nodes(leaves: int, fan_out: int) -> int:
    """Return how many nodes a regular tree has.

    Parameters
    ----------
    leaves : int
        Number of leaves.
    fan_out : int
        The most children of a node.

    Returns
    -------
    int
        The number of nodes; `BAD_SIZE` if there is no such tree.
    """
    if not 1 <= leaves <= MOST_CELLS or not 2 <= fan_out <= MOST_CELLS:
        return BAD_SIZE
    nodes = size = leaves
    while size > 1:
        size = (size + fan_out - 1) // fan_out
        nodes += size
    return nodes


@kernel
def _extremes(counts: IntArray) -> tuple[int, int]:
    """Return the lowest and the highest count."""
    # The array's own methods ask for functions of the interpreter.
    low = high = counts[0]
    for count in counts:
        low, high = min(low, count), max(high, count)
    return low, high


@kernel
def _check_partition(
    counts: IntArray, prices: IntArray, noise: IntArray, grid: int
) -> int:
    """Return 0 if every sum of costs, prices and noise stays below 2^62."""
    cells = counts.size
    low, high = _extremes(counts)
    if low < 0:
        return BAD_VALUE
    largest = high - low
    room = np.int64(1) << (
        count_grid.DATA_BITS + min(max(grid, -count_grid.FINEST_BITS), 1)
    )
    if largest > 0 and (
        largest > (1 << count_grid.VALUE_BITS)
        or grid < -count_grid.FINEST_BITS
        or largest > room // cells
    ):
        return TOO_LARGE
    for price in prices:
        if abs(price) > (1 << 55) or price < -((1 << count_grid.DATA_BITS) // cells):
            return TOO_LARGE
    most = (np.int64(1) << NOISE_BITS) // cells
    for drawn in noise:
        if drawn < 0:
            return BAD_VALUE
        if drawn > most:
            return TOO_LARGE
    return 0


@kernel
def _ascending(values: IntArray, largest: int) -> IntArray:
    """Return the places of the values in ascending order, by digits of 11 bits."""
    order = np.arange(values.size)
    other = np.empty(values.size, dtype=np.int64)
    shift = 0
    while largest >> shift > 0:
        begin = np.zeros(DIGITS + 1, dtype=np.int64)
        for value in values:
            begin[((value >> shift) & (DIGITS - 1)) + 1] += 1
        for digit in range(DIGITS):
            begin[digit + 1] += begin[digit]
        for place in range(order.size):
            cell = order[place]
            digit = (values[cell] >> shift) & (DIGITS - 1)
            other[begin[digit]] = cell
            begin[digit] += 1
        order, other = other, order
        shift += DIGIT_BITS
    return order


@kernel
def _recipes(prices: IntArray, grid: int) -> IntArray:
    """Return the recipes of `window_slide.window_recipe` for all powers of two."""
    recipes = np.zeros((prices.size, 8), dtype=np.int64)
    for level in range(prices.size):
        recipes[level, window_slide.FORM] = window_slide.GRID_DEVIATION
        recipes[level, window_slide.LENGTH] = np.int64(1) << level
        recipes[level, window_slide.SHIFT] = level
        recipes[level, window_slide.ABOVE] = MEAN
        recipes[level, window_slide.EXPONENT] = grid
        recipes[level, window_slide.DENOMINATOR] = 1
        recipes[level, window_slide.PENALTY] = prices[level]
    return recipes


@kernel
def partition_into(
    counts: IntArray,
    prices: IntArray,
    noise: IntArray,
    grid: int,
    boundaries: IntArray,
) -> int:
    """Find the cheapest partition into power-of-two buckets, on one thread.

    Parameters
    ----------
    counts : ndarray of int64, shape (cells,)
        The counts.
    prices : ndarray of int64, shape (levels,)
        Price of a bucket of 2^k cells, in steps of 2^grid counts.
    noise : ndarray of int64, shape (levels * (cells + 1),)
        The bucket of 2^k cells that ends at e is cheaper by ``noise[k * (cells + 1) +
        e]``; empty for no noise.
    grid : int
        Binary logarithm of a step of the costs.
    boundaries : ndarray of int64, shape (cells + 1,)
        Receives the boundaries, from 0 to the number of cells.

    Returns
    -------
    int
        The number of buckets, or one of `ERRORS`.
    """
    fault = _check_partition(counts, prices, noise, grid)
    if fault != 0:
        return fault
    cells, levels = counts.size, prices.size
    low, high = _extremes(counts)
    values, largest = counts - low, high - low
    recipes = _recipes(prices, 0 if largest == 0 else min(grid, 62))
    rows = np.zeros((max(levels, SHORT_LEVELS), min(cells, BLOCK)), dtype=np.int64)
    least = np.full(programme.PAD + cells + 1, count_grid.IMPOSSIBLE)
    least[programme.PAD] = 0
    chosen = np.zeros(cells + 1, dtype=np.int8)
    scratch = np.empty((4, CHUNK + SHORT), dtype=np.int64)
    sliding = levels > SHORT_LEVELS
    ranked = cells if sliding else 0
    ranks = np.empty(ranked, dtype=np.int32)
    table = np.empty(ranked + 2, dtype=np.int64)
    distinct = 0
    if sliding:
        order = _ascending(values, largest)
        distinct = _rank_sorted(values[order], order, ranks, table)
    table = table[: distinct + 2]
    long_levels = max(levels - SHORT_LEVELS, 0)
    states = np.zeros((long_levels, STATE_SIZE), dtype=np.int64)
    tallies = np.empty((long_levels, table.size if sliding else 0), dtype=np.int32)
    trees = np.empty((long_levels, 2 * table.size if sliding else 0), dtype=np.int64)
    tiled = 2 * BLOCK if distinct > VALUES_PER_CELL << SHORT_LEVELS else 0
    bitmap = np.empty((distinct >> 6) + 1, dtype=np.uint64)
    marks_before = np.empty((distinct >> 6) + 1, dtype=np.int32)
    block_ranks = np.empty(tiled, dtype=np.int32)
    block_table = np.empty(tiled + 2, dtype=np.int64)
    room = window_slide.TileRoom(
        bitmap,
        marks_before,
        np.empty(tiled, dtype=np.int32),
        np.empty(tiled + 2, dtype=np.int64),
        np.empty(tiled + 2, dtype=np.int32),
        np.empty(2 * tiled + 4, dtype=np.int64),
        scratch,
    )
    for begin in range(0, cells, BLOCK):
        end = min(begin + BLOCK, cells)
        short_deviations(
            values, begin + 1, end - begin, recipes[:SHORT_LEVELS], scratch, rows
        )
        origin = max(begin - BLOCK, 0)
        parent = ranks[origin:end] if sliding else ranks
        parent_distinct = distinct
        if tiled > 0:
            # Ranking the block first keeps the bitmaps of its tiles small.
            parent_distinct = rank_stretch(
                parent, distinct, values[origin:end], bitmap, marks_before,
                block_ranks, block_table,
            )  # fmt: skip
            parent = block_ranks
        for level in range(SHORT_LEVELS, levels):
            if distinct > VALUES_PER_CELL << level and level < BLOCK_LEVEL:
                tile = max(window_slide.SMALLEST_TILE, 1 << level)
                window_slide.slide_tiles(
                    values[origin:end], parent, parent_distinct, begin + 1 - origin,
                    end - begin, tile, recipes[level : level + 1], room,
                    rows[level : level + 1],
                )  # fmt: skip
                continue
            first = max(begin + 1, 1 << level)
            if first <= end:
                at = level - SHORT_LEVELS
                window_slide.slide_windows(
                    values, ranks, table, first, recipes[level], states[at],
                    tallies[at], trees[at], scratch,
                    rows[level, first - begin - 1 : end - begin],
                )  # fmt: skip
        if noise.size > 0:
            for level in range(levels):
                drawn = noise[level * (cells + 1) + begin + 1 :]
                row = rows[level]
                for place in range(end - begin):
                    row[place] -= drawn[place]
        programme.extend_partitions(rows, levels, begin, end, least, chosen)
    return programme.read_partition_into(chosen, boundaries)


@kernel
def weights_into(
    starts: IntArray,
    ends: IntArray,
    weights: FloatArray,
    leaves: int,
    fan_out: int,
    flags: int,
    scaling: FloatArray,
) -> int:
    """Write the node weights that `greedy_scaling` returns, then the predicted error.

    Parameters
    ----------
    starts : ndarray of int64, shape (queries,)
        The first leaf of each range.
    ends : ndarray of int64, shape (queries,)
        The leaf after its last.
    weights : ndarray of float64, shape (queries,)
        How much each range matters; empty if all matter alike.
    leaves : int
        Number of leaves.
    fan_out : int
        The most children of a node.
    flags : int
        A sum of `DECAY`, `ROOT_EXACT` and `PRUNE`.
    scaling : ndarray of float64, shape (nodes + 1,)
        Receives the weights, then the error.

    Returns
    -------
    int
        0, or one of `ERRORS`.
    """
    squared = np.ones(starts.size)
    for query in range(weights.size):
        if not np.isfinite(weights[query]):
            return BAD_VALUE
        squared[query] = weights[query] * weights[query]
    asked_queries = np.empty(starts.size, dtype=np.int64)
    asked = 0
    for query in range(starts.size):
        if not 0 <= starts[query] <= ends[query] <= leaves:
            return BAD_VALUE
        if starts[query] < ends[query] and squared[query] > 0.0:
            asked_queries[asked] = query
            asked += 1
    asked_queries = asked_queries[:asked]
    order = asked_queries[order_by_first(starts[asked_queries], leaves)]
    first, last = starts[order], ends[order] - 1
    ranges = SortedRanges(first, np.ones(asked), last, np.ones(asked), squared[order])
    sizes, offsets = _levels(leaves, fan_out)
    decays = np.ones(sizes.size)
    if flags & DECAY:
        for level in range(sizes.size):
            decays[level] = np.float64(fan_out) ** (-0.5 * (sizes.size - 1 - level))
    shift = 0
    while (1 << shift) < fan_out:
        shift += 1
    shift = shift if (1 << shift) == fan_out else 0
    exact = flags & ROOT_EXACT != 0
    tree = RegularLevels(sizes, offsets, fan_out, shift)
    priorities = Priorities(decays, flags & PRUNE != 0, exact, 1)
    shares, error = greedy_shares(ranges, None, None, tree, priorities)
    node_weights = weights_from_shares(shares, sizes, offsets, fan_out)
    for node in range(node_weights.size):
        scaling[node] = node_weights[node]
    if exact:
        scaling[node_weights.size - 1] = 0.0
    scaling[node_weights.size] = error
    return 0


@kernel
def leaves_into(
    noisy: FloatArray,
    variances: FloatArray,
    fan_out: int,
    estimate: FloatArray,
) -> int:
    """Write the leaves that `tree_fit` returns.

    Parameters
    ----------
    noisy : ndarray of float64, shape (nodes,)
        Measured totals.
    variances : ndarray of float64, shape (nodes,)
        Variance of each; infinity: not measured, 0: exact.
    fan_out : int
        The most children of a node.
    estimate : ndarray of float64, shape (leaves,)
        Receives the leaves.

    Returns
    -------
    int
        0, or one of `ERRORS`.
    """
    for variance in variances:
        if not variance >= 0.0:
            return BAD_VALUE
    _, offsets = _levels(estimate.size, fan_out)
    first_child = regular_first_child(offsets, fan_out)
    nodes = variances.size
    below, fit = np.empty(nodes), np.empty(nodes)
    fill_variances(variances, first_child, 0, nodes, below)
    fit_upward(noisy, variances, below, first_child, 0, nodes, fit)
    fit_downward(fit, below, first_child, 0, nodes)
    for leaf in range(estimate.size):
        estimate[leaf] = fit[leaf]
    return 0
