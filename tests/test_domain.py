"""Domains: public, validated, never guessed."""

from __future__ import annotations

import pickle

import pytest

from blowfish_fast import Domain
from blowfish_fast.errors import DomainError


def test_a_line_and_a_grid_know_their_cells():
    assert Domain(4096).shape == (4096,)
    assert Domain((3, 4)).size == 12
    assert Domain((3, 4), names=["age", "income"]).axis("income") == 1


def test_edges_make_one_cell_fewer():
    ages = Domain.from_edges(range(102), name="age")
    assert ages.size == 101
    assert ages.names == ("age",)


def test_products_join_attributes_in_order():
    ages = Domain.from_edges([0, 18, 65, 120], name="age")
    towns = Domain.from_levels(["Bern", "Basel"], name="town")
    both = Domain.product(ages, towns)
    assert both.shape == (3, 2)
    assert both.names == ("age", "town")


def test_equal_domains_are_equal_and_survive_json_and_pickle():
    ages = Domain.from_edges([0, 18, 65], name="age")
    assert Domain.from_dict(ages.to_dict()) == ages
    assert pickle.loads(pickle.dumps(ages)) == ages
    assert hash(Domain(3)) == hash(Domain([3]))
    assert Domain(3) != Domain(4)
    assert Domain(3) != 3


def test_a_domain_never_changes():
    with pytest.raises(AttributeError, match="never changes"):
        Domain(3).attributes = ()


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (0, "at least one cell"),
        (-3, "at least one cell"),
        ((4, 0), "at least one cell"),
        ((), "at least one cell"),
        (2.5, "whole numbers"),
        ("many", "whole numbers"),
        (True, "whole numbers"),
        ((2**20, 2**20), "at most 2\\^28"),
    ],
)
def test_bad_shapes_are_refused_with_a_reason(shape, words):
    with pytest.raises(DomainError, match=words):
        Domain(shape)


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([1], "at least two"),
        ([0, 2, 1], "increase strictly"),
        ([0, 0, 1], "increase strictly"),
        ([0, float("inf")], "finite"),
        ([0, float("nan"), 1], "finite"),
    ],
)
def test_bad_edges_are_refused_with_a_reason(edges, words):
    with pytest.raises(DomainError, match=words):
        Domain.from_edges(edges)


def test_levels_and_names_must_differ():
    with pytest.raises(DomainError, match="twice"):
        Domain.from_levels(["a", "a"])
    with pytest.raises(DomainError, match="empty"):
        Domain.from_levels([])
    with pytest.raises(DomainError, match="must differ"):
        Domain((2, 2), names=["age", "age"])
    with pytest.raises(DomainError, match="one name per attribute"):
        Domain((2, 2), names=["age"])
    with pytest.raises(DomainError, match="at least one domain"):
        Domain.product()
    with pytest.raises(DomainError, match="no attribute"):
        Domain(3).axis("age")
