from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.fitting.neighbour_prior import median_cells
from blowfish_fast.kernels.fitting.posterior_mean import (
    SAMPLE,
    _fit_weights,
    _learnt,
    _likelihoods,
    _mass_and_moment,
    _mass_up_to,
    _thin,
    _told_apart,
    evidence_of_shrinkage,
    shrink_towards_zero,
)
from tests.reference import posterior_mean as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 8 if config.DISABLE_JIT else 25
BUCKETS = 300 if config.DISABLE_JIT else 4096
SEEDS = st.integers(0, 2**32 - 1)
# Means in widths: ordinary ones, and ones hardly different from the width.
MEANS = st.one_of(
    st.floats(0.05, 4096),
    st.just(1.0),
    st.builds(
        lambda sign, decade: 1 + sign * 10.0**decade,
        st.sampled_from([-1, 1]),
        st.floats(-15, -1),
    ),
)


def ones(buckets):
    return np.ones(buckets, dtype=np.int64)


def sparse_counts(buckets, seed):
    """Return totals of which nine in ten are 0, and the same with noise of scale 10."""
    rng = np.random.default_rng(seed)
    full = rng.random(buckets) < 0.1
    truth = np.where(full, rng.exponential(20, buckets).round(), 0.0)
    return truth, truth + rng.laplace(0, 10, buckets)


@settings(deadline=None, max_examples=4 * EXAMPLES)
@given(st.floats(-50, 200), st.floats(0.01, 100), MEANS)
def test_the_closed_form_equals_the_integral(total, width, mean):
    found = _mass_and_moment(total, mean)
    mass, moment = reference.mass_and_moment(total * width, width, mean * width)
    np.testing.assert_allclose(found, (mass, moment / width), rtol=1e-10, atol=1e-300)


@settings(deadline=None, max_examples=8 * EXAMPLES)
@given(st.one_of(st.floats(0.01, 60), st.floats(-1e9, 60)), MEANS)
def test_the_closed_form_keeps_fourteen_digits(total, mean):
    found = _mass_and_moment(total, mean)
    expected = reference.mass_and_moment_in_many_digits(total, mean)
    np.testing.assert_allclose(found, expected, rtol=2e-14)


@settings(deadline=None, max_examples=8 * EXAMPLES)
@given(st.floats(-9, 12), st.floats(-6, 19))
def test_the_closed_form_holds_over_many_decades(total_decade, mean_decade):
    total, mean = 10.0**total_decade, 10.0**mean_decade
    found = _mass_and_moment(total, mean)
    expected = reference.mass_and_moment_in_many_digits(total, mean)
    # An exponent of up to 700 carries its own rounding into the result.
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-290)


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(1, 60), st.integers(1, 12), SEEDS)
def test_fitted_weights_equal_textbook_steps(rows, exponentials, seed):
    rng = np.random.default_rng(seed)
    means = 2.0 ** (np.arange(exponentials) - 1.5)
    table = _likelihoods(rng.normal(3, 10, rows), rng.uniform(0.5, 2, rows), means)
    start = rng.dirichlet(np.ones(exponentials + 1)) + 1e-3
    beforehand = rng.uniform(0.01, 20, exponentials + 1)
    found = _fit_weights(table, start, beforehand)
    expected = reference.fitted_weights(table, start, beforehand)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert found.sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.long
@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(1, 12), st.sampled_from([0.0, 0.3]), st.booleans(), SEEDS)
def test_equals_the_definition(buckets, exact, one_width, seed):
    rng = np.random.default_rng(seed)
    widths = np.full(buckets, 3.0) if one_width else rng.uniform(0.5, 8, buckets)
    widths[rng.random(buckets) < exact] = 0.0
    sizes = 2 ** rng.integers(0, 4, buckets) + rng.integers(0, 2, buckets)
    noisy = rng.exponential(10.0 ** rng.uniform(-1, 2.7), buckets)
    noisy += rng.laplace(0, 1, buckets) * widths
    found = shrink_towards_zero(noisy, widths, sizes)
    expected = reference.shrunken(noisy, widths, sizes)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@settings(deadline=None, max_examples=2 * EXAMPLES)
