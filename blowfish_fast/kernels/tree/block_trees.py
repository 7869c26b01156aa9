"""Trees over consecutive blocks of cells, and the costliest move among them.

Serves the ordered hierarchical mechanism. The line is cut into blocks; each block is
the root of a tree whose nodes split into nearly equal parts until they are single
cells. Nodes are numbered block by block, level by level, so that a parent comes before
its children and the children of one node stand together:

    cells     0 1 2 3 4 | 5 6            edges    0 5 7
              -----0----- --8--          roots    0 8 11
              --1-- -2-     9 10         parents  0 0 0 1 1 2 2 3 ...
              3  4  5 6                  leaves   node of each cell
              7 ..

What is measured are the *border rows*, the totals up to the end of each block, and all
nodes but the roots; rows are numbered with the borders first, so node g of block b has
row ``blocks + g - b - 1``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import BoolArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .paths import within_reach


class BlockTrees(NamedTuple):
    """The trees over all blocks; see the module docstring.

    Attributes
    ----------
    edges : (blocks + 1,) int64
        Cells where blocks begin, from 0 to the number of cells.
    roots : (blocks + 1,) int64
        Node of each block's root; the last entry is the number of nodes.
    parents, starts, ends : (nodes,) int64
        Parent of each node (a root is its own) and the cells that it covers.
    leaves : (cells,) int64
        Node of each cell.
    """

    edges: IntArray
    roots: IntArray
    parents: IntArray
    starts: IntArray
    ends: IntArray
    leaves: IntArray

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self.edges.size - 1

    @property
    def rows(self) -> int:
        """Number of rows: one per block, one per node below a root."""
        return int(self.parents.size)


@kernel
def _split(edges: IntArray, fan_outs: IntArray) -> tuple[IntArray, ...]:
    blocks = edges.size - 1
    cells = edges[blocks]
    # Every node splits in two at least: fewer than twice as many nodes as cells.
    parents = np.empty(2 * cells, dtype=np.int64)
    starts = np.empty(2 * cells, dtype=np.int64)
    ends = np.empty(2 * cells, dtype=np.int64)
    leaves = np.empty(cells, dtype=np.int64)
    roots = np.empty(blocks + 1, dtype=np.int64)
    count = 0
    for block in range(blocks):
        node = count
        roots[block] = node
        parents[node] = node
        starts[node] = edges[block]
        ends[node] = edges[block + 1]
        count += 1
        while node < count:
            start = starts[node]
            length = ends[node] - start
            if length == 1:
                leaves[start] = node
            else:
                parts = min(fan_outs[block], length)
                size = length // parts
                longer = length - size * parts
                for part in range(parts):
                    parents[count] = node
                    starts[count] = start
                    start += size + (1 if part < longer else 0)
                    ends[count] = start
                    count += 1
            node += 1
    roots[blocks] = count
    return (
        roots,
        parents[:count].copy(),
        starts[:count].copy(),
        ends[:count].copy(),
        leaves,
    )


def trees_over_blocks(edges: IntArray, fan_outs: IntArray) -> BlockTrees:
    """Return the trees over blocks of cells, in O(cells).

    Parameters
    ----------
    edges : (blocks + 1,) int64
        Cells where blocks begin, rising from 0.
    fan_outs : (blocks,) int64
        Most children of a node in each block, at least 2. A node of length L splits
        into min(fan-out, L) parts whose lengths differ by one at most, so a block of
        length L has ceil(log(L) / log(fan-out)) levels below its root at most.

    Examples
    --------
    >>> trees = trees_over_blocks(np.array([0, 3, 4]), np.array([2, 2]))
    >>> trees.starts, trees.ends
    (array([0, 0, 2, 0, 1, 3]), array([3, 2, 3, 1, 2, 4]))
    """
    edges = np.ascontiguousarray(edges, dtype=np.int64)
    fan_outs = np.ascontiguousarray(fan_outs, dtype=np.int64)
    rising = edges.ndim == 1 and edges.size > 1 and edges[0] == 0
    if not rising or not (np.diff(edges) > 0).all():
        raise InputError(f"block edges rise from 0; got {edges[:5]} ...")
    if fan_outs.shape != (edges.size - 1,) or (fan_outs < 2).any():
        raise InputError(
            f"each of the {edges.size - 1} blocks has a fan-out of 2 or more; got "
            f"{fan_outs[:5]} ..."
        )
    return BlockTrees(edges, *_split(edges, fan_outs))


@kernel
def _worst_moves(
    weights: IntArray,
    edges: IntArray,
    roots: IntArray,
    parents: IntArray,
    leaves: IntArray,
    far: IntArray,
    bottom: BoolArray,
) -> int:
    blocks = edges.size - 1
    cells = edges[blocks]
    # Moves inside a block where all cells are joined: the longest way through each
    # node, from the deepest leaf of one child to that of another. Elsewhere: its nodes
    # counted from the last one on, so that parents come after their children, as
    # distances in a tree want it.
    deepest = np.zeros(parents.size, dtype=np.int64)
    last = parents.size - 1
    rates = np.zeros(parents.size, dtype=np.int64)
    upward = np.empty(parents.size, dtype=np.int64)
    worst = 0
    for block in range(blocks):
        shift = blocks - block - 1
        begin, end = edges[block], edges[block + 1]
        if far[begin] >= end - 1:
            for node in range(roots[block + 1] - 1, roots[block], -1):
                parent = parents[node]
                way = deepest[node] + weights[node + shift]
                worst = max(worst, deepest[parent] + way)
                deepest[parent] = max(deepest[parent], way)
            continue
        for node in range(roots[block], roots[block + 1]):
            upward[last - node] = last - parents[node]
            if node > roots[block]:
                rates[last - node] = weights[node + shift]
        inside = np.minimum(far[begin:end], end - 1) - begin
        nodes = last - leaves[begin:end]
        worst = max(worst, within_reach(nodes, inside, rates, upward))
    # Weight on the way from each node up to its root, the root left out.
    above = np.zeros(parents.size, dtype=np.int64)
    borders = np.zeros(blocks + 1, dtype=np.int64)
    for block in range(blocks):
        borders[block + 1] = borders[block] + weights[block]
        shift = blocks - block - 1
        for node in range(roots[block] + 1, roots[block + 1]):
            above[node] = above[parents[node]] + weights[node + shift]
    # Moves into later blocks: the best end among the cells from the next block up to
    # the furthest one, a window whose ends only move forward.
    value = np.empty(cells, dtype=np.int64)
    queue = np.empty(cells, dtype=np.int64)
    head = 0
    tail = 0
    pushed = 0
    block_of_pushed = 0
    for block in range(blocks - 1):
        begin = edges[block + 1]
        for cell in range(edges[block], begin):
            while pushed <= far[cell]:
                while pushed >= edges[block_of_pushed + 1]:
                    block_of_pushed += 1
                value[pushed] = borders[block_of_pushed] + above[leaves[pushed]]
                while tail > head and value[queue[tail - 1]] <= value[pushed]:
                    tail -= 1
                queue[tail] = pushed
                tail += 1
                pushed += 1
            while head < tail and queue[head] < begin:
                head += 1
            if head < tail:
                end = value[queue[head]] - borders[block]
                worst = max(worst, end + above[leaves[cell]])
    for block in range(blocks):
        for cell in range(edges[block], edges[block + 1]):
            if bottom[cell]:
                gone = borders[blocks] - borders[block] + above[leaves[cell]]
                worst = max(worst, gone)
    return worst


def worst_block_move(
    weights: IntArray, trees: BlockTrees, far: IntArray, bottom: BoolArray
) -> int:
    """Return the largest sum of weights over the rows that one edge moves, exactly.

    Parameters
    ----------
    weights : (rows,) int64
        Weight of each row, not negative: the border rows, then the nodes below roots.
    trees : BlockTrees
        The shape.
    far : (cells,) int64
        Each cell is joined to the cells after it, up to this one; never decreases.
    bottom : (cells,) bool
        Cells joined to "absent".

    Returns
    -------
    int
        O(cells) for moves from block to block, to "absent" and inside blocks whose
        cells are all joined; windows of the tree metric (`paths`) inside the others.

    Examples
    --------
    >>> trees = trees_over_blocks(np.array([0, 2, 4]), np.array([2, 2]))
    >>> far, bottom = np.array([2, 3, 3, 3]), np.zeros(4, dtype=bool)
    >>> worst_block_move(np.array([5, 0, 1, 1, 1, 1]), trees, far, bottom)
    7
    """
    weights = np.ascontiguousarray(weights, dtype=np.int64)
    far = np.ascontiguousarray(far, dtype=np.int64)
    bottom = np.ascontiguousarray(bottom, dtype=np.bool_)
    cells = trees.leaves.size
    shapes = (weights.shape, far.shape, bottom.shape)
    if shapes != ((trees.rows,), (cells,), (cells,)):
        raise InputError(
            f"give {trees.rows} weights and two marks for each of {cells} cells; got "
            f"shapes {shapes}"
        )
    if far.size and (far.min() < 0 or far.max() >= cells or (np.diff(far) < 0).any()):
        raise InputError("the furthest cell must lie on the line and never decrease")
    return int(
        _worst_moves(
            weights,
            trees.edges,
            trees.roots,
            trees.parents,
            trees.leaves,
            far,
            bottom,
        )
    )
