"""Independent noise on cells: scales, inference and closed forms of the spread."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import IntervalError, SizeError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.linear_strategy import LinearStrategy
from blowfish_fast.measure.strategies import Cells
from blowfish_fast.measure.strategies import cells as cells_module
from blowfish_fast.policies import AddRemove, Blocks, Full, Graph, Line
from blowfish_fast.workloads import AllRanges, Identity, Linear, Ranges, Total
from tests.reference.spread import assert_same_spread, dense_spread

from .implicit_totals import assert_totals_equal_their_list


@pytest.mark.parametrize(
    ("policy", "rate"), [(AddRemove, Fraction(1, 2)), (Full, Fraction(1, 4))]
)
def test_noise_is_epsilon_over_one_or_two_cells(policy, rate):
    cells, over = Cells(4), policy(Domain(4))
    scales = cells.scales(over, Fraction(1, 2))
    assert Fraction(int(scales.rates[0]), scales.unit) == rate
    assert cells.cost(over, scales) == Fraction(1, 2)
    assert scales.exact.tolist() == [False] * 4 + [policy is Full]


@pytest.mark.parametrize("policy", [AddRemove, Full])
def test_spread_and_estimate_equal_dense_least_squares(policy, generator):
    domain = Domain(7)
    strategy = Cells(7)
    scales = strategy.scales(policy(domain), Fraction(1, 3))
    matrix = generator.integers(-2, 3, (12, 7)).astype(float)
    buckets = Buckets.single_cells(7)
    for workload in (Linear(domain, matrix), Ranges.random(domain, 20, rng=1)):
        form = workload.explicit_form(buckets)
        got = strategy.spread(form, scales)
        want = dense_spread(strategy, scales, form, 7)
        assert_same_spread(got, want)


@pytest.mark.parametrize("policy", [AddRemove, Full])
@pytest.mark.parametrize("edges", [[0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 4, 5, 7]])
def test_totals_of_implicit_workloads_equal_their_list(policy, edges):
    domain, buckets = Domain(7), Buckets(np.array(edges))
    strategy = Cells(buckets.count)
    scales = strategy.scales(policy(domain).project(buckets), Fraction(1))
    assert_totals_equal_their_list(strategy, domain, buckets, scales, near=1e-12)


def test_all_ranges_have_the_known_total():
    cells, domain = 40, Domain(40)
    form = AllRanges(domain).form(Buckets.single_cells(cells))
    unbounded = Cells(cells).scales(AddRemove(domain), Fraction(1))
    variance = unbounded.variances[0]
    assert Cells(cells).total_variance(form, unbounded) == pytest.approx(
        variance * cells * (cells + 1) * (cells + 2) / 6
    )
    bounded = Cells(cells).scales(Full(domain), Fraction(1))
    variance = bounded.variances[0]
    assert Cells(cells).total_variance(form, bounded) == pytest.approx(
        variance * (cells - 1) * (cells + 1) * (cells + 2) / 12
    )


def test_one_cell_is_exact_when_its_total_is_public():
    strategy = Cells(1)
    scales = strategy.scales(Full(Domain(1)), Fraction(1))
    assert strategy.infer(np.array([5, 5]), scales).tolist() == [5.0]
    assert strategy.cost(Full(Domain(1)), scales) == 0


def test_implicit_forms_must_be_listed_before_their_spread():
    strategy = Cells(4)
    scales = strategy.scales(AddRemove(Domain(4)), Fraction(1))
    with pytest.raises(IntervalError, match="explicit_form"):
        strategy.spread(Identity(Domain(4)).form(Buckets.single_cells(4)), scales)


def test_a_strategy_survives_packing():
    assert Cells.unpack(Cells(9).pack()).cells == 9


def test_parts_with_public_totals_equal_dense_least_squares(generator):
    from blowfish_fast.policies import Blocks

    domain = Domain(9)
    for labels in ([0, 0, 0, 1, 1, 2, 3, 3, 3], [0, 1, 0, 2, 1, 0, 2, 1, 3]):
        policy = Blocks(domain, labels)
        strategy = Cells.under(policy)
        scales = strategy.scales(policy, Fraction(1, 2))
        buckets = Buckets.single_cells(9)
        matrix = generator.integers(-2, 3, (12, 9)).astype(float)
        for workload in (Linear(domain, matrix), Ranges.random(domain, 20, rng=1)):
            form = workload.explicit_form(buckets)
            got = strategy.spread(form, scales)
            want = dense_spread(strategy, scales, form, 9)
            np.testing.assert_allclose(got.variance, want.variance, atol=1e-6)
            np.testing.assert_allclose(got.square, want.square, atol=1e-6)
            # Every total is public, so what is left of each coefficient is known.
            np.testing.assert_allclose(got.largest, want.largest, atol=1e-6)
        for workload in (Identity(domain), Total(domain)):
            total = strategy.total_variance(workload.form(buckets), scales)
            listed = strategy.spread(workload.explicit_form(buckets), scales)
            assert total == pytest.approx(listed.variance.sum(), abs=1e-9)
        counts = generator.integers(0, 50, 9)
        noisy = strategy.published(
            strategy.rows(counts), np.arange(scales.rates.size), scales
        )
        estimate = strategy.infer(noisy, scales)
        for part in range(4):
            inside = np.array(labels) == part
            assert estimate[inside].sum() == pytest.approx(counts[inside].sum())
        assert (Cells.unpack(strategy.pack()).parts == strategy.parts).all()


@pytest.mark.parametrize(
    "policy",
    [
        Full(Domain(6)),
        Line(Domain(6)),
        AddRemove(Domain(6)),
        Blocks(Domain(6), [0, 0, 1, 1, 2, 2]),
        Blocks(Domain(6), [0, 1, 0, 1, 2, 2]),
        Blocks(Domain(6), [0, 1, 2, 3, 4, 5]),
        Graph(Domain(6), [[0, 1], [2, -1], [4, 5]]),
    ],
    ids=lambda policy: policy.kind,
)
@pytest.mark.parametrize(
    "parts",
    [None, [0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1], [0, 1, 2, 3, 4, 5], [0] * 6],
    ids=["one", "pairs", "four", "single", "all"],
)
def test_exact_rows_are_those_that_no_edge_of_the_policy_at_hand_moves(policy, parts):
    strategy = Cells(6, None if parts is None else np.array(parts))
    exact = strategy.exact_rows(policy)
    moved = np.zeros(exact.size, dtype=bool)
    for edge in np.concatenate([*policy.edges(), np.empty((0, 2), np.int64)]):
        counts = np.zeros((2, 7), dtype=np.int64)
        counts[[0, 1], edge] = 1
        moved |= strategy.rows(counts[0, :6]) != strategy.rows(counts[1, :6])
    assert not (exact & moved).any()
    # Totals that nothing moves are published; cells of larger parts are not.
    assert (exact[6:] == ~moved[6:]).all()


def test_cells_that_were_not_measured_promise_nothing():
    strategy, policy = Cells(4), Full(Domain(4))
    scales = strategy.scales(policy, Fraction(1, 10**14))
    assert not scales.measured.any()
    form = Identity(Domain(4)).explicit_form(Buckets.single_cells(4))
    assert (strategy.half_widths(form, scales, 0.05) > 1e20).all()
    total = Total(Domain(4)).explicit_form(Buckets.single_cells(4))
    assert strategy.half_widths(total, scales, 0.05).tolist() == [0.0]


def test_half_widths_need_listed_queries():
    strategy = Cells(4)
    scales = strategy.scales(AddRemove(Domain(4)), Fraction(1))
    form = Identity(Domain(4)).form(Buckets.single_cells(4))
    with pytest.raises(IntervalError, match="list the queries first"):
        strategy.half_widths(form, scales, 0.05)


def test_a_strategy_that_states_no_law_has_no_spread():
    class Unstated(Cells):
        _spread = LinearStrategy._spread

    strategy = Unstated(4)
    scales = strategy.scales(AddRemove(Domain(4)), Fraction(1))
    form = Identity(Domain(4)).explicit_form(Buckets.single_cells(4))
    with pytest.raises(IntervalError, match="Unstated does not state the law"):
        strategy.spread(form, scales)


def test_gaussian_rows_cost_their_own_rho():
    policy = Full(Domain(4))
    strategy = Cells(4)
    scales = strategy.scales(policy, Budget(Fraction(1, 8), 2))
    assert strategy.cost_in_rho(policy, scales) == strategy.cost(policy, scales)
    assert strategy.cost_in_rho(policy, scales) <= Fraction(1, 8)


def test_too_many_cells_under_known_totals_are_refused(monkeypatch):
    policy = Blocks(Domain(6), [0, 0, 0, 1, 1, 1])
    strategy = Cells(6, np.array([0, 0, 0, 1, 1, 1]))
    scales = strategy.scales(policy, Fraction(1))
    ranges = Ranges(Domain(6), [0, 1], [4, 6])
    form = ranges.explicit_form(Buckets.single_cells(6))
    assert np.isfinite(strategy.spread(form, scales).variance).all()
    monkeypatch.setattr(cells_module, "MOST_COEFFICIENTS", 8)
    with pytest.raises(SizeError, match="too many to follow"):
        strategy.spread(form, scales)


def test_where_one_total_is_known_its_mean_is_taken_off_its_cells_alone(generator):
    policy = Graph(Domain(6), [[0, 1], [1, 2], [3, 4], [4, 5], [5, -1]])
    strategy = Cells.under(policy)
    scales = strategy.scales(policy, Fraction(1))
    assert scales.exact[6:].tolist() == [True, False]
    matrix = generator.integers(-2, 3, (9, 6)).astype(float)
    form = Linear(Domain(6), matrix).explicit_form(Buckets.single_cells(6))
    found = strategy.spread(form, scales)
    wanted = dense_spread(strategy, scales, form, 6)
    np.testing.assert_allclose(found.variance, wanted.variance, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.largest, wanted.largest, rtol=1e-9, atol=1e-9)
    assert (found.width == scales.least).all()
    # A row that is even over everything still has the noise of the private part.
    even = Linear(Domain(6), [[1.0] * 6, [0.0] * 3 + [1.0] * 3])
    both, private = strategy.spread(
        even.explicit_form(Buckets.single_cells(6)), scales
    ).largest
    assert both == private == scales.least
