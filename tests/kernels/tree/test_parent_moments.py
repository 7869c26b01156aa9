"""Summed variances of implicit workloads equal the sum over their list."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.parent_moments import parent_tree_total_variance
from blowfish_fast.kernels.tree.parent_spread import parent_tree_spread
from blowfish_fast.kernels.tree.parent_tree import tree_of_parents
from blowfish_fast.workloads import AllRanges, Identity, Linear, Prefixes, Total
from tests.reference.forms import dense_workload
from tests.reference.parent_tree import random_parents

pytestmark = pytest.mark.kernel

EXAMPLES = 10 if config.DISABLE_JIT else 60
KINDS = (AllRanges, Prefixes, Identity, Total)


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 0.8]))
def test_equals_the_sum_over_the_list(leaves, seed, unmeasured):
    generator = np.random.default_rng(seed)
    parents = random_parents(generator, leaves)
    variances = generator.uniform(0.5, 3.0, parents.size)
    variances[generator.random(parents.size) < unmeasured] = np.inf
    edges = np.concatenate([[0], np.cumsum(generator.integers(1, 4, leaves))])
    domain, tree = Domain(int(edges[-1])), tree_of_parents(parents)
    for kind in KINDS:
        workload = kind(domain)
        form = workload.form(Buckets(edges))
        listed = Linear(domain, dense_workload(workload)).explicit_form(Buckets(edges))
        spread = parent_tree_spread(variances, np.ones(tree.nodes), tree, *listed)
        total = parent_tree_total_variance(variances, tree, form.kind, edges)
        assert total == pytest.approx(spread[0].sum(), rel=1e-9, abs=1e-9)


def test_a_huge_variance_costs_no_digits():
    tree = tree_of_parents(np.array([3, 3, 3, -1]))
    variances = np.array([1.0, 1e13, 1.0, 1.0])
    found = parent_tree_total_variance(variances, tree, "identity", np.arange(4))
    # The middle cell is what the total leaves over: 1, 1 and 1 + 1 + 1.
    assert found == pytest.approx(5.0, rel=1e-9)


def test_unknown_kinds_and_edges_are_refused():
    tree = tree_of_parents(np.array([2, 2, -1]))
    with pytest.raises(InputError, match="implicit workload"):
        parent_tree_total_variance(np.ones(3), tree, "pairs", np.arange(3))
    with pytest.raises(InputError, match="edges holds 3"):
        parent_tree_total_variance(np.ones(3), tree, "total", np.arange(4))
