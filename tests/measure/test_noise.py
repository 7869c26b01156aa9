"""Scales, the discrete law, and the bounds that intervals rest on."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.noise import (
    Scales,
    Spread,
    budget_unit,
    chernoff_half_width,
    chernoff_tail,
    integer_weights,
    laplace_variance,
    measured_rows,
    noise_mean_size,
    rates_at_common_unit,
    scales_within,
    without_rounding,
)


def law(width, reach=4000):
    values = np.arange(-reach, reach + 1)
    mass = np.exp(-np.abs(values) / width)
    return values, mass / mass.sum()


@pytest.mark.parametrize("width", [0.05, 0.3, 1.0, 7.0, 40.0])
def test_variance_and_mean_size_are_those_of_the_law(width):
    values, mass = law(width)
    assert laplace_variance(width) == pytest.approx((values**2 * mass).sum(), rel=1e-9)
    assert noise_mean_size(width) == pytest.approx(
        (np.abs(values) * mass).sum(), rel=1e-9
    )


def test_variance_at_scale_one_is_092_of_the_continuous_one():
    assert laplace_variance(1.0) / 2 == pytest.approx(0.92, abs=0.005)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=20),
    st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(10**4)),
)
def test_rates_never_overspend(weights, epsilon):
    whole = integer_weights(np.array(weights))
    worst = int(whole.sum())
    exact = np.zeros(whole.size, dtype=bool)
    scales = scales_within(whole, worst, epsilon, exact)
    assert Fraction(int(scales.rates.sum()), scales.unit) <= epsilon
    if worst and max(weights) > 1e-3:
        spent = Fraction(int(scales.rates.sum()), scales.unit)
        assert spent >= epsilon * (1 - Fraction(1, 10**4))


def test_exact_rows_have_no_noise_and_unmeasured_rows_no_weight():
    scales = Scales(np.array([4, 0, 0]), 8, np.array([False, False, True]))
    assert scales.widths.tolist() == [2.0, 0.0, 0.0]
    assert scales.variances[1] == math.inf
    assert scales.variances[2] == 0.0
    assert scales.measured.tolist() == [True, False, False]


@pytest.mark.parametrize("width", [0.4, 1.0, 6.0])
@pytest.mark.parametrize("terms", [1, 2, 5])
def test_the_chernoff_bound_lies_above_the_exact_tail(width, terms):
    _, mass = law(width, 400)
    total = mass
    for _ in range(terms - 1):
        total = np.convolve(total, mass)
    reach = np.arange(total.size) - total.size // 2
    spread = Spread.of_one_scale(
        np.array([float(terms)]), np.ones(1), width, float(laplace_variance(width))
    )
    for miss in (0.2, 0.05, 0.001):
        half = float(chernoff_half_width(spread, miss)[0])
        assert total[np.abs(reach) > half].sum() <= miss
        bound = float(chernoff_tail(np.array([half]), spread)[0])
        assert bound <= miss
        # Tight enough to be useful: a distance 2.5 times shorter is missed more often.
        if width >= 6:
            assert total[np.abs(reach) > half / 2.5].sum() > miss


@pytest.mark.parametrize("miss", [0.5, 0.05, 1e-3, 1e-12])
def test_half_widths_are_those_at_which_the_bound_is_reached(miss):
    rng = np.random.default_rng(5)
    largest = np.exp(rng.uniform(-20.0, 30.0, 300)) * (rng.random(300) > 0.05)
    square = largest**2 * np.exp(rng.uniform(0.0, 25.0, 300))
    spread = Spread.bounded(square, square, largest, 1.0)
    half = chernoff_half_width(spread, miss)
    noisy = largest > 0
    assert (chernoff_tail(half, spread) <= miss).all()
    assert (chernoff_tail(half * (1.0 - 1e-8), spread)[noisy] > miss).all()
    assert (half[~noisy] < 1e-9).all()


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9, 1e60])
def test_a_distance_beyond_every_number_is_missed_never(size):
    square, largest = np.array([size**2 * 3]), np.array([size])
    spread = Spread.bounded(square, square, largest, 1.0)
    for distance in (1e308, np.inf):
        with np.errstate(all="raise", under="ignore"):
            bound = chernoff_tail(np.array([distance]), spread)
        assert bound.tolist() == [0.0]


@pytest.mark.parametrize("rates", [[5, 5, 0], [0, 5, 7], [5, 0, 7], [0, 0, 0], [1]])
def test_measured_rows_are_found_together_or_apart(rates):
    scales = Scales(np.array(rates), 8, np.zeros(len(rates), dtype=np.bool_))
    rows = np.arange(len(rates))
    assert rows[measured_rows(scales)].tolist() == rows[scales.measured].tolist()
    assert isinstance(measured_rows(scales), slice) == (rates != [5, 0, 7])


def test_without_noise_the_interval_is_a_point():
    none = Spread.bounded(np.zeros(2), np.zeros(2), np.zeros(2), 0.0)
    assert chernoff_half_width(none, 0.05).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("width", [1e-12, 1e-6, 1e-3])
def test_the_chernoff_bound_of_tiny_noise_far_away_vanishes(width):
    square = np.array([3.0 * width**2])
    spread = Spread.bounded(square, square, np.array([width]), width)
    assert chernoff_tail(np.array([5.0]), spread)[0] < 1e-300
    assert chernoff_tail(np.array([20 * width]), spread)[0] < 1e-5


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "0.5", "1", "1.7", "100"])
def test_a_budget_is_counted_in_about_two_billion_steps(epsilon):
    unit = budget_unit(Fraction(epsilon))
    assert unit & (unit - 1) == 0
    assert 2**30 < Fraction(epsilon) * unit <= 2**31


def test_answers_without_noise_lose_their_rounding_and_no_others():
    estimate = np.full(4096, 1e6)
    answers = np.array([7.0001, 7.0001, 2.4, -3.0])
    noise = np.array([0.0, 2.0, 0.0, 0.0])
    found = without_rounding(answers, noise, estimate)
    assert found.tolist() == [7.0, 7.0001, 2.4, -3.0]
    # Beside few records a ten-thousandth is no rounding.
    assert without_rounding(answers, noise, np.ones(4)).tolist() == answers.tolist()


def test_a_spread_of_one_scale_follows_the_scale():
    squares, largest = np.array([3.0, 0.5]), np.array([1.0, 0.5])
    found = Spread.of_one_scale(squares, largest, 4.0, float(laplace_variance(4.0)))
    scales = Scales(np.array([2, 2, 0]), 3, np.array([False, False, True]))
    other = Spread.of_one_scale(squares, largest, 1.5, float(laplace_variance(1.5)))
    for got, want in zip(found.at_scale(scales), other, strict=True):
        np.testing.assert_allclose(got, want)


def test_rates_of_several_measurements_meet_at_the_largest_unit():
    none = np.zeros(1, dtype=np.bool_)
    parts = [Scales(np.array([3]), unit, none, 2) for unit in (8, 12)]
    unit, rates = rates_at_common_unit(parts)
    assert (unit, [one.tolist() for one in rates]) == (12, [[4], [3]])


def test_rates_that_meet_at_a_unit_keep_the_bits_that_fit():
    parts = [
        Scales(np.array([2**57]), 3, np.zeros(1, dtype=bool), 2),
        Scales(np.array([1]), 10, np.zeros(1, dtype=bool), 2),
    ]
    _, (rates, _) = rates_at_common_unit(parts)
    assert 0.97 < Fraction(int(rates[0]), 2**57) / Fraction(10, 3) <= 1
    doubled = [one._replace(unit=unit) for one, unit in zip(parts, (1, 2), strict=True)]
    doubled[0] = doubled[0]._replace(rates=np.array([2**61]))
    assert rates_at_common_unit(doubled)[1][0].tolist() == [2**62]
    nearer = [doubled[0]._replace(rates=np.array([2**62]), unit=2)]
    nearer.append(doubled[1]._replace(unit=3))
    assert rates_at_common_unit(nearer)[1][0].tolist() == [2**62], "no bit is left"


@given(
    st.lists(st.integers(1, 2**30), min_size=1, max_size=9),
    st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(10)),
)
def test_in_rho_the_unit_is_rounded_up_so_that_no_edge_overspends(weights, rho):
    rates, worst = np.array(weights), sum(weights)
    exact = np.arange(rates.size) == 1
    scales = scales_within(rates, worst, Budget(rho, 2), exact)
    assert rho * (scales.unit - 1) < worst <= rho * scales.unit
    assert scales.rates.tolist() == np.where(exact, 0, rates).tolist()


def test_in_rho_seven_over_two_thirds_is_paid_with_a_unit_of_eleven():
    none = np.zeros(2, dtype=bool)
    found = scales_within(np.array([3, 4]), 7, Budget(Fraction(2, 3), 2), none)
    assert (found.unit, found.power) == (11, 2)
    assert found.variances.tolist() == [11 / 6, 11 / 8]


def test_rows_noisier_than_a_scale_of_2_to_the_40_are_not_measured():
    none = np.zeros(3, dtype=bool)
    rows = np.array([2**12 - 1, 2**12, 2**12 + 1])
    laplace = scales_within(rows, 2**31, Fraction(1, 2**21), none)
    assert laplace.unit == 2**52
    assert laplace.rates.tolist() == [0, 2**12, 2**12 + 1]
    rho = Budget(Fraction(4, 2**82), 2)
    gaussian = scales_within(np.array([1, 2, 3]), 4, rho, none)
    assert gaussian.rates.tolist() == [0, 2, 3]
    assert gaussian.widths.max() == 2**40


def test_weights_are_rounded_down_and_the_smallest_to_nothing():
    weights = np.array([2.0**-31, 2.0**-30, 1.5 * 2.0**-30, 1.0])
    assert integer_weights(weights).tolist() == [0, 1, 1, 2**30]


def test_the_least_scale_is_that_of_a_row_with_noise():
    exact = np.array([False, False, False, True])
    assert Scales(np.array([0, 1, 2, 9]), 1, exact).least == 0.5
    assert Scales(np.array([0, 0, 0, 9]), 1, exact).least == 0.0


@pytest.mark.parametrize("rates", [[5, 7] * 16, [5] * 16 + [7] * 16])
def test_every_row_has_the_variance_of_its_own_rate(rates):
    scales = Scales(np.array(rates), 70, np.zeros(32, dtype=bool))
    expected = [laplace_variance(70 / one) for one in rates]
    assert scales.variances.tolist() == pytest.approx(expected)


def test_a_budget_above_two_billion_is_counted_in_ones():
    assert budget_unit(Fraction(2**40)) == 1


def test_a_spread_over_units_is_that_of_the_answers_over_units():
    rows = [np.array([one]) for one in (18.0, 9.0, 3.0, 4.5, 7.0)]
    found = Spread(*rows, least=2.0).divided(3)
    assert [one.item() for one in found[:5]] == [2.0, 1.0, 1.0, 0.5, 7.0]
    assert found.least == 2.0


@pytest.mark.parametrize(("least", "steps"), [(0.5, [2.0, 0.0]), (0.0, [np.inf, 0.0])])
def test_steps_that_are_not_known_are_bounded_by_the_least_scale(least, steps):
    square = np.array([0.5, 0.0])
    assert Spread.bounded(square, square, square, least).steps.tolist() == steps


def test_a_scale_that_draws_cannot_reach_is_refused():
    from fractions import Fraction

    from blowfish_fast.errors import EpsilonError
    from blowfish_fast.measure.noise import LARGEST_DRAWN_BITS, check_scale

    check_scale(Fraction(2**LARGEST_DRAWN_BITS), "medians")
    with pytest.raises(EpsilonError, match="medians would draw noise of scale"):
        check_scale(Fraction(2**LARGEST_DRAWN_BITS + 1), "medians")
