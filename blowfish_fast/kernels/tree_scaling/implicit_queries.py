"""Whole families of queries over a tree: their demand and spread, level by level.

All ranges over `n` cells are ``n (n + 1) / 2`` queries, but a range is just two *cuts*
between cells, and a node only minds how many cuts lie before, inside and after it:

    cells         |   |   |   |   |   |        a node over cells 1 to 3 of five has
    cuts          0   1   2   3   4   5        2 cuts before, 2 inside (2 and 3) and 2
    the node          [-----------)            after; its edges count as before, after

The *reach* of an inner cut is the coverage of the node by its cells before the cut:
here 1/3 and 2/3. Mean and summed squared deviation of the reaches give a node's demand,
and its spread is a sum over pairs of children, which running sums collect in one pass.
O(leaves), and every term is a square or a product of positive numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.kernels._jit import kernel

from .budget_shares import Demand, Level, RegularLevels, lift_inside

KINDS = ("all_ranges", "prefixes", "identity", "bucket_identity", "total")
ALL_RANGES, PREFIXES, IDENTITY, BUCKET_IDENTITY, TOTAL = range(5)


class Family(NamedTuple):
    """All queries of a kind over buckets, the leaves.

    Attributes
    ----------
    kind : int
        A place in `KINDS`.
    edges : ndarray of int64, shape (buckets + 1,)
        Cell edges of the buckets, rising from 0.
    mean : ndarray of float64
        Mean of the reaches of each node's inner cuts; empty if the kind has no cuts.
    deviation : ndarray of float64
        Summed squared deviation of these reaches.
    """

    kind: int
    edges: IntArray
    mean: FloatArray
    deviation: FloatArray


def family_of(kind: str, edges: IntArray) -> Family:
    """Return a family, with room for the moments of its cuts.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    edges : ndarray of int64, shape (buckets + 1,)
        Cell edges of the buckets, rising from 0.

    Returns
    -------
    Family
        The family.
    """
    place = KINDS.index(kind)
    if place not in (ALL_RANGES, PREFIXES):
        return Family(place, edges, np.empty(0), np.empty(0))
    return Family(place, edges, np.empty(edges.size - 1), np.empty(edges.size - 1))


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
def demand_of_family(family: Family, tree: RegularLevels) -> Demand:
    """Return the demand at the leaves; fill the moments of their cuts.

    Parameters
    ----------
    family : Family
        The family; its moments are filled.
    tree : RegularLevels
        The layout.

    Returns
    -------
    Demand
        What the queries want of the leaves.
    """
    kind, edges = family.kind, family.edges
    leaves = tree.sizes[0]
    demand = np.ones(leaves)
    for leaf in range(leaves):
        start, end = float(edges[leaf]), float(edges[leaf + 1])
        if kind == IDENTITY:
            demand[leaf] = 1.0 / (end - start)
        elif kind in (ALL_RANGES, PREFIXES):
            # The reaches of its cuts are 1/width, 2/width, ...
            width = end - start
            deviation = (width - 1.0) * (width - 2.0) / (12.0 * width)
            family.mean[leaf], family.deviation[leaf] = 0.5, deviation
            cells, ranges = float(edges[leaves]), kind == ALL_RANGES
            demand[leaf] = _cut_demand(start, end, cells, 0.5, deviation, ranges)
    inside = demand.copy() if kind in (IDENTITY, BUCKET_IDENTITY) else np.zeros(leaves)
    breaks = np.zeros(leaves + 2, dtype=np.int64)
    if kind != TOTAL:
        for leaf in range(leaves):
            breaks[leaf + 1] = leaf
        breaks[leaves + 1] = leaves - 1
    return Demand(np.empty(0), demand, inside, breaks, 0)


@kernel
def lift_family(family: Family, level: Level) -> None:
    """Lift the demand and the spread of all queries by one level.

    Parameters
    ----------
    family : Family
        The family; its moments are lifted.
    level : Level
        The level; demand and spread are filled.
    """
    if family.kind in (ALL_RANGES, PREFIXES):
        _lift_cuts(family, level)
    elif family.kind != TOTAL:
        lift_inside(level)
    else:
        for parent in range((level.below + level.fan_out - 1) // level.fan_out):
            level.partial[parent] = 1.0


@kernel
def _lift_cuts(family: Family, level: Level) -> None:
    """Lift the moments of the reaches to the parents, in place; fill demand, spread.

    The spread is the sum over pairs of children of the product of their variances and
    the summed squared difference of their coverages, over the total variance. For an
    earlier child i and this child j, with reaches r of the cuts inside them, a prefix
    differs by where its cut lies::

                [  child i  )   gap    [  child j  )
        cut       inside i    between    inside j         elsewhere: by nothing
        differs   r_i         1          1 - r_j

    A range differs by where its two cuts lie. `reached` sums the squares of r over the
    cuts inside a child, and `missed` those of 1 - r::

        first cut   second cut   squared differences, summed      collected in
        before i    inside i     before_i * reached_i             left_reaching
        before i    between      before_i * gap                   left_leaving_gap
        before i    inside j     before_i * missed_j              left
        inside i    inside i     inner_i * deviation_i            inner_deviation
        inside i    between      missed_i * gap                   left_leaving_gap
        inside i    inside j     of 1 - r_i and r_j: `both`       inners, deviations
        inside i    after j      reached_i * after_j              reaching
        between     inside j     gap * reached_j                  weight_gap
        between     after j      gap * after_j                    weight_gap
        inside j    inside j     inner_j * deviation_j            weight
        inside j    after j      missed_j * after_j               weight

    Each sum runs over the earlier children, weighted by their variances; those that end
    in ``_gap`` count each one by the cuts between it and this child.
    """
    edges, mean, deviation = family.edges, family.mean, family.deviation
    ranges = family.kind == ALL_RANGES
    below, fan_out = level.below, level.fan_out
    span = level.span // fan_out
    variance, total = level.variance, level.total
    demand, spread = level.partial, level.spread
    leaves = edges.size - 1
    cells = float(edges[leaves])
    for first in range(0, below, fan_out):
        parent = first // fan_out
        cuts = mean_up = deviation_up = reach = 0.0
        weight = weight_gap = 0.0
        left = left_reaching = reaching = 0.0
        left_leaving = left_leaving_gap = 0.0
        inner_deviation = deviations = 0.0
        inners = inners_mean = inners_deviation = 0.0
        pairs = 0.0
        for child in range(first, min(first + fan_out, below)):
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
                with_left = (
                    left_reaching + left * missed + left_leaving_gap + inner_deviation
                )
                with_left += after * reaching + weight_gap * (reached + after)
                pairs += own * (
                    with_left + both + weight * (inner * scatter + after * missed)
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
        end = float(edges[min((first + fan_out) * span, leaves)])
        demand[parent] = _cut_demand(start, end, cells, mean_up, deviation_up, ranges)
