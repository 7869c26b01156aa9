"""Budgets in rho over HTTP, and certificates that analysts buy."""

from __future__ import annotations

import pytest

import blowfish_fast as bf
from blowfish_fast.apps.server.keys import CURATOR
from blowfish_fast.errors import BudgetError, LedgerError

from .serving import AGES

AGE = {"name": "age", "cells": {"start": 0, "stop": 64, "width": 1}}
OTHERS = {"name": "others", "attributes": [AGE]}
QUESTION = {**AGES, "table": "others"}
ADAPTIVE = {**AGES, "width": 1, "cost": {"epsilon": 0.5, "mechanism": "dawa"}}


@pytest.fixture
def clients(own_server):
    made = {
        name: bf.connect(own_server.url, own_server.secrets[name])
        for name in (CURATOR, "ann", "bob")
    }
    yield made
    for one in made.values():
        one.close()


@pytest.mark.long
def test_a_table_is_counted_in_rho_from_its_budget_to_its_answers(clients):
    curator, ann = clients[CURATOR], clients["ann"]
    made = curator.add_table(OTHERS, rho=0.5)
    assert (made["currency"], made["rho"], made["budget"]) == ("rho", 0.5, 0.5)
    assert "beyond what rho allows" in made["promise"]
    assert "e^eps" not in made["promise"]
    with pytest.raises(LedgerError, match="counts rho"):
        curator.allot("others", "ann", 0.1)
    assert curator.allot("others", "ann", rho=0.4)["rho"] == 0.4
    told = ann.explain(QUESTION)
    assert told["currency"] == "rho"
    assert told["candidates"][0]["rho"] == told["cost"]
    answer = ann.ask(QUESTION)
    assert answer.rho == pytest.approx(told["cost"], rel=1e-9)
    assert answer.epsilon is None
    spent = ann.ask({**QUESTION, "cost": {"rho": 0.01}})
    assert spent.rho == 0.01
    both = {**QUESTION, "cost": {"epsilon": 0.3, "delta": 1e-6}}
    assert 0 < ann.ask(both).rho < 0.045
    bought = ann.accuracy({**QUESTION, "cost": {"rho": told["cost"]}})
    assert bought["alpha"] == pytest.approx(QUESTION["cost"]["alpha"], rel=0.05)
    (first, *_) = ann.history("others")
    assert first["currency"] == "rho"
    assert first["rho"] == answer.rho
    shares = {one["name"]: one["allotments"] for one in curator.analysts()}
    assert shares["ann"]["others"]["granted"] == 0.4


@pytest.mark.long
def test_a_ledger_in_epsilon_refuses_rho(clients):
    with pytest.raises(BudgetError, match="counts epsilon"):
        clients["ann"].ask({**AGES, "cost": {"rho": 0.01}})


@pytest.mark.long
def test_a_certificate_is_bought_once_and_says_what_holds(own_server, clients):
    ann = clients["ann"]
    answer = ann.ask(ADAPTIVE)
    assert answer.intervals_hold == "noise"
    ledger = own_server.workspace.explorer("people").ledger
    before = ledger.spent
    found = ann.certify("people", answer.request, epsilon=0.25)
    assert "of the true counts" in found["words"]
    assert ledger.spent - before == 0.25
    again = ann.certify("people", answer.request, epsilon=0.25)
    assert again["words"] == found["words"]
    assert ledger.spent - before == 0.25
    # It stands in the history, and is no answer to a question.
    assert [one["question"] is None for one in ann.history("people")] == [False, True]
    ledger.verify()


@pytest.mark.long
def test_certificates_are_paid_and_about_ones_own_answers(own_server, clients):
    answer = clients["ann"].ask(ADAPTIVE)
    with pytest.raises(bf.errors.BlowfishError, match="no answer under this name"):
        clients["bob"].certify("people", answer.request, epsilon=0.1)
    spent = own_server.workspace.explorer("people").ledger.spent
    with pytest.raises(BudgetError, match="remains"):
        clients["ann"].certify("people", answer.request, epsilon=50)
    assert own_server.workspace.explorer("people").ledger.spent == spent


@pytest.mark.long
def test_messages_name_the_field_in_a_persons_words(own_server):
    wrong = {**AGES, "cost": {"alpha": 40, "beta": 2}}
    with own_server.client("ann") as ann:
        error = ann.post("/api/explain", json={"question": wrong}).json()["error"]
    assert "probability of more (beta)" in error["message"]
    assert "body" not in error["message"]
    assert "histogram" not in error["message"]
    assert "beta" in {one["field"] for one in error["fields"]}


def test_the_promise_is_in_the_tables_own_units(own_server):
    explorer = own_server.workspace.explorer("people")
    explorer.set_policies({"age": {"kind": "threshold", "theta": 8}})
    promise = explorer.ask(AGES).promise
    assert "in age, values that differ by at most 8" in promise
    assert "bins" not in promise
    assert "cells" not in promise
