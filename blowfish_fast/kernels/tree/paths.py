"""Distances between leaves of a tree with integer lengths, and the largest of them.

A record that comes or goes pays the rate of every node from its leaf to the root, one
that changes its leaf the nodes that hold exactly one of the two:

    rates        5                 path to the left leaf  4 + 2 + 5 = 11
              2     3              path to the right leaf     3 + 5 =  8
            1   4                  pair of the two        4 + 2 + 3 =  9

("the left leaf" is the one with rate 4.) That is a distance in the tree whose edge
above each node is as long as its rate. In such a metric a diameter of two sets together
has its ends among the four ends of theirs (Lemma HI5, ``docs/proofs/hierarchy.md``). So
diameters (two ends and a length) merge by four distances, and merging sets that overlap
does no harm: windows of any length are two overlapping windows of a power of two.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import as_input
from blowfish_fast.kernels._jit import kernel

from .shape import Tree

ROUGH_BITS = 31
"""Low bits left out where sums might not fit; fewer than 2^31 nodes then add up."""

# Two ends (nodes; below 0: the empty set) and the distance between them.
Diameter = tuple[int, int, int]


@kernel
def _fill_worst_ways(
    rates: IntArray, first_child: IntArray, heaviest: IntArray, pairs: IntArray
) -> None:
    """Write the heaviest path down from each node, and pair of paths below it."""
    for node in range(rates.size):
        heaviest[node], pairs[node] = rates[node], 0
        begin, end = first_child[node], first_child[node + 1]
        if begin == end:
            continue
        best = heaviest[begin]
        pair = pairs[begin]
        for child in range(begin + 1, end):
            pair = max(pair, pairs[child], best + heaviest[child])
            best = max(best, heaviest[child])
        pairs[node] = pair
        heaviest[node] += best


def _worst_ways(rates: IntArray, tree: Tree) -> tuple[IntArray, IntArray]:
    """Return the heaviest path down from each node, and pair of paths below it."""
    heaviest, pairs = np.empty((2, rates.size), dtype=np.int64)
    _fill_worst_ways(rates, tree.first_child, heaviest, pairs)
    return heaviest, pairs


def _payable(rates: IntArray, tree: Tree) -> IntArray:
    """Read rates; refuse negative ones, and those whose sums would not fit 64 bits.

    A sum that leaves 64 bits turns negative, and a price with it.
    """
    given: IntArray = as_input(rates, np.int64)
    if given.size and given.min() < 0:
        raise InputError(f"rates are not negative; received {given.min()} among them")
    if given.size and int(given.max()) >= 2**62 // given.size:
        # Rarely asked: the same sums of the leading bits, rounded up.
        leading = as_input((given >> ROUGH_BITS) + 1, np.int64)
        heaviest, pairs = _worst_ways(leading, tree)
        if max(int(heaviest[-1]), int(pairs[-1])) >= 2 ** (63 - ROUGH_BITS):
            raise InputError(
                "rates are so large that the sum along a path does not fit 64 bits",
                received=f"{given.max()} among them",
                way_out="Count them in coarser units",
            )
    return given


def heaviest_path(rates: IntArray, tree: Tree) -> int:
    """Return what the worst record pays when it comes or goes, in O(nodes).

    Parameters
    ----------
    rates : ndarray of int64, shape (nodes,)
        Rate of each node, by row, not negative. Sums along two paths fit int64.
    tree : Tree
        The shape.

    Returns
    -------
    int
        The heaviest path from a leaf to the root.

    Examples
    --------
    >>> from blowfish_fast.kernels import regular_tree
    >>> heaviest_path(np.array([1, 4, 3, 2, 0, 5]), regular_tree(3, 2))
    11
    """
    given = _payable(tree.integers(rates, "rates"), tree)
    return int(_worst_ways(given, tree)[0][-1])


def heaviest_pair(rates: IntArray, tree: Tree) -> int:
    """Return what the worst record pays when it may change to any other leaf.

    It takes O(nodes).

    Parameters
    ----------
    rates : ndarray of int64, shape (nodes,)
        Rate of each node, by row, as for `heaviest_path`.
    tree : Tree
        The shape.

    Returns
    -------
    int
        The largest distance of two leaves; 0 if there is one leaf only.

    Examples
    --------
    >>> from blowfish_fast.kernels import regular_tree
    >>> heaviest_pair(np.array([1, 4, 3, 2, 0, 5]), regular_tree(3, 2))
    9
    """
    given = _payable(tree.integers(rates, "rates"), tree)
    return int(_worst_ways(given, tree)[1][-1])


@kernel
def _distance(first: int, second: int, rates: IntArray, parents: IntArray) -> int:
    """Return the rates on the way between two nodes, the meeting point left out."""
    total = 0
    while first != second:
        # The smaller number is never above the larger: it has to climb.
        if first < second:
            total += rates[first]
            first = parents[first]
        else:
            total += rates[second]
            second = parents[second]
    return total


@kernel
def _merged(
    first: Diameter, second: Diameter, rates: IntArray, parents: IntArray
) -> Diameter:
    """Return a diameter of the union of two sets, given diameters of both."""
    if first[0] < 0:
        return second
    if second[0] < 0:
        return first
    best = first if first[2] >= second[2] else second
    for left in range(2):
        for right in range(2):
            end_of_first, end_of_second = first[left], second[right]
            if (left and end_of_first == first[0]) or (
                right and end_of_second == second[0]
            ):
                continue
            length = _distance(end_of_first, end_of_second, rates, parents)
            if length > best[2]:
                best = (end_of_first, end_of_second, length)
    return best


@kernel
def _merge_shifted(
    diameters: IntArray,
    begin: int,
    stride: int,
    shift: int,
    side: int,
    rates: IntArray,
    parents: IntArray,
) -> None:
    """Merge each entry of a line with the one `shift` further on, where there is one.

    Neighbouring windows often have the same diameters: the last result serves again.
    """
    old_first = (-2, -2, -2)
    old_second = (-2, -2, -2)
    result = (-1, -1, 0)
    for place in range(side - shift):
        here = begin + place * stride
        there = here + shift * stride
        first = (diameters[here, 0], diameters[here, 1], diameters[here, 2])
        second = (diameters[there, 0], diameters[there, 1], diameters[there, 2])
        if first != old_first or second != old_second:
            result = _merged(first, second, rates, parents)
            old_first = first
            old_second = second
        diameters[here, 0], diameters[here, 1], diameters[here, 2] = result


@kernel
def _single(nodes: IntArray) -> IntArray:
    """Return the diameters of single nodes."""
    diameters = np.zeros((nodes.size, 3), dtype=np.int64)
    for place in range(nodes.size):
        diameters[place, 0] = nodes[place]
        diameters[place, 1] = nodes[place]
    return diameters


@kernel
def _box_diameters(
    nodes: IntArray,
    shape: IntArray,
    sides: IntArray,
    rates: IntArray,
    parents: IntArray,
) -> int:
    """Return the largest diameter of the boxes of `sides` cells, cut at the rim."""
    diameters = _single(nodes)
    stride = nodes.size
    for axis in range(shape.size):
        side = shape[axis]
        stride //= side
        for line in range(nodes.size // side):
            begin = line // stride * (stride * side) + line % stride
            width = 1
            while 2 * width <= sides[axis]:
                _merge_shifted(diameters, begin, stride, width, side, rates, parents)
                width *= 2
            if sides[axis] > width:
                rest = sides[axis] - width
                _merge_shifted(diameters, begin, stride, rest, side, rates, parents)
    worst = 0
    for place in range(nodes.size):
        worst = max(worst, diameters[place, 2])
    return worst


@kernel
def within_reach(
    nodes: IntArray, far: IntArray, rates: IntArray, parents: IntArray
) -> int:
    """Return the largest diameter of the windows ``i .. far[i]`` of one line.

    It takes O(n log n) merges: windows of a power of two cells are built by doubling.

    Parameters
    ----------
    nodes : ndarray of int64, shape (n,)
        The node of the leaf at each place of the line.
    far : ndarray of int64, shape (n,)
        The last place of the window that begins at each place, which it includes.
    rates : ndarray of int64, shape (nodes,)
        Rate of each node, in the order of the nodes.
    parents : ndarray of int64, shape (nodes,)
        The node above each node; -1 at the root.

    Returns
    -------
    int
        The largest distance of two leaves in one window.
    """
    diameters = _single(nodes)
    longest = 1
    for place in range(far.size):
        longest = max(longest, far[place] - place + 1)
    worst = 0
    width = 1
    while True:
        for place in range(far.size):
            size = far[place] - place + 1
            if width <= size < 2 * width:
                last = far[place] - width + 1
                first = (diameters[place, 0], diameters[place, 1], diameters[place, 2])
                second = (diameters[last, 0], diameters[last, 1], diameters[last, 2])
                worst = max(worst, _merged(first, second, rates, parents)[2])
        if 2 * width > longest:
            return worst
        _merge_shifted(diameters, 0, 1, width, far.size, rates, parents)
        width *= 2


@kernel
def _reach_along(
    far: IntArray,
    rates: IntArray,
    first_child: IntArray,
    leaf_nodes: IntArray,
    starts: IntArray,
    ends: IntArray,
) -> int:
    """Return the largest distance of leaves i <= j <= far[i]; `far` never decreases.

    Two leaves part at one node. The best partner of a leaf that reaches beyond its
    child lies in a window whose ends only move forward. Nodes below which no pair can
    be farther apart than the best pair so far are left out (Lemma HI5). O(leaves) per
    level at most.
    """
    ways = np.empty(rates.size, dtype=np.int64)
    pairs = np.empty(rates.size, dtype=np.int64)
    _fill_worst_ways(rates, first_child, ways, pairs)
    ways[-1] = rates[-1]
    for node in range(rates.size - 1, -1, -1):
        for child in range(first_child[node], first_child[node + 1]):
            ways[child] = ways[node] + rates[child]
    queue = np.empty(far.size, dtype=np.int64)
    worst = 0
    for node in range(rates.size - 1, -1, -1):
        if pairs[node] <= worst:
            continue
        head = tail = pushed = 0
        last = ends[node] - 1
        for child in range(first_child[node], first_child[node + 1] - 1):
            low, edge = starts[child], ends[child]
            beyond = edge
            # The first leaf that reaches beyond its child, by halving.
            while low < beyond:
                middle = (low + beyond) >> 1
                if far[middle] < edge:
                    low = middle + 1
                else:
                    beyond = middle
            pushed = max(pushed, edge)
            for leaf in range(low, edge):
                while head < tail and queue[head] < edge:
                    head += 1
                while pushed <= min(far[leaf], last):
                    way = ways[leaf_nodes[pushed]]
                    while tail > head and ways[leaf_nodes[queue[tail - 1]]] <= way:
                        tail -= 1
                    queue[tail] = pushed
                    tail += 1
                    pushed += 1
                both = ways[leaf_nodes[leaf]] + ways[leaf_nodes[queue[head]]]
                worst = max(worst, both - 2 * ways[node])
    return worst


def reach_along(far: IntArray, rates: IntArray, tree: Tree) -> int:
    """Return the largest distance of leaves i <= j <= far[i] of the tree's line.

    Parameters
    ----------
    far : ndarray of int64, shape (leaves,)
        The last leaf that each leaf may change to; it never decreases.
    rates : ndarray of int64, shape (nodes,)
        Rate of each node, in the order of the nodes.
    tree : Tree
        The shape.

    Returns
    -------
    int
        The largest distance.
    """
    runs = (tree.leaf_nodes, tree.starts, tree.ends)
    read = as_input(far, np.int64), as_input(rates, np.int64)
    return int(_reach_along(*read, tree.first_child, *runs))


@kernel
def _in_groups(
    nodes: IntArray, groups: IntArray, count: int, rates: IntArray, parents: IntArray
) -> int:
    """Return the largest diameter of a group: farthest from any, farthest from that."""
    ways = rates.copy()
    ways[-1] = 0
    for node in range(rates.size - 2, -1, -1):
        ways[node] += ways[parents[node]]
    ends = np.full(count, -1, dtype=np.int64)
    for place in range(nodes.size):
        ends[groups[place]] = nodes[place]
    worst = 0
    for _ in range(2):
        origins = ends.copy()
        lengths = np.zeros(count, dtype=np.int64)
        for place in range(nodes.size):
            group = groups[place]
            # Two nodes are no further apart than their ways to the root are long.
            if ways[origins[group]] + ways[nodes[place]] <= lengths[group]:
                continue
            length = _distance(origins[group], nodes[place], rates, parents)
            if length > lengths[group]:
                lengths[group] = length
                ends[group] = nodes[place]
        worst = max(worst, lengths.max())
    return worst


@kernel
def _of_pairs(
    first: IntArray, second: IntArray, rates: IntArray, parents: IntArray
) -> int:
    """Return the largest distance of listed pairs; a node below 0 is "absent"."""
    worst = 0
    root = parents.size - 1
    for pair in range(first.size):
        first_node, second_node = first[pair], second[pair]
        if first_node < 0 or second_node < 0:
            length = rates[root]
            first_node = max(first_node, second_node)
            if first_node < 0:
                continue
            length += _distance(first_node, root, rates, parents)
        else:
            length = _distance(first_node, second_node, rates, parents)
        worst = max(worst, length)
    return worst


class LeafDistances:
    """The metric on the leaves of a tree whose nodes have integer rates.

    Parameters
    ----------
    rates : ndarray of int64, shape (nodes,)
        Rate of each node, by row, not negative. Sums along two paths fit int64.
    tree : Tree
        The shape.

    Examples
    --------
    >>> from blowfish_fast.kernels import regular_tree
    >>> metric = LeafDistances(np.array([1, 4, 3, 2, 0, 5]), regular_tree(3, 2))
    >>> metric.of_pairs(np.array([0, 1]), np.array([1, -1]))
    11
    >>> metric.within_reach(np.array([[0, 1, 2]]), np.array([1, 1, 2]))
    5
    """

    def __init__(self, rates: IntArray, tree: Tree) -> None:
        self.tree = tree
        self.rates = tree.integers(rates, "rates")

    def _nodes(self, leaves: AnyArray) -> IntArray:
        """Return the nodes of leaves; -1 stays -1."""
        flat = np.ascontiguousarray(leaves, dtype=np.int64).reshape(-1)
        if flat.size and (flat.min() < -1 or flat.max() >= self.tree.leaves):
            raise InputError(
                f"leaves are numbered from 0 to {self.tree.leaves - 1}, and -1 is none "
                f"or absent; got {flat.min()} to {flat.max()}"
            )
        return np.where(flat < 0, -1, self.tree.leaf_nodes[flat])

    def of_pairs(self, first: IntArray, second: IntArray) -> int:
        """Return the largest distance of listed pairs of leaves.

        Parameters
        ----------
        first : ndarray of int64
            The leaf at one end of each pair; -1 is "absent", above the root.
        second : ndarray of int64
            The leaf at the other end.

        Returns
        -------
        int
            The largest distance.
        """
        first_nodes, second_nodes = self._nodes(first), self._nodes(second)
        return int(_of_pairs(first_nodes, second_nodes, self.rates, self.tree.parents))

    def in_groups(self, leaves: IntArray, groups: IntArray) -> int:
        """Return the largest distance between two leaves of one group.

        Parameters
        ----------
        leaves : ndarray of int64
            Leaves.
        groups : ndarray of int64
            The group of each leaf, numbered from 0.

        Returns
        -------
        int
            The largest distance; 0 without leaves.
        """
        if leaves.size == 0:
            return 0
        groups = np.ascontiguousarray(groups, dtype=np.int64).reshape(-1)
        count = int(groups.max()) + 1
        nodes = self._nodes(leaves)
        return int(_in_groups(nodes, groups, count, self.rates, self.tree.parents))

    def within_reach(self, lines: IntArray, far: IntArray) -> int:
        """Return the largest distance of leaves at places i <= j <= far[i] of one line.

        Parameters
        ----------
        lines : ndarray of int64, shape (lines, n)
            The leaf of each cell of each line.
        far : ndarray of int64, shape (n,)
            The last place that each place reaches; it never decreases.

        Returns
        -------
        int
            The largest distance along any line.
        """
        far, tree = np.ascontiguousarray(far, dtype=np.int64), self.tree
        worst = 0
        for line in lines:
            whole = line.size == tree.leaves
            if whole and np.array_equal(line, np.arange(tree.leaves)):
                worst = max(worst, reach_along(far, self.rates, tree))
                continue
            nodes = self._nodes(line)
            worst = max(
                worst, int(within_reach(nodes, far, self.rates, self.tree.parents))
            )
        return worst

    def in_boxes(self, grid: IntArray, sides: IntArray) -> int:
        """Return the largest distance of leaves of cells in one box of these sides.

        Parameters
        ----------
        grid : ndarray of int64
            The leaf of each cell of the grid, -1 where there is none.
        sides : ndarray of int64
            How many cells a box has along each axis.

        Returns
        -------
        int
            The largest distance over all places of the box.
        """
        shape = np.array(grid.shape, dtype=np.int64)
        spans = np.minimum(np.asarray(sides, dtype=np.int64), shape)
        nodes = self._nodes(grid)
        return int(_box_diameters(nodes, shape, spans, self.rates, self.tree.parents))


@kernel
def _uncrossed(
    labels: IntArray, private: BoolArray, leaf_nodes: IntArray, first_child: IntArray
) -> BoolArray:
    leaves, nodes = labels.size, first_child.size - 1
    # Of all parts with a leaf below a node, the first leaf and the last one: the node
    # is uncrossed if it holds both.
    firsts = np.full(private.size, leaves, dtype=np.int64)
    lasts = np.zeros(private.size, dtype=np.int64)
    for leaf in range(leaves):
        firsts[labels[leaf]] = min(firsts[labels[leaf]], leaf)
        lasts[labels[leaf]] = leaf
    low = np.empty(nodes, dtype=np.int64)
    high = np.empty(nodes, dtype=np.int64)
    start = np.empty(nodes, dtype=np.int64)
    end = np.empty(nodes, dtype=np.int64)
    for leaf in range(leaves):
        node, part = leaf_nodes[leaf], labels[leaf]
        start[node] = end[node] = leaf
        low[node] = -1 if private[part] else firsts[part]
        high[node] = lasts[part]
    uncrossed = np.empty(nodes, dtype=np.bool_)
    for node in range(nodes):
        first, past = first_child[node], first_child[node + 1]
        if first < past:
            start[node], end[node] = start[first], end[past - 1]
            low[node], high[node] = low[first], high[first]
            for child in range(first + 1, past):
                low[node] = min(low[node], low[child])
                high[node] = max(high[node], high[child])
        uncrossed[node] = low[node] >= start[node] and high[node] <= end[node]
    return uncrossed


def uncrossed_nodes(
    tree: Tree, labels: IntArray | None, private: BoolArray
) -> BoolArray:
    """Mark the nodes that every part of the leaves lies wholly inside or outside of.

    O(nodes).

    No edge between leaves of one part, or from a part marked in `private` to "absent",
    changes the total of such a node (Lemma HI6).

    Parameters
    ----------
    tree : Tree
        The shape.
    labels : ndarray of int64 or None, shape (leaves,)
        The part of each leaf; None where all leaves are in one part.
    private : ndarray of bool, shape (parts,)
        Which parts have an edge to "absent".

    Returns
    -------
    ndarray of bool, shape (nodes,)
        The marks, by row.

    Examples
    --------
    >>> from blowfish_fast.kernels import regular_tree
    >>> halves = np.array([0, 0, 1, 1]), np.array([False, True])
    >>> uncrossed_nodes(regular_tree(4, 2), *halves)
    array([False, False, False, False,  True, False, False])
    """
    if labels is None:
        # Only the root holds all leaves, and what hangs alone below it: the leaves of
        # other nodes, two numbers each that a tree would keep, need not be known.
        whole = np.zeros(tree.nodes, dtype=np.bool_)
        node = -1 if private.any() else tree.nodes - 1
        while node >= 0:
            whole[node] = True
            begin, end = tree.first_child[node], tree.first_child[node + 1]
            node = begin if end - begin == 1 else -1
        return tree.by_row(whole)
    labels = np.ascontiguousarray(labels, dtype=np.int64)
    return tree.by_row(_uncrossed(labels, private, tree.leaf_nodes, tree.first_child))
