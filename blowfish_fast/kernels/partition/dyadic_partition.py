"""Exact sample of an aligned dyadic partition, by the exponential mechanism.

The candidates are the ways to derive a partition from a binary tree over the cells: a
node becomes one bucket, or is split, or is cut into equal windows of 2**k cells, or is
a run with outliers (`tree_prior`). A derivation has probability proportional to its
share of a public base measure times the product, over its buckets, of exp(-rate *
(pinball cost + penalty)).

    heap numbers      1               node 1: split
                 2         3          node 2: one bucket       [0, 4)
               4   5     6   7        node 3: windows of 2     [4, 6) [6, 8)
    cells     0 1 2 3   4 5 6 7       boundaries 0 4 6 8

One pass from the bottom: the log-weights of a node's choices need the totals of its two
children, are added up to the node's own total, and at once decide what the node would
do if it were reached; the walk from the root then reads the decisions. Node v reads the
random word at position v.

Log-weights are int64 multiples of 2**-f, relative to single cells (the partition that
is always there), so costs, penalties and sums are exact. Only totals are rounded, and
`sampling_slack` says what that can cost. A node with an empty right half has nothing to
choose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from fractions import Fraction
from functools import lru_cache, partial
from typing import ClassVar, NamedTuple

import numpy as np

from blowfish_fast._support.typing import ByteArray, IntArray, WordArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import (
    Words,
    as_input,
    check_places,
    read_words,
    whole_numbers,
)
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.sampling.exponential_choice import (
    choose,
    total_error,
    weigh_block,
    weigh_rows,
)
from blowfish_fast.kernels.window_costs.rectangle_costs import dyadic_quantile_costs

from .rectangle_prior import LARGEST, Number
from .tree_prior import (
    BASE,
    OUTLIERS,
    Base,
    OutlierWeights,
    TreeWeights,
    fixed_point_tree,
)

# At height h a choice of _CUT + k means windows of 2**k cells, or a run for k >= h.
_BUCKET, _SPLIT, _CUT = 0, 1, 2
_IN_RUN = 0
_ALONE = 1
_ROWS = 1 << 13  # nodes per block


def tree_weights(
    cells: int,
    *,
    rate: Number,
    penalty: Number,
    quantile: tuple[int, int] = (3, 4),
    base: Base = BASE,
    length_weights: Sequence[Number] | None = None,
    outliers: bool = False,
) -> TreeWeights:
    """Return the fixed-point constants for a line of cells; none of them sees counts.

    Parameters
    ----------
    cells : int
        Number of cells.
    rate : int, float or Fraction
        Log-weight lost per unit of pinball cost; rounded down.
    penalty : int, float or Fraction
        Public cost of a bucket, in the unit of counts.
    quantile : tuple[int, int], default (3, 4)
        Numerator and denominator of the pinball cost's quantile.
    base : tuple of three floats
        Prior weights of one bucket, a split, and all equal cuts.
    length_weights : sequence of numbers, optional
        Public factor on the cost of buckets of 1, 2, 4 ... cells; at most 1.
    outliers : bool, default False
        Whether nodes may be runs with outliers.

    Returns
    -------
    TreeWeights
        The constants.

    Raises
    ------
    InputError
        If there is not one length weight per level.
    """
    levels = (cells - 1).bit_length()
    given = (1,) * (levels + 1) if length_weights is None else tuple(length_weights)
    if len(given) != levels + 1:
        raise InputError(
            f"length weights: one per level, {levels + 1} for {cells} cells, "
            f"not {len(given)}"
        )
    runs = OUTLIERS if outliers and levels >= OUTLIERS.height else None
    return fixed_point_tree(given, rate, penalty, tuple(quantile), tuple(base), runs)


@lru_cache(maxsize=64)
def sampling_slack(
    cells: int,
    *,
    rate: Number | None = None,
    penalty: Number | None = None,
    base: Base = BASE,
    outliers: bool = False,
) -> Fraction:
    """Return what the rounding of totals can add to the privacy loss.

    On two histograms that differ by one record, `sample_dyadic_partition` has a
    log-likelihood ratio of at most ``rate * range + sampling_slack(...)``, where the
    range is 1 if a record is added or removed and 2 if it moves. So a caller sets
    ``rate = (epsilon - sampling_slack(cells)) / range``.

    Parameters
    ----------
    cells : int
        Number of cells.
    rate : int, float or Fraction, optional
        Upper bound of the rate that the sampler will get.
    penalty : int, float or Fraction, optional
        Upper bound of the penalty. Both bounds together make the slack smaller; one of
        them alone does not.
    base : tuple of three floats
        As for `sample_dyadic_partition`.
    outliers : bool, default False
        Whether nodes may be runs with outliers; that counts as one level more.

    Returns
    -------
    Fraction
        ``8 * levels * total_error``; 4e-8 at 2**20 cells.

    Examples
    --------
    >>> float(sampling_slack(2**20)) < 1e-7
    True
    """
    levels = (cells - 1).bit_length()
    if rate is None or penalty is None:
        rate, penalty = LARGEST, 1  # no other pair leaves fewer fraction bits
    weights = tree_weights(
        cells, rate=rate, penalty=penalty, base=base, outliers=outliers
    )
    bits = weights.fraction_bits
    if weights.outliers is None:
        return 8 * levels * total_error(levels + 2, bits)
    shares = len(weights.outliers.in_run)
    return 8 * (levels + 1) * total_error(levels + 2 + shares, bits)


class _Level(NamedTuple):
    """The nodes of one height: what their children say, and room for themselves."""

    child_totals: IntArray
    child_sums: IntArray
    costs: IntArray
    base: IntArray
    totals: IntArray
    sums: IntArray
    """The cells of each kind of run, then the windows of 2, 4 ... cells, added up."""
    runs: int
    prices: tuple[int, ...]


def choose_blocks(
    costs: list[IntArray],
    weights: TreeWeights,
    words: Words,
    threads: int = 1,
    runs: IntArray | None = None,
) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Yield every node's log-weights and its draw, from the bottom, a block at a time.

    Parameters
    ----------
    costs : list[ndarray of int64]
        The pinball costs of the nodes of each height, the single cells first.
    weights : TreeWeights
        The constants of `tree_weights`.
    words : callable
        ``words(position, count)`` gives `count` random words; node v reads the one at
        v.
    threads : int, default 1
        How many threads draw.
    runs : ndarray of int64, shape (nodes, shares), optional
        With outliers, what `run_totals` returned.

    Yields
    ------
    tuple of (int, ndarray of int64, ndarray of int64)
        The heap number of the block's first node; the (nodes, choices) log-weights of
        one bucket, split, windows of 1, 2, 4 ..., runs; and the column drawn for each
        node.
    """
    cells = costs[0].size
    levels = len(costs) - 1
    child_totals = costs[0]  # a single cell has log-weight 0
    child_sums = np.empty((cells, 0), dtype=np.int64)
    kinds = 0
    if 1 << levels <= _ROWS:
        words = _NearWords(words, 1 << levels)
    with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
        for height in range(1, levels + 1):
            if runs is not None and child_sums.shape[0] == runs.shape[0]:
                # The halves of the smallest runs: from here on these are added up.
                kinds, child_sums = runs.shape[1], np.hstack([runs, child_sums])
                runs = None
            nodes = costs[height].size
            totals = np.empty(nodes, dtype=np.int64)
            sums = np.empty((nodes, kinds + height), dtype=np.int64)
            own = costs[height], weights.bases[height], totals, sums, kinds
            prices = _bucket_prices(nodes, cells, height, weights)
            level = _Level(child_totals, child_sums, *own, prices)
            first, bits = 1 << (levels - height), weights.fraction_bits
            work = partial(_choose_block, level, words, first, bits)
            pairs = child_totals.size // 2
            each = pool.map if pool is not None and pairs > _ROWS else map
            yield from each(work, range(0, pairs, _ROWS))
            child_totals, child_sums = totals, sums


