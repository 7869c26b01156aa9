"""Outlines of unions of districts: against shapely's, and small ones by hand."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.data.places.union_outlines import merged_shapes

STEP = 1e-7


def squares(across, up):
    """Return squares of a tenth, every other one walked with the clock."""
    shapes = []
    for x in range(across):
        for y in range(up):
            corners = [(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1), (x, y)]
            ring = np.array(corners, dtype=np.float64) / 10
            shapes.append([[ring[::-1] if (x + y) % 2 else ring]])
    return shapes


def area(ring):
    x, y = ring.T
    return float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])) / 2


def test_borders_inside_a_union_vanish():
    (union,) = merged_shapes(squares(2, 1), np.array([0, 0]), 1, STEP)
    ((ring,),) = union
    assert len(ring) == 7
    assert area(ring) == pytest.approx(0.02)
    np.testing.assert_array_equal(ring[0], ring[-1])


def test_a_hole_belongs_to_the_ring_around_it():
    labels = np.ones(25, dtype=np.int64)
    labels[[12, 4]] = 0, -1
    inner, outer = merged_shapes(squares(5, 5), labels, 2, STEP)
    assert [len(polygon) for polygon in inner] == [1]
    ((shell, hole),) = outer
    assert area(shell) == pytest.approx(0.24)
    assert area(hole) == pytest.approx(-0.01)


def test_squares_that_meet_at_a_corner_are_two_polygons():
    labels = np.array([0, -1, -1, 0])
    (union,) = merged_shapes(squares(2, 2), labels, 1, STEP)
    assert sorted(len(polygon[0]) for polygon in union) == [5, 5]
    assert sum(area(polygon[0]) for polygon in union) == pytest.approx(0.02)


def test_a_union_of_nothing_is_empty():
    assert merged_shapes(squares(1, 1), np.array([-1]), 2, STEP) == [[], []]


def test_an_island_in_a_lake_of_an_island():
    labels = np.zeros(49, dtype=np.int64)
    ring = [x * 7 + y for x in range(1, 6) for y in range(1, 6)]
    labels[ring] = -1
    labels[[2 * 7 + 2, 2 * 7 + 4, 24]] = 0
    (union,) = merged_shapes(squares(7, 7), labels, 1, STEP)
    holes = [len(polygon) - 1 for polygon in union]
    assert sorted(holes) == [0, 0, 0, 1]


def test_random_unions_are_those_of_shapely():
    shapely = pytest.importorskip("shapely")
    rng = np.random.default_rng(1)
    for _ in range(60):
        side, many = int(rng.integers(2, 8)), int(rng.integers(1, 4))
        shapes = squares(side, side)
        labels = rng.integers(-1, many, side * side)
        unions = merged_shapes(shapes, labels, many, STEP)
        for label, union in enumerate(unions):
            own = [
                shape for shape, at in zip(shapes, labels, strict=True) if at == label
            ]
            wanted = shapely.union_all([shapely.Polygon(part[0][0]) for part in own])
            drawn = shapely.MultiPolygon([(part[0], part[1:]) for part in union])
            assert drawn.is_valid
            assert drawn.symmetric_difference(wanted).area < 1e-12
