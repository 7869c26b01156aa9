"""Tables that protect persons and presence."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.apps.explorer import Explorer
from blowfish_fast.apps.explorer.catalog import TableSpec
from blowfish_fast.errors import BlowfishError, CountsError

ibis = pytest.importorskip("ibis")

pytestmark = pytest.mark.filterwarnings("ignore")

AGE = {
    "name": "age",
    "cells": {"start": 0, "stop": 100, "width": 10},
    "missing": "cell",
    "outside": "clamp",
}
PEOPLE = {"person": "patient", "record": "visit", "at_most": 3}


@pytest.fixture
def database():
    backend = ibis.duckdb.connect()
    # Patient 0 has 1000 visits, all at the age of 95; 200 others have 2 each.
    backend.raw_sql(
        "CREATE TABLE visits AS SELECT 0 AS patient, i AS visit, 95 AS age, 'a' AS "
        "ward FROM range(1000) t(i) UNION ALL SELECT 1 + i // 2, 1000 + i, "
        "20 + i % 60, 'b' FROM range(400) t(i)"
    )
    return backend


def _spec(**options):
    ward = {"name": "ward", "levels": ["a", "b"]}
    return {"name": "visits", "attributes": [AGE, ward], **options}


def _asked(kind="histogram", epsilon=30, **options):
    cost = {"epsilon": epsilon, "mechanism": "laplace"}
    asked = {"kind": kind, "table": "visits", "attribute": "age", "cost": cost}
    return {**asked, **options}


def test_answers_about_persons_are_certified(database):
    explorer = Explorer(_spec(**PEOPLE), database, epsilon=60)
    answer = explorer.ask(_asked())
    found = explorer.certify(answer.request, epsilon=20)
    assert found.queries == answer.values.size
    assert float(explorer.ledger.spent) == 50


def test_a_person_with_many_records_counts_as_few(database):
    explorer = Explorer(_spec(**PEOPLE), database, epsilon=60)
    answer = explorer.ask(_asked())
    assert answer.values[9] == pytest.approx(3, abs=3)
    assert answer.values.sum() == pytest.approx(403, abs=10)
    plain = Explorer(_spec(), database, epsilon=60).ask(_asked())
    assert plain.values[9] == pytest.approx(1000, abs=3)
    told = explorer.explain(_asked())["policy"]
    assert told == explorer.table.promise()
    assert "one person (column patient) with all her records" in told
    assert "one person (column patient) with all her records" in answer.promise
    promised = explorer.ask({**_asked(), "cost": {"alpha": 9}}).promise
    assert "within 9 of the true ones among at most 3 records of a person" in promised


def test_filters_come_after_the_bound(database):
    explorer = Explorer(_spec(**PEOPLE), database, epsilon=60)
    filters = [{"attribute": "ward", "values": ["b"]}]
    answer = explorer.ask(_asked(filters=filters))
    assert answer.values.sum() == pytest.approx(400, abs=10)


def test_persons_cost_as_many_times_as_records_are_counted(database):
    accuracy = {"alpha": 20, "beta": 0.05}
    one, three = (
        Explorer(_spec(**options), database, epsilon=60)
        .plan({**_asked(), "cost": accuracy})
        .cost
        for options in ({}, PEOPLE)
    )
    assert float(three) == pytest.approx(3 * float(one), rel=0.02)


def test_missing_persons_are_refused_uncharged(database):
    database.raw_sql("UPDATE visits SET patient = NULL WHERE visit = 1001")
    explorer = Explorer(_spec(**PEOPLE), database, epsilon=60)
    with pytest.raises(CountsError, match="do not say whose they are"):
        explorer.ask(_asked())
    assert explorer.ledger.spent == 0


@pytest.mark.parametrize("presence", [True, 4, "only"])
def test_the_number_of_rows_costs_where_presence_is_protected(database, presence):
    total = _asked(kind="ranges", ranges=[[0, 100]], epsilon="0.5")
    private = Explorer(_spec(presence=presence), database, epsilon=2)
    assert private.plan(total).cost > 0
    words = private.plan(total).policy.describe()
    assert "whether any one person" in words or "is not public" in words
    answer = private.ask(total)
    assert float(private.ledger.spent) == pytest.approx(0.5)
    assert answer.values.size == 1


def test_presence_and_persons_together(database):
    explorer = Explorer(_spec(presence=True, **PEOPLE), database, epsilon=60)
    answer = explorer.ask(_asked())
    assert answer.values[9] == pytest.approx(3, abs=3)
    assert explorer.ledger.policy.has_bottom


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"person": "patient"}, "stated together"),
        ({"record": "visit"}, "which of a person's records"),
        ({"person": "age", "at_most": 2}, "beside the attributes"),
        ({"person": "patient", "at_most": 0}, "at_most"),
        ({"presence": 0.5}, "at least one edge away"),
        ({"presence": "only", "policies": {"age": {"kind": "line"}}}, "leaves no"),
    ],
)
def test_tables_that_contradict_themselves_are_refused(database, options, reason):
    with pytest.raises(BlowfishError, match=reason):
        Explorer(_spec(**options), database, epsilon=1)


def test_columns_of_persons_are_checked_before_a_ledger_is_made(database):
    with pytest.raises(BlowfishError, match="no column 'nobody'"):
        Explorer(_spec(person="nobody", at_most=2), database, epsilon=1)
    database.raw_sql("ALTER TABLE visits ADD COLUMN half DOUBLE")
    with pytest.raises(BlowfishError, match="whole numbers or text"):
        Explorer(_spec(person="half", at_most=2), database, epsilon=1)


def test_descriptions_survive_a_ledger():
    spec = TableSpec(**_spec(presence=4, **PEOPLE))
    assert TableSpec(**spec.to_dict()) == spec
    assert np.isclose(float(spec.policy().base.absent_length), 4)


def test_replays_say_as_of_when_the_data_were_read(database):
    explorer = Explorer(_spec(**PEOPLE), database, epsilon=60)
    first = explorer.ask(_asked())
    database.raw_sql("DELETE FROM visits")
    again = explorer.ask(_asked())
    assert again.replayed
    assert again.values.tolist() == first.values.tolist()
    assert again.as_of == first.as_of == explorer.history()[0].time.isoformat()
    assert again.to_dict()["as_of"] == first.as_of


def test_two_descriptions_of_one_table_do_not_get_two_budgets(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    from blowfish_fast.apps.server.workspace import Workspace

    source = tmp_path / "people.duckdb"
    with duckdb.connect(str(source)) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT (20 + i % 60)::int age FROM range(500) t(i)"
        )
    work = Workspace(tmp_path / "work", database=str(source))
    age = {"name": "age", "cells": {"start": 0, "stop": 100, "width": 10}}
    work.add_table(
        {"name": "first", "source": "people", "attributes": [age]}, epsilon=1
    )
    with pytest.raises(BlowfishError, match="described as 'first' already"):
        work.add_table(
            {"name": "second", "source": "people", "attributes": [age]}, epsilon=1
        )
    work.close()
