"""SQL stands for exactly the questions that can be answered; the rest is refused."""

from __future__ import annotations

import pytest

from blowfish_fast.apps.explorer import Explorer
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.errors import CatalogError, QuestionError

ibis = pytest.importorskip("ibis", reason="pip install 'blowfish_fast[sql]'")

from blowfish_fast.apps.explorer import sql_questions  # noqa: E402
from blowfish_fast.apps.explorer.in_sql import nearest  # noqa: E402
from blowfish_fast.apps.explorer.sql_questions import (  # noqa: E402
    MOST_CHARACTERS,
    question_from_sql,
)

AGE = {"name": "age", "cells": {"start": 0, "stop": 100, "width": 1}}
COST = {"name": "cost", "cells": {"start": 0, "stop": 1000, "width": 10}}
WARD = {"name": "ward", "levels": ["a", "b", "Bern, Stadt"]}
DAY = {"name": "day", "dates": ["2024-01-01", "2024-02-01", "2024-03-01"]}
ROOM = {"name": "room", "levels": [1, 2, 3]}
TABLE = as_table(
    {"name": "visits", "attributes": [AGE, COST, WARD, DAY, ROOM], "records": 900}
)


def read(text, stepped=("age", "day"), **more):
    tables = {"visits": TABLE}
    cost = {"alpha": 20}
    return question_from_sql(text, tables, cost, stepped=lambda _: stepped, **more)


def of(question):
    plain = question.model_dump(exclude={"table", "cost"}, exclude_none=True)
    return {name: value for name, value in plain.items() if value not in ([], 1, [1])}


FORTY = {"attribute": "age", "low": 20, "high": 41}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT ward, AVG(cost) FROM visits WHERE age BETWEEN 20 AND 40 "
            "GROUP BY ward",
            {"kind": "mean", "attribute": "cost", "by": ["ward"], "filters": [FORTY]},
        ),
        ("select sum(cost) as total from visits", {"kind": "sum", "attribute": "cost"}),
        (
            "SELECT COUNT(*) FROM visits WHERE age >= 65 AND ward = 'a'",
            {
                "kind": "ranges",
                "attribute": "age",
                "ranges": [(65, 100)],
                "filters": [{"attribute": "ward", "values": ["a"]}],
            },
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE day < '2024-02-01'",
            {
                "kind": "ranges",
                "attribute": "day",
                "ranges": [("2024-01-01", "2024-02-01")],
            },
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE ward = 'Bern, Stadt'",
            {
                "kind": "histogram",
                "attribute": "ward",
                "filters": [{"attribute": "ward", "values": ["Bern, Stadt"]}],
            },
        ),
        (
            "SELECT room, COUNT(age) FROM visits WHERE room IN (1, 3) GROUP BY room",
            {
                "kind": "histogram",
                "attribute": "room",
                "filters": [
                    {"attribute": "room", "values": [1, 3]},
                    {"attribute": "age", "missing": False},
                ],
            },
        ),
        (
            "SELECT ward, FLOOR(age / 10), COUNT(*) FROM visits "
            "GROUP BY ward, FLOOR(age / 10)",
            {
                "kind": "marginal",
                "attributes": ["ward", "age"],
                "granularity": [1, 10],
            },
        ),
        (
            "SELECT MEDIAN(cost) FROM visits WHERE ward = 'a' OR ward = 'b'",
            {
                "kind": "quantiles",
                "attribute": "cost",
                "q": [0.5],
                "filters": [{"attribute": "ward", "values": ["a", "b"]}],
            },
        ),
        (
            "SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY cost) FROM visits "
            "WHERE age IS NOT NULL AND age < 30",
            {
                "kind": "quantiles",
                "attribute": "cost",
                "q": [0.9],
                "filters": [{"attribute": "age", "high": 30}],
            },
        ),
        (
            "SELECT ward, COUNT(*) FROM visits WHERE (age < 20 OR age IS NULL) "
            "AND NOT cost IS NULL GROUP BY ward",
            {
                "kind": "histogram",
                "attribute": "ward",
                "filters": [
                    {"attribute": "cost", "missing": False},
                    {"attribute": "age", "high": 20, "missing": True},
                ],
            },
        ),
        (
            "SELECT ward, COUNT(*) FROM visits WHERE 18 <= age AND 30 > age "
            "AND day <= DATE '2024-01-31' GROUP BY ward",
            {
                "kind": "histogram",
                "attribute": "ward",
                "filters": [
                    {"attribute": "day", "high": "2024-02-01"},
                    {"attribute": "age", "low": 18, "high": 30},
                ],
            },
        ),
        (
            "SELECT ward, COUNT(*) FROM visits WHERE age = 5 AND cost >= -0 "
            "GROUP BY ward",
            {
                "kind": "histogram",
                "attribute": "ward",
                "filters": [
                    {"attribute": "cost", "low": 0},
                    {"attribute": "age", "low": 5, "high": 6},
                ],
            },
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_text_is_the_question_that_it_says(text, expected):
    assert of(read(text)) == expected


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ("(age < 20 OR age IS NULL) AND age >= 5", {"low": 5, "high": 20}),
        ("(age < 20 OR age IS NULL) AND age IS NOT NULL", {"high": 20}),
        ("(age < 20 OR age IS NULL) AND age IS NULL", {"missing": True}),
        (
            "(age < 20 OR age IS NULL) AND (age >= 5 OR age IS NULL)",
            {"low": 5, "high": 20, "missing": True},
        ),
        ("age IS NOT NULL AND age < 20", {"high": 20}),
        ("age IS NULL AND age IS NULL", {"missing": True}),
    ],
)
def test_what_is_missing_passes_conditions_joined_by_and_only_if_it_passes_each(
    conditions, expected
):
    """IS NULL beside a stretch was read as if OR stood between them."""
    text = f"SELECT ward, COUNT(*) FROM visits WHERE {conditions} GROUP BY ward"
    (found,) = of(read(text))["filters"]
    assert found == {"attribute": "age", **expected}


