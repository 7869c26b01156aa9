"""Haney's construction for thresholds on a line."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import audit_measurements
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError, PolicyError
from blowfish_fast.measure.strategies import HTheta, SpanningTree
from blowfish_fast.measure.strategies.hierarchy_plan import (
    block_plan,
    construction_error,
    planned_hierarchy,
)


def red_cell_tree(cells, theta):
    """Return the parent of each cell in Haney's tree; -1 at the last cell."""
    red = np.minimum((np.arange(cells) // theta + 1) * theta - 1, cells - 1)
    following = np.minimum(red + theta, cells - 1)
    parents = np.where(np.arange(cells) == red, following, red)
    parents[-1] = -1
    return parents


@pytest.mark.parametrize(("cells", "theta"), [(50, 5), (23, 4), (40, 7), (9, 2)])
def test_the_tree_of_red_cells_has_stretch_three(cells, theta):
    # Oracle T1.
    policy = bf.policies.Threshold(bf.Domain(cells), theta)
    assert SpanningTree(red_cell_tree(cells, theta)).stretch(policy) == 3


def test_a_line_or_one_block_is_a_chain_or_a_star():
    line = bf.policies.Line(bf.Domain(8))
    assert SpanningTree(red_cell_tree(8, 1)).stretch(line) == 1
    full = bf.policies.Full(bf.Domain(8))
    assert SpanningTree(red_cell_tree(8, 8)).stretch(full) == 2


def test_the_planned_error_is_the_published_one_and_the_ordered_hierarchy_wins():
    # Oracle T7, and the comparison beside it.
    assert construction_error(16, 2) == 1188
    assert block_plan(1024, 16, 2).error == pytest.approx(878.110, abs=1e-3)
    best = min(range(2, 17), key=lambda f: (f - 1) * _levels(16, f) ** 3)
    policy = bf.policies.Threshold(bf.Domain(64), theta=16)
    assert set(HTheta.under(policy).fan_outs.tolist()) == {best}


def _levels(length, fan_out):
    levels = 0
    while fan_out**levels < length:
        levels += 1
    return levels


@pytest.mark.parametrize("theta", [1, 3, 8, 64])
def test_it_is_measured_like_an_ordered_hierarchy_and_loses_to_it(theta):
    domain = bf.Domain(64)
    policy = bf.policies.Threshold(domain, theta)
    form = bf.workloads.AllRanges(domain).form(Buckets.single_cells(64))
    thirds, planned = HTheta.under(policy), planned_hierarchy(policy)
    epsilon = Fraction(1, 10)
    error = thirds.total_variance(form, thirds.scales(policy, epsilon))
    best = planned.total_variance(form, planned.scales(policy, epsilon))
    assert best <= error * (1 + 1e-9)
    assert error < 3 * best


def test_each_third_of_epsilon_buys_one_edge_of_the_tree():
    policy = bf.policies.Threshold(bf.Domain(64), 8)
    strategy = HTheta.under(policy, fan_out=2)
    scales = strategy.scales(policy, Fraction(3))
    assert strategy.blocks == 8
    widths = scales.widths
    np.testing.assert_allclose(widths[: strategy.blocks - 1], 1.0, rtol=1e-6)
    # Three levels below each block share its third.
    np.testing.assert_allclose(widths[strategy.blocks :], 3.0, rtol=1e-6)


@pytest.mark.parametrize(
    "policy",
    [
        bf.policies.Threshold(bf.Domain(13), 3),
        bf.policies.Line(bf.Domain(7)),
        bf.policies.Blocks(bf.Domain(9), [0, 0, 1, 1, 1, 1, 2, 3, 3]),
        bf.policies.Band(bf.Domain(6), [2, 2, 3, 5, 5, 5]),
        bf.policies.Full(bf.Domain(1)),
    ],
    ids=repr,
)
def test_audits_find_every_edge_paid_for(policy):
    domain = policy.domain
    mechanism = bf.Transformed(
        policy,
        bf.workloads.AllRanges(domain),
        epsilon="0.7",
        partition=None,
        strategy="h_theta",
    )
    counts = np.arange(domain.size)
    assert all(price.passed for price in audit_measurements(mechanism, counts))


def test_releases_survive_saving(tmp_path):
    domain = bf.Domain(20)
    asked = bf.workloads.AllRanges(domain)
    release = bf.Transformed(
        bf.policies.Threshold(domain, 4),
        asked,
        epsilon=1,
        partition=None,
        strategy="h_theta",
    ).release(np.arange(20))
    release.save(tmp_path / "red")
    again = bf.Release.load(tmp_path / "red")
    assert again.measurements[0].strategy.kind == "h_theta"
    assert (again.intervals(asked) == release.intervals(asked)).all()


def test_policies_without_a_public_line_are_refused():
    domain = bf.Domain(5)
    with pytest.raises(PolicyError, match="total is public"):
        HTheta.under(bf.policies.AddRemove(domain))
    with pytest.raises(PolicyError, match="one ordered attribute"):
        HTheta.under(bf.policies.Threshold(bf.Domain((2, 2)), 1))
    with pytest.raises(InputError, match="private under this policy"):
        bf.Transformed(
            bf.policies.AddRemove(domain),
            bf.workloads.AllRanges(domain),
            epsilon=1,
            strategy="h_theta",
        )
