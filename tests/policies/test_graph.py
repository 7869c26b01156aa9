from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast import Domain, policies
from blowfish_fast.errors import PolicyError, SizeError
from blowfish_fast.policies import graph
from tests.reference import policy_graphs as reference


def test_repeats_and_directions_count_once():
    policy = policies.Graph(Domain(4), [[1, 0], [0, 1], [3, 2], [-1, 2], [2, -1]])
    assert reference.listed(policy) == {(0, 1), (2, 3), (2, -1)}
    assert policy == policies.Graph(Domain(4), [[2, 3], [0, 1], [2, -1]])
    assert policy.edge_count == 3


def test_a_part_with_absent_has_a_private_total():
    policy = policies.Graph(Domain(5), [[0, 1], [2, -1], [3, -1]])
    parts = policy.components()
    assert parts.labels.tolist() == [0, 0, 1, 1, 2]
    assert parts.private.tolist() == [False, True, False]


def test_paths_may_pass_through_absent():
    policy = policies.Graph(Domain(4), [[0, 1], [1, -1], [-1, 2]])
    assert policy.distance(0, [1, -1, 2, 3]).tolist() == [1, 2, 3, np.inf]


def test_no_edges_mean_no_secrets():
    policy = policies.Graph(Domain(3), [])
    assert not policy.has_moves
    assert not policy.has_bottom
    assert policy.components().count == 3
    assert policy.describe().startswith("nothing is a secret")
    assert policies.Full(Domain(3)).implies(policy)


def test_the_quotient_keeps_absent():
    policy = policies.Graph(Domain(4), [[0, 1], [1, 2], [3, -1]])
    quotient = policy.project([0, 0, 1, 1])
    assert quotient == policies.Graph(Domain(2), [[0, 1], [1, -1]])


def test_words_tell_moves_and_presence_apart():
    policy = policies.Graph(Domain(4), [[0, 1], [3, -1]])
    assert "one of the 1 edges" in policy.describe()
    assert "for 1 of the 4 values" in policy.describe()
    assert policy.neighbours.endswith("is added or is removed")


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 4]], "edge 0, \\(0, 4\\)"),
        ([[0, 1], [-2, 1]], "edge 1, \\(-2, 1\\)"),
        ([[0, 1], [2, 2]], "edge 1"),
        ([[-1, -1]], "edge 0"),
        ([[0, 1, 2]], "pairs of cells"),
        ([0, 1], "pairs of cells"),
        ([[0, 0.5]], "whole numbers"),
        ([["a", "b"]], "whole numbers"),
        ([[0, 1], [2]], "edges|shape|inhomogeneous"),
        ([[True, False]], "whole numbers"),
    ],
)
def test_bad_edges_are_refused(edges, message):
    with pytest.raises(PolicyError, match=message):
        policies.Graph(Domain(4), edges)


def test_rows_cannot_be_changed():
    policy = policies.Graph(Domain(3), [[0, 1]])
    with pytest.raises(ValueError, match="read-only"):
        policy.rows.neighbours[0] = 2


def test_a_large_ring_is_handled_in_linear_time():
    cells = 2**16
    ring = np.stack([np.arange(cells), (np.arange(cells) + 1) % cells], axis=1)
    policy = policies.Graph(Domain(cells), ring)
    assert policy.edge_count == cells
    assert policy.components().count == 1
    assert policy.distance(0, [1, cells // 2, cells - 1]).tolist() == [1, cells / 2, 1]
    quotient = policy.project(np.arange(cells) // 2**8)
    assert quotient.edge_count == 2**8


@pytest.mark.parametrize(
    ("theta", "words"), [(1, "neighbouring cells"), (3, "cells up to 3 apart")]
)
def test_a_threshold_beside_extra_cells_is_told_as_one(theta, words):
    ages = Domain.from_edges(range(11), name="age").with_extra_cells(missing=True)
    pairs = [(a, b) for a in range(10) for b in range(a + 1, min(a + theta, 9) + 1)]
    joined = [(cell, 10) for cell in range(10)]
    told = policies.Graph(ages, pairs + joined).describe()
    assert words in told
    assert "(missing)" in told
    for edges in (pairs + joined[1:], pairs[1:] + joined):
        told = policies.Graph(ages, edges).describe()
        assert "edges of the policy graph" in told


def test_a_cell_for_missing_values_is_joined_to_all_where_edges_can_be_listed(
    monkeypatch,
):
    ages = Domain.from_edges([0, 1, 2, 3, 4], name="age").with_extra_cells(missing=True)
    inner = policies.Line(ages.without_extra_cells())
    monkeypatch.setattr(graph, "MOST_JOINED_EDGES", 3)
    joined = graph.join_extra_cells(inner, ages)
    assert joined.edge_count == 3 + 4
    assert joined.distance(0, 3) == 2
    monkeypatch.setattr(graph, "MOST_JOINED_EDGES", 2)
    with pytest.raises(SizeError, match="policy of 'age' has 3 edges"):
        graph.join_extra_cells(inner, ages)
