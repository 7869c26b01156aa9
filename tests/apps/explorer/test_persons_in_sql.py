"""The same records of each person are kept by every database and at hand."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.explorer import TableSpec
from blowfish_fast.data.persons import Bound, RecordKeys
from blowfish_fast.data.sql import bounded_table
from blowfish_fast.errors import CountsError, InputError
from tests.reference.chosen_records import kept_rows

from .engines_at_hand import visits

ibis = pytest.importorskip("ibis")

pytestmark = pytest.mark.filterwarnings("ignore")

AGES = bf.Domain.from_edges(range(0, 101, 10), name="age")
COLUMNS = dict(
    zip(("patient", "name", "visit", "age"), zip(*visits(), strict=True), strict=True)
)


@pytest.mark.long
@pytest.mark.parametrize("person", ["patient", "name"])
@pytest.mark.parametrize("most", [1, 3, 7])
def test_every_engine_keeps_the_same_records(engine, person, most):
    table = engine.backend.table("visits")
    bound = Bound.stated(most, "records", person)
    kept = bounded_table(table, RecordKeys(person, "visit"), bound, key="a1").table
    found = kept.select("patient", "visit", "age").to_pyarrow().to_pydict()
    rows = kept_rows(COLUMNS[person], COLUMNS["visit"], most, "a1")
    wanted = [
        (COLUMNS["patient"][at], COLUMNS["visit"][at], COLUMNS["age"][at])
        for at in rows
    ]
    assert sorted(zip(*found.values(), strict=True)) == sorted(wanted)


@pytest.mark.long
@pytest.mark.parametrize("count", ["records", "persons"])
def test_counts_are_those_of_the_records_at_hand(engine, count, monkeypatch):
    monkeypatch.setattr("blowfish_fast.data.sql.new_key", lambda: "a1")
    options = {"person": "name", "record": "visit", "at_most": 5, "count": count}
    table = engine.backend.table("visits")
    found = bf.Histogram.from_ibis(AGES, table, **options)
    expected = bf.Histogram.from_records(AGES, COLUMNS, key="a1", **options)
    np.testing.assert_array_equal(found.counts, expected.counts)
    assert (found.at_most, found.count, found.person) == (5, count, "name")
    sparse = bf.SparseHistogram.from_ibis(AGES, table, **options)
    np.testing.assert_array_equal(sparse.dense().counts, expected.counts)


def test_words_are_those_of_the_records_at_hand(engine, monkeypatch):
    monkeypatch.setattr("blowfish_fast.data.sql.new_key", lambda: "a1")
    words, table = bf.KeyDomain("p0-8|é", 5, "name"), engine.backend.table("visits")
    for options in (
        {},
        {"person": "patient", "record": "visit", "at_most": 5},
        {"person": "patient", "record": "visit", "at_most": 3, "count": "persons"},
    ):
        found = bf.SparseHistogram.from_ibis(words, table, outside="cell", **options)
        expected = bf.SparseHistogram.from_records(
            words, COLUMNS, outside="cell", key="a1" if options else None, **options
        )
        assert found.keys.tolist() == expected.keys.tolist()
        np.testing.assert_array_equal(found.counts, expected.counts)
        assert (found.at_most, found.count) == (expected.at_most, expected.count)
    unknown = table.mutate(patient=ibis.null("int64"))
    with pytest.raises(InputError, match="missing"):
        bf.SparseHistogram.from_ibis(
            words, unknown, outside="cell", person="patient", at_most=2
        )


def test_without_record_keys_nobody_has_more_than_stated(engine):
    table = engine.backend.table("visits")
    bound = Bound.stated(2, "records", "patient")
    kept = bounded_table(table, RecordKeys("patient"), bound).table
    found = kept.select("patient").to_pyarrow().column("patient").to_numpy()
    held = np.bincount(COLUMNS["patient"])
    np.testing.assert_array_equal(np.bincount(found), np.minimum(held, 2))


def test_missing_persons_and_records_are_refused(engine):
    table = engine.backend.table("visits")
    options = {"person": "patient", "record": "visit", "at_most": 1}
    nobody = table.mutate(patient=table.patient.nullif(0))
    with pytest.raises(CountsError, match="do not say whose they are"):
        bf.Histogram.from_ibis(AGES, nobody, **options)
    unnumbered = table.mutate(visit=table.visit.nullif(0))
    with pytest.raises(CountsError, match="do not say which of a person's"):
        bf.Histogram.from_ibis(AGES, unnumbered, **options)


def test_keys_are_columns_beside_the_attributes(engine):
    table = engine.backend.table("visits")
    with pytest.raises(InputError, match="beside the attributes"):
        bf.Histogram.from_ibis(AGES, table, person="patient", record="age", at_most=2)
    with pytest.raises(InputError, match="beside the attributes"):
        bf.Histogram.from_ibis(
            AGES, table, columns={"age": "visit"}, person="visit", at_most=2
        )
    with pytest.raises(InputError, match="no column 'nobody'"):
        bf.Histogram.from_ibis(AGES, table, person="nobody", at_most=2)
    with pytest.raises(InputError, match="no column array"):
        bf.Histogram.from_ibis(
            AGES, table, columns={"age": "age"}, person=np.zeros(2), at_most=2
        )
    halves = table.mutate(half=table.visit / 2)
    with pytest.raises(InputError, match="whole numbers or text"):
        bf.Histogram.from_ibis(AGES, halves, person="half", at_most=2)


def test_every_engine_says_how_many_records_each_person_has(engine):
    spec = TableSpec(
        name="visits",
        attributes=[{"name": "age", "cells": {"start": 0, "stop": 100, "width": 10}}],
        person="patient",
        at_most=3,
    )
    _, held = np.unique(COLUMNS["patient"], return_counts=True)
    np.testing.assert_array_equal(engine.held(spec), np.sort(held))
