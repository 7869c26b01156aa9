"""Presence beside moves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit.grey_box import audit_measurements
from blowfish_fast.errors import BlowfishError, PolicyError, PrivacyError
from blowfish_fast.mechanisms.registry import MECHANISMS
from blowfish_fast.policies import TablePolicy, WithAbsent, from_dict

CELLS = bf.Domain(5)
MOVES = {
    "line": bf.policies.Line(CELLS),
    "full": bf.policies.Full(CELLS),
    "blocks": bf.policies.Blocks(CELLS, [0, 0, 1, 1, 1]),
}


@pytest.mark.parametrize("base", MOVES.values(), ids=list(MOVES))
def test_it_has_the_edges_of_its_base_and_one_to_absent_from_every_cell(base):
    policy = WithAbsent(base)
    listed = {tuple(sorted(edge)) for one in policy.edges() for edge in one.tolist()}
    moves = {tuple(sorted(edge)) for one in base.edges() for edge in one.tolist()}
    assert listed == moves | {(-1, cell) for cell in range(5)}
    assert policy.edge_count == len(listed)
    graph = bf.policies.Graph(CELLS, sorted(listed))
    cells = np.arange(-1, 5)
    first, second = np.meshgrid(cells, cells)
    np.testing.assert_array_equal(
        policy.distance(first, second), graph.distance(first, second)
    )
    np.testing.assert_array_equal(
        policy.joins(first, second), graph.joins(first, second)
    )
    assert policy.implies(graph)
    assert graph.implies(policy)
    assert from_dict(policy.to_dict()) == policy


@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - {"kmeans"}))
def test_no_edge_costs_more_than_was_charged(name):
    for base in MOVES.values():
        policy = WithAbsent(base)
        try:
            mechanism, data = MECHANISMS[name].example(CELLS, policy, Fraction(1))
        except BlowfishError:
            continue
        try:
            prices = audit_measurements(mechanism, data)
        except PrivacyError as problem:
            pytest.fail(f"{name} under {policy!r}: {problem}")
        assert all(price.passed for price in prices), prices


def test_no_sentence_calls_the_number_of_people_public():
    for base in MOVES.values():
        told = WithAbsent(base).describe()
        assert "is public" not in told
        assert "the number of people is not public" in told


def test_the_number_of_people_is_private():
    assert WithAbsent(MOVES["blocks"]).components().private.tolist() == [True]
    asked = bf.workloads.Total(CELLS)
    assert bf.sensitivity(WithAbsent(MOVES["full"]), asked) == 1
    assert bf.sensitivity(WithAbsent(MOVES["full"]), bf.workloads.Identity(CELLS)) == 2


def test_implication_compares_moves_and_lengths():
    full, line = MOVES["full"], MOVES["line"]
    assert WithAbsent(full, 2).implies(WithAbsent(line, 3))
    assert not WithAbsent(full, 3).implies(WithAbsent(line, 2))
    assert not WithAbsent(line).implies(WithAbsent(full))
    assert WithAbsent(full).implies(bf.policies.AddRemove(CELLS))
    assert not WithAbsent(full, 2).implies(bf.policies.AddRemove(CELLS))
    assert not full.implies(WithAbsent(full, 9))
    assert not bf.policies.AddRemove(CELLS).implies(WithAbsent(line))
    seen = WithAbsent(line, 2).project([0, 0, 1, 1, 1])
    assert seen.implies(WithAbsent(line, 2))
    assert seen.absent_length == 2


def test_distances_go_through_absent_where_that_is_nearer():
    policy = WithAbsent(MOVES["line"], Fraction(3, 2))
    assert policy.distance(0, [1, 2, 3, 4, -1]).tolist() == [1, 2, 3, 3, 1.5]
    assert bf.risk(0.5, epsilon=1, policy=policy) is not None


def test_what_cannot_be_joined_to_absent_is_refused():
    with pytest.raises(PolicyError, match="policy of moves alone"):
        WithAbsent(bf.policies.AddRemove(CELLS))
    known = bf.policies.CountConstraints(CELLS, [np.arange(CELLS.size) < 2])
    for other in (MOVES["line"].with_constraints(known), "line"):
        with pytest.raises(PolicyError, match="policy of moves alone"):
            WithAbsent(other)
    with pytest.raises(PolicyError, match="policy of moves alone"):
        WithAbsent(MOVES["line"].per_person(2))
    with pytest.raises(PolicyError, match="at least one edge away"):
        WithAbsent(MOVES["line"], Fraction(1, 2))


# Tables.

AGES = bf.Domain(4, names=["age"])
TOWNS = bf.Domain(3, names=["town"])
TABLE = bf.WideDomain.product(AGES, TOWNS)
BY = {"age": bf.policies.Line(AGES)}


@pytest.mark.parametrize("stated", [None, BY])
def test_tables_with_presence_are_seen_with_presence(stated):
    for presence, length in ((True, 1), (1, 1), (4, 4), ("7/2", Fraction(7, 2))):
        table = TablePolicy(TABLE, stated, presence=presence)
        seen = table.through(["age"])
        assert isinstance(seen, WithAbsent)
        assert seen.absent_length == length
        assert seen.implies(table)
        assert from_dict(table.to_dict()) == table
        assert "the number of people is not public" in table.describe()
        assert "is public" not in table.describe()
        # The moves alone protect nobody's presence.
        assert not seen.base.implies(table)
    assert "the number of people is public" in TablePolicy(TABLE, stated).describe()


def test_presence_only_is_add_remove():
    table = TablePolicy(TABLE, presence="only")
    assert isinstance(table.through(["age"]), bf.policies.AddRemove)
    assert table.through(["age", "town"]).implies(table)
    assert "e^(2*eps)" in table.describe()
    with pytest.raises(PolicyError, match="leaves no policies of attributes"):
        TablePolicy(TABLE, BY, presence="only")


def test_tables_imply_each_other_by_moves_and_presence():
    plain, there, far = (TablePolicy(TABLE, presence=one) for one in (False, True, 4))
    only = TablePolicy(TABLE, presence="only")
    assert there.implies(plain)
    assert there.implies(far)
    assert there.implies(only)
    assert far.implies(plain)
    for one, two in [(plain, there), (far, there), (far, only), (only, there)]:
        assert not one.implies(two)
    assert not only.implies(plain)
    assert there.implies(TablePolicy(TABLE, BY, presence=True))
    assert not TablePolicy(TABLE, BY, presence=True).implies(there)


def test_a_ledger_of_a_table_with_presence_charges_for_the_number_of_people():
    table = TablePolicy(TABLE, presence=True)
    ledger = bf.Ledger(None, epsilon=1, policy=table)
    seen = table.through(["age"])
    total = bf.workloads.Total(seen.domain)
    ledger.release(
        bf.Laplace(seen, total, epsilon="0.4", strategy="queries"), [5, 6, 7, 8], rng=1
    )
    assert float(ledger.spent) == pytest.approx(0.4)
    free = bf.Ledger(None, epsilon=1, policy=TablePolicy(TABLE))
    seen = free.policy.through(["age"])
    free.release(
        bf.Laplace(seen, total, epsilon="0.4", strategy="queries"), [5, 6, 7, 8], rng=1
    )
    assert free.spent == 0


def test_persons_and_presence_together():
    table = TablePolicy(TABLE, presence=True).per_person(3, person="patient")
    seen = table.through(["town"])
    assert seen.group_size == 3
    assert seen.has_bottom
    assert "added or removed" in seen.neighbours
