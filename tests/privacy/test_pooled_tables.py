"""The price of pairs that are measured together: whole transcripts, and bugs."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit.invariants import audit_testimony
from blowfish_fast.audit.witness import Replay, watch
from blowfish_fast.errors import BudgetError
from blowfish_fast.measure.handle import Account
from blowfish_fast.mechanisms import chosen_tables, chosen_tables_run
from blowfish_fast.mechanisms.chosen_tables_run import TablesRun
from tests.privacy.test_chosen_tables import (
    POLICIES,
    SMALL,
    EachAtTheWholePrice,
    transcript_losses,
    watched,
)


@pytest.fixture
def pooling(monkeypatch):
    """Let every release pool its pairs, in epsilon too, where losses are finite."""
    monkeypatch.setattr(bf.ChosenTables, "_pools", lambda self, records, budget: True)


@pytest.mark.long
@pytest.mark.parametrize("name", ["add_remove", "full", "presence"])
def test_transcripts_with_pooled_tables_cost_no_more_than_was_granted(name, pooling):
    policy = POLICIES[name]
    for seed in range(2):
        testimony, told = watched(policy, seed)
        assert not testimony.selected
        pooled = testimony.measured[-1].result.strategy.tables
        assert [table.axes for table in pooled] == [(0, 1), (0, 2), (1, 2)]
        # The fit again, to the last bit, from what the handle gave alone.
        assert audit_testimony(testimony) == []
        assert 0.5 < max(transcript_losses(told, policy)) <= 4


@pytest.mark.parametrize("name", ["add_remove", "full"])
def test_pooled_tables_in_rho_cost_what_is_left_on_the_worst_edge(name):
    policy = POLICIES[name]
    asked = bf.workloads.Tables(SMALL, ways=2)
    mechanism = bf.ChosenTables(policy, asked, choose="data", rho=1)
    mechanism._pools = lambda records, budget: True
    counts = np.random.default_rng(1).integers(0, 90, SMALL.shape)
    testimony = watch(mechanism, bf.Histogram(SMALL, counts), 1)
    step = testimony.measured[-1]
    cost = step.result.strategy.cost(policy.unconstrained, step.result.scales)
    assert 0.99 * step.charged.amount < cost <= step.charged.amount


class EachPooledAlone(EachAtTheWholePrice):
    """A planted bug: every pooled table has the noise of one that is alone."""

    paid_once = "screen"


def test_pooled_tables_that_are_paid_once_for_all_are_refused(monkeypatch, pooling):
    monkeypatch.setattr(chosen_tables, "TablesRun", EachPooledAlone)
    with pytest.raises(BudgetError):
        watched(POLICIES["add_remove"], 1)


class PoolIsAsked(Exception):
    """Everything that a pool asks for is known: nothing has to be handed out."""


class UntilThePool(Replay):
    """A handle with counts of its own that stops where pairs are measured."""

    def measure(self, strategy, *, budget):
        pairs = [table.axes for table in strategy.tables if len(table.axes) == 2]
        if pairs:
            raise PoolIsAsked(pairs)
        return super().measure(strategy, budget=budget)


def pairs_pooled(testimony, counts):
    """Return which pairs a recipe pools on these counts, all else published."""
    mechanism = testimony.mechanism
    own = mechanism._counts(bf.Histogram(SMALL, counts))
    handle = mechanism._handle(own, Account(mechanism.budget), None)
    try:
        mechanism._run(UntilThePool.over(handle, noted=iter(testimony.steps)))
    except PoolIsAsked as asked:
        return asked.args[0]
    return []


def test_a_pool_of_pairs_that_truly_depend_is_caught(monkeypatch, pooling):
    genuine = TablesRun._pairs_of_several

    def dependent(self):
        counted, counts = self.plan.counted, self.private._counts
        pairs = []
        for pair in genuine(self):
            table = counted.table(counts, pair)
            even = table.sum(axis=1)[:, None] * table.sum(axis=0) / table.sum()
            if np.abs(table - even).sum() > 100:
                pairs.append(pair)
        return pairs

    testimony, told = watched(POLICIES["add_remove"], 1)
    truth = told.cells.reshape(SMALL.shape)
    moved = np.full(SMALL.shape, 90)
    assert pairs_pooled(testimony, truth) == [(0, 1), (0, 2), (1, 2)]
    assert pairs_pooled(testimony, moved) == [(0, 1), (0, 2), (1, 2)]
    monkeypatch.setattr(chosen_tables_run.TablesRun, "_pairs_of_several", dependent)
    assert pairs_pooled(testimony, truth) != pairs_pooled(testimony, moved)
