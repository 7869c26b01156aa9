"""Sweeps that improve greedy node weights by looking outside each subtree.

    greedy      each node sees its own subtree, from the leaves up, once
    sweep 1     each node sees the whole tree, with the weights of before
    sweep 2     the same, with the weights of sweep 1, ... while the error falls

Every node first learns from `gradients` what the rest of the tree knows about its
total, and how much the queries would gain if it were known better; then one pass
bottom-up chooses all shares anew. The outside was seen with the old weights, so a sweep
may overshoot: its result is taken only if the error falls, else the sweep is tried
again with a shorter step.

A sweep that lifts the queries to the root knows their error on the way, as the greedy
pass does. Where that says that the result will not be taken, nothing is learned from
it. Wide trees that were scaled greedily are mostly left as they are, and that is told
without a walk through all queries:

    sweep    error by the climb    +- rounding (CLEARLY)    clearly too high: next step
                                                            else: learn, and decide
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from blowfish_fast._support.compiler_watch import in_plain_python, is_ready
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.tree.shape import shares_from_weights, weights_from_shares

from .budget_shares import (
    LARGEST_SHARE,
    Priorities,
    RegularLevels,
    Scaling,
    leaf_level,
    level_above,
    level_decays,
    levels_within,
    regular_levels,
)
from .gradients import (
    Gradients,
    error_gradients,
    error_of_leaves,
    gradients_within,
    surroundings_of,
)
from .greedy_weights import greedy_scaling_fractions, greedy_shares
from .range_queries import (
    SortedRanges,
    climb_ranges,
    copy_ranges,
    separate_inside,
    sorted_ranges,
)

# The queries for single leaves have this part of the squared weight of all others.
SAFEGUARD = 0.1
STEPS = (1.0, 0.6, 0.3)
SWEEPS = 8
"""At most so many passes; each costs two to three times the greedy pass."""
TOLERANCE = 1e-4
"""The sweeps end when one lowers the error by less than this part."""
CLEARLY = 1e-9
"""The climb and the gradients add up the same positive terms in two ways, which agree
to about 1e-13 of the error. What exceeds a bound by this part exceeds it both ways."""


@kernel
def optimal_share_within(
    pull: float, outside: float, variance: float, stays: float
) -> float:
    """Return the share a node should take when the rest of the tree is given.

    It minimises ``(1 + x)**2 (pull / d(x) + stays)`` over ``x = share / (1 - share)``,
    where ``d(x) = outside (1 + x)**2 + 1 / variance + x**2``. The slope has the sign of
    ``stays d(x)**2 - pull (x - 1 / variance)``, convex and positive at 0: the minimum
    is 0 or the larger root, which Newton reaches from the right.

    Parameters
    ----------
    pull : float
        Error per unit of variance of the node's total.
    outside : float
        Precision of the total from outside, in units of the squared weight that the
        subtree has to spend.
    variance : float
        Variance of the sum over the children, in the same units.
    stays : float
        Error that stays when the total is known.

    Returns
    -------
    float
        The share, from 0 to 1.
    """
    if pull <= 0.0:
        return 0.0
    least = 1.0 / variance
    if stays <= 1e-300 * pull:
        return 1.0 if least < 1.0 else 0.0
    scaled = stays / pull
    wide = 1.0 + outside
    x: float = (1.0 / (scaled * wide * wide)) ** (1.0 / 3.0)
    for _ in range(60):
        if x <= least:
            return 0.0
        d = outside * (1.0 + x) * (1.0 + x) + least + x * x
        slope = 4.0 * scaled * d * (outside * (1.0 + x) + x) - 1.0
        if slope <= 0.0:
            return 0.0
        step = (scaled * d * d - (x - least)) / slope
        x -= step
        if step <= 1e-9 * x:
            break
    d = outside * (1.0 + x) * (1.0 + x) + least + x * x
    if (1.0 + x) * (1.0 + x) * (1.0 / d + scaled) < 1.0 / (outside + least) + scaled:
        return x / (1.0 + x)
    return 0.0


@kernel
def _sweep(
    apart: SortedRanges,
    active: int,
    covered: FloatArray,
    shares: FloatArray,
    seen: Gradients,
    step: float,
    tree: RegularLevels,
    root_exact: bool,
) -> tuple[FloatArray, float]:
    """Return shares moved by `step` towards the best ones, bottom-up, and their error.

    The first three arguments are what `separate_inside` left of the queries; they stay
    as they are. The error is that of the ranges and of the queries for each leaf.
    """
    sizes, offsets, fan_out = tree.sizes, tree.offsets, tree.fan_out
    pulls, precisions = seen.pulls, seen.precisions
    leaves = sizes[0]
    top = sizes.size - 1
    moving, inside = copy_ranges(apart), covered.copy()
    moved = np.zeros(shares.size)
    level = leaf_level(tree, inside, inside)  # no demand is asked for
    variance, residual = level.variance, level.residual
    total, spread = level.total, level.spread
    for height in range(1, top + 1):
        level = level_above(level, tree)
        below = level.below
        active = climb_ranges(moving, active, level)
        for index in range(sizes[height]):
            start = index * fan_out
            end = min(start + fan_out, below)
            if end - start == 1:
                variance[index] = variance[start]
                residual[index] = residual[start]
                continue
            stays = spread[index]
            for child in range(start, end):
                stays += residual[child]
            share = 0.0
            if height < top or not root_exact:
                node = offsets[height] + index
                share = optimal_share_within(
                    pulls[node - leaves], precisions[node - leaves], total[index], stays
                )
                share = shares[node] + step * (share - shares[node])
                share = min(max(share, 0.0), LARGEST_SHARE)
                moved[node] = share
            rest = (1.0 - share) * (1.0 - share)
            variance[index] = total[index] / (rest + share * share * total[index])
            residual[index] = stays / rest
    return moved, residual[0] + (0.0 if root_exact else variance[0] * inside[0])


@kernel
def _refined(
    ranges: SortedRanges,
    floor: float,
    given: FloatArray,
    tree: RegularLevels,
    root_exact: bool,
    sweeps: int,
) -> tuple[FloatArray, float]:
    """Sweep as long as the error falls; return weights and the error of the ranges."""
    sizes, offsets, fan_out = tree.sizes, tree.offsets, tree.fan_out
    shares = shares_from_weights(given, sizes, offsets, fan_out)
    seen = error_gradients(ranges, floor, given, tree, root_exact)
    error_given = seen.error
    # A unary node only takes weight from its child, which measures the same total.
    unary = False
    for level in range(1, sizes.size):
        rim = offsets[level + 1] - 1
        if sizes[level - 1] == (sizes[level] - 1) * fan_out + 1 and shares[rim] != 0.0:
            shares[rim] = 0.0
            unary = True
    if unary:
        weights = weights_from_shares(shares, sizes, offsets, fan_out)
        seen = error_gradients(ranges, floor, weights, tree, root_exact)
    apart, covered = copy_ranges(ranges), np.full(sizes[0], floor)
    active = separate_inside(apart, covered)
    for _ in range(sweeps):
        whole = seen.error + seen.floor_error
        falls = False
        moved, after = shares, seen
        for step in STEPS:
            moved, climbed = _sweep(
                apart, active, covered, shares, seen, step, tree, root_exact
            )
            if climbed > (1.0 + CLEARLY) * whole:
                continue
            weights = weights_from_shares(moved, sizes, offsets, fan_out)
            known = surroundings_of(weights * weights, tree, root_exact)
            of_leaves = error_of_leaves(floor, known, sizes[0])
            if climbed - of_leaves > error_given + CLEARLY * climbed:
                continue
            after = gradients_within(ranges, floor, weights, known, of_leaves, tree)
            falls = after.error + after.floor_error < whole
            falls = falls and after.error <= error_given
            if falls:
                break
        if not falls:
            break
        shares, seen = moved, after
        if seen.error + seen.floor_error > (1.0 - TOLERANCE) * whole:
            break
    if seen.error < error_given:
        return weights_from_shares(shares, sizes, offsets, fan_out), seen.error
    return given, error_given


@kernel
def _level_errors(
    ranges: SortedRanges, tree: RegularLevels, root_exact: bool
) -> tuple[float, float]:
    """Return the error of the ranges if all levels but the root's have one weight.

    The second error is that where the root has this weight, too.
    """
    sizes, fan_out = tree.sizes, tree.fan_out
    top = sizes.size - 1
    moving = copy_ranges(ranges)
    inside = np.zeros(sizes[0])
    active = separate_inside(moving, inside)
    level = leaf_level(tree, inside, inside)
    variance, residual, total = level.variance, level.residual, level.total
    without_root = 0.0
    for height in range(1, top + 1):
        level = level_above(level, tree)
        active = climb_ranges(moving, active, level)
        share = 1.0 / (height + 1.0)
        rest, own = (1.0 - share) * (1.0 - share), share * share
        for index in range(sizes[height]):
            start = index * fan_out
            stays = level.spread[index]
            for child in range(start, min(start + fan_out, level.below)):
                stays += residual[child]
            if height == top:
                without_root = stays + (0.0 if root_exact else total[0] * inside[0])
            variance[index] = total[index] / (rest + own * total[index])
            residual[index] = stays / rest
    with_root = residual[0] + (0.0 if root_exact else variance[0] * inside[0])
    return without_root, with_root


@kernel
def _tuned_tree(
    ranges: SortedRanges,
    floor: float,
    tree: RegularLevels,
    priorities: Priorities,
    sweeps: int,
) -> tuple[FloatArray, float]:
    """Return the better of greedy weights and equal levels, swept if wanted."""
    root_exact, levels = priorities.root_exact, tree.sizes.size
    shares, error = greedy_shares(copy_ranges(ranges), None, None, tree, priorities)
    weights = weights_from_shares(shares, tree.sizes, tree.offsets, tree.fan_out)
    if root_exact:
        weights[-1] = 0.0
    without_root, with_root = _level_errors(ranges, tree, root_exact)
    for measured in range(levels - 1, levels if root_exact else levels + 1):
        level_error = with_root if measured == levels else without_root
        if level_error < error:
            weights, error = np.full(weights.size, 1.0 / measured), level_error
            if measured < levels:
                weights[-1] = 0.0
    if sweeps > 0:
        return _refined(ranges, floor, weights, tree, root_exact, sweeps)
    return weights, error


@kernel
def _tuned(
    ranges: SortedRanges,
    floor: float,
    leaves: int,
    fan_outs: IntArray,
    decays: FloatArray,
    root_exact: bool,
    sweeps: int,
) -> tuple[int, FloatArray, float]:
    """Tune a tree of each fan-out; return the place of the best, its weights and error.

    Of equal ones the first is taken. Row i of `decays` holds `level_decays` for the
    levels of tree i.
    """
    best, weights, least = 0, np.empty(0), 0.0
    for place in range(fan_outs.size):
        tree = levels_within(leaves, fan_outs[place])
        of_levels = np.empty(tree.sizes.size)
        for height in range(tree.sizes.size):
            of_levels[height] = decays[place, height]
        priorities = Priorities(of_levels, False, root_exact, 1)
        tuned, error = _tuned_tree(ranges, floor, tree, priorities, sweeps)
        if place == 0 or error < least:
            best, weights, least = place, tuned, error
    return best, weights, least


def refine_scaling(
    first: IntArray,
    first_fraction: FloatArray,
    last: IntArray,
    last_fraction: FloatArray,
    weights: FloatArray | None,
    leaves: int,
    fan_out: int,
    *,
    start: FloatArray | None = None,
    safeguard: bool = True,
    root_exact: bool = False,
) -> Scaling:
    """Improve node weights for ranges, given the whole tree around each node.

    The error of the given ranges never exceeds that of `start`.

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
    weights : ndarray of float64 or None, shape (queries,)
        Importance of each range; None for ones.
    leaves : int
        Number of leaves.
    fan_out : int
        The most children of a node.
    start : ndarray of float64, shape (nodes,), optional
        Weights to improve, positive on every leaf and adding up to 1 along every path;
        the greedy ones by default.
    safeguard : bool, default True
        Ask also for each single leaf, with a tenth of the weight of all queries
        together. Without it leaves that no query separates lose all their weight.
    root_exact : bool, default False
        The total is known: the root has weight 0.

    Returns
    -------
    Scaling
        The weights, and the error of the given ranges.

    Raises
    ------
    WorkloadError
        If ranges leave the leaves, or `start` spares leaves or does not add up.

    Examples
    --------
    >>> from blowfish_fast.kernels import greedy_scaling_fractions
    >>> ends = np.array([0, 1, 2]), np.ones(3), np.array([7, 6, 3]), np.ones(3)
    >>> greedy = greedy_scaling_fractions(*ends, None, 8, 2)
    >>> refine_scaling(*ends, None, 8, 2).objective < greedy.objective
    True
    """
    tree = regular_levels(leaves, fan_out)
    ranges = sorted_ranges(first, first_fraction, last, last_fraction, weights, leaves)
    if start is None:
        asked = first, first_fraction, last, last_fraction, weights
        greedy = greedy_scaling_fractions(
            *asked, leaves, fan_out, root_exact=root_exact
        )
        if leaves == 1:
            return greedy
        start = greedy.weights
    given = np.require(start, np.float64, ["C", "W"])
    _refuse_pruned(given, tree, root_exact)
    if leaves == 1:
        error = 0.0 if root_exact else float((ranges.squared * ranges.head**2).sum())
        return Scaling(given, error)
    floor = safeguard_weight(ranges, leaves) if safeguard else 0.0
    refined, error = _refined(ranges, floor, given, tree, root_exact, SWEEPS)
    return Scaling(refined, float(error))


def tune_ranges(
    ranges: SortedRanges,
    leaves: int,
    fan_out: int,
    *,
    decay: bool,
    root_exact: bool,
    sweeps: bool,
    plainly: bool = False,
    floor: float | None = None,
) -> Scaling:
    """Scale one tree to `sorted_ranges`: greedily or by equal levels, then by sweeps.

    It does what `greedy_scaling_fractions` and `refine_scaling` do one after the other,
    for at least two leaves and ranges that many fan-outs share, without checks.

    Parameters
    ----------
    ranges : SortedRanges
        The ranges; they stay as they are.
    leaves : int
        Number of leaves, at least 2.
    fan_out : int
        The most children of a node.
    decay : bool
        As in `greedy_scaling`.
    root_exact : bool
        The total is known: the root has weight 0.
    sweeps : bool
        Whether weights are improved by sweeps.
    plainly : bool, default False
        Whether plain Python does it, to the same bits, where nothing was compiled yet.
    floor : float, optional
        What `safeguard_weight` returned, for who tunes many trees.

    Returns
    -------
    Scaling
        The weights, and the error of the ranges.

    Examples
    --------
    >>> ends = np.array([0, 1, 2]), np.ones(3), np.array([7, 6, 3]), np.ones(3)
    >>> ranges = sorted_ranges(*ends, None, 8)
    >>> options = {"decay": True, "root_exact": False, "sweeps": True}
    >>> tuned = tune_ranges(ranges, 8, 2, **options)
    >>> tuned.objective <= refine_scaling(*ends, None, 8, 2).objective
    True
    """
    choices, options = [(fan_out, decay)], {"root_exact": root_exact, "sweeps": sweeps}
    return tune_fan_outs(
        ranges, leaves, choices, plainly=plainly, floor=floor, **options
    )[1]


def tune_fan_outs(
    ranges: SortedRanges,
    leaves: int,
    choices: Sequence[tuple[int, bool]],
    *,
    root_exact: bool,
    sweeps: bool,
    plainly: bool = False,
    floor: float | None = None,
) -> tuple[int, Scaling]:
    """Scale one tree for each fan-out, as `tune_ranges` does, and return the best.

    All are tuned in one call, which a few hundred queries notice.

    Parameters
    ----------
    ranges : SortedRanges
        The ranges; they stay as they are.
    leaves : int
        Number of leaves, at least 2.
    choices : sequence of (int, bool)
        The most children of a node, and `decay` as in `greedy_scaling`.
    root_exact : bool
        The total is known: the root has weight 0.
    sweeps : bool
        Whether weights are improved by sweeps.
    plainly : bool, default False
        Whether plain Python does it, to the same bits, where nothing was compiled yet.
    floor : float, optional
        What `safeguard_weight` returned, for who tunes many trees.

    Returns
    -------
    fan_out : int
        That of the tree of least error; of equal ones the first.
    scaling : Scaling
        Its weights, and the error of the ranges.

    Examples
    --------
    >>> ends = np.array([0, 1, 2]), np.ones(3), np.array([7, 6, 3]), np.ones(3)
    >>> ranges = sorted_ranges(*ends, None, 8)
    >>> options = {"root_exact": False, "sweeps": True}
    >>> tune_fan_outs(ranges, 8, [(2, True), (8, False)], **options)[0]
    2
    """
    levels = tuple(_height(leaves, fan_out) for fan_out, _ in choices)
    fan_outs, decays = _laid_out(tuple(choices), levels)
    floor = safeguard_weight(ranges, leaves) if floor is None else floor
    asked = ranges, floor, leaves, fan_outs, decays, root_exact, SWEEPS if sweeps else 0
    spared = plainly and not is_ready(_tuned)
    place, weights, error = (in_plain_python(_tuned) if spared else _tuned)(*asked)
    return int(fan_outs[place]), Scaling(weights, float(error))


@lru_cache(maxsize=64)
def _laid_out(
    choices: tuple[tuple[int, bool], ...], levels: tuple[int, ...]
) -> tuple[IntArray, FloatArray]:
    """Return the fan-outs, and for each the decays of its levels, in rows."""
    decays = np.ones((len(choices), max(levels)))
    for row, (fan_out, decay) in enumerate(choices):
        decays[row, : levels[row]] = level_decays(levels[row], fan_out, decay)
    return np.array([fan_out for fan_out, _ in choices], dtype=np.int64), decays


def _height(leaves: int, fan_out: int) -> int:
    """Return how many levels a regular tree has."""
    levels = 1
    while leaves > 1:
        leaves, levels = -(-leaves // fan_out), levels + 1
    return levels


def safeguard_weight(ranges: SortedRanges, leaves: int) -> float:
    """Return the squared weight of the query for each leaf.

    Parameters
    ----------
    ranges : SortedRanges
        The ranges.
    leaves : int
        Number of leaves.

    Returns
    -------
    float
        The squared weight: with those of all leaves, a tenth of that of the ranges.
    """
    return float(SAFEGUARD * ranges.squared.sum() / leaves)


def _refuse_pruned(weights: FloatArray, tree: RegularLevels, root_exact: bool) -> None:
    """Refuse weights that do not add up to 1 along every path, or spare leaves."""
    leaves, nodes = tree.sizes[0], tree.offsets[-1]
    if weights.shape == (nodes,) and (leaves == 1 or weights[:leaves].min() > 0.0):
        layout = tree.sizes, tree.offsets, tree.fan_out
        back = weights_from_shares(shares_from_weights(weights, *layout), *layout)
        if root_exact:
            back[-1] = 0.0
        if np.abs(back - weights).max() <= 1e-9:
            return
    raise InputError(
        f"start needs one weight for each of the {nodes} nodes, positive on the "
        "leaves and adding up to 1 along every path (0 at a root that is exact); got "
        f"shape {weights.shape}. Weights that were pruned cannot be refined"
    )
