from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast import Domain, policies, workloads
from blowfish_fast.errors import SizeError
from blowfish_fast.measure.sensitivity import columns as column_sensitivity
from blowfish_fast.measure.sensitivity.policy import sensitivity
from tests.generated import example_count
from tests.reference import policy_examples as examples
from tests.reference import policy_graphs
from tests.reference import policy_sensitivity as reference


@settings(max_examples=example_count(100))
@given(st.data())
def test_columns_equal_the_dense_matrix(data):
    domain = data.draw(st.sampled_from([Domain(6), Domain((2, 3))]))
    workload = data.draw(examples.any_workload(domain))
    columns = column_sensitivity.workload_columns(workload)
    dense = np.zeros((workload.queries, domain.size))
    owner = np.repeat(np.arange(domain.size), np.diff(columns.pointers))
    dense[columns.rows, owner] = columns.values
    np.testing.assert_allclose(dense, reference.dense(workload), atol=1e-15)
    np.testing.assert_allclose(columns.lengths(), np.abs(dense).sum(axis=0))


@settings(max_examples=example_count(150))
@given(examples.any_policy(), st.data(), st.sampled_from([0, 4, 30]))
def test_a_small_budget_never_goes_below_the_truth(policy, data, budget):
    cells = policy.domain.size
    row = st.lists(
        st.sampled_from([0.0, 1.0, -2.0, 0.5]), min_size=cells, max_size=cells
    )
    matrix = data.draw(st.lists(row, min_size=1, max_size=5))
    workload = workloads.Linear(policy.domain, matrix)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_sensitivity, "MOST_WORK", budget)
        patch.setattr(column_sensitivity, "MOST_EDGES", budget)
        found = sensitivity(policy, workload)
    edges = policy_graphs.edges_of(policy)
    expected = reference.sensitivity(edges, reference.rows(workload))
    assert found >= expected
    if found.exact:
        assert found == pytest.approx(float(expected), rel=1e-12)


def test_a_bound_says_that_it_is_one(monkeypatch):
    monkeypatch.setattr(column_sensitivity, "MOST_EDGES", 1)
    grid = Domain((3, 3))
    workload = workloads.Linear(grid, np.triu(np.ones((9, 9))))
    found = sensitivity(policies.Attribute(grid), workload)
    assert not found.exact
    assert "upper bound" in repr(found)
    assert found == 9 + 8


def test_equal_columns_are_merged_wherever_they_stand():
    # A thousand cells of two kinds, far more pairs than kinds of pairs.
    line = Domain(5000)
    rows = np.zeros((3, 5000))
    rows[0, ::2] = 1.0
    rows[1, 1::2] = 2.0
    rows[2] = 7.0
    found = sensitivity(policies.Full(line), workloads.Linear(line, rows))
    assert found == 3
    assert found.exact


def test_sums_of_decimals_are_rounded_up():
    line = Domain(2)
    tenths = workloads.Linear(line, [[0.1, 0.0]] * 30)
    found = sensitivity(policies.Full(line), tenths)
    assert found >= sum(reference.rows(tenths)[row][0] for row in range(30))
    assert found == pytest.approx(3.0, rel=1e-12)
    whole = workloads.Linear(line, [[3, 0]] * 30)
    assert sensitivity(policies.Full(line), whole) == 90


def test_too_many_coefficients_are_refused(monkeypatch):
    monkeypatch.setattr(column_sensitivity, "MOST_ENTRIES", 10)
    ranges = workloads.Ranges(Domain(20), [0], [11])
    with pytest.raises(SizeError, match="1 queries have too many coefficients"):
        column_sensitivity.workload_columns(ranges)


def brute(policy, workload):
    edges = policy_graphs.edges_of(policy)
    return reference.sensitivity(edges, reference.rows(workload))


@settings(max_examples=example_count(150))
@given(examples.on_a_grid(), st.data())
def test_rectangles_equal_the_definition(policy, data):
    workload = data.draw(examples.rectangles_over(policy.domain))
    found = sensitivity(policy, workload)
    expected = brute(policy, workload)
    assert found.exact
    assert found >= expected
    assert found == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("part", [0.25, 0.4, 2.0**-60])
def test_parts_of_cells_that_cancel_leave_what_they_are_rounded_by(part):
    # Of 1 - 0.4 and 3 - 0.4 - 2 the products with 0.6 differ in their last digits.
    grid = Domain((3, 3))
    workload = workloads.Rectangles(grid, [[0.0, part]], [[3 - part, 3 - part]])
    for edge in ([6, 8], [2, 8], [0, 1]):
        policy = policies.Graph(grid, [edge])
        found, expected = sensitivity(policy, workload), brute(policy, workload)
        assert expected <= found <= expected + 1e-14
    if part == 0.25:
        assert found == expected


@settings(max_examples=example_count(150))
@given(examples.on_a_grid(), st.data(), st.sampled_from([0, 40, 300]))
def test_small_budgets_never_go_below_the_truth(policy, data, budget):
    workload = data.draw(examples.rectangles_over(policy.domain))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_sensitivity, "MOST_ENTRIES", budget)
        patch.setattr(column_sensitivity, "MOST_WORK", budget)
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
    monkeypatch.setattr(column_sensitivity, "MOST_ENTRIES", 0)
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


def test_parts_of_cells_count_whole_where_too_many_would_be_listed(monkeypatch):
    grid = Domain((4, 4))
    workload = workloads.Rectangles(grid, [[0.5, 0.0], [0.0, 0.25]], [[2, 2], [3, 3]])
    some = np.zeros(16, dtype=bool)
    some[:6] = True
    exact = column_sensitivity.rectangles_over(workload, some)
    monkeypatch.setattr(column_sensitivity, "MOST_ENTRIES", 0)
    bound = column_sensitivity.rectangles_over(workload, some)
    assert bound.how.endswith("parts of a cell counted whole")
    assert (float(bound.value), bound.exact) == (2.0, False)
    assert float(exact.value) <= 2.0


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
    slabs = column_sensitivity.cut_grid(workload)
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


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_search_that_ends_early_is_exact_only_if_it_found_its_bound(
    monkeypatch, rounds
):
    domain = Domain((4, 4))
    asked = workloads.Rectangles(domain, [[0, 0], [3, 3]], [[1, 1], [4, 4]])
    full = policies.Full(domain)
    slabs = column_sensitivity.cut_grid(asked)
    monkeypatch.setattr(column_sensitivity, "ROUNDS", rounds)
    found = column_sensitivity._two_most_covered(full, asked, slabs)
    edges = policy_graphs.edges_of(full)
    assert found.value == reference.sensitivity(edges, reference.rows(asked)) == 2
    assert found.exact == (rounds == 1)
