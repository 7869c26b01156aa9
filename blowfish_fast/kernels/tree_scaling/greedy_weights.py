"""Weights of the tree nodes, tuned greedily to ranges of leaves.

Serves DAWA's second stage and the greedy hierarchy. Every node of a b-ary tree over
the leaves (the buckets) is measured with a weight; the weights along a path from the
root to a leaf add up to one. Bottom-up, each node picks the share of the weight it
takes from its own subtree so that the error of the queries is least (Eq. 9 of DAWA).

Only the nodes that hold one of its ends are covered in part, so a range is two
numbers that climb the tree, and a single one after its ends meet; the nodes between
the ends are counted by `_cover_of_ranges`. The scalars kept per node, and the choice
itself, are in `node_shares`.

    level 2         .75                  here the ends meet
    level 1      .5      1               head .5, tail 1
    leaves     0   1   1   1             [1, 4) of four leaves, equal variances

O(queries log leaves + leaves) time and O(queries + leaves) memory, where the paper
needs O(queries leaves log leaves + leaves**2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import WorkloadError
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.tree.tree_shape import shift_of, tree_levels

from .node_shares import (
    Scaling,
    level_decays,
    lift_inside,
    push_down,
    scaling_from_shares,
    settle_level,
    squared_weights,
    sum_siblings,
)


@kernel
def _cover_of_ranges(
    first: IntArray,
    last: IntArray,
    squared: FloatArray,
    sizes: IntArray,
    offsets: IntArray,
    branching: int,
    shift: int,
) -> FloatArray:
    """Return the weight of the queries whose end nodes have each node between them."""
    cover = np.zeros(offsets[-1])
    later = np.zeros(offsets[-1])
    earlier = np.zeros(offsets[-1])
    for query in range(first.size):
        left, right, weight = first[query], last[query], squared[query]
        for level in range(sizes.size):
            left_up = left >> shift if shift > 0 else left // branching
            right_up = right >> shift if shift > 0 else right // branching
            here = offsets[level]
            if left_up == right_up:
                for node in range(here + left + 1, here + right):
                    cover[node] += weight
                break
            later[here + left] += weight
            earlier[here + right] += weight
            left, right = left_up, right_up
    push_down(cover, later, earlier, sizes, offsets, branching)
    return cover


@kernel
def climb_ranges(
    active: int,
    branching: int,
    shift: int,
    first: IntArray,
    last: IntArray,
    head: FloatArray,
    tail: FloatArray,
    squared: FloatArray,
    variance: FloatArray,
    before: FloatArray,
    after: FloatArray,
    total: FloatArray,
    partial: FloatArray,
    inside: FloatArray,
    spread: FloatArray,
) -> int:
    """Lift the ends of the active queries by one level; return how many stay active.

    A query whose ends meet joins `inside`, and the list closes the gap.
    """
    kept = 0
    for query in range(active):
        left, right, weight = first[query], last[query], squared[query]
        x, z = head[query], tail[query]
        left_up = left >> shift if shift > 0 else left // branching
        right_up = right >> shift if shift > 0 else right // branching
        left_variance, right_variance = variance[left], variance[right]
        if left_up == right_up:
            between = 0.0
            for node in range(left + 1, right):
                between += variance[node]
            outside = before[left] + after[right]
            y = x * left_variance + between + z * right_variance
            y /= total[left_up]
            inside[left_up] += weight * y * y
            uneven = left_variance * (x - y) ** 2 + right_variance * (z - y) ** 2
            uneven += between * (1.0 - y) ** 2 + outside * y * y
            spread[left_up] += weight * uneven
            continue
        y = (x * left_variance + after[left]) / total[left_up]
        partial[left_up] += weight * y * y
        uneven = left_variance * (x - y) ** 2 + after[left] * (1.0 - y) ** 2
        spread[left_up] += weight * (uneven + before[left] * y * y)
        first[kept] = left_up
        head[kept] = y
        y = (z * right_variance + before[right]) / total[right_up]
        partial[right_up] += weight * y * y
        uneven = right_variance * (z - y) ** 2 + before[right] * (1.0 - y) ** 2
        spread[right_up] += weight * (uneven + after[right] * y * y)
        last[kept] = right_up
        tail[kept] = y
        squared[kept] = weight
        kept += 1
    return kept


@kernel
def _range_breaks(
    first: IntArray, head: FloatArray, last: IntArray, tail: FloatArray, leaves: int
) -> IntArray:
    """Count, before each leaf, the places where some query changes its value.

    Values are compared bit by bit: rounding must not decide what is split.
    """
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
def _order_by_first(first: IntArray, leaves: int) -> IntArray:
    """Return the queries in the order of their first leaf, by counting.

    Neighbours in this order touch the same nodes, which then are still in cache.
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
def _range_shares(
    first: IntArray,
    head: FloatArray,
    last: IntArray,
    tail: FloatArray,
    squared: FloatArray,
    sizes: IntArray,
    offsets: IntArray,
    branching: int,
    shift: int,
    decays: FloatArray,
    breaks: IntArray,
    prune: bool,
    root_exact: bool,
) -> tuple[FloatArray, float]:
    """Return the shares and the objective; the query arrays are used up."""
    leaves = sizes[0]
    top = sizes.size - 1
    cover = _cover_of_ranges(first, last, squared, sizes, offsets, branching, shift)
    demand = cover[:leaves].copy()
    inside = np.zeros(leaves)
    # Not a literal, for which the climb below would be compiled a second time.
    active = int(0)  # noqa: RUF046, UP018
    for query in range(first.size):
        left, right = first[query], last[query]
        left_demand = squared[query] * head[query] * head[query]
        demand[left] += left_demand
        if left == right:
            inside[left] += left_demand
            continue
        demand[right] += squared[query] * tail[query] * tail[query]
        first[active], last[active] = left, right
        head[active], tail[active] = head[query], tail[query]
        squared[active] = squared[query]
        active += 1
    shares = np.zeros(offsets[-1])
    if not demand.any():
        return shares, 0.0

    variance = np.ones(leaves)
    residual = np.zeros(leaves)
    before = np.empty(leaves)
    after = np.empty(leaves)
    parents = sizes[min(1, top)]
    total = np.empty(parents)
    spread = np.empty(parents)
    partial = np.empty(parents)
    span = 1
    for level in range(1, top + 1):
        span *= branching
        below, here = sizes[level - 1], sizes[level]
        sum_siblings(variance, below, branching, before, after, total)
        lift_inside(variance, before, after, total, below, branching, inside, spread)
        partial[:here] = 0.0
        active = climb_ranges(
            active, branching, shift,
            first, last, head, tail, squared,
            variance, before, after, total,
            partial, inside, spread,
        )  # fmt: skip
        settle_level(
            below, branching, span, leaves,
            decays[level], prune, root_exact and level == top, breaks,
            before, after, total,
            cover[offsets[level] : offsets[level + 1]], partial, inside, spread,
            variance, demand, residual,
            shares[offsets[level] : offsets[level + 1]],
        )  # fmt: skip
    objective = residual[0]
    if not root_exact:
        objective += variance[0] * demand[0]
    return shares, objective


