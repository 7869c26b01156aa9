r"""The exact variance of any query answered from a chain of block trees.

A query is a sum of *cuts*: a cut at cell c with fraction p takes all cells before c and
p of cell c; a range is one cut less another. Inside its block a cut covers each node by
some part, which for a parent is the average over its children, weighed by their
variances:

    coverage    node 0.6            at each node on the way up, children that are
              /   |   \             covered differently from it add variance times
             1   0.4   0            (difference)^2; borders carry the rest

The three children above have variances 2, 1 and 1: 0.6 is (2 * 1 + 1 * 0.4 + 1 * 0) /
4. They add 2 * 0.4^2 + 1 * 0.2^2 + 1 * 0.6^2 = 0.72 to the variance of the answer.

Along the chain the borders form a Markov sequence: the covariance of two of them is the
variance of the right one times the product of the shares in between (Lemma OH10,
``docs/proofs/ordered.md``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .block_trees import BlockTrees
from .fit import subtree_variances

UNKNOWN = 2.0**200
"""Variance of a leaf that nothing fixes: large enough to tell nothing."""

EXACT = 2.0**-400
"""Variance of an exact node inside a block: small enough to decide everything."""


LoudestNoise = tuple[float, float, float, float, float]
"""What `moment_bounds` is told of all rows of a measurement."""


class NodeNoise(NamedTuple):
    """What the fit makes of the noise at each node of a chain of block trees.

    Attributes
    ----------
    subtree_variance : ndarray of float64, shape (nodes,)
        Variance of a node's total given the measurements at and below it.
    before : ndarray of float64, shape (nodes,)
        Sum of `subtree_variance` over the earlier siblings of the node.
    after : ndarray of float64, shape (nodes,)
        The same sum over the later siblings.
    depth : ndarray of int64, shape (nodes,)
        Steps from the node up to the root.
    given_all : ndarray of float64, shape (nodes,)
        Variance of the node's total given all measurements.
    smoothed : ndarray of float64, shape (blocks + 1,)
        Variance of each border given all measurements; the first one lies before all
        cells and is exact.
    logarithms : ndarray of float64, shape (blocks + 1,)
        Running sums of the logarithms of the factors by which a border follows a change
        of the next border. Factors that are 0 are left out.
    stops : ndarray of int64, shape (blocks + 1,)
        How many factors up to each border were 0. Two borders with different numbers
        are independent.
    block_of : ndarray of int64, shape (cells + 1,)
        The block of each cell; the end of the line has a block of its own.
    lifted : ndarray of float64, shape (cells, 2)
        For a cut before each cell: the part of its block that it takes, and the
        variance that it adds inside the block. The array is empty before `lift_cuts`.
    """

    subtree_variance: FloatArray
    before: FloatArray
    after: FloatArray
    depth: IntArray
    given_all: FloatArray
    smoothed: FloatArray
    logarithms: FloatArray
    stops: IntArray
    block_of: IntArray
    lifted: FloatArray


@kernel
def _node_noise(
    subtree_variance: FloatArray, first_child: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray, FloatArray]:
    """Return the first five fields of `NodeNoise`.

    `subtree_variance` comes from `subtree_variances`; where it is minus a number of
    free leaves, it becomes that number times `UNKNOWN`.
    """
    nodes = subtree_variance.size
    before = np.zeros(nodes)
    after = np.zeros(nodes)
    depth = np.zeros(nodes, dtype=np.int64)
    given_all = np.zeros(nodes)
    for node in range(nodes):
        if subtree_variance[node] < 0.0:
            subtree_variance[node] *= -UNKNOWN
    given_all[nodes - 1] = subtree_variance[nodes - 1]
    for node in range(nodes - 1, -1, -1):
        begin, end = first_child[node], first_child[node + 1]
        running = 0.0
        for child in range(begin, end):
            before[child] = running
            running += subtree_variance[child]
        running = 0.0
        for child in range(end - 1, begin - 1, -1):
            after[child] = running
            running += subtree_variance[child]
            # Nothing is subtracted: a sibling may be known far better, or not at all.
            others = before[child] + after[child]
            depth[child] = depth[node] + 1
            family = subtree_variance[child] + others
            if family > 0.0:
                share = subtree_variance[child] / family
                given_all[child] = subtree_variance[child] * (others / family)
                given_all[child] += share * share * given_all[node]
    return subtree_variance, before, after, depth, given_all


@kernel
def _border_chain(
    subtree_variance: FloatArray,
    after: FloatArray,
    given_all: FloatArray,
    borders: IntArray,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the variances of the borders, and how far each follows the next."""
    blocks = borders.size
    smoothed = np.zeros(blocks + 1)
    logarithms = np.zeros(blocks + 1)
    stops = np.zeros(blocks + 1, dtype=np.int64)
    stops[1] = 1
    for block in range(blocks):
        border = borders[block]
        smoothed[block + 1] = given_all[border]
        if block + 1 < blocks:
            family = subtree_variance[border] + after[border]
            factor = subtree_variance[border] / family if family > 0.0 else 0.0
            stops[block + 2] = stops[block + 1] + (1 if factor == 0.0 else 0)
            logarithms[block + 2] = logarithms[block + 1]
            if factor > 0.0:
                logarithms[block + 2] += np.log(factor)
    return smoothed, logarithms, stops