def test_a_column_that_is_counted_has_a_value():
    """COUNT(age) leaves out whose age is missing, whatever a condition lets pass."""
    question = of(
        read(
            "SELECT ward, COUNT(age) FROM visits WHERE (age < 20 OR age IS NULL) "
            "GROUP BY ward"
        )
    )
    assert question["filters"] == [{"attribute": "age", "high": 20}]
    for text in (
        "SELECT ward, COUNT(age) FROM visits WHERE age IS NULL GROUP BY ward",
        "SELECT ward, COUNT(*) FROM visits WHERE age < 9 AND age IS NULL GROUP BY ward",
        "SELECT room, COUNT(*) FROM visits WHERE ward = 'a' AND ward IS NULL "
        "GROUP BY room",
    ):
        with pytest.raises(QuestionError, match="nothing passes all conditions on"):
            read(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT * FROM visits", "records stay where they are"),
        ("SELECT age FROM visits", "is no group"),
        ("SELECT COUNT(*), AVG(age) FROM visits", "one at a time|at a time"),
        ("SELECT MAX(age) FROM visits", "are quantiles"),
        ("SELECT COUNT(DISTINCT age) FROM visits", "records are: COUNT"),
        ("SELECT COUNT(*) FROM visits", "needs a stretch or a level"),
        ("SELECT COUNT(*) FROM visits, others", "declared by the curator"),
        (
            "SELECT COUNT(*) FROM visits JOIN others ON others.a = visits.b",
            "declared by the curator",
        ),
        ("SELECT COUNT(*) FROM (SELECT * FROM visits) AS v", "inside queries"),
        ("SELECT COUNT(*) FROM elsewhere", "there is no table"),
        ("SELECT 1", "one described table"),
        ("DELETE FROM visits", "nothing is ever changed"),
        ("SELECT 1; SELECT 2", "one SELECT is asked"),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ward LIMIT 3", "cut the answer"),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY 2", "sort the"),
        (
            "SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > 5",
            "HAVING",
        ),
        (
            "SELECT ward, COUNT(*) FROM visits GROUP BY CUBE (ward)",
            "each table alone|no column",
        ),
        ("SELECT AVG(cost) FROM visits WHERE cost <= 30", "cost >= ... AND cost <"),
        ("SELECT AVG(cost) FROM visits WHERE ward LIKE 'a%'", "has no question here"),
        ("SELECT AVG(cost) FROM visits WHERE ward > 'a'", "by = or IN"),
        ("SELECT AVG(cost) FROM visits WHERE age IN (1, 2)", "IN is for levels"),
        ("SELECT AVG(cost) FROM visits WHERE NOT age > 3", "NOT stands before NULL"),
        ("SELECT AVG(cost) FROM visits WHERE age > 3 OR ward = 'a'", "OR joins levels"),
        ("SELECT AVG(cost) FROM visits WHERE age > 3 AND age > 5", "not one stretch"),
        (
            "SELECT AVG(cost) FROM visits WHERE ward = 'a' AND ward = 'b'",
            "not one stretch",
        ),
        ("SELECT AVG(cost) FROM visits WHERE age < 'old'", "is no number"),
        ("SELECT AVG(cost) FROM visits WHERE ward = UPPER('a')", "is no constant"),
        ("SELECT AVG(cost) FROM visits WHERE day <= 'soon'", "is no day"),
        ("SELECT AVG(cost + 1) FROM visits", "is no column"),
        ("SELECT AVG(CASE WHEN age > 3 THEN 1 ELSE 0 END) FROM visits", '"share"'),
        (
            "SELECT FLOOR(age / 7), COUNT(*) FROM visits GROUP BY FLOOR(age / 0.7)",
            "do not begin where cells",
        ),
        (
            "SELECT DATE_TRUNC('month', day), COUNT(*) FROM visits "
            "GROUP BY DATE_TRUNC('month', day)",
            "each month as a stretch",
        ),
        ("SELECT ward, MEDIAN(age) FROM visits GROUP BY ward", "filter them by one"),
        (
            "SELECT PERCENTILE_CONT(7) WITHIN GROUP (ORDER BY cost) FROM visits",
            "between 0 and 1",
        ),
        ("((((", "no SQL that can be read"),
        ("x" * (MOST_CHARACTERS + 1), "at most"),
        (
            "SELECT AVG(cost) FROM visits WHERE " + " OR ".join(["age=1"] * 400),
            "OR joins|too deep|no SQL",
        ),
    ],
    ids=lambda one: one[:60],
)
def test_everything_else_is_refused_with_what_works(text, words):
    with pytest.raises(QuestionError, match=words) as refused:
        read(text)
    _, named, near = str(refused.value).partition("The nearest question that works: ")
    if named:
        read(near)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        (
            "SELECT ward, STDDEV(cost) FROM visits GROUP BY ward HAVING COUNT(*) > 9",
            "SELECT ward, AVG(cost) FROM visits GROUP BY ward",
        ),
        (
            "SELECT MAX(v.cost) FROM visits AS v WHERE v.age > 20",
            "SELECT PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY cost) FROM visits "
            "WHERE age > 20",
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE ward IN ('a', 'Bern, Stadt')",
            "SELECT ward, COUNT(*) FROM visits WHERE ward IN ('a', 'Bern, Stadt') "
            "GROUP BY ward",
        ),
        (
            "SELECT COUNT(DISTINCT patient) FROM visits WHERE ward = 'a'",
            "SELECT COUNT(*) FROM visits WHERE ward = 'a'",
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE age > 20 OR cost < 100",
            "SELECT COUNT(*) FROM visits WHERE age > 20",
        ),
        (
            "SELECT AVG(cost) FROM visits WHERE age > 20 AND ward LIKE 'a%'",
            "SELECT AVG(cost) FROM visits WHERE age > 20",
        ),
        (
            "SELECT FLOOR(cost / 7), COUNT(*) FROM visits GROUP BY FLOOR(cost / 7)",
            "SELECT cost, COUNT(*) FROM visits GROUP BY cost",
        ),
        (
            "SELECT wards, room FROM visits LIMIT 9",
            "SELECT ward, room, COUNT(*) FROM visits GROUP BY ward, room",
        ),
        ("DELETE FROM visits", "SELECT age, COUNT(*) FROM visits GROUP BY age"),
    ],
    ids=lambda text: text[:50],
)
def test_a_refusal_names_the_nearest_question(text, near):
    with pytest.raises((QuestionError, CatalogError)) as refused:
        read(text)
    assert refused.value.way_out == f"The nearest question that works: {near}"
    read(near)


