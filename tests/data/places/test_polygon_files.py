"""Polygons from files: GeoJSON without a package, others beside pyogrio."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.places import polygon_files
from blowfish_fast.errors import InputError, MissingExtraError

RING = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]


def collection(**more):
    geometry = {"type": "Polygon", "coordinates": [RING]}
    feature = {"type": "Feature", "properties": {"GEOID": "01"}, "geometry": geometry}
    return {"type": "FeatureCollection", "features": [feature], **more}


def written(folder, content):
    path = folder / "districts.geojson"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_geojson_is_wgs_84_unless_it_says_otherwise(tmp_path):
    districts = bf.Districts.from_file(written(tmp_path, collection()), id="GEOID")
    assert (districts.ids, districts.system) == (("01",), "EPSG:4326")
    swiss = collection(crs={"type": "name", "properties": {"name": "EPSG:2056"}})
    districts = bf.Districts.from_file(written(tmp_path, swiss), id="GEOID")
    assert (districts.system, districts.columns) == ("EPSG:2056", ("x", "y"))
    with pytest.raises(InputError, match="system is that of the file"):
        bf.Districts.from_file(
            tmp_path / "districts.geojson", id="GEOID", system="EPSG:4326"
        )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("no json", "a FeatureCollection"),
        ({"features": []}, "with features"),
        (collection(crs={}), "names a reference system"),
    ],
)
def test_files_that_hold_no_districts_are_refused(tmp_path, content, reason):
    with pytest.raises(InputError, match=reason):
        bf.Districts.from_file(written(tmp_path, content), id="GEOID")
    with pytest.raises(InputError, match="a FeatureCollection"):
        bf.Districts.from_file(tmp_path / "nothing.geojson", id="GEOID")


def test_the_column_of_ids_is_named_right(tmp_path):
    with pytest.raises(InputError, match="Its columns are GEOID"):
        bf.Districts.from_file(written(tmp_path, collection()), id="id")


@pytest.mark.parametrize("corner", [[1_091_138.25, 41.0], [8.0, 1_813_891.9]])
def test_metres_that_are_called_degrees_are_refused(tmp_path, corner):
    ring = [[8.0, 41.0], [9.0, 41.0], corner, [8.0, 41.0]]
    square = {"type": "Polygon", "coordinates": [ring]}
    one = {"type": "Feature", "properties": {"GEOID": "a"}, "geometry": square}
    path = written(tmp_path, {"type": "FeatureCollection", "features": [one]})
    with pytest.raises(InputError, match=r"coordinates of WGS 84 are degrees.* of 'a'"):
        bf.Districts.from_file(path, id="GEOID")
    pacific = [[179.0, 0.0], [181.0, 0.0], [181.0, 2.0], [179.0, 0.0]]
    square["coordinates"] = [pacific]
    assert (
        len(
            bf.Districts.from_file(
                written(tmp_path, {"type": "FeatureCollection", "features": [one]}),
                id="GEOID",
            ).ids
        )
        == 1
    )


def test_whoever_names_no_column_is_told_them_and_other_words_are_understood(tmp_path):
    path = written(tmp_path, collection())
    with pytest.raises(InputError, match=r"received no id. Its columns are .*GEOID"):
        bf.Districts.from_file(path)
    with pytest.raises(TypeError, match="did you mean 'system'"):
        bf.Districts.from_file(path, id="GEOID", crs="EPSG:4326")
    with pytest.raises(TypeError, match=r"'sells' \(it takes path, id, system"):
        bf.Districts.from_file(path, id="GEOID", sells=1)


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ({"type": "Point", "coordinates": [0, 0]}, "a Polygon or a MultiPolygon"),
        (3, "a Polygon or a MultiPolygon"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]}, "four points or more"),
        ({"type": "Polygon", "coordinates": 3}, "a list of rings"),
    ],
)
def test_shapes_that_are_no_polygons_are_refused(shape, reason):
    with pytest.raises(InputError, match=reason):
        bf.Districts.from_shapes([shape], ["A"])


def wkb_polygon(order, code, points):
    flat = struct.pack(f"{order}{points.size}d", *points.ravel())
    head = struct.pack(f"{order}BIII", order == "<", code, 1, len(points))
    return head + flat


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("code", "axes"), [(3, 2), (1003, 3), (3003, 4), (0x80000003, 3)]
)
def test_well_known_binary_of_any_axes_is_read(order, code, axes):
    points = np.zeros((5, axes))
    points[:, :2] = RING
    content = wkb_polygon(order, code, points)
    ((ring,),) = polygon_files._from_wkb(content)
    np.testing.assert_array_equal(ring, RING)
    several = struct.pack(f"{order}BII", order == "<", 6, 2) + 2 * content
    assert len(polygon_files._from_wkb(several)) == 2
    system = struct.pack(f"{order}BII", order == "<", 0x20000003, 4326)
    flat = wkb_polygon(order, 3, np.array(RING, dtype=float))
    assert len(polygon_files._from_wkb(system + flat[5:])) == 1
    with pytest.raises(InputError, match="a Polygon or a MultiPolygon"):
        polygon_files._from_wkb(struct.pack(f"{order}BII", order == "<", 2, 0))


def test_other_files_name_the_extra_that_reads_them(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyogrio", None)
    with pytest.raises(MissingExtraError, match="geo"):
        bf.Districts.from_file(tmp_path / "tracts.gpkg", id="GEOID")


def test_geopackages_and_shapefiles_are_read_as_geojson_is(tmp_path):
    geopandas = pytest.importorskip("geopandas")
    pytest.importorskip("pyogrio")
    source = written(tmp_path, collection())
    frame = geopandas.read_file(source)
    plain = bf.Districts.from_file(source, id="GEOID")
    for name in ("tracts.gpkg", "tracts.shp"):
        frame.to_file(tmp_path / name)
        districts = bf.Districts.from_file(tmp_path / name, id="GEOID")
        assert districts.digest == plain.digest
    with pytest.raises(InputError, match="Its columns are"):
        bf.Districts.from_file(tmp_path / "tracts.gpkg", id="other")
    with pytest.raises(InputError, match="read from a file"):
        bf.Districts.from_file(tmp_path / "none.gpkg", id="GEOID")
    (tmp_path / "tracts.prj").unlink()
    with pytest.raises(InputError, match="states its reference system"):
        bf.Districts.from_file(tmp_path / "tracts.shp", id="GEOID")
    again = bf.Districts.from_file(
        tmp_path / "tracts.shp", id="GEOID", system="EPSG:4326"
    )
    assert again.digest == plain.digest
