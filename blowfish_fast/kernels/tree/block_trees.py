"""Blocks of consecutive cells as one tree: running totals above, trees inside.

Each block splits into nearly equal parts down to single cells. The total up to the end
of a block, its *border*, is the node above the block and the border before it:

    cells     0 1 2 3 | 4 5 6          border 1 = everything = border 0 + block 1
              border 1                 blocks are not measured, all other nodes are
         border 0   block 1            rows: the borders, then the nodes below blocks,
          block 0    4 5 6             block by block and from the top down
         0 1   2 3
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .paths import reach_along
from .shape import Tree, Values


class BlockTrees(NamedTuple):
    """The tree over all blocks, whose leaves are the cells.

    Attributes
    ----------
    edges : ndarray of int64, shape (blocks + 1,)
        The cells where blocks begin, rising from 0 to the number of cells.
    tree : Tree
        The shape of the whole tree.
    nodes : ndarray of int64, shape (rows,)
        The node of each measured row: the borders, then the nodes below blocks.
    tops : ndarray of int64, shape (blocks,)
        The node of each block, which is not measured.
    sizes : ndarray of int64, shape (blocks,)
        How many rows lie below each block.
    """

    edges: IntArray
    tree: Tree
    nodes: IntArray
    tops: IntArray
    sizes: IntArray

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self.edges.size - 1

    @property
    def rows(self) -> int:
        """Number of rows: one per block, one per node below a block."""
        return int(self.nodes.size)

    def by_node(self, rows: Values, blocks: float) -> Values:
        """Return one value per node of the tree.

        Parameters
        ----------
        rows : ndarray, shape (rows,)
            One value per measured row.
        blocks : float
            The value of the blocks' own nodes, which are not measured.

        Returns
        -------
        ndarray, shape (nodes,)
            The values in the order of the tree's nodes.

        Raises
        ------
        InputError
            If there is not one value for each row.
        """
        if rows.shape != (self.rows,):
            raise InputError(
                f"one number for each of the {self.rows} rows of these trees is "
                f"needed; got an array of shape {rows.shape}"
            )
        values = np.full(self.tree.nodes, blocks, dtype=rows.dtype)
        values[self.nodes] = rows
        return values


@kernel
def _split(edges: IntArray, fan_outs: IntArray) -> tuple[IntArray, ...]:
    """Split every block; nodes are numbered block by block, from the top down."""
    blocks = edges.size - 1
    cells = edges[blocks]
    # Every node splits in two at least: fewer than twice as many nodes as cells.
    depths = np.empty(2 * cells, dtype=np.int64)
    children = np.zeros(2 * cells, dtype=np.int64)
    starts = np.empty(2 * cells, dtype=np.int64)
    ends = np.empty(2 * cells, dtype=np.int64)
    tops = np.empty(blocks + 1, dtype=np.int64)
    count = 0
    for block in range(blocks):
        node = count
        tops[block] = node
        depths[node], starts[node], ends[node] = 0, edges[block], edges[block + 1]
        count += 1
        while node < count:
            start = starts[node]
            length = ends[node] - start
            if length > 1:
                parts = min(fan_outs[block], length)
                children[node] = parts
                size = length // parts
                longer = length - size * parts
                for part in range(parts):
                    depths[count] = depths[node] + 1
                    starts[count] = start
                    start += size + (1 if part < longer else 0)
                    ends[count] = start
                    count += 1
            node += 1
    tops[blocks] = count
    return tops, depths[:count], children[:count], starts[:count]


@kernel
def _lay_out(
    tops: IntArray, depths: IntArray, children: IntArray, starts: IntArray, cells: int
) -> tuple[IntArray, ...]:
    """Lay borders and nodes out level by level, the deepest first, by counting."""
    blocks = tops.size - 1
    nodes = depths.size + blocks
    # Border b hangs blocks - 1 - b below the root, its block one more.
    begins = np.zeros(nodes + 1, dtype=np.int64)
    for block in range(blocks):
        begins[block] += 1
        for node in range(tops[block], tops[block + 1]):
            begins[blocks - block + depths[node]] += 1
    following = nodes
    for depth in range(nodes):
        following -= begins[depth]
        begins[depth] = following
    first_child = np.zeros(nodes + 1, dtype=np.int64)
    leaves = np.empty(cells, dtype=np.int64)
    rows = np.empty(nodes - blocks, dtype=np.int64)
    places = np.empty(blocks, dtype=np.int64)
    for block in range(blocks):
        # Of a level, a border comes before the blocks, which lie further right.
        border = begins[blocks - 1 - block]
        begins[blocks - 1 - block] += 1
        rows[block] = border
        first_child[border + 1] = 1 if block == 0 else 2
    row = blocks
    for block in range(blocks):
        for node in range(tops[block], tops[block + 1]):
            depth = blocks - block + depths[node]
            number = begins[depth]
            begins[depth] += 1
            first_child[number + 1] = children[node]
            if children[node] == 0:
                leaves[starts[node]] = number
            if node == tops[block]:
                places[block] = number
            else:
                rows[row] = number
                row += 1
    for node in range(nodes):
        first_child[node + 1] += first_child[node]
    return first_child, leaves, rows, places


def trees_over_blocks(edges: IntArray, fan_outs: IntArray) -> BlockTrees:
    """Return the tree over blocks of cells, in O(cells).

    A node of L cells splits into min(fan-out, L) parts whose lengths differ by one cell
    at most.

    Parameters
    ----------
    edges : ndarray of int64, shape (blocks + 1,)
        The cells where blocks begin, rising from 0 to the number of cells.
    fan_outs : ndarray of int64, shape (blocks,)
        The most children of a node of each block, at least 2.

    Returns
    -------
    BlockTrees
        The tree, and where its rows lie.

    Raises
    ------
    InputError
        If the edges do not rise from 0, or a block has no fan-out of 2 or more.

    Examples
    --------
    >>> trees = trees_over_blocks(np.array([0, 3, 4]), np.array([2, 2]))
    >>> trees.tree.starts[trees.nodes], trees.tree.ends[trees.nodes]
    (array([0, 0, 0, 2, 0, 1]), array([3, 4, 2, 3, 1, 2]))
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
    tops, depths, children, starts = _split(edges, fan_outs)
    cells = int(edges[-1])
    first_child, leaves, rows, places = _lay_out(tops, depths, children, starts, cells)
    tree = Tree(first_child, cells, leaf_nodes=leaves)
    return BlockTrees(edges, tree, rows, places, np.diff(tops) - 1)


