"""Weights for whole families of queries equal those of their enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import WorkloadError
from blowfish_fast.kernels.tree_scaling.budget_shares import LARGEST_SHARE
from blowfish_fast.kernels.tree_scaling.greedy_weights import (
    greedy_scaling_implicit,
    greedy_scaling_pieces,
)
from blowfish_fast.kernels.tree_scaling.implicit_queries import KINDS
from tests.generated import example_count
from tests.reference.greedy_weights import cell_rows, dense_scaling, path_sums

pytestmark = pytest.mark.kernel

EXAMPLES = 15 if config.DISABLE_JIT else example_count(120)


def enumerate_kind(kind, edges):
    """Return the cell ranges that a family stands for."""
    cells = int(edges[-1])
    if kind == "all_ranges":
        return np.triu_indices(cells + 1, 1)
    if kind == "prefixes":
        return np.zeros(cells, dtype=int), np.arange(1, cells + 1)
    if kind == "identity":
        return np.arange(cells), np.arange(1, cells + 1)
    if kind == "bucket_identity":
        return np.array(edges[:-1]), np.array(edges[1:])
    return np.array([0]), np.array([cells])


def rows_to_pieces(rows):
    """Every row as single-leaf pieces."""
    query, leaf = np.nonzero(rows)
    pointers = np.searchsorted(query, np.arange(len(rows) + 1))
    return pointers, leaf, leaf + 1, rows[query, leaf]


@st.composite
def bucket_edges(draw, buckets=14):
    widths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=buckets))
    return np.r_[0, np.cumsum(widths)]


families = st.sampled_from(KINDS)
fan_outs = st.sampled_from((2, 3, 4, 8))
options = st.fixed_dictionaries(
    {"decay": st.booleans(), "root_exact": st.booleans(), "prune": st.booleans()}
)


@settings(deadline=None, max_examples=EXAMPLES)
@given(families, bucket_edges(), fan_outs, options)
def test_equals_the_dense_definition(kind, edges, fan_out, options):
    rows = cell_rows(*enumerate_kind(kind, edges), edges)
    dense = dense_scaling(rows, fan_out, **options)
    assume(dense.margin > 1e-7)
    fast = greedy_scaling_implicit(kind, edges, fan_out, **options)
    np.testing.assert_allclose(fast.weights, dense.weights, atol=3e-6)
    assert fast.objective == pytest.approx(dense.objective, rel=1e-6, abs=1e-8)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fan_out", [2, 5, 16, 64])
@pytest.mark.parametrize("decay", [True, False])
def test_equals_the_enumeration_of_its_queries(kind, fan_out, decay):
    buckets = 17 if config.DISABLE_JIT else 90
    rng = np.random.default_rng(7)
    edges = np.r_[0, np.cumsum(rng.integers(1, 3, buckets))]
    rows = cell_rows(*enumerate_kind(kind, edges), edges)
    explicit = greedy_scaling_pieces(
        *rows_to_pieces(rows), None, buckets, fan_out, decay=decay
    )
    found = greedy_scaling_implicit(kind, edges, fan_out, decay=decay)
    np.testing.assert_allclose(found.weights, explicit.weights, atol=1e-7)
    assert found.objective == pytest.approx(explicit.objective, rel=1e-9)


@pytest.mark.parametrize("kind", ["identity", "bucket_identity"])
@pytest.mark.parametrize("fan_out", [2, 3, 64])
@pytest.mark.parametrize("decay", [True, False])
def test_cells_leave_all_weight_on_the_leaves(kind, fan_out, decay):
    buckets = 40 if config.DISABLE_JIT else 3000
    rng = np.random.default_rng(8)
    edges = np.r_[0, np.cumsum(rng.integers(1, 50, buckets))]
    found = greedy_scaling_implicit(kind, edges, fan_out, decay=decay)
    assert (found.weights[:buckets] == 1.0).all()
    assert (found.weights[buckets:] == 0.0).all()
    counts = np.ones(buckets) if kind == "bucket_identity" else 1.0 / np.diff(edges)
    assert found.objective == pytest.approx(counts.sum(), rel=1e-12)


def test_all_ranges_of_plain_leaves_have_the_known_total_error():
    # All weight on the leaves would cost n (n + 1) (n + 2) / 6; a tree does better.
    for leaves in (2, 8, 64):
        found = greedy_scaling_implicit("all_ranges", np.arange(leaves + 1), 2)
        assert found.objective <= leaves * (leaves + 1) * (leaves + 2) / 6 * (1 + 1e-12)
    assert found.objective < 0.95 * 64 * 65 * 66 / 6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("root_exact", [True, False])
def test_every_path_adds_up_to_one(kind, root_exact):
    edges = np.r_[0, np.cumsum([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5])]
    found = greedy_scaling_implicit(kind, edges, 3, root_exact=root_exact).weights
    np.testing.assert_allclose(path_sums(found, 11, 3), 1.0, rtol=1e-14)
    assert (found[:11] > 0.0).all()
    assert not root_exact or found[-1] == 0.0


def test_the_total_goes_to_the_root():
    edges = np.array([0, 2, 5, 6])
    assert greedy_scaling_implicit("total", edges, 2).weights[-1] == LARGEST_SHARE
    pruned = greedy_scaling_implicit("total", edges, 2, prune=True)
    assert pruned.weights.tolist() == [0.0] * 5 + [1.0]
    assert pruned.objective == 1.0
    assert greedy_scaling_implicit("total", edges, 2, root_exact=True).objective == 0.0


@pytest.mark.parametrize("edges", [[0], [1, 2], [0, 2, 2], [0, 3, 1], [[0, 1]], []])
def test_refuses_edges_that_do_not_rise_from_zero(edges):
    with pytest.raises(WorkloadError, match="rises strictly from 0"):
        greedy_scaling_implicit("prefixes", edges, 2)


def test_refuses_an_unknown_family():
    with pytest.raises(WorkloadError, match="kind must be one of all_ranges"):
        greedy_scaling_implicit("every range", [0, 1], 2)
