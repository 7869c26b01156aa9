"""Levels with borders: described, kept out of what needs none, and sent to be drawn."""

from __future__ import annotations

import json

import pytest

from blowfish_fast.apps.description.tables import job_of_table
from blowfish_fast.apps.explorer import catalog
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.apps.server.keys import CURATOR
from blowfish_fast.apps.server.price_workers import PriceTask
from blowfish_fast.errors import CatalogError, InputError

from .serving import TABLE

SEX = {"kind": "histogram", "table": "placed", "attribute": "sex"}


def square(level, at):
    corners = [[at, 0], [at + 1, 0], [at + 1, 1], [at, 1], [at, 0]]
    shape = {"type": "Polygon", "coordinates": [corners]}
    return {"type": "Feature", "properties": {"code": level}, "geometry": shape}


def borders(*levels):
    return {
        "id": "code",
        "features": [square(one, at) for at, one in enumerate(levels)],
    }


def table(**attribute):
    return {"name": "placed", "attributes": [{"name": "sex", **attribute}]}


def test_districts_state_the_levels_and_are_kept_with_the_table():
    read = as_table(table(districts=borders("f", "m")))
    assert read.attributes[0].levels == ["f", "m"]
    assert read.policy() == as_table(table(levels=["f", "m"])).policy()
    assert as_table(json.loads(json.dumps(read.to_dict()))) == read
    assert read.without_borders() == as_table(table(levels=["f", "m"]))
    assert read.without_borders().without_borders().attributes[0].districts is None
    # A level may be nowhere, and is said beside the map.
    stated = as_table(table(levels=["m", "online", "f"], districts=borders("f", "m")))
    assert [*stated.attributes[0].districts.named] == ["f", "m"]


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ({"districts": borders("f", "f")}, "received 'f' a second time"),
        ({"districts": borders("f", None)}, "received None"),
        ({"districts": {**borders("f"), "id": "name"}}, "Its columns are code"),
        ({"districts": {"id": "code", "features": [{}]}}, "Its columns are none"),
        ({"districts": {"id": "code", "features": []}}, "must list at least 1"),
        (
            {"districts": {"id": "code", "features": [{"properties": "f"}]}},
            "a feature of GeoJSON has properties",
        ),
        (
            {"levels": ["f"], "districts": borders("f", "m")},
            "received 'm', which is none",
        ),
        (
            {"edges": [0, 1], "districts": borders("f")},
            "received 'f', which is none",
        ),
    ],
)
def test_borders_that_fit_no_level_are_refused(attribute, reason):
    with pytest.raises(CatalogError, match=reason):
        as_table(table(**attribute))


def test_borders_of_too_many_corners_are_refused(monkeypatch):
    monkeypatch.setattr(catalog, "MOST_CORNERS", 9)
    with pytest.raises(CatalogError, match="received 10: simplify"):
        as_table(table(districts=borders("f", "m")))


def test_a_release_takes_the_ids_of_districts_as_categories():
    job = job_of_table(table(districts=borders("f", "m")))
    assert job["domain"]["sex"]["levels"] == ["f", "m"]
    stated = job_of_table(table(levels=["f"], districts=borders("f")))
    assert stated["domain"]["sex"]["levels"] == ["f"]
    with pytest.raises(InputError, match="the property that is their id"):
        job_of_table(table(districts={"features": "all"}))


@pytest.mark.long
def test_borders_are_sent_once_to_whoever_draws_and_never_with_prices(served):
    described = {**TABLE, **table(districts=borders("f", "m")), "source": "others"}
    with served.client(CURATOR) as curator, served.client("ann") as ann:
        added = curator.post(
            "/api/curator/tables", json={"table": described, "epsilon": 1}
        )
        added.raise_for_status()
        where = {"table": "placed", "attribute": "sex"}
        drawn = ann.get("/api/districts", params=where).json()
        assert drawn["degrees"] is True
        assert [one["id"] for one in drawn["districts"]] == ["f", "m"]
        assert drawn["districts"][1]["polygons"][0][0][0] == [1.0, 0.0]
        (listed,) = (
            one for one in ann.get("/api/tables").json() if one["name"] == "placed"
        )
        assert listed["attributes"][0]["districts"] is True
        nowhere = ann.get(
            "/api/districts", params={"table": "people", "attribute": "age"}
        )
        assert nowhere.status_code == 404
        asked = {**SEX, "cost": {"epsilon": 0.5}}
        answer = curator.post("/api/ask", json={"question": asked}).json()
        assert answer["axes"][0]["districts"] is True
        assert answer["axes"][0]["edges"] == ["f", "m"]
    explorer = served.workspace.explorer("placed")
    task = PriceTask.of("price", explorer.planner, explorer.table, None)
    assert "districts" not in json.dumps(task.table)
