"""Missing values are asked for and filtered by: a row that is paid for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from blowfish_fast.apps.explorer import Explorer
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.apps.explorer.layout import lay_out
from blowfish_fast.apps.explorer.past_answers import log_family
from blowfish_fast.apps.explorer.questions import read_question
from blowfish_fast.apps.explorer.same_question import canonical, request_name
from blowfish_fast.errors import QuestionError

ibis = pytest.importorskip("ibis", reason="pip install 'blowfish_fast[sql]'")

AGE = {"name": "age", "cells": {"start": 0, "stop": 60, "width": 10}, "outside": "cell"}
WARD = {"name": "ward", "levels": ["a", "b"]}
DAY = {"name": "day", "dates": ["2024-01-01", "2024-02-01", "2024-03-01"]}
SEX = {"name": "sex", "levels": ["f", "m"], "missing": "none"}
TABLE = as_table({"name": "people", "attributes": [AGE, WARD, DAY, SEX]})
AGES = [5, 15, 15, 25, 35, 45, 55, None, None, 77]
WARDS = ["a", "a", "b", None, "b", "zz", "a", "b", None, "a"]
DAYS = ["2024-01-05", None, "2024-02-02"]


def records():
    return list(itertools.islice(zip(AGES * 3, WARDS * 3, DAYS * 10, strict=True), 30))


@pytest.fixture(scope="module")
def explorer():
    database = ibis.duckdb.connect()
    database.raw_sql(
        "create table people (age double, ward text, day date, sex text not null)"
    )
    for age, ward, day in records():
        database.con.execute(
            "insert into people values (?, ?, ?, 'f')", [age, ward, day]
        )
    return Explorer(TABLE, database, epsilon=1000)


def asked(kind="histogram", **more):
    if kind == "histogram":
        more.setdefault("attribute", "age")
    cost = more.pop("cost", {"epsilon": 1})
    return {"kind": kind, "table": "people", "cost": cost, **more}


def truth(explorer, question):
    return explorer.preview(question, epsilon=1)["truth"]


def test_a_row_of_missing_values_comes_last(explorer):
    question = asked(missing=True, width=2)
    answer = explorer.ask({**question, "cost": {"alpha": 5}})
    assert answer.axes[0]["missing"]
    assert answer.axes[0]["bins"] == 4 == answer.values.size
    assert len(answer.axes[0]["edges"]) == 4
    assert truth(explorer, question) == [9, 6, 6, 6]
    filtered = asked(missing=True, filters=[{"attribute": "age", "low": 20}])
    # What is missing fails a stretch, unless it is asked for too.
    assert truth(explorer, filtered) == [3, 3, 3, 3]
    both = {"attribute": "age", "low": 20, "missing": True}
    assert truth(explorer, asked(missing=True, filters=[both])) == [3, 3, 3, 3, 6]


def test_tables_have_a_row_for_each_attribute(explorer):
    question = asked("marginal", attributes=["ward", "day", "sex"], missing=True)
    rows = np.array(truth(explorer, question))
    assert rows.shape == (3, 3, 2)
    people = records()
    for ward, day in itertools.product(range(3), range(3)):
        same = [
            1
            for _, in_ward, on_day in people
            if in_ward == ["a", "b", None][ward]
            and on_day == ["2024-01-05", "2024-02-02", None][day]
        ]
        assert rows[ward, day].tolist() == [len(same), 0]


@pytest.mark.parametrize(
    ("condition", "passes"),
    [
        ({"attribute": "age", "missing": True}, lambda one: one[0] is None),
        ({"attribute": "age", "missing": False}, lambda one: one[0] is not None),
        (
            {"attribute": "age", "low": 10, "high": 30, "missing": True},
            lambda one: one[0] is None or 10 <= one[0] < 30,
        ),
        ({"attribute": "day", "missing": True}, lambda one: one[2] is None),
        (
            {"attribute": "ward", "values": ["b"], "missing": True},
            lambda one: one[1] in ("b", None),
        ),
        ({"attribute": "ward", "missing": False}, lambda one: one[1] is not None),
    ],
    ids=lambda value: None if callable(value) else str(value),
)
def test_filters_let_missing_values_pass_as_stated(explorer, condition, passes):
    counted = truth(explorer, asked(attribute="sex", filters=[condition]))
    assert counted == [sum(map(passes, records())), 0]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"attribute": "sex", "missing": True}, "no value can be missing here"),
        ({"filters": [{"attribute": "sex", "missing": True}]}, "can be missing by its"),
        ({"filters": [{"attribute": "age", "missing": True}]}, "only missing values"),
        (
            {"filters": [{"attribute": "ward", "values": ["a"], "missing": False}]},
            "leave missing away",
        ),
        ({"kind": "cumulative", "missing": True}, "no place among running totals"),
        (
            {
                "kind": "rectangles",
                "attributes": ["age", "day"],
                "rectangles": [[[0, 10], ["2024-01-01", "2024-02-01"]]],
                "missing": True,
            },
            "no place in a box",
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_with_the_rule(explorer, more, words):
    question = asked(**{"attribute": "age", **more})
    if "attributes" in more:
        del question["attribute"]
    with pytest.raises(QuestionError, match=words):
        explorer.plan(question)


def test_names_of_questions_that_state_nothing_stay_as_they_were():
    plain = read_question(asked(filters=[{"attribute": "ward", "values": ["a"]}]))
    assert "missing" not in plain.model_dump_json()
    table = read_question(asked("marginal", attributes=["age", "ward"]))
    assert "missing" not in table.model_dump_json()
    turned = read_question(asked("marginal", attributes=["age"], missing=True))
    stated = read_question(asked(missing=True))
    one, other = (canonical(TABLE, question) for question in (turned, stated))
    assert request_name(one) == request_name(other)
    assert request_name(one) != request_name(canonical(TABLE, read_question(asked())))


def test_a_row_of_missing_values_is_read_by_filters_that_ask_for_them(explorer):
    rows = asked("marginal", attributes=["age", "ward"], missing=True)
    stored = explorer.ask({**rows, "cost": {"alpha": 3}})
    missing = asked(
        attribute="ward",
        filters=[{"attribute": "age", "missing": True}],
        cost={"alpha": 3},
    )
    answer = explorer.ask(missing)
    assert answer.sources == (stored.request,)
    assert answer.raw == pytest.approx(stored.raw[-1, :2])


def test_more_questions_can_be_stated_where_values_can_be_missing():
    # Six bins: 21 stretches, each with and without what is missing; outside, missing,
    # what is there, and everything.
    ages = read_question(asked())
    assert np.exp(log_family(lay_out(TABLE, ages))) == pytest.approx(2 * 21 + 2 + 1 + 1)
