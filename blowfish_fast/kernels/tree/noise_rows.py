"""What the noise of each node lets through to an answer: a row of sums.

A pull of 1 on a node reaches its own noise and, by the keeps on the way, that of its
whole subtree (``spread`` has the words):

    row:   share   keep  |  own noise alone: five  |  whole subtree: five
           share and five of all earlier siblings  |  the same of all later ones

The five are the sum of variances, of squared scales, the largest scale, the sum of
squared coefficients, and the unscaled width of the largest row. A leaf with variance 8
and Laplace scale 2 has the five numbers 8, 4, 2, 1, 2.

Subtrees that are alike share rows: a tree with one scale per level and a million nodes
has a few dozen. The sums of earlier and later siblings are kept, because all siblings
on one side of an end of a range have the same pull.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.kernels._jit import helper, kernel

from .fit import subtree_variances
from .shape import Tree

Sums = tuple[float, float, float, float, float]
# By node: variance and scale of its noise, the squared coefficients in it, its variance
# given its subtree, and its share of what its parent knows better.
Noise = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]

SHARE = 0
KEEP = 1
OWN = 2
WHOLE = 7
EARLIER = 12
LATER = 18
COLUMNS = 24

# An odd number whose bits are mixed, to scatter what is alike in most bits.
SCATTER = 0x1E3779B97F4A7C15
LOW_BITS = 2**62 - 1


class NodeRows(NamedTuple):
    """The rows of sums, and which row each node has.

    Attributes
    ----------
    rows : ndarray of float64, shape (rows, 24)
        The columns `SHARE`, `KEEP`, `OWN` (five), `WHOLE` (five), `EARLIER` (six) and
        `LATER` (six).
    row_of : ndarray, shape (nodes,)
        The row of each node, int32; siblings have consecutive rows.
    """

    rows: FloatArray
    row_of: AnyArray


@helper
def add_noise(sums: Sums, rows: FloatArray, row: int, column: int, pull: float) -> Sums:
    """Add the noise in five columns of a row, under one pull.

    Parameters
    ----------
    sums : Sums
        The five sums so far: variance, square, largest, steps and width.
    rows : ndarray of float64, shape (rows, 24)
        The rows of `NodeRows`.
    row : int
        Which row.
    column : int
        The first of the five columns.
    pull : float
        How far the answer follows the node.

    Returns
    -------
    Sums
        The five sums with this noise added.
    """
    variance, square, largest, steps, width = sums
    both = pull * pull
    reach = rows[row, column + 2] * abs(pull)
    width = rows[row, column + 4] if reach > largest else width
    largest = reach if reach > largest else largest
    variance += rows[row, column] * both
    square += rows[row, column + 1] * both
    steps += rows[row, column + 3] * both
    return variance, square, largest, steps, width


@kernel
def _share(below: FloatArray, begin: int, end: int, shares: FloatArray) -> None:
    """Write the part that each of some siblings takes of their parent's surplus."""
    free = 0.0
    spread = 0.0
    for child in range(begin, end):
        if below[child] < 0.0:
            free -= below[child]
        else:
            spread += below[child]
    for child in range(begin, end):
        if free > 0.0:
            shares[child] = max(-below[child], 0.0) / free
        elif spread > 0.0:
            shares[child] = below[child] / spread
        else:
            # All are exact: there is no surplus, and no noise that a part would reach.
            shares[child] = 1.0 / (end - begin)


@kernel
def surplus_shares(below: FloatArray, first_child: IntArray) -> FloatArray:
    """Return the part of its parent's surplus that each node takes, as the fit does.

    Parameters
    ----------
    below : ndarray of float64, shape (nodes,)
        What `subtree_variances` returned.
    first_child : ndarray of int64, shape (nodes + 1,)
        Where the children of each node begin.

    Returns
    -------
    ndarray of float64, shape (nodes,)
        The shares; those of siblings add up to 1. The root has 1.
    """
    shares = np.ones(below.size)
    for node in range(below.size):
        _share(below, first_child[node], first_child[node + 1], shares)
    return shares


