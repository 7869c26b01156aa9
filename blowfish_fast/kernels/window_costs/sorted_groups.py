"""Least-cost grouping of sorted values, in O(n log n).

Serves the noisy-sort partition: cells of similar noisy counts share a bucket. A group
is a run of the sorted values; it costs the sum of distances to its median plus a price.

    sorted   0  0  1 | 7  8 | 90      groups of deviation 1, 1 and 0
    queue    start 0 is best for ends 1..3, start 3 for ends 4..5, start 5 for end 6

The deviation satisfies the quadrangle inequality, so of two starts the later one, once
better, stays better. A queue holds the starts that will be best for some end; where
one takes over from another is found by bisection.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import helper, kernel


@helper
def _deviation(sums: IntArray, start: int, end: int) -> float:
    """Return the sum of distances of sorted values [start, end) to their median."""
    half = (end - start) // 2
    return np.float64(
        (sums[end] - sums[end - half]) - (sums[start + half] - sums[start])
    )


@kernel
def _is_better(
    sums: IntArray, least: FloatArray, late: int, early: int, end: int, largest: int
) -> bool:
    """Return whether the group up to `end` should rather begin at `late`."""
    if end - early > largest:
        return True
    late_cost = least[late] + _deviation(sums, late, end)
    early_cost = least[early] + _deviation(sums, early, end)
    return bool(late_cost < early_cost)


@kernel
def _cheapest_starts(
    sums: IntArray, stretches: IntArray, price: float, largest: int
) -> IntArray:
    """Return, for every end, where the last group of the best grouping begins.

    Parameters
    ----------
    sums : (n + 1,) int64
        Running totals of the values, from 0.
    stretches : (stretches + 1,) int64
        Where stretches begin, 0 first and n last; no group crosses these.
    """
    least = np.zeros(sums.size)
    starts = np.zeros(sums.size, dtype=np.int64)
    queue = np.zeros(sums.size, dtype=np.int64)
    since = np.zeros(sums.size, dtype=np.int64)
    for stretch in range(stretches.size - 1):
        begin, close = stretches[stretch], stretches[stretch + 1]
        front = last = 0
        queue[0], since[0] = begin, begin + 1
        for end in range(begin + 1, close + 1):
            while front < last and since[front + 1] <= end:
                front += 1
            start = queue[front]
            starts[end] = start
            least[end] = least[start] + _deviation(sums, start, end) + price
            # `end` becomes a start. Those that it beats where they would begin to be
            # best are never best again.
            low = end + 1
            while last >= front and end < close:
                low = max(since[last], end + 1)
                if not _is_better(sums, least, end, queue[last], low, largest):
                    break
                last -= 1
            if last < front:
                last = front
                queue[last], since[last] = end, end + 1
                continue
            high = close + 1
            while high - low > 1:
                middle = (low + high) // 2
                if _is_better(sums, least, end, queue[last], middle, largest):
                    high = middle
                else:
                    low = middle
            if high <= close:
                last += 1
                queue[last], since[last] = end, high
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
    values : (n,) int64
        In ascending order, inside each stretch; their sum must fit 62 bits.
    price : float
        Cost of a group, not negative.
    largest : int, optional
        Most values in a group.
    stretches : (stretches + 1,) int64, optional
        Increasing from 0 to n; no group crosses these. One stretch if left out.

    Returns
    -------
    (groups + 1,) int64
        From 0 to n. Of least total cost, up to the rounding of float64 sums.

    Examples
    --------
    >>> group_sorted(np.array([0, 0, 1, 7, 8, 90]), 3.0)
    array([0, 3, 5, 6])
    >>> group_sorted(np.array([0, 0, 1, 7, 8, 90]), 3.0, largest=2)
    array([0, 2, 3, 5, 6])
    """
    values = np.ascontiguousarray(values, dtype=np.int64)
    cells = values.size
    most = cells if largest is None else min(largest, cells)
    if values.ndim != 1 or cells == 0 or most < 1 or not price >= 0:
        raise InputError(
            "groups need one axis of at least one value, room for one, and a price of "
            f"0 or more: got shape {values.shape}, largest {largest}, price {price!r}"
        )
    if stretches is None:
        stretches = np.array([0, cells])
    if (
        stretches.size < 2
        or stretches[0] != 0
        or stretches[-1] != cells
        or (np.diff(stretches) <= 0).any()
    ):
        raise InputError(
            f"stretches must increase from 0 to the {cells} values: got "
            f"{stretches.tolist()[:8]} ..."
        )
    descends = np.flatnonzero(values[1:] < values[:-1]) + 1
    if not np.isin(descends, stretches).all():
        raise InputError("values must be sorted in ascending order: got a descent")
    sums = np.concatenate([[0], np.cumsum(values)]).astype(np.int64)
    return np.flatnonzero(
        _read_starts(_cheapest_starts(sums, stretches, float(price), most))
    )
