"""Trees over blocks: their shape, their least squares, and the costliest edge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.block_trees import trees_over_blocks, worst_block_move
from blowfish_fast.kernels.tree.fit import tree_fit
from tests.generated import example_count
from tests.reference import ordered_hierarchy as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 30 if config.DISABLE_JIT else example_count(120)


@st.composite
def shapes(draw):
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    fan_outs = draw(
        st.lists(st.integers(2, 5), min_size=len(sizes), max_size=len(sizes))
    )
    return np.append(0, np.cumsum(sizes)), np.array(fan_outs)


@settings(deadline=None, max_examples=EXAMPLES)
@given(shapes())
def test_rows_are_those_of_the_definition(shape):
    edges, fan_outs = shape
    trees = trees_over_blocks(edges, fan_outs)
    tree = trees.tree
    cells = np.arange(int(edges[-1]))
    starts, ends = tree.starts[trees.nodes], tree.ends[trees.nodes]
    found = (starts[:, None] <= cells) & (cells < ends[:, None])
    np.testing.assert_array_equal(found, reference.dense_rows(edges, fan_outs))
    assert (tree.starts[trees.tops] == edges[:-1]).all()
    assert (tree.ends[trees.tops] == edges[1:]).all()
    assert trees.sizes.sum() == trees.rows - trees.blocks
    # Every node comes before its parent, which holds it; every leaf is its cell.
    assert (tree.parents[:-1] > np.arange(tree.nodes - 1)).all()
    assert (tree.starts[tree.parents[:-1]] <= tree.starts[:-1]).all()
    assert (tree.starts[tree.leaf_nodes] == cells).all()


@pytest.mark.parametrize("length", [1, 2, 7, 100, 125, 126])
@pytest.mark.parametrize("fan_out", [2, 5, 16])
def test_no_leaf_lies_deeper_than_the_logarithm(length, fan_out):
    trees = trees_over_blocks(np.array([0, length]), np.array([fan_out]))
    # In whole numbers: floating point makes ceil(log(125, 5)) four.
    levels = 0
    while fan_out**levels < length:
        levels += 1
    # The border and the block come on top.
    assert trees.tree.offsets.size - 1 == levels + 2


def least_squares(noisy, variances, trees):
    nodes = trees.by_node(np.asarray(noisy, float), 0.0)
    fit = tree_fit(nodes, trees.by_node(variances, np.inf), trees.tree)
    return fit[trees.tree.leaf_nodes]


@settings(deadline=None, max_examples=EXAMPLES)
@given(shapes(), st.booleans(), st.integers(0, 10**6))
def test_the_fit_equals_dense_least_squares(shape, exact_total, seed):
    rng = np.random.default_rng(seed)
    trees = trees_over_blocks(*shape)
    rows = reference.dense_rows(*shape)
    variances = rng.uniform(0.1, 5.0, trees.rows)
    if exact_total:
        variances[trees.blocks - 1] = 0.0
    noisy = rng.normal(scale=20, size=trees.rows)
    np.testing.assert_allclose(
        least_squares(noisy, variances, trees),
        reference.dense_fit(noisy, variances, rows),
        atol=1e-7,
    )


def test_o3_the_linear_solution_equals_the_dense_one():
    cells, theta, fan_out = 23, 6, 2
    edges = np.append(np.arange(0, cells, theta), cells)
    trees = trees_over_blocks(edges, np.full(4, fan_out))
    variances = np.full(trees.rows, 8 * 9 / 0.7**2)
    variances[:4] = 2 / 0.3**2
    variances[3] = 0.0
    noisy = np.random.default_rng(3).normal(scale=20, size=trees.rows)
    noisy[3] = 37.0
    found = least_squares(noisy, variances, trees)
    rows = reference.dense_rows(edges, [fan_out] * 4)
    np.testing.assert_allclose(found, reference.dense_fit(noisy, variances, rows))
    assert found.sum() == pytest.approx(37.0)


def test_exact_borders_part_the_line():
    edges = np.array([0, 3, 5, 9])
    trees = trees_over_blocks(edges, np.full(3, 2))
    rng = np.random.default_rng(5)
    variances = rng.uniform(1, 2, trees.rows)
    variances[[1, 2]] = 0.0
    noisy = rng.integers(0, 50, trees.rows).astype(float)
    found = least_squares(noisy, variances, trees)
    assert found[:5].sum() == pytest.approx(noisy[1])
    assert found[5:].sum() == pytest.approx(noisy[2] - noisy[1])
    other = noisy.copy()
    other[[0, 3, 4, 5, 6]] += 7.0
    again = least_squares(other, variances, trees)
    np.testing.assert_allclose(again[5:], found[5:], atol=1e-9)


def test_blocks_of_one_cell_are_differences_of_borders():
    trees = trees_over_blocks(np.arange(6), np.full(5, 2))
    noisy = np.array([3, 1, 4, 1, 5])
    found = least_squares(noisy, np.array([2.0, 2.0, 2.0, 2.0, 0.0]), trees)
    np.testing.assert_array_equal(found, np.diff(noisy, prepend=0))


@pytest.mark.parametrize("unmeasured", [[0], [2, 3, 4], list(range(4, 14)), [1, 4, 9]])
def test_rows_that_were_not_measured_tell_nothing(unmeasured):
    edges = np.array([0, 4, 6, 9, 12])
    trees = trees_over_blocks(edges, np.full(4, 3))
    rows = reference.dense_rows(edges, [3] * 4)
    counts = np.arange(12) ** 2
    variances = np.full(trees.rows, 2.0)
    variances[3] = 0.0
    variances[unmeasured] = np.inf
    noisy = rows @ counts
    noisy[unmeasured] = 0.0
    found = least_squares(noisy, variances, trees)
    # Whatever is left open, every measured row is met.
    measured = np.isfinite(variances)
    np.testing.assert_allclose((rows @ found)[measured], noisy[measured], atol=1e-6)


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


@pytest.mark.parametrize("weights", [[8, 6, 5, 2, 3], [7, 6, 5, 5, 9], [4, 0, 0, 1, 0]])
def test_the_worst_edge_is_found_after_cells_without_one(weights):
    # Two cells reach only their own block, so nothing waits when the third is tried.
    edges, fan_outs = np.array([0, 3, 4]), np.array([3, 2])
    trees = trees_over_blocks(edges, fan_outs)
    far, nowhere = np.array([2, 2, 3, 3]), np.zeros(4, dtype=bool)
    rows = reference.dense_rows(edges, fan_outs.tolist())
    found = worst_block_move(np.array(weights), trees, far, nowhere)
    assert found == reference.worst_move(np.array(weights), rows, far, nowhere)


def test_misfits_are_refused():
    with pytest.raises(InputError, match="rise from 0"):
        trees_over_blocks(np.array([0, 2, 2]), np.array([2, 2]))
    with pytest.raises(InputError, match="fan-out of 2"):
        trees_over_blocks(np.array([0, 2]), np.array([1]))
    trees = trees_over_blocks(np.array([0, 2]), np.array([2]))
    marks = np.zeros(2, dtype=bool)
    with pytest.raises(InputError, match="3 rows"):
        worst_block_move(np.zeros(2, dtype=int), trees, np.array([1, 1]), marks)
