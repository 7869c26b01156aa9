"""How the nodes of one tree level pick their shares, and what they hand up.

Serves the greedy scaling of DAWA's second stage, whatever form the queries have. Four
scalars per node replace dense algebra over its subtree:

    variance   of the node's total, known from its own subtree alone
    demand     sum over queries of (weight x coverage) squared
    residual   error of the queries that knowing the node's total would not remove
    spread     how unevenly the queries cover the node's children

where a query covers a node with the variance-weighted mean of its coverage of the
children. They live in arrays as long as the level, and each level overwrites the one
below it: a parent's index never exceeds those of its children.

    children   0 1 2   3 4 5   6 7        read from the left,
    parents    0       1       2          written further left

All terms are positive and added, so nothing cancels. These kernels are called by
those of other files, whose disk caches do not notice an edit here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import WorkloadError
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.tree.tree_shape import weights_from_shares

# Without pruning, no node takes all and starves its leaves; a total known through a
# share this large has a variance 0.2 % above the least.
LARGEST_SHARE = 1.0 - 2.0**-10


class Scaling(NamedTuple):
    """Node weights and the error they promise.

    Attributes
    ----------
    weights : (nodes,) float64
        Laid out as in `tree_shape`; every path from the root to a leaf adds up to 1.
    objective : float
        Squared error of least squares, summed over the queries (times their squared
        weights), when each node is measured with unit variance over its squared
        weight: in units of 2 / epsilon**2 for Laplace noise.
    """

    weights: FloatArray
    objective: float


def level_decays(levels: int, branching: int, decay: bool) -> FloatArray:
    """Return how much each level, leaves first, heeds errors shared by its children.

    The paper's ``branching ** (-depth / 2)``, or 1 throughout without `decay`.
    """
    depths = np.arange(levels - 1, -1, -1, dtype=np.float64)
    return float(branching) ** (-0.5 * depths) if decay else np.ones(levels)


def squared_weights(weights: FloatArray | None, queries: int) -> FloatArray:
    """Return the square of each query's weight; None stands for ones."""
    if weights is None:
        return np.ones(queries)
    given = np.asarray(weights, dtype=np.float64)
    if given.shape != (queries,):
        raise WorkloadError(
            f"one weight per query is needed; got shape {given.shape} "
            f"for {queries} queries"
        )
    return given * given


def scaling_from_shares(
    shares: FloatArray,
    objective: float,
    sizes: IntArray,
    offsets: IntArray,
    branching: int,
    root_exact: bool,
) -> Scaling:
    """Turn shares into weights; a root known exactly is not measured."""
    weights = weights_from_shares(shares, sizes, offsets, branching)
    if root_exact:
        weights[-1] = 0.0
    return Scaling(weights, float(objective))


@kernel
def optimal_share(error: float, variance: float, residual: float) -> float:
    """Return the share of its subtree's weight that a node should take, exactly.

    It minimises ``(1 + x)**2 (error + residual x**2) / (1 + variance x**2)`` over
    ``x = share / (1 - share) >= 0``. The slope has the sign of a convex quartic that
    is positive at 0, so the minimum is 0 or the quartic's larger root, which Newton
    reaches from the right without ever passing it.

    Parameters
    ----------
    error : float
        Error of the queries if the node is not measured.
    variance : float
        Variance of the node's total, the sum over its children.
    residual : float
        `variance` times the error that stays when the total is known.

    Returns
    -------
    float
        In [0, 1]; 1 if nothing stays.
    """
    if error <= 0.0:
        return 0.0
    stays = residual / error
    gain = variance - stays
    if gain * gain <= 8.0 * stays or gain <= 0.0:
        return 0.0  # already the quadratic part of the quartic has no root
    if stays <= 1e-300:
        return 1.0 if variance > 1.0 else 0.0
    steep = stays * variance
    x: float = min((gain / steep) ** (1.0 / 3.0), 0.5 * gain / stays)
    for _ in range(60):
        square = x * x
        slope = 4.0 * x * (steep * square + stays) - gain
        if slope <= 0.0:
            return 0.0  # past the quartic's lowest point without meeting a root
        step = (square * (steep * square + 2.0 * stays) - gain * x + 1.0) / slope
        x -= step
        if step <= 1e-9 * x:
            break  # the next step, its square, is below rounding
    square = x * x
    if (1.0 + x) * (1.0 + x) * (1.0 + stays * square) < 1.0 + variance * square:
        return x / (1.0 + x)
    return 0.0


