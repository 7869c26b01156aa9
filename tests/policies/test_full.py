from __future__ import annotations

import tracemalloc

import numpy as np

from blowfish_fast import Domain, policies


def test_every_pair_is_joined():
    policy = policies.Full(Domain((2, 2)))
    edges = np.concatenate(list(policy.edges()))
    assert edges.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert policy.edge_count == 6


def test_it_implies_every_policy_without_absent():
    domain = Domain((3, 4))
    full = policies.Full(domain)
    assert full.implies(policies.Attribute(domain))
    assert full.implies(policies.Threshold(domain, 2, metric="linf"))
    assert not full.implies(policies.AddRemove(domain))
    assert not full.implies(policies.Full(Domain(12)))


def test_a_single_cell_has_no_secret():
    policy = policies.Full(Domain(1))
    assert not policy.has_moves
    assert list(policy.edges()) == []


def test_a_million_cells_allocate_nothing():
    domain = Domain(2**20)
    tracemalloc.start()
    policy = policies.Full(domain)
    assert policy.edge_count == 2**19 * (2**20 - 1)
    assert policy.has_moves
    assert policy.components().count == 1
    assert policy.longest_edge() == 2**20 - 1
    assert policy.distance(0, [5, 2**20 - 1]).tolist() == [1, 1]
    assert policy.describe()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


def test_bins_are_joined_to_each_other():
    quotient = policies.Full(Domain(2**20)).project(np.arange(2**20) // 2**10)
    assert quotient == policies.Full(Domain(2**10))
