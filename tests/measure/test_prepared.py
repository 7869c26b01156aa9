"""A strategy with its noise is made once, does not change, and is priced again."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import PrivacyError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Account, Handle
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.strategies import Cells, PrefixSums

LINE = bf.Domain(6)
POLICY = bf.policies.Line(LINE)
RANGES = bf.workloads.Ranges(LINE, [0, 1], [3, 6])
ONE = Fraction(1)


def handle(policy=POLICY):
    return Handle(np.arange(6), policy, Account(Budget(ONE)), Randomness(1))


def test_it_says_what_the_strategy_says_of_its_scales():
    for strategy in (PrefixSums(6), Cells.under(POLICY)):
        prepared = strategy.prepare(POLICY, ONE)
        scales = strategy.scales(POLICY, ONE)
        assert (prepared.scales.rates == scales.rates).all()
        assert prepared.price == strategy.cost(POLICY, scales) <= 1
        form = RANGES.explicit_form(Buckets.single_cells(6))
        for mine, theirs in zip(
            prepared.spread(form), strategy.spread(form, scales), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)
        widths = strategy.half_widths(form, scales, 0.05)
        assert (prepared.half_widths(form, 0.05) == widths).all()
        total = strategy.total_variance(form, scales)
        assert prepared.total_variance(form) == total
        assert prepared.tables is prepared.tables, "worked out once"


def test_nothing_about_it_can_be_changed():
    prepared = PrefixSums(6).prepare(POLICY, ONE)
    with pytest.raises(FrozenInstanceError):
        prepared.budget = Budget(Fraction(2))
    with pytest.raises(ValueError, match="read-only"):
        prepared.scales.rates[0] = 0


def test_it_serves_its_own_policy_and_budget_and_is_made_anew_for_others():
    prepared = PrefixSums(6).prepare(POLICY, ONE)
    assert handle().prepare(prepared, budget=ONE) is prepared
    half = handle().prepare(prepared, budget=ONE / 2)
    assert half.price == ONE / 2
    full = bf.policies.Full(LINE)
    assert handle(full).measure(prepared, budget=ONE).law.policy is full
    grouped = POLICY.per_person(2)
    assert handle(grouped).prepare(prepared, budget=ONE).price <= ONE / 2


def test_the_handle_prices_it_again_before_it_draws():
    prepared = PrefixSums(6).prepare(POLICY, ONE)
    louder = prepared.scales._replace(rates=2 * prepared.scales.rates)
    planted = replace(prepared, scales=louder)
    private = handle()
    with pytest.raises(PrivacyError, match="would cost 2 on the worst edge"):
        private.measure(planted, budget=ONE)
    assert private.remaining == 1, "nothing was charged"


@pytest.mark.parametrize(
    "kind",
    [
        bf.Laplace,
        bf.Ordered,
        bf.Hierarchy,
        bf.mechanisms.Privelet,
        bf.mechanisms.OrderedHierarchical,
    ],
)
def test_rehearsal_dry_run_and_every_draw_use_the_same_one(kind):
    mechanism = kind(POLICY, RANGES, epsilon=1)
    mechanism.check_feasible()
    planned = mechanism._dry_run.measurements[0].law
    one, two = (mechanism.release(range(6), rng=seed) for seed in range(2))
    assert one.measurements[0].law is two.measurements[0].law is planned
    other = mechanism.at_epsilon(2).release(range(6), rng=1)
    assert other.measurements[0].law.budget == 2
    assert mechanism.release(range(6), rng=1).measurements[0].law is planned


def test_a_strategy_without_tables_reads_the_scales_themselves():
    strategy = bf.strategies.Explicit(np.tril(np.ones((6, 6)))).under(POLICY)
    scales = strategy.scales(POLICY, ONE)
    assert strategy.noise_tables(scales) is None
