"""What fits leave of errors, on public shapes, and the plans that they decide."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast import policies
from blowfish_fast.audit import audit_measurements
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.strategies import fitted_error, hierarchy_plan
from blowfish_fast.measure.strategies.fitted_error import fitted_part, public_shapes
from blowfish_fast.measure.strategies.hierarchy_plan import (
    best_hierarchy,
    planned_hierarchy,
)

TENTH = Fraction(1, 10)


def plan_for(policy, workload, *, fitted):
    form = workload.form(Buckets.single_cells(policy.domain.size))
    return best_hierarchy(policy, form, TENTH, fitted=fitted)


@pytest.mark.parametrize("cells", [5, 256, 1000])
def test_public_shapes_are_four_lines_that_are_the_same_again(cells):
    shapes = public_shapes(cells)
    assert len(shapes) == 4
    for shape, again in zip(shapes, public_shapes(cells), strict=True):
        assert shape.shape == (cells,)
        assert (shape >= 0).all()
        assert shape.sum() == pytest.approx(1)
        assert np.array_equal(shape, again)


def test_squared_errors_are_those_of_all_queries_of_a_kind():
    errors = np.array([2.0, -1.0, 0.5, 3.0, -4.0])
    line = bf.Domain(5)
    ranges = bf.workloads.AllRanges(line)
    pairs = 6 * 6
    expected = 2 * (ranges.answer(errors) ** 2).sum() / pairs
    assert fitted_error._squared_error(errors, "ranges") == pytest.approx(expected)
    prefixes = bf.workloads.Prefixes(line).answer(errors)
    told = fitted_error._squared_error(errors, "prefixes")
    assert told == pytest.approx((prefixes**2).sum() / 6)
    assert fitted_error._squared_error(errors, "identity") == pytest.approx(30.25 / 5)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("asked", ["ranges", "prefixes", "identity"])
def test_a_fit_leaves_a_part_of_the_error_and_always_the_same(asked, power):
    policy = policies.Threshold(bf.Domain(64), theta=16)
    plan = planned_hierarchy(policy, power=power)
    part = fitted_part(plan, policy, asked, power)
    assert 0.02 < part < 0.95
    assert part == fitted_part(plan, policy, asked, power)


def test_a_long_threshold_has_the_plan_of_all_moves_where_the_release_is_fitted():
    line = bf.Domain(4096)
    policy, asked = policies.Threshold(line, theta=1000), bf.workloads.AllRanges(line)
    own = plan_for(policy, asked, fitted=False)
    assert own.blocks == 5, "variance alone prefers blocks as long as a move"
    assert plan_for(policy, asked, fitted=True).blocks == 1
    # A short one keeps its blocks, whatever the fit: nothing else is close.
    short = policies.Threshold(line, theta=64)
    assert plan_for(short, asked, fitted=True).blocks == 64


def test_a_weaker_policy_has_exactly_the_release_of_the_stronger_one():
    line = bf.Domain(4096)
    asked = bf.workloads.AllRanges(line)
    counts = np.repeat([0, 9, 2, 70], 1024)
    weak, strong = (
        bf.mechanisms.OrderedHierarchical(policy, asked, epsilon=0.1).release(
            counts, rng=1
        )
        for policy in (policies.Threshold(line, theta=1000), policies.Full(line))
    )
    assert np.array_equal(weak.estimate, strong.estimate)
    unfitted = bf.mechanisms.OrderedHierarchical(
        policies.Threshold(line, theta=1000), asked, epsilon=0.1, fit=None
    )
    assert unfitted.release(counts, rng=1).details["blocks"] == 5


def test_long_lines_are_tried_at_4096_cells_and_once(monkeypatch):
    line = bf.Domain(2**13)
    asked = bf.workloads.AllRanges(line)
    tried = []

    def counting(cells, theta, fan_out, asked, power):
        tried.append((cells, theta, asked))
        return 10.0

    monkeypatch.setattr(hierarchy_plan, "_own_over_whole", counting)
    policy = policies.Threshold(line, theta=2**10)
    assert plan_for(policy, asked, fitted=True).blocks == 1
    assert tried == [(4096, 512, "ranges")]


@pytest.mark.parametrize(
    ("policy", "workload"),
    [
        # Weighted sums say nothing of ranges or cells.
        (
            policies.Threshold(bf.Domain(300), theta=100),
            bf.workloads.Linear(bf.Domain(300), np.arange(600).reshape(2, 300)),
        ),
        (
            policies.Threshold(bf.Domain(300), theta=100),
            bf.workloads.Total(bf.Domain(300)),
        ),
        # Whether somebody is there at all is no move.
        (
            policies.WithAbsent(policies.Threshold(bf.Domain(300), theta=100)),
            bf.workloads.Prefixes(bf.Domain(300)),
        ),
        # A short line.
        (
            policies.Threshold(bf.Domain(100), theta=40),
            bf.workloads.Prefixes(bf.Domain(100)),
        ),
    ],
)
def test_elsewhere_variance_alone_decides(policy, workload, monkeypatch):
    monkeypatch.setattr(hierarchy_plan, "_own_over_whole", None)
    plain = plan_for(policy, workload, fitted=False)
    fitted = plan_for(policy, workload, fitted=True)
    assert np.array_equal(plain.edges, fitted.edges)


def test_listed_ranges_of_one_cell_are_cells():
    line = bf.Domain(10)
    single = Buckets.single_cells(10)
    kind = hierarchy_plan._kind_of
    assert kind(bf.workloads.Ranges(line, [2, 5], [3, 6]).form(single)) == "identity"
    assert kind(bf.workloads.Ranges(line, [2, 5], [3, 8]).form(single)) == "ranges"
    assert kind(bf.workloads.Identity(line).form(single)) == "identity"
    assert kind(bf.workloads.Prefixes(line).form(single)) == "prefixes"


@pytest.mark.parametrize("theta", [2, 20, 50])
def test_plans_of_stronger_policies_are_priced_under_the_policy(theta, monkeypatch):
    monkeypatch.setattr(hierarchy_plan, "FEWEST_FITTED", 8)
    line = bf.Domain(64)
    policy = policies.Threshold(line, theta=theta)
    asked = bf.workloads.AllRanges(line)
    mechanism = bf.mechanisms.OrderedHierarchical(policy, asked, epsilon=1)
    prices = audit_measurements(mechanism, np.arange(64) % 7)
    assert all(price.passed for price in prices)
