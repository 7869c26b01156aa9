"""Longest cycles and paths among known counts, and what an edge does to them.

Serves policies with constraints: a move that lowers one known count must be made good
by another that lifts it, so whole chains of records move together. Nodes are count
queries, and two are joined when one move lowers the first and lifts the second.

    queries joined    0 - 1 - 2        open: a move may lift or lower it alone
    open              0, 2             path  0 1 2: 3 queries, a chain of 4 moves

The longest chain is found over subsets of at most 20 queries, each subset a number:

    ends[0b0111] = 0b0100    a path through 0, 1 and 2 can end at 2, and only there
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel, popcount

MOST_QUERIES = 20
"""Most queries whose subsets are walked."""

NOTHING = -1
SEVERAL = -2


@kernel
def _longest_cycle(joined: IntArray) -> int:
    queries = joined.size
    subsets = 1 << queries
    ends = np.zeros(subsets, dtype=np.int64)
    for query in range(queries):
        ends[1 << query] = 1 << query
    longest = 0
    for subset in range(1, subsets):
        here = ends[subset]
        if here == 0:
            continue
        # Every cycle is walked from its lowest query, which is the lowest bit.
        lowest = 0
        while not (subset >> lowest) & 1:
            lowest += 1
        length = popcount(np.uint64(subset))
        if length >= 2 and here & joined[lowest] and length > longest:
            longest = length
        onward = 0
        for query in range(lowest, queries):
            if (here >> query) & 1:
                onward |= joined[query]
        for query in range(lowest + 1, queries):
            bit = 1 << query
            if onward & bit and not subset & bit:
                ends[subset | bit] |= bit
    return longest


@kernel
def _longest_open_path(joined: IntArray, starts: int) -> int:
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
        length = popcount(np.uint64(subset))
        if here & starts and length > longest:
            longest = length
        onward = 0
        for query in range(queries):
            if (here >> query) & 1:
                onward |= joined[query]
        onward &= ~subset
        for query in range(queries):
            bit = 1 << query
            if onward & bit:
                ends[subset | bit] |= bit
    return longest


def longest_cycle(joined: IntArray) -> int:
    """Return the number of nodes of the longest simple cycle; O(2^n n) for n nodes.

    A joined pair is a cycle of length 2: one move there and one back. 0 if nothing is
    joined.

    Parameters
    ----------
    joined : (nodes,) int64
        The neighbours of each node as bits; symmetric, at most 20 nodes.
    """
    return int(_longest_cycle(_check_links(joined)))


def longest_open_path(joined: IntArray, starts: int) -> int:
    """Return the number of nodes of the longest simple path between two open nodes.

    Both ends may be one node, a path of length 1; 0 if no node is open. O(2^n n).

    Parameters
    ----------
    joined : (nodes,) int64
        The neighbours of each node as bits; symmetric, at most 20 nodes.
    starts : int
        The open nodes as bits.
    """
    bits = _check_links(joined)
    if not 0 <= starts < 1 << bits.size:
        raise InputError(f"open nodes must be bits of {bits.size} nodes; got {starts}")
    return int(_longest_open_path(bits, starts))


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
    pointers: IntArray,
    members: IntArray,
    first: IntArray,
    second: IntArray,
    lowered: IntArray,
    lifted: IntArray,
) -> None:
    for edge in range(first.size):
        one, one_end = pointers[first[edge]], pointers[first[edge] + 1]
        two, two_end = pointers[second[edge]], pointers[second[edge] + 1]
        down, up = NOTHING, NOTHING
        while one < one_end or two < two_end:
            if two == two_end or (one < one_end and members[one] < members[two]):
                down = members[one] if down == NOTHING else SEVERAL
                one += 1
            elif one == one_end or members[two] < members[one]:
                up = members[two] if up == NOTHING else SEVERAL
                two += 1
            else:
                one += 1
                two += 1
        lowered[edge] = down
        lifted[edge] = up


def edge_changes(
    pointers: IntArray, members: IntArray, first: IntArray, second: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the query that a move lowers and the one that it lifts.

    -1 stands for none, -2 for several. Linear in the queries that are compared.

    Parameters
    ----------
    pointers : (kinds + 1,) int64
        Where the queries of each kind of cell begin in `members`.
    members : (entries,) int64
        The queries that hold cells of each kind, in increasing order.
    first, second : (edges,) int64
        Kinds of cell from which and to which a record moves.
    """
    kinds = pointers.size - 1
    fits = pointers.ndim == 1 and kinds >= 0 and pointers[-1] == members.size
    if not fits or pointers[0] != 0 or (np.diff(pointers) < 0).any():
        raise InputError("pointers must rise from 0 to the number of members")
    if first.shape != second.shape or first.ndim != 1:
        raise InputError("edges must be two arrays of one length")
    for ends in (first, second):
        if ends.size and (ends.min() < 0 or ends.max() >= kinds):
            raise InputError(f"edges must join kinds 0 to {kinds - 1}")
    lowered = np.empty(first.size, dtype=np.int64)
    lifted = np.empty(first.size, dtype=np.int64)
    _edge_changes(pointers, members, first, second, lowered, lifted)
    return lowered, lifted
