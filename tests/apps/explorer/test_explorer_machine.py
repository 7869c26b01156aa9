"""An explorer and its model side by side, through any sequence of events.

Questions, retries, budgets, policies before and after the first charge, allotments, a
database that comes and goes, a ledger that is opened again. The model knows sums and
answers; the ledger must know the same, never more than was granted.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import OrderedDict
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from blowfish_fast.apps.explorer import Database, Explorer
from blowfish_fast.errors import BudgetError, EngineError, LedgerError
from tests.apps.duckdb_tables import insert_rows

pytestmark = pytest.mark.long

pytest.importorskip("ibis", reason="pip install 'blowfish_fast[sql]'")

TABLE = {
    "name": "people",
    "attributes": [
        {"name": "age", "cells": {"start": 0, "stop": 8, "width": 1}},
        {"name": "sex", "levels": ["f", "m"]},
    ],
    "snapshot": "March",
}
POLICIES = [
    {},
    {"age": {"kind": "line"}},
    {"sex": {"kind": "blocks", "blocks": [["f"], ["m"]]}},
]
KINDS = [
    {"kind": "histogram", "attribute": "age"},
    {"kind": "histogram", "attribute": "sex"},
    {"kind": "cumulative", "attribute": "age", "width": 2},
]
COSTS = [
    {"epsilon": 0.25},
    {"epsilon": 0.4},
    {"alpha": 30, "beta": 0.1},
    {"alpha": 25, "beta": 0.1, "chosen": False},
    {"alpha": 20, "beta": 0.1, "chosen": False},
]
WHO = [None, "ann", "bob"]


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    import duckdb

    path = tmp_path_factory.mktemp("machine") / "people.duckdb"
    connection = duckdb.connect(str(path))
    connection.execute("CREATE TABLE people (age DOUBLE, sex TEXT)")
    rows = [(at * 3 % 9 or None, "fm"[at % 2]) for at in range(50)]
    insert_rows(connection, "people", rows)
    connection.close()
    return path


class ExplorerMachine(RuleBasedStateMachine):
    engine: Database

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.open(epsilon=1)
        self.total = Fraction(1)
        self.granted: dict[str, Fraction] = {}
        self.paid = dict.fromkeys(WHO, Fraction(0))
        self.policies: dict = {}
        self.answers: dict[str, tuple] = {}
        self.receipts: set[tuple[str, str]] = set()
        self.finer = 0

    def open(self, epsilon=None):
        table = None if epsilon is None else TABLE
        ledger = self.folder / "ledger"
        self.explorer = Explorer(
            table, self.engine, epsilon=epsilon, ledger=ledger, samples=0
        )

    def teardown(self):
        self.explorer.ledger.verify()
        self.explorer.ledger.close()
        shutil.rmtree(self.folder)

    @rule(
        kind=st.sampled_from(KINDS),
        cost=st.sampled_from(COSTS),
        who=st.sampled_from(WHO),
        name=st.sampled_from([None, None, "x", "y"]),
        reachable=st.booleans() | st.just(True),
    )
    def ask(self, kind, cost, who, name, reachable):
        question = {**kind, "table": "people", "cost": cost}
        plan = self.explorer.plan(question)
        key = repr(plan.layout.question) if name is None else name
        told = self.explorer.explain(question, who)
        if key in self.answers and self.answers[key][0] != plan.layout.question:
            with pytest.raises(LedgerError, match="another question"):
                self.explorer.ask(question, analyst=who, request=name)
            return
        if key in self.answers:
            again = self.explorer.ask(question, analyst=who, request=name)
            assert again.replayed
            assert again.epsilon == self.answers[key][2]
            assert (again.values == self.answers[key][1]).all()
            if who not in (None, self.answers[key][3]):
                # It is in her history too, at no cost, once.
                self.receipts.add((who, again.request))
            return
        if name is None and told["how"] == "read":
            # Stored answers keep the accuracy that is asked for: free, and noted.
            answer = self.explorer.ask(question, analyst=who)
            assert answer.epsilon == 0
            self.answers[key] = plan.layout.question, answer.values, 0, who
            return
        left, due = self.left(who), plan.cost
        finer = name is None and told["how"] == "refine"
        if finer:
            # The rest of the price: a stored answer is made finer.
            due = self.explorer.refining.plan(plan.layout.question, who).cost
            assert due < plan.cost
        if name is None:
            assert told["cost"] == float(due)
            assert told["affordable"] == (due <= left)
        if due > left or (who is not None and who not in self.granted):
            # The database is not even asked: how long it takes would be told for free.
            with pytest.raises(BudgetError), self.away():
                self.explorer.ask(question, analyst=who, request=name)
        elif not reachable:
            with pytest.raises(EngineError), self.away():
                self.explorer.ask(question, analyst=who, request=name)
        else:
            answer = self.explorer.ask(question, analyst=who, request=name)
            assert not answer.replayed
            assert answer.epsilon == due
            assert (answer.mechanism == "refiner") == finer
            self.finer += finer
            self.paid[who] += due
            self.answers[key] = plan.layout.question, answer.values, due, who
            kept = self.explorer.answered(answer.request)
            assert (kept.values == answer.values).all()

    def left(self, who):
        total = self.total - sum(self.paid.values())
        if who is None:
            return total
        return min(total, self.granted.get(who, Fraction(0)) - self.paid[who])

    @contextmanager
    def away(self):
        """Make the database unreachable for a moment."""

        class Gone:
            name = "duckdb"
            con = None

            def __getattr__(self, _):
                raise ConnectionError("gone")

        kept = self.engine._idle, self.engine._compiled
        self.engine._idle, self.engine._compiled = [Gone()], OrderedDict()
        try:
            yield
        finally:
            self.engine._idle, self.engine._compiled = kept

    @rule(policies=st.sampled_from(POLICIES))
    def set_policies(self, policies):
        if self.answers:
            with pytest.raises(LedgerError, match="frozen"):
                self.explorer.set_policies(policies)
        else:
            self.explorer.set_policies(policies)
            self.policies = policies

    @rule(tenths=st.integers(1, 20))
    def set_budget(self, tenths):
        if self.answers:
            with pytest.raises(LedgerError, match="frozen"):
                self.explorer.set_budget(Fraction(tenths, 10))
        else:
            self.explorer.set_budget(Fraction(tenths, 10))
            self.total = Fraction(tenths, 10)

    @rule(who=st.sampled_from(WHO[1:]), tenths=st.integers(1, 10))
    def allot(self, who, tenths):
        wanted = Fraction(tenths, 10)
        if wanted < self.paid[who]:
            with pytest.raises(BudgetError):
                self.explorer.ledger.allot(who, wanted)
        else:
            self.explorer.ledger.allot(who, wanted)
            self.granted[who] = wanted

    @rule()
    def open_again(self):
        self.explorer.ledger.close()
        self.open()

    @invariant()
    def ledger_and_model_agree(self):
        ledger = self.explorer.ledger
        assert ledger.epsilon == self.total
        assert ledger.spent == sum(self.paid.values()) <= self.total
        assert ledger.frozen == bool(self.answers)
        listed = len(self.answers) + len(self.receipts) + self.finer
        assert len(ledger.history()) == listed
        shares = {name: one.granted for name, one in ledger.allotments().items()}
        assert shares == self.granted
        for who in self.granted:
            assert ledger.allotments()[who].spent == self.paid[who]
            assert self.explorer.remaining(who) == self.left(who)
        stated = {name: one.kind for name, one in self.explorer.table.policies.items()}
        assert stated == {name: one["kind"] for name, one in self.policies.items()}


def test_any_sequence_of_events_keeps_to_the_model(database):
    ExplorerMachine.engine = Database.connect(database)
    run_state_machine_as_test(
        ExplorerMachine,
        settings=settings(
            max_examples=10,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
