"""Boxes cut into runs of buckets."""

from __future__ import annotations

import numpy as np

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets, cell_order
from blowfish_fast.workloads.ranges import rectangle_pieces
from tests.reference.forms import dense_form


def test_a_box_covers_its_share_of_every_bucket():
    grid = Domain((4, 4))
    along = cell_order(grid)
    pairs = along.then(Buckets(np.arange(0, 17, 2)))
    low, high = np.array([[1.0, 0.5]]), np.array([[3.0, 4.0]])
    weights = np.zeros((4, 4))
    weights[1:3] = [0.5, 1.0, 1.0, 1.0]
    expected = pairs.sum((weights.reshape(-1) * 2).astype(np.int64)) / 4
    dense = dense_form(rectangle_pieces(grid, low, high, pairs), 8)
    np.testing.assert_allclose(dense[0], expected)


def test_buckets_that_are_boxes_give_the_pieces_of_their_cells():
    grid = Domain((12, 9))
    rng = np.random.default_rng(4)
    lows = rng.uniform(0, 6, (30, 2))
    highs = lows + rng.uniform(0.5, 3, (30, 2))
    # Four boxes, numbered across; cells inside a box in any order.
    rows, columns = np.unravel_index(np.arange(grid.size), grid.shape)
    buckets = Buckets.from_labels((rows >= 5) * 2 + (columns >= 4))
    short = rectangle_pieces(grid, lows, highs, buckets)
    cells = Buckets.single_cells(grid.size)
    each = dense_form(rectangle_pieces(grid, lows, highs, cells), grid.size)
    sums = np.zeros((30, 4))
    for bucket in range(4):
        sums[:, bucket] = each[:, buckets.labels == bucket].mean(axis=1)
    np.testing.assert_allclose(dense_form(short, 4), sums, atol=1e-12)
