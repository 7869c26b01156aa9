"""The test of scattered data: the scale of its noise."""

from __future__ import annotations

from fractions import Fraction

import pytest

import blowfish_fast as bf
from blowfish_fast.errors import EpsilonError
from blowfish_fast.measure.selectors.selections import ScatterTest
from blowfish_fast.measure.selectors.selections.scatter import MOST_BITS

POLICY = bf.policies.AddRemove(bf.Domain((2, 2)))
TEST = ScatterTest([[1.0, 1.0]] * 2, price=1.0, threshold=0.25)


@pytest.mark.parametrize("epsilon", ["1", "0.1", "1/3", f"1/{2**MOST_BITS}"])
def test_the_scale_is_never_below_the_sensitivity_over_epsilon(epsilon):
    stated = Fraction(epsilon)
    scale = Fraction(*TEST.scale(POLICY, stated))
    exact = TEST.sensitivity(POLICY) / stated
    assert exact <= scale <= exact * (1 + Fraction(1, 2**28))


def test_an_epsilon_that_rounds_to_nothing_is_refused():
    with pytest.raises(EpsilonError, match="how to divide a map needs more than"):
        TEST.scale(POLICY, Fraction(1, 2 ** (MOST_BITS + 1)))