class SortedRanges(NamedTuple):
    """Ranges that matter, in the order of their first leaf: fresh arrays."""

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
    """Check ranges, drop those without weight, and sort the rest."""
    first = np.asarray(first, dtype=np.int64)
    last = np.asarray(last, dtype=np.int64)
    head = np.asarray(first_fraction, dtype=np.float64)
    tail = np.asarray(last_fraction, dtype=np.float64)
    shape = first.shape
    if len(shape) != 1 or not (shape == last.shape == head.shape == tail.shape):
        raise WorkloadError(
            "ends and fractions must be vectors of one length; got shapes "
            f"{first.shape}, {head.shape}, {last.shape}, {tail.shape}"
        )
    squared = squared_weights(weights, first.size)
    if first.size and (first.min() < 0 or last.max() >= leaves or (first > last).any()):
        raise WorkloadError(
            f"a range needs 0 <= first <= last < {leaves}, the number of leaves; "
            f"got first from {first.min()}, last up to {last.max()}"
        )
    asked = np.flatnonzero(squared)
    order = asked[_order_by_first(first[asked], leaves)]
    return SortedRanges(
        first[order], head[order], last[order], tail[order], squared[order]
    )


def greedy_scaling_fractions(
    first: IntArray,
    first_fraction: FloatArray,
    last: IntArray,
    last_fraction: FloatArray,
    weights: FloatArray | None,
    leaves: int,
    branching: int,
    *,
    decay: bool = True,
    root_exact: bool = False,
    prune: bool = False,
) -> Scaling:
    """Tune node weights to ranges that cover their two end leaves in part.

    Parameters
    ----------
    first, last : (queries,) int64
        End leaves of each range, both included.
    first_fraction, last_fraction : (queries,) float64
        Coverage of the two end leaves; leaves between them are covered wholly. Where
        both ends are the same leaf, `first_fraction` is its coverage.
    weights : (queries,) float64 or None
        Importance of each query; None for ones.
    leaves, branching : int
        The tree.
    decay : bool
        The paper's rule, which lets a deep node mind less what its children's errors
        have in common; without it the local error is minimised as it stands.
    root_exact : bool
        The total is known: the root is not measured and has weight 0, and the paths
        below it add up to 1.
    prune : bool
        Let a node that no query splits take all, which is best for these queries
        and leaves every other query without an answer inside the node.

    Returns
    -------
    Scaling
        Node weights and the predicted error, without the part of the total if that is
        known. No queries: all weight on the leaves.

    Examples
    --------
    One range over the second half of leaf 0 and all of leaf 1:

    >>> end = np.array([0]), np.array([0.5]), np.array([1]), np.array([1.0])
    >>> greedy_scaling_fractions(*end, None, 2, 2)
    Scaling(weights=array([1., 1., 0.]), objective=1.25)
    """
    sizes, offsets = tree_levels(leaves, branching)
    ranges = sorted_ranges(first, first_fraction, last, last_fraction, weights, leaves)
    breaks = _range_breaks(*ranges[:4], sizes[0])
    shares, objective = _range_shares(
        *ranges,
        sizes,
        offsets,
        branching,
        shift_of(branching),
        level_decays(sizes.size, branching, decay),
        breaks,
        prune,
        root_exact,
    )
    return scaling_from_shares(shares, objective, sizes, offsets, branching, root_exact)


