"""Counts of polygons over a grid: along its lines, across its cells, beyond it."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.places.cell_parts import parts_around_globe, parts_of_cells
from blowfish_fast.errors import InputError

GRID = bf.Domain.from_box((4, 6), lat=(0, 4), lon=(0, 6))
COUNTS = np.arange(24).reshape(4, 6) * 10


def polygon(*points):
    return {"type": "Polygon", "coordinates": [[list(point) for point in points]]}


def box(west, south, east, north):
    return polygon((west, south), (east, south), (east, north), (west, north))


def released(domain, counts, epsilon=1, seed=1):
    policy = bf.policies.AddRemove(domain)
    return bf.Laplace(policy, epsilon=epsilon).release(counts, rng=seed)


HALVES = bf.Districts.from_shapes([box(0, 0, 2, 4), box(2, 0, 6, 4)], ["west", "east"])
CUT = bf.Districts.from_shapes(
    [
        polygon((0, 0), (2.5, 0), (2.5, 4), (0, 4)),
        polygon((2.5, 0), (6, 0), (6, 4), (2.5, 4)),
    ],
    ["west", "east"],
)


def test_unions_of_cells_are_answered_as_such():
    release = released(GRID, COUNTS)
    answers = release.of(HALVES)
    estimate = release.estimate
    expected = [estimate[:, :2].sum(), estimate[:, 2:].sum()]
    np.testing.assert_allclose([answers["west"], answers["east"]], expected)
    labels = np.where(np.arange(6) < 2, "west", "east")
    same = release.of(np.broadcast_to(labels, (4, 6)).reshape(-1).tolist())
    by_name = dict(zip(same, same.intervals(), strict=True))
    for name, ends in zip(answers, answers.intervals(), strict=True):
        np.testing.assert_allclose(ends, by_name[name])


def test_cells_that_are_cut_count_by_area_and_the_interval_holds_both():
    release = released(GRID, COUNTS)
    west = release.of(CUT)["west"]
    columns = release.estimate.sum(axis=0)
    assert west == pytest.approx(columns[:2].sum() + columns[2] / 2)
    low, high = release.of(CUT).intervals()[0]
    inside = release.of(HALVES).intervals(0.975)[0]
    wider = bf.Districts.from_shapes([box(0, 0, 3, 4)], ["west"])
    around = release.of(wider).intervals(0.975)[0]
    assert (low, high) == pytest.approx((inside[0], around[1]))


def test_intervals_of_cut_districts_hold_the_truth_wherever_records_lie():
    rng = np.random.default_rng(3)
    points = {"lon": rng.uniform(2, 2.5, 4000), "lat": rng.uniform(0, 4, 4000)}
    data = bf.Histogram.from_records(GRID, points)
    missed = 0
    for seed in range(100):
        laplace = bf.Laplace(bf.policies.AddRemove(GRID), epsilon=0.2)
        low, high = laplace.release(data, rng=seed).of(CUT).intervals()[0]
        missed += not low <= 4000 <= high
    # All of them lie in the western half of cells that are cut in the middle.
    assert missed <= 12


def test_strays_may_be_where_a_district_reaches_beyond_the_grid():
    grid = GRID.with_extra_cells(outside=True)
    counts = np.zeros(grid.shape, dtype=int)
    counts[:4, :6] = 50
    counts[4, :] = 1000
    release = released(grid, counts)
    beyond = bf.Districts.from_shapes(
        [box(0, 0, 6, 2), box(0, 2, 6, 9)], ["inside", "beyond"]
    )
    inside, out = release.of(beyond).intervals()
    assert inside[1] < 800
    assert out[0] < 700
    assert out[1] > 6000


def test_a_district_without_a_whole_cell_may_be_empty():
    small = bf.Districts.from_shapes([box(0.2, 0.2, 0.7, 0.7)], ["dot"])
    release = released(GRID, COUNTS)
    low, high = release.of(small).intervals()[0]
    assert low == 0.0
    assert high >= 0
    assert release.of(small)["dot"] == pytest.approx(release.estimate[0, 0] / 4)


def test_what_smooths_has_intervals_of_its_noise_alone():
    asked = bf.workloads.Rectangles.random(GRID, 20, rng=1)
    dawa = bf.Dawa(bf.policies.AddRemove(GRID), asked, epsilon=0.1)
    answers = dawa.release(COUNTS, rng=1).of(CUT)
    assert answers.interval_kind() == "noise"
    assert answers.intervals(of="noise").shape == (2, 2)


def test_a_certificate_bounds_districts_that_cut_cells():
    policy = bf.policies.AddRemove(GRID)
    asked = bf.workloads.Rectangles.random(GRID, 20, rng=1)
    release = bf.Dawa(policy, asked, epsilon=5).release(COUNTS, rng=1)
    ledger = bf.Ledger(policy=policy, epsilon=20)
    certificate = ledger.certify(release, COUNTS, release.of(CUT), epsilon=5, rng=2)
    answers = release.certified(certificate).of(CUT)
    assert release.of(CUT).interval_kind() == "noise"
    assert answers.interval_kind() != "noise"
    low, high = answers.intervals().T
    assert (low <= [COUNTS[:, :2].sum(), COUNTS[:, 3:].sum()]).all()
    assert (high >= [COUNTS[:, :3].sum(), COUNTS[:, 2:].sum()]).all()


def test_the_release_of_these_districts_is_asked_by_them_alone():
    place = bf.Domain.from_polygons(HALVES).with_extra_cells(outside=True)
    release = released(place, [40, 50, 6])
    answers = release.of(HALVES)
    assert [answers["west"], answers["east"]] == release.estimate[:2].tolist()
    with pytest.raises(InputError, match="the same polygons"):
        release.of(CUT)


def test_other_systems_and_places_are_refused():
    release = released(GRID, COUNTS)
    metres = bf.Districts.from_shapes(
        [box(0, 0, 1, 1)], ["a"], system="EPSG:2056", columns=("x", "y")
    )
    with pytest.raises(InputError, match="one reference system"):
        release.of(metres)
    far = bf.Districts.from_shapes([box(50, 50, 51, 51)], ["a"])
    with pytest.raises(InputError, match="none of 1 that reaches it"):
        release.of(far)
    with pytest.raises(InputError, match="a grid of two axes"):
        released(bf.Domain(3), [1, 2, 3]).of(HALVES)


def test_parts_of_cells_are_areas():
    shapely = pytest.importorskip("shapely")
    rng = np.random.default_rng(1)
    x, y = np.array([0, 1, 1.5, 3, 4.2, 5.0]), np.array([0.0, 2, 3, 3.3, 5])
    for _ in range(20):
        hull = shapely.MultiPoint(rng.uniform(-1, 6, (12, 2))).convex_hull
        shape = hull.difference(shapely.Point(2, 2).buffer(1.1))
        polygons = [shape] if shape.geom_type == "Polygon" else list(shape.geoms)
        rings = [
            [np.array(ring.coords) for ring in (part.exterior, *part.interiors)]
            for part in polygons
        ]
        parts = parts_of_cells([rings], x, y)
        shares = np.zeros((5, 4))
        shares[parts.column, parts.row] = parts.part
        for (column, row), share in np.ndenumerate(shares):
            cell = shapely.box(x[column], y[row], x[column + 1], y[row + 1])
            expected = shape.intersection(cell).area / cell.area
            assert share == pytest.approx(expected, abs=1e-9)
        assert parts.sticks_out.tolist() == [not shapely.box(0, 0, 5, 5).covers(shape)]


def around(low, high, seed, number=600):
    """Return points in a band around the date line, longitudes from -180 to 180."""
    rng = np.random.default_rng(seed)
    lon = rng.uniform(low, high, number)
    return {
        "lon": np.where(lon >= 180, lon - 360, lon),
        "lat": rng.uniform(-20, 0, number),
    }


GLOBE = bf.Domain.from_box((8, 72), lat=(-40, 40), lon=(-180, 180))


@pytest.mark.parametrize(
    "shape",
    [
        box(170, -20, 190, 0),
        box(-190, -20, -170, 0),
        {
            "type": "MultiPolygon",
            "coordinates": [
                box(170, -20, 180, 0)["coordinates"],
                box(-180, -20, -170, 0)["coordinates"],
            ],
        },
    ],
)
@pytest.mark.parametrize("west", [-180, 0])
def test_cells_on_both_sides_of_the_date_line_count(shape, west):
    grid = bf.Domain.from_box((8, 72), lat=(-40, 40), lon=(west, west + 360))
    points = around(160, 200, 5)
    points["lon"] = np.where(points["lon"] < west, points["lon"] + 360, points["lon"])
    data = bf.Histogram.from_records(grid, points)
    truth = int(np.sum(np.abs((points["lon"] % 360) - 180) < 10))
    districts = bf.Districts.from_shapes([shape], ["strait"])
    answers = released(grid, data, epsilon=200).of(districts)
    assert answers["strait"] == pytest.approx(truth, abs=2)
    low, high = answers.intervals()[0]
    assert low <= truth <= high < low + 10


def test_intervals_hold_where_a_district_cuts_cells_across_the_date_line():
    points = around(170, 190, 6)
    data = bf.Histogram.from_records(GLOBE, points)
    truth = int(np.sum(np.abs((points["lon"] % 360) - 180) < 7))
    districts = bf.Districts.from_shapes([box(173, -20, 187, 0)], ["strait"])
    release = released(GLOBE, data, epsilon=200)
    low, high = release.of(districts).intervals()[0]
    assert low <= truth <= high
    # From the cells inside, 175 to 185 degrees, to all of them.
    assert (low, high) == pytest.approx((300, 600), abs=50)


def test_a_cell_across_the_date_line_is_not_inside_by_two_parts_that_may_overlap():
    x, y = np.arange(2.5, 360.0, 5.0), np.array([0.0, 9.0])

    def ring(west, east):
        corners = [(west, 0), (east, 0), (east, 9), (west, 9), (west, 0)]
        return np.array(corners, dtype=float)

    parts = parts_around_globe([[[ring(175, 180)], [ring(-180, -175)]]], x, y)
    assert parts.column.tolist() == [34, 35, 36]
    assert parts.part == pytest.approx([0.5, 1, 0.5])
    assert parts.part[1] < 1.0
    # Half of the cell, drawn on both sides: no more than touched.
    twice = parts_around_globe([[[ring(180, 182.5)], [ring(-180, -177.5)]]], x, y)
    assert twice.part.max() < 1.0
    with pytest.raises(InputError, match="covers every place once"):
        parts_around_globe([[[ring(175, 180)], [ring(-185, -178)]]], x, y)


def test_a_hexagon_across_the_date_line_is_answered_whole():
    h3 = pytest.importorskip("h3")
    grid = bf.Domain.from_box((90, 180), lat=(-90, 90), lon=(-180, 180))
    id = h3.latlng_to_cell(-17.0, 179.99, 2)
    hexagons = bf.Hexagons([int(id, 16)], 2)
    fine = np.meshgrid(np.arange(-179.95, 180, 0.1), np.arange(-21.95, -12, 0.1))
    lon, lat = (axis.ravel() for axis in fine)
    data = bf.Histogram.from_records(grid, {"lon": lon, "lat": lat})
    inside = lon[hexagons.locate(lon, lat) == 0]
    assert (inside > 0).any()
    assert (inside < 0).any()
    answers = released(grid, data, epsilon=200).of(hexagons)
    assert answers[id] == pytest.approx(inside.size, rel=0.03)
    low, high = answers.intervals()[0]
    assert low <= inside.size <= high


def test_a_hexagon_around_a_pole_is_refused_by_name(monkeypatch):
    corners = [(88.0, lon) for lon in (-150, -90, -30, 30, 90, 150)]
    stub = types.ModuleType("h3")
    stub.cell_to_boundary = lambda id: corners
    monkeypatch.setitem(sys.modules, "h3", stub)
    hexagons = bf.Hexagons([171], 3)
    # A strip from the corners to the pole, wherever they begin.
    (outline,) = hexagons.outlines(0)
    assert (outline.min(axis=0).tolist(), outline.max(axis=0).tolist()) == (
        [-180.0, 88.0],
        [180.0, 90.0],
    )
    with pytest.raises(InputError, match="around a pole") as refusal:
        released(GLOBE, np.ones(GLOBE.shape, dtype=int)).of(hexagons)
    assert "'ab'" in str(refusal.value)


def test_a_wide_hexagon_that_crosses_no_date_line_stays_where_it_is(monkeypatch):
    stub = types.ModuleType("h3")
    stub.cell_to_boundary = lambda id: [(88.0, -100), (86.0, 0), (88.0, 100), (89.0, 0)]
    monkeypatch.setitem(sys.modules, "h3", stub)
    (outline,) = bf.Hexagons([171], 3).outlines(0)
    assert outline[:, 0].tolist() == [-100.0, 0.0, 100.0, 0.0, -100.0]
