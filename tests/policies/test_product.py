from __future__ import annotations

import json
import math

import numpy as np
import pytest

from blowfish_fast import Domain, policies
from blowfish_fast.errors import DomainError, InputError, PolicyError, SizeError
from blowfish_fast.policies import CountConstraints
from blowfish_fast.policies.grid_steps import step_pairs
from tests.reference import policy_graphs as reference


def test_one_attribute_moves_along_one_edge():
    policy = policies.Product(policies.Line(Domain(3)), policies.Full(Domain(4)))
    assert policy.domain == Domain((3, 4))
    # Two line edges over four columns, six pairs over three rows.
    assert policy.edge_count == len(reference.listed(policy)) == 2 * 4 + 6 * 3


@pytest.mark.parametrize("slabs", [(1, 1), (2, 3), (5, 1)])
def test_moves_that_look_alike_from_every_cell_are_steps(slabs):
    policy = policies.Product(policies.Line(Domain(5)), policies.Full(Domain(4)))
    rows, columns = np.indices((5, 4))
    coarse = rows // slabs[0], columns // slabs[1]
    shape = tuple(int(one.max()) + 1 for one in coarse)
    labels = np.ravel_multi_index(coarse, shape).reshape(-1)
    steps = policy.grid_moves(shape, 20)
    cells = np.arange(math.prod(shape)).reshape(shape)
    moved = {
        pair
        for ends in step_pairs(cells, steps)
        for pair in pairs(np.column_stack(ends))
    }
    assert moved == reference.quotient(reference.edges_of(policy), labels)
    assert policy.grid_moves(shape, len(steps) - 1) is None
    blocks = policies.Blocks(Domain(4), [0, 0, 1, 1])
    assert policies.Product(blocks, blocks).grid_moves((4, 4), 20) is None


def pairs(chunk):
    return [tuple(pair) for pair in chunk.tolist()]


def test_distances_add_up():
    factors = policies.Line(Domain(5)), policies.Blocks(Domain(4), [0, 0, 1, 1])
    policy = policies.Product(*factors)
    one = np.ravel_multi_index((0, 0), (5, 4))
    assert policy.distance(one, np.ravel_multi_index((3, 1), (5, 4))) == 4
    assert policy.distance(one, np.ravel_multi_index((3, 2), (5, 4))) == np.inf


def test_components_are_products_of_components():
    halves = policies.Blocks(Domain(4), [0, 0, 1, 1])
    parts = policies.Product(halves, halves.project([0, 1, 2, 3])).components()
    assert parts.count == 4
    labels = parts.labels.reshape(4, 4)
    assert labels.tolist() == [[0, 0, 1, 1]] * 2 + [[2, 2, 3, 3]] * 2


def test_factors_may_span_several_attributes():
    policy = policies.Product(policies.Full(Domain((2, 2))), policies.Line(Domain(3)))
    assert policy.domain.shape == (2, 2, 3)
    assert reference.listed(policy) == reference.edges_of(policy)


def test_keeping_one_attribute_gives_its_factor():
    policy = policies.Product(
        policies.Line(Domain(4)),
        policies.Threshold(Domain(6), 2),
        domain=Domain((4, 6)),
    )
    assert policy.project(np.repeat(np.arange(4), 6)) == policies.Line(Domain(4))
    quotient = policy.project(np.tile(np.arange(6), 4))
    assert quotient == policies.Threshold(Domain(6), 2)


def test_products_imply_by_their_factors():
    def pair(one, other):
        return policies.Product(one(Domain(30)), other(Domain(40)))

    def near(domain):
        return policies.Threshold(domain, 3)

    attribute = policies.Attribute(Domain((30, 40)))
    full = policies.Full(Domain((30, 40)))
    assert pair(policies.Full, near).implies(pair(policies.Line, near))
    assert not pair(policies.Full, near).implies(pair(policies.Line, policies.Full))
    assert attribute.implies(pair(policies.Full, near))
    assert pair(policies.Full, policies.Full).implies(attribute)
    assert not pair(policies.Full, near).implies(attribute)
    assert full.implies(pair(policies.Full, near))
    assert not pair(policies.Full, policies.Full).implies(full)
    wide = policies.Product(policies.Full(Domain((5, 6))), near(Domain(40)))
    assert not policies.Attribute(wide.domain).implies(wide)


def test_names_of_the_product_domain_survive_json():
    ages = Domain.from_edges(range(4), name="age")
    sexes = Domain.from_levels(["f", "m"], name="sex")
    policy = policies.Product(policies.Line(ages), policies.Full(sexes))
    copy = policies.from_dict(json.loads(json.dumps(policy.to_dict())))
    assert copy == policy
    assert "in age, two people whose age values" in policy.describe()
    assert "in sex, " in policy.describe()
    bins = policies.Product(policies.Line(Domain(3)), policies.Full(Domain(2)))
    named = policies.Product(*bins.factors, domain=policy.domain)
    assert "in attribute 1, " in bins.describe()
    assert named.describe() == bins.describe().replace(
        "in attribute 1, ", "in age, "
    ).replace("in attribute 2, ", "in sex, ")
    # What is public of the whole is said once, at the end.
    assert named.describe().count("is public") == 1
    assert named.describe().endswith("; the number of people is public")


def test_absent_inside_a_factor_is_refused():
    with pytest.raises(PolicyError, match='factor 1 joins values to "absent"'):
        policies.Product(policies.Line(Domain(3)), policies.AddRemove(Domain(3)))
    with pytest.raises(PolicyError, match="factor 0"):
        policies.Product(policies.Graph(Domain(3), [[0, -1]]), policies.Line(Domain(3)))


def test_constraints_belong_on_the_product():
    factor = policies.Full(Domain(4))
    known = CountConstraints(factor.domain, [[True, True, False, False]])
    with pytest.raises(PolicyError, match="factor 1 speaks about whole records"):
        policies.Product(policies.Line(Domain(3)), factor.with_constraints(known))


def test_mismatched_domains_are_refused():
    line = policies.Line(Domain(3))
    with pytest.raises(PolicyError, match=r"shape \(3, 3\).*shape \(3, 4\)"):
        policies.Product(line, line, domain=Domain((3, 4)))
    ages = policies.Line(Domain(3, names=["age"]))
    with pytest.raises(DomainError, match="names must differ"):
        policies.Product(ages, ages)


@pytest.mark.parametrize("factors", [(), (Domain(3),), ("line",)])
def test_factors_must_be_policies(factors):
    with pytest.raises(InputError):
        policies.Product(*factors)


def test_a_factor_with_too_many_edges_is_refused_with_their_number(monkeypatch):
    monkeypatch.setattr("blowfish_fast.policies.protocol.MOST_LISTED", 50)
    line = policies.Line(Domain(9))
    quotient = policies.Product(line, line).project(np.arange(81)[::-1].copy())
    with pytest.raises(SizeError, match="72 edges"):
        quotient.rows  # noqa: B018
