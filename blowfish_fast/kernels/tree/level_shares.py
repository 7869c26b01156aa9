"""Shares of the budget along a tree whose nodes matter more or less: closed form.

Every node is to be measured by itself, with weight w and variance 1 / w^q (q = 2 for
Laplace noise, q = 1 in rho), and weights add up to 1 along every path. The least sum of
cost times variance is worked out from the leaves up, the shares from the root down
(Lemma NE2, ``docs/proofs/nested.md``):

    root(v) = c(v)^(1/p) + (sum over children of root^p)^(1/p),    p = q + 1
    share of v in what is left to it = c(v)^(1/p) / root(v)

    costs 0, 1, 1 with p = 3:      root 0, its leaves 1 and 1
                                   root(top) = 0 + 2^(1/3), share 0: leaves get all
    costs 2, 1, 1:                 root(top) = 2^(1/3) + 2^(1/3), share 1/2

A node with an only child stands for the same records. It hands its cost to the child,
so that they are measured once with both shares: two measurements of weight w know as
much as a single one of weight w times the square root of 2, and 2 w was paid.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.kernels._jit import kernel

from .shape import Tree


@kernel
def _handed_down(costs: FloatArray, first_child: IntArray) -> None:
    """Move, in place, the cost of each node with an only child to that child."""
    for node in range(costs.size - 1, -1, -1):
        if first_child[node + 1] - first_child[node] == 1:
            costs[first_child[node]] += costs[node]
            costs[node] = 0.0


@kernel
def _shared(costs: FloatArray, first_child: IntArray, power: float) -> FloatArray:
    """Return the weights of nodes for these costs, in O(nodes)."""
    nodes = costs.size
    below = np.zeros(nodes)
    own = np.zeros(nodes)
    for node in range(nodes):
        total = 0.0
        for child in range(first_child[node], first_child[node + 1]):
            total += below[child]
        mine = costs[node] ** (1.0 / power)
        rest = total ** (1.0 / power)
        below[node] = (mine + rest) ** power
        own[node] = mine / (mine + rest) if mine > 0.0 else 0.0
    weights = np.zeros(nodes)
    left = np.ones(nodes)
    for node in range(nodes - 1, -1, -1):
        weights[node] = own[node] * left[node]
        for child in range(first_child[node], first_child[node + 1]):
            left[child] = left[node] - weights[node]
    return weights


def shared_weights(costs: FloatArray, tree: Tree, power: int) -> FloatArray:
    """Return node weights of the least sum of cost times variance: Lemma NE2.

    It takes O(nodes). Along a path weights add up to 1, or to 0 where no node of it has
    a cost; below the last node that has one they are 0.

    Parameters
    ----------
    costs : ndarray of float64, shape (nodes,)
        How much the variance of each node counts, by row, not negative.
    tree : Tree
        The shape.
    power : {1, 2}
        1 for noise in epsilon, 2 for noise in rho.

    Returns
    -------
    ndarray of float64, shape (nodes,)
        The weights, by row, from 0 to 1; 0 for a node with an only child.

    Raises
    ------
    InputError
        If there is not one cost per node.

    Examples
    --------
    >>> from blowfish_fast.kernels import regular_tree
    >>> shared_weights(np.array([1.0, 1.0, 2.0]), regular_tree(2, 2), 1).round(3)
    array([0.5, 0.5, 0.5])
    >>> shared_weights(np.array([1.0, 1.0, 0.0]), regular_tree(2, 2), 1)
    array([1., 1., 0.])
    """
    by_node = tree.numbers(costs, "costs").copy()
    _handed_down(by_node, tree.first_child)
    weights = _shared(by_node, tree.first_child, 3.0 if power == 1 else 2.0)
    return tree.by_row(weights)
