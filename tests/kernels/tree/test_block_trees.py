"""Trees over blocks: their shape, and the costliest edge among them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.block_trees import trees_over_blocks, worst_block_move
from tests.reference import ordered_hierarchy as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 30 if config.DISABLE_JIT else 120


@st.composite
def shapes(draw):
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    fan_outs = draw(
        st.lists(st.integers(2, 5), min_size=len(sizes), max_size=len(sizes))
    )
    return np.append(0, np.cumsum(sizes)), np.array(fan_outs)


@settings(deadline=None, max_examples=EXAMPLES)
@given(shapes())
def test_nodes_are_those_of_the_definition(shape):
    edges, fan_outs = shape
    trees = trees_over_blocks(edges, fan_outs)
    nodes = [
        node
        for block in range(fan_outs.size)
        for node in reference.block_nodes(
            int(edges[block]), int(edges[block + 1]), fan_outs[block]
        )
    ]
    assert list(zip(trees.starts.tolist(), trees.ends.tolist(), strict=True)) == nodes
    assert trees.rows == reference.dense_rows(edges, fan_outs).shape[0]
    for cell, leaf in enumerate(trees.leaves.tolist()):
        assert nodes[leaf] == (cell, cell + 1)
    for node, parent in enumerate(trees.parents.tolist()):
        assert nodes[parent][0] <= nodes[node][0] < nodes[node][1] <= nodes[parent][1]
        assert (parent == node) == (node in trees.roots[:-1])


@pytest.mark.parametrize("length", [1, 2, 7, 100, 125, 126])
@pytest.mark.parametrize("fan_out", [2, 5, 16])
def test_no_leaf_lies_deeper_than_the_logarithm(length, fan_out):
    trees = trees_over_blocks(np.array([0, length]), np.array([fan_out]))
    depth = np.zeros(trees.rows, dtype=int)
    for node in range(1, trees.rows):
        depth[node] = depth[trees.parents[node]] + 1
    # In whole numbers: floating point makes ceil(log(125, 5)) four.
    levels = 0
    while fan_out**levels < length:
        levels += 1
    assert depth.max() == levels


@settings(deadline=None, max_examples=EXAMPLES)
@given(shapes(), st.data())
def test_the_worst_edge_is_found(shape, data):
    edges, fan_outs = shape
    trees = trees_over_blocks(edges, fan_outs)
    cells = int(edges[-1])
    weights = data.draw(
        st.lists(st.integers(0, 9), min_size=trees.rows, max_size=trees.rows)
    )
    ahead = data.draw(st.lists(st.integers(0, 12), min_size=cells, max_size=cells))
    far = np.minimum(np.maximum.accumulate(np.arange(cells) + ahead), cells - 1)
    bottom = np.array(
        data.draw(st.lists(st.booleans(), min_size=cells, max_size=cells))
    )
    rows = reference.dense_rows(edges, fan_outs)
    found = worst_block_move(np.array(weights), trees, far, bottom)
    assert found == reference.worst_move(np.array(weights), rows, far, bottom)


def test_misfits_are_refused():
    with pytest.raises(InputError, match="rise from 0"):
        trees_over_blocks(np.array([0, 2, 2]), np.array([2, 2]))
    with pytest.raises(InputError, match="fan-out of 2"):
        trees_over_blocks(np.array([0, 2]), np.array([1]))
    trees = trees_over_blocks(np.array([0, 2]), np.array([2]))
    marks = np.zeros(2, dtype=bool)
    with pytest.raises(InputError, match="3 weights"):
        worst_block_move(np.zeros(2, dtype=int), trees, np.array([1, 1]), marks)
    with pytest.raises(InputError, match="never decrease"):
        worst_block_move(np.zeros(3, dtype=int), trees, np.array([1, 0]), marks)
    with pytest.raises(InputError, match="never decrease"):
        worst_block_move(np.zeros(3, dtype=int), trees, np.array([1, 2]), marks)
