"""Questions are planned from public values, charged once, replayed; promises hold."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast.apps.explorer import Database, Explorer, TableSpec, planning
from blowfish_fast.errors import (
    BudgetError,
    CatalogError,
    EngineError,
    LedgerError,
    PlugInError,
    QuestionError,
)
from tests.apps.duckdb_tables import insert_rows

pytest.importorskip("ibis", reason="pip install 'blowfish_fast[sql]'")

TABLE = TableSpec(
    name="people",
    attributes=[
        {
            "name": "age",
            "cells": {"start": 0, "stop": 80, "width": 1},
            "missing": "none",
        },
        {"name": "sex", "levels": ["f", "m"]},
    ],
)
ACCURACY = {"alpha": 25, "beta": 0.05}
AGES = {"kind": "cumulative", "table": "people", "attribute": "age", "cost": ACCURACY}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    import duckdb

    path = tmp_path_factory.mktemp("data") / "people.duckdb"
    rng = np.random.default_rng(3)
    connection = duckdb.connect(str(path))
    connection.execute("CREATE TABLE people (age DOUBLE NOT NULL, sex TEXT)")
    ages = rng.integers(0, 80, 500).tolist()
    sexes = rng.choice(["f", "m"], 500).tolist()
    insert_rows(connection, "people", list(zip(ages, sexes, strict=True)))
    connection.close()
    return Database.connect(path)


@pytest.fixture
def explorer(engine, tmp_path):
    made = Explorer(TABLE, engine, epsilon=5, ledger=tmp_path / "ledger", samples=500)
    yield made
    made.ledger.close()


def truth(explorer, question):
    return np.array(explorer.preview(question, epsilon=1)["truth"])


@pytest.mark.long
def test_an_answer_keeps_its_promise_and_is_charged_once(explorer):
    answer = explorer.ask(AGES)
    # Secure noise may miss alpha once in twenty times, and four times alpha never.
    assert np.abs(answer.values - truth(explorer, AGES)).max() <= 4 * 25
    assert (np.diff(answer.values) >= 0).all()
    assert explorer.ledger.spent == answer.epsilon
    again = explorer.ask(AGES)
    assert again.replayed
    assert not answer.replayed
    assert (again.values == answer.values).all()
    assert explorer.ledger.spent == answer.epsilon


def test_the_same_question_under_a_new_name_is_charged_anew(explorer):
    first = explorer.ask(AGES)
    second = explorer.ask(AGES, request="once more")
    assert (first.values != second.values).any()
    assert explorer.ledger.spent == 2 * first.epsilon
    assert explorer.ask(AGES, request="once more").replayed


def test_explaining_is_free_and_says_what_would_remain(explorer):
    told = explorer.explain(AGES)
    assert told["affordable"]
    assert told["remaining_after"] == pytest.approx(5 - told["cost"])
    assert any(one["name"] == "dawa" for one in told["candidates"])
    assert explorer.ledger.spent == 0
    explorer.ask(AGES)
    after = explorer.explain(AGES)
    assert after["answered_before"]
    assert after["cost"] == 0


def test_what_no_edge_changes_is_exact_and_free(explorer):
    blocks = {"sex": {"kind": "blocks", "blocks": [["f"], ["m"]]}}
    explorer.set_policies({"age": {"kind": "line"}, **blocks})
    # With a cell for missing values that is joined to all, nothing is public.
    counted = {"kind": "histogram", "table": "people", "attribute": "sex"}
    told = explorer.explain({**counted, "cost": ACCURACY})
    assert not told["free"]
    everybody = {
        "kind": "ranges",
        "table": "people",
        "attribute": "age",
        "ranges": [[0, 80]],
        "cost": ACCURACY,
    }
    answer = explorer.ask(everybody)
    assert answer.values.tolist() == [500.0]
    assert answer.epsilon == 0
    assert "Exact and free" in answer.promise
    assert explorer.ledger.history()[0].epsilon == 0


@pytest.mark.long
def test_costs_fall_with_the_threshold(explorer):
    rows = list(explorer.trade_off(AGES, [1, 5, 40]))
    costs = [one["cost"] for one in rows]
    assert [one["theta"] for one in rows] == [None, 40, 5, 1]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > 3 * costs[-1]


def test_a_budget_buys_an_accuracy_that_costs_no_more(explorer):
    spending = {**AGES, "cost": {"epsilon": 0.4}}
    bought = explorer.accuracy(spending, beta=0.05)
    told = explorer.explain({**AGES, "cost": {"alpha": bought["alpha"], "beta": 0.05}})
    assert told["cost"] <= 0.4 * 1.002
    with pytest.raises(QuestionError, match="needs a budget"):
        explorer.accuracy(AGES)
    with pytest.raises(QuestionError, match="counts epsilon"):
        explorer.accuracy({**AGES, "cost": {"rho": 0.4}})


def test_policies_and_budget_are_frozen_by_the_first_charge(explorer):
    dear = explorer.plan(AGES).cost
    explorer.set_policies({"age": {"kind": "threshold", "theta": 2}})
    assert explorer.plan(AGES).cost < dear
    explorer.set_policies({})
    assert explorer.plan(AGES).cost == dear
    explorer.set_budget(4)
    explorer.ask(AGES)
    with pytest.raises(LedgerError, match="frozen"):
        explorer.set_policies({})
    with pytest.raises(LedgerError, match="frozen"):
        explorer.set_budget(9)


def test_allotments_bind(explorer):
    explorer.ledger.allot("ann", 0.01)
    with pytest.raises(BudgetError, match="remains; nothing was charged"):
        explorer.ask(AGES, analyst="ann")
    with pytest.raises(BudgetError, match="no allotment"):
        explorer.ask(AGES, analyst="eve")
    assert explorer.ledger.spent == 0
    assert explorer.remaining("ann") == Fraction(1, 100)
    assert explorer.remaining("eve") == 0


def test_what_cannot_be_paid_never_reaches_the_database(explorer, monkeypatch):
    # Else refusals could be timed for nothing: counting takes as long as records say.
    monkeypatch.setattr(explorer.engine, "counts", lambda _: pytest.fail("counted"))
    explorer.ledger.allot("ann", 0.01)
    for analyst in ("ann", "eve"):
        with pytest.raises(BudgetError, match="nothing was charged"):
            explorer.ask(AGES, analyst=analyst)
    with pytest.raises(BudgetError, match="costs eps = 6, and 5 remains"):
        explorer.ask({**AGES, "cost": {"epsilon": 6}})


def test_what_was_paid_for_is_answered_to_those_who_cannot_pay(explorer):
    first = explorer.ask({**AGES, "cost": {"epsilon": 5}})
    again = explorer.ask({**AGES, "cost": {"epsilon": 5}}, analyst="eve")
    assert again.replayed
    assert again.values.tolist() == first.values.tolist()


def test_a_database_that_disappears_costs_nothing(explorer, monkeypatch):
    def gone(*_):
        raise OSError("secret: 42 records of ann")

    monkeypatch.setattr(explorer.engine.backend, "table", gone)
    with pytest.raises(EngineError) as caught:
        explorer.ask(AGES)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert explorer.ledger.history() == []


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), "much", None])
def test_a_preview_of_no_budget_is_refused_in_our_words(explorer, epsilon):
    """Hole 9 of issue 32: another library's validation error was shown."""
    with pytest.raises(QuestionError) as caught:
        explorer.preview(AGES, epsilon=epsilon)
    assert "pydantic" not in str(caught.value)


