"""Records of a person that are left out: the curator sees, and analysts are told."""

from __future__ import annotations

import pytest

from blowfish_fast.apps.server.keys import CURATOR

VISITS = {
    "name": "visits",
    "attributes": [{"name": "age", "cells": {"start": 0, "stop": 100, "width": 10}}],
    "person": "patient",
    "record": "visit",
    "at_most": 3,
    "presence": True,
}
PATH = "/api/curator/tables/visits/lost-records"


def add_visits(served):
    """Describe 200 patients of two visits each, and one of 40."""
    lines = [f"0,{visit},95" for visit in range(40)]
    lines += [f"{1 + at // 2},{1000 + at},{20 + at % 60}" for at in range(400)]
    text = "patient,visit,age\n" + "\n".join(lines) + "\n"
    served.workspace.add_csv("visits", text.encode())
    return served.workspace.add_table(VISITS, epsilon=5)


@pytest.fixture
def visited(own_server):
    add_visits(own_server)
    return own_server


def told(client):
    tables = client.get("/api/tables").json()
    return {table["name"]: table["lost_records"] for table in tables}


@pytest.mark.long
def test_the_truth_is_the_curators_and_what_was_measured_is_everybodys(visited):
    with visited.client(CURATOR) as curator, visited.client("ann") as ann:
        shown = curator.get(PATH).json()
        assert (shown["records"], shown["persons"], shown["little"]) == (440, 201, 50)
        assert shown["measured"] is None
        assert told(ann) == {"people": None, "visits": None}
        assert ann.get(PATH).status_code == 403
        paid = curator.post(PATH, json={"up_to": 20, "epsilon": 1})
        assert paid.status_code == 200, paid.text
        assert told(ann)["visits"] == paid.json()
        assert curator.get(PATH).json()["measured"] == paid.json()
        assert curator.get("/api/curator/tables/people/lost-records").status_code == 404
    assert float(visited.workspace.explorer("visits").ledger.spent) == 1
    log = (visited.workspace.folder / "logs" / "audit.log").read_text()
    assert "lost records" in log


@pytest.mark.long
def test_previews_show_all_records_beside_those_that_count(visited):
    asked = {"kind": "histogram", "table": "visits", "attribute": "age"}
    body = {"question": {**asked, "cost": {"alpha": 9}}, "epsilon": 1}
    with visited.client(CURATOR) as curator:
        shown = curator.post("/api/curator/preview", json=body).json()
    assert (shown["truth"][9], shown["whole"][9]) == (3, 40)
