"""The shape of a tree over a line of leaves: one array, siblings side by side.

Nodes are numbered level by level, the deepest level first, from left to right within a
level, the root last:

    leaves = 5, fan_out = 2                  irregular       6
              10                                           4     5
          8        9      9 has one child, 7,            0 1    2 3
        5   6      7      7 has one child, 4
       0 1 2 3     4

So the children of node v are ``first_child[v] .. first_child[v + 1]`` (none for a
leaf), one pass over the numbers goes up, the reverse goes down, and of two different
nodes the one with the smaller number is never above the other. Values travel in *rows*:
one number per node in the order of whoever made the tree.

Threads share a tree by slabs (`cut_tree`): a run of neighbours of one level and all
that hangs below them. The children of a run are a run of the level below, so a slab is
one run on every level:

    nodes 24 .. 27                24 25   |   26 27        the cut, in two slabs
    nodes 16 .. 23      16 17 18 19       |   20 21 22 23
    nodes 0 .. 15     0 1 2 3 4 5 6 7     |   8 9 10 11 12 13 14 15
"""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from typing import TypeAlias, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import refuse_wide_sums, whole_numbers
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.graph.graph_tree import top_down_order

Values = TypeVar("Values", BoolArray, IntArray, FloatArray)
Slab: TypeAlias = tuple[int, int]
"""The first node of a run, and the one after the last."""

FEWEST_NODES = 1 << 19
"""A smaller tree is fitted sooner than threads are started for it."""
SLABS_PER_THREAD = 4
NODES_PER_SLAB = 4
"""A cut has at least so many nodes for a slab: runs of them are of like length."""
MOST_ABOVE = 64
"""So many levels above a cut at most: deeper trees are chains, for one thread."""


class Tree:
    """The shape of a tree, made by `regular_tree` and `tree_of_parents`.

    Parameters
    ----------
    first_child : ndarray of int64, shape (nodes + 1,)
        Where the children of each node begin; see the head of this file.
    leaves : int
        Number of leaves.
    fan_out : int, optional
        The most children of a node of a regular tree; None for any other.
    leaf_nodes : ndarray of int64, shape (leaves,), optional
        The node of each leaf from left to right; the first nodes by default.
    node_of_row : ndarray of int64, shape (nodes,), optional
        The node of each row; rows are in the order of nodes by default.

    Examples
    --------
    >>> tree = regular_tree(3, 2)
    >>> tree.first_child, tree.parents
    (array([0, 0, 0, 0, 2, 3, 5]), array([ 3,  3,  4,  5,  5, -1]))
    >>> tree.starts, tree.ends
    (array([0, 1, 2, 0, 2, 0]), array([1, 2, 3, 2, 3, 3]))
    """

    def __init__(
        self,
        first_child: IntArray,
        leaves: int,
        *,
        fan_out: int | None = None,
        leaf_nodes: IntArray | None = None,
        node_of_row: IntArray | None = None,
    ) -> None:
        self.first_child = first_child
        self.leaves = leaves
        self.fan_out = fan_out
        self._leaf_nodes = leaf_nodes
        self._node_of_row = node_of_row

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return np.array_equal(self.row_parents, other.row_parents)

    def __hash__(self) -> int:
        return hash((self.leaves, self.nodes))

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.first_child.size - 1

    @cached_property
    def parents(self) -> IntArray:
        """The node above each node; -1 at the root."""
        parents = np.empty(self.nodes, dtype=np.int64)
        parents[:-1] = np.repeat(np.arange(self.nodes), np.diff(self.first_child))
        parents[-1] = -1
        return parents

    @property
    def row_parents(self) -> IntArray:
        """The row above each row, as `tree_of_parents` takes them."""
        if self._node_of_row is None:
            return self.parents
        row_of_node = np.empty(self.nodes + 1, dtype=np.int64)
        row_of_node[self._node_of_row] = np.arange(self.nodes)
        row_of_node[-1] = -1
        return row_of_node[self.parents[self._node_of_row]]

    @cached_property
    def leaf_nodes(self) -> IntArray:
        """The node of each leaf, from left to right."""
        if self._leaf_nodes is None:
            return np.arange(self.leaves)
        return self._leaf_nodes

    @cached_property
    def starts(self) -> IntArray:
        """The first leaf below each node."""
        return _run_ends(self.first_child, self.leaf_nodes, False)

    @cached_property
    def ends(self) -> IntArray:
        """The leaf after the last one below each node."""
        return _run_ends(self.first_child, self.leaf_nodes, True) + 1

    @cached_property
    def offsets(self) -> IntArray:
        """Where each level begins, the deepest first; at the end, the nodes."""
        begins = [self.nodes, self.nodes - 1]
        while begins[-1] > 0:
            begins.append(int(self.first_child[begins[-1]]))
        return np.array(begins[::-1], dtype=np.int64)

    def by_node(self, rows: Values) -> Values:
        """Return one value per node in the order of the nodes."""
        if self._node_of_row is None:
            return rows
        values = np.empty_like(rows)
        values[self._node_of_row] = rows
        return values

    def by_row(self, values: Values) -> Values:
        """Return one value per node in the order of the rows."""
        return values if self._node_of_row is None else values[self._node_of_row]

    def numbers(self, values: AnyArray, name: str) -> FloatArray:
        """Return one float64 per node, in the order of nodes, of what comes in rows.

        Parameters
        ----------
        values : array-like, shape (nodes,)
            One number per row.
        name : str
            What the caller calls the values, for the message.

        Returns
        -------
        ndarray of float64, shape (nodes,)
            The numbers.

        Raises
        ------
        InputError
            If there is not one number per node.
        """
        array = np.ascontiguousarray(values, dtype=np.float64)
        self._check(array, name)
        return self.by_node(array)

    def integers(self, values: AnyArray, name: str) -> IntArray:
        """Return one int64 per node, in the order of the nodes, of what comes in rows.

        Parameters
        ----------
        values : array-like, shape (nodes,)
            One whole number per row.
        name : str
            What the caller calls the values, for the message.

        Returns
        -------
        ndarray of int64, shape (nodes,)
            The numbers.

        Raises
        ------
        InputError
            If there is not one number per node.
        """
        array = np.ascontiguousarray(whole_numbers(values))
        self._check(array, name)
        return self.by_node(array)

    def _check(self, values: AnyArray, name: str) -> None:
        if values.shape != (self.nodes,):
            raise InputError(
                f"{name} holds one number per node of the tree, here {self.nodes}; got "
                f"an array of shape {values.shape}"
            )


