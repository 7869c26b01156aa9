from __future__ import annotations

import copy
import pickle
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast import Domain, policies, workloads
from blowfish_fast.errors import DomainError, InputError, PolicyError, WorkloadError
from blowfish_fast.measure.sensitivity.policy import (
    Sensitivity,
    record_sum_sensitivity,
    sensitivity,
)
from tests.reference import policy_examples as examples
from tests.reference import policy_graphs
from tests.reference import policy_sensitivity as reference


def agrees(found: Sensitivity, expected: Fraction) -> bool:
    """Whether a sensitivity is never below the truth, and equal to it if it says so."""
    above = Fraction(float(found)) >= expected
    close = float(found) <= float(expected) * (1 + 1e-12)
    return above and (close or not found.exact)


@settings(max_examples=600)
@given(examples.any_policy(), st.data())
def test_every_pair_equals_the_maximum_over_all_edges(policy, data):
    workload = data.draw(examples.any_workload(policy.domain))
    found = sensitivity(policy, workload)
    edges = policy_graphs.edges_of(policy)
    expected = reference.sensitivity(edges, reference.rows(workload))
    assert found.exact
    assert agrees(found, expected)
    assert found.how


@settings(max_examples=250)
@given(examples.any_policy(), st.data())
def test_quotient_policies_have_exact_sensitivities_too(policy, data):
    quotient = policy.project(data.draw(examples.bins_over(policy.domain)))
    workload = data.draw(examples.any_workload(quotient.domain))
    found = sensitivity(quotient, workload)
    edges = policy_graphs.listed(quotient)
    assert found.exact
    assert agrees(found, reference.sensitivity(edges, reference.rows(workload)))


@settings(max_examples=150)
@given(examples.any_policy(), st.data())
def test_projection_keeps_the_sensitivity_of_supported_queries(policy, data):
    labels = data.draw(examples.bins_over(policy.domain))
    quotient = policy.project(labels)
    coarse = data.draw(examples.any_workload(quotient.domain))
    rows = reference.dense(coarse)
    fine = workloads.Linear(policy.domain, rows[:, labels])
    on_bins = sensitivity(quotient, workloads.Linear(quotient.domain, rows))
    assert sensitivity(policy, fine) == pytest.approx(on_bins, rel=1e-12)


@settings(max_examples=150)
@given(st.integers(2, 8), st.data())
def test_more_edges_never_lower_the_sensitivity(cells, data):
    domain = Domain(cells)
    some = data.draw(examples.edge_lists(cells))
    more = some + data.draw(examples.edge_lists(cells))
    workload = data.draw(examples.any_workload(domain))
    few, many = policies.Graph(domain, some), policies.Graph(domain, more)
    assert sensitivity(few, workload) <= sensitivity(many, workload)
    for theta in range(1, cells):
        nearer = sensitivity(policies.Threshold(domain, theta), workload)
        farther = sensitivity(policies.Threshold(domain, theta + 1), workload)
        assert nearer <= farther <= sensitivity(policies.Full(domain), workload)


def test_p2_all_ranges_on_twelve_cells():
    line = Domain(12)
    ranges = workloads.AllRanges(line)
    for u in range(12):
        for v in range(u + 1, 12):
            ways = reference.all_range_separation(u, v, 12)
            assert ways == (v - u) * (13 - (v - u))
    assert sensitivity(policies.Line(line), ranges) == 12
    assert sensitivity(policies.Full(line), ranges) == 42
    assert sensitivity(policies.AddRemove(line), ranges) == 42
    for theta in range(1, 13):
        expected = max(d * (13 - d) for d in range(1, min(theta, 11) + 1))
        assert sensitivity(policies.Threshold(line, theta), ranges) == expected


