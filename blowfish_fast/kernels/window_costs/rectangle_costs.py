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

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import helper, kernel

Job = TypeVar("Job")
Done = TypeVar("Done")

# A job merges about so many cells: starting a thread takes as long as a fraction of
# the fewest, and more would leave the caches of a core.
FEWEST_MERGED, MOST_MERGED = 1 << 14, 1 << 18
JOBS_PER_THREAD = 4


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
def _merge_ends(
    source: IntArray,
    first: np.uintp,
    first_end: np.uintp,
    second: np.uintp,
    second_end: np.uintp,
    target: IntArray,
    low: np.uintp,
    high: np.uintp,
    steps: int | np.uintp,
) -> tuple[np.uintp, np.uintp, np.uintp, np.uintp]:
    """Merge two sorted runs from both ends at once, `steps` cells from each end.

    Nothing depends on a predicted branch, and no pointer is checked: it cannot run out
    of its run in half as many steps as the shorter one has cells, nor, where both have
    as many, in so many. Returns what is left of the runs.
    """
    step = np.uintp(1)
    for _ in range(steps):
        from_first, from_second = source[first], source[second]
        takes_first = from_first <= from_second
        target[low] = from_first if takes_first else from_second
        move = np.uintp(takes_first)
        first += move
        second += step - move
        low += step
        from_first, from_second = source[first_end - step], source[second_end - step]
        takes_second = from_first <= from_second
        high -= step
        target[high] = from_second if takes_second else from_first
        move = np.uintp(takes_second)
        second_end -= move
        first_end -= step - move
    return first, first_end, second, second_end


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
    first, second = np.uintp(left), np.uintp(right)
    low = np.uintp(place)
    first_end = first + np.uintp(left_size)
    second_end = second + np.uintp(right_size)
    if left_size == right_size:
        high = low + np.uintp(2 * left_size)
        _merge_ends(
            source, first, first_end, second, second_end, target, low, high, left_size
        )
    else:
        # Few merges are of unequal runs, and a faster loop here would slow the others.
        step = np.uintp(1)
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


@helper
def _taken_from_left(
    source: IntArray, left: int, left_size: int, right: int, right_size: int, least: int
) -> int:
    """Return how many of the `least` smallest of two sorted runs the left one has."""
    low, high = max(0, least - right_size), min(least, left_size)
    while low < high:
        middle = (low + high) // 2
        if source[left + middle] < source[right + least - middle - 1]:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def _merge_unequal(
    source: IntArray,
    left: int,
    left_size: int,
    right: int,
    right_size: int,
    target: IntArray,
    place: int,
) -> None:
    """Merge two sorted runs of any sizes."""
    step = np.uintp(1)
    first, second = np.uintp(left), np.uintp(right)
    low = np.uintp(place)
    first_end = first + np.uintp(left_size)
    second_end = second + np.uintp(right_size)
    high = low + np.uintp(left_size + right_size)
    while first < first_end and second < second_end:
        shorter = min(first_end - first, second_end - second)
        steps = shorter >> step
        first, first_end, second, second_end = _merge_ends(
            source, first, first_end, second, second_end, target, low, high, steps
        )
        low, high = low + steps, high - steps
        if shorter == step:
            takes_first = source[first] <= source[second]
            target[low] = source[first] if takes_first else source[second]
            move = np.uintp(takes_first)
            first += move
            second += step - move
            low += step
    for rest in range(first, first_end):
        target[low] = source[rest]
        low += step
    for rest in range(second, second_end):
        target[low] = source[rest]
        low += step


@kernel
def _merge_part(
    source: IntArray,
    target: IntArray,
    place: int,
    left_size: int,
    size: int,
    rank: int,
    first: int,
    last: int,
) -> tuple[int, int]:
    """Merge two runs that stand at `place`, but only what is `first` to `last` after.

    Returns the sums of the part's cells below the rank, and from it on.
    """
    right, right_size = place + left_size, size - left_size
    begin = _taken_from_left(source, place, left_size, right, right_size, first)
    end = _taken_from_left(source, place, left_size, right, right_size, last)
    skipped = first - begin
    _merge_unequal(
        source, place + begin, end - begin,
        right + skipped, last - end - skipped,
        target, place + first,
    )  # fmt: skip
    middle = min(max(rank, first), last)
    below = np.int64(0)
    for cell in range(np.uintp(place + first), np.uintp(place + middle)):
        below += target[cell]
    above = np.int64(0)
    for cell in range(np.uintp(place + middle), np.uintp(place + last)):
        above += target[cell]
    return int(below), int(above)


@kernel
def _double_heights(
    source: IntArray,
    target: IntArray,
    shape: tuple[int, int],
    height: int,
    quantile: tuple[int, int],
    box: tuple[int, int, int, int],
    costs: IntArray,
) -> None:
    """Merge columns of `height` cells in pairs, one below the other; fill in costs.

    Only in a box: the first band and the one after the last, and so the columns.
    """
    rows, columns = shape
    for band in range(box[0], box[1]):
        top = 2 * height * band
        upper = min(height, rows - top)
        lower = min(height, rows - top - upper)
        for column in range(box[2], box[3]):
            place = top * columns + (upper + lower) * column
            above = top * columns + upper * column
            below = (top + upper) * columns + lower * column
            _merge_runs(source, above, upper, below, lower, target, place)
            costs[band, column] = _sorted_cost(
                target, place, upper + lower, quantile[0], quantile[1]
            )


