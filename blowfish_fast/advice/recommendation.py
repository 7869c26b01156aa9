"""Which mechanism to use: a table of policy, questions and attributes, with reasons.

The table, in `_advised`, was measured, not derived: errors on the benchmark sets, after
each mechanism's default fit (``docs/explanation/how_the_defaults_were_chosen.md``). No
error before a fit decides anything, and none is shown: an error is *predicted* where
nothing is fitted, *typical* where releases were tried on generated histograms, and
otherwise left open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import (
    as_choice,
    as_number,
    as_whole,
    naming_right_words,
)
from blowfish_fast.errors import (
    BlowfishError,
    DataDependentError,
    InputError,
    PlugInError,
)
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.selectors.partitions import Descent
from blowfish_fast.measure.strategies.cells import mean_noise
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.contingency import Contingency
from blowfish_fast.mechanisms.dawa import FEWEST_CELLS, Dawa, asks_stretches
from blowfish_fast.mechanisms.hierarchy import Hierarchy
from blowfish_fast.mechanisms.laplace import Gaussian, Laplace
from blowfish_fast.mechanisms.ordered import Ordered, OrderedHierarchical
from blowfish_fast.mechanisms.registry import MechanismName, built, find_mechanism
from blowfish_fast.mechanisms.transformed import Transformed, is_grid
from blowfish_fast.mechanisms.wide_questions import refuse_wide_advice
from blowfish_fast.policies import Graph, Policy
from blowfish_fast.workloads import Identity, Tables, Workload

from .comparison import Cells, Ranking, better_noise, both_budgets, shorten
from .typical_error import geometric_mean, reference_shapes, typical_errors
from .wide_advice import asks_wide, serving, serving_reason, single_cells

FEW_QUERIES = 8
"""Listed questions up to which noise on the answers themselves is advised."""

SHORT = 4
"""A threshold is short where this many of them fit into the line."""

SHORT_ON_LONG_LINES = 24
"""The same on lines that `Dawa` looks at first, of 1,024 cells or more."""

SHORT_FOR_CELLS = 64
"""The same where single cells are asked."""

SHORT_CELLS_REASON = (
    "cells that are alike are merged, and groups measured by what short moves leave"
)
BLOCKS_REASON = (
    "running totals of blocks as long as a move, and a small tree inside each"
)

CLOSE = 1.05
"""Gaussian noise goes first where it is better by more than this."""

# The three constants below were chosen on generated addresses, metres and spikes of
# 2^16 and 2^20 cells; `python -m experiments clustered` judges them on others.
LONG_LINE = 2**16
"""Cells of a line from which on a descent is offered."""
FEW_FILLED = 1 / 16
"""Records count as clustered where at most this part of the cells holds any."""
ABOVE_NOISE = 2.0
"""... and a filled cell holds at least so many times the mean noise of a count."""

UNBIASED = (Laplace, Ordered, OrderedHierarchical, Hierarchy, Contingency)
"""Mechanisms whose intervals hold the truth of each query."""

TRIALS = 3
MANY_CELLS = 2**14

Progress = Callable[[int, int, str], None]


class Advice(NamedTuple):
    """One line of a recommendation.

    Attributes
    ----------
    name : str
        Of the mechanism; " (rho)" marks Gaussian noise beside Laplace noise, and
        " (descent)" buckets by `partitions.Descent`.
    kind : {"predicted", "typical", "untried", "refused"}
        Exact for any data, nothing being fitted; measured on generated data, after the
        fit; not known before a release; or not to be had.
    error : float
        Root of the mean squared error per query, in records; over the shapes, the
        geometric mean. Infinite where it is not known.
    by_shape : dict
        The error on each generated histogram; empty unless typical.
    mechanism : Mechanism or None
        The mechanism, ready to release; None if the policy does not admit it.
    reason : str
        Why it is on the list, or why it is refused, in words.
    """

    name: str
    kind: str
    error: float
    by_shape: dict[str, float]
    mechanism: Mechanism | None
    reason: str


class Recommendation(Ranking[Advice]):
    """Mechanisms, the advised one first."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The lines as plain data, for tables and JSON."""
        return [
            {
                "name": line.name,
                "kind": line.kind,
                "error": line.error if math.isfinite(line.error) else None,
                "by_shape": line.by_shape,
                "reason": line.reason,
            }
            for line in self
        ]

    def _table(self) -> tuple[Cells, list[Cells]]:
        lines = []
        for line in self:
            error = f"{line.error:,.4g}" if math.isfinite(line.error) else "-"
            shapes = [f"{name} {value:,.3g}" for name, value in line.by_shape.items()]
            if line.kind == "refused":
                lines.append((line.name, "", f"not admitted: {line.reason}"))
            else:
                how = ": ".join([line.kind, *([", ".join(shapes)] if shapes else [])])
                lines.append((line.name, error, how))
        return ("mechanism", "error", "how known"), lines


