r"""Gradient of the workload's error in the precision of every tree node.

Serves the tuning of weights: the sweeps of `weight_sweeps` and the convex design of
`square_root_weights`. An answer follows the noise of node v with the coefficient
(precision x variance) x *pull* (``kernels.tree.spread``), so the squared pulls of all
ranges, summed per node, give the error and its gradient at once:

    error     = sum over nodes of  precision variance^2 energy
    gradient  =                  - variance^2 energy          variance: of its subtree

Among siblings a range is constant left and right of the node that holds its end, so a
walk up to where its ends meet, and down again, leaves three notes at each level, and
one pass adds them up:

    siblings    0    0    x    1    1         coverage, x at the node with the end
    notes      before before here after after

Above the place where its ends meet a range of coverage y pulls y times what the total
of that node would: one number per node, the squared coverages *inside* it, stands for
all of these. O(queries log leaves + leaves) time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.kernels._jit import kernel

from .budget_shares import RegularLevels
from .range_queries import SortedRanges


class Energies(NamedTuple):
    """What every node knows, and how the queries pull at it; arrays by node.

    Attributes
    ----------
    variance : float64
        Of the node's total, known from its own subtree.
    energy : float64
        Squared pulls of all queries, summed.
    inner, outer : float64
        Parts, adding up to 1, of the precision of the node's total that come from its
        subtree and from outside.
    """

    variance: FloatArray
    energy: FloatArray
    inner: FloatArray
    outer: FloatArray


class Gradients(NamedTuple):
    """Error of the queries, and how it depends on each inner node.

    Attributes
    ----------
    error : float
        Of the given ranges.
    floor_error : float
        Of the queries for each leaf.
    pulls : (inner nodes,) float64
        Error per unit of variance of each node's total: minus the derivative of the
        whole error in the squared weight, over the squared variance.
    precisions : (inner nodes,) float64
        Precision of each node's total known from outside, over the squared weight
        that its subtree has to spend.
    """

    error: float
    floor_error: float
    pulls: FloatArray
    precisions: FloatArray


class _Families(NamedTuple):
    """By node: how its fit mixes, and its place among its siblings."""

    keep: FloatArray
    """Weight of the children in the node's fit."""
    part: FloatArray
    """The node's part of the sum of variances over its family."""
    before: FloatArray
    """The parts of the earlier siblings."""
    after: FloatArray
    """The parts of the later siblings."""


@kernel
def _families(
    precisions: FloatArray, variance: FloatArray, tree: RegularLevels, root_exact: bool
) -> _Families:
    """Fill in the variances from the leaves up."""
    sizes, offsets, fan_out = tree.sizes, tree.offsets, tree.fan_out
    keep = np.zeros(precisions.size)
    part = np.ones(precisions.size)
    before = np.zeros(precisions.size)
    after = np.zeros(precisions.size)
    for leaf in range(sizes[0]):
        variance[leaf] = 1.0 / precisions[leaf]
    for level in range(1, sizes.size):
        for index in range(sizes[level]):
            start = offsets[level - 1] + index * fan_out
            end = min(start + fan_out, offsets[level])
            total = 0.0
            for child in range(start, end):
                total += variance[child]
            running = 0.0
            for child in range(start, end):
                part[child] = variance[child] / total
                before[child] = running
                running += part[child]
            running = 0.0
            for child in range(end - 1, start - 1, -1):
                after[child] = running
                running += part[child]
            node = offsets[level] + index
            keep[node] = 1.0 / (1.0 + precisions[node] * total)
            variance[node] = total * keep[node]
    if root_exact:
        keep[-1] = variance[-1] = 0.0
    return _Families(keep, part, before, after)


@kernel
def _walk_ranges(
    ranges: SortedRanges,
    families: _Families,
    inner: FloatArray,
    tree: RegularLevels,
    inside: FloatArray,
    notes: FloatArray,
) -> None:
    """Leave the squared pulls of the ranges from where their ends meet on.

    Columns of the notes: the node itself, all earlier siblings, all later siblings, and
    the node with its whole subtree.
    """
    first, head, last, tail = ranges.first, ranges.head, ranges.last, ranges.tail
    offsets, fan_out, shift = tree.offsets, tree.fan_out, tree.shift
    keep, part = families.keep, families.part
    before, after = families.before, families.after
    nodes = np.empty((offsets.size, 2), dtype=np.int64)
    covered = np.empty((offsets.size, 2))
    for query in range(first.size):
        left, right, weight = first[query], last[query], ranges.squared[query]
        x, z = head[query], tail[query]
        if left == right:
            inside[left] += weight * x * x
            continue
        level = 0
        while True:
            here = offsets[level]
            nodes[level, 0], nodes[level, 1] = here + left, here + right
            covered[level, 0], covered[level, 1] = x, z
            left_up = left >> shift if shift > 0 else left // fan_out
            right_up = right >> shift if shift > 0 else right // fan_out
            if left_up == right_up:
                break
            x = x * part[here + left] + after[here + left]
            z = z * part[here + right] + before[here + right]
            left, right = left_up, right_up
            level += 1
        left, right = nodes[level, 0], nodes[level, 1]
        y = x * part[left] + z * part[right]
        for node in range(left + 1, right):
            y += part[node]
        meeting = offsets[level + 1] + left_up
        inside[meeting] += weight * y * y
        passed = keep[meeting] * inner[meeting] * y - y
        notes[left, 1] += weight * passed * passed
        notes[right, 2] += weight * passed * passed
        for node in range(left + 1, right):
            notes[node, 3] += weight * (passed + 1.0) ** 2
        for side in range(2):
            # Siblings on the outer side are not covered, those on the inner side are.
            node, away = nodes[level, side], passed
            pull = away + covered[level, side]
            notes[node, 0] += weight * pull * pull
            for depth in range(level - 1, -1, -1):
                away = keep[node] * pull - covered[depth + 1, side]
                node = nodes[depth, side]
                pull = away + covered[depth, side]
                notes[node, 0] += weight * pull * pull
                notes[node, 1 + side] += weight * away * away
                notes[node, 2 - side] += weight * (away + 1.0) ** 2


