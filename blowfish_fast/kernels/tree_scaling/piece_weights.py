"""Weights of the tree nodes, tuned greedily to queries of many pieces.

Serves DAWA's second stage where a query is no single range: unions of intervals,
rectangles along a Hilbert curve, arbitrary sparse rows. A query is a row of sorted,
disjoint pieces ``[start, end)`` of leaves with one value each, zero elsewhere. On each
level it is a short list of items: *runs* of nodes that one piece covers wholly, and
*mixed* nodes, which hold the end of a piece and carry a coverage of their own.

    level 1   (0:.5)  [1, 3)x1  (3:.5)      a mixed node, a run of two, a mixed node
    leaves     . 1     1 1 1 1   1 .        the one piece [1, 7) of eight leaves

A mixed node holds an end of some piece, so `p` pieces never make more than ``3 p``
items, and each query keeps a slot of that size. Runs need no work until a node mixes
them: `_cover_of_pieces` has counted them beforehand. The scalars kept per node and the
choice of the weights are in `node_shares`. O(pieces log leaves + leaves) time,
O(pieces + leaves) memory.
"""

from __future__ import annotations

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
def _divided(node: int, branching: int, shift: int) -> int:
    """Return the node's place one level up; a shift is much cheaper than a division."""
    return node >> shift if shift > 0 else node // branching


@kernel
def _well_formed(
    pointers: IntArray, starts: IntArray, ends: IntArray, leaves: int
) -> bool:
    """Tell whether every row holds sorted, disjoint pieces inside the leaves."""
    if pointers[0] != 0 or pointers[-1] != starts.size:
        return False
    for query in range(pointers.size - 1):
        if not pointers[query] <= pointers[query + 1] <= starts.size:
            return False
        reached = 0
        for piece in range(pointers[query], pointers[query + 1]):
            if starts[piece] < reached or ends[piece] < starts[piece]:
                return False
            reached = ends[piece]
        if reached > leaves:
            return False
    return True


@kernel
def _piece_breaks(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    squared: FloatArray,
    leaves: int,
) -> IntArray:
    """Count, before each leaf, the places where some query changes its value."""
    breaks = np.zeros(leaves + 2, dtype=np.int64)
    for query in range(squared.size):
        if squared[query] == 0.0:
            continue
        reached = 0
        value = 0.0
        for piece in range(pointers[query], pointers[query + 1]):
            if starts[piece] == ends[piece]:
                continue
            if starts[piece] > reached:
                if value != 0.0:
                    breaks[reached + 1] = 1
                value = 0.0
            if values[piece] != value:
                breaks[starts[piece] + 1] = 1
            reached = ends[piece]
            value = values[piece]
        if value != 0.0:
            breaks[reached + 1] = 1
    for place in range(1, leaves + 2):
        breaks[place] += breaks[place - 1]
    return breaks


@kernel
def _cover_of_pieces(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    squared: FloatArray,
    sizes: IntArray,
    offsets: IntArray,
    branching: int,
    shift: int,
) -> FloatArray:
    """Return the demand at each node of the pieces that cover it wholly."""
    cover = np.zeros(offsets[-1])
    later = np.zeros(offsets[-1])
    earlier = np.zeros(offsets[-1])
    top = sizes.size - 1
    for query in range(squared.size):
        for piece in range(pointers[query], pointers[query + 1]):
            start, end = starts[piece], ends[piece]
            weight = squared[query] * values[piece] * values[piece]
            if weight == 0.0 or start == end:
                continue
            level = 0
            while level < top:
                here = offsets[level]
                start_up = _divided(start + branching - 1, branching, shift)
                end_up = sizes[level + 1]
                if end < sizes[level]:
                    end_up = _divided(end, branching, shift)
                if start_up >= end_up:
                    break
                # The rims that no whole parent holds: siblings from `start` on, and
                # siblings before `end`.
                if start < start_up * branching:
                    later[here + start - 1] += weight
                if end > end_up * branching:
                    earlier[here + end] += weight
                start, end = start_up, end_up
                level += 1
            for node in range(offsets[level] + start, offsets[level] + end):
                cover[node] += weight
    push_down(cover, later, earlier, sizes, offsets, branching)
    return cover