@naming_right_words
def recommend(
    policy: Policy,
    workload: Workload | None = None,
    *,
    epsilon: Any = None,
    rho: Any = None,
    delta: Any = None,
    records: int | None = None,
    filled: float | None = None,
    mechanisms: Sequence[MechanismName] | None = None,
    trials: int | None = None,
    progress: Progress | None = None,
    intervals: Literal["truth", "noise"] | None = None,
) -> Recommendation:
    """Say which mechanism to use for a task, and why. Free: no data is read.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable.
    workload : Workload, optional
        What will be asked; by default every single cell.
    epsilon, rho, delta : number
        What one release may spend. With `epsilon` and `delta` both currencies stand
        side by side: Laplace noise at epsilon, without delta, and Gaussian noise at the
        largest rho that implies (epsilon, delta), marked "(rho)". Laplace noise goes
        first where they are close.
    records : int, optional
        Roughly how many records there are; a public guess.
    filled : number in (0, 1], optional
        Roughly what part of the cells holds records; a public guess, never counted.
        Where it is small and filled cells hold many records, ranges of a long line are
        served by `Dawa` with buckets by descent.
    mechanisms : sequence of str or class, optional
        What to try and rank, instead of the table: names, ``"package:Class"``, or
        classes, of the package or not (`find_mechanism`). Needs `records`.
    trials : int, optional
        Releases per generated histogram of `records` records, for typical errors. Left
        out, none is made; for `mechanisms`, 3, or 1 on more than 2^14 cells.
    progress : callable, optional
        Called with steps done, steps in all and what comes next.
    intervals : {"truth", "noise"}, optional
        "truth": what is advised has intervals that hold the true answers, a tree
        without buckets for ranges along a line, `Dawa` with a certificate for maps and
        cells (``Ledger.certify``).

    Returns
    -------
    Recommendation
        The lines, the advised one first; ``str()`` gives a table.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(256)
    >>> asked = bf.workloads.Ranges.random(line, 200, rng=1)
    >>> policy = bf.policies.Threshold(line, theta=8)
    >>> advice = bf.recommend(policy, asked, epsilon=0.1)
    >>> advice.best.name, advice.best.kind
    ('ordered_hierarchical', 'untried')
    >>> tried = bf.recommend(policy, asked, epsilon=0.1, records=5000, trials=1)
    >>> tried["dawa"].kind, tried["laplace"].kind
    ('typical', 'predicted')
    """
    if workload is None:
        workload = single_cells(policy)
    if mechanisms is not None or trials is not None:
        refuse_wide_advice(policy, workload)
    granted = Budget.stated(epsilon=epsilon, rho=rho, delta=delta)
    part = None if filled is None else as_number(filled, "filled", 0, 1)
    if asks_wide(policy, workload):
        return _wide_advice(policy, workload, both_budgets(granted, epsilon))
    guessed = None if records is None else as_whole(records, "records", 0, 2**53)
    if trials is not None or mechanisms is not None:
        if guessed is None:
            raise InputError(
                "trying mechanisms needs records, a rough number that is public",
                received="none",
                way_out="State records=10_000, or leave out trials and mechanisms",
            )
        few = TRIALS if policy.domain.size <= MANY_CELLS else 1
        trials = few if trials is None else as_whole(trials, "trials", 1)
    # The constructor checks that policy and workload fit each other.
    check: Any = Contingency if isinstance(workload, Tables) else Dawa
    check(policy, workload, epsilon=1)
    as_choice(intervals, "intervals", [None, "truth", "noise"])
    clustered = _is_clustered(policy, guessed, part, granted)
    candidates = [*_candidates(policy, workload, mechanisms, intervals, clustered)]
    budgets = [granted]
    if granted.delta is not None:
        budgets = _both_currencies(candidates[0], granted, epsilon)
    lines = [each.advice(budget, granted) for budget in budgets for each in candidates]
    if trials is not None and guessed is not None:
        lines = [
            *_tried(lines, reference_shapes(policy.domain, guessed), trials, progress)
        ]
    if mechanisms is not None:
        lines.sort(key=lambda line: line.error)
    lines.sort(key=lambda line: line.kind == "refused")
    budgets.sort(key=attrgetter("power"))
    because = [*_reasons(lines, guessed), *_currency_reason(candidates[0], budgets)]
    spent = ", or ".join(budget.in_short() for budget in budgets)
    return Recommendation(lines, f"{workload!r} under {policy!r}, {spent}", because)


