"""Budget shares of the nodes of one tree level, chosen greedily from below.

Four scalars per node replace dense algebra over its subtree:

    variance   of the node's total, known from its own subtree alone
    demand     sum over queries of (weight x coverage) squared
    residual   error of the queries that knowing the node's total would not remove
    spread     how unevenly the queries cover the node's children

where a query covers a node with the variance-weighted mean of its coverage of the
children. They live in arrays as long as the level, and each level overwrites the one
below it: a parent's index never exceeds those of its children. All terms are positive
and added, so nothing cancels.

For two leaves of variance 1 and the query that takes the left one with weight 1:

    leaves     variance 1  1    demand 1  0     residual 0  0
    parent     variance 2       coverage 1/2, demand 1/4
               spread   1 * (1 - 1/2)^2 + 1 * (0 - 1/2)^2 = 1/2

Knowing the total exactly would leave an error of 1/2; not knowing it, 1/2 + 2 / 4 = 1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import WorkloadError
from blowfish_fast.kernels._arguments import refuse_infinite
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.tree.shape import shift_of, tree_levels, weights_from_shares

# Without pruning, no node takes all and starves its leaves; a total known through a
# share this large has a variance 0.2 % above the least.
LARGEST_SHARE = 1.0 - 2.0**-10


class Scaling(NamedTuple):
    """Node weights and the error they promise.

    Attributes
    ----------
    weights : ndarray of float64, shape (nodes,)
        The weights, laid out as in `tree.shape`; every path adds up to 1.
    objective : float
        The squared error of least squares, summed over the queries times their squared
        weights, when each node is measured with unit variance over its squared weight:
        in units of 2 / epsilon**2 for Laplace noise.
    """

    weights: FloatArray
    objective: float


class RegularLevels(NamedTuple):
    """The layout of a regular tree.

    Attributes
    ----------
    sizes : ndarray of int64, shape (levels,)
        Nodes of each level, the leaves first.
    offsets : ndarray of int64, shape (levels + 1,)
        Where each level begins.
    fan_out : int
        The most children of a node.
    shift : int
        What `shift_of` returns for it: the shift that divides by the fan-out.
    """

    sizes: IntArray
    offsets: IntArray
    fan_out: int
    shift: int


class Priorities(NamedTuple):
    """What the choice of a share heeds.

    Attributes
    ----------
    decays : ndarray of float64, shape (levels,)
        What `level_decays` returned.
    prune : bool
        Whether a node that no query splits takes all.
    root_exact : bool
        Whether the total is known without a measurement.
    power : int
        1 if precisions are squared weights (Laplace), 2 if they are weights (Gaussian).
    """

    decays: FloatArray
    prune: bool
    root_exact: bool
    power: int


class Demand(NamedTuple):
    """What the queries want of the nodes before anything is chosen.

    Attributes
    ----------
    cover : ndarray of float64, shape (nodes,)
        Demand of the queries that cover each node wholly; empty if that is none.
    demand : ndarray of float64, shape (leaves,)
        Demand of all queries at each leaf.
    inside : ndarray of float64, shape (leaves,)
        Demand of those that lie inside the leaf.
    breaks : ndarray of int64, shape (leaves + 2,)
        How many places, before each leaf, some query changes its value at.
    active : int
        How many queries are to climb.
    """

    cover: FloatArray
    demand: FloatArray
    inside: FloatArray
    breaks: IntArray
    active: int


class Level(NamedTuple):
    """A level about to choose: scalars of its children, overwritten by its own.

    Attributes
    ----------
    height : int
        Its height; 0 for the leaves.
    below : int
        Number of children.
    span : int
        Leaves below a node, but for the last one.
    fan_out : int
        The most children of a node.
    shift : int
        The shift that divides by the fan-out.
    variance : ndarray of float64
        By child, then by parent: the variance of a node's total from its subtree.
    demand : ndarray of float64
        By child, then by parent.
    residual : ndarray of float64
        By child, then by parent.
    before : ndarray of float64
        By child, the variance of its earlier siblings.
    after : ndarray of float64
        By child, the variance of its later siblings.
    total : ndarray of float64
        By parent, the variance of all its children.
    inside : ndarray of float64
        By child, then by parent: the demand of queries that lie inside the node.
    partial : ndarray of float64
        By parent, the demand of queries that cover it in part, and others.
    spread : ndarray of float64
        By parent.
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
    """Return the layout of a regular tree.

    Parameters
    ----------
    leaves : int
        Number of leaves, at least 1.
    fan_out : int
        The most children of a node, at least 2.

    Returns
    -------
    RegularLevels
        The layout.
    """
    return RegularLevels(*tree_levels(leaves, fan_out), fan_out, shift_of(fan_out))


@kernel
def levels_within(leaves: int, fan_out: int) -> RegularLevels:
    """Return what `regular_levels` does, to kernels that try several fan-outs.

    Parameters
    ----------
    leaves : int
        Number of leaves, at least 1.
    fan_out : int
        The most children of a node, at least 2.

    Returns
    -------
    RegularLevels
        The layout.
    """
    count, size = 1, leaves
    while size > 1:
        size = (size + fan_out - 1) // fan_out
        count += 1
    sizes = np.empty(count, dtype=np.int64)
    offsets = np.zeros(count + 1, dtype=np.int64)
    size = leaves
    for level in range(count):
        sizes[level] = size
        offsets[level + 1] = offsets[level] + size
        size = (size + fan_out - 1) // fan_out
    shift = 0
    while (1 << (shift + 1)) <= fan_out:
        shift += 1
    return RegularLevels(sizes, offsets, fan_out, shift if 1 << shift == fan_out else 0)


