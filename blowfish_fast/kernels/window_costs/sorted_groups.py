"""Cheapest grouping of sorted values, and cheapest merge of neighbouring ones.

A group is a run of the sorted values. It costs a price, and either the sum of distances
to its median, or the squared distances from its mean and a variance that its L members
share: `shared` / L in all.

    sorted   0  0  1 | 7  8 | 90      groups of deviation 1, 1 and 0
    queue    start 0 is best for ends 1..3, start 3 for ends 4..5, start 5 for end 6

Either cost satisfies the quadrangle inequality, as any convex function of L does, so of
two starts the later one, once better, stays better. A queue holds the starts that will
be best for some end; where one takes over from another is found by bisection.

Values that are not sorted are merged at squared distances plus a price per bucket. The
last bucket's mean is left open; for every possible mean, one begin of it is best:

    mean of the last bucket   -----------|-----------|------->
    best begin                   cell 7      cell 3     cell 7

A new cell adds a parabola to all pieces. The least point of them all is the cost of the
best partition so far; a new bucket may begin after it at that cost plus the price, and
takes over where pieces lie higher. In practice a dozen pieces or so remain.
"""

from __future__ import annotations

import math

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import (
    as_input,
    refuse_wide_sums,
    rises,
    whole_numbers,
)
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
    """Return, for every end, where the last group of the best grouping begins.

    `sums` and `squares` are running totals of the values, from 0; `stretches` are where
    stretches begin, 0 first and n last; no group crosses these.
    """
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

    Parameters
    ----------
    values : ndarray of int64, shape (n,)
        In ascending order, inside each stretch; their sum must fit 62 bits.
    price : float
        Cost of a group, not negative.
    largest : int, optional
        Most values in a group; None for any number.
    stretches : ndarray of int64, shape (stretches + 1,), optional
        Increasing from 0 to n; no group crosses these. There is one stretch by default.

    Returns
    -------
    ndarray of int64, shape (groups + 1,)
        From 0 to n; of least total cost, up to the rounding of float64 sums.

    Raises
    ------
    InputError
        If values do not ascend, or a number is out of range.

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
    refuse_wide_sums(values, "values")
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
    """Return the edges of the grouping of sorted values that costs least in squares.

    A group of L values costs their squared distances from the mean and ``price + shared
    / L``. It takes O(n log n).

    Parameters
    ----------
    values : array-like, shape (n,)
        In ascending order inside each stretch, finite.
    price : float
        Cost of a group, not negative.
    shared : float
        Cost of a group that is divided by the number of its values, not negative.
    stretches : ndarray of int64, shape (stretches + 1,), optional
        Increasing from 0 to n; no group crosses these. There is one stretch by default.

    Returns
    -------
    ndarray of int64, shape (groups + 1,)
        From 0 to n; of least cost up to the rounding of float64 sums.

    Raises
    ------
    InputError
        If values do not ascend or are not finite, or a number is negative.

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
    stretches = whole_numbers(stretches)
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
        count_of_pieces = 0
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
                spare[count_of_pieces] = 0.0
                spare[count_of_pieces, LEFT], spare[count_of_pieces, RIGHT] = (
                    reached,
                    left,
                )
                spare[count_of_pieces, COST] = anew
                spare_owners[count_of_pieces] = end + 1
                count_of_pieces += 1
            for field in range(5):
                spare[count_of_pieces, field] = pieces[piece, field]
            spare[count_of_pieces, LEFT], spare[count_of_pieces, RIGHT] = left, right
            spare_owners[count_of_pieces] = owners[piece]
            count_of_pieces += 1
            reached = right
        if reached < np.inf:
            spare[count_of_pieces] = 0.0
            spare[count_of_pieces, LEFT], spare[count_of_pieces, RIGHT] = (
                reached,
                np.inf,
            )
            spare[count_of_pieces, COST] = anew
            spare_owners[count_of_pieces] = end + 1
            count_of_pieces += 1
        if pieces.shape[0] < room:
            pieces = np.empty((room, 5))
            owners = np.empty(room, dtype=np.int64)
        pieces, spare = spare, pieces
        owners, spare_owners = spare_owners, owners
        count = count_of_pieces
    return begins


def merge_buckets(values: AnyArray, price: float) -> IntArray:
    """Return the edges of the partition of least squared error plus a price per bucket.

    Parameters
    ----------
    values : array-like, shape (n,)
        Finite values, in any order.
    price : float
        Cost of a bucket. Nothing is merged at 0.

    Returns
    -------
    ndarray of int64, shape (k + 1,)
        From 0 to n.

    Raises
    ------
    InputError
        If a value is not finite.

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
    if np.isnan(price):
        raise InputError("a price is a number", received=repr(price))
    if not price > 0:
        return np.arange(cells.size + 1, dtype=np.int64)
    return np.flatnonzero(_read_starts(_best_begins(cells, float(price))))
