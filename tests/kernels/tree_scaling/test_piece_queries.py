"""Greedy weights for queries of many pieces equal dense algebra."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError, WorkloadError
from blowfish_fast.kernels.tree_scaling.greedy_weights import (
    greedy_scaling_fractions,
    greedy_scaling_pieces,
)
from tests.generated import example_count
from tests.reference.greedy_weights import dense_scaling, path_sums, piece_rows

pytestmark = pytest.mark.kernel

EXAMPLES = 15 if config.DISABLE_JIT else example_count(120)
VALUES = (1.0, 1.0, 0.5, -1.0, 0.25, 0.0, 3.0)


@st.composite
def pieces(draw, leaves=40):
    """(pointers, starts, ends, values, weights, leaves); pieces may touch or be empty.

    A value of zero, an empty piece and two equal neighbours all occur.
    """
    leaves = draw(st.integers(1, leaves))
    pointers, starts, ends, values = [0], [], [], []
    for _ in range(draw(st.integers(1, 8))):
        places = sorted(draw(st.lists(st.integers(0, leaves), max_size=8)))
        touching = draw(st.booleans())
        pairs = list(pairwise(places))
        for start, end in pairs if touching else pairs[::2]:
            starts.append(start)
            ends.append(end)
            values.append(draw(st.sampled_from(VALUES)))
        pointers.append(len(starts))
    count = len(pointers) - 1
    weights = [draw(st.sampled_from((1.0, 1.0, 0.3, 7.0, 0.0))) for _ in range(count)]
    return (
        np.array(pointers),
        np.array(starts, dtype=np.int64),
        np.array(ends, dtype=np.int64),
        np.array(values),
        np.array(weights),
        leaves,
    )


fan_outs = st.sampled_from((2, 3, 4, 8))
options = st.fixed_dictionaries(
    {"decay": st.booleans(), "root_exact": st.booleans(), "prune": st.booleans()}
)


@settings(deadline=None, max_examples=EXAMPLES)
@given(pieces(), fan_outs, options)
def test_equals_the_dense_definition(queries, fan_out, options):
    *parts, weights, leaves = queries
    rows = weights[:, None] * piece_rows(*parts, leaves)
    dense = dense_scaling(rows, fan_out, **options)
    assume(dense.margin > 1e-7)
    fast = greedy_scaling_pieces(*parts, weights, leaves, fan_out, **options)
    np.testing.assert_allclose(fast.weights, dense.weights, atol=3e-6)
    assert fast.objective == pytest.approx(dense.objective, rel=1e-6, abs=1e-8)


@settings(deadline=None, max_examples=EXAMPLES)
@given(pieces(), fan_outs, options)
def test_every_path_adds_up_to_one(queries, fan_out, options):
    *parts, weights, leaves = queries
    found = greedy_scaling_pieces(*parts, weights, leaves, fan_out, **options).weights
    assume(leaves > 1)
    np.testing.assert_allclose(path_sums(found, leaves, fan_out), 1.0, rtol=1e-13)
    if not options["prune"]:
        assert (found[:leaves] > 0.0).all()


@pytest.mark.parametrize("fan_out", [2, 3, 16, 64])
@pytest.mark.parametrize("decay", [True, False])
def test_one_piece_is_a_range(fan_out, decay):
    leaves, count = (70, 20) if config.DISABLE_JIT else (5000, 400)
    rng = np.random.default_rng(1)
    ends = np.sort(rng.integers(0, leaves, (count, 2)), axis=1)
    first, last, whole = ends[:, 0], ends[:, 1], np.ones(count)
    weights = rng.random(count)
    ranges = greedy_scaling_fractions(
        first, whole, last, whole, weights, leaves, fan_out, decay=decay
    )
    found = greedy_scaling_pieces(
        np.arange(count + 1),
        first,
        last + 1,
        whole,
        weights,
        leaves,
        fan_out,
        decay=decay,
    )
    np.testing.assert_allclose(found.weights, ranges.weights, atol=1e-9)
    assert found.objective == pytest.approx(ranges.objective, rel=1e-12)


def test_cutting_a_piece_in_two_changes_nothing():
    leaves, fan_out = 50, 3
    one = greedy_scaling_pieces(
        [0, 1, 2], [3, 10], [41, 50], [1.0, 2.0], None, leaves, fan_out
    )
    two = greedy_scaling_pieces(
        [0, 3, 5],
        [3, 17, 18, 10, 44],
        [17, 18, 41, 44, 50],
        [1.0, 1.0, 1.0, 2.0, 2.0],
        None,
        leaves,
        fan_out,
    )
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-9)
    assert one.objective == pytest.approx(two.objective, rel=1e-12)


def test_single_cells_leave_all_weight_on_the_leaves():
    cells = np.arange(37)
    found = greedy_scaling_pieces(
        np.arange(38), cells, cells + 1, np.ones(37), None, 37, 4
    )
    assert found.weights.tolist() == [1.0] * 37 + [0.0] * 14
    assert found.objective == pytest.approx(37.0, rel=1e-12)


def test_rows_of_many_pieces_fit_their_room():
    # Each piece is one leaf wide with gaps: the largest number of mixed nodes.
    leaves = 64 if config.DISABLE_JIT else 512
    rng = np.random.default_rng(2)
    starts = np.tile(np.arange(0, leaves, 2), 3)
    ends = starts + 1
    values = rng.normal(size=starts.size)
    pointers = np.array([0, leaves // 2, leaves, 3 * leaves // 2])
    rows = piece_rows(pointers, starts, ends, values, leaves)
    found = greedy_scaling_pieces(pointers, starts, ends, values, None, leaves, 2)
    dense = dense_scaling(rows, 2)
    assert found.objective == pytest.approx(dense.objective, rel=1e-7)


@pytest.mark.parametrize(
    ("pointers", "starts", "ends"),
    [
        ([0, 2], [2, 0], [3, 1]),  # not sorted
        ([0, 2], [0, 1], [2, 3]),  # overlapping
        ([0, 1], [-1], [2]),
        ([0, 1], [1], [6]),
        ([0, 1], [3], [2]),
        ([0, 2], [1], [2]),  # pointers beyond the pieces
        ([1, 1], [1], [2]),
        ([0, 1, 0, 1], [1], [2]),
        ([0, 2**62, 1], [1], [2]),
        ([], [], []),
    ],
)
def test_refuses_pieces_that_are_not_well_formed(pointers, starts, ends):
    with pytest.raises(InputError, match="intervals"):
        greedy_scaling_pieces(pointers, starts, ends, np.ones(len(starts)), None, 5, 2)


def test_refuses_values_of_another_length():
    with pytest.raises(WorkloadError):
        greedy_scaling_pieces([0, 1], [0], [1], [1.0, 2.0], None, 5, 2)
    with pytest.raises(WorkloadError, match="one weight per query"):
        greedy_scaling_pieces([0, 1], [0], [1], [1.0], [1.0, 2.0], 5, 2)
