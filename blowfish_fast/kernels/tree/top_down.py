"""Non-negative, consistent totals on a tree, and even ones where it is sparse.

Going up, each node is estimated from its own subtree alone, as in `fit`. Going down,
the children of a settled node are the closest that add up to its total and stay above
their bounds, what exact nodes say below them (Lemma TD2, ``docs/proofs/top_down.md``).
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.kernels._jit import kernel

from .fit import fit_upward, subtree_variances
from .shape import Tree

FREE = 2.0**200
"""Variance of a leaf that nothing fixes: it takes up what is left."""


@kernel
def settle_family(
    fit: FloatArray,
    known: FloatArray,
    low: FloatArray,
    total: float,
    begin: int,
    end: int,
) -> None:
    """Move the siblings `begin` to `end`, in place, to the closest with this total.

    A child that falls below its bound is set to it, which only lowers the others, so it
    never comes back. O(children) a round.
    """
    left = total
    spread = 0.0
    loosest = begin
    largest = -1.0
    falls = False
    for child in range(begin, end):
        left -= fit[child]
        spread += known[child]
        loosest = child if known[child] > largest else loosest
        largest = known[child] if known[child] > largest else largest
    if spread == 0.0:
        if left != 0.0:
            _scale_to(fit, total, begin, end)
        return
    rest = 0.0
    for child in range(begin, end):
        value = fit[child] + left * (known[child] / spread)
        rest += value if child != loosest else 0.0
        falls |= child != loosest and value < low[child]
    if not falls and total - rest >= low[loosest]:
        # Least squares as it is; the loosest child takes the remainder.
        for child in range(begin, end):
            fit[child] += left * (known[child] / spread)
        fit[loosest] = total - rest
        return
    least = 0.0
    for child in range(begin, end):
        least += low[child]
    if least >= total:
        for child in range(begin, end):
            fit[child] = low[child]
        if least > total:
            _scale_to(fit, total, begin, end)
        return
    _project(fit, known, low, total, begin, end)


@kernel
def _project(
    fit: FloatArray,
    known: FloatArray,
    low: FloatArray,
    total: float,
    begin: int,
    end: int,
) -> None:
    """Find the children that rest on their bounds, and share what is left."""
    bound = np.zeros(end - begin, dtype=np.bool_)
    falls = True
    while falls:
        falls = False
        left = total
        spread = 0.0
        for child in range(begin, end):
            if bound[child - begin] or known[child] == 0.0:
                left -= low[child]
            else:
                left -= fit[child]
                spread += known[child]
        for child in range(begin, end):
            if bound[child - begin] or known[child] == 0.0:
                continue
            if fit[child] + left * (known[child] / spread) < low[child]:
                bound[child - begin] = True
                falls = True
    loosest = -1
    rest = 0.0
    for child in range(begin, end):
        if bound[child - begin] or known[child] == 0.0:
            fit[child] = low[child]
        else:
            fit[child] += left * (known[child] / spread)
            if loosest < 0 or known[child] > known[loosest]:
                loosest = child
    for child in range(begin, end):
        rest += fit[child] if child != loosest else 0.0
    if loosest >= 0:
        # Its estimate and its share may be huge and of opposite sign.
        fit[loosest] = max(low[loosest], total - rest)


@kernel
def _scale_to(fit: FloatArray, total: float, begin: int, end: int) -> None:
    """Scale exact siblings that contradict an exact ancestor: the ancestor wins."""
    found = 0.0
    for child in range(begin, end):
        found += fit[child]
    for child in range(begin, end):
        if found > 0.0:
            fit[child] *= total / found
        else:
            fit[child] = total / (end - begin)


@kernel
def _bounds(fit: FloatArray, known: FloatArray, first_child: IntArray) -> FloatArray:
    """Return what exact nodes at and below each node say, 0 without any."""
    low = np.zeros(fit.size)
    for node in range(fit.size):
        if known[node] == 0.0:
            low[node] = max(fit[node], 0.0)
        else:
            for child in range(first_child[node], first_child[node + 1]):
                low[node] += low[child]
    return low


@kernel
def _settle(
    fit: FloatArray, known: FloatArray, low: FloatArray, first_child: IntArray
) -> None:
    """Settle all families of a tree, from the root down."""
    for node in range(known.size):
        if known[node] < 0.0:
            known[node] *= -FREE
    for node in range(fit.size - 1, -1, -1):
        begin, end = first_child[node], first_child[node + 1]
        if begin < end:
            settle_family(fit, known, low, fit[node], begin, end)


def lower_bounds(noisy: AnyArray, variances: FloatArray, tree: Tree) -> FloatArray:
    """Return the least that exact nodes allow for each node; as `top_down_fit`."""
    noisy, variances = (
        tree.numbers(noisy, "noisy"),
        tree.numbers(variances, "variances"),
    )
    return tree.by_row(_bounds(noisy, variances, tree.first_child))


def top_down_fit(
    noisy: AnyArray,
    variances: FloatArray,
    tree: Tree,
    settled: tuple[IntArray, FloatArray] | None = None,
) -> FloatArray:
    """Return non-negative, consistent totals of every node, settled from the root down.

    Variances as for `tree_fit`. Nodes in `settled` (rows, totals) are decided already:
    the root and nodes that hang below each other, at least the `lower_bounds`. O(nodes)
    for each round of a family; there are few.
    """
    noisy = tree.numbers(noisy, "noisy")
    variances = tree.numbers(variances, "variances")
    known = subtree_variances(variances, tree.first_child)
    fit = fit_upward(noisy, variances, known, tree.first_child)
    low = _bounds(fit, known, tree.first_child)
    fit[-1] = max(fit[-1], low[-1])
    if settled is not None:
        nodes, totals = settled
        fit[nodes] = low[nodes] = totals
        known[nodes] = 0.0
    _settle(fit, known, low, tree.first_child)
    return tree.by_row(fit)


@kernel
def _prune(
    fit: FloatArray,
    thresholds: FloatArray,
    parents: IntArray,
    children: IntArray,
    leaf_nodes: IntArray,
    sizes: IntArray,
) -> FloatArray:
    nodes = parents.size
    highest = np.zeros(nodes)
    for leaf in range(leaf_nodes.size):
        highest[leaf_nodes[leaf]] = thresholds[leaf]
    for node in range(nodes - 1):
        highest[parents[node]] = max(highest[parents[node]], highest[node])
    values = fit.copy()
    cut = np.zeros(nodes, dtype=np.bool_)
    for node in range(nodes - 1, -1, -1):
        above = parents[node]
        if above >= 0 and cut[above]:
            cut[node] = True
            values[node] = values[above] * (sizes[node] / sizes[above])
        elif children[node] < children[node + 1] and values[node] < highest[node]:
            cut[node] = True
    return values[leaf_nodes]


def pruned_leaves(
    fit: FloatArray, thresholds: FloatArray, tree: Tree, edges: IntArray
) -> FloatArray:
    """Return the leaves of a fitted tree, even below every node of a small total.

    A node is cut if its total in `fit`, consistent, lies below the largest of the
    `thresholds` among its leaves; its cells share it. `edges`, rising from 0, are the
    cell edges of the leaves. O(nodes).
    """
    fit = tree.numbers(fit, "fit")
    sizes = edges[tree.ends] - edges[tree.starts]
    return _prune(
        fit, thresholds, tree.parents, tree.first_child, tree.leaf_nodes, sizes
    )
