"""The only way to counts: charges first, draws all noise, records every call."""

from __future__ import annotations

import inspect
from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import (
    BudgetError,
    DataDependentError,
    EpsilonError,
    PrivacyError,
)
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import (
    Account,
    DryRunEnded,
    Forecast,
    Handle,
    Pricing,
    Rehearsal,
)
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.strategies import Cells
from blowfish_fast.policies import AddRemove, Full

LINE = Domain(6)
COUNTS = np.array([3, 1, 4, 1, 5, 9])


def handle(policy=None, counts=COUNTS, granted=1, seed=1):
    account = Account(Fraction(granted))
    return Handle(counts, policy or AddRemove(LINE), account, Randomness(seed)), account


class FirstCell:
    name = "first_cell"

    def select(self, counts, *, policy, epsilon, rng):
        return int(counts[0])


class Cheater(Cells):
    def cost(self, policy, scales):
        return 2 * super().cost(policy, scales)


class WrongCurrency(Cells):
    def scales(self, policy, budget):
        return super().scales(policy, Budget(budget.amount, 1))


def test_every_call_is_charged_and_recorded():
    private, account = handle()
    private.select(FirstCell(), budget=Fraction(1, 4))
    private.measure(Cells(6), budget=private.remaining)
    assert private.remaining == 0
    assert [(call.kind, call.budget) for call in account.calls] == [
        ("select", Fraction(1, 4)),
        ("measure", Fraction(3, 4)),
    ]


def test_spending_beyond_the_grant_is_refused_before_anything_is_drawn():
    private, account = handle()
    private.measure(Cells(6), budget=Fraction(9, 10))
    with pytest.raises(BudgetError, match=r"only 0\.1 of 1 is left"):
        private.measure(Cells(6), budget=Fraction(2, 10))
    with pytest.raises(BudgetError):
        private.select(FirstCell(), budget=Fraction(1))
    assert account.spent == Fraction(9, 10)
    assert len(account.calls) == 1


def test_free_steps_are_refused():
    private, _ = handle()
    with pytest.raises(EpsilonError, match="more than 0"):
        private.select(FirstCell(), budget=Fraction(0))


def test_a_strategy_that_costs_more_than_granted_draws_nothing():
    private, account = handle()
    with pytest.raises(PrivacyError, match="scales are wrong"):
        private.measure(Cheater(6), budget=Fraction(1))
    assert account.spent == 0


def test_a_strategy_that_was_granted_rho_may_not_draw_the_noise_of_epsilon():
    account = Account(Budget(Fraction(1, 2), 2))
    private = Handle(COUNTS, AddRemove(LINE), account, Randomness(1))
    with pytest.raises(PrivacyError, match="chose noise of the other currency"):
        private.measure(WrongCurrency(6), budget=private.remaining)
    assert (account.spent, account.calls) == (Budget(Fraction(0), 2), [])


def test_a_choice_for_which_rho_leaves_no_epsilon_is_not_made():
    account = Account(Budget(Fraction(1), 2))
    private = Handle(COUNTS, AddRemove(LINE), account, Randomness(1))
    with pytest.raises(EpsilonError, match="leaves no epsilon for first_cell"):
        private.select(FirstCell(), budget=Fraction(1, 10**30))
    assert account.calls == []


def test_the_total_is_read_only_where_it_is_public():
    private, _ = handle(Full(LINE))
    assert private.public_totals.tolist() == [23]
    private, _ = handle(AddRemove(LINE))
    with pytest.raises(PrivacyError, match="private under this policy"):
        _ = private.public_totals


def test_bucket_handles_share_the_account_and_project_the_policy():
    private, account = handle(Full(LINE))
    bucketed = private.coarsened(Buckets(np.array([0, 2, 6])))
    assert bucketed.policy == Full(Domain(2))
    assert bucketed.policy.parent == Full(LINE)
    measurement = bucketed.measure(Cells(2), budget=Fraction(1))
    assert private.remaining == 0
    assert measurement.noisy[-1] == 23
    assert measurement.estimate().sum() == pytest.approx(23)
    thirds = private.coarsened(Buckets(np.array([0, 2, 4, 6])))
    nested = thirds.coarsened(Buckets(np.array([0, 3])))
    assert nested.buckets.count == 1
    assert account.granted == 1


