from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast import Domain, policies
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import PolicyError, SizeError
from blowfish_fast.policies import projection
from tests.generated import example_count
from tests.reference import policy_examples as examples
from tests.reference import policy_graphs as reference
from tests.reference.range_sensitivity import pairs_within


@given(st.integers(1, 12).flatmap(examples.furthest_cells))
def test_a_band_joins_up_to_the_furthest(far):
    policy = policies.Band(Domain(far.size), far)
    assert reference.listed(policy) == set(pairs_within(far))
    longest = max((v - u for u, v in pairs_within(far)), default=0)
    assert policy.longest_edge() == longest


@pytest.mark.parametrize(
    ("far", "message"),
    [
        ([1, 1], "each of the 3"),
        ([0, 0, 2], "not before its own"),
        ([1, 2, 3], "in the domain"),
        ([2, 1, 2], "never decrease"),
        ([0.5, 1, 2], "whole numbers"),
    ],
)
def test_bad_bands_are_refused(far, message):
    with pytest.raises(PolicyError, match=message):
        policies.Band(Domain(3), far)


def test_a_band_needs_one_ordered_attribute():
    with pytest.raises(PolicyError, match="one ordered attribute"):
        policies.Band(Domain((3, 1)), [0, 1, 2])


def test_an_order_of_the_cells_is_a_relabelled_graph():
    grid = policies.Threshold(Domain((4, 4)), 1)
    order = np.random.default_rng(3).permutation(16)
    along = grid.project(Buckets.single_cells(16, order))
    position = np.argsort(order)
    edges = {
        tuple(sorted((int(position[u]), int(position[v]))))
        for u, v in reference.edges_of(grid)
    }
    assert reference.listed(along) == edges
    assert along.parent is grid


def test_buckets_along_an_order_go_back_to_the_source():
    grid = policies.Attribute(Domain((4, 4)))
    order = np.random.default_rng(4).permutation(16)
    along = grid.project(Buckets.single_cells(16, order))
    bucketed = along.project(Buckets(np.array([0, 3, 9, 16])))
    labels = np.repeat([0, 1, 2], [3, 6, 7])[np.argsort(order)]
    expected = reference.quotient(reference.edges_of(grid), labels)
    assert reference.listed(bucketed) == expected
    assert bucketed.source is grid
    assert bucketed.implies(grid)


@settings(max_examples=example_count(60))
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 10, 2**13]))
def test_pairs_are_merged_alike_with_and_without_a_table(seed, table):
    rng = np.random.default_rng(seed)
    grid = policies.Threshold(Domain((6, 6)), 2)
    labels = np.unique(rng.integers(0, 20, 36), return_inverse=True)[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projection, "TABLE_BINS", table)
        patch.setattr(projection, "WAITING", 20)
        low, high = projection.list_bin_pairs(grid, Buckets.from_labels(labels))
    edges = reference.quotient(reference.edges_of(grid), labels)
    assert set(zip(low.tolist(), high.tolist(), strict=True)) == edges
    assert low.size == len(edges)


def test_too_many_edges_to_hold_are_refused(monkeypatch):
    monkeypatch.setattr(projection, "TABLE_BINS", 0)
    monkeypatch.setattr(projection, "MOST_HELD", 10)
    quotient = policies.Threshold(Domain((6, 6)), 1).project(np.arange(36)[::-1].copy())
    assert quotient.edge_count == 60
    with pytest.raises(SizeError, match=r"more than 10 pairs of its 36 bins"):
        quotient.rows  # noqa: B018


