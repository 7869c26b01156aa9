"""Ledgers that count rho: what they charge, what they refuse, how files tell."""

from __future__ import annotations

import sqlite3
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.composition import EPSILON, RHO, presence_cost
from blowfish_fast.accounting.journal_file import FORMAT, FORMAT_IN_RHO
from blowfish_fast.accounting.request import price_in
from blowfish_fast.audit.grey_box import RowPrices
from blowfish_fast.errors import BudgetError, EpsilonError, InputError, LedgerError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Account
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions import LeastCost
from blowfish_fast.measure.strategies import Cells

LINE = bf.Domain(8)
POLICY = bf.policies.AddRemove(LINE)
CELLS = bf.workloads.Identity(LINE)
COUNTS = np.arange(8)


def in_memory(**budget):
    return bf.Ledger(None, policy=POLICY, **budget)


def test_a_hundred_hundredths_fit_and_one_more_is_refused():
    ledger = in_memory(rho="0.01")
    question = bf.Gaussian(POLICY, CELLS, rho="0.0001")
    for _ in range(100):
        ledger.release(question, COUNTS, rng=1)
    assert ledger.remaining == 0
    assert ledger.spent == Fraction(1, 100)
    with pytest.raises(BudgetError, match=r"costs rho = 0\.0001, and 0 of 0\.01"):
        ledger.release(question, COUNTS, rng=1)


def test_epsilon_with_delta_is_the_largest_rho_that_implies_it():
    ledger = in_memory(epsilon=1, delta="1e-9")
    assert ledger.rho == Fraction("0.014973057673")
    assert ledger.currency == RHO
    with pytest.raises(EpsilonError, match="has no epsilon of its own"):
        _ = ledger.epsilon


def test_pure_releases_pay_their_true_price():
    """Ten equal levels cost a twentieth of the square, a histogram half of it."""
    line = bf.Domain(512)
    policy = bf.policies.AddRemove(line)
    ranges = bf.workloads.AllRanges(line)
    ledger = bf.Ledger(None, rho="0.01", policy=policy)
    levels = bf.Hierarchy(policy, ranges, epsilon="0.1", fan_out=2, strategy="uniform")
    ledger.release(levels, np.zeros(512, dtype=np.int64), rng=1)
    assert float(ledger.spent) == pytest.approx(0.1**2 / 20, rel=1e-6)
    cells = bf.Laplace(policy, bf.workloads.Identity(line), epsilon="0.1")
    assert price_in(cells, RHO) == pytest.approx(Fraction(1, 200), rel=1e-6)
    assert price_in(cells, RHO) <= Fraction(1, 200)


def test_a_choice_pays_an_eighth_of_the_square_and_what_follows_half():
    dawa = bf.Dawa(POLICY, CELLS, epsilon="0.1", share="0.25")
    chosen, rest = Fraction(1, 40), Fraction(3, 40)
    assert price_in(dawa, RHO) == chosen**2 / 8 + rest**2 / 2
    assert price_in(dawa.at(Budget(Fraction(1, 9), 2)), RHO) == Fraction(1, 9)
    least = bf.Dawa(POLICY, CELLS, epsilon="0.1", share="0.25", partition=LeastCost())
    assert price_in(least, RHO) == chosen**2 / 2 + rest**2 / 2


class Adaptive(bf.Hierarchy):
    """Measures a total, and then what that suggests, or what a public total does."""

    def _run(self, private):
        first = private.measure(Cells(8), budget=private.remaining / 2)
        assert first is None, "a price needs no step behind the first draw"


class Informed(bf.Hierarchy):
    def _run(self, private):
        assert private.public_totals is None, "a price needs no total"


def test_what_follows_a_draw_or_a_total_pays_half_the_square():
    """Planted bug: the strategy of a dry run, which is not the one that is drawn."""
    half = Fraction(1, 20)
    adaptive = Adaptive(POLICY, bf.workloads.AllRanges(LINE), epsilon="0.1")
    assert price_in(adaptive, RHO) == pytest.approx(half**2 / 2 + half**2 / 2)
    informed = Informed(
        bf.policies.Full(LINE), bf.workloads.AllRanges(LINE), epsilon="0.1"
    )
    assert price_in(informed, RHO) == Fraction(1, 200)


@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("spread", [3, 40])
def test_k_means_pays_for_any_centres_that_may_come(rounds, spread):
    """Later rounds have the edges of real centres, which no dry run knows."""
    line = bf.Domain(64)
    policy = bf.policies.Threshold(line, theta=spread)
    each = Fraction(1, 10 * rounds)
    kmeans = bf.KMeans(policy, 3, epsilon="0.1", rounds=rounds)
    price = price_in(kmeans, RHO)
    assert price <= rounds * each**2 / 2
    assert price >= (rounds - 1) * each**2 / 2
    points = np.concatenate([np.full(500, 3.0), np.full(500, 60.0)])
    account = Account(kmeans.budget)
    places = kmeans._counts(points)
    drawn = kmeans._run(kmeans._handle(places, account, Randomness(1)))
    edges = np.concatenate(list(policy.edges())).tolist()
    paid = Fraction(0)
    for one in drawn.measurements:
        kept, rates = RowPrices(one), one.scales.rates.astype(object)
        moves = [kept.rows(start) - kept.rows(end) for start, end in edges[::7]]
        worst = max(int(((move * rates) ** 2).sum()) for move in moves)
        paid += Fraction(worst, 2 * one.scales.unit**2)
    assert 0 < paid <= price
    assert [call.budget for call in account.calls] == [Budget(each)] * rounds
    assert account.spent == kmeans.budget


