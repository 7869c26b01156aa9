"""Rates of two private numbers in the population: intervals that hold (PN13)."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import EpsilonError, InputError, IntervalError
from blowfish_fast.release.sampling.rates import _quotient, _rate_of

SEXES = bf.Domain.from_levels(["F", "M"], name="sex")
WORK = bf.Domain.from_levels(["employed", "looking", "neither"], name="work")
BOTH = bf.Domain.product(SEXES, WORK)
COUNTS = np.array([[900, 100, 500], [1000, 90, 300]])
FORCE = ["employed", "looking"]
HELD = bf.policies.Blocks(BOTH, np.repeat([0, 1], 3))
STRATA = bf.sampling.Stratified("sex", {"F": 30_000, "M": 20_000})


def drawn(design, counts=COUNTS, policy=None, epsilon=1, seed=1):
    policy = policy or bf.policies.AddRemove(BOTH)
    return bf.Laplace(policy, epsilon=epsilon).release(counts, rng=seed).sampled(design)


def unemployed(release, **chosen):
    return release.where(work="looking", **chosen).ratio(
        release.where(work=FORCE, **chosen)
    )


def test_nearly_without_noise_it_is_the_interval_of_a_share():
    release = drawn(bf.sampling.Simple(), epsilon=200)
    rate = unemployed(release)
    share = 190 / 2090
    assert rate == pytest.approx(share, abs=1e-3)
    deviation = math.sqrt(share * (1 - share) / 2090)
    low, high = rate.interval(method="normal")
    assert high - low == pytest.approx(2 * 1.96 * deviation, rel=0.12)
    inside = release.where(work="looking").relative_count(of=release.where(work=FORCE))
    assert rate.interval(method="exact") == pytest.approx(
        inside.interval(of="population", method="exact")
    )
    parts = rate.variance_parts()
    assert parts.sampling == pytest.approx(deviation**2, rel=0.02)
    assert parts.noise < 0.01 * parts.sampling


def test_neither_group_has_to_be_a_part_of_the_other():
    for design in (
        bf.sampling.Simple(60_000),
        bf.sampling.Simple(60_000, replacement=True),
        bf.sampling.Bernoulli("0.05"),
        bf.sampling.Poisson(),
    ):
        release = drawn(design)
        rate = release.where(sex="F").ratio(release.where(sex="M"))
        assert rate == pytest.approx(1500 / 1390, rel=0.02)
        low, high = rate.interval()
        assert low < 1500 / 1390 < high
        near = rate.interval(method="normal")
        assert low < near[0] < near[1] < high
        assert "With probability at least 95 %" in rate.sentence()
        assert "taken as normal" in rate.sentence(method="normal")


def test_weights_and_strata_count_people():
    weighted = drawn(bf.sampling.Weighted("sex", [20, 10]))
    rate = unemployed(weighted)
    assert rate == pytest.approx(
        (20 * 100 + 10 * 90) / (20 * 1000 + 10 * 1090), rel=0.03
    )
    bounded, normal = (rate.interval(method=method) for method in ("exact", "normal"))
    assert bounded[0] < normal[0] < normal[1] < bounded[1]
    assert "probability at least" in rate.sentence(method="exact")
    strata = drawn(STRATA, policy=HELD, epsilon=100)
    rate = unemployed(strata)
    people = np.array([30_000, 20_000])
    sizes = COUNTS.sum(axis=1)
    looking, force = COUNTS[:, 1] / sizes, COUNTS[:, :2].sum(axis=1) / sizes
    expected = (people @ looking) / (people @ force)
    assert rate == pytest.approx(expected, rel=0.01)
    # The variance of strata by hand: sum of (N/n)^2 f n Var(y), y = looking - r force.
    second = looking * (1 - expected) ** 2 + (force - looking) * expected**2
    spread = second - (looking - expected * force) ** 2
    left = (people - sizes) / (people - 1)
    variance = (people**2 * left * spread / sizes).sum() / (people @ force) ** 2
    assert rate.variance_parts().sampling == pytest.approx(variance, rel=0.02)
    low, high = rate.interval()
    assert high - low == pytest.approx(2 * 1.96 * math.sqrt(variance), rel=0.12)
    assert "taken as normal" in rate.sentence()


@pytest.mark.long
def test_rates_are_compared_with_p_values():
    release = drawn(bf.sampling.Simple())
    women, men = (unemployed(release, sex=sex) for sex in "FM")
    change = women.difference(men)
    assert change == pytest.approx(float(women) - float(men))
    assert change.interval()[0] < 0.1 - 90 / 1090 < change.interval()[1]
    by_mean = release.where(sex="F", work=FORCE).difference(
        release.where(sex="M", work=FORCE), of="mean", name="work", values=[0, 1, 0]
    )
    assert change.p_value() == pytest.approx(by_mean.p_value(), rel=0.02)
    later = drawn(
        bf.sampling.Simple(), COUNTS + np.array([[0, 90, 0], [0] * 3]), seed=2
    )
    wave = unemployed(later).difference(unemployed(release))
    assert wave.p_value() < 0.01
    with pytest.raises(InputError, match="compared with another"):
        women.difference(0.1)


@pytest.mark.long
def test_a_rate_is_held_against_a_stated_number_and_its_noise_counts():
    quiet, noisy = (
        unemployed(drawn(bf.sampling.Simple(), epsilon=epsilon))
        for epsilon in ("5", "0.05")
    )
    assert quiet.p_value(float(quiet)) == 1.0
    assert quiet.p_value(0.05) < 1e-4
    # The same gap from what was estimated, with more noise, is no finding.
    gap = float(quiet) - 0.05
    assert noisy.p_value(max(float(noisy) - gap, 0.0)) > 0.05
    # At an end of its own interval a rate is just about to be left out.
    low, high = quiet.interval(method="normal")
    for end in (low, high):
        assert 0.02 < quiet.p_value(end) < 0.12
    strata = unemployed(drawn(STRATA, policy=HELD))
    assert strata.p_value(0.3) < 0.001 < strata.p_value(float(strata) + 0.001)
    assert quiet.p_value("0.05") == quiet.p_value(0.05)
    with pytest.raises(InputError, match="at least 0"):
        quiet.p_value(-0.1)
    for wrong in (math.nan, None):
        with pytest.raises(EpsilonError, match="against"):
            quiet.p_value(wrong)


def test_where_nobody_may_be_below_there_is_no_upper_end():
    few = drawn(bf.sampling.Simple(), np.full((2, 3), 2), epsilon="0.2")
    rate = few.where(work="looking").ratio(few.where(sex="F", work="neither"))
    for method in ("exact", "normal"):
        assert rate.interval(method=method)[1] == math.inf
    assert _rate_of(1.0) == _quotient(1.0, 0.0) == math.inf
    many = drawn(bf.sampling.Simple())
    assert many.where().ratio(many.where()) == 1.0


def test_a_rate_is_a_number_of_one_release():
    release = drawn(bf.sampling.Simple())
    rate = unemployed(release)
    assert repr(rate).startswith("Rate(0.0")
    assert str(rate) == str(float(rate))
    assert pickle.loads(pickle.dumps(rate)) == float(rate)
    other = drawn(bf.sampling.Simple())
    with pytest.raises(InputError, match="of one release"):
        release.where(work="looking").ratio(other.where())
    for wrong in (0.5, release.group_by("sex")):
        with pytest.raises(InputError, match="of one release"):
            release.where(work="looking").ratio(wrong)
    plain = bf.Laplace(bf.policies.AddRemove(BOTH), epsilon=1).release(COUNTS, rng=1)
    with pytest.raises(IntervalError, match="how these records were drawn"):
        plain.where(work="looking").ratio(plain.where())
    with pytest.raises(InputError, match="method must be"):
        rate.interval(method="best")


PEOPLE = np.array([[800, 60, 400], [900, 40, 300]])
"""A small country, from which samples are drawn."""


def misses(method, trials, bound=None):
    """Return the part of intervals that miss; samples and noise are drawn anew."""
    rng = np.random.default_rng(5)
    truth = PEOPLE[0, 1] / PEOPLE[:, 0].sum()
    missed = 0
    for seed in range(trials):
        flat = rng.multivariate_hypergeometric(PEOPLE.reshape(-1), 400)
        release = drawn(
            bf.sampling.Simple(int(PEOPLE.sum())),
            flat.reshape(2, 3),
            epsilon="0.15",
            seed=seed,
        )
        above = release.where(sex="F", work="looking")
        below = release.where(work="employed")
        if bound is None:
            low, high = above.ratio(below).interval(0.9, method=method)
        else:
            low, high = bound(above, below)
        missed += not low <= truth <= high
    return missed / trials


@pytest.mark.long
@pytest.mark.parametrize("method", ["exact", "normal"])
def test_intervals_hold_over_draws_of_samples_and_noise(method):
    assert misses(method, 150) <= 0.1 + 3 * math.sqrt(0.09 / 150)


def _sampling_alone(above, below):
    """A planted bug: the noise of both numbers is left out."""
    rate = above.ratio(below)
    half = 1.645 * math.sqrt(rate.variance_parts().sampling)
    return float(rate) - half, float(rate) + half


@pytest.mark.long
def test_an_interval_without_the_noise_is_caught():
    assert misses(None, 150, _sampling_alone) > 0.1 + 3 * math.sqrt(0.09 / 150)
