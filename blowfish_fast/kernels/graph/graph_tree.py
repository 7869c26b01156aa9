r"""Rooted spanning trees of a graph, and the transformation along their edges.

Along a tree, counts and totals of subtrees are two ways to write the same histogram,
and a record that moves along an edge changes the totals on the path between its ends
and no others. A root has the parent -1.

    graph    0 - 1 - 2 - 3          tree     1          parents  1 -1  1  2
             |_______|                      / \          totals   x0, all, x2 + x3, x3
                                           0   2
    edge 0 - 2 runs along 0 - 1 - 2:            \
    a path of two rows                           3
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import refuse_wide_sums, whole_numbers
from blowfish_fast.kernels._jit import kernel

from .graph_distance import (
    NO_PARENT,
    breadth_first,
    check_graph,
    check_nodes,
    jump_pointers,
)

Values = TypeVar("Values", IntArray, FloatArray)


def breadth_first_tree(
    pointers: IntArray, neighbours: IntArray, starts: IntArray
) -> IntArray:
    """Return the parent of each node in a breadth-first tree of every connected part.

    Parameters
    ----------
    pointers : ndarray of int64, shape (nodes + 1,)
        A symmetric graph in compressed rows, as from ``graph_distance.adjacency``.
    neighbours : ndarray of int64
        The neighbours of each node.
    starts : ndarray of int64, shape (nodes,)
        Every node once; the first of each connected part becomes its root.

    Returns
    -------
    ndarray of int64, shape (nodes,)
        The parents; -1 at the roots.

    Raises
    ------
    InputError
        If the rows are no graph, or `starts` does not name each node once.

    Examples
    --------
    >>> pointers, neighbours = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])
    >>> breadth_first_tree(pointers, neighbours, np.array([1, 0, 2]))
    array([ 1, -1,  1])
    """
    pointers, neighbours, starts = _whole(pointers, neighbours, starts)
    check_graph(pointers, neighbours)
    nodes = pointers.size - 1
    if not np.array_equal(np.sort(starts, axis=0), np.arange(nodes)):
        raise InputError(
            f"starts must name each of the {nodes} nodes once; received {starts.size}"
        )
    return breadth_first(pointers, neighbours, starts)[0]


@kernel
def _top_down(
    parents: IntArray, slot: IntArray, children: IntArray, order: IntArray
) -> int:
    """Fill in the order, and return how many nodes were reached.

    `slot` holds two zeros more than there are nodes, `children` room for each. All
    arrays come from the caller: a kernel that makes its own takes longer to compile.
    """
    nodes = parents.size
    # Children by parent, in one counting sort; roots are the children of no one.
    for node in range(nodes):
        slot[parents[node] + 2] += 1
    for place in range(nodes + 1):
        slot[place + 1] += slot[place]
    for node in range(nodes):
        owner = parents[node] + 1
        children[slot[owner]] = node
        slot[owner] += 1
    # Now each slot is where the next one began: children of v from slot v on.
    tail = slot[0]
    for place in range(tail):
        order[place] = children[place]
    head = 0
    while head < tail:
        node = order[head]
        head += 1
        for place in range(slot[node], slot[node + 1]):
            order[tail] = children[place]
            tail += 1
    return int(tail)


def top_down_order(parents: IntArray) -> IntArray:
    """Return the nodes so that every parent comes before its children.

    Refused where following parents never ends.
    """
    _check(parents, parents, parents)
    nodes = parents.size
    order = np.empty(nodes, dtype=np.int64)
    slot, children = np.zeros(nodes + 2, dtype=np.int64), np.empty_like(order)
    reached = _top_down(parents, slot, children, order)
    if reached < nodes:
        raise InputError(
            f"{nodes - reached} of {nodes} nodes lead to no root: their parents run in "
            "a circle"
        )
    return order


@kernel
def _gather(totals: Values, parents: IntArray, order: IntArray) -> None:
    for place in range(order.size - 1, -1, -1):
        node = order[place]
        if parents[node] >= 0:
            totals[parents[node]] += totals[node]


def subtree_totals(values: Values, parents: IntArray, order: IntArray) -> Values:
    """Return the sum of the values of each node and of everything below it. O(nodes).

    Parameters
    ----------
    values : ndarray, shape (nodes,)
        A value for each node.
    parents : ndarray of int64, shape (nodes,)
        The node above each node; -1 at a root.
    order : ndarray of int64, shape (nodes,)
        The nodes from the top down, from `top_down_order`.

    Returns
    -------
    ndarray, shape (nodes,)
        The sums.

    Raises
    ------
    InputError
        If the arrays differ in length, or sums of whole values do not fit 64 bits.

    Examples
    --------
    >>> parents = np.array([1, -1, 1, 2])
    >>> subtree_totals(np.array([1, 2, 3, 4]), parents, top_down_order(parents))
    array([ 1, 10,  7,  4])
    """
    values = _summable(values)
    parents, order = _whole(parents, order)
    _check(values, parents, order)
    totals = values.copy()
    _gather(totals, parents, order)
    return totals


@kernel
def _separate(values: Values, totals: Values, parents: IntArray) -> None:
    for node in range(parents.size):
        if parents[node] >= 0:
            values[parents[node]] -= totals[node]


def subtract_children(totals: Values, parents: IntArray) -> Values:
    """Return each node's total less those of its children: undoes `subtree_totals`.

    Parameters
    ----------
    totals : ndarray, shape (nodes,)
        A total for each node.
    parents : ndarray of int64, shape (nodes,)
        The node above each node; -1 at a root.

    Returns
    -------
    ndarray, shape (nodes,)
        The values.

    Raises
    ------
    InputError
        If the arrays differ in length, or sums of whole values do not fit 64 bits.

    Examples
    --------
    >>> subtract_children(np.array([1, 10, 7, 4]), np.array([1, -1, 1, 2]))
    array([1, 2, 3, 4])
    """
    totals = _summable(totals)
    (parents,) = _whole(parents)
    _check(totals, parents, parents)
    values = totals.copy()
    _separate(values, totals, parents)
    return values


@kernel
def _accumulate(sums: Values, parents: IntArray, order: IntArray) -> None:
    for place in range(order.size):
        node = order[place]
        if parents[node] >= 0:
            sums[node] += sums[parents[node]]


def sums_to_root(values: Values, parents: IntArray, order: IntArray) -> Values:
    """Return the sum of the values from each node up to its root, both included.

    O(nodes).

    Parameters
    ----------
    values : ndarray, shape (nodes,)
        A value for each node.
    parents : ndarray of int64, shape (nodes,)
        The node above each node; -1 at a root.
    order : ndarray of int64, shape (nodes,)
        The nodes from the top down.

    Returns
    -------
    ndarray, shape (nodes,)
        The sums.

    Raises
    ------
    InputError
        If the arrays differ in length.
    """
    _check(values, parents, order)
    sums = values.copy()
    _accumulate(sums, parents, order)
    return sums


@kernel
def _meet(
    parents: IntArray, order: IntArray, first: IntArray, second: IntArray
) -> IntArray:
    nodes = parents.size
    depth, jump = jump_pointers(parents, order)
    up = np.empty(nodes + 1, dtype=np.int64)
    for node in range(nodes):
        up[node] = parents[node] if parents[node] >= 0 else nodes
    up[nodes] = nodes
    tops = np.empty(first.size, dtype=np.int64)
    for pair in range(first.size):
        low, high = first[pair], second[pair]
        if low < 0 or high < 0:
            tops[pair] = NO_PARENT
            continue
        if depth[low] < depth[high]:
            low, high = high, low
        while depth[low] > depth[high]:
            low = jump[low] if depth[jump[low]] >= depth[high] else up[low]
        while low != high:
            # Nodes of one depth have jumps of one length.
            if jump[low] != jump[high]:
                low, high = jump[low], jump[high]
            else:
                low, high = up[low], up[high]
        tops[pair] = low if low < nodes else NO_PARENT
    return tops


def lowest_common(
    parents: IntArray, order: IntArray, first: IntArray, second: IntArray
) -> IntArray:
    """Return the lowest node above (or equal to) both nodes of each pair.

    It takes O(log depth) for each pair.

    Parameters
    ----------
    parents : ndarray of int64, shape (nodes,)
        The node above each node; -1 at a root.
    order : ndarray of int64, shape (nodes,)
        The nodes from the top down.
    first : ndarray of int64, shape (pairs,)
        One node of each pair; -1 stands for what lies above all roots.
    second : ndarray of int64, shape (pairs,)
        The other one.

    Returns
    -------
    ndarray of int64, shape (pairs,)
        The nodes; -1 where the two are in different trees, or one of them is -1.

    Raises
    ------
    InputError
        If the order is not from the top down, or a pair names no node.

    Examples
    --------
    >>> parents = np.array([1, -1, 1, 2])
    >>> order = top_down_order(parents)
    >>> lowest_common(parents, order, np.array([0, 3]), np.array([3, 2]))
    array([1, 2])
    """
    parents, order, first, second = _whole(parents, order, first, second)
    _check(parents, parents, order)
    check_nodes(first, second, parents.size, least=NO_PARENT)
    _check_top_down(parents, order)
    return _meet(parents, order, first, second)


def path_sums(
    sums: IntArray, first: IntArray, second: IntArray, tops: IntArray
) -> IntArray:
    """Return the sum over the rows that change when a record moves, for each pair.

    These are the nodes on the two ways up to the lowest common node, without that node.

    Parameters
    ----------
    sums : ndarray of int64, shape (nodes,)
        What `sums_to_root` returned.
    first : ndarray of int64, shape (pairs,)
        One node of each pair; -1 stands for what lies above all roots.
    second : ndarray of int64, shape (pairs,)
        The other one.
    tops : ndarray of int64, shape (pairs,)
        What `lowest_common` returned.

    Returns
    -------
    ndarray of int64, shape (pairs,)
        The sums.
    """
    # The entry after the last stands for -1.
    above = np.append(sums, 0)
    total: IntArray = above[first] + above[second] - 2 * above[tops]
    return total


def path_crossings(
    parents: IntArray,
    order: IntArray,
    first: IntArray,
    second: IntArray,
    tops: IntArray,
) -> IntArray:
    """Return how many of the paths between pairs change the row of each node.

    Parameters
    ----------
    parents : ndarray of int64, shape (nodes,)
        The node above each node; -1 at a root.
    order : ndarray of int64, shape (nodes,)
        The nodes from the top down.
    first : ndarray of int64, shape (pairs,)
        One node of each pair; -1 stands for what lies above all roots.
    second : ndarray of int64, shape (pairs,)
        The other one.
    tops : ndarray of int64, shape (pairs,)
        What `lowest_common` returned.

    Returns
    -------
    ndarray of int64, shape (nodes,)
        The number of paths through each row.
    """
    nodes = parents.size
    ends = np.zeros(nodes + 1, dtype=np.int64)
    for side in (first, second):
        ends += np.bincount(np.where(side < 0, nodes, side), minlength=nodes + 1)
    ends -= 2 * np.bincount(np.where(tops < 0, nodes, tops), minlength=nodes + 1)
    return subtree_totals(ends[:-1].copy(), parents, order)


def _summable(values: Any) -> Any:
    """Read values to add up: whole numbers as int64, any others as doubles."""
    array = np.asarray(values)
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    whole = whole_numbers(array)
    refuse_wide_sums(whole, "values")
    return whole


def _whole(*arrays: AnyArray) -> list[IntArray]:
    """Read arrays or lists of node numbers."""
    return [np.ascontiguousarray(whole_numbers(array)) for array in arrays]


def _check(values: IntArray | FloatArray, parents: IntArray, order: IntArray) -> None:
    if not values.shape == parents.shape == order.shape or values.ndim != 1:
        raise InputError(
            "values, parents and order must have one entry per node; received shapes "
            f"{values.shape}, {parents.shape} and {order.shape}"
        )
    for nodes in (parents, order):
        if nodes.size and (nodes.min() < NO_PARENT or nodes.max() >= nodes.size):
            raise InputError(
                f"a tree of {nodes.size} nodes names nodes from 0 to {nodes.size - 1}, "
                f"and -1 above its roots; received {nodes.min()} to {nodes.max()}"
            )


def _check_top_down(parents: IntArray, order: IntArray) -> None:
    """Refuse an order in which some node comes before its parent, or not once."""
    # The entry after the last stands for -1, above all roots.
    place = np.full(parents.size + 1, parents.size)
    place[order] = np.arange(parents.size)
    once = bool((place[:-1] < parents.size).all())
    place[-1] = -1
    if not once or (place[parents] >= place[:-1]).any():
        raise InputError(
            "order must list every node once, after its parent; received one that "
            "does not. Use the order that the tree was built with"
        )
