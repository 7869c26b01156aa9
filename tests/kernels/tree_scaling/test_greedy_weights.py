"""Greedy weights for ranges equal dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import WorkloadError
from blowfish_fast.kernels.tree.shape import tree_levels
from blowfish_fast.kernels.tree_scaling.budget_shares import LARGEST_SHARE
from blowfish_fast.kernels.tree_scaling.greedy_weights import (
    greedy_scaling,
    greedy_scaling_fractions,
)
from tests.generated import example_count
from tests.reference.greedy_weights import (
    dense_scaling,
    inverse_information,
    node_rows,
    path_sums,
    range_rows,
    squared_error,
)

pytestmark = pytest.mark.kernel

EXAMPLES = 15 if config.DISABLE_JIT else example_count(120)
FRACTIONS = (1.0, 1.0, 0.5, 1 / 3, 0.0)


@st.composite
def ranges(draw, leaves=40):
    """(first, head, last, tail, weights, leaves) of a few ranges."""
    leaves = draw(st.integers(1, leaves))
    ends = st.integers(0, leaves - 1)
    part = st.sampled_from(FRACTIONS)
    query = st.tuples(ends, ends, part, part, st.sampled_from((1.0, 1.0, 0.3, 7.0)))
    drawn = draw(st.lists(query, min_size=1, max_size=12))
    first = np.array([min(a, b) for a, b, *_ in drawn])
    last = np.array([max(a, b) for a, b, *_ in drawn])
    head = np.array([x for *_, x, _, _ in drawn])
    tail = np.where(first == last, head, [z for *_, z, _ in drawn])
    weights = np.array([weight for *_, weight in drawn])
    return first, head, last, tail, weights, leaves


fan_outs = st.sampled_from((2, 3, 4, 8))
options = st.fixed_dictionaries(
    {"decay": st.booleans(), "root_exact": st.booleans(), "prune": st.booleans()}
)


def random_ranges(rng, leaves, queries):
    ends = np.sort(rng.integers(0, leaves, (queries, 2)), axis=1)
    return ends[:, 0], ends[:, 1] + 1


@settings(deadline=None, max_examples=EXAMPLES)
@given(ranges(), fan_outs, options)
def test_equals_the_dense_definition(queries, fan_out, options):
    *ends, weights, leaves = queries
    rows = weights[:, None] * range_rows(*ends, leaves)
    dense = dense_scaling(rows, fan_out, **options)
    assume(dense.margin > 1e-7)
    fast = greedy_scaling_fractions(*ends, weights, leaves, fan_out, **options)
    np.testing.assert_allclose(fast.weights, dense.weights, atol=3e-6)
    assert fast.objective == pytest.approx(dense.objective, rel=1e-6, abs=1e-9)


@settings(deadline=None, max_examples=EXAMPLES)
@given(ranges(), fan_outs, options)
def test_every_path_adds_up_to_one(queries, fan_out, options):
    *ends, weights, leaves = queries
    fast = greedy_scaling_fractions(*ends, weights, leaves, fan_out, **options)
    assert (fast.weights >= 0.0).all()
    if options["root_exact"]:
        assert fast.weights[-1] == 0.0
    if leaves > 1 or not options["root_exact"]:
        sums = path_sums(fast.weights, leaves, fan_out)
        np.testing.assert_allclose(sums, 1.0, rtol=1e-13)
    if not options["prune"] and leaves > 1:
        assert (fast.weights[:leaves] > 0.0).all()


@settings(deadline=None, max_examples=EXAMPLES)
@given(ranges(leaves=16), fan_outs, st.booleans(), st.booleans())
def test_the_objective_is_the_error_of_least_squares(
    queries, fan_out, decay, root_exact
):
    # Oracle G1: E = tr(W'W M^-1).
    *ends, weights, leaves = queries
    fast = greedy_scaling_fractions(
        *ends, weights, leaves, fan_out, decay=decay, root_exact=root_exact
    )
    rows = weights[:, None] * range_rows(*ends, leaves)
    if leaves == 1 and root_exact:
        assert fast.objective == 0.0
        return
    error = squared_error(rows, fast.weights, fan_out, root_exact)
    assert fast.objective == pytest.approx(error, rel=1e-9, abs=1e-9)


def test_the_dense_twin_is_the_inverse_it_claims():
    # Oracle G1 for the twin: the rescaled inverse, and v = M^-1 1, from the weights.
    rng = np.random.default_rng(5)
    rows = rng.random((6, 11)) * (rng.random((6, 11)) < 0.6)
    dense = dense_scaling(rows, 3)
    inverse = inverse_information(dense.weights, 11, 3)
    assert dense.objective == pytest.approx((rows.T @ rows * inverse).sum(), rel=1e-9)
    # M^-1 1 is proportional, inside each node, to that of the node's own subtree.
    solved = inverse.sum(axis=1)
    nodes = node_rows(11, 3)
    for node in nodes[:-1]:
        inner = (nodes @ node == nodes.sum(axis=1)) & (nodes.sum(axis=1) > 0)
        own = (nodes[inner] * dense.weights[inner, None] ** 2).T @ nodes[inner]
        here = node > 0
        local = np.linalg.inv(own[np.ix_(here, here)]).sum(axis=1)
        ratio = solved[here] / local
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)


@pytest.mark.parametrize("fan_out", [2, 3, 8])
@pytest.mark.parametrize("leaves", [1, 2, 5, 16, 37])
@pytest.mark.parametrize("decay", [True, False])
@pytest.mark.parametrize("root_exact", [True, False])
def test_single_cells_leave_all_weight_on_the_leaves(
    leaves, fan_out, decay, root_exact
):
    cells = np.arange(leaves)
    weights = np.linspace(0.5, 2.0, leaves)
    found = greedy_scaling(
        cells,
        cells + 1,
        weights,
        leaves,
        fan_out,
        decay=decay,
        root_exact=root_exact,
    )
    expected = np.zeros(found.size)
    expected[:leaves] = 1.0
    if root_exact:
        expected[-1] = 0.0
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("prune", [True, False])
def test_no_queries_leave_all_weight_on_the_leaves(prune):
    empty = np.empty(0, dtype=np.int64)
    for starts, ends, weights in (
        (empty, empty, None),
        (np.array([2]), np.array([2]), None),
        (np.array([0]), np.array([5]), np.zeros(1)),
    ):
        found = greedy_scaling(starts, ends, weights, 5, 2, prune=prune)
        assert found.tolist() == [1.0] * 5 + [0.0] * 6


def test_unary_nodes_take_nothing():
    rng = np.random.default_rng(0)
    starts, ends = random_ranges(rng, 9, 30)
    found = greedy_scaling(starts, ends, None, 9, 2)
    sizes, offsets = tree_levels(9, 2)
    for level in (1, 2, 3):
        assert sizes[level - 1] % 2 == 1
        assert found[offsets[level + 1] - 1] == 0.0
    assert found[8] > 0.0


@pytest.mark.parametrize("decay", [True, False])
def test_the_total_alone_goes_to_the_root_and_spares_the_leaves(decay):
    start, end = np.array([0]), np.array([9])
    found = greedy_scaling(start, end, None, 9, 2, decay=decay)
    assert found[-1] == LARGEST_SHARE
    assert (found[:9] > 0.0).all()
    if not decay:
        # Below the node that takes almost all, nothing is taken twice.
        np.testing.assert_allclose(found[:9], 1.0 - LARGEST_SHARE)
    pruned = greedy_scaling(start, end, None, 9, 2, decay=decay, prune=True)
    assert pruned.tolist() == [0.0] * (pruned.size - 1) + [1.0]
    exact = greedy_scaling(start, end, None, 9, 2, decay=False, root_exact=True)
    assert exact[:9].tolist() == [1.0] * 9


def test_pruning_compares_coverage_bit_by_bit():
    # 0.1 + 0.2 and 0.3 differ in the last bit: the two leaves are told apart.
    for head, split in ((0.3, False), (0.1 + 0.2, True)):
        found = greedy_scaling_fractions(
            [0], [head], [1], [0.3], None, 4, 2, prune=True
        ).weights
        assert (found[0] == 0.0) == (not split)
        assert (found[2:4] == 0.0).all()


def test_queries_without_weight_do_not_count():
    first, last, whole = np.array([0, 1]), np.array([3, 1]), np.ones(2)
    both = greedy_scaling_fractions(
        first, whole, last, whole, np.array([1.0, 0.0]), 4, 2, prune=True
    )
    one = greedy_scaling_fractions([0], [1.0], [3], [1.0], None, 4, 2, prune=True)
    assert both.weights.tolist() == one.weights.tolist()
    assert both.objective == one.objective == 1.0


def test_the_order_of_queries_does_not_matter():
    rng = np.random.default_rng(2)
    starts, ends = random_ranges(rng, 50, 60)
    weights = rng.random(60)
    shuffled = rng.permutation(60)
    np.testing.assert_allclose(
        greedy_scaling(starts, ends, weights, 50, 4),
        greedy_scaling(starts[shuffled], ends[shuffled], weights[shuffled], 50, 4),
        atol=1e-9,
    )


def test_scaling_all_weights_changes_only_the_objective():
    rng = np.random.default_rng(3)
    starts, ends = random_ranges(rng, 30, 20)
    whole = np.ones(20)
    one = greedy_scaling_fractions(starts, whole, ends - 1, whole, whole, 30, 2)
    two = greedy_scaling_fractions(starts, whole, ends - 1, whole, 2 * whole, 30, 2)
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-12)
    assert two.objective == pytest.approx(4.0 * one.objective, rel=1e-12)


def test_beats_leaves_alone_and_equal_levels_on_random_ranges():
    leaves, queries = (64, 40) if config.DISABLE_JIT else (256, 300)
    rng = np.random.default_rng(4)
    starts, ends = random_ranges(rng, leaves, queries)
    whole = np.ones(queries)
    rows = range_rows(starts, whole, ends - 1, whole, leaves)
    sizes, offsets = tree_levels(leaves, 2)
    equal = np.full(offsets[-1], 1.0 / sizes.size)
    inverse = inverse_information(equal, leaves, 2)
    greedy = greedy_scaling_fractions(starts, whole, ends - 1, whole, None, leaves, 2)
    assert greedy.objective < (rows.T @ rows * inverse).sum()
    assert greedy.objective < (ends - starts).sum()


@pytest.mark.parametrize(
    ("starts", "ends", "weights"),
    [
        ([-1], [2], None),
        ([0], [5], None),
        ([3], [2], None),
        ([0, 1], [2], None),
        ([[0]], [[1]], None),
        ([0], [2], [1.0, 1.0]),
    ],
)
def test_refuses_ranges_that_are_none(starts, ends, weights):
    with pytest.raises(WorkloadError):
        greedy_scaling(starts, ends, weights, 4, 2)


def test_refuses_fractions_of_another_length():
    with pytest.raises(WorkloadError, match="one length"):
        greedy_scaling_fractions([0], [1.0, 1.0], [1], [1.0], None, 4, 2)
