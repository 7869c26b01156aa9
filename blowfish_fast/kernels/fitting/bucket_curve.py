"""Cells of buckets that follow the buckets beside them.

Running totals are known at the edges of buckets. Even buckets join them by straight
lines; here they are joined by a monotone cubic curve (F. Fritsch, J. Butland 1984),
whose slope at an edge is a harmonic mean of the cells on both sides. Such a curve never
falls, so that no cell is negative, and it keeps the total of every bucket:

    edges   0               4                8                12
    totals         4               12               20
    even     1   1   1   1    3   3   3   3    5   5   5   5
    slope   0              1.5              3.75              6
    cells   .3  .9 1.3 1.5   2.0 2.9 3.4 3.7  4.1 4.8 5.3 5.8

Whether cells do follow their neighbours, the buckets say themselves. Two halves of an
interval of twice their length are joined, curves are drawn through what results, and
the differences between halves that the curves foretell are set beside those that are
there. The part of them that came true, in a regression, is the part of the way that
cells are moved from even ones to the curve (Lemma DA14, ``docs/proofs/dawa.md``). A
bucket that would become very uneven is moved by less: whoever chose the buckets would
have cut it.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import as_input, refuse_nan, whole_numbers
from blowfish_fast.kernels._jit import kernel

# Both constants were chosen on the seven given histograms and on fifteen generated
# lines of 4,096 cells with seeds of their own; see
# ``docs/explanation/how_the_defaults_were_chosen.md``.
FEWEST_CELLS = 4
"""Shorter buckets stay even: neighbours that are equal in pairs are common."""
PRIOR = 0.1
"""What is known of smoothness beforehand, in noise of a count for each cell."""


@kernel
def _slopes(totals: FloatArray, edges: IntArray) -> FloatArray:
    """Return the slope of the curve at each edge, for two buckets or more."""
    buckets = totals.size
    slopes = np.zeros(buckets + 1)
    for edge in range(1, buckets):
        left = edges[edge] - edges[edge - 1]
        right = edges[edge + 1] - edges[edge]
        before = totals[edge - 1] / left
        after = totals[edge] / right
        if before > 0.0 and after > 0.0:
            near = 2.0 * right + left
            far = right + 2.0 * left
            slopes[edge] = (near + far) / (near / before + far / after)
    for end in range(2):
        bucket = 0 if end == 0 else buckets - 1
        beside = 1 if end == 0 else buckets - 2
        length = edges[bucket + 1] - edges[bucket]
        next_length = edges[beside + 1] - edges[beside]
        own = totals[bucket] / length
        other = totals[beside] / next_length
        # The parabola through three edges, of which the last slope is at least 0.
        slope = own + (own - other) * (length / (length + next_length))
        slopes[0 if end == 0 else buckets] = max(slope, 0.0)
    return slopes


@kernel
def _part_that_came_true(totals: FloatArray, edges: IntArray, width: float) -> float:
    """Return which part of the differences between halves their surroundings tell."""
    buckets = totals.size
    joined_totals = np.empty(buckets)
    joined_edges = np.empty(buckets + 1, dtype=np.int64)
    # The first of two halves, or -1 for a bucket that stays as it is.
    halves = np.empty(buckets, dtype=np.int64)
    joined = 0
    bucket = 0
    joined_edges[0] = 0
    while bucket < buckets:
        length = edges[bucket + 1] - edges[bucket]
        is_half = (
            bucket + 1 < buckets
            and edges[bucket + 2] - edges[bucket + 1] == length
            and edges[bucket] % (2 * length) == 0
        )
        halves[joined] = bucket if is_half else -1
        joined_totals[joined] = totals[bucket]
        if is_half:
            joined_totals[joined] += totals[bucket + 1]
            bucket += 1
        bucket += 1
        joined += 1
        joined_edges[joined] = edges[bucket]
    known = PRIOR * width * edges[-1]
    foretold, came = known, known
    if joined >= 2:
        slopes = _slopes(joined_totals[:joined], joined_edges[: joined + 1])
        for interval in range(joined):
            first = halves[interval]
            length = joined_edges[interval + 1] - joined_edges[interval]
            total = joined_totals[interval]
            if first < 0 or length < FEWEST_CELLS or total <= 0.0:
                continue
            weight = length / (total + width)
            told = 0.25 * length * (slopes[interval] - slopes[interval + 1])
            there = totals[first] - totals[first + 1]
            foretold += weight * told * told
            came += weight * told * there
    if foretold <= 0.0:
        return 1.0
    return float(min(max(came / foretold, 0.0), 1.0))


@kernel
def _follow(
    totals: FloatArray,
    edges: IntArray,
    slopes: FloatArray,
    part: float,
    most_uneven: float,
) -> FloatArray:
    """Return cells on the way from even ones to those of the curve."""
    cells = np.empty(edges[-1])
    for bucket in range(totals.size):
        begin = edges[bucket]
        length = edges[bucket + 1] - begin
        even = totals[bucket] / length
        first, last = slopes[bucket], slopes[bucket + 1]
        if length < FEWEST_CELLS:
            for place in range(begin, begin + length):
                cells[place] = even
            continue
        reached, uneven = 0.0, 0.0
        for place in range(length):
            # The cubic of Hermite, from 0 to the total of the bucket.
            at = (place + 1.0) / length
            rest = 1.0 - at
            running = totals[bucket] * at * at * (3.0 - 2.0 * at)
            running += length * at * rest * (first * rest - last * at)
            cells[begin + place] = max(running - reached, 0.0)
            uneven += abs(cells[begin + place] - even)
            reached = running
        moved = part
        if part * uneven > most_uneven:
            moved = most_uneven / uneven
        for place in range(begin, begin + length):
            cells[place] = even + moved * (cells[place] - even)
    return cells


def smooth_buckets(
    totals: AnyArray, edges: IntArray, width: float, most_uneven: float = np.inf
) -> FloatArray:
    """Return cells that follow neighbouring buckets as far as these say; O(cells).

    Parameters
    ----------
    totals : ndarray, shape (buckets,)
        The totals of the buckets, none negative.
    edges : ndarray of int64, shape (buckets + 1,)
        Where buckets begin, from 0 on, and the number of cells.
    width : float
        How large the noise of a count is, not negative: what little it can tell weighs
        little.
    most_uneven : float, default np.inf
        How far the cells of a bucket may be from even ones, in sum; not negative.

    Returns
    -------
    ndarray of float64, shape (cells,)
        The cells, none negative. Those of a bucket add up to its total; those of
        buckets of fewer than four cells are even.

    Raises
    ------
    InputError
        If shapes differ, edges do not rise from 0, or a number is negative.

    Examples
    --------
    >>> cells = smooth_buckets([4, 12, 20], [0, 4, 8, 12], 1.0)
    >>> cells.round(2).tolist()
    [0.34, 0.91, 1.28, 1.47, 2.02, 2.86, 3.42, 3.7, 4.11, 4.77, 5.33, 5.8]
    >>> float(cells[4:8].sum())
    12.0
    """
    totals = as_input(totals, np.float64)
    edges = whole_numbers(edges)
    if totals.ndim != 1 or edges.shape != (totals.size + 1,) or not totals.size:
        raise InputError(
            "buckets need a total each and one edge more; received shapes "
            f"{totals.shape} and {edges.shape}"
        )
    if edges[0] != 0 or not (np.diff(edges) > 0).all():
        raise InputError(f"edges rise from 0 on; received {edges[:5]} ...")
    refuse_nan(totals, "totals")
    if not (totals >= 0).all() or not (width >= 0 and most_uneven >= 0):
        raise InputError("totals, the width of their noise and bounds are not negative")
    edges = as_input(edges, np.int64)
    if totals.size == 1:
        return np.full(int(edges[-1]), totals[0] / edges[-1])
    part = _part_that_came_true(totals, edges, float(width))
    slopes = _slopes(totals, edges)
    return _follow(totals, edges, slopes, part, float(most_uneven))
