"""Choosing fan-out and weights from public facts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast import Domain
from blowfish_fast._support.compiler_watch import CompilerWatch
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.shape import tree_levels
from blowfish_fast.measure.strategies import TreeStrategy
from blowfish_fast.measure.strategies.trees import tree_weights
from blowfish_fast.measure.strategies.trees.tree_weights import (
    cut_at,
    level_tree,
    tuned_tree,
)
from blowfish_fast.policies import AddRemove, Blocks, Full, Line, Threshold
from blowfish_fast.workloads import (
    AllRanges,
    Fractions,
    Identity,
    Implicit,
    Prefixes,
    Ranges,
    Rectangles,
    Total,
)


def predicted(strategy, policy, form):
    scales = strategy.scales(policy, Fraction(1))
    return strategy.total_variance(form, scales)


@pytest.mark.parametrize("policy", [AddRemove, Full])
def test_tuned_trees_beat_uniform_ones_on_their_workload(policy):
    line = Domain(256)
    form = Ranges.random(line, 500, rng=1).form(Buckets.single_cells(256))
    over = policy(line)
    tuned = tuned_tree(form, over, budget=Fraction(1))
    uniform = level_tree(256, 2, root_exact=policy is Full, geometric=False)
    assert predicted(tuned, over, form) < 0.8 * predicted(uniform, over, form)


def test_sweeps_lower_the_error_of_declared_ranges():
    line = Domain(4096)
    form = Ranges.random(line, 2000, rng=1).form(Buckets.single_cells(4096))
    over = AddRemove(line)
    greedy = tuned_tree(form, over, budget=Fraction(1), sweeps=False)
    swept = tuned_tree(form, over, budget=Fraction(1))
    assert predicted(swept, over, form) < 0.96 * predicted(greedy, over, form)


def test_single_cells_need_no_tree():
    line = Domain(64)
    form = Identity(line).form(Buckets.single_cells(64))
    strategy = tuned_tree(form, AddRemove(line), budget=Fraction(1))
    assert strategy.node_weights[:64].tolist() == [1.0] * 64
    assert not strategy.node_weights[64:].any()


def test_every_form_is_tuned():
    grid, line = Domain((8, 8)), Domain(64)
    cells = Buckets.single_cells(64)
    for form in (
        Rectangles.random(grid, 20, rng=1).form(cells),
        AllRanges(line).form(cells),
        Ranges.random(line, 20, rng=1).form(cells),
    ):
        strategy = tuned_tree(form, Full(line), budget=Fraction(1))
        assert strategy.node_weights[-1] == 0.0
        assert (strategy.node_weights[:64] > 0).all()


def test_geometric_weights_of_the_literature():
    # Oracle B3: ten levels below the root.
    strategy = level_tree(1024, 2, root_exact=False, geometric=True)
    sizes, _ = tree_levels(1024, 2)
    by_level = strategy.node_weights[np.cumsum(sizes) - 1]
    assert by_level.sum() == pytest.approx(1.0)
    assert by_level[0] == pytest.approx(0.223933, abs=1e-6)
    assert by_level[-1] == pytest.approx(0.022217, abs=1e-6)


def test_one_leaf_is_its_own_tree():
    form = Identity(Domain(5)).form(Buckets(np.array([0, 5])))
    alone = tuned_tree(form, AddRemove(Domain(1)), budget=Fraction(1))
    assert alone.node_weights.tolist() == [1.0]
    assert level_tree(1, 2, root_exact=True, geometric=False).leaves == 1


def test_other_policies_are_served_at_least_as_well_as_full_and_add_remove():
    line = Domain(64)
    for workload in (Ranges.random(line, 50, rng=1), Prefixes(line), Identity(line)):
        form = workload.form(Buckets.single_cells(64))
        full, present = (
            tuned_tree(form, one(line), budget=Fraction(1)) for one in (Full, AddRemove)
        )
        for policy in (Line(line), Threshold(line, theta=5), Blocks(line, [0] * 64)):
            tuned = tuned_tree(form, policy, budget=Fraction(1))
            error = predicted(tuned, policy, form)
            assert error <= predicted(full, Full(line), form) * (1 + 1e-9)
            half = present.scales(AddRemove(line), Fraction(1, 2))
            assert error <= present.total_variance(form, half) * (1 + 1e-9)


def test_queries_are_cut_where_totals_are_exact():
    domain = Domain(1024)
    form = Ranges.random(domain, 300, rng=1).form(Buckets.single_cells(1024))
    policy = Blocks(domain, np.arange(1024) // 128)
    tuned = tuned_tree(form, policy, budget=Fraction(1))
    whole = tuned_tree(form, Full(domain), budget=Fraction(1))
    assert predicted(tuned, policy, form) < 0.8 * predicted(whole, policy, form)


def test_what_is_left_of_a_range_lies_in_its_two_end_stretches():
    generator = np.random.default_rng(3)
    first, last = np.sort(generator.integers(0, 30, (2, 200)), axis=0)
    head, tail = generator.choice([1.0, 0.5], (2, 200))
    for width in (2, 7, 30, 64):
        form = Fractions(first, head, last, np.where(first == last, head, tail))
        inside = cut_at(form, 30, width)
        # Stretches that are covered wholly or not at all say nothing.
        begins = range(0, 30, width)
        expected = []
        for row in coverage(form):
            for begin in begins:
                part = row[begin : begin + width]
                if not (part == 0.0).all() and not (part == 1.0).all():
                    expected.append((begin, tuple(part)))
        found = []
        for row, start in zip(coverage(inside), inside.first, strict=True):
            begin = int(start) // width * width
            assert not row[:begin].any()
            assert not row[begin + width :].any()
            found.append((begin, tuple(row[begin : begin + width])))
        assert sorted(found) == sorted(expected)


def test_nothing_is_left_of_whole_stretches():
    whole = np.array([0, 4]), np.ones(2), np.array([7, 7]), np.ones(2)
    assert cut_at(Fractions(*whole), 8, 4) is None


def coverage(form):
    """Return the queries as rows over 30 leaves."""
    rows = np.zeros((form.first.size, 30))
    for row, *ends in zip(rows, *form, strict=True):
        begin, begin_part, end, end_part = ends
        row[begin : end + 1] = 1.0
        row[end] = end_part
        row[begin] = begin_part
    return rows


PREFIX_ERRORS = {2: 138.6, 4: 137.3, 8: 136.2, 16: 139.3, 24: 136.1, 64: 158.5}


@pytest.mark.parametrize("fan_out", PREFIX_ERRORS)
def test_sweeps_lower_the_error_of_prefixes(fan_out):
    """4,096 prefixes at epsilon .1; without sweeps the best tree was at 161.2."""
    line = Domain(4096)
    form = Prefixes(line).form(Buckets.single_cells(4096))
    policy, epsilon = AddRemove(line), Fraction(1, 10)
    tuned = tuned_tree(form, policy, budget=epsilon, fan_out=fan_out)
    error = tuned.total_variance(form, tuned.scales(policy, epsilon)) / 4096
    assert np.sqrt(error) == pytest.approx(PREFIX_ERRORS[fan_out], abs=0.1)


def test_the_best_tree_for_prefixes_is_found_among_all_fan_outs():
    line = Domain(4096)
    form = Prefixes(line).form(Buckets.single_cells(4096))
    policy, epsilon = AddRemove(line), Fraction(1, 10)
    tuned = tuned_tree(form, policy, budget=epsilon)
    error = tuned.total_variance(form, tuned.scales(policy, epsilon)) / 4096
    assert np.sqrt(error) < 134.6


def workloads_of(kind, cells):
    line = Domain(cells)
    if kind == "rectangles":
        return Rectangles.random(Domain((8, cells // 8)), 40, rng=2)
    return {
        "prefixes": Prefixes(line),
        "all ranges": AllRanges(line),
        "cells": Identity(line),
        "total": Total(line),
        "few ranges": Ranges(line, [3, 9], [17, 10]),
        "ranges": Ranges.random(line, 60, rng=1),
    }[kind]


@pytest.mark.long
@pytest.mark.parametrize("policy", [AddRemove, Full, Line])
@pytest.mark.parametrize(
    "kind",
    ["prefixes", "all ranges", "cells", "total", "few ranges", "ranges", "rectangles"],
)
@pytest.mark.parametrize("cells", [88, 64])
@pytest.mark.parametrize("sweeps", [True, False])
def test_tuned_is_never_worse_than_equal_levels(policy, kind, cells, sweeps):
    over = policy(Domain(cells))
    form = workloads_of(kind, cells).form(Buckets.single_cells(cells))
    for fan_out in (2, 3, 4, 8, 16, 64, None):
        tuned = tuned_tree(
            form, over, budget=Fraction(1), fan_out=fan_out, sweeps=sweeps
        )
        error = predicted(tuned, over, form)
        for root_exact in (True, False):
            equal = level_tree(
                cells, fan_out or 16, root_exact=root_exact, geometric=False
            )
            # Integer weights round by less than this.
            assert error <= predicted(equal, over, form) * (1 + 1e-6)


def test_prefixes_and_all_ranges_are_tuned_through_buckets():
    edges = np.array([0, 3, 4, 40, 64])
    for workload in (Prefixes(Domain(64)), AllRanges(Domain(64))):
        form = workload.form(Buckets(edges))
        policy = AddRemove(Domain(4))
        listed = workload.explicit_form(Buckets(edges))
        tuned = tuned_tree(form, policy, budget=Fraction(1))
        plain = tuned_tree(form, policy, budget=Fraction(1), sweeps=False)
        assert predicted(tuned, policy, form) <= predicted(plain, policy, form)
        assert predicted(tuned, policy, listed) == pytest.approx(
            predicted(tuned, policy, form)
        )


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1)])
@pytest.mark.parametrize("policy", [AddRemove, Full, Line])
def test_the_floor_bounds_every_cell_and_costs_the_declared_queries_little(
    policy, epsilon
):
    line = Domain(256)
    over = policy(line)
    cells = Identity(line).explicit_form(Buckets.single_cells(256))
    wide = Ranges(line, [0, 64], [128, 192])
    form = wide.form(Buckets.single_cells(256))
    plain = tuned_tree(form, over, budget=epsilon)
    raised = tuned_tree(form, over, budget=epsilon, floor=0.05)

    def errors(strategy, asked):
        scales = strategy.scales(over, epsilon)
        return np.sqrt(strategy.spread(asked, scales).variance)

    only_leaves = TreeStrategy(
        plain.tree, np.repeat([1.0, 0.0], [256, plain.tree.nodes - 256])
    )
    laplace = errors(only_leaves, cells).max()
    if policy is not Line:
        assert errors(plain, cells).max() > 30 * laplace
    assert errors(raised, cells).max() <= 22 * laplace
    price = [
        one.worst_edge(np.where(one.exact_rows(over), 0, one.weights()), over)
        for one in (raised, plain)
    ]
    grows = np.sqrt((errors(raised, form) ** 2).mean())
    grows /= np.sqrt((errors(plain, form) ** 2).mean())
    # The lemma for the discrete law: at most the error at epsilon over this.
    assert grows <= price[0] / price[1] * 1.01
    if policy is not Line:
        assert price[0] / price[1] <= 1.05 + 1e-6


def test_the_floor_is_on_in_mechanisms_and_can_be_switched_off():
    line = Domain(256)
    asked = Ranges(line, [0, 64], [128, 192])
    low = {}
    for floor in (0, 0.05):
        for mechanism in (
            bf.Dawa(AddRemove(line), asked, epsilon=1, partition=None, floor=floor),
            bf.Hierarchy(
                AddRemove(line), asked, epsilon=1, strategy="greedy", floor=floor
            ),
        ):
            worst = mechanism.expected_error(Identity(line)).max()
            low.setdefault(floor, []).append(np.sqrt(worst / 1.84))
    assert max(low[0.05]) < 22
    assert min(low[0]) > 30
    with pytest.raises(InputError, match="floor must lie between 0"):
        bf.Dawa(AddRemove(line), asked, epsilon=1, floor=2)


def test_the_largest_trees_are_tried_with_fewer_shapes():
    sizes = [2**10, tree_weights.LARGE, tree_weights.LARGE + 1]
    small, large, largest = (tree_weights._offered(one, 0, 1) for one in sizes)
    assert largest == [*tree_weights.FEW_CANDIDATES]
    assert len(small) >= len(large) > len(largest)


def test_cells_of_a_bucket_weigh_the_root_of_their_share():
    cells = tree_weights._few_queries(Implicit("identity", np.array([0, 1, 5, 7])))
    # m cells of 1 / m of a bucket each vary as one query of 1 / sqrt(m) of it.
    np.testing.assert_allclose(cells[1] ** 2, [1.0, 1 / 4, 1 / 2])


@pytest.mark.parametrize(("cells", "plainly"), [(64, True), (2**15, False)])
def test_whether_a_drawn_tree_waits_for_the_compiler_follows_public_numbers(
    cells, plainly, monkeypatch
):
    """The buckets are few either way: their number may not decide it."""
    leaves, chosen = [], []

    def noted(ranges, count, choices, *, plainly, **options):
        leaves.append(count)
        chosen.append(plainly)
        return tune_fan_outs(ranges, count, choices, **options)

    tune_fan_outs = bf.kernels.tune_fan_outs
    monkeypatch.setattr(bf.kernels, "tune_fan_outs", noted)
    monkeypatch.setattr(tree_weights, "COMPILER", CompilerWatch())
    domain = Domain(cells)
    workload = Ranges.random(domain, 20, rng=1)
    dawa = bf.Dawa(AddRemove(domain), workload, epsilon=1)
    dawa.release(bf.Histogram(domain, np.repeat([0, 90, 0, 50], cells // 4)), rng=1)
    assert max(leaves) < 2**10
    assert set(chosen) == {plainly}


def test_fan_outs_of_one_tree_are_tried_once():
    choices = [(2, True), (64, False), (8, False), (24, False), (16, False)]
    tried = tree_weights._of_other_trees(choices, 20)
    assert tried == [(2, True), (64, False), (8, False), (16, False)]
    assert tree_weights._of_other_trees(choices, 100) == choices
    # A decay may change the weights of two leaves, whatever their tree.
    assert tree_weights._of_other_trees(choices[:2], 2) == choices[:2]


def test_public_queries_are_tuned_to_once_and_to_the_same_bits(monkeypatch):
    line, tuned_leaves = Domain(61), []
    form = Ranges.random(line, 40, rng=11).form(Buckets.single_cells(61))
    over, plainly_tuned = AddRemove(line), tree_weights._best_tuned

    def counted(*asked, leaves, plainly):
        tuned_leaves.append(leaves)
        return plainly_tuned(*asked, leaves=leaves, plainly=plainly)

    monkeypatch.setattr(tree_weights, "_best_tuned", counted)
    budgets = Fraction(1, 7), Fraction(3)
    trees = [tuned_tree(form, over, budget=each, public_form=True) for each in budgets]
    assert len(tuned_leaves) == 1
    fresh = tuned_tree(form, over, budget=budgets[0])
    assert len(tuned_leaves) == 2
    for tree in trees:
        assert tree.fan_out == fresh.fan_out
        assert np.array_equal(tree.node_weights, fresh.node_weights)
        # What is remembered cannot be changed by whoever was handed it.
        tree.node_weights[:] = 0.5
    again = tuned_tree(form, over, budget=budgets[0], public_form=True)
    assert len(tuned_leaves) == 2
    assert np.array_equal(again.node_weights, fresh.node_weights)
    moved = form._replace(last=np.minimum(form.last + 1, 60))
    tuned_tree(moved, over, budget=budgets[0], public_form=True)
    tuned_tree(form, Full(line), budget=budgets[0], public_form=True)
    assert len(tuned_leaves) == 4


def test_all_ranges_of_public_cells_are_remembered_by_their_kind():
    line, over = Domain(53), AddRemove(Domain(53))
    form = AllRanges(line).form(Buckets.single_cells(53))
    before = tree_weights._tuned_to.cache_info()
    trees = [tuned_tree(form, over, budget=Fraction(1), public_form=True) for _ in "ab"]
    after = tree_weights._tuned_to.cache_info()
    assert after.misses == before.misses + 1
    assert after.hits == before.hits + 1
    fresh = tuned_tree(form, over, budget=Fraction(1))
    assert all(np.array_equal(t.node_weights, fresh.node_weights) for t in trees)


def test_nothing_about_buckets_that_were_drawn_is_remembered():
    line = Domain(64)
    counts = np.repeat([0, 900], 32)
    mechanism = bf.Dawa(AddRemove(line), Ranges.random(line, 30, rng=1), epsilon=4)
    before = tree_weights._tuned_to.cache_info()
    release = mechanism.release(counts, rng=1)
    assert 1 < release.details["buckets"] < 64
    assert tree_weights._tuned_to.cache_info() == before