def block_noise(variances: FloatArray, trees: BlockTrees) -> NodeNoise:
    """Return what the variance of any query needs of each node; O(nodes), once.

    Parameters
    ----------
    variances : ndarray of float64, shape (rows,)
        Variance of each measured row, the borders first, then the nodes below the
        blocks. Infinity means not measured, 0 exact.
    trees : BlockTrees
        The blocks.

    Returns
    -------
    NodeNoise
        The noise at each node, with `NodeNoise.lifted` still empty.

    Raises
    ------
    InputError
        If a variance is negative.
    """
    rows = np.array(variances, dtype=np.float64)
    if not (rows >= 0.0).all():
        raise InputError(f"variances must be 0 or more; received {rows.min()}")
    np.maximum(rows[trees.blocks :], EXACT, out=rows[trees.blocks :])
    nodes = trees.by_node(rows, np.inf)
    subtree_variance = subtree_variances(nodes, trees.tree.first_child)
    nodes_noise = _node_noise(subtree_variance, trees.tree.first_child)
    borders = np.ascontiguousarray(trees.nodes[: trees.blocks])
    chain = _border_chain(subtree_variance, nodes_noise[2], nodes_noise[4], borders)
    sizes = np.append(np.diff(trees.edges), 1)
    block_of = np.repeat(np.arange(trees.blocks + 1), sizes)
    return NodeNoise(*nodes_noise, *chain, block_of, np.zeros((0, 2)))


def lift_cuts(noise: NodeNoise, trees: BlockTrees) -> NodeNoise:
    """Return the noise with all cuts lifted, so that queries need no climb each.

    It costs O(nodes) once. It is worth it where many queries follow: a climb costs
    O(levels) for each cut.

    Parameters
    ----------
    noise : NodeNoise
        What `block_noise` returned.
    trees : BlockTrees
        The blocks that `noise` belongs to.

    Returns
    -------
    NodeNoise
        The same noise with `NodeNoise.lifted` filled.
    """
    tree = trees.tree
    lifted = _lift_cuts(noise, trees.tops, tree.first_child, tree.starts)
    return noise._replace(lifted=lifted)


def hat_diagonal(
    variances: FloatArray, noise: NodeNoise, trees: BlockTrees
) -> FloatArray:
    """Return the leverage of every row, in O(nodes).

    The leverage is the variance of the row's estimate over that of its measurement, on
    the diagonal of the hat matrix. It bounds the coefficient of the row's noise in the
    answer to a query whose own coefficients lie in [0, 1] (Lemma OH11).

    Parameters
    ----------
    variances : ndarray of float64, shape (rows,)
        Variance of each measured row, as `block_noise` takes them.
    noise : NodeNoise
        What `block_noise` returned for these variances.
    trees : BlockTrees
        The blocks.

    Returns
    -------
    ndarray of float64, shape (rows,)
        The leverages, from 0 to 1; 0 for exact rows.

    Examples
    --------
    >>> from blowfish_fast.kernels.tree.block_trees import trees_over_blocks
    >>> trees = trees_over_blocks(np.array([0, 2]), np.array([2]))
    >>> variances = np.array([0.0, 1.0, 1.0])
    >>> hat_diagonal(variances, block_noise(variances, trees), trees)
    array([0. , 0.5, 0.5])
    """
    bounded = np.minimum(variances, UNKNOWN)
    fitted = np.minimum(noise.given_all[trees.nodes], bounded)
    return np.divide(fitted, bounded, out=np.zeros(fitted.size), where=bounded > 0.0)