@lru_cache(maxsize=256)
def level_decays(levels: int, fan_out: int, decay: bool) -> FloatArray:
    """Return how much each level heeds errors that its children share.

    Parameters
    ----------
    levels : int
        Number of levels.
    fan_out : int
        The most children of a node.
    decay : bool
        The paper's rule, by which deep levels heed them less; without it all are 1.

    Returns
    -------
    ndarray of float64, shape (levels,)
        The factors, the leaves first.
    """
    depths = np.arange(levels - 1, -1, -1, dtype=np.float64)
    return float(fan_out) ** (-0.5 * depths) if decay else np.ones(levels)


def squared_weights(weights: FloatArray | None, queries: int) -> FloatArray:
    """Return the square of each query's weight.

    Parameters
    ----------
    weights : ndarray of float64 or None, shape (queries,)
        Importance of each query; None for ones.
    queries : int
        Number of queries.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The squares.

    Raises
    ------
    WorkloadError
        If there is not one weight per query.
    """
    if weights is None:
        return np.ones(queries)
    given = np.asarray(weights, dtype=np.float64)
    if given.shape != (queries,):
        raise WorkloadError(
            f"one weight per query is needed; got shape {given.shape} "
            f"for {queries} queries"
        )
    refuse_infinite(given, "weights")
    return given * given


def scaling_from_shares(
    shares: FloatArray, objective: float, tree: RegularLevels, root_exact: bool
) -> Scaling:
    """Turn shares into weights; a root known exactly is not measured.

    Parameters
    ----------
    shares : ndarray of float64, shape (nodes,)
        The part of what is left above that each node takes.
    objective : float
        The error that the shares promise.
    tree : RegularLevels
        The layout.
    root_exact : bool
        Whether the total is known without a measurement.

    Returns
    -------
    Scaling
        The weights, and the error.
    """
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
    right.

    Parameters
    ----------
    error : float
        Error of the queries while the node is not measured.
    variance : float
        Variance of the sum over the children.
    residual : float
        `variance` times the error that stays when the total is known.

    Returns
    -------
    float
        The share, from 0 to 1.
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
    """Return the best share where precisions are the weights themselves, exactly.

    It minimises ``(1 + x) (error + residual x) / (1 + variance x)``, whose slope is 0
    at ``variance x = sqrt((variance - 1) (error variance / residual - 1)) - 1``: Lemma
    ZC11 (c).

    Parameters
    ----------
    error : float
        Error of the queries while the node is not measured.
    variance : float
        Variance of the sum over the children.
    residual : float
        `variance` times the error that stays when the total is known.

    Returns
    -------
    float
        The share, from 0 to 1.
    """
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
    """Return the level of the leaves, each of unit variance, which chooses nothing.

    Parameters
    ----------
    tree : RegularLevels
        The layout.
    demand : ndarray of float64, shape (leaves,)
        Demand of all queries at each leaf; used as room.
    inside : ndarray of float64, shape (leaves,)
        Demand of those inside the leaf; used as room.

    Returns
    -------
    Level
        The level.
    """
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
    """Return the next level, with the sums over its children's variances.

    Parameters
    ----------
    level : Level
        The level below; its arrays are used again.
    tree : RegularLevels
        The layout.

    Returns
    -------
    Level
        The level.
    """
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
    """Choose the shares of a level, and lift the scalars to it, in place.

    Parameters
    ----------
    level : Level
        The level; its arrays hold scalars of the children, then its own.
    wanted : Demand
        What the queries want.
    shares : ndarray of float64, shape (nodes,)
        Receives the shares of the level's nodes.
    tree : RegularLevels
        The layout.
    priorities : Priorities
        What the choice heeds.
    """
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
            own_error = variance[child] * demand[child]
            error += own_error
            apart += own_error * (before[child] + after[child])
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
            stays_in_all = decay * sum_variance * stays
            stays_in_all += (1.0 - decay) * (sum_variance * inner + apart)
            if priorities.power == 1:
                share = optimal_share(error, sum_variance, stays_in_all)
            else:
                share = square_root_share(error, sum_variance, stays_in_all)
            share = min(share, LARGEST_SHARE)
        shares[here + parent] = share
        rest = 1.0 - share
        if priorities.power == 1:
            rest *= rest
        own = share if priorities.power == 2 else share * share
        variance[parent] = sum_variance / (rest + own * sum_variance)
        residual[parent] = stays / rest if share < 1.0 else 0.0


@kernel
def push_down(
    cover: FloatArray, later: FloatArray, earlier: FloatArray, tree: RegularLevels
) -> None:
    """Hand every cover to the children; add what reaches later or earlier siblings.

    Parameters
    ----------
    cover : ndarray of float64, shape (nodes,)
        Changed in place, from the root down.
    later : ndarray of float64, shape (nodes,)
        What is added to all later siblings of each node.
    earlier : ndarray of float64, shape (nodes,)
        What is added to all earlier siblings of each node.
    tree : RegularLevels
        The layout.
    """
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

    Each child of a node wants its `growth` times what the node wants. Of what the nodes
    above it left, a node takes its part of all wants down to the deepest leaf below it.
    O(nodes).

    Parameters
    ----------
    parents : ndarray of int64, shape (nodes,)
        The node above each node, which comes before it; -1 at the first, the root.
    growth : ndarray of float64, shape (nodes,)
        Positive factors.

    Returns
    -------
    ndarray of float64, shape (nodes,)
        The budgets.
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
