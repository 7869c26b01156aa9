"""What at most k records of a person leave out: the truth, and what all are told."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.accounting.population import PeopleTable, Population
from blowfish_fast.apps.explorer import Explorer
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.apps.explorer.truncation import true_losses
from blowfish_fast.errors import (
    BudgetError,
    CatalogError,
    CountsError,
    InputError,
    LedgerError,
)

ibis = pytest.importorskip("ibis")

AGE = {"name": "age", "cells": {"start": 0, "stop": 100, "width": 10}}
PEOPLE = {"person": "patient", "record": "visit", "at_most": 3}
ASKED = {
    "kind": "histogram",
    "table": "visits",
    "attribute": "age",
    "cost": {"epsilon": 1},
}


@pytest.fixture
def database():
    backend = ibis.duckdb.connect()
    # Patient 0 has 40 visits at the age of 95; 200 others have 2 each.
    backend.raw_sql(
        "CREATE TABLE visits AS SELECT 0 AS patient, i AS visit, 95 AS age "
        "FROM range(40) t(i) UNION ALL SELECT 1 + i // 2, 1000 + i, 20 + i % 60 "
        "FROM range(400) t(i)"
    )
    return backend


def described(**options):
    return {"name": "visits", "attributes": [AGE], **PEOPLE, **options}


def test_the_curator_sees_all_records_beside_those_that_count(database):
    explorer = Explorer(described(), database, epsilon=5)
    shown = explorer.preview(ASKED, epsilon=1)
    assert (shown["truth"][9], shown["whole"][9]) == (3, 40)
    assert shown["truth"][:9] == shown["whole"][:9]
    alone = {"person": None, "record": None, "at_most": None}
    plain = Explorer(described(**alone), database, epsilon=5)
    assert plain.preview(ASKED, epsilon=1)["whole"] is None


def test_each_bound_is_listed_with_what_it_leaves_out(database):
    told = Explorer(described(), database, epsilon=5).true_losses()
    assert (told["records"], told["persons"]) == (440, 201)
    rows = {row["at_most"]: row for row in told["losses"]}
    assert (rows[1]["records"], rows[1]["persons"]) == (239, 201)
    assert (rows[3]["records"], rows[3]["persons"]) == (37, 1)
    assert rows[50]["records"] == 0
    assert told["little"] == 50
    assert rows[3]["part"] == 37 / 440


def test_nobody_is_listed_without_a_division_by_nothing():
    assert true_losses(np.zeros(0, np.int64), 3)["losses"][-1]["part"] == 0
    assert true_losses(np.array([5000]), 3)["losses"][-1]["at_most"] == 5000


def test_what_is_left_out_is_measured_once_and_told_to_all(database, tmp_path):
    path = tmp_path / "visits.ledger"
    explorer = Explorer(described(presence=True), database, ledger=path, epsilon=5)
    assert explorer.known_loss() is None
    told = explorer.measure_loss(43, epsilon=2, confidence=0.999)
    assert float(explorer.ledger.spent) == 2
    assert told["low"] <= 37 <= told["high"]
    assert told["low"] < told["high"]
    assert "up to a person's number 43" in told["sentence"]
    # On other terms too: what was told stays, and is not paid for twice.
    assert explorer.measure_loss(80, epsilon=1) == told == explorer.known_loss()
    assert float(explorer.ledger.spent) == 2
    explorer.ledger.close()
    again = Explorer(None, database, ledger=path)
    assert again.known_loss() == told


def test_a_charge_whose_numbers_were_not_kept_is_not_paid_twice(database, monkeypatch):
    explorer = Explorer(described(presence=True), database, epsilon=5)

    def fail(*_, **__):
        raise OSError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(explorer.ledger, "keep_reading", fail)
        with pytest.raises(OSError, match="full"):
            explorer.measure_loss(9, epsilon=2)
    explorer.measure_loss(9, epsilon=2)
    assert float(explorer.ledger.spent) == 2


def test_a_ledger_in_rho_measures_what_is_left_out_for_rho(database):
    explorer = Explorer(described(presence=True), database, rho=5)
    with pytest.raises(LedgerError, match="counts rho"):
        explorer.measure_loss(43, epsilon=1)
    told = explorer.measure_loss(43, rho=2, confidence=0.999)
    assert float(explorer.ledger.spent) == 2
    assert told["low"] <= 37 <= told["high"]
    assert told["low"] < told["high"]
    assert explorer.measure_loss(43, rho=1) == told == explorer.known_loss()
    assert float(explorer.ledger.spent) == 2


def test_what_the_policy_does_not_hide_is_exact_and_free(database):
    explorer = Explorer(described(), database, epsilon=5)
    told = explorer.measure_loss(100, epsilon=1)
    assert (told["low"], told["estimate"], told["high"]) == (37, 37, 37)
    assert explorer.ledger.spent == 0


def test_what_cannot_be_measured_is_refused_before_anybody_is_counted(
    database, monkeypatch
):
    explorer = Explorer(described(presence=True), database, epsilon=5)

    def refuse(*_):
        raise AssertionError("counted")

    monkeypatch.setattr(explorer.engine, "held", refuse)
    with pytest.raises(InputError, match="below up_to"):
        explorer.measure_loss(3, epsilon=1)
    with pytest.raises(BudgetError):
        explorer.measure_loss(9, epsilon=6)
    with pytest.raises(LedgerError, match="counts epsilon"):
        explorer.measure_loss(9, rho=1)
    explorer.closed = True
    with pytest.raises(LedgerError, match="was closed"):
        explorer.measure_loss(9, epsilon=1)
    assert explorer.ledger.spent == 0


def test_records_of_nobody_and_tables_without_persons_are_refused(database):
    alone = {"person": None, "record": None, "at_most": None}
    plain = Explorer(described(**alone), database, epsilon=5)
    assert plain.known_loss() is None
    for ask in (plain.true_losses, lambda: plain.measure_loss(9, epsilon=1)):
        with pytest.raises(CatalogError, match="no column of persons"):
            ask()
    database.raw_sql("INSERT INTO visits VALUES (NULL, 5000, 30)")
    with pytest.raises(CountsError, match="do not say whose"):
        Explorer(described(), database, epsilon=5).true_losses()


def test_tables_that_share_a_budget_are_not_measured(database):
    spec = as_table(described(population="patients"))
    table = PeopleTable("visits", spec.policy(), "here/visits", {"age": "age"})
    people = Population("patients", person="patient", tables=[table], epsilon=5)
    explorer = Explorer(spec, database, ledger=people)
    assert explorer.known_loss() is None
    with pytest.raises(CatalogError, match="shares its budget"):
        explorer.measure_loss(9, epsilon=1)
    assert explorer.true_losses()["persons"] == 201
