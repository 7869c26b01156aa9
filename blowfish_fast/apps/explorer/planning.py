"""How a question would be answered, and at which price: public values only."""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from blowfish_fast.accounting.composition import EPSILON, Currency
from blowfish_fast.accounting.request import price_in
from blowfish_fast.advice.calibration import MOST_SIMULATED, Calibration, Candidate
from blowfish_fast.advice.comparison import compare
from blowfish_fast.errors import (
    BlowfishError,
    EpsilonError,
    PlugInError,
    QuestionError,
)
from blowfish_fast.measure.sensitivity.policy import sensitivity
from blowfish_fast.measure.strategies.edge_noise import SpanningTree
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.laplace import Laplace
from blowfish_fast.mechanisms.registry import MECHANISMS, RHO_MECHANISMS, built
from blowfish_fast.mechanisms.transformed import Transformed
from blowfish_fast.policies import Policy, refuse_units
from blowfish_fast.workloads import Workload

from .amounts import from_rows, on_rows, workload_of
from .catalog import PolicySpec, TableSpec, as_table
from .frequent import lay_out_words, lister
from .layout import Layout, lay_out
from .planning_work import (
    MOST_LISTED,
    SINGLE_BINS,
    Effort,
    Work,
    lists_edges,
    refuse_too_much,
    weigh,
)
from .questions import (
    Accuracy,
    FrequentQuestion,
    Question,
    Spending,
    adds_up,
    read_question,
)

LEAST_EPSILON = Fraction(1, 10**9)
"""Stated by mechanisms whose answers are exact; nothing is charged."""
MOST_TOTALS = 2**14
"""Edges without a circle whose noise is laid on totals: what can be made finer."""
KEPT_PLANS = 256
"""Plans that a planner remembers; the oldest is forgotten first."""
KEPT_SHAPES = 64
"""Shapes that it remembers: each holds the laws of noise, so they are larger."""
MOST_SIMULATED_QUERIES = 2**13
"""Beyond this many queries an accuracy is translated by bounds alone."""
SAMPLES = 1000
"""Draws with which a translation is sharpened."""
CURVE_POINTS = 9
"""Thresholds of a curve, unless they are stated."""
Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Shape:
    """A question without its cost: bins, the policy over them, and queries.

    Attributes
    ----------
    layout : Layout
        The bins.
    policy : Policy
        The policy of the table, over the bins.
    workload : Workload
        The queries over the bins that answer the question.
    power : int
        That of the ledger's currency: 1 for epsilon, 2 for rho.
    work : Work
        How much a price has to work through.
    relaxed : bool, default False
        Whether the policy of the table has too many edges to be listed. The question is
        then planned as if whole records were secret, which protects all that the policy
        does.
    """

    layout: Layout
    policy: Policy
    workload: Workload
    power: int
    work: Work
    relaxed: bool = False

    @cached_property
    def free(self) -> bool:
        """Whether no edge of the policy changes the answers: they are public."""
        if _some_answer_changes(self.policy.unconstrained, self.workload):
            return False
        return float(sensitivity(self.policy, self.workload)) == 0.0

    @cached_property
    def calibration(self) -> Calibration:
        """The candidates and the laws of their noise."""
        refuse_units(self.policy, "the price of an accuracy")
        self.workload._refuse_too_many()
        tried = self.work.tried
        return Calibration(self.policy, self.workload, self.power, mechanisms=tried)

    def drawn(self, samples: int) -> int:
        """Return how often noise is drawn to sharpen a price, up to `samples`."""
        few = self.workload.queries <= MOST_SIMULATED_QUERIES
        return self.work.samples(samples) if few else 0

    def least(
        self, cost: Accuracy, samples: int, *, checked: bool = True
    ) -> list[Candidate]:
        """Return what an accuracy costs under each mechanism, cheapest first.

        Parameters
        ----------
        cost : Accuracy
            The alpha, beta and scope that must hold.
        samples : int
            Draws that sharpen the translation, as far as the limit of work allows;
            none are made beyond 2^13 queries.
        checked : bool
            Whether the least budget must be a promise. Otherwise it is scaled from
            a simulation, which suffices to compare prices.

        Returns
        -------
        list of Candidate
            Every mechanism with its least budget, or with the reason why it has
            none.

        Raises
        ------
        EpsilonError
            If no mechanism promises the accuracy.
        """
        candidates = self.calibration.least(
            cost.alpha,
            cost.beta,
            cost.scope,
            samples=self.drawn(samples),
            checked=checked,
        )
        best = candidates[0] if candidates else None
        if best is None or (best.mechanism if checked else best.budget) is None:
            raise EpsilonError(
                "no mechanism promises this accuracy",
                received=f"alpha={cost.alpha:g}, beta={cost.beta:g}",
                way_out="Ask for a larger alpha",
            )
        return candidates


