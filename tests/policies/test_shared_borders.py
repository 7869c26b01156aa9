"""Neighbouring districts as a policy; strays and islands."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError, PolicyError


def squares(*corners):
    shapes = [
        {
            "type": "Polygon",
            "coordinates": [[[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1]]],
        }
        for x, y in corners
    ]
    return bf.Districts.from_shapes(shapes, [f"{x}{y}" for x, y in corners])


def test_districts_with_a_common_border_are_joined_and_corners_are_not():
    policy = bf.policies.neighbours(squares((0, 0), (1, 0), (0, 1), (1, 1)))
    assert policy.edge_count == 4
    assert policy.distance(0, [1, 2, 3]).tolist() == [1, 1, 2]
    assert policy.domain.attributes[0].borders is not None


def test_strays_are_joined_to_the_rim_so_that_their_number_is_no_public_one():
    grid = squares(*((x, y) for x in range(3) for y in range(3)))
    place = bf.Domain.from_polygons(grid).with_extra_cells(outside=True)
    policy = bf.policies.neighbours(grid, place)
    assert policy.components().count == 1
    joined = policy.distance(9, np.arange(9))
    assert joined.tolist() == [1, 1, 1, 1, 2, 1, 1, 1, 1]


def test_islands_are_named_unless_their_totals_are_public():
    apart = squares((0, 0), (1, 0), (5, 0))
    with pytest.raises(PolicyError, match="'50' among them"):
        bf.policies.neighbours(apart)
    public = bf.policies.neighbours(apart, islands="public")
    assert public.components().count == 2
    with pytest.raises(InputError, match="islands"):
        bf.policies.neighbours(apart, islands="drop")
    # With a cell of strays everything is joined through the outside.
    place = bf.Domain.from_polygons(apart).with_extra_cells(outside=True)
    assert bf.policies.neighbours(apart, place).components().count == 1


def test_cells_of_other_districts_are_refused():
    grid = squares((0, 0), (1, 0))
    with pytest.raises(PolicyError, match="the cells are the districts"):
        bf.policies.neighbours(grid, bf.Domain(2))