def test_certificates_are_named_by_every_digit_of_their_terms(explorer):
    """Hole 9 of issue 32: asked at .2500001, one got the stored one of .25."""
    ask = {**AGES, "kind": "histogram", "cost": {"epsilon": 1}}
    request = explorer.ask(ask).request
    found = [
        explorer.certify(request, **terms)
        for terms in (
            {"epsilon": 0.25},
            {"epsilon": 0.2500001},
            {"epsilon": 0.25, "fraction": 0.9500001},
            {"epsilon": 0.25, "confidence": 0.9500001},
        )
    ]
    assert explorer.ledger.spent == 2 + Fraction(1, 10**7)
    assert len({one.to_bytes() for one in found}) == 4
    again = explorer.certify(request, epsilon=0.2500001)
    assert again.to_bytes() == found[1].to_bytes()
    names = [one.request for one in explorer.history()]
    assert names[1] == f"c-{request}/epsilon = 0.25/0.95/0.95"
    assert len(set(names)) == 5


def test_previews_are_neither_charged_nor_kept(explorer):
    seen = explorer.preview(AGES, epsilon=0.5, policies={"age": {"kind": "line"}})
    assert len(seen["truth"]) == 80
    assert seen["private"]["request"] == "preview"
    assert explorer.ledger.history() == []
    rest = {"table": "people", "cost": ACCURACY}
    crossed = {"kind": "histogram2d", "attributes": ["age", "sex"], **rest}
    assert truth(explorer, crossed).shape == (80, 2)
    ranges = {"kind": "ranges", "attribute": "age", "ranges": [[0, 5], [3, 9]], **rest}
    assert truth(explorer, ranges).shape == (2,)


