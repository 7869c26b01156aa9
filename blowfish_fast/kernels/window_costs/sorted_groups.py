"""Cheapest grouping of sorted values, and cheapest merge of neighbouring ones.

A group of sorted values costs a price, and either its distances to the median, or its
squared distances from the mean and a variance shared by its members. Both satisfy the
quadrangle inequality, so of two starts the later one, once better, stays better: a
queue holds the starts that will be best for some end. For values that are not sorted,
the best begin of the last bucket is kept for every mean it may have, piece by piece; a
new cell adds a parabola to all pieces.
"""

from __future__ import annotations

import math

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import as_input, rises
from blowfish_fast.kernels._jit import helper, kernel


@helper
def _distances(sums: IntArray, start: int, end: int) -> float:
    """Return the sum of distances of sorted values [start, end) to their median."""
    half = (end - start) // 2
    return np.float64(
        (sums[end] - sums[end - half]) - (sums[start + half] - sums[start])
    )


@helper
def _squares(
    sums: FloatArray, squares: FloatArray, shared: float, start: int, end: int
) -> float:
    """Return the squared distances from the mean, and the shared cost."""
    cells = end - start
    total = sums[end] - sums[start]
    spread = squares[end] - squares[start] - total * total / cells
    return float(max(spread, 0.0) + shared / cells)


@kernel
def _overtaken_from(
    sums: AnyArray,
    squares: FloatArray | None,
    shared: float,
    least: FloatArray,
    early: int,
    late: int,
    low: int,
    high: int,
) -> int:
    """Return the first end in [low, high] at which `late` is the better start.

    Most often that is `low` or none, so `low` is looked at first.
    """
    middle = low
    while low < high:
        if squares is None:
            early_cost = least[early] + _distances(sums, early, middle)
            late_cost = least[late] + _distances(sums, late, middle)
        else:
            early_cost = least[early] + _squares(sums, squares, shared, early, middle)
            late_cost = least[late] + _squares(sums, squares, shared, late, middle)
        if late_cost < early_cost:
            high = middle
        else:
            low = middle + 1
        middle = (low + high) // 2
    return low


@kernel
def _cheapest_starts(
    sums: AnyArray,
    squares: FloatArray | None,
    shared: float,
    stretches: IntArray,
    price: float,
    largest: int,
) -> IntArray:
    """Return, for every end, where the last group of the best grouping begins."""
    least = np.zeros(sums.size)
    starts = np.zeros(sums.size, dtype=np.int64)
    queue = np.zeros(sums.size, dtype=np.int64)
    since = np.zeros(sums.size, dtype=np.int64)
    for stretch in range(stretches.size - 1):
        begin, close = stretches[stretch], stretches[stretch + 1]
        front = last = 0
        queue[0], since[0] = begin, begin + 1
        # Not what the stretch before cost: its groups shall not change by rounding.
        least[begin] = 0.0
        for end in range(begin + 1, close + 1):
            while front < last and since[front + 1] <= end:
                front += 1
            start = queue[front]
            starts[end] = start
            if squares is None:
                cost = _distances(sums, start, end)
            else:
                cost = _squares(sums, squares, shared, start, end)
            least[end] = least[start] + cost + price
            if end == close:
                break
            # `end` becomes a start. Those that it overtakes before their turn, or as
            # it comes, are never best again; none is best for more than `largest`.
            turn = end + 1
            while last >= front:
                early = queue[last]
                turn = _overtaken_from(
                    sums, squares, shared, least, early, end,
                    max(since[last], end + 1), min(early + largest, close) + 1,
                )  # fmt: skip
                if turn > max(since[last], end + 1):
                    break
                last -= 1
            if turn <= close:
                last += 1
                queue[last], since[last] = end, turn
    return starts


@kernel
def _read_starts(starts: IntArray) -> BoolArray:
    """Walk back from the end and mark where a group begins."""
    begins = np.zeros(starts.size, dtype=np.bool_)
    end = starts.size - 1
    begins[end] = True
    while end > 0:
        end = starts[end]
        begins[end] = True
    return begins


def group_sorted(
    values: IntArray,
    price: float,
    largest: int | None = None,
    stretches: IntArray | None = None,
) -> IntArray:
    """Return the boundaries of the cheapest grouping of sorted values.

    They are (groups + 1,) int64, from 0 to n; costs are compared as float64 sums.
    Values ascend inside each of the `stretches`, boundaries from 0 to n that no group
    crosses, and their sum must fit 62 bits. A group has at most `largest` values and
    costs `price` and their distances to the median.

    Examples
    --------
    >>> group_sorted(np.array([0, 0, 1, 7, 8, 90]), 3.0)
    array([0, 3, 5, 6])
    >>> group_sorted(np.array([0, 0, 1, 7, 8, 90]), 3.0, largest=2)
    array([0, 2, 3, 5, 6])
    """
    values = as_input(values, np.int64)
    cells = values.size
    most = cells if largest is None else min(largest, cells)
    if values.ndim != 1 or cells == 0 or most < 1 or not price >= 0:
        raise InputError(
            "groups need one axis of at least one value, room for one, and a price of "
            f"0 or more: got shape {values.shape}, largest {largest}, price {price!r}"
        )
    within = _stretches_of(values, stretches)
    sums = np.concatenate([[0], np.cumsum(values)]).astype(np.int64)
    starts = _cheapest_starts(sums, None, 0.0, within, float(price), most)
    return np.flatnonzero(_read_starts(starts))