@kernel
def _run_ends(first_child: IntArray, leaf_nodes: IntArray, last: bool) -> IntArray:
    """Return the first or the last leaf below each node."""
    outermost_leaf = np.empty(first_child.size - 1, dtype=np.int64)
    for leaf in range(leaf_nodes.size):
        outermost_leaf[leaf_nodes[leaf]] = leaf
    for node in range(outermost_leaf.size):
        begin, end = first_child[node], first_child[node + 1]
        if begin < end:
            outermost_leaf[node] = outermost_leaf[end - 1 if last else begin]
    return outermost_leaf


def tree_levels(leaves: int, fan_out: int) -> tuple[IntArray, IntArray]:
    """Return how many nodes each level of a regular tree has, and where each begins.

    Level 0 holds the leaves, the last level the root alone. Node `i` of level `l` has
    the number ``offsets[l] + i``.

    Parameters
    ----------
    leaves : int
        Number of leaves, at least 1.
    fan_out : int
        The most children of a node, at least 2.

    Returns
    -------
    sizes : ndarray of int64, shape (levels,)
        The number of nodes of each level.
    offsets : ndarray of int64, shape (levels + 1,)
        Where each level begins; at the end, the number of nodes.

    Raises
    ------
    InputError
        If there is no leaf, or the fan-out is below 2.

    Examples
    --------
    >>> tree_levels(5, 2)
    (array([5, 3, 2, 1]), array([ 0,  5,  8, 10, 11]))
    """
    sizes = [int(leaves)]
    fan = int(fan_out)
    if not 1 <= sizes[0] < 2**62 or not 2 <= fan < 2**62:
        raise InputError(
            "a tree needs at least one leaf and a fan-out of at least two, both "
            f"below 2^62; got leaves={leaves} and fan_out={fan_out}"
        )
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // fan))
    offsets = np.array([0, *accumulate(sizes)], dtype=np.int64)
    return np.array(sizes, dtype=np.int64), offsets


@kernel
def regular_first_child(offsets: IntArray, fan_out: int) -> IntArray:
    """Return `Tree.first_child` of a regular tree from the offsets of its levels.

    Parameters
    ----------
    offsets : ndarray of int64, shape (levels + 1,)
        Where each level begins, from `tree_levels`.
    fan_out : int
        The most children of a node.

    Returns
    -------
    ndarray of int64, shape (nodes + 1,)
        Where the children of each node begin.
    """
    nodes = offsets[offsets.size - 1]
    # Zeros in a loop: `np.zeros` takes the compiler longer than the rest of this.
    first = np.empty(nodes + 1, dtype=np.int64)
    for leaf in range(offsets[1]):
        first[leaf] = 0
    for level in range(1, offsets.size - 1):
        begin = offsets[level]
        for index in range(offsets[level + 1] - begin):
            first[begin + index] = offsets[level - 1] + index * fan_out
    first[nodes] = nodes - 1
    return first


