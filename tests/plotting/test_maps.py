"""Pictures of two attributes show counts or noise, values and buckets."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError
from blowfish_fast.plotting.maps import border_lines

GRID = bf.Domain((6, 9), names=("north", "east"))


def test_a_map_shows_the_estimate_on_a_logarithmic_scale(plain, texts):
    release = plain(GRID)
    axes = bf.plotting.grid_map(release)
    (image,) = axes.images
    np.testing.assert_allclose(
        image.get_array(), np.log1p(np.maximum(release.estimate, 0))
    )
    assert image.get_extent() == [0, 9, 0, 6]
    assert axes.get_ylabel() == "north"
    assert axes.get_xlabel() == "east"
    assert {"0", "1", "10", "records per cell"} <= set(texts(axes))
    assert "seeded" in axes.get_title()


def test_axes_carry_the_values_of_the_edges(plain):
    places = bf.Domain.product(
        bf.Domain.from_edges([50.0, 50.5, 51.0], name="latitude"),
        bf.Domain.from_edges([4.0, 4.25, 4.5, 4.75], name="longitude"),
    )
    axes = bf.plotting.grid_map(plain(places))
    assert axes.images[0].get_extent() == [4.0, 4.75, 50.0, 51.0]
    assert axes.get_xlim() == (4.0, 4.75)


def test_uneven_cells_are_as_wide_as_they_are(plain):
    ages = bf.Domain.from_edges([0, 18, 65, 120], name="age")
    sexes = bf.Domain.from_levels(["F", "M"], name="sex")
    release = plain(bf.Domain.product(ages, sexes), [[30, 20], [300, 250], [10, 4]])
    axes = bf.plotting.grid_map(release)
    (image,) = axes.images
    assert image.get_array().shape == (3, 2)
    assert axes.get_ylim() == (0, 120)
    assert [one.get_text() for one in axes.get_xticklabels()] == ["F", "M"]


def test_extra_cells_are_named_along_both_axes(plain, texts):
    ages = bf.Domain.from_edges([0, 50, 100], name="age").with_extra_cells(missing=True)
    days = bf.Domain.from_edges([0, 5, 9], name="day").with_extra_cells(outside=True)
    axes = bf.plotting.grid_map(plain(bf.Domain.product(ages, days)))
    assert {"(missing)", "(outside)"} <= set(texts(axes))


def test_the_noise_of_each_cell_can_be_drawn(plain, texts):
    release = plain(GRID)
    axes = bf.plotting.grid_map(release, show="standard_error")
    errors = release.standard_errors(bf.workloads.Identity(GRID))
    np.testing.assert_allclose(axes.images[0].get_array().reshape(-1), errors)
    assert "standard deviation of the noise" in texts(axes)


def test_noise_that_is_not_known_is_refused():
    line = bf.Domain((4, 4))
    mwem = bf.mechanisms.Mwem(
        bf.policies.Full(line),
        bf.workloads.Rectangles.random(line, 9, rng=1),
        epsilon=1,
    )
    with pytest.raises(InputError, match="noise of this release is not known"):
        bf.plotting.grid_map(mwem.release([[3] * 4] * 4, rng=1), show="standard_error")


def test_boxes_of_buckets_are_outlined_at_their_corners():
    grid = bf.Domain((16, 16))
    tree = bf.KdTree(
        bf.policies.AddRemove(grid),
        bf.workloads.Rectangles.random(grid, 50, rng=1),
        epsilon=1,
    )
    release = tree.release([[50] * 8 + [0] * 8] * 16, rng=1)
    axes = bf.plotting.grid_map(release, buckets=True)
    (outlines,) = axes.collections
    paths = outlines.get_paths()
    assert len(paths) == release.details["buckets"]
    low, high = release.details["lows"][0], release.details["highs"][0]
    corners = paths[0].vertices
    assert corners.min(axis=0).tolist() == [low[1], low[0]]
    assert corners.max(axis=0).tolist() == [high[1], high[0]]
    # Once around: each corner differs from the next along one side.
    assert len(np.unique(corners, axis=0)) == 4
    assert (np.diff(corners, axis=0) != 0).sum(axis=1).tolist() == [1] * 4
    assert not bf.plotting.grid_map(release).collections


def test_other_buckets_are_outlined_along_their_borders():
    grid = bf.Domain((64, 64))
    mechanism = bf.mechanisms.UniformGrid(
        bf.policies.AddRemove(grid),
        bf.workloads.Rectangles.random(grid, 50, rng=1),
        epsilon=0.05,
    )
    release = mechanism.release(np.full((64, 64), 2), rng=1)
    (measurement,) = release.measurements
    assert not measurement.buckets.are_single_cells
    axes = bf.plotting.grid_map(release, buckets=True)
    labels = measurement.buckets.labels.reshape(64, 64)
    borders = (np.diff(labels, axis=0) != 0).sum() + (
        np.diff(labels, axis=1) != 0
    ).sum()
    assert len(axes.collections[0].get_segments()) == borders


def test_cells_alone_have_no_outlines(plain):
    assert not bf.plotting.grid_map(plain(GRID), buckets=True).collections


def test_borders_lie_between_different_labels():
    labels = np.array([[0, 0, 1], [0, 2, 1]])
    lines = border_lines(labels, np.arange(3.0), np.arange(4.0))
    expected = {
        ((2.0, 0.0), (2.0, 1.0)),
        ((1.0, 1.0), (1.0, 2.0)),
        ((2.0, 1.0), (2.0, 2.0)),
        ((1.0, 1.0), (2.0, 1.0)),
    }
    assert {tuple(map(tuple, one)) for one in lines.tolist()} == expected


def test_a_million_cells_are_one_image(plain):
    grid = bf.Domain((1024, 1024))
    axes = bf.plotting.grid_map(plain(grid))
    assert axes.images[0].get_array().shape == (1024, 1024)
    assert len(axes.get_children()) < 20


def test_maps_side_by_side_share_axes_and_a_largest_value(plain):
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2)
    bf.plotting.density(np.ones((6, 9)), axes=left, title="public", largest=100)
    bf.plotting.grid_map(plain(GRID), axes=right, largest=100)
    assert left.images[0].get_clim() == right.images[0].get_clim()
    assert left.images[0].get_clim() == (0.0, pytest.approx(np.log1p(100)))
    assert len(figure.axes) == 2
    # Cells look square, unless the box would be a thin strip.
    assert left.get_box_aspect() == right.get_box_aspect() == pytest.approx(6 / 9)
    strip = bf.plotting.density(np.ones((1, 9)), axes=left)
    assert strip.get_box_aspect() == 0.4
    bf.plotting.grid_map(plain(GRID), axes=right, colour_bar=True)
    assert len(figure.axes) == 3


def test_density_shows_its_title_and_labels():
    axes = bf.plotting.density([[0, 9], [99, -5]], title="a", labels=("b", "c"))
    np.testing.assert_allclose(axes.images[0].get_array(), np.log1p([[0, 9], [99, 0]]))
    assert (axes.get_title(), axes.get_ylabel(), axes.get_xlabel()) == ("a", "b", "c")


def test_true_counts_and_other_shapes_are_refused(plain):
    histogram = bf.Histogram(GRID, np.zeros((6, 9)))
    with pytest.raises(InputError, match="true counts"):
        bf.plotting.density(histogram)
    with pytest.raises(InputError, match="rows and columns"):
        bf.plotting.density([1, 2])
    with pytest.raises(InputError, match="draws a release of a histogram"):
        bf.plotting.grid_map(histogram)
    with pytest.raises(InputError, match="two attributes"):
        bf.plotting.grid_map(plain(bf.Domain(4)))
    with pytest.raises(InputError, match="show must be"):
        bf.plotting.grid_map(plain(GRID), show="counts")
