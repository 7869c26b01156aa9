"""Choosing fan-out and weights from public facts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.kernels.tree.tree_shape import tree_levels
from blowfish_fast.measure.strategies.trees.tree_weights import level_tree, tuned_tree
from blowfish_fast.policies import AddRemove, Full
from blowfish_fast.workloads import AllRanges, Identity, Ranges, Rectangles


def predicted(strategy, policy, form):
    scales = strategy.scales(policy, Fraction(1))
    return strategy.total_variance(form, scales)


@pytest.mark.parametrize("policy", [AddRemove, Full])
def test_tuned_trees_beat_uniform_ones_on_their_workload(policy):
    line = Domain(256)
    form = Ranges.random(line, 500, rng=1).form(Buckets.single_cells(256))
    exact = policy is Full
    tuned = tuned_tree(form, 256, root_exact=exact)
    uniform = level_tree(256, 2, root_exact=exact, geometric=False)
    over = policy(line)
    assert predicted(tuned, over, form) < 0.8 * predicted(uniform, over, form)


def test_sweeps_lower_the_error_of_declared_ranges():
    line = Domain(4096)
    form = Ranges.random(line, 2000, rng=1).form(Buckets.single_cells(4096))
    greedy = tuned_tree(form, 4096, root_exact=False, sweeps=False)
    swept = tuned_tree(form, 4096, root_exact=False)
    over = AddRemove(line)
    assert predicted(swept, over, form) < 0.9 * predicted(greedy, over, form)


def test_single_cells_need_no_tree():
    line = Domain(64)
    strategy = tuned_tree(
        Identity(line).form(Buckets.single_cells(64)), 64, root_exact=False
    )
    assert strategy.node_weights[:64].tolist() == [1.0] * 64
    assert not strategy.node_weights[64:].any()


def test_every_form_is_tuned():
    grid, line = Domain((8, 8)), Domain(64)
    cells = Buckets.single_cells(64)
    for form in (
        Rectangles.random(grid, 20, rng=1).form(cells),
        AllRanges(line).form(cells),
        Ranges.random(line, 20, rng=1).form(cells),
    ):
        strategy = tuned_tree(form, 64, root_exact=True)
        assert strategy.node_weights[-1] == 0.0
        assert (strategy.node_weights[:64] > 0).all()


def test_geometric_weights_of_the_literature():
    # Oracle B3: ten levels below the root.
    strategy = level_tree(1024, 2, root_exact=False, geometric=True)
    sizes, _ = tree_levels(1024, 2)
    by_level = strategy.node_weights[np.cumsum(sizes) - 1]
    assert by_level.sum() == pytest.approx(1.0)
    assert by_level[0] == pytest.approx(0.223933, abs=1e-6)
    assert by_level[-1] == pytest.approx(0.022217, abs=1e-6)


def test_one_leaf_is_its_own_tree():
    form = Identity(Domain(5)).form(Buckets(np.array([0, 5])))
    assert tuned_tree(form, 1, root_exact=False).node_weights.tolist() == [1.0]
    assert level_tree(1, 2, root_exact=True, geometric=False).leaves == 1
