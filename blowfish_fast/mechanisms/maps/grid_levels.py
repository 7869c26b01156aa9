"""Levels of a grid: boxes cut into parts, measured at the bottom, put into one tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import IntArray
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Handle, Measurement
from blowfish_fast.measure.strategies.trees.box_tree import Arranged, BoxTree
from blowfish_fast.measure.strategies.trees.grid_plan import Layer, one_measurement
from blowfish_fast.measure.strategies.trees.tree import TreeStrategy


class GridLevel(NamedTuple):
    """A tree of boxes, and the same in the order of its strategy."""

    tree: BoxTree
    placed: Arranged


def cut_level(tree: BoxTree, boxes: IntArray, parts: IntArray) -> GridLevel:
    """Cut the boxes at the bottom of a tree."""
    below = tree.divided(boxes, parts)
    return GridLevel(below, below.arranged(tuple(tree.highs[0].tolist())))


def measure_leaves(private: Handle, level: GridLevel, budget: Budget) -> Measurement:
    """Measure the boxes at the bottom and nothing else."""
    placed = level.placed
    weights = np.zeros(placed.parents.size)
    weights[: placed.buckets.count] = 1.0
    strategy = TreeStrategy(kernels.tree_of_parents(placed.parents), weights)
    return private.coarsened(placed.buckets).measure(strategy, budget=budget)


def joined_levels(bought: list[Measurement], levels: list[Measurement]) -> Measurement:
    """Return one or two levels, and the number of records if bought, as one."""
    *coarser, finest = levels
    if not bought and not coarser:
        return finest
    assert isinstance(finest.strategy, TreeStrategy)
    tree = finest.strategy.tree
    parents = tree.row_parents
    # All levels visit the boxes of the first in one order: the children of the whole,
    # from left to right.
    below = np.flatnonzero(parents == tree.nodes - 1)
    below = below[np.argsort(tree.by_row(tree.starts)[below])]
    first = np.append(below, tree.nodes - 1)
    layers = [Layer(finest, np.arange(tree.nodes))]
    layers += [Layer(one, first) for one in coarser]
    layers += [Layer(one, first[-1:]) for one in bought]
    return one_measurement(parents, finest.buckets, layers)
