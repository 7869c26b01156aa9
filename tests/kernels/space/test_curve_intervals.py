from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.space.curve_intervals import rectangle_intervals
from blowfish_fast.kernels.space.hilbert import hilbert_order
from tests.generated import example_count
from tests.reference import curve_intervals as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 25 if config.DISABLE_JIT else example_count(120)


def inverse(order):
    position = np.empty_like(order)
    position[order] = np.arange(order.size)
    return position


def cut(order, shape, lows, highs):
    """Cut rectangles, and again with so many that the outline is worth looking at."""
    lows, highs = np.asarray(lows, float), np.asarray(highs, float)
    position = inverse(order)
    few = rectangle_intervals(order, position, shape, lows, highs)
    whole = np.zeros((2, len(shape))), np.tile(np.array(shape, float), (2, 1))
    pointers, *rest = rectangle_intervals(
        order,
        position,
        shape,
        np.concatenate([lows, whole[0]]),
        np.concatenate([highs, whole[1]]),
    )
    found = pointers[:-2], *(part[: pointers[-3]] for part in rest)
    for one, other in zip(few, found, strict=True):
        np.testing.assert_array_equal(one, other)
    if order.size:
        # The grid itself is one interval.
        assert [part[pointers[-3]] for part in rest] == [0, order.size, 1.0]
    return few


def assert_equals_the_definition(order, shape, lows, highs):
    pointers, starts, ends, values = cut(order, shape, lows, highs)
    assert pointers.dtype == starts.dtype == ends.dtype == np.int64
    assert pointers[0] == 0
    assert pointers[-1] == starts.size == ends.size == values.size
    for i, (low, high) in enumerate(zip(lows, highs, strict=True)):
        row = slice(pointers[i], pointers[i + 1])
        found = [part[row].tolist() for part in (starts, ends, values)]
        expected = reference.rectangle_intervals(order, shape, low, high)
        assert list(zip(*found, strict=True)) == expected


@st.composite
def rectangles(draw, shape):
    """Draw rectangles with ends between cells, at quarters of cells, or anywhere."""
    kind = draw(st.sampled_from(["whole", "coarse", "any"]))
    count = draw(st.integers(1, 4))
    ends = np.empty((count, 2, len(shape)))
    for axis, side in enumerate(shape):
        number = {
            "whole": st.integers(0, side).map(float),
            "coarse": st.integers(0, 4 * side).map(lambda quarter: quarter / 4),
            "any": st.floats(0, side),
        }[kind]
        pair = st.tuples(number, number).map(sorted)
        ends[:, :, axis] = draw(st.lists(pair, min_size=count, max_size=count))
    return ends[:, 0], ends[:, 1]


@st.composite
def planes(draw, fewest=1):
    shape = (draw(st.integers(fewest, 14)), draw(st.integers(fewest, 14)))
    return shape, *draw(rectangles(shape))


@settings(deadline=None, max_examples=EXAMPLES)
@given(planes())
def test_equals_the_definition_along_the_curve(case):
    shape, lows, highs = case
    assert_equals_the_definition(hilbert_order(shape), shape, lows, highs)


@settings(deadline=None, max_examples=EXAMPLES)
@given(planes(), st.sampled_from([reference.zigzag_order, reference.snake_order]))
def test_equals_the_definition_along_other_walks_to_neighbours(case, walk):
    shape, lows, highs = case
    assert_equals_the_definition(walk(*shape), shape, lows, highs)


