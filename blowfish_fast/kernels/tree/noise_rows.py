"""What the noise of each node lets through to an answer: one row of sums per node.

A pull of 1 on a node (``spread`` has the words) reaches its noise and its subtree's:

    row of a node:   share   keep  |  own noise alone: five  |  whole subtree: five

The five are the sum of variances, of squared scales, the largest scale, the sum of
squared coefficients, and the unscaled width of the largest row. Unless the tree is
binary, six more columns each follow for all earlier siblings and all later ones.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.kernels._jit import helper, kernel

from .fit import subtree_variances
from .shape import Tree

Sums = tuple[float, float, float, float, float]

SHARE = 0
KEEP = 1
OWN = 2
WHOLE = 7
BESIDE = 12


@helper
def add_noise(
    sums: Sums, rows: FloatArray, node: int, column: int, pull: float
) -> Sums:
    """Add the noise in five columns of a node's row, under one pull."""
    variance, square, largest, steps, width = sums
    both = pull * pull
    reach = rows[node, column + 2] * abs(pull)
    width = rows[node, column + 4] if reach > largest else width
    largest = reach if reach > largest else largest
    variance += rows[node, column] * both
    square += rows[node, column + 1] * both
    steps += rows[node, column + 3] * both
    return variance, square, largest, steps, width


@kernel
def surplus_shares(
    known: FloatArray, first_child: IntArray, widths: IntArray
) -> FloatArray:
    """Return the part of its parent's surplus that each node takes, as the fit does."""
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
def _fill_rows(
    rows: FloatArray,
    variances: FloatArray,
    scales: FloatArray,
    known: FloatArray,
    shares: FloatArray,
    squares: FloatArray,
    first_child: IntArray,
) -> None:
    """Fill all columns but those of siblings."""
    for node in range(variances.size):
        own = variances[node]
        gain = 1.0
        keep = 0.0
        spread = 0.0
        free = False
        below = (0.0, 0.0, 0.0, 0.0, 0.0)
        for child in range(first_child[node], first_child[node + 1]):
            free |= known[child] < 0.0
            spread += known[child]
            below = add_noise(below, rows, child, WHOLE, 1.0)
        if first_child[node] < first_child[node + 1]:
            if own == np.inf:
                keep = 1.0
            elif own > 0.0 and not free:
                keep = own / (own + spread)
                gain = spread / (own + spread)
        if 0.0 < own < np.inf:
            rows[node, OWN] = gain * gain * own
            rows[node, OWN + 1] = (gain * scales[node]) ** 2
            rows[node, OWN + 2] = gain * scales[node]
            rows[node, OWN + 3] = gain * gain * squares[node]
            rows[node, OWN + 4] = scales[node]
        rows[node, SHARE] = shares[node]
        rows[node, KEEP] = keep
        rows[node, WHOLE] = rows[node, OWN] + keep * keep * below[0]
        rows[node, WHOLE + 1] = rows[node, OWN + 1] + keep * keep * below[1]
        louder = keep * below[2] > rows[node, OWN + 2]
        rows[node, WHOLE + 2] = keep * below[2] if louder else rows[node, OWN + 2]
        rows[node, WHOLE + 3] = rows[node, OWN + 3] + keep * keep * below[3]
        rows[node, WHOLE + 4] = below[4] if louder else rows[node, OWN + 4]


@kernel
def _add_siblings(rows: FloatArray, first_child: IntArray) -> None:
    """Fill the columns of earlier and of later siblings, from either side."""
    for node in range(rows.shape[0]):
        begin, end = first_child[node], first_child[node + 1]
        for column in (BESIDE, BESIDE + 6):
            sums = (0.0, 0.0, 0.0, 0.0, 0.0)
            share = 0.0
            for step in range(end - begin):
                child = begin + step if column == BESIDE else end - 1 - step
                rows[child, column] = share
                for part in range(5):
                    rows[child, column + 1 + part] = sums[part]
                share += rows[child, SHARE]
                sums = add_noise(sums, rows, child, WHOLE, 1.0)


def tree_noise(
    variances: FloatArray,
    scales: FloatArray,
    tree: Tree,
    squares: FloatArray | None = None,
) -> FloatArray:
    """Return what the spread of any query needs of each node; O(nodes), once.

    `squares`: the summed squared coefficients of a row that is itself a sum of draws.
    """
    variances = tree.numbers(variances, "variances")
    scales = tree.numbers(scales, "scales")
    each = np.ones(variances.size) if squares is None else squares
    known = subtree_variances(variances, tree.first_child)
    shares = surplus_shares(known, tree.first_child, tree.ends - tree.starts)
    wide = np.diff(tree.first_child).max() > 2
    rows = np.zeros((variances.size, 2 * BESIDE if wide else BESIDE))
    squares = tree.numbers(each, "squares")
    _fill_rows(rows, variances, scales, known, shares, squares, tree.first_child)
    if wide:
        _add_siblings(rows, tree.first_child)
    return rows
