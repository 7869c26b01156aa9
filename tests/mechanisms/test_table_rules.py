"""Public rules: merged cells, shares of the budget, how many tables."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.strategies.tables.table_strategy import EdgeKind
from blowfish_fast.mechanisms.tables.table_merging import (
    coarser_levels,
    likely_cells,
    merged_cells,
    smoothed,
)
from blowfish_fast.mechanisms.tables.table_rules import (
    SCREEN_SHARE,
    TableRules,
    asked_pairs,
    pair_weights,
)

SIZES = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
PAIRS = list(combinations(range(14), 2))
TOGETHER = (EdgeKind(None),)
ALL_MOVE = (EdgeKind(frozenset(range(14))),)
APART = tuple(EdgeKind(frozenset([axis])) for axis in range(14))


def rules(kinds, power=1):
    return TableRules(SIZES, PAIRS, range(14), kinds, power)


def test_sizes_of_a_census_give_the_numbers_they_were_chosen_for():
    one, rho = Budget(Fraction(1)), Budget(Fraction(14973, 10**6), 2)
    assert not rules(TOGETHER).screens
    assert not rules(ALL_MOVE).screens
    assert not rules(TOGETHER, 2).screens
    assert rules(APART).screens
    assert rules(APART, 2).screens
    share = rules(TOGETHER).singles_share()
    assert 0.5 < share < 0.56
    assert rules(TOGETHER).tables(39_074, one * (1 - share)) == 22
    assert rules(ALL_MOVE).tables(39_074, one * (1 - share)) == 16
    assert rules(TOGETHER, 2).tables(39_074, rho * (1 - share)) == 29
    assert rules(TOGETHER).tables(100, one * Fraction(1, 10)) == 0


def test_few_records_for_the_budget_leave_single_tables_alone():
    one = Budget(Fraction(1))
    together, apart = rules(TOGETHER), rules(APART)
    assert together.split(39_074, one) == (together.singles_share(), 22)
    assert together.split(400, one) == (1, 0)
    assert together.split(0, one) == (1, 0)
    assert apart.split(39_074, one) == (apart.singles_share(), 56)
    assert apart.split(2_000, one) == (1, 0)
    assert TableRules((3, 2), [], [0, 1], TOGETHER).split(10**9, one) == (1, 0)


@pytest.mark.parametrize("power", [1, 2])
def test_single_tables_get_less_the_more_records_there_are(power):
    own = rules(TOGETHER, power)
    budget = Budget(Fraction(1, 10) ** power, power)
    splits = [own.split(2.0**at, budget) for at in range(4, 24)]
    shares = [share for share, _ in splits]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1
    assert shares[-1] == own.singles_share()
    assert any(own.singles_share() < share < 1 for share in shares)
    assert all((share == 1) == (tables == 0) for share, tables in splits)
    numbers = [tables for _, tables in splits]
    assert numbers == sorted(numbers)


def test_tables_that_move_together_share_and_others_pay_alone():
    shares = rules(TOGETHER).single_shares()
    np.testing.assert_allclose(shares, np.sqrt(np.array(SIZES) / 100))
    np.testing.assert_allclose(rules(APART).single_shares(), np.ones(14))
    mixed = (*APART, EdgeKind(None, Fraction(4)))
    costs = TableRules(SIZES, PAIRS, range(14), mixed).single_shares()
    assert costs.max() == 1
    assert (costs > 0).all()


def test_exact_pairs_are_no_candidates():
    kinds = (EdgeKind(frozenset([2])),)
    found = TableRules((2, 2, 2), list(combinations(range(3), 2)), range(3), kinds)
    assert found.exact_pairs == [(0, 1)]
    assert found.pairs == [(0, 2), (1, 2)]
    assert found.single_shares().tolist() == [0, 0, 1]
    assert found.noise(1.0, Budget(Fraction(0))) == math.inf


def test_pairs_weigh_what_asked_tables_weigh():
    tables = [(0,), (0, 1), (0, 1, 2)]
    assert asked_pairs(tables) == [(0, 1), (0, 2), (1, 2)]
    weights = pair_weights(tables, [9.0, 3.0, 1.0], 64)
    assert weights == {(0, 1): 64, (0, 2): 16, (1, 2): 16}


@pytest.mark.parametrize("ordered", [True, False])
def test_merged_cells_are_few_and_levels_coarser(ordered, generator):
    for _ in range(100):
        cells = int(generator.integers(1, 120))
        shares = generator.gamma(0.3, 10, cells) * (generator.random(cells) < 0.7)
        most = int(generator.integers(2, 25))
        grouping = merged_cells(shares, ordered, most, float(generator.choice([0, 5])))
        assert grouping.count <= most
        if ordered:
            assert (np.diff(grouping.labels) >= 0).all()
        counts = [one.count for one in coarser_levels(grouping.sum(shares, 0), ordered)]
        assert counts == sorted(set(counts), reverse=True)


def test_cells_are_smoothed_where_they_are_ordered_and_noisy(generator):
    truth = 300 * np.exp(-(np.linspace(-2, 2, 80) ** 2))
    noisy = truth + generator.laplace(0, 30, 80)
    close = smoothed(noisy, 2 * 30.0**2)
    assert np.abs(close - truth).sum() < 0.8 * np.abs(noisy - truth).sum()
    assert smoothed(noisy[:5], 1800.0) is not None
    total = float(truth.sum())
    likely = likely_cells(noisy, 1800.0, total, 80)
    assert likely.min() >= 0
    assert likely.sum() == pytest.approx(total)
    assert likely_cells(noisy, math.inf, 80.0, None).tolist() == [1.0] * 80


def test_screens_leave_more_to_single_tables_where_records_are_few():
    kinds = tuple(EdgeKind(frozenset({axis})) for axis in range(12))
    own = TableRules((8,) * 12, list(combinations(range(12), 2)), range(12), kinds)
    records = 500, 5000, 9000, 90_000
    shares = [own.split(count, Budget.of(1))[0] for count in records]
    assert shares[0] == 1 > shares[1] > shares[2] > shares[3] == own.singles_share()
    # The screen gives as much as the batches that follow it.
    assert own.screen_share(shares[3]) == SCREEN_SHARE
    part = SCREEN_SHARE / (1 - shares[3])
    assert own.screen_share(shares[1]) == part * (1 - shares[1])