def test_a_proposal_quotes_names_and_is_short(monkeypatch):
    odd = {"name": "ward/unit", "levels": ["a", "b"]}
    table = as_table({"name": "Visits", "attributes": [odd]})
    tables = {"Visits": table}
    with pytest.raises(QuestionError, match="records stay") as refused:
        question_from_sql('SELECT * FROM "Visits"', tables, {"alpha": 20})
    near = refused.value.way_out.partition(": ")[2]
    assert near == ('SELECT "ward/unit", COUNT(*) FROM "Visits" GROUP BY "ward/unit"')
    assert question_from_sql(near, tables, {"alpha": 20}).axes == ["ward/unit"]
    monkeypatch.setattr(nearest, "MOST_SHOWN", 20)
    with pytest.raises(QuestionError, match="Its attributes are"):
        question_from_sql('SELECT * FROM "Visits"', tables, {"alpha": 20})

    def too_deep(*_):
        raise RecursionError

    monkeypatch.setattr(sql_questions, "nearest_select", too_deep)
    with pytest.raises(QuestionError, match="Its attributes are"):
        question_from_sql('SELECT * FROM "Visits"', tables, {"alpha": 20})


def test_unknown_columns_are_named():
    with pytest.raises(CatalogError, match="has no attribute 'height'"):
        read("SELECT AVG(height) FROM visits")


