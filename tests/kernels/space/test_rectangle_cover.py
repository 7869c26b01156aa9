from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config
from scipy import sparse

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.space.summed_area import (
    box_columns,
    box_coverage,
    largest_box_separation,
)
from tests.generated import example_count
from tests.reference import rectangle_cover as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 30 if config.DISABLE_JIT else example_count(100)


@st.composite
def boxes(draw):
    """Return a small grid and the first and last cells of boxes in it."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    count = draw(st.integers(0, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    corners = [np.sort(rng.integers(0, side, (2, count)), axis=0) for side in shape]
    first, last = np.stack(corners, axis=-1)
    return shape, first.astype(np.int64), last.astype(np.int64)


@settings(max_examples=EXAMPLES)
@given(boxes())
def test_coverage_equals_the_definition(grid):
    shape, first, last = grid
    found = box_coverage(shape, first, last + 1)
    np.testing.assert_array_equal(found, reference.coverage(shape, first, last + 1))


@settings(max_examples=EXAMPLES)
@given(boxes(), st.lists(st.tuples(*[st.integers(-3, 3)] * 3), max_size=4))
def test_separation_equals_the_definition(grid, moves):
    shape, first, last = grid
    steps = np.array([move[: len(shape)] for move in moves], dtype=np.int64)
    steps = steps.reshape(-1, len(shape))
    found = largest_box_separation(shape, first, last + 1, steps)
    assert found == reference.largest_separation(shape, first, last + 1, steps)


@settings(max_examples=EXAMPLES)
@given(boxes(), st.integers(0, 2**32 - 1))
def test_columns_equal_the_dense_matrix(grid, seed):
    shape, first, last = grid
    rng = np.random.default_rng(seed)
    weights = rng.choice([0.25, 0.5, 1.0], (2, *first.shape))
    pointers, rows, values = box_columns(shape, first, last, *weights)
    size = (first.shape[0], int(np.prod(shape)))
    dense = sparse.csc_array((values, rows, pointers), shape=size).toarray()
    np.testing.assert_allclose(dense, reference.matrix(shape, first, last, *weights))
    for begin, end in itertools.pairwise(pointers):
        assert (np.diff(rows[begin:end]) > 0).all()


def test_boxes_outside_the_grid_are_refused():
    low, high = np.array([[0, 0]]), np.array([[2, 3]])
    with pytest.raises(InputError):
        box_coverage((2, 2), low, high)
    with pytest.raises(InputError):
        box_coverage((2, 3, 1), low, high)
    with pytest.raises(InputError):
        box_coverage((2, 3), high, low)
    ones = np.ones((1, 2))
    with pytest.raises(InputError):
        box_columns((4, 4), high, high - 1, ones, ones)
