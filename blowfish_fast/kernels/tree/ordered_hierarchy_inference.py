r"""Exact least squares on a chain of block totals with a tree below each, in O(cells).

Serves the ordered hierarchical mechanism. Totals up to the end of each block form a
chain; inside a block the nodes of a tree were measured (see `block_trees`).

    borders     0 ----- s1 ----- s2 ----- s3        s_i measured with noise, or exact
    blocks         z1       z2       z3             what each tree says of its total
                  /  \     /  \     /  \

Three sweeps give the generalised least-squares cells. Up each tree: the children's
totals add, and the sum is averaged with the node's own measurement, each weighed by the
other's variance. Along the chain: s_i follows from s_(i-1) + z_i and its own
measurement, forwards, and from s_(i+1), backwards; this is the elimination of a
tridiagonal system, carried out on variances, where nothing is subtracted. Down each
tree: what a parent knows better than its children is shared among them by variance.

All variances are positive and finite but those of the borders, which may be 0 (exact).
A block of one cell has no tree: its total is unknown, of variance `UNKNOWN`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .block_trees import BlockTrees
from .top_down import settle_family

UNKNOWN = 2.0**200
"""Variance of what was not measured: large enough to tell nothing."""

EXACT = 2.0**-400
"""Variance of a node that is known exactly: small enough to decide everything."""


class TreeVariances(NamedTuple):
    """How well each node's total is known from its own subtree.

    Attributes
    ----------
    known : (nodes,) float64
        Variance given the node's own measurement and all below it; of a root, given
        those below it alone.
    family : (nodes,) float64
        Sum of `known` over the node's children; 0 for a cell.
    before : (nodes,) float64
        Sum of `known` over the siblings to the left.
    """

    known: FloatArray
    family: FloatArray
    before: FloatArray


class ChainVariances(NamedTuple):
    """What the chain makes of its borders; entry 0 is the start of the line.

    Attributes
    ----------
    forward : (blocks + 1,) float64
        Variance of each border given everything to its left.
    smoothed : (blocks + 1,) float64
        Variance of each border given everything.
    follow : (blocks + 1,) float64
        How far border i follows a change of border i + 1: their covariance over the
        variance of the latter.
    """

    forward: FloatArray
    smoothed: FloatArray
    follow: FloatArray


@kernel
def _tree_variances(
    variances: FloatArray, roots: IntArray, parents: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    blocks = roots.size - 1
    known = np.empty(parents.size)
    family = np.zeros(parents.size)
    before = np.zeros(parents.size)
    for block in range(blocks):
        shift = blocks - block - 1
        root = roots[block]
        for node in range(roots[block + 1] - 1, root, -1):
            own = variances[node + shift]
            spread = family[node]
            known[node] = own if spread == 0.0 else own * (spread / (own + spread))
            family[parents[node]] += known[node]
        known[root] = family[root] if family[root] > 0.0 else UNKNOWN
        total = 0.0
        for node in range(root + 1, roots[block + 1]):
            if parents[node] != parents[node - 1] or node == root + 1:
                total = 0.0
            before[node] = total
            total += known[node]
    return known, family, before


@kernel
def _chain_variances(
    borders: FloatArray, blocks: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    count = blocks.size
    forward = np.zeros(count + 1)
    smoothed = np.zeros(count + 1)
    follow = np.zeros(count + 1)
    for block in range(count):
        ahead = forward[block] + blocks[block]
        # The product of the two over their sum, in an order that keeps its digits.
        forward[block + 1] = borders[block] * (ahead / (ahead + borders[block]))
    smoothed[count] = forward[count]
    for block in range(count - 1, -1, -1):
        ahead = forward[block] + blocks[block]
        gain = forward[block] / ahead
        follow[block] = gain
        own = forward[block] * (blocks[block] / ahead)
        smoothed[block] = own + gain * gain * smoothed[block + 1]
    return forward, smoothed, follow


@kernel
def _upward(
    noisy: FloatArray,
    variances: FloatArray,
    family: FloatArray,
    roots: IntArray,
    parents: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Estimate each node from its own subtree, and return the sums over children."""
    blocks = roots.size - 1
    fit = np.zeros(parents.size)
    children = np.zeros(parents.size)
    for block in range(blocks):
        shift = blocks - block - 1
        for node in range(roots[block + 1] - 1, roots[block], -1):
            value = noisy[node + shift]
            spread = family[node]
            if spread > 0.0:
                total = variances[node + shift] + spread
                value = value * (spread / total)
                value += children[node] * (variances[node + shift] / total)
            fit[node] = value
            children[parents[node]] += value
    return fit, children


