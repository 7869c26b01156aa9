from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.window_costs.count_grid import (
    DATA_BITS,
    IMPOSSIBLE,
    fixed_point,
    grid_units,
    partition_grid,
    step_exponent,
)

pytestmark = pytest.mark.kernel

SIZES = st.one_of(st.integers(1, 2**28), st.sampled_from([1, 2, 2**20, 2**28]))
SCALES = st.floats(1e-9, 1e12)


@given(st.lists(st.integers(-(2**50), 2**50), min_size=1, max_size=20))
def test_integers_are_kept(values):
    whole, exponent = fixed_point(np.array(values), len(values))
    assert exponent == 0
    assert whole.tolist() == [value - min(values) for value in values]


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20)
)
def test_floats_are_rounded_relative_to_the_largest(values):
    whole, exponent = fixed_point(np.array(values), len(values))
    assert whole.min() == 0
    assert sum(whole.tolist()) < 2**61
    spread = Fraction(max(values)) - Fraction(min(values))
    largest = max(abs(Fraction(value)) for value in values)
    for value, one in zip(values, whole.tolist(), strict=True):
        exact = Fraction(value) - Fraction(min(values))
        error = abs(one * Fraction(2) ** exponent - exact)
        assert error <= spread * Fraction(1, 2**50) + largest * Fraction(1, 2**52)


def test_integers_too_large_to_sum_are_rounded_too():
    whole, exponent = fixed_point(np.array([0, 2**62, 2**62 + 2**40]), 3)
    assert exponent > 0
    assert (whole * 2.0**exponent).tolist() == [0, 2.0**62, 2.0**62 + 2.0**40]


def test_a_few_large_integers_among_small_ones_stay_exact():
    cells = np.zeros(5000, dtype=np.int64)
    cells[7] = 2**52 + 1
    whole, exponent = fixed_point(cells, cells.size)
    assert exponent == 0
    assert whole[7] == 2**52 + 1


def test_no_cells_are_no_numbers():
    whole, exponent = fixed_point(np.zeros(0), 1)
    assert whole.size == 0
    assert exponent == 0


@given(SIZES, SCALES)
def test_the_grid_fits_sixty_four_bits(cells, scale):
    step, cap = partition_grid(cells, scale)
    steps = Fraction(1) / Fraction(step)
    data = cells * cap * steps / 2
    penalties = 29 * 2**20 * Fraction(scale) * steps
    noise = cells * 128 * 8 * Fraction(scale) * steps
    assert cap >= 2**20
    assert cells * cap <= 2**60
    # The intermediate of a window: (whole << up) with whole <= length (cap / 4 + 1).
    assert cells * (Fraction(cap, 4) + 1) * 2 * steps <= 2**60
    assert data + penalties <= 2**60
    assert noise <= 2**60
    # A bucket before the first cell never beats one that exists.
    assert IMPOSSIBLE - 128 * 8 * Fraction(scale) * steps > data + penalties


@pytest.mark.long
@given(SIZES, SCALES)
def test_the_grid_accepts_its_own_bounds(cells, scale):
    step, cap = partition_grid(cells, scale)
    values = np.array([0, cap])
    # The largest array itself is not needed: its size enters through the cells.
    pretended = np.lib.stride_tricks.as_strided(values[1:], (cells,), (0,))
    grid, prices, scales = grid_units(
        pretended, 0, np.array([2.0**20 * scale]), np.array([8 * scale]), step
    )
    assert grid == step_exponent(step)
    assert prices[0] == round(2.0**20 * scale / step)
    assert scales[0] == 8 * scale / step


@pytest.mark.parametrize("cells", [1, 1000, 2**16, 2**20])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0])
def test_the_grid_is_fine_against_noise_and_record(cells, epsilon):
    scale = 2 / epsilon
    step, cap = partition_grid(cells, scale)
    assert step <= min(scale / 1024, 2**-8)
    assert cap >= 10**7


def test_both_depend_on_nothing_but_their_arguments():
    assert partition_grid(2**20, 4.0) == (2.0**-8, 2**31)
    assert partition_grid(2**28, 400.0) == (2.0**-8, 2**23)
    assert partition_grid(1, 1.0) == (2.0**-10, 2**49)


@pytest.mark.parametrize(
    ("cells", "scale"), [(0, 1.0), (2**28 + 1, 1.0), (4, 0.0), (4, 1e13), (4, math.nan)]
)
def test_refuses_a_grid_it_cannot_build(cells, scale):
    with pytest.raises(InputError, match="partition needs"):
        partition_grid(cells, scale)


@pytest.mark.parametrize("step", [0.0, -1.0, 0.3, math.inf, math.nan])
def test_refuses_a_step_that_is_no_power_of_two(step):
    with pytest.raises(InputError, match="power of two"):
        step_exponent(step)


@pytest.mark.parametrize("exponent", [-30, -1, 0, 1, 40])
def test_finds_the_exponent_of_a_power_of_two(exponent):
    assert step_exponent(2.0**exponent) == exponent


@pytest.mark.parametrize(
    ("largest", "penalty", "scale", "step"),
    [
        (2**52, 1.0, None, 1.0),
        (2**50, 1.0, None, 2.0**-20),
        (1, 1.0, None, 2.0**-50),
        (1, 1e30, None, 1.0),
        (1, -1e18, None, 1.0),
        (1, math.nan, None, 1.0),
        (1, 1.0, 0.0, 1.0),
        (1, 1.0, -1.0, 1.0),
        (1, 1.0, 1e17, 1.0),
        (1, 1.0, math.nan, 1.0),
    ],
)
def test_refuses_what_does_not_fit_the_grid(largest, penalty, scale, step):
    scales = None if scale is None else np.array([scale])
    with pytest.raises(InputError):
        grid_units(np.array([0, largest]), 0, np.array([penalty]), scales, step)


def test_the_sum_of_all_cells_fits_the_grid():
    # Each of them would fit alone.
    most = 1 << (DATA_BITS - 12)
    free = np.zeros(1)
    fits = grid_units(np.array([0] + [most] * 4095), 0, free, None, 1.0)
    assert fits[0] == 0
    with pytest.raises(InputError, match="in 4097 cells, do not fit 64 bits"):
        grid_units(np.array([0] + [most] * 4096), 0, free, None, 1.0)
