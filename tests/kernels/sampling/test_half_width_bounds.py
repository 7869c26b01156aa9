"""Half-widths of sums of discrete Laplace noise from moments and a table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from blowfish_fast.kernels.sampling.half_width_bounds import laplace_half_widths

# The quantile of one Laplace variable for every theta: a valid table at miss .05.
BORDERS, QUANTILES = np.array([1.0]), np.array([math.log(20.0)])

pytestmark = pytest.mark.kernel


def half_width(variance, square, largest, steps, width, least=1.0, miss=0.05):
    moments = [np.array([one]) for one in (variance, square, largest, steps, width)]
    return laplace_half_widths(moments, least, miss, BORDERS, QUANTILES)[0]


def test_no_noise_has_no_width():
    assert half_width(0.0, 0.0, 0.0, 0.0, 0.0) == 0.0


def test_one_draw_has_about_the_quantile_of_its_law():
    b = 10.0
    decay = math.exp(-1 / b)
    found = half_width(2 * decay / (1 - decay) ** 2, b * b, b, 1.0, b, least=b)
    # The least whole number beyond which the law leaves at most 5 %.
    exact = math.ceil(b * math.log(2 * decay / (1 + decay) / 0.05))
    assert exact - 1 < found < 1.05 * exact


@pytest.mark.parametrize("width", [0.5, 2.0, 8.0, 40.0])
def test_a_row_that_is_not_known_only_widens(width):
    variance = 0.5 / math.sinh(0.5 / width) ** 2
    known = half_width(5 * variance, 5 * width**2, width, 5.0, width, width)
    bound = half_width(5 * variance, 5 * width**2, width, 5.0, math.nan, width)
    assert 0 < known <= bound < math.inf


def test_more_steps_widen():
    before = 0.0
    for steps in (1.0, 2.0, 9.0):
        found = half_width(20.0, 10.0, 3.0, steps, math.nan)
        assert found > before
        before = found


# Infinity over infinity; plain Python warns of it, compiled code does not.
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_steps_that_are_not_known_give_no_bound_by_spreading():
    assert half_width(20.0, 10.0, 3.0, math.inf, math.nan) == math.inf
    assert half_width(20.0, 10.0, 3.0, math.inf, 3.0, least=5.0) < math.inf
