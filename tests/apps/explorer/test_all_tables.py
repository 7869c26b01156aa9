"""Predicted errors of all tables of some columns."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.explorer import all_tables
from blowfish_fast.apps.explorer.all_tables import predict_tables
from blowfish_fast.apps.explorer.catalog import TableSpec
from blowfish_fast.errors import CatalogError, InputError

SIZES = {"age": 9, "sex": 2, "town": 5, "pay": 4}
SIDES = [
    {"name": name, "cells": {"start": 0, "stop": size, "width": 1}, "missing": "none"}
    for name, size in SIZES.items()
]


def survey(**stated):
    return TableSpec(name="survey", attributes=SIDES, **stated)


@pytest.mark.long
@pytest.mark.parametrize(
    "stated",
    [
        {},
        {"presence": "only"},
        {"policies": {"age": {"kind": "line"}}},
        {"person": "patient", "at_most": 3, "presence": True},
    ],
)
def test_errors_are_those_of_the_release_under_the_policy_of_the_table(stated):
    table = survey(**stated)
    found = predict_tables(table, {"epsilon": "0.5"}, columns=["age", "town", "pay"])
    tables = [tuple(one["columns"]) for one in found["tables"]]
    assert tables[:3] == [("age",), ("town",), ("pay",)]
    assert tables[3:] == [("age", "town"), ("age", "pay"), ("town", "pay")]
    asked = bf.workloads.Tables(table.domain(), tables)
    mechanism = bf.Contingency(table.policy(), asked, epsilon="0.5")
    for one in found["tables"]:
        squared = mechanism.expected_error(*one["columns"])
        assert one["cells"] == squared.size
        assert one["error"] == pytest.approx(np.sqrt(squared[0]))
        assert one["mean_count"] is None
    assert found["useful"] is None


def test_mean_counts_say_which_tables_are_of_use():
    found = predict_tables(survey(), {"epsilon": 1}, ways=3, records=2000)
    assert len(found["tables"]) == 4 + 6 + 4
    better = [one for one in found["tables"] if one["error"] < one["mean_count"]]
    assert 0 < found["useful"] == len(better) < len(found["tables"])


@pytest.mark.parametrize(
    ("columns", "error", "reason"),
    [
        ([], InputError, "name each column once"),
        (["age", "age"], InputError, "name each column once"),
        (["age", "height"], CatalogError, "no attribute 'height'"),
    ],
)
def test_columns_are_named_once_and_known(columns, error, reason):
    with pytest.raises(error, match=reason):
        predict_tables(survey(), {"epsilon": 1}, columns=columns)


def test_too_many_tables_are_refused():
    many = [{"name": f"a{at}", "levels": [0, 1]} for at in range(24)]
    table = TableSpec(name="wide", attributes=many)
    with pytest.raises(InputError, match="at most 2,000 tables"):
        predict_tables(table, {"epsilon": 1}, ways=3)


def test_as_many_tables_as_are_allowed_are_predicted(monkeypatch):
    three = [{"name": name, "levels": [0, 1]} for name in "abc"]
    table = TableSpec(name="small", attributes=three)
    monkeypatch.setattr(all_tables, "MOST_TABLES", 6)
    assert len(predict_tables(table, {"epsilon": 1}, ways=2)["tables"]) == 6
    monkeypatch.setattr(all_tables, "MOST_TABLES", 5)
    with pytest.raises(InputError, match=r"at most 5 tables .* received 6"):
        predict_tables(table, {"epsilon": 1}, ways=2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("stated", "decided"),
    [
        ({}, "plan"),
        ({"choose": "data"}, "data"),
        ({"choose": "best"}, None),
        ({"choose": "best", "records": 10**6}, "plan"),
        ({"choose": "best", "records": 100}, "data"),
    ],
)
def test_it_says_beforehand_who_chooses_the_tables(stated, decided):
    found = predict_tables(survey(), {"epsilon": 1}, **stated)
    assert found["decided"] == decided
    assert (found["misplaced"] is None) == ("records" not in stated)
    by_plan = predict_tables(survey(), {"epsilon": 1}, records=stated.get("records"))
    assert found["tables"] == by_plan["tables"]


def test_an_unknown_way_of_choosing_is_refused():
    with pytest.raises(InputError, match="choose"):
        predict_tables(survey(), {"epsilon": 1}, choose="oracle")
