"""Maps on the command line: points into polygons, files that open, polygons asked."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.parsing.domain import parse_domain
from blowfish_fast.apps.cli.parsing.job import Job
from tests.apps.cli.asking import refused, run, told

pytestmark = pytest.mark.usefixtures("empty_folder")

ASKED = ["--workload", "identity", "--epsilon", "1", "--mechanism", "laplace"]
TRACTS = ["--domain", "tract=polygons:tracts.geojson:code", "--outside", "cell"]


def square(x, y):
    ring = [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1], [x, y]]
    return {"type": "Polygon", "coordinates": [ring]}


@pytest.fixture(autouse=True)
def country(empty_folder):
    """Write six squares with numbers for codes, and points in and around them."""
    features = [
        {
            "type": "Feature",
            "properties": {"code": 100 + 2 * x + y, "tract": f"T{x}{y}"},
            "geometry": square(x, y),
        }
        for x in range(3)
        for y in range(2)
    ]
    whole = {"type": "FeatureCollection", "features": features}
    (empty_folder / "tracts.geojson").write_text(json.dumps(whole))
    rng = np.random.default_rng(1)
    lon, lat = rng.uniform(0, 3, 6000), rng.uniform(0, 2, 6000)
    lon[:600], lon[600], lat[601] = 0.5, 9.0, np.nan
    lines = [
        f"{x:.5f},{y:.5f}" if y == y else f"{x:.5f},"
        for x, y in zip(lon, lat, strict=True)
    ]
    (empty_folder / "points.csv").write_text("\n".join(["lon,lat", *lines]) + "\n")
    return lon, lat


def release(*words, policy="neighbours", data="points.csv"):
    return told(
        *("release", "--data", data, *TRACTS, "--missing", "cell"),
        *(*ASKED, "--policy", policy, *words),
    )


def test_points_become_a_map_that_opens(empty_folder, country):
    files = release("--out", "tracts.gpkg", policy="add_remove")["files"]
    assert files == {"release": "tracts.blowfish", "map": "tracts.gpkg"}
    with sqlite3.connect("tracts.gpkg") as file:
        rows = file.execute("SELECT id, estimate, geom IS NULL FROM tract").fetchall()
    assert [row[0] for row in rows[:6]] == [str(code) for code in range(100, 106)]
    assert [row[2] for row in rows] == [0] * 6 + [1, 1]
    lon, lat = country
    first = np.count_nonzero((lon < 1) & (lat < 1))
    assert rows[0][1] == pytest.approx(first, abs=40)
    saved = bf.Release.load("tracts.blowfish")
    np.testing.assert_array_equal([row[1] for row in rows], saved.estimate)


def test_parquet_holds_points_or_names(country):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    lon, lat = country
    parquet.write_table(pyarrow.table({"lon": lon, "lat": lat}), "points.parquet")
    release("--out", "a.blowfish", policy="add_remove", data="points.parquet")
    points = bf.Release.load("a.blowfish").estimate
    names = pyarrow.table({"tract": [100] * 900 + [105] * 30})
    parquet.write_table(names, "names.parquet")
    release("--out", "b.blowfish", policy="add_remove", data="names.parquet")
    named = bf.Release.load("b.blowfish").estimate
    assert points[:6].sum() == pytest.approx(5998, abs=80)
    assert named[0] == pytest.approx(900, abs=40)
    assert named[5] == pytest.approx(30, abs=40)


def test_a_column_of_names_is_taken_before_points(empty_folder):
    lines = ["lon,lat,tract", *["0.5,0.5,105"] * 700]
    (empty_folder / "both.csv").write_text("\n".join(lines) + "\n")
    release(policy="add_remove", data="both.csv")
    estimate = bf.Release.load("release.blowfish").estimate
    assert estimate[5] == pytest.approx(700, abs=40)


def test_neighbours_are_a_policy_of_polygons():
    with pytest.raises(AssertionError):
        # A cell for missing coordinates has no border, and its total would be public.
        release()
    words = ["release", "--data", "points.csv", *TRACTS, *ASKED, "--dry-run"]
    told_words = told(*words, "--policy", "neighbours")
    assert told_words["columns"] == {"tract": 7}
    apart = release("--dry-run", policy="neighbours:public")
    assert apart["columns"] == {"tract": 8}
    problem = refused(*words, "--policy", "neighbours:far")
    assert "neighbours takes nothing" in str(problem)
    plain = ["release", "--data", "demo", "--domain", "age=16:91:1", *ASKED]
    problem = refused(*plain, "--policy", "neighbours")
    assert "NAME=polygons:FILE:ID" in str(problem)


def test_points_outside_are_counted_in_the_nearest_tract(empty_folder, country):
    lon, lat = country
    lines = [f"{x:.5f},{y:.5f}" for x, y in zip(lon, lat, strict=True) if y == y]
    lines += ["70.0,1.9"] * 500
    (empty_folder / "sea.csv").write_text("\n".join(["lon,lat", *lines]) + "\n")
    words = ["release", "--data", "sea.csv", *TRACTS[:2], "--outside", "clamp", *ASKED]
    assert told(*words, "--policy", "neighbours:nearest")["columns"] == {"tract": 6}
    estimate = bf.Release.load("release.blowfish").estimate
    east = np.count_nonzero((lon >= 2) & (lon < 3) & (lat >= 1)) + 500
    assert estimate[5] == pytest.approx(east, abs=40)
    assert estimate.sum() == pytest.approx(len(lines), abs=90)


def test_a_map_that_cannot_be_written_is_refused_before_it_is_paid(empty_folder):
    words = ["release", "--data", "points.csv", *TRACTS, *ASKED]
    words += ["--policy", "add_remove"]
    assert "made of a grid" in str(refused(*words, "--map", "a.tif"))
    assert "a map is written as" in str(refused(*words, "--map", "a.shp"))
    both = refused(*words, "--map", "a.gpkg", "--out", "b.gpkg")
    assert "Leave one of them out" in str(both)
    ages = ["release", "--data", "demo", *ASKED, "--policy", "line"]
    problem = refused(*ages, "--domain", "age=16:91:1", "--map", "ages.gpkg")
    assert "a grid of two axes" in str(problem)
    uneven = ["--domain", "lon=edges:0,1,3", "--domain", "lat=0:2:1"]
    points = ["release", "--data", "points.csv", *uneven, *ASKED]
    problem = refused(*points, "--policy", "add_remove", "--map", "a.tif")
    assert "one size" in str(problem)
    metres = ["--domain", "x=0:3:1", "--domain", "y=0:2:1"]
    (empty_folder / "metres.csv").write_text("x,y\n1,1\n")
    points = ["release", "--data", "metres.csv", *metres, *ASKED]
    problem = refused(*points, "--policy", "add_remove", "--map", "a.geojson")
    assert "WGS 84" in str(problem)
    wide = ["release", "--data", "points.csv", "--domain", "lon=0:4294967296:1"]
    problem = refused(*wide, *ASKED[:4], "--policy", "add_remove", "--map", "a.gpkg")
    assert "all cells" in str(problem)
    assert not (empty_folder / "release.blowfish").exists()


def grid(*words):
    return told(
        *("release", "--data", "points.csv", "--domain", "lon=0:3:0.25"),
        *("--domain", "lat=0:2:0.25", "--outside", "cell", "--missing", "cell"),
        *(*ASKED, "--policy", "add_remove", *words),
    )


def test_a_grid_is_asked_by_polygons_and_written_as_a_map(empty_folder, country):
    grid("--out", "grid.tif")
    assert (empty_folder / "grid.tif").read_bytes()[:4] == b"II*\0"
    words = ["answer", "grid.blowfish", "--by", "tracts.geojson:code"]
    # So sure that no draw of the noise makes this fail.
    answered = told(*words, "--confidence", "0.999999")
    lon, lat = country
    for row in answered["answers"]:
        x, y = divmod(row["district"] - 100, 2)
        true = np.sum((lon >= x) & (lon < x + 1) & (lat >= y) & (lat < y + 1))
        assert row["low"] <= true <= row["high"]
    assert "spread evenly" not in answered["interval"]
    assert told(*words, "--out", "counts.gpkg")["written"] == "counts.gpkg"
    with sqlite3.connect("counts.gpkg") as file:
        rows = file.execute("SELECT id, estimate, low FROM district").fetchall()
    assert [row[0] for row in rows] == list(range(100, 106))
    assert [row[1] for row in rows] == [row["count"] for row in answered["answers"]]
    told(*words, "--out", "counts.geojson")
    assert json.loads((empty_folder / "counts.geojson").read_text())["promise"]
    assert "exists already" in str(refused(*words, "--out", "counts.gpkg"))
    assert "by polygons" in str(refused(*words, "--out", "counts.tif"))
    problem = refused("answer", "grid.blowfish", "--by", "lon", "--out", "a.gpkg")
    assert "by polygons" in str(problem)
    assert "alone" in str(refused(*words, "--where", "lon=0:1"))


def test_polygons_that_cut_cells_say_so(empty_folder):
    told(
        *("release", "--data", "points.csv", "--domain", "lon=0:3:1.5"),
        *("--domain", "lat=0:2:0.5", "--outside", "clamp", "--missing", "clamp"),
        *(*ASKED, "--policy", "add_remove"),
    )
    answered = told("answer", "release.blowfish", "--by", "tracts.geojson:code")
    assert "as if records were spread evenly" in answered["interval"]
    middle = answered["answers"][2]
    assert middle["low"] == 0
    assert middle["high"] > middle["count"]


def test_a_release_of_tables_is_not_asked_by_polygons():
    told(
        *("release", "--data", "demo", "--domain", "age=16:91:25"),
        *("--domain", "income=0:200000:50000", "--tables", "1"),
        *("--policy", "full", "--epsilon", "1"),
    )
    words = ["answer", "release.blowfish", "--by", "tracts.geojson:code"]
    done = refused(*words)
    assert "no column" in str(done) or "of a grid" in str(done)


def test_saved_releases_are_drawn_as_maps(empty_folder):
    pytest.importorskip("matplotlib")
    release("--out", "tracts.blowfish", policy="add_remove")
    drawn = ["draw", "tracts.blowfish", "--districts", "tracts.geojson:code"]
    assert run(*drawn, "--out", "map.png") == "written: map.png"
    run(*drawn, "--out", "map.gpkg")
    with sqlite3.connect("map.gpkg") as file:
        assert file.execute("SELECT count(*) FROM tract").fetchall() == [(8,)]
    problem = refused("draw", "tracts.blowfish", "--out", "other.gpkg")
    assert "--districts FILE:ID" in str(problem)
    problem = refused(*drawn, "--out", "other.gpkg", "--by", "tract")
    assert "leave --by" in str(problem)
    grid("--out", "grid.blowfish")
    run("draw", "grid.blowfish", "--out", "grid.geojson")
    assert (empty_folder / "grid.geojson").exists()
    told(
        *("release", "--data", "demo", "--domain", "age=16:91:25", "--out"),
        *("tables.blowfish", "--domain", "income=0:200000:50000", "--tables", "1"),
        *("--policy", "full", "--epsilon", "1"),
    )
    problem = refused("draw", "tables.blowfish", "--out", "tables.gpkg")
    assert "a grid of two axes" in str(problem)


@pytest.mark.parametrize(
    "stated",
    ['"polygons:tracts.geojson:code"', '{ file = "tracts.geojson", id = "code" }'],
)
def test_a_job_file_finds_polygons_beside_it(empty_folder, monkeypatch, stated):
    (empty_folder / "tracts.toml").write_text(
        '[data]\nsource = "points.csv"\nmissing = "cell"\noutside = "cell"\n'
        f"[domain]\ntract = {stated}\n"
        '[policy]\nkind = "add_remove"\n[workload]\nkind = "identity"\n'
        '[mechanism]\nname = "laplace"\n[budget]\nepsilon = 1\n'
        '[output]\nrelease = "a.blowfish"\nmap = "a.geojson"\n'
    )
    (empty_folder / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    job = Job.from_file(empty_folder / "tracts.toml")
    assert job.domain == [f"tract=polygons:{empty_folder}/tracts.geojson:code"]
    told("release", "../tracts.toml")
    content = json.loads((empty_folder / "a.geojson").read_text())
    assert len(content["features"]) == 8


def test_words_state_columns_and_a_system(empty_folder):
    keys = {"file": "tracts.geojson", "id": "tract", "lon": "east", "lat": "north"}
    job = Job.from_dict({"domain": {"place": {**keys, "step": 0.001}}})
    words = "place=polygons:tracts.geojson:tract:east,north:step=0.001"
    assert parse_domain(job.domain) == parse_domain(words)
    district = parse_domain("tract=polygons:tracts.geojson").attributes[0]
    assert district.levels[:2] == ("T00", "T01")
    assert district.borders.columns == ("lon", "lat")
    named = parse_domain("place=polygons:tracts.geojson:tract:east,north")
    assert named.attributes[0].borders.columns == ("east", "north")
    for words in ("nothing", "tracts.geojson:code:step=1e-e"):
        with pytest.raises(bf.errors.InputError, match="polygons are FILE"):
            parse_domain(f"tract=polygons:{words}")
    coarse = parse_domain("tract=polygons:tracts.geojson:step=0.001").attributes[0]
    assert coarse.borders.districts.step == 0.001
    with pytest.raises(bf.errors.InputError, match="system is that of the file"):
        parse_domain("tract=polygons:tracts.geojson:tract:x,y:EPSG:2056")


def test_points_in_degrees_meet_districts_of_any_system(empty_folder):
    pytest.importorskip("pyproj")
    content = json.loads((empty_folder / "tracts.geojson").read_text())
    content["crs"] = {"type": "name", "properties": {"name": "EPSG:3857"}}
    for feature in content["features"]:
        for ring in feature["geometry"]["coordinates"]:
            ring[:] = [[x * 111_319.490793, y * 111_319.490793] for x, y in ring]
    (empty_folder / "metres.geojson").write_text(json.dumps(content))
    plain = parse_domain("tract=polygons:tracts.geojson").attributes[0].borders
    moved = parse_domain("tract=polygons:metres.geojson:tract:lon,lat").attributes[0]
    assert moved.borders.columns == ("lon", "lat")
    # Six squares of one degree; parallels lie a little apart in that system.
    x, y = np.meshgrid([0.5, 1.5, 2.5], [0.5, 1.5], indexing="ij")
    names = [f"T{at}{up}" for at in range(3) for up in range(2)]
    assert plain.column(x.ravel(), y.ravel()).tolist() == names
    assert moved.borders.column(x.ravel(), y.ravel()).tolist() == names


def test_a_database_has_no_points(empty_folder):
    pytest.importorskip("ibis")
    with sqlite3.connect("points.sqlite") as file:
        file.execute("CREATE TABLE points (lon REAL, lat REAL)")
        file.execute("CREATE TABLE names (tract INTEGER)")
        file.executemany("INSERT INTO names VALUES (?)", [(101,)] * 500)
    words = ["release", "--data", "points.sqlite", *TRACTS[:2], *ASKED]
    words += ["--policy", "add_remove", "--data-table"]
    assert "located in CSV and Parquet" in str(refused(*words, "points"))
    told(*words, "names")
    assert bf.Release.load("release.blowfish").estimate[1] == pytest.approx(500, abs=40)


def test_a_map_of_metres_says_in_which_system(empty_folder):
    (empty_folder / "metres.csv").write_text("x,y\n1,1\n2,0.5\n")
    grid = ["--domain", "x=0:3:1", "--domain", "y=0:2:1"]
    words = ["release", "--data", "metres.csv", *grid, *ASKED, "--policy", "add_remove"]
    swiss = ["--map-system", "EPSG:2056"]
    told(*words, *swiss, "--out", "metres.gpkg")
    with sqlite3.connect("metres.gpkg") as file:
        question = "SELECT srs_id FROM gpkg_geometry_columns"
        assert file.execute(question).fetchall() == [(2056,)]
    told("draw", "metres.blowfish", *swiss, "--out", "metres.tif")
    assert (2056).to_bytes(2, "little") in (empty_folder / "metres.tif").read_bytes()
    problem = refused("draw", "metres.blowfish", *swiss, "--out", "metres.png")
    assert "a picture states no reference system" in str(problem)
    again = [*words, "--overwrite", "--out"]
    assert "that of a map" in str(refused(*again, "a.blowfish", *swiss))
    unknown = ["--map-system", "metres"]
    assert "by a number" in str(refused(*again, "a.gpkg", *unknown))
    assert not (empty_folder / "a.blowfish").exists()