@settings(deadline=None, max_examples=EXAMPLES)
@given(planes(), st.randoms(use_true_random=False))
def test_equals_the_definition_along_walks_that_jump(case, random):
    shape, lows, highs = case
    order = list(range(shape[0] * shape[1]))
    random.shuffle(order)
    assert_equals_the_definition(np.array(order), shape, lows, highs)


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.data())
def test_equals_the_definition_in_any_dimension(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    lows, highs = data.draw(rectangles(shape))
    assert_equals_the_definition(hilbert_order(shape), shape, lows, highs)
    rows = np.arange(np.prod(shape))
    assert_equals_the_definition(rows, shape, lows, highs)
    assert_equals_the_definition(rows[::-1].copy(), shape, lows, highs)


def test_all_rectangles_of_a_small_plane_equal_the_definition():
    shape = (4, 5) if config.DISABLE_JIT else (6, 7)
    ends = [
        [(a, b) for a in range(side) for b in range(a + 1, side + 1)] for side in shape
    ]
    boxes = np.array([(row, column) for row in ends[0] for column in ends[1]])
    lows, highs = boxes[:, :, 0], boxes[:, :, 1]
    for order in (hilbert_order(shape), reference.zigzag_order(*shape)):
        assert_equals_the_definition(order, shape, lows, highs)
        assert_equals_the_definition(order, shape, lows + 0.25, highs)


@pytest.mark.long
@pytest.mark.parametrize("fraction", [0.0, 0.3])
@pytest.mark.parametrize(
    "shape",
    [(16, 18), (9, 8, 10), (300,)]
    if config.DISABLE_JIT
    else [(512, 600), (64, 70, 90), (300000,)],
)
def test_large_grids_equal_the_definition(shape, fraction, generator):
    # Compiled, more than 2^18 cells: all three maps have more than one word.
    order = hilbert_order(shape)
    low = np.array([side // 7 for side in shape]) + fraction
    high = np.array([side - side // 5 for side in shape]) - fraction / 2
    lows = np.stack([low, np.zeros(len(shape)), low + 1])
    highs = np.stack([high, np.array(shape), low + 2])
    assert_equals_the_definition(order, shape, lows, highs)


@settings(deadline=None, max_examples=EXAMPLES)
@given(planes(fewest=3))
def test_intervals_are_sorted_disjoint_and_as_long_as_possible(case):
    shape, lows, highs = case
    order = hilbert_order(shape)
    pointers, starts, ends, values = cut(order, shape, lows, highs)
    assert (starts < ends).all()
    assert (values > 0).all()
    assert (values <= 1).all()
    for first, last in pairwise(pointers):
        gap = starts[first:last][1:] - ends[first:last][:-1]
        assert (gap >= 0).all()
        assert np.diff(values[first:last])[gap == 0].all()


@pytest.mark.parametrize("shape", [(40,), (12, 13), (4, 5, 6)])
def test_threads_do_not_change_the_result(shape, generator):
    order = hilbert_order(shape)
    ends = np.sort(generator.uniform(0, shape, (2, 30, len(shape))), axis=0)
    position = inverse(order)
    one = rectangle_intervals(order, position, shape, *ends)
    for threads in (2, 3, 40):
        for some in (ends, ends[:, :1], ends[:, :0]):
            alone = rectangle_intervals(order, position, shape, *some)
            found = rectangle_intervals(order, position, shape, *some, threads=threads)
            for expected, part in zip(alone, found, strict=True):
                np.testing.assert_array_equal(part, expected)
    assert one[0][-1] > 30


@pytest.mark.parametrize("shape", [(8,), (6, 9), (3, 4, 5)])
def test_what_lies_outside_the_grid_is_ignored(shape):
    axes = len(shape)
    order = hilbert_order(shape)
    inside = cut(order, shape, [[0.5] * axes], [shape])
    beyond = cut(order, shape, [[0.5] * axes], [[np.inf] * axes])
    for expected, part in zip(inside, beyond, strict=True):
        np.testing.assert_array_equal(part, expected)
    empty = [[-3.0] * axes, [50.0] * axes, [1.5] * axes, [np.nan] * axes, [2.0] * axes]
    ends = [[-1.0] * axes, [60.0] * axes, [1.5] * axes, [2.0] * axes, [1.0] * axes]
    pointers, starts, _, _ = cut(order, shape, empty, ends)
    np.testing.assert_array_equal(pointers, np.zeros(6))
    assert starts.size == 0


def test_a_rectangle_that_is_empty_on_one_axis_is_empty():
    for order in (hilbert_order((5, 6)), np.arange(30), np.arange(30)[::-1].copy()):
        pointers, *_ = cut(order, (5, 6), [[0, 2], [3, 0]], [[5, 2], [3, 6]])
        np.testing.assert_array_equal(pointers, [0, 0, 0])


def test_a_grid_without_cells_has_no_intervals():
    pointers, starts, _, _ = cut(hilbert_order((0, 4)), (0, 4), [[0, 0]], [[1, 1]])
    np.testing.assert_array_equal(pointers, [0, 0])
    assert starts.size == 0


def test_weights_are_multiplied_over_the_axes():
    found = cut(np.arange(4), (2, 2), [[0.5, 0.75]], [[2.0, 2.0]])
    np.testing.assert_array_equal(found[0], [0, 4])
    np.testing.assert_array_equal(found[3], [0.125, 0.5, 0.25, 1.0])


def test_arrays_that_do_not_fit_are_refused():
    order = hilbert_order((4, 4))
    with pytest.raises(InputError, match="the 20 cells"):
        rectangle_intervals(order, order, (4, 5), [[0, 0]], [[1, 1]])
    with pytest.raises(InputError, match="the 16 cells"):
        rectangle_intervals(order, order[:-1], (4, 4), [[0, 0]], [[1, 1]])
    with pytest.raises(InputError, match="one column per axis"):
        rectangle_intervals(order, order, (4, 4), [[0, 0, 0]], [[1, 1, 1]])
    with pytest.raises(InputError, match="one column per axis"):
        rectangle_intervals(order, order, (4, 4), [[0, 0]], [[1, 1], [2, 2]])
    with pytest.raises(InputError, match="one axis at least"):
        rectangle_intervals(order[:1], order[:1], (), np.zeros((1, 0)), np.ones((1, 0)))
    for wrong in (order, np.argsort(order) * 0, np.full(16, 2**62), order * 0 - 1):
        with pytest.raises(InputError, match="position invert it"):
            rectangle_intervals(order, wrong, (4, 4), [[0, 0]], [[1, 1]])
    with pytest.raises(InputError, match="name the cells 0 to 15"):
        rectangle_intervals(order * 0 - 1, order, (4, 4), [[0, 0]], [[1, 1]])
