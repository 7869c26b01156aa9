"""Weights of the tree nodes for workloads too large to write down.

Serves DAWA's second stage and the greedy hierarchy when the workload is every range,
every prefix, every cell, every bucket, or the total. All ranges over `n` cells are
``n (n + 1) / 2`` queries, but a range is just two *cuts* between cells, and a node
only minds how many cuts lie before it, inside it and after it:

    cells      c c c c c c c c c
    cuts      | | | | | | | | | |        ten cuts, 45 ranges
    node            [c c c]              three before, two inside, five after

The *reach* of an inner cut is the coverage of the node by its cells before the cut.
The mean and the summed squared deviation of the reaches give a node's demand; its
spread is a sum over pairs of children, which running sums collect in one pass. So a
node costs O(children) and the tree O(leaves), whatever the branching. Every term is a
square or a product of positive numbers. The choice itself is in `node_shares`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import WorkloadError
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.tree.tree_shape import tree_levels

from .node_shares import (
    Scaling,
    level_decays,
    lift_inside,
    scaling_from_shares,
    settle_level,
    sum_siblings,
)

Kind = Literal["all_ranges", "prefixes", "identity", "bucket_identity", "total"]
KINDS = ("all_ranges", "prefixes", "identity", "bucket_identity", "total")
ALL_RANGES, PREFIXES, IDENTITY, BUCKET_IDENTITY, TOTAL = range(5)


@kernel
def _cut_demand(
    start: float, end: float, cells: float, mean: float, deviation: float, ranges: bool
) -> float:
    """Return the summed squared coverage of a node by all ranges, or all prefixes."""
    inner = end - start - 1.0
    reaching = deviation + inner * mean * mean
    after = cells - end + 1.0
    if not ranges:
        return after + reaching
    before = start + 1.0
    leaving = deviation + inner * (1.0 - mean) ** 2
    crossing = before * after + after * leaving + before * reaching
    return crossing + inner * deviation


@kernel
def _lift_cuts(
    edges: IntArray,
    below: int,
    branching: int,
    span: int,
    ranges: bool,
    variance: FloatArray,
    total: FloatArray,
    mean: FloatArray,
    deviation: FloatArray,
    demand: FloatArray,
    spread: FloatArray,
) -> None:
    """Lift the moments of the reaches to the parents, in place; fill demand, spread.

    The spread is the sum over pairs of children ``i < j`` of the product of their
    variances and the summed squared difference of their coverages, over the total
    variance. Children are met from the left; the sums over the earlier ones that
    end in ``_gap`` count each by the cuts between it and the present child.
    """
    leaves = edges.size - 1
    cells = float(edges[leaves])
    for first in range(0, below, branching):
        parent = first // branching
        cuts = mean_up = deviation_up = reach = 0.0
        weight = weight_gap = 0.0
        left = left_reaching = reaching = 0.0
        left_leaving = left_leaving_gap = 0.0
        inner_deviation = deviations = 0.0
        inners = inners_mean = inners_deviation = 0.0
        pairs = 0.0
        for child in range(first, min(first + branching, below)):
            start = float(edges[child * span])
            end = float(edges[min((child + 1) * span, leaves)])
            inner = end - start - 1.0
            own, middle, scatter = variance[child], mean[child], deviation[child]
            before, after = start + 1.0, cells - end + 1.0
            reached = scatter + inner * middle * middle
            missed = scatter + inner * (1.0 - middle) ** 2

            if ranges:
                # Ranges with one cut inside each child, then those with one cut or
                # none inside the two: the coverages differ by what a cut leaves.
                both = inners * scatter + inner * deviations
                both += inner * (
                    inners_deviation + inners * (inners_mean - middle) ** 2
                )
                one = left_reaching + left * missed + left_leaving_gap + inner_deviation
                one += after * reaching + weight_gap * (reached + after)
                pairs += own * (
                    one + both + weight * (inner * scatter + after * missed)
                )
                left += own * before
                left_reaching += own * before * reached
                left_leaving_gap += left_leaving * (inner + 1.0)
                left_leaving += own * (before + missed)
                left_leaving_gap += own * (before + missed)
                inner_deviation += own * inner * scatter
                deviations += own * scatter
                if inner > 0.0:
                    # Weighted mean and deviation of what the inner cuts leave.
                    inners += own * inner
                    step = (1.0 - middle) - inners_mean
                    inners_mean += step * own * inner / inners
                    step *= (1.0 - middle) - inners_mean
                    inners_deviation += step * own * inner
            else:
                pairs += own * (reaching + weight_gap + weight * missed)
            weight_gap += weight * (inner + 1.0) + own
            weight += own
            reaching += own * reached

            # Join the child's reaches, and the cut at its start, to the parent's.
            part = own / total[parent]
            if child > first:
                cuts += 1.0
                step = reach - mean_up
                mean_up += step / cuts
                deviation_up += step * (reach - mean_up)
            if inner > 0.0:
                joined = cuts + inner
                step = reach + part * middle - mean_up
                deviation_up += (
                    part * part * scatter + step * step * cuts * inner / joined
                )
                mean_up += step * inner / joined
                cuts = joined
            reach += part
        mean[parent], deviation[parent] = mean_up, deviation_up
        spread[parent] = pairs / total[parent]
        start = float(edges[first * span])
        end = float(edges[min((first + branching) * span, leaves)])
        demand[parent] = _cut_demand(start, end, cells, mean_up, deviation_up, ranges)


@kernel
def _implicit_shares(
    kind: int,
    edges: IntArray,
    sizes: IntArray,
    offsets: IntArray,
    branching: int,
    decays: FloatArray,
    prune: bool,
    root_exact: bool,
) -> tuple[FloatArray, float]:
    """Return the shares and the objective; `kind` is a place in `KINDS`."""
    leaves = sizes[0]
    top = sizes.size - 1
    cuts = kind in (ALL_RANGES, PREFIXES)
    demand = np.ones(leaves)
    mean = np.full(leaves if cuts else 0, 0.5)
    deviation = np.empty(mean.size)
    breaks = np.zeros(leaves + 2, dtype=np.int64)
    for leaf in range(leaves):
        width = float(edges[leaf + 1] - edges[leaf])
        if kind != TOTAL:
            breaks[leaf + 1] = leaf
        if kind == IDENTITY:
            demand[leaf] = 1.0 / width
        elif cuts:
            start, end = float(edges[leaf]), float(edges[leaf + 1])
            # The reaches of its cuts are 1/width, 2/width, ...
            deviation[leaf] = (width - 1.0) * (width - 2.0) / (12.0 * width)
            demand[leaf] = _cut_demand(
                start,
                end,
                float(edges[leaves]),
                0.5,
                deviation[leaf],
                kind == ALL_RANGES,
            )
    breaks[leaves + 1] = breaks[leaves]

    shares = np.zeros(offsets[-1])
    variance = np.ones(leaves)
    residual = np.zeros(leaves)
    before = np.empty(leaves)
    after = np.empty(leaves)
    inside = demand.copy() if kind in (IDENTITY, BUCKET_IDENTITY) else np.zeros(leaves)
    parents = sizes[min(1, top)]
    none = np.zeros(parents)
    total = np.empty(parents)
    spread = np.zeros(parents)
    partial = np.full(parents, 1.0 if kind == TOTAL else 0.0)
    span = 1
    for level in range(1, top + 1):
        below = sizes[level - 1]
        sum_siblings(variance, below, branching, before, after, total)
        if cuts:
            _lift_cuts(
                edges, below, branching, span, kind == ALL_RANGES,
                variance, total, mean, deviation, partial, spread,
            )  # fmt: skip
        elif kind != TOTAL:
            lift_inside(
                variance, before, after, total, below, branching, inside, spread
            )
        span *= branching
        settle_level(
            below, branching, span, leaves,
            decays[level], prune, root_exact and level == top, breaks,
            before, after, total,
            none, partial, inside, spread,
            variance, demand, residual,
            shares[offsets[level] : offsets[level + 1]],
        )  # fmt: skip
    objective = residual[0]
    if not root_exact:
        objective += variance[0] * demand[0]
    return shares, objective


def greedy_scaling_implicit(
    kind: Kind,
    edges: IntArray,
    branching: int,
    *,
    decay: bool = True,
    root_exact: bool = False,
    prune: bool = False,
) -> Scaling:
    """Tune node weights to a whole family of queries over cells, in O(buckets).

    Parameters
    ----------
    kind : str
        ``"all_ranges"`` or ``"prefixes"`` of the cells, ``"identity"`` (each cell),
        ``"bucket_identity"`` (each bucket) or ``"total"`` (one query). A cell is
        answered with its share of its bucket.
    edges : (buckets + 1,) int64
        Bucket `j`, a leaf of the tree, holds the cells ``edges[j]`` up to
        ``edges[j + 1]``; strictly increasing from 0.
    branching : int
        Largest number of children of a node.
    decay, root_exact, prune : bool
        As in `greedy_scaling_fractions`.

    Returns
    -------
    Scaling
        Node weights and the predicted error.

    Examples
    --------
    >>> greedy_scaling_implicit("bucket_identity", [0, 1, 2], 2)
    Scaling(weights=array([1., 1., 0.]), objective=2.0)
    """
    if kind not in KINDS:
        raise WorkloadError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}")
    edges = np.require(edges, np.int64, ["C", "W"])
    if (
        edges.ndim != 1
        or edges.size < 2
        or edges[0] != 0
        or not (edges[1:] > edges[:-1]).all()
    ):
        raise WorkloadError(
            "edges must be a vector that rises strictly from 0, one more than there "
            f"are buckets; got shape {edges.shape}, {edges.reshape(-1)[:4]}..."
        )
    sizes, offsets = tree_levels(edges.size - 1, branching)
    shares, objective = _implicit_shares(
        KINDS.index(kind),
        edges,
        sizes,
        offsets,
        branching,
        level_decays(sizes.size, branching, decay),
        prune,
        root_exact,
    )
    return scaling_from_shares(shares, objective, sizes, offsets, branching, root_exact)
