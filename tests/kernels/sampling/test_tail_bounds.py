"""Tails of noise: enclosed in whole numbers, and least thresholds for certain."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from blowfish_fast.errors import SizeError
from blowfish_fast.kernels.sampling.tail_bounds import (
    gaussian_tail,
    laplace_tail,
    least_gaussian_threshold,
    least_laplace_threshold,
)
from tests.reference.gap_digits import gaussian_upper, laplace_upper

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1), Fraction(7, 2)])
@pytest.mark.parametrize("threshold", [1, 2, 17])
def test_laplace_tails_are_enclosed(rate, threshold):
    wanted = laplace_upper(threshold, math.exp(-float(rate)))
    low, high = laplace_tail(rate, threshold, 60)
    assert 0 <= high - low <= 1
    assert low / 2**60 == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("variance", [Fraction(1, 20), Fraction(1), Fraction(667, 20)])
@pytest.mark.parametrize("threshold", [1, 3, 30])
def test_gaussian_tails_are_enclosed(variance, threshold):
    wanted = gaussian_upper(threshold, float(variance))
    low, high = gaussian_tail(variance, threshold, 200)
    assert 0 <= high - low <= 1
    assert low / 2**200 == pytest.approx(wanted, rel=1e-9, abs=2.0**-190)


def test_more_bits_only_narrow_an_enclosure():
    for tail, spread in ((laplace_tail, Fraction(1, 3)), (gaussian_tail, Fraction(9))):
        low, high = tail(spread, 5, 64)
        finer_low, finer_high = tail(spread, 5, 192)
        assert low <= finer_low >> 128 <= high
        assert finer_high - finer_low <= 1


@pytest.mark.parametrize(
    ("epsilon", "cells", "mean", "threshold"),
    [
        ("1", 2**32, 1000, 15),
        ("1", 2**60, 1, 42),
        ("1", 2**60, "0.01", 46),
        ("0.1", 2**32, 1, 216),
        ("0.1", 2**40, 1, 271),
        ("0.1", 2**60, 1, 410),
        ("0.1", 2**60, "0.01", 456),
        ("1", 1, 1, 1),
        ("1", 10**90, 1, 207),
    ],
)
def test_thresholds_are_the_least_that_keep_the_mean(epsilon, cells, mean, threshold):
    rate, most = Fraction(epsilon), Fraction(mean)
    assert least_laplace_threshold(rate, cells, most) == threshold
    assert cells * laplace_tail(rate, threshold, 400)[1] <= most * 2**400
    if threshold > 1:
        assert cells * laplace_tail(rate, threshold - 1, 400)[0] > most * 2**400


@pytest.mark.parametrize("cells", [1, 2**10, 2**60])
def test_gaussian_thresholds_are_the_least_that_keep_the_mean(cells):
    variance, most = Fraction(167, 5), Fraction(1, 10)
    threshold = least_gaussian_threshold(variance, cells, most)
    assert cells * gaussian_tail(variance, threshold, 400)[1] <= most * 2**400
    assert cells * gaussian_tail(variance, threshold - 1, 400)[0] > most * 2**400


def test_noise_too_wide_to_be_added_up_is_refused():
    with pytest.raises(SizeError, match="a standard deviation of 1,000,000"):
        gaussian_tail(Fraction(10**12), 5, 64)
