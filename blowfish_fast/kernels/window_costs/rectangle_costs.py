"""Pinball (quantile) cost of every dyadic rectangle of a grid, in exact integers.

For a quantile p/q the pinball cost of a rectangle is the least sum, over its cells, of
p times what the count has above a centre and q - p times what it lacks below; the best
centre is the p/q-quantile of the counts, which sorted counts show. A merge sort that
doubles heights first and widths then sorts all rectangles of one shape at a time:

    height, width      1        2        4
        1           counts -> pairs -> rows of 4
        2           pairs  -> 2 x 2 -> 2 x 4         each row from the one above it,
        4           fours  -> 4 x 2 -> 4 x 4         then along itself

Rectangles lie on the next powers of two; one cut by the end of the grid has the cells
it has. The sorted cells of a rectangle stand together, band after band of rows. O(n
log(rows) log(columns)) time; the costs are 4n numbers. A line is a grid of one row.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import helper, kernel


def count_cap(cells: int, denominator: int) -> int:
    """Return the public count at which cells are cut, so that no cost overflows.

    Parameters
    ----------
    cells : int
        Number of cells.
    denominator : int
        Denominator of the quantile.

    Returns
    -------
    int
        The largest count.
    """
    return (1 << 60) // (cells * denominator)


@helper
def _merge_runs(
    source: IntArray,
    left: int,
    left_size: int,
    right: int,
    right_size: int,
    target: IntArray,
    place: int,
) -> None:
    """Merge two sorted runs of `source` into `target`, from `place` on."""
    step = np.uintp(1)
    first, second = np.uintp(left), np.uintp(right)
    low = np.uintp(place)
    if left_size == right_size:
        # From both ends at once: each end writes half of the cells, so no pointer can
        # run out of its run, and nothing depends on a predicted branch.
        first_end = first + np.uintp(left_size)
        second_end = second + np.uintp(right_size)
        high = low + np.uintp(2 * left_size)
        for _ in range(left_size):
            from_first, from_second = source[first], source[second]
            takes_first = from_first <= from_second
            target[low] = from_first if takes_first else from_second
            move = np.uintp(takes_first)
            first += move
            second += step - move
            low += step
            from_first, from_second = (
                source[first_end - step],
                source[second_end - step],
            )
            takes_second = from_first <= from_second
            high -= step
            target[high] = from_second if takes_second else from_first
            move = np.uintp(takes_second)
            second_end -= move
            first_end -= step - move
    else:
        first_end = first + np.uintp(left_size)
        second_end = second + np.uintp(right_size)
        for _ in range(left_size + right_size):
            if second >= second_end or (
                first < first_end and source[first] <= source[second]
            ):
                target[low] = source[first]
                first += step
            else:
                target[low] = source[second]
                second += step
            low += step


@helper
def _sorted_cost(
    ordered: IntArray, start: int, size: int, numerator: int, denominator: int
) -> int:
    """Return the cost of the sorted cells [start, start + size)."""
    rank = (numerator * size + denominator - 1) // denominator
    below = np.int64(0)
    for place in range(np.uintp(start), np.uintp(start + rank)):
        below += ordered[place]
    above = np.int64(0)
    for place in range(np.uintp(start + rank), np.uintp(start + size)):
        above += ordered[place]
    centre = ordered[np.uintp(start + rank - 1)]
    excess = above - (size - rank) * centre
    lack = rank * centre - below
    return int(numerator * excess + (denominator - numerator) * lack)


@kernel
def _double_heights(
    source: IntArray,
    target: IntArray,
    shape: tuple[int, int],
    height: int,
    quantile: tuple[int, int],
) -> IntArray:
    """Merge columns of `height` cells in pairs, one below the other; return costs."""
    rows, columns = shape
    bands = (rows + 2 * height - 1) // (2 * height)
    costs = np.empty((bands, columns), dtype=np.int64)
    for band in range(bands):
        top = 2 * height * band
        upper = min(height, rows - top)
        lower = min(height, rows - top - upper)
        for column in range(columns):
            place = top * columns + (upper + lower) * column
            above = top * columns + upper * column
            below = (top + upper) * columns + lower * column
            _merge_runs(source, above, upper, below, lower, target, place)
            costs[band, column] = _sorted_cost(
                target, place, upper + lower, quantile[0], quantile[1]
            )
    return costs


@kernel
def _double_widths(
    source: IntArray,
    target: IntArray,
    shape: tuple[int, int],
    height: int,
    width: int,
    quantile: tuple[int, int],
) -> IntArray:
    """Merge rectangles of `height` by `width` cells side by side; return costs."""
    rows, columns = shape
    bands = (rows + height - 1) // height
    blocks = (columns + 2 * width - 1) // (2 * width)
    costs = np.empty((bands, blocks), dtype=np.int64)
    for band in range(bands):
        top = height * band
        tall = min(height, rows - top)
        for block in range(blocks):
            start = 2 * width * block
            left = tall * min(width, columns - start)
            both = tall * min(2 * width, columns - start)
            place = top * columns + tall * start
            _merge_runs(source, place, left, place + left, both - left, target, place)
            costs[band, block] = _sorted_cost(
                target, place, both, quantile[0], quantile[1]
            )
    return costs


def _all_widths(
    tall: IntArray, shape: tuple[int, int], height: int, quantile: tuple[int, int]
) -> tuple[list[IntArray], IntArray]:
    """Return the costs for `height` rows and 2, 4 .. columns, and the sorted cells."""
    costs = []
    source = tall
    target, spare = np.empty_like(tall), np.empty_like(tall)
    for power in range((shape[1] - 1).bit_length()):
        costs.append(
            _double_widths(source, target, shape, height, 1 << power, quantile)
        )
        source, target, spare = target, spare, target
    return costs, source


def dyadic_rectangle_costs(
    counts: IntArray, numerator: int, denominator: int, *, threads: int = 1
) -> list[list[IntArray]]:
    """Return the integer pinball cost of every dyadic rectangle.

    Parameters
    ----------
    counts : ndarray of int64, shape (rows, columns)
        Counts; those below 0 and above ``count_cap(cells, denominator)`` are cut.
    numerator : int
        Numerator of the quantile, which lies strictly between 0 and 1.
    denominator : int
        Its denominator.
    threads : int, default 1
        How many threads to use; the result does not depend on it.

    Returns
    -------
    list of lists of ndarrays of int64
        Item [i][j] holds `denominator` times the cost of each rectangle of 2**i rows
        and 2**j columns that has a cell: ``ceil(rows / 2**i)`` by ``ceil(columns /
        2**j)`` numbers.

    Raises
    ------
    InputError
        If there is no cell, or the quantile is out of range.
    """
    if counts.ndim != 2 or counts.size == 0:
        raise InputError(f"a grid has rows and columns, but counts are {counts.shape}")
    shape = (int(counts.shape[0]), int(counts.shape[1]))
    quantile = (int(numerator), int(denominator))
    tall = _cut_counts(counts, *quantile)
    firsts = [np.zeros(shape, dtype=np.int64)]
    tasks: list[Future[tuple[list[IntArray], IntArray]]] = []
    with ThreadPoolExecutor(max(1, threads)) as pool:
        for level in range((shape[0] - 1).bit_length() + 1):
            if level:
                merged = np.empty_like(tall)
                half = 1 << (level - 1)
                firsts.append(_double_heights(tall, merged, shape, half, quantile))
                tall = merged
            if level >= threads:
                # No more sorted copies at a time than there are threads, and one.
                tasks[level - threads].result()
            tasks.append(pool.submit(_all_widths, tall, shape, 1 << level, quantile))
    costs = [task.result()[0] for task in tasks]
    return [[first, *wider] for first, wider in zip(firsts, costs, strict=True)]


def dyadic_quantile_costs(
    x: IntArray, numerator: int, denominator: int, *, threads: int = 1
) -> list[IntArray]:
    """Return the integer pinball cost of every aligned dyadic window of a line.

    Parameters
    ----------
    x : ndarray of int64, shape (n,)
        Counts; those below 0 and above ``count_cap(n, denominator)`` are cut.
    numerator : int
        Numerator of the quantile.
    denominator : int
        Its denominator.
    threads : int, default 1
        How many threads to use; the result does not depend on it.

    Returns
    -------
    list of ndarrays of int64
        Item k holds, for each window ``[j * 2**k, (j + 1) * 2**k)`` with a cell,
        `denominator` times its cost: ``ceil(n / 2**k)`` numbers. The last item has one.

    Raises
    ------
    InputError
        If there is no cell, or the quantile is out of range.
    """
    if x.ndim != 1 or x.size == 0:
        raise InputError(f"counts come in one row of cells, but have shape {x.shape}")
    quantile = (int(numerator), int(denominator))
    cells = _cut_counts(x, *quantile)
    middle = 1 << max((cells.size - 1).bit_length() - 1, 0)
    if threads < 2 or cells.size == 1:
        wider, _ = _all_widths(cells, (1, cells.size), 1, quantile)
        return [np.zeros_like(cells), *(costs[0] for costs in wider)]
    # The last merge, of two halves, comes after both.
    halves = [cells[:middle], cells[middle:]]
    shapes = [(1, half.size) for half in halves]
    with ThreadPoolExecutor(threads) as pool:
        both = list(pool.map(_all_widths, halves, shapes, (1, 1), (quantile,) * 2))
    (left, left_sorted), (right, right_sorted) = both
    # Beyond its own size the right half is one window, of one cost.
    whole = right[-1] if right else np.zeros((1, 1), dtype=np.int64)
    right += [whole] * (len(left) - len(right))
    merged = np.concatenate([left_sorted, right_sorted])
    shape = (1, cells.size)
    last = _double_widths(merged, np.empty_like(merged), shape, 1, middle, quantile)
    pairs = zip(left, right, strict=True)
    wider = [
        np.concatenate([left_costs[0], right_costs[0]])
        for left_costs, right_costs in pairs
    ]
    return [np.zeros_like(cells), *wider, last[0]]


def _cut_counts(counts: IntArray, numerator: int, denominator: int) -> IntArray:
    """Return the counts in one row, cut where a cost could overflow."""
    if not 0 < numerator < denominator:
        raise InputError(
            f"a quantile lies strictly between 0 and 1, not {numerator}/{denominator}"
        )
    cut = np.clip(counts.reshape(-1), 0, count_cap(counts.size, denominator))
    return np.ascontiguousarray(cut, dtype=np.int64)


WEIGHT_BITS = 16
"""A level weight of 1, as a whole number of bits."""


def counts_within(counts: IntArray) -> IntArray:
    """Cut counts at the public 2^42 / cells, so that no sum leaves 62 bits."""
    return np.minimum(counts, 2**42 // max(counts.size, 1))


def price_within(price: float, cells: int) -> int:
    """Return a price in units of 2^-18 records, cut at 2^60 / cells.

    Parameters
    ----------
    price : float
        Price of a bucket, in records.
    cells : int
        Number of cells.

    Returns
    -------
    int
        The price.
    """
    return min(round(max(price, 0.0) * 2.0 ** (WEIGHT_BITS + 2)), 2**60 // cells)


def least_even_cost(
    counts: IntArray,
    level_weights: list[list[float]],
    price: int,
    *,
    threads: int = 1,
) -> int:
    """Return the least sum of weighted pinball costs and prices, times 2^18, exactly.

    From single cells up, a rectangle is one bucket or two halves along either axis,
    whichever costs least. One record more changes the result by -2^16 at least and 3 *
    2^16 at most. O(n) after the costs.

    Parameters
    ----------
    counts : ndarray of int64, shape (rows, columns)
        What `counts_within` returned.
    level_weights : list[list[float]]
        Item [i][j], from 0 to 1, is the weight of the cost of buckets of 2^i by 2^j
        cells; rounded down to a multiple of 2^-16.
    price : int
        Price of a bucket in units of 2^-18 records.
    threads : int, default 1
        How many threads to use; the result does not depend on it.

    Returns
    -------
    int
        The least sum.
    """
    costs = dyadic_rectangle_costs(counts, 3, 4, threads=threads)
    best: list[list[IntArray]] = []
    for tall, row in enumerate(costs):
        best.append([])
        for wide, cost in enumerate(row):
            weight = int(level_weights[tall][wide] * 2**WEIGHT_BITS)
            least = weight * cost
            least += price
            if tall:
                np.minimum(least, _pairs(best[tall - 1][wide], 0), out=least)
            if wide:
                np.minimum(least, _pairs(best[tall][wide - 1], 1), out=least)
            best[tall].append(least)
    return int(best[-1][-1][0, 0])


def _pairs(values: IntArray, axis: int) -> IntArray:
    """Add neighbours along an axis; the last one stands alone if it has none."""
    # Two strided views add up several times faster than `np.add.reduceat`.
    turned = np.moveaxis(values, axis, -1)
    sums: IntArray = turned[..., 0::2].copy()
    second = turned[..., 1::2]
    sums[..., : second.shape[-1]] += second
    return np.moveaxis(sums, -1, axis)
