"""Exact least squares on a tree of noisy totals, in linear time.

Serves the weighted trees of DAWA's second stage and of the hierarchical mechanisms:
every node was measured with a variance of its own, and the best consistent leaves
are wanted. Nodes are laid out as in `tree_shape`, leaves first and the root last.

Going up, a node meets its children once: their totals add, and the sum is averaged
with the node's own measurement, each weighed by the other's variance. Going down,
what a parent knows better than its children is shared among them by variance.

    noisy     0          up    1/3         down    1/3       every variance 1:
           .5   .5           .5   .5            1/6   1/6    (2 * 0 + 1 * 1) / 3 = 1/3

A variance of infinity means "not measured", zero means "known exactly". A subtree
without enough measurements to fix its total has free leaves, which take up the
remainder of the nearest ancestor that is fixed. Such a node carries *minus the
number of its free leaves* in place of a variance: one array tells both.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .tree_shape import tree_levels


@kernel
def subtree_variances(
    variances: FloatArray, sizes: IntArray, offsets: IntArray, branching: int
) -> FloatArray:
    """Return how well each node's total is known from its own subtree, in O(nodes).

    Parameters
    ----------
    variances : (nodes,) float64
        Variance of each measurement; infinity: not measured, 0: exact.
    sizes, offsets : int64
        The shape, from `tree_levels`.
    branching : int
        Largest number of children.

    Returns
    -------
    (nodes,) float64
        The variance of the node's total given all measurements at and below it; minus
        the number of free leaves below it where these do not fix the total.
    """
    known = np.empty(variances.size)
    for leaf in range(sizes[0]):
        own = variances[leaf]
        known[leaf] = own if own < np.inf else -1.0
    for level in range(1, sizes.size):
        below = known[offsets[level - 1] : offsets[level]]
        here = known[offsets[level] : offsets[level + 1]]
        measured = variances[offsets[level] : offsets[level + 1]]
        for node in range(here.size):
            first = node * branching
            spread = 0.0
            free = 0.0
            for child in range(first, min(first + branching, below.size)):
                if below[child] < 0.0:
                    free -= below[child]
                else:
                    spread += below[child]
            own = measured[node]
            if free > 0.0:
                here[node] = own if own < np.inf else -free
            elif own < np.inf and own + spread > 0.0:
                # The smaller of the two is multiplied by a number in [1/2, 1], so
                # neither a huge nor a tiny partner costs a digit.
                low = min(own, spread)
                here[node] = low * (max(own, spread) / (own + spread))
            else:
                here[node] = spread
    return known


@kernel
def _fit_upward(
    noisy: FloatArray,
    variances: FloatArray,
    known: FloatArray,
    offsets: IntArray,
    branching: int,
) -> FloatArray:
    """Estimate each node from its own subtree alone; free leaves count as 0."""
    fit = np.empty(noisy.size)
    for leaf in range(offsets[1]):
        fit[leaf] = noisy[leaf] if known[leaf] >= 0.0 else 0.0
    for level in range(1, offsets.size - 1):
        known_below = known[offsets[level - 1] : offsets[level]]
        below = fit[offsets[level - 1] : offsets[level]]
        here = fit[offsets[level] : offsets[level + 1]]
        values = noisy[offsets[level] : offsets[level + 1]]
        measured = variances[offsets[level] : offsets[level + 1]]
        for node in range(here.size):
            first = node * branching
            spread = 0.0
            total = 0.0
            free = False
            for child in range(first, min(first + branching, below.size)):
                total += below[child]
                spread += known_below[child]
                free |= known_below[child] < 0.0
            own = measured[node]
            if own == np.inf:
                here[node] = total
            elif free or own == 0.0:
                here[node] = values[node]
            else:
                weight = own + spread
                here[node] = values[node] * (spread / weight) + total * (own / weight)
    return fit


@kernel
def _fit_downward(
    fit: FloatArray, known: FloatArray, offsets: IntArray, branching: int
) -> None:
    """Share, in place, what each parent knows better than the sum of its children."""
    leaves = offsets[1]
    for level in range(offsets.size - 2, 0, -1):
        width = 1
        for _ in range(level - 1):
            width *= branching
        known_below = known[offsets[level - 1] : offsets[level]]
        below = fit[offsets[level - 1] : offsets[level]]
        here = fit[offsets[level] : offsets[level + 1]]
        for node in range(here.size):
            first = node * branching
            end = min(first + branching, below.size)
            spread = 0.0
            free = 0.0
            total = 0.0
            loosest = first
            largest = known_below[first]
            for child in range(first, end):
                variance = known_below[child]
                total += below[child]
                if variance < 0.0:
                    free -= variance
                else:
                    spread += variance
                # Which child is loosest is a coin toss: select rather than branch.
                loosest = child if variance > largest else loosest
                largest = variance if variance > largest else largest
            surplus = here[node] - total
            if free > 0.0:
                # Fixed children are already at their best: the free leaves fit any
                # remainder, and equal parts have the least norm.
                for child in range(first, end):
                    if known_below[child] < 0.0:
                        below[child] += surplus * (-known_below[child] / free)
            elif spread > 0.0:
                # The loosest child takes the remainder. Its own estimate and its share
                # may be huge and of opposite sign; their sum would lose the digits.
                rest = 0.0
                for child in range(first, end):
                    value = below[child] + surplus * (known_below[child] / spread)
                    below[child] = value
                    rest += value if child != loosest else 0.0
                below[loosest] = here[node] - rest
            elif surplus != 0.0:
                # Exact children contradict an exact ancestor, or differ by a rounding:
                # the ancestor wins, leaf by leaf.
                covered = min(end * width, leaves) - first * width
                for child in range(first, end):
                    part = min((child + 1) * width, leaves) - child * width
                    below[child] += surplus * (part / covered)


@kernel
def _add_upward(totals: IntArray, offsets: IntArray, branching: int) -> None:
    for level in range(1, offsets.size - 1):
        below = totals[offsets[level - 1] : offsets[level]]
        here = totals[offsets[level] : offsets[level + 1]]
        for node in range(here.size):
            first = node * branching
            total = 0
            for child in range(first, min(first + branching, below.size)):
                total += below[child]
            here[node] = total


def tree_totals(leaf_counts: IntArray, branching: int) -> IntArray:
    """Return the exact total of every node, in O(nodes).

    Parameters
    ----------
    leaf_counts : (leaves,) int64
        Count of each leaf.
    branching : int
        Largest number of children, at least 2.

    Returns
    -------
    (nodes,) int64
        Leaves first, root last.

    Examples
    --------
    >>> tree_totals(np.array([1, 2, 3]), 2)
    array([1, 2, 3, 3, 3, 6])
    """
    leaf_counts = np.asarray(leaf_counts, dtype=np.int64)
    if leaf_counts.ndim != 1:
        raise InputError(
            "leaf counts are one-dimensional, got an array of shape "
            f"{leaf_counts.shape}; flatten it in the order of the leaves"
        )
    _, offsets = tree_levels(leaf_counts.size, branching)
    totals = np.empty(offsets[-1], dtype=np.int64)
    totals[: leaf_counts.size] = leaf_counts
    _add_upward(totals, offsets, branching)
    return totals


def node_array(values: AnyArray, nodes: int, name: str) -> FloatArray:
    """Return `values` as contiguous float64 after checking that each node has one."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != (nodes,):
        raise InputError(
            f"{name} holds one number per node of the tree, here {nodes}; got an array "
            f"of shape {array.shape}. See `tree_levels` for the order of nodes"
        )
    return array


