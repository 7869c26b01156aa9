"""Cells of a map along a line: numbers, places, and blocks that are boxes."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.sparse import FilledCells
from blowfish_fast.data.wide.map_curve import MapBuckets, MapCurve
from blowfish_fast.errors import DomainError
from blowfish_fast.measure.randomness import Randomness

SHAPES = [
    (4, 4),
    (5, 9),
    (1, 6),
    (7, 1),
    (1, 1),
    (2**30, 2**30),
    (3, 2**40),
    (2**50, 9),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_places_survive_their_numbers(shape):
    rng, curve = np.random.default_rng(1), MapCurve(*shape)
    corner = np.array([[0, 0], [shape[0] - 1, shape[1] - 1]])
    places = np.concatenate([rng.integers(0, shape, (50, 2)), corner])
    numbers = curve.numbers(*places.T)
    assert numbers.min() >= 0
    assert numbers.max() < curve.cells
    np.testing.assert_array_equal(np.stack(curve.places(numbers), axis=1), places)
    assert curve.holds(numbers).all()


@pytest.mark.parametrize("shape", [(4, 4), (5, 9), (2, 16), (12, 3)], ids=str)
def test_every_block_is_a_box_that_begins_at_its_lower_corner(shape):
    curve = MapCurve(*shape)
    places = np.stack(curve.places(np.arange(curve.cells)), axis=1)
    assert len({tuple(one) for one in places.tolist()}) == curve.cells
    for height in range(sum(curve.bits) + 1):
        sides = [int(one) for one in curve.sides(np.array(height))]
        for begin in range(0, curve.cells, 2**height):
            block = places[begin : begin + 2**height]
            low, high = block.min(axis=0), block.max(axis=0) + 1
            np.testing.assert_array_equal(low, places[begin])
            assert (high - low).tolist() == sides


def test_boxes_of_buckets_make_up_the_map():
    rng = np.random.default_rng(2)
    for shape in ((5, 9), (16, 16), (3, 40)):
        curve = MapCurve(*shape)
        data = FilledCells.of(rng.integers(0, 9, shape)).along(curve)
        partition = bf.partitions.Descent().on_map(curve)
        policy = bf.policies.AddRemove(bf.WideDomain(curve.cells))
        buckets = partition.select(data, policy=policy, epsilon=1, rng=Randomness(3))
        assert isinstance(buckets, MapBuckets)
        seen = np.zeros(shape, dtype=int)
        for low, high in buckets.boxes:
            seen[low[0] : high[0], low[1] : high[1]] += 1
        assert (seen == 1).all()


def test_filled_cells_keep_their_counts_along_the_curve():
    counts = np.random.default_rng(3).integers(0, 3, (6, 5))
    curve = MapCurve(6, 5)
    keys, held = FilledCells.of(counts).along(curve)
    assert (np.diff(keys) > 0).all()
    rows, columns = curve.places(keys)
    np.testing.assert_array_equal(held, counts[rows, columns])


@pytest.mark.parametrize("edges", [[0, 3, 16], [0, 4, 8], [0, 1, 16], [0, 15, 16]])
def test_buckets_that_are_no_boxes_are_refused(edges):
    with pytest.raises(DomainError, match="boxes that make it up"):
        MapBuckets(np.array(edges), MapCurve(3, 4))


def test_a_map_is_divided_as_the_line_of_its_numbers():
    counts, curve = np.random.default_rng(5).integers(0, 60, (8, 8)), MapCurve(8, 8)
    along = counts[curve.places(np.arange(64))]
    policy = bf.policies.AddRemove(bf.Domain(64))
    given = {"policy": policy, "epsilon": 1}
    plain = bf.partitions.Descent().select(along, rng=Randomness(1), **given)
    data = FilledCells.of(counts).along(curve)
    partition = bf.partitions.Descent().on_map(curve)
    boxes = partition.select(data, rng=Randomness(1), **given)
    assert boxes.edges.tolist() == plain.edges.tolist()
    totals = [counts[a:c, b:d].sum() for (a, b), (c, d) in boxes.boxes.tolist()]
    assert data.within(boxes.edges).tolist() == totals