@given(st.integers(1, 40), st.floats(-6, 6), st.floats(0, 3), SEEDS)
def test_lies_between_zero_and_one_width_above_the_total(buckets, decade, spread, seed):
    rng = np.random.default_rng(seed)
    widths = 10.0 ** (decade + rng.uniform(-spread, spread, buckets))
    noisy = 10.0 ** rng.uniform(-3, 12, buckets)
    signs = rng.choice([-1, 1, 1], buckets)
    noisy = np.maximum(noisy * signs, -1e9)
    noisy[rng.random(buckets) < 0.5] = rng.laplace(0, 20) * widths[0]
    sizes = rng.integers(1, 2**40, buckets)
    found = shrink_towards_zero(noisy, widths, sizes)
    far = noisy / widths > 60
    np.testing.assert_array_equal(found[far], noisy[far])
    assert (found >= 0)[~far].all()
    assert (found <= (np.maximum(noisy, 0) + widths) * (1 + 1e-12))[~far].all()


def test_the_squared_error_on_sparse_counts_falls_below_a_quarter():
    # Measured over 40 seeds, 4096 buckets: .15 to .21 of the squared error of the
    # noisy totals, .28 to .39 of that after clipping at 0. 300 buckets: medians .17
    # and .33, but single seeds reach .27 and .58, hence four together.
    raw = clipped = shrunken = 0.0
    for seed in range(4):
        truth, noisy = sparse_counts(BUCKETS, seed)
        found = shrink_towards_zero(noisy, np.full(BUCKETS, 10.0), ones(BUCKETS))
        raw += ((noisy - truth) ** 2).sum()
        clipped += ((np.maximum(noisy, 0) - truth) ** 2).sum()
        shrunken += ((found - truth) ** 2).sum()
    assert shrunken < 0.25 * raw
    assert shrunken < 0.45 * clipped


def test_classes_of_size_lower_the_error_when_sizes_tell_full_from_empty():
    # Measured over 40 seeds: .66 to .73 of the squared error without classes, .68 to
    # .82 with 300 buckets.
    rng = np.random.default_rng(1)
    sizes = rng.choice([1, 64], BUCKETS)
    truth = np.where(sizes == 1, 0.0, rng.exponential(60, BUCKETS))
    noisy = truth + rng.laplace(0, 10, BUCKETS)
    widths = np.full(BUCKETS, 10.0)
    by_class = shrink_towards_zero(noisy, widths, sizes)
    pooled = shrink_towards_zero(noisy, widths, ones(BUCKETS))
    assert ((by_class - truth) ** 2).sum() < 0.85 * ((pooled - truth) ** 2).sum()


def test_sizes_between_two_powers_of_two_form_one_class():
    _, noisy = sparse_counts(60, seed=2)
    widths = np.full(60, 10.0)
    sizes = np.tile([4, 5, 6, 7, 8, 9], 10)
    found = shrink_towards_zero(noisy, widths, sizes)
    expected = shrink_towards_zero(noisy, widths, np.where(sizes < 8, 1, 2**40))
    np.testing.assert_array_equal(found, expected)


def test_empty_data_are_released_as_nearly_zero():
    widths = np.full(300, 10.0)
    zeros = shrink_towards_zero(np.zeros(300), widths, ones(300))
    assert 0 < zeros.max() < 1e-3 * 10
    # Measured over 40 seeds: means of .01 to .17 widths, .14 of the noise's square.
    noise = np.random.default_rng(1).laplace(0, 10, 300)
    found = shrink_towards_zero(noise, widths, ones(300))
    assert 0 < found.mean() < 0.2 * 10
    assert (found**2).sum() < 0.2 * (noise**2).sum()


def test_large_totals_are_hardly_moved_and_huge_ones_not_at_all():
    noisy = np.concatenate([np.linspace(20, 60, 50), [60.1, 1e3, 1e12]])
    found = shrink_towards_zero(noisy, np.ones(53), ones(53))
    assert np.abs(found - noisy)[:50].max() < 0.1
    np.testing.assert_array_equal(found[50:], noisy[50:])


@pytest.mark.parametrize("total", [-1e9, -1.0, 0.0, 5.0, 60.0, 61.0, 1e12])
def test_a_single_bucket_is_its_own_prior(total):
    found = shrink_towards_zero(np.array([total]), np.ones(1), ones(1))
    if total <= 60:
        assert found[0] == pytest.approx(
            reference.shrunken([total], [1.0], [1])[0], rel=1e-8
        )
    else:
        assert found[0] == total


def test_negative_totals_say_the_same_however_negative():
    # Below 0 the noise loses its shape: every total there has the same posterior.
    noisy = np.array([-1e-3, -1.0, -1e3, -1e9])
    found = shrink_towards_zero(noisy, np.full(4, 0.5), ones(4))
    assert (found == found[0]).all()
    assert 0 < found[0] < 0.5