def tree_fit(
    noisy: AnyArray, variances: FloatArray, leaves: int, branching: int
) -> FloatArray:
    """Return the least-squares estimate of every node, consistent, in O(nodes).

    Parameters
    ----------
    noisy : (nodes,) float64 or int64
        Measured totals, leaves first, root last; ignored where not measured.
    variances : (nodes,) float64
        Variance of each measurement; infinity: not measured, 0: exact. Exact values
        that contradict each other are allowed: the ancestor wins.
    leaves, branching : int
        The shape of the tree.

    Returns
    -------
    (nodes,) float64
        The generalised least-squares totals. Leaves that the measurements leave open
        share the remainder of their nearest fixed ancestor equally, or are 0 without
        one (the solution of least norm).

    Examples
    --------
    >>> tree_fit(np.array([1.0, 0.0, 0.0]), np.ones(3), 2, 2).round(3)
    array([ 0.667, -0.333,  0.333])
    """
    sizes, offsets = tree_levels(leaves, branching)
    nodes = int(offsets[-1])
    noisy = node_array(noisy, nodes, "noisy")
    variances = node_array(variances, nodes, "variances")
    if variances.min() < 0:
        raise InputError(f"variances must not be negative; received {variances.min()}")
    known = subtree_variances(variances, sizes, offsets, branching)
    fit = _fit_upward(noisy, variances, known, offsets, branching)
    _fit_downward(fit, known, offsets, branching)
    return fit


def tree_least_squares(
    noisy: AnyArray, variances: FloatArray, leaves: int, branching: int
) -> FloatArray:
    """Return the least-squares estimate of the leaves alone; see `tree_fit`.

    Parameters
    ----------
    noisy : (nodes,) float64 or int64
        Measured totals, leaves first, root last.
    variances : (nodes,) float64
        Variance of each measurement; infinity: not measured, 0: exact.
    leaves, branching : int
        The shape of the tree.

    Returns
    -------
    (leaves,) float64

    Examples
    --------
    >>> tree_least_squares(np.array([0.5, 0.5, 0.0]), np.ones(3), 2, 2).round(3)
    array([0.167, 0.167])
    """
    # A copy, so that the estimates above the leaves are freed.
    return tree_fit(noisy, variances, leaves, branching)[: int(leaves)].copy()