@kernel
def _borders(
    noisy: FloatArray,
    variances: FloatArray,
    inside: FloatArray,
    estimates: FloatArray,
    forward: FloatArray,
    follow: FloatArray,
) -> FloatArray:
    """Return the totals up to each border, given all; blocks by their own trees."""
    blocks = estimates.size
    border = np.zeros(blocks + 1)
    for block in range(blocks):
        guess = border[block] + estimates[block]
        ahead = forward[block] + inside[block]
        own = variances[block]
        if own == 0.0:
            border[block + 1] = noisy[block]
        else:
            gain = ahead / (ahead + own)
            border[block + 1] = guess + gain * (noisy[block] - guess)
    for block in range(blocks - 1, -1, -1):
        guess = border[block] + estimates[block]
        border[block] += follow[block] * (border[block + 1] - guess)
    return border


@kernel
def _downward(
    border: FloatArray,
    known: FloatArray,
    family: FloatArray,
    fit: FloatArray,
    children: FloatArray,
    roots: IntArray,
    parents: IntArray,
) -> None:
    """Share, in place, what each parent knows better than the sum of its children."""
    for block in range(roots.size - 1):
        root = roots[block]
        fit[root] = border[block + 1] - border[block]
        for node in range(root + 1, roots[block + 1]):
            parent = parents[node]
            share = known[node] / family[parent]
            fit[node] += share * (fit[parent] - children[parent])


@kernel
def _lower_bounds(
    noisy: FloatArray, variances: FloatArray, roots: IntArray, parents: IntArray
) -> FloatArray:
    """Return what exact nodes at and below each node say, 0 without any."""
    blocks = roots.size - 1
    low = np.zeros(parents.size)
    for block in range(blocks):
        shift = blocks - block - 1
        for node in range(roots[block + 1] - 1, roots[block], -1):
            if variances[node + shift] <= EXACT:
                low[node] = max(noisy[node + shift], 0.0)
            low[parents[node]] += low[node]
    return low


@kernel
def _settle_blocks(
    fit: FloatArray,
    known: FloatArray,
    low: FloatArray,
    roots: IntArray,
    parents: IntArray,
) -> None:
    """Settle all families, in place, from the totals of the blocks down."""
    for block in range(roots.size - 1):
        begin = roots[block] + 1
        while begin < roots[block + 1]:
            end = begin + 1
            while end < roots[block + 1] and parents[end] == parents[begin]:
                end += 1
            settle_family(fit, known, low, fit[parents[begin]], begin, end)
            begin = end


class BlockEstimates(NamedTuple):
    """Least squares up to the borders; inside the blocks from each subtree alone.

    Attributes
    ----------
    borders : (blocks + 1,) float64
        Totals up to the end of each block, given all measurements; 0 first.
    fit, known, low : (nodes,) float64
        Estimate of each node from its own subtree, its variance, and the least that
        exact nodes allow for it.
    """

    borders: FloatArray
    fit: FloatArray
    known: FloatArray
    low: FloatArray


def usable_variances(variances: FloatArray, trees: BlockTrees) -> FloatArray:
    """Return usable variances: borders may be exact, nothing is infinite."""
    array = np.ascontiguousarray(variances, dtype=np.float64)
    if array.shape != (trees.rows,) or not (array >= 0.0).all():
        raise InputError(
            f"variances holds one number, 0 or more, for each of the {trees.rows} rows "
            f"of these trees; got an array of shape {array.shape}"
        )
    bounded = np.minimum(array, UNKNOWN)
    nodes = bounded[trees.blocks :]
    np.maximum(nodes, EXACT, out=nodes)
    return bounded


def tree_variances(variances: FloatArray, trees: BlockTrees) -> TreeVariances:
    """Return how well each tree knows its nodes, in O(nodes).

    Parameters
    ----------
    variances : (rows,) float64
        Variance of each row, borders first; infinity: not measured, 0: exact.
    trees : BlockTrees
        The shape.
    """
    bounded = usable_variances(variances, trees)
    return TreeVariances(*_tree_variances(bounded, trees.roots, trees.parents))


