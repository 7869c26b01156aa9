from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast import Domain, policies, workloads
from blowfish_fast.measure.sensitivity import rectangles as rectangle_sensitivity
from blowfish_fast.measure.sensitivity.policy import sensitivity
from tests.reference import policy_examples as examples
from tests.reference import policy_graphs
from tests.reference import policy_sensitivity as reference


def brute(policy, workload):
    edges = policy_graphs.edges_of(policy)
    return reference.sensitivity(edges, reference.rows(workload))


@settings(max_examples=150)
@given(examples.on_a_grid(), st.data())
def test_rectangles_equal_the_definition(policy, data):
    workload = data.draw(examples.rectangles_over(policy.domain))
    found = sensitivity(policy, workload)
    expected = brute(policy, workload)
    assert found.exact
    assert found >= expected
    assert found == pytest.approx(float(expected), rel=1e-12)


@settings(max_examples=150)
@given(examples.on_a_grid(), st.data(), st.sampled_from([0, 40, 300]))
def test_small_budgets_never_go_below_the_truth(policy, data, budget):
    workload = data.draw(examples.rectangles_over(policy.domain))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rectangle_sensitivity, "MOST_ENTRIES", budget)
        patch.setattr(rectangle_sensitivity, "MOST_WORK", budget)
        found = sensitivity(policy, workload)
    expected = brute(policy, workload)
    assert found >= expected
    if found.exact:
        assert found == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("metric", ["l1", "l2", "linf"])
@pytest.mark.parametrize("theta", [1, 1.5, 3])
def test_larger_grids_equal_the_definition(metric, theta):
    grid = Domain((9, 8))
    workload = workloads.Rectangles.random(grid, 12, rng=7)
    policy = policies.Threshold(grid, theta, metric=metric)
    found = sensitivity(policy, workload)
    assert found.how == "step by step over the grid"
    assert found == brute(policy, workload)


def test_two_cells_that_share_no_rectangle_make_the_bound_exact(monkeypatch):
    monkeypatch.setattr(rectangle_sensitivity, "MOST_ENTRIES", 0)
    grid = Domain((8, 8))
    lows = [[0, 0]] * 3 + [[6, 6]] * 2
    workload = workloads.Rectangles(grid, lows, np.add(lows, 2))
    found = sensitivity(policies.Full(grid), workload)
    assert found == 5
    assert found.exact
    apart = sensitivity(policies.Threshold(grid, 9), workload)
    assert apart <= found
    same = workloads.Rectangles(grid, [[0, 0]] * 4, [[8, 8]] * 2 + [[4, 4]] * 2)
    bound = sensitivity(policies.Full(grid), same)
    assert bound >= brute(policies.Full(grid), same) == 2
    assert not bound.exact


def test_whole_rectangles_on_a_line_are_ranges():
    line = Domain(30)
    ranges = workloads.Ranges.random(line, 20, rng=2)
    boxes = workloads.Rectangles(line, ranges.starts[:, None], ranges.ends[:, None])
    for policy in (
        policies.Full(line),
        policies.Threshold(line, 4),
        policies.Blocks(line, np.arange(30) % 4),
        policies.AddRemove(line),
    ):
        assert sensitivity(policy, boxes) == sensitivity(policy, ranges)


def test_a_large_grid_shrinks_to_the_sides_of_its_rectangles():
    grid = Domain((1024, 1024))
    workload = workloads.Rectangles.random(grid, 20, rng=5)
    slabs = rectangle_sensitivity.cut_grid(workload)
    assert max(slabs.shape) <= 41
    labels = slabs.labels()
    assert np.unique(labels).size == np.prod(slabs.shape)
    for policy in (
        policies.AddRemove(grid),
        policies.Full(grid),
        policies.Attribute(grid),
        policies.Threshold(grid, 1, metric="linf"),
    ):
        assert sensitivity(policy, workload).exact


def test_parts_of_a_cell_count_in_proportion():
    grid = Domain((2, 2))
    workload = workloads.Rectangles(grid, [[0, 0.5]], [[1.25, 2]])
    assert sensitivity(policies.AddRemove(grid), workload) == 1
    # Cell (1, 0) is held by 1/4 * 1/2, cell (0, 1) whole.
    assert sensitivity(policies.Full(grid), workload) == pytest.approx(1 - 0.125)