def test_every_kind_of_question_is_answered(explorer):
    rest = {"table": "people", "cost": {"epsilon": 0.1}}
    kinds = [
        ({"kind": "histogram", "attribute": "age", "width": 7}, (12,)),
        ({"kind": "quantiles", "attribute": "age"}, (3,)),
        ({"kind": "histogram2d", "attributes": ["age", "sex"]}, (80, 2)),
        ({"kind": "marginal", "attributes": ["sex"]}, (2,)),
        ({"kind": "ranges", "attribute": "age", "ranges": [[0, 5], [3, 9]]}, (2,)),
        (
            {
                "kind": "histogram",
                "attribute": "age",
                "filters": [{"attribute": "sex", "values": ["f"]}],
            },
            (80,),
        ),
    ]
    for asked, shape in kinds:
        answer = explorer.ask({**asked, **rest})
        assert answer.values.shape == shape
        assert np.isfinite(answer.values).all()
        plain = answer.to_dict()
        assert plain["epsilon"] == 0.1


@pytest.mark.parametrize("scope", ["simultaneous", "per_query"])
def test_quantiles_promise_running_totals_and_no_distance_in_years(explorer, scope):
    cost = {"alpha": 40, "beta": 0.05, "scope": scope}
    promise = explorer.ask({**AGES, "kind": "quantiles", "cost": cost}).promise
    assert promise.startswith("Intervals are of age: they follow from running totals")
    assert "numbers are within" not in promise.lower()
    assert ("0.05 each." in promise) == (scope == "per_query")


def test_quantiles_lie_within_their_intervals_of_the_truth(explorer):
    asked = {**AGES, "kind": "quantiles", "q": [0.1, 0.5, 0.9]}
    # So that secure noise does not leave the intervals.
    answer = explorer.ask({**asked, "cost": {"alpha": 25, "beta": 1e-9}})
    totals = truth(explorer, AGES)
    for part, (low, high) in zip(asked["q"], answer.intervals, strict=True):
        place = np.searchsorted(totals, part * totals[-1])
        assert low <= place + 1
        assert high >= place


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"attribute": "height"}, CatalogError, "no attribute"),
        ({"cost": {"epsilon": 1, "mechanism": "magic"}}, QuestionError, "no mechanism"),
        ({"cost": {"epsilon": 1, "mechanism": "kmeans"}}, QuestionError, "cannot"),
        ({"cost": {"alpha": 1e-9}}, BudgetError, "nothing was charged"),
    ],
    ids=["attribute", "mechanism", "kmeans", "alpha"],
)
def test_bad_questions_cost_nothing(explorer, change, error, words):
    with pytest.raises(error, match=words):
        explorer.ask({**AGES, **change})
    assert explorer.ledger.history() == []


