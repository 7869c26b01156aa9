"""The exact spread of the noise in any query answered from a fitted irregular tree.

Serves predicted errors and confidence intervals of the strategy over trees given by
parents. Coverage, pull and the row of each node are those of `tree_spread`: a query
covers a node wholly, not at all, or in part, and only the last kind is entered.

    query            |-----|             visited: the nodes that hold a border inside,
    leaves     0  1  2  3  4  5          each with its children; a child that the query
    nodes     (      )(     )   .        covers with one value stands for its subtree

Nodes are laid out as in `parent_tree`, the fit is that of `parent_fit`.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.space.interval_pieces import checked_pieces

from .parent_fit import known_variances, values_of_nodes
from .parent_tree import ParentTree

KEEP = 0
OWN = 1
WHOLE = 4
COLUMNS = 7


@kernel
def surplus_shares(
    known: FloatArray, pointers: IntArray, children: IntArray, widths: IntArray
) -> FloatArray:
    """Return the part of its parent's surplus that each node takes, as the fit does.

    Free leaves take everything, else variances decide, else (all exact) the number of
    leaves. The root has 1.
    """
    shares = np.ones(known.size)
    for node in range(known.size):
        free = 0.0
        spread = 0.0
        for place in range(pointers[node], pointers[node + 1]):
            if known[children[place]] < 0.0:
                free -= known[children[place]]
            else:
                spread += known[children[place]]
        for place in range(pointers[node], pointers[node + 1]):
            child = children[place]
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
    pointers: IntArray,
    children: IntArray,
) -> FloatArray:
    """Return the row of every node, shape (nodes, 7): keep, own noise, whole subtree.

    The two groups of three are the sum of variances, the sum of squared scales and the
    largest scale, of the noise that a pull of 1 lets through.
    """
    rows = np.zeros((variances.size, COLUMNS))
    for node in range(variances.size):
        own = variances[node]
        gain = 1.0
        keep = 0.0
        spread = 0.0
        free = False
        variance = 0.0
        square = 0.0
        largest = 0.0
        for place in range(pointers[node], pointers[node + 1]):
            child = children[place]
            spread += known[child]
            free |= known[child] < 0.0
            variance += rows[child, WHOLE]
            square += rows[child, WHOLE + 1]
            largest = max(largest, rows[child, WHOLE + 2])
        if pointers[node] < pointers[node + 1]:
            if own == np.inf:
                keep = 1.0
            elif own > 0.0 and not free:
                keep = own / (own + spread)
                gain = spread / (own + spread)
        if 0.0 < own < np.inf:
            rows[node, OWN] = gain * gain * own
            rows[node, OWN + 1] = (gain * scales[node]) ** 2
            rows[node, OWN + 2] = gain * scales[node]
        rows[node, KEEP] = keep
        rows[node, WHOLE] = rows[node, OWN] + keep * keep * variance
        rows[node, WHOLE + 1] = rows[node, OWN + 1] + keep * keep * square
        rows[node, WHOLE + 2] = max(rows[node, OWN + 2], keep * largest)
    return rows


@kernel
def _first_piece(ends: IntArray, low: int, high: int, leaf: int) -> int:
    """Return the first piece of ``[low, high)`` that ends after `leaf`."""
    while low < high:
        middle = (low + high) >> 1
        if ends[middle] > leaf:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _enter(
    node: int,
    first: IntArray,
    end: IntArray,
    pieces: tuple[int, int],
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    coverage: FloatArray,
) -> bool:
    """Write the coverage of a node that holds one value; else return True."""
    piece = _first_piece(ends, pieces[0], pieces[1], first[node])
    coverage[node] = 0.0
    if piece == pieces[1] or starts[piece] >= end[node]:
        return False
    if starts[piece] <= first[node] and ends[piece] >= end[node]:
        coverage[node] = values[piece]
        return False
    return True


@kernel
def _piece_spreads(
    rows: FloatArray,
    shares: FloatArray,
    first: IntArray,
    end: IntArray,
    pointers: IntArray,
    children: IntArray,
    queries: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Enter mixed nodes from the root, return with coverages, go down with pulls."""
    count = queries.size - 1
    nodes = shares.size
    spreads = np.zeros((3, count))
    coverage = np.zeros(nodes)
    pulls = np.zeros(nodes)
    mixed = np.zeros(nodes, dtype=np.bool_)
    entered = np.empty(nodes, dtype=np.int64)
    for query in range(count):
        pieces = (queries[query], queries[query + 1])
        root = nodes - 1
        mixed[root] = _enter(root, first, end, pieces, starts, ends, values, coverage)
        entered[0] = root
        visited = 1 if mixed[root] else 0
        head = 0
        while head < visited:
            node = entered[head]
            head += 1
            for place in range(pointers[node], pointers[node + 1]):
                child = children[place]
                mixed[child] = _enter(
                    child, first, end, pieces, starts, ends, values, coverage
                )
                if mixed[child]:
                    entered[visited] = child
                    visited += 1
        for back in range(visited - 1, -1, -1):
            node = entered[back]
            total = 0.0
            for place in range(pointers[node], pointers[node + 1]):
                total += shares[children[place]] * coverage[children[place]]
            coverage[node] = total
        pulls[root] = coverage[root]
        _add_noise(rows, root, pulls[root], mixed, spreads, query)
        for forth in range(visited):
            node = entered[forth]
            passed = rows[node, KEEP] * pulls[node]
            for place in range(pointers[node], pointers[node + 1]):
                child = children[place]
                pulls[child] = passed + (coverage[child] - coverage[node])
                _add_noise(rows, child, pulls[child], mixed, spreads, query)
    return spreads[0], spreads[1], spreads[2]


