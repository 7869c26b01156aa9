"""How much one move along a line can change a list of ranges, or a weighted sum.

A record that moves from u to v changes the ranges that hold exactly one of the two. A
sweep over v keeps that number for every u at once, in a tree of maxima with pending
additions:

    ranges   [1, 4)  [2, 5)         u         0  1  2  3  4
    v = 2 lies in both              separate  2  1  0  0  1

When v enters a range, every u gains one and those inside lose two; when v leaves it,
that is undone. The largest value among the neighbours of v, the nodes after it up to a
furthest one, is one query of the tree.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .graph_distance import check_far, check_graph


def range_coverage(starts: IntArray, ends: IntArray, cells: int) -> IntArray:
    """Return how many ranges [start, end) hold each cell. O(ranges + cells).

    Parameters
    ----------
    starts : ndarray of int64, shape (ranges,)
        The first cell of each range.
    ends : ndarray of int64, shape (ranges,)
        The cell after its last.
    cells : int
        Number of cells.

    Returns
    -------
    ndarray of int64, shape (cells,)
        The numbers.

    Raises
    ------
    InputError
        If a range is empty or leaves the cells.
    """
    _check_ranges(starts, ends, cells)
    changes = np.bincount(starts, minlength=cells + 1)
    changes -= np.bincount(ends, minlength=cells + 1)
    return np.cumsum(changes[:-1]).astype(np.int64)


@kernel
def _add(
    largest: IntArray, pending: IntArray, leaves: int, low: int, high: int, amount: int
) -> None:
    """Add `amount` to the leaves [low, high)."""
    left, right = low + leaves, high + leaves
    first, last = left >> 1, (right - 1) >> 1
    while left < right:
        if left & 1:
            largest[left] += amount
            pending[left] += amount
            left += 1
        if right & 1:
            right -= 1
            largest[right] += amount
            pending[right] += amount
        left >>= 1
        right >>= 1
    while first > 0:
        below = 2 * first
        largest[first] = pending[first] + max(largest[below], largest[below + 1])
        if first != last:
            below = 2 * last
            largest[last] = pending[last] + max(largest[below], largest[below + 1])
        first >>= 1
        last >>= 1


@kernel
def _largest_between(
    largest: IntArray, pending: IntArray, leaves: int, low: int, high: int
) -> int:
    """Return the largest leaf of [low, high], both inclusive."""
    left, right = low + leaves, high + leaves
    best_left, best_right = largest[left], largest[right]
    while left >> 1 != right >> 1:
        if left & 1 == 0:
            best_left = max(best_left, largest[left + 1])
        if right & 1:
            best_right = max(best_right, largest[right - 1])
        left >>= 1
        right >>= 1
        best_left += pending[left]
        best_right += pending[right]
    best = max(best_left, best_right)
    left >>= 1
    while left > 0:
        best += pending[left]
        left >>= 1
    return int(best)


@kernel
def _sweep(
    coverage: IntArray,
    far: IntArray,
    starts: IntArray,
    ends: IntArray,
    by_start: IntArray,
    by_end: IntArray,
) -> int:
    cells = far.size
    leaves = 1
    while leaves < cells:
        leaves *= 2
    largest = np.full(2 * leaves, np.int64(-(2**60)))
    pending = np.zeros(2 * leaves, dtype=np.int64)
    for cell in range(cells):
        largest[leaves + cell] = coverage[cell]
    for node in range(leaves - 1, 0, -1):
        largest[node] = max(largest[2 * node], largest[2 * node + 1])
    everywhere = 0
    entered = left = 0
    best = 0
    for cell in range(cells):
        while left < by_end.size and ends[by_end[left]] == cell:
            gone = by_end[left]
            _add(largest, pending, leaves, starts[gone], ends[gone], 2)
            everywhere -= 1
            left += 1
        while entered < by_start.size and starts[by_start[entered]] == cell:
            new = by_start[entered]
            _add(largest, pending, leaves, starts[new], ends[new], -2)
            everywhere += 1
            entered += 1
        if far[cell] > cell:
            # The whole tree's maximum is free, and often proves the query needless.
            if largest[1] + everywhere <= best:
                continue
            most_separated = _largest_between(
                largest, pending, leaves, cell + 1, far[cell]
            )
            best = max(best, most_separated + everywhere)
    return best


def largest_separation(starts: IntArray, ends: IntArray, far: IntArray) -> int:
    """Return the most ranges that hold exactly one of two joined nodes.

    It takes O((ranges + nodes) log nodes).

    Parameters
    ----------
    starts : ndarray of int64, shape (ranges,)
        The first node of each range.
    ends : ndarray of int64, shape (ranges,)
        The node after its last; no range is empty.
    far : ndarray of int64, shape (nodes,)
        Node i is joined to i + 1 .. far[i]; `far` never decreases.

    Returns
    -------
    int
        The largest number over all joined pairs.

    Raises
    ------
    InputError
        If a range is empty or leaves the nodes, or `far` falls.
    """
    check_far(far)
    coverage = range_coverage(starts, ends, far.size)
    if starts.size == 0:
        return 0
    by_start = np.argsort(starts, kind="stable")
    by_end = np.argsort(ends, kind="stable")
    return int(_sweep(coverage, far, starts, ends, by_start, by_end))


@kernel
def _along_edges(
    pointers: IntArray,
    neighbours: IntArray,
    coverage: IntArray,
    starts: IntArray,
    ends: IntArray,
    by_start: IntArray,
) -> int:
    cells = coverage.size
    # Prefix counts of the ends of ranges that have begun: a Fenwick tree, 1-based.
    tree = np.zeros(cells + 2, dtype=np.int64)
    begun = 0
    best = 0
    for low in range(cells):
        while begun < by_start.size and starts[by_start[begun]] == low:
            place = ends[by_start[begun]] + 1
            while place < tree.size:
                tree[place] += 1
                place += place & -place
            begun += 1
        for entry in range(pointers[low], pointers[low + 1]):
            high = neighbours[entry]
            if high <= low or high >= cells:
                continue
            ended = 0
            place = high + 1
            while place > 0:
                ended += tree[place]
                place -= place & -place
            both = begun - ended
            best = max(best, coverage[low] + coverage[high] - 2 * both)
    return best


def largest_edge_separation(
    pointers: IntArray,
    neighbours: IntArray,
    starts: IntArray,
    ends: IntArray,
    cells: int,
) -> int:
    """Return the most ranges that hold exactly one end of an edge of a graph.

    It takes O((ranges + edges) log cells).

    Parameters
    ----------
    pointers : ndarray of int64, shape (nodes + 1,)
        A symmetric graph in compressed rows.
    neighbours : ndarray of int64
        The neighbours of each node.
    starts : ndarray of int64, shape (ranges,)
        The first cell of each range.
    ends : ndarray of int64, shape (ranges,)
        The cell after its last.
    cells : int
        Number of cells, which are the first nodes; edges to other nodes are passed
        over.

    Returns
    -------
    int
        The largest number over all edges.

    Raises
    ------
    InputError
        If the rows are no graph, or a range is empty or leaves the cells.
    """
    check_graph(pointers, neighbours)
    if cells > pointers.size - 1:
        raise InputError(
            f"the graph has {pointers.size - 1} nodes; {cells} cells do not fit"
        )
    coverage = range_coverage(starts, ends, cells)
    by_start = np.argsort(starts, kind="stable")
    return int(_along_edges(pointers, neighbours, coverage, starts, ends, by_start))


@kernel
def _slide(lines: FloatArray, far: IntArray) -> float:
    """Return the largest difference between a value and those up to its furthest."""
    cells = far.size
    highest = np.empty(cells, dtype=np.int64)
    lowest = np.empty(cells, dtype=np.int64)
    best = 0.0
    for line in range(lines.shape[0]):
        values = lines[line]
        high_head = high_tail = low_head = low_tail = entered = 0
        for cell in range(cells):
            while entered <= far[cell]:
                value = values[entered]
                while high_tail > high_head and values[highest[high_tail - 1]] <= value:
                    high_tail -= 1
                highest[high_tail] = entered
                high_tail += 1
                while low_tail > low_head and values[lowest[low_tail - 1]] >= value:
                    low_tail -= 1
                lowest[low_tail] = entered
                low_tail += 1
                entered += 1
            while highest[high_head] < cell:
                high_head += 1
            while lowest[low_head] < cell:
                low_head += 1
            value = values[cell]
            best = max(best, values[highest[high_head]] - value)
            best = max(best, value - values[lowest[low_head]])
    return best


def largest_change_within(lines: FloatArray, far: IntArray) -> float:
    """Return the largest difference of values between two joined nodes of a line.

    A window slides along each line with a queue of candidates: O(lines * nodes).

    Parameters
    ----------
    lines : ndarray of float64, shape (lines, nodes)
        The values along each line.
    far : ndarray of int64, shape (nodes,)
        Node i is joined to i + 1 .. far[i]; `far` never decreases.

    Returns
    -------
    float
        The largest absolute difference.

    Raises
    ------
    InputError
        If a line has another length than `far`.
    """
    check_far(far)
    if lines.ndim != 2 or lines.shape[1] != far.size:
        raise InputError(
            f"each line must hold {far.size} values; received shape {lines.shape}"
        )
    return float(_slide(np.ascontiguousarray(lines, dtype=np.float64), far))


def _check_ranges(starts: IntArray, ends: IntArray, cells: int) -> None:
    if starts.ndim != 1 or starts.shape != ends.shape:
        raise InputError(
            "starts and ends must be two arrays of one length; received shapes "
            f"{starts.shape} and {ends.shape}"
        )
    if starts.size and (
        starts.min() < 0 or ends.max() > cells or (starts >= ends).any()
    ):
        raise InputError(f"ranges must lie in [0, {cells}) and must not be empty")
