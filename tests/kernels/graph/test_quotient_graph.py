from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.kernels.graph import graph_distance as kernels
from tests.generated import example_count
from tests.reference import quotient_graph as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 40 if config.DISABLE_JIT else example_count(200)


@settings(max_examples=EXAMPLES)
@given(st.integers(2, 10), st.lists(st.tuples(*[st.integers(0, 9)] * 2), max_size=30))
def test_rows_are_sorted_symmetric_and_without_repeats(nodes, pairs):
    pairs = [(u, v) for u, v in pairs if u != v and max(u, v) < nodes]
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    pointers, neighbours = kernels.adjacency(ends[:, 0], ends[:, 1], nodes)
    rows = np.split(neighbours, pointers[1:-1])
    assert [row.tolist() for row in rows] == reference.neighbour_lists(pairs, nodes)
    low, high = kernels.upper_pairs(pointers, neighbours)
    edges = {(min(pair), max(pair)) for pair in pairs}
    assert sorted(zip(low.tolist(), high.tolist(), strict=True)) == sorted(edges)


@settings(max_examples=EXAMPLES)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=25),
    st.sampled_from([1, 4, 2**22]),
)
def test_cliques_equal_the_definition(cells, at_once):
    groups = np.unique([group for group, _ in cells], return_inverse=True)[1]
    labels = np.array([label for _, label in cells])
    members = kernels.group_members(groups, labels, 7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "PAIRS_AT_ONCE", at_once)
        keys = list(kernels.clique_pairs(*members, 7, 10**6))
    found = {divmod(int(key), 7) for chunk in keys for key in chunk}
    assert found == reference.clique_pairs(groups.tolist(), labels.tolist())


def test_equal_groups_are_listed_once():
    groups = np.repeat(np.arange(1000), 3)
    labels = np.tile(np.arange(3), 1000)
    members = kernels.group_members(groups, labels, 3)
    assert sum(keys.size for keys in kernels.clique_pairs(*members, 3, 3)) == 3


def test_too_many_pairs_are_refused_with_their_number():
    members = kernels.group_members(np.zeros(10, np.int64), np.arange(10), 10)
    with pytest.raises(SizeError, match="45 pairs"):
        list(kernels.clique_pairs(*members, 10, 44))


@pytest.mark.parametrize(("first", "second"), [([0], [3]), ([-1], [0]), ([0, 1], [1])])
def test_nodes_outside_the_graph_are_refused(first, second):
    with pytest.raises(InputError):
        kernels.adjacency(np.array(first), np.array(second), 3)
