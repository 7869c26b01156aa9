"""Queries as sorted intervals, and their projection onto buckets.

A query is a list of disjoint cell intervals, each with one value; all queries lie in
one compressed array, query `i` owning the intervals ``pointers[i]`` up to ``pointers[i
+ 1]``. Buckets are runs of cells between consecutive edges. The records of a bucket are
taken to be spread evenly over its cells, so a query takes from a bucket the covered
part of it:

    cells     0 1 2 3 4 5 6 7 8           edges   0 2 5 9
    buckets   [0] [ 1 ] [  2  ]
    query       1 1 1 1 1                 pieces  [0, 1) 1/2   [1, 2) 1   [2, 3) 1/4

A covered part is a ratio of whole numbers, added up before it is divided: intervals
that meet inside a bucket fill it to exactly the value they share.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import as_input, rises, whole_numbers
from blowfish_fast.kernels._jit import kernel


def _sorted_within_rows(pointers: IntArray, starts: IntArray, ends: IntArray) -> bool:
    """Return whether the intervals of each row are sorted and disjoint."""
    begins = np.zeros(starts.size + 1, dtype=np.bool_)
    begins[pointers] = True
    follows = (starts[1:] >= ends[:-1]) | begins[1:-1]
    return bool((ends >= starts).all() and follows.all())


def check_pieces(
    pointers: IntArray, starts: IntArray, ends: IntArray, limit: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Return compressed intervals as contiguous int64 after checking their form.

    Parameters
    ----------
    pointers : ndarray of int64, shape (rows + 1,)
        Row i owns the intervals ``pointers[i]`` up to ``pointers[i + 1]``.
    starts : ndarray of int64, shape (intervals,)
        The start of each interval.
    ends : ndarray of int64, shape (intervals,)
        Its end; intervals of a row are half-open, sorted and disjoint.
    limit : int
        No interval reaches beyond it.

    Returns
    -------
    pointers : ndarray of int64, shape (rows + 1,)
        The pointers.
    starts : ndarray of int64, shape (intervals,)
        The starts.
    ends : ndarray of int64, shape (intervals,)
        The ends.

    Raises
    ------
    InputError
        If intervals overlap, are unsorted or leave [0, limit], or sizes do not fit.
    """
    pointers = as_input(pointers, np.int64)
    starts = as_input(starts, np.int64)
    ends = as_input(ends, np.int64)
    if starts.ndim != 1 or starts.shape != ends.shape:
        raise InputError(
            "starts and ends hold one number per interval, got shapes "
            f"{starts.shape} and {ends.shape}"
        )
    if not rises(pointers, starts.size):
        raise InputError(
            f"pointers climb from 0 to the number of intervals, here {starts.size}; "
            "give one more pointer than there are queries"
        )
    if starts.size and (starts.min() < 0 or ends.max() > limit):
        raise InputError(
            f"intervals lie within [0, {limit}), got positions from {starts.min()} to "
            f"{ends.max()}"
        )
    if not _sorted_within_rows(pointers, starts, ends):
        raise InputError(
            "the intervals of a query are sorted and disjoint; sort them by their "
            "starts and merge those that overlap"
        )
    return pointers, starts, ends


def _check_edges(edges: IntArray) -> IntArray:
    """Return bucket edges as contiguous int64 after checking that they rise from 0."""
    edges = as_input(edges, np.int64)
    if edges.size < 2 or not rises(edges, edges[-1], 1):
        raise InputError(
            "bucket edges are whole numbers that rise from 0 to the number of cells, "
            f"each bucket holding at least one; got an array of shape {edges.shape}"
        )
    return edges


def check_values(values: FloatArray, intervals: int) -> FloatArray:
    """Return the values of intervals as contiguous float64, one for each.

    Parameters
    ----------
    values : ndarray of float64, shape (intervals,)
        The values.
    intervals : int
        How many there have to be.

    Returns
    -------
    ndarray of float64, shape (intervals,)
        The values.

    Raises
    ------
    InputError
        If there is another number of values.
    """
    values = as_input(values, np.float64)
    if values.shape != (intervals,):
        raise InputError(
            f"each of the {intervals} intervals has one value, got an array of shape "
            f"{values.shape}"
        )
    return values


@kernel
def bucket_landmarks(edges: IntArray) -> tuple[IntArray, int]:
    """Return the bucket at every 2**shift-th cell, and the shift.

    There are at most twice as many landmarks as buckets, and one. For the edges 0, 2, 5
    and 9 the shift is 1, and the landmarks are the buckets of the cells 0, 2, 4, 6, 8.

    Parameters
    ----------
    edges : ndarray of int64, shape (buckets + 1,)
        Cell edges of the buckets, rising from 0.

    Returns
    -------
    marks : ndarray of int64, shape (landmarks,)
        The bucket that holds cell ``number << shift``, for each landmark's number.
    shift : int
        Binary logarithm of the cells from one landmark to the next.
    """
    buckets = edges.size - 1
    cells = edges[buckets]
    shift = 0
    while cells >> shift > 2 * buckets:
        shift += 1
    marks = np.empty((cells >> shift) + 1, dtype=np.int64)
    bucket = 0
    for mark in range(marks.size):
        while bucket + 1 < buckets and edges[bucket + 1] <= mark << shift:
            bucket += 1
        marks[mark] = bucket
    return marks, shift


