"""Whole numbers that add up at all levels of a tree, each next to its fit.

Every leaf is cut into a whole number and a fraction, and the fraction is still *open*.
Below each node exactly one leaf stays open: the node hands it, with its fraction, to
the node above. Where the open leaves of two children meet, with fractions f and g, one
coin decides between them:

    f + g < 1    one leaf stays open with f + g, the other gets nothing more:
                 the first stays open with chance f / (f + g)
    f + g >= 1   one leaf gets a record, the other stays open with f + g - 1:
                 the first gets the record with chance (1 - g) / (2 - f - g)

At the root the last open leaf gets a record with chance f.

Four leaves below two nodes, and the root above these:

    8.00 root           3/4 + 1/4 = 1       one open leaf gets a record, nothing is open
     |
     +- 3.75 node       1/2 + 1/4 = 3/4     one of its leaves stays open, with 3/4
     |   +- 2.50 leaf   2 records, 1/2 open
     |   +- 1.25 leaf   1 record,  1/4 open
     |
     +- 4.25 node       3/4 + 1/2 = 5/4     one gets a record, the other keeps 1/4 open
         +- 0.75 leaf   0 records, 3/4 open
         +- 3.50 leaf   3 records, 1/2 open

The records that are decided below a node and its open fraction add up to its fit. So a
node ends with the floor or the ceiling of its fit, and with its fit in the mean (Lemma
NE4, ``docs/proofs/nested.md``). Fractions are whole numbers of 2^-32, so that no record
is lost by rounding. A node whose total is known exactly closes its leaf with what is
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
"""Bits of a coin. A coin is multiplied by at most 2^32, and the product must stay below
2^63, where whole numbers of 64 bits with a sign end."""


@kernel
def _decide(
    leaves: FloatArray,
    exact: BoolArray,
    totals: IntArray,
    coins: IntArray,
    first_child: IntArray,
) -> IntArray:
    """Return the whole number of every node, children before their parents.

    Parameters
    ----------
    leaves : ndarray of float64, shape (nodes,)
        The fit of every leaf; what stands at other nodes is not read.
    exact : ndarray of bool, shape (nodes,)
        Which totals are known.
    totals : ndarray of int64, shape (nodes,)
        The known totals; what stands at other nodes is not read.
    coins : ndarray of int64, shape (nodes,)
        Uniform draws from 0 to 2^31 - 1. A coin below c * 2^31 has the chance c; both
        sides are multiplied by the denominator of c, so that nothing is divided.
    first_child : ndarray of int64, shape (nodes + 1,)
        Where the children of each node begin, as in `Tree`.

    Returns
    -------
    ndarray of int64, shape (nodes,)
        The whole numbers.
    """
    nodes = leaves.size
    whole = np.zeros(nodes, dtype=np.int64)
    # Of every node: records that are decided below it; its open leaf; that leaf's
    # fraction, in parts of 2^-32.
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
