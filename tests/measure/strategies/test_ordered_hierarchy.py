"""Ordered hierarchies: exact cost, exact variance, bounds on the rest."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError, IntervalError
from blowfish_fast.measure.noise import Scales
from blowfish_fast.measure.strategies import OrderedHierarchy, ordered_hierarchy
from blowfish_fast.measure.strategies.hierarchy_plan import planned_hierarchy
from blowfish_fast.policies import AddRemove, Blocks, Full, Graph, Line, Threshold
from blowfish_fast.workloads import AllRanges, Identity, Linear, Ranges
from tests.measure.strategies.implicit_totals import assert_totals_equal_their_list
from tests.reference.policy_edges import worst_edge_cost
from tests.reference.spread import dense_spread

CELLS = 13
DOMAIN = Domain(CELLS)
POLICIES = {
    "line": Line(DOMAIN),
    "threshold": Threshold(DOMAIN, theta=4),
    "full": Full(DOMAIN),
    "blocks": Blocks(DOMAIN, [0, 0, 0, 0, 0, 1, 1, 1, 2, 3, 3, 3, 3]),
    "scattered": Blocks(DOMAIN, [0, 1, 0, 1, 0, 1, 2, 2, 2, 2, 3, 2, 3]),
    "ring": Graph(DOMAIN, [[cell, (cell + 1) % CELLS] for cell in range(CELLS)]),
    "add_remove": AddRemove(DOMAIN),
    "absent at the end": Graph(DOMAIN, [[0, 1], [1, 2], [4, 7], [11, -1], [12, -1]]),
    "no edges": Graph(DOMAIN, np.zeros((0, 2), dtype=int)),
}
EXACT_COST = ("line", "threshold", "full", "blocks", "add_remove", "no edges")


def by_hand(length, fan_out, borders, nodes, cells=CELLS):
    edges = np.append(np.arange(0, cells, length), cells)
    ones = np.ones(edges.size - 1)
    return OrderedHierarchy(
        edges, np.full(ones.size, fan_out), borders * ones, nodes * ones
    )


@pytest.mark.parametrize("name", POLICIES)
def test_the_cost_is_the_worst_edge(name):
    policy = POLICIES[name]
    for strategy in (planned_hierarchy(policy), by_hand(4, 3, 0.4, 0.2)):
        scales = strategy.scales(policy, Fraction(3, 10))
        cost = strategy.cost(policy, scales)
        worst = worst_edge_cost(strategy, policy, scales)
        assert worst <= cost <= Fraction(3, 10)
        if name in EXACT_COST:
            assert worst == cost
        if policy.has_moves or policy.has_bottom:
            assert cost > Fraction(3, 10) * Fraction(9999, 10000)


@pytest.mark.long
@pytest.mark.parametrize("cells", [2, 3, 7, 16, 23, 40])
@pytest.mark.parametrize("fan_out", [2, 3, 4, 16])
def test_o6_uniform_noise_spends_epsilon_on_the_worst_edge(cells, fan_out):
    domain = Domain(cells)
    for theta in range(1, cells + 1):
        policy = Threshold(domain, theta=theta)
        strategy = planned_hierarchy(policy, fan_out)
        scales = strategy.scales(policy, Fraction(1))
        worst = worst_edge_cost(strategy, policy, scales)
        assert worst == strategy.cost(policy, scales)
        # Rates are rounded down to 32 bits.
        assert 1 - Fraction(1, 2**24) < worst <= 1


@pytest.mark.long
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("few", [0, 8])
def test_spread_equals_dense_least_squares_or_bounds_it(
    name, few, generator, monkeypatch
):
    monkeypatch.setattr(ordered_hierarchy, "FEW_BLOCKS", few)
    policy = POLICIES[name]
    matrix = generator.integers(-2, 3, (10, CELLS)).astype(float)
    single, pairs = Buckets.single_cells(CELLS), Buckets(np.arange(0, 27, 2))
    forms = [
        Linear(DOMAIN, matrix).explicit_form(single),
        AllRanges(DOMAIN).explicit_form(single),
        Ranges.random(Domain(26), 40, rng=1).explicit_form(pairs),
    ]
    for strategy in (planned_hierarchy(policy), by_hand(5, 2, 0.4, 0.1)):
        for epsilon in (Fraction(1, 2), Fraction(12)):
            scales = strategy.scales(policy, epsilon)
            for form in forms:
                got = strategy.spread(form, scales)
                want = dense_spread(strategy, scales, form, CELLS)
                np.testing.assert_allclose(
                    got.variance, want.variance, rtol=2e-4, atol=1e-6
                )
                total = strategy.total_variance(form, scales)
                assert total == pytest.approx(float(got.variance.sum()))
                assert (got.square >= want.square * (1 - 1e-5) - 1e-6).all()
                assert (got.largest >= want.largest * (1 - 1e-5) - 1e-6).all()
                if strategy.blocks <= few:
                    # A few blocks are walked like any tree: nothing is bounded.
                    for one in ("square", "largest", "steps"):
                        known, exact = getattr(got, one), getattr(want, one)
                        np.testing.assert_allclose(known, exact, rtol=2e-4, atol=1e-6)


def test_bounds_on_the_spread_are_close(monkeypatch):
    monkeypatch.setattr(ordered_hierarchy, "FEW_BLOCKS", 0)
    strategy = planned_hierarchy(Threshold(DOMAIN, theta=4))
    scales = strategy.scales(Threshold(DOMAIN, theta=4), Fraction(1, 2))
    form = AllRanges(DOMAIN).explicit_form(Buckets.single_cells(CELLS))
    got, want = (
        strategy.spread(form, scales),
        dense_spread(strategy, scales, form, CELLS),
    )
    noisy = want.square > 1e-9
    assert (got.square[noisy] < 1.01 * want.square[noisy]).all()
    assert (got.largest[noisy] < 2 * want.largest[noisy]).all()


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("sizes", [[1] * 13, [1, 3, 1, 2, 1, 1, 5, 1, 1, 2, 1, 1, 4]])
def test_totals_of_implicit_workloads_equal_their_list(name, sizes):
    buckets = Buckets(np.append(0, np.cumsum(sizes)))
    domain = Domain(buckets.cells)
    strategy = planned_hierarchy(POLICIES[name])
    scales = strategy.scales(POLICIES[name], Fraction(1))
    assert_totals_equal_their_list(strategy, domain, buckets, scales)


@pytest.mark.parametrize("name", POLICIES)
def test_rows_without_noise_give_back_the_cells(name, generator):
    counts = generator.integers(0, 100, CELLS)
    strategy = planned_hierarchy(POLICIES[name])
    scales = strategy.scales(POLICIES[name], Fraction(1))
    np.testing.assert_allclose(strategy.infer(strategy.rows(counts), scales), counts)


@pytest.mark.parametrize("few", [0, 8])
def test_rows_too_noisy_to_measure_promise_nothing(few, monkeypatch):
    monkeypatch.setattr(ordered_hierarchy, "FEW_BLOCKS", few)
    strategy = by_hand(4, 2, 0.5, 0.1)
    nothing = np.zeros(strategy.trees.rows, dtype=np.int64)
    exact = np.zeros(strategy.trees.rows, dtype=bool)
    exact[3] = True
    scales = Scales(nothing, 1, exact)
    form = Ranges(DOMAIN, [0, 2], [13, 6]).explicit_form(Buckets.single_cells(CELLS))
    spread = strategy.spread(form, scales)
    assert spread.variance[0] == 0.0
    assert min(spread.variance[1], spread.square[1], spread.largest[1]) > 1e20
    noisy = nothing.copy()
    noisy[3] = 26
    assert strategy.infer(noisy, scales).sum() == pytest.approx(26)


def test_misfits_are_refused():
    strategy = by_hand(4, 2, 0.5, 0.1)
    scales = strategy.scales(Line(DOMAIN), Fraction(1))
    with pytest.raises(IntervalError, match="explicit_form"):
        strategy.spread(Identity(DOMAIN).form(Buckets.single_cells(CELLS)), scales)
    with pytest.raises(DomainError, match="5 counts"):
        strategy.rows(np.zeros(5, dtype=np.int64))


def test_a_strategy_survives_packing():
    strategy = by_hand(4, 3, 0.5, 0.1)
    again = OrderedHierarchy.unpack(strategy.pack())
    counts = np.arange(CELLS)
    assert (again.rows(counts) == strategy.rows(counts)).all()
    assert (again.weights() == strategy.weights()).all()
