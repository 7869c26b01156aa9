from __future__ import annotations

import copy
import itertools
import pickle
import sys
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast import Domain, policies, workloads
from blowfish_fast.errors import (
    DomainError,
    PolicyError,
    SizeError,
    WorkloadError,
)
from blowfish_fast.measure.sensitivity import policy as policy_sensitivity
from blowfish_fast.measure.sensitivity.policy import Sensitivity, sensitivity
from tests.generated import example_count
from tests.reference import policy_examples as examples
from tests.reference import policy_graphs
from tests.reference import policy_sensitivity as reference
from tests.reference import range_sensitivity as ranges_reference


def agrees(found: Sensitivity, edges, rows) -> bool:
    """Whether a sensitivity is never below the truth, and equal to it if it says so."""
    expected = reference.sensitivity(edges, rows)
    above = Fraction(float(found)) >= expected
    # Roundings go up, from 0 to the least positive number; parts of cells are off by
    # some roundings of the longest column, even where columns cancel.
    least = sys.float_info.min
    if any(value.denominator > 1 for row in rows for value in row):
        longest = max(
            sum(abs(row[cell]) for row in rows) for cell in range(len(rows[0]))
        )
        least = 16 * 2.0**-52 * float(longest)
    close = float(found) <= float(expected) * (1 + 1e-12) + least
    return above and (close or not found.exact)


@pytest.mark.long
@settings(max_examples=example_count(600))
@given(examples.any_policy(), st.data())
def test_every_pair_equals_the_maximum_over_all_edges(policy, data):
    workload = data.draw(examples.any_workload(policy.domain))
    found = sensitivity(policy, workload)
    edges = policy_graphs.edges_of(policy)
    assert found.exact
    assert agrees(found, edges, reference.rows(workload))
    assert found.how


@settings(max_examples=example_count(250))
@given(examples.any_policy(), st.data())
def test_quotient_policies_have_exact_sensitivities_too(policy, data):
    quotient = policy.project(data.draw(examples.bins_over(policy.domain)))
    workload = data.draw(examples.any_workload(quotient.domain))
    found = sensitivity(quotient, workload)
    edges = policy_graphs.listed(quotient)
    assert found.exact
    assert agrees(found, edges, reference.rows(workload))


@settings(max_examples=example_count(150))
@given(examples.any_policy(), st.data())
def test_projection_keeps_the_sensitivity_of_supported_queries(policy, data):
    labels = data.draw(examples.bins_over(policy.domain))
    quotient = policy.project(labels)
    coarse = data.draw(examples.any_workload(quotient.domain))
    rows = reference.dense(coarse)
    fine = workloads.Linear(policy.domain, rows[:, labels])
    on_bins = sensitivity(quotient, workloads.Linear(quotient.domain, rows))
    assert sensitivity(policy, fine) == pytest.approx(on_bins, rel=1e-12)


@settings(max_examples=example_count(150))
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


def test_policy_and_workload_must_share_a_domain():
    with pytest.raises(DomainError, match="share one domain"):
        sensitivity(policies.Full(Domain(4)), workloads.Identity(Domain(5)))


def test_arguments_must_be_a_policy_and_a_workload():
    line = Domain(4)
    with pytest.raises(PolicyError, match="policy first"):
        sensitivity(workloads.Identity(line), policies.Full(line))
    with pytest.raises(WorkloadError, match="workload second"):
        sensitivity(policies.Full(line), np.eye(4))


def test_constraints_are_never_ignored():
    line = Domain(4)
    known = policies.Full(line).with_constraints(
        policies.CountConstraints(line, [[True, True, False, False]])
    )
    # Oracle C4: one public count over half of four values makes it 4, not 2.
    bound = sensitivity(known, workloads.Identity(line))
    assert bound == 4
    assert not bound.exact


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


@settings(max_examples=example_count(200))
@given(examples.on_a_line() | examples.by_value(), st.integers(0, 2**32 - 1))
def test_p6_the_sweep_equals_brute_force(policy, seed):
    ranges = workloads.Ranges.random(policy.domain, 12, rng=seed)
    moves = [pair for pair in policy_graphs.edges_of(policy) if pair[1] != -1]
    part = policy_sensitivity.range_moves(policy, ranges.starts, ranges.ends)
    expected = ranges_reference.largest_separation(ranges.starts, ranges.ends, moves)
    assert part.exact
    assert part.value == expected


