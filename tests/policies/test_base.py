from __future__ import annotations

import copy
import itertools
import json
import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast import Domain, policies
from blowfish_fast.audit import policy_families
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError, PolicyError
from blowfish_fast.policies import protocol
from tests.reference import policy_examples as examples
from tests.reference import policy_graphs as reference


def pickled(policy):
    return pickle.loads(pickle.dumps(policy))


@settings(max_examples=150)
@given(examples.any_policy())
def test_edges_equal_the_definition(policy):
    edges = reference.edges_of(policy)
    assert reference.listed(policy) == edges
    assert policy.edge_count == len(edges)
    assert policy.has_bottom == any(high == -1 for _, high in edges)
    assert policy.has_moves == any(high != -1 for _, high in edges)
    degrees = reference.network(edges, policy.domain.size).degree
    assert policy.max_degree == max(degrees(cell) for cell in range(policy.domain.size))
    bottom = {low for low, high in edges if high == -1}
    assert set(np.flatnonzero(policy.bottom_cells()).tolist()) == bottom


@settings(max_examples=60)
@given(examples.any_policy(), st.integers(1, 5))
def test_chunks_hold_at_most_what_was_asked(policy, chunk):
    sizes = [part.shape for part in policy.edges(chunk)]
    assert all(1 <= rows <= chunk and ends == 2 for rows, ends in sizes)
    assert sum(rows for rows, _ in sizes) == policy.edge_count


@settings(max_examples=150)
@given(examples.any_policy())
def test_distances_and_joins_equal_networkx(policy):
    edges, cells = reference.edges_of(policy), policy.domain.size
    everything = np.arange(cells)
    steps = policy.distance(everything[:, None], everything)
    np.testing.assert_array_equal(steps, reference.distances(edges, cells))
    joined = policy.joins(everything[:, None], everything)
    for u, v in itertools.combinations(range(cells), 2):
        assert joined[u, v] == joined[v, u] == ((u, v) in edges)
    assert not np.diag(joined).any()


@settings(max_examples=60)
@given(examples.any_policy())
def test_absent_is_as_far_as_the_graph_says(policy):
    edges, cells = reference.edges_of(policy), policy.domain.size
    graph = reference.network(edges, cells)
    graph.add_node(-1)
    steps = nx.single_source_shortest_path_length(graph, -1)
    expected = [steps.get(cell, np.inf) for cell in range(cells)]
    assert policy.distance(-1, np.arange(cells)).tolist() == expected
    assert policy.distance(-1, -1) == 0
    assert policy.joins(np.arange(cells), -1).tolist() == [one == 1 for one in expected]


@settings(max_examples=150)
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


@settings(max_examples=250)
@given(examples.any_policy(), st.data())
def test_the_quotient_equals_the_definition(policy, data):
    labels = data.draw(examples.bins_over(policy.domain))
    quotient = policy.project(labels)
    edges = reference.quotient(reference.edges_of(policy), labels)
    assert reference.listed(quotient) == edges
    assert quotient.parent is policy
    assert quotient.domain == Domain(int(labels.max()) + 1)
    assert quotient.has_moves == any(high != -1 for _, high in edges)
    assert quotient.has_bottom == policy.has_bottom
    assert quotient.components().count == len(
        [
            part
            for part in nx.connected_components(
                reference.network(edges, quotient.domain.size)
            )
            if part != {-1}
        ]
    )
    steps = np.arange(quotient.domain.size)
    np.testing.assert_array_equal(
        quotient.distance(steps[:, None], steps),
        reference.distances(edges, quotient.domain.size),
    )
    assert json.loads(json.dumps(quotient.to_dict())) == quotient.to_dict()
    assert policies.from_dict(quotient.to_dict()) == quotient


@settings(max_examples=100)
@given(examples.any_policy(), st.data())
def test_quotients_nest(policy, data):
    outer = data.draw(examples.bins_over(policy.domain))
    once = policy.project(outer)
    inner = data.draw(examples.bins_over(once.domain))
    twice = once.project(inner)
    direct = policy.project(inner[outer])
    assert reference.listed(twice) == reference.listed(direct)
    assert twice.parent is once


@settings(max_examples=150)
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


@settings(max_examples=100)
@given(examples.on_a_line() | examples.by_value())
def test_the_longest_edge_is_the_longest(policy):
    lengths = [v - u for u, v in reference.edges_of(policy) if v != -1]
    assert policy.longest_edge() == max(lengths, default=0)


@settings(max_examples=300)
@given(st.data())
def test_implying_means_more_edges(data):
    cells = data.draw(st.integers(1, 6))
    one = data.draw(examples.on_a_line(cells))
    other = data.draw(examples.on_a_line(cells))
    more = reference.edges_of(one) >= reference.edges_of(other)
    assert one.implies(other) == more


@settings(max_examples=300)
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


@settings(max_examples=150)
@given(examples.any_policy(), examples.any_policy())
def test_json_equality_and_hashing(one, other):
    copy = policies.from_dict(json.loads(json.dumps(one.to_dict())))
    assert copy == one
    assert hash(copy) == hash(one)
    assert type(copy) is type(one)
    if one == other:
        assert hash(one) == hash(other)
        assert reference.edges_of(one) == reference.edges_of(other)
    assert one != "policy"


@settings(max_examples=60)
@given(examples.any_policy())
def test_words_say_what_is_protected(policy):
    text = policy.describe()
    assert "e^eps" in text or "nothing is a secret" in text
    assert "record" in policy.neighbours
    assert type(policy).__name__ in repr(policy)


def test_kinds_are_complete():
    known = {
        "add_remove",
        "attribute",
        "blocks",
        "full",
        "graph",
        "line",
        "product",
        "projection",
        "band",
        "threshold",
    }
    assert known <= set(policies.POLICIES)
    assert all(policies.POLICIES[kind].kind == kind for kind in known)


def test_unknown_kinds_are_refused():
    with pytest.raises(PolicyError, match="no policy of kind 'ring'"):
        policies.from_dict({"kind": "ring"})


def test_a_policy_needs_a_domain():
    with pytest.raises(PolicyError, match="over a Domain"):
        policies.Full(12)


def test_labels_must_cover_the_domain():
    policy = policies.Full(Domain(6))
    with pytest.raises(DomainError, match="each of the 6 cells"):
        policy.project([0, 0, 1])
    with pytest.raises(DomainError, match="1 is missing"):
        policy.project([0, 0, 2, 2, 2, 2])
    with pytest.raises(DomainError, match="each of the 6 cells"):
        policy.project(Buckets(np.array([0, 3])))


@pytest.mark.parametrize("cells", [6, -2, [0, 6], 0.5, "one"])
def test_cells_outside_the_domain_are_refused(cells):
    with pytest.raises(PolicyError):
        policies.Line(Domain(6)).distance(cells, 0)


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


@pytest.mark.parametrize("name", ["theta", "domain", "parent"])
def test_a_policy_does_not_change_once_it_is_stated(name):
    policy = policies.Threshold(Domain(40), theta=1)
    with pytest.raises(PolicyError, match="once it is stated"):
        setattr(policy, name, 15)
    assert policy.theta == 1


def test_the_labels_of_a_policy_are_its_own():
    labels = np.array([0, 0, 1, 1])
    policy = policies.Blocks(Domain(4), labels)
    labels[:] = 0
    assert policy.components().count == 2


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize("family", sorted(policy_families(Domain(6))))
def test_policies_can_be_copied_and_pickled(family, copied):
    policy = policy_families(Domain(6))[family]
    assert copied(policy) == policy
    assert copied(policy.project([0, 0, 1, 1, 2, 2])).parent == policy


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
