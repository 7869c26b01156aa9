"""Where the nodes of a complete b-ary tree sit in one flat array.

Serves every kernel over the tree of DAWA's second stage: the weights of its nodes,
the inference over them, and the error of each query. Nodes are stored level by
level, leaves first and the root last; node `i` of a level has the children
``i * branching`` up to ``(i + 1) * branching`` of the level below, fewer at the
right rim, where a node may have a single child (a *unary* node, its child's copy).

    leaves = 5, branching = 2          sizes   5 3 2 1
                                       offsets 0 5 8 10 11
              10
          8        9                   9 has the one child 7,
        5   6      7                   7 has the one child 4
       0 1 2 3     4

Weights travel in two forms. The *weight* of a node scales its measurement; along
every path from the root to a leaf the weights add up to one. The *share* of a node
is the part it takes of what its ancestors left over.

    shares   root 1/4, child 1/3, leaf 1   ->   weights  1/4, 1/4, 1/2
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel


def tree_levels(leaves: int, branching: int) -> tuple[IntArray, IntArray]:
    """Return how many nodes each level has, and where each level begins.

    Parameters
    ----------
    leaves : int
        Number of leaves, at least 1.
    branching : int
        Largest number of children of a node, at least 2.

    Returns
    -------
    sizes : (levels,) int64
        Level 0 holds the leaves; the last level holds the root alone. A single
        leaf is its own root.
    offsets : (levels + 1,) int64
        Node `i` of level `l` sits at ``offsets[l] + i``; the last entry is the
        number of nodes.

    Examples
    --------
    >>> tree_levels(5, 2)
    (array([5, 3, 2, 1]), array([ 0,  5,  8, 10, 11]))
    """
    sizes = [int(leaves)]
    fan = int(branching)
    if not 1 <= sizes[0] < 2**62 or not 2 <= fan < 2**62:
        raise InputError(
            "a tree needs at least one leaf and a branching of at least two, both "
            f"below 2^62; got leaves={leaves} and branching={branching}"
        )
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // fan))
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return np.array(sizes, dtype=np.int64), offsets


def shift_of(branching: int) -> int:
    """Return the shift that divides by `branching`; 0 if it is no power of two."""
    return branching.bit_length() - 1 if branching & (branching - 1) == 0 else 0


@kernel
def weights_from_shares(
    shares: FloatArray, sizes: IntArray, offsets: IntArray, branching: int
) -> FloatArray:
    """Return the weights of the nodes that take these shares, in O(nodes).

    Parameters
    ----------
    shares : (nodes,) float64
        Part of the remaining weight that each node takes; ignored on leaves,
        which take all that is left.
    sizes, offsets : int64
        The layout, from `tree_levels`.
    branching : int
        Largest number of children of a node.

    Returns
    -------
    (nodes,) float64
        Weights; every path from the root to a leaf adds up to one.
    """
    weights = np.ones(shares.size)
    for level in range(sizes.size - 1, 0, -1):
        below = offsets[level - 1]
        for index in range(sizes[level]):
            node = offsets[level] + index
            remaining = weights[node]
            weights[node] = shares[node] * remaining
            left = (1.0 - shares[node]) * remaining
            last = min((index + 1) * branching, sizes[level - 1])
            for child in range(below + index * branching, below + last):
                weights[child] = left
    return weights


@kernel
def shares_from_weights(
    weights: FloatArray, sizes: IntArray, offsets: IntArray, branching: int
) -> FloatArray:
    """Return the shares behind node weights; the inverse of `weights_from_shares`.

    Sums run upwards along the first child of each node, so nothing cancels, and
    weights that add up to any other constant along every path are accepted.
    Leaves have share one, also those that nothing was left for.
    """
    remaining = weights.copy()
    shares = np.ones(weights.size)
    for level in range(1, sizes.size):
        for index in range(sizes[level]):
            node = offsets[level] + index
            remaining[node] += remaining[offsets[level - 1] + index * branching]
            if remaining[node] > 0.0:
                shares[node] = weights[node] / remaining[node]
    return shares
