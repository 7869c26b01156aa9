"""Blocks, fan-outs and shares of epsilon, from public facts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.strategies import Cells, OrderedHierarchy
from blowfish_fast.measure.strategies.hierarchy_plan import (
    block_plan,
    planned_hierarchy,
    tree_depth,
    whole_line_plan,
)
from blowfish_fast.policies import AddRemove, Blocks, Full, Graph, Line, Threshold
from blowfish_fast.workloads import AllRanges
from tests.reference.ordered_hierarchy import block_nodes


@pytest.mark.parametrize(
    ("cells", "theta", "fan_out", "borders", "nodes", "share", "error"),
    [
        (4357, 100, 16, 3.907297, 959.7797, 0.137689, 1496.855),
        (400, 9, 16, 3.900249, 119.7007, 0.242078, 274.931),
        (1024, 16, 2, 3.933659, 511.5005, 0.164848, 878.110),
        (1024, 1, 2, 3.992195, 0, 1, 3.992),
        (1024, 1024, 2, 0, 7992.195, 0, 7992.195),
    ],
)
def test_o8_constants_of_the_planner(
    cells, theta, fan_out, borders, nodes, share, error
):
    plan = block_plan(cells, theta, fan_out)
    assert plan.border_error == pytest.approx(borders, abs=1e-5)
    assert plan.node_error == pytest.approx(nodes, abs=1e-3)
    assert plan.border_rate == pytest.approx(share, abs=1e-6)
    assert plan.error == pytest.approx(error, abs=1e-3)


def test_o2_a_prefix_takes_half_the_fan_out_less_one_nodes_per_level():
    # Fan-out 4, three levels: 4.5 nodes on average.
    nodes = block_nodes(0, 64, 4)[1:]
    used = []
    for end in range(64):
        covered, count = 0, 0
        while covered < end:
            covered = max(high for low, high in nodes if low == covered and high <= end)
            count += 1
        used.append(count)
    assert np.mean(used) == 3 * (4 - 1) / 2


def test_depth_is_counted_in_whole_numbers():
    assert [tree_depth(125, 5), tree_depth(126, 5), tree_depth(1, 7)] == [3, 4, 0]


def exact_error(strategy, policy, cells):
    scales = strategy.scales(policy, Fraction(1, 10))
    form = AllRanges(policy.domain).form(Buckets.single_cells(cells))
    return strategy.total_variance(form, scales)


@pytest.mark.parametrize("theta", [2, 8, 30, 56, 100, 255])
def test_the_planned_fan_out_is_close_to_the_best_one(theta):
    cells = 256
    policy = Threshold(Domain(cells), theta=theta)
    chosen = exact_error(planned_hierarchy(policy), policy, cells)
    best = min(
        exact_error(planned_hierarchy(policy, fan_out), policy, cells)
        for fan_out in (2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
    )
    assert chosen < 1.03 * best


def test_the_prediction_is_a_bound_above():
    cells, theta = 256, 16
    policy = Threshold(Domain(cells), theta=theta)
    found = exact_error(planned_hierarchy(policy, 4), policy, cells) / 100
    assert found / (cells * (cells + 1) / 2) < block_plan(cells, theta, 4).error


def test_line_and_full_are_the_two_ends():
    domain = Domain(20)
    line = planned_hierarchy(Line(domain))
    assert line.edges.tolist() == list(range(21))
    assert line.trees.rows == 20
    for policy in (Full(domain), Threshold(domain, theta=19)):
        assert planned_hierarchy(policy).blocks == 1
    assert planned_hierarchy(Threshold(domain, theta=18)).edges.tolist() == [0, 18, 20]


def test_stretches_are_planned_by_themselves():
    policy = Blocks(Domain(36), np.repeat([0, 1, 2], [2, 4, 30]))
    strategy = planned_hierarchy(policy)
    assert strategy.edges.tolist() == [0, 1, 2, 6, 36]
    # Two cells: one total between them at epsilon. Four: a move changes two nodes.
    assert strategy.border_weights[0] == 1.0
    assert strategy.node_weights[2] == 0.5
    scales = strategy.scales(policy, Fraction(1))
    small = scales.rates[strategy.blocks : strategy.blocks + 4]
    assert small / scales.unit == pytest.approx(0.5, rel=1e-6)
    assert scales.exact[: strategy.blocks].tolist() == [False, True, True, True]


def test_many_stretches_are_laid_out_at_once():
    labels = np.repeat(np.arange(20000), np.arange(20000) % 7 + 1)
    strategy = planned_hierarchy(Blocks(Domain(labels.size), labels))
    ends = np.flatnonzero(np.diff(labels, append=-1)) + 1
    assert np.isin(ends, strategy.edges).all()


def test_with_absent_the_whole_line_is_one_tree():
    policy = AddRemove(Domain(64))
    strategy = planned_hierarchy(policy)
    assert strategy.blocks == 1
    scales = strategy.scales(policy, Fraction(1))
    assert not scales.exact.any()
    assert scales.measured.all()
    plan = whole_line_plan(64, 8, moves=False)
    assert plan.node_rate == plan.border_rate == pytest.approx(1 / 3)


def test_with_absent_it_beats_noise_on_many_cells():
    policy = AddRemove(Domain(2**14))
    cells = exact_error(Cells(2**14), policy, 2**14)
    assert exact_error(planned_hierarchy(policy), policy, 2**14) < 0.2 * cells


def test_absent_at_the_end_of_a_line_keeps_its_borders():
    edges = [[cell, cell + 1] for cell in range(63)] + [[63, -1]]
    policy = Graph(Domain(64), edges)
    strategy = planned_hierarchy(policy)
    assert strategy.blocks == 64
    scales = strategy.scales(policy, Fraction(1))
    assert (scales.rates == scales.rates[0]).all()
    assert scales.rates[0] / scales.unit == pytest.approx(1.0)


def test_one_cell_needs_no_plan():
    for policy in (Full(Domain(1)), Line(Domain(1)), AddRemove(Domain(1))):
        strategy = planned_hierarchy(policy)
        assert isinstance(strategy, OrderedHierarchy)
        assert strategy.rows(np.array([7])).tolist() == [7]