@kernel
def _parent_takes_all(
    breaks: IntArray, node: int, span: int, branching: int, leaves: int
) -> bool:
    """Tell whether the nearest ancestor with more leaves is unsplit as well."""
    width = min((node + 1) * span, leaves) - node * span
    while span < leaves:
        span *= branching
        node //= branching
        start, end = node * span, min((node + 1) * span, leaves)
        if end - start > width:
            return bool(breaks[end] == breaks[start + 1])
    return False


@kernel
def sum_siblings(
    variance: FloatArray,
    below: int,
    branching: int,
    before: FloatArray,
    after: FloatArray,
    total: FloatArray,
) -> None:
    """Fill the variance of earlier siblings, later siblings, and the whole family."""
    for start in range(0, below, branching):
        end = min(start + branching, below)
        running = 0.0
        for child in range(start, end):
            before[child] = running
            running += variance[child]
        total[start // branching] = running
        running = 0.0
        for child in range(end - 1, start - 1, -1):
            after[child] = running
            running += variance[child]


@kernel
def lift_inside(
    variance: FloatArray,
    before: FloatArray,
    after: FloatArray,
    total: FloatArray,
    below: int,
    branching: int,
    inside: FloatArray,
    spread: FloatArray,
) -> None:
    """Lift the demand of the queries that lie inside one child; start the spread.

    In place: a parent's index never exceeds those of its children.
    """
    for start in range(0, below, branching):
        parent = start // branching
        lifted = 0.0
        uneven = 0.0
        for child in range(start, min(start + branching, below)):
            if inside[child] != 0.0:
                part = variance[child] / total[parent]
                lifted += inside[child] * part * part
                uneven += inside[child] * part * (before[child] + after[child])
        inside[parent] = lifted
        spread[parent] = uneven


@kernel
def settle_level(
    below: int,
    branching: int,
    span: int,
    leaves: int,
    decay: float,
    prune: bool,
    exact: bool,
    breaks: IntArray,
    before: FloatArray,
    after: FloatArray,
    total: FloatArray,
    cover: FloatArray,
    partial: FloatArray,
    inside: FloatArray,
    spread: FloatArray,
    variance: FloatArray,
    demand: FloatArray,
    residual: FloatArray,
    shares: FloatArray,
) -> None:
    """Choose the shares of a level, and lift the scalars from it, in place."""
    for start in range(0, below, branching):
        parent = start // branching
        end = min(start + branching, below)
        if end - start == 1:
            variance[parent] = variance[start]
            demand[parent] = demand[start]
            residual[parent] = residual[start]
            continue
        inner = 0.0
        error = 0.0
        apart = 0.0
        for child in range(start, end):
            inner += residual[child]
            known = variance[child] * demand[child]
            error += known
            apart += known * (before[child] + after[child])
        error += inner
        sum_variance = total[parent]
        stays = inner + spread[parent]
        demand[parent] = cover[parent] + partial[parent] + inside[parent]

        first = parent * span
        unsplit = breaks[min(first + span, leaves)] == breaks[first + 1]
        if exact:
            share = 0.0
        elif unsplit and prune:
            share = 1.0
        elif unsplit and decay == 1.0:
            # Nothing would stay if the total were known. The topmost such node
            # takes almost all; below it every further share would be lost.
            share = LARGEST_SHARE
            if error == 0.0 or _parent_takes_all(
                breaks, parent, span, branching, leaves
            ):
                share = 0.0
        else:
            kept = decay * sum_variance * stays
            kept += (1.0 - decay) * (sum_variance * inner + apart)
            share = min(optimal_share(error, sum_variance, kept), LARGEST_SHARE)
        shares[parent] = share
        rest = (1.0 - share) * (1.0 - share)
        variance[parent] = sum_variance / (rest + share * share * sum_variance)
        residual[parent] = stays / rest if share < 1.0 else 0.0


@kernel
def push_down(
    cover: FloatArray,
    later: FloatArray,
    earlier: FloatArray,
    sizes: IntArray,
    offsets: IntArray,
    branching: int,
) -> None:
    """Hand every cover to the children; add what reaches later or earlier siblings."""
    for level in range(sizes.size - 2, -1, -1):
        here = offsets[level]
        for parent in range(sizes[level + 1]):
            base = cover[offsets[level + 1] + parent]
            start = here + parent * branching
            end = here + min((parent + 1) * branching, sizes[level])
            running = base
            for child in range(start, end):
                cover[child] += running
                running += later[child]
            running = 0.0
            for child in range(end - 1, start - 1, -1):
                cover[child] += running
                running += earlier[child]
