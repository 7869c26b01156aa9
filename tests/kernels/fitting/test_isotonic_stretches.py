"""Monotone fits through known points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.fitting.isotonic import isotonic_between
from blowfish_fast.kernels.fitting.isotonic_stretches import isotonic_through
from tests.reference import isotonic_stretches as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 15 if config.DISABLE_JIT else 60


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.data())
def test_equals_the_definition(data):
    size = data.draw(st.integers(1, 8))
    values = np.array(
        data.draw(st.lists(st.integers(-9, 9), min_size=size, max_size=size))
    )
    fixed = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    values[fixed] = np.sort(values[fixed])
    found = isotonic_through(values, fixed, -9, 9)
    expected = reference.isotonic_through(values, fixed, -9, 9)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    np.testing.assert_array_equal(found[fixed], values[fixed])
    assert (np.diff(found) >= 0).all()


def test_o5_clipping_the_isotonic_fit_gives_the_bounded_one():
    rng = np.random.default_rng(4)
    values = np.cumsum(rng.poisson(1.0, 40)) + rng.normal(scale=9, size=40)
    values[-1] = 40.0
    known = np.zeros(40, dtype=bool)
    known[-1] = True
    found = isotonic_through(values, known, 0.0, np.inf)
    np.testing.assert_array_equal(found[:-1], isotonic_between(values[:-1], 0, 40))
    np.testing.assert_allclose(
        found, reference.isotonic_through(values, known, 0.0, np.inf), atol=1e-4
    )


def test_without_known_points_it_is_the_plain_fit():
    values = np.random.default_rng(1).normal(size=200)
    none = np.zeros(200, dtype=bool)
    found = isotonic_through(values, none, 0.0, np.inf)
    np.testing.assert_array_equal(found, isotonic_between(values, 0.0, np.inf))


def test_only_known_points_are_returned_as_they_are():
    values = np.array([0.0, 2.0, 2.0])
    assert isotonic_through(values, np.ones(3, bool), 0, 2).tolist() == [0.0, 2.0, 2.0]
    assert isotonic_through(np.zeros(0), np.zeros(0, bool), 0, 1).size == 0


def test_misfits_are_refused():
    with pytest.raises(InputError, match="must not decrease"):
        isotonic_through(np.array([3.0, 1.0]), np.ones(2, bool), 0, 9)
    with pytest.raises(InputError, match="a mark for each"):
        isotonic_through(np.zeros(3), np.ones(2, bool), 0, 9)
