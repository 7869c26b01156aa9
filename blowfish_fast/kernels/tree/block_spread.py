"""The exact variance of any query answered from a chain of block trees.

A query is a sum of *cuts*: a cut at cell c with fraction p takes all cells before c and
p of cell c. Inside its block a cut covers each node by some part; children that are
covered differently from their parent add variance, and the borders, a Markov sequence,
carry the rest (Lemma OH10, ``docs/proofs/ordered_hierarchical.md``).
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
    """What each node knows from its subtree, its place in its family, and in all.

    `known` is the variance of a node's total given the measurements at and below it,
    `before` and `after` its sums over earlier and later siblings, `given_all` the
    variance given all measurements, `smoothed` that of the borders, the first before
    all cells. `logarithms` and `stops` are running products, with the number of zero
    factors, of how far each border follows the next. `lifted` holds, of a cut before
    each cell, the part that it takes of its block, and the variance inside the block;
    it is empty before `lift_cuts`.
    """

    known: FloatArray
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
    known: FloatArray, first_child: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray, FloatArray]:
    nodes = known.size
    before = np.zeros(nodes)
    after = np.zeros(nodes)
    depth = np.zeros(nodes, dtype=np.int64)
    given_all = np.zeros(nodes)
    for node in range(nodes):
        if known[node] < 0.0:
            known[node] *= -UNKNOWN
    given_all[nodes - 1] = known[nodes - 1]
    for node in range(nodes - 1, -1, -1):
        begin, end = first_child[node], first_child[node + 1]
        running = 0.0
        for child in range(begin, end):
            before[child] = running
            running += known[child]
        running = 0.0
        for child in range(end - 1, begin - 1, -1):
            after[child] = running
            running += known[child]
            # Nothing is subtracted: a sibling may be known far better, or not at all.
            others = before[child] + after[child]
            depth[child] = depth[node] + 1
            family = known[child] + others
            if family > 0.0:
                share = known[child] / family
                given_all[child] = known[child] * (others / family)
                given_all[child] += share * share * given_all[node]
    return known, before, after, depth, given_all


@kernel
def _border_chain(
    known: FloatArray, after: FloatArray, given_all: FloatArray, borders: IntArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    blocks = borders.size
    smoothed = np.zeros(blocks + 1)
    logarithms = np.zeros(blocks + 1)
    stops = np.zeros(blocks + 1, dtype=np.int64)
    stops[1] = 1
    for block in range(blocks):
        border = borders[block]
        smoothed[block + 1] = given_all[border]
        if block + 1 < blocks:
            family = known[border] + after[border]
            factor = known[border] / family if family > 0.0 else 0.0
            stops[block + 2] = stops[block + 1] + (1 if factor == 0.0 else 0)
            logarithms[block + 2] = logarithms[block + 1]
            if factor > 0.0:
                logarithms[block + 2] += np.log(factor)
    return smoothed, logarithms, stops


def block_noise(variances: FloatArray, trees: BlockTrees) -> NodeNoise:
    """Return what the variance of any query needs of each node; O(nodes), once.

    `variances` are by row, borders first; infinity: not measured, 0: exact.
    """
    rows = np.array(variances, dtype=np.float64)
    if not (rows >= 0.0).all():
        raise InputError(f"variances must be 0 or more; received {rows.min()}")
    np.maximum(rows[trees.blocks :], EXACT, out=rows[trees.blocks :])
    nodes = trees.by_node(rows, np.inf)
    known = subtree_variances(nodes, trees.tree.first_child)
    nodes_noise = _node_noise(known, trees.tree.first_child)
    borders = np.ascontiguousarray(trees.nodes[: trees.blocks])
    chain = _border_chain(known, nodes_noise[2], nodes_noise[4], borders)
    sizes = np.append(np.diff(trees.edges), 1)
    block_of = np.repeat(np.arange(trees.blocks + 1), sizes)
    return NodeNoise(*nodes_noise, *chain, block_of, np.zeros((0, 2)))


def lift_cuts(noise: NodeNoise, trees: BlockTrees) -> NodeNoise:
    """Return `block_noise` with all cuts lifted, so that many need no climb each."""
    tree = trees.tree
    lifted = _lift_cuts(noise, trees.tops, tree.first_child, tree.starts)
    return noise._replace(lifted=lifted)


def hat_diagonal(
    variances: FloatArray, noise: NodeNoise, trees: BlockTrees
) -> FloatArray:
    """Return the leverage of every row, in O(nodes): 0 to 1, 0 for exact rows.

    It bounds the coefficient of the row's noise in the answer to a query whose own
    coefficients lie in [0, 1] (Lemma OH11).

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
    """Where cuts lie, which part of that cell each takes, and how often it counts."""

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
    known, before, after = noise.known, noise.before, noise.after
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
                own = before[node] + known[node] * parts[end]
                mean += amounts[end] * (
                    own / (before[node] + known[node] + after[node])
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
                added += known[node] * (covered - mean) ** 2
                passed = before[node] + known[node]
            added += after[nodes[end - 1]] * mean * mean
            for cut in range(begin, end):
                node = nodes[cut]
                own = before[node] + known[node] * parts[cut]
                parts[cut] = own / (before[node] + known[node] + after[node])
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
    cuts = np.full((noise.known.size, 5), -1.0)
    for top in tops:
        cuts[top] = 0.0
        cuts[top, 1] = 1.0
    for node in range(noise.known.size - 1, -1, -1):
        begin, past = first_child[node], first_child[node + 1]
        if begin == past or cuts[node, 1] < 0.0:
            continue
        start, end, at_start, at_end, both = cuts[node]
        for child in range(begin, past):
            before, after = noise.before[child], noise.after[child]
            family = before + noise.known[child] + after
            left, rest = before / family, (noise.known[child] + after) / family
            ends = left * left * at_end + 2.0 * left * rest * both
            taken = rest * start + left * end
            variance = rest * rest * at_start + ends + before * rest
            if first_child[child] == first_child[child + 1]:
                lifted[starts[child], 0], lifted[starts[child], 1] = taken, variance
                continue
            right, last = (before + noise.known[child]) / family, after / family
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

    Query `i` owns the cuts ``pointers[i]`` up to ``pointers[i + 1]``, whose `cells` do
    not decrease; the number of cells is the end of the line. Fractions lie in [0, 1).

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
    """Return ranges whose end cells count in part as `hierarchy_variances` takes them.

    A range is the cut at its end less the cut at its start. Last comes the largest
    coefficient of each.
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
    """Return bounds on square, largest and steps of each query: Lemma OH11.

    From its variance, the size of its coefficients and how far they rise and fall.
    `loudest` holds the largest (scale)^2 / variance of nodes and of borders, the
    largest variance of a border, the largest scale of a row's noise in any range, and
    the number of rows.
    """
    nodes, borders, border_variance, scale, rows = loudest
    found = np.empty((3, variance.size))
    for query in range(variance.size):
        square = nodes * variance[query]
        if borders > nodes:
            part = size[query] * variation[query] * border_variance
            square += (borders - nodes) * min(variance[query], part)
        # No row enters louder than this; it decides where variances underflow.
        loud = size[query] * scale
        square = min(square, rows * (loud * loud))
        found[0, query] = square
        found[1, query] = min(loud, math.sqrt(square))
        found[2, query] = 0.0
        if square > 0.0:
            found[2, query] = square * least**-2.0 if least > 0.0 else np.inf
    return found