@kernel
def _bucket_of(edges: IntArray, marks: IntArray, shift: int, cell: int) -> int:
    """Return the bucket that holds `cell`; the last one for the end of all cells.

    The search goes from the landmark on in doubling steps, then halves: most cells lie
    near their landmark, so this beats a bisection over all buckets.
    """
    bucket = int(marks[cell >> shift])
    last = edges.size - 1
    step = 1
    while bucket + step < last and edges[bucket + step] <= cell:
        bucket += step
        step *= 2
    beyond = min(bucket + step, last)
    while beyond - bucket > 1:
        middle = (bucket + beyond) // 2
        if edges[middle] <= cell:
            bucket = middle
        else:
            beyond = middle
    return bucket


@kernel
def _end_buckets(
    starts: IntArray, ends: IntArray, edges: IntArray, marks: IntArray, shift: int
) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
    """Return what `ranges_to_fractions` does, with the landmarks of the edges."""
    first = np.empty(starts.size, dtype=np.int64)
    last = np.empty(starts.size, dtype=np.int64)
    first_fraction = np.empty(starts.size)
    last_fraction = np.empty(starts.size)
    for query in range(starts.size):
        start = starts[query]
        end = ends[query]
        left = _bucket_of(edges, marks, shift, start)
        right = left
        if end > edges[left + 1]:
            right = _bucket_of(edges, marks, shift, end - 1)
        first[query] = left
        last[query] = right
        covered = min(end, edges[left + 1]) - start
        first_fraction[query] = covered / (edges[left + 1] - edges[left])
        covered = end - max(start, edges[right])
        last_fraction[query] = covered / (edges[right + 1] - edges[right])
    return first, first_fraction, last, last_fraction


