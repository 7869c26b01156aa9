"""The price of single tables that are measured as running totals: Lemma DC11."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit.invariants import audit_testimony
from blowfish_fast.audit.neighbours import all_edges, steps_along
from blowfish_fast.data.tables.merged_tables import Grouping, MergedTable
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.strategies.tables import merged_tables
from blowfish_fast.measure.strategies.tables.merged_tables import MergedTables
from blowfish_fast.measure.strategies.tables.table_strategy import longest_moves
from blowfish_fast.policies import ABSENT
from tests.privacy.test_chosen_tables import (
    COUNTED,
    PARTS,
    POLICIES,
    SMALL,
    STILL,
    selectors_seen,
    transcript_losses,
    watched,
)

P = bf.policies
EVERY = {
    **POLICIES,
    "near": P.Product(P.Full(PARTS[0]), P.Line(PARTS[1]), P.Full(PARTS[2])),
    "far": P.Product(STILL, P.Threshold(PARTS[1], theta=2), P.Line(PARTS[2])),
}


def strategy_of(generator):
    """Return running totals of two attributes, beside tables of cells."""
    cells = [Grouping.single_cells(size) for size in (2, 3, 2)]
    tables = [
        MergedTable((), ()),
        MergedTable((1,), (cells[1],)),
        MergedTable((0,), (cells[0],)),
        MergedTable((2,), (cells[2],)),
        MergedTable((0, 1), (cells[0], Grouping([0, 0, 1]))),
    ]
    shares = generator.uniform(0.1, 1, 5).tolist()
    return MergedTables(COUNTED, tables, shares, running=[1, 3])


def dearest_edge(strategy, policy, budget):
    """Return the most that an edge costs at the scales of a budget, edge by edge."""
    scales = strategy.scales(policy, budget)
    worst = Fraction(0)
    for edge in all_edges(policy):
        ends = []
        for cell in edge:
            counts = np.zeros(12, dtype=np.int64)
            if cell != ABSENT:
                counts[cell] = 1
            ends.append(strategy.tables_of(counts))
        moved = np.abs(ends[0] - ends[1]).astype(object) ** budget.power
        assert not moved[scales.exact].any()
        cost = Fraction(int((moved * scales.rates.astype(object)).sum()), scales.unit)
        worst = max(worst, cost / Fraction(steps_along(policy, edge)) ** budget.power)
    return worst, strategy.cost(policy, scales)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("name", sorted(EVERY))
def test_the_price_of_running_totals_covers_every_listed_edge(name, power, generator):
    budget = Budget(Fraction(1, 3), power)
    worst, price = dearest_edge(strategy_of(generator), EVERY[name], budget)
    assert worst <= price <= budget.amount


@pytest.mark.parametrize("name", ["attribute", "far", "full"])
def test_totals_that_are_priced_as_if_edges_were_short_are_caught(
    name, generator, monkeypatch
):
    monkeypatch.setattr(
        merged_tables, "longest_moves", lambda policy: (1,) * policy.domain.ndim
    )
    cells = Grouping.single_cells(3)
    alone = MergedTables(COUNTED, [MergedTable((1,), (cells,))], [1.0], running=[0])
    worst, _ = dearest_edge(alone, EVERY[name], Budget(Fraction(1, 3), 1))
    assert worst > Fraction(1, 3)


def test_the_longest_move_is_that_of_the_listed_edges():
    for name, policy in EVERY.items():
        stated = longest_moves(policy)
        found = np.zeros(3, dtype=int)
        for edge in all_edges(policy):
            if ABSENT not in edge:
                first, second = (np.unravel_index(cell, SMALL.shape) for cell in edge)
                found = np.maximum(found, np.abs(np.subtract(first, second)))
        assert (found <= stated).all()
        if name in ("lines", "public", "attribute", "near", "far", "presence"):
            assert tuple(found) == stated


@pytest.mark.long
@pytest.mark.parametrize("name", ["lines", "near", "attribute", "public"])
def test_transcripts_with_running_totals_cost_at_most_what_was_granted(name):
    policy = EVERY[name]
    testimony, told = watched(policy, 1)
    assert any(step.result.strategy.running for step in testimony.measured)
    assert max(transcript_losses(told, policy)) <= 4
    assert audit_testimony(testimony) == []
    truth = told.cells.reshape(SMALL.shape)
    # The number of records is public, and stays what it is.
    moved = truth[::-1].copy()
    assert selectors_seen(testimony, truth) == selectors_seen(testimony, moved)


@pytest.mark.long
def test_half_the_price_of_a_total_is_seen_in_whole_transcripts(monkeypatch):
    genuine = MergedTables.worst_edge

    def one_of_several(self, weights, policy, power=1):
        price = genuine(self, weights, policy, power)
        return -(-price // 3) if self.running else price

    monkeypatch.setattr(MergedTables, "worst_edge", one_of_several)
    policy = EVERY["lines"]
    losses = [
        max(transcript_losses(watched(policy, seed)[1], policy)) for seed in range(4)
    ]
    assert max(losses) > 4


@pytest.mark.long
@pytest.mark.parametrize("name", ["add_remove", "presence", "full_absent"])
def test_nothing_is_totalled_where_presence_is_secret(name):
    testimony, _ = watched(POLICIES[name], 1)
    assert not any(step.result.strategy.running for step in testimony.measured)
