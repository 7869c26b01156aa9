"""Weights of the tree nodes, tuned greedily to a workload.

Every node of a tree over the leaves (the buckets) is measured with a weight; weights
along a path add up to one. Bottom-up, each node picks the share of the weight it takes
from its own subtree so that the error of the queries is least (Eq. 9 of DAWA):

    the query asks      each leaf          the total          (prune: the root takes all
    weights             0                  1                  where no query splits it)
                      1   1              0   0

One loop over the levels serves every form of query; a form says what its queries want
of the leaves, and how they climb one level.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import WorkloadError
from blowfish_fast.kernels._arguments import as_input, refuse_infinite, whole_numbers
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.space.interval_pieces import check_pieces

from .budget_shares import (
    Priorities,
    RegularLevels,
    Scaling,
    choose_shares,
    leaf_level,
    level_above,
    level_decays,
    regular_levels,
    scaling_from_shares,
    squared_weights,
)
from .implicit_queries import (
    KINDS,
    Family,
    demand_of_family,
    family_of,
    lift_family,
)
from .piece_queries import (
    PieceQueries,
    climb_pieces,
    demand_of_pieces,
)
from .range_queries import (
    SortedRanges,
    climb_ranges,
    demand_of_ranges,
    sorted_ranges,
)

Kind = Literal["all_ranges", "prefixes", "identity", "bucket_identity", "total"]


@kernel
def greedy_shares(
    ranges: SortedRanges | None,
    pieces: PieceQueries | None,
    family: Family | None,
    tree: RegularLevels,
    priorities: Priorities,
) -> tuple[FloatArray, float]:
    """Return shares and objective for one form of queries, which are used up.

    One of the first three arguments is given; the compiler leaves out the other
    branches.

    Parameters
    ----------
    ranges : SortedRanges or None
        Ranges of leaves.
    pieces : PieceQueries or None
        Queries of many pieces.
    family : Family or None
        A whole family of queries.
    tree : RegularLevels
        The layout.
    priorities : Priorities
        What the choice of a share heeds.

    Returns
    -------
    shares : ndarray of float64, shape (nodes,)
        The part of what is left above that each node takes.
    objective : float
        The summed squared error, in the units of `Scaling`.
    """
    if ranges is not None:
        wanted = demand_of_ranges(ranges, tree)
    if pieces is not None:
        wanted, items = demand_of_pieces(pieces, tree)
    if family is not None:
        wanted = demand_of_family(family, tree)
    shares = np.zeros(tree.offsets[-1])
    if not wanted.demand.any():
        return shares, 0.0
    active = wanted.active
    level = leaf_level(tree, wanted.demand, wanted.inside)
    for _ in range(1, tree.sizes.size):
        level = level_above(level, tree)
        if ranges is not None:
            active = climb_ranges(ranges, active, level)
        if pieces is not None:
            active = climb_pieces(pieces, items, active, level)
        if family is not None:
            lift_family(family, level)
        choose_shares(level, wanted, shares, tree, priorities)
    objective = level.residual[0]
    if not priorities.root_exact:
        objective += level.variance[0] * level.demand[0]
    return shares, objective


def _scaled(
    ranges: SortedRanges | None,
    pieces: PieceQueries | None,
    family: Family | None,
    tree: RegularLevels,
    *,
    decay: bool,
    root_exact: bool,
    prune: bool,
) -> Scaling:
    decays = level_decays(tree.sizes.size, tree.fan_out, decay)
    priorities = Priorities(decays, prune, root_exact, 1)
    shares, objective = greedy_shares(ranges, pieces, family, tree, priorities)
    return scaling_from_shares(shares, objective, tree, root_exact)


def greedy_scaling_fractions(
    first: IntArray,
    first_fraction: FloatArray,
    last: IntArray,
    last_fraction: FloatArray,
    weights: FloatArray | None,
    leaves: int,
    fan_out: int,
    *,
    decay: bool = True,
    root_exact: bool = False,
    prune: bool = False,
) -> Scaling:
    """Tune node weights to ranges that cover their two end leaves in part.

    Parameters
    ----------
    first : ndarray of int64, shape (queries,)
        The first leaf of each range.
    first_fraction : ndarray of float64, shape (queries,)
        Coverage of the first leaf; leaves between the two ends are covered wholly.
        Where both ends are the same leaf, this is its coverage.
    last : ndarray of int64, shape (queries,)
        The last leaf, included.
    last_fraction : ndarray of float64, shape (queries,)
        Coverage of the last leaf.
    weights : ndarray of float64 or None, shape (queries,)
        Importance of each query; None for ones.
    leaves : int
        Number of leaves.
    fan_out : int
        The most children of a node.
    decay : bool, default True
        The paper's rule, which lets a deep node mind less what its children's errors
        have in common; without it the local error is minimised as it stands.
    root_exact : bool, default False
        The total is known: the root is not measured and has weight 0, and the paths
        below it add up to 1.
    prune : bool, default False
        Let a node that no query splits take all, which is best for these queries and
        leaves every other query without an answer inside the node.

    Returns
    -------
    Scaling
        Node weights and the predicted error, without the part of the total if that is
        known. No queries: all weight on the leaves.

    Raises
    ------
    WorkloadError
        If arrays differ in length, or a range leaves the leaves.

    Examples
    --------
    One range over the second half of leaf 0 and all of leaf 1:

    >>> end = np.array([0]), np.array([0.5]), np.array([1]), np.array([1.0])
    >>> greedy_scaling_fractions(*end, None, 2, 2)
    Scaling(weights=array([1., 1., 0.]), objective=1.25)
    """
    tree = regular_levels(leaves, fan_out)
    ranges = sorted_ranges(first, first_fraction, last, last_fraction, weights, leaves)
    options = {"decay": decay, "root_exact": root_exact, "prune": prune}
    return _scaled(ranges, None, None, tree, **options)


def greedy_scaling(
    starts: IntArray,
    ends: IntArray,
    weights: FloatArray | None,
    leaves: int,
    fan_out: int,
    *,
    decay: bool = True,
    root_exact: bool = False,
    prune: bool = False,
) -> FloatArray:
    """Return node weights tuned to the ranges ``[start, end)`` of leaves.

    Parameters
    ----------
    starts : ndarray of int64, shape (queries,)
        The first leaf of each range.
    ends : ndarray of int64, shape (queries,)
        The leaf after its last; empty ranges are ignored.
    weights : ndarray of float64 or None, shape (queries,)
        Importance of each query; None for ones.
    leaves : int
        Number of leaves.
    fan_out : int
        The most children of a node.
    decay : bool, default True
        The paper's rule, which lets a deep node mind less what its children's errors
        have in common; without it the local error is minimised as it stands.
    root_exact : bool, default False
        The total is known: the root is not measured and has weight 0, and the paths
        below it add up to 1.
    prune : bool, default False
        Let a node that no query splits take all, which is best for these queries and
        leaves every other query without an answer inside the node.

    Returns
    -------
    ndarray of float64, shape (nodes,)
        The weights. Cells one by one need no inner nodes; the total needs the root.

    Raises
    ------
    WorkloadError
        If ranges leave the leaves, or arrays differ in length.

    Examples
    --------
    >>> greedy_scaling([0, 1], [1, 2], None, 2, 2)
    array([1., 1., 0.])
    >>> greedy_scaling([0], [2], None, 2, 2, prune=True)
    array([0., 0., 1.])
    """
    starts = whole_numbers(starts)
    ends = whole_numbers(ends)
    if starts.ndim != 1 or starts.shape != ends.shape:
        raise WorkloadError(
            "starts and ends must be vectors of one length; "
            f"got shapes {starts.shape} and {ends.shape}"
        )
    filled = starts != ends
    given = None if weights is None else np.asarray(weights, dtype=np.float64)
    if given is not None and given.shape == starts.shape:
        given = given[filled]
    first, whole, last = starts[filled], np.ones(int(filled.sum())), ends[filled] - 1
    tree = regular_levels(leaves, fan_out)
    ranges = sorted_ranges(first, whole, last, whole, given, leaves)
    options = {"decay": decay, "root_exact": root_exact, "prune": prune}
    return _scaled(ranges, None, None, tree, **options).weights


def as_pieces(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    leaves: int,
    weights: FloatArray | None = None,
) -> PieceQueries:
    """Check queries of pieces, in each query sorted, disjoint ranges of the leaves.

    Parameters
    ----------
    pointers : ndarray of int64, shape (queries + 1,)
        Query `q` owns the pieces ``pointers[q]`` up to ``pointers[q + 1]``.
    starts : ndarray of int64, shape (pieces,)
        The first leaf of each piece.
    ends : ndarray of int64, shape (pieces,)
        The leaf after its last.
    values : ndarray of float64, shape (pieces,)
        Coverage of the leaves of each piece, of any sign.
    leaves : int
        Number of leaves.
    weights : ndarray of float64, shape (queries,), optional
        Importance of each query; None for ones.

    Returns
    -------
    PieceQueries
        The queries.

    Raises
    ------
    WorkloadError
        If there is not one value per piece, or one weight per query.
    """
    pointers, starts, ends = check_pieces(pointers, starts, ends, leaves)
    values = as_input(values, np.float64)
    if values.shape != starts.shape:
        raise WorkloadError(
            f"each of the {starts.size} pieces has one value; got shape {values.shape}"
        )
    refuse_infinite(values, "values of pieces")
    squared = squared_weights(weights, pointers.size - 1)
    return PieceQueries(pointers, starts, ends, values, squared)


def greedy_scaling_pieces(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    weights: FloatArray | None,
    leaves: int,
    fan_out: int,
    *,
    decay: bool = True,
    root_exact: bool = False,
    prune: bool = False,
) -> Scaling:
    """Tune node weights to queries made of pieces of constant value.

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
    weights : ndarray of float64 or None, shape (queries,)
        Importance of each query; None for ones.
    leaves : int
        Number of leaves.
    fan_out : int
        The most children of a node.
    decay : bool, default True
        As in `greedy_scaling`.
    root_exact : bool, default False
        As in `greedy_scaling`.
    prune : bool, default False
        As in `greedy_scaling`.

    Returns
    -------
    Scaling
        Node weights and the predicted error, without the part of the total if that is
        known.

    Raises
    ------
    WorkloadError
        If there is not one value per piece, or one weight per query.

    Examples
    --------
    >>> pieces = np.array([0, 2]), np.array([0, 2]), np.array([1, 3])
    >>> scaling = greedy_scaling_pieces(*pieces, np.array([2.0, -1.0]), None, 3, 3)
    >>> scaling.weights, round(scaling.objective, 9)
    (array([1., 1., 1., 0.]), 5.0)
    """
    tree = regular_levels(leaves, fan_out)
    queries = as_pieces(pointers, starts, ends, values, leaves, weights)
    options = {"decay": decay, "root_exact": root_exact, "prune": prune}
    return _scaled(None, queries, None, tree, **options)


def greedy_scaling_implicit(
    kind: Kind,
    edges: IntArray,
    fan_out: int,
    *,
    decay: bool = True,
    root_exact: bool = False,
    prune: bool = False,
) -> Scaling:
    """Tune node weights to a whole family of queries over cells, in O(buckets).

    Parameters
    ----------
    kind : {"all_ranges", "prefixes", "identity", "bucket_identity", "total"}
        All ranges or all prefixes of the cells, each cell, each bucket, or the total. A
        cell has its share of its bucket.
    edges : ndarray of int64, shape (buckets + 1,)
        Cell edges of the buckets, the leaves, rising from 0.
    fan_out : int
        The most children of a node.
    decay : bool, default True
        As in `greedy_scaling`.
    root_exact : bool, default False
        As in `greedy_scaling`.
    prune : bool, default False
        As in `greedy_scaling`.

    Returns
    -------
    Scaling
        Node weights and the predicted error, without the part of the total if that is
        known.

    Raises
    ------
    WorkloadError
        If the kind is another one, or the edges do not rise from 0.

    Examples
    --------
    >>> greedy_scaling_implicit("bucket_identity", [0, 1, 2], 2)
    Scaling(weights=array([1., 1., 0.]), objective=2.0)
    """
    if kind not in KINDS:
        raise WorkloadError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}")
    edges = np.require(whole_numbers(edges), np.int64, ["C", "W"])
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
    tree = regular_levels(edges.size - 1, fan_out)
    options = {"decay": decay, "root_exact": root_exact, "prune": prune}
    return _scaled(None, None, family_of(kind, edges), tree, **options)