@kernel
def _project(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    edges: IntArray,
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return what `intervals_to_pieces` does, of arguments that were checked.

    Two steps for each query. First its intervals are cut at the edges of buckets into
    *parts*: a part is one bucket, or a run of buckets that an interval covers whole.
    Intervals that share a bucket are added up in one part. Then parts beside each other
    with the same value become one *piece*, and parts of value 0 are dropped.
    """
    marks, shift = bucket_landmarks(edges)
    piece_start = np.empty(3 * starts.size, dtype=np.int64)
    piece_end = np.empty(3 * starts.size, dtype=np.int64)
    piece_value = np.empty(3 * starts.size)
    piece_pointers = np.zeros(pointers.size, dtype=np.int64)
    most_intervals = 0
    for row in range(pointers.size - 1):
        most_intervals = max(most_intervals, pointers[row + 1] - pointers[row])
    # An interval adds at most a first bucket, a run of whole ones and a last bucket.
    room = 3 * most_intervals
    # A part holds the buckets from `part_start` up to `part_end`. Of its cells,
    # `part_cells` have the value `part_value`; what cells of other values add up to is
    # in `part_sum`. So equal values are counted first and multiplied once, and a bucket
    # that they fill has exactly that value.
    part_start = np.empty(room, dtype=np.int64)
    part_end = np.empty(room, dtype=np.int64)
    part_cells = np.empty(room, dtype=np.int64)
    part_value = np.empty(room)
    part_sum = np.empty(room)
    count = 0
    for row in range(pointers.size - 1):
        parts = 0
        for interval in range(pointers[row], pointers[row + 1]):
            start = starts[interval]
            end = ends[interval]
            value = values[interval]
            if start == end:
                continue
            bucket = _bucket_of(edges, marks, shift, start)
            edge = edges[bucket + 1]
            if parts == 0 or part_start[parts - 1] != bucket:
                part_start[parts], part_end[parts] = bucket, bucket + 1
                part_cells[parts], part_value[parts], part_sum[parts] = 0, value, 0.0
                parts += 1
            last = parts - 1
            if part_value[last] != value:
                part_sum[last] += part_value[last] * part_cells[last]
                part_value[last] = value
                part_cells[last] = 0
            part_cells[last] += min(end, edge) - start
            if end <= edge:
                continue
            right = _bucket_of(edges, marks, shift, end - 1)
            if right > bucket + 1:
                part_start[parts], part_end[parts] = bucket + 1, right
                part_cells[parts] = edges[right] - edge
                part_value[parts], part_sum[parts] = value, 0.0
                parts += 1
            part_start[parts], part_end[parts] = right, right + 1
            part_cells[parts] = end - edges[right]
            part_value[parts], part_sum[parts] = value, 0.0
            parts += 1
        row_begin = count
        for part in range(parts):
            start = part_start[part]
            end = part_end[part]
            value = part_value[part]
            size = edges[end] - edges[start]
            if part_cells[part] < size:
                value = (part_sum[part] + value * part_cells[part]) / size
            if value == 0.0:
                continue
            if (
                count > row_begin
                and piece_end[count - 1] == start
                and piece_value[count - 1] == value
            ):
                piece_end[count - 1] = end
            else:
                piece_start[count] = start
                piece_end[count] = end
                piece_value[count] = value
                count += 1
        piece_pointers[row + 1] = count
    return (
        piece_pointers,
        piece_start[:count].copy(),
        piece_end[:count].copy(),
        piece_value[:count].copy(),
    )


def intervals_to_pieces(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    edges: IntArray,
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Project queries over cells onto buckets, in O(buckets + intervals) as a rule.

    Where bucket sizes are very uneven an interval may cost O(log buckets).

    Parameters
    ----------
    pointers : ndarray of int64, shape (queries + 1,)
        Query `i` owns the intervals ``pointers[i]`` up to ``pointers[i + 1]``.
    starts : ndarray of int64, shape (intervals,)
        The first cell of each interval; those of a query are sorted and disjoint.
    ends : ndarray of int64, shape (intervals,)
        The cell after its last.
    values : ndarray of float64, shape (intervals,)
        Coefficient of the query on each cell of the interval.
    edges : ndarray of int64, shape (buckets + 1,)
        Cell edges of the buckets, rising from 0.

    Returns
    -------
    pointers : ndarray of int64, shape (queries + 1,)
        Query `i` owns the pieces ``pointers[i]`` up to ``pointers[i + 1]``.
    starts : ndarray of int64, shape (pieces,)
        The first bucket of each piece. Pieces are as long as they can be.
    ends : ndarray of int64, shape (pieces,)
        The bucket after its last.
    values : ndarray of float64, shape (pieces,)
        The average coefficient over the cells of a bucket; never 0.

    Raises
    ------
    InputError
        If the intervals or the edges do not have this form.

    Examples
    --------
    >>> edges = np.array([0, 2, 5, 9])
    >>> query = np.array([0, 1]), np.array([1]), np.array([6]), np.array([1.0])
    >>> intervals_to_pieces(*query, edges)[1:]
    (array([0, 1, 2]), array([1, 2, 3]), array([0.5 , 1.  , 0.25]))
    """
    edges = _check_edges(edges)
    pointers, starts, ends = check_pieces(pointers, starts, ends, int(edges[-1]))
    values = check_values(values, starts.size)
    return _project(pointers, starts, ends, values, edges)


def ranges_to_fractions(
    starts: IntArray, ends: IntArray, edges: IntArray
) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
    """Project plain ranges of cells onto buckets; costs as `intervals_to_pieces`.

    Parameters
    ----------
    starts : ndarray of int64, shape (queries,)
        The first cell of each range.
    ends : ndarray of int64, shape (queries,)
        The cell after its last.
    edges : ndarray of int64, shape (buckets + 1,)
        Cell edges of the buckets, rising from 0.

    Returns
    -------
    first : ndarray of int64, shape (queries,)
        The bucket that holds the first cell.
    first_fraction : ndarray of float64, shape (queries,)
        The covered fraction of that bucket; 0 for an empty range.
    last : ndarray of int64, shape (queries,)
        The bucket that holds the last cell.
    last_fraction : ndarray of float64, shape (queries,)
        The covered fraction of that bucket; equal to the first if both are one bucket.

    Raises
    ------
    InputError
        If a range leaves the cells, or the edges do not rise from 0.

    Examples
    --------
    >>> ranges_to_fractions(np.array([1]), np.array([6]), np.array([0, 2, 5, 9]))
    (array([0]), array([0.5]), array([2]), array([0.25]))
    """
    edges = _check_edges(edges)
    starts = whole_numbers(starts)
    one_each = np.arange(starts.size + 1)
    _, starts, ends = check_pieces(one_each, starts, ends, int(edges[-1]))
    return _end_buckets(starts, ends, edges, *bucket_landmarks(edges))


def end_buckets(
    starts: IntArray, ends: IntArray, edges: IntArray, landmarks: tuple[IntArray, int]
) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
    """Return `ranges_to_fractions` of ranges and edges that were checked before.

    Parameters
    ----------
    starts : ndarray of int64, shape (queries,)
        The first cell of each range.
    ends : ndarray of int64, shape (queries,)
        The cell after its last.
    edges : ndarray of int64, shape (buckets + 1,)
        Cell edges of the buckets, rising from 0.
    landmarks : tuple[ndarray of int64, int]
        What `bucket_landmarks` returned for the edges: no work over all buckets.

    Returns
    -------
    first : ndarray of int64, shape (queries,)
        The bucket that holds the first cell.
    first_fraction : ndarray of float64, shape (queries,)
        The covered fraction of that bucket.
    last : ndarray of int64, shape (queries,)
        The bucket that holds the last cell.
    last_fraction : ndarray of float64, shape (queries,)
        The covered fraction of that bucket.
    """
    starts, ends, edges = (as_input(array, np.int64) for array in (starts, ends, edges))
    return _end_buckets(starts, ends, edges, *landmarks)
