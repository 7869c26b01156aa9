"""Weighted trees: scales on every path, inference and spread."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.kernels.tree.tree_shape import tree_levels
from blowfish_fast.measure.strategies import WeightedTree
from blowfish_fast.policies import AddRemove, Full
from blowfish_fast.workloads import Linear, Ranges
from tests.measure.strategies.implicit_totals import assert_totals_equal_their_list
from tests.reference.spread import dense_spread


def tree(leaves, branching, generator):
    nodes = int(tree_levels(leaves, branching)[0].sum())
    return WeightedTree(leaves, branching, generator.uniform(0.05, 1.0, nodes))


@pytest.mark.parametrize("policy", [AddRemove, Full])
@pytest.mark.parametrize(("leaves", "branching"), [(1, 2), (2, 2), (7, 2), (9, 3)])
def test_the_cost_is_the_worst_edge_and_close_to_epsilon(
    policy, leaves, branching, generator
):
    strategy, over = tree(leaves, branching, generator), policy(Domain(leaves))
    epsilon = Fraction(3, 10)
    scales = strategy.scales(over, epsilon)
    worst = Fraction(0)
    for edges in over.edges():
        for start, end in edges.tolist():
            record = np.zeros(leaves + 1, dtype=np.int64)
            record[start] += 1
            record[end] -= 1
            change = np.abs(strategy.rows(record[:leaves]))
            assert not change[scales.exact].any()
            worst = max(
                worst, Fraction(int((change * scales.rates).sum()), scales.unit)
            )
    assert strategy.cost(over, scales) == worst
    assert worst <= epsilon
    if leaves > 1 or policy is AddRemove:
        assert worst > epsilon * Fraction(999, 1000)


@pytest.mark.parametrize("policy", [AddRemove, Full])
def test_spread_equals_dense_least_squares(policy, generator):
    domain = Domain(11)
    strategy = tree(11, 3, generator)
    strategy.node_weights[[1, 4]] = 0.0
    scales = strategy.scales(policy(domain), Fraction(1, 2))
    buckets = Buckets.single_cells(11)
    matrix = generator.integers(-2, 3, (10, 11)).astype(float)
    for workload in (Ranges.random(domain, 30, rng=2), Linear(domain, matrix)):
        form = workload.explicit_form(buckets)
        got, want = (
            strategy.spread(form, scales),
            dense_spread(strategy, scales, form, 11),
        )
        np.testing.assert_allclose(got.variance, want.variance, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(got.square, want.square, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(got.largest, want.largest, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("policy", [AddRemove, Full])
def test_totals_of_implicit_workloads_equal_their_list(policy, generator):
    domain, buckets = Domain(13), Buckets(np.array([0, 1, 2, 6, 7, 10, 13]))
    strategy = tree(6, 2, generator)
    scales = strategy.scales(policy(Domain(6)), Fraction(1))
    assert_totals_equal_their_list(strategy, domain, buckets, scales)


def test_noise_free_rows_give_back_the_cells(generator):
    counts = generator.integers(0, 100, 20)
    strategy = tree(20, 4, generator)
    scales = strategy.scales(AddRemove(Domain(20)), Fraction(1))
    np.testing.assert_allclose(strategy.infer(strategy.rows(counts), scales), counts)


def test_a_strategy_survives_packing(generator):
    strategy = tree(5, 2, generator)
    again = WeightedTree.unpack(strategy.pack())
    assert again.leaves == 5
    assert (again.node_weights == strategy.node_weights).all()