def test_exact_totals_stay_and_teach_nothing():
    noisy = np.array([-3.0, 0.0, 1e15, 4.0, 1.0, -2.0])
    widths = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    found = shrink_towards_zero(noisy, widths, ones(6))
    np.testing.assert_array_equal(found[:3], noisy[:3])
    alone = shrink_towards_zero(noisy[3:], widths[3:], ones(3))
    np.testing.assert_array_equal(found[3:], alone)
    nothing = shrink_towards_zero(noisy, np.zeros(6), ones(6))
    np.testing.assert_array_equal(nothing, noisy)


def test_no_buckets_give_no_estimates():
    found = shrink_towards_zero(np.zeros(0), np.zeros(0), ones(0))
    assert found.shape == (0,)
    assert found.dtype == np.float64


def test_totals_beyond_two_to_the_sixty_widths_leave_the_prior_finite():
    noisy = np.array([1e300, 1e25, 3.0, 0.0, -1.0])
    found = shrink_towards_zero(noisy, np.ones(5), ones(5))
    np.testing.assert_array_equal(found[:2], noisy[:2])
    assert (found[2:] > 0).all()
    assert (found[2:] < 4).all()
    noisy[:2] = 2.0**60
    at_the_bound = shrink_towards_zero(noisy, np.ones(5), ones(5))
    np.testing.assert_array_equal(
        shrink_towards_zero(np.array([1e300, 1e300, *noisy[2:]]), np.ones(5), ones(5)),
        [1e300, 1e300, *at_the_bound[2:]],
    )


@pytest.mark.parametrize("unit", [2.0**-60, 2.0**20])
def test_the_unit_of_counting_does_not_matter(unit):
    _, noisy = sparse_counts(80, seed=3)
    sizes = np.tile([1, 2, 9, 30], 20)
    widths = np.full(80, 10.0)
    found = shrink_towards_zero(noisy, widths, sizes)
    scaled = shrink_towards_zero(noisy * unit, widths * unit, sizes)
    np.testing.assert_array_equal(scaled, found * unit)


def test_the_order_of_buckets_does_not_matter():
    _, noisy = sparse_counts(80, seed=4)
    rng = np.random.default_rng(4)
    widths, sizes = rng.uniform(5, 20, 80), rng.integers(1, 9, 80)
    order = rng.permutation(80)
    found = shrink_towards_zero(noisy, widths, sizes)[order]
    moved = shrink_towards_zero(noisy[order], widths[order], sizes[order])
    np.testing.assert_allclose(moved, found, rtol=1e-9)


def test_inputs_are_not_changed():
    _, noisy = sparse_counts(40, seed=5)
    before = noisy.copy()
    shrink_towards_zero(noisy, np.full(40, 10.0), ones(40))
    np.testing.assert_array_equal(noisy, before)


@pytest.mark.parametrize("rows", [1, SAMPLE, SAMPLE + 1, 2 * SAMPLE, 2**20, 2**20 + 1])
def test_a_sample_is_bounded_and_meets_every_column_of_a_square_grid(rows):
    sample = _thin(np.arange(rows))
    assert sample.size <= SAMPLE
    if rows <= SAMPLE:
        assert sample.size == rows
    else:
        assert sample.size > SAMPLE // 4
        assert np.unique(sample % 1024).size == 1024


def test_more_buckets_than_a_sample_are_fitted_by_every_third(monkeypatch):
    # Three copies in a row: every third bucket is each of them once, since 3 does
    # not divide a power of two.
    sample = 2**7 if config.DISABLE_JIT else SAMPLE
    monkeypatch.setattr("blowfish_fast.kernels.fitting.posterior_mean.SAMPLE", sample)
    _, noisy = sparse_counts(sample, seed=6)
    widths = np.full(sample, 10.0)
    once = shrink_towards_zero(noisy, widths, ones(sample))
    thrice = shrink_towards_zero(
        np.tile(noisy, 3), np.tile(widths, 3), ones(3 * sample)
    )
    np.testing.assert_allclose(thrice, np.tile(once, 3), rtol=1e-9)


def test_arrays_of_different_lengths_are_refused():
    with pytest.raises(InputError, match="one number per bucket"):
        shrink_towards_zero(np.zeros(3), np.ones(2), ones(3))
    with pytest.raises(InputError, match="one-dimensional"):
        shrink_towards_zero(np.zeros((2, 2)), np.ones((2, 2)), np.ones((2, 2), int))