class BlockCuts(NamedTuple):
    """The cuts that queries are sums of.

    Attributes
    ----------
    cells : ndarray of int64, shape (cuts,)
        The cell that each cut goes through.
    fractions : ndarray of float64, shape (cuts,)
        The part of that cell that the cut takes, in [0, 1).
    amounts : ndarray of float64, shape (cuts,)
        How often the cut counts in its query.
    """

    cells: IntArray
    fractions: FloatArray
    amounts: FloatArray


@kernel
def _climb(
    nodes: IntArray,
    parts: FloatArray,
    amounts: FloatArray,
    top: int,
    noise: NodeNoise,
    parents: IntArray,
) -> float:
    """Lift the cuts of one block to its top; return the variance that adds."""
    subtree_variance, before, after = noise.subtree_variance, noise.before, noise.after
    count = nodes.size
    added = 0.0
    level = np.int64(0)
    for cut in range(count):
        level = max(level, noise.depth[nodes[cut]])
    while level > noise.depth[top]:
        begin = 0
        while begin < count:
            if noise.depth[nodes[begin]] < level:
                begin += 1
                continue
            parent = parents[nodes[begin]]
            end = begin
            mean = 0.0
            ahead = 0.0
            while end < count and parents[nodes[end]] == parent:
                node = nodes[end]
                own = before[node] + subtree_variance[node] * parts[end]
                mean += amounts[end] * (
                    own / (before[node] + subtree_variance[node] + after[node])
                )
                ahead += amounts[end]
                end += 1
            # Children from left to right: each stretch has what the cuts to its right
            # take of it, a child with cuts also what these take of it in part.
            passed = 0.0
            cut = begin
            while cut < end:
                node = nodes[cut]
                added += max(before[node] - passed, 0.0) * (ahead - mean) ** 2
                covered = ahead
                while cut < end and nodes[cut] == node:
                    covered -= amounts[cut] * (1.0 - parts[cut])
                    ahead -= amounts[cut]
                    cut += 1
                added += subtree_variance[node] * (covered - mean) ** 2
                passed = before[node] + subtree_variance[node]
            added += after[nodes[end - 1]] * mean * mean
            for cut in range(begin, end):
                node = nodes[cut]
                own = before[node] + subtree_variance[node] * parts[cut]
                parts[cut] = own / (before[node] + subtree_variance[node] + after[node])
                nodes[cut] = parent
            begin = end
        level -= 1
    return added


@kernel
def _lift_cuts(
    noise: NodeNoise, tops: IntArray, first_child: IntArray, starts: IntArray
) -> FloatArray:
    """Return, of a cut before each cell, what it takes of the block, and its variance.

    Of the cuts before and after each node above: what both take, their variances, and
    their covariance. Those of a child are means of its parent's, and a bridge between
    its siblings: nothing is subtracted. Borders have negative numbers.
    """
    lifted = np.zeros((noise.block_of.size - 1, 2))
    cuts = np.full((noise.subtree_variance.size, 5), -1.0)
    for top in tops:
        cuts[top] = 0.0
        cuts[top, 1] = 1.0
    for node in range(noise.subtree_variance.size - 1, -1, -1):
        begin, past = first_child[node], first_child[node + 1]
        if begin == past or cuts[node, 1] < 0.0:
            continue
        start, end, at_start, at_end, both = cuts[node]
        for child in range(begin, past):
            before, after = noise.before[child], noise.after[child]
            family = before + noise.subtree_variance[child] + after
            left, rest = (
                before / family,
                (noise.subtree_variance[child] + after) / family,
            )
            ends = left * left * at_end + 2.0 * left * rest * both
            taken = rest * start + left * end
            variance = rest * rest * at_start + ends + before * rest
            if first_child[child] == first_child[child + 1]:
                lifted[starts[child], 0], lifted[starts[child], 1] = taken, variance
                continue
            right, last = (
                (before + noise.subtree_variance[child]) / family,
                after / family,
            )
            cuts[child, 0], cuts[child, 2] = taken, variance
            cuts[child, 1] = last * start + right * end
            ends = right * right * at_end + 2.0 * right * last * both
            cuts[child, 3] = last * last * at_start + ends + right * after
            ends = left * right * at_end + (left * last + rest * right) * both
            cuts[child, 4] = rest * last * at_start + ends + left * after
    return lifted


