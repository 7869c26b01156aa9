from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.space.summed_area import (
    fractional_rectangle_sums,
    rectangle_sums,
    summed_area_table,
)
from tests.generated import example_count
from tests.reference import summed_area as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 25 if config.DISABLE_JIT else example_count(100)
SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, max_side=5)
COUNTS = hnp.arrays(np.int64, SHAPES, elements=st.integers(-50, 50))


@st.composite
def boxes(draw, shape, number):
    """Draw up to four boxes whose ends come from `number(side)`."""
    count = draw(st.integers(1, 4))
    ends = [
        [sorted(draw(st.tuples(number(side), number(side)))) for side in shape]
        for _ in range(count)
    ]
    array = np.array(ends)
    return array[:, :, 0], array[:, :, 1]


@settings(deadline=None, max_examples=EXAMPLES)
@given(COUNTS)
def test_the_table_equals_the_definition(counts):
    table = summed_area_table(counts)
    assert table.dtype == np.int64
    np.testing.assert_array_equal(table, reference.summed_area_table(counts))
    floats = summed_area_table(counts / 4)
    assert floats.dtype == np.float64
    np.testing.assert_array_equal(floats, table / 4)


@settings(deadline=None, max_examples=EXAMPLES)
@given(COUNTS, st.data())
def test_sums_equal_the_definition_in_one_to_four_dimensions(counts, data):
    # Ends may lie outside the grid, where there is nothing.
    lows, highs = data.draw(boxes(counts.shape, lambda side: st.integers(-2, side + 2)))
    expected = reference.rectangle_sums(counts, lows, highs)
    found = rectangle_sums(summed_area_table(counts), lows, highs)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, expected)
    quarters = rectangle_sums(summed_area_table(counts / 4), lows, highs)
    np.testing.assert_array_equal(quarters, expected / 4)
    # Whole ends are exact for the fractional sums too, and backwards is empty.
    fractional = fractional_rectangle_sums(summed_area_table(counts), lows, highs)
    np.testing.assert_array_equal(fractional, expected)
    turned = rectangle_sums(summed_area_table(counts), highs, lows)
    np.testing.assert_array_equal(turned, np.zeros(len(lows)))


@settings(deadline=None, max_examples=EXAMPLES)
@given(COUNTS, st.data())
def test_fractional_sums_equal_the_definition(counts, data):
    quarter = st.integers(0, 20).map(lambda quarters: quarters / 4)
    lows, highs = data.draw(
        boxes(counts.shape, lambda side: st.floats(-1, side + 1) | quarter)
    )
    expected = reference.fractional_rectangle_sums(counts, lows, highs)
    for table in (summed_area_table(counts), summed_area_table(counts.astype(float))):
        found = fractional_rectangle_sums(table, lows, highs)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, atol=1e-9)


