"""Budget shares of the nodes of one tree level, chosen greedily from below.

Four scalars per node replace dense algebra over its subtree:

    variance   of the node's total, known from its own subtree alone
    demand     sum over queries of (weight x coverage) squared
    residual   error of the queries that knowing the node's total would not remove
    spread     how unevenly the queries cover the node's children

A query covers a node with the variance-weighted mean of its coverage of the children.
Each level overwrites the one below it. All terms are positive, so nothing cancels.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import WorkloadError
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.tree.shape import shift_of, tree_levels, weights_from_shares

# Without pruning, no node takes all and starves its leaves; a total known through a
# share this large has a variance 0.2 % above the least.
LARGEST_SHARE = 1.0 - 2.0**-10


class Scaling(NamedTuple):
    """Node weights, adding up to 1 along every path, and the error they promise.

    `objective` is the squared error of least squares, summed over the queries times
    their squared weights: in units of 2 / epsilon**2 for Laplace noise.
    """

    weights: FloatArray
    objective: float


class RegularLevels(NamedTuple):
    """The layout of `tree_levels`, with the fan-out and its `shift_of`."""

    sizes: IntArray
    offsets: IntArray
    fan_out: int
    shift: int


class Priorities(NamedTuple):
    """What the choice of a share heeds: `level_decays`, and the currency.

    `power` 1: precisions are squared weights (Laplace); 2: weights (Gaussian).
    """

    decays: FloatArray
    prune: bool
    root_exact: bool
    power: int


class Demand(NamedTuple):
    """What the queries want of the nodes before anything is chosen.

    `cover` by node is the demand of the queries that cover it wholly, empty if that is
    none; by leaf `demand` is that of all queries and `inside` of those inside it.
    `breaks` counts, before each leaf, the places where some query changes its value.
    """

    cover: FloatArray
    demand: FloatArray
    inside: FloatArray
    breaks: IntArray
    active: int


class Level(NamedTuple):
    """A level about to choose: scalars of its children, overwritten by its own.

    `span` leaves lie below a node, but for the last one. `before` and `after` are the
    variances of earlier and later siblings; by parent `total` is that of all children
    and `partial` the demand of queries that cover it in part, and others.
    """

    height: int
    below: int
    span: int
    fan_out: int
    shift: int
    variance: FloatArray
    demand: FloatArray
    residual: FloatArray
    before: FloatArray
    after: FloatArray
    total: FloatArray
    inside: FloatArray
    partial: FloatArray
    spread: FloatArray


@lru_cache(maxsize=256)
def regular_levels(leaves: int, fan_out: int) -> RegularLevels:
    """Return the layout of a regular tree."""
    return RegularLevels(*tree_levels(leaves, fan_out), fan_out, shift_of(fan_out))


@lru_cache(maxsize=256)
def level_decays(levels: int, fan_out: int, decay: bool) -> FloatArray:
    """Return how much each level, leaves first, heeds errors shared by its children."""
    depths = np.arange(levels - 1, -1, -1, dtype=np.float64)
    return float(fan_out) ** (-0.5 * depths) if decay else np.ones(levels)


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
    shares: FloatArray, objective: float, tree: RegularLevels, root_exact: bool
) -> Scaling:
    """Turn shares into weights; a root known exactly is not measured."""
    weights = weights_from_shares(shares, tree.sizes, tree.offsets, tree.fan_out)
    if root_exact:
        weights[-1] = 0.0
    return Scaling(weights, float(objective))


@kernel
def optimal_share(error: float, variance: float, residual: float) -> float:
    """Return the share of its subtree's weight that a node should take, exactly.

    It minimises ``(1 + x)**2 (error + residual x**2) / (1 + variance x**2)`` over ``x =
    share / (1 - share) >= 0``. The slope has the sign of a convex quartic that is
    positive at 0, so the minimum is 0 or its larger root, which Newton reaches from the
    right. `residual` is `variance` times the error that stays when the total is known.
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
def square_root_share(error: float, variance: float, residual: float) -> float:
    """Return the best share where precisions are the weights: Lemma ZC11 (c)."""
    if error <= 0.0 or variance <= 1.0:
        return 0.0
    if residual <= 1e-300 * error:
        return 1.0
    ratio = (variance - 1.0) * (error * variance / residual - 1.0)
    if ratio <= 1.0:
        return 0.0
    x = (np.sqrt(ratio) - 1.0) / variance
    return float(x / (1.0 + x))


@kernel
def _parent_takes_all(
    breaks: IntArray, node: int, span: int, fan_out: int, leaves: int
) -> bool:
    """Tell whether the nearest ancestor with more leaves is unsplit as well."""
    width = min((node + 1) * span, leaves) - node * span
    while span < leaves:
        span *= fan_out
        node //= fan_out
        start, end = node * span, min((node + 1) * span, leaves)
        if end - start > width:
            return bool(breaks[end] == breaks[start + 1])
    return False


@kernel
def leaf_level(tree: RegularLevels, demand: FloatArray, inside: FloatArray) -> Level:
    """Return the level of the leaves, each of unit variance, which chooses nothing."""
    leaves = tree.sizes[0]
    parents = tree.sizes[min(1, tree.sizes.size - 1)]
    return Level(
        0,
        0,
        1,
        tree.fan_out,
        tree.shift,
        np.ones(leaves),
        demand,
        np.zeros(leaves),
        np.empty(leaves),
        np.empty(leaves),
        np.empty(parents),
        inside,
        np.zeros(parents),
        np.zeros(parents),
    )


