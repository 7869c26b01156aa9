"""Graphs from lists of pairs, and the pairs that bins inherit from cliques.

Serves the explicit policy graphs and every quotient that has no closed form. A graph
of `nodes` nodes is two arrays in compressed rows, both directions of an edge stored:

    pairs  (0, 2) (1, 2) (0, 2)        pointers    0 1 2 4
                                       neighbours  2 | 2 | 0 1

Two counting sorts put every row in order, so repeated pairs lie side by side and are
dropped; the work is linear in pairs and nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from blowfish_fast._support.typing import BoolArray, IntArray
from blowfish_fast.errors import SizeError
from blowfish_fast.kernels._jit import kernel

from .graph_distance import check_nodes

PAIRS_AT_ONCE = 2**22
"""Pairs of bins that are listed before they are merged."""


@kernel
def _rows(first: IntArray, second: IntArray, nodes: int) -> tuple[IntArray, IntArray]:
    pointers = np.zeros(nodes + 1, dtype=np.int64)
    for pair in range(first.size):
        pointers[first[pair] + 1] += 1
        pointers[second[pair] + 1] += 1
    for node in range(nodes):
        pointers[node + 1] += pointers[node]
    slot = pointers[:-1].copy()
    mixed = np.empty(2 * first.size, dtype=np.int64)
    for pair in range(first.size):
        low, high = first[pair], second[pair]
        mixed[slot[low]] = high
        slot[low] += 1
        mixed[slot[high]] = low
        slot[high] += 1
    # Handing each node to its neighbours, in order, leaves every row sorted.
    for node in range(nodes):
        slot[node] = pointers[node]
    ordered = np.empty(2 * first.size, dtype=np.int64)
    for node in range(nodes):
        for entry in range(pointers[node], pointers[node + 1]):
            neighbour = mixed[entry]
            ordered[slot[neighbour]] = node
            slot[neighbour] += 1
    kept = 0
    begin = 0
    for node in range(nodes):
        end = pointers[node + 1]
        for entry in range(begin, end):
            if entry == begin or ordered[entry] != ordered[entry - 1]:
                mixed[kept] = ordered[entry]
                kept += 1
        begin = end
        pointers[node + 1] = kept
    return pointers, mixed[:kept].copy()


def adjacency(
    first: IntArray, second: IntArray, nodes: int
) -> tuple[IntArray, IntArray]:
    """Return pointers and neighbours of a graph: sorted, symmetric, without repeats.

    The two ends of a pair are different nodes.
    """
    first = np.ascontiguousarray(first, dtype=np.int64)
    second = np.ascontiguousarray(second, dtype=np.int64)
    check_nodes(first, second, nodes)
    return _rows(first, second, nodes)


def upper_pairs(pointers: IntArray, neighbours: IntArray) -> tuple[IntArray, IntArray]:
    """Return each edge of a graph once, as its lower and its higher node."""
    nodes = np.arange(pointers.size - 1, dtype=np.int64)
    lower = np.repeat(nodes, np.diff(pointers))
    once = lower < neighbours
    return lower[once], neighbours[once]


def group_members(
    groups: IntArray, labels: IntArray, bins: int
) -> tuple[IntArray, IntArray]:
    """Return the different bins of each group of cells, in compressed rows.

    `groups` and `labels` give the group and the bin of each cell, numbered from 0.
    """
    keys = np.unique(groups * np.int64(bins) + labels)
    count = int(keys[-1] // bins) + 1 if keys.size else 0
    pointers = np.searchsorted(keys, np.arange(count + 1, dtype=np.int64) * bins)
    return pointers.astype(np.int64), keys % bins


@kernel
def _is_news(pointers: IntArray, members: IntArray) -> BoolArray:
    """Mark groups that hold two bins or more and differ from the group before."""
    groups = pointers.size - 1
    news = np.zeros(groups, dtype=np.bool_)
    for group in range(groups):
        begin, size = pointers[group], pointers[group + 1] - pointers[group]
        if size < 2:
            continue
        news[group] = True
        if group > 0 and pointers[group] - pointers[group - 1] == size:
            same = True
            for place in range(size):
                if members[begin + place] != members[begin - size + place]:
                    same = False
                    break
            news[group] = not same
    return news


@kernel
def _clique_keys(
    pointers: IntArray, members: IntArray, chosen: IntArray, total: int, bins: int
) -> IntArray:
    keys = np.empty(total, dtype=np.int64)
    slot = 0
    for index in range(chosen.size):
        begin, end = pointers[chosen[index]], pointers[chosen[index] + 1]
        for low in range(begin, end):
            for high in range(low + 1, end):
                keys[slot] = members[low] * bins + members[high]
                slot += 1
    return keys


def clique_pairs(
    pointers: IntArray, members: IntArray, bins: int, most: int
) -> Iterator[IntArray]:
    """Yield every pair of bins that share a group, as keys ``low * bins + high``.

    Groups in compressed rows, as from `group_members`; those equal to the one before
    are skipped: all lines of a grid look alike when bins are slabs of it. Refused when
    more than `most` pairs would be listed.
    """
    chosen = np.flatnonzero(_is_news(pointers, members))
    sizes = pointers[chosen + 1] - pointers[chosen]
    upto = np.cumsum(sizes * (sizes - 1) // 2)
    if upto.size and upto[-1] > most:
        raise SizeError(
            f"the groups hold {int(upto[-1]):,} pairs of bins; at most {most:,} are "
            "listed"
        )
    begin = 0
    while begin < chosen.size:
        done = int(upto[begin - 1]) if begin else 0
        end = int(np.searchsorted(upto, done + PAIRS_AT_ONCE, side="right"))
        end = max(end, begin + 1)
        total = int(upto[end - 1]) - done
        yield _clique_keys(pointers, members, chosen[begin:end], total, bins)
        begin = end
