"""Weights of the tree nodes, tuned greedily to a workload.

Weights along a path add up to one. Bottom-up, each node picks the share of the weight
it takes from its own subtree so that the error of the queries is least (Eq. 9 of DAWA).
One loop over the levels serves every form of query.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import WorkloadError
from blowfish_fast.kernels._arguments import as_input
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
    """Return shares and objective for one form of queries, which are used up."""
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

    Without queries all weight is on the leaves.

    Parameters
    ----------
    first, last : (queries,) int64
        End leaves of each range, both included.
    first_fraction, last_fraction : (queries,) float64
        Coverage of the two end leaves; where both are the same, the first counts.
    weights : (queries,) float64 or None
        Importance of each query; None for ones.
    decay : bool
        The paper's rule, which lets a deep node mind less what its children's errors
        have in common; without it the local error is minimised as it stands.
    root_exact : bool
        The total is known: the root has weight 0 and no part in the predicted error.
    prune : bool
        Let a node that no query splits take all, which is best for these queries
        and leaves every other query without an answer inside the node.

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

    The other arguments are those of `greedy_scaling_fractions`. Cells one by one need
    no inner nodes; the total needs the root.

    >>> greedy_scaling([0, 1], [1, 2], None, 2, 2)
    array([1., 1., 0.])
    >>> greedy_scaling([0], [2], None, 2, 2, prune=True)
    array([0., 0., 1.])
    """
    starts = np.asarray(starts, dtype=np.int64)
    ends = np.asarray(ends, dtype=np.int64)
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
    """Check pieces, in each query sorted, disjoint ranges of the leaves."""
    pointers, starts, ends = check_pieces(pointers, starts, ends, leaves)
    values = as_input(values, np.float64)
    if values.shape != starts.shape:
        raise WorkloadError(
            f"each of the {starts.size} pieces has one value; got shape {values.shape}"
        )
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

    Query `q` owns the sorted, disjoint pieces [start, end) of leaves from
    ``pointers[q]`` up to ``pointers[q + 1]``; values may have any sign. The other
    arguments are those of `greedy_scaling_fractions`.

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

    Kinds are ``"all_ranges"`` and ``"prefixes"`` of the cells, ``"identity"`` (each
    cell), ``"bucket_identity"`` and ``"total"``; a cell has its share of its bucket.
    `edges` are the cell edges of the buckets, the leaves, rising from 0. The other
    arguments are those of `greedy_scaling_fractions`.

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
    tree = regular_levels(edges.size - 1, fan_out)
    options = {"decay": decay, "root_exact": root_exact, "prune": prune}
    return _scaled(None, None, family_of(kind, edges), tree, **options)
