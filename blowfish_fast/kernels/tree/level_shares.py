"""Shares of the budget along a tree whose nodes matter more or less: closed form.

Every node is to be measured by itself, with weight w and variance 1 / w^q (q = 2 for
Laplace noise, q = 1 in rho), and weights add up to 1 along every path. The least sum of
cost times variance is worked out from the leaves up, the shares from the root down
(Lemma NE2, ``docs/proofs/nested.md``):

    e(v)        the least sum within the subtree of v, if its paths have weight 1
    r(v)        its p-th root, where p = q + 1;  a leaf has r(v) = c(v)^(1/p)

    r(v) = c(v)^(1/p) + (sum of e over the children of v)^(1/p)
    share of v in what the nodes above it left = c(v)^(1/p) / r(v)

A top and its two leaves, with Laplace noise, q = 2 and p = 3:

    costs of top, leaf, leaf    r(top)                       share of the top    e(top)
    0, 1, 1                     0       + 2^(1/3)            0                        2
    2, 1, 1                     2^(1/3) + 2^(1/3)            1/2                     16

In the second row all three weights are 1/2, and every variance is 4: the sum of cost
times variance is 2 x 4 + 1 x 4 + 1 x 4 = 16.

A node with an only child stands for the same records. It hands its cost to the child,
so that they are measured once with both shares: two measurements of weight w know as
much as a single one of weight w times the square root of 2 (q = 2), and 2 w was paid.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.kernels._jit import kernel

from .shape import Tree


@kernel
def _handed_down(costs: FloatArray, first_child: IntArray) -> None:
    """Move, in place, the cost of each node with an only child to that child.

    Children have smaller numbers than their parent, so counting down goes from the top
    to the leaves, and a cost passes along a whole chain of only children.
    """
    for node in range(costs.size - 1, -1, -1):
        if first_child[node + 1] - first_child[node] == 1:
            costs[first_child[node]] += costs[node]
            costs[node] = 0.0


@kernel
def _shared(costs: FloatArray, first_child: IntArray, degree: float) -> FloatArray:
    """Return the weights of nodes for these costs, in O(nodes).

    The degree is p at the head of this file. The first pass goes from the leaves up and
    finds shares, the second from the top down and turns them into weights.
    """
    nodes = costs.size
    least_sums = np.zeros(nodes)
    shares = np.zeros(nodes)
    for node in range(nodes):
        sum_below = 0.0
        for child in range(first_child[node], first_child[node + 1]):
            sum_below += least_sums[child]
        own_root = costs[node] ** (1.0 / degree)
        root_below = sum_below ** (1.0 / degree)
        least_sums[node] = (own_root + root_below) ** degree
        # Where nothing below costs anything either, this would be 0 / 0.
        shares[node] = own_root / (own_root + root_below) if own_root > 0.0 else 0.0
    weights = np.zeros(nodes)
    left = np.ones(nodes)
    for node in range(nodes - 1, -1, -1):
        weights[node] = shares[node] * left[node]
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
        1 for noise in epsilon, where q = 2 at the head of this file; 2 for noise in
        rho, where q = 1.

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
    The rows of this tree are its two leaves, then its top. A top whose total nobody
    asks for is not measured.

    >>> from blowfish_fast.kernels import regular_tree
    >>> shared_weights(np.array([1.0, 1.0, 2.0]), regular_tree(2, 2), 1).round(3)
    array([0.5, 0.5, 0.5])
    >>> shared_weights(np.array([1.0, 1.0, 0.0]), regular_tree(2, 2), 1)
    array([1., 1., 0.])
    """
    by_node = tree.numbers(costs, "costs").copy()
    _handed_down(by_node, tree.first_child)
    degree = 3.0 if power == 1 else 2.0
    weights = _shared(by_node, tree.first_child, degree)
    return tree.by_row(weights)