@kernel
def _double_widths(
    source: IntArray,
    target: IntArray,
    shape: tuple[int, int],
    height: int,
    width: int,
    quantile: tuple[int, int],
    corner: tuple[int, int],
    costs: IntArray,
) -> None:
    """Merge rectangles of `height` by `width` cells side by side; fill in costs.

    The cells are those of some bands, or some columns of one; their costs begin at a
    corner of all.
    """
    rows, columns = shape
    bands = (rows + height - 1) // height
    blocks = (columns + 2 * width - 1) // (2 * width)
    for band in range(bands):
        top = height * band
        tall = min(height, rows - top)
        for block in range(blocks):
            start = 2 * width * block
            left = tall * min(width, columns - start)
            both = tall * min(2 * width, columns - start)
            place = top * columns + tall * start
            _merge_runs(source, place, left, place + left, both - left, target, place)
            costs[corner[0] + band, corner[1] + block] = _sorted_cost(
                target, place, both, quantile[0], quantile[1]
            )


Box: TypeAlias = tuple[int, int, int, int]
"""The first band and the one after the last, the first column and the one after."""


def _boxes(shape: tuple[int, int], height: int, wide: int, piece: int) -> list[Box]:
    """Cut a grid into jobs: some bands each, or so many columns of one."""
    rows, columns = shape
    bands = -(-rows // height)
    if wide >= columns:
        step = max(1, piece // (height * columns))
        return [
            (band, min(band + step, bands), 0, columns)
            for band in range(0, bands, step)
        ]
    starts = range(0, columns, wide)
    return [
        (band, band + 1, start, min(start + wide, columns))
        for band in range(bands)
        for start in starts
    ]


class _Merger:
    """Merges of the cells of one grid, each cut into jobs that threads share.

    Parameters
    ----------
    shape : tuple[int, int]
        Rows and columns.
    quantile : tuple[int, int]
        Numerator and denominator.
    pool : ThreadPoolExecutor or None
        The threads; None for the caller's alone.
    piece : int
        How many cells a job merges, about.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        quantile: tuple[int, int],
        pool: ThreadPoolExecutor | None,
        piece: int,
    ) -> None:
        self._shape, self._quantile = shape, quantile
        self._pool, self._piece = pool, piece

    def _each(self, work: Callable[[Job], Done], jobs: Sequence[Job]) -> list[Done]:
        """Return what `work` returns for every job, in their order."""
        if self._pool is None or len(jobs) == 1:
            return [work(job) for job in jobs]
        return list(self._pool.map(work, jobs))

    def heights(self, tall: IntArray, half: int) -> tuple[IntArray, IntArray]:
        """Return columns of twice `half` cells, sorted, and what each costs."""
        rows, columns = self._shape
        costs = np.empty((-(-rows // (2 * half)), columns), dtype=np.int64)
        merged = np.empty_like(tall)

        def double(box: Box) -> None:
            _double_heights(tall, merged, self._shape, half, self._quantile, box, costs)

        wide = max(1, self._piece // (2 * half))
        self._each(double, _boxes(self._shape, 2 * half, wide, self._piece))
        return merged, costs

    def widths(self, tall: IntArray, height: int) -> list[IntArray]:
        """Return the costs for `height` rows and 2, 4 .. columns."""
        rows, columns = self._shape
        bands = -(-rows // height)
        levels = (columns - 1).bit_length()
        costs = [
            np.empty((bands, -(-columns // (2 << power))), dtype=np.int64)
            for power in range(levels)
        ]
        # Up to 2^low columns one job merges alone, in the caches of its core.
        low = min(levels, max(1, self._piece // height).bit_length() - 1)
        merged = np.empty_like(tall) if 0 < low < levels else tall

        def double(box: Box) -> None:
            first_band, end_band, start, end = box
            top, bottom = first_band * height, min(end_band * height, rows)
            part = bottom - top, end - start
            place = top * columns + part[0] * start
            cells = slice(place, place + part[0] * part[1])
            source = tall[cells]
            target, spare = np.empty_like(source), np.empty_like(source)
            for power in range(low):
                if power == low - 1 and merged is not tall:
                    target = merged[cells]
                corner = first_band, start >> (power + 1)
                _double_widths(
                    source, target, part, height, 1 << power, self._quantile,
                    corner, costs[power],
                )  # fmt: skip
                source, target, spare = target, spare, target

        if low:
            wide = columns if low == levels else 1 << low
            self._each(double, _boxes(self._shape, height, wide, self._piece))
        source, spare = merged, None
        for power in range(low, levels):
            target = np.empty_like(tall) if spare is None else spare
            self._merge_wide(source, target, height, 1 << power, costs[power])
            source, spare = target, None if source is tall else source
        return costs

    def _merge_wide(
        self,
        source: IntArray,
        target: IntArray,
        height: int,
        width: int,
        costs: IntArray,
    ) -> None:
        """Merge rectangles side by side, several jobs to a merge; fill in costs."""
        rows, columns = self._shape
        numerator, denominator = self._quantile
        merges, parts = [], []
        for band, block in np.ndindex(*costs.shape):
            top, start = height * band, 2 * width * block
            tall = min(height, rows - top)
            left = tall * min(width, columns - start)
            size = tall * min(2 * width, columns - start)
            rank = (numerator * size + denominator - 1) // denominator
            merge = top * columns + tall * start, left, size, rank
            merges.append((band, block, *merge))
            parts += [
                (*merge, first, min(first + self._piece, size))
                for first in range(0, size, self._piece)
            ]
        sums = self._each(lambda part: _merge_part(source, target, *part), parts)
        by_place: dict[int, list[int]] = {}
        for part, (below, above) in zip(parts, sums, strict=True):
            both = by_place.setdefault(part[0], [0, 0])
            both[0] += below
            both[1] += above
        for band, block, place, _, size, rank in merges:
            below, above = by_place[place]
            centre = int(target[place + rank - 1])
            excess, lack = above - (size - rank) * centre, rank * centre - below
            costs[band, block] = numerator * excess + (denominator - numerator) * lack


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
    costs = [[np.zeros(shape, dtype=np.int64)]]
    with _merger(shape, quantile, threads) as merger:
        for level in range((shape[0] - 1).bit_length() + 1):
            if level:
                tall, narrow = merger.heights(tall, 1 << (level - 1))
                costs.append([narrow])
            costs[level] += merger.widths(tall, 1 << level)
    return costs


Costs: TypeAlias = list[list[IntArray]]
"""The costs of rectangles, by the powers of two of their heights and widths."""


class SharedCosts:
    """The costs of one grid, sorted once for two choices from the same counts.

    ::

        look     sorts, and keeps the costs     how rough, how scattered
        take     hands them over                which buckets

    Costs are as private as counts: whoever holds the counts holds this, lends it to a
    choice that was charged for, and nobody else sees it.

    Parameters
    ----------
    quantile : tuple[int, int], default (3, 4)
        Numerator and denominator of the quantile.
    """

    def __init__(self, quantile: tuple[int, int] = (3, 4)) -> None:
        self._quantile = quantile
        self._kept: Costs | None = None

    def look(self, counts: IntArray, *, threads: int = 1) -> Costs:
        """Return the costs, and keep them for another choice.

        Parameters
        ----------
        counts : ndarray of int64, shape (rows, columns)
            True counts.
        threads : int, default 1
            How many threads to use; the result does not depend on it.

        Returns
        -------
        list of lists of ndarrays of int64
            What `dyadic_rectangle_costs` returns; not to be changed.
        """
        self._kept = costs = self.take(counts, threads=threads)
        return costs

    def take(self, counts: IntArray, *, threads: int = 1) -> Costs:
        """Return the costs, and keep them no longer.

        Parameters
        ----------
        counts : ndarray of int64, shape (rows, columns)
            True counts.
        threads : int, default 1
            How many threads to use; the result does not depend on it.

        Returns
        -------
        list of lists of ndarrays of int64
            What `dyadic_rectangle_costs` returns; the caller may change them.
        """
        kept, self._kept = self._kept, None
        if kept is not None and kept[0][0].shape == counts.shape:
            return kept
        return dyadic_rectangle_costs(counts, *self._quantile, threads=threads)


@contextmanager
def _merger(
    shape: tuple[int, int], quantile: tuple[int, int], threads: int
) -> Iterator[_Merger]:
    """Offer merges of a grid, in jobs of a size that suits caches and threads."""
    if threads < 2:
        # Merges of one row gain nothing from caches.
        piece = MOST_MERGED if shape[0] > 1 else shape[1]
        yield _Merger(shape, quantile, None, piece)
        return
    share = shape[0] * shape[1] // (JOBS_PER_THREAD * threads)
    piece = min(max(share, FEWEST_MERGED), MOST_MERGED)
    with ThreadPoolExecutor(threads) as pool:
        yield _Merger(shape, quantile, pool, piece)


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
    rows = dyadic_rectangle_costs(
        x[np.newaxis], numerator, denominator, threads=threads
    )
    return [costs[0] for costs in rows[0]]


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
    return least_sum_of_costs(costs, level_weights, price)


def least_sum_of_costs(
    costs: Costs, level_weights: list[list[float]], price: int
) -> int:
    """Return what `least_even_cost` returns for counts of these costs. O(n).

    Parameters
    ----------
    costs : list of lists of ndarrays of int64
        What `dyadic_rectangle_costs` returned for the quantile 3/4; they stay as they
        are.
    level_weights : list[list[float]]
        As for `least_even_cost`.
    price : int
        Price of a bucket in units of 2^-18 records.

    Returns
    -------
    int
        The least sum.
    """
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