class _NearWords:
    """The same source, its first words kept: few nodes need no more.

    Parameters
    ----------
    words : callable
        The source.
    count : int
        How many of its words are kept.
    """

    by_place: ClassVar[bool] = True
    """Words that are kept were looked at once, and need not be again."""

    def __init__(self, words: Words, count: int) -> None:
        self._words, self._count = words, count
        # Read at the first draw, as audits of draws expect.
        self._near: WordArray | None = None

    def __call__(self, position: int, number: int) -> WordArray:
        """Return `number` words, the first of them at `position`."""
        end = position + number
        if end > self._count:
            return read_words(self._words, position, number)
        if self._near is None:
            self._near = read_words(self._words, 0, self._count)
            check_places(self._words, 0, self._near)
        return self._near[position:end]


def _bucket_prices(
    nodes: int, cells: int, height: int, weights: TreeWeights
) -> tuple[int, ...]:
    """Return saved, cost of a unit, most units, floor, and what the last node lacks."""
    length = 1 << height
    coefficient = weights.coefficients[height]
    saved = (length - 1) * weights.penalty
    # A dearer bucket would end at the floor anyway; the product cannot overflow.
    ceiling = (saved - weights.floor) // coefficient + 1 if coefficient else 0
    missing = (nodes * length - cells) * weights.penalty
    return saved, coefficient, ceiling, weights.floor, missing