def group_squares(
    values: AnyArray,
    price: float,
    shared: float,
    stretches: IntArray | None = None,
) -> IntArray:
    """Return the edges of the grouping of sorted values that costs least.

    A group of L values costs their squared distances from the mean and
    ``price + shared / L``. Stretches and result are those of `group_sorted`.

    Examples
    --------
    >>> group_squares(np.array([0, 0, 0, 0, 40, 43, 90]), 1.0, 20.0)
    array([0, 4, 6, 7])
    >>> group_squares(np.array([0, 0, 0, 0, 40, 43, 90]), 1.0, 1e6)
    array([0, 7])
    """
    cells: FloatArray = as_input(values, np.float64)
    if cells.ndim != 1 or cells.size == 0 or not np.isfinite(cells).all():
        raise InputError(
            "a row of finite values is grouped, at least one; got shape "
            f"{cells.shape} or infinities"
        )
    if not (price >= 0 and shared >= 0):
        raise InputError(
            f"price and shared must not be negative: got {price!r} and {shared!r}"
        )
    within = _stretches_of(cells, stretches)
    sums = np.concatenate([[0.0], np.cumsum(cells)])
    squares = np.concatenate([[0.0], np.cumsum(cells * cells)])
    starts = _cheapest_starts(
        sums, squares, float(shared), within, float(price), cells.size
    )
    return np.flatnonzero(_read_starts(starts))


def _stretches_of(values: AnyArray, stretches: IntArray | None) -> IntArray:
    """Return the stretches, one if they are left out; values must ascend in each."""
    cells = values.size
    if stretches is None:
        stretches = np.array([0, cells])
    if not rises(stretches, cells, 1):
        raise InputError(
            f"stretches must increase from 0 to the {cells} values: got "
            f"{stretches.tolist()[:8]} ..."
        )
    descends = np.flatnonzero(values[1:] < values[:-1]) + 1
    if not np.isin(descends, stretches).all():
        raise InputError("values must be sorted in ascending order: got a descent")
    return stretches


LEFT, RIGHT, CELLS, MEAN, COST = range(5)
"""What a piece is: its region; size, mean and cost of the last bucket, all told."""


@kernel
def _best_begins(values: FloatArray, price: float) -> IntArray:
    """Return, for every end, where the last bucket of the best partition begins."""
    begins = np.zeros(values.size + 1, dtype=np.int64)
    room = 64
    pieces = np.zeros((room, 5))
    owners = np.zeros(room, dtype=np.int64)
    spare = np.empty((room, 5))
    spare_owners = np.empty(room, dtype=np.int64)
    pieces[0, LEFT], pieces[0, RIGHT], pieces[0, COST] = -np.inf, np.inf, price
    count = 1
    for end in range(values.size):
        value = values[end]
        best = 0
        for piece in range(count):
            pieces[piece, CELLS] += 1.0
            off = value - pieces[piece, MEAN]
            pieces[piece, MEAN] += off / pieces[piece, CELLS]
            pieces[piece, COST] += off * (value - pieces[piece, MEAN])
            if pieces[piece, COST] < pieces[best, COST]:
                best = piece
        begins[end + 1] = owners[best]
        # From here on the last bucket may also begin anew, at the same cost whatever
        # its mean.
        anew = pieces[best, COST] + price
        if 2 * count + 1 > room:
            room = 4 * count
            spare = np.empty((room, 5))
            spare_owners = np.empty(room, dtype=np.int64)
        kept = 0
        reached = -np.inf
        for piece in range(count):
            below = anew - pieces[piece, COST]
            if below <= 0.0:
                continue
            reach = math.sqrt(below / pieces[piece, CELLS])
            left = max(pieces[piece, LEFT], pieces[piece, MEAN] - reach)
            right = min(pieces[piece, RIGHT], pieces[piece, MEAN] + reach)
            if left >= right:
                continue
            if left > reached:
                spare[kept] = 0.0
                spare[kept, LEFT], spare[kept, RIGHT] = reached, left
                spare[kept, COST] = anew
                spare_owners[kept] = end + 1
                kept += 1
            for field in range(5):
                spare[kept, field] = pieces[piece, field]
            spare[kept, LEFT], spare[kept, RIGHT] = left, right
            spare_owners[kept] = owners[piece]
            kept += 1
            reached = right
        if reached < np.inf:
            spare[kept] = 0.0
            spare[kept, LEFT], spare[kept, RIGHT] = reached, np.inf
            spare[kept, COST] = anew
            spare_owners[kept] = end + 1
            kept += 1
        if pieces.shape[0] < room:
            pieces = np.empty((room, 5))
            owners = np.empty(room, dtype=np.int64)
        pieces, spare = spare, pieces
        owners, spare_owners = spare_owners, owners
        count = kept
    return begins


def merge_buckets(values: AnyArray, price: float) -> IntArray:
    """Return the edges of the partition of least squared error plus a price per bucket.

    They are (k + 1,) int64, from 0 to n. Nothing is merged at a price of 0.

    Examples
    --------
    >>> merge_buckets(np.array([1.0, 2.0, 1.0, 9.0, 8.0]), 3.0)
    array([0, 3, 5])
    """
    cells: FloatArray = as_input(values, np.float64)
    if cells.ndim != 1 or cells.size == 0 or not np.isfinite(cells).all():
        raise InputError(
            f"a row of finite values is merged, not shape {cells.shape} or infinities"
        )
    if not price > 0:
        return np.arange(cells.size + 1, dtype=np.int64)
    return np.flatnonzero(_read_starts(_best_begins(cells, float(price))))
