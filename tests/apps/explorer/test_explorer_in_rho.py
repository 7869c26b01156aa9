"""The explorer with a ledger that counts rho."""

from __future__ import annotations

from fractions import Fraction

import pytest

import blowfish_fast as bf
from blowfish_fast.errors import BudgetError, QuestionError

ibis = pytest.importorskip("ibis")
pytest.importorskip("duckdb")


def explorer(**budget):
    database = ibis.duckdb.connect()
    rows = "select 20 + i % 60 as age from range(150) as t(i)"
    database.raw_sql(f"create table visits as {rows}")
    age = {"name": "age", "cells": {"start": 0, "stop": 100, "width": 10}}
    table = {"name": "visits", "attributes": [age]}
    return bf.explorer.Explorer(table, database, **budget)


def question(**cost):
    return {"kind": "histogram", "table": "visits", "attribute": "age", "cost": cost}


def test_accuracies_and_budgets_are_charged_in_rho():
    found = explorer(rho="0.1")
    answer = found.ask(question(alpha=20, beta=0.05))
    assert answer.budget.power == 2
    assert answer.to_dict()["rho"] == float(found.ledger.spent)
    assert "With rho" in answer.promise
    assert "e^eps" not in answer.promise
    assert "the odds of one against the other change by more than" in answer.promise
    spent = found.ledger.spent
    found.ask(question(rho=0.01))
    assert found.ledger.spent == spent + Fraction(1, 100)
    pure = found.ask(question(epsilon=0.05))
    assert pure.budget.amount <= Fraction(1, 800)
    assert found.ask(question(rho=0.01)).replayed


def test_an_explorer_in_epsilon_refuses_rho():
    found = explorer(epsilon=1)
    with pytest.raises(BudgetError, match="which no epsilon bounds"):
        found.ask(question(rho=0.01))
    with pytest.raises(QuestionError, match="epsilon with delta"):
        found.ask(question(rho=0.01, delta=1e-9))
    assert found.ledger.spent == 0