def test_a_ledger_knows_its_table(engine, tmp_path):
    path = tmp_path / "ledger"
    Explorer(TABLE, engine, epsilon=1, ledger=path).ledger.close()
    again = Explorer(None, engine, ledger=path)
    assert again.table == TABLE
    again.ledger.close()
    other = TABLE.with_policies({})
    other = TableSpec(**{**dict(other), "description": "another"})
    with pytest.raises(CatalogError, match="another description"):
        Explorer(other, engine, ledger=path)


def test_one_column_is_not_two_attributes_under_policies():
    ages = TABLE.attributes[0]
    fine = {**ages.model_dump(exclude_none=True), "name": "fine", "column": "age"}
    twice = {"name": "people", "attributes": [ages, fine]}
    # Whole records are secret: both attributes may change at once.
    assert TableSpec(**twice).policy().has_moves
    for name in ("age", "fine"):
        with pytest.raises(ValueError, match="two attributes read the column 'age'"):
            TableSpec(**twice, policies={name: {"kind": "line"}})


def test_a_column_that_may_hold_null_is_refused_by_its_schema(engine):
    strict = TableSpec(
        name="people",
        attributes=[{"name": "sex", "levels": ["f", "m"], "missing": "none"}],
    )
    with pytest.raises(CatalogError, match="may hold NULL by its schema"):
        Explorer(strict, engine, epsilon=1)


def test_a_mechanism_from_outside_is_asked_for_where_the_curator_vouches(engine):
    from examples.outside_mechanism.equal_widths import EqualWidths

    cost = {"epsilon": 1, "mechanism": "equal_widths"}
    asked = {"kind": "histogram", "table": "people", "attribute": "age", "cost": cost}
    plain = Explorer(TABLE, engine, epsilon=5, samples=0)
    with pytest.raises(QuestionError, match="there is no mechanism 'equal_widths'"):
        plain.ask(asked)
    vouching = Explorer(TABLE, engine, epsilon=5, samples=0, vouched=[EqualWidths])
    vouching.ask(asked)
    (charged,) = vouching.ledger.history()
    assert charged.mechanism == "equal_widths"
    assert plain.ledger.spent == 0


def test_a_vouched_mechanism_that_fails_is_named_and_nothing_is_charged(engine):
    from examples.outside_mechanism.equal_widths import EqualWidths

    class Fails(EqualWidths):
        name = "fails"

        def __init__(self, policy, workload, **budget):
            raise TypeError("no widths")

    class FailsLater(EqualWidths):
        name = "fails_later"

        def _run(self, private):
            raise KeyError("no widths")

    vouching = Explorer(
        TABLE, engine, epsilon=5, samples=0, vouched=[Fails, FailsLater]
    )
    asked = {"kind": "histogram", "table": "people", "attribute": "age"}
    for name in ("fails", "fails_later"):
        with pytest.raises(PlugInError, match=r"Fails.*, defined outside"):
            vouching.ask({**asked, "cost": {"epsilon": 1, "mechanism": name}})
    assert vouching.ledger.spent == 0


def test_a_rehearsal_draws_a_curve_of_either_kind_over_made_up_cells(monkeypatch):
    found = []

    def drawn(self, table, asked):
        found.append((table.name, asked.kind))
        return iter(())

    monkeypatch.setattr(planning.Planner, "trade_off", drawn)
    planning.rehearse()
    assert found == [("small", "histogram"), ("small", "cumulative")]


def test_a_question_that_fails_is_not_asked_of_the_database_again(engine):
    asked = []

    def fail(backend):
        asked.append(backend)
        raise ValueError

    with pytest.raises(EngineError, match="the answer was lost"):
        engine._use("the answer was lost", fail)
    assert len(asked) == 1