@kernel
def _variances(
    pointers: IntArray,
    cuts: BlockCuts,
    noise: NodeNoise,
    tops: IntArray,
    leaf_nodes: IntArray,
    parents: IntArray,
) -> FloatArray:
    cells, fractions, amounts = cuts.cells, cuts.fractions, cuts.amounts
    blocks = tops.size
    smoothed, logarithms, stops = noise.smoothed, noise.logarithms, noise.stops
    block_of = noise.block_of
    most = 1
    for query in range(pointers.size - 1):
        most = max(most, pointers[query + 1] - pointers[query])
    nodes = np.empty(most, dtype=np.int64)
    parts = np.empty(most)
    result = np.empty(pointers.size - 1)
    for query in range(pointers.size - 1):
        variance = 0.0
        # Borders `at` and `at + 1` wait with the amounts `here` and `ahead`; `passed`
        # is what all borders before these sum to, as felt at border `last`.
        at = last = 0
        here = ahead = passed = 0.0
        cut = pointers[query]
        stop = pointers[query + 1]
        while True:
            block = block_of[cells[cut]] if cut < stop else blocks + 1
            while at < block and (here != 0.0 or ahead != 0.0):
                felt = np.exp(logarithms[at] - logarithms[last])
                passed *= 0.0 if stops[at] > stops[last] else felt
                variance += smoothed[at] * here * (here + 2.0 * passed)
                passed += here
                last = at
                at += 1
                here = ahead
                ahead = 0.0
            if cut == stop:
                break
            at = block
            past = cut
            plain = 0.0
            while past < stop and block_of[cells[past]] == block:
                plain += amounts[past]
                past += 1
            covered = 0.0
            single = past == cut + 1 and fractions[cut] == 0.0
            # The end of the line: nothing of it lies inside a block.
            if block < blocks and single and noise.lifted.size > 0:
                covered = plain * noise.lifted[cells[cut], 0]
                variance += plain * plain * noise.lifted[cells[cut], 1]
            elif block < blocks:
                count = past - cut
                for place in range(count):
                    nodes[place] = leaf_nodes[cells[cut + place]]
                    parts[place] = fractions[cut + place]
                own = amounts[cut:past]
                variance += _climb(
                    nodes[:count], parts[:count], own, tops[block], noise, parents
                )
                for place in range(count):
                    covered += own[place] * parts[place]
            here += plain - covered
            ahead += covered
            cut = past
        result[query] = max(variance, 0.0)
    return result


def hierarchy_variances(
    noise: NodeNoise,
    trees: BlockTrees,
    pointers: IntArray,
    cells: IntArray,
    fractions: FloatArray,
    amounts: FloatArray,
) -> FloatArray:
    """Return the exact variance of least-squares answers, in O(levels) per cut.

    Parameters
    ----------
    noise : NodeNoise
        What `block_noise` returned, or `lift_cuts` after it.
    trees : BlockTrees
        The blocks that `noise` belongs to.
    pointers : ndarray of int64, shape (queries + 1,)
        Query `i` owns the cuts ``pointers[i]`` up to ``pointers[i + 1]``.
    cells : ndarray of int64, shape (cuts,)
        The cell of each cut. Cells do not decrease within a query; the number of cells
        stands for the end of the line.
    fractions : ndarray of float64, shape (cuts,)
        The part of the cell that each cut takes, in [0, 1).
    amounts : ndarray of float64, shape (cuts,)
        How often each cut counts.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The variance of each answer.

    Examples
    --------
    >>> from blowfish_fast.kernels.tree.block_trees import trees_over_blocks
    >>> trees = trees_over_blocks(np.array([0, 2, 4]), np.array([2, 2]))
    >>> exact_total = block_noise(np.array([1.0, 0.0, 1.0, 1.0, 1.0, 1.0]), trees)
    >>> half = np.array([0, 1]), np.array([2]), np.zeros(1), np.ones(1)
    >>> hierarchy_variances(exact_total, trees, *half)
    array([0.5])
    """
    return _variances(
        pointers,
        BlockCuts(cells, fractions, amounts),
        noise,
        trees.tops,
        trees.tree.leaf_nodes,
        trees.tree.parents,
    )


