"""Trees of any form over a line of leaves, given by the parent of each node.

Serves every mechanism whose tree is not regular: grids refined where the data is dense,
kd-trees, quadtrees of any shape. Leaves come first and stand in the order in which the
tree visits them, every parent comes after its children, and the root is last:

              7                    node      0  1  2  3  4  5  6  7
         5         6               parent    5  5  6  6  6  7  7 -1
       0   1     2  3  4           covers    leaves 0..2 (node 5), 2..5 (6), 0..5 (7)

so that one pass over the numbers goes up, the reverse goes down, and a node covers a
run of leaves. Children of a node stand together in `children`, from left to right.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.graph.graph_tree import top_down_order


class ParentTree(NamedTuple):
    """The shape of a tree; see the module docstring.

    Attributes
    ----------
    parents : (nodes,) int64
        The node above each node, -1 at the root, which is the last.
    starts, ends : (nodes,) int64
        The leaves that each node covers, ``[start, end)``.
    pointers : (nodes + 1,) int64
        Node v owns the entries ``pointers[v] .. pointers[v + 1]`` of `children`.
    children : (nodes - 1,) int64
        Children of all nodes, those of one node together, from left to right.
    """

    parents: IntArray
    starts: IntArray
    ends: IntArray
    pointers: IntArray
    children: IntArray

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.parents.size

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return int(self.ends[-1])


@kernel
def _leaf_runs(parents: IntArray, starts: IntArray, ends: IntArray) -> int:
    """Write the leaves below each node; return the number of leaves, or -1.

    -1 says that the numbers break a rule: a parent before its child, more than one
    root, a leaf after an inner node, or a node whose leaves are not one run.
    """
    nodes = parents.size
    children = np.zeros(nodes, dtype=np.int64)
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
def _children_in_order(
    parents: IntArray, starts: IntArray, pointers: IntArray
) -> IntArray:
    """Sort nodes by their first leaf, then by parent: two counting sorts."""
    nodes = parents.size
    slots = np.zeros(nodes + 1, dtype=np.int64)
    for node in range(nodes):
        slots[starts[node] + 1] += 1
    for place in range(nodes):
        slots[place + 1] += slots[place]
    by_start = np.empty(nodes, dtype=np.int64)
    for node in range(nodes):
        by_start[slots[starts[node]]] = node
        slots[starts[node]] += 1
    pointers[:] = 0
    for node in range(nodes - 1):
        pointers[parents[node] + 1] += 1
    for node in range(nodes):
        pointers[node + 1] += pointers[node]
    free = pointers[:-1].copy()
    children = np.empty(nodes - 1, dtype=np.int64)
    for place in range(nodes):
        node = by_start[place]
        above = parents[node]
        if above >= 0:
            children[free[above]] = node
            free[above] += 1
    return children


def tree_of_parents(parents: IntArray) -> ParentTree:
    """Return the shape of the tree in which node v hangs below ``parents[v]``.

    Leaves first, in the order in which the tree visits them; each parent after its
    children; the root last, with parent -1. `leaf_first_numbers` gives any tree this
    form. O(nodes).

    Examples
    --------
    >>> tree = tree_of_parents(np.array([3, 3, 4, 4, -1]))
    >>> tree.leaves, tree.starts.tolist(), tree.ends.tolist()
    (3, [0, 1, 2, 0, 0], [1, 2, 3, 2, 3])
    """
    parents = np.ascontiguousarray(parents, dtype=np.int64)
    if parents.ndim != 1 or parents.size == 0:
        raise InputError(
            f"parents holds one node per node, at least one; got {parents.shape}"
        )
    starts = np.empty(parents.size, dtype=np.int64)
    ends = np.empty(parents.size, dtype=np.int64)
    if _leaf_runs(parents, starts, ends) < 0:
        raise InputError(
            "a tree lists its leaves first, from left to right, then each parent after "
            "its children, and the root last with parent -1; these parents do not. "
            "leaf_first_numbers renumbers the nodes of any tree"
        )
    pointers = np.empty(parents.size + 1, dtype=np.int64)
    children = _children_in_order(parents, starts, pointers)
    return ParentTree(parents, starts, ends, pointers, children)


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

    Parameters
    ----------
    parents : (nodes,) int64
        The node above each node, -1 at the only root; in any order. Children of one
        node are visited by increasing number.

    Returns
    -------
    (nodes,) int64
        New numbers; ``renumbered(parents, numbers)`` is the tree in them. O(nodes).

    Examples
    --------
    >>> parents = np.array([-1, 0, 0, 1, 1])
    >>> numbers = leaf_first_numbers(parents)
    >>> numbers
    array([4, 3, 2, 0, 1])
    >>> renumbered(parents, numbers)
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


def renumbered(parents: IntArray, numbers: IntArray) -> IntArray:
    """Return the parents of a tree whose nodes got new numbers."""
    again = np.empty(parents.size, dtype=np.int64)
    again[numbers] = np.where(parents < 0, -1, numbers[parents])
    return again


@kernel
def _add_to_parents(totals: IntArray, parents: IntArray) -> None:
    for node in range(totals.size - 1):
        totals[parents[node]] += totals[node]


def parent_totals(leaf_counts: IntArray, tree: ParentTree) -> IntArray:
    """Return the exact total of every node, in O(nodes).

    Examples
    --------
    >>> parent_totals(np.array([1, 2, 3]), tree_of_parents(np.array([3, 3, 4, 4, -1])))
    array([1, 2, 3, 3, 6])
    """
    if leaf_counts.shape != (tree.leaves,):
        raise InputError(
            f"this tree has {tree.leaves} leaves; got counts of shape "
            f"{leaf_counts.shape}"
        )
    totals = np.zeros(tree.nodes, dtype=np.int64)
    totals[: tree.leaves] = leaf_counts
    _add_to_parents(totals, tree.parents)
    return totals


@kernel
def _worst_ways(rates: IntArray, parents: IntArray) -> tuple[int, int]:
    """Return the heaviest path and the heaviest pair of paths."""
    nodes = parents.size
    heaviest = np.zeros(nodes, dtype=np.int64)
    pair = 0
    seen = np.zeros(nodes, dtype=np.bool_)
    for node in range(nodes):
        heaviest[node] += rates[node]
        above = parents[node]
        if above >= 0:
            if seen[above]:
                pair = max(pair, heaviest[above] + heaviest[node])
            heaviest[above] = max(heaviest[above], heaviest[node])
            seen[above] = True
    return heaviest[nodes - 1], pair


def heaviest_ways(rates: IntArray, tree: ParentTree) -> tuple[int, int]:
    """Return the largest sum of rates on a path, and over what a move can change.

    Parameters
    ----------
    rates : (nodes,) int64
        Rate of each node, not negative; their sums along two paths fit int64.
    tree : ParentTree

    Returns
    -------
    path, pair : int
        What the worst record pays when it comes or goes, from its leaf to the root,
        and when it changes from any leaf to any other: the nodes that hold exactly one
        of the two. O(nodes).

    Examples
    --------
    >>> tree = tree_of_parents(np.array([3, 3, 4, 4, -1]))
    >>> heaviest_ways(np.array([1, 4, 3, 2, 5]), tree)
    (11, 9)
    """
    rates = np.ascontiguousarray(rates, dtype=np.int64)
    if rates.shape != (tree.nodes,):
        raise InputError(
            f"rates holds one integer per node, here {tree.nodes}; got an array of "
            f"shape {rates.shape}"
        )
    path, pair = _worst_ways(rates, tree.parents)
    return int(path), int(pair)
