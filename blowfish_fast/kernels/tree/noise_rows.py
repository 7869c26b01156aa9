"""What the noise of each node lets through to an answer: one row of sums per node.

Serves ``spread`` and ``moments``. A pull of 1 on a node reaches its own noise and, by
the keeps on the way, that of its whole subtree:

    row of a node:   share   keep  |  own noise alone: five  |  whole subtree: five

The five columns are the sum of variances, the sum of squared scales, the largest scale,
the sum of squared coefficients, and the unscaled width of the row that is largest.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.kernels._jit import kernel

from .fit import subtree_variances
from .shape import Tree

SHARE = 0
KEEP = 1
OWN = 2
WHOLE = 7
COLUMNS = 12


@kernel
def surplus_shares(
    known: FloatArray, first_child: IntArray, widths: IntArray
) -> FloatArray:
    """Return the part of its parent's surplus that each node takes, as the fit does.

    Free leaves take everything, else variances decide, else (all exact) the number of
    leaves. The root has 1.
    """
    shares = np.ones(known.size)
    for node in range(known.size):
        begin, end = first_child[node], first_child[node + 1]
        free = 0.0
        spread = 0.0
        for child in range(begin, end):
            if known[child] < 0.0:
                free -= known[child]
            else:
                spread += known[child]
        for child in range(begin, end):
            if free > 0.0:
                shares[child] = max(-known[child], 0.0) / free
            elif spread > 0.0:
                shares[child] = known[child] / spread
            else:
                shares[child] = widths[child] / widths[node]
    return shares


@kernel
def _noise_rows(
    variances: FloatArray,
    scales: FloatArray,
    known: FloatArray,
    squares: FloatArray,
    first_child: IntArray,
    starts: IntArray,
    ends: IntArray,
) -> FloatArray:
    """Return the row of every node, shape (nodes, 12); see the module docstring."""
    rows = np.zeros((variances.size, COLUMNS))
    rows[variances.size - 1, SHARE] = 1.0
    for node in range(variances.size):
        own = variances[node]
        gain = 1.0
        keep = 0.0
        spread = 0.0
        free = 0.0
        variance = 0.0
        square = 0.0
        largest = 0.0
        steps = 0.0
        width = 0.0
        for child in range(first_child[node], first_child[node + 1]):
            if known[child] < 0.0:
                free -= known[child]
            else:
                spread += known[child]
            variance += rows[child, WHOLE]
            square += rows[child, WHOLE + 1]
            steps += rows[child, WHOLE + 3]
            if rows[child, WHOLE + 2] > largest:
                largest = rows[child, WHOLE + 2]
                width = rows[child, WHOLE + 4]
        for child in range(first_child[node], first_child[node + 1]):
            # The same shares as in `surplus_shares`.
            if free > 0.0:
                rows[child, SHARE] = max(-known[child], 0.0) / free
            elif spread > 0.0:
                rows[child, SHARE] = known[child] / spread
            else:
                part = ends[child] - starts[child]
                rows[child, SHARE] = part / (ends[node] - starts[node])
        if first_child[node] < first_child[node + 1]:
            if own == np.inf:
                keep = 1.0
            elif own > 0.0 and free == 0.0:
                keep = own / (own + spread)
                gain = spread / (own + spread)
        if 0.0 < own < np.inf:
            rows[node, OWN] = gain * gain * own
            rows[node, OWN + 1] = (gain * scales[node]) ** 2
            rows[node, OWN + 2] = gain * scales[node]
            rows[node, OWN + 3] = gain * gain * squares[node]
            rows[node, OWN + 4] = scales[node]
        rows[node, KEEP] = keep
        rows[node, WHOLE] = rows[node, OWN] + keep * keep * variance
        rows[node, WHOLE + 1] = rows[node, OWN + 1] + keep * keep * square
        louder = keep * largest > rows[node, OWN + 2]
        rows[node, WHOLE + 2] = keep * largest if louder else rows[node, OWN + 2]
        rows[node, WHOLE + 3] = rows[node, OWN + 3] + keep * keep * steps
        rows[node, WHOLE + 4] = width if louder else rows[node, OWN + 4]
    return rows


def tree_noise(
    variances: FloatArray,
    scales: FloatArray,
    tree: Tree,
    squares: FloatArray | None = None,
) -> FloatArray:
    """Return what the spread of any query needs of each node; O(nodes), once.

    `squares` is the sum of squared coefficients of the draws in each row, where a row
    is a sum of several; 1 by default.
    """
    variances = tree.numbers(variances, "variances")
    scales = tree.numbers(scales, "scales")
    each = np.ones(variances.size) if squares is None else squares
    known = subtree_variances(variances, tree.first_child)
    squares = tree.numbers(each, "squares")
    shape = (tree.first_child, tree.starts, tree.ends)
    return _noise_rows(variances, scales, known, squares, *shape)
