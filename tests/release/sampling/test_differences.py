"""Differences of groups and waves: intervals and p-values that count the noise."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.special import ndtr

import blowfish_fast as bf
from blowfish_fast.errors import InputError, IntervalError

SEXES = bf.Domain.from_levels(["F", "M"], name="sex")
RICH = bf.Domain.from_levels(["no", "yes"], name="rich")
BOTH = bf.Domain.product(SEXES, RICH)
COUNTS = [[700, 300], [650, 350]]


def drawn(counts=COUNTS, epsilon=50, design=None, **options):
    policy = bf.policies.Full(BOTH)
    release = bf.Laplace(policy, epsilon=epsilon, **options).release(counts, rng=1)
    return release.sampled(design or bf.sampling.Simple())


def rich_of(release, **options):
    women, men = release.where(sex="F"), release.where(sex="M")
    return men.difference(women, of="mean", name="rich", values=[0, 1], **options)


@pytest.mark.long
def test_nearly_without_noise_it_is_the_test_of_two_shares():
    found = rich_of(drawn())
    deviation = np.sqrt(0.3 * 0.7 / 1000 + 0.35 * 0.65 / 1000)
    assert found == pytest.approx(0.05, abs=1e-3)
    low, high = found.interval()
    assert high - low == pytest.approx(2 * 1.96 * deviation, rel=0.06)
    exact = 2 * ndtr(-0.05 / deviation)
    assert exact < found.p_value() < 1.5 * exact
    parts = found.variance_parts()
    assert parts.sampling == pytest.approx(deviation**2, rel=0.01)
    assert parts.noise < 0.01 * parts.sampling


@pytest.mark.long
def test_noise_raises_the_p_value_and_widens_the_interval():
    quiet, loud = rich_of(drawn()), rich_of(drawn(epsilon=0.05))
    assert loud.variance_parts().noise > loud.variance_parts().sampling
    assert np.diff(loud.interval()) > 1.5 * np.diff(quiet.interval())
    # The p-value and the interval agree on whether 0 is possible.
    for answer in (quiet, loud):
        p = answer.p_value()
        low, high = answer.interval(1 - p / 1.5)
        assert low <= 0 <= high
    assert rich_of(drawn([[900, 100], [100, 900]])).p_value() == 1e-9
    assert rich_of(drawn([[500, 500], [500, 500]])).p_value() == 1.0


def test_groups_of_one_release_share_what_they_have_in_common():
    release = drawn()
    women = release.where(sex="F")
    assert women.difference(women) == 0.0
    assert women.difference(women).interval() == pytest.approx((0.0, 0.0), abs=1e-9)
    rich = release.where(rich="yes")
    apart = rich.difference(release.where(sex="F", rich="yes"))
    assert apart == pytest.approx(350 / 2000, abs=2e-3)


def test_waves_of_different_people_add_up_their_errors():
    for design in (bf.sampling.Simple(50_000), bf.sampling.Weighted("sex", [4, 4])):
        one, two = drawn(design=design), drawn([[600, 400], [650, 350]], design=design)
        wave = two.where(rich="yes").difference(one.where(rich="yes"))
        assert wave == pytest.approx(0.05, abs=2e-3)
        low, high = wave.interval()
        assert low < 0.05 < high
        inside = one.where(rich="yes").difference(one.where(rich="no"))
        assert wave.variance_parts().sampling < inside.variance_parts().sampling * 2
    policy = bf.policies.Full(BOTH)
    other = bf.Gaussian(policy, rho=2).release(COUNTS, rng=2)
    gaussian = other.sampled(bf.sampling.Simple()).where(rich="yes")
    with pytest.raises(InputError, match="in one currency"):
        gaussian.difference(drawn().where(rich="yes"))
    again = bf.Gaussian(policy, rho=2).release(COUNTS, rng=3)
    beside = again.sampled(bf.sampling.Simple()).where(rich="yes")
    assert gaussian.difference(beside).p_value() > 0.1


def test_a_difference_is_a_number():
    found = rich_of(drawn())
    assert repr(found).startswith("Difference(0.0")
    assert str(found) == str(float(found))
    assert pickle.loads(pickle.dumps(found)) == float(found)


def test_what_cannot_be_compared_is_refused():
    release = drawn()
    women = release.where(sex="F")
    with pytest.raises(InputError, match="compared with another"):
        women.difference(0.3)
    with pytest.raises(InputError, match="with its name"):
        women.difference(women, of="mean")
    with pytest.raises(InputError, match="with its name"):
        women.difference(women, of="median", name="rich")
    ages = bf.Domain.from_edges([0, 40, 80], name="age")
    aged = bf.Laplace(bf.policies.Full(ages), epsilon=1).release([50, 60], rng=1)
    with pytest.raises(IntervalError, match="how these records were drawn"):
        aged.where().difference(aged.where())
    strata = drawn(design=bf.sampling.Stratified("sex", {"F": 5_000, "M": 6_000}))
    with pytest.raises(IntervalError, match="must be public"):
        rich_of(strata)


AGES = bf.Domain.from_edges([20, 30, 40, 50], name="age")


def aged(counts, epsilon=50, seed=1):
    """Return a sample of two sexes and three cells of ten years."""
    policy = bf.policies.Full(bf.Domain.product(SEXES, AGES))
    release = bf.Laplace(policy, epsilon=epsilon).release(counts, rng=seed)
    return release.sampled(bf.sampling.Simple())


@pytest.mark.parametrize("waves", [False, True])
def test_where_records_lie_inside_their_cells_widens_a_difference_of_means(waves):
    counts = [[600, 300, 100], [200, 300, 500]]
    release = aged(counts)
    later = aged(counts, seed=2) if waves else release
    women, men = release.where(sex="F"), later.where(sex="M")
    whole = men.difference(women, of="mean", name="age")
    middles = men.difference(women, of="mean", name="age", values=[25, 35, 45])
    assert float(whole) == pytest.approx(float(middles), abs=1e-9)
    # All women at the lower ends and all men at the upper ones: 10 years more.
    found, exact = whole.interval(), middles.interval()
    assert found == pytest.approx((exact[0] - 10, exact[1] + 10), rel=0.02)
    assert whole.variance_parts() == pytest.approx(middles.variance_parts())
    # A mean of nine years more may lie inside the cells alone; of forty it may not.
    assert whole.p_value(float(whole) + 9) == 1.0 > whole.p_value(float(whole) + 12)
    assert whole.p_value(40) == 1e-9
    assert men.difference(men, of="mean", name="age").p_value() == 1.0


@pytest.mark.long
def test_ends_of_cells_miss_no_more_than_promised_where_records_lie_there():
    # Women lie at their lower ends and men at their upper ones: the worst case.
    odds = np.array([[0.3, 0.15, 0.05], [0.1, 0.15, 0.25]])
    truth = (odds[1] @ [30, 40, 50] - odds[0] @ [20, 30, 40]) / 0.5
    generator, missed = np.random.default_rng(5), 0
    for seed in range(300):
        counts = generator.multinomial(800, odds.ravel()).reshape(2, 3)
        release = aged(counts, epsilon=2, seed=seed)
        men, women = release.where(sex="M"), release.where(sex="F")
        found = men.difference(women, of="mean", name="age")
        missed += not found.interval()[1] >= truth
    assert 0.005 * 300 <= missed <= 0.025 * 300 + 3 * np.sqrt(0.025 * 300)


HELD = bf.policies.Blocks(BOTH, np.array([0, 0, 1, 1]))
"""The sex of a person is no secret, so that sizes of strata are public."""
STRATA = bf.sampling.Stratified("sex", {"F": 20_000, "M": 60_000})


def stratified(counts, epsilon=50, seed=1):
    release = bf.Laplace(HELD, epsilon=epsilon).release(counts, rng=seed)
    return release.sampled(STRATA)


@pytest.mark.long
def test_waves_of_stratified_samples_are_compared():
    first, second = stratified(COUNTS), stratified([[600, 400], [1_300, 700]])
    rich = second.where(rich="yes").difference(first.where(rich="yes"))
    weights = np.array([0.25, 0.75])
    shares = np.array([[0.3, 0.35], [0.4, 0.35]])
    assert rich == pytest.approx(shares[1] @ weights - shares[0] @ weights, abs=2e-3)
    drawn_of, people = np.array([[1000, 1000], [1000, 2000]]), np.array([2e4, 6e4])
    left = (people - drawn_of) / (people - 1)
    variance = (weights**2 * left * shares * (1 - shares) / drawn_of).sum()
    assert rich.variance_parts().sampling == pytest.approx(variance, rel=0.02)
    low, high = rich.interval()
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(variance), rel=0.06)
    exact = 2 * ndtr(-abs(rich) / np.sqrt(variance))
    assert exact < rich.p_value() < 1.6 * exact
    inside = rich_of(stratified(COUNTS))
    assert inside == pytest.approx(0.05, abs=2e-3)
    assert inside.interval()[0] < 0.05 < inside.interval()[1]
    nobody = stratified([[0, 0], [10, 5]])
    poor = nobody.where(rich="no")
    with pytest.raises(IntervalError, match="nobody was drawn"):
        nobody.where(rich="yes").difference(poor)


def wave(rng, sizes, seed):
    """Draw so many of each stratum, of which 30 and 50 % are rich, and release."""
    counts = []
    for rich, poor, size in zip((6_000, 30_000), (14_000, 30_000), sizes, strict=True):
        such = rng.hypergeometric(rich, poor, size)
        counts.append([size - such, such])
    return stratified(counts, "0.1", seed).where(rich="yes")


@pytest.mark.long
def test_equal_waves_of_strata_seldom_differ():
    rng = np.random.default_rng(1)
    hits = 0
    for seed in range(40):
        first = wave(rng, (400, 400), 2 * seed)
        second = wave(rng, (300, 600), 2 * seed + 1)
        hits += second.difference(first).p_value() <= 0.05
    assert hits <= 6
