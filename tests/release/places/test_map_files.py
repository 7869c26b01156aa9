"""Files of maps: what a reader of GeoPackages and GeoJSON finds in them."""

from __future__ import annotations

import json
import sqlite3
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError

# Three squares in a row, with a cell for points outside of all three.
RINGS = [[[x, 0], [x, 1], [x + 1, 1], [x + 1, 0], [x, 0]] for x in range(3)]
SHAPES = [{"type": "Polygon", "coordinates": [ring]} for ring in RINGS]
TRACTS = bf.Districts.from_shapes(SHAPES, ["A", "B", "C"])
PLACE = bf.Domain.from_polygons(TRACTS, name="tract").with_extra_cells(outside=True)
COUNTS = [40, 5, 300, 2]
LAPLACE = bf.Laplace(bf.policies.AddRemove(PLACE), epsilon=1)
RELEASE = LAPLACE.release(COUNTS, rng=1)
GRID = bf.Domain.from_box((2, 3), lat=(46, 48), lon=(7, 10))


def read(path, question):
    """Return the rows of a GeoPackage, which is a file of SQLite."""
    with sqlite3.connect(path) as file:
        return file.execute(question).fetchall()


def test_a_geopackage_holds_estimates_intervals_promise_and_style(tmp_path):
    path = tmp_path / "tracts.gpkg"
    RELEASE.to_geopackage(path, TRACTS)
    assert read(path, "PRAGMA integrity_check") == [("ok",)]
    rows = read(path, "SELECT id, estimate, low, high, geom IS NULL FROM tract")
    assert [row[0] for row in rows] == ["A", "B", "C", "(outside)"]
    np.testing.assert_array_equal([row[1] for row in rows], RELEASE.estimate)
    assert all(low <= estimate <= high for _, estimate, low, high, _ in rows)
    assert [row[4] for row in rows] == [0, 0, 0, 1]
    ((promise, system),) = read(
        path, "SELECT description, srs_id FROM gpkg_contents WHERE table_name = 'tract'"
    )
    assert promise.startswith("An experiment that protects nobody")
    assert system == 4326
    ((style, default),) = read(path, "SELECT styleQML, useAsDefault FROM layer_styles")
    assert default == 1
    renderer = ElementTree.fromstring(style).find("renderer-v2")
    filters = [rule.get("filter") for rule in renderer.iter("rule")]
    # A class of colours for each of three cells, and hatching where the interval is
    # wider than the count.
    assert len(filters) == 4
    assert filters[-1] == '"high" - "low" > 1 * "estimate"'
    assert {layer.get("class") for layer in renderer.iter("layer")} == {
        "SimpleFill",
        "LinePatternFill",
    }


def test_a_geopackage_has_no_column_beyond_what_was_published(tmp_path):
    RELEASE.to_geopackage(tmp_path / "a.gpkg", TRACTS)
    names = [row[1] for row in read(tmp_path / "a.gpkg", "PRAGMA table_info(tract)")]
    assert names == ["fid", "geom", "id", "estimate", "low", "high"]


def test_geojson_follows_its_standard(tmp_path):
    path = tmp_path / "tracts.geojson"
    RELEASE.to_geojson(path, TRACTS)
    content = json.loads(path.read_text())
    assert content["promise"].startswith("An experiment")
    first, *_, last = content["features"]
    assert first["properties"].keys() == {"tract", "estimate", "low", "high"}
    assert last["geometry"] is None
    # The standard wants outer rings to run against the clock. `RINGS` run with it.
    ((ring,),) = first["geometry"]["coordinates"]
    assert ring == RINGS[0][::-1]
    shapes = [feature["geometry"] for feature in content["features"][:3]]
    read_back = bf.Districts.from_shapes(shapes, ["A", "B", "C"])
    assert read_back.digest == TRACTS.digest


def test_cells_of_a_grid_lie_where_they_belong(tmp_path):
    counts = np.arange(6).reshape(2, 3) * 100
    laplace = bf.Laplace(bf.policies.AddRemove(GRID), epsilon=1)
    release = laplace.release(counts, rng=1)
    release.to_geojson(tmp_path / "grid.geojson")
    features = json.loads((tmp_path / "grid.geojson").read_text())["features"]
    assert len(features) == 6
    # Feature 4 is row 1, column 1: latitudes from 47 on, longitudes from 8 on.
    ((ring,),) = features[4]["geometry"]["coordinates"]
    assert ring[0] == [8, 47]
    assert features[4]["properties"]["estimate"] == release.estimate[1, 1]
    release.to_geopackage(tmp_path / "grid.gpkg")
    assert read(tmp_path / "grid.gpkg", "SELECT count(*) FROM cell") == [(6,)]


