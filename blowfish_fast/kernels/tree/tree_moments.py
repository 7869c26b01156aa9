"""The summed variance of a whole implicit workload, without listing its queries.

Serves the predicted total error of all ranges, all prefixes and all cells: n cells
have n (n + 1) / 2 ranges, and this needs a few steps per node. Nodes are laid out as in
`tree_shape`, the fit is that of `tree_inference`; the leaves are buckets of cells.

A range is a pair of cuts between cells. How much of a node lies left of a cut rises
from 0 to 1 along the cuts, and what a range covers is the difference at its two cuts,
so the sum over all ranges of a squared coverage is the number of cuts times their
scatter. The variance of one query splits over the tree,

    V(root) coverage(root)^2 + sum over parents and their children of
    V(child) (coverage(child) - coverage(parent))^2

and the difference of the two coverages is again one number per cut:

    cuts       |---------|---left sibling---|---child---|---right sibling---|------|
    value      0         0  ->   -before    ->     +after       ->          0      0

Each stretch is known by its count, mean and scatter; stretches are merged, never
subtracted, so no digits cancel. Parts of a subtree that no measurement fixes are passed
over: their parent deals directly with the fixed nodes and free leaves below them.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .tree_inference import node_array, subtree_variances
from .tree_shape import tree_levels

KINDS = ("all_ranges", "prefixes", "identity", "bucket_identity", "total")


@kernel
def _merged(
    count: float,
    mean: float,
    scatter: float,
    more: float,
    more_mean: float,
    more_scatter: float,
) -> tuple[float, float, float]:
    """Return count, mean and scatter (sum of squared deviations) of two groups."""
    both = count + more
    if both == 0.0:
        return 0.0, 0.0, 0.0
    step = more_mean - mean
    scatter += more_scatter + step * step * (count * (more / both))
    return both, mean + step * (more / both), scatter


@kernel
def _members_of(
    known: FloatArray,
    offsets: IntArray,
    branching: int,
    edges: IntArray,
    level: int,
    index: int,
    members: IntArray,
    cells: FloatArray,
) -> int:
    """List the nearest nodes below one node that are fixed, and the free leaves.

    Writes node numbers and cell counts from left to right; returns how many.
    """
    leaves = offsets[1]
    width = 1
    for _ in range(level):
        width *= branching
    depth = level
    number = index
    count = 0
    descend = True
    while True:
        if descend and depth > 0:
            depth -= 1
            width //= branching
            number *= branching
        node = offsets[depth] + number
        descend = known[node] < 0.0 and depth > 0
        if descend:
            continue
        members[count] = node
        begin = number * width
        cells[count] = edges[min(begin + width, leaves)] - edges[begin]
        count += 1
        while depth < level and (
            (number + 1) % branching == 0
            or offsets[depth] + number + 1 == offsets[depth + 1]
        ):
            number //= branching
            depth += 1
            width *= branching
        if depth >= level:
            return count
        number += 1


@kernel
def _shares_of(
    known: FloatArray, members: IntArray, count: int, share: FloatArray
) -> None:
    """Write the part of a surplus that each member takes, as the fit shares it."""
    free = 0.0
    spread = 0.0
    for member in range(count):
        if known[members[member]] < 0.0:
            free += 1.0
        else:
            spread += known[members[member]]
    for member in range(count):
        variance = known[members[member]]
        if free > 0.0:
            share[member] = 1.0 / free if variance < 0.0 else 0.0
        elif spread > 0.0:
            share[member] = variance / spread
        else:
            # All exact: there is no noise to share, only coverage to keep finite.
            share[member] = 1.0 / count


@kernel
def _top_members(
    known: FloatArray,
    offsets: IntArray,
    branching: int,
    edges: IntArray,
    members: IntArray,
    cells: FloatArray,
) -> int:
    """List the root, or what is fixed below it if the root is not."""
    if known[known.size - 1] < 0.0:
        top = offsets.size - 2
        return _members_of(known, offsets, branching, edges, top, 0, members, cells)
    members[0] = known.size - 1
    cells[0] = edges[edges.size - 1]
    return 1


@kernel
def _total_over_cuts(
    known: FloatArray,
    offsets: IntArray,
    branching: int,
    edges: IntArray,
    most: int,
    pairs: bool,
) -> float:
    """Sum over all ranges (`pairs`), or over all prefixes: one cut instead of two."""
    cuts = edges[edges.size - 1] + 1.0
    mean = np.empty(known.size)
    scatter = np.empty(known.size)
    for leaf in range(offsets[1]):
        size = edges[leaf + 1] - edges[leaf]
        mean[leaf] = 0.5
        scatter[leaf] = (size - 1.0) * (size - 2.0) / (12.0 * size)
    members = np.empty(most, dtype=np.int64)
    cells = np.empty(most)
    share = np.empty(most)
    before = np.empty(most)
    left = np.empty((most, 3))
    total = 0.0
    for level in range(1, offsets.size - 1):
        for index in range(offsets[level + 1] - offsets[level]):
            node = offsets[level] + index
            if known[node] < 0.0:
                continue
            count = _members_of(
                known, offsets, branching, edges, level, index, members, cells
            )
            _shares_of(known, members, count, share)
            run = (0.0, 0.0, 0.0)
            passed = 0.0
            outside = cuts + 1.0
            for i in range(count):
                before[i] = passed
                left[i, 0], left[i, 1], left[i, 2] = run
                part = share[i]
                inner_mean = passed + part * mean[members[i]]
                inner_scatter = part * part * scatter[members[i]]
                run = _merged(
                    run[0], run[1], run[2], cells[i] - 1.0, inner_mean, inner_scatter
                )
                passed += part
                if i + 1 < count:
                    run = _merged(run[0], run[1], run[2], 1.0, passed, 0.0)
                outside -= cells[i]
            mean[node] = run[1]
            scatter[node] = run[2]
            run = (0.0, 0.0, 0.0)
            after = 0.0
            for i in range(count - 1, -1, -1):
                inner = cells[i] - 1.0
                part = share[i]
                rise = mean[members[i]]
                bend = scatter[members[i]]
                variance = known[members[i]]
                if variance > 0.0:
                    others = before[i] + after
                    middle = others * rise - before[i]
                    all_cuts = _merged(
                        outside, 0.0, 0.0, left[i, 0], -left[i, 1], left[i, 2]
                    )
                    all_cuts = _merged(
                        all_cuts[0],
                        all_cuts[1],
                        all_cuts[2],
                        inner,
                        middle,
                        others * others * bend,
                    )
                    all_cuts = _merged(
                        all_cuts[0], all_cuts[1], all_cuts[2], run[0], run[1], run[2]
                    )
                    if pairs:
                        total += variance * cuts * all_cuts[2]
                    else:
                        square = all_cuts[2] + cuts * all_cuts[1] * all_cuts[1]
                        total += variance * square
                run = _merged(
                    run[0],
                    run[1],
                    run[2],
                    inner,
                    after + part * (1.0 - rise),
                    part * part * bend,
                )
                after += part
                if i > 0:
                    run = _merged(run[0], run[1], run[2], 1.0, after, 0.0)
    count = _top_members(known, offsets, branching, edges, members, cells)
    position = 0.0
    for i in range(count):
        variance = known[members[i]]
        if variance > 0.0:
            run = _merged(
                position + 1.0,
                0.0,
                0.0,
                cells[i] - 1.0,
                mean[members[i]],
                scatter[members[i]],
            )
            run = _merged(run[0], run[1], run[2], cuts - run[0], 1.0, 0.0)
            if pairs:
                total += variance * cuts * run[2]
            else:
                total += variance * (run[2] + cuts * run[1] * run[1])
        position += cells[i]
    return total


@kernel
def _total_over_cells(
    known: FloatArray,
    offsets: IntArray,
    branching: int,
    edges: IntArray,
    most: int,
    buckets: bool,
) -> float:
    """Sum over all single cells, or over all single leaves (`buckets`)."""
    square = np.empty(known.size)
    for leaf in range(offsets[1]):
        size = edges[leaf + 1] - edges[leaf]
        square[leaf] = 1.0 if buckets else 1.0 / size
    members = np.empty(most, dtype=np.int64)
    cells = np.empty(most)
    share = np.empty(most)
    share_before = np.empty(most)
    variance_before = np.empty(most)
    total = 0.0
    for level in range(1, offsets.size - 1):
        for index in range(offsets[level + 1] - offsets[level]):
            node = offsets[level] + index
            if known[node] < 0.0:
                continue
            count = _members_of(
                known, offsets, branching, edges, level, index, members, cells
            )
            _shares_of(known, members, count, share)
            others = 0.0
            variances = 0.0
            squares = 0.0
            for i in range(count):
                share_before[i] = others
                variance_before[i] = variances
                others += share[i]
                variances += max(known[members[i]], 0.0)
                squares += share[i] * share[i] * square[members[i]]
            square[node] = squares
            others = 0.0
            variances = 0.0
            for i in range(count - 1, -1, -1):
                # A query inside member i covers it beyond its parent, and covers the
                # others less than their parent.
                variance = max(known[members[i]], 0.0)
                beyond = share_before[i] + others
                elsewhere = variance_before[i] + variances
                total += square[members[i]] * (
                    variance * beyond * beyond + share[i] * share[i] * elsewhere
                )
                others += share[i]
                variances += variance
    count = _top_members(known, offsets, branching, edges, members, cells)
    for i in range(count):
        total += max(known[members[i]], 0.0) * square[members[i]]
    return total


@kernel
def _variance_of_all(
    known: FloatArray, offsets: IntArray, branching: int, edges: IntArray, most: int
) -> float:
    members = np.empty(most, dtype=np.int64)
    cells = np.empty(most)
    count = _top_members(known, offsets, branching, edges, members, cells)
    total = 0.0
    for i in range(count):
        total += max(known[members[i]], 0.0)
    return total


def tree_total_variance(
    variances: FloatArray, leaves: int, branching: int, kind: str, edges: IntArray
) -> float:
    """Return the sum of the variances of all queries of an implicit workload.

    Parameters
    ----------
    variances : (nodes,) float64
        Variance of each measurement; infinity: not measured, 0: exact.
    leaves, branching : int
        The shape of the tree.
    kind : {"all_ranges", "prefixes", "identity", "bucket_identity", "total"}
        The queries: every range of cells, every range from the first cell on, every
        cell, every leaf, or the sum of everything.
    edges : (leaves + 1,) int64
        Cell edges of the leaves, rising from 0; the estimate is uniform inside a leaf.

    Returns
    -------
    float
        The total variance of the noise. What the uniform leaves distort is no noise
        and does not count. O(nodes).

    Examples
    --------
    Three cells measured alone, each with variance 1, have six ranges, of lengths
    1, 1, 1, 2, 2 and 3:

    >>> variances = np.array([1.0, 1.0, 1.0, np.inf])
    >>> round(tree_total_variance(variances, 3, 3, "all_ranges", np.arange(4)), 12)
    10.0
    """
    if kind not in KINDS:
        raise InputError(
            f"an implicit workload is one of {', '.join(KINDS)}; got {kind!r}. List "
            "other queries and sum their spreads"
        )
    sizes, offsets = tree_levels(leaves, branching)
    variances = node_array(variances, int(offsets[-1]), "variances")
    edges = np.ascontiguousarray(edges, dtype=np.int64)
    if edges.shape != (leaves + 1,) or edges[0] != 0 or np.diff(edges).min() < 1:
        raise InputError(
            f"edges holds {leaves + 1} rising whole numbers from 0 on for {leaves} "
            f"leaves, got an array of shape {edges.shape}"
        )
    known = subtree_variances(variances, sizes, offsets, branching)
    # Where every total is fixed a node deals with its own children only.
    most = leaves if known.min() < 0.0 else min(branching, leaves)
    shape = (known, offsets, branching, edges, most)
    if kind == "total":
        return float(_variance_of_all(*shape))
    if kind in ("all_ranges", "prefixes"):
        return float(_total_over_cuts(*shape, kind == "all_ranges"))
    return float(_total_over_cells(*shape, kind == "bucket_identity"))
