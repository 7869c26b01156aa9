"""What analysts get: prices, answers charged once, and errors without data."""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.composition import EPSILON, RHO
from blowfish_fast.apps.explorer.catalog import EXTRAS, TableSpec
from blowfish_fast.apps.explorer.exploration import Explorer
from blowfish_fast.apps.server.analyst_routes import describe_attribute
from blowfish_fast.apps.server.keys import CURATOR
from blowfish_fast.apps.server.price_workers import PriceWorkers, answer_task
from blowfish_fast.errors import PolicyError

from .serving import (
    AGES,
    SECRET_VALUE,
    TOTALS,
    http_client,
    make_workspace,
    running,
    serving,
)

QUOTES = ["x'; DROP TABLE people; --", 'age" OR 1=1', "age`", "a\x00b", "\\", "%s{0}"]


def asking(question, request=None):
    return {"question": question, "request": request}


def spent(served):
    return served.workspace.explorer("people").ledger.spent


@pytest.mark.long
def test_the_price_is_told_beforehand_and_charged_once(served):
    with served.client("ann") as ann:
        before = ann.get("/api/tables").json()[0]["remaining"]
        told = ann.post("/api/explain", json=asking(AGES)).json()
        assert told["affordable"]
        assert told["candidates"]
        answer = ann.post("/api/ask", json=asking(AGES)).json()
        assert answer["epsilon"] == told["cost"]
        assert answer["remaining"] == pytest.approx(before - told["cost"])
        again = ann.post("/api/ask", json=asking(AGES)).json()
        assert again["replayed"]
        assert again["values"] == answer["values"]
        assert again["remaining"] == answer["remaining"]
        assert ann.post("/api/explain", json=asking(AGES)).json()["cost"] == 0
        (row,) = ann.get("/api/history", params={"table": "people"}).json()
        assert row["question"]["attribute"] == "age"
        where = {"table": "people", "request": row["request"]}
        kept = ann.get("/api/answer", params=where).json()
        assert kept["values"] == answer["values"]


def test_answers_are_within_their_promise(served):
    with served.client("ann") as ann, served.client(CURATOR) as curator:
        answer = ann.post("/api/ask", json=asking(TOTALS)).json()
        body = {"question": TOTALS, "epsilon": 1}
        truth = curator.post("/api/curator/preview", json=body).json()["truth"]
    # Secure noise may miss alpha once in twenty times, and four times alpha never.
    assert np.abs(np.array(answer["values"]) - truth).max() <= 4 * 40
    assert np.array(answer["intervals"]).shape == (16, 2)


def test_nobody_reads_the_history_of_another(served):
    with served.client("ann") as ann, served.client("bob") as bob:
        ann.post("/api/ask", json=asking(AGES, "mine")).raise_for_status()
        rows = ann.get("/api/history", params={"table": "people"}).json()
        assert bob.get("/api/history", params={"table": "people"}).json() == []
        for row in rows:
            where = {"table": "people", "request": row["request"]}
            assert bob.get("/api/answer", params=where).status_code == 404
        # The name is ann's: bob's request of that name is another, and he cannot pay.
        assert bob.post("/api/ask", json=asking(AGES, "mine")).status_code == 402
    with served.client(CURATOR) as curator:
        where = {"table": "people", "last": 1}
        (row,) = curator.get("/api/history", params=where).json()
        assert row["analyst"] == "ann"


def test_a_name_stands_for_one_question(served):
    with served.client("ann") as ann:
        first = ann.post("/api/ask", json=asking(AGES, "one")).json()
        before = spent(served)
        assert ann.post("/api/ask", json=asking(TOTALS, "one")).status_code == 409
        again = ann.post("/api/ask", json=asking(AGES, "one")).json()
        assert again["values"] == first["values"]
        assert spent(served) == before


@pytest.mark.parametrize("name", ["\x1b[2J", "a\nb", "\u202eevil"])
def test_names_cannot_rewrite_what_a_curator_reads(served, name):
    before = spent(served)
    with served.client("ann") as ann:
        found = ann.post("/api/ask", json=asking(AGES, name))
    assert found.status_code == 422
    assert name not in found.json()["error"]["message"]
    assert spent(served) == before


