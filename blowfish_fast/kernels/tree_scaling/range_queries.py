"""Ranges of leaves as queries of a tree: their demand and spread, level by level.

Only the nodes that hold one of its ends are covered in part, so a range is two numbers
that climb the tree, and a single one after its ends meet; the nodes between the ends
are counted beforehand:

    level 2          (0: 3/4)             the ends have met: one number
    level 1      (0: 1/2)   (1: 1)        two numbers
    leaves        .  (1: 1)  1  (3: 1)    the range of the leaves 1 to 3

O(queries log leaves + leaves) time, where the paper needs O(queries leaves log leaves +
leaves**2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import WorkloadError
from blowfish_fast.kernels._arguments import refuse_infinite, whole_numbers
from blowfish_fast.kernels._jit import kernel

from .budget_shares import (
    Demand,
    Level,
    RegularLevels,
    lift_inside,
    push_down,
    squared_weights,
)


class SortedRanges(NamedTuple):
    """Ranges that matter, in the order of their first leaf: fresh arrays.

    Attributes
    ----------
    first : ndarray of int64, shape (queries,)
        The first leaf of each range.
    head : ndarray of float64, shape (queries,)
        How much of it is covered.
    last : ndarray of int64, shape (queries,)
        The last leaf.
    tail : ndarray of float64, shape (queries,)
        How much of it is covered.
    squared : ndarray of float64, shape (queries,)
        Squared weight of each range.
    """

    first: IntArray
    head: FloatArray
    last: IntArray
    tail: FloatArray
    squared: FloatArray


def sorted_ranges(
    first: IntArray,
    first_fraction: FloatArray,
    last: IntArray,
    last_fraction: FloatArray,
    weights: FloatArray | None,
    leaves: int,
) -> SortedRanges:
    """Check ranges, drop those without weight, and sort the rest.

    Parameters
    ----------
    first : ndarray of int64, shape (queries,)
        The first leaf of each range.
    first_fraction : ndarray of float64, shape (queries,)
        How much of it is covered.
    last : ndarray of int64, shape (queries,)
        The last leaf, not before the first.
    last_fraction : ndarray of float64, shape (queries,)
        How much of it is covered.
    weights : ndarray of float64 or None, shape (queries,)
        Importance of each range; None for ones.
    leaves : int
        Number of leaves.

    Returns
    -------
    SortedRanges
        The ranges.

    Raises
    ------
    WorkloadError
        If arrays differ in length, or a range leaves the leaves.
    """
    first, last = whole_numbers(first), whole_numbers(last)
    head = np.asarray(first_fraction, dtype=np.float64)
    tail = np.asarray(last_fraction, dtype=np.float64)
    shape = first.shape
    if len(shape) != 1 or not (shape == last.shape == head.shape == tail.shape):
        raise WorkloadError(
            "ends and fractions must be vectors of one length; got shapes "
            f"{first.shape}, {head.shape}, {last.shape}, {tail.shape}"
        )
    refuse_infinite(head, "fractions")
    refuse_infinite(tail, "fractions")
    squared = squared_weights(weights, first.size)
    if first.size and (first.min() < 0 or last.max() >= leaves or (first > last).any()):
        raise WorkloadError(
            f"a range needs 0 <= first <= last < {leaves}, the number of leaves; "
            f"got first from {first.min()}, last up to {last.max()}"
        )
    asked = np.flatnonzero(squared)
    order = asked[order_by_first(first[asked], leaves)]
    return SortedRanges(
        first[order], head[order], last[order], tail[order], squared[order]
    )


@kernel
def copy_ranges(ranges: SortedRanges) -> SortedRanges:
    """Return ranges that may climb, and be used up."""
    return SortedRanges(
        ranges.first.copy(),
        ranges.head.copy(),
        ranges.last.copy(),
        ranges.tail.copy(),
        ranges.squared.copy(),
    )


@kernel
def _range_breaks(ranges: SortedRanges, leaves: int) -> IntArray:
    """Count, before each leaf, the places where some query changes its value.

    Values are compared bit by bit: rounding must not decide what is split.
    """
    first, head, last, tail = ranges.first, ranges.head, ranges.last, ranges.tail
    breaks = np.zeros(leaves + 2, dtype=np.int64)
    for query in range(first.size):
        left, right = first[query], last[query]
        x = head[query]
        z = x if left == right else tail[query]
        if x != 0.0:
            breaks[left + 1] = 1
        if z != 0.0:
            breaks[right + 2] = 1
        if right == left + 1:
            if x != z:
                breaks[right + 1] = 1
        elif right > left:
            if x != 1.0:
                breaks[left + 2] = 1
            if z != 1.0:
                breaks[right + 1] = 1
    for place in range(1, leaves + 2):
        breaks[place] += breaks[place - 1]
    return breaks


@kernel
def order_by_first(first: IntArray, leaves: int) -> IntArray:
    """Return the queries in the order of their first leaf, by counting.

    Neighbours in this order touch the same nodes, which then are still in cache.

    Parameters
    ----------
    first : ndarray of int64, shape (queries,)
        The first leaf of each query.
    leaves : int
        Number of leaves.

    Returns
    -------
    ndarray of int64, shape (queries,)
        The queries.
    """
    begin = np.zeros(leaves + 1, dtype=np.int64)
    for leaf in first:
        begin[leaf + 1] += 1
    for leaf in range(leaves):
        begin[leaf + 1] += begin[leaf]
    order = np.empty(first.size, dtype=np.int64)
    for query in range(first.size):
        leaf = first[query]
        order[begin[leaf]] = query
        begin[leaf] += 1
    return order


@kernel
def _cover_of_ranges(ranges: SortedRanges, tree: RegularLevels) -> FloatArray:
    """Return the weight of the queries whose end nodes have each node between them."""
    first, last, squared = ranges.first, ranges.last, ranges.squared
    sizes, offsets = tree.sizes, tree.offsets
    fan_out, shift = tree.fan_out, tree.shift
    cover = np.zeros(offsets[-1])
    later = np.zeros(offsets[-1])
    earlier = np.zeros(offsets[-1])
    for query in range(first.size):
        left, right, weight = first[query], last[query], squared[query]
        for level in range(sizes.size):
            left_up = left >> shift if shift > 0 else left // fan_out
            right_up = right >> shift if shift > 0 else right // fan_out
            here = offsets[level]
            if left_up == right_up:
                for node in range(here + left + 1, here + right):
                    cover[node] += weight
                break
            later[here + left] += weight
            earlier[here + right] += weight
            left, right = left_up, right_up
    push_down(cover, later, earlier, tree)
    return cover


@kernel
def separate_inside(ranges: SortedRanges, inside: FloatArray) -> int:
    """Move the ranges within one leaf to `inside`; the others close the gaps, in place.

    Parameters
    ----------
    ranges : SortedRanges
        The ranges; changed.
    inside : ndarray of float64, shape (leaves,)
        Receives the demand of the ranges within each leaf.

    Returns
    -------
    int
        How many ranges are left.
    """
    first, head, last, tail = ranges.first, ranges.head, ranges.last, ranges.tail
    squared = ranges.squared
    # Not a literal, for which the climb would be compiled a second time.
    active = int(0)  # noqa: RUF046, UP018
    for query in range(first.size):
        if first[query] == last[query]:
            inside[first[query]] += squared[query] * head[query] * head[query]
            continue
        first[active], last[active] = first[query], last[query]
        head[active], tail[active] = head[query], tail[query]
        squared[active] = squared[query]
        active += 1
    return active


@kernel
def demand_of_ranges(ranges: SortedRanges, tree: RegularLevels) -> Demand:
    """Return the demand at the leaves; the ranges are then ready to climb.

    Parameters
    ----------
    ranges : SortedRanges
        The ranges; changed.
    tree : RegularLevels
        The layout.

    Returns
    -------
    Demand
        What the queries want of the leaves.
    """
    first, last = ranges.first, ranges.last
    cover = _cover_of_ranges(ranges, tree)
    demand = cover[: tree.sizes[0]].copy()
    for query in range(first.size):
        left, right, weight = first[query], last[query], ranges.squared[query]
        demand[left] += weight * ranges.head[query] * ranges.head[query]
        if left != right:
            demand[right] += weight * ranges.tail[query] * ranges.tail[query]
    breaks = _range_breaks(ranges, tree.sizes[0])
    inside = np.zeros(tree.sizes[0])
    active = separate_inside(ranges, inside)
    return Demand(cover, demand, inside, breaks, active)


@kernel
def climb_ranges(ranges: SortedRanges, active: int, level: Level) -> int:
    """Lift the queries by one level; those whose ends meet join `inside`.

    A range covers the child of its left end by a share x, the child of its right end by
    z, and all children between them whole. It covers their parent by y, the mean of
    these weighted by the variances of the children; what is left over of each child is
    added to the spread, squared and times its variance:

        left end:   children   0   x   1   1        parent   y = (x v1 + v2 + v3) / sum
                    before ----'       '---'---- after

    Parameters
    ----------
    ranges : SortedRanges
        The ranges; changed in place, the list closes its gaps.
    active : int
        How many of them climb.
    level : Level
        The level; demand and spread are filled.

    Returns
    -------
    int
        How many still have their ends apart.
    """
    first, head, last, tail = ranges.first, ranges.head, ranges.last, ranges.tail
    squared, fan_out, shift = ranges.squared, level.fan_out, level.shift
    variance, before, after = level.variance, level.before, level.after
    total, partial, inside = level.total, level.partial, level.inside
    spread = level.spread
    lift_inside(level)
    still_active = 0
    for query in range(active):
        left, right, weight = first[query], last[query], squared[query]
        x, z = head[query], tail[query]
        left_up = left >> shift if shift > 0 else left // fan_out
        right_up = right >> shift if shift > 0 else right // fan_out
        left_variance, right_variance = variance[left], variance[right]
        if left_up == right_up:
            between = 0.0
            for node in range(left + 1, right):
                between += variance[node]
            outside = before[left] + after[right]
            y = x * left_variance + between + z * right_variance
            y /= total[left_up]
            inside[left_up] += weight * y * y
            lower, upper, middle = x - y, z - y, 1.0 - y
            uneven = left_variance * (lower * lower) + right_variance * (upper * upper)
            uneven += between * (middle * middle) + outside * y * y
            spread[left_up] += weight * uneven
            continue
        y = (x * left_variance + after[left]) / total[left_up]
        partial[left_up] += weight * y * y
        lower, middle = x - y, 1.0 - y
        uneven = left_variance * (lower * lower) + after[left] * (middle * middle)
        spread[left_up] += weight * (uneven + before[left] * y * y)
        first[still_active] = left_up
        head[still_active] = y
        y = (z * right_variance + before[right]) / total[right_up]
        partial[right_up] += weight * y * y
        upper, middle = z - y, 1.0 - y
        uneven = right_variance * (upper * upper) + before[right] * (middle * middle)
        spread[right_up] += weight * (uneven + after[right] * y * y)
        last[still_active] = right_up
        tail[still_active] = y
        squared[still_active] = weight
        still_active += 1
    return still_active