def test_p4_a_cumulative_workload_on_two_bins():
    line = Domain(200)
    labels = np.arange(200) // 100
    policy = policies.Threshold(line, 1)
    ranges = workloads.Ranges(line, [0, 0], [100, 200])
    quotient = policy.project(labels)
    assert quotient.domain.size == 2
    projected = workloads.Linear(quotient.domain, [[1, 0], [1, 1]])
    assert sensitivity(quotient, projected) == sensitivity(policy, ranges) == 1


def test_the_table_of_the_paper():
    line = Domain(20)
    add, full, near = (
        policies.AddRemove(line),
        policies.Full(line),
        policies.Threshold(line, 4),
    )
    cells, prefixes = workloads.Identity(line), workloads.Prefixes(line)
    assert [sensitivity(one, cells) for one in (add, full, near)] == [1, 2, 2]
    assert [sensitivity(one, prefixes) for one in (add, full, near)] == [20, 19, 4]
    assert sensitivity(policies.Line(line), prefixes) == 1
    halves = policies.Blocks(line, np.arange(20) // 10)
    known = workloads.Linear(line, np.repeat(np.eye(2), 10, axis=1))
    assert sensitivity(halves, known) == 0
    assert sensitivity(full, known) == 2
    assert sensitivity(halves, prefixes) == 9


def test_large_all_range_workloads_are_rounded_up_never_down():
    for cells in (2**28, 2**28 - 1, 2**28 - 3):
        line = Domain(cells)
        ways = (cells + 1) ** 2 // 4
        found = sensitivity(policies.Full(line), workloads.AllRanges(line))
        assert int(found) >= ways
        assert int(found) - ways <= 2
    odd = 2**27 + 1
    found = sensitivity(policies.Threshold(line, odd), workloads.AllRanges(line))
    assert Fraction(float(found)) >= odd * (cells + 1 - odd)


def test_closed_forms_allocate_nothing_on_a_million_cells():
    line = Domain(2**20)
    tracemalloc.start()
    for policy in (
        policies.Full(line),
        policies.Line(line),
        policies.Threshold(line, 1000),
    ):
        for workload in (
            workloads.Identity(line),
            workloads.Total(line),
            workloads.Prefixes(line),
        ):
            sensitivity(policy, workload)
    near = sensitivity(policies.Threshold(line, 1000), workloads.AllRanges(line))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert near == 1000 * (2**20 + 1 - 1000)
    assert peak < 2**21


@settings(max_examples=100)
@given(examples.on_a_line() | examples.by_value(), st.data())
def test_weighted_sums_over_records(policy, data):
    weights = data.draw(
        st.lists(st.sampled_from([-3.0, 0.5, 2.0]), min_size=1, max_size=4)
    )
    edges = policy.domain.attributes[0].edges
    if edges is None:
        low = high = np.arange(policy.domain.size, dtype=float)
    else:
        low, high = np.array(edges[:-1]), np.array(edges[1:])
    found = record_sum_sensitivity(policy, weights)
    graph = policy_graphs.edges_of(policy)
    expected = reference.record_sum(graph, low, high, max(map(abs, weights)))
    assert found >= expected
    assert found == pytest.approx(expected, rel=1e-12)
    given_values = record_sum_sensitivity(policy, weights, values=low**2)
    chosen = reference.sensitivity(graph, [[Fraction(one**2) for one in low.tolist()]])
    assert given_values == pytest.approx(float(chosen) * max(map(abs, weights)))


def test_record_sums_use_absolute_weights():
    line = Domain(101)
    assert record_sum_sensitivity(policies.Full(line), [-2.0, 1.0]) == 200
    assert record_sum_sensitivity(policies.Threshold(line, 10), [-2.0, 1.0]) == 20
    assert record_sum_sensitivity(policies.AddRemove(line), [-2.0, 1.0]) == 200
    ages = Domain.from_edges(range(0, 101, 10))
    # From the low end of one cell to the high end of the next.
    assert record_sum_sensitivity(policies.Line(ages), [1.0]) == 20
    assert record_sum_sensitivity(policies.Full(ages), [1.0]) == 100
    assert record_sum_sensitivity(policies.Line(ages), [0.0]) == 0


def test_record_sums_refuse_what_they_cannot_weigh():
    line = policies.Full(Domain(4))
    for weights in ([], [np.nan], [np.inf], "heavy"):
        with pytest.raises(WorkloadError, match="weights"):
            record_sum_sensitivity(line, weights)
    grid = policies.Full(Domain((2, 2)))
    with pytest.raises(WorkloadError, match=r"values=\.\.\."):
        record_sum_sensitivity(grid, [1.0])
    assert record_sum_sensitivity(grid, [2.0], values=[[0, 1], [5, 2]]) == 10


def test_policy_and_workload_must_share_a_domain():
    with pytest.raises(DomainError, match="share one domain"):
        sensitivity(policies.Full(Domain(4)), workloads.Identity(Domain(5)))


def test_arguments_must_be_a_policy_and_a_workload():
    line = Domain(4)
    with pytest.raises(PolicyError, match="policy first"):
        sensitivity(workloads.Identity(line), policies.Full(line))
    with pytest.raises(WorkloadError, match="workload second"):
        sensitivity(policies.Full(line), np.eye(4))
    with pytest.raises(PolicyError, match="policy first"):
        record_sum_sensitivity(line, [1.0])


def test_constraints_are_never_ignored():
    line = Domain(4)
    known = policies.Full(line).with_constraints(
        policies.CountConstraints(line, [[True, True, False, False]])
    )
    # Oracle C4: one public count over half of four values makes it 4, not 2.
    bound = sensitivity(known, workloads.Identity(line))
    assert bound == 4
    assert not bound.exact
    with pytest.raises(InputError, match="under constraints"):
        record_sum_sensitivity(known, [1.0])


def test_a_sensitivity_is_a_number_that_tells_how_it_was_found():
    line = Domain(4)
    found = sensitivity(policies.Line(line), workloads.Prefixes(line))
    assert found == 1
    assert found / 2 == 0.5
    assert isinstance(found, float)
    assert repr(found) == "Sensitivity(1: closed form: the longest edge, in cells)"
    bound = Sensitivity(3.0, exact=False, how="a guess")
    assert "upper bound" in str(bound)
    for other in (pickle.loads(pickle.dumps(bound)), copy.deepcopy(bound)):
        assert (other, other.exact, other.how) == (3.0, False, "a guess")


def test_no_queries_need_no_noise():
    line = Domain(4)
    nothing = workloads.Ranges(line, [], [])
    for policy in (policies.Full(line), policies.AddRemove(line)):
        assert sensitivity(policy, nothing) == 0


class Gaps(workloads.Workload):
    """Every other cell, together: a workload that the package does not know."""

    @property
    def queries(self):
        return 1

    def _answer(self, counts):
        return counts[::2].sum(keepdims=True)

    def explicit_form(self, buckets):
        rows = np.arange(self.domain.size) % 2 == 0
        return workloads.Linear(self.domain, rows[None].astype(float)).explicit_form(
            buckets
        )


def test_workloads_of_other_kinds_are_read_through_their_form():
    line = Domain(6)
    for policy in (policies.Line(line), policies.Full(line), policies.AddRemove(line)):
        assert sensitivity(policy, Gaps(line)) == 1
    even = policies.Blocks(line, [0, 1, 0, 1, 0, 1])
    assert sensitivity(even, Gaps(line)) == 0


def test_record_sums_ask_what_a_missing_value_counts_as():
    ages = Domain.from_edges([0, 10, 20, 30], name="age").with_extra_cells(missing=True)
    with pytest.raises(WorkloadError, match="have no value on the axis"):
        record_sum_sensitivity(policies.Full(ages), [1.0])
    assert record_sum_sensitivity(policies.Full(ages), [1.0], values=[5, 15, 25, 0])