def test_over_the_budget_nothing_is_charged(served):
    costly = {**AGES, "cost": {"epsilon": 4.9}}
    before = spent(served)
    with served.client("ann") as ann, served.client("bob") as bob:
        told = ann.post("/api/explain", json=asking(costly)).json()
        assert not told["affordable"]
        found = ann.post("/api/ask", json=asking(costly, "costly"))
        assert found.status_code == 402
        assert found.json()["error"]["kind"] == "BudgetError"
        assert bob.post("/api/ask", json=asking(TOTALS, "poor")).status_code == 402
    assert spent(served) == before


@pytest.mark.long
def test_32_analysts_at_once_never_overspend(tmp_path):
    question = {**AGES, "cost": {"epsilon": 0.1}}
    with serving(tmp_path, epsilon=2.05) as served:
        ledger = served.workspace.explorer("people").ledger
        for at in range(32):
            name = f"analyst{at}"
            served.secrets[name] = served.workspace.keys.make("analyst", name)
            ledger.allot(name, 0.1 if at % 2 else 1)

        def ask(at):
            with served.client(f"analyst{at}") as client:
                names = ["a", "a", "b"]
                return [
                    client.post("/api/ask", json=asking(question, name)).status_code
                    for name in names
                ]

        with ThreadPoolExecutor(32) as pool:
            found = list(pool.map(ask, range(32)))
        assert {code for row in found for code in row} == {200, 402}
        assert ledger.spent == Fraction(2)
        shares = ledger.allotments()
        assert all(one.spent <= one.granted for one in shares.values())
        assert sum(one.spent for one in shares.values()) == Fraction(2)
        # A repeated name has the same fate, and costs nothing the second time.
        assert all(row[1] == 200 for row in found if row[0] == 200)
        ledger.verify()


@pytest.mark.long
def test_one_question_from_many_threads_is_charged_once(own_server):
    def ask(_):
        with own_server.client("ann") as client:
            return client.post("/api/ask", json=asking(AGES)).json()

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(ask, range(16)))
    assert len({tuple(one["values"]) for one in found}) == 1
    assert spent(own_server) == Fraction(repr(found[0]["epsilon"]))


@pytest.mark.long
@pytest.mark.parametrize("word", QUOTES)
@pytest.mark.parametrize("place", ["table", "attribute", "filter", "value"])
def test_quotes_in_names_and_values_are_only_letters(served, place, word):
    question = dict(AGES)
    if place == "filter":
        question["filters"] = [{"attribute": word, "low": 0}]
    elif place == "value":
        question["filters"] = [{"attribute": "sex", "values": [word]}]
    else:
        question[place] = word
    before = spent(served)
    with served.client("ann") as ann:
        for route in ("/api/explain", "/api/ask"):
            found = ann.post(route, json=asking(question))
            assert found.status_code in (404, 422)
            assert SECRET_VALUE not in found.text
        where = {"table": word, "request": word}
        assert ann.get("/api/answer", params=where).status_code == 404
    assert spent(served) == before
    columns = served.workspace.data_sets()["people"]
    assert set(columns) == {"age", "sex", 'pay "net"'}


def test_missing_values_have_a_cell_and_strange_columns_their_names(served):
    question = {
        **AGES,
        "attribute": "pay",
        "width": 1,
        "filters": [{"attribute": "sex", "values": ["f"]}],
    }
    with served.client("ann") as ann, served.client(CURATOR) as curator:
        answer = ann.post("/api/ask", json=asking(question)).json()
        body = {"question": question, "epsilon": 1}
        truth = curator.post("/api/curator/preview", json=body).json()["truth"]
    assert len(answer["values"]) == len(truth) == 3
    # 100 people are "f"; those without pay are in none of the three bins.
    assert sum(truth) == 80


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [
        {"kind": "unknown"},
        {"width": 0},
        {"width": 65},
        {"width": 1.5},
        {"cost": {"alpha": -1}},
        {"cost": {"alpha": 1, "beta": 1}},
        {"cost": {"alpha": 1e999}},
        {"cost": {"epsilon": 1, "mechanism": "unknown"}},
        {"cost": {}},
        {"extra": 1},
        {"attribute": None},
        {"kind": "cumulative", "attribute": "sex"},
        {"kind": "ranges", "ranges": [[0.5, 3]]},
        {"kind": "ranges", "ranges": [[8, 4]]},
        {"kind": "quantiles", "q": [2]},
        {"filters": [{"attribute": "age", "low": 5, "high": 5}]},
        {"filters": [{"attribute": "age", "values": ["f"]}]},
        {"filters": [{"attribute": "sex", "low": 0}]},
    ],
    ids=str,
)
def test_questions_that_do_not_fit_are_refused_in_words(served, change):
    content = json.dumps(asking({**AGES, **change}))
    before = spent(served)
    with served.client("ann") as ann:
        headers = {"Content-Type": "application/json"}
        found = ann.post("/api/ask", content=content, headers=headers)
    assert found.status_code == 422
    assert len(found.json()["error"]["message"]) > 10
    assert spent(served) == before


