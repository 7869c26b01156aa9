"""Bounds of exp(-x) in fractions."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from blowfish_fast.kernels.sampling.decimal_bounds import exponential_bounds

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("digits", [5, 20, 50])
@pytest.mark.parametrize("exponent", ["0", "1/3", "1", "17", "100"])
def test_bounds_enclose_the_exponential_and_are_as_tight_as_asked(exponent, digits):
    below, above = exponential_bounds(Fraction(exponent), digits)
    with mpmath.workdps(4 * digits + 60):
        numerator, denominator = Fraction(exponent).as_integer_ratio()
        truth = mpmath.exp(-mpmath.mpf(numerator) / denominator)
        ends = [mpmath.mpf(end.numerator) / end.denominator for end in (below, above)]
        assert ends[0] <= truth <= ends[1]
        far = Fraction(exponent) > 5 * digits
        allowed = mpmath.mpf(10) ** (-2 * digits if far else 2 - digits)
        assert ends[1] - ends[0] <= allowed * (1 if far else truth * 1)
