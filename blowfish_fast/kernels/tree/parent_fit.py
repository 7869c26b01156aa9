"""Exact least squares on a tree of any form, in linear time.

Serves the strategy over irregular trees. The rules are those of `tree_inference`, for
nodes laid out as in `parent_tree`: going up, the children's totals add and are averaged
with the node's own measurement, each weighed by the other's variance; going down, what
a parent knows better than its children is shared among them by variance.

    noisy       0           up    3/8           down    3/8       every variance 1:
            .5  .5  .5         .5  .5  .5            1/8 each     0 * 3/4 + 1.5 * 1/4

A variance of infinity means "not measured", zero "known exactly". A node whose subtree
does not fix its total carries *minus the number of its free leaves* for a variance.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .parent_tree import ParentTree


@kernel
def known_variances(
    variances: FloatArray, parents: IntArray, leaves: int
) -> FloatArray:
    """Return how well each node's total is known from its own subtree, in O(nodes).

    Parameters
    ----------
    variances : (nodes,) float64
        Variance of each measurement; infinity: not measured, 0: exact.
    parents : (nodes,) int64
        As in `ParentTree`.
    leaves : int
        Number of leaves.

    Returns
    -------
    (nodes,) float64
        The variance of the node's total given all measurements at and below it; minus
        the number of free leaves below it where these do not fix the total.
    """
    nodes = variances.size
    known = np.zeros(nodes)
    free = np.zeros(nodes)
    for node in range(nodes):
        own = variances[node]
        if node < leaves:
            known[node] = own if own < np.inf else -1.0
        elif free[node] > 0.0:
            known[node] = own if own < np.inf else -free[node]
        elif own < np.inf and own + known[node] > 0.0:
            # The smaller of the two is multiplied by a number in [1/2, 1], so neither
            # a huge nor a tiny partner costs a digit.
            low = min(own, known[node])
            known[node] = low * (max(own, known[node]) / (own + known[node]))
        above = parents[node]
        if above >= 0:
            if known[node] < 0.0:
                free[above] -= known[node]
            else:
                known[above] += known[node]
    return known


@kernel
def _fit_upward(
    noisy: FloatArray,
    variances: FloatArray,
    known: FloatArray,
    pointers: IntArray,
    children: IntArray,
    leaves: int,
) -> FloatArray:
    """Estimate each node from its own subtree alone; free leaves count as 0."""
    fit = np.empty(noisy.size)
    for leaf in range(leaves):
        fit[leaf] = noisy[leaf] if known[leaf] >= 0.0 else 0.0
    for node in range(leaves, noisy.size):
        spread = 0.0
        total = 0.0
        free = False
        for place in range(pointers[node], pointers[node + 1]):
            child = children[place]
            total += fit[child]
            spread += known[child]
            free |= known[child] < 0.0
        own = variances[node]
        if own == np.inf:
            fit[node] = total
        elif free or own == 0.0:
            fit[node] = noisy[node]
        else:
            weight = own + spread
            fit[node] = noisy[node] * (spread / weight) + total * (own / weight)
    return fit


@kernel
def _fit_downward(
    fit: FloatArray,
    known: FloatArray,
    pointers: IntArray,
    children: IntArray,
    widths: IntArray,
    leaves: int,
) -> None:
    """Share, in place, what each parent knows better than the sum of its children."""
    for node in range(fit.size - 1, leaves - 1, -1):
        begin, end = pointers[node], pointers[node + 1]
        spread = 0.0
        free = 0.0
        total = 0.0
        loosest = children[begin]
        for place in range(begin, end):
            child = children[place]
            total += fit[child]
            if known[child] < 0.0:
                free -= known[child]
            else:
                spread += known[child]
            if known[child] > known[loosest]:
                loosest = child
        surplus = fit[node] - total
        if free > 0.0:
            # Fixed children are already at their best: the free leaves fit any
            # remainder, and equal parts have the least norm.
            for place in range(begin, end):
                child = children[place]
                if known[child] < 0.0:
                    fit[child] += surplus * (-known[child] / free)
        elif spread > 0.0:
            # The loosest child takes the remainder. Its own estimate and its share may
            # be huge and of opposite sign; their sum would lose the digits.
            rest = 0.0
            for place in range(begin, end):
                child = children[place]
                fit[child] += surplus * (known[child] / spread)
                rest += fit[child] if child != loosest else 0.0
            fit[loosest] = fit[node] - rest
        elif surplus != 0.0:
            # Exact children contradict an exact ancestor, or differ by a rounding: the
            # ancestor wins, leaf by leaf.
            for place in range(begin, end):
                child = children[place]
                fit[child] += surplus * (widths[child] / widths[node])


def parent_tree_fit(
    noisy: AnyArray, variances: FloatArray, tree: ParentTree
) -> FloatArray:
    """Return the least-squares estimate of every node, consistent throughout.

    Parameters
    ----------
    noisy : (nodes,) float64 or int64
        Measured totals, in the order of the tree.
    variances : (nodes,) float64
        Variance of each measurement; infinity: not measured, 0: exact.
    tree : ParentTree

    Returns
    -------
    (nodes,) float64
        Leaves that no measurement fixes share the remainder of the nearest ancestor
        that is fixed equally, and are 0 where there is none.

    Examples
    --------
    >>> from blowfish_fast.kernels.tree.parent_tree import tree_of_parents
    >>> tree = tree_of_parents(np.array([2, 2, -1]))
    >>> parent_tree_fit(np.array([1.0, 0.0, 0.0]), np.ones(3), tree).round(3)
    array([ 0.667, -0.333,  0.333])
    """
    noisy = values_of_nodes(noisy, tree, "noisy")
    variances = values_of_nodes(variances, tree, "variances")
    known = known_variances(variances, tree.parents, tree.leaves)
    fit = _fit_upward(
        noisy, variances, known, tree.pointers, tree.children, tree.leaves
    )
    widths = tree.ends - tree.starts
    _fit_downward(fit, known, tree.pointers, tree.children, widths, tree.leaves)
    return fit


def values_of_nodes(values: AnyArray, tree: ParentTree, name: str) -> FloatArray:
    """Return one contiguous float64 per node, or refuse."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != (tree.nodes,):
        raise InputError(
            f"{name} holds one number per node, here {tree.nodes}; got an array of "
            f"shape {array.shape}"
        )
    return array
