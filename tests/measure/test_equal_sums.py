"""Half-widths of sums of equal draws, held against laws that are convolved."""

from __future__ import annotations

import math

import numpy as np
import pytest

from blowfish_fast.measure import tails
from blowfish_fast.measure.noise import Spread, chernoff_half_width, laplace_variance
from blowfish_fast.measure.tails import equal_sum_half_widths, noise_half_widths


def law(width, reach=4000):
    values = np.arange(-reach, reach + 1)
    mass = np.exp(-np.abs(values) / width)
    return values, mass / mass.sum()


@pytest.mark.parametrize("width", [0.3, 1.0, 6.0, 25.0])
def test_the_law_of_a_sum_gives_the_smallest_half_width(width):
    _, mass = law(width, 1500)
    total = np.array([1.0])
    for terms in range(1, 6):
        total = np.convolve(total, mass)
        distance = np.abs(np.arange(total.size) - total.size // 2)
        for miss in (0.5, 0.05, 0.001):
            half = float(equal_sum_half_widths(width, np.array([terms]), miss)[0])
            assert total[distance > half].sum() <= miss
            assert half == 0 or total[distance > half - 1].sum() > miss * (1 - 1e-6)


@pytest.mark.parametrize("width", [0.4, 2.0])
def test_intervals_of_sums_over_64_terms_hold_what_they_promise(width):
    """Lengths are rounded up to a grid there; the law of each is convolved."""
    _, mass = law(width, 60)
    total = np.array([1.0])
    terms = np.arange(1, 101)
    halves = equal_sum_half_widths(width, terms, 0.05)
    for count, half in zip(terms.tolist(), halves.tolist(), strict=True):
        total = np.convolve(total, mass)
        if count < 60:
            continue
        distance = np.abs(np.arange(total.size) - total.size // 2)
        assert total[distance > half].sum() <= 0.05
        # A grid of ratio 1.02 costs one part in a hundred, and the next whole number.
        assert total[distance > 0.985 * half - 1].sum() > 0.05


def test_long_sums_are_rounded_up_and_stay_below_the_chernoff_bound():
    terms = np.array([0, 65, 100, 5000, 10**6])
    half = equal_sum_half_widths(2.0, terms, 0.05)
    assert half[0] == 0
    assert (np.diff(half) > 0).all()
    same = Spread.of_one_scale(terms * 1.0, np.ones(5), 2.0, 1.0)
    bound = chernoff_half_width(same, 0.05)
    assert (half[1:] < bound[1:]).all()
    deviation = np.sqrt(terms * float(laplace_variance(2.0)))
    assert half[1:] / deviation[1:] == pytest.approx(1.96, rel=0.03)


def test_misses_below_the_error_of_the_transform_are_left_to_the_bound():
    assert equal_sum_half_widths(2.0, np.array([3]), 1e-12)[0] == math.inf


@pytest.mark.parametrize("width", [5.0, 20.0])
def test_long_sums_of_fine_noise_are_left_to_a_bound_as_sharp(width):
    terms = np.array([65, 400])
    assert (equal_sum_half_widths(width, terms, 0.05) == math.inf).all()
    _, mass = law(width, 250)
    spectrum = np.fft.rfft(mass, 2**15)
    for count in terms.tolist():
        summed = np.roll(np.fft.irfft(spectrum**count), 2**14 - 250 * count)
        spread = Spread.of_one_scale(
            np.array([float(count)]), np.ones(1), width, float(laplace_variance(width))
        )
        half = float(noise_half_widths(spread, 0.05)[0])
        distance = np.abs(np.arange(2**15) - 2**14)
        assert summed[distance > half].sum() <= 0.05
        assert summed[distance > half / 1.03 - 1].sum() > 0.05


@pytest.mark.parametrize("sigma", [0.5, 3.0])
def test_long_gaussian_sums_hold_what_they_promise(sigma):
    place = np.arange(-60, 61)
    mass = np.exp(-0.5 * (place / sigma) ** 2)
    spectrum = np.fft.rfft(mass / mass.sum(), 2**14)
    for count in (1, 64, 130):
        half = float(equal_sum_half_widths(sigma, np.array([count]), 0.05, power=2)[0])
        summed = np.roll(np.fft.irfft(spectrum**count), 2**13 - 60 * count)
        distance = np.abs(np.arange(2**14) - 2**13)
        assert summed[distance > half].sum() <= 0.05
        assert half == 0 or summed[distance > 0.985 * half - 1].sum() > 0.05


def test_transforms_beyond_their_length_leave_other_bounds_to_decide(monkeypatch):
    terms = np.array([1, 2, 3])
    every = equal_sum_half_widths(2.0, terms, 0.05)
    assert np.isfinite(every).all()
    room = tails._size(2.0, 1, 1) + tails._size(2.0, 2, 1)
    monkeypatch.setattr(tails, "MOST_TRANSFORMED", room)
    np.testing.assert_array_equal(
        equal_sum_half_widths(2.0, terms, 0.05), [every[0], every[1], math.inf]
    )
