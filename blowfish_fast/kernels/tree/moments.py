"""The variances of listed queries, and those of an implicit workload summed.

The variance of one query splits over the tree,

    V(root) coverage(root)^2 + sum over parents and their children of
    V(child) (coverage(child) - coverage(parent))^2

A whole implicit workload is summed without listing its queries. A range is a pair of
cuts between cells. How much of a node lies left of a cut rises from 0 to 1 along the
cuts, and what a range covers is the difference at its two cuts. So the sum over all
ranges of a squared coverage is the number of cuts times their scatter. The difference
of the coverages of a child and its parent is again one number per cut:

    cuts       |---------|---left sibling---|---child---|---right sibling---|------|
    value      0         0  ->   -before    ->     +after       ->          0      0

Three cuts with the values 0, 1 and 3 have the mean 4/3 and the scatter 42/9. Their
pairs differ by 1, 2 and 3, of which the squares add up to 14 = 3 * 42/9. Each stretch
of cuts is known by its count, mean and scatter; stretches are merged, never subtracted,
so no digits cancel.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import refuse_odd_variances, whole_numbers
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.space.interval_pieces import check_pieces

from .fit import subtree_variances
from .noise_rows import surplus_shares
from .shape import Tree, tree_of_parents
from .spread import Leaves, Runs, tree_spread_pieces

KINDS = ("all_ranges", "prefixes", "identity", "bucket_identity", "total")

# Count, mean and sum of squared deviations of a group of values.
Group = tuple[float, float, float]


@kernel
def _merged(first: Group, second: Group) -> Group:
    """Return count, mean and scatter of two groups together."""
    both = first[0] + second[0]
    if both == 0.0:
        return 0.0, 0.0, 0.0
    step = second[1] - first[1]
    scatter = first[2] + second[2] + step * step * (first[0] * (second[0] / both))
    return both, first[1] + step * (second[0] / both), scatter


@kernel
def _fixed_above(below: FloatArray, parents: IntArray) -> IntArray:
    """Return the nearest node above each node that is fixed, or the root."""
    above = parents.copy()
    for node in range(parents.size - 2, -1, -1):
        parent = parents[node]
        if below[parent] < 0.0 and parent < parents.size - 1:
            above[node] = above[parent]
    return above


@kernel
def _total_over_cuts(
    below: FloatArray,
    shares: FloatArray,
    first_child: IntArray,
    sizes: IntArray,
    most: int,
    pairs: bool,
) -> float:
    """Sum over all ranges (`pairs`), or over all prefixes: one cut instead of two."""
    nodes = below.size
    cuts = sizes[nodes - 1] + 1.0
    mean = np.full(nodes, 0.5)
    scatter = np.empty(nodes)
    left = np.empty((most, 3))
    before = np.empty(most)
    total = 0.0
    for node in range(nodes):
        size = float(sizes[node])
        begin, end = first_child[node], first_child[node + 1]
        if begin == end:
            scatter[node] = (size - 1.0) * (size - 2.0) / (12.0 * size)
            continue
        run = (0.0, 0.0, 0.0)
        passed = 0.0
        for child in range(begin, end):
            i = child - begin
            before[i] = passed
            left[i, 0], left[i, 1], left[i, 2] = run
            part = shares[child]
            inner = passed + part * mean[child]
            bend = part * part * scatter[child]
            run = _merged(run, (sizes[child] - 1.0, inner, bend))
            passed += part
            if child + 1 < end:
                run = _merged(run, (1.0, passed, 0.0))
        mean[node] = run[1]
        scatter[node] = run[2]
        # A root without a total of its own covers nothing: its shares are 0, and a
        # child's value does not come back to 0 on the right.
        closing = 1.0 - passed
        outside = cuts + 1.0 - size
        run = (0.0, 0.0, 0.0)
        after = closing
        for child in range(end - 1, begin - 1, -1):
            i = child - begin
            part = shares[child]
            inner_cuts = sizes[child] - 1.0
            if below[child] > 0.0:
                others = before[i] + after
                curve = (outside - 1.0, 0.0, 0.0)
                curve = _merged(curve, (1.0, closing, 0.0))
                curve = _merged(curve, (left[i, 0], -left[i, 1], left[i, 2]))
                middle = others * mean[child] - before[i]
                bend = others * others * scatter[child]
                curve = _merged(curve, (inner_cuts, middle, bend))
                curve = _merged(curve, run)
                if pairs:
                    total += below[child] * cuts * curve[2]
                else:
                    square = curve[2] + cuts * curve[1] * curve[1]
                    total += below[child] * square
            inner = after + part * (1.0 - mean[child])
            run = _merged(run, (inner_cuts, inner, part * part * scatter[child]))
            after += part
            if child > begin:
                run = _merged(run, (1.0, after, 0.0))
    root = nodes - 1
    if below[root] > 0.0:
        run = _merged((1.0, 0.0, 0.0), (cuts - 2.0, mean[root], scatter[root]))
        run = _merged(run, (1.0, 1.0, 0.0))
        if pairs:
            total += below[root] * cuts * run[2]
        else:
            total += below[root] * (run[2] + cuts * run[1] * run[1])
    return total


@kernel
def _total_over_cells(
    below: FloatArray,
    shares: FloatArray,
    first_child: IntArray,
    sizes: IntArray,
    most: int,
    buckets: bool,
) -> float:
    """Sum over all single cells, or over all single leaves (`buckets`)."""
    square = np.empty(below.size)
    share_before = np.empty(most)
    variance_before = np.empty(most)
    total = 0.0
    for node in range(below.size):
        begin, end = first_child[node], first_child[node + 1]
        if begin == end:
            square[node] = 1.0 if buckets else 1.0 / sizes[node]
            continue
        shared = 0.0
        variances = 0.0
        squares = 0.0
        for child in range(begin, end):
            share_before[child - begin] = shared
            variance_before[child - begin] = variances
            shared += shares[child]
            variances += max(below[child], 0.0)
            squares += shares[child] * shares[child] * square[child]
        square[node] = squares
        # A root without a total of its own has no shares; its children cover fully.
        shared = 1.0 - shared if shared == 0.0 else 0.0
        variances = 0.0
        for child in range(end - 1, begin - 1, -1):
            # A cell inside a child covers it beyond its parent, and covers the others
            # less than their parent. Both sides are added, never subtracted.
            beyond = share_before[child - begin] + shared
            elsewhere = variance_before[child - begin] + variances
            variance = max(below[child], 0.0)
            part = shares[child]
            total += square[child] * (
                variance * beyond * beyond + part * part * elsewhere
            )
            shared += part
            variances += variance
    root = below.size - 1
    total += max(below[root], 0.0) * square[root]
    return float(total)


def _without_free_nodes(below: FloatArray, tree: Tree) -> tuple[FloatArray, Tree]:
    """Hang what lies below nodes that are not fixed below the next one that is."""
    above = _fixed_above(below, tree.parents)
    stays = below >= 0.0
    stays[tree.leaf_nodes] = True
    stays[-1] = True
    # Leaves first, as `tree_of_parents` asks; parents still come after their children.
    order = np.flatnonzero(stays)
    inner = order[tree.first_child[order] < tree.first_child[order + 1]]
    rows = np.concatenate([tree.leaf_nodes, inner])
    numbers = np.full(tree.nodes, -1)
    numbers[rows] = np.arange(rows.size)
    again = tree_of_parents(np.where(above[rows] < 0, -1, numbers[above[rows]]))
    return again.by_node(below[rows]), again


def tree_total_variance(
    variances: FloatArray, tree: Tree, kind: str, edges: IntArray
) -> float:
    """Return the summed noise variance of an implicit workload, in O(nodes).

    Parameters
    ----------
    variances : ndarray of float64, shape (nodes,)
        Variance of each measurement, by row; infinity: not measured, 0: exact.
    tree : Tree
        The shape.
    kind : {"all_ranges", "prefixes", "identity", "bucket_identity", "total"}
        Every range of cells, every range from the first cell on, every cell, every
        leaf, or the sum of everything.
    edges : ndarray of int64, shape (leaves + 1,)
        Cell edges of the leaves, rising from 0. The estimate is even inside a leaf.

    Returns
    -------
    float
        The sum of the variances of all queries of that kind.

    Raises
    ------
    InputError
        If the kind is another one, the edges do not fit the leaves, or a variance is
        negative or nan.

    Examples
    --------
    >>> from blowfish_fast.kernels import regular_tree
    >>> variances, tree = np.array([1.0, 1.0, 1.0, np.inf]), regular_tree(3, 3)
    >>> round(tree_total_variance(variances, tree, "all_ranges", np.arange(4)), 12)
    10.0
    """
    if kind not in KINDS:
        raise InputError(
            f"an implicit workload is one of {', '.join(KINDS)}; got {kind!r}. List "
            "other queries and sum their spreads"
        )
    leaves = tree.leaves
    edges = np.ascontiguousarray(whole_numbers(edges))
    if edges.shape != (leaves + 1,) or edges[0] != 0 or np.diff(edges).min() < 1:
        raise InputError(
            f"edges holds {leaves + 1} rising whole numbers from 0 on for {leaves} "
            f"leaves, got an array of shape {edges.shape}"
        )
    stated = tree.numbers(variances, "variances")
    refuse_odd_variances(stated)
    below = subtree_variances(stated, tree.first_child)
    if below.min() < 0.0:
        below, tree = _without_free_nodes(below, tree)
    shares = surplus_shares(below, tree.first_child)
    below_root = slice(tree.first_child[-2], tree.first_child[-1])
    if below[-1] < 0.0:
        shares[below_root] = 0.0
    if kind == "total":
        if below[-1] >= 0.0:
            return float(below[-1])
        return float(np.maximum(below[below_root], 0.0).sum())
    sizes = edges[tree.ends] - edges[tree.starts]
    most = int(np.diff(tree.first_child).max())
    shape = (below, shares, tree.first_child, sizes, most)
    if kind in ("identity", "bucket_identity"):
        return float(_total_over_cells(*shape, kind == "bucket_identity"))
    return float(_total_over_cuts(*shape, kind == "all_ranges"))


@kernel
def _over_pieces(
    below: FloatArray, leaves: Leaves, queries: IntArray, runs: Runs, levels: int
) -> FloatArray:
    """Walk through mixed nodes from left to right; each adds its children's scatter."""
    first_child, first, end = leaves
    starts, ends, values = runs
    root = below.size - 1
    variances = np.empty(queries.size - 1)
    above = np.empty(levels, dtype=np.int64)
    groups = np.empty((levels, 3))
    for query in range(variances.size):
        piece, stop = queries[query], queries[query + 1]
        total = 0.0
        depth, node, child = 0, root, first_child[root]
        group = (0.0, 0.0, 0.0)
        while True:
            if child < first_child[node + 1]:
                while piece < stop and ends[piece] <= first[child]:
                    piece += 1
                value, limit = 0.0, end[root]
                if piece < stop and starts[piece] < end[child]:
                    value, limit = values[piece], ends[piece]
                    if starts[piece] > first[child] or limit < end[child]:
                        above[depth] = node
                        groups[depth, 0], groups[depth, 1], groups[depth, 2] = group
                        depth += 1
                        node, child = child, first_child[child]
                        group = (0.0, 0.0, 0.0)
                        continue
                elif piece < stop:
                    limit = starts[piece]
                # Siblings that are covered alike count as one.
                weight = below[child]
                child += 1
                while child < first_child[node + 1] and end[child] <= limit:
                    weight += below[child]
                    child += 1
                group = _merged(group, (weight, value, 0.0))
                continue
            total += group[2]
            if depth == 0:
                break
            depth -= 1
            left = (groups[depth, 0], groups[depth, 1], groups[depth, 2])
            group = _merged(left, (below[node], group[1], 0.0))
            node, child = above[depth], node + 1
        variances[query] = total + below[root] * group[1] ** 2
    return variances