@kernel
def _alike(
    first_node: int,
    second_node: int,
    words: IntArray,
    kinds: AnyArray,
    first_child: IntArray,
) -> bool:
    """Return whether two nodes have the same noise, and children of the same kinds."""
    first, second = first_child[first_node], first_child[second_node]
    children = first_child[first_node + 1] - first
    same = children == first_child[second_node + 1] - second
    for column in range(words.shape[0]):
        same = same and words[column, first_node] == words[column, second_node]
    for child in range(children if same else 0):
        same = same and kinds[first + child] == kinds[second + child]
    return bool(same)


@kernel
def subtree_kinds(words: IntArray, first_child: IntArray) -> tuple[AnyArray, AnyArray]:
    """Return the kind of each node's subtree, and the first node of each kind.

    Two nodes are of one kind if they have the same words and children of the same
    kinds. A hash table of the kinds met so far makes it O(nodes); sorting would cost
    more.

    Parameters
    ----------
    words : ndarray of int64, shape (columns, nodes)
        What a node is told apart by, none negative.
    first_child : ndarray of int64, shape (nodes + 1,)
        Where the children of each node begin.

    Returns
    -------
    kinds : ndarray, shape (nodes,)
        The kind of each node, int32, numbered as they are met.
    firsts : ndarray, shape (kinds,)
        The first node of each kind, int32.
    """
    nodes = first_child.size - 1
    size = 1
    while size < 2 * nodes:
        size *= 2
    table = np.full(size, -1, dtype=np.int32)
    kinds = np.empty(nodes, dtype=np.int32)
    firsts = np.empty(nodes, dtype=np.int32)
    count = 0
    for node in range(nodes):
        if node > 0 and _alike(node - 1, node, words, kinds, first_child):
            kinds[node] = kinds[node - 1]
            continue
        place = first_child[node + 1] - first_child[node]
        for column in range(words.shape[0]):
            place = ((int(place) ^ int(words[column, node])) * SCATTER) & LOW_BITS
            place ^= place >> 29
        for child in range(first_child[node], first_child[node + 1]):
            place = ((int(place) ^ int(kinds[child])) * SCATTER) & LOW_BITS
            place ^= place >> 29
        place &= size - 1
        while table[place] >= 0 and not _alike(
            firsts[table[place]], node, words, kinds, first_child
        ):
            place = (place + 1) & (size - 1)
        if table[place] < 0:
            table[place] = count
            firsts[count] = node
            count += 1
        kinds[node] = table[place]
    return kinds, firsts[:count].copy()


@kernel
def _fill_row(
    rows: FloatArray,
    row: int,
    node: int,
    first_row_below: int,
    noise: Noise,
    first_child: IntArray,
) -> None:
    """Fill a row but for its siblings.

    The rows of its children begin at `first_row_below`.
    """
    variances, scales, squares, below, shares = noise
    own, scale = variances[node], scales[node]
    begin, end = first_child[node], first_child[node + 1]
    gain = 1.0
    keep = 0.0
    spread = 0.0
    free = False
    sums = (0.0, 0.0, 0.0, 0.0, 0.0)
    for child in range(begin, end):
        free |= below[child] < 0.0
        spread += below[child]
        sums = add_noise(sums, rows, first_row_below + child - begin, WHOLE, 1.0)
    if begin < end:
        if own == np.inf:
            keep = 1.0
        elif own > 0.0 and not free:
            keep = own / (own + spread)
            gain = spread / (own + spread)
    if 0.0 < own < np.inf:
        rows[row, OWN] = gain * gain * own
        rows[row, OWN + 1] = (gain * scale) ** 2
        rows[row, OWN + 2] = gain * scale
        rows[row, OWN + 3] = gain * gain * squares[node]
        rows[row, OWN + 4] = scale
    rows[row, SHARE] = shares[node]
    rows[row, KEEP] = keep
    rows[row, WHOLE] = rows[row, OWN] + keep * keep * sums[0]
    rows[row, WHOLE + 1] = rows[row, OWN + 1] + keep * keep * sums[1]
    louder = keep * sums[2] > rows[row, OWN + 2]
    rows[row, WHOLE + 2] = keep * sums[2] if louder else rows[row, OWN + 2]
    rows[row, WHOLE + 3] = rows[row, OWN + 3] + keep * keep * sums[3]
    rows[row, WHOLE + 4] = sums[4] if louder else rows[row, OWN + 4]


