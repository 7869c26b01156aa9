"""The cheapest pairing over any candidates, whatever the ties."""

from __future__ import annotations

import itertools
import sys

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast.errors import MissingExtraError
from blowfish_fast.kernels.window_costs.sorted_groups import group_sorted
from blowfish_fast.measure.selectors.partitions import matching_pairs as blossom
from blowfish_fast.measure.selectors.partitions.matching_pairs import (
    MatchingPairs,
    cheapest_mates,
)
from tests.generated import example_count
from tests.reference import matching_pairs as reference

# The counts of the DAWA paper.
CELLS = [2, 3, 8, 1, 0, 2, 0, 4, 2, 4]


def mates_of(alone, paired):
    first = np.array([i for i, _ in paired], dtype=np.int64)
    second = np.array([j for _, j in paired], dtype=np.int64)
    costs = np.array(list(paired.values()), dtype=object)
    return tuple(cheapest_mates(np.array(alone, dtype=object), first, second, costs))


@st.composite
def problems(draw):
    cells = draw(st.integers(1, 6))
    few = st.integers(-2, draw(st.sampled_from([1, 4, 30])))
    shift = draw(st.sampled_from([0, 60, 100]))
    pairs = list(itertools.combinations(range(cells), 2))
    kept = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    alone = [draw(few) << shift for _ in range(cells)]
    return alone, {
        pair: draw(few) << shift for pair, keep in zip(pairs, kept, strict=True) if keep
    }


@settings(max_examples=example_count(200))
@given(problems())
def test_is_the_first_of_the_cheapest(problem):
    # Small numbers tie most of the time: the fixed order decides.
    assert mates_of(*problem) == reference.cheapest(*problem)


@settings(max_examples=example_count(60))
@given(problems(), st.randoms())
def test_does_not_depend_on_the_order_of_the_candidates(problem, random):
    alone, paired = problem
    shuffled = list(paired.items())
    random.shuffle(shuffled)
    assert mates_of(alone, dict(shuffled)) == mates_of(alone, paired)


def test_a_unique_minimum_is_recognised(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("nothing is tied")

    monkeypatch.setattr(blossom, "_settle_in_order", refuse)
    assert mates_of([9, 9, 9], {(0, 1): 3, (0, 2): 4, (1, 2): 5}) == (1, 0, 2)
    with pytest.raises(AssertionError, match="tied"):
        mates_of([9, 9, 9], {(0, 1): 3, (0, 2): 3, (1, 2): 5})
    # A pair that saves nothing ties with two cells alone.
    with pytest.raises(AssertionError, match="tied"):
        mates_of([2, 2], {(0, 1): 4})


def all_pairs(counts, price):
    alone = [price] * len(counts)
    return alone, {
        (i, j): abs(counts[i] - counts[j]) + price
        for i, j in itertools.combinations(range(len(counts)), 2)
    }


def sorted_cost(counts, price):
    values = np.sort(counts)
    edges = group_sorted(values, price, largest=2)
    ends = zip(edges[:-1], edges[1:] - 1, strict=True)
    return sum(price + int(values[last] - values[first]) for first, last in ends)


@settings(max_examples=example_count(60))
@given(st.lists(st.integers(0, 30), min_size=1, max_size=14), st.integers(0, 12))
def test_m1_without_noise_pairs_of_sorted_counts_are_best(counts, price):
    alone, paired = all_pairs(counts, price)
    cost = reference.total(mates_of(alone, paired), alone, paired)
    assert cost == sorted_cost(np.array(counts), price)


@pytest.mark.parametrize(("price", "least"), [(1, 7), (5, 31)])
def test_m2_least_costs_of_the_papers_counts(price, least):
    alone, paired = all_pairs(CELLS, price)
    assert reference.total(mates_of(alone, paired), alone, paired) == least
    assert sorted_cost(np.array(CELLS), price) == least


def test_agrees_with_another_solver(generator):
    cells = 40
    first, second = np.triu_indices(cells, 1)
    alone = generator.integers(0, 10**9, cells)
    paired = generator.integers(0, 2 * 10**9, first.size)
    mates = cheapest_mates(alone, first, second, paired)
    savings = alone[first] + alone[second] - paired
    graph = networkx.Graph()
    for i, j, saved in zip(first, second, savings, strict=True):
        graph.add_edge(int(i), int(j), weight=int(saved))
    expected = networkx.max_weight_matching(graph)
    assert {(min(pair), max(pair)) for pair in expected} == {
        (i, int(mate)) for i, mate in enumerate(mates) if mate > i
    }


def test_without_the_extra_a_wide_pairing_is_refused_before_anything_runs(monkeypatch):
    monkeypatch.setitem(sys.modules, "rustworkx", None)
    with pytest.raises(MissingExtraError, match=r"blowfish_fast\[matching\]"):
        MatchingPairs()
    assert MatchingPairs(window=8).window == 8
