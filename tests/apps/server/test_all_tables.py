"""A curator sees which of all tables would be accurate, before anything is paid."""

from __future__ import annotations

import pytest

from blowfish_fast.apps.description.tables import job_of_table
from blowfish_fast.apps.explorer.all_tables import predict_tables
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.apps.server.keys import CURATOR

PATH = "/api/curator/all-tables"


@pytest.mark.long
def test_all_tables_are_predicted_and_nothing_is_charged(served):
    ledger = served.workspace.explorer("people").ledger
    head = ledger.verify()
    body = {"table": "people", "epsilon": 1, "records": 4000}
    with served.client(CURATOR) as client:
        found = client.post(PATH, json=body).json()
        pair = client.post(PATH, json={**body, "columns": ["age", "sex"]}).json()
        by_data = client.post(PATH, json={**body, "choose": "data"}).json()
    assert (found["decided"], by_data["decided"]) == ("plan", "data")
    assert found["columns"] == ["age", "sex", "pay"]
    assert len(found["tables"]) == 6
    assert len(pair["tables"]) == 3
    assert pair["tables"][2]["error"] < found["tables"][3]["error"]
    assert ledger.verify() == head


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"ways": 4}, 422),
        ({"columns": ["age", "age"]}, 422),
        ({"columns": ["height"]}, 404),
        ({"epsilon": 0}, 422),
        ({"choose": "oracle"}, 422),
    ],
)
def test_what_cannot_be_predicted_is_refused(served, change, status):
    body = {"table": "people", "epsilon": 1, **change}
    with served.client(CURATOR) as client:
        assert client.post(PATH, json=body).status_code == status


@pytest.mark.parametrize("columns", [["age", "ward"], ["ward", "sex"]])
def test_a_prediction_has_the_description_that_the_command_line_releases(columns):
    age = {"name": "age", "cells": {"start": 0, "stop": 80, "width": 10}}
    table = as_table(
        {
            "name": "visits",
            "attributes": [
                age,
                {"name": "ward", "levels": ["a", "b"]},
                {"name": "sex", "levels": ["f", "m"]},
            ],
            "policies": {"age": {"kind": "line"}},
            "sample": {
                "drawn": "weighted",
                "column": "sex",
                "weights": [2.0, 3.0],
            },
        }
    )
    found = predict_tables(table, {"epsilon": 1}, columns=columns)
    released = as_table(found["described"])
    assert [one.name for one in released.attributes] == columns
    # What is secret stays the same: one attribute moves at a time.
    seen = table.policy().through(columns)
    assert repr(released.policy().through(columns)) == repr(seen)
    assert (released.sample is None) == ("sex" not in columns)
    assert job_of_table(found["described"])["domain"].keys() == {*columns}


def test_tables_of_a_population_are_released_by_the_explorer_alone():
    age = {"name": "age", "cells": {"start": 0, "stop": 80, "width": 10}}
    table = {"name": "visits", "attributes": [age], "person": "who", "at_most": 2}
    of_people = as_table({**table, "population": "patients"})
    assert predict_tables(of_people, {"epsilon": 1})["described"] is None


def test_analysts_have_the_means_of_analysts(served):
    with served.client("ann") as client:
        answer = client.post(PATH, json={"table": "people", "epsilon": 1})
    assert answer.status_code == 403
