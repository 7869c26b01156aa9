"""Groups of sorted values, by distances or squares: least cost, limits, stretches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.window_costs.sorted_groups import group_sorted, group_squares
from tests.generated import example_count
from tests.reference import sorted_groups as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 40 if config.DISABLE_JIT else example_count(200)
VALUES = st.integers(1, 60).flatmap(
    lambda top: st.lists(st.integers(-3, top), min_size=1, max_size=24).map(sorted)
)
PRICES = st.integers(0, 40).map(lambda quarters: quarters / 4)
SQUARES = 30 if config.DISABLE_JIT else example_count(150)
COSTS = st.sampled_from([0, 0.5, 3, 40, 900])


@settings(max_examples=EXAMPLES)
@given(VALUES, PRICES, st.none() | st.integers(1, 6))
def test_costs_as_little_as_the_definition(values, price, largest):
    edges = group_sorted(np.array(values), price, largest)
    most = len(values) if largest is None else largest
    assert edges[0] == 0
    assert edges[-1] == len(values)
    assert 1 <= np.diff(edges).min() <= np.diff(edges).max() <= most
    cost = reference.group_cost(values, edges.tolist(), price)
    assert cost == reference.least_cost(values, price, most)


@settings(max_examples=EXAMPLES)
@given(VALUES, VALUES, PRICES, st.none() | st.integers(1, 6))
def test_no_group_crosses_a_stretch(one, other, price, largest):
    values, middle = one + other, len(one)
    edges = group_sorted(
        np.array(values), price, largest, np.array([0, middle, len(values)])
    )
    most = len(values) if largest is None else largest
    assert middle in edges
    cost = reference.group_cost(values, edges.tolist(), price)
    assert cost == reference.least_cost(values, price, most, [middle])


def test_gaps_part_the_groups(generator):
    heights = np.repeat([0, 1000, 5000], 300 if config.DISABLE_JIT else 5000)
    values = np.sort(heights + generator.integers(0, 3, heights.size))
    edges = group_sorted(values, 1e5)
    assert edges.tolist() == [0, heights.size // 3, heights.size * 2 // 3, heights.size]


def test_bad_values_are_refused():
    with pytest.raises(InputError, match="at least one value"):
        group_sorted(np.zeros(0, dtype=np.int64), 1.0)
    with pytest.raises(InputError, match="at least one value"):
        group_sorted(np.arange(3), 1.0, largest=0)
    with pytest.raises(InputError, match="price"):
        group_sorted(np.arange(3), -1.0)
    with pytest.raises(InputError, match="ascending"):
        group_sorted(np.array([3, 1]), 1.0)
    for cuts in ([0], [0, 2], [0, 2, 2, 3], [1, 3]):
        with pytest.raises(InputError, match="stretches must increase"):
            group_sorted(np.arange(3), 1.0, stretches=np.array(cuts))


@settings(max_examples=SQUARES, deadline=None)
@given(VALUES, COSTS, COSTS)
def test_squares_cost_as_little_as_the_definition(values, price, shared):
    edges = group_squares(np.array(values), price, shared)
    assert edges[0] == 0
    assert edges[-1] == len(values)
    assert (np.diff(edges) > 0).all()
    cost = reference.grouping_cost(values, edges.tolist(), price, shared)
    least = reference.least_grouping_cost(values, price, shared)
    assert float(cost) == pytest.approx(float(least), rel=1e-9, abs=1e-9)


@settings(max_examples=SQUARES, deadline=None)
@given(VALUES, VALUES, COSTS, COSTS)
def test_no_group_of_squares_crosses_a_stretch(one, other, price, shared):
    values, middle = one + other, len(one)
    cuts = np.array([0, middle, len(values)])
    edges = group_squares(np.array(values), price, shared, cuts)
    assert middle in edges
    cost = reference.grouping_cost(values, edges.tolist(), price, shared)
    least = reference.least_grouping_cost(values, price, shared, [middle])
    assert float(cost) == pytest.approx(float(least), rel=1e-9, abs=1e-9)


def test_gaps_part_the_groups_of_squares(generator):
    heights = np.repeat([0, 1000, 5000], 300 if config.DISABLE_JIT else 5000)
    values = np.sort(heights + generator.integers(0, 3, heights.size))
    edges = group_squares(values, 1e5, 1e5)
    assert edges.tolist() == [0, heights.size // 3, heights.size * 2 // 3, heights.size]


def test_equal_values_stay_together_where_noise_is_shared():
    assert group_squares(np.full(50, 7), 0.0, 1.0).tolist() == [0, 50]
    assert group_squares(np.arange(5) * 100, 0.0, 0.0).tolist() == [0, 1, 2, 3, 4, 5]


def test_giant_values_work():
    values = np.array([0, 0, 2**60, 2**60])
    assert group_squares(values, 1.0, 10.0).tolist() == [0, 2, 4]


def test_bad_values_are_refused_for_squares():
    with pytest.raises(InputError, match="at least one"):
        group_squares(np.zeros(0), 1.0, 1.0)
    with pytest.raises(InputError, match="infinities"):
        group_squares(np.array([0.0, np.inf]), 1.0, 1.0)
    for price, shared in ((-1.0, 1.0), (1.0, -1.0), (np.nan, 1.0)):
        with pytest.raises(InputError, match="must not be negative"):
            group_squares(np.arange(3), price, shared)
    with pytest.raises(InputError, match="ascending"):
        group_squares(np.array([3, 1]), 1.0, 1.0)
    for cuts in ([0], [0, 2], [0, 2, 2, 3], [1, 3]):
        with pytest.raises(InputError, match="stretches must increase"):
            group_squares(np.arange(3), 1.0, 1.0, np.array(cuts))
