"""Trees given by the parent of each node, in any order.

Serves irregular trees: grids refined where the data is dense, kd-trees, quadtrees. Rows
list the leaves first, then each parent after its children; two counting sorts give the
numbers of ``shape``, level by level with siblings side by side.

    rows      0 1 2 3 4          numbers by level         4
    parents   3 3 4 4 -1                                3   2
                                                       0 1
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.graph.graph_tree import top_down_order

from .shape import Tree


@kernel
def _leaf_runs(
    parents: IntArray, starts: IntArray, ends: IntArray, children: IntArray
) -> int:
    """Write the leaves below each row; return the number of leaves, or -1.

    -1 says that the rows break a rule: a parent before its child, more than one root,
    a leaf after an inner node, or a node whose leaves are not one run.
    """
    nodes = parents.size
    for node in range(nodes - 1):
        if parents[node] <= node or parents[node] >= nodes:
            return -1
        children[parents[node]] += 1
    if parents[nodes - 1] != -1:
        return -1
    leaves = 0
    while leaves < nodes and children[leaves] == 0:
        leaves += 1
    covered = np.zeros(nodes, dtype=np.int64)
    for node in range(nodes):
        starts[node] = node if node < leaves else nodes
        ends[node] = node + 1 if node < leaves else -1
        covered[node] = 1 if node < leaves else 0
    for node in range(nodes):
        if node >= leaves and children[node] == 0:
            return -1
        if ends[node] - starts[node] != covered[node]:
            return -1
        above = parents[node]
        if above >= 0:
            starts[above] = min(starts[above], starts[node])
            ends[above] = max(ends[above], ends[node])
            covered[above] += covered[node]
    return leaves


@kernel
def _node_numbers(parents: IntArray, starts: IntArray) -> IntArray:
    """Sort rows by their first leaf, then by level: two counting sorts."""
    nodes = parents.size
    depth = np.zeros(nodes, dtype=np.int64)
    deepest = 0
    for row in range(nodes - 2, -1, -1):
        depth[row] = depth[parents[row]] + 1
        deepest = max(deepest, depth[row])
    slots = np.zeros(nodes + 1, dtype=np.int64)
    for row in range(nodes):
        slots[starts[row] + 1] += 1
    for place in range(nodes):
        slots[place + 1] += slots[place]
    by_start = np.empty(nodes, dtype=np.int64)
    for row in range(nodes):
        by_start[slots[starts[row]]] = row
        slots[starts[row]] += 1
    free = np.zeros(deepest + 2, dtype=np.int64)
    for row in range(nodes):
        free[deepest - depth[row] + 1] += 1
    for level in range(deepest + 1):
        free[level + 1] += free[level]
    numbers = np.empty(nodes, dtype=np.int64)
    for place in range(nodes):
        level = deepest - depth[by_start[place]]
        numbers[by_start[place]] = free[level]
        free[level] += 1
    return numbers


def tree_of_parents(parents: IntArray) -> Tree:
    """Return the shape of the tree in which row v hangs below row ``parents[v]``.

    Leaves first, in the order in which the tree visits them; each parent after its
    children; the root last, with parent -1. `leaf_first_numbers` gives any tree this
    form. O(nodes).

    Examples
    --------
    >>> tree = tree_of_parents(np.array([3, 3, 4, 4, -1]))
    >>> tree.leaves, tree.by_row(tree.starts), tree.by_row(tree.ends)
    (3, array([0, 1, 2, 0, 0]), array([1, 2, 3, 2, 3]))
    """
    parents = np.ascontiguousarray(parents, dtype=np.int64)
    if parents.ndim != 1 or parents.size == 0:
        raise InputError(
            f"parents holds one node per node, at least one; got {parents.shape}"
        )
    starts = np.empty(parents.size, dtype=np.int64)
    ends = np.empty(parents.size, dtype=np.int64)
    children = np.zeros(parents.size, dtype=np.int64)
    leaves = _leaf_runs(parents, starts, ends, children)
    if leaves < 0:
        raise InputError(
            "a tree lists its leaves first, from left to right, then each parent after "
            "its children, and the root last with parent -1; these parents do not. "
            "leaf_first_numbers renumbers the nodes of any tree"
        )
    numbers = _node_numbers(parents, starts)
    below = np.empty(parents.size, dtype=np.int64)
    below[numbers] = children
    first = np.zeros(parents.size + 1, dtype=np.int64)
    np.cumsum(below, out=first[1:])
    return Tree(first, leaves, leaf_nodes=numbers[:leaves].copy(), node_of_row=numbers)


@kernel
def _leaf_first(parents: IntArray, order: IntArray) -> IntArray:
    """Return numbers: leaves as a walk meets them, inner nodes from the bottom up."""
    nodes = parents.size
    below = np.zeros(nodes, dtype=np.int64)
    for place in range(nodes - 1, -1, -1):
        node = order[place]
        if below[node] == 0:
            below[node] = 1
        if parents[node] >= 0:
            below[parents[node]] += below[node]
    # A node knows how many leaves lie left of it; its children take turns.
    first = np.zeros(nodes, dtype=np.int64)
    taken = np.zeros(nodes, dtype=np.int64)
    inner = np.zeros(nodes, dtype=np.bool_)
    for place in range(nodes):
        node = order[place]
        above = parents[node]
        if above >= 0:
            inner[above] = True
            first[node] = first[above] + taken[above]
            taken[above] += below[node]
    numbers = np.empty(nodes, dtype=np.int64)
    last = nodes - 1
    for place in range(nodes):
        node = order[place]
        if inner[node]:
            numbers[node] = last
            last -= 1
        else:
            numbers[node] = first[node]
    return numbers


def leaf_first_numbers(parents: IntArray) -> IntArray:
    """Return a new number for each node of any tree: the order of `tree_of_parents`.

    `parents` holds the node above each node, -1 at the only root, in any order;
    children of one node are visited by increasing number. O(nodes).

    Examples
    --------
    >>> parents = np.array([-1, 0, 0, 1, 1])
    >>> numbers = leaf_first_numbers(parents)
    >>> numbers
    array([4, 3, 2, 0, 1])
    >>> renumber_nodes(parents, numbers)
    array([ 3,  3,  4,  4, -1])
    """
    parents = np.ascontiguousarray(parents, dtype=np.int64)
    order = top_down_order(parents)
    if np.count_nonzero(parents < 0) != 1:
        raise InputError(
            f"a tree has one root, with parent -1; these parents have "
            f"{np.count_nonzero(parents < 0)}"
        )
    return _leaf_first(parents, order)


def renumber_nodes(parents: IntArray, numbers: IntArray) -> IntArray:
    """Return the parents of a tree whose nodes got new numbers."""
    again = np.empty(parents.size, dtype=np.int64)
    again[numbers] = np.where(parents < 0, -1, numbers[parents])
    return again
