"""Rectangles over the bell curve, and bounds of exponentials."""

from __future__ import annotations

import decimal
from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast.kernels.sampling import discrete_gaussian as ours
from blowfish_fast.kernels.sampling import gaussian_strips as strips
from tests.reference.discrete_gaussian import mp, mpf

pytestmark = pytest.mark.kernel


def test_strips_have_one_area_and_lie_above_the_curve():
    area = strips.ENDS[1] * (strips.HEIGHTS[2] - strips.HEIGHTS[1])
    for i in range(1, strips.STRIPS):
        rise = strips.HEIGHTS[i + 1] - strips.HEIGHTS[i]
        assert strips.ENDS[i] * rise == area
        curve = strips.exponential_bounds(strips.ENDS[i] ** 2 / 2, 60)[1]
        assert strips.HEIGHTS[i] >= curve
    assert strips.HEIGHTS[1] * (Fraction(strips.BORDER) + 1 / strips.RATE) == area
    assert strips.HEIGHTS[-1] >= 1
    assert strips.RATE < strips.BORDER


@pytest.mark.parametrize("variance", [Fraction(3, 10), Fraction(2), Fraction(60)])
def test_kept_regions_lie_under_the_strips(variance):
    # Then the law is the kept heights themselves, exp(-k^2 / 2v), up to one constant.
    stretch = Fraction(
        float(ours._laws(np.array([float(variance)]), np.empty((3, 1)))[0, 0])
    )
    assert stretch**2 > variance
    lift = 1 / (8 * (stretch**2 - variance))
    for k in range(60):
        kept = strips.exponential_bounds(k * k / (2 * variance) + lift, 40)[0]
        # The cell of k reaches up to (k + 1/2) / s, where the curve is lowest.
        end = (k + Fraction(1, 2)) / stretch
        assert kept <= strips.exponential_bounds(end**2 / 2, 40)[1]


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(7, 3), Fraction(900)])
def test_exponentials_lie_between_their_bounds(exponent):
    for digits in (30, 60):
        with decimal.localcontext(prec=3):
            low, high = strips.exponential_bounds(exponent, digits)
        exact = mp.exp(-mpf(exponent.numerator) / exponent.denominator)
        assert mpf(low.numerator) / low.denominator <= exact
        assert mpf(high.numerator) / high.denominator >= exact
        assert float(high - low) <= 10.0 ** (2 - digits)
