"""Boxes cut into nearly equal boxes, and the cells that they hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.space.box_buckets import cells_of_boxes, divide_boxes
from tests.generated import example_count
from tests.reference import box_division as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 20 if config.DISABLE_JIT else example_count(80)
SHAPES = st.lists(st.integers(1, 7), min_size=1, max_size=3)


@settings(deadline=None, max_examples=EXAMPLES)
@given(SHAPES, st.integers(0, 2**32 - 1))
def test_children_and_cells_equal_the_definition(shape, seed):
    generator = np.random.default_rng(seed)
    sides = np.array([shape])
    parts = generator.integers(1, sides + 1)
    owners, lows, highs = divide_boxes(np.zeros_like(sides), sides, parts)
    assert (owners == 0).all()
    again = generator.integers(1, highs - lows + 1)
    for boxes in ((np.zeros_like(sides), sides, parts), (lows, highs, again)):
        expected = reference.children(*boxes)
        found = divide_boxes(*boxes)
        assert [one.tolist() for one in found] == [list(one) for one in expected]
        edges, order = cells_of_boxes(*found[1:], tuple(shape))
        assert (edges.tolist(), order.tolist()) == reference.cells(*found[1:], shape)


def test_parts_differ_by_at_most_one_cell():
    _, lows, highs = divide_boxes(np.array([[0]]), np.array([[1000]]), np.array([[17]]))
    sizes = highs - lows
    assert sizes.sum() == 1000
    assert sizes.max() - sizes.min() == 1


def test_bad_boxes_are_refused():
    box = np.array([[0, 0]]), np.array([[2, 3]])
    with pytest.raises(InputError, match="1 part"):
        divide_boxes(*box, np.array([[1, 4]]))
    with pytest.raises(InputError, match="shape"):
        divide_boxes(*box, np.array([[1]]))
    with pytest.raises(InputError, match="fill the grid"):
        cells_of_boxes(*box, (2, 4))
    with pytest.raises(InputError, match="fill the grid"):
        cells_of_boxes(*box, (3, 2))
    with pytest.raises(InputError, match="corners"):
        cells_of_boxes(*box, (6,))
