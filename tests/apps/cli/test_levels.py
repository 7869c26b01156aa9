"""Districts inside districts on the command line: levels, blocks and maps in words."""

from __future__ import annotations

import json
import sqlite3
import sys

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.parsing.domain import parse_domain
from blowfish_fast.apps.cli.parsing.policy import parse_policy
from blowfish_fast.apps.cli.parsing.workload import parse_workload
from blowfish_fast.errors import InputError
from tests.apps.cli.asking import refused, run, told
from tests.data.places.test_hexagons import AREA, squares

pytestmark = pytest.mark.usefixtures("empty_folder")

BLOCKS = "block=categories:@blocks.csv:block"
LEVELS = "levels:blocks.csv:state,county,block*2"
ASKED = ["--epsilon", "1", "--policy", "blocks:blocks.csv:county"]


@pytest.fixture(autouse=True)
def country(empty_folder):
    """Write a table of eighteen blocks in six counties, polygons, and people."""
    ids = [
        f"{state}{county}{block}"
        for state in "NS"
        for county in "012"
        for block in "012"
    ]
    lines = [f"{id},{id[:2]},{id[0]}" for id in ids]
    (empty_folder / "blocks.csv").write_text(
        "\n".join(["block,county,state", *lines]) + "\n"
    )
    features = []
    for at, id in enumerate(ids):
        x, y = divmod(at, 3)
        ring = [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1], [x, y]]
        shape = {"type": "Polygon", "coordinates": [ring]}
        about = {"block": id, "county": id[:2], "state": id[0], "code": 1000 + at}
        features.append({"type": "Feature", "properties": about, "geometry": shape})
    whole = {"type": "FeatureCollection", "features": features}
    (empty_folder / "blocks.geojson").write_text(json.dumps(whole))
    counts = np.random.default_rng(1).poisson(25, len(ids))
    people = [id for id, count in zip(ids, counts, strict=True) for _ in range(count)]
    (empty_folder / "people.csv").write_text("\n".join(["block", *people]) + "\n")
    return dict(zip(ids, counts.tolist(), strict=True))


def counted(country, digits):
    """Return the true count of every district whose code has so many digits."""
    totals = {}
    for id, count in country.items():
        totals[id[:digits]] = totals.get(id[:digits], 0) + count
    return totals


def test_levels_of_a_table_are_released_by_nested_and_asked_by_name(country):
    answer = told(
        *("release", "--data", "people.csv", "--domain", BLOCKS, *ASKED),
        *("--workload", LEVELS, "--out", "a.blowfish"),
    )
    assert answer["mechanism"] == "nested"
    asked = told("answer", "a.blowfish", "--by", "county")["answers"]
    # The county of a person is no secret under these blocks, so counties are exact.
    assert {row["county"]: row["count"] for row in asked} == counted(country, 2)
    saved = bf.Release.load("a.blowfish")
    assert saved.details["levels"] == ["all", "state", "county", "block"]
    # The last level is the column itself.
    blocks = told("answer", "a.blowfish", "--by", "block")["answers"]
    assert [row["block"] for row in blocks] == list(country)
    said = refused("answer", "a.blowfish", "--by", "county", "--by", "state")
    assert "--by LEVEL alone" in str(said)


def test_a_job_file_states_levels_and_blocks(country, empty_folder):
    folder = empty_folder / "job"
    folder.mkdir()
    for name in ("blocks.csv", "people.csv"):
        (empty_folder / name).rename(folder / name)
    (folder / "job.toml").write_text(
        '[data]\nsource = "people.csv"\n'
        '[domain]\nblock = "categories:@blocks.csv:block"\n'
        '[policy]\nkind = "blocks:blocks.csv:state"\n'
        '[workload]\nkind = "levels"\nfile = "blocks.csv"\n'
        'columns = ["state*0", "county", "block"]\n'
        '[budget]\nepsilon = 1\n[output]\nrelease = "a.blowfish"\n'
    )
    told("release", "job/job.toml")
    asked = told("answer", "job/a.blowfish", "--by", "state")["answers"]
    assert {row["state"]: row["count"] for row in asked} == counted(country, 1)


def test_polygons_of_levels_open_as_one_file(country):
    with open("points.csv", "w") as file:
        file.write("lon,lat\n0.5,0.5\n1.5,0.5\n2.5,2.5\n")
    told(
        *("release", "--data", "points.csv", "--epsilon", "1"),
        *("--domain", "block=polygons:blocks.geojson:block", "--policy", "add_remove"),
        *("--workload", "levels:blocks.geojson:state,county,block"),
        *("--out", "map.gpkg"),
    )
    with sqlite3.connect("map.gpkg") as file:
        styled = file.execute("SELECT f_table_name FROM layer_styles").fetchall()
    assert [name for (name,) in styled] == ["block", "county", "state", "all"]


