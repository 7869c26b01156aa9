"""Whole numbers that add up at all levels of a tree, each next to its fit.

Every leaf is cut into a whole number and a fraction. Each node hands one *open* leaf,
with one fraction, to the node above; everything else below it is decided. In a family,
two open leaves with fractions f and g are decided against each other:

    f + g < 1    one stays open with f + g: the first with chance f / (f + g)
    f + g >= 1   one gets a record, the other stays open with f + g - 1:
                 the first gets it with chance (1 - g) / (2 - f - g)

    leaves 2.5  1.25 | 0.75  3.5        4.25 below the first node, all of them 8
           2 + 1/2, 1 + 1/4             f + g = 3/4: one of both stays open with 3/4
                       0 + 3/4, 3 + 1/2 f + g = 5/4: one gets a record, 1/4 stays open
           3/4 and 1/4                  f + g = 1: one gets a record, nothing is open

What is decided below a node, plus its open fraction, is always its fit. So a node ends
with the floor or the ceiling of its fit, which is its mean (Lemma NE4,
``docs/proofs/nested.md``). Fractions are whole numbers of 2^-32, so that no record is
lost by rounding; a node whose total is known exactly closes its leaf with what is
missing, at most one record.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .shape import Tree

ONE = 1 << 32
"""Parts of a record: 2^32."""

COIN_BITS = 31
"""Bits of a coin: its product with a fraction stays below 2^63."""


@kernel
def _decide(
    leaves: FloatArray,
    exact: BoolArray,
    totals: IntArray,
    coins: IntArray,
    first_child: IntArray,
) -> IntArray:
    """Return the whole number of every node; `leaves` holds values at leaf nodes."""
    nodes = leaves.size
    whole = np.zeros(nodes, dtype=np.int64)
    decided = np.zeros(nodes, dtype=np.int64)
    leaf = np.empty(nodes, dtype=np.int64)
    part = np.empty(nodes, dtype=np.int64)
    for node in range(nodes):
        begin, end = first_child[node], first_child[node + 1]
        if begin == end:
            whole[node] = np.int64(np.floor(leaves[node]))
            decided[node] = whole[node]
            leaf[node] = node
            part[node] = np.int64((leaves[node] - whole[node]) * ONE)
        else:
            first = leaf[begin]
            f = part[begin]
            below = decided[begin]
            for child in range(begin + 1, end):
                second, g, coin = leaf[child], part[child], coins[child]
                both = f + g
                below += decided[child]
                if both < ONE:
                    if coin * both >= f << COIN_BITS:
                        first = second
                    f = both
                else:
                    if coin * (2 * ONE - both) < (ONE - g) << COIN_BITS:
                        whole[first] += 1
                        first = second
                    else:
                        whole[second] += 1
                    below += 1
                    f = both - ONE
            leaf[node] = first
            part[node] = f
            decided[node] = below
        if exact[node]:
            # The fraction is 0, but for the rounding of the leaves below.
            whole[leaf[node]] += totals[node] - decided[node]
            decided[node] = totals[node]
            part[node] = 0
    root = nodes - 1
    if coins[root] * ONE < part[root] << COIN_BITS:
        whole[leaf[root]] += 1
    for node in range(nodes):
        for child in range(first_child[node], first_child[node + 1]):
            whole[node] += whole[child]
    return whole


def whole_families(
    fit: FloatArray, exact: BoolArray, tree: Tree, generator: np.random.Generator
) -> IntArray:
    """Return whole totals of every node that add up, each next to its fit: Lemma NE4.

    Parameters
    ----------
    fit : ndarray of float64, shape (nodes,)
        Totals of 0 or more, by row, each the sum of those below it.
    exact : ndarray of bool, shape (nodes,)
        Which totals are known, and whole but for rounding, by row.
    tree : Tree
        The shape.
    generator : numpy.random.Generator
        Tosses the coins.

    Returns
    -------
    ndarray of int64, shape (nodes,)
        Whole numbers of 0 or more, by row; those of exact rows are their totals.

    Raises
    ------
    InputError
        If a leaf is negative, or an array does not hold one number per node.

    Examples
    --------
    >>> from blowfish_fast.kernels import regular_tree
    >>> fit, known = np.array([1.5, 2.5, 4.0]), np.array([False, False, True])
    >>> coins = np.random.default_rng(1)
    >>> whole = whole_families(fit, known, regular_tree(2, 2), coins)
    >>> int(whole[0] + whole[1]), int(whole[2])
    (4, 4)
    """
    by_node = tree.numbers(fit, "fit")
    values = by_node[tree.leaf_nodes]
    if values.min() < 0.0:
        raise InputError(
            "whole numbers are made of a fit without negative cells; received "
            f"{values.min():g}"
        )
    flags = tree.by_node(np.ascontiguousarray(exact, dtype=np.bool_))
    totals = np.rint(by_node).astype(np.int64)
    coins = generator.integers(0, 1 << COIN_BITS, size=tree.nodes)
    whole = _decide(by_node, flags, totals, coins, tree.first_child)
    return tree.by_row(whole)
