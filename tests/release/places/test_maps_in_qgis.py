"""Maps opened by QGIS itself, where the system's Python can import it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.release.places.map_classes import CLASSES

pytestmark = pytest.mark.long

PYTHON = shutil.which("python3", path=os.defpath)
"""The Python that a distribution installs QGIS for; never that of an environment."""
READER = Path(__file__).parent / "qgis_reader.py"

ALBERS = (
    'PROJCS["USA_Contiguous_Albers_Equal_Area_Conic",GEOGCS["NAD83",'
    'DATUM["North_American_Datum_1983",SPHEROID["GRS 1980",6378137,298.257222101]],'
    'PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],'
    'PROJECTION["Albers_Conic_Equal_Area"],PARAMETER["latitude_of_center",37.5],'
    'PARAMETER["longitude_of_center",-96],PARAMETER["standard_parallel_1",29.5],'
    'PARAMETER["standard_parallel_2",45.5],PARAMETER["false_easting",0],'
    'PARAMETER["false_northing",0],UNIT["metre",1]]'
)


def outside_python(*words):
    """Run the system's Python, which knows nothing of this environment."""
    shown = {"PATH": os.defpath, "HOME": os.environ.get("HOME", "/")}
    return subprocess.run(
        [PYTHON, *words],
        check=False,
        capture_output=True,
        text=True,
        env=shown | {"QT_QPA_PLATFORM": "offscreen", "LC_ALL": "C.UTF-8"},
        timeout=300,
    )


def square(x, y, size=1):
    ring = [[x, y], [x + size, y], [x + size, y + size], [x, y + size], [x, y]]
    return {"type": "Polygon", "coordinates": [ring]}


