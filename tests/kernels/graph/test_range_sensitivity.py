from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.graph.graph_distance import adjacency
from blowfish_fast.kernels.graph.range_sensitivity import (
    largest_change_within,
    largest_edge_separation,
    largest_separation,
    range_coverage,
)
from tests.generated import example_count
from tests.reference import range_sensitivity as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 40 if config.DISABLE_JIT else example_count(200)


@st.composite
def lines(draw, most=12):
    """Return ranges and furthest neighbours over a short line."""
    cells = draw(st.integers(1, most))
    cell = st.integers(0, cells - 1)
    pairs = draw(st.lists(st.tuples(cell, cell), max_size=10))
    starts = np.array([min(pair) for pair in pairs], dtype=np.int64)
    ends = np.array([max(pair) + 1 for pair in pairs], dtype=np.int64)
    hops = draw(st.lists(st.integers(0, cells), min_size=cells, max_size=cells))
    far = np.minimum(np.arange(cells) + hops, cells - 1)
    return starts, ends, np.maximum.accumulate(far)


@settings(max_examples=EXAMPLES)
@given(lines())
def test_the_sweep_equals_all_pairs(line):
    starts, ends, far = line
    expected = reference.largest_separation(starts, ends, reference.pairs_within(far))
    assert largest_separation(starts, ends, far) == expected


@settings(max_examples=EXAMPLES)
@given(lines())
def test_coverage_counts_the_ranges_over_each_cell(line):
    starts, ends, far = line
    found = range_coverage(starts, ends, far.size)
    assert found.tolist() == reference.coverage(starts, ends, far.size)


@settings(max_examples=EXAMPLES)
@given(lines(), st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=9))
def test_edges_of_a_graph_equal_all_pairs(line, pairs):
    starts, ends, far = line
    cells = far.size
    edges = [(u, v) for u, v in pairs if u != v and max(u, v) <= cells]
    ends_of = np.array(edges, dtype=np.int64).reshape(-1, 2)
    graph = adjacency(ends_of[:, 0], ends_of[:, 1], cells + 1)
    inside = [(u, v) for u, v in edges if max(u, v) < cells]
    expected = reference.largest_separation(starts, ends, inside)
    assert largest_edge_separation(*graph, starts, ends, cells) == expected


@settings(max_examples=EXAMPLES)
@given(lines(), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_sliding_windows_equal_all_pairs(line, count, seed):
    far = line[2]
    values = np.random.default_rng(seed).integers(-9, 9, (count, far.size)) / 4.0
    expected = reference.largest_change(values, reference.pairs_within(far))
    assert largest_change_within(values, far) == expected


@pytest.mark.long
def test_larger_lines_equal_all_pairs():
    rng = np.random.default_rng(5)
    cells, ranges = (40, 30) if config.DISABLE_JIT else (120, 100)
    bounds = np.sort(rng.integers(0, cells, (2, ranges)), axis=0)
    starts, ends = bounds[0], bounds[1] + 1
    for theta in (1, 7, cells // 2, cells):
        far = np.minimum(np.arange(cells) + theta, cells - 1)
        expected = reference.largest_separation(
            starts, ends, reference.pairs_within(far)
        )
        assert largest_separation(starts, ends, far) == expected


def test_more_reach_never_separates_less():
    rng = np.random.default_rng(6)
    bounds = np.sort(rng.integers(0, 60, (2, 40)), axis=0)
    found = [
        largest_separation(
            bounds[0], bounds[1] + 1, np.minimum(np.arange(60) + theta, 59)
        )
        for theta in range(1, 60)
    ]
    assert found == sorted(found)


@pytest.mark.parametrize(
    ("starts", "ends", "far"),
    [
        ([0], [4], [1, 2, 2]),
        ([-1], [2], [1, 2, 2]),
        ([1], [1], [1, 2, 2]),
        ([0, 1], [1], [1, 2, 2]),
        ([0], [1], [1, 2, 3]),
        ([0], [1], [0, 0, 2]),
        ([0], [1], [2, 1, 2]),
    ],
)
def test_bad_input_is_refused(starts, ends, far):
    with pytest.raises(InputError):
        largest_separation(np.array(starts), np.array(ends), np.array(far))


def test_lines_of_another_length_are_refused():
    with pytest.raises(InputError, match="3 values"):
        largest_change_within(np.zeros((1, 2)), np.array([1, 2, 2]))


def test_a_graph_smaller_than_the_line_is_refused():
    pointers, nothing = np.zeros(3, dtype=np.int64), np.zeros(0, dtype=np.int64)
    with pytest.raises(InputError, match="2 nodes"):
        largest_edge_separation(pointers, nothing, nothing, nothing, 3)