def test_densities_of_totals_integrate_to_one():
    """One total of a class moves its prior little: its density is that of a mixture."""
    truth, noisy = sparse_counts(300, 5)
    widths, sizes = np.full(300, 10.0), ones(300)
    places = np.arange(-150.0, 600.0, 2.0)
    densities = []
    for place in places:
        likely = evidence_of_shrinkage(np.append(noisy, place), *_longer(widths, sizes))
        densities.append(np.exp(likely[-1]))
    assert 2.0 * np.sum(densities) == pytest.approx(1.0, abs=0.1)
    assert evidence_of_shrinkage(truth, widths, sizes).shape == (300,)


def _longer(widths, sizes):
    return np.append(widths, widths[0]), np.append(sizes, sizes[0])


@settings(deadline=None, max_examples=4 * EXAMPLES)
@given(st.floats(-50, 60), MEANS, st.floats(0, 70))
def test_the_mass_up_to_a_place_is_the_integral_to_it(total, mean, place):
    found = _mass_up_to(place, total, mean)
    whole = _mass_and_moment(total, mean)[0]
    # In widths, as in the closed form: a negative total is taken off every component.
    at = np.unique([0.0, *np.linspace(0, place, 4001), min(max(total, 0.0), place)])
    heights = np.exp(-at / mean - np.abs(max(total, 0.0) - at)) / mean
    integral = float(np.trapezoid(heights, at))
    assert found == pytest.approx(integral, rel=2e-2, abs=2e-4)
    assert 0.0 <= found <= whole * (1 + 1e-12)
    assert _mass_up_to(1e4 * (1 + mean), total, mean) == pytest.approx(whole, rel=1e-9)


def test_medians_halve_the_posterior_of_the_learnt_prior():
    _, noisy = sparse_counts(BUCKETS, 7)
    width = 10.0
    found = median_cells(noisy, width)
    totals, _, means, _, weights = _learnt(
        noisy, np.full(BUCKETS, width), ones(BUCKETS), np.arange(BUCKETS)
    )
    prior, between = weights[0], 0
    for total, median in zip(totals, found / width, strict=True):
        atom = prior[0] * np.exp(-max(total, 0.0))
        whole = atom + sum(
            share * _mass_and_moment(total, mean)[0]
            for share, mean in zip(prior[1:], means, strict=True)
        )
        up_to = atom + sum(
            share * _mass_up_to(median, total, mean)
            for share, mean in zip(prior[1:], means, strict=True)
        )
        if median == 0.0:
            assert atom >= whole / 2
        else:
            between += 1
            assert up_to == pytest.approx(whole / 2, rel=1e-9)
    assert between


def test_medians_of_empty_cells_are_zero_and_lower_the_absolute_error():
    truth, noisy = sparse_counts(BUCKETS, 8)
    truth[3], noisy[3] = 5_000.0, 5_003.0
    found = median_cells(noisy, 10.0)
    mean = shrink_towards_zero(noisy, np.full(BUCKETS, 10.0), ones(BUCKETS))
    assert found.min() == 0.0
    assert (found[truth == 0] == 0).mean() > 0.8
    assert np.abs(found - truth).mean() < np.abs(mean - truth).mean()
    # Beyond 60 widths the prior has nothing to say.
    assert found[3] == 5_003.0


@pytest.mark.parametrize("width", [0.3, 3.0, 50.0])
def test_counted_totals_are_the_sorted_ones(width):
    noisy = sparse_counts(BUCKETS, 9)[1].round()
    noisy[5] = 2.0**70
    values, places = _told_apart(noisy, width)
    # Where one of them is not whole they are sorted.
    halves, ranks = _told_apart(np.append(noisy, 0.5), width)
    assert values.size + 1 == halves.size
    near = noisy <= 60 * width
    np.testing.assert_array_equal(values[places][near], (noisy.clip(0) / width)[near])
    np.testing.assert_array_equal(values[places], halves[ranks][:-1])


def test_a_long_line_is_counted_and_not_sorted(monkeypatch):
    noisy = sparse_counts(8 * BUCKETS, 10)[1].round()
    sorted_at_once = []
    unique = np.unique

    def watched(values, **options):
        sorted_at_once.append(values.size)
        return unique(values, **options)

    monkeypatch.setattr("blowfish_fast.kernels.fitting.posterior_mean.SAMPLE", BUCKETS)
    monkeypatch.setattr(np, "unique", watched)
    fitted = median_cells(noisy, 10.0)
    assert max(sorted_at_once) <= BUCKETS
    # Equal counts have equal medians, and larger ones no smaller medians.
    order = np.argsort(noisy, kind="stable")
    assert (np.diff(fitted[order]) >= 0).all()
