from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast import Domain, policies
from tests.generated import example_count
from tests.reference import policy_examples as examples
from tests.reference import policy_graphs as reference


@pytest.mark.long
@settings(max_examples=example_count(300))
@given(st.data())
def test_implying_means_more_edges(data):
    cells = data.draw(st.integers(1, 6))
    one = data.draw(examples.on_a_line(cells))
    other = data.draw(examples.on_a_line(cells))
    more = reference.edges_of(one) >= reference.edges_of(other)
    assert one.implies(other) == more


@pytest.mark.long
@settings(max_examples=example_count(300))
@given(examples.on_a_grid(), examples.on_a_grid())
def test_implying_means_more_edges_on_a_grid(one, other):
    if one.domain != other.domain:
        assert not one.implies(other)
        return
    more = reference.edges_of(one) >= reference.edges_of(other)
    assert one.implies(other) == more


def test_a_projection_implies_what_its_parent_implies():
    line = Domain(12)
    labels = np.arange(12) // 4
    assert policies.Full(line).project(labels).implies(policies.Line(line))
    assert policies.Line(line).project(labels).implies(policies.Line(line))
    assert not policies.Line(line).project(labels).implies(policies.Full(line))
    twice = policies.Line(line).project(labels).project([0, 0, 1])
    assert twice.implies(policies.Line(line))
    assert not policies.Line(Domain(3)).implies(policies.Line(line))


def test_cells_in_another_order_do_not_pass_for_the_cells_themselves():
    line = policies.Line(Domain(4))
    turned = line.project([3, 2, 1, 0])
    shuffled = line.project([0, 2, 1, 3])
    known = policies.CountConstraints(Domain(4), [[True, True, False, False]])
    assert turned.implies(line), "its edges are the same"
    for one in (
        shuffled,
        policies.from_dict(shuffled.to_dict()),
        line.with_constraints(known).project([0, 2, 1, 3]),
    ):
        assert not one.implies(line)
    # Fewer bins, or other names, cannot be mistaken.
    assert line.project([1, 0, 0, 0]).implies(line)
    named = policies.Line(Domain(4, names=["age"]))
    assert named.project([0, 2, 1, 3]).implies(named)


def test_moves_and_absent_are_compared_together():
    line = Domain(4)
    edges = [[0, 1], [1, 2], [2, 3], *([cell, -1] for cell in range(4))]
    both = policies.Graph(line, edges)
    assert both.implies(policies.Line(line))
    assert both.implies(policies.AddRemove(line))
    for one in (policies.Full(line), policies.AddRemove(line)):
        assert not one.implies(both)
    assert not policies.Graph(line, edges[:-1]).implies(policies.AddRemove(line))


def test_more_records_that_move_together_are_never_implied_by_fewer():
    line = Domain(6)
    halves = [[True] * 3 + [False] * 3]
    known = policies.CountConstraints(line, halves)
    bound = policies.Full(line).with_constraints(known)
    assert bound.group_size > 1
    assert bound.implies(policies.Full(line))
    assert not policies.Full(line).implies(bound)