@settings(max_examples=example_count(60))
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 2**13]), st.booleans())
def test_edges_are_counted_up_to_a_limit(seed, table, single):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(24) if single else rng.integers(0, 9, 24)
    bins = Buckets.from_labels(np.unique(labels, return_inverse=True)[1])
    factors = policies.Line(Domain(4)), policies.Full(Domain(6))
    edges = len(reference.listed(policies.Product(*factors).project(bins)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projection, "TABLE_BINS", table)
        patch.setattr(projection, "WAITING", 5)
        for most in (0, edges - 1, edges, edges + 1, 1000):
            quotient = policies.Product(*factors).project(bins)
            found = edges if edges <= most else None
            assert quotient.edges_up_to(most) == found
            assert quotient.edges_up_to(most) == found
            assert quotient.edge_count == edges
            assert quotient.edges_up_to(most) == found


def test_what_was_walked_in_vain_is_not_walked_again(monkeypatch):
    walks = []
    walked = projection.list_bin_pairs
    monkeypatch.setattr(
        projection,
        "list_bin_pairs",
        lambda *given: walks.append(given) or walked(*given),
    )
    grid = policies.Threshold(Domain((6, 6)), 2)
    quotient = grid.project(Buckets.from_labels(np.arange(36) % 18))
    assert quotient.edges_up_to(3) is None
    assert quotient.edges_up_to(3) is None
    assert len(walks) == 1
    reordered = grid.project(np.arange(36)[::-1].copy())
    assert reordered.edges_up_to(3) is None
    assert reordered.edges_up_to(10**6) == grid.edge_count
    assert len(walks) == 1


def test_a_projection_survives_json():
    quotient = policies.Attribute(Domain((2, 3))).project([0, 1, 1, 2, 2, 0])
    copy = policies.from_dict(json.loads(json.dumps(quotient.to_dict())))
    assert copy == quotient
    assert hash(copy) == hash(quotient)
    assert copy.parent == quotient.parent
    assert reference.listed(copy) == reference.listed(quotient)


def test_a_projection_says_what_it_was_made_from():
    quotient = policies.Attribute(Domain((2, 3))).project([0, 1, 1, 2, 2, 0])
    assert quotient.describe().startswith("seen through 3 bins: two people who differ")
    assert quotient.neighbours.endswith("(seen through 3 bins)")


def test_a_million_cells_are_projected_without_listing_edges():
    grid = policies.Threshold(Domain((1024, 1024)), 100, metric="l2")
    order = np.arange(2**20).reshape(1024, 1024)[::-1].reshape(-1)
    along = grid.project(Buckets.single_cells(2**20, order))
    bucketed = along.project(Buckets(np.arange(0, 2**20 + 1, 2**8)))
    assert bucketed.has_moves
    assert bucketed.components().count == 1
    assert not bucketed.has_bottom
    with pytest.raises(SizeError, match=r"15,130,\d+,\d+ edges.*policies\.Full"):
        bucketed.edge_count  # noqa: B018


def test_only_one_axis_is_told_apart_from_several():
    labels = np.array([[0, 0], [1, 1]]).reshape(-1)
    assert projection.only_axis(labels, (2, 2)) == 0
    assert projection.only_axis(np.array([0, 1, 0, 1]), (2, 2)) == 1
    assert projection.only_axis(np.array([0, 1, 1, 0]), (2, 2)) is None


def test_what_a_projection_would_drop_is_refused():
    domain, bins = Domain(4), Buckets(np.array([0, 2, 4]))
    known = policies.CountConstraints(domain, [[True, True, False, False]])
    sources = [
        policies.AddRemove(domain),
        policies.Graph(domain, [[0, 1], [2, -1]]),
        policies.Full(domain).with_constraints(known),
    ]
    for source in sources:
        with pytest.raises(PolicyError, match="between bins only"):
            policies.Projection(source, bins)
        stated = {"source": source.to_dict(), "labels": bins.labels.tolist()}
        with pytest.raises(PolicyError, match="between bins only"):
            policies.from_dict(
                {"kind": "projection", "domain": Domain(2).to_dict(), **stated}
            )
        kept = source.project(bins)
        assert kept.has_bottom == source.has_bottom
        assert kept.group_size == source.group_size
    with pytest.raises(PolicyError, match="must cover the 4 cells"):
        policies.Projection(policies.Full(domain), Buckets(np.array([0, 2])))