def test_beginnings_of_codes_are_levels():
    domain = parse_domain(BLOCKS)
    asked = parse_workload("levels:codes:1,2*4,3", domain)
    assert dict(asked.importance) == {"digits_1": 1, "digits_2": 4, "digits_3": 1}
    numbers = parse_domain("code=polygons:blocks.geojson:code")
    asked = parse_workload("levels:codes:3,4", numbers)
    assert asked.nest.ids("digits_3") == ("100", "101")
    table = parse_workload("levels:blocks.geojson:county,code", numbers)
    assert table.nest.ids("code") == tuple(range(1000, 1018))


def test_hexagons_are_a_domain_in_words(monkeypatch, empty_folder):
    monkeypatch.setitem(sys.modules, "h3", squares())
    (empty_folder / "area.geojson").write_text(json.dumps(AREA))
    (empty_folder / "points.csv").write_text("lon,lat\n7.25,46.25\n7.75,46.75\n")
    domain = parse_domain("hexagon=h3:area.geojson:4")
    assert domain.size == 100
    assert domain.attributes[0].borders.columns == ("lon", "lat")
    collection = {
        "type": "FeatureCollection",
        "features": [{"type": "Feature", "geometry": AREA}],
    }
    (empty_folder / "area.geojson").write_text(json.dumps(collection))
    assert parse_domain("hexagon=h3:area.geojson:4") == domain
    (empty_folder / "job.toml").write_text(
        '[data]\nsource = "points.csv"\n[domain]\nhexagon = "h3:area.geojson:4"\n'
        '[policy]\nkind = "neighbours"\n[workload]\nkind = "identity"\n'
        '[budget]\nepsilon = 1\n[output]\nmap = "hexagons.gpkg"\n'
    )
    told("release", "job.toml")
    with sqlite3.connect("hexagons.gpkg") as file:
        assert file.execute("SELECT count(*) FROM hexagon").fetchone() == (100,)


def test_an_area_in_metres_is_refused(empty_folder):
    named = {"type": "name", "properties": {"name": "EPSG:2056"}}
    (empty_folder / "area.geojson").write_text(json.dumps(AREA | {"crs": named}))
    with pytest.raises(InputError, match="GeoJSON in WGS 84"):
        parse_domain("hexagon=h3:area.geojson:4")


def test_parents_of_hexagons_are_levels():
    listed = "871f90c86ffffff,871f90cb1ffffff,871f91000ffffff"
    domain = parse_domain(f"hexagon=categories:{listed}")
    asked = parse_workload("levels:h3:5*2,7", domain)
    assert asked.nest.ids("resolution_5") == ("851f90cbfffffff", "851f9103fffffff")
    assert asked.nest.labels("resolution_5").tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("levels", "levels:FILE:LARGEST"),
        ("levels:blocks.csv:county,county", "named once each"),
        ("levels:blocks.csv:town,block", "no column 'town'"),
        ("levels:blocks.csv:block,county", "stand on one side alone"),
        ("levels:codes:a,b", "whole numbers"),
        ("levels:codes:1,2", "symbols"),
        ("levels:h3:4,5", "ids of H3"),
        ("levels:other.csv:county,block", "stand on one side alone"),
        ("levels:short.csv:county,block", "2 fields"),
    ],
)
def test_levels_that_do_not_fit_are_refused(words, why, empty_folder):
    (empty_folder / "other.csv").write_text("county,block\nN0,N00\n")
    (empty_folder / "short.csv").write_text("county,block\nN0\n")
    with pytest.raises(InputError, match=why):
        parse_workload(words, parse_domain(BLOCKS))


def test_levels_are_those_of_one_column():
    with pytest.raises(InputError, match="one column of districts"):
        parse_workload("levels:codes:1,2", parse_domain("age=0:10:1"))


def test_blocks_of_a_column_are_checked(empty_folder):
    domain = parse_domain(BLOCKS)
    policy = parse_policy("blocks:blocks.csv:county", domain)
    assert len(set(np.asarray(policy.labels).reshape(-1).tolist())) == 6
    (empty_folder / "twice.csv").write_text("block,county\nN00,N0\nN00,N1\n")
    with pytest.raises(InputError, match="into two blocks"):
        parse_policy("blocks:twice.csv:county", domain)
    (empty_folder / "few.csv").write_text("id,county\nN00,N0\n")
    with pytest.raises(InputError, match="has none for N01"):
        parse_policy("blocks:few.csv:county,id", domain)


def test_the_least_epsilon_of_levels_is_that_of_nested():
    run(
        *("release", "--data", "people.csv", "--domain", BLOCKS, "--alpha", "30"),
        *("--policy", "add_remove", "--workload", LEVELS, "--out", "b.blowfish"),
        *("--beta", "0.05"),
    )
    assert bf.Release.load("b.blowfish").mechanism == "nested"