def test_without_steps_an_upper_end_that_is_included_is_refused():
    text = "SELECT AVG(cost) FROM visits WHERE age BETWEEN 20 AND 40"
    with pytest.raises(QuestionError, match=r"age >= \.\.\. AND age <"):
        read(text, stepped=())
    whole = as_table({"name": "visits", "attributes": [{**AGE, "whole": True}, COST]})
    question = question_from_sql(text, {"visits": whole}, {"epsilon": 1}, at_least=7)
    assert question.filters[0].high == 41
    assert question.at_least == 7


def test_the_column_says_which_values_have_steps():
    database = ibis.duckdb.connect()
    database.raw_sql(
        "create table visits as select i::int as age, i::double as cost, 'a' as ward, "
        "date '2024-01-05' as day, 1 as room from range(90) as t(i)"
    )
    explorer = Explorer(TABLE, database, epsilon=9)
    assert explorer.engine.stepped(TABLE) == ["age", "day", "room"]
    away = as_table({"name": "nowhere", "attributes": [AGE]})
    assert explorer.engine.stepped(away) == []
    text = (
        "SELECT ward, AVG(cost) FROM visits WHERE age BETWEEN 20 AND 40 GROUP BY ward"
    )
    question = question_from_sql(
        text, {"visits": TABLE}, {"epsilon": 5}, stepped=explorer.engine.stepped
    )
    answer = explorer.ask(question)
    (passing,) = answer.question["filters"]
    assert {name: passing[name] for name in FORTY} == FORTY
    assert answer.what == "mean of cost"