@kernel
def _worst_moves(
    rates: IntArray,
    above: IntArray,
    borders: IntArray,
    edges: IntArray,
    far: IntArray,
) -> int:
    """Return the worst move into a later block.

    Such a move pays the ways of both cells to the root, but for what lies above the
    later block. The best end lies in a window whose two ends only move forward.
    """
    blocks = edges.size - 1
    value = np.empty(above.size, dtype=np.int64)
    common = np.int64(0)
    for block in range(blocks - 1, -1, -1):
        common += rates[borders[block]]
        for cell in range(edges[block], edges[block + 1]):
            value[cell] = above[cell] - 2 * common
    queue = np.empty(above.size, dtype=np.int64)
    head = tail = pushed = worst = 0
    for block in range(blocks - 1):
        begin = edges[block + 1]
        for cell in range(edges[block], begin):
            while pushed <= far[cell]:
                while tail > head and value[queue[tail - 1]] <= value[pushed]:
                    tail -= 1
                queue[tail] = pushed
                tail += 1
                pushed += 1
            while head < tail and queue[head] < begin:
                head += 1
            if head < tail:
                worst = max(worst, value[queue[head]] + above[cell])
    return worst


@kernel
def _ways_to_root(rates: IntArray, parents: IntArray) -> IntArray:
    """Return the sum of rates from each node to the root."""
    ways = rates.copy()
    for node in range(rates.size - 2, -1, -1):
        ways[node] += ways[parents[node]]
    return ways


def worst_block_move(
    weights: AnyArray, trees: BlockTrees, far: IntArray, bottom: BoolArray
) -> int:
    """Return the largest sum of weights over the rows that one edge moves, exactly.

    It takes O(cells) for moves between blocks, and O(cells) per level of the trees for
    moves inside them (Lemma OH6).

    Parameters
    ----------
    weights : ndarray, shape (rows,)
        Whole weight of each row, not negative.
    trees : BlockTrees
        The blocks.
    far : ndarray of int64, shape (cells,)
        The last cell that each cell is joined to; it never decreases.
    bottom : ndarray of bool, shape (cells,)
        Which cells are joined to "absent".

    Returns
    -------
    int
        The largest sum over all edges.

    Examples
    --------
    >>> trees = trees_over_blocks(np.array([0, 2, 4]), np.array([2, 2]))
    >>> far, bottom = np.array([2, 3, 3, 3]), np.zeros(4, dtype=bool)
    >>> worst_block_move(np.array([5, 0, 1, 1, 1, 1]), trees, far, bottom)
    7
    """
    far = np.ascontiguousarray(far, dtype=np.int64)
    edges, tree = trees.edges, trees.tree
    rates = trees.by_node(np.ascontiguousarray(weights, dtype=np.int64), 0)
    borders = trees.nodes[: trees.blocks]
    above = _ways_to_root(rates, tree.parents)[tree.leaf_nodes]
    worst = int(_worst_moves(rates, above, borders, edges, far))
    last = edges[1:] - 1
    inside = reach_along(np.minimum(far, np.repeat(last, np.diff(edges))), rates, tree)
    gone = above[bottom].max(initial=0)
    return max(worst, inside, int(gone))