@kernel
def node_energies(
    ranges: SortedRanges,
    floor: float,
    precisions: FloatArray,
    tree: RegularLevels,
    root_exact: bool,
) -> Energies:
    """Return the summed squared pulls of the ranges, and of a query for each leaf.

    `floor` is the squared weight of the latter; `precisions` are those of the nodes'
    measurements, positive on the leaves, 0 where a node is not measured.
    """
    sizes, offsets, fan_out = tree.sizes, tree.offsets, tree.fan_out
    count = precisions.size
    variance = np.empty(count)
    families = _families(precisions, variance, tree, root_exact)
    keep, part = families.keep, families.part
    inner, outer = np.ones(count), np.zeros(count)
    # What a node's own total pulls at it, and what it takes off its children.
    taken = np.empty(count)
    for level in range(sizes.size - 1, -1, -1):
        for index in range(sizes[level]):
            node = offsets[level] + index
            taken[node] = 1.0 - keep[node] + keep[node] * outer[node]
            start = offsets[level - 1] + index * fan_out if level > 0 else 0
            end = min(start + fan_out, offsets[level]) if level > 0 else 0
            for child in range(start, end):
                outer[child] = part[child] * taken[node]
                inner[child] = families.before[child] + families.after[child]
                inner[child] += part[child] * keep[node] * inner[node]
    inside = np.zeros(count)
    inside[: sizes[0]] = floor
    notes = np.zeros((count, 4))
    _walk_ranges(ranges, families, inner, tree, inside, notes)
    for level in range(1, sizes.size):
        for index in range(sizes[level]):
            start = offsets[level - 1] + index * fan_out
            for child in range(start, min(start + fan_out, offsets[level])):
                lifted = inside[child] * part[child] * part[child]
                inside[offsets[level] + index] += lifted
    energy = np.zeros(count)
    energy[-1] = notes[-1, 0] + inside[-1] * inner[-1] ** 2
    for level in range(sizes.size - 1, 0, -1):
        for index in range(sizes[level]):
            node = offsets[level] + index
            start = offsets[level - 1] + index * fan_out
            end = min(start + fan_out, offsets[level])
            off = taken[node] * taken[node]
            running = keep[node] * keep[node] * notes[node, 3]
            for child in range(start, end):
                notes[child, 3] += running
                running += notes[child, 2] + off * inside[child] * part[child] ** 2
            running = 0.0
            for child in range(end - 1, start - 1, -1):
                notes[child, 3] += running
                running += notes[child, 1] + off * inside[child] * part[child] ** 2
                energy[child] = notes[child, 0] + notes[child, 3]
                energy[child] += inside[child] * inner[child] ** 2
    return Energies(variance, energy, inner, outer)


@kernel
def error_gradients(
    ranges: SortedRanges,
    floor: float,
    weights: FloatArray,
    tree: RegularLevels,
    root_exact: bool,
) -> Gradients:
    """Return the error of the queries, and its gradients in the inner nodes.

    `floor` is the squared weight of one more query for each leaf; `weights` are
    positive on the leaves, and their squares the precisions of the nodes.
    """
    sizes, offsets, fan_out = tree.sizes, tree.offsets, tree.fan_out
    leaves = sizes[0]
    found = node_energies(ranges, floor, weights * weights, tree, root_exact)
    variance, inner = found.variance, found.inner
    error = 0.0
    floor_error = 0.0
    for leaf in range(leaves):
        floor_error += floor * variance[leaf] * inner[leaf]
    for node in range(weights.size):
        error += found.energy[node] * (weights[node] * variance[node]) ** 2
    pulls = np.zeros(weights.size - leaves)
    precisions = np.zeros(weights.size - leaves)
    spendable = weights.copy()
    for level in range(1, sizes.size):
        for index in range(sizes[level]):
            node = offsets[level] + index
            spendable[node] += spendable[offsets[level - 1] + index * fan_out]
            if variance[node] > 0.0:
                local = spendable[node] * spendable[node]
                pulls[node - leaves] = found.energy[node] / inner[node] ** 2
                outside = found.outer[node] / inner[node]
                precisions[node - leaves] = outside / (variance[node] * local)
    return Gradients(error - floor_error, floor_error, pulls, precisions)
