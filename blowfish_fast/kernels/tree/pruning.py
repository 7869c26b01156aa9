"""Spread the total of sparse boxes evenly instead of trusting the noise below them.

Serves the trees over space, after least squares. A box with few records holds little
that its children could tell beyond their noise, so the tree is cut there and the cells
below share the box's total by their number:

    fit     9                 threshold 5       9
         8     1                             8     1        1 < 5: cut, cells share it
       8   0  3  -2                        8   0  .5  .5

Totals above a cut stay as they are, so the result is still consistent. Nodes are laid
out as in `shape`.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .shape import Tree


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

    A node is cut if its total in `fit` (consistent, as from ``fit.tree_fit``) lies
    below the largest of the `thresholds` among its leaves; `edges`, rising from 0, are
    the cell edges of the leaves. O(nodes).
    """
    fit = tree.numbers(fit, "fit")
    thresholds = np.ascontiguousarray(thresholds, dtype=np.float64)
    edges = np.ascontiguousarray(edges, dtype=np.int64)
    leaves = tree.leaves
    if thresholds.shape != (leaves,) or edges.shape != (leaves + 1,):
        raise InputError(
            f"a tree of {leaves} leaves needs a threshold per leaf and {leaves + 1} "
            f"edges; received shapes {thresholds.shape} and {edges.shape}"
        )
    sizes = edges[tree.ends] - edges[tree.starts]
    return _prune(
        fit, thresholds, tree.parents, tree.first_child, tree.leaf_nodes, sizes
    )
