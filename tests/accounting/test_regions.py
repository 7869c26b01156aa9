"""Regions of a domain: crossing edges, edges inside, refusals with their price."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.accounting.composition import (
    Region,
    check_regions,
    crossing_regions,
    presence_cost,
    protects_region,
    region_labels,
)
from blowfish_fast.errors import DomainError, PolicyError
from blowfish_fast.measure.budgets import Budget

LINE = bf.Domain(6)
HALF = bf.Domain(3)
BLOCKS = bf.policies.Blocks(LINE, [0, 0, 0, 1, 1, 1])
TENTH = Budget(Fraction(1, 10))

graph_edges = st.sets(
    st.tuples(st.integers(-1, 5), st.integers(0, 5)).filter(lambda p: p[0] != p[1]),
    max_size=8,
)


def graph(domain, pairs):
    return bf.policies.Graph(domain, np.array(sorted(pairs)).reshape(-1, 2))


def region(cells, policy):
    return Region(cells, policy, TENTH)


@given(graph_edges, st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_crossing_edges_join_cells_of_different_regions(pairs, labels):
    labels = np.unique(labels, return_inverse=True)[1]
    found = crossing_regions(graph(LINE, pairs), labels)
    expected = {
        tuple(sorted((int(labels[one]), int(labels[two]))))
        for one, two in pairs
        if one != -1 and labels[one] != labels[two]
    }
    assert {tuple(sorted(pair)) for pair in found} == expected


@given(graph_edges, graph_edges, st.permutations(range(6)), st.integers(1, 6))
def test_a_region_is_protected_by_every_edge_inside_it(whole, part, order, size):
    cells = np.array(order[:size])
    place = {cell: at for at, cell in enumerate(cells.tolist())} | {-1: -1}
    inner = {
        frozenset((place[one], place[two]))
        for one, two in whole
        if one in place and two in place
    }
    own = {pair for pair in part if max(pair) < size}
    small = graph(bf.Domain(size), own)
    expected = inner <= {frozenset(pair) for pair in own}
    assert protects_region(small, graph(LINE, whole), cells) == expected


def test_full_covers_every_move_of_a_region_and_no_absence():
    cells = np.arange(3)
    full = bf.policies.Full(HALF)
    assert protects_region(full, BLOCKS, cells)
    assert protects_region(full, bf.policies.Full(LINE), cells)
    assert not protects_region(full, bf.policies.AddRemove(LINE), cells)
    assert not protects_region(bf.policies.Full(bf.Domain(2)), BLOCKS, cells)


def test_a_projection_of_a_region_is_protected_as_the_region_is():
    bins = bf.policies.Full(HALF).project([0, 0, 1])
    assert protects_region(bins, BLOCKS, np.arange(3))
    unrelated = bf.policies.Full(bf.Domain(2))
    assert not protects_region(unrelated, BLOCKS, np.arange(3))


@pytest.mark.long
def test_large_blocks_are_checked_without_walking_their_edges():
    cells = 2**20
    line = bf.Domain(cells)
    halves = bf.policies.Blocks(line, np.arange(cells) // 2**19)
    full = bf.policies.Full(bf.Domain(2**19))
    parts = [region(np.arange(2**19), full), region(np.arange(2**19, cells), full)]
    check_regions(parts, halves)
    listed = bf.policies.Line(bf.Domain(2**19))
    with pytest.raises(PolicyError, match="Full over the region"):
        check_regions([region(np.arange(2**19), listed)], halves)


def test_regions_without_crossing_edges_pass():
    full, add = bf.policies.Full(HALF), bf.policies.AddRemove(HALF)
    check_regions([region([0, 1, 2], full), region([3, 4, 5], full)], BLOCKS)
    pieces = [region([0, 2, 4], add), region([1, 3, 5], add)]
    check_regions(pieces, bf.policies.AddRemove(LINE))
    check_regions([region([0, 1, 2], full)], BLOCKS)
    # The same regions, once edges cross their border.
    with pytest.raises(PolicyError):
        check_regions([region([0, 1, 2], full)], bf.policies.Full(LINE))


def test_a_crossing_is_refused_with_its_price():
    add = bf.policies.AddRemove(HALF)
    parts = [region([0, 1, 2], add), region([3, 4, 5], add)]
    with pytest.raises(PolicyError, match=r"up to eps = 0\.2, not the largest"):
        check_regions(parts, bf.policies.Full(LINE))
    single = [region([0], bf.policies.AddRemove(bf.Domain(1)))]
    with pytest.raises(PolicyError, match=r"first: \(0, 1\); 1 stands for the rest"):
        check_regions(single, bf.policies.Line(LINE))


def test_an_exact_total_across_a_border_has_no_price():
    full = bf.policies.Full(HALF)
    with pytest.raises(PolicyError, match="more than any budget"):
        check_regions(
            [region([0, 1, 2], full), region([3, 4, 5], full)], bf.policies.Line(LINE)
        )


def test_constraints_are_refused_where_they_bind():
    known = bf.policies.CountConstraints(LINE, [[1, 1, 1, 0, 0, 0]])
    full = bf.policies.Full(HALF)
    parts = [region([0, 1, 2], full), region([3, 4, 5], full)]
    check_regions(parts, BLOCKS.with_constraints(known))
    crossed = bf.policies.CountConstraints(LINE, [[1, 0, 0, 0, 0, 0]])
    with pytest.raises(PolicyError, match="count constraints"):
        check_regions(parts, BLOCKS.with_constraints(crossed))


@pytest.mark.parametrize(
    "cells",
    [[], [6], [-1], [0.5], ["a"], [True, False], [[True] * 6]],
    ids=["empty", "beyond", "negative", "half", "text", "truth", "mask"],
)
def test_cells_outside_the_domain_are_refused(cells):
    with pytest.raises(DomainError):
        region_labels([cells], BLOCKS)


def test_regions_that_share_a_cell_are_refused():
    for regions in ([[0, 1], [1, 2]], [[0, 0]]):
        with pytest.raises(DomainError, match="disjoint"):
            region_labels(regions, BLOCKS)


def test_labels_number_the_rest_last():
    cells, labels = region_labels([[4, 0], [2]], BLOCKS)
    assert labels.tolist() == [0, 2, 1, 2, 0, 2]
    assert cells[0].tolist() == [4, 0]


def test_presence_costs_one_edge_per_step_to_absent():
    assert presence_cost(bf.policies.AddRemove(LINE), TENTH) == TENTH
    assert presence_cost(bf.policies.Full(LINE), TENTH) == math.inf
    chain = [(-1, 0), *itertools.pairwise(range(6))]
    assert presence_cost(graph(LINE, chain), TENTH) == Fraction(6, 10)
    assert presence_cost(graph(LINE, chain[:-1]), TENTH) == math.inf
