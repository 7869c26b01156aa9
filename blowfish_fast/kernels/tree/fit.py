"""Exact least squares on a tree of noisy totals, in linear time.

Going up, the totals of a node's children add, and the sum is averaged with the node's
own measurement, each weighed by the other's variance. Going down, what a parent knows
better than its children is shared among them by variance. A subtree that its
measurements do not fix carries *minus the number of its free leaves* as a variance.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .shape import Tree


@kernel
def _deepest_nodes(first_child: IntArray) -> int:
    """Return how many nodes come before the first one that has children."""
    return int(np.searchsorted(first_child, 0, side="right")) - 1


@kernel
def subtree_variances(variances: FloatArray, first_child: IntArray) -> FloatArray:
    """Return the variance of each total given all measurements at and below it."""
    known = np.empty(variances.size)
    deepest = _deepest_nodes(first_child)
    for leaf in range(deepest):
        own = variances[leaf]
        known[leaf] = own if own < np.inf else -1.0
    for node in range(deepest, variances.size):
        own = variances[node]
        begin, end = first_child[node], first_child[node + 1]
        if begin == end:
            known[node] = own if own < np.inf else -1.0
            continue
        spread = 0.0
        free = 0.0
        for child in range(begin, end):
            if known[child] < 0.0:
                free -= known[child]
            else:
                spread += known[child]
        if free > 0.0:
            known[node] = own if own < np.inf else -free
        elif own < np.inf and own + spread > 0.0:
            # The smaller of the two is multiplied by a number in [1/2, 1], so
            # neither a huge nor a tiny partner costs a digit.
            low = min(own, spread)
            known[node] = low * (max(own, spread) / (own + spread))
        else:
            known[node] = spread
    return known


@kernel
def fit_upward(
    noisy: FloatArray, variances: FloatArray, known: FloatArray, first_child: IntArray
) -> FloatArray:
    """Estimate each node from its own subtree alone; free leaves count as 0."""
    fit = np.empty(noisy.size)
    deepest = _deepest_nodes(first_child)
    for leaf in range(deepest):
        fit[leaf] = noisy[leaf] if known[leaf] >= 0.0 else 0.0
    for node in range(deepest, noisy.size):
        begin, end = first_child[node], first_child[node + 1]
        if begin == end:
            fit[node] = noisy[node] if known[node] >= 0.0 else 0.0
            continue
        spread = 0.0
        total = 0.0
        free = False
        for child in range(begin, end):
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
def _leaves_below(node: int, first_child: IntArray) -> int:
    """Count the leaves below a node, level by level."""
    begin, end = node, node + 1
    leaves = 0
    while begin < end:
        for one in range(begin, end):
            if first_child[one] == first_child[one + 1]:
                leaves += 1
        begin, end = first_child[begin], first_child[end]
    return leaves


@kernel
def fit_downward(fit: FloatArray, known: FloatArray, first_child: IntArray) -> None:
    """Share, in place, what each parent knows better than the sum of its children."""
    for node in range(fit.size - 1, _deepest_nodes(first_child) - 1, -1):
        begin, end = first_child[node], first_child[node + 1]
        if begin == end:
            continue
        spread = 0.0
        free = 0.0
        total = 0.0
        loosest = begin
        largest = known[begin]
        for child in range(begin, end):
            variance = known[child]
            total += fit[child]
            if variance < 0.0:
                free -= variance
            else:
                spread += variance
            # Which child is loosest is a coin toss: select rather than branch.
            loosest = child if variance > largest else loosest
            largest = variance if variance > largest else largest
        surplus = fit[node] - total
        if free > 0.0:
            # Fixed children are already at their best: the free leaves fit any
            # remainder, and equal parts have the least norm.
            for child in range(begin, end):
                if known[child] < 0.0:
                    fit[child] += surplus * (-known[child] / free)
        elif spread > 0.0:
            # The loosest child takes the remainder. Its own estimate and its share
            # may be huge and of opposite sign; their sum would lose the digits.
            rest = 0.0
            for child in range(begin, end):
                value = fit[child] + surplus * (known[child] / spread)
                fit[child] = value
                rest += value if child != loosest else 0.0
            fit[loosest] = fit[node] - rest
        elif surplus != 0.0:
            # Exact children contradict an exact ancestor, or differ by a rounding:
            # the ancestor wins, leaf by leaf.
            covered = _leaves_below(node, first_child)
            for child in range(begin, end):
                part = _leaves_below(child, first_child)
                fit[child] += surplus * (part / covered)


def tree_fit(noisy: AnyArray, variances: FloatArray, tree: Tree) -> FloatArray:
    """Return the least-squares estimate of every node, consistent, in O(nodes).

    A variance of infinity means not measured, 0 exact; of exact values that contradict
    each other the ancestor wins. Leaves that the measurements leave open share the
    remainder of their nearest fixed ancestor equally, or are 0 without one: the
    solution of least norm.

    >>> from blowfish_fast.kernels import regular_tree
    >>> tree_fit(np.array([1.0, 0.0, 0.0]), np.ones(3), regular_tree(2, 2)).round(3)
    array([ 0.667, -0.333,  0.333])
    """
    noisy = tree.numbers(noisy, "noisy")
    variances = tree.numbers(variances, "variances")
    if variances.min() < 0:
        raise InputError(f"variances must not be negative; received {variances.min()}")
    known = subtree_variances(variances, tree.first_child)
    fit = fit_upward(noisy, variances, known, tree.first_child)
    fit_downward(fit, known, tree.first_child)
    return tree.by_row(fit)
