"""Queries of many pieces over a tree: their demand and spread, level by level.

A query is a row of sorted, disjoint pieces ``[start, end)`` of leaves with one value
each, zero elsewhere. On each level it is a short list of items: *runs* of nodes that
one piece covers wholly, and *mixed* nodes, which hold the end of a piece and carry a
coverage of their own:

    level 1   (0:.5)  [1, 3)x1  (3:.5)      a mixed node, a run of two, a mixed node
    leaves     . 1     1 1 1 1   1 .        the one piece [1, 7) of eight leaves

`p` pieces never make more than ``3 p`` items, and each query keeps a slot of that size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.kernels._jit import kernel

from .budget_shares import Demand, Level, RegularLevels, lift_inside, push_down


class PieceQueries(NamedTuple):
    """Queries of many pieces, in compressed rows.

    Attributes
    ----------
    pointers : ndarray of int64, shape (queries + 1,)
        Query `q` owns the pieces ``pointers[q]`` up to ``pointers[q + 1]``.
    starts : ndarray of int64, shape (pieces,)
        The first leaf of each piece.
    ends : ndarray of int64, shape (pieces,)
        The leaf after its last.
    values : ndarray of float64, shape (pieces,)
        Coverage of the leaves of each piece.
    squared : ndarray of float64, shape (queries,)
        Squared weight of each query.
    """

    pointers: IntArray
    starts: IntArray
    ends: IntArray
    values: FloatArray
    squared: FloatArray


class Items(NamedTuple):
    """Items of the queries that climb; those of a query start at 3 x its pointer.

    Attributes
    ----------
    waiting : ndarray of int64, shape (queries,)
        From the front, the queries that have not become one mixed node.
    counts : ndarray of int64, shape (queries,)
        How many items each query has.
    start : ndarray of int64, shape (items,)
        The first node of each item.
    end : ndarray of int64, shape (items,)
        The node after its last; equal to the start for a mixed node.
    value : ndarray of float64, shape (items,)
        The coverage.
    old_start : ndarray of int64
        Room for the items of the largest query.
    old_end : ndarray of int64
        The same for their ends.
    old_value : ndarray of float64
        The same for their coverages.
    """

    waiting: IntArray
    counts: IntArray
    start: IntArray
    end: IntArray
    value: FloatArray
    old_start: IntArray
    old_end: IntArray
    old_value: FloatArray


@kernel
def _parent_of(node: int, fan_out: int, shift: int) -> int:
    """Return the node's place one level up; a shift is much cheaper than a division."""
    return node >> shift if shift > 0 else node // fan_out


@kernel
def _piece_breaks(queries: PieceQueries, leaves: int) -> IntArray:
    """Count, before each leaf, the places where some query changes its value."""
    pointers, starts, ends = queries.pointers, queries.starts, queries.ends
    values, squared = queries.values, queries.squared
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
def _cover_of_pieces(queries: PieceQueries, tree: RegularLevels) -> FloatArray:
    """Return the demand at each node of the pieces that cover it wholly."""
    pointers, starts, ends = queries.pointers, queries.starts, queries.ends
    values, squared = queries.values, queries.squared
    sizes, offsets = tree.sizes, tree.offsets
    fan_out, shift = tree.fan_out, tree.shift
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
                start_up = _parent_of(start + fan_out - 1, fan_out, shift)
                end_up = sizes[level + 1]
                if end < sizes[level]:
                    end_up = _parent_of(end, fan_out, shift)
                if start_up >= end_up:
                    break
                # The rims that no whole parent holds: siblings from `start` on, and
                # siblings before `end`.
                if start < start_up * fan_out:
                    later[here + start - 1] += weight
                if end > end_up * fan_out:
                    earlier[here + end] += weight
                start, end = start_up, end_up
                level += 1
            for node in range(offsets[level] + start, offsets[level] + end):
                cover[node] += weight
    push_down(cover, later, earlier, tree)
    return cover


@kernel
def demand_of_pieces(
    queries: PieceQueries, tree: RegularLevels
) -> tuple[Demand, Items]:
    """Return the demand at the leaves, and the items of the lowest level.

    Parameters
    ----------
    queries : PieceQueries
        The queries.
    tree : RegularLevels
        The layout.

    Returns
    -------
    wanted : Demand
        What the queries want of the leaves.
    items : Items
        The items.
    """
    pointers, starts, ends = queries.pointers, queries.starts, queries.ends
    values, squared = queries.values, queries.squared
    cover = _cover_of_pieces(queries, tree)
    inside = np.zeros(tree.sizes[0])
    waiting = np.empty(squared.size, dtype=np.int64)
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
            waiting[active] = query
            counts[query] = count
            active += 1
            longest = max(longest, 3 * count)
    items = Items(
        waiting,
        counts,
        item_start,
        item_end,
        item_value,
        np.empty(longest, dtype=np.int64),
        np.empty(longest, dtype=np.int64),
        np.empty(longest),
    )
    breaks = _piece_breaks(queries, tree.sizes[0])
    return Demand(cover, cover[: tree.sizes[0]].copy(), inside, breaks, active), items


@kernel
def climb_pieces(queries: PieceQueries, items: Items, active: int, level: Level) -> int:
    """Lift the items of the active queries by one level.

    A query that has become one mixed node joins `inside`.

    Parameters
    ----------
    queries : PieceQueries
        The queries.
    items : Items
        Their items; changed in place.
    active : int
        How many queries climb.
    level : Level
        The level; demand and spread are filled.

    Returns
    -------
    int
        How many queries stay active.
    """
    waiting, counts = items.waiting, items.counts
    item_start, item_end, item_value = items.start, items.end, items.value
    old_start, old_end = items.old_start, items.old_end
    old_value = items.old_value
    pointers, squared = queries.pointers, queries.squared
    below, fan_out, shift = level.below, level.fan_out, level.shift
    variance, before, after = level.variance, level.before, level.after
    total, partial, inside = level.total, level.partial, level.inside
    spread = level.spread
    lift_inside(level)
    parents = (below + fan_out - 1) // fan_out
    still_active = 0
    for place in range(active):
        query = waiting[place]
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
            parent = _parent_of(start, fan_out, shift)
            family_end = min((parent + 1) * fan_out, below)
            if start == parent * fan_out and end >= family_end:
                end_up = _parent_of(end, fan_out, shift) if end < below else parents
                item_start[written] = parent
                item_end[written] = end_up
                item_value[written] = old_value[item]
                written += 1
                if end_up * fan_out < end:
                    old_start[item] = end_up * fan_out
                else:
                    item += 1
                continue

            # The parent mixes its items: find its coverage, then how uneven it is.
            origin = item
            covered = 0.0
            while item < count and old_start[item] < family_end:
                start = old_start[item]
                final = min(max(old_end[item], start + 1), family_end) - 1
                covered_variance = before[final] - before[start] + variance[final]
                covered += covered_variance * old_value[item]
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
                covered_variance = before[final] - before[start] + variance[final]
                uneven += covered_variance * (old_value[other] - y) ** 2
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
            waiting[still_active] = query
            still_active += 1
    return still_active
