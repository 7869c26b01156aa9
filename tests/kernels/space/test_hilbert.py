from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.space.hilbert import NO_STEP, hilbert_order, step_directions
from tests.generated import example_count
from tests.reference import hilbert as reference
from tests.reference.curve_intervals import snake_order, zigzag_order

pytestmark = pytest.mark.kernel

EXAMPLES = 20 if config.DISABLE_JIT else example_count(80)
LARGE = (
    [(30, 41), (3, 100), (100, 6)]
    if config.DISABLE_JIT
    else [(256, 256), (1000, 777), (3, 1000), (1001, 4), (1000, 1), (2, 5001)]
)


def steps(order, shape):
    """Return how far each step goes, summed over the axes."""
    return np.abs(np.diff(np.unravel_index(order, shape), axis=1)).sum(axis=0)


def extent(order, shape, length):
    """Return the mean, over stretches of the walk, of the longest side they span."""
    cells = np.stack(np.unravel_index(order, shape))
    stretches = np.lib.stride_tricks.sliding_window_view(cells, length, axis=1)
    return np.ptp(stretches, axis=2).max(axis=0).mean()


def assert_walks_to_adjoining_cells(shape):
    order = hilbert_order(shape)
    assert order.dtype == np.int64
    np.testing.assert_array_equal(np.sort(order), np.arange(np.prod(shape)))
    assert order[0] == 0
    assert (steps(order, shape) == 1).all(), shape


@pytest.mark.parametrize("rows", range(1, 21))
def test_every_small_plane_is_walked_in_single_steps(rows):
    for columns in range(1, 21):
        assert_walks_to_adjoining_cells((rows, columns))


@pytest.mark.parametrize("shape", LARGE)
def test_large_planes_are_walked_in_single_steps(shape):
    assert_walks_to_adjoining_cells(shape)


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(1, 45), st.integers(1, 45))
def test_equals_the_recursion_over_blocks(rows, columns):
    expected = reference.plane_order(rows, columns)
    np.testing.assert_array_equal(hilbert_order((rows, columns)), expected)


@pytest.mark.parametrize("levels", [1, 2, 3, 4, 5])
def test_equals_the_curve_of_hilbert_on_powers_of_two(levels):
    side = 2**levels
    found = np.stack(np.unravel_index(hilbert_order((side, side)), (side, side)), 1)
    textbook = np.array(
        [reference.hilbert_point(step, side) for step in range(side * side)]
    )
    assert any(
        np.array_equal(found, walk) for walk in reference.symmetries(textbook, side)
    )
    assert reference.parts_stay_together(hilbert_order((side, side)), 2, levels)


@pytest.mark.parametrize(
    ("axes", "levels"), [(3, 1), (3, 2), (3, 3), (4, 1), (4, 2), (5, 1), (6, 1), (7, 1)]
)
def test_cubes_are_walked_part_by_part_in_single_steps(axes, levels):
    shape = (2**levels,) * axes
    assert_walks_to_adjoining_cells(shape)
    order = hilbert_order(shape)
    assert reference.parts_stay_together(order, axes, levels)
    # It ends one corner further along the first axis, where another cube can follow.
    assert order[-1] == (2**levels - 1) * 2 ** (levels * (axes - 1))


@pytest.mark.parametrize("shape", [(7, 5, 3), (8, 6, 8), (6, 5, 2), (4, 3, 3, 2)])
def test_a_grid_follows_the_curve_of_its_cube(shape):
    cube = (1 << (max(shape) - 1).bit_length(),) * len(shape)
    cells = np.stack(np.unravel_index(hilbert_order(cube), cube))
    inside = [axis < side for axis, side in zip(cells, shape, strict=True)]
    kept = cells[:, np.logical_and.reduce(inside)]
    expected = np.ravel_multi_index(tuple(kept), shape)
    np.testing.assert_array_equal(hilbert_order(shape), expected)


@pytest.mark.parametrize("shape", [(4, 4, 40), (4, 36, 4), (2, 2, 2, 22), (50, 2, 2)])
def test_a_long_grid_is_a_row_of_cubes(shape):
    assert_walks_to_adjoining_cells(shape)
    along = np.unravel_index(hilbert_order(shape), shape)[np.argmax(shape)]
    cube = min(shape)
    np.testing.assert_array_equal(along // cube, np.sort(along // cube))


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_visits_every_cell_of_any_grid_once(shape):
    order = hilbert_order(shape)
    np.testing.assert_array_equal(np.sort(order), np.arange(np.prod(shape)))


def test_axes_of_one_cell_change_nothing():
    np.testing.assert_array_equal(hilbert_order((7,)), np.arange(7))
    np.testing.assert_array_equal(hilbert_order((1, 9, 1)), np.arange(9))
    np.testing.assert_array_equal(hilbert_order((6, 1, 5)), hilbert_order((6, 5)))
    np.testing.assert_array_equal(hilbert_order((1, 1)), [0])
    np.testing.assert_array_equal(hilbert_order(()), [0])
    assert hilbert_order((4, 0, 3)).shape == (0,)


@pytest.mark.parametrize(
    "shape", [(32, 32), (50, 31), (3, 200), (12, 100), (16, 16, 16), (5, 20, 60)]
)
def test_keeps_cells_closer_together_than_rows_do(shape):
    order, rows = hilbert_order(shape), np.arange(np.prod(shape))
    for length in (16, 30, 90):
        assert extent(order, shape, length) < 0.75 * extent(rows, shape, length)


@pytest.mark.parametrize("shape", [(3, 200), (201, 4), (7, 150), (150, 11), (2, 301)])
def test_walks_along_a_strip_without_turning_back(shape):
    along = np.unravel_index(hilbert_order(shape), shape)[np.argmax(shape)]
    # Having come to a place, the walk never falls behind it by more than a few widths.
    behind = np.maximum.accumulate(along) - along
    assert behind.max() <= 2 * min(shape)


def test_a_negative_side_is_refused():
    with pytest.raises(InputError, match="0 or more cells"):
        hilbert_order((4, -1))


SHAPE = (9, 7)
WALKS = {
    "hilbert": hilbert_order(SHAPE),
    "zigzag": zigzag_order(*SHAPE),
    "snake": snake_order(*SHAPE),
}


@pytest.mark.parametrize("name", WALKS)
def test_directions_lead_along_the_walk(name):
    order = WALKS[name]
    directions = step_directions(order, SHAPE[1])
    assert directions.size == order.size
    assert directions[order[0]] & 15 == NO_STEP
    assert directions[order[-1]] >> 4 == NO_STEP
    for cell, after in pairwise(order):
        ahead = int(directions[cell]) >> 4
        down, right = (ahead & 3) - 1, (ahead >> 2) - 1
        assert cell + down * SHAPE[1] + right == after
        behind = int(directions[after]) & 15
        assert ((behind & 3) - 1, (behind >> 2) - 1) == (-down, -right)


@pytest.mark.parametrize("name", WALKS)
def test_walks_that_jump_have_none(name):
    assert step_directions(np.roll(WALKS[name], 5), SHAPE[1]).size == 0
    # A step from the end of a row to the next row changes the index by one only.
    assert step_directions(np.arange(63), SHAPE[1]).size == 0
