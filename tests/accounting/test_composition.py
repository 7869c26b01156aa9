"""Prices of several releases, against the definition: the worst edge of the policy."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.accounting.composition import (
    EPSILON,
    constraints_bind,
    parallel_by_ids,
    parallel_by_regions,
)
from blowfish_fast.errors import EpsilonError, PolicyError
from tests.generated import example_count

LINE = bf.Domain(6)
TENTHS = [Fraction(1, 10), Fraction(2, 10), Fraction(3, 10)]


def test_disjoint_people_cost_the_largest():
    for policy in (bf.policies.Full(LINE), bf.policies.AddRemove(LINE)):
        assert parallel_by_ids(TENTHS, policy) == Fraction(3, 10)


def test_known_counts_tie_people_of_different_parts():
    known = bf.policies.CountConstraints(LINE, [[1, 1, 0, 0, 0, 0]])
    policy = bf.policies.Full(LINE).with_constraints(known)
    with pytest.raises(PolicyError, match="one after the other"):
        parallel_by_ids(TENTHS, policy)
    assert parallel_by_ids(TENTHS, policy, scoped=True) == Fraction(3, 10)


def test_counts_that_no_edge_changes_tie_nobody():
    halves = bf.policies.Blocks(LINE, [0, 0, 0, 1, 1, 1])
    block_total = bf.policies.CountConstraints(LINE, [[1, 1, 1, 0, 0, 0]])
    policy = halves.with_constraints(block_total)
    assert not constraints_bind(policy)
    assert parallel_by_ids(TENTHS, policy) == Fraction(3, 10)


@settings(max_examples=example_count(40))
@given(
    st.sets(st.tuples(st.integers(-1, 5), st.integers(0, 5)), min_size=1, max_size=6),
    st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_constraints_bind_where_some_edge_changes_a_count(pairs, mask):
    edges = [pair for pair in pairs if pair[0] != pair[1]] or [(0, 1)]
    known = bf.policies.CountConstraints(LINE, [mask])
    policy = bf.policies.Graph(LINE, edges).with_constraints(known)
    changes = any(known.lifts(*edge).size or known.lowers(*edge).size for edge in edges)
    assert constraints_bind(policy) == changes


def test_a_person_who_comes_or_goes_changes_the_counts_of_their_cell():
    known = bf.policies.CountConstraints(LINE, [[1, 1, 0, 0, 0, 0]])
    assert constraints_bind(bf.policies.AddRemove(LINE).with_constraints(known))
    outside = bf.policies.Graph(LINE, [(-1, 2), (2, 3)])
    assert not constraints_bind(outside.with_constraints(known))


def test_a_projection_of_constraints_counts_as_binding():
    known = bf.policies.CountConstraints(LINE, [[1, 1, 1, 0, 0, 0]])
    policy = bf.policies.Blocks(LINE, [0, 0, 0, 1, 1, 1]).with_constraints(known)
    assert constraints_bind(policy.project([0, 0, 1, 1, 2, 2]))


def worst_edge(edges, labels, epsilons):
    """Cost of noise of scale 1 / epsilon on each cell of its region, edge by edge."""

    def change(cell):
        inside = cell != -1 and labels[cell] < len(epsilons)
        return epsilons[labels[cell]] if inside else Fraction(0)

    return max(change(one) + change(two) for one, two in edges)


@given(
    st.sets(st.tuples(st.integers(-1, 5), st.integers(0, 5)), min_size=1, max_size=9),
    st.lists(st.integers(0, 2), min_size=6, max_size=6),
)
def test_the_price_of_regions_is_that_of_the_worst_edge(pairs, labels):
    edges = [pair for pair in pairs if pair[0] != pair[1]] or [(0, 1)]
    # Region 2 is the rest of the domain, which nothing measures.
    epsilons = [Fraction(1, 10), Fraction(3, 10)]
    presence = [*epsilons, Fraction(0)]
    region = [labels[one] for one in range(6)]
    inside = [
        2 * presence[number]
        if any(one != -1 and region[one] == region[two] == number for one, two in edges)
        else Fraction(0)
        for number in range(3)
    ]
    crossings = {
        (region[one], region[two])
        for one, two in edges
        if one != -1 and region[one] != region[two]
    }
    bottom = {region[two] for one, two in edges if one == -1}
    price = parallel_by_regions(inside, presence, crossings, bottom=bottom)
    assert price == worst_edge(edges, labels, epsilons)


def test_exact_totals_have_no_price_across_a_border():
    assert parallel_by_regions([0.1, 0.1], [math.inf, 0.1], [(0, 1)]) == math.inf
    assert parallel_by_regions([], [], []) == 0


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_rounding_never_favours_the_spender(epsilon):
    assert EPSILON.granted(epsilon) <= epsilon * 10**9 <= EPSILON.charged(epsilon)
    assert EPSILON.charged(epsilon) - EPSILON.granted(epsilon) <= 1


@given(st.integers(0, 10**18))
def test_units_are_written_exactly(units):
    assert Fraction(EPSILON.text(units)) == Fraction(units, 10**9)
    assert "E" not in EPSILON.text(units)


def test_a_budget_beyond_what_a_file_holds_is_refused_in_words():
    # It was taken, and the new ledger called damaged.
    policy = bf.policies.Full(bf.Domain(2))
    with pytest.raises(EpsilonError, match="a ledger counts less than 9,223,372 of"):
        bf.Ledger(policy=policy, rho=10**7)
    assert bf.Ledger(policy=policy, rho=9 * 10**6).remaining == 9 * 10**6
