"""Piecewise-linear fits: the cheapest windows, on steep and flat sequences alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.kernels.fitting.piecewise_fit import piecewise_linear
from tests.generated import example_count
from tests.reference import piecewise_fit as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 30 if config.DISABLE_JIT else example_count(120)
NUMBERS = st.integers(-3, 3).map(float) | st.floats(-10, 10)


def fit(values, penalty):
    size = np.size(values)
    return piecewise_linear(
        np.asarray(values), np.array([0]), np.array([size]), np.array([penalty])
    )


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.lists(NUMBERS, min_size=1, max_size=10), st.floats(0.01, 20))
def test_no_cover_by_windows_is_cheaper(values, penalty):
    values = np.array(values)
    found = fit(values, penalty)
    best = reference.cheapest_cost(values, penalty)
    # The fit belongs to some cover; its squared error and windows cost the optimum.
    reached = min(
        reference.cover_cost(values, cover, penalty)
        for cover in reference.covers(values.size)
        if _is_fit_of(found, values, cover)
    )
    assert reached == pytest.approx(best, rel=1e-9, abs=1e-9)


def _is_fit_of(found, values, cover):
    start = 0
    for length in cover:
        part = slice(start, start + length)
        if not np.allclose(
            found[part], reference.line_through(values[part]), atol=1e-7
        ):
            return False
        start += length
    return True


def test_lines_are_found_and_kept():
    values = np.concatenate([3.0 * np.arange(64), np.full(64, 500.0)])
    np.testing.assert_allclose(fit(values, 1.0), values, atol=1e-9)


def test_noise_around_a_line_is_removed_and_a_jump_is_not():
    rng = np.random.default_rng(1)
    truth = np.concatenate([np.arange(256) * 2.0, np.arange(256) + 5000.0])
    noisy = truth + rng.normal(size=512)
    found = fit(noisy, np.log(512))
    assert np.square(found - truth).mean() < 0.1
    assert abs(found[256] - found[255]) > 4000


@pytest.mark.parametrize("slope", [0.0, 1e3, 1e9])
def test_steepness_costs_no_digits(slope):
    rng = np.random.default_rng(2)
    size = 128 if config.DISABLE_JIT else 4096
    # Rounded so that adding the slope loses nothing.
    noise = np.rint(rng.normal(scale=40, size=size))
    flat = fit(noise, 30.0)
    steep = fit(noise + slope * np.arange(size), 30.0)
    np.testing.assert_allclose(steep - slope * np.arange(size), flat, atol=1e-2)


def test_stretches_are_fitted_by_themselves_and_gaps_kept():
    rng = np.random.default_rng(3)
    values = rng.normal(size=50)
    starts, ends = np.array([0, 7, 20, 20]), np.array([6, 20, 20, 49])
    penalties = np.array([1.0, 2.0, 1.0, 3.0])
    found = piecewise_linear(values, starts, ends, penalties)
    for start, end, penalty in zip(starts, ends, penalties, strict=True):
        if start < end:
            np.testing.assert_array_equal(
                found[start:end], fit(values[start:end], penalty)
            )
    assert found[6] == values[6]
    assert found[49] == values[49]


def test_whole_numbers_and_nothing_at_all_are_accepted():
    assert fit(np.array([1, 2, 3, 4]), 5.0).tolist() == [1.0, 2.0, 3.0, 4.0]
    empty = np.zeros(0, dtype=np.int64)
    assert (
        piecewise_linear(np.zeros(3), empty, empty, np.zeros(0)).tolist() == [0.0] * 3
    )