def districts():
    """Return a square with a town inside, an island beside it, and strange names."""
    town = [[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]
    around = square(0, 0, 3)["coordinates"][0]
    shapes = [
        {"type": "Polygon", "coordinates": [around, town]},
        {"type": "Polygon", "coordinates": [town]},
        {
            "type": "MultiPolygon",
            "coordinates": [
                square(4, 0, 1)["coordinates"],
                square(4, 2, 1)["coordinates"],
            ],
        },
    ]
    return bf.Districts.from_shapes(shapes, ["A & B", 'the "Rock"', "Lääne <C>"])


def write_maps(folder):
    """Write a map through each door; return what the tests compare them with."""
    tracts = districts()
    place = bf.Domain.from_polygons(tracts, name="tract").with_extra_cells(outside=True)
    sure = bf.Laplace(bf.policies.AddRemove(place), epsilon=1)
    towns = sure.release([400, 1, 3000, 9], rng=1)
    towns.to_geopackage(folder / "towns.gpkg", tracts)
    towns.to_geojson(folder / "towns.geojson", tracts, style=True)

    codes = [f"{county}{tract}" for county in "NS" for tract in range(3)]
    tiles = [square(x, y) for y in range(2) for x in range(3)]
    tiled = bf.Districts.from_shapes(tiles, codes)
    nest = bf.Nesting.from_codes(codes, [1, 2], names=["county", "tract"])
    nest = nest.over(bf.Domain.from_polygons(tiled, name="tract"))
    asked = nest.workload(county=1, tract=1)
    nested = bf.Nested(bf.policies.AddRemove(nest.domain), asked, epsilon=1)
    levels = nested.release([90, 0, 0, 500, 700, 20], rng=1)
    levels.to_geopackage(folder / "levels.gpkg", tiled)

    sparse = np.zeros((4, 10), dtype=int)
    sparse[1, 2:8] = 50, 150, 450, 900, 1500, 4000
    degrees = bf.Domain.from_box(sparse.shape, lat=(46, 48), lon=(7, 12))
    # So little noise that most cells are exactly 0.
    grid = bf.Laplace(bf.policies.AddRemove(degrees), epsilon=8).release(sparse, rng=1)
    grid.to_geopackage(folder / "grid.gpkg")
    grid.to_geotiff(folder / "grid.tif")

    metres = bf.Domain.from_box(
        (4, 10), y=(1_200_000, 1_202_000), x=(2_600_000, 2_605_000)
    )
    swiss = bf.Laplace(bf.policies.AddRemove(metres), epsilon=1).release(sparse, rng=1)
    swiss.to_geopackage(folder / "swiss.gpkg", system="EPSG:2056")
    swiss.to_geotiff(folder / "swiss.tif", system="EPSG:2056")
    swiss.to_geopackage(folder / "nowhere.gpkg")

    far = [square(1000 * x, 0, 1000) for x in range(2)]
    albers = bf.Districts.from_shapes(far, ["west", "east"], system=ALBERS)
    counties = bf.Domain.from_polygons(albers, name="county")
    equal = bf.Laplace(bf.policies.Full(counties), epsilon=1).release([500, 800], rng=1)
    equal.to_geopackage(folder / "albers.gpkg", albers)
    return {"towns": towns, "levels": levels, "grid": grid}


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("maps")
    if PYTHON is None or outside_python("-c", "import qgis.core").returncode:
        pytest.skip("the system's python3 cannot import qgis.core: QGIS is not there")
    releases = write_maps(folder)
    maps = sorted(str(path) for path in folder.iterdir() if path.suffix != ".qml")
    done = outside_python(str(READER), str(folder), *maps)
    assert done.returncode == 0, done.stderr
    # Whatever QGIS prints itself stands before the line of the reader.
    return releases, json.loads(done.stdout.splitlines()[-1])["files"]


@pytest.fixture
def opened(released):
    return released[1]


def test_every_layer_opens_where_it_belongs(opened):
    for name, layers in opened.items():
        assert layers, name
        assert all(layer["valid"] for layer in layers.values()), name
        assert not any(layer.get("invalid") for layer in layers.values()), name
    for name in ("towns.gpkg", "towns.geojson"):
        assert opened[name]["tract"]["system"] == "EPSG:4326"
        assert opened[name]["tract"]["box"] == [0, 0, 5, 3]
    assert opened["grid.gpkg"]["cell"]["box"] == [7, 46, 12, 48]
    swiss = opened["swiss.gpkg"]["cell"]
    assert swiss["system"] == "EPSG:2056"
    assert swiss["box"] == [2_600_000, 1_200_000, 2_605_000, 1_202_000]
    assert "+proj=aea" in opened["albers.gpkg"]["county"]["projection"]
    assert "+lat_1=29.5" in opened["albers.gpkg"]["county"]["projection"]
    assert opened["nowhere.gpkg"]["cell"]["system_name"] == "Undefined Cartesian SRS"


def test_the_style_of_the_file_is_applied_by_itself(opened):
    for name, layers in opened.items():
        for layer in layers.values():
            if name.endswith(".tif"):
                continue
            loaded, message = layer["style"]
            assert loaded, name
            if name.endswith(".gpkg"):
                assert message == "Loaded from Provider"
            assert layer["renderer"] == "RuleRenderer"
            *classes, wide = layer["rules"]
            assert wide[2] == "LinePatternFill"
            assert {kind for _, _, kind, _ in classes} == {"SimpleFill"}
            # A class without a cell would be a colour that is nowhere on the map.
            assert all(held > 0 for *_, held in classes), (name, classes)


def test_promises_are_in_the_properties_of_a_layer(released):
    releases, opened = released
    about = opened["towns.gpkg"]["tract"]["about"]
    assert about.startswith(str(releases["towns"].guarantee))
    assert "0.95" in about


def test_cells_are_hatched_where_their_interval_is_wider_than_the_count(opened):
    for name in ("towns.gpkg", "towns.geojson"):
        cells, rules = (opened[name]["tract"][what] for what in ("cells", "rules"))
        assert rules[-1][0] == "interval wider than the count: do not read"
        assert rules[-1][3] == 1
        assert cells["A & B"] == [CLASSES[2]]
        assert cells["Lääne <C>"] == [CLASSES[4]]
        # Lines over the colour of the class.
        assert cells['the "Rock"'][0] == CLASSES[0]
        assert len(cells['the "Rock"']) > 1


def test_a_legend_has_no_empty_classes_where_most_cells_are_empty(opened):
    layer = opened["grid.gpkg"]["cell"]
    labels = [label for label, *_ in layer["rules"][:-1]]
    assert len(labels) == len(set(labels)) == 5
    assert labels[0].startswith("0 to ")
    held = [held for *_, held in layer["rules"][:-1]]
    assert sum(held) == 40
    # From the second row from below, as the domain says, and sure enough to read.
    assert layer["cells"]["17"] == [CLASSES[4]]
    assert layer["cells"]["0"][0] == CLASSES[0]


def test_districts_inside_districts_have_a_layer_each(released):
    releases, opened = released
    layers = opened["levels.gpkg"]
    assert list(layers) == ["tract", "county", "all"]
    assert [layer["features"] for layer in layers.values()] == [6, 2, 1]
    assert [len(layer["rules"]) for layer in layers.values()] == [6, 3, 2]
    (total,) = releases["levels"].level("all").values()
    assert layers["all"]["rules"][0][0] == f"{total:,.0f}"


def test_rasters_have_bands_by_name_and_rows_from_north(released):
    releases, opened = released
    grid = opened["grid.tif"][""]
    assert grid["system"] == "EPSG:4326"
    assert [name.rpartition(" ")[2] for name in grid["bands"]] == [
        "estimate",
        "low",
        "high",
    ]
    estimate = releases["grid"].estimate
    np.testing.assert_allclose(grid["estimate"], estimate[::-1], rtol=1e-6)
    assert opened["swiss.tif"][""]["system"] == "EPSG:2056"
