"""Districts: one for every point, refusals by name, domains that know their borders."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.places.districts import Borders
from blowfish_fast.errors import CountsError, DomainError, InputError


def polygon(*rings):
    return {"type": "Polygon", "coordinates": [list(ring) for ring in rings]}


def square(x, y, side=1.0):
    return [(x, y), (x + side, y), (x + side, y + side), (x, y + side), (x, y)]


@functools.cache
def nine_squares():
    """Return districts A to I, read when the first test needs them."""
    shapes = [polygon(square(x, y)) for y in range(3) for x in range(3)]
    return bf.Districts.from_shapes(shapes, list("ABCDEFGHI"))


def test_points_on_borders_and_corners_belong_to_one_district():
    x, y = (
        axis.ravel() for axis in np.meshgrid(np.arange(0, 3, 0.5), np.arange(0, 3, 0.5))
    )
    expected = np.floor(x) + 3 * np.floor(y)
    np.testing.assert_array_equal(nine_squares().locate(x, y), expected)
    assert (
        nine_squares().locate([3.0, -1e-6, 1e300, np.nan], [0.5, 0.5, 0.5, 1]).tolist()
        == [-1] * 4
    )
    assert nine_squares().column([0.5, 9, np.nan], [0.5, 1, 1]).tolist() == [
        "A",
        "(outside)",
        None,
    ]
    assert repr(nine_squares()) == "Districts(9 in EPSG:4326, 36 edges)"
    assert len(nine_squares()) == 9
    with pytest.raises(InputError, match="two lists of numbers"):
        nine_squares().locate([1, 2], [1])


def test_holes_enclaves_and_several_polygons_are_followed():
    ring, hole = square(0, 0, 9), square(3, 3, 3)
    island = {
        "type": "MultiPolygon",
        "coordinates": [[ring, hole[::-1]], [square(20, 0, 1)]],
    }
    both = bf.Districts.from_shapes([island, polygon(hole)], ["around", "enclave"])
    assert both.locate([1, 4, 20.5, 15], [1, 4, 0.5, 0.5]).tolist() == [0, 1, 0, -1]
    assert both.neighbouring_pairs().tolist() == [[0, 1]]
    assert both.rim().tolist() == [0]
    assert len(both.outlines(0)) == 3
    alone = bf.Districts.from_shapes([island], ["around"])
    assert alone.locate([4], [4]).tolist() == [-1]


def test_the_ends_of_the_world_are_placed():
    world = [
        polygon([(x, -90), (x + 60, -90), (x + 60, 90), (x, 90)])
        for x in range(-180, 180, 60)
    ]
    lands = bf.Districts.from_shapes(world, range(6))
    assert lands.locate([-180, 179.9, 0, 180], [-90, 89.9, 0, 0]).tolist() == [
        0,
        5,
        3,
        # 180 degrees east are 180 degrees west.
        0,
    ]


def test_a_district_across_the_date_line_holds_the_points_of_both_sides():
    """However it was drawn, and as a grid answers it that counts the same points."""
    lon = [179.0, 181.0, -179.0, -181.0, 176.0, -184.0, -170.0, 950.0, np.nan]
    for west in (175, -185):
        ring = [(west, -5), (west + 10, -5), (west + 10, 5), (west, 5)]
        atoll = bf.Districts.from_shapes([polygon(ring)], ["atoll"])
        assert atoll.locate(lon, [0] * 9).tolist() == [0] * 6 + [-1, -1, -1]
        assert atoll.locate(lon, [6] * 9).tolist() == [-1] * 9
        place = bf.Domain.from_polygons(atoll, name="place")
        points = {"lon": lon[:3], "lat": [0, 0, 0]}
        assert bf.Histogram.from_records(place, points).counts.tolist() == [3]
    metres = bf.Districts.from_shapes([polygon(ring)], ["flat"], system="EPSG:2056")
    assert metres.locate([-182.0, 178.0], [0, 0]).tolist() == [0, -1]


def test_points_around_the_globe_are_those_that_a_grid_counts():
    generator = np.random.default_rng(5)
    lon, lat = generator.uniform(-180, 180, 800), generator.uniform(-10, 10, 800)
    ring = [(170, -5), (190, -5), (190, 5), (170, 5)]
    atoll = bf.Districts.from_shapes([polygon(ring)], ["atoll"])
    sides = (bf.Domain.from_edges(range(-180, 181, 5), name="lon"),)
    grid = bf.Domain.product(
        *sides, bf.Domain.from_edges(range(-10, 11, 5), name="lat")
    )
    counts = bf.Histogram.from_records(grid, {"lon": lon, "lat": lat})
    policy = bf.policies.AddRemove(grid)
    laplace = bf.Laplace(policy, bf.workloads.Identity(grid), epsilon=5000)
    answer = laplace.release(counts, rng=1).of(atoll)["atoll"]
    assert round(float(answer)) == (atoll.locate(lon, lat) == 0).sum() > 0


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (square(0.5, 0.5), "that cross"),
        (square(1, 0.25, 0.5), "T-junctions"),
        (square(0.25, 0.25, 0.5), "lies over another"),
        (square(0, 0), "lies over another"),
        (square(5, 5, 1e-9), "smaller than a step"),
    ],
)
def test_districts_that_do_not_fit_are_named(other, reason):
    with pytest.raises(DomainError, match=reason):
        bf.Districts.from_shapes([polygon(square(0, 0)), polygon(other)], ["A", "B"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"ids": ["A", "A"]}, "an id of its own"),
        ({"ids": ["A"]}, "an id of its own"),
        ({"columns": "lon"}, "names two columns"),
        ({"system": "EPSG:2056", "columns": ["lon", "lat"]}, "degrees of WGS 84"),
    ],
)
def test_what_is_not_stated_right_is_refused(options, reason):
    shapes = [polygon(square(0, 0)), polygon(square(1, 0))]
    stated = {"ids": ["A", "B"], **options}
    with pytest.raises(InputError, match=reason):
        bf.Districts.from_shapes(shapes, stated.pop("ids"), **stated)


def test_other_systems_have_columns_of_their_own_and_finer_steps():
    metres = bf.Districts.from_shapes(
        [polygon(square(2.6e6, 1.2e6, 100))], ["A"], system="EPSG:2056"
    )
    assert (metres.columns, metres.step) == (("x", "y"), 1e-3)
    large = bf.Districts.from_shapes(
        [polygon(square(0, 0, 1e7))], ["A"], system="EPSG:3857"
    )
    assert large.step > 1e-3
    same = bf.Districts.from_shapes(
        [polygon(square(0, 0))], ["A"], system="urn:ogc:def:crs:OGC:1.3:CRS84"
    )
    assert same.columns == ("lon", "lat")


def test_points_are_counted_into_districts_and_strays_stay_private():
    place = bf.Domain.from_polygons(nine_squares(), name="tract")
    points = {"lon": [0.5, 0.6, 2.5, 7.0], "lat": [0.5, 0.5, 2.5, 0.5]}
    data = bf.Histogram.from_records(place, points, outside="cell")
    assert data.counts.tolist() == [2, 0, 0, 0, 0, 0, 0, 0, 1, 1]
    with pytest.raises(CountsError) as caught:
        bf.Histogram.from_records(place, points)
    assert "1" not in str(caught.value).split("tract")[0]
    by_name = bf.Histogram.from_records(place, {"tract": ["A", "I"]})
    assert by_name.counts.tolist()[0] == 1
    with pytest.raises(InputError, match="lack the attributes"):
        bf.Histogram.from_records(place, {"x": [1.0], "y": [1.0]})
    beside = bf.Domain.product(place, bf.Domain.from_levels(["F", "M"], name="sex"))
    both = bf.Histogram.from_records(beside, {"lon": [0.5], "lat": [0.5], "sex": ["M"]})
    assert both.counts[0].tolist() == [0, 1]


def test_other_borders_are_another_domain_and_files_keep_the_digest():
    place = bf.Domain.from_polygons(nine_squares())
    again = bf.Domain.from_dict(place.to_dict())
    assert again == place
    assert hash(again) == hash(place)
    with pytest.raises(DomainError, match="does not hold"):
        bf.Histogram.from_records(again, {"lon": [0.5], "lat": [0.5]})
    moved = [polygon(square(x, y)) for y in range(3) for x in range(3)]
    moved[8] = polygon([(2, 2), (3, 2), (3.0000001, 3), (2, 3)])
    other = bf.Districts.from_shapes(moved, list("ABCDEFGHI"))
    assert bf.Domain.from_polygons(other) != place
    assert Borders("a", ("lon", "lat")) != "a"
    with pytest.raises(DomainError, match="polygons are Districts"):
        bf.Domain.from_polygons(["A"])


def test_a_coarser_step_closes_slivers():
    left = polygon(square(0, 0))
    right = polygon([(0.99998, 0), (2, 0), (2, 1), (1.00002, 1), (0.99998, 0)])
    with pytest.raises(DomainError, match=r"step=\.\.\."):
        bf.Districts.from_shapes([left, right], ["A", "B"])
    closed = bf.Districts.from_shapes([left, right], ["A", "B"], step=1e-3)
    assert closed.neighbouring_pairs().tolist() == [[0, 1]]
    assert closed.step == 1e-3
    same = bf.Districts.from_shapes([left, polygon(square(1, 0))], ["A", "B"])
    assert closed.digest != same.digest
    with pytest.raises(InputError, match="step must"):
        bf.Districts.from_shapes([left], ["A"], step=0)
    with pytest.raises(InputError, match="'A' again"):
        bf.Districts.from_shapes([left, right], ["A", "A"])


def test_ids_that_are_numbers_are_counted_alike():
    shapes = [polygon(square(x, y)) for y in range(3) for x in range(3)]
    codes = [7, 3, 100, 1, 2, 5, 6, 2**51, 8]
    numbered = bf.Districts.from_shapes(shapes, codes)
    named = bf.Districts.from_shapes(shapes, [str(code) for code in codes])
    rng = np.random.default_rng(1)
    whole = {"lon": rng.uniform(-0.5, 3.5, 500), "lat": rng.uniform(0, 3, 500)}
    holed = {"lon": np.append(whole["lon"], np.nan), "lat": np.append(whole["lat"], 1)}
    for points in (whole, holed):
        estimates = []
        for districts in (numbered, named):
            place = bf.Domain.from_polygons(districts)
            rules = {"outside": "cell", "missing": "cell"}
            data = bf.Histogram.from_records(place, points, **rules)
            laplace = bf.Laplace(bf.policies.AddRemove(data.domain), epsilon=1)
            estimates.append(laplace.release(data, rng=1).estimate)
        np.testing.assert_array_equal(*estimates)
    assert named.numbered_column([0.5], [0.5]) is None
    large = bf.Districts.from_shapes(shapes[:1], [2**60])
    assert large.numbered_column([0.5], [0.5]) is None
    outside = numbered.numbered_column([0.5, 9.0, np.nan], [0.5, 0.5, 0.5])
    assert outside[0] == 7
    assert outside[1] not in codes
    assert np.isnan(outside[2])


def test_nested_districts_over_polygons_release_by_level():
    place = bf.Domain.from_polygons(nine_squares(), name="tract")
    table = {"county": ["x"] * 4 + ["y"] * 5, "tract": list("IHGFEDCBA")}
    nest = bf.Nesting.from_columns(table, ["county", "tract"]).over(place)
    policy = bf.policies.Blocks(place, nest.labels("county"))
    asked = nest.workload(county=1, tract=1)
    data = bf.Histogram.from_records(place, {"lon": [0.5, 2.5], "lat": [0.5, 2.5]})
    release = bf.Nested(policy, asked, nest=nest, epsilon=1).release(data, rng=1)
    assert {name: float(count) for name, count in release.level("county").items()} == {
        "x": 1.0,
        "y": 1.0,
    }


def test_districts_move_to_another_reference_system_with_their_neighbours():
    pytest.importorskip("pyproj")
    far = [polygon(square(x * 9e4, y * 9e4, 9e4)) for y in range(3) for x in range(3)]
    metres = bf.Districts.from_shapes(far, list("ABCDEFGHI"), system="EPSG:3857")
    degrees = metres.in_system("EPSG:4326")
    assert degrees.columns == ("lon", "lat")
    assert (
        degrees.neighbouring_pairs().tolist()
        == nine_squares().neighbouring_pairs().tolist()
    )
    x, y = (axis.ravel() for axis in np.meshgrid(range(3), range(3)))
    # A degree of longitude is 111,319.49 metres of this system; one of latitude
    # nearly so, near the equator.
    middles = [(axis + 0.5) * 9e4 / 111_319.49 for axis in (x, y)]
    np.testing.assert_array_equal(degrees.locate(*middles), np.arange(9))
    again = degrees.in_system("EPSG:4326")
    assert [ring.tolist() for part in again.shapes for ring in part[0]] == [
        ring.tolist() for part in degrees.shapes for ring in part[0]
    ]
    with pytest.raises(InputError, match=r"pyproj knows.*received 'EPSG:3857' and"):
        metres.in_system("EPSG:999999")
    beyond = bf.Districts.from_shapes(
        [polygon(square(1e9, 1e9, 10.0))], ["nowhere"], system="EPSG:3035"
    )
    with pytest.raises(InputError, match="every corner has a place in EPSG:4326"):
        beyond.in_system("EPSG:4326")


def test_degrees_of_every_name_are_rounded_as_degrees():
    # The census of the United States publishes degrees of NAD 83, EPSG:4269.
    small = [polygon(square(-87.6 + x * 1e-3, 41.8, 1e-3)) for x in range(2)]
    tracts = bf.Districts.from_shapes(small, ["a", "b"], system="EPSG:4269")
    assert tracts.step == 1e-7
    assert tracts.locate([-87.5996, -87.5986], [41.8004] * 2).tolist() == [0, 1]


def test_a_table_without_its_district_is_told_which_columns_would_do():
    place = bf.Domain.from_polygons(nine_squares(), name="tract")
    with pytest.raises(InputError, match=r"tract may also be told by .* lon and lat"):
        bf.Histogram.from_records(place, {"x": [1.0], "y": [1.0]})
    both = bf.Domain.product(place, bf.Domain.from_levels(["F", "M"], name="sex"))
    with pytest.raises(InputError, match=r"lack the attributes \['sex'\]"):
        bf.Histogram.from_records(both, {"lon": [1.0], "lat": [1.0]})


def test_borders_are_cut_at_all_corners_as_the_refusal_says():
    """The way out of a T-junction, by shapely: each district keeps its points."""
    shapely = pytest.importorskip("shapely", reason="pip install 'blowfish_fast[geo]'")
    tall = shapely.box(0, 0, 1, 2)
    shapes = [tall, shapely.box(1, 0, 2, 1), shapely.box(1, 1, 2, 2)]
    with pytest.raises(DomainError, match="polygonize of the union"):
        bf.Districts.from_shapes(shapes, "ABC")
    borders = shapely.union_all([shape.boundary for shape in shapes])
    faces = shapely.polygonize([borders]).geoms
    noded = [
        shapely.MultiPolygon(
            [face for face in faces if shape.contains(face.representative_point())]
        )
        for shape in shapes
    ]
    districts = bf.Districts.from_shapes(noded, "ABC")
    assert districts.neighbouring_pairs().tolist() == [[0, 1], [0, 2], [1, 2]]
    assert districts.locate([0.5, 1.0, 1.0], [1.0, 0.5, 1.0]).tolist() == [0, 1, 2]
