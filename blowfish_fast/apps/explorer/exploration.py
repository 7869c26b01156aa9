"""Ask a table questions until its budget is spent.

    question --lay out--> bins, policy, queries            public
             --plan-----> mechanism and epsilon            public: no data is read
             --count----> true counts of the bins          one GROUP BY, may fail free
             --ledger---> reserve, draw, store, return     charged before measured
             --answer---> numbers, intervals, promise      public

True counts live in one local variable between the database and the ledger. Errors of
every step before the ledger leave the budget alone.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.accounting.prices import price_in
from blowfish_fast.accounting.statements import Entry
from blowfish_fast.advice.accuracy import translate
from blowfish_fast.errors import BudgetError, CatalogError, LedgerError, QuestionError
from blowfish_fast.measure.budgets import Budget, BudgetTerms
from blowfish_fast.measure.sensitivity.policy import sensitivity
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.laplace import Laplace
from blowfish_fast.mechanisms.plugins import MechanismName, find_mechanism
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

from .answers_given import Answer, answer_from, described_axes
from .attributes import PolicySpec
from .catalog import TableSpec
from .engines import Database
from .layout import Layout, lay_out
from .prices import bought, check_affordable, remaining_for
from .questions import Accuracy, Question, Spending, read_question

LEAST_EPSILON = Fraction(1, 10**9)
"""Stated by mechanisms whose answers are exact; nothing is charged."""

KEPT_PLANS = 256
"""Plans that are remembered: they depend on public values only."""

MOST_SIMULATED_QUERIES = 2**13
"""Beyond this many queries an accuracy is translated by bounds alone."""

SAMPLES = 1000
"""Draws with which a translation is sharpened."""


@dataclass(frozen=True)
class Plan:
    """How a question would be answered, and at which price; nothing is private.

    Attributes
    ----------
    cost : Fraction
        What would be charged, in the ledger's currency.
    free : bool
        Whether the answers are public: exact and for nothing.
    candidates : list of dict
        Every mechanism with the budget that it needs, or why it promises nothing.

    Examples
    --------
    >>> import ibis
    >>> database = ibis.duckdb.connect()
    >>> rows = "select 20 + i % 60 as age from range(150) as t(i)"
    >>> visits = database.raw_sql(f"create table visits as {rows}")
    >>> age = {"name": "age", "cells": {"start": 0, "stop": 100, "width": 10}}
    >>> table = {"name": "visits", "attributes": [age]}
    >>> explorer = Explorer(table, database, epsilon=1)
    >>> question = {
    ...     "kind": "histogram",
    ...     "table": "visits",
    ...     "attribute": "age",
    ...     "cost": {"alpha": 20, "beta": 0.05},
    ... }
    >>> plan = explorer.plan(question)
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


