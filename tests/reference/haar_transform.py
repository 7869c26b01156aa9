"""The Haar transform as a matrix, from the definition of its tree."""

from __future__ import annotations

from functools import reduce

import numpy as np


def leaves_below(node, cells):
    """Return the leaves below a node, from left to right."""
    if node >= cells:
        return [node]
    return leaves_below(2 * node, cells) + leaves_below(2 * node + 1, cells)


def axis_matrix(cells):
    """Return one line per row of an axis: the sum, then the difference at each node."""
    column = {leaf: cell for cell, leaf in enumerate(leaves_below(1, cells))}
    matrix = np.zeros((cells, cells), dtype=np.int64)
    matrix[0] = 1
    for node in range(1, cells):
        for leaf in leaves_below(2 * node, cells):
            matrix[node, column[leaf]] = 1
        for leaf in leaves_below(2 * node + 1, cells):
            matrix[node, column[leaf]] = -1
    return matrix


def haar_matrix(shape):
    """Return the products of the axes' rows, for cells and rows in C order."""
    return reduce(np.kron, [axis_matrix(side) for side in shape])


def worst_move(rates, shape, power=1):
    """Return the largest price of a change of cell, over all pairs of cells."""
    matrix = haar_matrix(shape)
    return max(
        int((rates.reshape(-1) * np.abs(matrix[:, u] - matrix[:, v]) ** power).sum())
        for u in range(matrix.shape[1])
        for v in range(matrix.shape[1])
    )
