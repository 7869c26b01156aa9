"""Half-widths of sums of discrete Laplace noise from moments and a table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from blowfish_fast.kernels.sampling.half_width_bounds import (
    GAUSSIAN_OFFSETS,
    gaussian_half_widths,
    interval_bounds,
    laplace_half_widths,
)

# The quantile of one Laplace variable for every theta: a valid table at miss .05.
TABLE = (np.array([1.0]), np.array([math.log(20.0)]))

pytestmark = pytest.mark.kernel


def half_width(*moments, least=1.0, miss=0.05, chernoff=math.inf):
    listed = [np.array([one]) for one in moments]
    table = (*TABLE, np.array([chernoff]))
    return laplace_half_widths(listed, least, miss, table)[0]


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
    known = half_width(5 * variance, 5 * width**2, width, 5.0, width, least=width)
    bound = half_width(5 * variance, 5 * width**2, width, 5.0, math.nan, least=width)
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


def test_the_bound_of_chernoff_is_taken_where_it_is_the_least():
    moments = (20.0, 10.0, 3.0, 4.0, math.nan)
    bound = half_width(*moments)
    assert half_width(*moments, chernoff=0.1) == pytest.approx(0.1 * math.sqrt(10.0))
    assert half_width(*moments, chernoff=100.0) == bound


def test_gaussian_half_widths_are_the_least_over_all_margins():
    square, steps = np.array([0.0, 4.0, 90.0]), np.array([0.0, 1.0, 7.0])
    smoothing = np.array([1.0, 4.0])
    distances = np.linspace(3.0, 2.0, 2 * GAUSSIAN_OFFSETS.size).reshape(2, -1)
    found = gaussian_half_widths(square, steps, 2.7, smoothing, distances)
    for at in range(3):
        tried = [2.7 * math.sqrt(square[at])]
        for tau, row in zip(smoothing, distances, strict=True):
            deviation = math.sqrt(square[at] + tau * steps[at])
            blur = math.sqrt(tau * steps[at])
            tried += [
                one * deviation + offset * blur
                for one, offset in zip(row, GAUSSIAN_OFFSETS, strict=True)
            ]
        assert found[at] == pytest.approx(min(tried) * (1 + 1e-9), rel=1e-12)


def bounds(centre, half, answer, roundings=(0.0, 0.0, 0.0), *, counts=False):
    arrays = (np.array([one]) for one in (centre, half, answer))
    return interval_bounds(*arrays, roundings, counts)[0].tolist()


def test_intervals_reach_from_their_centre_to_both_sides_and_hold_the_answer():
    assert bounds(5.0, 2.0, 5.0) == [3.0, 7.0]
    assert bounds(5.0, 2.0, 1.0) == [1.0, 7.0]
    assert bounds(5.0, 2.0, 9.0) == [3.0, 9.0]


def test_counts_are_not_below_zero_but_published_answers_may_be():
    assert bounds(1.0, 2.0, 1.0, counts=True) == [0.0, 3.0]
    assert bounds(-1.0, 1.5, 0.0, counts=True) == [0.0, 0.5]


def test_an_interval_that_noise_took_below_zero_reaches_one_record():
    assert bounds(-3.0, 2.0, -3.0, counts=True) == [-3.0, 1.0]
    assert bounds(-3.0, 2.0, 0.0, counts=True) == [0.0, 1.0]
    assert bounds(-2.0, 2.0, 0.0, counts=True) == [0.0, 1.0]
    # Without noise it is certain that nobody is there.
    assert bounds(0.0, 0.0, 0.0, counts=True) == [0.0, 0.0]


def test_centres_without_noise_and_answers_beside_a_whole_number_are_it():
    near = (0.01, 0.1, 0.0)
    assert bounds(4.05, 0.0, 4.05, near) == [4.0, 4.05]
    assert bounds(4.05, 0.0, 4.05, (0.01, 0.1, 0.1)) == [4.0, 4.0]
    assert bounds(4.25, 0.0, 4.25, near) == [4.25, 4.25]
    assert bounds(4.05, 0.5, 4.05, near) == [4.05 - 0.5, 4.05 + 0.5]