@pytest.mark.long
@pytest.mark.parametrize("theta", [1, 2, 5, 20, 79])
def test_p6_the_sweep_equals_brute_force_on_a_longer_line(theta):
    line = Domain(80)
    ranges = workloads.Ranges.random(line, 100, rng=theta)
    policy = policies.Threshold(line, theta)
    pairs = [
        pair
        for pair in itertools.combinations(range(80), 2)
        if pair[1] - pair[0] <= theta
    ]
    expected = ranges_reference.largest_separation(ranges.starts, ranges.ends, pairs)
    assert sensitivity(policy, ranges) == expected


@settings(max_examples=example_count(60))
@given(st.integers(2, 14).flatmap(examples.block_labels))
def test_scattered_blocks_find_the_length_nearest_to_half(labels):
    cells = len(labels)
    policy = policies.Blocks(Domain(cells), labels)
    if not policy.has_moves:
        return
    lengths = [v - u for u, v in policy_graphs.edges_of(policy)]
    expected = max(length * (cells + 1 - length) for length in lengths)
    part = policy_sensitivity.all_range_moves(policy, cells)
    assert part.exact
    assert part.value == expected


def test_a_budget_too_small_gives_a_bound_that_says_so(monkeypatch):
    line = Domain(12)
    ranges = workloads.Ranges.random(line, 9, rng=3)
    scattered = policies.Blocks(line, np.arange(12) % 3)
    ring = policies.Graph(line, [[i, (i + 5) % 12] for i in range(12)])
    exact = [
        (policy, workload, sensitivity(policy, workload))
        for policy in (scattered, ring)
        for workload in (ranges, workloads.AllRanges(line))
    ]
    monkeypatch.setattr(policy_sensitivity, "MOST_ENTRIES", 0)
    monkeypatch.setattr(policy_sensitivity, "MOST_EDGES", 0)
    bounds = [sensitivity(policy, workload) for policy, workload, _ in exact]
    assert all(bound >= one for bound, (*_, one) in zip(bounds, exact, strict=True))
    assert not all(bound.exact for bound in bounds)
    for bound, (*_, one) in zip(bounds, exact, strict=True):
        if bound.exact:
            assert bound == one
        else:
            assert "upper bound" in repr(bound)


def test_more_edges_than_are_listed_give_a_bound_by_the_most_covered_cells(monkeypatch):
    line = Domain(12)
    ring = policies.Graph(line, [[i, (i + 5) % 12] for i in range(12)])
    ranges = workloads.Ranges(line, [0, 0, 4], [2, 3, 6])
    monkeypatch.setattr(policy_sensitivity, "MOST_EDGES", 8 * 12)
    listed = sensitivity(ring, ranges)
    monkeypatch.setattr(policy_sensitivity, "MOST_EDGES", 8 * 11)
    bound = sensitivity(ring, ranges)
    assert (listed.exact, bound.exact) == (True, False)
    assert (listed, bound) == (3, 3)


def test_many_ranges_over_many_cells_agree_with_the_difference_of_prefixes():
    # Under the line policy only range ends between two cells count.
    line = Domain(2**14)
    ranges = workloads.Ranges.random(line, 3000, rng=1)
    ends = np.bincount(
        np.concatenate([ranges.starts, ranges.ends]), minlength=2**14 + 1
    )
    expected = ends[1:-1].max()
    assert sensitivity(policies.Line(line), ranges) == expected
    assert sensitivity(policies.Threshold(line, 1), ranges) == expected
    step = np.arange(2**14 - 1)
    path = policies.Graph(line, np.stack([step, step + 1], axis=1))
    assert sensitivity(path, ranges) == expected


def test_ranges_under_a_graph_with_absence_are_walked_edge_by_edge():
    domain = Domain(6)
    policy = policies.WithAbsent(policies.Graph(domain, [[0, 3], [1, 5], [2, 4]]))
    ranges = workloads.Ranges(domain, [0, 1, 1, 2], [2, 4, 4, 6])
    found = policy_sensitivity.range_moves(
        policy, np.array([0, 1, 1, 2]), np.array([2, 4, 4, 6])
    )
    edges = np.concatenate(list(policy.edges())).tolist()
    assert found.exact
    assert found.value == reference.sensitivity(edges, reference.rows(ranges))


def test_all_ranges_under_edges_that_cannot_be_listed_are_bounded_from_above():
    domain = Domain(6)
    edges = [[0, 5], [1, 2]]

    class Unlisted(policies.Graph):
        def edges(self, chunk=2**20):
            raise SizeError("too many edges to list")

    found = policy_sensitivity.all_range_moves(Unlisted(domain, edges), 6)
    listed = policy_sensitivity.all_range_moves(policies.Graph(domain, edges), 6)
    every = [reference.all_range_separation(0, v, 6) for v in range(1, 6)]
    assert listed == (max(every[4], every[0]), True, "edge by edge")
    assert found.value == max(every)
    assert not found.exact
