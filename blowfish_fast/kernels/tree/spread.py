"""The exact spread of the noise in any query answered from a fitted tree.

Serves predicted errors, confidence intervals and the way from accuracy to epsilon:
before anything is measured it says how the noise of every node enters an answer.
Nodes are laid out as in `shape`, the fit is that of `fit`.

Two numbers per node give the coefficient of its noise in one answer. Its *coverage*
is what the query takes of it: 1 inside, 0 outside, and for a parent the average of
its children, weighed by their shares of a surplus. Its *pull* is how far the answer
follows the node's total beyond what the ancestors already say:

    pull(root)  = coverage(root)
    pull(child) = keep(parent) * pull(parent) + coverage(child) - coverage(parent)
    coefficient = (1 - keep) * pull

where keep is the weight the parent's fit gives to its children rather than to its
own measurement. A node that the query covers wholly or not at all passes its pull
down multiplied by keeps alone, so one row of sums stands for its whole subtree, and
a query only visits the nodes around its ends; ``noise_rows`` has these rows.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.space.interval_pieces import check_pieces

from .noise_rows import KEEP, OWN, SHARE, WHOLE, tree_noise
from .shape import Tree

Moments = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]


@kernel
def _covered(
    child: int, left: int, right: int, left_part: float, right_part: float
) -> float:
    """Return how much of a node a range covers whose end nodes are `left`, `right`.

    Selections rather than branches: which child holds an end is a coin toss.
    """
    part = 1.0 if child > left else 0.0
    part = part if child < right else 0.0
    part = right_part if child == right else part
    return left_part if child == left else part


@kernel
def _enter_leaf(
    leaf: int, level: int, offsets: IntArray, side: int, ends: IntArray
) -> int:
    """Write where an end of a range is below its leaf: nowhere. Return its level."""
    while leaf >= offsets[level + 1]:
        # Left of everything on this level, or right of everything.
        ends[level, side] = -1 if side == 0 else offsets[offsets.size - 1]
        level += 1
    ends[level, side] = leaf
    return level


@kernel
def _range_spreads(
    rows: FloatArray,
    first_child: IntArray,
    parents: IntArray,
    leaf_nodes: IntArray,
    offsets: IntArray,
    fan_out: int,
    first: IntArray,
    first_fraction: FloatArray,
    last: IntArray,
    last_fraction: FloatArray,
) -> Moments:
    """Climb with the two end nodes to the root for coverages, come back for pulls.

    In a regular tree of some `fan_out` (0: any other) families are found by counting,
    which waits for no memory.
    """
    shift = 0
    while 1 << (shift + 1) <= fan_out:
        shift += 1
    shift = shift if 1 << shift == fan_out else 0
    levels = offsets.size - 1
    nodes = rows.shape[0]
    variances = np.empty(first.size)
    squares = np.empty(first.size)
    largests = np.empty(first.size)
    steps = np.empty(first.size)
    widths = np.empty(first.size)
    ends = np.empty((levels, 2), dtype=np.int64)
    coverage = np.zeros((levels, 2))
    pulls = np.empty(2)
    lowest = np.empty(2, dtype=np.int64)
    for query in range(first.size):
        left = leaf_nodes[first[query]]
        right = leaf_nodes[last[query]]
        lowest[0] = _enter_leaf(left, 0, offsets, 0, ends)
        lowest[1] = _enter_leaf(right, 0, offsets, 1, ends)
        coverage[lowest[0], 0] = first_fraction[query]
        coverage[lowest[1], 1] = last_fraction[query]
        if left == right:
            coverage[lowest[1], 1] = first_fraction[query]
        for level in range(min(lowest[0], lowest[1]), levels - 1):
            left = ends[level, 0]
            right = ends[level, 1]
            left_part = coverage[level, 0]
            right_part = coverage[level, 1]
            for side in range(2):
                if level < lowest[side]:
                    continue
                if fan_out > 0:
                    place = ends[level, side] - offsets[level]
                    place = place >> shift if shift > 0 else place // fan_out
                    parent = offsets[level + 1] + place
                    begin = offsets[level] + place * fan_out
                    end = min(begin + fan_out, offsets[level + 1])
                else:
                    parent = parents[ends[level, side]]
                    begin, end = first_child[parent], first_child[parent + 1]
                ends[level + 1, side] = parent
                if side == 1 and parent == ends[level + 1, 0]:
                    coverage[level + 1, 1] = coverage[level + 1, 0]
                    break
                total = 0.0
                whole = True
                for child in range(begin, end):
                    part = _covered(child, left, right, left_part, right_part)
                    total += rows[child, SHARE] * part
                    whole &= part == 1.0
                # Shares add up to 1 but for a rounding, which would be felt as noise.
                coverage[level + 1, side] = 1.0 if whole else total
        root = nodes - 1
        pull = coverage[levels - 1, 0]
        for side in range(2):
            pulls[side] = pull
        variance = rows[root, OWN] * pull * pull
        square = rows[root, OWN + 1] * pull * pull
        largest = rows[root, OWN + 2] * abs(pull)
        step = rows[root, OWN + 3] * pull * pull
        width = rows[root, OWN + 4]
        for level in range(levels - 2, min(lowest[0], lowest[1]) - 1, -1):
            left = ends[level, 0]
            right = ends[level, 1]
            left_part = coverage[level, 0]
            right_part = coverage[level, 1]
            left_pull = 0.0
            right_pull = 0.0
            for side in range(2):
                if level < lowest[side]:
                    continue
                parent = ends[level + 1, side]
                if side == 1 and parent == ends[level + 1, 0]:
                    break
                passed = rows[parent, KEEP] * pulls[side]
                above = coverage[level + 1, side]
                if fan_out > 0:
                    begin = offsets[level] + (parent - offsets[level + 1]) * fan_out
                    end = min(begin + fan_out, offsets[level + 1])
                else:
                    begin, end = first_child[parent], first_child[parent + 1]
                for child in range(begin, end):
                    part = _covered(child, left, right, left_part, right_part)
                    pull = passed + (part - above)
                    left_pull = pull if child == left else left_pull
                    right_pull = pull if child == right else right_pull
                    column = OWN if (child == left) | (child == right) else WHOLE
                    variance += rows[child, column] * (pull * pull)
                    square += rows[child, column + 1] * (pull * pull)
                    step += rows[child, column + 3] * (pull * pull)
                    reach = rows[child, column + 2] * abs(pull)
                    width = rows[child, column + 4] if reach > largest else width
                    largest = reach if reach > largest else largest
            pulls[0] = left_pull
            pulls[1] = right_pull
        variances[query] = variance
        squares[query] = square
        largests[query] = largest
        steps[query] = step
        widths[query] = width
    return variances, squares, largests, steps, widths


@kernel
def _piece_spreads(
    rows: FloatArray,
    first_child: IntArray,
    first: IntArray,
    end: IntArray,
    queries: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
) -> Moments:
    """Enter mixed nodes from the root, return with coverages, go down with pulls.

    A node is *mixed* if a border of some piece lies inside it; any other node is
    covered with one value, and one row stands for its whole subtree.
    """
    count = queries.size - 1
    nodes = rows.shape[0]
    spreads = np.zeros((5, count))
    coverage = np.zeros(nodes)
    pulls = np.zeros(nodes)
    mixed = np.zeros(nodes, dtype=np.bool_)
    entered = np.empty(nodes, dtype=np.int64)
    pieces = np.empty(nodes, dtype=np.int64)
    root = nodes - 1
    for query in range(count):
        stop = queries[query + 1]
        entered[0] = root
        pieces[0] = queries[query]
        # The root is looked at like a child of nothing: it is entered in any case.
        visited = 1
        head = 0
        while head < visited:
            node = entered[head]
            piece = pieces[head]
            head += 1
            for child in range(first_child[node], first_child[node + 1]):
                while piece < stop and ends[piece] <= first[child]:
                    piece += 1
                coverage[child] = 0.0
                mixed[child] = False
                if piece < stop and starts[piece] < end[child]:
                    if starts[piece] <= first[child] and ends[piece] >= end[child]:
                        coverage[child] = values[piece]
                    else:
                        mixed[child] = True
                        entered[visited] = child
                        pieces[visited] = piece
                        visited += 1
        for back in range(visited - 1, -1, -1):
            node = entered[back]
            if first_child[node] == first_child[node + 1]:
                # The only node of its tree: one leaf, covered or not.
                coverage[node] = 0.0
                for piece in range(queries[query], stop):
                    if starts[piece] < ends[piece]:
                        coverage[node] = values[piece]
                continue
            total = 0.0
            first_value = coverage[first_child[node]]
            whole = True
            for child in range(first_child[node], first_child[node + 1]):
                total += rows[child, SHARE] * coverage[child]
                whole &= coverage[child] == first_value
            coverage[node] = first_value if whole else total
        pull = coverage[root]
        pulls[root] = pull
        variance = rows[root, OWN] * (pull * pull)
        square = rows[root, OWN + 1] * (pull * pull)
        largest = rows[root, OWN + 2] * abs(pull)
        step = rows[root, OWN + 3] * (pull * pull)
        width = rows[root, OWN + 4]
        for forth in range(visited):
            node = entered[forth]
            passed = rows[node, KEEP] * pulls[node]
            above = coverage[node]
            for child in range(first_child[node], first_child[node + 1]):
                pull = passed + (coverage[child] - above)
                pulls[child] = pull
                column = OWN if mixed[child] else WHOLE
                variance += rows[child, column] * (pull * pull)
                square += rows[child, column + 1] * (pull * pull)
                step += rows[child, column + 3] * (pull * pull)
                reach = rows[child, column + 2] * abs(pull)
                width = rows[child, column + 4] if reach > largest else width
                largest = reach if reach > largest else largest
        spreads[0, query] = variance
        spreads[1, query] = square
        spreads[2, query] = largest
        spreads[3, query] = step
        spreads[4, query] = width
    return spreads[0], spreads[1], spreads[2], spreads[3], spreads[4]


def tree_spread_ranges(
    variances: FloatArray,
    scales: FloatArray,
    tree: Tree,
    first: IntArray,
    first_fraction: FloatArray,
    last: IntArray,
    last_fraction: FloatArray,
) -> Moments:
    """Return the noise profile of ranges of leaves, in O(fan-out * levels) each.

    The answer of a query is its true value plus the sum, over the nodes, of a
    coefficient times the noise of that node.

    Parameters
    ----------
    variances : (nodes,) float64
        Variance of each measurement; infinity: not measured, 0: exact.
    scales : (nodes,) float64
        Laplace scale of each measurement; ignored where exact or not measured.
    tree : Tree
    first, last : (queries,) int64
        The leaves that hold the two ends of each range; all between are covered.
    first_fraction, last_fraction : (queries,) float64
        How much of these two is covered; where ``first == last`` the first counts.

    Returns
    -------
    variance, square, largest, steps, width : (queries,) float64
        Sum of squared coefficients times variances: the exact variance. Sum of
        (coefficient times scale) squared. Largest absolute coefficient times scale. Sum
        of squared coefficients. Scale of the row with the largest.

    Examples
    --------
    The sum of two leaves, each measured alone, and their exact total:

    >>> from blowfish_fast.kernels import regular_tree
    >>> ones, tree = np.ones(3), regular_tree(2, 2)
    >>> end, whole = np.array([1]), np.array([1.0])
    >>> tree_spread_ranges(ones * [1, 1, 0], ones, tree, end * 0, whole, end, whole)
    (array([0.]), array([0.]), array([0.]), array([0.]), array([0.]))
    """
    noise = tree_noise(variances, scales, tree)
    return spread_ranges(noise, tree, first, first_fraction, last, last_fraction)


def spread_ranges(
    noise: FloatArray,
    tree: Tree,
    first: IntArray,
    first_fraction: FloatArray,
    last: IntArray,
    last_fraction: FloatArray,
) -> Moments:
    """Return `tree_spread_ranges` from `tree_noise`: no work over all nodes."""
    first = np.ascontiguousarray(first, dtype=np.int64)
    last = np.ascontiguousarray(last, dtype=np.int64)
    first_fraction = np.ascontiguousarray(first_fraction, dtype=np.float64)
    last_fraction = np.ascontiguousarray(last_fraction, dtype=np.float64)
    shapes = {first.shape, last.shape, first_fraction.shape, last_fraction.shape}
    if len(shapes) != 1 or first.ndim != 1:
        raise InputError(
            "ranges come as four arrays of one length, got shapes "
            f"{first.shape}, {first_fraction.shape}, {last.shape}, "
            f"{last_fraction.shape}"
        )
    leaves = tree.leaves
    if first.size and (first.min() < 0 or last.max() >= leaves or (first > last).any()):
        raise InputError(
            f"a range runs from its first to its last leaf within 0..{leaves - 1}, got "
            f"first leaves from {first.min()} and last leaves up to {last.max()}"
        )
    return _range_spreads(
        noise,
        tree.first_child,
        tree.parents,
        tree.leaf_nodes,
        tree.offsets,
        tree.fan_out or 0,
        first,
        first_fraction,
        last,
        last_fraction,
    )


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

    A query visits the nodes that hold one of its borders inside, with their children:
    O(fan-out * levels) per piece.

    Parameters
    ----------
    variances, scales, tree
        As for `tree_spread_ranges`.
    pointers : (queries + 1,) int64
        Query `i` owns the pieces ``pointers[i]`` up to ``pointers[i + 1]``.
    starts, ends : (pieces,) int64
        Half-open runs of leaves, sorted and disjoint within a query.
    values : (pieces,) float64
        Coefficient of the query on each leaf of the piece; 0 outside all pieces.

    Returns
    -------
    variance, square, largest, steps, width : (queries,) float64
        As for `tree_spread_ranges`.

    Examples
    --------
    Two leaves measured alone, and a query that takes the first off the second:

    >>> from blowfish_fast.kernels import regular_tree
    >>> alone, tree = np.array([8.0, 8.0, np.inf]), regular_tree(2, 2)
    >>> query = np.array([0, 2]), np.array([0, 1]), np.array([1, 2])
    >>> tree_spread_pieces(alone, np.full(3, 2.0), tree, *query, np.array([-1.0, 1.0]))
    (array([16.]), array([8.]), array([2.]), array([2.]), array([2.]))
    """
    noise = tree_noise(variances, scales, tree)
    return spread_pieces(noise, tree, pointers, starts, ends, values)


def spread_pieces(
    noise: FloatArray,
    tree: Tree,
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
) -> Moments:
    """Return `tree_spread_pieces` from `tree_noise`: no work over all nodes."""
    pointers, starts, ends = check_pieces(pointers, starts, ends, tree.leaves)
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.shape != starts.shape:
        raise InputError(
            f"each of the {starts.size} pieces has one value, got an array of shape "
            f"{values.shape}"
        )
    return _piece_spreads(
        noise, tree.first_child, tree.starts, tree.ends, pointers, starts, ends, values
    )
