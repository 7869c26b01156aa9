"""The exact spread of the noise in queries answered from noisy Haar rows.

The part of a node that a query covers is the mean of the parts of its children, and the
row of the node enters the answer with half the difference of the two (Lemma PR9,
``docs/proofs/hierarchy.md``):

             3/8              the range [1, 4) of 8 cells: the children of nodes 1, 2
         3/4     0            and 4 are covered unevenly, so these rows take part, and
       1/2 1    0  0          the sum with 3/8; no others do
      0 1 1 1  0 0 0 0

So a range takes at most two rows per level and the sum, a box of a grid the products of
the rows of its axes; several boxes are added up, row by row, before they are squared.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import (
    as_input,
    refuse_infinite,
    refuse_odd_variances,
)
from blowfish_fast.kernels._jit import kernel

from .haar_transform import deepest_leaves

Moments = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]

FAMILIES = ("all_ranges", "prefixes")
# Parts of a query this close, relatively, are equal: they differ by rounding alone.
TIE = 1e-12


@kernel
def _range_rows(
    low: int,
    high: int,
    side: IntArray,
    rows: IntArray,
    parts: FloatArray,
) -> int:
    """Write the rows of one axis that [low, high) takes; return how many.

    Either way up starts at the first cell that is not counted. `side` holds the number
    of cells, the first of the deepest leaves and their number.
    """
    cells, first, deepest = side
    left = 1
    left_part = 1.0 if low == cells else 0.0
    if 0 < low < cells:
        left = first + low if low < deepest else cells + low - deepest
    right = 1
    right_part = 1.0 if high == cells else 0.0
    if 0 < high < cells:
        right = first + high if high < deepest else cells + high - deepest
    count = 0
    while left > 1 or right > 1:
        # Parents have smaller numbers: the way that lags behind goes up first.
        node = max(left, right) >> 1
        part = 0.0
        if right >> 1 == node:
            whole = right & 1
            part += 0.5 * (1.0 - right_part if whole else right_part)
            right_part = 0.5 * (right_part + whole)
            right = node
        if left >> 1 == node:
            whole = left & 1
            part -= 0.5 * (1.0 - left_part if whole else left_part)
            left_part = 0.5 * (left_part + whole)
            left = node
        if part != 0.0:
            rows[count] = node
            parts[count] = part
            count += 1
    if right_part != left_part:
        rows[count] = 0
        parts[count] = right_part - left_part
        count += 1
    return count


@kernel
def _box_rows(
    low: IntArray,
    high: IntArray,
    sides: IntArray,
    rows: IntArray,
    parts: FloatArray,
    axis_rows: IntArray,
    axis_parts: FloatArray,
) -> int:
    """Write the rows that a box of value 1 takes; return how many."""
    count = _range_rows(low[0], high[0], sides[0], rows, parts)
    for axis in range(1, sides.shape[0]):
        axis_count = _range_rows(
            low[axis], high[axis], sides[axis], axis_rows, axis_parts
        )
        # Each entry makes room for its multiples; from behind, none is lost.
        for entry in range(count - 1, -1, -1):
            row = rows[entry] * sides[axis, 0]
            part = parts[entry]
            for other in range(axis_count):
                rows[entry * axis_count + other] = row + axis_rows[other]
                parts[entry * axis_count + other] = part * axis_parts[other]
        count *= axis_count
    return count


@kernel
def _box_spreads(
    noise: FloatArray,
    sides: IntArray,
    most: int,
    pointers: IntArray,
    lows: IntArray,
    highs: IntArray,
    values: FloatArray,
) -> FloatArray:
    queries = pointers.size - 1
    moments = np.empty((5, queries))
    rows = np.empty(most, dtype=np.int64)
    parts = np.empty(most)
    axis_rows = np.empty(most, dtype=np.int64)
    axis_parts = np.empty(most)
    several = False
    for query in range(queries):
        several |= pointers[query + 1] - pointers[query] > 1
    sums = np.zeros(noise.shape[0] if several else 0)
    for query in range(queries):
        begin, end = pointers[query], pointers[query + 1]
        alone = end - begin == 1
        variance = square = largest = steps = width = 0.0
        if not alone:
            for box in range(begin, end):
                count = _box_rows(
                    lows[box], highs[box], sides, rows, parts, axis_rows, axis_parts
                )
                for entry in range(count):
                    sums[rows[entry]] += values[box] * parts[entry]
        for box in range(begin, end):
            count = _box_rows(
                lows[box], highs[box], sides, rows, parts, axis_rows, axis_parts
            )
            for entry in range(count):
                row = rows[entry]
                part = values[box] * parts[entry]
                if not alone:
                    # Cleared where it is read, a sum counts once.
                    part = sums[row]
                    sums[row] = 0.0
                if part != 0.0:
                    scale = noise[row, 1]
                    reach = abs(part) * scale
                    variance += part * part * noise[row, 0]
                    square += reach * reach
                    steps += part * part * (scale > 0.0)
                    if reach > largest * (1.0 + TIE):
                        width = scale
                    elif reach > 0.0 and reach >= largest * (1.0 - TIE):
                        width = min(width, scale)
                    largest = max(largest, reach)
        moments[0, query], moments[1, query], moments[2, query] = (
            variance,
            square,
            largest,
        )
        moments[3, query], moments[4, query] = steps, width
    return moments


def most_rows(shape: tuple[int, ...]) -> int:
    """Return how many rows a box takes at most."""
    most = 1
    for cells in shape:
        most *= min(2 * (int(cells) - 1).bit_length() + 1, int(cells))
    return most


def haar_spread_boxes(
    variances: FloatArray,
    scales: FloatArray,
    shape: tuple[int, ...],
    pointers: IntArray,
    lows: IntArray,
    highs: IntArray,
    values: FloatArray,
) -> Moments:
    """Return the noise profile of queries that are sums of boxes.

    A box costs the product over the axes of 2 log2(cells) + 1.

    Parameters
    ----------
    variances : ndarray of float64, shape (rows,)
        Variance of each row, in C order of the axes' rows; 0 where exact.
    scales : ndarray of float64, shape (rows,)
        Laplace scale of each row.
    shape : tuple[int, ...]
        Cells of each axis; their product is the number of rows.
    pointers : ndarray of int64, shape (queries + 1,)
        Query `i` owns the boxes ``pointers[i]`` up to ``pointers[i + 1]``.
    lows : ndarray of int64, shape (boxes, axes)
        The first cell of each box along each axis.
    highs : ndarray of int64, shape (boxes, axes)
        The cell after its last.
    values : ndarray of float64, shape (boxes,)
        Coefficient on each cell of the box; boxes that overlap add up.

    Returns
    -------
    tuple of five ndarrays of float64, shape (queries,)
        ``(variance, square, largest, steps, width)`` as `tree_spread_ranges` says; of
        several largest rows the smallest scale.

    Raises
    ------
    InputError
        If arrays do not fit the grid, or pointers do not rise.

    Examples
    --------
    >>> one = np.array([0, 1]), np.array([[0]]), np.array([[1]]), np.ones(1)
    >>> haar_spread_boxes(np.array([8.0, 4.0]), np.array([2.0, 1.0]), (2,), *one)
    (array([3.]), array([1.25]), array([1.]), array([0.5]), array([2.]))
    """
    cells = math.prod(shape) if shape else 0
    variances = as_input(variances, np.float64)
    scales = as_input(scales, np.float64)
    if cells < 1 or variances.shape != (cells,) or scales.shape != (cells,):
        raise InputError(
            f"a grid of shape {shape} has {cells} rows, each with a variance and a "
            f"scale; got arrays of shape {variances.shape} and {scales.shape}"
        )
    refuse_odd_variances(variances)
    refuse_infinite(scales, "scales")
    pointers = as_input(pointers, np.int64)
    lows = as_input(lows, np.int64)
    highs = as_input(highs, np.int64)
    values = as_input(values, np.float64)
    boxes = (values.size, len(shape))
    if (
        lows.shape != boxes
        or highs.shape != boxes
        or values.ndim != 1
        or pointers.ndim != 1
        or pointers.size == 0
        or pointers[0] != 0
        or pointers[-1] != values.size
        or (np.diff(pointers) < 0).any()
        or (lows < 0).any()
        or (lows > highs).any()
        or (highs > np.array(shape)).any()
    ):
        raise InputError(
            f"boxes have two corners in a grid of shape {shape} and one value each, "
            f"and pointers climb from 0 to their number; got {values.size} values, "
            f"corners of shape {lows.shape} and {highs.shape}"
        )
    refuse_infinite(values, "values of boxes")
    noise = haar_noise(variances, scales, shape)
    return spread_boxes(noise, pointers, lows, highs, values)


class HaarNoise(NamedTuple):
    """What the spread of any query needs of noisy Haar rows.

    Attributes
    ----------
    rows : ndarray of float64, shape (rows, 2)
        Variance and scale of each row.
    sides : ndarray of int64, shape (axes, 3)
        Cells of each axis, the first of its deepest leaves, and their number.
    most : int
        How many rows a box takes at most.
    """

    rows: FloatArray
    sides: IntArray
    most: int


def haar_noise(
    variances: FloatArray, scales: FloatArray, shape: tuple[int, ...]
) -> HaarNoise:
    """Return what the spread of any query needs; O(rows), once.

    Parameters
    ----------
    variances : ndarray of float64, shape (rows,)
        Variance of each row, in C order of the axes' rows.
    scales : ndarray of float64, shape (rows,)
        Laplace scale of each row.
    shape : tuple[int, ...]
        Cells of each axis.

    Returns
    -------
    HaarNoise
        The prepared noise.
    """
    sides = np.array([(side, *deepest_leaves(side)) for side in shape], np.int64)
    return HaarNoise(np.column_stack([variances, scales]), sides, most_rows(shape))


def spread_boxes(
    noise: HaarNoise,
    pointers: IntArray,
    lows: IntArray,
    highs: IntArray,
    values: FloatArray,
) -> Moments:
    """Return `haar_spread_boxes` of boxes that were checked: no work over all rows.

    Parameters
    ----------
    noise : HaarNoise
        What `haar_noise` returned.
    pointers : ndarray of int64, shape (queries + 1,)
        Query `i` owns the boxes ``pointers[i]`` up to ``pointers[i + 1]``.
    lows : ndarray of int64, shape (boxes, axes)
        The first cell of each box along each axis.
    highs : ndarray of int64, shape (boxes, axes)
        The cell after its last.
    values : ndarray of float64, shape (boxes,)
        Coefficient on each cell of the box.

    Returns
    -------
    tuple of five ndarrays of float64, shape (queries,)
        Variance, square, largest, steps and width of each query.
    """
    pointers, lows, highs = (
        as_input(array, np.int64) for array in (pointers, lows, highs)
    )
    boxes = (lows, highs, as_input(values, np.float64))
    variance, square, largest, steps, width = _box_spreads(*noise, pointers, *boxes)
    return variance, square, largest, steps, width


@kernel
def _total_over_cuts(
    variances: FloatArray, edges: IntArray, first: int, deepest: int, pairs: bool
) -> float:
    """Add up the variances of all prefixes, or of all ranges (`pairs`).

    The row of a node enters the prefix that ends at a cut with half the difference of
    what is covered of its children, 0 outside it, and a range with the difference at
    its two ends. So sums and sums of squares over cuts are enough: over all pairs of N
    + 1 cuts, squared differences add up to (N + 1) (sum of squares) - (sum)^2.
    """
    leaves = variances.size
    size = np.empty(2 * leaves)
    # Sums over the cuts from behind the first cell of a node to behind its last.
    covered = np.empty(2 * leaves)
    squared = np.empty(2 * leaves)
    cuts = edges[leaves] + 1.0
    for leaf in range(leaves):
        node = first + leaf if leaf < deepest else leaves + leaf - deepest
        width = float(edges[leaf + 1] - edges[leaf])
        size[node] = width
        covered[node] = 0.5 * (width + 1.0)
        squared[node] = (width + 1.0) * (2.0 * width + 1.0) / (6.0 * width)
    total = 0.0
    for node in range(leaves - 1, -1, -1):
        if node > 0:
            left, right = 2 * node, 2 * node + 1
            size[node] = size[left] + size[right]
            covered[node] = 0.5 * (covered[left] + size[right] + covered[right])
            squared[node] = 0.25 * (
                squared[left] + size[right] + 2.0 * covered[right] + squared[right]
            )
            entering = 0.5 * (covered[left] + size[right] - covered[right])
            squares = 0.25 * (
                squared[left] + size[right] - 2.0 * covered[right] + squared[right]
            )
        else:
            entering, squares = covered[1], squared[1]
        if pairs:
            squares = cuts * squares - entering * entering
        total += variances[node] * squares
    return total


def haar_total_variance(variances: FloatArray, kind: str, edges: IntArray) -> float:
    """Return the sum of the variances of all ranges, or of all prefixes, in O(leaves).

    Parameters
    ----------
    variances : ndarray of float64, shape (leaves,)
        Variance of each row; 0 where exact.
    kind : {"all_ranges", "prefixes"}
        Which queries are summed.
    edges : ndarray of int64, shape (leaves + 1,)
        Cell edges of the leaves, rising from 0.

    Returns
    -------
    float
        The sum over all queries.

    Raises
    ------
    InputError
        If the kind is another one, or the edges do not fit the rows.

    Examples
    --------
    >>> haar_total_variance(np.array([4.0, 4.0]), "all_ranges", np.array([0, 1, 2]))
    8.0
    """
    if kind not in FAMILIES:
        raise InputError(
            f"kind must be one of {', '.join(FAMILIES)}; received {kind!r}"
        )
    rows = as_input(variances, np.float64)
    edges = as_input(edges, np.int64)
    if rows.ndim != 1 or rows.size == 0 or edges.shape != (rows.size + 1,):
        raise InputError(
            f"n rows go with n + 1 edges; received arrays of shape {rows.shape} and "
            f"{edges.shape}"
        )
    if edges[0] != 0 or np.diff(edges).min() < 1:
        raise InputError("edges rise from 0 on, in whole numbers")
    refuse_odd_variances(rows)
    first, deepest = deepest_leaves(rows.size)
    return float(_total_over_cuts(rows, edges, first, deepest, kind == "all_ranges"))
