"""Irregular trees: scales on every path, exact edges, inference and spread."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError, InputError, IntervalError
from blowfish_fast.measure.strategies import STRATEGIES, NodeTree
from blowfish_fast.policies import AddRemove, Blocks, Full, Graph, Line, Threshold
from blowfish_fast.workloads import AllRanges, Linear, Ranges
from tests.measure.strategies.implicit_totals import assert_totals_equal_their_list
from tests.reference.parent_tree import random_parents, worst_edge
from tests.reference.spread import dense_spread

POLICIES = {
    "add_remove": AddRemove,
    "full": Full,
    "line": Line,
    "threshold": lambda domain: Threshold(domain, theta=2),
    "blocks": lambda domain: Blocks(domain, np.arange(domain.size) // 3),
    "graph": lambda domain: Graph(domain, [[0, 1], [2, -1]]),
}


def tree(leaves, generator):
    parents = random_parents(generator, leaves)
    return NodeTree(parents, generator.uniform(0.05, 1.0, parents.size))


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_the_cost_is_the_worst_edge_and_close_to_epsilon(name, generator):
    for leaves in (3, 7, 12):
        policy = POLICIES[name](Domain(leaves))
        strategy = tree(leaves, generator)
        scales = strategy.scales(policy, Fraction(3, 10))
        edges = [tuple(edge) for chunk in policy.edges() for edge in chunk.tolist()]
        exact = worst_edge(scales.rates, strategy.parents, edges)
        assert strategy.cost(policy, scales) == Fraction(exact, scales.unit)
        assert Fraction(299, 1000) < strategy.cost(policy, scales) <= Fraction(3, 10)
        assert worst_edge(scales.exact.astype(int), strategy.parents, edges) == 0


def test_blocks_of_the_policy_that_are_nodes_are_exact():
    domain = Domain(4)
    strategy = NodeTree(np.array([4, 4, 5, 5, 6, 6, -1]), np.ones(7))
    policy = Blocks(domain, [0, 0, 1, 1])
    assert strategy.exact_rows(policy).tolist() == [False] * 4 + [True] * 3


def test_nothing_moves_and_everything_is_exact():
    strategy = NodeTree(np.array([2, 2, -1]), np.ones(3))
    assert strategy.exact_rows(Graph(Domain(2), np.empty((0, 2), int))).all()


def test_too_many_edges_are_bounded_by_the_worst_of_all_moves(monkeypatch, generator):
    strategy, domain = tree(9, generator), Domain(9)
    weights = strategy.weights()
    exact = strategy.worst_edge(weights, Line(domain))
    monkeypatch.setattr(
        "blowfish_fast.measure.strategies.trees.node_tree.MOST_EDGES", 0
    )
    bound = strategy.worst_edge(weights, Line(domain))
    assert exact <= bound == strategy.worst_edge(weights, Full(domain))
    assert strategy.exact_rows(Line(domain)).tolist() == [False] * (
        weights.size - 1
    ) + [True]


@pytest.mark.parametrize("policy", [AddRemove, Full], ids=["add_remove", "full"])
def test_spread_equals_dense_least_squares(policy, generator):
    domain = Domain(11)
    strategy = tree(11, generator)
    strategy.node_weights[[1, 4]] = 0.0
    scales = strategy.scales(policy(domain), Fraction(1, 2))
    buckets = Buckets.single_cells(11)
    matrix = generator.integers(-2, 3, (10, 11)).astype(float)
    for workload in (Ranges.random(domain, 30, rng=2), Linear(domain, matrix)):
        form = workload.explicit_form(buckets)
        found = strategy.spread(form, scales)
        expected = dense_spread(strategy, scales, form, 11)
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_totals_of_implicit_workloads_equal_their_list(generator):
    domain, buckets = Domain(13), Buckets(np.array([0, 1, 2, 6, 7, 10, 13]))
    strategy = tree(6, generator)
    scales = strategy.scales(Full(Domain(6)), Fraction(1))
    assert_totals_equal_their_list(strategy, domain, buckets, scales)
    with pytest.raises(IntervalError, match="list the queries"):
        strategy.spread(AllRanges(domain).form(buckets), scales)


def test_noise_free_rows_give_back_the_cells(generator):
    counts = generator.integers(0, 100, 20)
    strategy = tree(20, generator)
    scales = strategy.scales(AddRemove(Domain(20)), Fraction(1))
    np.testing.assert_allclose(strategy.infer(strategy.rows(counts), scales), counts)
    with pytest.raises(DomainError, match="20 leaves"):
        strategy.rows(counts[:19])


def test_a_strategy_survives_packing(generator):
    strategy = tree(5, generator)
    again = STRATEGIES["node_tree"].unpack(strategy.pack())
    assert (again.parents == strategy.parents).all()
    assert (again.node_weights == strategy.node_weights).all()


@pytest.mark.parametrize("weights", [[1.0, 1.0], [1.0, 1.0, 2.0], [1, np.nan, 1]])
def test_weights_that_make_no_sense_are_refused(weights):
    with pytest.raises(InputError, match="node_weights"):
        NodeTree(np.array([2, 2, -1]), np.array(weights))
