"""Maps in classes of colours: which district has which, and where it is hatched."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError
from blowfish_fast.release.places.map_classes import CLASSES

matplotlib = pytest.importorskip("matplotlib")

# A square of 3 x 3 with a hole, the square in the hole, and a strip on the right. A
# fourth cell is for points outside of all three.
HOLE = [[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]
SHAPES = [
    {"type": "Polygon", "coordinates": [[[0, 0], [3, 0], [3, 3], [0, 3]], HOLE]},
    {"type": "Polygon", "coordinates": [HOLE]},
    {"type": "Polygon", "coordinates": [[[3, 0], [4, 0], [4, 3], [3, 3]]]},
]
TRACTS = bf.Districts.from_shapes(SHAPES, ["ring", "core", "side"])
PLACE = bf.Domain.from_polygons(TRACTS).with_extra_cells(outside=True)


def release_of(counts, domain=PLACE):
    laplace = bf.Laplace(bf.policies.AddRemove(domain), epsilon=1)
    return laplace.release(counts, rng=1)


def test_colours_follow_estimates_and_wide_intervals_are_hatched():
    axes = bf.plotting.choropleth(release_of([900, 2, 400, 77]), TRACTS)
    filled, hatched = axes.collections
    colours = [matplotlib.colors.to_hex(rgba) for rgba in filled.get_facecolors()]
    assert colours == [CLASSES[4], CLASSES[0], CLASSES[2]]
    # Only the core, with 2 records, has an interval wider than its count.
    assert len(hatched.get_paths()) == 1
    assert hatched.get_paths()[0].get_extents().bounds == (1.0, 1.0, 1.0, 1.0)
    assert hatched.get_hatch() == "////"
    assert axes.get_xlabel() == "not on the map: (outside)"
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[:3] == ["0 to 400", "400 to 900", "900"]
    assert len(labels) == 4
    assert labels[-1] == "interval wider than\nthe count: do not read"
    axes.figure.canvas.draw()
    corner = axes.get_legend().get_window_extent().x0
    # The legend stands beside the map, where it hides no district.
    assert corner >= axes.get_window_extent().x1


def test_a_hole_turns_the_other_way_than_its_district():
    axes = bf.plotting.choropleth(release_of([900, 900, 400, 77]), TRACTS)
    ring = axes.collections[0].get_paths()[0]
    # A path with a hole is painted by its directions, which are the signs of areas.
    parts = [part[:-1] for part in ring.to_polygons()]
    areas = [
        np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)
        for x, y in (part.T for part in parts)
    ]
    assert areas[0] > 0 > areas[1]


def test_public_breaks_fix_the_classes():
    breaks = [0, 100, 200, 300, 500, 800]
    axes = bf.plotting.choropleth(
        release_of([900, 150, 400, 77]), TRACTS, breaks=breaks
    )
    colours = axes.collections[0].get_facecolors()
    shown = [matplotlib.colors.to_hex(rgba) for rgba in colours]
    assert shown == [CLASSES[4], CLASSES[1], CLASSES[3]]
    with pytest.raises(InputError, match="6 rising numbers"):
        bf.plotting.choropleth(release_of([900, 2, 400, 77]), TRACTS, breaks=[0, 1])


def test_degrees_of_longitude_are_drawn_as_wide_as_they_are_on_the_ground():
    # At 60 degrees north a degree of longitude is half as wide as one of latitude.
    grid = bf.Domain.from_box((2, 3), lat=(59, 61), lon=(7, 10))
    axes = bf.plotting.choropleth(release_of(np.full((2, 3), 90), grid))
    assert axes.get_aspect() == pytest.approx(2.0)
    metres = bf.Domain.from_box((2, 3), y=(59, 61), x=(7, 10))
    axes = bf.plotting.choropleth(release_of(np.full((2, 3), 90), metres))
    assert axes.get_aspect() == 1.0
    assert len(axes.collections[0].get_paths()) == 6
    assert axes.get_xlabel() == ""


def test_true_counts_are_not_drawn():
    data = bf.Histogram(PLACE, [1, 2, 3, 4])
    with pytest.raises(InputError, match="true counts"):
        bf.plotting.choropleth(data, TRACTS)
    with pytest.raises(InputError, match="a release of a histogram"):
        bf.plotting.choropleth("map", TRACTS)
