"""The diagonal of the hat matrix: how far each row's fit follows its measurement.

Serves intervals of the ordered hierarchical mechanism: a bound on what the noise of one
row can do to any answer. A unit of noise on a row lifts the cells that the row counts,
lowers all others, and is shared out along the chain and down the trees:

    noise      on the node [ a b ]        cells   . . a b . .
    response                                      - - + + - -      sum of + = leverage

The leverage is the variance of the row's estimate over that of its measurement.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.kernels._jit import kernel

from .block_trees import BlockTrees
from .ordered_hierarchy_inference import (
    chain_variances,
    tree_variances,
    usable_variances,
)


@kernel
def _leverages(
    variances: FloatArray,
    known: FloatArray,
    family: FloatArray,
    smoothed: FloatArray,
    follow: FloatArray,
    roots: IntArray,
    parents: IntArray,
) -> FloatArray:
    blocks = roots.size - 1
    leverage = np.zeros(parents.size)
    # Variance of each node's estimated total.
    total = np.empty(parents.size)
    for block in range(blocks):
        root = roots[block]
        shift = blocks - block - 1
        right = smoothed[block + 1]
        if variances[block] > 0.0:
            leverage[block] = min(right / variances[block], 1.0)
        step = 1.0 - follow[block]
        rest = smoothed[block] - follow[block] * follow[block] * right
        total[root] = max(rest, 0.0) + step * step * right
        for node in range(root + 1, roots[block + 1]):
            parent = parents[node]
            share = known[node] / family[parent]
            total[node] = known[node] * (1.0 - share) + share * share * total[parent]
            leverage[node + shift] = min(total[node] / variances[node + shift], 1.0)
    return leverage


def hat_diagonal(variances: FloatArray, trees: BlockTrees) -> FloatArray:
    """Return the diagonal of the hat matrix, the leverage of every row, in O(nodes).

    It is the largest coefficient that the row's noise can have in the answer to a
    query whose own coefficients lie in [0, 1].

    Parameters
    ----------
    variances : (rows,) float64
        Variance of each row, borders first; infinity: not measured, 0: exact.
    trees : BlockTrees
        The shape.

    Returns
    -------
    (rows,) float64
        Between 0 and 1; 0 for exact borders.

    Examples
    --------
    >>> from blowfish_fast.kernels.tree.block_trees import trees_over_blocks
    >>> trees = trees_over_blocks(np.array([0, 2]), np.array([2]))
    >>> hat_diagonal(np.array([0.0, 1.0, 1.0]), trees)
    array([0. , 0.5, 0.5])
    """
    bounded = usable_variances(variances, trees)
    inside = tree_variances(bounded, trees)
    chain = chain_variances(bounded, trees, inside)
    return _leverages(
        bounded,
        inside.known,
        inside.family,
        chain.smoothed,
        chain.follow,
        trees.roots,
        trees.parents,
    )