@kernel
def _climb_pieces(
    active: int,
    branching: int,
    shift: int,
    below: int,
    queries: IntArray,
    pointers: IntArray,
    squared: FloatArray,
    counts: IntArray,
    item_start: IntArray,
    item_end: IntArray,
    item_value: FloatArray,
    variance: FloatArray,
    before: FloatArray,
    after: FloatArray,
    total: FloatArray,
    partial: FloatArray,
    inside: FloatArray,
    spread: FloatArray,
    old_start: IntArray,
    old_end: IntArray,
    old_value: FloatArray,
) -> int:
    """Lift the items of the active queries by one level; return how many stay active.

    The items of a query start at three times its pointer; a mixed node is an item
    whose end is its start. A query that has become one mixed node joins `inside`. The
    ``old`` arrays are room for the items of the largest query.
    """
    parents = (below + branching - 1) // branching
    kept = 0
    for place in range(active):
        query = queries[place]
        weight = squared[query]
        base = 3 * pointers[query]
        count = counts[query]
        for item in range(count):
            old_start[item] = item_start[base + item]
            old_end[item] = item_end[base + item]
            old_value[item] = item_value[base + item]
        written = base
        item = 0
        while item < count:
            start, end = old_start[item], old_end[item]
            parent = _divided(start, branching, shift)
            family_end = min((parent + 1) * branching, below)
            if start == parent * branching and end >= family_end:
                end_up = _divided(end, branching, shift) if end < below else parents
                item_start[written] = parent
                item_end[written] = end_up
                item_value[written] = old_value[item]
                written += 1
                if end_up * branching < end:
                    old_start[item] = end_up * branching
                else:
                    item += 1
                continue

            # The parent mixes its items: find its coverage, then how uneven it is.
            origin = item
            covered = 0.0
            while item < count and old_start[item] < family_end:
                start = old_start[item]
                final = min(max(old_end[item], start + 1), family_end) - 1
                known = before[final] - before[start] + variance[final]
                covered += known * old_value[item]
                if old_end[item] > family_end:
                    break
                item += 1
            y = covered / total[parent]
            uneven = 0.0
            gap = before[old_start[origin]]
            final = -1
            for other in range(origin, min(item + 1, count)):
                start = old_start[other]
                if start >= family_end:
                    break
                if other > origin and start > final + 1:
                    gap += before[start] - before[final + 1]
                final = min(max(old_end[other], start + 1), family_end) - 1
                known = before[final] - before[start] + variance[final]
                uneven += known * (old_value[other] - y) ** 2
            gap += after[final]
            spread[parent] += weight * (uneven + gap * y * y)
            if item < count and old_start[item] < family_end:
                old_start[item] = family_end
            if written == base and item == count:
                inside[parent] += weight * y * y
                break
            partial[parent] += weight * y * y
            item_start[written] = parent
            item_end[written] = parent
            item_value[written] = y
            written += 1
        if written > base:
            counts[query] = written - base
            queries[kept] = query
            kept += 1
    return kept