def _wide_advice(
    policy: Policy, workload: Workload, budgets: list[Budget]
) -> Recommendation:
    """Advise the one mechanism that serves a wide domain; of two, the lower list."""
    lines = []
    for budget in budgets:
        mechanism = serving(policy, workload, budget)
        name = mechanism.name + " (rho)" * (len(budgets) > 1 and budget.power == 2)
        reason = serving_reason(mechanism)
        lines.append(Advice(name, "untried", math.inf, {}, mechanism, reason))
    # Ranges have no threshold, and stay in their order: epsilon first.
    lines.sort(key=lambda line: getattr(line.mechanism, "threshold", 0))
    because = [f"Use {lines[0].name}: {lines[0].reason}."]
    because += [f"With {line.name}: {line.reason}." for line in lines[1:]]
    spent = ", or ".join(budget.in_short() for budget in budgets)
    return Recommendation(lines, f"{workload!r} under {policy!r}, {spent}", because)


def _is_clustered(
    policy: Policy, records: int | None, part: float | None, budget: Budget
) -> bool:
    """Return whether public guesses say that few cells hold many records each."""
    if records is None or part is None or not 0 < part <= FEW_FILLED:
        return False
    held = records / (part * policy.domain.size)
    return held >= ABOVE_NOISE * mean_noise(policy, budget)


class TableEntry(NamedTuple):
    """A mechanism that is advised, with the reason.

    Attributes
    ----------
    policy : Policy
        What is secret.
    workload : Workload
        The queries.
    kind : type[Mechanism]
        The class of the mechanism.
    reason : str
        Why it is advised.
    options : Mapping[str, object], default MappingProxyType({})
        Its options.
    variant : str, default ""
        What sets it apart from the same mechanism without options.
    """

    policy: Policy
    workload: Workload
    kind: type[Mechanism]
    reason: str
    options: Mapping[str, Any] = MappingProxyType({})
    variant: str = ""

    def build(
        self, budget: Budget, more: Mapping[str, Any] = MappingProxyType({})
    ) -> Mechanism:
        """Return the mechanism for a budget; in rho Laplace noise becomes Gaussian.

        Parameters
        ----------
        budget : Budget
            The budget.
        more : Mapping[str, object], default MappingProxyType({})
            Options in place of, or beside, its own.

        Returns
        -------
        Mechanism
            The mechanism.
        """
        gaussian = self.kind is Laplace and budget.power == 2
        kind: Any = Gaussian if gaussian else self.kind
        options = {**self.options, **more}
        mechanism: Mechanism = built(
            kind, self.policy, self.workload, epsilon=budget, **options
        )
        return mechanism

    def advice(self, budget: Budget, granted: Budget) -> Advice:
        """Return its line: with an error where nothing is fitted, so that it holds.

        Parameters
        ----------
        budget : Budget
            The budget of this line.
        granted : Budget
            The budget that was stated, which may have a delta.

        Returns
        -------
        Advice
            The line.
        """
        beside = granted.delta is not None and budget.power == 2
        marks = [self.variant] * bool(self.variant) + ["rho"] * beside
        name = " ".join([self.kind.name, *(f"({mark})" for mark in marks)])
        try:
            mechanism = self.build(budget)
            linear = isinstance(mechanism, Laplace | Contingency)
            if not linear and getattr(mechanism, "fit", "its own") is not None:
                return Advice(name, "untried", math.inf, {}, mechanism, self.reason)
            error = _linear_error(mechanism)
        except DataDependentError:
            return Advice(name, "untried", math.inf, {}, mechanism, self.reason)
        except BlowfishError as problem:
            return _refused(name, problem)
        return Advice(name, "predicted", error, {}, mechanism, self.reason)


