"""Budget allocation to the nodes of an irregular tree: each path adds up to one.

Serves trees over space whose paths have different lengths. A node wants some number of
times what its parent wants; of what the nodes above it left over, it takes its part of
all wants from itself down to the deepest leaf below it:

    wants     1                 parts   1/(1+2+4)         weights   1/7
           2     2                   2/(2+4)  2/2                2/7   6/7
         4   4                       1    1                   4/7  4/7

so that every path adds up to 1, and a branch that ends early gives its leaf more.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel


@kernel
def _allocate(parents: IntArray, growth: FloatArray) -> FloatArray:
    nodes = parents.size
    # All wants from a node down, its own being 1.
    below = np.zeros(nodes)
    for node in range(nodes - 1, 0, -1):
        below[node] += 1.0
        above = parents[node]
        below[above] = max(below[above], growth[above] * below[node])
    below[0] += 1.0
    weights = np.empty(nodes)
    left = np.ones(nodes)
    for node in range(nodes):
        if node > 0:
            left[node] = left[parents[node]]
        weights[node] = left[node] / below[node]
        left[node] -= weights[node]
    return weights


def allocate_budget(parents: IntArray, growth: FloatArray) -> FloatArray:
    """Allocate a budget of 1 to the nodes along every path from the root to a leaf.

    `parents` come before their children, -1 at the first, the root; each child of a
    node wants its `growth`, positive, times what the node wants. O(nodes).
    """
    parents = np.ascontiguousarray(parents, dtype=np.int64)
    growth = np.ascontiguousarray(growth, dtype=np.float64)
    if parents.ndim != 1 or parents.size == 0 or parents.shape != growth.shape:
        raise InputError(
            "parents and growth hold one number per node; received shapes "
            f"{parents.shape} and {growth.shape}"
        )
    before = parents < np.arange(parents.size)
    if parents[0] != -1 or not before.all() or parents[1:].min(initial=0) < 0:
        raise InputError(
            "every node comes after its parent, and the root is the first and only "
            "node with parent -1"
        )
    return _allocate(parents, growth)
