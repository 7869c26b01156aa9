"""Grouping of sorted values by squared error, when larger groups get less noise.

Serves AHP, which clusters sorted noisy counts. A group is a run of the sorted values;
of L values it costs their squared distances from the mean, a price, and a variance
that its members share: `shared` / L in all.

    sorted   0  0  0  0 | 40  43 | 90       a fresh draw for each of the three groups
    cost     0 + s/4      4.5 + s/2   s/1     s = shared, and the price three times

Squared distances of sorted values and any convex function of L satisfy the quadrangle
inequality: of two starts the later, once better, stays better. The starts that are
best for some end to come wait in line, each with the end from which it is best.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import helper, kernel


@helper
def _group_cost(
    sums: FloatArray, squares: FloatArray, shared: float, start: int, end: int
) -> float:
    """Return the cost of sorted values [start, end) without the price."""
    cells = end - start
    total = sums[end] - sums[start]
    spread = squares[end] - squares[start] - total * total / cells
    return float(max(spread, 0.0) + shared / cells)


@kernel
def _overtaken_from(
    sums: FloatArray,
    squares: FloatArray,
    shared: float,
    least: FloatArray,
    elder: int,
    younger: int,
    low: int,
    high: int,
) -> int:
    """Return the first end in [low, high] at which `younger` is the better start."""
    while low < high:
        middle = (low + high) // 2
        old = least[elder] + _group_cost(sums, squares, shared, elder, middle)
        new = least[younger] + _group_cost(sums, squares, shared, younger, middle)
        if new < old:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _last_starts(
    sums: FloatArray,
    squares: FloatArray,
    stretches: IntArray,
    price: float,
    shared: float,
) -> IntArray:
    """Return, for every end, where the last group of the best grouping begins."""
    least = np.zeros(sums.size)
    starts = np.zeros(sums.size, dtype=np.int64)
    waiting = np.zeros(sums.size, dtype=np.int64)
    since = np.zeros(sums.size, dtype=np.int64)
    for stretch in range(stretches.size - 1):
        begin, close = stretches[stretch], stretches[stretch + 1]
        first = last = 0
        waiting[0], since[0] = begin, begin + 1
        for end in range(begin + 1, close + 1):
            while first < last and since[first + 1] <= end:
                first += 1
            start = waiting[first]
            starts[end] = start
            cost = _group_cost(sums, squares, shared, start, end)
            least[end] = least[start] + cost + price
            if end == close:
                break
            # `end` begins to wait. An elder that it overtakes before its turn, or as
            # its turn comes, is never best again.
            turn = close + 1
            while last >= first:
                elder = waiting[last]
                earliest = max(since[last], end + 1)
                turn = _overtaken_from(
                    sums, squares, shared, least, elder, end, earliest, close + 1
                )
                if turn > earliest or last == first:
                    break
                last -= 1
            if turn <= end + 1 and last == first:
                waiting[last], since[last] = end, end + 1
            elif turn <= close:
                last += 1
                waiting[last], since[last] = end, turn
    return starts


@kernel
def _group_edges(starts: IntArray) -> IntArray:
    """Return the edges of the best grouping, read from the last value back."""
    edges = np.empty(starts.size, dtype=np.int64)
    place = starts.size - 1
    end = starts.size - 1
    edges[place] = end
    while end > 0:
        end = starts[end]
        place -= 1
        edges[place] = end
    return edges[place:].copy()


def group_squares(
    values: AnyArray,
    price: float,
    shared: float,
    stretches: IntArray | None = None,
) -> IntArray:
    """Return the edges of the grouping of sorted values that costs least.

    Parameters
    ----------
    values : (n,) int64 or float64
        In ascending order inside each stretch, finite.
    price : float
        Cost of a group, not negative.
    shared : float
        Cost of a group that is divided by the number of its values, not negative.
    stretches : (stretches + 1,) int64, optional
        Increasing from 0 to n; no group crosses these. One stretch if left out.

    Returns
    -------
    (groups + 1,) int64
        From 0 to n; of least cost up to the rounding of float64 sums. O(n log n).

    Examples
    --------
    >>> group_squares(np.array([0, 0, 0, 0, 40, 43, 90]), 1.0, 20.0)
    array([0, 4, 6, 7])
    >>> group_squares(np.array([0, 0, 0, 0, 40, 43, 90]), 1.0, 1e6)
    array([0, 7])
    """
    cells: FloatArray = np.ascontiguousarray(values, dtype=np.float64)
    if cells.ndim != 1 or cells.size == 0 or not np.isfinite(cells).all():
        raise InputError(
            "a row of finite values is grouped, at least one; got shape "
            f"{cells.shape} or infinities"
        )
    if not (price >= 0 and shared >= 0):
        raise InputError(
            f"price and shared must not be negative: got {price!r} and {shared!r}"
        )
    if stretches is None:
        stretches = np.array([0, cells.size])
    if (
        stretches.size < 2
        or stretches[0] != 0
        or stretches[-1] != cells.size
        or (np.diff(stretches) <= 0).any()
    ):
        raise InputError(
            f"stretches must increase from 0 to the {cells.size} values: got "
            f"{stretches.tolist()[:8]} ..."
        )
    descends = np.flatnonzero(cells[1:] < cells[:-1]) + 1
    if not np.isin(descends, stretches).all():
        raise InputError("values must be sorted in ascending order: got a descent")
    sums = np.concatenate([[0.0], np.cumsum(cells)])
    squares = np.concatenate([[0.0], np.cumsum(cells * cells)])
    return _group_edges(
        _last_starts(sums, squares, stretches, float(price), float(shared))
    )
