from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.moments import (
    KINDS,
    tree_total_variance,
    tree_variances,
)
from blowfish_fast.kernels.tree.shape import regular_tree, tree_levels, tree_of_parents
from blowfish_fast.kernels.tree.spread import tree_spread_pieces
from blowfish_fast.workloads import AllRanges, Identity, Linear, Prefixes, Total
from tests.generated import example_count
from tests.reference import tree_moments as reference
from tests.reference.forms import dense_workload
from tests.reference.trees import random_parents

pytestmark = pytest.mark.kernel

EXAMPLES = 40 if config.DISABLE_JIT else example_count(200)


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    st.sampled_from(KINDS),
    st.integers(1, 40),
    st.sampled_from([2, 3, 4, 8, 64]),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    st.sampled_from([1, 4]),
)
def test_equals_the_sum_over_all_queries(
    kind, leaves, branching, seed, unmeasured, exact, widest
):
    rng = np.random.default_rng(seed)
    nodes = tree_levels(leaves, branching)[1][-1]
    variances = 10.0 ** rng.uniform(-1, 1, nodes)
    variances[rng.random(nodes) < unmeasured] = np.inf
    variances[rng.random(nodes) < exact] = 0.0
    edges = np.concatenate([[0], np.cumsum(rng.integers(1, widest + 1, leaves))])
    found = tree_total_variance(variances, regular_tree(leaves, branching), kind, edges)
    expected = reference.total_variance(variances, leaves, branching, kind, edges)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("branching", [2, 3, 16, 64])
@pytest.mark.parametrize("cells", [1, 2, 5, 64, 100])
def test_cells_alone_follow_the_closed_forms(cells, branching):
    nodes = tree_levels(cells, branching)[1][-1]
    variances = np.full(nodes, np.inf)
    variances[:cells] = 2.5
    edges = np.arange(cells + 1)
    n = cells

    def total(kind):
        return tree_total_variance(
            variances, regular_tree(cells, branching), kind, edges
        )

    assert total("all_ranges") == pytest.approx(2.5 * n * (n + 1) * (n + 2) / 6)
    assert total("prefixes") == pytest.approx(2.5 * n * (n + 1) / 2)
    assert total("identity") == pytest.approx(2.5 * n)
    assert total("total") == pytest.approx(2.5 * n)
    if cells > 1:
        variances[-1] = 0.0
        expected = 2.5 * (n - 1) * (n + 1) * (n + 2) / 12
        assert total("all_ranges") == pytest.approx(expected)
        assert total("total") == 0.0


def test_keeps_its_digits_where_subtraction_would_lose_them():
    # Pairs of cells with all but exact sums: only ranges that cut a pair are noisy.
    cells = 512 if config.DISABLE_JIT else 4096
    nodes = tree_levels(cells, 2)[1][-1]
    variances = np.zeros(nodes)
    variances[:cells] = 1.0
    found = tree_total_variance(
        variances, regular_tree(cells, 2), "all_ranges", np.arange(cells + 1)
    )
    # Half of the cuts fall inside a pair. Each is the start or the end of `cells`
    # ranges and adds 1/2, the variance of half a difference.
    assert found == pytest.approx(cells / 2 * cells / 2, rel=1e-14)


def test_malformed_workloads_are_refused():
    with pytest.raises(InputError, match="one of all_ranges, prefixes"):
        tree_total_variance(np.ones(7), regular_tree(4, 2), "rectangles", np.arange(5))
    with pytest.raises(InputError, match="5 rising whole numbers"):
        tree_total_variance(np.ones(7), regular_tree(4, 2), "identity", np.arange(4))
    with pytest.raises(InputError, match="5 rising whole numbers"):
        tree_total_variance(
            np.ones(7), regular_tree(4, 2), "identity", np.array([0, 1, 1, 2, 3])
        )
    with pytest.raises(InputError, match="one number per node"):
        tree_total_variance(np.ones(6), regular_tree(4, 2), "identity", np.arange(5))


WORKLOADS = (AllRanges, Prefixes, Identity, Total)


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 0.8]))
def test_irregular_trees_equal_the_sum_over_the_list(leaves, seed, unmeasured):
    generator = np.random.default_rng(seed)
    parents = random_parents(generator, leaves)
    variances = generator.uniform(0.5, 3.0, parents.size)
    variances[generator.random(parents.size) < unmeasured] = np.inf
    edges = np.concatenate([[0], np.cumsum(generator.integers(1, 4, leaves))])
    domain, tree = Domain(int(edges[-1])), tree_of_parents(parents)
    for kind in WORKLOADS:
        workload = kind(domain)
        form = workload.form(Buckets(edges))
        listed = Linear(domain, dense_workload(workload)).explicit_form(Buckets(edges))
        spread = tree_spread_pieces(variances, np.ones(tree.nodes), tree, *listed)
        total = tree_total_variance(variances, tree, form.kind, edges)
        assert total == pytest.approx(spread[0].sum(), rel=1e-9, abs=1e-9)


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    st.integers(1, 40),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([0.0, 0.2, 1.0]),
    st.booleans(),
)
def test_variances_of_pieces_are_those_of_their_whole_law(
    leaves, seed, unmeasured, exact, free
):
    rng = np.random.default_rng(seed)
    tree = tree_of_parents(random_parents(rng, leaves))
    variances = 10.0 ** rng.uniform(-3, 3, tree.nodes)
    variances[rng.random(tree.nodes) < exact] = 0.0
    unknown = rng.random(tree.nodes) < unmeasured
    unknown[:leaves] &= free
    variances[unknown] = np.inf
    ends = [np.unique(rng.integers(0, leaves + 1, 6)) for _ in range(5)]
    pieces = (
        np.concatenate([[0], np.cumsum([one.size - 1 for one in ends])]),
        np.concatenate([one[:-1] for one in ends]),
        np.concatenate([one[1:] for one in ends]),
    )
    values = rng.choice([1.0, 0.0, -2.0, 0.3], pieces[1].size)
    found = tree_variances(variances, tree, *pieces, values)
    law = tree_spread_pieces(variances, np.ones(tree.nodes), tree, *pieces, values)
    np.testing.assert_allclose(found, law[0], rtol=1e-11, atol=1e-13)


def test_an_exact_total_has_no_variance_however_it_is_cut():
    tree = regular_tree(6, 2)
    variances = np.append(np.full(tree.nodes - 1, 3.0), 0.0)
    whole = np.array([0, 1, 3]), np.array([0, 0, 3]), np.array([6, 3, 6])
    assert not tree_variances(variances, tree, *whole, np.full(3, 0.3)).any()


def test_a_huge_variance_costs_no_digits():
    tree = tree_of_parents(np.array([3, 3, 3, -1]))
    variances = np.array([1.0, 1e13, 1.0, 1.0])
    found = tree_total_variance(variances, tree, "identity", np.arange(4))
    # The middle cell is what the total leaves over: 1, 1 and 1 + 1 + 1.
    assert found == pytest.approx(5.0, rel=1e-9)


def test_unknown_kinds_and_edges_are_refused():
    tree = tree_of_parents(np.array([2, 2, -1]))
    with pytest.raises(InputError, match="implicit workload"):
        tree_total_variance(np.ones(3), tree, "pairs", np.arange(3))
    with pytest.raises(InputError, match="edges holds 3"):
        tree_total_variance(np.ones(3), tree, "total", np.arange(4))
