"""Choose fan-out and weights of a tree: tuned to a workload, or by level alone.

Everything here reads public facts only, so choosing costs nothing, and a policy implied
by another is never served worse (Lemma HI8, ``docs/proofs/hierarchy.md``). Paid in
epsilon, precisions are squared weights: greedy scaling, then sweeps. Paid in rho the
design is convex (``kernels.square_root_weights``); one binary tree is enough, since it
holds all trees whose fan-out is a power of two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.compiler_watch import COMPILER
from blowfish_fast._support.machine import usable_cores
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.policies import AddRemove, Full, Policy
from blowfish_fast.workloads import Form, Fractions, Implicit, Pieces
from blowfish_fast.workloads.base import as_pieces

from .kept_trees import TunedWeights, keep_tree, kept_tree
from .tree import TreeStrategy

if TYPE_CHECKING:
    from blowfish_fast.kernels.tree.shape import Tree

# The paper's binary tree with its decay towards the root, and wider trees without:
# the exact error of each is predicted and the best is kept. Small problems, where a
# try costs a millisecond, have more to choose from.
CANDIDATES = ((2, True), (8, False), (16, False), (32, False), (64, False))
IN_RHO = ((2, False),)
# Of more leaves than are swept, the others were 1.3 to 2 times worse.
FEW_CANDIDATES = ((8, False), (16, False))
MORE_CANDIDATES = ((3, False), (4, False), (12, False), (24, False), (48, False))
SMALL = 2**15
# Sweeps cost several greedy passes; above, only the best greedy tree is swept, and
# far above none.
LARGE = 2**18
# Implicit queries are listed, where exact nodes cut them, up to this many leaves.
MOST_LISTED = 2**16
# Sweeps see queries one by one: prefixes up to this many cells, of all ranges a sample.
MOST_SWEPT_CELLS = 2**18
SAMPLED_RANGES = 2**14
# Up to twice this many are all listed, for designs in rho.
EVERY_RANGE = 2**15
# Sweeps of a design end at its certificate, mostly after some dozens.
DESIGN_SWEEPS = 200
FEW_SWEEPS = 6
FEW_PIECES = 2**12
# Below, threads cost more than a fan-out takes.
FEW_WORK = 2**11
# Trees that are tuned at the same time have so many leaves together, where they are
# more than two; and on more leaves than the second they are tuned one by one.
MOST_TUNED, MOST_PAIRED = 2**19, 2**22
# What was tuned to public queries is remembered up to so many leaves and queries: a
# question takes at most half a megabyte of key, and as much of weights.
MOST_REMEMBERED = 2**14
# Fewer are tuned as fast as a file is read.
FEWEST_KEPT = 2**9
FLOOR = 0.05
"""Default weight that every leaf of a tuned tree has at least."""


def tuned_tree(
    form: Form,
    policy: Policy,
    *,
    budget: Budget | Fraction,
    sweeps: bool = True,
    fan_out: int | None = None,
    floor: float = 0.0,
    public_work: int | None = None,
    public_form: bool = False,
) -> TreeStrategy:
    """Return the tree of least predicted error for `form`, or that of one `fan_out`.

    Each fan-out is scaled greedily, or has equal levels if these serve the queries
    better. The result is never worse than equal levels.

    Parameters
    ----------
    form : Form
        The queries over the leaves.
    policy : Policy
        The policy over the leaves, without constraints.
    budget : Budget or Fraction
        What the measurement may cost; the error is predicted at it.
    sweeps : bool, default True
        Whether every node is then re-optimised given all others, with a safeguard for
        queries that were not declared.
    fan_out : int, optional
        The most children of a node; several are tried by default.
    floor : float, default 0.0
        Every leaf has at least this weight, in [0, 1], of the 1 that its path adds up
        to: no query has more than (1 + floor) / floor times the standard error of noise
        on the cells alone (``docs/proofs/hierarchy.md``).
    public_work : int, optional
        How many leaves and queries there are; it decides whether a small problem waits
        for the compiler. Buckets that were drawn are not public yet: then the cells
        that they divide are counted.
    public_form : bool, default False
        Whether leaves and queries follow from no draw. What was tuned to them is then
        remembered in this process, and kept for others: whether it was tuned before
        shows in the time that a call takes, and must tell nothing about buckets that
        were drawn.

    Returns
    -------
    TreeStrategy
        The strategy.
    """
    leaves = policy.domain.size
    if leaves == 1:
        return TreeStrategy(kernels.regular_tree(1, 2), np.ones(1))
    power = Budget.of(budget).power
    choices = _offered(leaves, _listed(form), power)
    choices = [choice for choice in choices if choice[0] < 2 * leaves]
    if fan_out is not None:
        choices = [(fan_out, fan_out == 2)]
    tuned = partial(_best_design, leaves=leaves)
    if power == 1:
        work = public_work or leaves + _listed(form)
        plainly = isinstance(form, Fractions) and COMPILER.forgoes(work)
        remembers = public_form and work <= MOST_REMEMBERED
        best_tuned = _remembered_tuned if remembers else _best_tuned
        tuned = partial(best_tuned, leaves=leaves, plainly=plainly)
    if isinstance(policy, AddRemove | Full):
        best = tuned(form, choices, not policy.has_bottom, sweeps)
        return _strategy(leaves, best.fan_out, best.node_weights, floor)

    def error(strategy: TreeStrategy) -> float:
        return strategy.total_variance(form, strategy.scales(policy, budget))

    candidates = [*_candidates(form, policy, choices, sweeps, floor, tuned)]
    return min(candidates, key=error) if len(candidates) > 1 else candidates[0]


def _offered(leaves: int, listed: int, power: int) -> list[tuple[int, bool]]:
    if power == 2:
        return [*IN_RHO]
    if leaves > LARGE:
        return [*FEW_CANDIDATES]
    small = leaves + listed <= SMALL
    return [*CANDIDATES, *MORE_CANDIDATES] if small else [*CANDIDATES]


def _strategy(
    leaves: int, fan_out: int, weights: FloatArray, floor: float = 0.0
) -> TreeStrategy:
    # Of the same weight under every policy, so that what is implied stays cheaper.
    raised = weights.copy()
    np.maximum(raised[:leaves], floor, out=raised[:leaves])
    return TreeStrategy(kernels.regular_tree(leaves, fan_out), raised)


def _candidates(
    form: Form,
    policy: Policy,
    choices: list[tuple[int, bool]],
    sweeps: bool,
    floor: float,
    tuned: Callable[..., TunedWeights],
) -> Iterator[TreeStrategy]:
    """Yield the trees tuned for `Full` and `AddRemove`, and those with exact nodes."""
    leaves = policy.domain.size
    # On very many leaves a try takes a second: only the family that fits is tried.
    fitting = (not policy.has_bottom,)
    for root_exact in (True, False) if leaves <= LARGE else fitting:
        best = tuned(form, choices, root_exact, sweeps)
        yield _strategy(leaves, best.fan_out, best.node_weights, floor)
    for number, choice in enumerate(choices):
        tree = kernels.regular_tree(leaves, choice[0])
        weights = np.zeros(tree.nodes)
        weights[:leaves] = 1.0
        alone = TreeStrategy(tree, weights)
        exact = alone.exact_rows(policy)
        # Weight on leaves alone is the same under every fan-out, but for exact nodes.
        first = number == 0 and leaves <= LARGE
        if first or exact[leaves:-1].any():
            yield alone
        for level in _exact_levels(exact, tree.offsets):
            inside = cut_at(form, leaves, choice[0] ** level)
            if inside is not None:
                best = tuned(inside, [choice], True, sweeps)
                yield _strategy(leaves, choice[0], best.node_weights, floor)


def _exact_levels(exact: BoolArray, offsets: IntArray) -> range:
    """Return the levels below the root from which on all nodes are exact."""
    top = offsets.size - 2
    level = top
    while level > 0 and exact[offsets[level] : offsets[level + 1]].all():
        level -= 1
    return range(level + 1, top)


def cut_at(form: Form, leaves: int, width: int) -> Fractions | None:
    """Return what is left of the queries where totals of `width` leaves are known.

    Each range keeps its first and its last part, up to the next multiple of `width`.

    Parameters
    ----------
    form : Form
        The queries over the leaves.
    leaves : int
        Number of leaves.
    width : int
        How many leaves a known total holds.

    Returns
    -------
    Fractions or None
        The rest; None where nothing is left, or where the form is not one of ranges.

    Examples
    --------
    >>> ends = np.array([1]), np.ones(1), np.array([9]), np.ones(1)
    >>> inside = cut_at(Fractions(*ends), 12, 4)
    >>> inside.first.tolist(), inside.last.tolist()
    ([1, 8], [3, 9])
    """
    listed = _as_ranges(form, leaves)
    if listed is None:
        return None
    first, head, last, tail = listed
    tail = np.where(first == last, head, tail)
    begins = first // width * width
    ends = np.minimum(begins + width, leaves) - 1
    apart = last > ends
    # The part from the first leaf on, in its stretch or up to the last leaf.
    stops = np.where(apart, ends, last)
    stop_parts = np.where(apart, 1.0, tail)
    whole = (first == begins) & (head == 1.0) & (stops == ends) & (stop_parts == 1.0)
    left = ~whole
    # The part up to the last leaf, in another stretch.
    restarts = last // width * width
    last_ends = np.minimum(restarts + width, leaves) - 1
    right = apart & ~((last == last_ends) & (tail == 1.0))
    if not (left.any() or right.any()):
        return None
    single = restarts == last
    return Fractions(
        np.concatenate([first[left], restarts[right]]),
        np.concatenate([head[left], np.where(single, tail, 1.0)[right]]),
        np.concatenate([stops[left], last[right]]),
        np.concatenate([stop_parts[left], tail[right]]),
    )


def _as_ranges(form: Form, leaves: int) -> Fractions | None:
    """Return a form as ranges of leaves, as far as tuning needs it."""
    if isinstance(form, Fractions):
        return form
    if not isinstance(form, Implicit) or leaves > MOST_LISTED:
        return None
    each, ones = np.arange(leaves), np.ones(leaves)
    if form.kind == "prefixes":
        return Fractions(np.zeros_like(each), ones, each, ones)
    if form.kind == "all_ranges":
        # Where a range is cut, one of its ends remains: from the left, or to the right.
        return Fractions(
            np.concatenate([np.zeros_like(each), each]),
            np.ones(2 * leaves),
            np.concatenate([each, np.full(leaves, leaves - 1)]),
            np.ones(2 * leaves),
        )
    return None


def _listed(form: Form) -> int:
    """Return how many queries or pieces a form lists."""
    if isinstance(form, Implicit):
        return 0
    return form.first.size if isinstance(form, Fractions) else form.starts.size


def _best_design(
    form: Form,
    choices: list[tuple[int, bool]],
    root_exact: bool,
    sweeps: bool,
    *,
    leaves: int,
) -> TunedWeights:
    """Return the best of several fan-outs for Gaussian noise, swept if possible."""
    listed = _swept_queries(form, every=True) if sweeps else None
    asked = form if listed is None else listed
    work = leaves + _listed(asked)
    passes = DESIGN_SWEEPS if sweeps and work <= LARGE else FEW_SWEEPS * sweeps

    def designed(choice: tuple[int, bool]) -> TunedWeights:
        fan_out, _ = choice
        if isinstance(asked, Fractions):
            design_of_choice = kernels.design_ranges(
                *asked, leaves, fan_out, root_exact=root_exact, sweeps=passes
            )
        elif isinstance(asked, Pieces):
            design_of_choice = kernels.design_pieces(
                *asked, leaves, fan_out, root_exact=root_exact, sweeps=passes
            )
        else:
            design_of_choice = kernels.design_family(
                asked.kind, asked.edges, fan_out, root_exact=root_exact
            )
        error = design_of_choice.objective
        if asked is not form:
            tree = kernels.regular_tree(leaves, fan_out)
            error = _error(form, design_of_choice.weights, tree, root_exact, 2)
        start = TunedWeights(fan_out, design_of_choice.weights, error)
        swept = design_of_choice.gap < 1.0 and asked is form
        return start if swept else _or_equal_levels(form, leaves, start, root_exact, 2)

    return min(map(designed, choices), key=lambda design: design.objective)


def _best_tuned(
    form: Form,
    choices: list[tuple[int, bool]],
    root_exact: bool,
    sweeps: bool,
    *,
    leaves: int,
    plainly: bool,
) -> TunedWeights:
    """Return the best of several fan-outs, each scaled to the queries."""
    listed = _swept_queries(form) if sweeps else None
    work = leaves + _listed(form if listed is None else listed)
    sweep_all = listed is not None and work <= SMALL

    # The error of many sparse rows costs more than their greedy weights: there equal
    # levels are tried for the best fan-out alone.
    try_levels = not isinstance(form, Pieces) or work <= FEW_PIECES

    at_once = 1 if work <= FEW_WORK else trees_at_once(leaves)
    if isinstance(form, Fractions):
        ranges = kernels.sorted_ranges(*form, None, leaves)
        tune = partial(
            kernels.tune_fan_outs,
            ranges,
            leaves,
            root_exact=root_exact,
            sweeps=sweep_all,
            plainly=plainly,
            floor=kernels.safeguard_weight(ranges, leaves),
        )

        def scaled(tried: list[tuple[int, bool]]) -> TunedWeights:
            fan_out, scaling = tune(tried)
            return TunedWeights(fan_out, *scaling)

        tried = _of_other_trees(choices, leaves)
        # One call for all of them, or one for each where threads share them.
        parts = [tried] if at_once == 1 else [[choice] for choice in tried]
    else:

        def scaled(tried: list[tuple[int, bool]]) -> TunedWeights:
            start = _greedy(form, leaves, *tried[0], root_exact)
            if try_levels:
                start = _or_equal_levels(form, leaves, start, root_exact)
            if not sweep_all or listed is None:
                return start
            return _swept(form, listed, leaves, start, root_exact)

        parts = [[choice] for choice in choices]

    each = map if at_once == 1 else partial(_in_threads, at_once)
    best = min(each(scaled, parts), key=lambda tuned_weights: tuned_weights.objective)
    if not try_levels:
        best = _or_equal_levels(form, leaves, best, root_exact)
    if listed is not None and SMALL < work <= LARGE:
        best = _swept(form, listed, leaves, best, root_exact)
    return best


def _of_other_trees(
    choices: list[tuple[int, bool]], leaves: int
) -> list[tuple[int, bool]]:
    """Leave out fan-outs whose tree is that of an earlier one: a root over all leaves.

    Without a decay both are tuned to the same weights, and the earlier one is taken.
    """
    flat = [choice for choice in choices if choice[0] >= leaves and not choice[1]]
    return [choice for choice in choices if choice not in flat[1:]]


def _remembered_tuned(
    form: Form,
    choices: list[tuple[int, bool]],
    root_exact: bool,
    sweeps: bool,
    *,
    leaves: int,
    plainly: bool,
) -> TunedWeights:
    """Return what `_best_tuned` does, from memory where the same was asked before."""
    parts = tuple(
        part if isinstance(part, str) else (part.dtype.str, part.tobytes())
        for part in form
    )
    kind: Any = type(form)
    asked = PublicQueries(kind, parts, tuple(choices), root_exact, sweeps, leaves)
    return _tuned_to(asked, _Plainly(plainly))


class PublicQueries(NamedTuple):
    """All that a tuned tree follows from; arrays by the bytes that they hold.

    Attributes
    ----------
    kind : type of Form
        How the queries are written.
    parts : tuple
        Its fields: words, or the type and the bytes of an array.
    choices : tuple of (int, bool)
        The fan-outs that are tried, and whether weights decay towards the root.
    root_exact : bool
        Whether the total is known.
    sweeps : bool
        Whether weights are improved by sweeps.
    leaves : int
        Number of leaves.
    """

    kind: type[Form]
    parts: tuple[str | tuple[str, bytes], ...]
    choices: tuple[tuple[int, bool], ...]
    root_exact: bool
    sweeps: bool
    leaves: int

    def form(self) -> Form:
        """Return the queries as they were."""
        arrays: Any = (
            part if isinstance(part, str) else np.frombuffer(part[1], part[0])
            for part in self.parts
        )
        return self.kind(*arrays)

    def facts(self) -> tuple[object, ...]:
        """Return words, numbers and bytes that say the same in every process."""
        arrays = (part[1] for part in self.parts if not isinstance(part, str))
        types = [part if isinstance(part, str) else part[0] for part in self.parts]
        return (self.kind.__name__, types, *self[2:], *arrays)


@dataclass(frozen=True)
class _Plainly:
    """Whether the compiler is spared: bits are the same, so all of these are equal."""

    spared: bool = field(compare=False)


@lru_cache(maxsize=32)
def _tuned_to(asked: PublicQueries, plainly: _Plainly) -> TunedWeights:
    """Tune to public queries, or read what another process has tuned to them."""
    form = asked.form()
    keeps = asked.leaves + _listed(form) >= FEWEST_KEPT
    best = kept_tree(asked.facts(), asked.leaves) if keeps else None
    if best is None:
        best = _best_tuned(
            form,
            [*asked.choices],
            asked.root_exact,
            asked.sweeps,
            leaves=asked.leaves,
            plainly=plainly.spared,
        )
        if keeps:
            keep_tree(asked.facts(), best)
    # Everybody who asks the same is handed the same array.
    best.node_weights.flags.writeable = False
    return best


def _or_equal_levels(
    form: Form, leaves: int, best: TunedWeights, root_exact: bool, power: int = 1
) -> TunedWeights:
    """Return the weights given, or equal levels with or without the root, if better."""
    fan_out = best.fan_out
    tree = kernels.regular_tree(leaves, fan_out)
    for without_root in (True,) if root_exact else (True, False):
        by_level = level_weights(tree.offsets.size - 1, root_exact=without_root)
        weights = np.repeat(by_level, np.diff(tree.offsets))
        error = _error(form, weights, tree, root_exact, power)
        if error < best.objective:
            best = TunedWeights(fan_out, weights, error)
    return best


def _error(
    form: Form,
    weights: FloatArray,
    tree: Tree,
    root_exact: bool,
    power: int = 1,
) -> float:
    """Return the error of all queries, in the units of `TunedWeights`."""
    with np.errstate(divide="ignore"):
        variances = weights**-2.0 if power == 1 else 1.0 / weights
    if root_exact:
        variances[-1] = 0.0
    if isinstance(form, Implicit):
        return kernels.tree_total_variance(variances, tree, form.kind, form.edges)
    return float(kernels.tree_variances(variances, tree, *as_pieces(form)).sum())


def _swept_queries(form: Form, *, every: bool = False) -> Fractions | None:
    """Return the queries that are swept, or a public sample; None without any."""
    if isinstance(form, Fractions):
        return form
    cells = int(form.edges[-1]) if isinstance(form, Implicit) else 0
    if not isinstance(form, Implicit) or cells > MOST_SWEPT_CELLS:
        return None
    if form.kind == "prefixes":
        ends = np.arange(1, cells + 1)
        starts = np.zeros_like(ends)
    elif every and form.kind in ("identity", "total"):
        return _few_queries(form)
    elif every and form.kind == "all_ranges" and cells * (cells + 1) <= EVERY_RANGE:
        starts, ends = np.triu_indices(cells)
        ends = ends + 1
    elif form.kind == "all_ranges":
        sample = np.random.default_rng(0)
        cuts = sample.integers(0, cells + 1, SAMPLED_RANGES)
        others = (cuts + sample.integers(1, cells + 1, SAMPLED_RANGES)) % (cells + 1)
        starts, ends = np.minimum(cuts, others), np.maximum(cuts, others)
    else:
        return None
    return Fractions(*kernels.ranges_to_fractions(starts, ends, form.edges))


def _few_queries(form: Implicit) -> Fractions:
    """List cells or the total; m cells of a bucket are 1 / sqrt(m) of it."""
    each = np.arange(form.edges.size - 1)
    if form.kind == "total":
        return Fractions(each[:1], np.ones(1), each[-1:], np.ones(1))
    share = 1.0 / np.sqrt(np.diff(form.edges))
    return Fractions(each, share, each, share)


def trees_at_once(leaves: int) -> int:
    """Return how many trees over so many leaves are tuned at a time, at most.

    Each takes memory in proportion to its leaves, so that what a release declares would
    else depend on the number of cores.
    """
    if leaves > MOST_PAIRED:
        return 1
    return max(2, MOST_TUNED // leaves)


def _in_threads(
    at_once: int,
    work: Callable[[list[tuple[int, bool]]], TunedWeights],
    parts: list[list[tuple[int, bool]]],
) -> list[TunedWeights]:
    if len(parts) == 1:
        return [work(parts[0])]
    with ThreadPoolExecutor(usable_cores(min(at_once, len(parts)))) as pool:
        return list(pool.map(work, parts))


def _swept(
    form: Form,
    listed: Fractions,
    leaves: int,
    start: TunedWeights,
    root_exact: bool,
) -> TunedWeights:
    """Improve weights by sweeps over `listed`, which stands for the queries."""
    swept = kernels.refine_scaling(
        *listed,
        None,
        leaves,
        start.fan_out,
        start=start.node_weights,
        root_exact=root_exact,
    )
    if listed is form:
        return TunedWeights(start.fan_out, swept.weights, swept.objective)
    tree = kernels.regular_tree(leaves, start.fan_out)
    error = _error(form, swept.weights, tree, root_exact)
    after = TunedWeights(start.fan_out, swept.weights, error)
    return after if error < start.objective else start


def _greedy(
    form: Form, leaves: int, fan_out: int, decay: bool, root_exact: bool
) -> TunedWeights:
    if isinstance(form, Implicit):
        scaling = kernels.greedy_scaling_implicit(
            form.kind, form.edges, fan_out, decay=decay, root_exact=root_exact
        )
    else:
        assert isinstance(form, Pieces)
        scaling = kernels.greedy_scaling_pieces(
            *form, None, leaves, fan_out, decay=decay, root_exact=root_exact
        )
    return TunedWeights(fan_out, scaling.weights, scaling.objective)


def level_tree(
    leaves: int, fan_out: int, *, root_exact: bool, geometric: bool, power: int = 1
) -> TreeStrategy:
    """Return a tree whose nodes of one level share one weight.

    Geometric weights grow by the cube root of two from each level to the one below it,
    by the square root if paid in rho.

    Parameters
    ----------
    leaves : int
        Number of leaves.
    fan_out : int
        The most children of a node.
    root_exact : bool
        Whether the total is known and not measured.
    geometric : bool
        Whether weights grow towards the leaves.
    power : int, default 1
        1 for epsilon, 2 for rho.

    Returns
    -------
    TreeStrategy
        The strategy.
    """
    tree = kernels.regular_tree(leaves, fan_out)
    ratio = 2.0 ** (-1.0 / (4 - power)) if geometric else 1.0
    by_level = level_weights(tree.offsets.size - 1, ratio, root_exact=root_exact)
    return TreeStrategy(tree, np.repeat(by_level, np.diff(tree.offsets)))


def level_weights(levels: int, ratio: float = 1.0, *, root_exact: bool) -> FloatArray:
    """Return the weight of each level: ratios that add up to 1.

    Parameters
    ----------
    levels : int
        Number of levels.
    ratio : float, default 1.0
        Weight of a level over that of the level below it.
    root_exact : bool
        Whether the total is known and not measured.

    Returns
    -------
    ndarray of float64, shape (levels,)
        The weights, the leaves' first.
    """
    by_level = ratio ** np.arange(levels)
    if root_exact and levels > 1:
        by_level[-1] = 0.0
    weights: FloatArray = by_level / by_level.sum()
    return weights