@pytest.mark.long
def test_a_refusal_of_the_library_is_sent_as_fields(own_server, monkeypatch):
    def refuse(*_):
        bf.policies.Line(bf.Domain((4, 6)))

    monkeypatch.setattr(Explorer, "explain", refuse)
    with own_server.client("ann") as ann:
        found = ann.post("/api/explain", json=asking(AGES))
    assert found.status_code == 422
    assert found.json() == {
        "error": {
            "kind": "PolicyError",
            "code": "policy_needs_one_attribute",
            "rule": "Line asks for one ordered attribute",
            "received": "a domain of 2 attributes",
            "way_out": "State a policy for each attribute by its name",
            "message": "Line asks for one ordered attribute; received a domain of 2 "
            "attributes. State a policy for each attribute by its name",
        }
    }
    with (
        bf.connect(own_server.url, own_server.secrets["ann"]) as client,
        pytest.raises(PolicyError, match="one ordered attribute") as caught,
    ):
        client.explain(AGES)
    assert caught.value.code == "policy_needs_one_attribute"
    assert caught.value.received == "a domain of 2 attributes"


@pytest.mark.long
def test_a_database_that_disappears_costs_nothing(own_server, caplog):
    explorer = own_server.workspace.explorer("people")
    with own_server.client("ann") as ann, caplog.at_level(logging.DEBUG):
        assert ann.post("/api/explain", json=asking(AGES)).status_code == 200
        explorer.engine.backend.con.close()
        found = ann.post("/api/ask", json=asking(AGES))
        assert found.status_code == 503
        assert found.json()["error"]["kind"] == "EngineError"
        assert "nothing was charged" in found.json()["error"]["message"]
        assert explorer.ledger.spent == 0
        assert ann.get("/api/tables").status_code == 200
    assert str(own_server.workspace.folder) not in found.text


