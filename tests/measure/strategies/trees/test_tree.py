"""Trees of totals: scales on every path, exact nodes, inference and spread."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain, kernels
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError, InputError, IntervalError
from blowfish_fast.measure.strategies import STRATEGIES, TreeStrategy
from blowfish_fast.policies import AddRemove, Blocks, Full, Graph, Line, Threshold
from blowfish_fast.workloads import AllRanges, Linear, Ranges
from tests.measure.strategies.implicit_totals import assert_totals_equal_their_list
from tests.reference.spread import assert_same_spread, dense_spread
from tests.reference.trees import random_parents, worst_edge

POLICIES = {
    "add_remove": AddRemove,
    "full": Full,
    "line": Line,
    "threshold": lambda domain: Threshold(domain, theta=2),
    "blocks": lambda domain: Blocks(domain, np.arange(domain.size) // 3),
    "graph": lambda domain: Graph(domain, [[0, 1], [2, -1]]),
}


def regular(leaves, generator):
    shape = kernels.regular_tree(leaves, 3)
    return TreeStrategy(shape, generator.uniform(0.05, 1.0, shape.nodes))


def irregular(leaves, generator):
    shape = kernels.tree_of_parents(random_parents(generator, leaves))
    return TreeStrategy(shape, generator.uniform(0.05, 1.0, shape.nodes))


@pytest.fixture(params=[regular, irregular], ids=["regular", "irregular"])
def tree(request, generator):
    """A way to make a random tree over so many leaves."""
    return lambda leaves: request.param(leaves, generator)


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_the_cost_is_the_worst_edge_and_close_to_epsilon(name, tree):
    for leaves in (3, 7, 12):
        policy = POLICIES[name](Domain(leaves))
        strategy = tree(leaves)
        parents = strategy.tree.row_parents
        scales = strategy.scales(policy, Fraction(3, 10))
        edges = [tuple(edge) for chunk in policy.edges() for edge in chunk.tolist()]
        exact = worst_edge(scales.rates, parents, edges)
        assert strategy.cost(policy, scales) == Fraction(exact, scales.unit)
        assert Fraction(299, 1000) < strategy.cost(policy, scales) <= Fraction(3, 10)
        assert worst_edge(scales.exact.astype(int), parents, edges) == 0


def test_one_leaf_is_its_own_root(tree):
    strategy = tree(1)
    assert strategy.exact_rows(Full(Domain(1))).all()
    scales = strategy.scales(AddRemove(Domain(1)), Fraction(1))
    assert Fraction(999, 1000) < strategy.cost(AddRemove(Domain(1)), scales) <= 1


def test_blocks_of_the_policy_that_are_nodes_are_exact():
    strategy = TreeStrategy(kernels.regular_tree(4, 2), np.ones(7))
    policy = Blocks(Domain(4), [0, 0, 1, 1])
    assert strategy.exact_rows(policy).tolist() == [False] * 4 + [True] * 3


def test_nodes_whose_records_may_vanish_are_not_exact():
    strategy = TreeStrategy(kernels.regular_tree(4, 2), np.ones(7))
    policy = Graph(Domain(4), [[0, 1], [1, -1], [2, 3]])
    assert strategy.exact_rows(policy).tolist() == [False] * 5 + [True, False]


def test_nothing_moves_and_everything_is_exact(tree):
    assert tree(4).exact_rows(Graph(Domain(4), np.empty((0, 2), int))).all()


@pytest.mark.parametrize("policy", [AddRemove, Full], ids=["add_remove", "full"])
def test_spread_equals_dense_least_squares(policy, tree, generator):
    domain = Domain(11)
    strategy = tree(11)
    strategy.node_weights[[1, 4]] = 0.0
    scales = strategy.scales(policy(domain), Fraction(1, 2))
    buckets = Buckets.single_cells(11)
    matrix = generator.integers(-2, 3, (10, 11)).astype(float)
    for workload in (Ranges.random(domain, 30, rng=2), Linear(domain, matrix)):
        form = workload.explicit_form(buckets)
        found = strategy.spread(form, scales)
        expected = dense_spread(strategy, scales, form, 11)
        assert_same_spread(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("policy", [AddRemove, Full], ids=["add_remove", "full"])
def test_totals_of_implicit_workloads_equal_their_list(policy, tree):
    domain, buckets = Domain(13), Buckets(np.array([0, 1, 2, 6, 7, 10, 13]))
    strategy = tree(6)
    scales = strategy.scales(policy(Domain(6)), Fraction(1))
    assert_totals_equal_their_list(strategy, domain, buckets, scales)
    with pytest.raises(IntervalError, match="list the queries"):
        strategy.spread(AllRanges(domain).form(buckets), scales)


def test_noise_free_rows_give_back_the_cells(tree, generator):
    counts = generator.integers(0, 100, 20)
    strategy = tree(20)
    scales = strategy.scales(AddRemove(Domain(20)), Fraction(1))
    np.testing.assert_allclose(strategy.infer(strategy.rows(counts), scales), counts)
    with pytest.raises(DomainError, match="covers 20 cells"):
        strategy.rows(counts[:19])


def test_a_strategy_survives_packing(tree, generator):
    strategy = tree(9)
    again = STRATEGIES["tree"].unpack(strategy.pack())
    assert again.fan_out == strategy.fan_out
    assert again.tree.row_parents.tolist() == strategy.tree.row_parents.tolist()
    assert (again.node_weights == strategy.node_weights).all()
    counts = generator.integers(0, 100, 9)
    assert again.rows(counts).tolist() == strategy.rows(counts).tolist()


@pytest.mark.parametrize("weights", [[1.0, 1.0], [1.0, 1.0, 2.0], [1, np.nan, 1]])
def test_weights_that_make_no_sense_are_refused(weights):
    with pytest.raises(InputError, match="node_weights"):
        TreeStrategy(kernels.regular_tree(2, 2), np.array(weights))
