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
from tests.generated import example_count
from tests.reference import policy_examples as examples
from tests.reference import policy_graphs as reference


def pickled(policy):
    return pickle.loads(pickle.dumps(policy))


@pytest.mark.long
@settings(max_examples=example_count(150))
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


@settings(max_examples=example_count(60))
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


@pytest.mark.long
@settings(max_examples=example_count(250))
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


@pytest.mark.long
@settings(max_examples=example_count(100))
@given(examples.any_policy(), st.data())
def test_quotients_nest(policy, data):
    outer = data.draw(examples.bins_over(policy.domain))
    once = policy.project(outer)
    inner = data.draw(examples.bins_over(once.domain))
    twice = once.project(inner)
    direct = policy.project(inner[outer])
    assert reference.listed(twice) == reference.listed(direct)
    assert twice.parent is once


@pytest.mark.long
@settings(max_examples=example_count(150))
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
    with pytest.raises(PolicyError, match="no such kind of policy; received 'ring'"):
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
