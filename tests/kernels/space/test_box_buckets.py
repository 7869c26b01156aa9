from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.space.box_buckets import (
    boxes_to_pieces,
    bucket_boxes,
    bucket_corners,
)
from tests.generated import example_count

pytestmark = pytest.mark.kernel

EXAMPLES = 10 if config.DISABLE_JIT else example_count(60)


def random_boxes(shape, generator, most):
    """Cut a grid at random places into at most so many boxes, in any order."""
    boxes = [(np.zeros(len(shape), dtype=np.int64), np.array(shape))]
    for _ in range(most - 1):
        low, high = boxes.pop(int(generator.integers(len(boxes))))
        axis = int(generator.integers(len(shape)))
        if high[axis] - low[axis] < 2:
            boxes.append((low, high))
            continue
        cut = int(generator.integers(low[axis] + 1, high[axis]))
        middle_high, middle_low = high.copy(), low.copy()
        middle_high[axis] = middle_low[axis] = cut
        boxes += [(low, middle_high), (middle_low, high)]
    generator.shuffle(boxes)
    return np.array(boxes)


def as_buckets(shape, boxes):
    """Return the order and edges of buckets that are boxes."""
    grid = np.arange(np.prod(shape)).reshape(shape)
    cells = [
        grid[tuple(slice(*ends) for ends in zip(low, high, strict=True))].ravel()
        for low, high in boxes
    ]
    edges = np.concatenate([[0], np.cumsum([one.size for one in cells])])
    return np.concatenate(cells), edges


def dense(pieces, buckets):
    pointers, starts, ends, values = pieces
    matrix = np.zeros((pointers.size - 1, buckets))
    for row in range(pointers.size - 1):
        reached = 0
        for piece in range(pointers[row], pointers[row + 1]):
            assert reached <= starts[piece] < ends[piece]
            reached = ends[piece]
            matrix[row, starts[piece] : ends[piece]] = values[piece]
    return matrix


def covered(lows, highs, boxes):
    """Return the part of each box that each query covers."""
    inside = np.minimum(highs[:, None], boxes[:, 1]) - np.maximum(
        lows[:, None], boxes[:, 0]
    )
    volumes = np.prod(boxes[:, 1] - boxes[:, 0], axis=1)
    return np.prod(np.maximum(inside, 0), axis=2) / volumes


SHAPES = st.sampled_from([(1, 1), (7,), (5, 6), (9, 1), (16, 16), (3, 4, 5)])


@settings(deadline=None, max_examples=EXAMPLES)
@given(SHAPES, st.integers(1, 90), st.integers(0, 10**6), st.booleans())
def test_equals_the_definition(shape, most, seed, whole):
    generator = np.random.default_rng(seed)
    boxes = random_boxes(shape, generator, most)
    corners_of = bucket_boxes(*as_buckets(shape, boxes), shape)
    assert corners_of.dtype == np.int64
    assert (corners_of == boxes).all()
    short = bucket_corners(*as_buckets(shape, boxes), shape)
    assert short.dtype == np.int32
    assert (short == boxes).all()
    corners = generator.uniform(0, shape, size=(2, 12, len(shape)))
    if whole:
        corners = np.floor(corners)
    lows, highs = corners.min(axis=0), corners.max(axis=0) + 0.25 * (not whole)
    highs = np.minimum(np.maximum(highs, lows + 0.5), shape)
    pieces = boxes_to_pieces(lows, highs, boxes)
    expected = covered(lows, highs, boxes)
    np.testing.assert_allclose(dense(pieces, len(boxes)), expected, atol=1e-12)
    assert (pieces[3] > 0).all()


def test_pieces_are_as_long_as_they_can_be():
    boxes = np.array([[[row, 0], [row + 1, 4]] for row in range(100)])
    query = np.array([[0.0, 0.0], [10.0, 1.0]]), np.array([[100.0, 4.0], [20.0, 3.0]])
    pointers, starts, ends, values = boxes_to_pieces(*query, boxes)
    assert pointers.tolist() == [0, 1, 2]
    assert starts.tolist() == [0, 10]
    assert ends.tolist() == [100, 20]
    assert values.tolist() == [1.0, 0.5]


def test_more_pieces_than_first_expected_find_room():
    side = 60
    cells = np.stack(np.indices((side, side)), axis=-1).reshape(-1, 2)
    chessboard = cells[np.argsort(cells.sum(axis=1) % 2, kind="stable")]
    boxes = np.stack([chessboard, chessboard + 1], axis=1)
    lows = np.array([[1.0, 1.0], [0.0, 3.0], [0.5, 0.5]])
    highs = np.array([[59.0, 58.0], [60.0, 57.0], [58.5, 59.5]])
    pieces = boxes_to_pieces(lows, highs, boxes)
    np.testing.assert_allclose(
        dense(pieces, len(boxes)), covered(lows, highs, boxes), atol=1e-12
    )
    assert pieces[1].size > 64 * 4 / 3


def test_no_queries_have_no_pieces():
    boxes = np.array([[[0, 0], [2, 2]]])
    pointers, starts, _, _ = boxes_to_pieces(np.empty((0, 2)), np.empty((0, 2)), boxes)
    assert pointers.tolist() == [0]
    assert starts.size == 0


def test_buckets_that_are_no_boxes_are_found():
    cells = np.array([0, 3, 1, 2])
    assert bucket_boxes(cells, np.array([0, 2, 4]), (2, 2)) is None
    assert bucket_boxes(np.array([0, 2, 1]), np.array([0, 2, 3]), (3,)) is None
    assert bucket_corners(cells, np.array([0, 2, 4]), (2, 2)) is None


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="cover the 4 cells"):
        bucket_boxes(np.arange(3), np.array([0, 3]), (2, 2))
    with pytest.raises(InputError, match="cover the 4 cells"):
        bucket_corners(np.arange(3), np.array([0, 3]), (2, 2))
    with pytest.raises(InputError, match="sides below 2\\^31"):
        bucket_corners(np.arange(3), np.array([0, 3]), (1, 2**31))
    with pytest.raises(InputError, match="corners must have shape"):
        boxes_to_pieces(np.zeros((1, 3)), np.ones((1, 3)), np.ones((1, 2, 2), int))
    for order, edges in (
        (np.arange(4), np.array([], dtype=np.int64)),
        (np.arange(4), np.array([0, 9, 4])),
        (np.array([0, 1, 2, 2**62]), np.array([0, 4])),
        (np.array([0, 1, -2, 3]), np.array([0, 4])),
    ):
        with pytest.raises(InputError, match="cover the 4 cells"):
            bucket_boxes(order, edges, (2, 2))
    for boxes in (np.arange(4), np.ones((1, 3, 1), int), np.ones((0, 2, 1), int)):
        with pytest.raises(InputError, match="a low and a high corner"):
            boxes_to_pieces(np.zeros((1, 1)), np.ones((1, 1)), boxes)
