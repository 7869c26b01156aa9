from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config
from scipy.optimize import isotonic_regression

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.fitting.isotonic import isotonic_fit
from tests.generated import example_count
from tests.reference import isotonic as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 40 if config.DISABLE_JIT else example_count(150)
NUMBERS = st.floats(-100, 100) | st.integers(-3, 3).map(float)


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.lists(NUMBERS, min_size=1, max_size=25))
def test_equals_the_definition(values):
    found = isotonic_fit(np.array(values))
    np.testing.assert_allclose(found, reference.isotonic_increasing(values), atol=1e-10)
    assert (np.diff(found) >= 0).all()


@settings(deadline=None, max_examples=EXAMPLES // 4)
@given(st.lists(NUMBERS, min_size=1, max_size=8), NUMBERS, NUMBERS)
def test_bounded_fit_equals_quadratic_programming(values, one, other):
    low, high = min(one, other), max(one, other)
    found = isotonic_fit(np.array(values), low=low, high=high)
    expected = reference.isotonic_between(np.array(values), low, high)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    # Its own distance may not be beaten, and it obeys the bounds to the last bit.
    best = ((expected - values) ** 2).sum()
    assert ((found - values) ** 2).sum() <= best + 1e-9 * (1 + best)
    assert low <= found.min()
    assert found.max() <= high


@pytest.mark.parametrize("noise", [0.0, 1.0, 100.0])
def test_equals_scipy_on_long_sequences(noise):
    rng = np.random.default_rng(5)
    size = 300 if config.DISABLE_JIT else 30000
    values = np.cumsum(rng.poisson(1.0, size)) + noise * rng.normal(size=size)
    expected = isotonic_regression(values).x
    np.testing.assert_allclose(isotonic_fit(values), expected, rtol=1e-11)
    for shape in (values[::-1].copy(), np.abs(values - values.mean())):
        expected = isotonic_regression(shape).x
        np.testing.assert_allclose(isotonic_fit(shape), expected, rtol=1e-9)


def test_an_increasing_sequence_is_returned_as_it_is():
    values = np.array([1.0, 1.0, 2.5, 7.0])
    np.testing.assert_array_equal(isotonic_fit(values), values)
    assert isotonic_fit(np.zeros(0)).shape == (0,)


def test_whole_numbers_and_whole_bounds_are_accepted():
    found = isotonic_fit(np.array([-4, 6, 2, 30]), low=0, high=20)
    np.testing.assert_array_equal(found, [0.0, 4.0, 4.0, 20.0])
    assert found.dtype == np.float64


def test_crossed_bounds_are_refused():
    with pytest.raises(InputError, match="low <= high"):
        isotonic_fit(np.zeros(3), low=1, high=0)
    with pytest.raises(InputError, match="one row"):
        isotonic_fit(np.zeros((3, 2)))


@settings(deadline=None, max_examples=EXAMPLES // 3)
@given(st.data())
def test_a_fit_through_known_points_equals_the_definition(data):
    size = data.draw(st.integers(1, 8))
    values = np.array(
        data.draw(st.lists(st.integers(-9, 9), min_size=size, max_size=size))
    )
    fixed = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    values[fixed] = np.sort(values[fixed])
    found = isotonic_fit(values, fixed, low=-9, high=9)
    expected = reference.isotonic_through(values, fixed, -9, 9)
    np.testing.assert_allclose(found, expected, atol=1e-3)
    np.testing.assert_array_equal(found[fixed], values[fixed])
    assert (np.diff(found) >= 0).all()


def test_o5_clipping_the_isotonic_fit_gives_the_bounded_one():
    rng = np.random.default_rng(4)
    values = np.cumsum(rng.poisson(1.0, 40)) + rng.normal(scale=9, size=40)
    values[-1] = 40.0
    known = np.zeros(40, dtype=bool)
    known[-1] = True
    found = isotonic_fit(values, known, low=0.0)
    np.testing.assert_array_equal(found[:-1], isotonic_fit(values[:-1], low=0, high=40))
    np.testing.assert_allclose(
        found, reference.isotonic_through(values, known, 0.0, np.inf), atol=1e-4
    )


def test_only_known_points_are_returned_as_they_are():
    values = np.array([0.0, 2.0, 2.0])
    assert isotonic_fit(values, np.ones(3, bool)).tolist() == [0.0, 2.0, 2.0]


def test_misfits_are_refused():
    with pytest.raises(InputError, match="do not decrease"):
        isotonic_fit(np.array([3.0, 1.0]), np.ones(2, bool))
    with pytest.raises(InputError, match="a mark for each"):
        isotonic_fit(np.zeros(3), np.ones(2, bool))
