from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config
from scipy import sparse

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.graph.column_distance import (
    column_lengths,
    furthest_in_pairs,
    furthest_in_windows,
    repeated_columns,
)
from tests.generated import example_count
from tests.reference import column_distance as reference
from tests.reference.range_sensitivity import pairs_within

pytestmark = pytest.mark.kernel

EXAMPLES = 40 if config.DISABLE_JIT else example_count(200)
PLENTY = 10**9


def compressed(matrix):
    columns = sparse.csc_array(matrix)
    columns.sort_indices()
    return (
        columns.indptr.astype(np.int64),
        columns.indices.astype(np.int64),
        columns.data.astype(np.float64),
    )


@st.composite
def matrices(draw):
    shape = draw(st.tuples(st.integers(1, 5), st.integers(2, 8)))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    return rng.choice([0.0, 0.0, 1.0, -2.0, 0.5], shape)


@settings(max_examples=EXAMPLES)
@given(matrices(), st.data())
def test_windows_equal_all_pairs(matrix, data):
    columns = matrix.shape[1]
    hop = st.integers(0, columns)
    hops = data.draw(st.lists(hop, min_size=columns, max_size=columns))
    far = np.minimum(np.arange(columns) + hops, columns - 1)
    parts = compressed(matrix)
    lengths = column_lengths(parts[0], parts[2])
    np.testing.assert_allclose(lengths, np.abs(matrix).sum(axis=0))
    seen = furthest_in_windows(*parts, lengths, far, budget=PLENTY)
    assert seen.largest == seen.ceiling == reference.largest(matrix, pairs_within(far))


@settings(max_examples=EXAMPLES)
@given(matrices(), st.sampled_from([0, 5, 20, PLENTY]))
def test_longest_first_skips_without_loss(matrix, budget):
    matrix = matrix[:, np.argsort(-np.abs(matrix).sum(axis=0), kind="stable")]
    parts = compressed(matrix)
    lengths = np.abs(matrix).sum(axis=0)
    far = np.full(lengths.size, lengths.size - 1)
    seen = furthest_in_windows(*parts, lengths, far, descending=True, budget=budget)
    pairs = itertools.combinations(range(lengths.size), 2)
    expected = reference.largest(matrix, pairs)
    assert seen.largest <= expected <= seen.ceiling
    if budget == PLENTY:
        assert seen.largest == seen.ceiling


@settings(max_examples=EXAMPLES)
@given(matrices(), st.data(), st.sampled_from([0, 3, PLENTY]))
def test_listed_pairs_equal_the_definition(matrix, data, budget):
    column = st.integers(0, matrix.shape[1] - 1)
    pairs = data.draw(st.lists(st.tuples(column, column), min_size=1, max_size=9))
    first, second = np.array(pairs).T
    parts = compressed(matrix)
    lengths = column_lengths(parts[0], parts[2])
    seen = furthest_in_pairs(
        *parts, lengths, first.copy(), second.copy(), budget=budget
    )
    expected = reference.largest(matrix, pairs)
    assert seen.largest <= expected <= seen.ceiling
    if budget == PLENTY:
        assert seen.largest == seen.ceiling


@settings(max_examples=EXAMPLES)
@given(matrices(), st.randoms(use_true_random=False))
def test_repeats_are_found_along_any_order(matrix, shuffler):
    matrix = np.concatenate([matrix, matrix[:, :2]], axis=1)
    order = list(range(matrix.shape[1]))
    shuffler.shuffle(order)
    found = repeated_columns(np.array(order), *compressed(matrix))
    expected = [False] + [
        (matrix[:, u] == matrix[:, v]).all() for u, v in itertools.pairwise(order)
    ]
    assert found.tolist() == expected


def test_entries_are_read_until_the_budget_is_over():
    # Each pair costs one, and its entries: here two, with one column of each.
    parts = compressed(np.diag([1.0, 2.0, 4.0]))
    lengths, first, second = np.array([1.0, 2.0, 4.0]), np.array([0, 1]), [1, 2]
    for budget, seen in ((0, (0.0, 6.0, 1)), (1, (3.0, 6.0, 4)), (4, (6.0, 6.0, 6))):
        pairs = furthest_in_pairs(
            *parts, lengths, first, np.array(second), budget=budget
        )
        windows = furthest_in_windows(
            *parts, lengths, np.array([1, 2, 2]), budget=budget
        )
        assert tuple(pairs) == tuple(windows) == seen


def test_a_known_distance_is_kept():
    parts = compressed(np.eye(3))
    seen = furthest_in_pairs(
        *parts, np.ones(3), np.array([0]), np.array([1]), at_least=7.0, budget=PLENTY
    )
    assert seen.largest == seen.ceiling == 7.0


def test_bad_input_is_refused():
    parts = compressed(np.eye(3))
    with pytest.raises(InputError):
        furthest_in_windows(*parts, np.ones(3), np.array([1, 2, 3]), budget=1)
    with pytest.raises(InputError):
        furthest_in_windows(*parts, np.ones(2), np.array([1, 1]), budget=1)
    with pytest.raises(InputError):
        furthest_in_pairs(*parts, np.ones(3), np.array([0]), np.array([3]), budget=1)
    with pytest.raises(InputError):
        repeated_columns(np.array([3]), *parts)