def test_intervals_of_the_noise_alone_are_called_so(tmp_path):
    grid = bf.Domain.from_box((16, 16), x=(0, 1), y=(0, 1))
    asked = bf.workloads.Rectangles.random(grid, 20, rng=1)
    dawa = bf.Dawa(bf.policies.AddRemove(grid), asked, epsilon=0.1)
    release = dawa.release(np.full((16, 16), 9), rng=1)
    path = tmp_path / "noise.gpkg"
    release.to_geopackage(path)
    names = [row[1] for row in read(path, "PRAGMA table_info(cell)")]
    assert names[-2:] == ["noise_low", "noise_high"]
    # -1 stands for a plane without a reference system: sides are called x and y.
    assert read(path, "SELECT srs_id FROM gpkg_geometry_columns") == [(-1,)]
    with pytest.raises(InputError, match="GeoJSON is in WGS 84"):
        release.to_geojson(tmp_path / "noise.geojson")


def test_polygons_of_other_cells_are_refused(tmp_path):
    other = bf.Districts.from_shapes(SHAPES, ["A", "B", "D"])
    with pytest.raises(InputError, match="districts with these borders"):
        RELEASE.to_geojson(tmp_path / "a.geojson", other)
    # Categories without borders become a map by districts of the same ids.
    plain = bf.Domain.from_levels(["A", "B"], name="tract")
    release = bf.Laplace(bf.policies.Full(plain), epsilon=1).release([5, 6], rng=1)
    release.to_geojson(tmp_path / "b.geojson", TRACTS)
    with pytest.raises(InputError, match="a map needs Districts"):
        release.to_geojson(tmp_path / "b.geojson", SHAPES)
    with pytest.raises(InputError, match="a grid of two axes"):
        release.to_geojson(tmp_path / "b.geojson")


def test_systems_of_other_countries_are_named(tmp_path):
    swiss = bf.Districts.from_shapes(SHAPES, ["A", "B", "C"], system="EPSG:2056")
    place = bf.Domain.from_polygons(swiss)
    release = bf.Laplace(bf.policies.Full(place), epsilon=1).release([5, 6, 7], rng=1)
    release.to_geopackage(tmp_path / "swiss.gpkg", swiss)
    systems = read(tmp_path / "swiss.gpkg", "SELECT srs_id FROM gpkg_geometry_columns")
    assert systems == [(2056,)]
    question = "SELECT srs_id, organization, organization_coordsys_id FROM {} WHERE {}"
    asked = question.format("gpkg_spatial_ref_sys", "srs_id > 4326 OR srs_id = 2056")
    assert read(tmp_path / "swiss.gpkg", asked) == [(2056, "EPSG", 2056)]


def test_a_grid_of_x_and_y_is_where_somebody_says_it_is(tmp_path):
    metres = bf.Domain.from_box((2, 2), y=(0, 10), x=(0, 10))
    release = bf.Laplace(bf.policies.Full(metres), epsilon=1).release(
        [[5, 6], [7, 8]], rng=1
    )
    path = tmp_path / "metres.gpkg"
    release.to_geopackage(path, system="urn:ogc:def:crs:EPSG::3301")
    assert read(path, "SELECT srs_id FROM gpkg_geometry_columns") == [(3301,)]
    with pytest.raises(InputError, match="stated by a number"):
        release.to_geopackage(path, system="metres")
    with pytest.raises(InputError, match="that of their polygons"):
        RELEASE.to_geopackage(path, TRACTS, system="EPSG:3301")
    RELEASE.to_geopackage(path, TRACTS, system="OGC:CRS84")
    degrees = bf.Laplace(bf.policies.AddRemove(GRID), epsilon=1)
    with pytest.raises(InputError, match="degrees of WGS 84"):
        degrees.release(np.ones((2, 3)), rng=1).to_geopackage(path, system="EPSG:3301")


def test_a_style_stands_beside_geojson_where_it_is_asked_for(tmp_path):
    RELEASE.to_geojson(tmp_path / "plain.geojson", TRACTS)
    RELEASE.to_geojson(tmp_path / "tracts.geojson", TRACTS, style=True)
    RELEASE.to_geopackage(tmp_path / "tracts.gpkg", TRACTS)
    question = "SELECT styleQML FROM layer_styles"
    ((style,),) = read(tmp_path / "tracts.gpkg", question)
    assert (tmp_path / "tracts.qml").read_text(encoding="utf-8") == style
    assert not (tmp_path / "plain.qml").exists()