def _choose_block(
    level: _Level, words: Words, first_node: int, bits: int, first: int
) -> tuple[int, IntArray, IntArray]:
    """Decide for the nodes from the `first` on, and write down their totals."""
    more = first + _ROWS < level.child_totals.size // 2
    end = first + _ROWS if more else level.costs.size
    table = _offered(level, first, end)
    position = first_node + first
    choices, totals = weigh_block(words, position, table, bits)
    level.totals[first : first + totals.size] = totals
    return position, table, choices


@kernel
def _offered(level: _Level, first: int, end: int) -> IntArray:
    """Add up what the children of some nodes say; return the log-weights to choose by.

    The last node may have no right half: its left child stands for both.
    """
    below, sums, child_totals = level.child_sums, level.sums, level.child_totals
    saved, coefficient, ceiling, floor, missing = level.prices
    added, last, runs = below.shape[1], level.costs.size - 1, level.runs
    pairs = min(end, child_totals.size // 2)
    table = np.empty((pairs - first, level.base.size), dtype=np.int64)
    for node in range(first, end):
        bucket = saved - coefficient * min(level.costs[node], ceiling)
        sums[node, added] = max(bucket - missing if node == last else bucket, floor)
        if node >= pairs:
            level.totals[node] = child_totals[2 * node]
            for column in range(added):
                sums[node, column] = below[2 * node, column]
            continue
        row = node - first
        table[row, _BUCKET] = sums[node, added]
        table[row, _SPLIT] = child_totals[2 * node] + child_totals[2 * node + 1]
        for column in range(added):
            both = below[2 * node, column] + below[2 * node + 1, column]
            if column >= runs:
                both = max(both, floor)
            sums[node, column] = both
            # Runs come first among the sums, and last among the choices.
            place = _CUT + 1 + (column - runs) % added
            if place < table.shape[1]:
                table[row, place] = both
        if added > runs:
            table[row, _CUT] = 0
        for column in range(table.shape[1]):
            table[row, column] += level.base[column]
    return table


def _cell_rows(x: IntArray, weights: OutlierWeights, share: int) -> IntArray:
    """Return the log-weights of each cell, kept and alone."""
    rows = np.empty((x.size, 2), dtype=np.int64)
    records = np.minimum(np.maximum(x, 0), weights.most)
    np.subtract(weights.in_run[share], weights.record * records, out=rows[:, _IN_RUN])
    rows[:, _ALONE] = weights.alone[share]
    return rows


def run_totals(x: IntArray, weights: OutlierWeights, fraction_bits: int) -> IntArray:
    """Return what the cells below each node weigh in runs, either way, added up.

    In a run a cell is one of the rest or stands alone; the logarithm of the sum of the
    two weights is added up over the cells of a node.

    Parameters
    ----------
    x : ndarray of int64, shape (n,)
        True counts.
    weights : OutlierWeights
        What a cell weighs in runs.
    fraction_bits : int
        Binary digits of the log-weights behind the point.

    Returns
    -------
    ndarray of int64, shape (nodes, shares)
        The sums, for the nodes that are halves of the smallest runs.
    """
    # Equal counts weigh the same: most histograms have few different ones.
    most = min(weights.most, int(x.max()))
    listed = most < x.size
    counts = np.arange(most + 1) if listed else x
    places = as_input(x if listed else np.arange(x.size), np.int64)
    silent = np.zeros(counts.size, dtype=np.uint64)
    scratch = np.empty((3, counts.size), dtype=np.int64)
    width = 1 << (weights.height - 1)
    totals = np.empty((-(-x.size // width), len(weights.in_run)), dtype=np.int64)
    for share in range(totals.shape[1]):
        rows = _cell_rows(counts, weights, share)
        weigh_rows(rows, silent, fraction_bits, *scratch)
        _add_cells(scratch[1], places, width, totals[:, share])
    return totals


@kernel
def _add_cells(each: IntArray, places: IntArray, width: int, sums: IntArray) -> None:
    """Add up what cells weigh, `width` of them at a time; places are cut to fit."""
    for node in range(sums.size):
        total = 0
        for cell in range(node * width, min((node + 1) * width, places.size)):
            total += each[min(max(places[cell], 0), each.size - 1)]
        sums[node] = total


@kernel
def _boundaries(decisions: ByteArray, cells: int) -> tuple[IntArray, IntArray]:
    """Walk from the root; return where buckets begin, and the end; and the runs.

    A run is (start, end, share) and, up to here, one bucket.
    """
    levels = 0
    while (1 << levels) < cells:
        levels += 1
    starts = np.empty(cells + 1, dtype=np.int64)
    runs = np.empty((cells // 2, 3), dtype=np.int64)
    buckets = count_of_runs = 0
    waiting = np.empty((levels + 1, 2), dtype=np.int64)
    waiting[0, 0], waiting[0, 1] = 1, levels
    top = 1
    while top > 0:
        top -= 1
        node, height = waiting[top, 0], waiting[top, 1]
        start = (node << height) - (1 << levels)
        end = min(start + (1 << height), cells)
        middle = start + (1 << height >> 1)
        if height > 0 and middle >= cells:
            waiting[top, 0], waiting[top, 1] = 2 * node, height - 1
            top += 1
        elif height > 0 and decisions[node] == _SPLIT:
            waiting[top, 0], waiting[top, 1] = 2 * node + 1, height - 1
            waiting[top + 1, 0], waiting[top + 1, 1] = 2 * node, height - 1
            top += 2
        else:
            step = end - start
            choice = np.int64(decisions[node]) - _CUT if height > 0 else -1
            if choice >= height > 0:
                runs[count_of_runs, 0], runs[count_of_runs, 1] = start, end
                runs[count_of_runs, 2] = choice - height
                count_of_runs += 1
            elif choice >= 0:
                step = 1 << choice
            for place in range(start, end, step):
                starts[buckets] = place
                buckets += 1
    starts[buckets] = cells
    return starts[: buckets + 1].copy(), runs[:count_of_runs].copy()


def cut_out(
    boundaries: IntArray,
    runs: IntArray,
    x: IntArray,
    weights: OutlierWeights,
    words: Words,
    fraction_bits: int,
) -> IntArray:
    """Draw the outliers of every run, and cut around them.

    Parameters
    ----------
    boundaries : ndarray of int64, shape (buckets + 1,)
        Where buckets begin, a run being one bucket; and the end.
    runs : ndarray of int64, shape (runs, 3)
        Start, end and share of each run.
    x : ndarray of int64, shape (n,)
        True counts.
    weights : OutlierWeights
        What a cell weighs in runs.
    words : callable
        Random words; cell i reads the one at its number in the heap, 2**levels + i.
    fraction_bits : int
        Binary digits of the log-weights behind the point.

    Returns
    -------
    ndarray of int64
        The boundaries with those of the outliers.
    """
    leaves = 1 << (x.size - 1).bit_length()
    marked = np.zeros(x.size + 1, dtype=np.bool_)
    marked[boundaries] = True
    for start, end, share in runs.tolist():
        rows = _cell_rows(x[start:end], weights, share)
        drawn = choose(words, leaves + start, rows, fraction_bits)
        marked[start:end] |= drawn == _ALONE
        marked[start + 1 : end + 1] |= drawn == _ALONE
    return np.flatnonzero(marked) if runs.size else boundaries


def sample_dyadic_partition(
    x: IntArray,
    words: Words,
    *,
    rate: Number,
    penalty: Number,
    quantile: tuple[int, int] = (3, 4),
    base: Base = BASE,
    length_weights: Sequence[Number] | None = None,
    outliers: bool = False,
    threads: int = 1,
) -> IntArray:
    """Draw a partition of the cells into aligned dyadic buckets.

    A way to derive a partition is drawn in proportion to its prior weight times the
    product, over its buckets, of ``exp(-rate * (pinball cost + penalty))``. It takes
    O(n log n) time for the costs and O(n) for the sample; O(n) memory.

    Parameters
    ----------
    x : ndarray of int64, shape (n,)
        True counts, cut to ``[0, count_cap(n, quantile[1])]``.
    words : callable
        ``words(position, count)`` gives `count` random words. Those from 1 to the next
        power of two are used, and rarely some beyond `RESOLVER_BASE`.
    rate : int, float or Fraction
        Log-weight lost per unit of pinball cost; rounded down. The loss of privacy is
        at most ``rate * range`` plus `sampling_slack`.
    penalty : int, float or Fraction
        Public cost of a bucket, in the unit of counts.
    quantile : tuple[int, int], default (3, 4)
        Numerator and denominator of the pinball cost's quantile.
    base : tuple of three floats
        Prior weights of one bucket, a split, and all equal cuts (windows of 2**k cells
        share in proportion to 2**-k); divided by their sum.
    length_weights : sequence of numbers, optional
        Public factor on the cost of buckets of 1, 2, 4 ... cells; at most 1, which
        keeps the range.
    outliers : bool, default False
        Whether nodes may also be runs, in which cells of many records stand alone.
    threads : int, default 1
        Threads that may ask for words; the result does not depend on them.

    Returns
    -------
    ndarray of int64, shape (k + 1,)
        Boundaries of the k buckets, from 0 to n.

    Raises
    ------
    InputError
        If counts, weights or rates are out of range.

    Examples
    --------
    >>> generator = np.random.default_rng(1)
    >>> drawn = generator.integers(0, 1 << 64, size=8, dtype=np.uint64)
    >>> words = lambda position, count: drawn[position : position + count]
    >>> x = np.array([5, 5, 5, 5, 90, 2, 2])
    >>> sample_dyadic_partition(x, words, rate=4, penalty=1)
    array([0, 4, 5, 6, 7])
    """
    x = whole_numbers(x)
    costs = dyadic_quantile_costs(x, *quantile, threads=threads)
    weights = tree_weights(
        x.size,
        rate=rate,
        penalty=penalty,
        quantile=quantile,
        base=base,
        length_weights=length_weights,
        outliers=outliers,
    )
    return sample_tree_of_costs(x, costs, words, weights, threads=threads)


def sample_tree_of_costs(
    x: IntArray,
    costs: list[IntArray],
    words: Words,
    weights: TreeWeights,
    *,
    threads: int = 1,
) -> IntArray:
    """Draw what `sample_dyadic_partition` draws, from costs that are at hand.

    Parameters
    ----------
    x : ndarray of int64, shape (n,)
        True counts.
    costs : list of ndarrays of int64
        What `dyadic_quantile_costs` returned for them.
    words : callable
        As for `sample_dyadic_partition`.
    weights : TreeWeights
        The constants of `tree_weights`.
    threads : int, default 1
        Threads that may ask for words; the result does not depend on them.

    Returns
    -------
    ndarray of int64, shape (k + 1,)
        Boundaries of the k buckets, from 0 to n.
    """
    alone, bits = weights.outliers, weights.fraction_bits
    totals = None if alone is None else run_totals(x, alone, bits)
    decisions = np.zeros(1 << (len(costs) - 1), dtype=np.int8)
    for first, _, choices in choose_blocks(costs, weights, words, threads, totals):
        decisions[first : first + choices.size] = choices
    edges, runs = _boundaries(decisions, x.size)
    return edges if alone is None else cut_out(edges, runs, x, alone, words, bits)
