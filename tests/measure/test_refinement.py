"""Noise that is lowered later: its law in fractions, its draws, its price."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import blowfish_fast as bf
from blowfish_fast.errors import BudgetError, EpsilonError, PrivacyError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Account, Forecast, Handle, Rehearsal
from blowfish_fast.measure.noise import Scales
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.refinement import lowered_noise, lowered_scales, settled
from blowfish_fast.measure.strategies import Cells, EdgeNoise
from tests.reference import refinement as slow

LINE = bf.Domain(6)
COUNTS = np.array([3, 1, 4, 1, 5, 9])
POLICY = bf.policies.AddRemove(LINE)
RATIOS = [
    (Fraction(1, 2), Fraction(1, 3)),
    (Fraction(9, 10), Fraction(1, 20)),
    (Fraction(3, 5), Fraction(29, 50)),
]


def geometric_law(ratio, most):
    return [(1 - ratio) * ratio**size for size in range(most)]


@pytest.mark.parametrize(("q", "t"), RATIOS)
@pytest.mark.parametrize("first", [-4, -1, 0, 1, 3, 7])
def test_first_noise_is_second_noise_and_an_independent_rest(q, t, first):
    # Summed over the second noise Bayes' rule gives 1 exactly if and only if the law of
    # the first is the convolution. Beyond the first both tails fall by q t a step.
    size, side, fall = abs(first), -1 if first < 0 else 1, q * t
    law = {
        second: slow.by_bayes(first, q, t, side * second)
        for second in range(-6, size + 7)
    }
    for second in range(1, 6):
        assert law[-second - 1] == fall * law[-second]
        assert law[size + second + 1] == fall * law[size + second]
    tails = (law[-1] + law[size + 1]) / (1 - fall)
    assert tails + sum(law[second] for second in range(size + 1)) == 1


@pytest.mark.parametrize(("q", "t"), RATIOS)
def test_a_pair_tells_neighbours_apart_by_the_second_rate_alone(q, t):
    def pair(count, shown, later):
        first, second = shown - count, later - count
        return slow.laplace(q, first) * slow.by_bayes(first, q, t, second)

    ratios = [
        pair(0, shown, later) / pair(1, shown, later)
        for shown, later in itertools.product(range(-8, 9), repeat=2)
    ]
    assert max(ratios) == 1 / t
    assert min(ratios) == t


@pytest.mark.parametrize(("q", "t"), [RATIOS[0], (Fraction(1, 3), Fraction(1, 8))])
@pytest.mark.parametrize("first", [-2, 0, 1, 3])
def test_four_geometric_numbers_give_the_law_of_bayes(q, t, first):
    most = {"near": 24, "across": 9, "stay": 9, "beyond": 8}
    ratio = {"near": t / q, "across": q * t, "stay": q * q, "beyond": q * t}
    axes = [np.arange(size) for size in most.values()]
    grids = dict(zip(most, np.meshgrid(*axes, indexing="ij"), strict=True))
    numbers = {name: grid.reshape(-1) for name, grid in grids.items()}
    new = settled(np.full(numbers["near"].size, first), **numbers)
    laws = [geometric_law(ratio[name], most[name]) for name in most]
    # Whole numbers over one denominator: sums of many fractions would be slow.
    unit = 10**40
    chances = [[math.floor(one * unit) for one in law] for law in laws]
    masses = [math.prod(each) for each in itertools.product(*chances)]
    found = {}
    for outcome, mass in zip(new.tolist(), masses, strict=True):
        found[outcome] = found.get(outcome, 0) + mass
    missing = 1 - Fraction(sum(masses), unit**4)
    assert missing < Fraction(1, 50)
    for outcome in range(-4, 8):
        exact = slow.by_bayes(first, q, t, outcome)
        assert 0 <= exact - Fraction(found.get(outcome, 0), unit**4) <= missing


def test_draws_have_the_law_of_races_of_coins():
    unit, first, draws = 20, 6, 20_000
    plain = np.zeros(draws, dtype=bool)
    before = Scales(np.full(draws, 2), unit, plain)
    after = Scales(np.full(draws, 6), unit, plain)
    noise = np.full(draws, first)
    new = lowered_noise(noise, before, after, Randomness(5))
    rng = random.Random(5)
    rates = Fraction(2, unit), Fraction(6, unit)
    raced = np.array([slow.lowered(first, *rates, rng) for _ in range(4_000)])
    q, t = math.exp(-0.1), math.exp(-0.3)
    law = {
        second: float(slow.by_bayes(first, Fraction(q), Fraction(t), second))
        for second in range(-4, 12)
    }
    for sample in (new, raced):
        counts = [np.count_nonzero(sample == second) for second in law]
        rest = sample.size - sum(counts)
        expected = [sample.size * one for one in law.values()]
        expected.append(sample.size - sum(expected))
        assert stats.chisquare([*counts, rest], expected).pvalue > 1e-3


def test_rows_are_kept_drawn_afresh_or_left_out():
    exact = np.array([False, False, False, False, True])
    before = Scales(np.array([5, 0, 5, 0, 0]), 100, exact)
    wanted = Scales(np.array([3, 4, 9, 0, 0]), 50, exact)
    after = lowered_scales(before, wanted)
    assert (after.rates.tolist(), after.unit) == ([6, 8, 18, 0, 0], 100)
    noise = np.array([7, 99, 7, 99, 0])
    equal = lowered_scales(before, before)
    kept = lowered_noise(noise, before, equal, Randomness(1))
    assert kept.tolist() == [7, 0, 7, 0, 0]
    seeds = [lowered_noise(noise, before, after, Randomness(at)) for at in range(40)]
    drawn = np.array(seeds)
    assert not drawn[:, 3:].any()
    # The second row had no noise yet: its draw does not follow the 99.
    assert abs(drawn[:, 1].mean()) < 15
    assert len(set(drawn[:, 2].tolist())) > 5


def test_scales_of_other_rows_currencies_and_units_are_refused():
    plain = np.zeros(2, dtype=bool)
    rough = Scales(np.array([1, 1]), 8, plain)
    with pytest.raises(PrivacyError, match="second measurement"):
        lowered_scales(rough, rough._replace(power=2))
    with pytest.raises(PrivacyError, match="2 rows with 0 exact"):
        lowered_scales(rough, rough._replace(exact=~plain))
    for unit in (12, 2**40):
        with pytest.raises(EpsilonError, match="rates in one unit"):
            lowered_scales(rough, rough._replace(unit=unit))


def looking(counts=COUNTS, policy=POLICY, granted=1, seed=1, kind=Handle):
    account = Account(Budget.of(Fraction(granted)))
    rng = None if counts is None else Randomness(seed)
    return kind.over(Handle(counts, policy, account, rng)), account


def fine(amount, policy=POLICY):
    return Cells(6).scales(policy, Fraction(amount))


def test_a_chain_costs_its_last_link():
    private, account = looking()
    rough = private.measure_roughly(Cells(6), budget=Fraction(1, 10))
    better = private.refine(rough, fine("0.4"), budget=Fraction(2, 5))
    best = private.refine(better, fine(1), budget=Fraction(1))
    assert [(call.kind, call.budget.amount) for call in account.calls] == [
        ("measure", Fraction(1, 10)),
        ("refine", Fraction(3, 10)),
        ("refine", Fraction(3, 5)),
    ]
    assert private.remaining == 0
    assert float(best.scales.widths[0]) == pytest.approx(1.0)
    assert best.strategy.cost(POLICY, best.scales) <= 1
    assert best.estimate().shape == (6,)


def test_refined_noise_has_the_law_of_noise_drawn_at_once():
    cells = 4_000
    policy = bf.policies.AddRemove(bf.Domain(cells))
    counts = np.arange(cells)
    private, _ = looking(counts, policy, seed=3)
    rough = private.measure_roughly(Cells(cells), budget=Fraction(1, 10))
    wanted = Cells(cells).scales(policy, Fraction(1, 2))
    noise = private.refine(rough, wanted, budget=Fraction(1, 2)).noisy[:cells] - counts
    sizes = np.arange(-5, 6)
    q = math.exp(-0.5)
    expected = cells * (1 - q) / (1 + q) * q ** np.abs(sizes)
    counted = [np.count_nonzero(noise == size) for size in sizes]
    both = [*counted, cells - sum(counted)], [*expected, cells - expected.sum()]
    assert stats.chisquare(*both).pvalue > 1e-3


def test_only_the_last_link_on_the_same_counts_is_refined():
    private, account = looking()
    rough = private.measure_roughly(Cells(6), budget=Fraction(1, 10))
    private.refine(rough, fine("0.2"), budget=Fraction(1, 5))
    for measurement, handle in (
        (rough, private),
        (rough._replace(noisy=rough.noisy + 1), private),
        (private.measure(Cells(6), budget=Fraction(1, 10)), private),
        (account.refinable[0].measurement, Handle.over(private, _counts=COUNTS + 1)),
        (account.refinable[0].measurement, private.split(2)[0]),
    ):
        with pytest.raises(PrivacyError, match="refined once"):
            handle.refine(measurement, fine("0.4"), budget=Fraction(2, 5))
    with pytest.raises(ValueError, match="read-only"):
        rough.noisy[0] = 0


def test_a_refinement_is_paid_before_it_is_drawn():
    private, account = looking()
    rough = private.measure_roughly(Cells(6), budget=Fraction(1, 10))
    with pytest.raises(PrivacyError, match="scales are wrong"):
        private.refine(rough, fine("0.5"), budget=Fraction(2, 5))
    with pytest.raises(BudgetError, match=r"only 0\.9 of 1 is left"):
        private.refine(rough, fine(2), budget=Fraction(2))
    with pytest.raises(EpsilonError, match="more than 0"):
        private.refine(rough, fine("0.05"), budget=Fraction(1, 10))
    assert account.spent == Fraction(1, 10)


def test_rows_that_share_draws_and_rho_are_not_measured_for_later():
    line = bf.policies.Line(LINE)
    private, account = looking(policy=line)
    with pytest.raises(PrivacyError, match="a first draw cannot be told"):
        private.measure_roughly(EdgeNoise.under(line), budget=Fraction(1, 10))
    granted = Account(Budget(Fraction(1), 2))
    in_rho = Handle(COUNTS, POLICY, granted, Randomness(1))
    with pytest.raises(PrivacyError, match="precisions add"):
        in_rho.measure_roughly(Cells(6), budget=in_rho.remaining)
    assert not account.calls
    assert not granted.calls


@pytest.mark.parametrize("kind", [Handle, Forecast, Rehearsal])
def test_dry_runs_charge_a_chain_and_draw_nothing(kind):
    private, account = looking(None, kind=kind)
    rough = private.measure_roughly(Cells(6), budget=Fraction(1, 10))
    better = private.refine(rough, fine(1), budget=Fraction(1))
    assert type(better) is type(rough)
    assert not better.noisy.any()
    assert private.remaining == 0
    assert [call.kind for call in account.calls] == ["measure", "refine"]
