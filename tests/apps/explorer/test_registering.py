"""Questions that are stated in advance are told more narrowly: together, and later."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from blowfish_fast.accounting.composition import EPSILON
from blowfish_fast.apps.explorer import Explorer, past_answers
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.apps.explorer.layout import lay_out
from blowfish_fast.apps.explorer.past_answers import PastRelease, bins_of, rows_over
from blowfish_fast.apps.explorer.planning import Planner
from blowfish_fast.apps.explorer.questions import Accuracy, read_question
from blowfish_fast.apps.explorer.registered.registrations import (
    Registered,
    Registrations,
)
from blowfish_fast.errors import QuestionError

ibis = pytest.importorskip("ibis", reason="pip install 'blowfish_fast[sql]'")

AGE = {"name": "age", "cells": {"start": 0, "stop": 60, "width": 5}}
WARD = {"name": "ward", "levels": ["a", "b", "c"]}
PEOPLE = {"name": "people", "attributes": [AGE, WARD]}
CELLS = 30
DAY = {
    "name": "day",
    "cells": {"start": 0, "stop": CELLS, "width": 1},
    "missing": "none",
    "outside": "clamp",
}
LINE = {
    "name": "line",
    "attributes": [DAY],
    "policies": {"day": {"kind": "threshold", "theta": 1}},
}
PLANNER = Planner(EPSILON, 0)


def asked(kind="histogram", alpha=40, **more):
    cost = {"alpha": alpha}
    return {"kind": kind, "table": "people", "attribute": "age", "cost": cost, **more}


def line_question(kind, **more):
    question = {"kind": kind, "table": "line", "attribute": "day", **more}
    return read_question({**question, "cost": {"alpha": 30}})


@pytest.fixture(scope="module")
def line():
    """Running totals of a line, and a question for all of its stretches."""
    table = as_table(LINE)
    plan = PLANNER.plan(table, line_question("cumulative"))
    pairs = [list(pair) for pair in itertools.combinations(range(CELLS + 1), 2)]
    return plan, lay_out(table, line_question("ranges", ranges=pairs))


def errors_of(line, seeds):
    """Yield how far off all stretches are, draw after draw."""
    plan, stretches = line
    zeros = np.zeros(plan.policy.domain.shape, dtype=np.int64)
    rows = rows_over(plan.layout, stretches)
    for seed in seeds:
        release = plan.mechanism.release(zeros, rng=seed)
        linear = release.estimate if release.unfitted is None else release.unfitted
        yield np.abs(rows @ linear.reshape(-1))


@pytest.fixture(scope="module")
def database():
    made = ibis.duckdb.connect()
    made.raw_sql(
        "create table people as select (i * 7) % 60 as age, "
        "['a', 'b', 'c'][1 + (i * 5) % 3] as ward from range(900) as t(i)"
    )
    return made


def exploring(database, table=PEOPLE, ledger=None):
    made = Explorer(table, database, ledger=ledger, epsilon=50, samples=0)
    # Plans depend on no records: all explorers of this file share them.
    made.planner = PLANNER
    return made


@pytest.mark.long
def test_registered_stretches_hold_together_and_no_one_of_them_by_itself(line):
    """Every tenth stretch is registered; the analyst reads the one that stands out."""
    plan, stretches = line
    trials, beta = 150, 0.2
    pairs = stretches.question.ranges[::10]
    few = lay_out(as_table(LINE), line_question("ranges", ranges=pairs))
    zeros = np.zeros(plan.policy.domain.shape, dtype=np.int64)
    release = plan.mechanism.release(zeros, rng=0)
    cost = Accuracy(alpha=30, beta=beta)

    def widths(numbers):
        questions = frozenset({bins_of(few.question)})
        source = PastRelease(
            None, plan.layout, release, registered=Registered(questions, numbers)
        )
        return source.read(few, cost, 1).half_widths

    promised = widths(len(pairs))
    anything = PastRelease(None, plan.layout, release).read(few, cost, 1).half_widths
    assert (promised < anything).all()
    # Planted: each registered number is taken for one that was fixed by itself.
    planted = widths(1)
    errors = [error[::10] for error in errors_of(line, range(trials))]
    sigma = np.sqrt(trials * beta * (1 - beta))
    assert sum((error > promised).any() for error in errors) <= trials * beta
    missed = sum((error > planted).any() for error in errors)
    assert missed > trials * beta + 6 * sigma


@pytest.mark.long
def test_what_registered_questions_take_of_beta_others_do_not_have(line):
    plan, stretches = line
    zeros = np.zeros(plan.policy.domain.shape, dtype=np.int64)
    release = plan.mechanism.release(zeros, rng=0)
    new = lay_out(as_table(LINE), line_question("histogram", width=3))
    other = Registered(frozenset({bins_of(stretches.question)}), 10**3)
    same = Registered(frozenset({bins_of(new.question)}), 10)
    rows = rows_over(plan.layout, new)
    for level in (None, 0, 2):
        plain, beside, among = (
            PastRelease(
                None, plan.layout, release, level, level == 2, registered=registered
            )._noise(rows, Accuracy(alpha=30), 1, bins_of(new.question))
            for registered in (Registered(), other, same)
        )
        assert (beside > plain).all()
        assert (among < beside).all()
        # Shares of beta add up to all of it.
        parts = PastRelease(None, plan.layout, release, level, registered=other)
        left = math.exp(parts._levels(1) - parts._shared(1))
        assert left + past_answers.REGISTERED_SHARE == pytest.approx(1.0)


def test_registered_questions_are_told_more_narrowly_by_what_is_drawn_later(database):
    table = {**PEOPLE, "policies": {"age": {"kind": "threshold", "theta": 1}}}
    explorer, plain = exploring(database, table), exploring(database, table)
    follow_up = asked("ranges", ranges=[[20, 45]])
    early = explorer.ask(asked("cumulative"))
    plain.ask(asked("cumulative"))
    known = explorer.known(follow_up).alpha
    assert explorer.register([follow_up, asked(width=2)]) == 1 + 6
    assert explorer.ledger.spent == early.epsilon
    # What was drawn before knows nothing of it.
    assert explorer.known(follow_up).alpha == known
    for asking in (explorer, plain):
        asking.ask(asked("cumulative", alpha=8), request="again")
    assert plain.known(follow_up).alpha > explorer.known(follow_up).alpha
    assert explorer.known(follow_up).holds == "any"
    assert explorer.ask(follow_up).holds == "any"
    assert explorer.ledger.verify()
    # Registered later, for what is drawn later still.
    again = explorer.known(follow_up).alpha
    explorer.register([asked("cumulative", width=3)], analyst="bob")
    assert explorer.known(follow_up).alpha == again


def test_whose_registrations_count_is_the_rule_of_the_table(database):
    follow_up = asked("ranges", ranges=[[20, 45]])
    for share in ("own", "all"):
        explorer = exploring(database, {**PEOPLE, "share": share})
        for analyst in ("ann", "bob"):
            explorer.ledger.allot(analyst, 20)
        explorer.register([follow_up], analyst="bob")
        answer = explorer.ask(asked("cumulative"), analyst="ann")
        (pair,) = explorer._past.readable(explorer.table, "ann")
        source = explorer._past.source(explorer.table, pair[0])
        assert source.entry.request == answer.request
        assert source.registered.numbers == (1 if share == "all" else 0)


def test_what_is_no_count_is_not_registered_and_names_are_taken_once(
    database, tmp_path
):
    path = tmp_path / "people.ledger"
    explorer = exploring(database, ledger=path)
    with pytest.raises(QuestionError, match="of the kind mean"):
        explorer.register([asked("mean", attribute="age", by="ward", at_least=10)])
    for number in (0, 1001):
        with pytest.raises(QuestionError, match="1 to 1,000 questions at a time"):
            explorer.register([asked()] * number)
    other = Explorer(None, database, ledger=path)
    first = explorer._past.registrations
    # Both think that theirs is the first, as two processes may.
    seen = first._all("people")
    other.register([asked("cumulative")], analyst="bob")
    lists = iter([seen])
    first._all = lambda table: next(lists, Registrations._all(first, table))
    explorer.register([asked()], analyst="ann")
    noted = [entry.analyst for entry in Registrations(explorer.ledger)._all("people")]
    assert noted == ["bob", "ann"]
    assert explorer.ledger.spent == 0


def test_the_newest_answer_stands_beside_the_shown_one(database):
    explorer = exploring(database)
    question = asked("ranges", ranges=[[20, 45]])
    with pytest.raises(QuestionError, match="leave request out"):
        explorer.ask(question, request="mine", newest=True)
    with pytest.raises(QuestionError, match="of one question"):
        explorer.ask([question], newest=True)
    # Nothing was shown yet: an answer like any other.
    shown = explorer.ask(question, newest=True)
    assert (shown.holds, shown.cost) == ("fresh", float(explorer.ledger.spent))
    assert explorer.ask(question, newest=True).request == shown.request
    finer = explorer.ask(asked("cumulative", alpha=4))
    spent = explorer.ledger.spent
    newest = explorer.ask(question, newest=True)
    assert newest.request != shown.request
    assert newest.sources == (finer.request,)
    assert (newest.holds, newest.cost, newest.replayed) == ("any", 0.0, False)
    assert np.ptp(newest.intervals) < np.ptp(shown.intervals)
    assert explorer.ledger.spent == spent
    # What was shown never changes; the newer one is kept under its own name.
    assert explorer.ask(question).values.tolist() == shown.values.tolist()
    again = explorer.ask(question, newest=True)
    assert again.replayed
    assert again.values.tolist() == newest.values.tolist()
    kept = explorer.answered(newest.request)
    assert kept.values.tolist() == newest.values.tolist()
    assert explorer.ledger.verify()


def test_what_is_no_sharper_by_now_is_the_shown_answer(database):
    explorer = exploring(database)
    totals = explorer.ask(asked("cumulative", alpha=8))
    wide = asked("ranges", ranges=[[20, 45]], alpha=200)
    shown = explorer.ask(wide)
    assert shown.sources == (totals.request,)
    explorer.ask(asked(alpha=190, width=3), request="rough")
    assert explorer.ask(wide, newest=True).request == shown.request
    # Whoever states a budget wants fresh noise.
    stated = {**wide, "cost": {"epsilon": 0.001}}
    rough = explorer.ask(stated)
    assert explorer.ask(stated, newest=True).request == rough.request
