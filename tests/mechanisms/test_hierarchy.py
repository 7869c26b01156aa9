"""Hierarchy end to end: fan-outs, shares, error as predicted, every edge paid for."""

from __future__ import annotations

import math

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import audit_measurements, policy_families
from blowfish_fast.errors import InputError
from blowfish_fast.measure.strategies.hierarchy_plan import tree_depth
from blowfish_fast.mechanisms.hierarchy import NODE_BYTES, best_fan_out

POLICIES = [bf.policies.AddRemove, bf.policies.Full]
WEIGHTS = ["uniform", "geometric", "greedy"]
LINE = bf.Domain(27)
RANGES = bf.workloads.Ranges.random(LINE, 15, rng=1)
COUNTS = np.arange(27) * 3 % 17


@pytest.mark.parametrize("cells", [*range(1, 130), 1000, 4096, 5000])
def test_the_fan_out_is_the_best_of_all(cells):
    def variance(fan_out):
        levels = tree_depth(cells, fan_out)
        return (fan_out - 1) * levels**3 - 2 * (fan_out + 1) * levels**2 / 3

    chosen = best_fan_out(cells)
    others = range(2, max(cells, 2) + 1)
    assert variance(chosen) == pytest.approx(min(map(variance, others)))


def test_b5_levels_are_counted_in_whole_numbers():
    assert math.ceil(math.log(125, 5)) == 4
    line = bf.Domain(125)
    ranges = bf.workloads.Ranges.random(line, 5, rng=1)
    tree = bf.Hierarchy(bf.policies.AddRemove(line), ranges, epsilon=1, fan_out=5)
    measured = tree.release(np.ones(125), rng=1).measurements[0]
    assert measured.scales.rates.size == 125 + 25 + 5 + 1
    # Four nodes share epsilon on each path.
    assert measured.scales.widths == pytest.approx(np.full(156, 4.0), rel=1e-6)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("cells", "fan_out"), [(64, 2), (81, 3), (50, 4)])
def test_uniform_scales_are_those_of_the_closed_form(policy, cells, fan_out):
    line = bf.Domain(cells)
    ranges = bf.workloads.Ranges.random(line, 5, rng=1)
    tree = bf.Hierarchy(policy(line), ranges, epsilon="0.1", fan_out=fan_out)
    scales = tree.release(np.ones(cells), rng=1).measurements[0].scales
    levels = tree_depth(cells, fan_out)
    bounded = policy is bf.policies.Full
    changed = 2 * levels if bounded else levels + 1
    assert scales.exact.tolist() == [False] * (scales.exact.size - 1) + [bounded]
    widths = scales.widths[scales.measured]
    assert widths == pytest.approx(np.full(widths.size, changed * 10.0), rel=1e-6)


def test_b3_geometric_shares():
    line = bf.Domain(1024)
    tree = bf.Hierarchy(
        bf.policies.AddRemove(line),
        bf.workloads.AllRanges(line),
        epsilon=1,
        strategy="geometric",
        fan_out=2,
    )
    scales = tree.release(np.ones(1024), rng=1).measurements[0].scales
    shares = scales.rates / scales.unit
    assert shares[0] == pytest.approx(0.223933, abs=1e-6)
    assert shares[-1] == pytest.approx(0.022217, abs=1e-6)
    by_level = [shares[2048 - 2 ** (11 - level)] for level in range(11)]
    assert sum(by_level) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("fan_out", [None, 2, 3])
@pytest.mark.parametrize(
    ("shape", "weights"),
    [
        *((cells, weights) for cells in (1, 2, 7) for weights in WEIGHTS),
        ((3, 4), "uniform"),
        ((3, 4), "geometric"),
    ],
)
def test_every_policy_is_paid_for(shape, fan_out, weights):
    domain = bf.Domain(shape)
    for policy in policy_families(domain).values():
        example, data = bf.Hierarchy.example(domain, policy, "0.7")
        mechanism = bf.Hierarchy(
            policy, example.workload, epsilon="0.7", strategy=weights, fan_out=fan_out
        )
        for price in audit_measurements(mechanism, data):
            assert price.passed, (policy, price)


@pytest.mark.long
def test_greedy_weights_are_no_worse_than_equal_ones_on_their_workload():
    line = bf.Domain(300)
    ranges = bf.workloads.Ranges.random(line, 200, rng=3)
    for policy in POLICIES:
        greedy, uniform = (
            bf.Hierarchy(policy(line), ranges, epsilon=0.1, strategy=weights)
            for weights in ("greedy", "uniform")
        )
        assert greedy.expected_total_error() < uniform.expected_total_error()


def test_a_stated_fan_out_is_kept():
    for weights in WEIGHTS:
        mechanism = bf.Hierarchy(
            bf.policies.Full(LINE), RANGES, epsilon=1, strategy=weights, fan_out=5
        )
        assert mechanism.release(COUNTS, rng=1).details["fan_out"] == 5


def test_a_fan_out_beyond_the_cells_is_one_level():
    mechanism = bf.Hierarchy(bf.policies.Full(LINE), RANGES, epsilon=1, fan_out=1000)
    measured = mechanism.release(COUNTS, rng=1).measurements[0]
    assert measured.scales.rates.size == 28


@pytest.mark.parametrize("policy", POLICIES)
def test_grids_are_measured_along_a_curve(policy):
    grid = bf.Domain((6, 9))
    counts = np.arange(54).reshape(6, 9)
    boxes = bf.workloads.Rectangles.random(grid, 10, rng=1)
    mechanism = bf.Hierarchy(policy(grid), boxes, epsilon=1e6)
    release = mechanism.release(counts)
    np.testing.assert_allclose(release.estimate, counts, atol=1e-6)
    assert release.intervals(boxes).shape == (10, 2)
    assert mechanism.expected_error().shape == (10,)


def test_all_ranges_of_a_million_cells_are_predicted():
    line = bf.Domain(2**20)
    mechanism = bf.Hierarchy(
        bf.policies.AddRemove(line), bf.workloads.AllRanges(line), epsilon=1
    )
    assert mechanism.expected_total_error() > 0


@pytest.mark.parametrize("fan_out", [1, 0, -2, 2.5, "wide", [2, 3]])
def test_fan_outs_that_make_no_tree_are_refused(fan_out):
    with pytest.raises(InputError, match="fan_out"):
        bf.Hierarchy(bf.policies.Full(LINE), RANGES, epsilon=1, fan_out=fan_out)


@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": 1}])
@pytest.mark.parametrize("strategy", ["uniform", "geometric", "greedy"])
def test_memory_is_stated_for_the_most_nodes_that_a_tree_may_have(strategy, budget):
    line = bf.Domain(512)
    asked, policy = bf.workloads.Prefixes(line), bf.policies.AddRemove(line)
    mechanism = bf.Hierarchy(policy, asked, strategy=strategy, **budget)
    (measured,) = mechanism.release([1] * 512, rng=1).measurements
    # Greedy trees are binary in rho.
    assert NODE_BYTES * measured.noisy.size <= mechanism._kept_bytes()


def test_noise_that_differs_below_one_node_is_kept_row_by_row():
    def kept(policy):
        return bf.Hierarchy(policy, RANGES, epsilon=1)._kept_bytes()

    # One part may lose a record and the other may not: its total is public.
    some = bf.policies.Graph(LINE, [[0, -1], [0, 1], [2, 3]])
    assert sorted(set(some.components().private.tolist())) == [False, True]
    alike = kept(bf.policies.AddRemove(LINE))
    assert kept(some) == kept(bf.policies.Blocks(LINE, [0] * 13 + [1] * 14)) > alike
