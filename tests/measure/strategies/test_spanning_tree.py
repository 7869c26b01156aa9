"""Totals of subtrees: trees, cycles, parts and the absent node."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

import blowfish_fast as bf
from blowfish_fast.audit import audit_measurements, edge_cost
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError, EpsilonError, InputError, SizeError
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.strategies import SpanningTree
from tests.generated import example_count
from tests.reference.draws import spread_by_draws
from tests.reference.policy_examples import any_policy
from tests.reference.spread import assert_same_spread

LINE = bf.Domain(6)
GRID = bf.Domain((2, 3))
GRAPHS = {
    "line": bf.policies.Line(LINE),
    "cycle": bf.policies.Graph(LINE, [[i, (i + 1) % 6] for i in range(6)]),
    "star": bf.policies.Graph(LINE, [[0, i] for i in range(1, 6)]),
    "parts": bf.policies.Blocks(LINE, [0, 0, 0, 1, 1, 2]),
    "absent": bf.policies.Graph(LINE, [[0, 1], [1, -1], [2, 3], [4, 5], [5, -1]]),
    "add_remove": bf.policies.AddRemove(LINE),
    "none": bf.policies.Graph(LINE, []),
}


def price_of(strategy, policy, scales):
    """Return the worst edge from the definition: rows that it moves, by their rates."""
    cells = Buckets.single_cells(policy.domain.size)
    noisy = strategy.rows(np.zeros(policy.domain.size, dtype=np.int64))
    measured = Measurement(strategy.with_noise(scales), noisy, cells)
    edges = [pair for chunk in policy.edges() for pair in chunk.tolist()]
    return max((edge_cost(measured, *edge) for edge in edges), default=Fraction(0))


@settings(deadline=None, max_examples=example_count(80))
@given(any_policy())
def test_the_worst_edge_is_exact_for_every_policy(policy):
    strategy = SpanningTree.under(policy)
    scales = strategy.scales(policy, Fraction(7, 10))
    worst = price_of(strategy, policy, scales)
    assert strategy.cost(policy, scales) == worst <= Fraction(7, 10)
    if policy.edge_count:
        assert worst > Fraction(699, 1000)
    for edge in (pair for chunk in policy.edges() for pair in chunk.tolist()):
        moved = strategy.rows(_record(edge[0], policy)) != strategy.rows(
            _record(edge[1], policy)
        )
        assert not (moved & scales.exact).any()


def _record(cell, policy):
    counts = np.zeros(policy.domain.size, dtype=np.int64)
    if cell >= 0:
        counts[cell] = 1
    return counts


@pytest.mark.parametrize("name", GRAPHS)
def test_spread_equals_the_definition(name):
    policy = GRAPHS[name]
    strategy = SpanningTree.under(policy)
    scales = strategy.scales(policy, Fraction(1))
    cells = Buckets.single_cells(6)
    for workload in (
        bf.workloads.AllRanges(LINE),
        bf.workloads.Linear(LINE, np.arange(12).reshape(2, 6) % 5 - 2),
    ):
        form = workload.explicit_form(cells)
        expected = spread_by_draws(strategy, scales, form, 6)
        assert_same_spread(strategy.spread(form, scales), expected)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("edges", [range(7), [0, 3, 4, 9, 10, 12, 13]])
def test_closed_forms_equal_the_listed_queries(name, edges):
    policy = GRAPHS[name]
    strategy = SpanningTree.under(policy)
    scales = strategy.scales(policy, Fraction(1))
    buckets = Buckets(np.array(edges))
    domain = bf.Domain(buckets.cells)
    for kind in ("Identity", "Total", "Prefixes", "AllRanges"):
        workload = getattr(bf.workloads, kind)(domain)
        total = strategy.total_variance(workload.form(buckets), scales)
        listed = strategy.spread(workload.explicit_form(buckets), scales).variance
        assert total == pytest.approx(listed.sum())


@pytest.mark.parametrize("name", ["line", "cycle", "star", "parts", "none"])
def test_totals_of_parts_stay_exact_and_no_noise_means_the_counts(name):
    policy = GRAPHS[name]
    counts = np.array([3, 1, 4, 1, 5, 9])
    strategy = SpanningTree.under(policy)
    scales = strategy.scales(policy, Fraction(1))
    assert (strategy.infer(strategy.rows(counts), scales) == counts).all()
    release = bf.Transformed(
        policy,
        bf.workloads.Identity(LINE),
        epsilon="0.1",
        partition=None,
        strategy="tree",
        fit=None,
    ).release(counts, rng=1)
    labels = policy.components().labels
    labels = np.zeros(6, dtype=int) if labels is None else labels
    for part in range(policy.components().count):
        inside = labels == part
        assert release.estimate[inside].sum() == counts[inside].sum()


def test_a_line_measures_running_totals_and_a_cycle_pays_for_its_detour():
    assert SpanningTree.under(GRAPHS["line"]).stretch(GRAPHS["line"]) == 1
    rooted = SpanningTree(np.array([1, 2, 3, 4, 5, -1]))
    assert rooted.rows(np.arange(6)).tolist() == np.cumsum(np.arange(6)).tolist()
    nine = bf.Domain(9)
    cycle = bf.policies.Graph(nine, [[i, (i + 1) % 9] for i in range(9)])
    tree = SpanningTree.under(cycle)
    assert tree.stretch(cycle) == tree.least_stretch(cycle) == 8
    assert SpanningTree.under(GRAPHS["none"]).least_stretch(GRAPHS["none"]) == 0


def test_audits_find_every_edge_paid_for():
    for policy in (*GRAPHS.values(), bf.policies.Threshold(GRID, 1)):
        mechanism = bf.Transformed(
            policy,
            bf.workloads.Identity(policy.domain),
            epsilon="0.7",
            partition=None,
            strategy="tree",
        )
        counts = np.arange(6).reshape(policy.domain.shape)
        assert all(price.passed for price in audit_measurements(mechanism, counts))


def test_releases_survive_saving(tmp_path):
    asked = bf.workloads.AllRanges(LINE)
    release = bf.Transformed(
        GRAPHS["cycle"], asked, epsilon=1, partition=None, strategy="tree"
    ).release([1, 2, 3, 4, 5, 6])
    release.save(tmp_path / "tree")
    again = bf.Release.load(tmp_path / "tree")
    assert (again.intervals(asked) == release.intervals(asked)).all()


def test_what_cannot_be_done_is_refused():
    large = bf.Domain(2**14)
    with pytest.raises(SizeError, match="134,209,536 edges"):
        SpanningTree.under(bf.policies.Full(large))
    with pytest.raises(DomainError, match="3 counts"):
        SpanningTree.under(GRAPHS["line"]).rows(np.ones(3, dtype=np.int64))
    with pytest.raises(InputError, match="circle"):
        SpanningTree.unpack({"parents": np.array([1, 0])})
    cells = 2**12
    ring = np.column_stack([np.arange(cells), (np.arange(cells) + 1) % cells])
    cycle = bf.policies.Graph(bf.Domain(cells), ring)
    with pytest.raises(EpsilonError, match="4,095 edges"):
        SpanningTree.under(cycle).scales(cycle, Fraction(1, 10**9))
