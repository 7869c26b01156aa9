"""Longest cycles and paths among known counts, and what an edge does to them.

A move that lowers one known count must be made good by another that lifts it, so whole
chains of records move together. Nodes are count queries, and two are joined when one
move lowers the first and lifts the second.

    queries joined    0 - 1 - 2        open: a move may lift or lower it alone
    open              0, 2             path  0 1 2: 3 queries, a chain of 4 moves

The longest chain is found over subsets of at most 20 queries, each subset a number:

    ends[0b0111] = 0b0100    a path through 0, 1 and 2 can end at 2, and only there
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import rises
from blowfish_fast.kernels._jit import kernel, popcount

from .graph_distance import check_nodes

# Most queries whose subsets are walked.
MOST_QUERIES = 20
NOTHING = -1
SEVERAL = -2


@kernel
def _longest_walk(joined: IntArray, starts: int, closed: bool) -> int:
    """Return how many queries the longest path holds, from and to a start; or cycle.

    ``ends[subset]`` has a bit for each query where a path through the subset can end.
    Every cycle is walked from its lowest query, the lowest bit of its subset.
    """
    queries = joined.size
    subsets = 1 << queries
    ends = np.zeros(subsets, dtype=np.int64)
    for query in range(queries):
        if (starts >> query) & 1:
            ends[1 << query] = 1 << query
    longest = 0
    for subset in range(1, subsets):
        here = ends[subset]
        if here == 0:
            continue
        lowest = 0
        while closed and not (subset >> lowest) & 1:
            lowest += 1
        length = popcount(np.uint64(subset))
        last = joined[lowest] if closed else starts
        if here & last and length > longest and (length >= 2 or not closed):
            longest = length
        onward = 0
        for query in range(lowest, queries):
            if (here >> query) & 1:
                onward |= joined[query]
        onward &= ~subset
        for query in range(lowest, queries):
            bit = 1 << query
            if onward & bit:
                ends[subset | bit] |= bit
    return longest


def longest_cycle(joined: IntArray) -> int:
    """Return the number of nodes of the longest simple cycle; O(2^n n) for n nodes.

    `joined` holds neighbours as bits. A joined pair is a cycle of length 2.
    """
    bits = _check_links(joined)
    return int(_longest_walk(bits, (1 << bits.size) - 1, True))


def longest_open_path(joined: IntArray, starts: int) -> int:
    """Return the number of nodes of the longest simple path between two open nodes.

    It takes O(2^n n) for n nodes.

    Parameters
    ----------
    joined : ndarray of int64, shape (n,)
        The neighbours of each node as bits, at most 20 nodes.
    starts : int
        The open nodes as bits.

    Returns
    -------
    int
        The number of nodes; 1 if both ends are one node, 0 if no node is open.

    Raises
    ------
    InputError
        If there are too many nodes, or bits beyond them.
    """
    bits = _check_links(joined)
    if not 0 <= starts < 1 << bits.size:
        raise InputError(f"open nodes must be bits of {bits.size} nodes; got {starts}")
    return int(_longest_walk(bits, starts, False))


def _check_links(joined: IntArray) -> IntArray:
    bits = np.ascontiguousarray(joined, dtype=np.int64)
    if bits.ndim != 1 or bits.size > MOST_QUERIES:
        raise InputError(
            f"subsets of at most {MOST_QUERIES} nodes are walked; received shape "
            f"{bits.shape}"
        )
    if bits.size and (bits.min() < 0 or bits.max() >= 1 << bits.size):
        raise InputError("neighbours must be bits of the same nodes")
    return bits


@kernel
def _edge_changes(
    pointers: IntArray, members: IntArray, first: IntArray, second: IntArray
) -> tuple[IntArray, IntArray]:
    lowered, lifted = np.empty_like(first), np.empty_like(first)
    for edge in range(first.size):
        first_member, first_end = pointers[first[edge]], pointers[first[edge] + 1]
        second_member, second_end = pointers[second[edge]], pointers[second[edge] + 1]
        down, up = NOTHING, NOTHING
        while first_member < first_end or second_member < second_end:
            if second_member == second_end or (
                first_member < first_end
                and members[first_member] < members[second_member]
            ):
                down = members[first_member] if down == NOTHING else SEVERAL
                first_member += 1
            elif (
                first_member == first_end
                or members[second_member] < members[first_member]
            ):
                up = members[second_member] if up == NOTHING else SEVERAL
                second_member += 1
            else:
                first_member += 1
                second_member += 1
        lowered[edge], lifted[edge] = down, up
    return lowered, lifted


def edge_changes(
    pointers: IntArray, members: IntArray, first: IntArray, second: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the query that each move lowers and the one that it lifts.

    Parameters
    ----------
    pointers : ndarray of int64, shape (kinds + 1,)
        Kind k of cell is held by the queries ``members[pointers[k] : pointers[k +
        1]]``.
    members : ndarray of int64
        The queries that hold each kind of cell, rising within a kind.
    first : ndarray of int64, shape (moves,)
        The kind of cell that the record leaves.
    second : ndarray of int64, shape (moves,)
        The kind that it goes to.

    Returns
    -------
    lowered : ndarray of int64, shape (moves,)
        The query that loses a record; -1 for none, -2 for several.
    lifted : ndarray of int64, shape (moves,)
        The query that gains one, in the same way.

    Raises
    ------
    InputError
        If the pointers do not rise, or a move names no kind.
    """
    kinds = pointers.size - 1
    if not rises(pointers, members.size):
        raise InputError("pointers must rise from 0 to the number of members")
    check_nodes(first, second, kinds)
    return _edge_changes(pointers, members, first, second)
