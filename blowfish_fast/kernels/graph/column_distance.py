"""The two columns of a sparse matrix that lie furthest apart, among allowed pairs.

A record that moves from cell u to cell v changes the answers by the difference of two
columns of the workload, and the worst allowed pair is the sensitivity. Columns are
compressed, their rows sorted, so two of them are compared by merging:

    column u   row 0: 1    row 3: 2             |u - v| = 1 + 1 + 4 = 6
    column v               row 3: 1   row 5: 4

A pair can differ by no more than the sum of its two lengths, which skips almost every
merge once a good pair is known. Work is counted in entries and stops at a budget; the
answer then comes with a ceiling that no pair exceeds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import rises
from blowfish_fast.kernels._jit import kernel

from .graph_distance import repeats


class Separation(NamedTuple):
    """The largest distance of two columns, as far as the search went.

    Attributes
    ----------
    largest : float
        The largest distance among the pairs that were compared.
    ceiling : float
        What no pair exceeds; equal to `largest` if all pairs were compared or skipped.
    work : int
        How many entries were read.
    """

    largest: float
    ceiling: float
    work: int


@kernel
def _apart(
    pointers: IntArray, rows: IntArray, values: FloatArray, left: int, right: int
) -> float:
    left_entry, left_end = pointers[left], pointers[left + 1]
    right_entry, right_end = pointers[right], pointers[right + 1]
    total = 0.0
    while left_entry < left_end and right_entry < right_end:
        if rows[left_entry] == rows[right_entry]:
            total += abs(values[left_entry] - values[right_entry])
            left_entry += 1
            right_entry += 1
        elif rows[left_entry] < rows[right_entry]:
            total += abs(values[left_entry])
            left_entry += 1
        else:
            total += abs(values[right_entry])
            right_entry += 1
    for rest in range(left_entry, left_end):
        total += abs(values[rest])
    for rest in range(right_entry, right_end):
        total += abs(values[rest])
    return total


@kernel
def _in_windows(
    pointers: IntArray,
    rows: IntArray,
    values: FloatArray,
    lengths: FloatArray,
    far: IntArray,
    descending: bool,
    budget: int,
) -> tuple[float, float, int]:
    best = 0.0
    work = 0
    for left in range(far.size):
        for right in range(left + 1, far[left] + 1):
            work += 1
            if lengths[left] + lengths[right] <= best:
                if descending:
                    break
                continue
            if work > budget:
                if not descending:
                    return best, np.inf, work
                ceiling = max(best, lengths[left] + lengths[right])
                if left + 2 < lengths.size:
                    ceiling = max(ceiling, lengths[left + 1] + lengths[left + 2])
                return best, ceiling, work
            work += pointers[left + 1] - pointers[left]
            work += pointers[right + 1] - pointers[right]
            best = max(best, _apart(pointers, rows, values, left, right))
        if work > 4 * budget:
            return best, np.inf, work
    return best, best, work


@kernel
def _in_pairs(
    pointers: IntArray,
    rows: IntArray,
    values: FloatArray,
    lengths: FloatArray,
    first: IntArray,
    second: IntArray,
    best: float,
    budget: int,
) -> tuple[float, float, int]:
    work = 0
    for pair in range(first.size):
        left, right = first[pair], second[pair]
        work += 1
        if lengths[left] + lengths[right] <= best:
            continue
        if work > budget:
            return best, np.inf, work
        work += pointers[left + 1] - pointers[left]
        work += pointers[right + 1] - pointers[right]
        best = max(best, _apart(pointers, rows, values, left, right))
    return best, best, work


def column_lengths(pointers: IntArray, values: FloatArray) -> FloatArray:
    """Return the sum of absolute values of each column.

    Parameters
    ----------
    pointers : ndarray of int64, shape (columns + 1,)
        Column c owns the entries ``pointers[c]`` up to ``pointers[c + 1]``.
    values : ndarray of float64, shape (entries,)
        The entries.

    Returns
    -------
    ndarray of float64, shape (columns,)
        The sums.
    """
    columns = np.repeat(np.arange(pointers.size - 1), np.diff(pointers))
    sums = np.bincount(columns, np.abs(values), minlength=pointers.size - 1)
    return sums.astype(np.float64)


def furthest_in_windows(
    pointers: IntArray,
    rows: IntArray,
    values: FloatArray,
    lengths: FloatArray,
    far: IntArray,
    *,
    descending: bool = False,
    budget: int,
) -> Separation:
    """Return the largest distance between column i and columns i + 1 .. far[i].

    Parameters
    ----------
    pointers : ndarray of int64, shape (columns + 1,)
        Column c owns the entries ``pointers[c]`` up to ``pointers[c + 1]``.
    rows : ndarray of int64, shape (entries,)
        The row of each entry, rising within a column.
    values : ndarray of float64, shape (entries,)
        The entries.
    lengths : ndarray of float64, shape (columns,)
        What `column_lengths` returned.
    far : ndarray of int64, shape (columns,)
        The last column that each one is compared with.
    descending : bool, default False
        Whether `lengths` never increase; most pairs are never looked at then.
    budget : int
        After so many entries were read, exactness is given up.

    Returns
    -------
    Separation
        The largest distance, and its ceiling.

    Raises
    ------
    InputError
        If arrays do not fit each other, or `far` names no column.
    """
    _check_columns(pointers, rows, values, lengths)
    if far.shape != lengths.shape or (far.size and far.max() >= lengths.size):
        raise InputError(
            f"each of the {lengths.size} columns needs a last column to compare with"
        )
    largest, ceiling, work = _in_windows(
        pointers, rows, values, lengths, far, descending, budget
    )
    return Separation(largest, min(ceiling, _two_longest(lengths)), work)


def furthest_in_pairs(
    pointers: IntArray,
    rows: IntArray,
    values: FloatArray,
    lengths: FloatArray,
    first: IntArray,
    second: IntArray,
    *,
    at_least: float = 0.0,
    budget: int,
) -> Separation:
    """Return the largest distance between the columns of listed pairs.

    Parameters
    ----------
    pointers : ndarray of int64, shape (columns + 1,)
        Column c owns the entries ``pointers[c]`` up to ``pointers[c + 1]``.
    rows : ndarray of int64, shape (entries,)
        The row of each entry, rising within a column.
    values : ndarray of float64, shape (entries,)
        The entries.
    lengths : ndarray of float64, shape (columns,)
        What `column_lengths` returned.
    first : ndarray of int64, shape (pairs,)
        One column of each pair.
    second : ndarray of int64, shape (pairs,)
        The other one.
    at_least : float, default 0.0
        A distance that is known already: pairs that cannot exceed it are skipped, and
        the answer is not below it.
    budget : int
        After so many entries were read, exactness is given up.

    Returns
    -------
    Separation
        The largest distance, and its ceiling.

    Raises
    ------
    InputError
        If arrays do not fit each other, or a pair names no column.
    """
    _check_columns(pointers, rows, values, lengths)
    if first.shape != second.shape or (
        first.size
        and (
            min(first.min(), second.min()) < 0
            or max(first.max(), second.max()) >= lengths.size
        )
    ):
        raise InputError(f"pairs must name columns from 0 to {lengths.size - 1}")
    largest, ceiling, work = _in_pairs(
        pointers, rows, values, lengths, first, second, at_least, budget
    )
    return Separation(largest, min(ceiling, max(at_least, _two_longest(lengths))), work)


def _two_longest(lengths: FloatArray) -> float:
    if lengths.size < 2:
        return 0.0
    return float(np.partition(lengths, -2)[-2:].sum())


def repeated_columns(
    order: IntArray, pointers: IntArray, rows: IntArray, values: FloatArray
) -> BoolArray:
    """Mark, along `order`, the columns that equal the column before them.

    Parameters
    ----------
    order : ndarray of int64
        Columns in the order in which they are compared.
    pointers : ndarray of int64, shape (columns + 1,)
        Column c owns the entries ``pointers[c]`` up to ``pointers[c + 1]``.
    rows : ndarray of int64, shape (entries,)
        The row of each entry, rising within a column.
    values : ndarray of float64, shape (entries,)
        The entries.

    Returns
    -------
    ndarray of bool
        One mark for each place of `order`; False at the first.

    Raises
    ------
    InputError
        If arrays do not fit each other, or the order names no column.
    """
    _check_columns(pointers, rows, values, pointers[:-1])
    if order.size and (order.min() < 0 or order.max() >= pointers.size - 1):
        raise InputError(f"the order must name columns from 0 to {pointers.size - 2}")
    return repeats(order, pointers, rows, values)


def _check_columns(
    pointers: IntArray,
    rows: IntArray,
    values: FloatArray,
    lengths: FloatArray | IntArray,
) -> None:
    fits = rises(pointers, rows.size) and rows.size == values.size
    if not fits or pointers.size != lengths.size + 1:
        raise InputError(
            "compressed columns need one pointer per column and one more, from 0 to "
            f"the number of entries; received {pointers.size} pointers for "
            f"{lengths.size} columns, {rows.size} rows and {values.size} values"
        )
