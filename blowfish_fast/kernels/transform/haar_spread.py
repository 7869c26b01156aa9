"""The exact spread of the noise in queries answered from noisy Haar rows.

A node's row enters an answer with half the difference of what the query covers of its
two children (Lemma PR9, ``docs/proofs/privelet.md``), so a range takes at most two rows
per level and the sum. A box of a grid takes the products of the rows of its axes;
several boxes are added up, row by row, before they are squared.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import as_input
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

    `side` holds the number of cells, the first of the deepest leaves and their number.
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
        found = _range_rows(low[axis], high[axis], sides[axis], axis_rows, axis_parts)
        # Each entry makes room for its multiples; from behind, none is lost.
        for entry in range(count - 1, -1, -1):
            row = rows[entry] * sides[axis, 0]
            part = parts[entry]
            for other in range(found):
                rows[entry * found + other] = row + axis_rows[other]
                parts[entry * found + other] = part * axis_parts[other]
        count *= found
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
    found = np.empty((5, queries))
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
        found[0, query], found[1, query], found[2, query] = variance, square, largest
        found[3, query], found[4, query] = steps, width
    return found


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

    The result is that of `tree_spread_ranges`; of several largest rows the smallest
    scale. Rows are in C order of the axes' rows, their variance 0 where exact. Query
    `i` owns the boxes [low, high) from ``pointers[i]`` up to ``pointers[i + 1]``,
    corners (boxes, d), with a coefficient on each cell; boxes that overlap add up.
    Costs the product over the axes of 2 log2(cells) + 1 per box.

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
    noise = haar_noise(variances, scales, shape)
    return spread_boxes(noise, pointers, lows, highs, values)


class HaarNoise(NamedTuple):
    """Variance and scale of each row, and of each axis what `spread_boxes` needs."""

    rows: FloatArray
    sides: IntArray
    most: int


def haar_noise(
    variances: FloatArray, scales: FloatArray, shape: tuple[int, ...]
) -> HaarNoise:
    """Return what the spread of any query needs; O(rows), once."""
    sides = np.array([(side, *deepest_leaves(side)) for side in shape], np.int64)
    return HaarNoise(np.column_stack([variances, scales]), sides, most_rows(shape))


def spread_boxes(
    noise: HaarNoise,
    pointers: IntArray,
    lows: IntArray,
    highs: IntArray,
    values: FloatArray,
) -> Moments:
    """Return `haar_spread_boxes` of boxes that were checked: no work over all rows."""
    pointers, lows, highs = (as_input(one, np.int64) for one in (pointers, lows, highs))
    boxes = (lows, highs, as_input(values, np.float64))
    variance, square, largest, steps, width = _box_spreads(*noise, pointers, *boxes)
    return variance, square, largest, steps, width


@kernel
def _total_over_cuts(
    variances: FloatArray, edges: IntArray, first: int, deepest: int, pairs: bool
) -> float:
    """Add up the variances of all prefixes, or of all ranges (`pairs`).

    A row enters a range with the difference of what it adds at the two cuts; over all
    pairs of N + 1 cuts, squares of these add up to (N + 1) (sum of squares) - (sum)^2.
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

    Kinds are ``"all_ranges"`` and ``"prefixes"``; `edges` are the cell edges of the
    leaves, rising from 0.

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
    first, deepest = deepest_leaves(rows.size)
    return float(_total_over_cuts(rows, edges, first, deepest, kind == "all_ranges"))
