from __future__ import annotations

import numpy as np

from blowfish_fast import Domain, policies


def test_every_cell_is_one_edge_from_absent():
    policy = policies.AddRemove(Domain(5))
    edges = np.concatenate(list(policy.edges(2)))
    assert edges.tolist() == [[cell, -1] for cell in range(5)]
    assert policy.distance([0, 1, -1, -1], [0, 3, 2, -1]).tolist() == [0, 2, 1, 0]


def test_every_total_is_private():
    parts = policies.AddRemove(Domain((2, 3))).components()
    assert parts.labels is None
    assert parts.private.tolist() == [True]


def test_moves_are_not_its_edges():
    domain = Domain(4)
    policy = policies.AddRemove(domain)
    assert not policy.has_moves
    assert not policy.implies(policies.Line(domain))
    assert policy.implies(policies.Graph(domain, [[0, -1], [3, -1]]))
    assert policy.longest_edge() == 0


def test_bins_stay_joined_to_absent():
    assert policies.AddRemove(Domain(4)).project([0, 0, 1, 1]) == policies.AddRemove(
        Domain(2)
    )


def test_it_says_so():
    policy = policies.AddRemove(Domain(4))
    assert "whether any one person is in the data" in policy.describe()
    assert policy.neighbours == "one record is added or removed"
