"""Blocks, fan-outs and the split of epsilon for an ordered hierarchy.

Everything here reads the policy and the number of cells only, so choosing is free. With
a share a of the budget on the borders, random ranges have the squared error c1 / a^2 +
c2 / (1 - a)^2, paid in rho c1 / a + c2 / (1 - a), before what least squares gains
(Lemma OH12, ``docs/proofs/ordered.md``). Between a few fan-outs the exact
error of a few blocks decides, where that takes no time. Where the release will be
fitted, plans that are close are also tried on public shapes (``fitted_error``): their
variance alone may rank them wrongly. `HTheta` is Haney's fixed split for thresholds on
a line.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache, partial
from typing import NamedTuple, Self, TypeVar

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import PolicyError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.noise import Scales
from blowfish_fast.policies import AddRemove, Full, Policy, Threshold
from blowfish_fast.workloads import Form, Fractions, Implicit

from .fitted_error import Asked, fitted_part
from .ordered_hierarchy import OrderedHierarchy
from .prefix_sums import LineReach

Hierarchy = TypeVar("Hierarchy", bound=OrderedHierarchy)

FAN_OUTS = range(2, 65)

# Candidates are compared exactly on this many blocks of at most this many cells.
TRIED_BLOCKS = 8
TRIED_LENGTH = 2**11
WIDER = (1.0, 1.2, 1.5)
SMALLER = (1.0, 0.85, 0.7, 0.55, 0.4)
# In rho a tenth of the variance, a twentieth of the error, is given for fewer nodes.
NEAR = 1.1
# With more kinds of stretches than this the bound alone decides.
TRIED_KINDS = 16
# Up to this many cells the plans for all moves are always tried too.
MOST_TRIED = 2**16
# Plans whose variances differ by less than this factor are ranked by their fits too: on
# public shapes of 512 to 4,096 cells fits changed the quotient of two by up to 1.4.
FITS_DECIDE = 1.5
# The policy's own plan must be better than the one for all moves by this factor.
DOUBT = 1.05
# On shorter lines few levels are there to choose from; longer ones are tried at this
# length, with a threshold shortened alike.
FEWEST_FITTED = 256
MOST_FITTED = 2**12


class HierarchyPlan(NamedTuple):
    """How one stretch of the line is measured.

    Attributes
    ----------
    length : int
        Cells of a block.
    fan_out : int
        The most children of a node.
    levels : int
        Levels of the tree inside a block.
    border_error : float
        c1 of the head of this file.
    node_error : float
        c2 of the head of this file.
    border_rate : float
        Rate of a border at epsilon = 1 (`power` 1) or rho = 1 (2).
    node_rate : float
        Rate of a node, in the same way.
    power : int, default 1
        1 for epsilon, 2 for rho.
    """

    length: int
    fan_out: int
    levels: int
    border_error: float
    node_error: float
    border_rate: float
    node_rate: float
    power: int = 1

    @property
    def error(self) -> float:
        """Predicted squared error of a random range at a budget of 1, a bound above."""
        root = 1.0 / (4 - self.power)
        both = self.border_error**root + self.node_error**root
        return float(both ** (4 - self.power))


def tree_depth(length: int, fan_out: int) -> int:
    """Return how often some cells are split until single, in whole numbers.

    Parameters
    ----------
    length : int
        Number of cells.
    fan_out : int
        The most children of a node.

    Returns
    -------
    int
        The number of levels.
    """
    levels, covered = 0, 1
    while covered < length:
        covered *= fan_out
        levels += 1
    return levels


def block_plan(
    cells: int,
    length: int,
    fan_out: int,
    *,
    crossed: int = 1,
    ways: int = 2,
    power: int = 1,
    part: float = 1.0,
) -> HierarchyPlan:
    """Split the budget between borders and nodes for the least predicted error.

    Parameters
    ----------
    cells : int
        Cells of the stretch.
    length : int
        Cells of a block.
    fan_out : int
        The most children of a node.
    crossed : int, default 1
        One edge changes at most so many borders.
    ways : int, default 2
        One edge changes so many ways down the trees: two for a move.
    power : int, default 1
        1 for epsilon, 2 for rho.
    part : float, default 1.0
        What borders get of their share; the nodes have the rest.

    Returns
    -------
    HierarchyPlan
        The plan.
    """
    levels = tree_depth(length, fan_out)
    # Variance of a row: 2 / rate^2 at epsilon = 1, 1 / (2 rate) at rho = 1.
    each, falls = (2.0, 2) if power == 1 else (0.5, 1)
    borders = 2.0 * each * crossed**falls * max(cells - length, 0) / (cells + 1)
    used = (fan_out - 1) * levels * cells / (cells + 1)
    nodes = each * (ways * levels) ** falls * used
    share, node_rate = 1.0, 0.0
    if levels:
        first, second = (error ** (1.0 / (4 - power)) for error in (borders, nodes))
        share = part * float(first / (first + second))
        node_rate = (1.0 - share) / (ways * levels)
    return HierarchyPlan(
        length, fan_out, levels, borders, nodes, share / crossed, node_rate, power
    )


def whole_line_plan(
    cells: int, fan_out: int, *, moves: bool, power: int = 1
) -> HierarchyPlan:
    """Measure one tree over the whole line, its total too, for edges to "absent".

    Parameters
    ----------
    cells : int
        Number of cells.
    fan_out : int
        The most children of a node.
    moves : bool
        Whether records also move between cells.
    power : int, default 1
        1 for epsilon, 2 for rho.

    Returns
    -------
    HierarchyPlan
        The plan.
    """
    levels = tree_depth(cells, fan_out)
    changed = max(levels + 1, 2 * levels * moves)
    paid = 2.0 * changed**2 if power == 1 else 0.5 * changed
    nodes = paid * (fan_out - 1) * levels * cells / (cells + 1)
    return HierarchyPlan(
        cells, fan_out, levels, 0.0, nodes, 1.0 / changed, 1.0 / changed, power
    )


def best_hierarchy(
    policy: Policy,
    form: Form,
    budget: Budget | Fraction,
    fan_out: int | None = None,
    *,
    fitted: bool = False,
) -> OrderedHierarchy:
    """Return the policy's own plan, or one for all moves if that promises less error.

    The plans for `Full` and `AddRemove` are offered to every policy, so none is served
    worse than these (Lemma OH8); on more than 2^16 cells only where they may win.

    Parameters
    ----------
    policy : Policy
        The policy, without constraints.
    form : Form
        The queries over the cells.
    budget : Budget or Fraction
        What the measurement may cost.
    fan_out : int, optional
        The most children of a node; chosen by default.
    fitted : bool, default False
        Whether the release will be fitted, so that what fits leave decides between
        plans of nearly the same variance.

    Returns
    -------
    OrderedHierarchy
        The hierarchy.
    """
    domain, power = policy.domain, Budget.of(budget).power
    own = planned_hierarchy(policy, fan_out, power)
    far = int(LineReach(policy).lengths.max())
    single = isinstance(form, Implicit) and form.kind == "identity"
    # Beyond an eighth of the line fits may prefer one tree over all of it.
    near = 8 if fitted else 4
    tried = domain.size <= MOST_TRIED or single or near * far >= domain.size
    if isinstance(policy, Full | AddRemove) or not tried:
        return own
    others = [
        planned_hierarchy(kind(domain), fan_out, power) for kind in (Full, AddRemove)
    ]

    def error(plan: OrderedHierarchy) -> float:
        variance = plan.total_variance(form, plan.scales(policy, budget))
        # Sums of one value in different orders differ in their last digits.
        return float(f"{variance:.9e}")

    errors = [error(plan) for plan in (own, *others)]
    asked = _kind_of(form) if fitted and not policy.has_bottom else None
    close = 0.0 < max(errors[:2]) < FITS_DECIDE * min(errors[:2])
    if close and asked is not None and domain.size >= FEWEST_FITTED:
        # What was tried is known to a twentieth; in doubt the plan for all moves has
        # the same error as under `Full`, and never a larger one.
        cells = min(domain.size, MOST_FITTED)
        short = max(far * cells // domain.size, 1)
        errors[0] *= DOUBT * _own_over_whole(cells, short, fan_out, asked, power)
    return (own, *others)[int(np.argmin(errors))]


@lru_cache(maxsize=256)
def _own_over_whole(
    cells: int, theta: int, fan_out: int | None, asked: Asked, power: int
) -> float:
    """Return what fits leave of the error of a threshold's plan, over `Full`'s plan."""
    line = Domain(cells)
    policy = Threshold(line, theta=theta)
    own, whole = (
        fitted_part(planned_hierarchy(kind, fan_out, power), policy, asked, power)
        for kind in (policy, Full(line))
    )
    return own / whole


def _kind_of(form: Form) -> Asked | None:
    """Return whose errors tell about the queries; None for weighted sums."""
    if isinstance(form, Fractions):
        single = (form.first == form.last).all()
        return "identity" if single else "ranges"
    if not isinstance(form, Implicit):
        return None
    kinds: dict[str, Asked] = {
        "identity": "identity",
        "prefixes": "prefixes",
        "all_ranges": "ranges",
    }
    return kinds.get(form.kind)


def planned_hierarchy(
    policy: Policy, fan_out: int | None = None, power: int = 1
) -> OrderedHierarchy:
    """Return the hierarchy of least predicted error for random ranges: Lemma OH8.

    Each stretch that no record can leave gets blocks as long as its own longest edge,
    or a single block if any two of its cells may be joined.

    Parameters
    ----------
    policy : Policy
        The policy, without constraints.
    fan_out : int, optional
        The most children of a node; chosen by default.
    power : int, default 1
        1 for epsilon, 2 for rho.

    Returns
    -------
    OrderedHierarchy
        The hierarchy.
    """
    reach = LineReach(policy)
    if policy.has_bottom:
        starts = np.zeros(1, dtype=np.int64)
        plans = [_plan_with_bottom(reach, fan_out, power)]
        number = np.zeros(1, dtype=np.int64)
    else:
        starts, ends, longest = reach.stretches()
        # One plan for all stretches of one size and one longest edge.
        base = reach.far.size + 1
        kinds, number = np.unique((ends - starts) * base + longest, return_inverse=True)
        tried = kinds.size <= TRIED_KINDS
        plans = [
            _plan_for(kind // base, kind % base, fan_out, tried, power)
            for kind in kinds.tolist()
        ]
    return laid_out(OrderedHierarchy, starts, reach.far.size, plans, number)


@lru_cache(maxsize=256)
def _plan_for(
    cells: int, longest: int, fan_out: int | None, tried: bool, power: int
) -> HierarchyPlan:
    # An edge crosses one border of blocks of its length; in rho, where two borders cost
    # no more than twice as much, blocks of a half or a quarter may serve better.
    parts = (1,) if power == 1 else (1, 2, 4)
    lengths = {-(-max(longest, 1) // part) for part in parts}
    lengths |= {cells} if longest >= cells - 1 else set()

    def plan(length: int, branching: int, part: float = 1.0) -> HierarchyPlan:
        crossed = max(-(-longest // length), 1)
        return block_plan(
            cells, length, branching, crossed=crossed, power=power, part=part
        )

    best: dict[tuple[int, int], HierarchyPlan] = {}
    for length in sorted(lengths):
        for branching in _offered(length, fan_out):
            candidate = plan(length, branching)
            kind = (length, candidate.levels)
            if kind not in best or candidate.error < best[kind].error:
                best[kind] = candidate
    if not tried or max(lengths) > TRIED_LENGTH:
        return min(best.values(), key=lambda candidate: candidate.error)
    # The bound likes narrow trees too much; somewhat wider ones are tried as well, and
    # in rho, where least squares gains more from the trees, smaller shares of borders.
    offered = [
        plan(candidate.length, branching, part)
        for candidate in best.values()
        for branching in _offered(candidate.length, fan_out)
        if branching in (round(factor * candidate.fan_out) for factor in WIDER)
        for part in SMALLER[: 1 if power == 1 else None]
    ]
    errors = [_exact_error(candidate, cells) for candidate in offered]
    if power == 1:
        return offered[int(np.argmin(errors))]
    # Binary trees are best in rho, but by little; wider ones have half the nodes.
    near = min(errors) * NEAR
    close = [
        (_nodes_per_cell(candidate), error, number)
        for number, (candidate, error) in enumerate(zip(offered, errors, strict=True))
        if error <= near
    ]
    return offered[min(close)[2]]


def _nodes_per_cell(plan: HierarchyPlan) -> float:
    """Return the nodes of one block over its cells, with one border and its root."""
    nodes, wide = 2, 1
    for _ in range(plan.levels):
        wide = min(wide * plan.fan_out, plan.length)
        nodes += wide
    return nodes / plan.length


def _exact_error(plan: HierarchyPlan, cells: int) -> float:
    """Return the error of all ranges over a few blocks, for continuous noise."""
    tried = min(cells, TRIED_BLOCKS * plan.length)
    nothing = np.zeros(1, dtype=np.int64)
    strategy = laid_out(OrderedHierarchy, nothing, tried, [plan], nothing)
    weights = strategy.weights()
    exact = np.zeros(weights.size, dtype=np.bool_)
    exact[strategy.blocks - 1] = True
    scales = Scales(np.where(exact, 0, weights), 2**40, exact, plan.power)
    ranges = tried * (tried + 1) / 2
    form = Implicit("all_ranges", np.arange(tried + 1))
    return strategy.total_variance(form, scales) / ranges


def _plan_with_bottom(
    reach: LineReach, fan_out: int | None, power: int
) -> HierarchyPlan:
    cells, longest = reach.far.size, int(reach.lengths.max())
    moves = longest > 0
    length = max(longest, 1)
    crossed = -(-cells // length) - int(reach.bottom.argmax()) // length
    blocks = [
        block_plan(
            cells, length, branching, crossed=crossed, ways=1 + moves, power=power
        )
        for branching in _offered(length, fan_out)
    ]
    whole = [
        whole_line_plan(cells, branching, moves=moves, power=power)
        for branching in _offered(cells, fan_out)
    ]
    return min(whole + blocks, key=lambda plan: plan.error)


def _offered(length: int, fan_out: int | None) -> list[int]:
    if fan_out is not None:
        return [fan_out]
    # Wider than the block is the same tree as one node per cell.
    return [
        fan_out_tried for fan_out_tried in FAN_OUTS if fan_out_tried <= max(length, 2)
    ]


def laid_out(
    kind: type[Hierarchy],
    starts: IntArray,
    cells: int,
    plans: list[HierarchyPlan],
    number: IntArray,
) -> Hierarchy:
    """Cut each stretch into the blocks of its plan.

    Parameters
    ----------
    kind : type[Hierarchy]
        The class of the hierarchy.
    starts : ndarray of int64, shape (stretches,)
        The first cell of each stretch.
    cells : int
        Number of cells of the line.
    plans : list[HierarchyPlan]
        The different plans.
    number : ndarray of int64, shape (stretches,)
        The plan of each stretch.

    Returns
    -------
    OrderedHierarchy
        The hierarchy.
    """
    lengths = np.array([plan.length for plan in plans])[number]
    sizes = np.diff(np.append(starts, cells))
    blocks = -(-sizes // lengths)
    first = np.cumsum(blocks) - blocks
    within = np.arange(int(blocks.sum())) - np.repeat(first, blocks)
    edges = np.repeat(starts, blocks) + within * np.repeat(lengths, blocks)
    of_block = np.repeat(number, blocks)
    return kind(
        np.append(edges, cells),
        np.array([plan.fan_out for plan in plans])[of_block],
        np.array([plan.border_rate for plan in plans])[of_block],
        np.array([plan.node_rate for plan in plans])[of_block],
    )


class HTheta(OrderedHierarchy):
    """Totals up to the end of each block and trees inside, a third of epsilon for each.

    The last cell of a block of theta cells is red; others join the red of their block,
    and the red cells form a chain. Cells at most theta apart are three edges apart:
    star, chain, star; each third buys one of them, scaled to the exact worst edge.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> policy = bf.policies.Threshold(bf.Domain(10), theta=4)
    >>> HTheta.under(policy).edges.tolist()
    [0, 4, 8, 10]
    """

    kind = "h_theta"

    @classmethod
    def under(cls, policy: Policy, fan_out: int | None = None) -> Self:
        """Cut each stretch of the line into blocks as long as its longest edge.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints, over one ordered attribute.
        fan_out : int, optional
            The most children of a node; chosen by default.

        Returns
        -------
        Self
            The strategy.

        Raises
        ------
        PolicyError
            If there are several attributes, or the total is not public.
        """
        if policy.domain.ndim != 1 or policy.has_bottom:
            raise PolicyError(
                "red cells are laid along one ordered attribute whose total is public; "
                f"this policy: {policy.neighbours}"
            )
        starts, _, longest = LineReach(policy).stretches()
        kinds, number = np.unique(np.maximum(longest, 1), return_inverse=True)
        plans = []
        for length in kinds.tolist():
            error = partial(construction_error, length)
            chosen = min(_offered(length, fan_out), key=error)
            levels = max(tree_depth(length, chosen), 1)
            rates = (1.0 / 3.0, 1.0 / (3.0 * levels))
            plans.append(HierarchyPlan(length, chosen, levels, 0.0, 0.0, *rates))
        return laid_out(cls, starts, policy.domain.size, plans, number)


def construction_error(length: int, fan_out: int) -> float:
    """Return the planned squared error of a range at epsilon = 1.

    Two ends lie on the chain, and (fan-out - 1) / 2 nodes per level at each end.

    Parameters
    ----------
    length : int
        Cells of a block.
    fan_out : int
        The most children of a node.

    Returns
    -------
    float
        The error.
    """
    return 36.0 + 18.0 * (fan_out - 1) * tree_depth(length, fan_out) ** 3
