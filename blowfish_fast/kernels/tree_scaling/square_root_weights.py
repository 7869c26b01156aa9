"""Node weights for Gaussian noise: a convex design, swept to a certified optimum.

Paid in rho, precisions p are in proportion to weights, which add up to 1 along a path.
The error f is convex in p and of degree -1 (Lemma ZC11, ``docs/proofs/zcdp.md``), so

    sweep         with c = p^2 x slope the sum of c / p is f at the present p, nowhere
                  below f, and least by square roots from the leaves up:
                  C = (sqrt(c) + sqrt(sum of C below))^2,  share sqrt(c) / sqrt(C)
    certificate   f* >= 2 f - M(root),   M = max(slope, sum of M below)

where the slope of a node is variance^2 x energy (`gradients`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.tree.shape import regular_first_child, regular_tree

from .budget_shares import (
    LARGEST_SHARE,
    Priorities,
    RegularLevels,
    regular_levels,
    scaling_from_shares,
)
from .gradients import node_energies, piece_energies
from .greedy_weights import as_pieces, greedy_shares
from .implicit_queries import Family, family_of
from .piece_queries import PieceQueries
from .range_queries import SortedRanges, sorted_ranges

SWEEPS = 200
GAP = 2.0**-8
"""The sweeps end when the certified gap is below this part of the error."""


class Design(NamedTuple):
    """Node weights, the error they promise, and how far it may lie above the least.

    Attributes
    ----------
    weights : ndarray of float64, shape (nodes,)
        The weights; every path adds up to 1.
    objective : float
        The summed squared error when each node is measured with variance 1 / weight: in
        units of 1 / (2 rho).
    gap : float
        No weights have less than ``objective * (1 - gap)``; 1 where no certificate was
        sought.
    """

    weights: FloatArray
    objective: float
    gap: float


@kernel
def _slopes(
    variance: FloatArray,
    energy: FloatArray,
    weights: FloatArray,
    first_child: IntArray,
    root_exact: bool,
) -> tuple[float, float, FloatArray]:
    """Return the error, the most that path sums of 1 allow, and the slopes."""
    slopes = variance * variance * energy
    error = 0.0
    most = np.empty(weights.size)
    for node in range(weights.size):
        error += weights[node] * slopes[node]
        below = 0.0
        for child in range(first_child[node], first_child[node + 1]):
            below += most[child]
        exact = root_exact and node == weights.size - 1
        most[node] = below if exact else max(slopes[node], below)
    return error, most[-1], slopes


@kernel
def _best_weights(
    costs: FloatArray, first_child: IntArray, root_exact: bool
) -> FloatArray:
    """Return the weights that lower ``sum of costs / weights`` most, path by path."""
    below = np.empty(costs.size)
    shares = np.ones(costs.size)
    for node in range(costs.size):
        begin, end = first_child[node], first_child[node + 1]
        total = 0.0
        for child in range(begin, end):
            total += below[child]
        own, rest = np.sqrt(costs[node]), np.sqrt(total)
        if begin < end:
            # No node takes all and starves its leaves, as in `budget_shares`.
            share = own / (own + rest) if own + rest > 0.0 else 0.0
            shares[node] = min(share, LARGEST_SHARE)
        below[node] = (own + rest) ** 2
    if root_exact and costs.size > 1:
        shares[-1] = 0.0
    left = np.ones(costs.size)
    for node in range(costs.size - 1, -1, -1):
        for child in range(first_child[node], first_child[node + 1]):
            left[child] = left[node] * (1.0 - shares[node])
    return left * shares


Seen = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def _swept(
    weights: FloatArray,
    seen: Seen,
    first_child: IntArray,
    root_exact: bool,
    sweeps: int,
) -> Design:
    """Sweep positive weights until the certificate is small.

    `seen` returns variances and energies at some weights.
    """
    error, most, slopes = _slopes(*seen(weights), weights, first_child, root_exact)
    for _ in range(sweeps):
        if most - error <= GAP * error:
            break
        weights = _best_weights(weights * weights * slopes, first_child, root_exact)
        error, most, slopes = _slopes(*seen(weights), weights, first_child, root_exact)
    gap = (most - error) / error if error > 0.0 else 0.0
    return Design(weights, float(error), float(min(max(gap, 0.0), 1.0)))


def _greedy(
    ranges: SortedRanges | None,
    pieces: PieceQueries | None,
    family: Family | None,
    tree: RegularLevels,
    root_exact: bool,
) -> Design:
    priorities = Priorities(np.ones(tree.sizes.size), False, root_exact, 2)
    shares_and_objective = greedy_shares(ranges, pieces, family, tree, priorities)
    return Design(*scaling_from_shares(*shares_and_objective, tree, root_exact), 1.0)


def _interior(greedy: Design, tree: RegularLevels, root_exact: bool) -> FloatArray:
    """Return weights halfway to equal levels: all positive, path sums stay 1."""
    by_level = np.ones(tree.sizes.size)
    by_level[-1] = 0.0 if root_exact and by_level.size > 1 else 1.0
    equal = np.repeat(by_level / by_level.sum(), tree.sizes)
    interior: FloatArray = 0.5 * (greedy.weights + equal)
    return interior


def design_ranges(
    first: IntArray,
    first_fraction: FloatArray,
    last: IntArray,
    last_fraction: FloatArray,
    leaves: int,
    fan_out: int,
    *,
    root_exact: bool = False,
    sweeps: int = SWEEPS,
) -> Design:
    """Tune node weights to ranges for Gaussian noise, to a certified optimum.

    Parameters
    ----------
    first : ndarray of int64, shape (queries,)
        The first leaf of each range.
    first_fraction : ndarray of float64, shape (queries,)
        How much of it is covered.
    last : ndarray of int64, shape (queries,)
        The last leaf.
    last_fraction : ndarray of float64, shape (queries,)
        How much of it is covered.
    leaves : int
        Number of leaves.
    fan_out : int
        The most children of a node.
    root_exact : bool, default False
        Whether the total is known without a measurement.
    sweeps : int, default SWEEPS
        At most so many passes, each O(queries log leaves + leaves); 0 for the greedy
        weights in closed form.

    Returns
    -------
    Design
        The weights, with their certificate.

    Raises
    ------
    WorkloadError
        If arrays differ in length, or a range leaves the leaves.
    """
    tree = regular_levels(leaves, fan_out)
    ends = (first, first_fraction, last, last_fraction, None, leaves)
    greedy = _greedy(sorted_ranges(*ends), None, None, tree, root_exact)
    if not sweeps or leaves == 1:
        return greedy
    ranges = sorted_ranges(*ends)

    def seen(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        return node_energies(ranges, 0.0, weights, tree, root_exact)[:2]

    first_child = regular_first_child(tree.offsets, tree.fan_out)
    start = _interior(greedy, tree, root_exact)
    return _swept(start, seen, first_child, root_exact, sweeps)


def design_pieces(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    leaves: int,
    fan_out: int,
    *,
    root_exact: bool = False,
    sweeps: int = SWEEPS,
) -> Design:
    """Tune node weights to queries made of pieces, as `design_ranges` does.

    Parameters
    ----------
    pointers : ndarray of int64, shape (queries + 1,)
        Query `q` owns the pieces ``pointers[q]`` up to ``pointers[q + 1]``.
    starts : ndarray of int64, shape (pieces,)
        The first leaf of each piece; pieces of a query are sorted and disjoint.
    ends : ndarray of int64, shape (pieces,)
        The leaf after its last.
    values : ndarray of float64, shape (pieces,)
        Coverage of the leaves of each piece, of any sign.
    leaves : int
        Number of leaves.
    fan_out : int
        The most children of a node.
    root_exact : bool, default False
        Whether the total is known without a measurement.
    sweeps : int, default SWEEPS
        At most so many passes; 0 for the greedy weights in closed form.

    Returns
    -------
    Design
        The weights, with their certificate.

    Raises
    ------
    WorkloadError
        If there is not one value per piece.
    """
    tree = regular_levels(leaves, fan_out)
    queries = as_pieces(pointers, starts, ends, values, leaves)
    greedy = _greedy(None, queries, None, tree, root_exact)
    if not sweeps or leaves == 1:
        return greedy
    shape = regular_tree(leaves, fan_out)
    spans = (shape.first_child, shape.starts, shape.ends, root_exact)

    def seen(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        return piece_energies(queries, weights, *spans)

    start = _interior(greedy, tree, root_exact)
    return _swept(start, seen, shape.first_child, root_exact, sweeps)


def design_family(
    kind: str, edges: IntArray, fan_out: int, *, root_exact: bool = False
) -> Design:
    """Return the greedy weights for a whole family of queries, in O(buckets).

    Parameters
    ----------
    kind : str
        One of `KINDS`, as in `greedy_scaling_implicit`.
    edges : ndarray of int64, shape (buckets + 1,)
        Cell edges of the buckets, rising from 0.
    fan_out : int
        The most children of a node.
    root_exact : bool, default False
        Whether the total is known without a measurement.

    Returns
    -------
    Design
        The weights, without a certificate: the gap is 1.
    """
    tree = regular_levels(edges.size - 1, fan_out)
    return _greedy(None, None, family_of(kind, edges), tree, root_exact)