class Explorer:
    """One table of a database, its policy and its budget.

    Parameters
    ----------
    table : TableSpec or mapping
        What is public about the table, and its policies.
    engine : Database, path, address or ibis backend
        Where its records are; see `Database.connect`.
    epsilon, rho, delta : number, optional
        The whole budget, in epsilon or in rho (see `Ledger`); left out when an existing
        ledger is opened.
    ledger : path or None
        Where the budget is kept; None for experiments in memory.
    samples : int
        Draws that sharpen the translation of an accuracy; 0 for bounds alone.
    vouched : sequence of str or class
        Mechanisms defined outside the package that analysts may ask for by name: your
        word that their privacy is proved.

    Examples
    --------
    >>> import ibis
    >>> database = ibis.duckdb.connect()
    >>> rows = "select 20 + i % 60 as age from range(150) as t(i)"
    >>> visits = database.raw_sql(f"create table visits as {rows}")
    >>> age = {"name": "age", "cells": {"start": 0, "stop": 100, "width": 10}}
    >>> table = {"name": "visits", "attributes": [age]}
    >>> explorer = Explorer(table, database, epsilon=1)
    >>> question = {
    ...     "kind": "histogram",
    ...     "table": "visits",
    ...     "attribute": "age",
    ...     "cost": {"alpha": 20, "beta": 0.05},
    ... }
    >>> answer = explorer.ask(question)
    >>> answer.values.shape, answer.intervals.shape
    ((10,), (10, 2))
    >>> explorer.ask(question).replayed, explorer.ledger.spent == answer.epsilon
    (True, True)
    """

    def __init__(
        self,
        table: TableSpec | Mapping[str, Any] | None,
        engine: Any,
        *,
        ledger: str | Path | None = None,
        samples: int = SAMPLES,
        vouched: Sequence[MechanismName] = (),
        **budget: Unpack[BudgetTerms],
    ) -> None:
        self.vouched = {one.name: one for one in map(find_mechanism, vouched)}
        spec = None if table is None else as_table(table)
        self.engine = Database.connect(engine)
        if spec is not None:
            self.engine.check(spec)
        self.ledger = Ledger(
            ledger,
            **budget,
            policy=None if spec is None else spec.policy(),
            about=None if spec is None else {"table": spec.to_dict()},
        )
        self._read: tuple[Any, TableSpec] | None = None
        kept = self.table
        if spec is not None and kept != spec:
            raise CatalogError(
                f"the ledger was made for another description of {kept.name!r}; leave "
                "the table out to use that one"
            )
        if spec is None:
            self.engine.check(kept)
        self.samples = samples
        self._plans: OrderedDict[str, Plan] = OrderedDict()
        self._planning: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    @property
    def table(self) -> TableSpec:
        """The table as the ledger keeps it."""
        plain = self.ledger.about.get("table")
        read = self._read
        if read is None or read[0] is not plain:
            read = self._read = plain, as_table(plain)
        return read[1]

    def plan(self, question: Any) -> Plan:
        """Say how a question would be answered and what it costs. Free; no data."""
        asked = read_question(question)
        table = self.table
        key = asked.model_dump_json()
        with self._lock:
            turn = self._planning.setdefault(key, threading.Lock())
        # Whoever asks the same at the same time waits for one plan.
        with turn:
            known = self._plans.get(key)
            try:
                if known is None or known.layout.table is not table:
                    known = self._planned(table, asked)
            finally:
                self._planning.pop(key, None)
            with self._lock:
                self._plans[key] = known
                self._plans.move_to_end(key)
                while len(self._plans) > KEPT_PLANS:
                    self._plans.popitem(last=False)
        return known

    def explain(self, question: Any, analyst: str | None = None) -> dict[str, Any]:
        """Return candidates, cost, and what would remain, as plain data. Free."""
        plan = self.plan(question)
        remaining = self.remaining(analyst)
        known = self.ledger.replay(request_of(plan.layout.question))
        cost = Fraction(0) if known is not None else plan.cost
        return {
            "mechanism": plan.mechanism.name,
            "cost": float(cost),
            "free": plan.free,
            "answered_before": known is not None,
            "remaining": float(remaining),
            "remaining_after": float(remaining - cost) if cost <= remaining else None,
            "affordable": cost <= remaining,
            "why": self._why(plan, known is not None),
            "candidates": plan.candidates,
            "axes": described_axes(plan.layout),
            "queries": plan.workload.queries,
            "policy": plan.policy.describe(),
        }

    def ask(
        self, question: Any, *, analyst: str | None = None, request: str | None = None
    ) -> Answer:
        """Answer a question: charged once, replayed for free ever after.

        Parameters
        ----------
        question : question or mapping
            See ``questions``.
        analyst : str, optional
            Whose allotment pays.
        request : str, optional
            Name of this asking. Left out, identical questions share one answer; under
            a new name the same question is asked, and charged, anew.
        """
        plan = self.plan(question)
        layout = plan.layout
        name = request_of(layout.question) if request is None else f"r-{request}"
        note = {"question": layout.question.model_dump(mode="json")}
        entry = self.ledger.entry(name)
        if entry is not None and entry.note != note:
            raise LedgerError(
                f"the request {request!r} was made for another question; nothing was "
                "charged. Choose another name"
            )
        replayed = entry is not None and entry.state == "stored"
        release = self.ledger.replay(name) if replayed else None
        if release is None:
            if entry is None:
                self._check_affordable(name, plan.cost, analyst)
            counts = self.engine.counts(layout)
            domain = plan.policy.domain
            release = self.ledger.release(
                plan.mechanism,
                layout.table.bounded(counts.reshape(domain.shape), domain),
                request=name,
                analyst=analyst,
                note=note,
                vouched=plan.mechanism.name in self.vouched,
            )
        charged = self.ledger.entry(name) if entry is None else entry
        return answer_from(
            release,
            layout,
            plan.workload,
            self._in_budget(plan.cost) if charged is None else charged.budget,
            name,
            replayed=replayed,
            exact=plan.free,
            as_of="" if charged is None else charged.time.isoformat(),
        )

    def _in_budget(self, cost: Fraction) -> Budget:
        return Budget(cost, self.ledger.currency.power)

    def _check_affordable(self, name: str, cost: Fraction, analyst: str | None) -> None:
        try:
            check_affordable(self.ledger, cost, analyst)
        except BudgetError:
            # Somebody else may have paid for the same question just now.
            if self.ledger.entry(name) is None:
                raise

    def answered(self, request: str) -> Answer | None:
        """Return an answer that was given before; None if there is none. Free."""
        entry = self.ledger.entry(request)
        release = self.ledger.replay(request)
        if release is None or entry is None or not entry.note:
            return None
        plan = self.plan(entry.note["question"])
        return answer_from(
            release,
            plan.layout,
            plan.workload,
            entry.budget,
            request,
            replayed=True,
            exact=plan.free,
            as_of=entry.time.isoformat(),
        )

    def history(self, analyst: str | None = None) -> list[Entry]:
        """Return all charges, or those of one analyst, oldest first."""
        entries = self.ledger.history()
        return [one for one in entries if analyst is None or one.analyst == analyst]

    def remaining(self, analyst: str | None = None) -> Fraction:
        """Return what may still be spent, by an analyst or in all."""
        return remaining_for(self.ledger, analyst)

    def set_policies(self, policies: Mapping[str, Any]) -> None:
        """State other policies; refused after the first charge. Empty: the default."""
        stated = {
            name: one if isinstance(one, PolicySpec) else PolicySpec(**one)
            for name, one in policies.items()
        }
        table = as_table(self.table.with_policies(stated))
        self.ledger.amend(policy=table.policy(), about={"table": table.to_dict()})

    def set_budget(self, amount: Any) -> None:
        """State another budget in its currency; refused after the first charge."""
        if self.ledger.currency.power == 1:
            self.ledger.amend(epsilon=amount)
        else:
            self.ledger.amend(rho=amount)

    def preview(
        self,
        question: Any,
        *,
        epsilon: float,
        policies: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Show a curator the truth beside a private answer; never charged nor kept.

        For the curator alone: the true answer is in it.
        """
        asked = read_question(question)
        asked = asked.model_copy(update={"cost": Spending(epsilon=epsilon)})
        table = self.table
        if policies is not None:
            table = table.with_policies(
                {
                    name: one if isinstance(one, PolicySpec) else PolicySpec(**one)
                    for name, one in policies.items()
                }
            )
        plan = self._planned(table, asked)
        counts = self.engine.counts(plan.layout).reshape(plan.policy.domain.shape)
        data = table.bounded(counts, plan.policy.domain)
        release = plan.mechanism.release(data)
        noisy = answer_from(
            release,
            plan.layout,
            plan.workload,
            plan.mechanism.budget,
            "preview",
            replayed=False,
            exact=plan.free,
        )
        truth: FloatArray = np.asarray(plan.workload.answer(counts), dtype=np.float64)
        if truth.size == int(np.prod(plan.layout.asked_shape)):
            truth = truth.reshape(plan.layout.asked_shape)
        return {"truth": truth.tolist(), "private": noisy.to_dict()}

    def trade_off(
        self, question: Any, thetas: Sequence[int] | None = None
    ) -> list[dict[str, Any]]:
        """Return what an accuracy costs at each threshold of the asked attribute.

        Public: no data is read. A mechanism for a larger threshold is safe for a
        smaller one, so costs never fall as the threshold grows.
        """
        asked = read_question(question)
        if not isinstance(asked.cost, Accuracy):
            raise QuestionError(
                "the trade-off needs an accuracy: cost with alpha, beta"
            )
        name = asked.axes[0]
        spec = self.table.attribute(name)
        if spec.kind == "category":
            raise QuestionError(f"{name!r} is a category: it has no thresholds")
        regular = spec.domain().attributes[0].regular
        grid = _log_grid(regular - 1) if thetas is None else list(thetas)
        points = []
        for theta in sorted(set(grid)):
            stated = {
                **self.table.policies,
                name: PolicySpec(kind="threshold", theta=theta),
            }
            plan = self._planned(self.table.with_policies(stated), asked)
            points.append((theta, plan))
        full = self._planned(self.table.with_policies({}), asked)
        rows: list[dict[str, Any]] = [
            {"theta": None, "cost": float(full.cost), "mechanism": full.mechanism.name}
        ]
        best = full
        for theta, plan in reversed(points):
            best = plan if plan.cost <= best.cost else best
            rows.append(
                {
                    "theta": theta,
                    "cost": float(best.cost),
                    "mechanism": best.mechanism.name,
                }
            )
        return rows[::-1]

    def _planned(self, table: TableSpec, asked: Question) -> Plan:
        layout = lay_out(table, asked)
        policy = layout.policy(table.policy())
        workload = layout.workload(policy.domain)
        cost = asked.cost
        if float(sensitivity(policy, workload)) == 0.0:
            exact = Laplace(policy, workload, epsilon=LEAST_EPSILON, strategy="queries")
            return Plan(layout, policy, workload, exact, Fraction(0), True, [])
        if isinstance(cost, Spending):
            chosen = bought(policy, workload, cost, self.vouched)
            currency = self.ledger.currency
            price = price_in(chosen, currency)
            rows = [{"name": chosen.name, currency.name: float(price)}]
            return Plan(layout, policy, workload, chosen, price, False, rows)
        few = workload.queries <= MOST_SIMULATED_QUERIES
        found = translate(
            policy,
            workload,
            alpha=cost.alpha,
            beta=cost.beta,
            scope=cost.scope,
            samples=self.samples if few else 0,
            currency="epsilon" if self.ledger.currency.power == 1 else "rho",
        )
        best = found.best
        assert best.mechanism is not None
        return Plan(
            layout,
            policy,
            workload,
            best.mechanism,
            found.budget.amount,
            False,
            found.rows,
        )

    @staticmethod
    def _why(plan: Plan, replayed: bool) -> str:
        if replayed:
            return "this very question was answered before; the answer is kept"
        if plan.free:
            return (
                "no edge of the policy changes these numbers, so they are public: "
                "exact, and free"
            )
        return (
            f"{plan.mechanism.name} needs the least "
            f"{plan.mechanism.budget.currency} of "
            f"{sum(not one.get('reason') for one in plan.candidates)} "
            "mechanisms that promise this accuracy"
            if isinstance(plan.layout.question.cost, Accuracy)
            else f"{plan.mechanism.name} spends the budget that was stated"
        )


def as_table(table: Any) -> TableSpec:
    """Read the description of a table from plain data."""
    from pydantic import ValidationError

    from .questions import plain_errors

    if isinstance(table, TableSpec):
        return table
    try:
        return TableSpec.model_validate(table)
    except ValidationError as problem:
        raise CatalogError(plain_errors(problem)) from None


def request_of(question: Question) -> str:
    """Return the name that identical questions share."""
    return "q-" + _digest(question.model_dump(mode="json"))[:40]


def _log_grid(largest: int) -> list[int]:
    """Return thresholds from 1 to the largest, about five per factor of ten."""
    steps = np.unique(np.rint(np.geomspace(1, max(largest, 1), 16)).astype(int))
    return [int(one) for one in steps]


def _digest(plain: Any) -> str:
    text = json.dumps(plain, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