def test_constraints_count_squared_in_the_price_of_a_pure_release():
    """Several records move together: a price without the square would be too low."""
    full = bf.policies.Full(bf.Domain((2, 3)))
    known = bf.policies.MarginalConstraints(full.domain, 0)
    policy = full.with_constraints(known)
    assert policy.group_size > 1
    cells = bf.Laplace(policy, bf.workloads.Identity(policy.domain), epsilon="0.1")
    alone = bf.Laplace(full, bf.workloads.Identity(full.domain), epsilon="0.1")
    # Scales grow with the group, and the square of its size makes up for it.
    assert price_in(cells, RHO) == pytest.approx(price_in(alone, RHO), rel=1e-6)


def test_a_ledger_in_epsilon_refuses_rho_before_any_charge():
    ledger = in_memory(epsilon=1)
    for mechanism in (
        bf.Gaussian(POLICY, CELLS, rho="0.001"),
        bf.Dawa(POLICY, CELLS, epsilon=1, delta="1e-9"),
    ):
        with pytest.raises(BudgetError, match="which no epsilon bounds"):
            ledger.release(mechanism, COUNTS, rng=1)
        assert not ledger.preview(mechanism).accepted
    assert ledger.spent == 0
    assert ledger.history() == []


def test_files_tell_the_currency(tmp_path):
    pure, concentrated = tmp_path / "pure.db", tmp_path / "rho.db"
    bf.Ledger(pure, epsilon=1, policy=POLICY).close()
    bf.Ledger(concentrated, rho="0.015", policy=POLICY).close()
    versions = [
        sqlite3.connect(path).execute("PRAGMA user_version").fetchone()[0]
        for path in (pure, concentrated)
    ]
    assert versions == [FORMAT, FORMAT_IN_RHO]
    with bf.Ledger(concentrated) as ledger:
        assert ledger.currency == RHO
        assert ledger.rho == Fraction("0.015")
        question = bf.Gaussian(POLICY, CELLS, rho="0.005")
        kept = ledger.release(question, COUNTS, request="March")
        again = ledger.replay("March")
        assert again.guarantee.rho == kept.guarantee.rho == Fraction(1, 200)
        assert again.intervals(CELLS).tolist() == kept.intervals(CELLS).tolist()
        (entry,) = ledger.history()
        assert entry.budget == Budget(Fraction(1, 200), 2)
        assert entry.to_dict()["rho"] == "1/200"
        assert ledger.verify()
    with bf.Ledger(pure) as ledger:
        assert ledger.currency == EPSILON
    for path, other in ((pure, {"rho": "0.015"}), (concentrated, {"epsilon": 1})):
        with pytest.raises(LedgerError, match="Leave the budget out"):
            bf.Ledger(path, **other)


def test_a_file_whose_terms_name_another_currency_is_damaged(tmp_path):
    path = tmp_path / "rho.db"
    bf.Ledger(path, rho="0.015", policy=POLICY).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.close()
    with pytest.raises(LedgerError, match="its terms 'rho'"):
        bf.Ledger(path)


def test_amending_keeps_the_currency():
    ledger = in_memory(rho="0.01")
    ledger.amend(rho="0.02")
    assert ledger.rho == Fraction(1, 50)
    with pytest.raises(LedgerError, match="State its budget in"):
        ledger.amend(epsilon=1)


def test_a_ledger_without_a_budget_is_refused():
    with pytest.raises(InputError, match="needs a budget and a policy"):
        in_memory()


def test_allotments_are_in_the_currency_of_the_ledger():
    ledger = in_memory(rho="0.01")
    ledger.allot("ann", "0.0001")
    question = bf.Gaussian(POLICY, CELLS, rho="0.0001")
    ledger.release(question, COUNTS, rng=1, analyst="ann")
    assert ledger.allotments()["ann"].remaining == 0
    with pytest.raises(BudgetError, match=r"ann's 0\.0001 remains"):
        ledger.release(question, COUNTS, rng=1, analyst="ann")


def test_presence_at_some_distance_costs_the_square():
    path = bf.policies.Graph(LINE, [(one, one + 1) for one in range(7)] + [(0, -1)])
    assert presence_cost(path, Budget(Fraction(1, 10))) == Fraction(8, 10)
    assert presence_cost(path, Budget(Fraction(1, 10), 2)) == Fraction(64, 10)
    far = bf.policies.WithAbsent(bf.policies.Line(LINE), length=Fraction(5, 2))
    assert presence_cost(far, Budget(Fraction(1, 10))) == Fraction(1, 4)
    assert presence_cost(far, Budget(Fraction(1, 10), 2)) == Fraction(5, 8)


def test_sessions_ask_in_rho():
    sexes = bf.Domain.from_levels(["F", "M"], name="sex")
    policy = bf.policies.AddRemove(sexes)
    ledger = bf.Ledger(None, rho="0.1", policy=policy)
    session = bf.Session(ledger, [30, 40])
    women = session.noisy_count(sex="F", rho="0.01", rng=1)
    parts = session.partition("sex").noisy_count(rho="0.02", rng=2)
    assert ledger.spent == Fraction(3, 100)
    low, high = women.interval(0.95)
    assert low < 30 < high
    assert set(parts) == {"F", "M"}
    with pytest.raises(EpsilonError, match="rho beside another"):
        session.noisy_count(sex="F", epsilon=1, rho="0.01", rng=1)


def test_side_by_side_the_largest_counts():
    ledger = in_memory(rho="0.01")
    parts = [
        (bf.Gaussian(POLICY, CELLS, rho="0.002"), COUNTS),
        (bf.Laplace(POLICY, CELLS, epsilon="0.1"), COUNTS),
    ]
    ledger.release_disjoint(parts, by="ids", rng=1)
    assert float(ledger.spent) == pytest.approx(0.005, rel=1e-6)
