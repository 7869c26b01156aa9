"""Sensitivity of ranges along one ordered attribute, for every policy over it.

    u     v         [==)  [======)       two of the three ranges hold exactly one
    |-----|---------------------->       of u and v

Ranges that share no boundary with some cells cannot tell them apart: the sweep runs on
the stretches between boundaries, at most twice as many as there are ranges, under the
quotient policy. Pieces: ``kernels.range_sensitivity``.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import SizeError
from blowfish_fast.policies import ABSENT, Blocks, Graph, Line, Policy

from .columns import MOST_EDGES, MOST_ENTRIES, Part


def all_range_moves(policy: Policy, cells: int) -> Part:
    """Return the most ranges, of all, that hold exactly one of two joined cells.

    Cells d apart are separated by d (cells + 1 - d) ranges: more and more up to half
    the line, then fewer again.
    """
    longest, half = policy.longest_edge(), (cells + 1) // 2
    how = "closed form: ranges that hold one of two cells"
    band = policy.bandwidth() if longest > half else None
    if longest <= half or (band is not None and band.all_between):
        length = min(longest, half)
        return Part(length * (cells + 1 - length), True, how)
    if isinstance(policy, Blocks):
        lengths = _near_half(policy, half)
        return Part(int((lengths * (cells + 1 - lengths)).max()), True, how)
    try:
        if policy.edge_count <= MOST_EDGES:
            best = 0
            for chunk in policy.edges():
                lengths = np.abs(np.diff(chunk[(chunk != ABSENT).all(axis=1)]))
                ways = lengths * (cells + 1 - lengths)
                best = max(best, int(ways.max(initial=0)))
            return Part(best, True, "edge by edge")
    except SizeError:
        pass
    return Part(half * (cells + 1 - half), False, "as if all lengths were joined")


def _near_half(policy: Blocks, half: int) -> IntArray:
    """Return edge lengths among which is the one nearest to half the line.

    For each cell, the two cells of its block around the point half a line further.
    """
    cells = policy.labels.size
    # Block after block, each on a stretch of its own, so one search serves all.
    places = np.arange(cells) + policy.labels * np.int64(3 * cells)
    places.sort()
    after = np.searchsorted(places, places + half)
    around = np.stack([np.maximum(after - 1, 0), np.minimum(after, cells - 1)])
    lengths = np.abs(places[around] - places)
    inside = lengths < cells
    nearest: IntArray = lengths[inside]
    return nearest


def range_moves(policy: Policy, starts: IntArray, ends: IntArray) -> Part:
    """Return the most listed ranges that hold exactly one of two joined cells."""
    cells = policy.domain.size
    if isinstance(policy, Line):
        bounds = np.bincount(starts, minlength=cells + 1)
        bounds += np.bincount(ends, minlength=cells + 1)
        most = int(bounds[1:cells].max(initial=0))
        return Part(most, True, "the most range ends between two adjacent cells")
    band = policy.bandwidth()
    if band is not None and band.all_between:
        return _swept(policy, starts, ends)
    if isinstance(policy, Blocks) and starts.size * policy.sizes.size <= MOST_ENTRIES:
        return _swept_by_block(policy, starts, ends)
    return _by_edges(policy, starts, ends)


def _swept(policy: Policy, starts: IntArray, ends: IntArray) -> Part:
    cells = policy.domain.size
    bound = np.zeros(cells + 1, dtype=np.bool_)
    bound[[0, cells]] = True
    bound[starts] = True
    bound[ends] = True
    number = np.cumsum(bound) - 1
    stretches = Buckets(np.flatnonzero(bound))
    band = policy.project(stretches).bandwidth()
    assert band is not None, "contiguous bins of a line form a line"
    assert band.all_between, "contiguous bins of a line form a line"
    most = kernels.largest_separation(number[starts], number[ends], band.far)
    return Part(most, True, "sweep over the ranges")


def _swept_by_block(policy: Blocks, starts: IntArray, ends: IntArray) -> Part:
    """Sweep along the cells block after block: in each, a range is a range again."""
    cells, blocks = policy.domain.size, policy.sizes.size
    order = policy.order
    places = np.arange(cells)[order] + policy.labels[order] * np.int64(cells + 1)
    shift = np.arange(blocks) * np.int64(cells + 1)
    first = np.searchsorted(places, (starts[:, None] + shift).reshape(-1))
    last = np.searchsorted(places, (ends[:, None] + shift).reshape(-1))
    size = np.broadcast_to(policy.sizes, (starts.size, blocks)).reshape(-1)
    # Ranges that hold none or all of a block tell no two of its cells apart.
    split = (first < last) & (last - first < size)
    band = policy.bandwidth(order)
    assert band is not None, "blocks reach their last cell along any order"
    most = kernels.largest_separation(first[split], last[split], band.far)
    return Part(most, True, "sweep over the ranges, block by block")


def _by_edges(policy: Policy, starts: IntArray, ends: IntArray) -> Part:
    cells = policy.domain.size
    try:
        if policy.edge_count > MOST_EDGES // 8:
            raise SizeError(f"{policy.edge_count:,} edges are too many to list")
        if isinstance(policy, Graph):
            graph = policy
        else:
            graph = Graph(policy.domain, np.concatenate(list(policy.edges())))
        most = kernels.largest_edge_separation(*graph.rows, starts, ends, cells)
        return Part(most, True, "edge by edge")
    except SizeError:
        coverage = kernels.range_coverage(starts, ends, cells)
        most = int(np.partition(coverage, -2)[-2:].sum())
        return Part(
            min(most, starts.size), False, "the two most covered cells together"
        )