# Trees in use: several strategies over one share what is worked out of its shape.
_REGULAR: WeakValueDictionary[tuple[int, int], Tree] = WeakValueDictionary()


def regular_tree(leaves: int, fan_out: int) -> Tree:
    """Return the tree in which every node but those at the rim has `fan_out` children.

    A node at the right rim may have a single child, its own copy. Trees in use are
    shared: asking again for the same one costs O(levels), the first time O(nodes).

    Parameters
    ----------
    leaves : int
        Number of leaves, at least 1.
    fan_out : int
        The most children of a node, at least 2.

    Returns
    -------
    Tree
        The tree.

    Raises
    ------
    InputError
        If there is no leaf, or the fan-out is below 2.

    Examples
    --------
    >>> regular_tree(5, 2).nodes
    11
    """
    _, offsets = tree_levels(leaves, fan_out)
    key = int(leaves), int(fan_out)
    tree = _REGULAR.get(key)
    if tree is None:
        first = regular_first_child(offsets, key[1])
        tree = _REGULAR[key] = Tree(first, key[0], fan_out=key[1])
    return tree


@kernel
def _add_upward(totals: IntArray, first_child: IntArray) -> None:
    for node in range(totals.size):
        begin, end = first_child[node], first_child[node + 1]
        if begin < end:
            total = 0
            for child in range(begin, end):
                total += totals[child]
            totals[node] = total


def tree_totals(leaf_counts: IntArray, tree: Tree) -> IntArray:
    """Return the exact total of every node, from the count of each leaf, in O(nodes).

    Parameters
    ----------
    leaf_counts : ndarray of int64, shape (leaves,)
        The count of each leaf.
    tree : Tree
        The shape.

    Returns
    -------
    ndarray of int64, shape (nodes,)
        The totals, by row.

    Raises
    ------
    InputError
        If there is not one count per leaf, or some are fractions.

    Examples
    --------
    >>> tree_totals(np.array([1, 2, 3]), regular_tree(3, 2))
    array([1, 2, 3, 3, 3, 6])
    """
    leaf_counts = whole_numbers(leaf_counts)
    if leaf_counts.shape != (tree.leaves,):
        raise InputError(
            f"this tree has {tree.leaves} leaves; got counts of shape "
            f"{leaf_counts.shape}"
        )
    refuse_wide_sums(leaf_counts, "counts")
    totals = np.empty(tree.nodes, dtype=np.int64)
    totals[tree.leaf_nodes] = leaf_counts
    _add_upward(totals, tree.first_child)
    return tree.by_row(totals)


def shift_of(fan_out: int) -> int:
    """Return the shift that divides by `fan_out`; 0 if it is no power of two."""
    return fan_out.bit_length() - 1 if fan_out & (fan_out - 1) == 0 else 0


@kernel
def weights_from_shares(
    shares: FloatArray, sizes: IntArray, offsets: IntArray, fan_out: int
) -> FloatArray:
    """Return the weights of nodes that take these shares of what is left above them.

    Leaves take all that is left, so every path from the root to a leaf adds up to 1.
    With two leaves and a share of 0.25 at the root the weights are 0.75, 0.75 and 0.25.

    Parameters
    ----------
    shares : ndarray of float64, shape (nodes,)
        The part of what is left that each node takes, from 0 to 1.
    sizes : ndarray of int64, shape (levels,)
        The number of nodes of each level, from `tree_levels`.
    offsets : ndarray of int64, shape (levels + 1,)
        Where each level begins.
    fan_out : int
        The most children of a node.

    Returns
    -------
    ndarray of float64, shape (nodes,)
        The weights.
    """
    weights = np.ones(shares.size)
    for level in range(sizes.size - 1, 0, -1):
        below = offsets[level - 1]
        for index in range(sizes[level]):
            node = offsets[level] + index
            remaining = weights[node]
            weights[node] = shares[node] * remaining
            left = (1.0 - shares[node]) * remaining
            last = min((index + 1) * fan_out, sizes[level - 1])
            for child in range(below + index * fan_out, below + last):
                weights[child] = left
    return weights


