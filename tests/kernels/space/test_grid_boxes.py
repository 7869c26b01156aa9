from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.space.grid_boxes import runs_to_boxes
from tests.generated import example_count
from tests.reference import grid_boxes as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 30 if config.DISABLE_JIT else example_count(100)
SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    shape=SHAPES,
    queries=st.integers(1, 4),
    kinds=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_boxes_cover_what_the_runs_did_and_do_not_overlap(shape, queries, kinds, seed):
    tables = np.random.default_rng(seed).integers(0, kinds + 1, (queries, *shape)) / 2
    pointers, lows, highs, values = runs_to_boxes(*reference.runs_of(tables), shape)
    found = reference.written_out(pointers, lows, highs, values, shape)
    np.testing.assert_array_equal(found, tables)
    ones = np.ones(values.size)
    assert reference.written_out(pointers, lows, highs, ones, shape).max(initial=0) <= 1


@settings(deadline=None, max_examples=EXAMPLES)
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1))
def test_a_box_comes_back_as_one_box(shape, seed):
    generator = np.random.default_rng(seed)
    ends = np.sort(generator.integers(0, shape, (2, len(shape))), axis=0)
    table = np.zeros((1, *shape))
    table[(0, *map(slice, ends[0], ends[1] + 1))] = 0.5
    pointers, lows, highs, values = runs_to_boxes(*reference.runs_of(table), shape)
    assert pointers.tolist() == [0, 1]
    assert lows[0].tolist() == ends[0].tolist()
    assert highs[0].tolist() == (ends[1] + 1).tolist()
    assert values.tolist() == [0.5]


def test_boxes_that_cut_cells_need_three_per_axis():
    shares = np.array([0.0, 0.25, 1.0, 1.0, 0.5]), np.array([0.5, 1.0, 1.0, 0.25, 0.0])
    table = np.multiply.outer(*shares)[None]
    pointers, *_ = runs_to_boxes(*reference.runs_of(table), (5, 5))
    assert pointers.tolist() == [0, 9]


def test_many_queries_make_room_as_they_come():
    board = np.indices((6, 6)).sum(axis=0) % 2
    tables = np.concatenate([np.ones((3, 6, 6)), np.stack([board] * 5)])
    pointers, *boxes = runs_to_boxes(*reference.runs_of(tables), (6, 6))
    assert np.diff(pointers).tolist() == [1, 1, 1, *[18] * 5]
    found = reference.written_out(pointers, *boxes, (6, 6))
    np.testing.assert_array_equal(found, tables)


def test_no_queries_and_empty_runs_make_no_boxes():
    nothing = np.zeros(0, dtype=np.int64)
    pointers, lows, _, _ = runs_to_boxes(
        np.zeros(1, np.int64), nothing, nothing, np.zeros(0), (2, 2)
    )
    assert pointers.tolist() == [0]
    assert lows.shape == (0, 2)
    one = np.array([1])
    pointers, *_ = runs_to_boxes(np.array([0, 1]), one, one, np.ones(1), (2, 2))
    assert pointers.tolist() == [0, 0]


def test_runs_outside_the_grid_are_refused():
    run = np.array([0, 1]), np.array([0]), np.array([5]), np.ones(1)
    with pytest.raises(InputError, match="within"):
        runs_to_boxes(*run, (2, 2))
    with pytest.raises(InputError, match="one value"):
        runs_to_boxes(*run[:3], np.ones(2), (2, 3))
    with pytest.raises(InputError, match="at least one cell"):
        runs_to_boxes(*run, (0, 3))
