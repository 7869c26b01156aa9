"""Several questions in one list: charged together or not at all, each stored alone."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast.accounting.journal import Journal
from blowfish_fast.apps.explorer import Explorer
from blowfish_fast.apps.explorer.batches import MOST_QUESTIONS, FailedAnswer
from blowfish_fast.errors import (
    BudgetError,
    FailedDrawError,
    LedgerError,
)
from blowfish_fast.mechanisms import Mechanism

pytest.importorskip("ibis", reason="pip install 'blowfish_fast[sql]'")

AGE = {
    "name": "age",
    "cells": {"start": 0, "stop": 80, "width": 1},
    "missing": "none",
}
TABLE = {"name": "people", "attributes": [AGE, {"name": "sex", "levels": ["f", "m"]}]}
ASKED = {"kind": "histogram", "table": "people", "cost": {"epsilon": 0.25}}
AGES, SEXES = {**ASKED, "attribute": "age"}, {**ASKED, "attribute": "sex"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    import duckdb

    from blowfish_fast.apps.explorer import Database

    path = tmp_path_factory.mktemp("data") / "people.duckdb"
    rows = "SELECT i % 80 AS age, i % 7 AS who, 'f' AS sex FROM range(500) AS t(i)"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE people AS {rows}")
        connection.execute("ALTER TABLE people ALTER age SET NOT NULL")
    return Database.connect(path)


@pytest.fixture
def explorer(engine, tmp_path):
    made = Explorer(TABLE, engine, epsilon=2, ledger=tmp_path / "ledger", samples=0)
    yield made
    made.ledger.close()


def test_a_batch_is_paid_at_once_and_each_answer_comes_back_alone(explorer):
    answers = explorer.ask([AGES, SEXES])
    assert [answer.values.shape for answer in answers] == [(80,), (2,)]
    assert not any(answer.replayed for answer in answers)
    assert explorer.ledger.spent == Fraction(1, 2)
    for question, answer in zip([AGES, SEXES], answers, strict=True):
        again = explorer.ask(question)
        assert again.replayed
        assert (again.values == answer.values).all()
        assert again.request == answer.request
        assert again.as_of == answer.as_of
    replayed = explorer.ask([SEXES, AGES])
    assert [answer.replayed for answer in replayed] == [True, True]
    assert (replayed[1].values == answers[0].values).all()
    assert explorer.ledger.spent == Fraction(1, 2)


def test_a_batch_asks_for_two_commits(explorer, monkeypatch):
    commits = []

    def watch(name):
        right = getattr(Journal, name)

        def counted(journal, *given):
            commits.append(name)
            return right(journal, *given)

        monkeypatch.setattr(Journal, name, counted)

    for name in ("reserve", "reserve_together", "store_together"):
        watch(name)
    names = [f"{at}" for at in range(12)]
    explorer.ask([AGES, SEXES] * 2, request=names[:4])
    assert commits == ["reserve_together", "store_together"]


def test_names_of_their_own_draw_the_same_question_anew(explorer):
    first, second, third = explorer.ask([AGES] * 3, request=["a", "b", None])
    assert (first.values != second.values).any()
    assert third.request != first.request
    assert explorer.ledger.spent == Fraction(3, 4)
    assert (explorer.ask(AGES, request="b").values == second.values).all()


def test_the_same_question_twice_is_one_charge(explorer):
    turned = {**ASKED, "kind": "histogram2d", "attributes": ["sex", "age"]}
    straight = {**turned, "attributes": ["age", "sex"]}
    first, second = explorer.ask([turned, straight])
    assert (first.replayed, second.replayed) == (False, True)
    assert first.values.shape == (2, 80)
    assert (second.values == first.values.T).all()
    assert explorer.ledger.spent == Fraction(1, 4)


def test_what_cannot_be_paid_in_all_is_refused_before_anything_is_counted(
    explorer, monkeypatch
):
    monkeypatch.setattr(explorer.engine, "counts", None)
    dear = {**AGES, "cost": {"epsilon": 1.5}}
    with pytest.raises(BudgetError, match="the 2 answers cost eps = 3, and 2 remains"):
        explorer.ask([dear, {**SEXES, "cost": {"epsilon": 1.5}}])
    assert explorer.ledger.history() == []


@pytest.mark.parametrize(
    ("questions", "names", "words"),
    [
        ([], None, "1 to"),
        ([AGES] * (MOST_QUESTIONS + 1), None, "several batches"),
        ([AGES, SEXES], ["a"], "a name for each question"),
        ([AGES, SEXES], "ab", "a name for each question"),
        ([AGES, {**SEXES, "kind": "guess"}], None, ""),
        ([AGES, {**SEXES, "attribute": "nose"}], None, "nose"),
    ],
)
def test_what_is_malformed_refuses_all(explorer, questions, names, words):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        explorer.ask(questions, request=names)
    assert words in str(caught.value)
    assert explorer.ledger.history() == []


def test_one_name_stands_for_one_question(explorer):
    with pytest.raises(LedgerError, match="another question"):
        explorer.ask([AGES, SEXES], request=["a", "a"])
    explorer.ask(AGES, request="a")
    with pytest.raises(LedgerError, match="another question"):
        explorer.ask([AGES, SEXES], request=["b", "a"])
    assert len(explorer.ledger.history()) == 1


def test_what_stored_answers_tell_is_read_and_only_the_rest_is_paid(explorer):
    fine = explorer.ask({**AGES, "cost": {"alpha": 40}})
    spent = explorer.ledger.spent
    wide = {**AGES, "width": 4, "cost": {"alpha": 400}}
    first, _, third = explorer.ask([wide, SEXES, wide])
    assert first.sources == third.sources == (fine.request,)
    assert (first.replayed, third.replayed) == (False, True)
    assert explorer.ledger.spent == spent + Fraction(1, 4)
    # A second time it comes from the log, beside a question that is new.
    again, _ = explorer.ask([wide, {**SEXES, "cost": {"epsilon": 0.125}}])
    assert again.replayed
    assert (again.values == first.values).all()


def test_a_reading_that_somebody_paid_for_meanwhile_is_that_answer(
    explorer, monkeypatch
):
    explorer.ask({**AGES, "cost": {"alpha": 40}})
    wide = {**AGES, "width": 4, "cost": {"alpha": 400}}
    read = explorer._sufficient_reading

    def late(form, analyst):
        reading = read(form, analyst)
        monkeypatch.setattr(explorer, "_sufficient_reading", lambda *_: None)
        explorer.ask(wide)
        return reading

    monkeypatch.setattr(explorer, "_sufficient_reading", late)
    (answer,) = explorer.ask([wide])
    assert answer.replayed
    assert not answer.sources


def test_an_allotment_pays_and_receipts_are_noted(explorer):
    explorer.ledger.allot("ann", 1)
    explorer.ledger.allot("bob", "0.25")
    paid = explorer.ask([AGES, SEXES], analyst="ann")
    assert explorer.ledger.allotments()["ann"].spent == Fraction(1, 2)
    explorer.ask([AGES, SEXES], analyst="bob")
    assert explorer.may_open(paid[0].request, "bob")
    assert explorer.ledger.allotments()["bob"].spent == 0
    fresh = [{**each, "cost": {"epsilon": 0.2}} for each in (AGES, SEXES)]
    with pytest.raises(BudgetError, match=r"cost eps = 0.4, and 0.25 remains"):
        explorer.ask(fresh, analyst="bob")
    with pytest.raises(BudgetError, match="'eve' has no allotment"):
        explorer.ask(fresh, analyst="eve")


def test_what_somebody_paid_for_meanwhile_is_not_counted_twice(explorer, monkeypatch):
    explorer.ask({**AGES, "cost": {"epsilon": 1.5}}, request="most")
    remaining = explorer.remaining

    def late(analyst):
        monkeypatch.setattr(explorer, "remaining", remaining)
        explorer.ask(AGES)
        return remaining(analyst)

    monkeypatch.setattr(explorer, "remaining", late)
    explorer.ask([AGES, SEXES])
    assert explorer.ledger.remaining == 0


def test_a_closed_table_replays_and_charges_nothing(explorer):
    explorer.ask(AGES)
    explorer.closed = True
    assert explorer.ask([AGES])[0].replayed
    with pytest.raises(LedgerError, match="was closed"):
        explorer.ask([AGES, SEXES])
    assert len(explorer.ledger.history()) == 1


def test_a_failed_draw_is_the_outcome_of_one_question(explorer, monkeypatch):
    drawn, calls = Mechanism._drawn, []

    def failing(self, *arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("depends on the draw")
        return drawn(self, *arguments, **options)

    monkeypatch.setattr(Mechanism, "_drawn", failing)
    first, second = explorer.outcomes([AGES, SEXES])
    assert not isinstance(first, FailedAnswer)
    assert isinstance(second, FailedAnswer)
    assert not second.replayed
    with pytest.raises(FailedDrawError):
        explorer.ask([AGES, SEXES])
    assert (explorer.ask(AGES).values == first.values).all()
    assert explorer.outcomes([SEXES])[0].replayed
    assert explorer.ledger.spent == Fraction(1, 2)


def test_a_crash_between_charge_and_store_is_finished_by_a_retry(explorer, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "store_together", None)
        with pytest.raises(TypeError):
            explorer.ask([AGES, SEXES])
    assert [entry.state for entry in explorer.history()] == ["reserved"] * 2
    alone = explorer.ask(SEXES)
    answers = explorer.ask([AGES, SEXES])
    assert np.array_equal(answers[1].values, alone.values)
    assert explorer.ledger.spent == Fraction(1, 2)
    assert [entry.state for entry in explorer.history()] == ["stored"] * 2


def test_people_of_a_population_pay_for_a_batch(engine):
    from blowfish_fast.accounting.population import Population
    from blowfish_fast.apps.explorer import TableSpec

    spec = TableSpec(**TABLE, person="who", at_most=2)
    people = Population("all", tables=[spec], person="who", epsilon=2)
    explorer = Explorer(spec, engine, ledger=people, samples=0)
    answers = explorer.ask([AGES, SEXES])
    assert len(answers) == 2
    assert people.spent == Fraction(1, 2)
    assert [entry.note["tables"] for entry in explorer.history()] == [["people"]] * 2