@pytest.mark.long
def test_unforeseen_errors_say_nothing_about_data(own_server, caplog, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError(f"row ({SECRET_VALUE!r}, 12345)")

    explorer = own_server.workspace.explorer("people")
    monkeypatch.setattr(explorer.engine, "counts", broken)
    with own_server.client("ann") as ann, caplog.at_level(logging.DEBUG):
        found = ann.post("/api/ask", json=asking(AGES))
    assert found.status_code == 500
    assert found.headers["content-security-policy"]
    for text in (found.text, caplog.text):
        assert "Mallory" not in text
        assert "12345" not in text
    assert "RuntimeError" in caplog.text
    assert explorer.ledger.spent == 0


@pytest.mark.long
def test_a_database_that_quotes_records_is_not_repeated(
    own_server, caplog, monkeypatch
):
    class Quoting:
        name = "duckdb"

        def table(self, _):
            raise ValueError(f"conversion of {SECRET_VALUE!r}")

    explorer = own_server.workspace.explorer("people")
    monkeypatch.setattr(explorer.engine, "_idle", [Quoting()])
    with own_server.client("ann") as ann, caplog.at_level(logging.DEBUG):
        found = ann.post("/api/ask", json=asking(AGES))
    assert found.status_code == 503
    assert "Mallory" not in found.text + caplog.text


@pytest.mark.long
def test_logs_and_answers_of_a_whole_walk_hold_no_record(own_server, caplog):
    with own_server.client("ann") as ann, caplog.at_level(logging.DEBUG):
        texts = [
            ann.get("/api/tables").text,
            ann.post("/api/explain", json=asking(AGES)).text,
            ann.post("/api/ask", json=asking(AGES)).text,
            ann.get("/api/history", params={"table": "people"}).text,
        ]
    assert "Mallory" not in caplog.text + "".join(texts)
    stored = (own_server.workspace.folder / "ledgers" / "people.ledger").read_bytes()
    assert b"Mallory" not in stored


@pytest.mark.long
def test_a_restart_keeps_everything_but_sessions(tmp_path):
    with serving(tmp_path) as served, served.client("ann") as ann:
        answer = ann.post("/api/ask", json=asking(AGES)).json()
        secrets = dict(served.secrets)
    from blowfish_fast.apps.server.web_app import make_app

    workspace = make_workspace(tmp_path)
    try:
        with running(make_app(workspace)) as url:
            headers = {"Authorization": f"Bearer {secrets['ann']}"}
            with http_client(url, headers=headers) as ann:
                again = ann.post("/api/ask", json=asking(AGES)).json()
                assert again["replayed"]
                assert again["values"] == answer["values"]
                assert again["remaining"] == answer["remaining"]
                assert ann.get("/api/tables").json()[0]["frozen"]
    finally:
        workspace.close()


def test_missing_values_are_described_by_the_rule_that_is_in_force():
    cells = {"start": 0, "stop": 8, "width": 1}
    pair = [{"name": one, "cells": cells, "extras_joined": "end"} for one in "xy"]
    policies = {"x": {"kind": "line"}}
    table = TableSpec(name="pairs", attributes=pair, policies=policies)
    for currency, joined in (
        (EPSILON, EXTRAS["all"].promise),
        (RHO, EXTRAS["all"].promise_in_rho),
    ):
        stated, unstated = (
            describe_attribute(one, table, currency) for one in table.attributes
        )
        assert stated["missing_words"] == EXTRAS["end"].promise
        assert unstated["missing_words"] == joined


@pytest.mark.long
def test_a_better_accuracy_pays_for_the_rest_over_http(tmp_path):
    """The page and clients are told the rest of a price, and it is what is charged."""
    with serving(tmp_path) as served, served.client(CURATOR) as curator:
        workspace = served.workspace
        frozen = {**workspace.explorer("people").table.to_dict(), "name": "frozen"}
        frozen |= {"source": "others", "snapshot": "March"}
        frozen["attributes"][0].pop("missing")
        workspace.add_table(frozen, epsilon=5)

        def question(alpha):
            cost = {"alpha": alpha, "beta": 0.05, "chosen": False}
            return asking({**AGES, "table": "frozen", "cost": cost})

        curator.post("/api/ask", json=question(40)).raise_for_status()
        told = curator.post("/api/explain", json=question(25)).json()
        assert told["how"] == "refine"
        assert told["cost"] == told["price_missing"] < told["price_alone"]
        assert told["known"]["alpha"] > 25
        answer = curator.post("/api/ask", json=question(25)).json()
        assert answer["epsilon"] == told["cost"]
        rows = curator.get("/api/history", params={"table": "frozen"}).json()
        assert [row["question"] is None for row in rows] == [False, True, False]
        assert rows[-1]["paid"] == rows[1]["request"] == answer["sources"][0]
        assert rows[1]["cost"] == told["cost"]
        # A database that tells no version of its content has no such price.
        current = curator.post("/api/explain", json=asking(AGES)).json()
        assert "no frozen snapshot" in current["not_finer"]


@pytest.mark.long
def test_a_broader_answer_is_priced_beside_and_bought_over_http(tmp_path, monkeypatch):
    """What the page is told of it is what is charged, and a worker has found it."""
    wanted = []

    async def at_once(_workers, task, _who, _gone, *, quick=False):
        wanted.append((task.wanted, quick))
        _, result = answer_task(task, OrderedDict())
        return result

    monkeypatch.setattr(PriceWorkers, "run", at_once)
    with serving(tmp_path) as served, served.client(CURATOR) as curator:
        workspace = served.workspace
        frozen = {**workspace.explorer("people").table.to_dict(), "name": "frozen"}
        rule = {"kind": "threshold", "theta": 1}
        frozen |= {"source": "others", "broad": 0.5, "policies": {"age": rule}}
        frozen["attributes"][0] |= {"missing": "cell", "extras_joined": "end"}
        workspace.add_table(frozen, epsilon=5)
        question = asking({**AGES, "table": "frozen"})
        told = curator.post("/api/explain", json=question).json()
        assert (told["how"], told["broad"]["bought"]) == ("broad", True)
        assert "are bought" in told["why"]
        answer = curator.post("/api/ask", json=question).json()
        assert (answer["epsilon"], answer["holds"]) == (told["cost"], "fresh")
        rows = curator.get("/api/history", params={"table": "frozen"}).json()
        assert rows[-1]["paid"] == rows[0]["request"] == answer["sources"][0]
        assert rows[0]["cost"] == told["cost"]
        assert rows[0]["question"]["kind"] == told["broad"]["question"]["kind"]
    # What was worked out once is remembered.
    assert [task for task, _ in wanted].count("broad") == 1
