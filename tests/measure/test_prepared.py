"""A `PreparedStrategy` holds a strategy with the scales of its noise.

It is made once for a policy and a budget, nothing about it can be changed, and the
handle prices it again before it draws.
"""

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


def handle_of_counts(policy=POLICY):
    return Handle(np.arange(6), policy, Account(Budget(ONE)), Randomness(1))


def test_a_prepared_strategy_agrees_with_the_strategy_about_its_noise():
    for strategy in (PrefixSums(6), Cells.under(POLICY)):
        prepared = strategy.prepare(POLICY, ONE)
        scales = strategy.scales(POLICY, ONE)
        assert (prepared.scales.rates == scales.rates).all()
        assert prepared.price == strategy.cost(POLICY, scales) <= 1
        form = RANGES.explicit_form(Buckets.single_cells(6))
        spreads = zip(prepared.spread(form), strategy.spread(form, scales), strict=True)
        for prepared_part, strategy_part in spreads:
            np.testing.assert_array_equal(prepared_part, strategy_part)
        widths = strategy.half_widths(form, scales, 0.05)
        assert (prepared.half_widths(form, 0.05) == widths).all()
        total = strategy.total_variance(form, scales)
        assert prepared.total_variance(form) == total
        assert prepared.tables is prepared.tables, "worked out once"


def test_nothing_about_a_prepared_strategy_can_be_changed():
    prepared = PrefixSums(6).prepare(POLICY, ONE)
    with pytest.raises(FrozenInstanceError):
        prepared.budget = Budget(Fraction(2))
    with pytest.raises(ValueError, match="read-only"):
        prepared.scales.rates[0] = 0


def test_a_handle_of_another_policy_or_budget_prepares_the_strategy_anew():
    prepared = PrefixSums(6).prepare(POLICY, ONE)
    assert handle_of_counts().prepare(prepared, budget=ONE) is prepared
    half = handle_of_counts().prepare(prepared, budget=ONE / 2)
    assert half.price == ONE / 2
    full = bf.policies.Full(LINE)
    assert handle_of_counts(full).measure(prepared, budget=ONE).law.policy is full
    # Two records of a person move together, so that one may cost half.
    persons = POLICY.per_person(2)
    assert handle_of_counts(persons).prepare(prepared, budget=ONE).price <= ONE / 2


def test_the_handle_prices_a_prepared_strategy_again_before_it_draws():
    prepared = PrefixSums(6).prepare(POLICY, ONE)
    # A rate is one over a scale: twice the rates are half the noise.
    quieter = prepared.scales._replace(rates=2 * prepared.scales.rates)
    planted = replace(prepared, scales=quieter)
    private = handle_of_counts()
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
def test_rehearsal_dry_run_and_every_draw_use_one_prepared_strategy(kind):
    mechanism = kind(POLICY, RANGES, epsilon=1)
    mechanism.check_feasible()
    planned = mechanism._dry_run.measurements[0].law
    first, second = (mechanism.release(range(6), rng=seed) for seed in range(2))
    assert first.measurements[0].law is planned
    assert second.measurements[0].law is planned
    other = mechanism.at_epsilon(2).release(range(6), rng=1)
    assert other.measurements[0].law.budget == 2
    assert mechanism.release(range(6), rng=1).measurements[0].law is planned


def test_a_strategy_without_tables_reads_the_scales_themselves():
    strategy = bf.strategies.Explicit(np.tril(np.ones((6, 6)))).under(POLICY)
    scales = strategy.scales(POLICY, ONE)
    assert strategy.noise_tables(scales) is None
