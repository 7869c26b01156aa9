r"""Gradient of the workload's error in the squared weight of every tree node.

Serves the sweeps that improve DAWA's greedy weights. For every inner node of a tree
with given weights, and for ranges of leaves as queries, it finds the *pull*, the
gradient over the squared variance, and what is known of the node's total elsewhere:

         precision                    known of its total from outside the subtree
             |
             v                        pull: what one unit of its variance costs
    c   c  [node]  c   c                    the queries, wherever they end
            / \                      inside: variances, from the subtree alone

The pull is gathered by walking each range once up to the node where its ends meet, and
down again. Among siblings a range is constant left and right of the node that holds
its end, so a walk leaves three notes at each level, and one pass adds them up:

    siblings    0    0    x    1    1         coverage, x at the node with the end
    notes      before before here after after

A range that lies inside one child of a node pulls only through that child's total; a
single number per node, the demand *inside* it, stands for all of these. O(queries log
leaves + leaves) time; the error of the queries comes with it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.kernels._jit import kernel

from .budget_shares import RegularLevels
from .range_queries import SortedRanges


class NodeVariances(NamedTuple):
    """What each node knows from its subtree, and its place in its family."""

    variance: FloatArray
    """Of the node's total."""
    part: FloatArray
    """The node's part of the sum of variances over its family."""
    before: FloatArray
    """The parts of the earlier siblings."""
    after: FloatArray
    """The parts of the later siblings."""


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


@kernel
def _node_variances(weights: FloatArray, tree: RegularLevels) -> NodeVariances:
    sizes, offsets, fan_out = tree.sizes, tree.offsets, tree.fan_out
    variance = np.empty(weights.size)
    part = np.ones(weights.size)
    before = np.zeros(weights.size)
    after = np.zeros(weights.size)
    for leaf in range(sizes[0]):
        variance[leaf] = 1.0 / (weights[leaf] * weights[leaf])
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
            variance[node] = total / (weights[node] * weights[node] * total + 1.0)
    return NodeVariances(variance, part, before, after)


@kernel
def _outside_variances(
    weights: FloatArray, nodes: NodeVariances, tree: RegularLevels, root_exact: bool
) -> FloatArray:
    """Return what each node's total is known to from outside; infinity: nothing."""
    variance, part = nodes.variance, nodes.part
    before, after = nodes.before, nodes.after
    sizes, offsets, fan_out = tree.sizes, tree.offsets, tree.fan_out
    outside = np.empty(weights.size)
    outside[-1] = 0.0 if root_exact else np.inf
    for level in range(sizes.size - 1, 0, -1):
        for index in range(sizes[level]):
            node = offsets[level] + index
            above = 0.0
            if outside[node] > 0.0:
                precision = weights[node] * weights[node] + 1.0 / outside[node]
                above = 1.0 / precision if precision > 0.0 else np.inf
            start = offsets[level - 1] + index * fan_out
            for child in range(start, min(start + fan_out, offsets[level])):
                siblings = (before[child] + after[child]) * variance[child]
                outside[child] = above + siblings / part[child]
    return outside


@kernel
def _joint(inner: float, outer: float) -> float:
    """Return the variance that two independent sources give together."""
    return inner * (outer / (inner + outer)) if outer < np.inf else inner


@kernel
def _note(
    notes: FloatArray, node: int, side: int, value: float, pull: float, weight: float
) -> None:
    """Note a deviation from the family's coverage: times the pull, and squared."""
    notes[node, side] += weight * pull * value
    notes[node, side + 3] += weight * value * value


