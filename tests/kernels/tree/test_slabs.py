"""Slabs of a tree: every node is in one place, and threads change no bit."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.kernels.tree import shape
from blowfish_fast.kernels.tree.fit import top_down_fit, tree_fit
from blowfish_fast.kernels.tree.shape import (
    leaf_first_numbers,
    regular_tree,
    renumber_nodes,
    tree_of_parents,
)

pytestmark = pytest.mark.kernel


def irregular_tree(nodes, seed):
    """Return a tree with leaves on several levels."""
    rng = np.random.default_rng(seed)
    above = [
        0 if v < 4 else int(rng.integers(v // 6, v // 3 + 1)) for v in range(nodes)
    ]
    parents = np.array([-1, *above[1:]])
    return tree_of_parents(renumber_nodes(parents, leaf_first_numbers(parents)))


TREES = {
    "binary": regular_tree(700, 2),
    "wide": regular_tree(1033, 16),
    "irregular": irregular_tree(900, 1),
}


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(shape, "FEWEST_NODES", 1)


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
@pytest.mark.parametrize("threads", [2, 3])
def test_every_node_is_above_the_cut_or_in_one_slab(small, tree, threads):
    runs, above = shape.cut_tree(tree, threads)
    assert len(runs) == shape.SLABS_PER_THREAD * threads
    times = np.zeros(tree.nodes, dtype=int)
    times[above:] += 1
    for slab in runs:
        for first, last in shape.level_runs(tree.first_child, slab):
            times[first:last] += 1
    assert (times == 1).all()


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("fit", [tree_fit, top_down_fit])
def test_bits_do_not_depend_on_threads(small, tree, threads, fit):
    rng = np.random.default_rng(threads)
    noisy = rng.integers(-5, 30, tree.nodes)
    for kinds in ([1.0, 3.0], [1.0, 2.0, np.inf, 0.0]):
        variances = rng.choice(kinds, tree.nodes)
        alone = fit(noisy, variances, tree)
        together = fit(noisy, variances, tree, threads=threads)
        assert alone.tobytes() == together.tobytes()


def test_totals_that_are_settled_stay_so_for_any_number_of_threads(small):
    tree = TREES["binary"]
    noisy = np.random.default_rng(1).integers(0, 30, tree.nodes)
    settled = np.array([tree.nodes - 1, 3]), np.array([5000.0, 40.0])
    alone = top_down_fit(noisy, np.ones(tree.nodes), tree, settled)
    together = top_down_fit(noisy, np.ones(tree.nodes), tree, settled, threads=2)
    assert alone.tobytes() == together.tobytes()
    assert together[-1] == 5000.0


def test_small_trees_and_chains_are_left_to_one_thread(monkeypatch):
    small_tree = TREES["wide"]
    assert shape.cut_tree(small_tree, 2) == ([], small_tree.nodes)
    monkeypatch.setattr(shape, "FEWEST_NODES", 1)
    assert shape.cut_tree(small_tree, 1) == ([], small_tree.nodes)
    chain = tree_of_parents(np.array([*range(1, 200), -1]))
    assert shape.cut_tree(chain, 2) == ([], chain.nodes)
    few = regular_tree(3, 2)
    assert shape.cut_tree(few, 2) == ([], few.nodes)
