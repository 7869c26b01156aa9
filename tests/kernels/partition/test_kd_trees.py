"""Median cuts against plain recursion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.partition.kd_trees import (
    MODES,
    grid_table,
    median_boxes,
    median_cuts,
)
from blowfish_fast.kernels.space.box_buckets import cells_of_boxes
from tests.generated import example_count
from tests.reference import kd_split as reference

pytestmark = pytest.mark.kernel

SHAPES = st.sampled_from([(1,), (2,), (13,), (1, 1), (5, 8), (3, 4, 5), (2, 3, 2, 4)])


def corners(boxes):
    return [
        (tuple(low), tuple(high))
        for low, high in zip(*(side.tolist() for side in boxes), strict=True)
    ]


@given(
    SHAPES,
    st.integers(0, 2**32 - 1),
    st.sampled_from(MODES),
    st.floats(0, 4),
    st.integers(0, 12),
)
@settings(deadline=None, max_examples=example_count(60))
def test_equals_the_definition(shape, seed, mode, level, depth):
    cells = np.random.default_rng(seed).integers(-5, 9, size=shape)
    given_ = {
        "level": level,
        "slack": 0.5,
        "count": 20.5,
        "mode": mode,
        "depth": depth,
    }
    expected = reference.median_boxes(cells, **given_)
    assert corners(median_boxes(cells, **given_)) == [
        (tuple(low), tuple(high)) for low, high in expected
    ]


@given(SHAPES, st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=30)
def test_boxes_hold_every_cell_once(shape, seed):
    cells = np.random.default_rng(seed).integers(0, 50, size=shape)
    boxes = median_boxes(cells, level=2, slack=0, count=9, mode="or", depth=20)
    edges, order = cells_of_boxes(*boxes, shape)
    assert sorted(order.tolist()) == list(range(cells.size))
    sums = np.add.reduceat(cells.reshape(-1)[order], edges[:-1])
    for (low, high), total in zip(corners(boxes), sums, strict=True):
        inside = cells[tuple(slice(*ends) for ends in zip(low, high, strict=True))]
        assert inside.sum() == total


def test_ends_at_single_cells_however_low_the_thresholds():
    cells = np.arange(12.0).reshape(3, 4) + 1
    boxes = median_boxes(cells, level=0, slack=0, count=0, mode="or", depth=99)
    assert len(boxes[0]) == 12


def test_the_depth_is_kept():
    cells = np.arange(64.0)
    boxes = median_boxes(cells, level=0, slack=0, count=0, mode="or", depth=3)
    assert len(boxes[0]) <= 8


@given(st.lists(st.lists(st.integers(-4, 9), min_size=1, max_size=9), min_size=1))
@settings(deadline=None, max_examples=example_count(40))
def test_cuts_are_medians_with_two_parts(boxes):
    edges = np.concatenate([[0], np.cumsum([len(box) for box in boxes])])
    cuts = median_cuts(np.concatenate(boxes), edges)
    for box, cut in zip(boxes, cuts.tolist(), strict=True):
        if len(box) == 1:
            assert cut == 0
        else:
            assert cut == reference.median_cut(np.array(box, dtype=float))


def test_refuses_what_is_no_grid():
    with pytest.raises(InputError, match="finite"):
        grid_table(np.array([1.0, np.nan]))
    with pytest.raises(InputError, match="at least one cell"):
        grid_table(np.empty((0, 3)))
    with pytest.raises(InputError, match="mode"):
        median_boxes([1], level=1, slack=0, count=1, mode="neither", depth=1)
    with pytest.raises(InputError, match="slabs"):
        median_cuts([1.0, 2.0], [0, 1])
