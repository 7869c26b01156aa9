"""Which words are frequent: planned, priced, asked, replayed; and what is refused."""

from __future__ import annotations

import pytest

pytest.importorskip("ibis")
pytest.importorskip("pydantic")

import duckdb

import blowfish_fast as bf
from blowfish_fast.apps.explorer import Explorer, read_question
from blowfish_fast.apps.explorer.all_tables import predict_tables
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.errors import BlowfishError, CatalogError, QuestionError

WORD = {"name": "word", "words": {"symbols": "a-z ", "longest": 12}}
AGE = {"name": "age", "cells": {"start": 0, "stop": 100, "width": 10}}
TABLE = {"name": "searches", "attributes": [WORD, AGE]}
ASKED = {
    "kind": "frequent",
    "table": "searches",
    "attribute": "word",
    "false_values": 1e-6,
    "cost": {"epsilon": 1},
}


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "searches.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE searches AS SELECT "
            "CASE WHEN i < 900 THEN 'Weather' WHEN i < 1600 THEN 'news' "
            "WHEN i < 2000 THEN 'x_y' WHEN i < 2400 THEN NULL ELSE 'rare' END AS word, "
            "i % 100 AS age, i AS visit, i // 2 AS who FROM range(2403) AS t(i)"
        )
    return path


def explorer_of(database, budget=None, **more):
    return Explorer({**TABLE, **more}, database, **(budget or {"epsilon": 10}))


def test_the_threshold_is_told_before_the_list_is_paid_for(database):
    explorer = explorer_of(database)
    plain = explorer.explain(ASKED)
    assert "noisy counts reach a threshold" in plain["why"]
    assert (plain["mechanism"], plain["cost"]) == ("sparse_laplace", 1.0)
    assert float(explorer.remaining()) == 10
    mechanism = explorer.plan(ASKED).mechanism
    assert f"{mechanism.thresholds['threshold'][1]:g} at length 1" in plain["why"]
    answer = explorer.ask(ASKED)
    (axis,) = answer.axes
    assert axis["edges"] == ["news", "weather", "(outside)", "(missing)"]
    assert abs(answer.values - [700, 900, 400, 400]).max() < 80
    assert (answer.intervals[:, 0] <= answer.values).all()
    assert (answer.values <= answer.intervals[:, 1]).all()
    assert answer.intervals_hold == "truth"
    assert "may be missing" in answer.remarks[0]
    assert float(explorer.remaining()) == 9
    again = explorer.ask(ASKED)
    assert again.replayed
    assert again.to_dict()["values"] == answer.to_dict()["values"]
    assert explorer.answered(answer.request).axes == answer.axes
    with pytest.raises(QuestionError, match="hold the truth already"):
        explorer.certify(answer.request, epsilon="0.1")
    drawn = explorer.drawn_again(answer.request)
    assert drawn is not None
    assert sorted(drawn[1].counts.tolist()) == [3, 400, 400, 700, 900]


def test_persons_presence_and_rho_are_protected_in_words_too(database):
    people = {"person": "who", "record": "visit", "at_most": 2}
    plan = explorer_of(database, **people).plan(ASKED)
    alone = explorer_of(database).plan(ASKED)
    assert plan.mechanism.threshold > 1.9 * alone.mechanism.threshold
    assert len(explorer_of(database, **people).ask(ASKED).values) == 4
    added = explorer_of(database, presence="only").plan(ASKED)
    assert 1.9 * added.mechanism.threshold < alone.mechanism.threshold + 2
    far = explorer_of(database, presence=4).plan(ASKED)
    assert far.mechanism.threshold == alone.mechanism.threshold
    in_rho = {**ASKED, "cost": {"rho": 0.1}}
    explorer = explorer_of(database, {"rho": 1})
    assert explorer.ask(in_rho).mechanism == "sparse_gaussian"


def test_other_questions_of_the_table_go_on_and_policies_hold(database):
    line = {"age": {"kind": "line"}}
    explorer = explorer_of(database, policies=line)
    asked = {"kind": "histogram", "table": "searches", "attribute": "age"}
    assert explorer.ask({**asked, "cost": {"epsilon": 1}}).values.shape == (10,)
    assert len(explorer.ask(ASKED).values) == 4
    policy = explorer.table.policy()
    assert bf.policies.from_dict(policy.to_dict()) == policy
    prediction = predict_tables(explorer.table, {"epsilon": 1})
    assert prediction["columns"] == ["age"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"cost": {"alpha": 20}}, "a threshold in place of an accuracy"),
        ({"filters": [{"attribute": "age", "low": 20}]}, "no filters"),
        ({"false_values": 0}, "must be above 0"),
        ({"attribute": "age"}, "ask for its histogram"),
        ({"cost": {"epsilon": 1, "mechanism": "laplace"}}, "leave the mechanism out"),
        ({"attribute": "nobody"}, "no attribute"),
    ],
)
def test_lists_that_cannot_be_asked_are_refused(database, change, why):
    explorer = explorer_of(database)
    with pytest.raises(BlowfishError, match=why):
        explorer.plan({**ASKED, **change})
    assert float(explorer.remaining()) == 10


def test_what_needs_cells_is_refused_of_words(database):
    explorer = explorer_of(database)
    histogram = {**ASKED, "kind": "histogram"}
    del histogram["false_values"]
    for problem, ask in (
        (
            "which are frequent",
            lambda: explorer.ask(histogram),
        ),
        ("no bins or accuracy", lambda: explorer.shape(ASKED)),
        ("has no truth", lambda: explorer.preview(ASKED, epsilon=1)),
        ("no bins or accuracy", lambda: explorer.accuracy(ASKED)),
    ):
        with pytest.raises(QuestionError, match=problem):
            ask()
    assert explorer.planner.effort(explorer.table, read_question(ASKED)) == "small"
    words = {"name": "w", "attributes": [WORD]}
    with pytest.raises(CatalogError, match="words alone"):
        predict_tables(as_table(words), {"epsilon": 1})
    for change, why in (
        ({"outside": "clamp"}, "has words: values outside need a cell"),
        ({"levels": ["a"]}, "dates, levels or words"),
        ({"words": {"symbols": "z-a"}}, "goes forward"),
    ):
        with pytest.raises(CatalogError, match=why):
            as_table({**TABLE, "attributes": [{**WORD, **change}]})
    with pytest.raises(CatalogError, match="leave its policy out"):
        as_table({**TABLE, "policies": {"word": {"kind": "full"}}})


def test_words_beside_other_attributes_are_counted_by_nobody():
    table = as_table(TABLE).domain()
    with pytest.raises(BlowfishError, match="counted by themselves"):
        bf.SparseHistogram.from_records(table, {"word": ["a"], "age": [3]})
    with pytest.raises(BlowfishError, match="seen by itself"):
        as_table(TABLE).policy().through(["word", "age"])
