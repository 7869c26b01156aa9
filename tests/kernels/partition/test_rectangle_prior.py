from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.partition.rectangle_prior import (
    BUCKET,
    COLUMNS,
    QUARTERS,
    ROWS,
    WINDOWS,
    Base,
    fixed_point_weights,
    lattice_levels,
    rectangle_slack,
)

pytestmark = pytest.mark.kernel

SHAPES = [(1, 2), (2, 2), (1, 9), (7, 5), (1024, 1024), (3, 4000)]


def test_levels_reach_the_next_powers_of_two():
    assert lattice_levels((1, 1)) == (0, 0)
    assert lattice_levels((4, 5)) == (2, 3)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_prior_of_every_node_sums_to_one(shape):
    weights = fixed_point_weights(shape, rate=1, penalty=1)
    tall, wide = lattice_levels(shape)
    assert len(weights.choices) == (tall + 1) * (wide + 1) - 1
    for kinds, logarithms in weights.choices.values():
        shares = np.exp(logarithms * 2.0**-weights.fraction_bits)
        assert len(set(kinds)) == len(kinds) == logarithms.size
        assert shares.sum() == pytest.approx(1, abs=1e-6)


def test_choices_that_mean_the_same_are_one():
    choices = fixed_point_weights((8, 8), rate=1, penalty=1).choices
    assert choices[1, 0].kinds == (BUCKET, ROWS)
    assert choices[0, 1].kinds == (BUCKET, COLUMNS)
    assert choices[1, 1].kinds == (BUCKET, ROWS, COLUMNS, QUARTERS)
    assert choices[2, 0].kinds == (BUCKET, ROWS, WINDOWS + 1, WINDOWS + 2)
    assert choices[2, 3].kinds[3:] == (QUARTERS, *(WINDOWS + r for r in (1, 2, 3)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rate", [1e-4, 1.0, 1e9])
@pytest.mark.parametrize("penalty", [0, 1e-3, 1e9])
def test_no_sum_can_overflow(shape, rate, penalty):
    weights = fixed_point_weights(shape, rate=rate, penalty=penalty)
    tall, wide = lattice_levels(shape)
    cells = 1 << (tall + wide)
    least = min(int(one.logarithms.min()) for one in weights.choices.values())
    largest = max(max(line) for line in weights.coefficients) * 4
    assert weights.floor < 0
    assert abs(least) <= abs(weights.floor)
    assert cells * weights.penalty + largest + 5 * abs(weights.floor) < 2**62


@pytest.mark.parametrize("shape", SHAPES)
def test_rates_are_rounded_down(shape):
    rate = Fraction(1, 3)
    weights = fixed_point_weights(shape, rate=rate, penalty=2, quantile=(3, 4))
    unit = Fraction(1, 1 << weights.fraction_bits)
    for line in weights.coefficients:
        for coefficient in line:
            assert rate / 4 - unit < coefficient * unit <= rate / 4


def test_level_weights_lower_the_coefficients():
    factors = ((0.25, 0.5), (0.5, 3.0))
    weighted = fixed_point_weights((2, 2), rate=1, penalty=1, level_weights=factors)
    plain = fixed_point_weights((2, 2), rate=1, penalty=1)
    top = plain.coefficients[1][1]
    assert weighted.coefficients == [[top // 4, top // 2], [top // 2, top]]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_slack_falls_with_rate_and_penalty(shape):
    general = rectangle_slack(shape)
    sharp = rectangle_slack(shape, rate=1, penalty=Fraction(1, 8))
    assert 0 < sharp <= general
    assert rectangle_slack(shape, rate=1 / 2, penalty=Fraction(1, 8)) <= sharp
    assert rectangle_slack(shape, rate=1) == general
    assert general < 1e-7 * math.prod(shape) / 2**20 + 1e-9


@pytest.mark.parametrize(
    "settings",
    [
        {"rate": -1, "penalty": 1},
        {"rate": 1, "penalty": -1},
        {"rate": 1, "penalty": 1, "base": Base(quarters=0.0)},
    ],
)
def test_negative_numbers_are_refused(settings):
    with pytest.raises(InputError, match="negative"):
        fixed_point_weights((4, 4), **settings)


@pytest.mark.parametrize("factors", [((1.0,),), ((1.0, 1.0),), ((1.0,), (1.0, 1.0))])
def test_level_weights_of_another_grid_are_refused(factors):
    with pytest.raises(InputError, match="level weights"):
        fixed_point_weights((2, 2), rate=1, penalty=1, level_weights=factors)