@kernel
def shares_from_weights(
    weights: FloatArray, sizes: IntArray, offsets: IntArray, fan_out: int
) -> FloatArray:
    """Return the shares behind node weights: the inverse of `weights_from_shares`.

    Parameters
    ----------
    weights : ndarray of float64, shape (nodes,)
        Weights that add up to the same constant along every path.
    sizes : ndarray of int64, shape (levels,)
        The number of nodes of each level, from `tree_levels`.
    offsets : ndarray of int64, shape (levels + 1,)
        Where each level begins.
    fan_out : int
        The most children of a node.

    Returns
    -------
    ndarray of float64, shape (nodes,)
        The shares; leaves have 1.
    """
    remaining = weights.copy()
    shares = np.ones(weights.size)
    for level in range(1, sizes.size):
        for index in range(sizes[level]):
            node = offsets[level] + index
            remaining[node] += remaining[offsets[level - 1] + index * fan_out]
            if remaining[node] > 0.0:
                shares[node] = weights[node] / remaining[node]
    return shares


@kernel
def _leaf_runs(
    parents: IntArray,
    starts: IntArray,
    ends: IntArray,
    children: IntArray,
    covered: IntArray,
) -> int:
    """Write the leaves below each row; return their number, or -1 for no valid tree.

    `children` and `covered` are zeros, for the caller and for the work. All arrays come
    from the caller: a kernel that makes its own takes longer to compile.

    -1 means that a parent comes before its child, that there is more than one root,
    that a leaf comes after an inner node, or that the leaves of a node are not one run.
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
def _node_numbers(
    parents: IntArray,
    starts: IntArray,
    depth: IntArray,
    slots: IntArray,
    by_start: IntArray,
    numbers: IntArray,
) -> None:
    """Sort rows by their first leaf, then by level: two counting sorts.

    Room for each row, `depth` and `by_start`, and zeros for one more, `slots`, come
    from the caller; `numbers` receives the order.
    """
    nodes = parents.size
    depth[nodes - 1] = 0
    deepest = 0
    for row in range(nodes - 2, -1, -1):
        depth[row] = depth[parents[row]] + 1
        deepest = max(deepest, depth[row])
    for row in range(nodes):
        slots[starts[row] + 1] += 1
    for place in range(nodes):
        slots[place + 1] += slots[place]
    for row in range(nodes):
        by_start[slots[starts[row]]] = row
        slots[starts[row]] += 1
    # A tree has fewer levels than nodes, so the same room serves once more.
    for level in range(deepest + 2):
        slots[level] = 0
    for row in range(nodes):
        slots[deepest - depth[row] + 1] += 1
    for level in range(deepest + 1):
        slots[level + 1] += slots[level]
    for place in range(nodes):
        level = deepest - depth[by_start[place]]
        numbers[by_start[place]] = slots[level]
        slots[level] += 1


def tree_of_parents(parents: IntArray) -> Tree:
    """Return the shape of the tree in which row v hangs below row ``parents[v]``.

    Leaves come first, in the order in which the tree visits them, each parent after its
    children, the root last, with parent -1: see `leaf_first_numbers`. O(nodes).

    >>> tree = tree_of_parents(np.array([3, 3, 4, 4, -1]))
    >>> tree.leaves, tree.by_row(tree.starts), tree.by_row(tree.ends)
    (3, array([0, 1, 2, 0, 0]), array([1, 2, 3, 2, 3]))
    """
    parents = np.ascontiguousarray(whole_numbers(parents))
    if parents.ndim != 1 or parents.size == 0:
        raise InputError(
            f"parents holds one node per node, at least one; got {parents.shape}"
        )
    starts = np.empty(parents.size, dtype=np.int64)
    ends = np.empty(parents.size, dtype=np.int64)
    children = np.zeros(parents.size, dtype=np.int64)
    covered = np.zeros(parents.size, dtype=np.int64)
    leaves = _leaf_runs(parents, starts, ends, children, covered)
    if leaves < 0:
        raise InputError(
            "a tree lists its leaves first, from left to right, then each parent after "
            "its children, and the root last with parent -1; these parents do not. "
            "leaf_first_numbers renumbers the nodes of any tree"
        )
    slots = np.zeros(parents.size + 1, dtype=np.int64)
    numbers = np.empty(parents.size, dtype=np.int64)
    below = np.empty(parents.size, dtype=np.int64)
    # What was counted and where rows end are known: their room is used again.
    _node_numbers(parents, starts, covered, slots, ends, numbers)
    below[numbers] = children
    first = np.zeros(parents.size + 1, dtype=np.int64)
    np.cumsum(below, out=first[1:])
    return Tree(first, leaves, leaf_nodes=numbers[:leaves].copy(), node_of_row=numbers)


@kernel
def _leaf_first(
    parents: IntArray,
    order: IntArray,
    below: IntArray,
    first: IntArray,
    taken: IntArray,
    numbers: IntArray,
) -> None:
    """Write numbers: leaves as a walk meets them, inner nodes from the bottom up.

    Three arrays of zeros, one for each node, come from the caller, who gets `numbers`.
    """
    nodes = parents.size
    for place in range(nodes - 1, -1, -1):
        node = order[place]
        if below[node] == 0:
            below[node] = 1
        if parents[node] >= 0:
            below[parents[node]] += below[node]
    # A node knows how many leaves lie left of it; its children take turns.
    for place in range(nodes):
        node = order[place]
        above = parents[node]
        if above >= 0:
            first[node] = first[above] + taken[above]
            taken[above] += below[node]
    last = nodes - 1
    for place in range(nodes):
        node = order[place]
        # Whoever has a child has at least one leaf below.
        if taken[node] > 0:
            numbers[node] = last
            last -= 1
        else:
            numbers[node] = first[node]


def leaf_first_numbers(parents: IntArray) -> IntArray:
    """Return a new number for each node of any tree: the order of `tree_of_parents`.

    `parents` may come in any order, with -1 at the only root; children of one node are
    visited by increasing number. O(nodes).

    >>> parents = np.array([-1, 0, 0, 1, 1])
    >>> numbers = leaf_first_numbers(parents)
    >>> numbers
    array([4, 3, 2, 0, 1])
    >>> renumber_nodes(parents, numbers)
    array([ 3,  3,  4,  4, -1])
    """
    parents = np.ascontiguousarray(whole_numbers(parents))
    order = top_down_order(parents)
    if np.count_nonzero(parents < 0) != 1:
        raise InputError(
            f"a tree has one root, with parent -1; these parents have "
            f"{np.count_nonzero(parents < 0)}"
        )
    below, first, taken = np.zeros((3, parents.size), dtype=np.int64)
    numbers = np.empty(parents.size, dtype=np.int64)
    _leaf_first(parents, order, below, first, taken, numbers)
    return numbers


def renumber_nodes(parents: IntArray, numbers: IntArray) -> IntArray:
    """Return the parents of a tree whose nodes got new numbers.

    Parameters
    ----------
    parents : ndarray of int64, shape (nodes,)
        The node above each node, -1 at the root.
    numbers : ndarray of int64, shape (nodes,)
        The new number of each node, as `leaf_first_numbers` gives them.

    Returns
    -------
    ndarray of int64, shape (nodes,)
        The parents in the new numbering.
    """
    again = np.empty(parents.size, dtype=np.int64)
    again[numbers] = np.where(parents < 0, -1, numbers[parents])
    return again


def cut_tree(tree: Tree, threads: int) -> tuple[list[Slab], int]:
    """Return the slabs of a tree, and the first node above them.

    Parameters
    ----------
    tree : Tree
        The shape.
    threads : int
        How many threads share the slabs.

    Returns
    -------
    slabs : list of tuples of two ints
        The slabs, from left to right; none where one thread serves as well.
    above : int
        The first node above the cut; the number of nodes without a cut.

    Examples
    --------
    >>> from blowfish_fast.kernels import regular_tree
    >>> slabs, above = cut_tree(regular_tree(2**19, 2), threads=2)
    >>> len(slabs), slabs[0], above == slabs[-1][1]
    (8, (1048512, 1048516), True)
    """
    nodes = tree.nodes
    if threads < 2 or nodes < FEWEST_NODES:
        return [], nodes
    parts = SLABS_PER_THREAD * threads
    first, last = nodes - 1, nodes
    for _ in range(MOST_ABOVE):
        if last - first >= NODES_PER_SLAB * parts:
            bounds = [first + (last - first) * part // parts for part in range(parts)]
            return list(zip(bounds, [*bounds[1:], last], strict=True)), last
        first, last = int(tree.first_child[first]), first
        if first == last:
            break
    return [], nodes


def level_runs(first_child: IntArray, slab: Slab) -> list[Slab]:
    """Return the runs of nodes of which a slab consists, the highest first.

    Parameters
    ----------
    first_child : ndarray of int64, shape (nodes + 1,)
        Where the children of each node begin.
    slab : tuple of two ints
        The highest run.

    Returns
    -------
    list of tuples of two ints
        The first node of each run, and the one after the last.
    """
    runs = []
    begin, end = slab
    while begin < end:
        runs.append((begin, end))
        begin, end = int(first_child[begin]), int(first_child[end])
    return runs
