"""Gradient of the workload's error in the precision of every tree node.

An answer follows the noise of node v with the coefficient (precision x variance) x
*pull* (``kernels.tree.spread``), so the squared pulls of all ranges, summed per node,
give the error and its gradient at once:

    error     = sum over nodes of  precision variance^2 energy
    gradient  =                  - variance^2 energy          variance: of its subtree

Two leaves of precision 1 and a root of precision 1, the query that takes the left leaf
(the example of ``kernels.tree.spread``; the root's variance from its subtree is 2/3):

                    root     left     right
    pull            1/2      2/3      -1/3
    energy          1/4      4/9      1/9
    part of error   1/9      4/9      1/9        error 2/3

Among siblings a range is constant left and right of the node that holds its end, so a
walk up to where its ends meet, and down again, leaves three notes at each level. Above
that place a range of coverage y pulls y times what the total of that node would: the
squared coverages *inside* a node stand for all of these. O(queries log leaves + leaves)
time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.tree.shape import regular_first_child
from blowfish_fast.kernels.tree.spread import enter_mixed

from .budget_shares import RegularLevels
from .piece_queries import PieceQueries
from .range_queries import SortedRanges


class NodeEnergies(NamedTuple):
    """What each node's measurements say, and how the queries pull at it.

    All arrays have one entry per node.

    Attributes
    ----------
    variance : ndarray of float64
        Variance of the node's total from its own subtree.
    energy : ndarray of float64
        The summed squared pulls.
    inner : ndarray of float64
        The part of the precision of the node's total that comes from its subtree.
    outer : ndarray of float64
        The part that comes from outside; the two add up to 1.
    """

    variance: FloatArray
    energy: FloatArray
    inner: FloatArray
    outer: FloatArray


class Gradients(NamedTuple):
    """Error of the queries, and what the inner nodes do to it.

    Attributes
    ----------
    error : float
        Error of the ranges.
    floor_error : float
        Error of the queries for each leaf.
    pulls : ndarray of float64
        By inner node, the error per unit of variance of its total.
    precisions : ndarray of float64
        By inner node, what is known of its total from outside, over the squared weight
        that its subtree has to spend.
    """

    error: float
    floor_error: float
    pulls: FloatArray
    precisions: FloatArray


class _Families(NamedTuple):
    """By node: the weight of its children in its fit, and its family.

    `part`, `before` and `after` are the parts of the family's sum of variances.
    """

    keep: FloatArray
    part: FloatArray
    before: FloatArray
    after: FloatArray


@kernel
def _families(
    precisions: FloatArray, first_child: IntArray, root_exact: bool
) -> tuple[FloatArray, _Families]:
    """Return the variances, from the leaves up, and the families."""
    count = precisions.size
    variance = np.empty(count)
    keep, part = np.zeros(count), np.ones(count)
    before, after = np.zeros(count), np.zeros(count)
    for node in range(count):
        begin, end = first_child[node], first_child[node + 1]
        if begin == end:
            variance[node] = 1.0 / precisions[node]
            continue
        total = 0.0
        for child in range(begin, end):
            total += variance[child]
        running = 0.0
        for child in range(begin, end):
            part[child] = variance[child] / total
            before[child] = running
            running += part[child]
        running = 0.0
        for child in range(end - 1, begin - 1, -1):
            after[child] = running
            running += part[child]
        keep[node] = 1.0 / (1.0 + precisions[node] * total)
        variance[node] = total * keep[node]
    if root_exact:
        keep[-1] = variance[-1] = 0.0
    return variance, _Families(keep, part, before, after)


class Surroundings(NamedTuple):
    """What the measurements alone say of every node, whatever is asked.

    All arrays but the first have one entry per node.

    Attributes
    ----------
    first_child : ndarray of int64, shape (nodes + 1,)
        Where the children of each node begin.
    variance : ndarray of float64
        Variance of the node's total from its own subtree.
    families : _Families
        Each node among its siblings.
    inner : ndarray of float64
        The part of the precision of the node's total that comes from its subtree.
    outer : ndarray of float64
        The part that comes from outside.
    taken : ndarray of float64
        What a node's own total takes off its children.
    """

    first_child: IntArray
    variance: FloatArray
    families: _Families
    inner: FloatArray
    outer: FloatArray
    taken: FloatArray


@kernel
def surroundings_of(
    precisions: FloatArray, tree: RegularLevels, root_exact: bool
) -> Surroundings:
    """Return what every node knows of its total, from below and from outside. O(nodes).

    Parameters
    ----------
    precisions : ndarray of float64, shape (nodes,)
        Precision of each measurement: positive on the leaves, 0 where a node is not
        measured.
    tree : RegularLevels
        The layout.
    root_exact : bool
        Whether the total is known without a measurement.

    Returns
    -------
    Surroundings
        What is known, by node.
    """
    first_child = regular_first_child(tree.offsets, tree.fan_out)
    count = precisions.size
    variance, families = _families(precisions, first_child, root_exact)
    keep, part = families.keep, families.part
    inner, outer = np.ones(count), np.zeros(count)
    taken = np.empty(count)
    for node in range(count - 1, -1, -1):
        taken[node] = 1.0 - keep[node] + keep[node] * outer[node]
        for child in range(first_child[node], first_child[node + 1]):
            outer[child] = part[child] * taken[node]
            inner[child] = families.before[child] + families.after[child]
            inner[child] += part[child] * keep[node] * inner[node]
    return Surroundings(first_child, variance, families, inner, outer, taken)


@kernel
def error_of_leaves(floor: float, known: Surroundings, leaves: int) -> float:
    """Return the error of one query for each leaf.

    Parameters
    ----------
    floor : float
        Squared weight of each query.
    known : Surroundings
        What is known of the nodes.
    leaves : int
        Number of leaves.

    Returns
    -------
    float
        The error.
    """
    error = 0.0
    for leaf in range(leaves):
        error += floor * known.variance[leaf] * known.inner[leaf]
    return error


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
            notes[node, 3] += weight * ((passed + 1.0) * (passed + 1.0))
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
                notes[node, 2 - side] += weight * ((away + 1.0) * (away + 1.0))


@kernel
def node_energies(
    ranges: SortedRanges,
    floor: float,
    precisions: FloatArray,
    tree: RegularLevels,
    root_exact: bool,
) -> NodeEnergies:
    """Return the summed squared pulls of the ranges, and of a query for each leaf.

    Parameters
    ----------
    ranges : SortedRanges
        The ranges.
    floor : float
        Squared weight of the query for each leaf.
    precisions : ndarray of float64, shape (nodes,)
        Precision of each measurement: positive on the leaves, 0 where a node is not
        measured.
    tree : RegularLevels
        The layout.
    root_exact : bool
        Whether the total is known without a measurement.

    Returns
    -------
    NodeEnergies
        What each node's measurements say.
    """
    known = surroundings_of(precisions, tree, root_exact)
    return _energies_within(ranges, floor, known, tree)


@kernel
def _energies_within(
    ranges: SortedRanges, floor: float, known: Surroundings, tree: RegularLevels
) -> NodeEnergies:
    """Return what `node_energies` does, for measurements that were looked at."""
    first_child, families = known.first_child, known.families
    keep, part = families.keep, families.part
    inner, taken, count = known.inner, known.taken, known.inner.size
    inside = np.zeros(count)
    for leaf in range(tree.sizes[0]):
        inside[leaf] = floor
    notes = np.zeros((count, 4))
    _walk_ranges(ranges, families, inner, tree, inside, notes)
    for node in range(count):
        for child in range(first_child[node], first_child[node + 1]):
            inside[node] += inside[child] * part[child] * part[child]
    energy = np.zeros(count)
    energy[-1] = notes[-1, 0] + inside[-1] * (inner[-1] * inner[-1])
    for node in range(count - 1, -1, -1):
        begin, end = first_child[node], first_child[node + 1]
        off = taken[node] * taken[node]
        running = keep[node] * keep[node] * notes[node, 3]
        for child in range(begin, end):
            notes[child, 3] += running
            squared = part[child] * part[child]
            running += notes[child, 2] + off * inside[child] * squared
        running = 0.0
        for child in range(end - 1, begin - 1, -1):
            notes[child, 3] += running
            squared = part[child] * part[child]
            running += notes[child, 1] + off * inside[child] * squared
            energy[child] = notes[child, 0] + notes[child, 3]
            energy[child] += inside[child] * (inner[child] * inner[child])
    return NodeEnergies(known.variance, energy, inner, known.outer)


@kernel
def piece_energies(
    queries: PieceQueries,
    precisions: FloatArray,
    first_child: IntArray,
    first: IntArray,
    end: IntArray,
    root_exact: bool,
) -> tuple[FloatArray, FloatArray]:
    """Return variances and energies for queries made of pieces, over any tree.

    Node v covers the leaves ``first[v]`` up to ``end[v]``; one that holds a border of
    some piece is entered.

    Parameters
    ----------
    queries : PieceQueries
        The queries.
    precisions : ndarray of float64, shape (nodes,)
        Precision of each measurement.
    first_child : ndarray of int64, shape (nodes + 1,)
        Where the children of each node begin.
    first : ndarray of int64, shape (nodes,)
        The first leaf below each node.
    end : ndarray of int64, shape (nodes,)
        The leaf after the last one.
    root_exact : bool
        Whether the total is known without a measurement.

    Returns
    -------
    variance : ndarray of float64, shape (nodes,)
        Variance of each node's total from its own subtree.
    energy : ndarray of float64, shape (nodes,)
        The summed squared pulls.
    """
    count = precisions.size
    variance, families = _families(precisions, first_child, root_exact)
    keep, part = families.keep, families.part
    starts, ends, values = queries.starts, queries.ends, queries.values
    own, whole, coverage, pulls = np.zeros((4, count))
    mixed = np.zeros(count, dtype=np.bool_)
    entered, pieces = np.empty((2, count), dtype=np.int64)
    leaves, runs = (first_child, first, end), (starts, ends, values)
    room = (coverage, mixed, entered, pieces)
    for query in range(queries.squared.size):
        begin, stop = queries.pointers[query], queries.pointers[query + 1]
        weight = queries.squared[query]
        visited = enter_mixed(leaves, runs, begin, stop, room)
        for back in range(visited - 1, -1, -1):
            node = entered[back]
            coverage[node] = 0.0
            for child in range(first_child[node], first_child[node + 1]):
                coverage[node] += part[child] * coverage[child]
        pulls[count - 1] = coverage[count - 1]
        own[count - 1] += weight * coverage[count - 1] ** 2
        for forth in range(visited):
            node = entered[forth]
            passed = keep[node] * pulls[node] - coverage[node]
            for child in range(first_child[node], first_child[node + 1]):
                pulls[child] = passed + coverage[child]
                if mixed[child]:
                    own[child] += weight * pulls[child] ** 2
                else:
                    whole[child] += weight * pulls[child] ** 2
    for node in range(count - 1, -1, -1):
        for child in range(first_child[node], first_child[node + 1]):
            whole[child] += keep[node] * keep[node] * whole[node]
    return variance, own + whole


@kernel
def error_gradients(
    ranges: SortedRanges,
    floor: float,
    weights: FloatArray,
    tree: RegularLevels,
    root_exact: bool,
) -> Gradients:
    """Return the error of the queries, and its gradients in the inner nodes.

    Parameters
    ----------
    ranges : SortedRanges
        The ranges.
    floor : float
        Squared weight of one more query for each leaf.
    weights : ndarray of float64, shape (nodes,)
        Node weights, positive on the leaves; their squares are the precisions.
    tree : RegularLevels
        The layout.
    root_exact : bool
        Whether the total is known without a measurement.

    Returns
    -------
    Gradients
        Errors and gradients.
    """
    known = surroundings_of(weights * weights, tree, root_exact)
    floor_error = error_of_leaves(floor, known, tree.sizes[0])
    return gradients_within(ranges, floor, weights, known, floor_error, tree)


@kernel
def gradients_within(
    ranges: SortedRanges,
    floor: float,
    weights: FloatArray,
    known: Surroundings,
    floor_error: float,
    tree: RegularLevels,
) -> Gradients:
    """Return what `error_gradients` does, for weights that were looked at.

    Parameters
    ----------
    ranges : SortedRanges
        The ranges.
    floor : float
        Squared weight of one more query for each leaf.
    weights : ndarray of float64, shape (nodes,)
        Node weights.
    known : Surroundings
        What `surroundings_of` returned for their squares.
    floor_error : float
        What `error_of_leaves` returned.
    tree : RegularLevels
        The layout.

    Returns
    -------
    Gradients
        Errors and gradients.
    """
    sizes, offsets, fan_out = tree.sizes, tree.offsets, tree.fan_out
    leaves = sizes[0]
    energies = _energies_within(ranges, floor, known, tree)
    variance, inner = energies.variance, energies.inner
    error = 0.0
    for node in range(weights.size):
        spread = weights[node] * variance[node]
        error += energies.energy[node] * (spread * spread)
    pulls = np.zeros(weights.size - leaves)
    precisions = np.zeros(weights.size - leaves)
    spendable = weights.copy()
    for level in range(1, sizes.size):
        for index in range(sizes[level]):
            node = offsets[level] + index
            spendable[node] += spendable[offsets[level - 1] + index * fan_out]
            if variance[node] > 0.0:
                local = spendable[node] * spendable[node]
                squared = inner[node] * inner[node]
                pulls[node - leaves] = energies.energy[node] / squared
                outside = energies.outer[node] / inner[node]
                precisions[node - leaves] = outside / (variance[node] * local)
    return Gradients(error - floor_error, floor_error, pulls, precisions)