def _candidates(
    policy: Policy,
    workload: Workload,
    named: Sequence[MechanismName] | None,
    intervals: str | None,
    clustered: bool,
) -> Iterator[TableEntry]:
    """Yield what was named; or what the table says, and others worth a look."""
    if isinstance(named, str) or (named is not None and not named):
        raise InputError("mechanisms is a list of names or classes", received=named)
    if named is not None:
        for mechanism in named:
            yield TableEntry(
                policy, workload, find_mechanism(mechanism), "it was asked for"
            )
        return
    advised = _advised(policy, workload)
    if intervals == "truth":
        advised = _with_true_intervals(advised)
    long = policy.domain.ndim == 1 and policy.domain.size >= LONG_LINE
    descends = advised.kind is Dawa and long and asks_stretches(workload)
    if descends and clustered:
        why = "few cells hold the records, many each, and buckets by descent find them"
        yield _by_descent(advised, why)
    yield advised
    if descends and not clustered:
        yield _by_descent(advised, "it suits records in few cells, many in each")
    if not isinstance(workload, Tables):
        others: list[type[Mechanism]] = [Dawa, Hierarchy, Laplace]
        if policy.domain.ndim == 1:
            others.insert(1, OrderedHierarchical)
        for kind in others:
            if kind is not advised.kind:
                yield TableEntry(policy, workload, kind, "it is another way to measure")


def _by_descent(advised: TableEntry, why: str) -> TableEntry:
    options = {"partition": Descent()}
    return advised._replace(reason=why, options=options, variant="descent")


def _advised(policy: Policy, workload: Workload) -> TableEntry:
    """Return the entry of the table for a policy and the questions."""
    choice = partial(TableEntry, policy, workload)
    cells = isinstance(workload, Identity)
    free = policy.unconstrained
    if isinstance(workload, Tables):
        return choice(Contingency, "tables are measured together and made to agree")
    if workload.declared and not cells and workload.queries <= FEW_QUERIES:
        why = "noise goes on the few answers themselves, as far as an edge moves them"
        return choice(Laplace, why, {"strategy": "queries"})
    if policy.domain.ndim > 1:
        if is_grid(free) or isinstance(free, Graph):
            return choice(Transformed, "noise follows the edges of the policy")
        return choice(Dawa, "cells that are alike are merged before they are measured")
    if policy.has_bottom or not policy.has_moves:
        return choice(Dawa, "cells that are alike are merged before they are measured")
    longest = free.longest_edge()
    if longest <= 1:
        if cells:
            return choice(Transformed, "a smooth fit of noisy running totals")
        return choice(Ordered, "a range is the difference of two noisy running totals")
    if isinstance(free, Graph):
        return choice(Transformed, "noise follows the edges of the policy")
    many = SHORT if policy.domain.size < FEWEST_CELLS else SHORT_ON_LONG_LINES
    many = SHORT_FOR_CELLS if cells else many
    apart = free.components().labels is not None
    short = many * longest < policy.domain.size
    if short and cells and not apart:
        return choice(Transformed, SHORT_CELLS_REASON)
    if apart or short:
        return choice(OrderedHierarchical, BLOCKS_REASON)
    return choice(Dawa, "cells that are alike are merged before they are measured")


def _with_true_intervals(advised: TableEntry) -> TableEntry:
    """Return what to use where intervals must hold the truth (docs/accuracy.md)."""
    if advised.kind in UNBIASED:
        return advised
    if advised.reason == SHORT_CELLS_REASON:
        return advised._replace(kind=OrderedHierarchical, reason=BLOCKS_REASON)
    line = advised.policy.domain.ndim == 1
    if line and not isinstance(advised.workload, Identity):
        why = "its intervals hold the truth of each range, narrower than certified ones"
        return advised._replace(kind=Hierarchy, reason=why, options={})
    why = "a tenth of epsilon for ledger.certify tells how far its buckets are off"
    return advised._replace(kind=Dawa, reason=why, options={})


def _linear_error(mechanism: Mechanism) -> float:
    queries = max(mechanism.workload.queries, 1)
    return math.sqrt(max(mechanism.expected_total_error(), 0.0) / queries)


def _tried(
    lines: list[Advice],
    shapes: Mapping[str, IntArray],
    trials: int,
    progress: Progress | None,
) -> Iterator[Advice]:
    """Put typical errors on the lines that have none."""
    report = progress or (lambda *_: None)
    for number, line in enumerate(lines):
        report(number, len(lines), line.name)
        if line.kind != "untried" or line.mechanism is None:
            yield line
            continue
        try:
            errors = typical_errors(line.mechanism, shapes, trials=trials)
        except BlowfishError as problem:
            yield _refused(line.name, problem)
            continue
        yield line._replace(
            kind="typical", error=geometric_mean(errors.values()), by_shape=errors
        )
    report(len(lines), len(lines), "done")


