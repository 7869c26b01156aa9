from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.space.interval_pieces import (
    bucket_landmarks,
    check_pieces,
    end_buckets,
    intervals_to_pieces,
    ranges_to_fractions,
)
from tests.generated import example_count
from tests.reference import interval_pieces as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 40 if config.DISABLE_JIT else example_count(200)
SHAPES = {
    "cells": st.integers(1, 60),
    "cut": st.sampled_from([0.0, 0.1, 0.4, 1.0]),
    "seed": st.integers(0, 2**32 - 1),
}


def random_edges(rng, cells, cut):
    inner = 1 + np.flatnonzero(rng.random(cells - 1) < cut)
    return np.concatenate([[0], inner, [cells]])


def random_intervals(rng, cells, rows):
    """Return queries with empty, touching, separate and absent intervals."""
    pointers, starts, ends = [0], [], []
    for _ in range(rows):
        count = rng.integers(0, 8)
        marks = np.sort(rng.integers(0, cells + 1, 2 * count))
        if rng.random() < 0.3:
            marks = np.repeat(marks, 2)[1:-1]  # each interval begins where one ends
        starts += marks[::2].tolist()
        ends += marks[1::2].tolist()
        pointers.append(len(starts))
    values = rng.choice([1.0, 1.0, -1.0, 0.0, 0.1, 2.5], len(starts))
    return (
        np.array(pointers),
        np.array(starts, dtype=np.int64),
        np.array(ends, dtype=np.int64),
        values,
    )


@settings(deadline=None, max_examples=EXAMPLES)
@given(**SHAPES)
def test_projection_equals_the_definition(cells, cut, seed):
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, cells, cut)
    queries = random_intervals(rng, cells, 6)
    pointers, starts, ends, values = intervals_to_pieces(*queries, edges)
    rows = reference.cell_rows(*queries, cells)
    expected = np.array(reference.bucket_rows(rows, edges), dtype=float)
    found = np.zeros((6, edges.size - 1))
    for row in range(6):
        own = range(pointers[row], pointers[row + 1])
        for piece in own:
            assert starts[piece] < ends[piece]
            assert values[piece] != 0
            found[row, starts[piece] : ends[piece]] += values[piece]
        for before, after in pairwise(own):
            assert ends[before] <= starts[after]
            # Maximal: touching pieces differ.
            assert ends[before] < starts[after] or values[before] != values[after]
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


@settings(deadline=None, max_examples=EXAMPLES)
@given(**SHAPES)
def test_fractions_equal_the_definition(cells, cut, seed):
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, cells, cut)
    starts, ends = np.sort(rng.integers(0, cells + 1, (2, 12)), axis=0)
    found = ranges_to_fractions(starts, ends, edges)
    rows = reference.cell_rows(np.arange(13), starts, ends, np.ones(12), cells)
    expected = np.array(reference.bucket_rows(rows, edges), dtype=float)
    for query, (first, begin, last, end) in enumerate(zip(*found, strict=True)):
        row = np.zeros(edges.size - 1)
        row[first : last + 1] = 1.0
        row[last] = end
        row[first] = begin
        np.testing.assert_array_equal(row, expected[query])
        assert first != last or begin == end


def test_intervals_that_fill_a_bucket_together_give_its_value_exactly():
    # Ten tenths do not add up to one in floating point.
    starts = np.arange(10)
    query = np.array([0, 11]), np.append(starts, 10), np.append(starts + 1, 30)
    for value in (1.0, 0.1, -1 / 3):
        edges = np.array([0, 10, 20, 30])
        found = intervals_to_pieces(*query, np.full(11, value), edges)
        assert [part.tolist() for part in found] == [[0, 1], [0], [3], [value]]


def test_opposite_values_cancel_to_nothing():
    query = np.array([0, 2]), np.array([0, 3]), np.array([3, 6]), np.array([0.1, -0.1])
    found = intervals_to_pieces(*query, np.array([0, 6]))
    assert [part.tolist() for part in found] == [[0, 0], [], [], []]


def test_projected_queries_answer_as_the_uniform_buckets_do():
    rng = np.random.default_rng(8)
    edges = random_edges(rng, 50, 0.3)
    queries = random_intervals(rng, 50, 20)
    totals = rng.integers(0, 100, edges.size - 1).astype(float)
    sizes = np.diff(edges)
    cells = np.repeat(totals / sizes, sizes)
    over_cells = np.array(reference.cell_rows(*queries, 50), dtype=float) @ cells
    pieces = intervals_to_pieces(*queries, edges)
    rows = np.array(reference.cell_rows(*pieces, totals.size), dtype=float)
    over_buckets = rows @ totals
    np.testing.assert_allclose(over_cells, over_buckets, atol=1e-9)


@pytest.mark.parametrize(
    ("pointers", "starts", "ends", "message"),
    [
        ([0, 1], [0, 1], [1, 2], "climb from 0 to the number of intervals, here 2"),
        ([1, 2], [0, 1], [1, 2], "climb"),
        ([0, 2, 1, 2], [0, 1], [1, 2], "climb"),
        ([], [0, 1], [1, 2], "climb"),
        ([0, 2], [0, 1], [1, 9], r"within \[0, 8\)"),
        ([0, 2], [-1, 1], [1, 2], r"within \[0, 8\)"),
        ([0, 2], [0, 1], [2, 3], "sorted and disjoint"),
        ([0, 2], [4, 1], [5, 3], "sorted and disjoint"),
        ([0, 1], [4], [3], "sorted and disjoint"),
        ([0, 2], [0, 1], [1], "one number per interval"),
    ],
)
def test_malformed_intervals_are_refused(pointers, starts, ends, message):
    arrays = [np.array(part, dtype=np.int64) for part in (pointers, starts, ends)]
    with pytest.raises(InputError, match=message):
        check_pieces(*arrays, 8)


def test_malformed_edges_and_values_are_refused():
    query = np.array([0, 1]), np.array([1]), np.array([6])
    for edges in ([0], [1, 6], [0, 3, 3, 6], [[0, 6]]):
        with pytest.raises(InputError, match="rise from 0"):
            intervals_to_pieces(*query, np.ones(1), np.array(edges))
    with pytest.raises(InputError, match=r"within \[0, 5\)"):
        ranges_to_fractions(np.array([1]), np.array([6]), np.array([0, 5]))
    with pytest.raises(InputError, match="one value"):
        intervals_to_pieces(*query, np.ones(2), np.array([0, 6]))


@settings(deadline=None, max_examples=EXAMPLES)
@given(**SHAPES)
def test_landmarks_lead_to_the_same_end_buckets(cells, cut, seed):
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, cells, cut)
    starts = rng.integers(0, cells, 20)
    ends = rng.integers(starts + 1, cells + 1)
    found = end_buckets(starts, ends, edges, bucket_landmarks(edges))
    for got, want in zip(found, ranges_to_fractions(starts, ends, edges), strict=True):
        assert got.tolist() == want.tolist()