@dataclass(frozen=True)
class Plan:
    """How a question would be answered, and at which price; nothing is private.

    Attributes
    ----------
    layout : Layout
        The bins of the question.
    policy : Policy
        The policy of the table, over the bins.
    workload : Workload
        The queries over the bins that answer the question.
    mechanism : Mechanism
        What answers them.
    cost : Fraction
        The price, in the ledger's currency.
    free : bool
        Whether the answers are public and exact, because no edge of the policy changes
        them.
    candidates : list of dict
        A row for each mechanism that was tried: its name, its price under the name of
        the currency (None if it is not admitted), and, where an accuracy was asked for,
        how the price was found and the reason for a refusal. The cheapest comes first.
    work : Work
        How much the price had to work through.
    relaxed : bool, default False
        Whether whole records were taken as secret in place of the policy; see `Shape`.

    Examples
    --------
    >>> age = {"name": "age", "cells": {"start": 0, "stop": 100, "width": 10}}
    >>> table = as_table({"name": "visits", "attributes": [age]})
    >>> asked = {"kind": "histogram", "table": "visits", "attribute": "age"}
    >>> question = read_question({**asked, "cost": {"alpha": 20, "beta": 0.05}})
    >>> plan = Planner(EPSILON).plan(table, question)
    >>> plan.mechanism.name, plan.free, 0 < plan.cost < 1
    ('transformed', False, True)
    """

    layout: Layout
    policy: Policy
    workload: Workload
    mechanism: Mechanism
    cost: Fraction
    free: bool
    candidates: list[dict[str, Any]]
    work: Work
    relaxed: bool = False


