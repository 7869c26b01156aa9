"""How a node looks from outside equals what dense algebra says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.kernels.tree.shape import tree_levels, weights_from_shares
from blowfish_fast.kernels.tree_scaling.budget_shares import regular_levels
from blowfish_fast.kernels.tree_scaling.gradients import error_gradients
from blowfish_fast.kernels.tree_scaling.range_queries import sorted_ranges
from tests.generated import example_count
from tests.reference.greedy_weights import inverse_information, node_rows, range_rows

from .test_greedy_weights import fan_outs, ranges

pytestmark = pytest.mark.kernel

EXAMPLES = 15 if config.DISABLE_JIT else example_count(100)


def view(queries, fan_out, weights, floor, root_exact):
    *ends, query_weights, leaves = queries
    return error_gradients(
        sorted_ranges(*ends, query_weights, leaves),
        floor,
        weights,
        regular_levels(leaves, fan_out),
        root_exact,
    )


def some_weights(seed, leaves, fan_out, root_exact):
    """Random weights; some inner nodes are not measured."""
    rng = np.random.default_rng(seed)
    sizes, offsets = tree_levels(leaves, fan_out)
    shares = rng.uniform(0.0, 0.9, offsets[-1]) * (rng.random(offsets[-1]) < 0.8)
    if root_exact:
        shares[-1] = 0.0
    return weights_from_shares(shares, sizes, offsets, fan_out)


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    ranges(leaves=30),
    fan_outs,
    st.integers(0, 2**32 - 1),
    st.sampled_from((0.0, 0.7)),
    st.booleans(),
)
def test_equals_dense_algebra(queries, fan_out, seed, floor, root_exact):
    *ends, query_weights, leaves = queries
    root_exact = root_exact and leaves > 1
    weights = some_weights(seed, leaves, fan_out, root_exact)
    error, floor_error, pulls, precisions = view(
        queries, fan_out, weights, floor, root_exact
    )
    inverse = inverse_information(weights, leaves, fan_out, root_exact)
    rows = query_weights[:, None] * range_rows(*ends, leaves)
    assert error == pytest.approx((rows.T @ rows * inverse).sum(), rel=1e-9, abs=1e-9)
    assert floor_error == pytest.approx(floor * np.trace(inverse), rel=1e-9)

    nodes = node_rows(leaves, fan_out)[leaves:]
    everything = np.vstack([rows, np.sqrt(floor) * np.eye(leaves)])
    joint = np.einsum("ij,jk,ik->i", nodes, inverse, nodes)
    covariances = everything @ inverse @ nodes.T
    seen = joint > 1e-9
    # Sums of signed terms in another order: compare with the size of the terms.
    size = max(1.0, float((everything**2).sum()))
    np.testing.assert_allclose(
        pulls[seen] / size,
        ((covariances**2).sum(axis=0)[seen] / joint[seen] ** 2) / size,
        rtol=1e-7,
        atol=1e-9,
    )
    # What is known in all is what is known inside plus what is known outside. A unary
    # ancestor measures the same total from outside: the level tells, not the leaves.
    all_nodes = node_rows(leaves, fan_out)
    order = np.arange(len(all_nodes))
    for place in np.flatnonzero(seen):
        here = nodes[place] > 0
        below = (all_nodes[:, ~here].sum(axis=1) == 0) & (order <= leaves + place)
        above = (all_nodes[:, here].sum(axis=1) > 0) & (order > leaves + place)
        inner = (all_nodes[below] * weights[below, None] ** 2).T @ all_nodes[below]
        inner_variance = np.linalg.inv(inner[np.ix_(here, here)]).sum()
        outer = 1.0 / joint[place] - 1.0 / inner_variance
        spendable = 1.0 - weights[above].sum()
        assert precisions[place] * spendable**2 == pytest.approx(
            outer, rel=1e-6, abs=1e-7 / joint[place]
        )


def test_the_pull_is_the_slope_of_the_error():
    # Minus the derivative in a squared weight, over the squared variance.
    queries = (
        np.array([0, 2, 5, 3]),
        np.array([1.0, 0.5, 1.0, 0.25]),
        np.array([6, 8, 5, 10]),
        np.array([0.5, 1.0, 1.0, 1.0]),
        np.array([1.0, 2.0, 0.5, 1.0]),
        11,
    )
    weights = some_weights(3, 11, 3, False)
    pulls = view(queries, 3, weights, 0.2, False)[2]
    inverse = inverse_information(weights, 11, 3)
    nodes = node_rows(11, 3)
    for node in range(11, nodes.shape[0]):
        errors = []
        for change in (-1e-5, 1e-5):
            moved = weights.copy()
            moved[node] = np.sqrt(max(weights[node] ** 2 + change, 0.0))
            shift = moved[node] ** 2 - weights[node] ** 2
            errors.append((sum(view(queries, 3, moved, 0.2, False)[:2]), shift))
        (low, down), (high, up) = errors
        slope = (high - low) / (up - down)
        joint = nodes[node] @ inverse @ nodes[node]
        assert pulls[node - 11] == pytest.approx(-slope / joint**2, rel=1e-3)


def test_a_single_leaf_has_no_inner_nodes():
    queries = (np.array([0]), np.array([0.5]), np.array([0]), np.array([0.5]), None, 1)
    error, floor_error, pulls, precisions = view(queries, 2, np.ones(1), 2.0, False)
    assert (error, floor_error) == (0.25, 2.0)
    assert pulls.size == precisions.size == 0


@settings(deadline=None, max_examples=EXAMPLES)
@given(ranges(leaves=30), fan_outs, st.integers(0, 2**32 - 1), st.booleans())
def test_the_error_of_ranges_is_the_sum_of_their_variances(
    queries, fan_out, seed, root_exact
):
    *ends, _, leaves = queries
    root_exact = root_exact and leaves > 1
    weights = some_weights(seed, leaves, fan_out, root_exact)
    inverse = inverse_information(weights, leaves, fan_out, root_exact)
    rows = range_rows(*ends, leaves)
    expected = np.einsum("qi,ij,qj->", rows, inverse, rows)
    found = view((*ends, None, leaves), fan_out, weights, 0.0, root_exact).error
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
