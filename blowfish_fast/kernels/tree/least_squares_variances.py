"""The variance of every node of a tree after least squares, in linear time.

Going up, `subtree_variances` gives the variance V of a node from its own subtree. Going
down, a family of children with variances V_1, V_2, ... and S = V_1 + V_2 + ... below a
parent of final variance P ends with (Lemma NE3, ``docs/proofs/nested.md``)

    V_i (1 - V_i / S) + (V_i / S)^2 P

    parent measured with variance 1, two children with 1 each:
    P = 1 * 2 / (1 + 2) = 2/3,   each child   1 * 1/2 + 1/4 * 2/3 = 2/3

A child that its subtree does not fix has no V. If it is the only one in its family, it
is what the parent has beyond the others, with variance S + P; of several such children
nothing is known, and their variance is infinite.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .fit import subtree_variances
from .shape import Tree


@kernel
def _variances_down(below: FloatArray, first_child: IntArray) -> FloatArray:
    """Return the final variances, from those that each subtree gives by itself."""
    after = below.copy()
    root = after.size - 1
    if below[root] < 0.0:
        after[root] = np.inf
    for node in range(root, -1, -1):
        begin, end = first_child[node], first_child[node + 1]
        spread = 0.0
        free = 0
        for child in range(begin, end):
            if below[child] < 0.0:
                free += 1
            else:
                spread += below[child]
        for child in range(begin, end):
            if below[child] < 0.0:
                after[child] = spread + after[node] if free == 1 else np.inf
            elif free == 0 and spread > 0.0:
                part = below[child] / spread
                after[child] = below[child] * (1.0 - part) + part * part * after[node]
    return after


def node_variances(variances: FloatArray, tree: Tree) -> FloatArray:
    """Return the variance of the least-squares estimate of every node: Lemma NE3.

    Parameters
    ----------
    variances : ndarray of float64, shape (nodes,)
        Variance of each measurement, by row: infinity means not measured, 0 exact.
    tree : Tree
        The shape.

    Returns
    -------
    ndarray of float64, shape (nodes,)
        The variances, by row; infinity where the measurements do not fix a node.

    Raises
    ------
    InputError
        If a variance is negative, or there is not one per node.

    Examples
    --------
    >>> from blowfish_fast.kernels import regular_tree
    >>> node_variances(np.ones(3), regular_tree(2, 2)).round(4)
    array([0.6667, 0.6667, 0.6667])
    >>> node_variances(np.array([np.inf, 1.0, 2.0]), regular_tree(2, 2))
    array([3., 1., 2.])
    """
    by_node = tree.numbers(variances, "variances")
    if by_node.min() < 0:
        raise InputError(f"variances must not be negative; received {by_node.min()}")
    below = subtree_variances(by_node, tree.first_child)
    return tree.by_row(_variances_down(below, tree.first_child))
