from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfish_fast import Domain, policies
from blowfish_fast.errors import SizeError
from tests.reference import policy_graphs as reference


def test_p5_single_attributes_have_fewer_edges_than_whole_records():
    grid = Domain((3, 4))
    attribute = policies.Attribute(grid)
    assert attribute.edge_count == len(reference.listed(attribute)) == 30
    assert policies.Full(grid).edge_count == 66
    product = policies.Product(policies.Full(Domain(3)), policies.Full(Domain(4)))
    assert reference.listed(product) == reference.listed(attribute)
    assert not attribute.implies(policies.Full(grid))


def test_distance_counts_the_attributes_that_differ():
    policy = policies.Attribute(Domain((4, 5, 6)))
    one = np.ravel_multi_index((1, 2, 3), (4, 5, 6))
    two = np.ravel_multi_index((3, 2, 5), (4, 5, 6))
    assert policy.distance(one, two) == 2


def test_one_attribute_is_the_full_policy():
    policy = policies.Attribute(Domain(7))
    assert policy.implies(policies.Full(Domain(7)))
    assert policy.bandwidth().far.tolist() == [6] * 7
    assert policies.Attribute(Domain((2, 3))).bandwidth() is None


def test_bins_along_one_axis_are_all_joined():
    labels = np.repeat(np.arange(32), 32)
    quotient = policies.Attribute(Domain((32, 32))).project(labels)
    assert quotient == policies.Full(Domain(32))


@given(st.integers(0, 2**32 - 1))
def test_patches_of_a_grid_inherit_the_edges(seed):
    rng = np.random.default_rng(seed)
    policy = policies.Attribute(Domain((6, 7)))
    labels = np.unique(rng.integers(0, 12, 42), return_inverse=True)[1]
    edges = reference.quotient(reference.edges_of(policy), labels)
    assert reference.listed(policy.project(labels)) == edges


def test_two_axes_of_three_form_a_grid_again():
    policy = policies.Attribute(Domain((4, 5, 6)))
    labels = np.repeat(np.arange(20), 6)
    quotient = policy.project(labels)
    assert reference.listed(quotient) == reference.edges_of(
        policies.Attribute(Domain((4, 5)))
    )


def test_a_dense_quotient_is_refused_with_its_size(monkeypatch):
    monkeypatch.setattr("blowfish_fast.policies.projection.MOST_LISTED", 100)
    policy = policies.Attribute(Domain((12, 12)))
    quotient = policy.project(np.arange(144)[::-1].copy())
    with pytest.raises(SizeError, match=r"792 pairs of bins.*policies\.Full"):
        quotient.rows  # noqa: B018
    assert quotient.components().count == 1


def test_names_of_the_attributes_are_used():
    grid = Domain((2, 3), names=["sex", "region"])
    assert "single attribute (sex, region)" in policies.Attribute(grid).describe()
