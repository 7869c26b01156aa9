from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from blowfish_fast import Domain, policies
from blowfish_fast.errors import PolicyError


def test_adjacent_cells_are_joined():
    policy = policies.Line(Domain(5))
    edges = np.concatenate(list(policy.edges(3)))
    assert edges.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert policy.distance(0, np.arange(5)).tolist() == [0, 1, 2, 3, 4]
    assert policy.bandwidth().far.tolist() == [1, 2, 3, 4, 4]


def test_contiguous_buckets_form_a_line():
    quotient = policies.Line(Domain(9)).project([0, 0, 1, 2, 2, 2, 2, 3, 3])
    assert quotient == policies.Line(Domain(4))


def test_other_bins_form_a_graph():
    quotient = policies.Line(Domain(4)).project([0, 1, 0, 2])
    edges = np.concatenate(list(quotient.edges()))
    assert edges.tolist() == [[0, 1], [0, 2]]
    assert isinstance(quotient, policies.Graph)


def test_several_attributes_are_refused():
    with pytest.raises(PolicyError, match="received a domain of 2 attributes"):
        policies.Line(Domain((3, 3)))


def test_the_name_of_the_attribute_is_used():
    ages = Domain.from_edges(range(5), name="age")
    text = policies.Line(ages).describe()
    assert text.startswith("two people whose age values lie in neighbouring cells")


def test_a_line_equals_no_threshold_but_implies_it():
    domain = Domain(6)
    line, threshold = policies.Line(domain), policies.Threshold(domain, 1)
    assert line != threshold
    assert line.implies(threshold)
    assert threshold.implies(line)


def test_a_million_cells_allocate_nothing():
    domain = Domain(2**20)
    tracemalloc.start()
    policy = policies.Line(domain)
    assert policy.edge_count == 2**20 - 1
    assert policy.longest_edge() == 1
    assert policy.distance(0, 2**20 - 1) == 2**20 - 1
    assert policy.describe()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20
