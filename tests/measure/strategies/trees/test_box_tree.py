"""Trees of boxes: how they grow, their order, their weights, sparse boxes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.kernels.graph.graph_tree import sums_to_root
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.strategies.trees.box_tree import (
    PRUNED_BELOW,
    BoxTree,
    pruned_cells,
)
from blowfish_fast.policies import AddRemove
from tests.reference.trees import leaf_sets


@pytest.mark.parametrize("shape", [(1,), (9,), (4, 4), (5, 3), (1, 7), (3, 2, 5)])
def test_a_quadtree_ends_in_single_cells_of_any_shape(shape):
    tree = BoxTree.whole(shape).quartered()
    leaves = tree.leaves
    assert (tree.highs[leaves] - tree.lows[leaves] == 1).all()
    assert leaves.size == np.prod(shape)
    depth = sums_to_root(
        np.ones(tree.parents.size, np.int64), tree.parents, np.arange(tree.parents.size)
    )
    assert depth.max() == 1 + (max(shape) - 1).bit_length()


@pytest.mark.parametrize("shape", [(9,), (5, 3), (3, 2, 5)])
def test_arranged_leaves_hold_the_cells_of_their_boxes(shape):
    whole = BoxTree.whole(shape)
    tree = whole.divided(whole.leaves, np.minimum(whole.highs, 2))
    tree = tree.divided(tree.leaves[:1], np.ones((1, len(shape)), np.int64))
    placed = tree.arranged(shape)
    labels = placed.buckets.labels.reshape(shape)
    sets = leaf_sets(placed.parents)
    for node in range(tree.parents.size):
        inside = tuple(
            slice(low, high)
            for low, high in zip(tree.lows[node], tree.highs[node], strict=True)
        )
        found = set(labels[inside].reshape(-1).tolist())
        assert found == set(np.flatnonzero(sets[placed.numbers[node]]).tolist())


@pytest.mark.parametrize("shape", [(8,), (8, 8), (5, 3), (2, 2, 2)])
def test_weights_add_up_to_one_along_every_way(shape):
    tree = BoxTree.whole(shape).quartered()
    weights = tree.geometric_weights()
    ways = sums_to_root(weights, tree.parents, np.arange(tree.parents.size))
    np.testing.assert_allclose(ways[tree.leaves], 1.0)


def test_weights_of_a_quadtree_grow_by_the_cube_root_of_two():
    # Oracle B3, ten levels of a map.
    weights = BoxTree.whole((1024, 1024)).quartered().geometric_weights()
    assert weights[0] == pytest.approx(0.022217, abs=1e-6)
    assert weights[-1] == pytest.approx(0.223933, abs=1e-6)
    line = BoxTree.whole((16,)).quartered().geometric_weights()
    np.testing.assert_allclose(line, 1 / 5)


def test_sparse_boxes_are_even_and_dense_ones_are_not():
    strategy, buckets = BoxTree.whole((2, 4)).quartered().counted((2, 4))
    scales = strategy.scales(AddRemove(Domain(8)), Fraction(1))
    counts = np.array([[900, 0, 3, 0], [0, 0, 0, 1]])
    rows = strategy.rows(buckets.sum(counts.reshape(-1)))
    measured = Measurement(strategy.with_noise(scales), rows, buckets)
    found = pruned_cells(measured).reshape(2, 4)
    np.testing.assert_allclose(found[:, :2], counts[:, :2], atol=1e-9)
    assert PRUNED_BELOW * scales.widths[0] > 4
    np.testing.assert_allclose(found[:, 2:], [[1.5, 1.5], [0.5, 0.5]])