@kernel
def range_cuts(
    first: IntArray,
    first_fraction: FloatArray,
    last: IntArray,
    last_fraction: FloatArray,
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """Return ranges, whose end cells may count in part, as cuts.

    A range is the cut at its end less the cut at its start.

    Parameters
    ----------
    first : ndarray of int64, shape (queries,)
        The first cell of each range.
    first_fraction : ndarray of float64, shape (queries,)
        The part of the first cell that counts.
    last : ndarray of int64, shape (queries,)
        The last cell of each range, not before the first.
    last_fraction : ndarray of float64, shape (queries,)
        The part of the last cell that counts. Where the two cells are the same one,
        `first_fraction` counts instead.

    Returns
    -------
    pointers : ndarray of int64, shape (queries + 1,)
        The first cut of each query: two cuts a query.
    cells : ndarray of int64, shape (2 * queries,)
        The cell of each cut.
    fractions : ndarray of float64, shape (2 * queries,)
        The part of the cell that each cut takes.
    amounts : ndarray of float64, shape (2 * queries,)
        -1 for a start, 1 for an end.
    largest : ndarray of float64, shape (queries,)
        The largest coefficient of a cell in each range.
    """
    cells = np.empty(2 * first.size, dtype=np.int64)
    fractions = np.empty(2 * first.size)
    amounts = np.empty(2 * first.size)
    largest = np.empty(first.size)
    for query in range(first.size):
        left, right, start = first[query], last[query], first_fraction[query]
        end = last_fraction[query] if left < right else start
        ends = ((left, 1.0 - start if left < right else 0.0), (right, end))
        for side in range(2):
            cell, fraction = ends[side]
            cells[2 * query + side] = cell + 1 if fraction >= 1.0 else cell
            fractions[2 * query + side] = 0.0 if fraction >= 1.0 else fraction
            amounts[2 * query + side] = 2.0 * side - 1.0
        largest[query] = 1.0 if right > left + 1 else max(start, end)
    pointers = np.arange(0, 2 * first.size + 1, 2)
    return pointers, cells, fractions, amounts, largest


@kernel
def moment_bounds(
    variance: FloatArray,
    size: FloatArray,
    variation: FloatArray,
    loudest: LoudestNoise,
    least: float,
) -> FloatArray:
    """Return bounds on three moments of each query's noise: Lemma OH11.

    Parameters
    ----------
    variance : ndarray of float64, shape (queries,)
        Exact variance of each answer.
    size : ndarray of float64, shape (queries,)
        Largest coefficient of a cell in the query, in absolute value.
    variation : ndarray of float64, shape (queries,)
        How far the coefficients rise and fall along the line, added up.
    loudest : LoudestNoise
        The largest (scale)^2 / variance of nodes, the same of borders, the largest
        variance of a border, the largest scale of a row's noise in any range, and the
        number of rows.
    least : float
        The smallest scale of a row, or 0 where a row has none.

    Returns
    -------
    ndarray of float64, shape (3, queries)
        Bounds on the sum of squared coefficients times squared scales, on the largest
        coefficient times its scale, and on the sum of squared coefficients.
    """
    nodes, borders, border_variance, scale, rows = loudest
    bounds = np.empty((3, variance.size))
    for query in range(variance.size):
        square = nodes * variance[query]
        if borders > nodes:
            part = size[query] * variation[query] * border_variance
            square += (borders - nodes) * min(variance[query], part)
        # No row enters louder than this; it decides where variances underflow.
        loud = size[query] * scale
        square = min(square, rows * (loud * loud))
        bounds[0, query] = square
        bounds[1, query] = min(loud, math.sqrt(square))
        bounds[2, query] = 0.0
        if square > 0.0:
            bounds[2, query] = square * least**-2.0 if least > 0.0 else np.inf
    return bounds