@kernel
def _add_siblings(rows: FloatArray, begin: int, end: int) -> None:
    """Fill the columns of earlier and of later siblings in the rows of one family."""
    for column in (EARLIER, LATER):
        sums = (0.0, 0.0, 0.0, 0.0, 0.0)
        share = 0.0
        for step in range(end - begin):
            row = begin + step if column == EARLIER else end - 1 - step
            rows[row, column] = share
            for part in range(5):
                rows[row, column + 1 + part] = sums[part]
            share += rows[row, SHARE]
            sums = add_noise(sums, rows, row, WHOLE, 1.0)


@kernel
def _fill_rows(
    kinds: AnyArray, firsts: AnyArray, noise: Noise, first_child: IntArray
) -> tuple[FloatArray, AnyArray]:
    """Return a row for every child of a kind and for the root, and those of nodes."""
    begins = np.zeros(firsts.size + 1, dtype=np.int64)
    for kind in range(firsts.size):
        children = first_child[firsts[kind] + 1] - first_child[firsts[kind]]
        begins[kind + 1] = begins[kind] + children
    last = begins[firsts.size]
    rows = np.zeros((last + 1, COLUMNS))
    noise[4][-1] = 1.0
    for kind in range(firsts.size):
        begin, end = begins[kind], begins[kind + 1]
        first = first_child[firsts[kind]]
        _share(noise[3], first, first + end - begin, noise[4])
        for row in range(begin, end):
            node = first + row - begin
            _fill_row(rows, row, node, begins[kinds[node]], noise, first_child)
        _add_siblings(rows, begin, end)
    root = kinds.size - 1
    _fill_row(rows, last, root, begins[kinds[root]], noise, first_child)
    row_of = np.empty(kinds.size, dtype=np.int32)
    row_of[root] = last
    for node in range(kinds.size):
        begin = first_child[node]
        for child in range(begin, first_child[node + 1]):
            row_of[child] = begins[kinds[node]] + child - begin
    return rows, row_of


def tree_noise(
    variances: FloatArray,
    scales: FloatArray,
    tree: Tree,
    squares: FloatArray | None = None,
) -> NodeRows:
    """Return what the spread of any query needs of each node; O(nodes), once.

    Parameters
    ----------
    variances : ndarray of float64, shape (nodes,)
        Variance of each measurement, by row; infinity: not measured, 0: exact.
    scales : ndarray of float64, shape (nodes,)
        Laplace scale of each measurement, by row; ignored where exact or not measured.
    tree : Tree
        The shape.
    squares : ndarray of float64, shape (nodes,), optional
        For measurements that are sums of several draws, the sum of the squared
        coefficients of these; 1 for each by default.

    Returns
    -------
    NodeRows
        The rows of sums.
    """
    variances = tree.numbers(variances, "variances")
    scales = tree.numbers(scales, "scales")
    told_by = [variances, scales]
    if squares is None:
        squares = np.ones(variances.size)
    else:
        squares = tree.numbers(squares, "squares")
        told_by.append(squares)
    words = np.stack(told_by).view(np.int64)
    kinds, firsts = subtree_kinds(words, tree.first_child)
    below = subtree_variances(variances, tree.first_child)
    # The shares are worked out for the first subtree of each kind.
    noise = (variances, scales, squares, below, np.empty(below.size))
    return NodeRows(*_fill_rows(kinds, firsts, noise, tree.first_child))