class Planner:
    """Plans of questions, in the currency of a ledger; tables never share one.

    Parameters
    ----------
    currency : Currency
        In which prices are stated.
    samples : int
        Draws that sharpen the translation of an accuracy; 0 for bounds alone.
    vouched : mapping, optional
        Classes of mechanisms from outside the package, by name.
    """

    def __init__(
        self,
        currency: Currency,
        samples: int = SAMPLES,
        vouched: Mapping[str, type[Mechanism]] | None = None,
    ) -> None:
        self.currency, self.samples = currency, samples
        self.vouched = dict(vouched or {})
        self._plans: OrderedDict[Hashable, Plan] = OrderedDict()
        self._shapes: OrderedDict[Hashable, Shape] = OrderedDict()
        self._without: OrderedDict[Hashable, Fraction | None] = OrderedDict()
        self._turns: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def plan(self, table: TableSpec, asked: Question, *, limited: bool = True) -> Plan:
        """Return the plan of a question; whoever asks the same waits for one plan.

        Parameters
        ----------
        table : TableSpec
            The described table with its policies.
        asked : Question
            The question with its cost.
        limited : bool
            Whether a question that takes too long is refused. What was answered before
            is not: a stored answer stays readable.

        Returns
        -------
        Plan
            A remembered plan where there is one.

        Raises
        ------
        QuestionError
            If the question does not fit the table.
        SizeError
            If its price would take too long; a coarser question is named.
        """
        key = (_described(table), asked.model_dump_json())
        plan = self._plans.get(key)
        if plan is not None:
            return plan
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            try:
                plan = self._plans.get(key) or self._planned(table, asked, limited)
            finally:
                self._turns.pop(key, None)
            self._keep(self._plans, key, plan, KEPT_PLANS)
        return plan

    def effort(
        self, table: TableSpec, asked: Question, *, limited: bool = True
    ) -> Effort:
        """Return how long a plan would take to work out; one that is remembered, none.

        Parameters
        ----------
        table : TableSpec
            The described table with its policies.
        asked : Question
            The question with its cost.
        limited : bool
            Whether a question that takes too long is refused.

        Returns
        -------
        {"small", "middling", "large"}
            Others should not wait for what is not small, and what is middling should
            not wait for what is large.

        Raises
        ------
        QuestionError
            If the question does not fit the table.
        SizeError
            If its price would take too long; a coarser question is named.
        """
        if (_described(table), asked.model_dump_json()) in self._plans:
            return "small"
        if isinstance(asked, FrequentQuestion):
            return "small"
        return self.shape(table, asked, limited=limited).work.effort

    def remember(
        self, table: TableSpec, asked: Question, plan: Plan, without: Fraction | None
    ) -> None:
        """Keep a plan that another process worked out.

        Parameters
        ----------
        table : TableSpec
            The described table with its policies.
        asked : Question
            The question with its cost.
        plan : Plan
            How it would be answered.
        without : Fraction or None
            What `without_policies` returned there; None where nobody asked for it.
        """
        key = (_described(table), asked.model_dump_json())
        self._keep(self._plans, key, plan, KEPT_PLANS)
        if without is not None:
            self._keep(self._without, key, without, KEPT_PLANS)

    def shape(
        self, table: TableSpec, asked: Question, *, limited: bool = True
    ) -> Shape:
        """Return bins, policy and queries of a question, whatever it may cost.

        Parameters
        ----------
        table : TableSpec
            The described table with its policies.
        asked : Question
            The question; its cost does not matter.
        limited : bool
            Whether a question whose price takes too long is refused.

        Returns
        -------
        Shape
            A remembered shape where there is one.

        Raises
        ------
        QuestionError
            If the question does not fit the table.
        SizeError
            If its price would take too long; a coarser question is named.
        """
        if isinstance(asked, FrequentQuestion):
            raise QuestionError(
                "a list of frequent values has a threshold, which its plan tells, and "
                "no bins or accuracy"
            )
        key = (_described(table), asked.model_dump_json(exclude={"cost"}))
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shaped(table, asked, limited)
            self._keep(self._shapes, key, shape, KEPT_SHAPES)
        if limited:
            refuse_too_much(shape.layout, shape.work)
        return shape

    def _shaped(self, table: TableSpec, asked: Question, limited: bool) -> Shape:
        layout = lay_out(table, asked)
        if limited:
            # Before a policy is laid over so many bins.
            refuse_too_much(layout, weigh(layout, None))
        policy = layout.policy(table.policy())
        power = self.currency.power
        work = weigh(layout, policy, power)
        listed = 0 if work.tried == SINGLE_BINS else work.edges
        relaxed = listed > MOST_LISTED and lists_edges(policy)
        if relaxed:
            policy = layout.policy(table.with_policies({}).policy())
            work = weigh(layout, policy, power)
        workload = workload_of(layout, policy.domain)
        return Shape(layout, policy, workload, power, work, relaxed)

    def _keep(
        self, memory: OrderedDict[Hashable, Kept], key: Hashable, value: Kept, most: int
    ) -> None:
        with self._lock:
            memory[key] = value
            while len(memory) > most:
                memory.popitem(last=False)

    def _list(self, table: TableSpec, asked: FrequentQuestion) -> Plan:
        """Plan a list of frequent words: one mechanism serves, and its threshold."""
        layout = lay_out_words(table, asked)
        policy = table.policy().through([asked.attribute])
        mechanism = lister(policy, asked)
        price = price_in(mechanism, self.currency)
        row = {"name": mechanism.name, self.currency.name: float(price)}
        work = Work(bins=1, queries=1, covered=1, edges=1, single=True)
        return Plan(
            layout, policy, mechanism.workload, mechanism, price, False, [row], work
        )

    def _planned(self, table: TableSpec, asked: Question, limited: bool) -> Plan:
        if isinstance(asked, FrequentQuestion):
            return self._list(table, asked)
        shape = self.shape(table, asked, limited=limited)
        layout = replace(shape.layout, question=asked)
        policy, workload, cost = shape.policy, shape.workload, asked.cost

        def plan(
            mechanism: Mechanism, price: Fraction, rows: list[dict[str, Any]]
        ) -> Plan:
            return Plan(
                layout,
                policy,
                workload,
                mechanism,
                price,
                shape.free,
                rows,
                shape.work,
                shape.relaxed,
            )

        if shape.free:
            measured: Any = "queries"
            if layout.strata_axis is not None and not policy.edge_count:
                # All bins are public, and speak of the population (a sample's strata).
                measured = "queries" if policy.has_bottom else "cells"
            exact = Laplace(policy, workload, epsilon=LEAST_EPSILON, strategy=measured)
            return plan(exact, Fraction(0), [])
        if isinstance(cost, Spending):
            chosen = _bought(shape, cost, self.vouched)
            price = price_in(chosen, self.currency)
            return plan(
                chosen, price, [{"name": chosen.name, self.currency.name: float(price)}]
            )
        candidates = shape.least(_cost_of_rows(layout, cost), self.samples)
        best = candidates[0]
        assert best.mechanism is not None
        assert best.budget is not None
        rows = [
            {
                "name": candidate.name,
                self.currency.name: None
                if candidate.amount is None
                else float(candidate.amount),
                "found_by": candidate.found_by,
                "reason": candidate.reason,
            }
            for candidate in candidates
        ]
        mechanism = by_rows(best.mechanism)
        if mechanism is not best.mechanism:
            # The same noise under the name of what is measured.
            others = [row for row in rows if row["name"] != "tree"]
            rows = [{**rows[0], "name": "tree"}, *others]
        return plan(mechanism, best.budget.amount, rows)

    def without_policies(self, table: TableSpec, asked: Question) -> Fraction | None:
        """Return what the same accuracy costs if whole records are secret, or None.

        Parameters
        ----------
        table : TableSpec
            The described table with its policies.
        asked : Question
            The question with its accuracy.

        Returns
        -------
        Fraction or None
            A price near the least. None if there are no policies, or the question
            states a budget.
        """
        cost = asked.cost
        if not table.policies or not isinstance(cost, Accuracy):
            return None
        key = (_described(table), asked.model_dump_json())
        if key not in self._without:
            plan = self._plans.get(key)
            if plan is not None and _gains_nothing(plan):
                price = plan.cost
            else:
                shape = self.shape(table.with_policies({}), asked)
                rows = _cost_of_rows(shape.layout, cost)
                price = Fraction(0) if shape.free else self._about(shape, rows, {})
            self._keep(self._without, key, price, KEPT_PLANS)
            return price
        return self._without[key]

    def accuracy(
        self,
        table: TableSpec,
        asked: Question,
        *,
        beta: float = 0.05,
        scope: str = "simultaneous",
    ) -> dict[str, Any]:
        """Return the least alpha that the budget of a question promises.

        Parameters
        ----------
        table : TableSpec
            The described table with its policies.
        asked : Question
            Its `cost` states a budget in the ledger's currency.
        beta : float
            The probability with which an error may exceed alpha.
        scope : {"simultaneous", "per_query"}
            Whether all answers are within alpha at once, or each by itself.

        Returns
        -------
        dict
            The "alpha" and the name of the "mechanism" that promises it; 0 and
            "public" where no edge of the policy changes the answers.

        Raises
        ------
        QuestionError
            If the question states an accuracy itself, or a budget in another
            currency.
        """
        if not isinstance(asked.cost, Spending):
            raise QuestionError("what a budget buys needs a budget: cost with epsilon")
        wanted = Accuracy.model_validate({"alpha": 1, "beta": beta, "scope": scope})
        shape = self.shape(table, asked)
        if shape.free:
            return {"alpha": 0.0, "mechanism": "public"}
        budget = asked.cost.budget
        if budget.power != self.currency.power:
            raise QuestionError(f"the ledger of this table counts {self.currency.name}")
        beta = wanted.beta
        if shape.work.amounts and wanted.scope == "per_query":
            # Two numbers stand behind each answer.
            beta /= 2.0
        alpha, name = shape.calibration.accuracy(budget, beta, wanted.scope)
        return {"alpha": from_rows(shape.layout, alpha), "mechanism": name}

    def _about(
        self, shape: Shape, cost: Accuracy, drawn: dict[Hashable, Fraction]
    ) -> Fraction:
        """Return a price for a comparison: near the least, and no promise.

        Candidates of the same bounds for the same queries have the same noise: what was
        `drawn` of them under another policy is not drawn again.
        """
        bounds = shape.least(cost, 0)[:MOST_SIMULATED]
        key = tuple((candidate.name, candidate.amount) for candidate in bounds)
        if not shape.drawn(self.samples):
            best = bounds[0].amount
            assert best is not None, "least refuses where no mechanism serves"
            return best
        if key not in drawn:
            priced = shape.least(cost, self.samples, checked=False)
            drawn[key] = min(
                candidate.amount for candidate in priced if candidate.amount is not None
            )
        return drawn[key]

    def trade_off(
        self, table: TableSpec, asked: Question, thetas: Sequence[int] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield what an accuracy costs at each threshold, the largest first.

        A mechanism for a larger threshold is safe for a smaller one, so costs never
        rise as the threshold falls. Whole records come first, as theta None.

        Parameters
        ----------
        table : TableSpec
            The described table; its policies on other attributes stay.
        asked : Question
            The question with its accuracy. Its first attribute gets the thresholds.
        thetas : sequence of int, optional
            Thresholds in cells; by default nine, evenly spaced on a logarithmic
            scale.

        Yields
        ------
        dict
            A "theta" and its "cost".

        Raises
        ------
        QuestionError
            If the question states no accuracy, or the attribute has no order.
        """
        cost = asked.cost
        if not isinstance(cost, Accuracy):
            raise QuestionError(
                "the trade-off needs an accuracy: cost with alpha, beta"
            )
        name = getattr(asked, "attribute", None) or asked.axes[0]
        spec = table.attribute(name)
        if spec.kind == "category":
            raise QuestionError(f"{name!r} is a category: it has no thresholds")
        regular = spec.domain().attributes[0].regular
        # Evenly on a logarithmic scale, unless they are stated.
        steps = np.rint(np.geomspace(1, max(regular - 1, 1), CURVE_POINTS))
        grid = steps.astype(int).tolist() if thetas is None else thetas
        before: Shape | None = None
        best, drawn = math.inf, dict[Hashable, Fraction]()
        for theta in (None, *sorted(set(grid), reverse=True)):
            stated: dict[str, PolicySpec] = {}
            if theta is not None:
                threshold = PolicySpec(kind="threshold", theta=theta)
                stated = {**table.policies, name: threshold}
            shape = self.shape(table.with_policies(stated), asked)
            # Bins may be too wide for a smaller threshold to change anything.
            if before is None or shape.policy != before.policy:
                rows = _cost_of_rows(shape.layout, cost)
                price = 0 if shape.free else self._about(shape, rows, drawn)
                best = min(best, float(price))
            before = shape
            yield {"theta": theta, "cost": best}


def _some_answer_changes(policy: Policy, workload: Workload) -> bool:
    """Return True if some move along edges changes an answer; False if none was found.

    Moves along edges shift records within a connected part of the policy, and whatever
    is shifted so is a sum of such moves. So one shift of made-up numbers that changes
    an answer shows that an edge does. It takes one pass, and the sensitivity many.
    """
    parts, cells = policy.components(), policy.domain.size
    labels = np.zeros(cells, np.int64) if parts.labels is None else parts.labels
    shifted = np.random.default_rng(20140622).integers(1, 2**20, cells).astype(float)
    totals = np.bincount(labels, shifted, parts.count)
    totals[parts.private] = 0.0
    # The last cell of each part takes what the others give.
    last = np.zeros(parts.count, np.int64)
    last[labels] = np.arange(cells)
    shifted[last] -= totals
    return bool(np.any(workload.answer(shifted.reshape(policy.domain.shape))))


def rehearse() -> None:
    """Draw curves of a small made-up table: what they load, nobody waits for later."""
    cells = {"start": 0, "stop": 16, "width": 1}
    table = as_table({"name": "small", "attributes": [{"name": "a", "cells": cells}]})
    about = {"table": "small", "attribute": "a", "cost": {"alpha": 20}}
    for kind in ("histogram", "cumulative"):
        list(Planner(EPSILON).trade_off(table, read_question({"kind": kind, **about})))


def _bought(
    shape: Shape, cost: Spending, vouched: Mapping[str, type[Mechanism]]
) -> Mechanism:
    """Return the mechanism that spends a stated budget best, or the one named."""
    policy, workload, budget = shape.policy, shape.workload, cost.budget
    if cost.mechanism is None:
        tried = shape.work.tried
        best = compare(
            policy, workload, epsilon=budget, hurried=True, mechanisms=tried
        ).best
        if best.mechanism is None:
            raise QuestionError(f"no mechanism fits this question: {best.reason}")
        return by_rows(best.mechanism)
    mechanisms = {**vouched, **MECHANISMS, **RHO_MECHANISMS}
    kind = mechanisms.get(cost.mechanism)
    if kind is None:
        raise QuestionError(
            f"there is no mechanism {cost.mechanism!r}; there are {sorted(mechanisms)}"
        )
    try:
        mechanism: Mechanism = built(kind, policy, workload, epsilon=budget)
        return mechanism
    except PlugInError:
        raise
    except (BlowfishError, TypeError) as problem:
        raise QuestionError(
            f"{cost.mechanism} cannot answer this question: {problem}"
        ) from None


def by_rows(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism with the same noise on rows of its own, where there is one.

    Where the edges of a policy have no circle, a draw for each edge is a draw for the
    total of each subtree: the answers have the same law at the same price. Of totals
    the noise may be lowered later (Lemma PA8); of a draw that went into two cells not.

    Parameters
    ----------
    mechanism : Mechanism
        The best one for a question.

    Returns
    -------
    Mechanism
        Itself, unless it puts noise on the edges of a forest.
    """
    if not isinstance(mechanism, Transformed) or mechanism.strategy != "edges":
        return mechanism
    policy = mechanism.policy.unconstrained
    if policy.edge_count > min(policy.domain.size, MOST_TOTALS):
        return mechanism
    if SpanningTree.under(policy).stretch(policy) > 1:
        return mechanism
    stated = {name: getattr(mechanism, name) for name in ("partition", "fit")}
    return Transformed(
        mechanism.policy,
        mechanism.workload,
        epsilon=mechanism.budget,
        strategy="tree",
        **stated,
    )


def _gains_nothing(plan: Plan) -> bool:
    """Return whether a plan is the one that whole records have too.

    A relaxed one was made as if whole records were secret. Noise on single bins is that
    of a record that moves, which changes two of them under either policy; where records
    come and go instead, they change one, and nothing is taken for granted.
    """
    moves = plan.work.tried == SINGLE_BINS and not plan.policy.has_bottom
    return not plan.free and (plan.relaxed or moves)


def gain_words(plan: Plan, without: Fraction | None) -> str | None:
    """Say where the policies lower a price by little or nothing, and why.

    Parameters
    ----------
    plan : Plan
        The plan under the policies.
    without : Fraction or None
        What the same accuracy costs without policies.

    Returns
    -------
    str or None
        A sentence where the policies gain nothing, or at most a factor of 2.
    """
    if without is None or plan.free:
        return None
    if plan.relaxed:
        return (
            "the policy is not made use of for this question, which is priced as if "
            "whole records were secret: among its bins the policy has more than "
            f"{MOST_LISTED:,} edges, the most that are followed for a price. Wider "
            "bins have fewer"
        )
    hub = _joined_to_all(plan)
    nothing = float(without) <= 1.001 * float(plan.cost)
    if not nothing and hub is None:
        return None
    if nothing and _joins_all(plan) and not plan.policy.has_bottom:
        why = "in bins this wide any two are joined, as they are without a policy"
    elif hub is not None:
        why = f"{hub}, so any two values are two steps apart"
    else:
        why = (
            "a record that moves changes two of these numbers, however near it stays, "
            "and no mechanism makes use of that here"
        )
    if nothing:
        return f"the policy gains nothing for this question: {why}"
    return f"the policy can gain at most a factor of 2 for this question: {why}"


def _joins_all(plan: Plan) -> bool:
    """Return whether any two bins are joined; no more edges are listed than planned."""
    cells, work = plan.policy.domain.size, plan.work
    pairs = cells * (cells - 1) // 2
    if work.edges < pairs or work.tried == SINGLE_BINS:
        return work.edges >= pairs
    return plan.policy.edges_up_to(pairs - 1) is None


def _joined_to_all(plan: Plan) -> str | None:
    """Say which bin lies one step from all others, if one does: Lemma N1."""
    table = plan.layout.table
    if table.presence is True:
        return "whether somebody is in the table is protected as a move is"
    if len(plan.layout.axes) != 1 or plan.policy.domain.size < 3:
        return None
    (axis,) = plan.layout.axes
    extras = axis.spec.domain().attributes[0].extras
    if not extras or axis.spec.extras_joined != "all":
        return None
    cells = np.arange(plan.policy.domain.size)
    hub = int(cells[-1])
    if not plan.policy.joins(cells[:-1], np.full(hub, hub)).all():
        return None
    return (
        f"a missing {axis.spec.name} is joined to every value (extras_joined: "
        '"all"; "end" and "apart" cost less)'
    )


def _cost_of_rows(layout: Layout, cost: Accuracy) -> Accuracy:
    """Return the accuracy that queries need, of which a mean or share has two."""
    return on_rows(layout, cost) if adds_up(layout.question) else cost


def _described(table: TableSpec) -> str:
    """Return a hash of a table's description, without borders of its levels.

    Tables of the same name and policies may have other cells, or other people who are
    protected: neither shares a plan.
    """
    stated = table.model_dump_json(exclude={"attributes": {"__all__": {"districts"}}})
    return hashlib.sha256(stated.encode()).hexdigest()
