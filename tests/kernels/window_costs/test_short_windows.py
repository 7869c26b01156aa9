from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.window_costs.short_windows import (
    SHORT,
    SHORT_LEVELS,
    short_deviations,
    window_deviations,
)
from blowfish_fast.kernels.window_costs.window_slide import (
    CHUNK,
    GRID_DEVIATION,
    window_recipe,
)
from tests.reference import window_deviation as reference
from tests.reference.cell_kinds import WHOLE_KINDS, jumping_mean, whole_cells

pytestmark = pytest.mark.kernel

MOST = 120 if config.DISABLE_JIT else 300


def is_power_of_two(length):
    return length & (length - 1) == 0


def check_whole(cells, length):
    result = window_deviations(cells, length)
    expected = reference.sliding_deviations(cells.tolist(), length)
    assert expected == reference.window_deviations(cells.tolist(), length)
    assert result.shape == (cells.size - length + 1,)
    for value, exact in zip(result, expected, strict=True):
        if is_power_of_two(length) and exact < 2**52:
            assert value == float(exact)
        else:
            assert abs(Fraction(value) - exact) <= 2 * np.spacing(float(exact))


@given(st.sampled_from(WHOLE_KINDS), st.integers(1, 80), st.integers(0), st.data())
def test_equals_the_definition(kind, cells, seed, data):
    length = data.draw(st.integers(1, cells))
    check_whole(whole_cells(kind, cells, np.random.default_rng(seed)), length)


@given(st.lists(st.integers(-(2**58), 2**58), min_size=1, max_size=12), st.data())
def test_large_integers_stay_exact(values, data):
    length = data.draw(st.integers(1, min(len(values), 3)))
    check_whole(np.array(values), length)


@pytest.mark.long
@pytest.mark.parametrize("kind", WHOLE_KINDS)
@pytest.mark.parametrize("length", [33, 64, 100, 128])
def test_longer_windows_equal_the_definition(kind, length):
    check_whole(whole_cells(kind, MOST, np.random.default_rng(3)), min(length, MOST))


@pytest.mark.parametrize("length", [64, 70, 256])
@pytest.mark.parametrize("kind", ["distinct", "jumping mean", "permuted", "sparse"])
def test_tiles_equal_the_definition(kind, length):
    size = 701 if config.DISABLE_JIT else 9001
    cells = whole_cells(kind, size, np.random.default_rng(5))
    result = window_deviations(cells, length)
    for start in [*range(0, cells.size - length + 1, 97), cells.size - length]:
        exact = reference.deviation(cells[start : start + length].tolist())
        assert result[start] == pytest.approx(float(exact), rel=1e-15)


@given(
    st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=60),
    st.data(),
)
def test_floats_are_summed_without_drift(values, data):
    length = data.draw(st.integers(1, len(values)))
    result = window_deviations(np.array(values), length)
    largest = max(map(abs, values))
    exact = reference.window_deviations(values, length)
    for value, one in zip(result, exact, strict=True):
        assert abs(Fraction(value) - one) <= length * largest * 2.0**-48


@pytest.mark.parametrize("scale", [1e-300, 1e-5, 1e300])
def test_floats_of_any_magnitude_are_handled(scale):
    values = np.random.default_rng(6).normal(size=90) * scale
    result = window_deviations(values, 40)
    windows = np.lib.stride_tricks.sliding_window_view(values, 40)
    expected = np.abs(windows - windows.mean(axis=1, keepdims=True)).sum(axis=1)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_the_worst_case_is_exact_too():
    check_whole(jumping_mean(MOST, np.random.default_rng(7)), 64)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint64, np.int32, np.bool_])
def test_any_integer_type_is_taken(dtype):
    cells = np.array([0, 1, 1, 0, 1], dtype=dtype)
    assert window_deviations(cells, 2).tolist() == [1, 0, 1, 1]


def test_the_extremes_of_a_narrow_type_do_not_wrap_around():
    assert window_deviations(np.array([-128, 127], dtype=np.int8), 2).tolist() == [255]
    extremes = np.array([2**63, 2**64 - 1], dtype=np.uint64)
    assert window_deviations(extremes, 2)[0] == pytest.approx(2.0**63)


@given(
    st.sampled_from(WHOLE_KINDS),
    st.integers(1, 70),
    st.integers(-6, 12),
    st.integers(0),
    st.data(),
)
def test_short_windows_are_floored_on_the_grid(kind, cells, exponent, seed, data):
    values = whole_cells(kind, cells, np.random.default_rng(seed))
    values = values - values.min()
    first = data.draw(st.integers(1, cells))
    levels = min(cells.bit_length(), SHORT_LEVELS)
    recipes = np.stack(
        [
            window_recipe(GRID_DEVIATION, 1 << k, exponent=exponent, penalty=k)
            for k in range(levels)
        ]
    )
    ends = cells - first + 1
    rows = np.zeros((levels, ends + 3), dtype=np.int64)
    scratch = np.empty((4, CHUNK + SHORT), dtype=np.int64)
    short_deviations(values, first, ends, recipes, scratch, rows)
    for level in range(levels):
        for i in range(max((1 << level) - first, 0), ends):
            window = values[first + i - (1 << level) : first + i].tolist()
            exact = reference.deviation(window) / Fraction(2) ** exponent
            assert rows[level, i] == exact // 1 + level


@pytest.mark.parametrize("length", [0, -1, 6])
def test_refuses_a_length_outside_the_cells(length):
    with pytest.raises(InputError, match="length"):
        window_deviations(np.arange(5), length)


def test_refuses_what_is_not_finite():
    with pytest.raises(InputError, match="finite"):
        window_deviations(np.array([1.0, np.inf]), 1)
