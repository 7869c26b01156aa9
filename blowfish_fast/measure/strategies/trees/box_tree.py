"""Trees of boxes over a grid, grown from the whole box downwards.

A tree is public when it is measured: it was grown from sizes, from noisy counts or by a
private choice.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.handle import Measurement

from .tree import TreeStrategy

PRUNED_BELOW = 5.0
"""Boxes with fewer records than this many noise scales of a cell are taken as even."""


class Arranged(NamedTuple):
    """A tree of boxes in the order of `TreeStrategy`.

    `numbers` holds the new number of each node of the `BoxTree`, `buckets` the leaves.
    """

    numbers: IntArray
    parents: IntArray
    buckets: Buckets

    def values(self, values: FloatArray) -> FloatArray:
        """Return values of the nodes of the `BoxTree` in the new order."""
        ordered = np.empty_like(values)
        ordered[self.numbers] = values
        return ordered


class BoxTree(NamedTuple):
    """Boxes [low, high) that split into boxes, each after its parent, root first."""

    parents: IntArray
    lows: IntArray
    highs: IntArray

    @classmethod
    def whole(cls, shape: tuple[int, ...]) -> Self:
        """Return the tree of one box, the grid itself."""
        highs = np.array([shape], dtype=np.int64)
        return cls(np.array([-1]), np.zeros_like(highs), highs)

    @property
    def leaves(self) -> IntArray:
        """The boxes that do not split, in order."""
        childless = np.ones(self.parents.size, dtype=np.bool_)
        childless[self.parents[1:]] = False
        return np.flatnonzero(childless)

    def divided(self, boxes: IntArray, parts: IntArray) -> Self:
        """Return the tree with some `boxes` cut into `parts` intervals per axis."""
        owners, lows, highs = kernels.divide_boxes(
            self.lows[boxes], self.highs[boxes], parts
        )
        return self._replace(
            parents=np.concatenate([self.parents, boxes[owners]]),
            lows=np.concatenate([self.lows, lows]),
            highs=np.concatenate([self.highs, highs]),
        )

    def quartered(self) -> Self:
        """Return the tree with every leaf halved along all axes, down to cells."""
        tree = self
        boxes = self.leaves
        while True:
            sides = tree.highs[boxes] - tree.lows[boxes]
            boxes = boxes[(sides > 1).any(axis=1)]
            if boxes.size == 0:
                return tree
            before = tree.parents.size
            sides = tree.highs[boxes] - tree.lows[boxes]
            tree = tree.divided(boxes, np.minimum(sides, 2))
            boxes = np.arange(before, tree.parents.size)

    def arranged(self, shape: tuple[int, ...]) -> Arranged:
        """Return parents and buckets, leaves first. O(nodes + cells)."""
        numbers = kernels.leaf_first_numbers(self.parents)
        leaves = self.leaves
        in_order = np.empty_like(leaves)
        in_order[numbers[leaves]] = leaves
        edges, order = kernels.cells_of_boxes(
            self.lows[in_order], self.highs[in_order], shape
        )
        buckets = Buckets(edges, order)
        return Arranged(numbers, kernels.renumber_nodes(self.parents, numbers), buckets)

    def geometric_weights(self, power: int = 1) -> FloatArray:
        """Return weights that grow with the nodes that a box query uses per level.

        Halving all d axes of a box multiplies the boxes that the outline of a query
        crosses by 2^(d-1), and the best weight goes with the cube root of their number
        (the square root if paid in rho, `power` 2); in proportion for other numbers of
        children. The weights on every way from the root to a leaf add up to 1.
        """
        wide = max(int((self.highs[0] > 1).sum()), 1)
        children = np.bincount(self.parents[1:], minlength=self.parents.size)
        halvings = np.log2(np.maximum(children, 1)) / wide
        growth = np.exp2(halvings * (wide - 1) / (4.0 - power))
        return kernels.allocate_budget(self.parents, growth)

    def counted(
        self, shape: tuple[int, ...], power: int = 1
    ) -> tuple[TreeStrategy, Buckets]:
        """Return the strategy that counts all boxes, geometrically, and its buckets."""
        placed = self.arranged(shape)
        weights = placed.values(self.geometric_weights(power))
        tree = kernels.tree_of_parents(placed.parents)
        return TreeStrategy(tree, weights), placed.buckets


def pruned_cells(measurement: Measurement) -> FloatArray:
    """Return every cell, even inside boxes that hold too few records to look further.

    Post-processing: a box is cut off where its least-squares total lies below
    `PRUNED_BELOW` noise scales of the cells or boxes at its bottom.
    """
    strategy, scales, noisy, buckets = measurement
    assert isinstance(strategy, TreeStrategy)
    thresholds = PRUNED_BELOW * scales.widths[: strategy.leaves]
    fit = strategy.fit(noisy, scales)
    leaves = kernels.pruned_leaves(fit, thresholds, strategy.tree, buckets.edges)
    return buckets.expand(leaves)