def greedy_scaling(
    starts: IntArray,
    ends: IntArray,
    weights: FloatArray | None,
    leaves: int,
    branching: int,
    *,
    decay: bool = True,
    root_exact: bool = False,
    prune: bool = False,
) -> FloatArray:
    """Return node weights tuned to the ranges ``[start, end)`` of leaves.

    Parameters
    ----------
    starts, ends : (queries,) int64
        Half-open ranges; empty ones are ignored.
    weights : (queries,) float64 or None
        Importance of each query; None for ones.
    leaves, branching : int
        The tree.
    decay, root_exact, prune : bool
        As in `greedy_scaling_fractions`, which also returns the predicted error.

    Returns
    -------
    (nodes,) float64
        Weights level by level, leaves first and the root last; every path from the
        root to a leaf adds up to 1.

    Examples
    --------
    Cells one by one need no inner nodes; the total needs the root.

    >>> greedy_scaling([0, 1], [1, 2], None, 2, 2)
    array([1., 1., 0.])
    >>> greedy_scaling([0], [2], None, 2, 2, prune=True)
    array([0., 0., 1.])
    """
    starts = np.asarray(starts, dtype=np.int64)
    ends = np.asarray(ends, dtype=np.int64)
    if starts.ndim != 1 or starts.shape != ends.shape:
        raise WorkloadError(
            "starts and ends must be vectors of one length; "
            f"got shapes {starts.shape} and {ends.shape}"
        )
    given = None if weights is None else np.asarray(weights, dtype=np.float64)
    filled = starts != ends
    if not filled.all():
        if given is not None and given.shape == starts.shape:
            given = given[filled]
        starts, ends = starts[filled], ends[filled]
    whole = np.ones(starts.size)
    return greedy_scaling_fractions(
        starts,
        whole,
        ends - 1,
        whole,
        given,
        leaves,
        branching,
        decay=decay,
        root_exact=root_exact,
        prune=prune,
    ).weights