@kernel
def _add_noise(
    rows: FloatArray,
    node: int,
    pull: float,
    mixed: BoolArray,
    spreads: FloatArray,
    query: int,
) -> None:
    column = OWN if mixed[node] else WHOLE
    spreads[0, query] += rows[node, column] * (pull * pull)
    spreads[1, query] += rows[node, column + 1] * (pull * pull)
    reach = rows[node, column + 2] * abs(pull)
    spreads[2, query] = max(spreads[2, query], reach)


def parent_tree_spread(
    variances: FloatArray,
    scales: FloatArray,
    tree: ParentTree,
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the noise profile of queries that are constant on runs of leaves.

    Parameters
    ----------
    variances, scales : (nodes,) float64
        Variance and scale of each node's noise; variance infinity: not measured.
    tree : ParentTree
    pointers, starts, ends, values
        The queries as runs of leaves, in compressed rows: see `interval_pieces`.

    Returns
    -------
    variance, square, largest : (queries,) float64
        The answer is off by a sum of a_i Z_i with Z_i of scale b_i: its variance, the
        sum of (a_i b_i)^2 and the largest of their magnitudes. A query visits
        the children of the nodes that hold one of its borders inside.

    Examples
    --------
    Two leaves below a root that was not measured; the query adds them up.

    >>> from blowfish_fast.kernels.tree.parent_tree import tree_of_parents
    >>> tree = tree_of_parents(np.array([2, 2, -1]))
    >>> query = np.array([0, 1]), np.array([0]), np.array([2]), np.array([1.0])
    >>> parent_tree_spread(np.array([8.0, 8.0, np.inf]), np.full(3, 2.0), tree, *query)
    (array([16.]), array([8.]), array([2.]))
    """
    variances = values_of_nodes(variances, tree, "variances")
    scales = values_of_nodes(scales, tree, "scales")
    pointers, starts, ends = checked_pieces(pointers, starts, ends, tree.leaves)
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.shape != starts.shape:
        raise InputError(
            f"each of the {starts.size} pieces has one value, got an array of shape "
            f"{values.shape}"
        )
    known = known_variances(variances, tree.parents, tree.leaves)
    shares = surplus_shares(
        known, tree.pointers, tree.children, tree.ends - tree.starts
    )
    rows = _noise_rows(variances, scales, known, tree.pointers, tree.children)
    return _piece_spreads(
        rows,
        shares,
        tree.starts,
        tree.ends,
        tree.pointers,
        tree.children,
        pointers,
        starts,
        ends,
        values,
    )