def chain_variances(
    variances: FloatArray, trees: BlockTrees, inside: TreeVariances
) -> ChainVariances:
    """Return how well the borders are known from all measurements, in O(blocks).

    Parameters
    ----------
    variances, trees
        As for `tree_variances`.
    inside : TreeVariances
        What it returned.
    """
    borders = usable_variances(variances, trees)[: trees.blocks]
    return ChainVariances(*_chain_variances(borders, inside.known[trees.roots[:-1]]))


def hierarchy_least_squares(
    noisy: AnyArray, variances: FloatArray, trees: BlockTrees
) -> FloatArray:
    """Return the generalised least-squares estimate of every cell, in O(cells).

    Parameters
    ----------
    noisy : (rows,) float64 or int64
        Measured totals: up to the end of each block, then of each node below a root;
        0 where not measured.
    variances : (rows,) float64
        Variance of each measurement; infinity: not measured, 0: exact.
    trees : BlockTrees
        The shape.

    Returns
    -------
    (cells,) float64
        Cells that the measurements leave open share what their nearest fixed ancestor
        has left over.

    Examples
    --------
    >>> from blowfish_fast.kernels.tree.block_trees import trees_over_blocks
    >>> trees = trees_over_blocks(np.array([0, 2, 4]), np.array([2, 2]))
    >>> noisy = np.array([3.0, 10.0, 1.0, 2.0, 4.0, 3.0])
    >>> exact_total = np.array([1.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    >>> hierarchy_least_squares(noisy, exact_total, trees)
    array([1., 2., 4., 3.])
    """
    noisy, bounded = _usable(noisy, variances, trees)
    inside = tree_variances(bounded, trees)
    fit, children = _upward(noisy, bounded, inside.family, trees.roots, trees.parents)
    border = _chained(noisy, bounded, children, inside, trees)
    _downward(
        border, inside.known, inside.family, fit, children, trees.roots, trees.parents
    )
    return fit[trees.leaves]


def block_estimates(
    noisy: AnyArray, variances: FloatArray, trees: BlockTrees
) -> BlockEstimates:
    """Return borders given everything, and nodes given their own subtree, in O(cells).

    Arguments as for `hierarchy_least_squares`; `settle_blocks` goes on from here.
    """
    noisy, bounded = _usable(noisy, variances, trees)
    inside = tree_variances(bounded, trees)
    fit, children = _upward(noisy, bounded, inside.family, trees.roots, trees.parents)
    border = _chained(noisy, bounded, children, inside, trees)
    low = _lower_bounds(noisy, bounded, trees.roots, trees.parents)
    return BlockEstimates(border, fit, inside.known, low)


def settle_blocks(
    totals: FloatArray, estimates: BlockEstimates, trees: BlockTrees
) -> FloatArray:
    """Return non-negative cells whose blocks have these totals, in O(cells).

    Every family is settled given its parent, from the blocks down, as in `top_down`.

    Parameters
    ----------
    totals : (blocks,) float64
        Of each block; at least what exact nodes inside it say.
    estimates : BlockEstimates
        From `block_estimates`.
    trees : BlockTrees
        The shape.
    """
    fit = estimates.fit.copy()
    fit[trees.roots[:-1]] = totals
    _settle_blocks(fit, estimates.known, estimates.low, trees.roots, trees.parents)
    return fit[trees.leaves]


def _usable(
    noisy: AnyArray, variances: FloatArray, trees: BlockTrees
) -> tuple[FloatArray, FloatArray]:
    """Return measured totals and usable variances, checked."""
    noisy = np.ascontiguousarray(noisy, dtype=np.float64)
    bounded = usable_variances(variances, trees)
    if noisy.shape != bounded.shape:
        raise InputError(
            f"noisy holds one number for each of the {trees.rows} rows of these trees; "
            f"got an array of shape {noisy.shape}"
        )
    return noisy, bounded


def _chained(
    noisy: FloatArray,
    bounded: FloatArray,
    children: FloatArray,
    inside: TreeVariances,
    trees: BlockTrees,
) -> FloatArray:
    """Return the totals up to each border, given all measurements."""
    chain = chain_variances(bounded, trees, inside)
    roots = trees.roots[:-1]
    return _borders(
        noisy,
        bounded,
        inside.known[roots],
        children[roots],
        chain.forward,
        chain.follow,
    )
