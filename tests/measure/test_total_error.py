"""Sampling and noise together: tails against exact laws, and what intervals miss.

A noisy count of a sample is a draw of the sample plus noise. A number of the population
(a share, a mean, a number of people) is excluded if the count lies too far out in the
tail of that sum. `NoisyCounts` holds the counts with what is known of their noise:
``with_ladder`` bounds the noise by half-widths for a ladder of probabilities, and
``between`` states two ends that the count without noise lies between.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from blowfish_fast.measure import tails, total_error
from blowfish_fast.measure.noise import Spread, laplace_variance
from blowfish_fast.measure.total_error import (
    FEWEST_STEPS,
    Binomial,
    Hypergeometric,
    NoisyCounts,
    PoissonCount,
    Thinned,
    _room_for_noise,
    excluded_mean,
    excluded_number,
    excluded_share,
    ladder_misses,
    many_steps_half_widths,
    sampling_half_widths,
    small_noise_half_widths,
)

DRAWS = 1500
MISS = 0.05
ALLOWED = MISS + 3 * (MISS * (1 - MISS) / DRAWS) ** 0.5


def equal_rows(scale, rows, queries=1):
    """Return the law of a sum of equal draws of discrete Laplace noise."""
    ones = np.ones(queries)
    variance = laplace_variance(scale)
    return Spread(
        ones * rows * variance,
        ones * rows * scale**2,
        ones * scale,
        ones * rows,
        ones * scale,
        scale,
    )


def noise(rng, scale, rows, draws):
    """Draw sums of discrete Laplace noise, as differences of geometric draws."""
    chance = 1.0 - np.exp(-1.0 / scale)
    pair = rng.geometric(chance, (2, draws, rows))
    return (pair[0] - pair[1]).sum(axis=1).astype(float)


def exact_law(scale, rows, reach):
    """Return the law of the sum of so many draws, on the values -reach to reach."""
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(values) / scale)
    law = weights / weights.sum()
    total = law
    for _ in range(rows - 1):
        total = np.convolve(total, law)[reach:-reach]
    return values, total


@pytest.mark.parametrize(("scale", "rows"), [(0.5, 1), (2.0, 3), (20.0, 2)])
@pytest.mark.parametrize(
    "law",
    [
        (Binomial(np.array([40.0])), 0.3, stats.binom(40, 0.3)),
        (PoissonCount(), 7.0, stats.poisson(7.0)),
        (Hypergeometric(200, np.array([40.0])), 60, stats.hypergeom(200, 60, 40)),
        (Thinned(0.2), 90, stats.binom(90, 0.2)),
    ],
    ids=["binomial", "poisson", "hypergeometric", "thinned"],
)
def test_tails_are_above_the_exact_convolution_and_near_it(law, scale, rows):
    counted, parameter, exact = law
    values, law_of_noise = exact_law(scale, rows, 600)
    spread = equal_rows(scale, rows)
    parameters = np.array([float(parameter)])
    ratios = []
    for noisy in np.linspace(-30, 90, 25) + 0.5:
        counts = NoisyCounts.with_ladder(np.array([noisy]), spread, MISS)
        above = counts.upper_tail(lambda x: counted.at_least(parameters, x))[0]
        below = counts.lower_tail(lambda x: counted.at_most(parameters, x))[0]
        true_above = float(law_of_noise @ exact.sf(np.ceil(noisy - values) - 1))
        true_below = float(law_of_noise @ exact.cdf(np.floor(noisy - values)))
        assert above >= true_above - 1e-12
        assert below >= true_below - 1e-12
        ratios += [
            bound / true
            for bound, true in ((above, true_above), (below, true_below))
            if true > 0.01
        ]
    # Bounds that are never below the truth could still be useless.
    assert np.median(ratios) < 1.45


def test_without_noise_a_share_has_the_interval_of_clopper_and_pearson():
    counts = np.array([0.0, 1.0, 17.0, 40.0])
    known = NoisyCounts.between(np.stack([counts, counts], axis=1), MISS)
    law = Binomial(np.full(4, 40.0))
    bounds = excluded_share(known, law, law)
    # Clopper and Pearson's ends are quantiles of beta laws; of no and of all records
    # one of them does not exist, and the end is 0 or 1.
    low = np.nan_to_num(stats.beta.ppf(MISS / 2, counts, 41 - counts), nan=0.0)
    high = np.nan_to_num(stats.beta.ppf(1 - MISS / 2, counts + 1, 40 - counts), nan=1.0)
    assert np.abs(bounds - np.stack([low, high], axis=1)).max() < 1e-12


def test_ends_are_the_last_numbers_whose_tails_reach_half_of_the_miss():
    known = NoisyCounts.between(np.array([[30.0, 30.0]]), MISS)
    ((low, high),) = excluded_mean(known, PoissonCount())
    assert stats.poisson.sf(29, low) == pytest.approx(MISS / 2)
    assert stats.poisson.cdf(30, high) == pytest.approx(MISS / 2)
    ((low, high),) = excluded_number(known, Thinned(0.1), Thinned(0.1), np.inf)
    assert stats.binom.sf(29, low - 1, 0.1) <= MISS / 2 < stats.binom.sf(29, low, 0.1)
    assert stats.binom.cdf(30, high + 1, 0.1) <= MISS / 2
    assert stats.binom.cdf(30, high, 0.1) > MISS / 2
    law = Hypergeometric(1000, np.array([100.0]))
    ((low, high),) = excluded_number(known, law, law, 1000)
    exact = stats.hypergeom
    assert exact.sf(29, 1000, low - 1, 100) <= MISS / 2 < exact.sf(29, 1000, low, 100)
    assert exact.cdf(30, 1000, high + 1, 100) <= MISS / 2
    assert exact.cdf(30, 1000, high, 100) > MISS / 2


def test_noise_far_outside_leaves_the_nearest_end():
    counts = NoisyCounts.between(np.array([[900.0, 900.0], [-800.0, -800.0]]), MISS)
    law = Binomial(np.full(2, 40.0))
    assert excluded_share(counts, law, law).tolist() == [[1.0, 1.0], [0.0, 0.0]]
    people = Hypergeometric(500, np.full(2, 40.0))
    assert excluded_number(counts, people, people, 500).tolist() == [
        [500.0, 500.0],
        [0.0, 0.0],
    ]


def test_hypergeometric_tails_keep_their_digits_in_large_populations():
    counts = np.arange(-1.0, 53.0)
    rows = counts[None]
    # 50 draws from 10^11 people, 30 % of whom count, are as good as binomial.
    law = Hypergeometric(10**11, np.array([50.0]))
    tail = law.at_least(np.array([3e10]), rows)[0]
    assert np.abs(tail - stats.binom.sf(counts - 1, 50, 0.3)).max() < 1e-7
    small = Hypergeometric(60, np.array([25.0]))
    exact, people = stats.hypergeom(60, 31, 25), np.array([31.0])
    upper, lower = small.at_least(people, rows)[0], small.at_most(people, rows)[0]
    assert np.abs(upper - exact.sf(counts - 1)).max() < 2e-12
    assert np.abs(lower - exact.cdf(counts)).max() < 2e-12


def missed(counts, least, most, parameter):
    """Return how often the true parameter is left out of its interval.

    `least` is the law that small parameters are tested with, `most` that of large ones.
    """
    small = counts.upper_tail(lambda x: least.at_least(parameter, x)) <= counts.miss / 2
    large = counts.lower_tail(lambda x: most.at_most(parameter, x)) <= counts.miss / 2
    return float((small | large).mean())


@pytest.mark.parametrize(("scale", "rows"), [(1.0, 1), (20.0, 5)])
@pytest.mark.parametrize("share", [0.0, 0.002, 0.24, 1.0])
def test_true_shares_are_missed_no_more_often_than_stated(share, scale, rows):
    rng = np.random.default_rng(7)
    drawn = rng.binomial(500, share, DRAWS) + noise(rng, scale, rows, DRAWS)
    counts = NoisyCounts.with_ladder(drawn, equal_rows(scale, rows, DRAWS), MISS)
    law, parameter = Binomial(np.full(DRAWS, 500.0)), np.full(DRAWS, share)
    assert missed(counts, law, law, parameter) <= ALLOWED


def test_other_laws_miss_no_more_often_than_stated_and_a_planted_bug_does():
    rng = np.random.default_rng(8)
    spread = equal_rows(2.0, 2, DRAWS)

    def counts(drawn):
        noisy = drawn + noise(rng, 2.0, 2, DRAWS)
        return NoisyCounts.with_ladder(noisy, spread, MISS)

    events = counts(rng.poisson(200.0, DRAWS))
    mean = np.full(DRAWS, 200.0)
    assert missed(events, PoissonCount(), PoissonCount(), mean) <= ALLOWED
    thinned = counts(rng.binomial(2000, 0.1, DRAWS))
    law, people = Thinned(0.1), np.full(DRAWS, 2000.0)
    assert missed(thinned, law, law, people) <= ALLOWED
    # Planted: the sampling alone, as if there were no noise. Little noise hides the
    # bug, and much noise does not.
    bare = NoisyCounts.between(np.stack([thinned.low, thinned.low], axis=1), MISS)
    assert missed(bare, law, law, people) <= 2 * ALLOWED
    loud = rng.binomial(2000, 0.1, DRAWS) + noise(rng, 20.0, 2, DRAWS)
    bare = NoisyCounts.between(np.stack([loud, loud], axis=1), MISS)
    assert missed(bare, law, law, people) > 0.3


def test_samples_without_replacement_miss_no_more_often_than_stated():
    rng, draws = np.random.default_rng(9), 400
    drawn = rng.hypergeometric(600, 1400, 1000, draws) + noise(rng, 2.0, 2, draws)
    counts = NoisyCounts.with_ladder(drawn, equal_rows(2.0, 2, draws), MISS)
    law = Hypergeometric(2000, np.full(draws, 1000.0))
    share = missed(counts, law, law, np.full(draws, 600.0))
    assert share <= MISS + 3 * (MISS * (1 - MISS) / draws) ** 0.5
    # Drawn with replacement it would have varied more: the law of the other design is
    # no stand-in.
    again = rng.binomial(1000, 0.3, draws) + noise(rng, 2.0, 2, draws)
    other = NoisyCounts.with_ladder(again, equal_rows(2.0, 2, draws), MISS)
    assert missed(other, law, law, np.full(draws, 600.0)) > 0.1


def test_exchanged_ends_of_a_private_sample_size_are_caught():
    # The size 500 is known to lie between 440 and 560. Small shares have to be tested
    # with many draws and large ones with few; exchanged, the interval is too short.
    rng = np.random.default_rng(10)
    drawn = rng.binomial(500, 0.24, DRAWS) + noise(rng, 1.0, 1, DRAWS)
    counts = NoisyCounts.with_ladder(drawn, equal_rows(1.0, 1, DRAWS), MISS)
    few, many = (Binomial(np.full(DRAWS, size)) for size in (440.0, 560.0))
    parameter = np.full(DRAWS, 0.24)
    assert missed(counts, many, few, parameter) <= ALLOWED
    assert missed(counts, few, many, parameter) > 0.3


@pytest.mark.parametrize(("scale", "rows"), [(0.5, 1), (2.0, 12), (30.0, 3)])
def test_a_normal_variable_joins_the_noise(scale, rows):
    values, law = exact_law(scale, rows, 900)
    spread = equal_rows(scale, rows)
    for size in (0.1, 1.0, 50.0):
        variance = spread.variance * size
        for miss in (0.1, 0.01):
            (half,) = sampling_half_widths(spread, variance, miss, np.zeros(1))
            deviation = float(np.sqrt(variance[0]))
            beyond = special.ndtr((values - half) / deviation)
            beyond += special.ndtr((-values - half) / deviation)
            tail = float(law @ beyond)
            assert tail <= miss
            assert tail > 0.1 * miss


def test_a_normal_variable_alone_has_its_own_half_width():
    zero = np.zeros(2)
    silent = Spread(zero, zero, zero, zero, zero)
    half = sampling_half_widths(silent, np.array([4.0, 0.0]), 0.05, zero)
    assert half[0] == pytest.approx(2 * 1.96, rel=0.01)
    assert half[1] == 0.0
    gaussian = Spread(*(np.array([one]) for one in (9.0, 9.0, 3.0, 1.0, 3.0)), 3.0, 1)
    # Variances 9 and 16 add up to 25: a deviation of 5.
    (half,) = sampling_half_widths(gaussian, np.array([16.0]), 0.05, np.zeros(1))
    assert 5 * 1.95 < half < 5 * 2.6


def test_rough_half_widths_are_a_little_wider():
    for rows in (1, 5, 300):
        spread = equal_rows(2.0, rows)
        fine = tails.noise_half_widths(spread, 0.0625)
        rough = tails.rough_half_widths(spread, 0.0625)
        assert fine <= rough <= 1.02 * fine
    gaussian = Spread(*(np.array([one]) for one in (9.0, 9.0, 3.0, 1.0, 3.0)), 3.0, 1)
    assert tails.rough_half_widths(gaussian, 0.1) == tails.noise_half_widths(
        gaussian, 0.1
    )


def test_ladders_start_at_one_and_end_far_below_the_miss():
    misses = ladder_misses(0.01)
    assert misses[0] == 1.0
    assert misses[-1] <= 1e-5 < misses[-2]


def test_little_noise_beside_a_normal_variable_costs_little_and_is_counted():
    # The exact law of the noise: the sum of 40 discrete draws, which lies far inside
    # -40 * 60 to 40 * 60.
    scale, rows = 0.4, 40
    places = np.arange(-60, 61)
    single = np.exp(-np.abs(places) / scale)
    single /= single.sum()
    law = np.array([1.0])
    for _ in range(rows):
        law = np.convolve(law, single)
    values = np.arange(law.size) - law.size // 2
    spread = equal_rows(scale, rows)
    noise_variance = float(spread.variance[0])
    assert noise_variance == pytest.approx((law * values**2).sum())

    def beyond(half, deviation):
        """Return the probability that noise and a normal number exceed `half`."""
        either_side = stats.norm.sf((half - values) / deviation)
        either_side += stats.norm.sf((half + values) / deviation)
        return (law * either_side).sum()

    # How many times the variance of the noise the normal number has.
    for times in (3.0, 10.0, 1000.0):
        for miss in (0.2, 0.05, 0.001):
            deviation = math.sqrt(times * noise_variance)
            variance = np.array([deviation**2])
            half = float(small_noise_half_widths(spread, variance, miss)[0])
            if math.isinf(half):
                # Left to the table of `sampling_half_widths`.
                continue
            assert beyond(half, deviation) <= miss
            quantile = stats.norm.isf(miss / 2)
            plain = quantile * math.sqrt(variance[0] + noise_variance)
            assert half >= plain * (1 - 1e-9)
            if times >= 10 and miss == 0.05:
                assert half <= 1.03 * plain
                both = sampling_half_widths(spread, variance, miss, np.zeros(1))
                assert both[0] == half
            # Planted: the quantile of the normal number alone leaves the noise out.
            assert beyond(quantile * deviation, deviation) > miss


def test_much_noise_or_a_large_miss_is_left_to_the_table():
    ones = np.ones(1)
    loud = Spread(ones, ones / 2, ones, ones, ones, 1.0, 0)
    for variance, miss in ((0.5, 0.05), (0.0, 0.05), (100.0, 0.5)):
        half = small_noise_half_widths(loud, variance * ones, miss)
        assert np.isinf(half).all()
        both = sampling_half_widths(loud, variance * ones, miss, 0.0 * ones)
        assert np.isfinite(both).all()


def worst_chance(half, noise, sure):
    """Return the largest chance of a half-width over noise of two or three values.

    Beside normal variables of every variance up to 1, where `sure` is false.
    """
    deviations = np.ones(1) if sure else np.linspace(0.002, 1.0, 120)
    deviations, reach = deviations[:, None], np.geomspace(0.1, 9.0 * half, 300)
    # The noise is 0, or reach to either side, as often as its mean square allows.
    moved = np.minimum(noise / reach**2, 1.0)
    inside = 2.0 * special.ndtr(-half / deviations)
    outside = special.ndtr((reach - half) / deviations)
    outside = outside + special.ndtr((-reach - half) / deviations)
    return float(((1.0 - moved) * inside + moved * outside).max())


@pytest.mark.parametrize("miss", [0.25, 0.05, 0.001, 1e-8])
def test_little_noise_fits_whatever_its_law_beside_smaller_variances_too(miss):
    halves, room = _room_for_noise(miss)
    places = range(20, halves.size, 60)
    for place in places:
        assert worst_chance(halves[place], room[place], sure=False) <= miss
    # Planted: what fits beside the stated variance alone, as if it were the true one.
    grown = room.copy()
    for place in places:
        while worst_chance(halves[place], 1.05 * grown[place], sure=True) <= miss:
            grown[place] *= 1.05
    assert (grown[places] >= room[places]).all()
    far = places[-1]
    assert worst_chance(halves[far], grown[far], sure=False) > miss


def test_a_normal_law_of_few_records_is_left_to_the_table():
    ones = np.ones(1)
    law = equal_rows(0.1, 1)
    for variance, many in ((29.0, False), (31.0, True)):
        half = many_steps_half_widths(law, variance * ones, 0.05, ones)
        assert np.isfinite(half[0]) == many
        # A step twice as long makes a quarter of the records.
        half = many_steps_half_widths(law, 4 * variance * ones, 0.05, 2 * ones)
        assert np.isfinite(half[0]) == many
    plain = small_noise_half_widths(law, 100.0 * ones, 0.05)
    stepped = many_steps_half_widths(law, 100.0 * ones, 0.05, ones)
    assert stepped[0] == plain[0] + 0.5


def test_counts_whose_variance_is_read_off_them_miss_little_more_than_stated():
    # By the law of Poisson counts: their own root as deviation, and no noise.
    counts, means = np.arange(1, 700), np.geomspace(0.5, 400.0, 400)
    half = 1.96 * np.sqrt(counts) + 0.5
    misses = np.abs(counts - means[:, None]) > half
    law = stats.poisson.pmf(counts, means[:, None])
    assert (law * (misses & (counts >= FEWEST_STEPS))).sum(axis=1).max() <= 0.0545
    # Planted: from the first record on.
    assert (law * misses).sum(axis=1).max() > 0.06


@pytest.mark.parametrize("mean", [0.1, 0.5, 1.0, 2.5, 4.0, 8.0, 15.0, 25.0, 40.0])
def test_a_count_of_few_records_is_held_by_the_variance_that_it_may_hide(mean):
    seen = np.arange(400.0)
    steps = np.full(seen.size, 16.0)
    shown = seen * steps**2
    variance = total_error.variance_of_few(shown, shown, steps, 0.05)
    assert (variance >= shown).all()
    reach = 1.96 * np.sqrt(variance) + total_error.half_step_of_few(variance, steps)
    missed = np.abs(seen * steps - mean * steps) > reach
    law = stats.poisson(mean).pmf(seen)
    assert law[missed].sum() < 0.06
    # Planted: the variance that the sample shows is taken as if it were known.
    forgotten = np.abs(seen - mean) > 1.96 * np.sqrt(seen)
    assert mean > 20 or law[forgotten].sum() > 0.06
    # Nothing varies where no record moves the answer.
    none = np.zeros(1)
    assert total_error.variance_of_few(none, none, none, 0.05).tolist() == [0.0]


def test_the_room_alone_would_not_hold_counts_of_few_records():
    # By the law of Poisson counts: what PN20 takes, and the least of it, z^2 steps.
    counts, means = np.arange(500.0), np.geomspace(0.05, 60.0, 2_000)[:, None]
    law, ones = stats.poisson.pmf(counts, means), np.ones(500)

    def most_missed(variance, added):
        reach = 1.96 * np.sqrt(variance) + added
        return (law * (np.abs(counts - means) > reach)).sum(axis=1).max()

    taken = total_error.variance_of_few(counts, counts, ones, 0.05)
    room = np.maximum(counts, 1.96**2)
    assert most_missed(taken, 0.5) == pytest.approx(0.054, abs=0.001)
    assert most_missed(taken, 0.0) == pytest.approx(0.064, abs=0.001)
    assert most_missed(room, 0.5) == pytest.approx(0.080, abs=0.001)
    assert most_missed(room, 0.0) == pytest.approx(0.111, abs=0.001)


def test_what_a_sample_does_not_show_is_held_by_the_score_of_its_far_end():
    """Lemma PN20, (i) to (iv), over laws of values and samples."""
    rng, distance = np.random.default_rng(2), 1.96
    miss = 2 * special.ndtr(-distance)
    for trial in range(50):
        part, values = rng.dirichlet(np.full(5, 0.5)), rng.normal(size=5)
        weights, squared = np.ones(5), np.ones(5)
        if trial % 2:
            # A person adds w with the chance 1 / w, and w (w - 1) y^2 to Q.
            weights = rng.uniform(1, 9, 5)
            squared = weights * (weights - 1.0)
        values -= part @ values
        far = max((squared * values / weights).max(), 0.0)
        added = squared * values**2 - far * weights * values
        sample = part / weights
        assert sample @ added == pytest.approx(sample @ (squared * values**2))
        assert added[(squared * values / weights).argmax()] == pytest.approx(
            0, abs=1e-9
        )
        # (ii): the room is where the score test ends.
        seen, step = rng.uniform(0, 20, 1), np.array([rng.uniform(1.0, 3.0)])
        reach = distance * np.sqrt(total_error.variance_of_few(seen, seen, step, miss))
        if reach[0] ** 2 < distance**2 * FEWEST_STEPS * step[0] ** 2:
            assert reach**2 == pytest.approx(distance**2 * (seen + step * reach))
            assert reach[0] >= distance**2 * step[0]
    # (iii): of two values W is no less than the variance of Wilson's interval.
    for many in (5, 40, 300):
        drawn, share = np.arange(many + 1.0), np.linspace(0.001, 0.999, 200)[:, None]
        below = drawn - many * share
        squares = drawn * (1 - share) ** 2 + (many - drawn) * share**2
        score = squares + (1 - share) * np.abs(below)
        lower = below <= 0.0
        assert (score >= many * share * (1 - share) - 1e-9)[lower].all()
        # Planted: the variance that the sample shows.
        assert (squares < many * share * (1 - share) - 1e-9)[lower].any()
    # (iv): without a record of the part p.
    for many in (10.0, 50.0, 1_000.0):
        part = np.linspace(1e-4, 0.5, 2_000)
        one, ones = part / (1 - part), np.ones(part.size)
        shown = many * one**2
        variance = total_error.variance_of_few(shown, shown, ones, miss)
        left_out = many * one > distance * np.sqrt(variance) * (1 + 1e-9)
        assert (part[left_out] > distance**2 / many - 1e-9).all()
        assert left_out.any()
        assert ((1 - part[left_out]) ** many <= np.exp(-(distance**2)) + 1e-9).all()
