"""Pairs that are measured together, where each depends too little to be chosen."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.tables.merged_tables import Grouping, MergedTable
from blowfish_fast.mechanisms import chosen_tables
from blowfish_fast.mechanisms.tables.pooled_tables import PooledPair

SURVEY = bf.WideDomain.product(
    *(bf.Domain(3, names=[f"item {number}"]) for number in range(10))
)
ASKED = bf.workloads.Tables(SURVEY, ways=2)
ADD_REMOVE = bf.policies.AddRemove(SURVEY)


@pytest.fixture(name="people", scope="module")
def answers_that_all_depend_on_one_thing():
    source = np.random.default_rng(3)
    able = source.normal(0, 0.9, 2500)
    cells = np.array(
        [np.digitize(able + source.normal(0, 1, 2500), [-0.5, 0.6]) for _ in range(10)]
    )
    return {f"item {number}": own for number, own in enumerate(cells)}


def mechanism(**more):
    budget = more if {"epsilon", "rho"} & {*more} else {"rho": "0.0015", **more}
    return bf.ChosenTables(ADD_REMOVE, ASKED, choose="data", **budget)


def misplaced(out, people):
    shares = []
    for pair in combinations(people, 2):
        true = np.zeros((3, 3))
        np.add.at(true, tuple(people[name] for name in pair), 1)
        estimate = out.fitted(*pair).estimate
        shares.append(np.abs(estimate - true).sum() / (2 * true.sum()))
    return float(np.mean(shares))


@pytest.mark.long
def test_many_weak_pairs_are_met_better_together_than_by_choice(people, monkeypatch):
    mech = mechanism(records=2500)
    data = bf.TableCounts.from_records(mech, people)
    pooled = mech.release(data, rng=1)
    assert pooled.measured["step"].tolist().count("screen") == 45
    assert "chosen" not in pooled.measured["step"].tolist()
    monkeypatch.setattr(chosen_tables, "POOL_BOUND", 0.0)
    by_choice = mech.release(data, rng=1)
    assert "screen" not in by_choice.measured["step"].tolist()
    assert misplaced(pooled, people) < 0.8 * misplaced(by_choice, people)


@pytest.mark.long
def test_pooled_pairs_have_intervals_of_the_truth(people):
    mech = mechanism(rho="0.0025", records=2500)
    out = mech.release(bf.TableCounts.from_records(mech, people), rng=2)
    assert "item 0 x item 1" in out.measured["table"].tolist()
    held = []
    for first, second in combinations(people, 2):
        shown = out.screen(first, second)
        total = shown.intervals(bf.workloads.Total(shown.domain), 0.95, of="truth")
        held.append(total[0, 0] <= 2500 <= total[0, 1])
    assert np.mean(held) > 0.85


def test_public_numbers_say_whether_pairs_are_pooled():
    mech = mechanism()
    share = mech.planned_misplaced(2500)
    assert 0.08 < share < 0.15
    assert mech._pools(2500, mech.budget)
    assert not mech._pools(2500 * share / 0.16, mech.budget)
    assert not mech._pools(2500 * share / 0.07, mech.budget)
    for other in (
        mechanism(rounds=5),
        mechanism(always=[("item 0", "item 1")]),
        mechanism(epsilon=1),
    ):
        records = 2500 * other.planned_misplaced(2500) / share
        assert not other._pools(records, other.budget)
    # So many tables can be chosen that they join all attributes.
    ages = bf.WideDomain.product(*(bf.Domain(20, names=[name]) for name in "abcdef"))
    joined = bf.ChosenTables(
        bf.policies.AddRemove(ages),
        bf.workloads.Tables(ages, ways=2),
        choose="data",
        rho="0.1",
    )
    records = 2500 * joined.planned_misplaced(2500) / share
    assert joined._rules.split(records, joined.budget)[1] == 20
    assert not joined._pools(records, joined.budget)
    alone = bf.policies.TablePolicy(SURVEY, {})
    screened = bf.ChosenTables(alone, ASKED, choose="data", rho="0.0015")
    records = 2500 * screened.planned_misplaced(2500) / share
    assert not screened._pools(records, screened.budget)


def test_noise_alone_leaves_the_model_where_it_is():
    three = Grouping.single_cells(3)
    table = MergedTable((0, 1), (three, three))
    expected = np.full((3, 3), 40.0)
    rows = np.array([[30], [0], [-30]])
    pair = PooledPair(table, (expected + rows).astype(np.int64), variance=9.0)
    # Rows that differ are no dependence.
    evidence, target = pair.beyond_noise(expected)
    assert evidence == pytest.approx(-36.0)
    np.testing.assert_allclose(target, expected)
    same = PooledPair(table, expected.astype(np.int64), variance=0.0)
    assert same.beyond_noise(expected)[0] == 0.0


def test_attributes_that_merge_to_one_cell_leave_nothing_to_pool(monkeypatch):
    monkeypatch.setattr(bf.ChosenTables, "_pools", lambda self, records, budget: True)
    mech = mechanism(rho="0.000001", records=2500)
    nobody = {f"item {number}": np.zeros(0, dtype=int) for number in range(10)}
    out = mech.release(bf.TableCounts.from_records(mech, nobody), rng=1)
    assert "screen" not in out.measured["step"].tolist()
    assert out.fitted("item 0", "item 1").estimate.shape == (3, 3)
