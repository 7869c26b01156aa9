"""Points outside in the nearest district, and parts of a map that are joined: DI4."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import CountsError, DomainError, InputError
from tests.reference.point_location import squared_distance


def square(x, y, side=1.0):
    ring = [(x, y), (x + side, y), (x + side, y + side), (x, y + side), (x, y)]
    return {"type": "Polygon", "coordinates": [ring]}


CORNERS = [(0, 0), (1, 0), (5, 0), (5, 1), (20, 0), (9, 9)]


def apart(system="EPSG:3857"):
    return bf.Districts.from_shapes(
        [square(x, y) for x, y in CORNERS], list("ABCDEF"), system=system
    )


def test_a_point_outside_has_the_nearest_district_whatever_stands_beside_it():
    """Lemma DI4: a function of the point alone, checked edge by edge in fractions."""
    districts = apart()
    rng = np.random.default_rng(1)
    x, y = rng.integers(-60, 100, (2, 300)) / 4.0
    together = districts.nearest(x, y)
    alone = [int(districts.nearest([a], [b])[0]) for a, b in zip(x, y, strict=True)]
    assert together.tolist() == alone
    order = rng.permutation(300)
    assert districts.nearest(x[order], y[order]).tolist() == together[order].tolist()
    placed = districts.locate(x, y)
    inside = placed >= 0
    assert inside.any()
    assert (together[inside] == placed[inside]).all()
    for a, b, number in zip(x, y, together.tolist(), strict=True):
        gaps = []
        for x0, y0 in CORNERS:
            corners = [(x0, y0), (x0 + 1, y0), (x0 + 1, y0 + 1), (x0, y0 + 1)]
            sides = zip(corners, corners[1:] + corners[:1], strict=True)
            gaps.append(
                min(
                    squared_distance(
                        int(4 * a), int(4 * b), 1, [4 * v for v in (*p, *q)]
                    )
                    for p, q in sides
                )
            )
        if districts.locate([a], [b])[0] < 0:
            # Of several at one distance the first.
            assert number == gaps.index(min(gaps))
    assert districts.nearest([np.nan, 1e300], [0.0, -1e300]).tolist()[0] == -1
    with pytest.raises(InputError, match="two lists of numbers"):
        districts.nearest([1, 2], [1])


def test_degrees_are_as_long_as_they_are_on_the_ground():
    north = [square(0, 60), square(10, 60)]
    squares = bf.Districts.from_shapes([*north, square(4, 63, 0.5)], ["W", "E", "N"])
    # 2.5 degrees of longitude at 61 are 1.2 of latitude; N is two degrees away.
    assert squares.nearest([3.5], [61.0]).tolist() == [0]
    flat = bf.Districts.from_shapes(
        [*north, square(4, 63, 0.5)], ["W", "E", "N"], system="EPSG:3857"
    )
    assert flat.nearest([3.5], [61.0]).tolist() == [2]
    # One place, whichever way around the globe its longitude was written.
    assert squares.nearest([370.5, -349.5, 364.0], [60.5, 60.5, 70.0]).tolist() == [
        1,
        1,
        2,
    ]


def test_records_outside_are_counted_in_the_nearest_district_and_none_is_lost():
    place = bf.Domain.from_polygons(apart(), name="tract")
    points = {"x": [0.5, 3.1, 3.9, 30.0], "y": [0.5, 0.5, 0.5, 0.0]}
    data = bf.Histogram.from_records(place, points, outside="clamp")
    assert data.domain == place
    assert data.counts.tolist() == [1, 1, 1, 0, 1, 0]
    # The same as counting the ids that each record would state for itself.
    ids = [list("ABCDEF")[at] for at in apart().nearest(points["x"], points["y"])]
    stated = bf.Histogram.from_records(place, {"tract": ids})
    assert stated.counts.tolist() == data.counts.tolist()
    # The way of counting is no part of the domain.
    with pytest.raises(CountsError, match="no level of tract"):
        bf.Histogram.from_records(data.domain, points)
    with pytest.raises(CountsError, match="no level of tract"):
        bf.Histogram.from_records(place, {"tract": ["A", "X"]}, outside="clamp")
    with pytest.raises(InputError, match="nearest cell"):
        bf.Histogram.from_records(place, points, missing="clamp")
    read = bf.Domain.from_dict(place.to_dict())
    with pytest.raises(DomainError, match="polygons"):
        bf.Histogram.from_records(read, points, outside="clamp")


def test_ids_that_are_numbers_and_columns_beside_are_clamped_alike():
    squares = [square(x, y) for x, y in CORNERS]
    numbered = bf.Districts.from_shapes(squares, range(6), system="EPSG:3857")
    beside = bf.Domain.product(
        bf.Domain.from_polygons(numbered, name="tract"),
        bf.Domain.from_edges([0, 50, 100], name="age"),
        bf.Domain.from_levels(["F", "M"], name="sex"),
    )
    records = {"x": [30.0], "y": [0.0], "age": [130], "sex": ["M"]}
    # One word for all columns is about those that have a nearest cell.
    data = bf.Histogram.from_records(beside, records, outside="clamp")
    assert data.counts[4, 1, 1] == 1
    by_name = {"tract": "clamp", "age": "clamp"}
    same = bf.Histogram.from_records(beside, records, outside=by_name)
    assert same.counts[4, 1, 1] == 1
    with pytest.raises(InputError, match="nearest cell"):
        bf.Histogram.from_records(beside, records, outside={"sex": "clamp"})


def test_ids_in_a_database_have_no_nearest_one():
    ibis = pytest.importorskip("ibis")
    pytest.importorskip("duckdb")
    place = bf.Domain.from_polygons(apart(), name="tract")
    database = ibis.duckdb.connect()
    database.raw_sql("create table people as select unnest(['A', 'F', 'X']) as tract")
    with pytest.raises(CountsError, match="no level of tract"):
        bf.Histogram.from_ibis(place, database.table("people"), outside="clamp")


def test_two_points_beside_each_other_may_be_clamped_into_districts_far_apart():
    """What DI4 says of distances: not even neighbours, where the map has a gap."""
    ring = [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2), (2, 3), (1, 3), (0, 3)]
    bay = bf.Districts.from_shapes(
        [square(x, y) for x, y in ring], range(len(ring)), system="EPSG:3857"
    )
    first, second = bay.nearest([0.5, 0.5], [1.999, 2.001]).tolist()
    policy = bf.policies.neighbours(bay)
    assert (first, second) == (0, 7)
    assert policy.distance(first, second).tolist() == 7


def test_parts_of_a_map_are_joined_by_the_shortest_ways():
    districts = apart()
    pairs = districts.joining_pairs()
    # Against all ways between parts, the shortest first.
    gaps = {}
    for a, b in itertools.combinations(range(6), 2):
        (ax, ay), (bx, by) = CORNERS[a], CORNERS[b]
        gaps[a, b] = max(0, abs(ax - bx) - 1) ** 2 + max(0, abs(ay - by) - 1) ** 2
    parts = [0, 0, 1, 1, 2, 3]
    expected = set()
    for a, b in sorted(gaps, key=gaps.get):
        if parts[a] != parts[b]:
            expected.add((a, b))
            parts = [parts[a] if part == parts[b] else part for part in parts]
    assert {tuple(pair) for pair in pairs.tolist()} == expected
    policy = bf.policies.neighbours(districts, join="nearest")
    assert policy.components().count == 1
    whole = bf.Districts.from_shapes([square(0, 0), square(1, 0)], ["A", "B"])
    assert whole.joining_pairs().shape == (0, 2)


@pytest.mark.parametrize("seed", range(5))
def test_ways_that_became_longer_are_looked_up_again(seed):
    """The total length is that of a least spanning tree over all parts."""
    rng = np.random.default_rng(seed)
    places = rng.choice(900, 25, replace=False)
    corners = [
        (4 * (at % 30) + at % 3, 4 * (at // 30) + at % 2) for at in places.tolist()
    ]
    districts = bf.Districts.from_shapes(
        [square(x, y) for x, y in corners], range(25), system="EPSG:3857"
    )

    def length(a, b):
        (ax, ay), (bx, by) = corners[a], corners[b]
        across, up = (max(0, abs(p - q) - 1) for p, q in ((ax, bx), (ay, by)))
        return (across**2 + up**2) ** 0.5

    total = sum(length(a, b) for a, b in districts.joining_pairs().tolist())
    reached, least = {0}, 0.0
    while len(reached) < 25:
        way, one = min(
            (length(a, b), b) for a in reached for b in range(25) if b not in reached
        )
        reached.add(one)
        least += way
    assert total == pytest.approx(least)


def test_hexagons_have_a_nearest_one_too():
    pytest.importorskip("h3")
    area = {
        "type": "Polygon",
        "coordinates": [[[7, 46], [7.2, 46], [7.2, 46.2], [7, 46.2], [7, 46]]],
    }
    hexagons = bf.Hexagons.covering(area, 6)
    found = hexagons.nearest([7.1, 60.0, np.nan], [46.1, 46.5, 1.0]).tolist()
    assert found[0] == hexagons.locate([7.1], [46.1])[0]
    assert found[1] in hexagons.rim()
    assert found[2] == -1
    assert hexagons.joining_pairs().shape == (0, 2)


def test_a_stated_block_takes_the_cell_outside():
    nest = bf.Nesting.from_codes(["AA", "AB", "BA"], [1, 2], names=["county", "block"])
    nest = nest.over(nest.domain.with_extra_cells(outside=True))
    with pytest.raises(bf.errors.PolicyError, match="each cell needs a block"):
        bf.policies.Blocks(nest.domain, nest.labels("county"))
    labels = nest.labels("county", outside="B")
    assert labels.tolist() == [0, 0, 1, 1]
    assert bf.policies.Blocks(nest.domain, labels).distance(2, 3).tolist() == 1
    # A copy: the nesting itself stays as it is.
    assert nest.labels("county").tolist() == [0, 0, 1, -1]
    with pytest.raises(InputError, match="names a district of county"):
        nest.labels("county", outside="C")
