from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.graph.graph_distance import (
    _hop,
    adjacency,
    band_distances,
    component_labels,
    corner_distances,
    pair_distances,
)
from tests.generated import example_count
from tests.reference import graph_distance as reference
from tests.reference.range_sensitivity import pairs_within

pytestmark = pytest.mark.kernel

EXAMPLES = 40 if config.DISABLE_JIT else example_count(200)


@st.composite
def graphs(draw):
    nodes = draw(st.integers(1, 12))
    node = st.integers(0, nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=20))
    edges = [(u, v) for u, v in pairs if u != v]
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return edges, nodes, adjacency(ends[:, 0], ends[:, 1], nodes)


@settings(max_examples=EXAMPLES)
@given(graphs(), st.randoms(use_true_random=False))
def test_distances_equal_networkx(graph, shuffler):
    edges, nodes, rows = graph
    pairs = list(itertools.product(range(nodes), repeat=2))
    shuffler.shuffle(pairs)
    sources, targets = np.array(pairs).T
    found = pair_distances(*rows, sources.copy(), targets.copy())
    expected = reference.distances(edges, nodes)[sources, targets]
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=EXAMPLES)
@given(graphs())
def test_components_equal_networkx(graph):
    edges, nodes, rows = graph
    labels, count = component_labels(*rows)
    parts = {
        frozenset(np.flatnonzero(labels == part).tolist()) for part in range(count)
    }
    assert parts == reference.components(edges, nodes)
    # Numbered by their first node.
    first = [int(np.flatnonzero(labels == part)[0]) for part in range(count)]
    assert first == sorted(first)


@settings(max_examples=EXAMPLES)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=40))
def test_hops_equal_networkx(lengths):
    cells = len(lengths)
    far = np.minimum(np.arange(cells) + lengths, cells - 1)
    far = np.maximum.accumulate(far)
    sources, targets = (one.reshape(-1) for one in np.indices((cells, cells)))
    found = band_distances(far, sources, targets).reshape(cells, cells)
    expected = reference.distances(pairs_within(far), cells)
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=EXAMPLES)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.lists(st.tuples(*[st.integers(0, 2)] * 3), max_size=4),
)
def test_steps_from_the_corner_equal_networkx(shape, moves):
    steps = np.array([move[: len(shape)] for move in moves], dtype=np.int64)
    steps = steps.reshape(-1, len(shape))
    found = corner_distances(tuple(shape), steps).tolist()
    assert found == reference.corner_distances(shape, steps)


class Counted(np.ndarray):
    """An array that counts how many entries are read."""

    reads = 0

    def __getitem__(self, place):
        Counted.reads += 1
        return super().__getitem__(place)


def test_a_long_line_is_hopped_in_few_steps():
    cells = 2**8 if config.DISABLE_JIT else 2**16
    far = np.minimum(np.arange(cells) + 3, cells - 1)
    first, last = np.zeros(5, dtype=np.int64), np.arange(cells - 5, cells)
    expected = np.ceil(last / 3)
    np.testing.assert_array_equal(band_distances(far, first, last), expected)
    if config.DISABLE_JIT:
        # Jumps take all but a few steps; each of the others reads one entry.
        counted = far.view(Counted)
        Counted.reads = 0
        np.testing.assert_array_equal(_hop(counted, first, last), expected)
        assert Counted.reads < 5 * 2 * (cells.bit_length() + 3)


def test_bad_graphs_are_refused():
    good = np.array([0, 1, 2]), np.array([1, 0])
    node = np.array([0])
    with pytest.raises(InputError):
        component_labels(np.array([0, 1, 3]), good[1])
    with pytest.raises(InputError):
        component_labels(good[0], np.array([1, 5]))
    with pytest.raises(InputError):
        component_labels(np.array([0, 2, 1, 2]), good[1])
    with pytest.raises(InputError):
        pair_distances(*good, node, np.array([2]))
    with pytest.raises(InputError):
        pair_distances(*good, node, np.array([0, 1]))
    with pytest.raises(InputError):
        band_distances(np.array([0, 5]), node, node)
    with pytest.raises(InputError):
        corner_distances((2, 2), np.array([[-1, 0]]))
