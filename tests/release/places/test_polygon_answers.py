"""Counts of polygons over a grid: along its lines, across its cells, beyond it."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.places.cell_parts import parts_of_cells
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