def test_one_bucket_under_full_is_exact_and_needs_no_noise():
    private, _ = handle(Full(LINE))
    measurement = private.coarsened(Buckets(np.array([0, 6]))).measure(
        Cells(1), budget=Fraction(1)
    )
    assert measurement.noisy.tolist() == [23, 23]


def test_a_dry_run_sees_no_data_and_draws_nothing():
    account = Account(Fraction(1))
    dry_run = Handle(None, Full(LINE), account, None)
    measurement = dry_run.measure(Cells(6), budget=Fraction(1))
    assert not measurement.noisy.any()
    assert dry_run.public_totals.tolist() == [0]
    with pytest.raises(DataDependentError, match="chooses from the data"):
        dry_run.select(FirstCell(), budget=Fraction(1, 2))


@pytest.mark.parametrize("kind", [Rehearsal, Pricing])
def test_a_dry_run_that_nobody_reads_ends_at_its_first_choice(kind):
    account = Account(Fraction(1))
    handle = Handle(None, Full(LINE), account, None)
    ending = kind.over(handle, accounts=[account], prices=[])
    with pytest.raises(DryRunEnded):
        ending.select(FirstCell(), budget=Fraction(1, 2))
    assert [call.kind for call in account.calls] == ["select"]
    with pytest.raises(DryRunEnded):
        _ = ending.public_totals


def test_a_forecast_has_the_scales_of_a_release_and_infers_nothing():
    private, _ = handle(Full(LINE))
    account = Account(Fraction(1))
    forecast = Forecast.over(Handle(None, Full(LINE), account, None))
    pairs = Buckets(np.array([0, 2, 4, 6]))
    drawn, asked = (
        one.coarsened(pairs).measure(Cells(3), budget=Fraction(1, 2))
        for one in (private, forecast)
    )
    assert np.array_equal(drawn.scales.rates, asked.scales.rates)
    assert drawn.scales.unit == asked.scales.unit
    assert account.spent == Budget(Fraction(1, 2))
    assert asked.estimate().tolist() == [0.0] * 6
    with pytest.raises(BudgetError, match=r"only 0\.5 of 1 is left"):
        forecast.measure(Cells(6), budget=Fraction(1))


def test_buckets_of_single_cells_in_their_order_change_nothing():
    private, _ = handle(Full(LINE))
    assert private.coarsened(Buckets.single_cells(6)) is private


def test_a_recipe_that_goes_on_from_noisy_values_stops_its_dry_run_alone():
    dry_run = Handle(None, Full(LINE), Account(Fraction(1)), None)
    with pytest.raises(DataDependentError, match="rounds go on from what was drawn"):
        dry_run.refuse_dry_run("rounds go on from what was drawn")
    private, _ = handle(Full(LINE))
    private.refuse_dry_run("rounds go on from what was drawn")
    assert not private.dry_run


def test_noise_is_on_the_integers_and_differs_between_calls():
    private, _ = handle(granted=2)
    first = private.measure(Cells(6), budget=Fraction(1, 100))
    second = private.measure(Cells(6), budget=Fraction(1, 100))
    assert first.noisy.dtype == np.int64
    assert (first.noisy[:-1] != second.noisy[:-1]).any()
    assert first.noisy[-1] == 0


def test_a_handle_calls_nobody_back():
    # Hole 2: it named the branch that a draw had taken before the answer was stored.
    assert "progress" not in inspect.signature(Handle).parameters


def test_cells_of_a_wide_domain_are_not_listed():
    import blowfish_fast as bf
    from blowfish_fast.errors import PrivacyError
    from blowfish_fast.measure.handle import Account, Handle

    policy = bf.policies.AddRemove(bf.Domain(4))
    with pytest.raises(PrivacyError, match="totals of buckets, or listed"):
        Handle(None, policy, Account(1), None)._listed_counts()
