from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast import Domain, policies
from blowfish_fast.policies import protocol
from tests.generated import example_count
from tests.reference import policy_examples as examples
from tests.reference import policy_graphs as reference


@settings(max_examples=example_count(150))
@given(examples.any_policy())
def test_edges_equal_the_definition(policy):
    edges = reference.edges_of(policy)
    assert reference.listed(policy) == edges
    assert policy.edge_count == len(edges)
    assert policy.has_bottom == any(high == -1 for _, high in edges)
    assert policy.has_moves == any(high != -1 for _, high in edges)
    bottom = {low for low, high in edges if high == -1}
    assert set(np.flatnonzero(policy.bottom_cells()).tolist()) == bottom


@settings(max_examples=example_count(60))
@given(examples.any_policy(), st.integers(1, 5))
def test_chunks_hold_at_most_what_was_asked(policy, chunk):
    sizes = [part.shape for part in policy.edges(chunk)]
    assert all(1 <= rows <= chunk and ends == 2 for rows, ends in sizes)
    assert sum(rows for rows, _ in sizes) == policy.edge_count


@settings(max_examples=example_count(150))
@given(examples.any_policy())
def test_components_equal_networkx(policy):
    edges, cells = reference.edges_of(policy), policy.domain.size
    parts = policy.components()
    labels = np.zeros(cells, np.int64) if parts.labels is None else parts.labels
    assert (parts.labels is None) == (parts.count == 1)
    found = {
        (frozenset(np.flatnonzero(labels == part).tolist()), bool(parts.private[part]))
        for part in range(parts.count)
    }
    expected = {
        (frozenset(part - {-1}), -1 in part)
        for part in nx.connected_components(reference.network(edges, cells))
    }
    assert found == expected


@pytest.mark.long
@settings(max_examples=example_count(150))
@given(examples.any_policy(), st.data())
def test_bandwidth_names_the_furthest_neighbour(policy, data):
    cells = policy.domain.size
    order = data.draw(st.none() | st.permutations(range(cells)).map(np.array))
    band = policy.bandwidth(order)
    if band is None:
        assert order is not None or policy.domain.ndim > 1
        return
    position = np.arange(cells)
    if order is not None:
        position[order] = np.arange(cells)
    above = [set() for _ in range(cells)]
    for u, v in reference.edges_of(policy):
        if v != -1:
            low, high = sorted((int(position[u]), int(position[v])))
            above[low].add(high)
    assert band.far.tolist() == [max(one, default=i) for i, one in enumerate(above)]
    whole = all(len(one) == band.far[i] - i for i, one in enumerate(above))
    assert band.all_between == (whole and bool((np.diff(band.far) >= 0).all()))


@settings(max_examples=example_count(100))
@given(examples.on_a_line() | examples.by_value())
def test_the_longest_edge_is_the_longest(policy):
    lengths = [v - u for u, v in reference.edges_of(policy) if v != -1]
    assert policy.longest_edge() == max(lengths, default=0)


@settings(max_examples=example_count(60))
@given(examples.any_policy())
def test_words_say_what_is_protected(policy):
    text = policy.describe()
    assert "e^eps" in text or "nothing is a secret" in text
    assert "record" in policy.neighbours
    assert type(policy).__name__ in repr(policy)


def test_a_quotient_too_large_to_walk_is_refused_with_its_size(monkeypatch):
    grid = policies.Threshold(Domain((6, 6)), 2)
    labels = np.arange(36) % 7
    quotient = grid.project(labels)
    monkeypatch.setattr("blowfish_fast.policies.threshold.MOST_LISTED", 10)
    monkeypatch.setattr(protocol, "MOST_LISTED", 10)
    with pytest.raises(protocol.SizeError, match="edges; at most"):
        quotient.edge_count  # noqa: B018
    assert quotient.has_moves
    assert quotient.components().count == 1
    assert not quotient.implies(policies.Full(Domain(7)))
    assert quotient.bandwidth() is None


def test_moves_and_absent_stand_in_one_graph():
    # Cells 0 to 2 form a line, and whoever is in cell 2 may be absent.
    line = Domain(4)
    both = policies.Graph(line, [[0, 1], [1, 2], [2, -1]])
    assert both.has_moves
    assert both.has_bottom
    assert both.bottom_cells().tolist() == [False, False, True, False]
    assert both.components().private.tolist() == [True, False]
    assert both.distance(0, [1, 2, 3, -1]).tolist() == [1, 2, np.inf, 3]
    assert both.longest_edge() == 1, "edges to absent span nothing"
    assert both.largest_change(np.array([[0.0, 1.0, 5.0, 9.0]])).value == 4
    coarse = both.project([0, 0, 1, 1])
    assert reference.listed(coarse) == {(0, 1), (1, -1)}
    assert float(bf.sensitivity(both, bf.workloads.Identity(line))) == 2
    assert float(bf.sensitivity(both, bf.workloads.Prefixes(line))) == 2