def _refused(name: str, problem: BlowfishError) -> Advice:
    """Return the line of a mechanism that cannot be used, with the reason."""
    # The fault of somebody's own code is told in full: its author has to find it.
    own = isinstance(problem, PlugInError)
    reason = str(problem) if own else shorten(str(problem))
    return Advice(name, "refused", math.inf, {}, None, reason)


def _reasons(lines: list[Advice], records: int | None) -> Iterator[str]:
    """Say in plain words what stands behind the first line."""
    best = lines[0]
    if best.mechanism is None:
        yield f"No mechanism can be used here; {best.name}: {best.reason}."
        return
    yield f"Use {best.name}: {best.reason}."
    cells = best.mechanism.domain.size
    if best.kind == "predicted":
        yield (
            f"It is off by {best.error:,.4g} records per query (root mean square): "
            "exact for the noise that would be drawn, whatever the data."
        )
    elif best.kind == "typical":
        yield (
            f"It is typically off by {best.error:,.4g} records per query (root mean "
            f"square): the geometric mean over {len(best.by_shape)} generated "
            f"histograms of {cells:,} cells and {records:,} records, from "
            f"{min(best.by_shape.values()):,.4g} to {max(best.by_shape.values()):,.4g}."
            " It depends on the data, so yours may differ."
        )
    else:
        yield (
            "How far it is off depends on the data; `trials` with a rough number of "
            "records tries it on generated histograms."
        )
    least = min(lines, key=lambda line: line.error)
    if best.kind == "typical" and least.error < best.error:
        yield (
            f"On the generated histograms {least.name} was off by {least.error:,.4g}; "
            "the order is that of the table, which was measured on real ones."
        )
    if records is not None:
        yield from _noise_beside_counts(best.mechanism, records)


def _noise_beside_counts(mechanism: Mechanism, records: int) -> Iterator[str]:
    """Compare the noise on one cell with what a cell holds."""
    policy, cells = mechanism.policy, mechanism.domain.size
    choice = TableEntry(policy, Identity(mechanism.domain), Laplace, "")
    noise = _linear_error(choice.build(mechanism.budget))
    held = records / cells
    if noise > 2 * held:
        yield (
            f"Noise on a single cell ({noise:,.3g}) is well above the {held:,.3g} "
            "records that a cell holds on average: what merges cells, or measures sums "
            "of many, gains most."
        )
    elif noise < held / 2:
        yield (
            f"A cell holds {held:,.3g} records on average, well above the noise on it "
            f"({noise:,.3g}): merging cells gains little unless they are alike."
        )
        if isinstance(mechanism, Dawa) and asks_stretches(mechanism.workload):
            yield (
                'Where they are not, Hierarchy(strategy="greedy") saves the part of '
                "the budget that finds buckets: it had three quarters of the error on "
                "the densest sets that were tried."
            )


def _noise_alone(first: TableEntry, budget: Budget) -> float:
    """Return the error of the advised strategy, or of one near it, before any fit."""
    if first.kind in (Ordered, OrderedHierarchical, Laplace):
        fit = {} if first.kind is Laplace else {"fit": None}
        return _linear_error(first.build(budget, fit))
    near = Laplace if isinstance(first.workload, Identity) else Hierarchy
    fit = {} if near is Laplace else {"fit": None}
    return _linear_error(first._replace(kind=near, options={}).build(budget, fit))


def _both_currencies(first: TableEntry, granted: Budget, epsilon: Any) -> list[Budget]:
    """Return epsilon alone and the rho of both, the one of less noise first."""
    pure = Budget.stated(epsilon=epsilon)
    better = _noise_alone(first, pure) <= CLOSE * _noise_alone(first, granted)
    return [pure, granted] if better else [granted, pure]


def _currency_reason(first: TableEntry, budgets: list[Budget]) -> Iterator[str]:
    """Say which noise is better here, and where the other one would be."""
    if len(budgets) < 2:
        return
    pure, granted = budgets
    times = (_noise_alone(first, granted) / _noise_alone(first, pure)) ** 2
    yield better_noise(pure, granted, times)
