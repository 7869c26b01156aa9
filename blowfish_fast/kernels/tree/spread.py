"""The exact spread of the noise in any query answered from a fitted tree.

Two numbers per node give the coefficient of its noise in one answer. Its *coverage* is
what the query takes of it: 1 inside, 0 outside, and for a parent the average of its
children, weighed by their shares of a surplus. Its *pull* is how far the answer follows
the node's total beyond what the ancestors already say:

    pull(root)  = coverage(root)
    pull(child) = keep(parent) * pull(parent) + coverage(child) - coverage(parent)
    coefficient = (1 - keep) * pull

where keep is the weight the parent's fit gives to its children rather than to its own
measurement. An example: a root over two leaves, all three measured with variance 1, and
the query that takes the left leaf. The root keeps 1/3 for its children.

                    root          left leaf                right leaf
    coverage        1/2           1                        0
    pull            1/2           1/3 * 1/2 + 1/2 = 2/3    1/3 * 1/2 - 1/2 = -1/3
    coefficient     1/3           2/3                      -1/3

The variance is 1/9 + 4/9 + 1/9 = 2/3, as of any of two numbers whose sum was measured
too.

A node that the query covers evenly passes its pull down multiplied by keeps alone, so
one row of sums (``noise_rows``) stands for its whole subtree. Of the siblings of a node
with an end of a range inside, all earlier ones have one pull and all later ones
another, so sums over these are in the rows too: a few steps per level.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import (
    as_input,
    refuse_infinite,
    refuse_odd_variances,
)
from blowfish_fast.kernels._jit import helper, kernel
from blowfish_fast.kernels.space.interval_pieces import check_pieces

from .noise_rows import (
    EARLIER,
    KEEP,
    LATER,
    OWN,
    SHARE,
    WHOLE,
    NodeRows,
    Sums,
    add_noise,
    tree_noise,
)
from .shape import Tree, shift_of

Moments = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]
Leaves = tuple[IntArray, IntArray, IntArray]
Runs = tuple[IntArray, IntArray, FloatArray]
# By node: its coverage, whether it is mixed, nodes as they are entered, their pieces.
MixedNodes = tuple[FloatArray, BoolArray, IntArray, IntArray]
# Row and parent by node, node by leaf, offsets of levels, fan-out and its shift (0, 0
# in a tree that is not regular).
Shape = tuple[IntArray, IntArray, IntArray, IntArray, int, int]


@kernel
def _ways_to_meeting(
    first: int, last: int, shape: Shape, path: IntArray, far: IntArray
) -> tuple[int, int, int]:
    """Write the rows on the ways up from two leaves until they are siblings.

    Returns where both ways end, and the node above them.
    """
    row_of, parents, leaf_nodes, offsets, fan_out, shift = shape
    first_node, last_node = leaf_nodes[first], leaf_nodes[last]
    top = far_top = 0
    path[0], far[0] = row_of[first_node], row_of[last_node]
    if fan_out > 0:
        left = first >> shift if shift > 0 else first // fan_out
        right = last >> shift if shift > 0 else last // fan_out
        while left != right:
            top += 1
            path[top] = row_of[offsets[top] + left]
            far[top] = row_of[offsets[top] + right]
            left = left >> shift if shift > 0 else left // fan_out
            right = right >> shift if shift > 0 else right // fan_out
        return top, top, offsets[top + 1] + left
    while parents[first_node] != parents[last_node]:
        # The smaller of the two is not above the other: its child may climb.
        if parents[first_node] < parents[last_node]:
            first_node = parents[first_node]
            top += 1
            path[top] = row_of[first_node]
        else:
            last_node = parents[last_node]
            far_top += 1
            far[far_top] = row_of[last_node]
    return top, far_top, parents[first_node]


@helper
def _cover(
    rows: FloatArray,
    inside: tuple[float, float],
    top: int,
    path: IntArray,
    parts: FloatArray,
) -> None:
    """Write coverages up to ``path[top]``; those of siblings are in `inside`."""
    part = parts[0]
    for place in range(top):
        row = path[place]
        earlier, later = rows[row, EARLIER], rows[row, LATER]
        # Shares add up to 1 but for a rounding, which would be felt as noise.
        whole = (part == 1.0) & ((inside[0] == 1.0) | (earlier == 0.0))
        whole &= (inside[1] == 1.0) | (later == 0.0)
        part *= rows[row, SHARE]
        part += inside[0] * earlier + inside[1] * later
        part = 1.0 if whole else part
        parts[place + 1] = part


@helper
def _descend(
    sums: Sums,
    rows: FloatArray,
    inside: tuple[float, float],
    top: int,
    path: IntArray,
    parts: FloatArray,
    pull: float,
) -> tuple[Sums, float]:
    """Come back from ``path[top]`` with its pull, adding nodes and their siblings."""
    for place in range(top, 0, -1):
        row = path[place - 1]
        passed, above = rows[path[place], KEEP] * pull, parts[place]
        sums = add_noise(sums, rows, row, EARLIER + 1, passed + (inside[0] - above))
        sums = add_noise(sums, rows, row, LATER + 1, passed + (inside[1] - above))
        pull = passed + (parts[place - 1] - above)
        sums = add_noise(sums, rows, row, OWN, pull)
    return sums, pull


@kernel
def _range_spreads(
    rows: FloatArray,
    shape: Shape,
    first: IntArray,
    first_fraction: FloatArray,
    last: IntArray,
    last_fraction: FloatArray,
) -> FloatArray:
    """Climb from both ends to where they meet and on to the root, and come back.

    Empty where a range does not lie in the tree.
    """
    row_of, parents, leaf_nodes, offsets, _, _ = shape
    levels = offsets.size
    moments = np.empty((5, first.size))
    path, far, above = np.empty((3, levels), dtype=np.int64)
    parts, far_parts, above_parts = np.empty((3, levels))
    for query in range(first.size):
        if not 0 <= first[query] <= last[query] < leaf_nodes.size:
            return np.empty((5, 0))
        node, above_parts[0] = leaf_nodes[first[query]], first_fraction[query]
        apart = first[query] < last[query]
        top = far_top = 0
        if apart:
            top, far_top, node = _ways_to_meeting(
                first[query], last[query], shape, path, far
            )
            parts[0], far_parts[0] = first_fraction[query], last_fraction[query]
            _cover(rows, (0.0, 1.0), top, path, parts)
            _cover(rows, (1.0, 0.0), far_top, far, far_parts)
            left, right = path[top], far[far_top]
            x, z = parts[top], far_parts[far_top]
            y = rows[left, SHARE] * x + rows[right, SHARE] * z
            for row in range(left + 1, right):
                y += rows[row, SHARE]
            outer = rows[left, EARLIER] + rows[right, LATER]
            whole = x == 1.0 and z == 1.0 and outer == 0.0
            above_parts[0] = 1.0 if whole else y
        high = 0
        above[0] = row_of[node]
        while parents[node] >= 0:
            node = parents[node]
            high += 1
            above[high] = row_of[node]
        _cover(rows, (0.0, 0.0), high, above, above_parts)
        pull = above_parts[high]
        sums = add_noise((0.0, 0.0, 0.0, 0.0, 0.0), rows, above[high], OWN, pull)
        sums, pull = _descend(sums, rows, (0.0, 0.0), high, above, above_parts, pull)
        if apart:
            left, right = path[top], far[far_top]
            x, y, z = parts[top], above_parts[0], far_parts[far_top]
            passed = rows[above[0], KEEP] * pull
            sums = add_noise(sums, rows, left, EARLIER + 1, passed - y)
            sums = add_noise(sums, rows, right, LATER + 1, passed - y)
            for row in range(left + 1, right):
                sums = add_noise(sums, rows, row, WHOLE, passed + (1.0 - y))
            pull = passed + (x - y)
            sums = add_noise(sums, rows, left, OWN, pull)
            sums, _ = _descend(sums, rows, (0.0, 1.0), top, path, parts, pull)
            pull = passed + (z - y)
            sums = add_noise(sums, rows, right, OWN, pull)
            sums, _ = _descend(sums, rows, (1.0, 0.0), far_top, far, far_parts, pull)
        for part in range(5):
            moments[part, query] = sums[part]
    return moments


@kernel
def enter_mixed(
    leaves: Leaves, runs: Runs, begin: int, stop: int, room: MixedNodes
) -> int:
    """Enter the mixed nodes of one query from the root down.

    A node is mixed if a piece begins or ends inside it. Its children are looked at, and
    the coverage of those that are not mixed is written.

    Parameters
    ----------
    leaves : Leaves
        The first child of each node, its first leaf, and the leaf after its last.
    runs : Runs
        Starts, ends and values of the pieces of all queries.
    begin : int
        The first piece of the query.
    stop : int
        The piece after its last.
    room : MixedNodes
        Working space of one entry per node: coverage, whether a node is mixed, the
        mixed nodes in the order in which they were entered, and the first piece of
        each.

    Returns
    -------
    int
        How many nodes were entered.
    """
    first_child, first, end = leaves
    starts, ends, values = runs
    coverage, mixed, entered, pieces = room
    # The root is looked at like a child of nothing: it is entered in any case.
    entered[0], pieces[0] = first_child.size - 2, begin
    visited, seen = 1, 0
    while seen < visited:
        node, piece = entered[seen], pieces[seen]
        seen += 1
        for child in range(first_child[node], first_child[node + 1]):
            while piece < stop and ends[piece] <= first[child]:
                piece += 1
            coverage[child], mixed[child] = 0.0, False
            if piece < stop and starts[piece] < end[child]:
                if starts[piece] <= first[child] and ends[piece] >= end[child]:
                    coverage[child] = values[piece]
                else:
                    mixed[child] = True
                    entered[visited], pieces[visited] = child, piece
                    visited += 1
    return visited


@kernel
def _piece_spreads(
    rows: FloatArray, row_of: IntArray, leaves: Leaves, queries: IntArray, runs: Runs
) -> FloatArray:
    """Enter mixed nodes from the root, return with coverages, go down with pulls."""
    first_child = leaves[0]
    count = queries.size - 1
    spreads = np.zeros((5, count))
    coverage, pulls = np.zeros((2, row_of.size))
    mixed = np.zeros(row_of.size, dtype=np.bool_)
    entered, pieces = np.empty((2, row_of.size), dtype=np.int64)
    room = (coverage, mixed, entered, pieces)
    root = row_of.size - 1
    for query in range(count):
        begin, stop = queries[query], queries[query + 1]
        visited = enter_mixed(leaves, runs, begin, stop, room)
        for back in range(visited - 1, -1, -1):
            node = entered[back]
            if first_child[node] == first_child[node + 1]:
                # The only node of its tree: one leaf, covered or not.
                coverage[node] = 0.0
                for piece in range(begin, stop):
                    if runs[0][piece] < runs[1][piece]:
                        coverage[node] = runs[2][piece]
                continue
            total = 0.0
            first_value = coverage[first_child[node]]
            whole = True
            for child in range(first_child[node], first_child[node + 1]):
                total += rows[row_of[child], SHARE] * coverage[child]
                whole &= coverage[child] == first_value
            coverage[node] = first_value if whole else total
        pulls[root] = coverage[root]
        top = row_of[root]
        sums = add_noise((0.0, 0.0, 0.0, 0.0, 0.0), rows, top, OWN, pulls[root])
        for forth in range(visited):
            node = entered[forth]
            passed = rows[row_of[node], KEEP] * pulls[node]
            for child in range(first_child[node], first_child[node + 1]):
                pulls[child] = passed + (coverage[child] - coverage[node])
                column = OWN if mixed[child] else WHOLE
                sums = add_noise(sums, rows, row_of[child], column, pulls[child])
        for part in range(5):
            spreads[part, query] = sums[part]
    return spreads


def tree_spread_ranges(
    variances: FloatArray,
    scales: FloatArray,
    tree: Tree,
    first: IntArray,
    first_fraction: FloatArray,
    last: IntArray,
    last_fraction: FloatArray,
) -> Moments:
    """Return the noise profile of ranges of leaves, in O(levels) each.

    An answer is the true value plus, over the nodes, a coefficient times their noise.

    Parameters
    ----------
    variances : ndarray of float64, shape (nodes,)
        Variance of each measurement, by row; infinity: not measured, 0: exact.
    scales : ndarray of float64, shape (nodes,)
        Laplace scale of each measurement, by row; ignored where exact or not measured.
    tree : Tree
        The shape.
    first : ndarray of int64, shape (queries,)
        The leaf that holds the start of each range.
    first_fraction : ndarray of float64, shape (queries,)
        How much of it is covered, from 0 to 1.
    last : ndarray of int64, shape (queries,)
        The leaf that holds the end; all leaves between the two are covered.
    last_fraction : ndarray of float64, shape (queries,)
        How much of it is covered. Where ``first == last``, the first fraction counts
        instead.

    Returns
    -------
    tuple of five ndarrays of float64, shape (queries,)
        ``(variance, square, largest, steps, width)``: the sum of squared coefficients
        times variances, the sum of squared coefficients times squared scales, the
        largest coefficient times scale, the sum of squared coefficients, and the scale
        of the row with the largest.

    Raises
    ------
    InputError
        If the arrays differ in length, a range does not lie in the tree, a fraction not
        between 0 and 1, or a variance or the scale of a measured total is negative or
        no number.

    Examples
    --------
    >>> from blowfish_fast.kernels import regular_tree
    >>> ones, tree = np.ones(3), regular_tree(2, 2)
    >>> end, whole = np.array([1]), np.array([1.0])
    >>> tree_spread_ranges(ones * [1, 1, 0], ones, tree, end * 0, whole, end, whole)
    (array([0.]), array([0.]), array([0.]), array([0.]), array([0.]))
    """
    noise = _given_noise(variances, scales, tree)
    for fractions in (first_fraction, last_fraction):
        covered = as_input(fractions, np.float64)
        if covered.size and not (covered.min() >= 0 and covered.max() <= 1):
            raise InputError(
                "fractions of a leaf lie from 0 to 1",
                received=f"{covered.min()} to {covered.max()}",
            )
    return spread_ranges(noise, tree, first, first_fraction, last, last_fraction)


def _given_noise(variances: FloatArray, scales: FloatArray, tree: Tree) -> NodeRows:
    """Return `tree_noise` of what a caller from outside states; refuse what is none."""
    stated = tree.numbers(variances, "variances")
    widths = tree.numbers(scales, "scales")
    refuse_odd_variances(stated)
    refuse_infinite(widths, "scales", np.where(stated > 0, stated, np.inf))
    if widths.size and widths.min() < 0:
        measured = (stated > 0) & (stated < np.inf)
        if (widths[measured] < 0).any():
            raise InputError(
                "scales of measured totals are not negative",
                received=f"{widths[measured].min()} among them",
            )
    return tree_noise(variances, scales, tree)


def spread_ranges(
    noise: NodeRows,
    tree: Tree,
    first: IntArray,
    first_fraction: FloatArray,
    last: IntArray,
    last_fraction: FloatArray,
) -> Moments:
    """Return `tree_spread_ranges` from a prepared `tree_noise`: no work over all nodes.

    Parameters
    ----------
    noise : NodeRows
        What `tree_noise` returned.
    tree : Tree
        The shape.
    first : ndarray of int64, shape (queries,)
        The leaf that holds the start of each range.
    first_fraction : ndarray of float64, shape (queries,)
        How much of it is covered, from 0 to 1.
    last : ndarray of int64, shape (queries,)
        The leaf that holds the end.
    last_fraction : ndarray of float64, shape (queries,)
        How much of it is covered.

    Returns
    -------
    tuple of five ndarrays of float64, shape (queries,)
        Variance, square, largest, steps and width, as `tree_spread_ranges` says.

    Raises
    ------
    InputError
        If the arrays differ in length, or a range does not lie in the tree.
    """
    first, last = as_input(first, np.int64), as_input(last, np.int64)
    first_fraction = as_input(first_fraction, np.float64)
    last_fraction = as_input(last_fraction, np.float64)
    shapes = {first.shape, last.shape, first_fraction.shape, last_fraction.shape}
    if len(shapes) != 1 or first.ndim != 1:
        raise InputError(
            "ranges come as four arrays of one length, got shapes "
            f"{first.shape}, {first_fraction.shape}, {last.shape}, "
            f"{last_fraction.shape}"
        )
    fan_out = tree.fan_out or 0
    lines = (noise.row_of, tree.parents, tree.leaf_nodes, tree.offsets)
    shape = (*lines, fan_out, shift_of(fan_out))
    ends = (first, first_fraction, last, last_fraction)
    moments = _range_spreads(noise.rows, shape, *ends)
    if moments.shape[1] < first.size:
        raise InputError(
            f"a range runs from its first to its last leaf within 0..{tree.leaves - 1},"
            f" got first leaves from {first.min()} and last leaves up to {last.max()}"
        )
    variance, square, largest, steps, width = moments
    return variance, square, largest, steps, width


def tree_spread_pieces(
    variances: FloatArray,
    scales: FloatArray,
    tree: Tree,
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
) -> Moments:
    """Return the noise profile of piecewise constant queries over the leaves.

    A query visits the nodes that hold one of its borders: O(fan-out * levels) per
    piece.

    Parameters
    ----------
    variances : ndarray of float64, shape (nodes,)
        Variance of each measurement, by row; infinity: not measured, 0: exact.
    scales : ndarray of float64, shape (nodes,)
        Laplace scale of each measurement, by row.
    tree : Tree
        The shape.
    pointers : ndarray of int64, shape (queries + 1,)
        Query `i` owns the pieces ``pointers[i]`` up to ``pointers[i + 1]``.
    starts : ndarray of int64, shape (pieces,)
        The first leaf of each piece; pieces of a query are sorted and disjoint.
    ends : ndarray of int64, shape (pieces,)
        The leaf after the last one of each piece.
    values : ndarray of float64, shape (pieces,)
        Coefficient on each leaf of the piece; 0 outside all pieces.

    Returns
    -------
    tuple of five ndarrays of float64, shape (queries,)
        Variance, square, largest, steps and width, as `tree_spread_ranges` says.

    Raises
    ------
    InputError
        If pieces overlap, are unsorted, lack a value, or reach beyond the leaves, a
        value is not finite, or a variance or the scale of a measured total is negative
        or no number.

    Examples
    --------
    >>> from blowfish_fast.kernels import regular_tree
    >>> alone, tree = np.array([8.0, 8.0, np.inf]), regular_tree(2, 2)
    >>> query = np.array([0, 2]), np.array([0, 1]), np.array([1, 2])
    >>> tree_spread_pieces(alone, np.full(3, 2.0), tree, *query, np.array([-1.0, 1.0]))
    (array([16.]), array([8.]), array([2.]), array([2.]), array([2.]))
    """
    noise = _given_noise(variances, scales, tree)
    refuse_infinite(as_input(values, np.float64), "values of pieces")
    return spread_pieces(noise, tree, pointers, starts, ends, values)


def spread_pieces(
    noise: NodeRows,
    tree: Tree,
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
) -> Moments:
    """Return `tree_spread_pieces` from a prepared `tree_noise`: no work over all nodes.

    Parameters
    ----------
    noise : NodeRows
        What `tree_noise` returned.
    tree : Tree
        The shape.
    pointers : ndarray of int64, shape (queries + 1,)
        Query `i` owns the pieces ``pointers[i]`` up to ``pointers[i + 1]``.
    starts : ndarray of int64, shape (pieces,)
        The first leaf of each piece; pieces of a query are sorted and disjoint.
    ends : ndarray of int64, shape (pieces,)
        The leaf after the last one of each piece.
    values : ndarray of float64, shape (pieces,)
        Coefficient on each leaf of the piece.

    Returns
    -------
    tuple of five ndarrays of float64, shape (queries,)
        Variance, square, largest, steps and width, as `tree_spread_ranges` says.

    Raises
    ------
    InputError
        If pieces overlap, are unsorted, lack a value, or reach beyond the leaves.
    """
    pointers, starts, ends = check_pieces(pointers, starts, ends, tree.leaves)
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.shape != starts.shape:
        raise InputError(
            f"each of the {starts.size} pieces has one value, got an array of shape "
            f"{values.shape}"
        )
    leaves = (tree.first_child, tree.starts, tree.ends)
    moments = _piece_spreads(*noise, leaves, pointers, (starts, ends, values))
    variance, square, largest, steps, width = moments
    return variance, square, largest, steps, width
