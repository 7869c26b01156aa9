"""Sweeps that improve greedy node weights by looking outside each subtree.

Every node first learns from `gradients` what the rest of the tree knows about its
total, and how much the queries would gain if it were known better; then one pass
bottom-up chooses all shares anew. The outside was seen with the old weights, so a sweep
may overshoot: it is kept only if the error falls, else tried again with a shorter step.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.tree.shape import shares_from_weights, weights_from_shares

from .budget_shares import (
    LARGEST_SHARE,
    RegularLevels,
    Scaling,
    leaf_level,
    level_above,
    regular_levels,
)
from .gradients import Gradients, error_gradients
from .greedy_weights import greedy_scaling_fractions
from .range_queries import SortedRanges, climb_ranges, separate_inside, sorted_ranges

# The queries for single leaves have this part of the squared weight of all others.
SAFEGUARD = 0.1
STEPS = (1.0, 0.6, 0.3)
SWEEPS = 8
"""At most so many passes; each costs two to three times the greedy pass."""
TOLERANCE = 1e-4
"""The sweeps end when one lowers the error by less than this part."""


@kernel
def optimal_share_within(
    pull: float, outside: float, variance: float, stays: float
) -> float:
    """Return the share a node should take when the rest of the tree is given.

    It minimises ``(1 + x)**2 (pull / d(x) + stays)`` over ``x = share / (1 - share)``,
    where ``d(x) = outside (1 + x)**2 + 1 / variance + x**2``. The slope has the sign of
    ``stays d(x)**2 - pull (x - 1 / variance)``, convex and positive at 0: the minimum
    is 0 or the larger root, which Newton reaches from the right. `outside` and
    `variance` are in units of the squared weight that the subtree has to spend.
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
    ranges: SortedRanges,
    floor: float,
    shares: FloatArray,
    seen: Gradients,
    step: float,
    tree: RegularLevels,
    root_exact: bool,
) -> FloatArray:
    """Return shares moved by `step` towards the best ones, bottom-up."""
    sizes, offsets, fan_out = tree.sizes, tree.offsets, tree.fan_out
    pulls, precisions = seen.pulls, seen.precisions
    leaves = sizes[0]
    top = sizes.size - 1
    moving = SortedRanges(
        ranges.first.copy(),
        ranges.head.copy(),
        ranges.last.copy(),
        ranges.tail.copy(),
        ranges.squared.copy(),
    )
    inside = np.full(leaves, floor)
    active = separate_inside(moving, inside)
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
    return moved


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

    The error of the given ranges never exceeds that of `start`, by default the greedy
    weights, which must be positive on every leaf and add up to 1 along every path. With
    `safeguard` each single leaf is asked for too, with a tenth of the weight of all
    queries together; without it leaves that no query separates lose all their weight.
    The other arguments are those of `greedy_scaling_fractions`.

    >>> from blowfish_fast.kernels import greedy_scaling_fractions
    >>> ends = np.array([0, 1, 2]), np.ones(3), np.array([7, 6, 3]), np.ones(3)
    >>> greedy = greedy_scaling_fractions(*ends, None, 8, 2)
    >>> refine_scaling(*ends, None, 8, 2).objective < greedy.objective
    True
    """
    tree = regular_levels(leaves, fan_out)
    ranges = sorted_ranges(first, first_fraction, last, last_fraction, weights, leaves)
    if start is None:
        greedy = greedy_scaling_fractions(
            first,
            first_fraction,
            last,
            last_fraction,
            weights,
            leaves,
            fan_out,
            root_exact=root_exact,
        )
        if leaves == 1:
            return greedy
        start = greedy.weights
    given = np.require(start, np.float64, ["C", "W"])
    shares = _shares_behind(given, tree, root_exact)
    if leaves == 1:
        error = 0.0 if root_exact else float((ranges.squared * ranges.head**2).sum())
        return Scaling(given, error)

    floor = SAFEGUARD * ranges.squared.sum() / leaves if safeguard else 0.0
    seen = error_gradients(ranges, floor, given, tree, root_exact)
    error_given = seen.error
    # A unary node only takes weight from its child, which measures the same total.
    rims = np.flatnonzero(tree.sizes[:-1] == (tree.sizes[1:] - 1) * fan_out + 1)
    if shares[tree.offsets[rims + 2] - 1].any():
        shares[tree.offsets[rims + 2] - 1] = 0.0
        seen = error_gradients(ranges, floor, _weights(shares, tree), tree, root_exact)
    for _ in range(SWEEPS):
        whole = seen.error + seen.floor_error
        for step in STEPS:
            moved = _sweep(ranges, floor, shares, seen, step, tree, root_exact)
            after = error_gradients(
                ranges, floor, _weights(moved, tree), tree, root_exact
            )
            falls = after.error + after.floor_error < whole
            if falls and after.error <= error_given:
                break
        else:
            break
        shares, seen = moved, after
        if seen.error + seen.floor_error > (1.0 - TOLERANCE) * whole:
            break
    if seen.error < error_given:
        given = _weights(shares, tree)
    return Scaling(given, float(min(seen.error, error_given)))


def _weights(shares: FloatArray, tree: RegularLevels) -> FloatArray:
    return weights_from_shares(shares, tree.sizes, tree.offsets, tree.fan_out)


def _shares_behind(
    weights: FloatArray, tree: RegularLevels, root_exact: bool
) -> FloatArray:
    """Return the shares behind weights that can be improved, or refuse them."""
    leaves, nodes = tree.sizes[0], tree.offsets[-1]
    fits = weights.shape == (nodes,) and (leaves == 1 or weights[:leaves].min() > 0.0)
    if fits:
        shares = shares_from_weights(weights, tree.sizes, tree.offsets, tree.fan_out)
        back = _weights(shares, tree)
        if root_exact:
            back[-1] = 0.0
        if np.abs(back - weights).max() <= 1e-9:
            return shares
    raise InputError(
        f"start needs one weight for each of the {nodes} nodes, positive on the "
        "leaves and adding up to 1 along every path (0 at a root that is exact); got "
        f"shape {weights.shape}. Weights that were pruned cannot be refined"
    )
