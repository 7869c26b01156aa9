"""Tables of the same people share one budget; records are frozen, or add up."""

from __future__ import annotations

import os

import pytest

from blowfish_fast.apps.cli.commands.serve import open_workspace
from blowfish_fast.apps.server.workspace import Workspace
from blowfish_fast.errors import InputError, LedgerError, PolicyError

PERSON = {"person": "patient", "record": "number", "population": "patients"}
VISITS = {
    "name": "visits",
    "attributes": [{"name": "age", "cells": {"start": 0, "stop": 90, "width": 10}}],
    "at_most": 3,
    **PERSON,
}
LABS = {
    "name": "labs",
    "attributes": [{"name": "value", "cells": {"start": 0, "stop": 8, "width": 1}}],
    "at_most": 2,
    **PERSON,
}
AGES = {"kind": "histogram", "table": "visits", "attribute": "age"}
VALUES = {"kind": "histogram", "table": "labs", "attribute": "value"}


def paid(question, epsilon):
    return {**question, "cost": {"epsilon": epsilon}}


@pytest.fixture
def database(tmp_path):
    import duckdb

    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as connection:
        for name, column in (("visits", "age"), ("labs", "value")):
            connection.execute(
                f"CREATE TABLE {name} AS SELECT i % 40 AS patient, i AS number, "
                f"i % 8 AS {column} FROM range(200) AS t(i)"
            )
    return path


@pytest.fixture
def work(tmp_path, database):
    made = Workspace(tmp_path / "state", database=database, samples=0)
    yield made
    made.close()


def test_a_column_has_one_policy_whatever_its_attribute_is_called(work):
    """Hole 3 of issue 32, by the server: a second name for a column of one source."""
    work.add_table({**VISITS, "policies": {"age": {"kind": "line"}}}, epsilon=1)
    years = {**VISITS["attributes"][0], "name": "years", "column": "age"}
    again = {**VISITS, "name": "again", "source": "visits", "attributes": [years]}
    full = {**again, "policies": {"years": {"kind": "full"}}}
    for table in (full, {**again, "policies": {"years": {"kind": "line"}}}):
        with pytest.raises(PolicyError, match="for the columns"):
            work.add_table(table)
    assert work.tables == ["visits"]


def test_tables_of_the_same_people_share_one_budget_also_after_a_restart(
    tmp_path, database
):
    work = Workspace(tmp_path / "state", database=database, samples=0)
    work.add_table(VISITS, epsilon=1)
    work.add_table(LABS)
    visits, labs = work.explorer("visits"), work.explorer("labs")
    ages = visits.ask(paid(AGES, 0.4))
    labs.ask(paid(VALUES, 0.5))
    assert float(visits.remaining()) == float(labs.remaining()) == pytest.approx(0.1)
    with pytest.raises(Exception, match="remains"):
        labs.ask(paid(VALUES, 0.2))
    work.close()
    again = Workspace(tmp_path / "state", database=database, samples=0)
    visits, labs = again.explorer("visits"), again.explorer("labs")
    assert float(labs.remaining()) == pytest.approx(0.1)
    assert visits.ask(paid(AGES, 0.4)).values.tolist() == ages.values.tolist()
    assert [len(one.history()) for one in (visits, labs)] == [1, 1]
    assert labs.answered(ages.request) is None
    visits.ledger.verify()
    again.close()


def test_a_table_joins_its_population_before_the_first_charge_only(work):
    work.add_table(VISITS, epsilon=1).ask(paid(AGES, 0.4))
    with pytest.raises(LedgerError, match="frozen"):
        work.add_table(LABS)
    assert work.tables == ["visits"]


def test_a_second_budget_for_a_population_is_refused(work):
    work.add_table(VISITS, epsilon=1)
    with pytest.raises(InputError, match="which all its tables share"):
        work.add_table(LABS, epsilon=1)
    with pytest.raises(LedgerError, match="shares its ledger"):
        work.delete_table("visits")
    with pytest.raises(LedgerError, match="stated with its description"):
        work.explorer("visits").set_policies({})


def test_a_population_names_its_person(work):
    with pytest.raises(Exception, match="shares one budget by its person"):
        work.add_table({**VISITS, "person": None, "record": None, "at_most": None})


def test_a_frozen_snapshot_is_refused_uncharged_once_its_file_is_another(
    work, database
):
    frozen = {**VISITS, "population": None, "snapshot": "November"}
    explorer = work.add_table(frozen, epsilon=1)
    first = explorer.ask(paid(AGES, 0.4))
    os.utime(database, ns=(1, 1))
    with pytest.raises(LedgerError, match="no longer those of the frozen snapshot"):
        explorer.ask(paid(AGES, 0.3))
    assert explorer.ask(paid(AGES, 0.4)).values.tolist() == first.values.tolist()
    assert float(explorer.ledger.spent) == pytest.approx(0.4)
    assert "is frozen" in explorer.table.versions()


@pytest.mark.long
def test_the_demo_shows_persons_presence_nulls_dates_and_a_population(tmp_path):
    work, _ = open_workspace(
        tmp_path / "demo", demo=True, database=None, tables=None, budget={}
    )
    try:
        visits, tests = (work.explorer(one) for one in ("visits", "tests"))
        assert visits.ledger is tests.ledger
        assert visits.table.person == "patient"
        assert visits.table.presence == 2
        assert {one.kind for one in visits.table.attributes} >= {"number", "date"}
        joined = {
            one.extras_joined
            for one in (*visits.table.attributes, *tests.table.attributes)
        }
        assert joined == {"all", "end", "apart"}
        before = visits.remaining("ann")
        asked = {"kind": "histogram", "table": "tests", "attribute": "glucose"}
        answer = tests.ask(paid({**asked, "width": 4}, 0.25), analyst="ann")
        assert visits.remaining("ann") == before - answer.epsilon
        assert (tests.engine.counts(tests.plan(paid(asked, 0.25)).layout)[-1]) > 0
    finally:
        work.close()
