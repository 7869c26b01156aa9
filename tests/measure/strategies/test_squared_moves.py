"""Prices in rho: the worst edge by squared moves, for every strategy and policy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from blowfish_fast import Domain
from blowfish_fast.audit import policy_families
from blowfish_fast.errors import BlowfishError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.sensitivity.policy import worst_moves
from blowfish_fast.measure.strategies import (
    Answers,
    Cells,
    Explicit,
    Fourier,
    Haar,
    OrderedHierarchy,
    PrefixSums,
    SpanningTree,
    haar,
)
from blowfish_fast.measure.strategies.cluster_sums import CellGrid, ClusterSums
from blowfish_fast.measure.strategies.trees.tree_weights import level_tree
from blowfish_fast.policies import AddRemove, Full, Line
from blowfish_fast.workloads import Identity, Linear, Ranges, Sum
from tests.reference.policy_edges import worst_edge_cost

RHO = Budget(Fraction(1, 7), 2)
LINE = Domain(8)
FAMILIES = policy_families(LINE)
MATRIX = np.array([[3, 1, 0, 0, 2, 0, 1, 1], [0, -1, 1, 0, 0, 5, 0, 0], [1] * 8])


def strategies(policy):
    """Return every strategy on eight cells that serves the policy."""
    domain = policy.domain
    asked = Linear(domain, MATRIX)
    makers = {
        "cells": lambda: Cells.under(policy),
        "prefix_sums": lambda: PrefixSums(8),
        "tree": lambda: level_tree(8, 2, root_exact=False, geometric=True),
        "spanning_tree": lambda: SpanningTree.under(policy),
        "ordered_hierarchy": lambda: OrderedHierarchy(
            np.array([0, 3, 8]), np.array([2, 2]), np.full(2, 0.5), np.full(2, 0.5)
        ),
        "haar": lambda: Haar((8,)),
        "fourier": lambda: Fourier(8, 3),
        "fourier_all": lambda: Fourier(8, 4),
        "clusters": lambda: ClusterSums(CellGrid(domain), np.array([[1.0], [6.0]])),
        "explicit": lambda: Explicit(sparse.csr_array(MATRIX)).under(policy),
        "linear": lambda: Answers.under(policy, asked),
        "sum": lambda: Answers.under(policy, Sum(domain, np.arange(8.0) ** 2)),
        "ranges": lambda: Answers.under(policy, Ranges(domain, [0, 2, 3], [4, 7, 8])),
        "identity": lambda: Answers.under(policy, Identity(domain)),
    }
    for name, make in makers.items():
        try:
            yield name, make()
        except BlowfishError:
            continue


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_no_edge_pays_more_than_was_granted(family):
    policy = FAMILIES[family].unconstrained
    served = 0
    for name, strategy in strategies(policy):
        try:
            scales = strategy.scales(policy, RHO)
        except BlowfishError:
            continue
        served += 1
        assert scales.power == 2, name
        cost = strategy.cost(policy, scales)
        true = worst_edge_cost(strategy, policy, scales)
        assert true <= cost <= RHO.amount, (name, float(true), float(cost))
    assert served >= 6


@pytest.mark.parametrize("policy", [Full(LINE), AddRemove(LINE), Line(LINE)])
def test_prices_of_moves_by_one_are_exact(policy):
    for name, strategy in strategies(policy):
        if name in ("cells", "prefix_sums", "ranges", "identity"):
            scales = strategy.scales(policy, RHO)
            true = worst_edge_cost(strategy, policy, scales)
            assert true == strategy.cost(policy, scales), name
            assert true > RHO.amount * (1 - Fraction(1, 2**25)), name


@pytest.mark.long
@pytest.mark.parametrize("shape", [(2,), (3,), (5,), (6,), (8,), (4, 4), (3, 3, 5)])
@pytest.mark.parametrize("family", [Full, AddRemove])
def test_haar_rows_pay_squares_whatever_rows_are_left_out(shape, family):
    policy = family(Domain(shape))
    strategy = Haar(shape)
    scales = strategy.scales(policy, RHO)
    assert worst_edge_cost(strategy, policy, scales) <= RHO.amount
    generator = np.random.default_rng(1)
    for _ in range(5):
        rates = scales.rates >> 20
        rates[generator.random(rates.size) < 0.4] = 0
        coarse = scales._replace(rates=rates)
        true = worst_edge_cost(strategy, policy, coarse)
        assert true <= strategy.cost(policy, coarse)


@pytest.mark.parametrize(
    ("shape", "times"), [((8,), Fraction(8, 3)), ((4, 4), Fraction(9, 4))]
)
def test_an_exact_total_costs_haar_rows_what_the_note_says(shape, times):
    """2.667 and 2.25 times the heaviest cell, with equal rates and an exact total."""
    policy = Full(Domain(shape))
    strategy = Haar(shape)
    scales = strategy.scales(policy, RHO)
    scales = scales._replace(rates=np.where(scales.exact, 0, strategy.weights()))
    levels = np.prod([1 + (side - 1).bit_length() for side in shape]) - 1
    heaviest = int(levels) * Fraction(int(scales.rates.max()), scales.unit)
    assert strategy.cost(policy, scales) == times * heaviest
    assert worst_edge_cost(strategy, policy, scales) == times * heaviest


def test_a_row_heavier_than_all_above_it_would_be_caught(monkeypatch):
    """Planted bug: weights for which a move may cost more than two cells."""
    heavy = np.array([1.0, 3.0, 1.0, 1.0])
    monkeypatch.setattr(haar, "_square_root_weights", lambda cells: heavy)
    policy, strategy = Full(Domain((4, 4))), Haar((4, 4))
    scales = strategy.scales(policy, RHO)
    assert worst_edge_cost(strategy, policy, scales) > RHO.amount


@pytest.mark.parametrize("name", ["haar", "fourier", "clusters", "explicit", "linear"])
def test_ignoring_the_power_would_be_caught(name):
    """Planted bug: prices of absolute moves in place of squares."""
    policy = Full(LINE)
    strategy = dict(strategies(policy))[name]
    weights = strategy.squared_weights()
    weights[strategy.exact_rows(policy)] = 0
    wrong = type(strategy).worst_edge(strategy, weights, policy)
    scales = strategy.scales(policy, RHO)._replace(rates=weights)
    unit = max(int(np.ceil(wrong / RHO.amount)), 1)
    drawn = scales._replace(unit=unit)
    assert worst_edge_cost(strategy, policy, drawn) > RHO.amount


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_laplace_rows_have_a_price_in_rho_between_the_truth_and_half_the_square(family):
    policy = FAMILIES[family].unconstrained
    epsilon = Fraction(1, 3)
    for name, strategy in strategies(policy):
        try:
            scales = strategy.scales(policy, epsilon)
        except BlowfishError:
            continue
        squares = scales._replace(
            rates=np.array([int(rate) ** 2 for rate in scales.rates], dtype=object),
            unit=2 * scales.unit**2,
            power=2,
        )
        true = worst_edge_cost(strategy, policy, squares)
        assert true <= strategy.cost_in_rho(policy, scales), name


def test_ten_equal_levels_cost_a_twentieth_of_the_square():
    tree = level_tree(512, 2, root_exact=False, geometric=False)
    policy = AddRemove(Domain(512))
    scales = tree.scales(policy, Fraction(1, 10))
    cost = tree.cost_in_rho(policy, scales)
    assert Fraction(1, 2000) * (1 - Fraction(1, 10**6)) <= cost
    assert cost <= Fraction(1, 2000) * (1 + Fraction(1, 10**6))


def test_small_rho_on_long_lines_keeps_every_row():
    """Sigma is 2.3e7 here; a bound on scales meant for Laplace noise would drop all."""
    strategy = PrefixSums(2**12)
    scales = strategy.scales(Full(Domain(2**12)), Budget(Fraction(1, 10**9), 2))
    assert (scales.measured | scales.exact).all()


def test_too_many_edges_to_list_leave_a_bound():
    """Over 2^16 edges: at most 2 or 4 times the heaviest column, never below."""
    cells = 600
    rows = np.zeros((2, cells), dtype=np.int64)
    rows[0, :3], rows[1, 5] = (4, 1, 2), 3
    weights = np.array([2, 5])
    policy = Full(Domain(cells))
    true = max(2 * 16 + 5 * 9, 2 * 16)
    assert true <= worst_moves(sparse.csr_array(rows), weights, policy, 2) <= 2 * 45
    rows[1, 6] = -3
    bound = worst_moves(sparse.csr_array(rows), weights, policy, 2)
    assert 5 * 36 <= bound <= 4 * 45
