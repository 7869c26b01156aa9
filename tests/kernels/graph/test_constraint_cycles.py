from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.graph.constraint_cycles import (
    edge_changes,
    longest_cycle,
    longest_open_path,
)
from tests.generated import example_count
from tests.reference import constraints as reference

pytestmark = pytest.mark.kernel

NODES = 5 if config.DISABLE_JIT else 7
EXAMPLES = 20 if config.DISABLE_JIT else example_count(60)


def bits_of(nodes, pairs):
    bits = np.zeros(nodes, dtype=np.int64)
    for one, two in pairs:
        bits[one] |= 1 << two
        bits[two] |= 1 << one
    return bits


@st.composite
def graphs(draw):
    nodes = draw(st.integers(1, NODES))
    every = [(one, two) for two in range(nodes) for one in range(two)]
    pairs = draw(st.sets(st.sampled_from(every))) if every else set()
    opened = draw(st.sets(st.integers(0, nodes - 1)))
    return nodes, pairs, opened


@settings(deadline=None, max_examples=EXAMPLES)
@given(graphs())
def test_equals_the_walk_over_every_cycle_and_path(graph):
    nodes, pairs, opened = graph
    arcs = {(reference.SOURCE, reference.SINK)}
    arcs |= {arc for one, two in pairs for arc in ((one, two), (two, one))}
    arcs |= {(reference.SOURCE, node) for node in opened}
    arcs |= {(node, reference.SINK) for node in opened}
    cycle, path = reference.longest_chains(arcs)
    bits = bits_of(nodes, pairs)
    assert longest_cycle(bits) == cycle
    assert 1 + longest_open_path(bits, sum(1 << node for node in opened)) == path


def test_a_ring_is_one_cycle_and_a_star_has_only_pairs():
    nodes = 6 if config.DISABLE_JIT else 16
    ring = bits_of(nodes, [(node, (node + 1) % nodes) for node in range(nodes)])
    star = bits_of(nodes, [(0, node) for node in range(1, nodes)])
    everywhere = (1 << nodes) - 1
    assert longest_cycle(ring) == nodes
    assert longest_cycle(star) == 2
    assert longest_open_path(ring, everywhere) == nodes
    assert longest_open_path(star, everywhere) == 3
    assert longest_open_path(star, 0b1) == 1
    assert longest_open_path(star, 0) == 0


def test_all_of_many_queries_are_searched():
    nodes = 7 if config.DISABLE_JIT else 20
    every = (1 << nodes) - 1
    complete = np.array([every & ~(1 << node) for node in range(nodes)])
    assert longest_cycle(complete) == longest_open_path(complete, every) == nodes


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    st.lists(st.sets(st.integers(0, 6)), min_size=1, max_size=6), st.integers(0, 2**30)
)
def test_changes_are_the_differences_of_the_lists(lists, seed):
    pointers = np.cumsum([0, *map(len, lists)])
    members = np.array([q for one in lists for q in sorted(one)], dtype=np.int64)
    ends = np.random.default_rng(seed).integers(0, len(lists), (2, 20))
    lowered, lifted = edge_changes(pointers, members, *ends)
    for edge, (one, two) in enumerate(ends.T):
        for found, only in (
            (lowered[edge], lists[one] - lists[two]),
            (lifted[edge], lists[two] - lists[one]),
        ):
            expected = -1 if not only else -2 if len(only) > 1 else only.pop()
            assert found == expected


def test_bad_shapes_are_refused():
    with pytest.raises(InputError, match="at most 20"):
        longest_cycle(np.zeros(21, dtype=np.int64))
    with pytest.raises(InputError, match="bits of the same nodes"):
        longest_cycle(np.array([4, 0]))
    with pytest.raises(InputError, match="bits of 2 nodes"):
        longest_open_path(np.array([2, 1]), 4)
    lists = np.array([0, 1]), np.array([3])
    with pytest.raises(InputError, match="pairs must name nodes from 0 to 0"):
        edge_changes(*lists, np.array([0]), np.array([1]))
    with pytest.raises(InputError, match="one length"):
        edge_changes(*lists, np.array([0]), np.array([0, 0]))
    with pytest.raises(InputError, match="rise from 0"):
        edge_changes(np.array([0, 2]), np.array([3]), np.array([0]), np.array([0]))
