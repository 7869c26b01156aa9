from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast import Domain, policies, workloads
from blowfish_fast.measure.sensitivity import line as line_sensitivity
from blowfish_fast.measure.sensitivity.policy import sensitivity
from tests.reference import policy_examples as examples
from tests.reference import policy_graphs
from tests.reference import range_sensitivity as reference


@settings(max_examples=200)
@given(examples.on_a_line() | examples.by_value(), st.integers(0, 2**32 - 1))
def test_p6_the_sweep_equals_brute_force(policy, seed):
    ranges = workloads.Ranges.random(policy.domain, 12, rng=seed)
    moves = [pair for pair in policy_graphs.edges_of(policy) if pair[1] != -1]
    part = line_sensitivity.range_moves(policy, ranges.starts, ranges.ends)
    expected = reference.largest_separation(ranges.starts, ranges.ends, moves)
    assert part.exact
    assert part.value == expected


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
    expected = reference.largest_separation(ranges.starts, ranges.ends, pairs)
    assert sensitivity(policy, ranges) == expected


@settings(max_examples=60)
@given(st.integers(2, 14).flatmap(examples.block_labels))
def test_scattered_blocks_find_the_length_nearest_to_half(labels):
    cells = len(labels)
    policy = policies.Blocks(Domain(cells), labels)
    if not policy.has_moves:
        return
    lengths = [v - u for u, v in policy_graphs.edges_of(policy)]
    expected = max(length * (cells + 1 - length) for length in lengths)
    part = line_sensitivity.all_range_moves(policy, cells)
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
    monkeypatch.setattr(line_sensitivity, "MOST_ENTRIES", 0)
    monkeypatch.setattr(line_sensitivity, "MOST_EDGES", 0)
    bounds = [sensitivity(policy, workload) for policy, workload, _ in exact]
    assert all(bound >= one for bound, (*_, one) in zip(bounds, exact, strict=True))
    assert not all(bound.exact for bound in bounds)
    for bound, (*_, one) in zip(bounds, exact, strict=True):
        if bound.exact:
            assert bound == one
        else:
            assert "upper bound" in repr(bound)


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