def tree_variances(
    variances: FloatArray,
    tree: Tree,
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
) -> FloatArray:
    """Return the variance of piecewise constant queries over the leaves, and no more.

    It takes less time than `tree_spread_pieces`, whose first result is the same.

    Parameters
    ----------
    variances : ndarray of float64, shape (nodes,)
        Variance of each measurement, by row, as for `tree_fit`.
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
    ndarray of float64, shape (queries,)
        The variance of each answer.

    Raises
    ------
    InputError
        If pieces overlap, are unsorted, or reach beyond the leaves.

    Examples
    --------
    >>> from blowfish_fast.kernels import regular_tree
    >>> query = np.array([0, 1]), np.array([0]), np.array([1]), np.ones(1)
    >>> tree_variances(np.array([1.0, 1.0, 0.0]), regular_tree(2, 2), *query)
    array([0.5])
    """
    below = subtree_variances(tree.numbers(variances, "variances"), tree.first_child)
    if below.min() < 0.0 or tree.leaves == 1:
        # Leaves that nothing fixes take up what is left: the fit is followed.
        pieces = (pointers, starts, ends, values)
        return tree_spread_pieces(variances, np.ones(tree.nodes), tree, *pieces)[0]
    pointers, starts, ends = check_pieces(pointers, starts, ends, tree.leaves)
    values = np.ascontiguousarray(values, dtype=np.float64)
    leaves = (tree.first_child, tree.starts, tree.ends)
    runs = (starts, ends, values)
    return _over_pieces(below, leaves, pointers, runs, tree.offsets.size)
