"""Sparse boxes of a fitted tree become even."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.kernels.tree.fit import pruned_leaves
from blowfish_fast.kernels.tree.shape import tree_of_parents
from tests.generated import example_count
from tests.reference.trees import leaf_sets, random_parents

pytestmark = pytest.mark.kernel

EXAMPLES = 20 if config.DISABLE_JIT else example_count(80)


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(1, 15), st.integers(0, 2**32 - 1))
def test_equals_the_definition(leaves, seed):
    generator = np.random.default_rng(seed)
    parents = random_parents(generator, leaves)
    sets = leaf_sets(parents)
    cells = generator.integers(1, 4, leaves)
    edges = np.concatenate([[0], np.cumsum(cells)])
    fit = sets @ generator.normal(2.0, 5.0, leaves)
    thresholds = generator.uniform(0.0, 6.0, leaves)
    expected = fit[:leaves].copy()
    for leaf in range(leaves):
        # The highest node above that is cut, from the root down.
        above = [node for node in range(leaves, parents.size) if sets[node, leaf]]
        for node in reversed(above):
            if fit[node] < thresholds[sets[node] > 0].max():
                expected[leaf] = fit[node] * cells[leaf] / (sets[node] @ cells)
                break
    found = pruned_leaves(fit, thresholds, tree_of_parents(parents), edges)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert found.sum() == pytest.approx(fit[-1], abs=1e-9)


def test_without_noise_nothing_is_cut():
    tree = tree_of_parents(np.array([2, 2, -1]))
    fit = np.array([0.0, 7.0, 7.0])
    assert pruned_leaves(fit, np.zeros(2), tree, np.arange(3)).tolist() == [0.0, 7.0]