@settings(deadline=None, max_examples=EXAMPLES // 2)
@given(COUNTS, st.data())
def test_fractional_sums_equal_the_interpolated_table(counts, data):
    lows, highs = data.draw(boxes(counts.shape, lambda side: st.floats(0, side)))
    table = summed_area_table(counts)
    expected = [
        reference.interpolated_sum(table, low, high)
        for low, high in zip(lows, highs, strict=True)
    ]
    found = fractional_rectangle_sums(table, lows, highs)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_whole_numbers_are_added_up_exactly():
    counts = np.array([[2**61, 1, 3], [2**61 - 9, 5, 7]])
    table = summed_area_table(counts)
    assert table[2, 3] == 2**62 + 7
    assert rectangle_sums(table, [[0, 1]], [[2, 3]])[0] == 16
    assert rectangle_sums(table, [[0, 0]], [[2, 2]])[0] == 2**62 - 3


def test_small_cells_beside_large_ones_keep_their_digits():
    counts = np.array([[2**61, 1, 3], [2**61 - 9, 5, 7]])
    found = fractional_rectangle_sums(
        summed_area_table(counts), [[0.5, 1.25]], [[2, 3]]
    )
    assert found[0] == 0.5 * 0.75 * 1 + 0.75 * 5 + 0.5 * 3 + 7
    thin = fractional_rectangle_sums(
        summed_area_table(counts), [[1, 1 + 2.0**-40]], [[2, 1 + 2.0**-39]]
    )
    assert thin[0] == 5 * 2.0**-40


@pytest.mark.parametrize(
    "shape",
    [(50,), (20, 31), (6, 8, 5)]
    if config.DISABLE_JIT
    else [(5000,), (200, 317), (30, 41, 22)],
)
def test_large_grids_equal_the_definition(shape, generator):
    counts = generator.integers(0, 1000, shape)
    ends = np.sort(generator.integers(0, np.array(shape) + 1, (2, 50, len(shape))), 0)
    table = summed_area_table(counts)
    expected = reference.rectangle_sums(counts, *ends)
    np.testing.assert_array_equal(rectangle_sums(table, *ends), expected)
    cuts = np.sort(generator.uniform(0, shape, (2, 50, len(shape))), 0)
    np.testing.assert_allclose(
        fractional_rectangle_sums(table, *cuts),
        reference.fractional_rectangle_sums(counts, *cuts),
        rtol=1e-12,
    )


def test_every_kind_of_number_is_accepted():
    for dtype in (np.bool_, np.uint8, np.int32, np.uint64):
        table = summed_area_table(np.array([[1, 0], [1, 1]], dtype=dtype))
        assert table.dtype == np.int64
        assert table[2, 2] == 3
    assert summed_area_table(np.ones(3, dtype=np.float32)).dtype == np.float64
    counts = np.arange(24).reshape(2, 3, 4)
    for view in (counts.T, counts[:, ::-1], counts[:, :, ::2]):
        np.testing.assert_array_equal(
            summed_area_table(view), reference.summed_area_table(view)
        )
        table = summed_area_table(view)
        np.testing.assert_array_equal(
            rectangle_sums(np.asfortranarray(table), [[0, 1, 0]], [[2, 2, 2]]),
            reference.rectangle_sums(view, [[0, 1, 0]], [[2, 2, 2]]),
        )


def test_ends_that_are_no_numbers_or_far_away_are_safe():
    table = summed_area_table(np.arange(12).reshape(3, 4))
    lows = [[np.nan, 0], [0, 0], [-np.inf, -np.inf], [7, 0], [-4, 0]]
    highs = [[2, 2], [2, np.nan], [np.inf, np.inf], [9, 4], [-2, 4]]
    found = fractional_rectangle_sums(table, lows, highs)
    np.testing.assert_array_equal(found, [0, 0, 66, 0, 0])
    far = 2**62
    np.testing.assert_array_equal(
        rectangle_sums(table, [[-far, -far], [far, 0]], [[far, far], [far, 4]]), [66, 0]
    )


def test_grids_without_cells_and_lists_without_boxes_sum_to_nothing():
    table = summed_area_table(np.zeros((3, 0), dtype=np.int64))
    assert table.shape == (4, 1)
    assert rectangle_sums(table, [[0, 0]], [[3, 1]])[0] == 0
    assert fractional_rectangle_sums(table, [[0, 0]], [[3, 1]])[0] == 0
    assert rectangle_sums(table, np.zeros((0, 2)), np.zeros((0, 2))).shape == (0,)


def test_shapes_that_do_not_fit_are_refused():
    table = summed_area_table(np.ones((2, 3)))
    with pytest.raises(InputError, match="one column per axis"):
        rectangle_sums(table, [[0]], [[1]])
    with pytest.raises(InputError, match="one column per axis"):
        fractional_rectangle_sums(table, [[0, 0]], [[1, 1], [1, 1]])
    with pytest.raises(InputError, match="one entry more"):
        rectangle_sums(np.zeros((0, 3)), [[0, 0]], [[1, 1]])
    with pytest.raises(InputError, match="at least one axis"):
        summed_area_table(np.array(3))
