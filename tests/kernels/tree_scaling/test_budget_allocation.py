"""Budgets along the ways of a tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.kernels.tree_scaling.budget_shares import allocate_budget
from tests.generated import example_count

pytestmark = pytest.mark.kernel

EXAMPLES = 20 if config.DISABLE_JIT else example_count(80)


def wants_below(parents, growth, node):
    below = [
        growth[node] * wants_below(parents, growth, child)
        for child in np.flatnonzero(parents == node)
    ]
    return 1.0 + max(below, default=0.0)


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(1, 25), st.integers(0, 2**32 - 1))
def test_equals_the_definition_and_ways_add_up_to_one(nodes, seed):
    generator = np.random.default_rng(seed)
    parents = np.array([-1] + [generator.integers(0, node) for node in range(1, nodes)])
    growth = generator.uniform(0.2, 3.0, nodes)
    weights = allocate_budget(parents, growth)
    left = np.ones(nodes)
    for node in range(nodes):
        if node:
            left[node] = left[parents[node]] - weights[parents[node]]
        expected = left[node] / wants_below(parents, growth, node)
        assert weights[node] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    for leaf in set(range(nodes)) - set(parents.tolist()):
        assert left[leaf] == pytest.approx(weights[leaf])


def test_a_regular_tree_is_geometric():
    # Oracle B3: a quadtree of ten levels, one way down.
    weights = allocate_budget(np.arange(-1, 10), np.full(11, 2.0 ** (1 / 3)))
    assert weights.sum() == pytest.approx(1.0)
    assert weights[-1] == pytest.approx(0.223933, abs=1e-6)
    assert weights[0] == pytest.approx(0.022217, abs=1e-6)