@kernel
def _walk_ranges(
    ranges: SortedRanges,
    nodes: NodeVariances,
    outside: FloatArray,
    tree: RegularLevels,
    inside: FloatArray,
    notes: FloatArray,
) -> float:
    """Return the error of the ranges; leave their demand and their notes.

    Row `i` of the notes belongs to inner node `i`; its columns are the node itself,
    its earlier siblings, its later siblings: the deviation of the range's coverage
    from that of the family, first times the covariance of the range with the family's
    total, then squared.
    """
    first, head, last, tail = ranges.first, ranges.head, ranges.last, ranges.tail
    squared, offsets = ranges.squared, tree.offsets
    fan_out, shift = tree.fan_out, tree.shift
    variance, part = nodes.variance, nodes.part
    before, after = nodes.before, nodes.after
    leaves = offsets[1]
    # No literals, for each of which `_note` would be compiled once more.
    own_side, earlier, later = int(0), int(1), int(2)  # noqa: RUF046, UP018
    lefts = np.empty(offsets.size, dtype=np.int64)
    rights = np.empty(offsets.size, dtype=np.int64)
    heads = np.empty(offsets.size)
    tails = np.empty(offsets.size)
    error = 0.0
    for query in range(first.size):
        left, right, weight = first[query], last[query], squared[query]
        x, z = head[query], tail[query]
        if left == right:
            error += weight * x * x * _joint(variance[left], outside[left])
            inside[left] += weight * x * x
            continue
        level = 0
        while True:
            here = offsets[level]
            lefts[level], rights[level] = here + left, here + right
            heads[level], tails[level] = x, z
            left_up = left >> shift if shift > 0 else left // fan_out
            right_up = right >> shift if shift > 0 else right // fan_out
            if left_up == right_up:
                break
            x = x * part[here + left] + after[here + left]
            z = z * part[here + right] + before[here + right]
            left, right = left_up, right_up
            level += 1

        # The family where the ends meet.
        left, right = lefts[level], rights[level]
        between = 0.0
        for node in range(left + 1, right):
            between += part[node]
        y = x * part[left] + between + z * part[right]
        meeting = offsets[level + 1] + left_up
        inside[meeting] += weight * y * y
        spread = between * (1.0 - y) ** 2 + (before[left] + after[right]) * y * y
        own = variance[left] * ((x - y) ** 2 + spread / part[left])
        own += variance[right] * (z - y) ** 2
        joint = _joint(variance[meeting], outside[meeting])
        error += weight * (own + y * y * joint)
        pull = y * joint
        if level > 0:
            _note(notes, left - leaves, own_side, x - y, pull, weight)
            _note(notes, left - leaves, earlier, -y, pull, weight)
            _note(notes, right - leaves, own_side, z - y, pull, weight)
            _note(notes, right - leaves, later, -y, pull, weight)
            for node in range(left + 1 - leaves, right - leaves):
                _note(notes, node, own_side, 1.0 - y, pull, weight)
        left_pull = part[left] * pull + variance[left] * (x - y)
        right_pull = part[right] * pull + variance[right] * (z - y)

        # The families of the two ends, each with one end in it.
        left_mean, right_mean = x, z
        for depth in range(level - 1, -1, -1):
            node, x, y = lefts[depth], heads[depth], left_mean
            spread = after[node] * (1.0 - y) ** 2 + before[node] * y * y
            error += weight * variance[node] * ((x - y) ** 2 + spread / part[node])
            if depth > 0:
                _note(notes, node - leaves, own_side, x - y, left_pull, weight)
                _note(notes, node - leaves, earlier, -y, left_pull, weight)
                _note(notes, node - leaves, later, 1.0 - y, left_pull, weight)
            left_pull = part[node] * left_pull + variance[node] * (x - y)
            left_mean = x

            node, z, y = rights[depth], tails[depth], right_mean
            spread = before[node] * (1.0 - y) ** 2 + after[node] * y * y
            error += weight * variance[node] * ((z - y) ** 2 + spread / part[node])
            if depth > 0:
                _note(notes, node - leaves, own_side, z - y, right_pull, weight)
                _note(notes, node - leaves, earlier, 1.0 - y, right_pull, weight)
                _note(notes, node - leaves, later, -y, right_pull, weight)
            right_pull = part[node] * right_pull + variance[node] * (z - y)
            right_mean = z
    return error


@kernel
def _gather_pulls(
    notes: FloatArray,
    inside: FloatArray,
    nodes: NodeVariances,
    outside: FloatArray,
    tree: RegularLevels,
) -> FloatArray:
    """Return, per inner node, the summed squared covariance of queries and total.

    The notes and the demand of the queries inside one child are used up.
    """
    variance, part = nodes.variance, nodes.part
    before, after = nodes.before, nodes.after
    sizes, offsets, fan_out = tree.sizes, tree.offsets, tree.fan_out
    leaves = sizes[0]
    for level in range(1, sizes.size):
        for index in range(sizes[level]):
            start = offsets[level - 1] + index * fan_out
            for child in range(start, min(start + fan_out, offsets[level])):
                lifted = inside[child] * part[child] * part[child]
                inside[offsets[level] + index] += lifted
    top = variance.size - 1
    pulls = np.zeros(variance.size - leaves)
    if pulls.size > 0:
        pulls[-1] = inside[top] * _joint(variance[top], outside[top]) ** 2
    for level in range(sizes.size - 1, 1, -1):
        for index in range(sizes[level]):
            node = offsets[level] + index
            joint = _joint(variance[node], outside[node])
            start = offsets[level - 1] + index * fan_out
            end = min(start + fan_out, offsets[level])
            crossed = squares = 0.0
            for child in range(start, end):
                row = notes[child - leaves]
                other = inside[child] * part[child] * part[child]
                row[0] += crossed
                row[3] += squares
                crossed += row[2] - joint * other
                squares += row[5] + other
            crossed = squares = 0.0
            for child in range(end - 1, start - 1, -1):
                row = notes[child - leaves]
                own, share = inside[child], part[child]
                rest = before[child] + after[child]
                cross = row[0] + crossed + joint * own * share * rest
                square = row[3] + squares + own * rest * rest
                crossed += row[1] - joint * own * share * share
                squares += row[4] + own * share * share
                known = variance[child]
                pull = share * (share * pulls[node - leaves] + 2.0 * known * cross)
                pulls[child - leaves] = max(pull + known * known * square, 0.0)
    return pulls


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
    positive on the leaves.
    """
    sizes, offsets, fan_out = tree.sizes, tree.offsets, tree.fan_out
    leaves = sizes[0]
    nodes = _node_variances(weights, tree)
    outside = _outside_variances(weights, nodes, tree, root_exact)
    variance = nodes.variance
    inside = np.zeros(weights.size)
    inner = weights.size - leaves
    notes = np.zeros((inner, 6))
    error = _walk_ranges(ranges, nodes, outside, tree, inside, notes)
    floor_error = 0.0
    for leaf in range(leaves):
        floor_error += floor * _joint(variance[leaf], outside[leaf])
        inside[leaf] += floor
    pulls = _gather_pulls(notes, inside, nodes, outside, tree)
    precisions = np.zeros(inner)
    spendable = inside  # used up, and as long
    for node in range(weights.size):
        spendable[node] = weights[node]
    for level in range(1, sizes.size):
        for index in range(sizes[level]):
            node = offsets[level] + index
            spendable[node] += spendable[offsets[level - 1] + index * fan_out]
            joint = _joint(variance[node], outside[node])
            if joint > 0.0:
                pulls[node - leaves] /= joint * joint
                local = spendable[node] * spendable[node]
                precisions[node - leaves] = 1.0 / (outside[node] * local)
    return Gradients(error, floor_error, pulls, precisions)