@kernel
def _piece_shares(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    squared: FloatArray,
    sizes: IntArray,
    offsets: IntArray,
    branching: int,
    shift: int,
    decays: FloatArray,
    prune: bool,
    root_exact: bool,
) -> tuple[FloatArray, float]:
    """Return the shares and the objective."""
    leaves = sizes[0]
    top = sizes.size - 1
    breaks = _piece_breaks(pointers, starts, ends, values, squared, leaves)
    cover = _cover_of_pieces(
        pointers, starts, ends, values, squared, sizes, offsets, branching, shift
    )
    demand = cover[:leaves].copy()
    shares = np.zeros(offsets[-1])
    if not demand.any():
        return shares, 0.0

    inside = np.zeros(leaves)
    queries = np.empty(squared.size, dtype=np.int64)
    counts = np.empty(squared.size, dtype=np.int64)
    item_start = np.empty(3 * starts.size, dtype=np.int64)
    item_end = np.empty(3 * starts.size, dtype=np.int64)
    item_value = np.empty(3 * starts.size)
    # Not a literal, for which the climb below would be compiled a second time.
    active = int(0)  # noqa: RUF046, UP018
    longest = 0
    for query in range(squared.size):
        if squared[query] == 0.0:
            continue
        base = 3 * pointers[query]
        written = base
        for piece in range(pointers[query], pointers[query + 1]):
            if starts[piece] < ends[piece] and values[piece] != 0.0:
                item_start[written] = starts[piece]
                item_end[written] = ends[piece]
                item_value[written] = values[piece]
                written += 1
        count = written - base
        if count == 1 and item_end[base] == item_start[base] + 1:
            inside[item_start[base]] += squared[query] * item_value[base] ** 2
        elif count > 0:
            queries[active] = query
            counts[query] = count
            active += 1
            longest = max(longest, 3 * count)
    old_start = np.empty(longest, dtype=np.int64)
    old_end = np.empty(longest, dtype=np.int64)
    old_value = np.empty(longest)

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
        active = _climb_pieces(
            active, branching, shift, below,
            queries, pointers, squared, counts, item_start, item_end, item_value,
            variance, before, after, total,
            partial, inside, spread,
            old_start, old_end, old_value,
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


def greedy_scaling_pieces(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    weights: FloatArray | None,
    leaves: int,
    branching: int,
    *,
    decay: bool = True,
    root_exact: bool = False,
    prune: bool = False,
) -> Scaling:
    """Tune node weights to queries made of pieces of constant value.

    Parameters
    ----------
    pointers : (queries + 1,) int64
        Query `q` owns the pieces ``pointers[q]`` up to ``pointers[q + 1]``.
    starts, ends : (pieces,) int64
        Half-open ranges of leaves, sorted and disjoint within a query.
    values : (pieces,) float64
        Coverage of the leaves of each piece, of any sign.
    weights : (queries,) float64 or None
        Importance of each query; None for ones.
    leaves, branching : int
        The tree.
    decay, root_exact, prune : bool
        As in `greedy_scaling_fractions`.

    Returns
    -------
    Scaling
        Node weights and the predicted error.

    Examples
    --------
    One query that counts leaf 0 twice and takes leaf 2 off:

    >>> pieces = np.array([0, 2]), np.array([0, 2]), np.array([1, 3])
    >>> scaling = greedy_scaling_pieces(*pieces, np.array([2.0, -1.0]), None, 3, 3)
    >>> scaling.weights, round(scaling.objective, 9)
    (array([1., 1., 1., 0.]), 5.0)
    """
    sizes, offsets = tree_levels(leaves, branching)
    # Copies what is read-only: each kernel compiles for one kind of array.
    pointers = np.require(pointers, np.int64, ["C", "W"])
    starts = np.require(starts, np.int64, ["C", "W"])
    ends = np.require(ends, np.int64, ["C", "W"])
    values = np.require(values, np.float64, ["C", "W"])
    if (
        pointers.ndim != 1
        or pointers.size == 0
        or starts.ndim != 1
        or not (starts.shape == ends.shape == values.shape)
        or not _well_formed(pointers, starts, ends, sizes[0])
    ):
        raise WorkloadError(
            "pieces need pointers from 0 to their number, never decreasing, and in "
            f"each query sorted, disjoint ranges of the {leaves} leaves; got shapes "
            f"{pointers.shape}, {starts.shape}, {ends.shape}, {values.shape}"
        )
    squared = squared_weights(weights, pointers.size - 1)
    shares, objective = _piece_shares(
        pointers,
        starts,
        ends,
        values,
        squared,
        sizes,
        offsets,
        branching,
        shift_of(branching),
        level_decays(sizes.size, branching, decay),
        prune,
        root_exact,
    )
    return scaling_from_shares(shares, objective, sizes, offsets, branching, root_exact)
