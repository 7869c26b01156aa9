"""Strategies by name, their predicted errors and the choice among them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

import blowfish_fast as bf
import blowfish_fast.measure.strategies.strategy_choice as strategy_choice
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import EpsilonError, PolicyError
from blowfish_fast.measure.noise import laplace_variance
from blowfish_fast.measure.strategies import Cells
from blowfish_fast.measure.strategies.strategy_choice import (
    NAMES,
    all_choices,
    best_choice,
    build_strategy,
    mean_difference_size,
    predicted_variance,
)
from tests.generated import example_count
from tests.reference.draws import spread_by_draws
from tests.reference.policy_examples import on_a_line

EPSILON = Fraction(1, 2)


@pytest.mark.long
@settings(deadline=None, max_examples=example_count(60))
@given(on_a_line())
def test_every_prediction_equals_the_definition(policy):
    cells = Buckets.single_cells(policy.domain.size)
    for workload in (
        bf.workloads.Identity(policy.domain),
        bf.workloads.AllRanges(policy.domain),
        bf.workloads.Prefixes(policy.domain),
    ):
        form = workload.explicit_form(cells)
        for one in all_choices(policy, workload.form(cells), EPSILON):
            if one.strategy is None:
                assert one.variance == math.inf
                assert one.reason
                continue
            scales = one.strategy.scales(policy, EPSILON)
            assert one.strategy.cost(policy, scales) <= EPSILON
            spread = spread_by_draws(one.strategy, scales, form, cells.count)
            total = spread.variance.sum()
            assert one.variance == pytest.approx(total, rel=1e-6, abs=1e-6), one.name


@pytest.mark.parametrize("labels", [[0, 0, 1, 2, 2, 2, 3, 4], [0, 1, 0, 2, 1, 3, 3, 4]])
def test_predictions_hold_on_the_quotient(labels):
    domain = bf.Domain(8)
    whole = bf.policies.Threshold(domain, 2)
    buckets = Buckets.from_labels(np.array(labels))
    policy = whole.project(buckets)
    for workload in (bf.workloads.Identity(domain), bf.workloads.AllRanges(domain)):
        form = workload.explicit_form(buckets)
        for one in all_choices(policy, workload.form(buckets), EPSILON):
            if one.strategy is None:
                continue
            scales = one.strategy.scales(policy, EPSILON)
            total = spread_by_draws(one.strategy, scales, form, 5).variance.sum()
            assert one.variance == pytest.approx(total, rel=1e-6), one.name


def test_a_policy_in_parts_has_its_ranges_predicted():
    domain = bf.Domain(7)
    policy = bf.policies.Blocks(domain, [0, 1, 0, 1, 0, 2, 2])
    cells = Buckets.single_cells(7)
    strategy = Cells.under(policy)
    scales = strategy.scales(policy, EPSILON)
    for workload in (bf.workloads.AllRanges(domain), bf.workloads.Prefixes(domain)):
        form = workload.form(cells)
        listed = strategy.spread(workload.explicit_form(cells), scales).variance.sum()
        found = predicted_variance(strategy, policy, form, EPSILON)
        assert found == pytest.approx(listed)


def test_a_threshold_of_two_is_a_tie_between_cells_and_edges():
    # Oracle T8: 8 / eps^2 for either, up to the ends of the line.
    domain = bf.Domain(4000)
    policy = bf.policies.Threshold(domain, 2)
    form = bf.workloads.Identity(domain).form(Buckets.single_cells(4000))
    epsilon = Fraction(1, 100)
    for name in ("cells", "edges"):
        strategy = build_strategy(name, policy, form)
        error = predicted_variance(strategy, policy, form, epsilon) / 4000
        assert error * 0.01**2 == pytest.approx(8, rel=2e-3)
    sparse = bf.policies.Line(domain)
    assert best_choice(sparse, form, epsilon).kind == "prefix_sums"
    dense = bf.policies.Threshold(domain, 3)
    assert best_choice(dense, form, epsilon).kind == "cells"


def test_a_pair_of_cells_is_one_edge_and_costs_a_quarter_of_two_cells():
    domain = bf.Domain(2)
    policy = bf.policies.Full(domain)
    form = bf.workloads.Identity(domain).form(Buckets.single_cells(2))
    error = predicted_variance(
        build_strategy("edges", policy, form), policy, form, Fraction(1, 100)
    )
    assert error / 2 * 0.01**2 == pytest.approx(2, rel=1e-3)


@pytest.mark.long
def test_hurrying_leaves_the_choice_as_it_is():
    side = bf.Domain(300)
    ring = np.column_stack([np.arange(300), (np.arange(300) + 1) % 300])
    for policy in (
        bf.policies.Graph(side, ring),
        bf.policies.Threshold(side, 5),
        bf.policies.Full(side),
    ):
        for workload in (bf.workloads.Identity(side), bf.workloads.AllRanges(side)):
            form = workload.form(Buckets.single_cells(300))
            slow = all_choices(policy, form, EPSILON)[0]
            assert all_choices(policy, form, EPSILON, hurried=True)[0].name == slow.name


def test_hurrying_skips_long_detours_and_long_lists(monkeypatch):
    side = bf.Domain(300)
    ring = np.column_stack([np.arange(300), (np.arange(300) + 1) % 300])
    policy = bf.policies.Graph(side, ring)
    form = bf.workloads.Identity(side).form(Buckets.single_cells(300))
    monkeypatch.setattr(strategy_choice, "FEW_EDGES", 10)
    found = {one.name: one for one in all_choices(policy, form, EPSILON, hurried=True)}
    assert "detour of 299 edges" in found["tree"].reason
    monkeypatch.setattr(strategy_choice, "MOST_WEIGHED", 10)
    found = {one.name: one for one in all_choices(policy, form, EPSILON, hurried=True)}
    assert "300 edges" in found["edges"].reason


def test_listed_queries_on_a_grid_go_along_its_lines():
    domain = bf.Domain((8, 8))
    policy = bf.policies.Threshold(domain, 1)
    workload = bf.workloads.Rectangles.random(domain, 9, rng=1)
    form = workload.form(Buckets.single_cells(64))
    names = ("cells", "edges", "tree", "edge_lines")
    hurried = all_choices(policy, form, EPSILON, names=names, hurried=True)
    assert hurried[0].name == "edge_lines"
    slow = all_choices(policy, form, EPSILON, names=names)
    assert slow[0].variance == pytest.approx(hurried[0].variance)
    with pytest.raises(PolicyError, match="no strategy fits"):
        best_choice(policy, form, EPSILON, names=("ordered",))
    assert set(names) < set(NAMES)


@pytest.mark.parametrize("width", [0.3, 1.0, 7.5])
def test_the_mean_difference_of_two_draws_equals_the_sum(width):
    values = np.arange(-400, 401)
    law = np.exp(-np.abs(values) / width)
    law /= law.sum()
    gaps = np.abs(values[:, None] - values)
    assert mean_difference_size(width) == pytest.approx(law @ gaps @ law)
    assert (law * values**2).sum() == pytest.approx(float(laplace_variance(width)))


def test_the_mean_difference_of_large_noise_is_one_and_a_half_scales():
    # Oracle T4.
    assert mean_difference_size(1e6) == pytest.approx(1.5e6)


def test_a_tree_is_refused_for_its_detours_only_where_they_lose(monkeypatch):
    domain = bf.Domain(6)
    ring = bf.policies.Graph(domain, [[i, (i + 1) % 6] for i in range(6)])
    form = bf.workloads.Identity(domain).form(Buckets.single_cells(6))
    tree, one = build_strategy("tree", ring, form, 1), Fraction(1)
    strategy_choice._refuse_detours(tree, ring, form, one, 0.0)
    monkeypatch.setattr(strategy_choice, "FEW_EDGES", 5)
    true = predicted_variance(tree, ring, form, one)
    strategy_choice._refuse_detours(tree, ring, form, one, 2.0 * true)
    with pytest.raises(EpsilonError, match="a detour of 5 edges along the tree"):
        strategy_choice._refuse_detours(tree, ring, form, one, 1.0)


def test_some_ranges_refuse_a_tree_only_where_all_of_them_would(monkeypatch):
    monkeypatch.setattr(strategy_choice, "FEW_EDGES", 5)
    domain = bf.Domain(6)
    ring = bf.policies.Graph(domain, [[i, (i + 1) % 6] for i in range(6)])
    asked = bf.workloads.Ranges.random(domain, 64, rng=1)
    form, one = asked.form(Buckets.single_cells(6)), Fraction(1)
    tree = build_strategy("tree", ring, form, 1)
    watched = []

    plain = strategy_choice.cut_variance

    def variance(some, *rest):
        watched.append(plain(some, *rest))
        return watched[-1]

    monkeypatch.setattr(strategy_choice, "cut_variance", variance)
    strategy_choice._refuse_detours(tree, ring, form, one, np.inf)
    some, whole = watched
    assert 0 < some < whole
    strategy_choice._refuse_detours(tree, ring, form, one, whole)
    for least in (np.nextafter(whole, 0), some, np.nextafter(some, 0)):
        watched.clear()
        with pytest.raises(EpsilonError, match="a detour of 5 edges along the tree"):
            strategy_choice._refuse_detours(tree, ring, form, one, least)
        assert len(watched) == (1 if least < some else 2)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(4)])
def test_no_tree_beats_running_totals_under_a_line_but_on_its_nodes(epsilon):
    line = bf.Domain(27)
    policy = bf.policies.Line(line)
    rng = np.random.default_rng(2)
    cells = Buckets.single_cells(27)
    form = bf.workloads.AllRanges(line).explicit_form(cells)
    nodes = form.first % (form.last - form.first + 1) == 0
    ends = (form.first > 0) * 1 + (form.last < 26)
    one = float(laplace_variance(1.0 / float(epsilon)))
    for fan_out in (2, 3, 5):
        tree = bf.kernels.regular_tree(27, fan_out)
        for _ in range(4):
            weights = rng.random(tree.nodes) ** 3
            strategy = bf.strategies.TreeStrategy(tree, weights)
            spread = strategy.spread(form, strategy.scales(policy, epsilon))
            assert (spread.variance[~nodes] >= one * ends[~nodes] * (1 - 1e-6)).all()


def test_in_a_hurry_no_tree_is_tuned_where_totals_suffice(monkeypatch):
    monkeypatch.setattr(strategy_choice, "FEW_CELLS", 32)
    line = bf.Domain(64)
    policy, cells = bf.policies.Line(line), Buckets.single_cells(64)
    asked = {
        "ranges": bf.workloads.Ranges.random(line, 100, rng=1).form(cells),
        "all": bf.workloads.AllRanges(line).form(cells),
        "nodes": bf.workloads.Ranges(line, [0, 32], [16, 48]).form(cells),
        "later nodes": bf.workloads.Ranges(line, [16, 32], [32, 48]).form(cells),
    }

    def tree(policy, kind, hurried=True):
        found = all_choices(policy, asked[kind], EPSILON, hurried=hurried)
        return next(one for one in found if one.name == "tuned_tree")

    for kind in ("ranges", "all"):
        assert "better than totals" in tree(policy, kind).reason
        kept = tree(policy, kind, hurried=False)
        totals = min(one.variance for one in all_choices(policy, asked[kind], EPSILON))
        assert kept.variance > totals
    for kind in ("nodes", "later nodes"):
        assert tree(policy, kind).strategy is not None
    assert tree(bf.policies.Full(line), "ranges").strategy is not None
