"""Hexagons as districts: beside H3 where it is installed, and over squares."""

from __future__ import annotations

import sqlite3
import sys
import types

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError, MissingExtraError

AREA = {"type": "Polygon", "coordinates": [[[7, 46], [8, 46], [8, 47], [7, 47]]]}


def squares():
    """Return a stand-in for h3: squares of a tenth of a degree."""
    module = types.ModuleType("h3")

    def cell_at(lat, lon, size):
        return f"{(int(lon * 10 // 1) + 4000) * 10_000 + int(lat * 10 // 1) + 1000:x}"

    def corner(id):
        return (divmod(int(id, 16), 10_000)[0] - 4000, int(id, 16) % 10_000 - 1000)

    def boundary(id):
        x, y = corner(id)
        around = [(0, 0), (1, 0), (1, 1), (0, 1)]
        return [((y + up) / 10, (x + over) / 10) for over, up in around]

    def disk(id, radius):
        x, y = corner(id)
        near = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)]
        return [f"{(x + a + 4000) * 10_000 + y + b + 1000:x}" for a, b in near]

    def covering(ring, size, contain):
        lats, lons = np.array(ring).T
        return [
            cell_at(lat, lon, size)
            for lat in np.arange(lats.min() + 0.05, lats.max(), 0.1)
            for lon in np.arange(lons.min() + 0.05, lons.max(), 0.1)
        ]

    module.latlng_to_cell = cell_at
    module.cell_to_boundary = boundary
    module.grid_disk = disk
    module.LatLngPoly = lambda *rings: rings[0]
    module.h3shape_to_cells_experimental = covering
    module.average_hexagon_area = lambda size: 85.0 / 7**size
    return module


@pytest.fixture(params=["h3", "squares"])
def kind(request, monkeypatch):
    if request.param == "h3":
        pytest.importorskip("h3")
    else:
        monkeypatch.setitem(sys.modules, "h3", squares())
    return request.param


def test_every_point_of_the_area_lies_in_one_hexagon(kind):
    hexagons = bf.Hexagons.covering(AREA, 4)
    rng = np.random.default_rng(1)
    lon, lat = rng.uniform(7, 8, 2000), rng.uniform(46, 47, 2000)
    places = hexagons.locate(lon, lat)
    assert places.min() >= 0
    ids = hexagons.column([7.5, 100.0, np.nan, 7.5], [46.5, 46.5, 46.5, 95.0])
    assert ids[0] in hexagons.ids
    assert ids[1:].tolist() == ["(outside)", None, "(outside)"]
    # The outline of a hexagon is around its points, but for rounding of curved sides.
    box = np.array(
        [
            (ring.min(axis=0) - 0.02, ring.max(axis=0) + 0.02)
            for ring in (hexagons.outlines(at)[0] for at in range(len(hexagons)))
        ]
    )
    points = np.stack([lon, lat], axis=1)
    assert (box[places, 0] <= points).all()
    assert (points <= box[places, 1]).all()
    with pytest.raises(InputError, match="two lists of numbers"):
        hexagons.locate([1.0], [1.0, 2.0])


def test_hexagons_are_a_domain_with_neighbours_and_a_map(kind, tmp_path):
    hexagons = bf.Hexagons.covering(AREA, 4)
    place = bf.Domain.from_h3(AREA, 4, name="hexagon")
    assert place == bf.Domain.from_polygons(hexagons, name="hexagon")
    points = {"lon": [7.5] * 500 + [60.0], "lat": [46.5] * 500 + [46.5]}
    data = bf.Histogram.from_records(place, points, outside="cell")
    policy = bf.policies.neighbours(hexagons, data.domain)
    first, second = hexagons.neighbouring_pairs()[0]
    assert policy.distance(int(first), [int(second)]) == [1.0]
    outside = len(hexagons)
    assert policy.distance(int(hexagons.rim()[0]), [outside]) == [1.0]
    release = bf.Laplace(policy, epsilon=1).release(data, rng=1)
    at = hexagons.locate([7.5], [46.5])[0]
    assert release.estimate[at] == pytest.approx(500, abs=60)
    release.to_geopackage(tmp_path / "map.gpkg", hexagons)
    with sqlite3.connect(tmp_path / "map.gpkg") as file:
        (count,) = file.execute("SELECT count(geom) FROM hexagon").fetchone()
    assert count == len(hexagons)
    assert f"{len(hexagons)} of resolution 4" in repr(hexagons)


def test_other_hexagons_are_another_domain(kind):
    smaller = {
        "type": "Polygon",
        "coordinates": [[[7, 46], [7.3, 46], [7.3, 47], [7, 46]]],
    }
    assert bf.Domain.from_h3(AREA, 4) != bf.Domain.from_h3(smaller, 4)
    assert bf.Domain.from_h3(AREA, 4) == bf.Domain.from_h3(AREA, 4)


def test_what_cannot_be_listed_is_refused(kind):
    with pytest.raises(InputError, match="at most 4,194,304 hexagons"):
        bf.Hexagons.covering(AREA, 15)
    with pytest.raises(InputError, match="between 0 and 15"):
        bf.Hexagons.covering(AREA, 16)
    with pytest.raises(InputError, match="a Polygon or a MultiPolygon"):
        bf.Hexagons.covering({"type": "Point", "coordinates": [7, 46]}, 4)


def test_an_area_without_a_hexagon_is_refused(monkeypatch):
    empty = squares()
    empty.h3shape_to_cells_experimental = lambda shape, size, contain: []
    monkeypatch.setitem(sys.modules, "h3", empty)
    with pytest.raises(InputError, match="touches no hexagon"):
        bf.Hexagons.covering(AREA, 4)


def test_hexagons_across_the_date_line_are_drawn_on_one_side(monkeypatch):
    around = squares()
    ring = [(0.0, 179.9), (0.0, -179.9), (0.1, -179.9), (0.1, 179.9)]
    around.cell_to_boundary = lambda id: ring
    monkeypatch.setitem(sys.modules, "h3", around)
    (outline,) = bf.Hexagons.covering(AREA, 4).outlines(0)
    assert outline[:, 0].min() == pytest.approx(179.9)
    assert outline[:, 0].max() == pytest.approx(180.1)


def test_a_map_is_not_torn_apart_at_the_date_line(monkeypatch):
    around = squares()
    west = {"1": 179.8, "2": 179.9, "3": -180.0, "4": -0.1}

    def boundary(id):
        x = west[id]
        return [(0.0, x), (0.0, x + 0.1), (0.1, x + 0.1), (0.1, x)]

    around.cell_to_boundary = boundary
    monkeypatch.setitem(sys.modules, "h3", around)
    near = bf.Hexagons([1, 2, 3], 4)
    begin = [shape[0][0][0, 0] for shape in near.drawn_shapes]
    np.testing.assert_allclose(begin, [179.8, 179.9, 180.0])
    # What is asked and counted stays where H3 says.
    assert near.outlines(2)[0][0, 0] == -180.0
    apart = bf.Hexagons([2, 4], 4)
    assert apart.drawn_shapes[1][0][0][0, 0] == pytest.approx(-0.1)


def test_the_extra_is_named_where_h3_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "h3", None)
    with pytest.raises(MissingExtraError, match="h3"):
        bf.Domain.from_h3(AREA, 4)