@kernel
def level_above(level: Level, tree: RegularLevels) -> Level:
    """Return the next level, with the sums over its children's variances."""
    below = tree.sizes[level.height]
    above = Level(
        level.height + 1,
        below,
        level.span * tree.fan_out,
        level.fan_out,
        level.shift,
        level.variance,
        level.demand,
        level.residual,
        level.before,
        level.after,
        level.total,
        level.inside,
        level.partial,
        level.spread,
    )
    _sum_siblings(above)
    return above


@kernel
def _sum_siblings(level: Level) -> None:
    """Fill the variance of earlier siblings, later siblings, and the whole family."""
    variance, before, after = level.variance, level.before, level.after
    below, fan_out, total = level.below, level.fan_out, level.total
    for start in range(0, below, fan_out):
        end = min(start + fan_out, below)
        running = 0.0
        for child in range(start, end):
            before[child] = running
            running += variance[child]
        total[start // fan_out] = running
        running = 0.0
        for child in range(end - 1, start - 1, -1):
            after[child] = running
            running += variance[child]


@kernel
def lift_inside(level: Level) -> None:
    """Lift the demand of the queries that lie inside one child, in place."""
    variance, before, after = level.variance, level.before, level.after
    inside, total, spread = level.inside, level.total, level.spread
    below, fan_out, partial = level.below, level.fan_out, level.partial
    for start in range(0, below, fan_out):
        parent = start // fan_out
        lifted = 0.0
        uneven = 0.0
        for child in range(start, min(start + fan_out, below)):
            if inside[child] != 0.0:
                part = variance[child] / total[parent]
                lifted += inside[child] * part * part
                uneven += inside[child] * part * (before[child] + after[child])
        inside[parent] = lifted
        spread[parent] = uneven
        partial[parent] = 0.0


@kernel
def choose_shares(
    level: Level,
    wanted: Demand,
    shares: FloatArray,
    tree: RegularLevels,
    priorities: Priorities,
) -> None:
    """Choose the shares of a level, and lift the scalars to it, in place."""
    variance, demand, residual = level.variance, level.demand, level.residual
    before, after, total = level.before, level.after, level.total
    inside, partial, spread = level.inside, level.partial, level.spread
    below, fan_out, span = level.below, level.fan_out, level.span
    leaves = tree.sizes[0]
    exact = priorities.root_exact and level.height == tree.sizes.size - 1
    cover, breaks, prune = wanted.cover, wanted.breaks, priorities.prune
    here = tree.offsets[level.height]
    decay = priorities.decays[level.height]
    for start in range(0, below, fan_out):
        parent = start // fan_out
        end = min(start + fan_out, below)
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
        covered = cover[here + parent] if cover.size > 0 else 0.0
        demand[parent] = covered + partial[parent] + inside[parent]

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
            if error == 0.0 or _parent_takes_all(breaks, parent, span, fan_out, leaves):
                share = 0.0
        else:
            kept = decay * sum_variance * stays
            kept += (1.0 - decay) * (sum_variance * inner + apart)
            if priorities.power == 1:
                share = optimal_share(error, sum_variance, kept)
            else:
                share = square_root_share(error, sum_variance, kept)
            share = min(share, LARGEST_SHARE)
        shares[here + parent] = share
        rest = (1.0 - share) if priorities.power == 2 else (1.0 - share) ** 2
        own = share if priorities.power == 2 else share * share
        variance[parent] = sum_variance / (rest + own * sum_variance)
        residual[parent] = stays / rest if share < 1.0 else 0.0


@kernel
def push_down(
    cover: FloatArray, later: FloatArray, earlier: FloatArray, tree: RegularLevels
) -> None:
    """Hand every cover to the children; add what reaches later or earlier siblings."""
    sizes, offsets, fan_out = tree.sizes, tree.offsets, tree.fan_out
    for level in range(sizes.size - 2, -1, -1):
        here = offsets[level]
        for parent in range(sizes[level + 1]):
            base = cover[offsets[level + 1] + parent]
            start = here + parent * fan_out
            end = here + min((parent + 1) * fan_out, sizes[level])
            running = base
            for child in range(start, end):
                cover[child] += running
                running += later[child]
            running = 0.0
            for child in range(end - 1, start - 1, -1):
                cover[child] += running
                running += earlier[child]


@kernel
def allocate_budget(parents: IntArray, growth: FloatArray) -> FloatArray:
    """Allocate a budget of 1 to the nodes along every path from the root to a leaf.

    `parents` come before their children, -1 at the root; each child of a node wants its
    `growth`, positive, times what the node wants. Of what is left above it, a node
    takes its part of all wants down to the deepest leaf below it. O(nodes).
    """
    nodes = parents.size
    # All wants from a node down, its own being 1.
    below = np.zeros(nodes)
    for node in range(nodes - 1, 0, -1):
        below[node] += 1.0
        above = parents[node]
        below[above] = max(below[above], growth[above] * below[node])
    below[0] += 1.0
    weights = np.empty(nodes)
    left = np.ones(nodes)
    for node in range(nodes):
        if node > 0:
            left[node] = left[parents[node]]
        weights[node] = left[node] / below[node]
        left[node] -= weights[node]
    return weights
