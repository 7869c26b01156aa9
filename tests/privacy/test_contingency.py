"""The price of tables: every edge listed, and a planted bug that is caught."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit.grey_box import edge_cost, price_together
from blowfish_fast.audit.plan import LONG, AuditTask
from blowfish_fast.audit.walk import examine
from blowfish_fast.measure.strategies.tables import table_strategy
from blowfish_fast.measure.strategies.tables.table_strategy import (
    TableStrategy,
    edge_kinds,
    heaviest_edge,
    is_exact,
)
from tests.reference.table_algebra import table_matrix, worst_edge

SIZES = (3, 2, 4, 2)
NAMES = ["a", "b", "c", "d"]
SMALL = bf.Domain(SIZES, names=NAMES)
PARTS = [SMALL.marginal(name) for name in NAMES]
TABLES = tuple(one for k in range(4) for one in combinations(range(4), k))

P = bf.policies
STILL = [P.Graph(one, np.zeros((0, 2), dtype=int)) for one in PARTS]
LISTED = {
    "add_remove": (P.AddRemove(SMALL), P.AddRemove(SMALL)),
    "full": (P.Full(SMALL), P.TablePolicy(SMALL)),
    "attribute": (P.Attribute(SMALL), P.TablePolicy(SMALL, {})),
    "public": (
        P.Product(P.Full(PARTS[0]), STILL[1], P.Line(PARTS[2]), STILL[3]),
        P.TablePolicy(SMALL, {"b": STILL[1], "c": P.Line(PARTS[2]), "d": STILL[3]}),
    ),
    "lines": (
        P.Product(*(P.Line(one) for one in PARTS)),
        P.TablePolicy(SMALL, dict(zip(NAMES, map(P.Line, PARTS), strict=True))),
    ),
    "threshold": (P.Threshold(SMALL, theta=2), P.Threshold(SMALL, theta=2)),
}


@pytest.mark.parametrize("name", sorted(LISTED))
def test_the_worst_edge_is_the_heaviest_of_all_that_are_listed(name, generator):
    listed, stated = LISTED[name]
    for _ in range(5):
        weights = generator.integers(0, 9, len(TABLES))
        expected = worst_edge(listed, SIZES, TABLES, weights)
        found = heaviest_edge(weights.tolist(), TABLES, edge_kinds(stated))
        assert found == expected


def test_absence_with_moves_takes_the_heavier_of_both(generator):
    pairs = np.concatenate([np.concatenate(list(P.Attribute(SMALL).edges()))])
    absent = np.column_stack([np.arange(SMALL.size), np.full(SMALL.size, -1)])
    graph = P.Graph(SMALL, np.concatenate([pairs, absent]))
    weights = generator.integers(0, 9, len(TABLES))
    found = heaviest_edge(weights.tolist(), TABLES, edge_kinds(graph))
    assert found >= worst_edge(graph, SIZES, TABLES, weights)


@pytest.mark.parametrize("name", sorted(LISTED))
def test_a_table_is_exact_iff_no_edge_moves_it(name):
    listed, stated = LISTED[name]
    kinds = edge_kinds(stated)
    for table in TABLES:
        still = worst_edge(listed, SIZES, [table], [1]) == 0
        assert is_exact(table, kinds) == still


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["1", "0.001", "7.3"])
@pytest.mark.parametrize("name", sorted(LISTED))
def test_rates_cost_at_most_epsilon_on_every_edge(name, epsilon):
    listed, stated = LISTED[name]
    asked = bf.workloads.Tables(SMALL, ways=2)
    mechanism = bf.Contingency(stated, asked, epsilon=epsilon)
    strategy = mechanism._strategy
    scales = strategy.scales(stated, Fraction(epsilon))
    rates = [int(scales.rates[start]) for start in strategy.starts[:-1]]
    worst = worst_edge(listed, SIZES, strategy.tables, rates)
    assert Fraction(worst) <= Fraction(epsilon) * scales.unit
    assert strategy.cost(stated, scales) == Fraction(int(worst), scales.unit)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(LISTED))
def test_the_exact_privacy_loss_of_a_release_stays_within_epsilon(name):
    # The loss of discrete Laplace rows on an edge is at most the sum of |move| / b.
    listed, stated = LISTED[name]
    asked = bf.workloads.Tables(SMALL, ways=2)
    mechanism = bf.Contingency(stated, asked, epsilon=0.5)
    measurement = mechanism._dry_run.measurements[0]
    strategy, scales = measurement.strategy, measurement.scales
    rows = np.concatenate([table_matrix(SIZES, one) for one in strategy.tables])
    for chunk in listed.edges():
        for one, two in chunk:
            moved = np.abs(rows[:, one] - (rows[:, two] if two >= 0 else 0))
            assert not moved[scales.exact].any()
            noisy = scales.measured
            assert (moved[noisy] / scales.widths[noisy]).sum() <= 0.5 * (1 + 1e-12)


def test_a_planted_bug_that_forgets_one_cell_of_a_move_is_caught(monkeypatch):
    def halved(weights, tables, kinds, power=1):
        return -(-heaviest_edge(weights, tables, kinds, power) // 2)

    asked = bf.workloads.Tables(SMALL, ways=2)
    policy = P.Full(SMALL)
    strategy = bf.Contingency(policy, asked, epsilon=1)._strategy
    monkeypatch.setattr(table_strategy, "heaviest_edge", halved)
    scales = strategy.scales(policy, Fraction(1))
    rates = [int(scales.rates[start]) for start in strategy.starts[:-1]]
    assert worst_edge(policy, SIZES, strategy.tables, rates) > 1.9 * scales.unit


def test_scales_that_cost_too_much_are_refused_before_a_draw(monkeypatch):
    asked = bf.workloads.Tables(SMALL, ways=2)
    mechanism = bf.Contingency(P.Full(SMALL), asked, epsilon=1)
    right = TableStrategy.scales

    def too_little_noise(self, policy, budget):
        scales = right(self, policy, budget)
        return scales._replace(rates=2 * scales.rates)

    monkeypatch.setattr(TableStrategy, "scales", too_little_noise)
    counts = np.zeros(SIZES, dtype=int)
    with pytest.raises(bf.BlowfishError, match="its scales are wrong"):
        mechanism.release(bf.Histogram(SMALL, counts), rng=1)


def test_a_policy_over_other_attributes_or_with_constraints_is_refused():
    strategy = TableStrategy(SIZES, [(0, 1)], [1.0])
    with pytest.raises(bf.BlowfishError, match="attributes of \\(3, 2, 4, 2\\) cells"):
        strategy.exact_rows(P.Full(bf.Domain((3, 2))))
    known = P.CountConstraints(SMALL, [np.ones(SMALL.size, dtype=bool)])
    constrained = P.Full(SMALL).with_constraints(known)
    with pytest.raises(bf.BlowfishError, match="move one at a time"):
        bf.Contingency(constrained, bf.workloads.Tables(SMALL, ways=1), epsilon=1)


FAR = [Fraction(1), Fraction(2), Fraction(7, 2), Fraction(4)]
STATED = {"attribute": (P.Attribute(SMALL), {}), "full": (P.Full(SMALL), None)}


def with_presence(stated, length):
    """Return both ways to state the same: in the table, and around its moves."""
    around = P.WithAbsent(P.TablePolicy(SMALL, stated), length)
    return P.TablePolicy(SMALL, stated, presence=length), around


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(STATED))
@pytest.mark.parametrize("length", FAR)
def test_presence_at_a_distance_may_cost_as_many_edges(length, name, generator):
    moves, stated = STATED[name]
    for policy in with_presence(stated, length):
        for _ in range(5):
            weights = generator.integers(0, 9, len(TABLES))
            away = worst_edge(P.AddRemove(SMALL), SIZES, TABLES, weights)
            along = worst_edge(moves, SIZES, TABLES, weights)
            found = heaviest_edge(weights.tolist(), TABLES, edge_kinds(policy))
            assert found == max(math.ceil(Fraction(int(away)) / length), along)
        assert not is_exact((), edge_kinds(policy))


@pytest.mark.long
@pytest.mark.parametrize("budget", [{"epsilon": "1/2"}, {"rho": "1/8"}])
@pytest.mark.parametrize("name", sorted(STATED))
@pytest.mark.parametrize("length", FAR)
def test_only_edges_to_absent_may_cost_more_and_no_more_than_stated(
    length, name, budget
):
    # The price of an edge is the sum of |move|^power times the rate, in whole numbers.
    moves, stated = STATED[name]
    asked = bf.workloads.Tables(SMALL, ways=2)
    plans = []
    for policy in with_presence(stated, length):
        mechanism = bf.Contingency(policy, asked, **budget)
        amount, power = mechanism.budget.amount, mechanism.budget.power
        (kept,) = mechanism._dry_run.measurements
        edges = {
            joined: max(
                edge_cost(kept, int(one), int(two))
                for chunk in edges.edges()
                for one, two in chunk
            )
            for joined, edges in (("cells", moves), ("absent", P.AddRemove(SMALL)))
        }
        assert edges["cells"] <= amount
        assert edges["absent"] <= amount * length**power
        # One of the two is used up, so no noise is added for nothing.
        used = max(edges["cells"], edges["absent"] / length**power)
        assert used > Fraction(9999, 10000) * amount
        plans.append(mechanism.expected_error())
    np.testing.assert_array_equal(*plans)


def test_presence_forgotten_in_the_length_of_moves_is_caught(monkeypatch):
    # Planted bug: moves are taken to be as far as "absent".
    def all_far(policy):
        return tuple(one._replace(length=Fraction(4)) for one in edge_kinds(policy))

    monkeypatch.setattr(table_strategy, "edge_kinds", all_far)
    policy, _ = with_presence({}, 4)
    strategy = TableStrategy(SIZES, TABLES, [1.0] * len(TABLES))
    scales = strategy.scales(policy, Fraction(1))
    rates = [int(scales.rates[start]) for start in strategy.starts[:-1]]
    assert worst_edge(P.Attribute(SMALL), SIZES, TABLES, rates) > 2 * scales.unit


def test_the_audit_prices_all_tables_that_an_edge_moves():
    mechanism, data = bf.Contingency.example(SMALL, P.Full(SMALL), Fraction(1))
    (kept,) = mechanism.release(data, rng=1).measurements
    moved = edge_cost(kept, 0, SMALL.size - 1)
    assert Fraction(999, 1000) < moved <= 1
    # One attribute alone may leave tables as they are.
    assert 0 < edge_cost(kept, 0, 1) <= moved
    # Planted bug: half the noise.
    louder = kept.with_scales(kept.scales._replace(rates=2 * kept.scales.rates))
    assert edge_cost(louder, 0, SMALL.size - 1) > 1


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(LISTED))
def test_the_audit_sees_noise_that_is_too_small_by_a_thousandth(name):
    listed, stated = LISTED[name]
    mechanism, data = bf.Contingency.example(SMALL, stated, Fraction(1))
    (kept,) = mechanism.release(data, rng=1).measurements
    fair = price_together(kept, listed)
    assert Fraction(9999, 10000) < fair <= 1
    rates = -(-1001 * kept.scales.rates // 1000)
    louder = kept.with_scales(kept.scales._replace(rates=rates))
    assert price_together(louder, listed) > 1


@pytest.mark.long
@pytest.mark.parametrize("shape", [4, (2, 2)])
def test_an_excess_of_five_percent_planted_in_the_noise_of_tables_is_seen(shape):
    plan = LONG._replace(trials=4)
    task = AuditTask("power", "contingency", shape, "add_remove")
    (found,) = examine(task, plan, bf.Ledger)
    assert found.passed
    assert (found.check, found.events, found.found) == ("power", 4, 1.0)
