from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast import Domain, policies
from blowfish_fast.errors import PolicyError, WorkloadError
from blowfish_fast.measure.sensitivity.record_sums import record_sum_sensitivity
from tests.reference import policy_examples as examples
from tests.reference import policy_graphs
from tests.reference import policy_sensitivity as reference


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


def test_record_sums_ask_what_a_missing_value_counts_as():
    ages = Domain.from_edges([0, 10, 20, 30], name="age").with_extra_cells(missing=True)
    with pytest.raises(WorkloadError, match="have no value on the axis"):
        record_sum_sensitivity(policies.Full(ages), [1.0])
    assert record_sum_sensitivity(policies.Full(ages), [1.0], values=[5, 15, 25, 0])


def test_record_sums_ask_for_a_policy_without_constraints():
    line = Domain(4)
    with pytest.raises(PolicyError, match="policy first"):
        record_sum_sensitivity(line, [1.0])
    known = policies.Full(line).with_constraints(
        policies.CountConstraints(line, [[True, True, False, False]])
    )
    with pytest.raises(PolicyError, match="under constraints"):
        record_sum_sensitivity(known, [1.0])