def test_readers_of_maps_open_both_files(tmp_path):
    geopandas = pytest.importorskip("geopandas")
    RELEASE.to_geopackage(tmp_path / "tracts.gpkg", TRACTS)
    RELEASE.to_geojson(tmp_path / "tracts.geojson", TRACTS)
    for name in ("tracts.gpkg", "tracts.geojson"):
        frame = geopandas.read_file(tmp_path / name, layer="tract")
        assert frame.crs.to_epsg() == 4326
        assert len(frame) == 4
        np.testing.assert_allclose(frame["estimate"], RELEASE.estimate)
        assert frame.geometry.iloc[1].bounds == (1.0, 0.0, 2.0, 1.0)


def nested_country():
    """Return twelve tracts, and how they lie in states, with a cell for points outside.

    A code such as "a02" is read digit by digit: the level "State" is "a", the level
    "state" is "a0". These two names differ in capitals only.
    """
    corners = [(x, y) for x in range(4) for y in range(3)]
    shapes = [
        {
            "type": "Polygon",
            "coordinates": [[[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1]]],
        }
        for x, y in corners
    ]
    ids = [f"{'ab'[x // 2]}{x}{y}" for x, y in corners]
    tracts = bf.Districts.from_shapes(shapes, ids)
    place = bf.Domain.from_polygons(tracts, name="tract").with_extra_cells(outside=True)
    nest = bf.Nesting.from_codes(ids, [1, 2, 3], names=["State", "state", "tract"])
    return tracts, nest.over(place)


def test_every_level_of_nested_districts_is_a_layer_with_its_style(tmp_path):
    tracts, nest = nested_country()
    policy = bf.policies.AddRemove(nest.domain)
    asked = nest.workload(State=1, state=1, tract=1)
    release = bf.Nested(policy, asked, epsilon=1).release(np.arange(13) * 9, rng=1)
    path = tmp_path / "levels.gpkg"
    release.to_geopackage(path, tracts)
    assert read(path, "PRAGMA integrity_check") == [("ok",)]
    question = "SELECT f_table_name, useAsDefault FROM layer_styles"
    # The second of two names that SQLite takes for one gets a number.
    assert read(path, question) == [
        ("tract", 1),
        ("state", 1),
        ("State_2", 1),
        ("all", 1),
    ]
    assert read(path, "SELECT count(*) FROM gpkg_geometry_columns") == [(4,)]
    for layer, level in (("state", "state"), ("State_2", "State"), ("all", "all")):
        rows = read(path, f'SELECT id, estimate, low, high, geom FROM "{layer}"')
        answers = release.level(level)
        assert {row[0]: row[1] for row in rows} == {
            id: float(count) for id, count in answers.items()
        }
        assert all(low <= estimate <= high for _, estimate, low, high, _ in rows)
    # Three tracts in a column have one outline, without the borders between them. Its
    # bytes: a header with the box, the heads of a collection and of its polygon, the
    # number of points, and nine points of two doubles.
    ((blob,),) = read(path, "SELECT geom FROM state WHERE id = 'a0'")
    assert len(blob) == 40 + 9 + 9 + 4 + 9 * 16
    pyogrio = pytest.importorskip("pyogrio")
    names = [name for name, _ in pyogrio.list_layers(path)]
    assert names == ["tract", "state", "State_2", "all", "layer_styles"]


def test_levels_that_nothing_measured_tells_apart_are_no_layers(tmp_path):
    tracts, nest = nested_country()
    policy = bf.policies.AddRemove(nest.domain)
    asked = nest.workload(state=1)
    release = bf.Nested(policy, asked, epsilon=1).release(np.arange(13) * 9, rng=1)
    path = tmp_path / "levels.gpkg"
    release.to_geopackage(path, tracts)
    assert read(path, "SELECT f_table_name FROM layer_styles") == [
        ("state",),
        ("State_2",),
    ]


def test_a_layer_has_no_name_that_the_format_keeps_for_itself(tmp_path):
    # SQLite has a table of this name in every GeoPackage.
    tracts, _ = nested_country()
    place = bf.Domain.from_levels(tracts.ids, name="gpkg_contents")
    laplace = bf.Laplace(bf.policies.AddRemove(place), epsilon=1)
    path = tmp_path / "named.gpkg"
    laplace.release(np.arange(12), rng=1).to_geopackage(path, tracts)
    assert read(path, "SELECT count(*) FROM level_gpkg_contents") == [(12,)]
