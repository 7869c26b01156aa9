"""Fixed-point constants of the sampled partitions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.partition.rectangle_prior import (
    LARGEST,
    cut_to_one,
    fixed_point,
    logarithm,
)

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("levels", [0, 3, 10])
@pytest.mark.parametrize("rate", [0, Fraction(1, 3), 5, 10**6])
def test_no_sum_leaves_62_bits(rate, levels):
    found = fixed_point(rate, Fraction(7, 2), [1.0], levels, room=9)
    most = (found.unit + found.penalty) * 2**levels + 9 * 2**found.fraction_bits
    assert most < 2**62


def test_a_rate_is_never_rounded_up():
    found = fixed_point(Fraction(1, 3), 2, [1.0], 4, room=1)
    assert found.unit <= Fraction(1, 3) * 2**found.fraction_bits
    giant = fixed_point(10**9, 4, [1.0], 4, room=1)
    assert giant.unit == Fraction(LARGEST, 4) * 2**giant.fraction_bits


@pytest.mark.parametrize(
    ("rate", "penalty", "base"), [(-1, 0, [1.0]), (0, -1, [1.0]), (0, 0, [0.0])]
)
def test_negative_numbers_are_refused(rate, penalty, base):
    with pytest.raises(InputError, match="may not be negative"):
        fixed_point(rate, penalty, base, 1, room=1)


def test_logarithms_have_more_digits_than_doubles():
    two = logarithm(Fraction(2))
    assert float(two) == math.log(2)
    assert abs(logarithm(Fraction(4)) - 2 * two) < Fraction(1, 10**55)


def test_factors_are_cut_to_one():
    assert [cut_to_one(one) for one in (-1, Fraction(1, 2), 3)] == [
        0,
        Fraction(1, 2),
        1,
    ]
