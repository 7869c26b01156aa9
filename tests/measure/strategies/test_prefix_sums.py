"""Running totals: noise by the longest edge, closed forms of the spread."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError, IntervalError
from blowfish_fast.measure.noise import Scales
from blowfish_fast.measure.strategies import PrefixSums
from blowfish_fast.measure.strategies.prefix_sums import LineReach
from blowfish_fast.policies import AddRemove, Blocks, Full, Graph, Line, Threshold
from blowfish_fast.workloads import AllRanges, Identity, Linear, Ranges
from tests.measure.strategies.implicit_totals import assert_totals_equal_their_list
from tests.reference.policy_edges import worst_edge_cost
from tests.reference.spread import dense_spread

CELLS = 9
DOMAIN = Domain(CELLS)
POLICIES = {
    "line": (Line(DOMAIN), 1),
    "threshold": (Threshold(DOMAIN, theta=4), 4),
    "full": (Full(DOMAIN), 8),
    "long threshold": (Threshold(DOMAIN, theta=50), 8),
    "blocks": (Blocks(DOMAIN, [0, 0, 0, 1, 1, 1, 1, 2, 3]), 3),
    "scattered blocks": (Blocks(DOMAIN, [0, 1, 0, 1, 0, 1, 2, 2, 2]), 4),
    "graph": (Graph(DOMAIN, [[0, 5], [2, 3], [7, 8]]), 5),
    "add_remove": (AddRemove(DOMAIN), 9),
    "graph to absent": (Graph(DOMAIN, [[0, 1], [2, 8], [6, -1], [7, -1]]), 6),
    "no edges": (Graph(DOMAIN, np.zeros((0, 2), dtype=int)), 0),
}


@pytest.mark.parametrize("name", POLICIES)
def test_noise_is_the_longest_edge_over_epsilon(name):
    policy, longest = POLICIES[name]
    strategy = PrefixSums(CELLS)
    scales = strategy.scales(policy, Fraction(1, 2))
    cost = strategy.cost(policy, scales)
    assert cost == worst_edge_cost(strategy, policy, scales)
    assert cost <= Fraction(1, 2)
    if longest:
        measured = scales.rates[scales.measured]
        assert (measured == measured[0]).all()
        rate = Fraction(int(measured[0]), scales.unit)
        assert float(rate * longest) == pytest.approx(0.5, rel=1e-8)
    else:
        assert scales.exact.all()


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("line", [8]),
        ("full", [8]),
        ("blocks", [2, 6, 7, 8]),
        ("scattered blocks", [5, 8]),
        ("graph", [5, 6, 8]),
        ("add_remove", []),
        ("graph to absent", [1]),
    ],
)
def test_totals_that_no_edge_changes_are_exact(name, ends):
    policy, _ = POLICIES[name]
    exact = PrefixSums(CELLS).exact_rows(policy)
    assert np.flatnonzero(exact).tolist() == ends
    assert (LineReach(policy).settled == exact).all()


def test_a_policy_without_a_list_of_neighbours_costs_its_longest_edge(monkeypatch):
    policy = Threshold(DOMAIN, theta=4)
    monkeypatch.setattr(Threshold, "bandwidth", lambda self, order=None: None)
    strategy = PrefixSums(CELLS)
    scales = strategy.scales(policy, Fraction(1))
    assert worst_edge_cost(strategy, policy, scales) == strategy.cost(policy, scales)
    assert np.flatnonzero(scales.exact).tolist() == [8]


@pytest.mark.parametrize("name", POLICIES)
def test_spread_and_estimate_equal_dense_least_squares(name, generator):
    policy, _ = POLICIES[name]
    strategy = PrefixSums(CELLS)
    scales = strategy.scales(policy, Fraction(1, 3))
    matrix = generator.integers(-2, 3, (12, CELLS)).astype(float)
    single, pairs = Buckets.single_cells(CELLS), Buckets(np.arange(0, 19, 2))
    forms = [
        Linear(DOMAIN, matrix).explicit_form(single),
        AllRanges(DOMAIN).explicit_form(single),
        AllRanges(Domain(18)).explicit_form(pairs),
        Identity(Domain(18)).explicit_form(pairs),
    ]
    for form in forms:
        got = strategy.spread(form, scales)
        want = dense_spread(strategy, scales, form, CELLS)
        np.testing.assert_allclose(got.variance, want.variance, atol=1e-9)
        np.testing.assert_allclose(got.square, want.square, atol=1e-9)
        np.testing.assert_allclose(got.largest, want.largest, atol=1e-9)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("edges", [range(10), [0, 1, 4, 5, 7, 8, 9, 14, 15, 20]])
def test_totals_of_implicit_workloads_equal_their_list(name, edges):
    buckets = Buckets(np.array(edges))
    domain = Domain(buckets.cells)
    strategy = PrefixSums(CELLS)
    scales = strategy.scales(POLICIES[name][0], Fraction(1))
    assert_totals_equal_their_list(strategy, domain, buckets, scales, near=1e-12)


def test_o4_ranges_cost_four_and_prefixes_two():
    # The continuous law is the limit of small epsilon.
    strategy = PrefixSums(CELLS)
    epsilon = Fraction(1, 1000)
    scales = strategy.scales(Line(DOMAIN), epsilon)
    asked = Ranges(DOMAIN, [0, 2, 3, 0], [4, 6, 9, 9])
    form = asked.explicit_form(Buckets.single_cells(CELLS))
    variance = strategy.spread(form, scales).variance * float(epsilon) ** 2
    assert variance == pytest.approx([2, 4, 2, 0], rel=1e-5)


def test_rows_without_noise_give_back_the_cells(generator):
    counts = generator.integers(0, 100, CELLS)
    strategy = PrefixSums(CELLS)
    scales = strategy.scales(Line(DOMAIN), Fraction(1))
    assert (strategy.infer(strategy.rows(counts), scales) == counts).all()


def test_rows_too_noisy_to_measure_are_interpolated_and_promise_nothing():
    strategy = PrefixSums(CELLS)
    exact = np.zeros(CELLS, dtype=bool)
    exact[[2, 8]] = True
    scales = Scales(np.zeros(CELLS, dtype=np.int64), 1, exact)
    noisy = np.zeros(CELLS, dtype=np.int64)
    noisy[[2, 8]] = 6, 18
    np.testing.assert_allclose(strategy.infer(noisy, scales), [2.0] * 9)
    form = Ranges(DOMAIN, [0, 0], [3, 4]).explicit_form(Buckets.single_cells(CELLS))
    spread = strategy.spread(form, scales)
    assert spread.variance[0] == 0.0
    assert spread.variance[1] > 1e50
    assert spread.square[1] > 1e50


def test_misfits_are_refused():
    strategy = PrefixSums(4)
    scales = strategy.scales(AddRemove(Domain(4)), Fraction(1))
    with pytest.raises(IntervalError, match="explicit_form"):
        strategy.spread(Identity(Domain(4)).form(Buckets.single_cells(4)), scales)
    with pytest.raises(DomainError, match="5 counts"):
        strategy.rows(np.zeros(5, dtype=np.int64))


def test_a_strategy_survives_packing():
    assert PrefixSums.unpack(PrefixSums(9).pack()).cells == 9


def test_half_widths_need_listed_queries():
    strategy = PrefixSums(CELLS)
    scales = strategy.scales(Line(DOMAIN), Fraction(1))
    form = Identity(DOMAIN).form(Buckets.single_cells(CELLS))
    with pytest.raises(IntervalError, match="list the queries first"):
        strategy.half_widths(form, scales, 0.05)
