"""Trees of boxes over a grid, grown from the whole box downwards, and how fine.

A tree is public when it is measured: it was grown from sizes, from noisy counts or by a
private choice. More cells cost noise, fewer of them blur the border of a query:

    m parts per axis, d axes:    noise ~ m^(d/2) / epsilon,    blur ~ records / m
    equal in order:              m = (records * epsilon / c)^(2 / (d + 2))
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_whole
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DataDependentError
from blowfish_fast.measure.budgets import Budget, equal_noise_epsilon
from blowfish_fast.measure.handle import Handle, Measurement
from blowfish_fast.measure.noise import Scales, rates_at_common_unit
from blowfish_fast.policies import Policy

from .tree import TreeStrategy

if TYPE_CHECKING:
    from blowfish_fast.kernels.tree.shape import Tree

PRUNED_BELOW = 5.0
"""Boxes with fewer records than this many noise scales of a cell are taken as even."""


class BoxTreeLayout(NamedTuple):
    """A tree of boxes in the order of `TreeStrategy`.

    Attributes
    ----------
    numbers : ndarray of int64, shape (nodes,)
        The new number of each node of the `BoxTree`.
    parents : ndarray of int64, shape (nodes,)
        The node above each node, in the new numbering.
    buckets : Buckets
        The leaves.
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
    """Boxes [low, high) that split into boxes, each after its parent, root first.

    Attributes
    ----------
    parents : ndarray of int64, shape (boxes,)
        The box above each box; -1 for the root.
    lows : ndarray of int64, shape (boxes, axes)
        The first cell of each box along each axis.
    highs : ndarray of int64, shape (boxes, axes)
        The cell after its last.
    """

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
        """Return the tree with some boxes cut into intervals per axis.

        Parameters
        ----------
        boxes : ndarray of int64
            Which boxes.
        parts : ndarray of int64, shape (boxes, axes)
            Into how many parts each side is cut.

        Returns
        -------
        Self
            The tree.
        """
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

    def arranged(self, shape: tuple[int, ...]) -> BoxTreeLayout:
        """Return parents and buckets, leaves first. O(nodes + cells)."""
        numbers = kernels.leaf_first_numbers(self.parents)
        leaves = self.leaves
        in_order = np.empty_like(leaves)
        in_order[numbers[leaves]] = leaves
        edges, order = kernels.cells_of_boxes(
            self.lows[in_order], self.highs[in_order], shape
        )
        buckets = Buckets(edges, order)
        return BoxTreeLayout(
            numbers, kernels.renumber_nodes(self.parents, numbers), buckets
        )

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
        """Return the strategy that counts all boxes, geometrically, and its buckets.

        Parameters
        ----------
        shape : tuple[int, ...]
            Cells of each axis.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        strategy : TreeStrategy
            The strategy.
        buckets : Buckets
            The leaves.
        """
        placed = self.arranged(shape)
        weights = placed.values(self.geometric_weights(power))
        tree = kernels.tree_of_parents(placed.parents)
        return TreeStrategy(tree, weights), placed.buckets


def pruned_cells(measurement: Measurement) -> FloatArray:
    """Return every cell, even inside boxes that hold too few records to look further.

    Post-processing: a box is cut off where its least-squares total lies below
    `PRUNED_BELOW` noise scales of the cells or boxes at its bottom.
    """
    strategy, scales = measurement.strategy, measurement.scales
    noisy, buckets = measurement.noisy, measurement.buckets
    assert isinstance(strategy, TreeStrategy)
    thresholds = PRUNED_BELOW * scales.widths[: strategy.leaves]
    fit = strategy.fit(noisy, scales)
    leaves = kernels.pruned_leaves(fit, thresholds, strategy.tree, buckets.edges)
    return buckets.expand(leaves)


class RoughTotal(NamedTuple):
    """How many records there are, and the measurement that was paid for it, if any.

    Attributes
    ----------
    records : float
        The number, public or noisy.
    bought : list[Measurement]
        The measurement; empty if nothing was paid.
    """

    records: float
    bought: list[Measurement]


def as_records(value: Any) -> int | None:
    """Read a public rough count of records: None, or a whole number from 0 on."""
    if value is None:
        return None
    return as_whole(
        value,
        "records",
        0,
        way_out="None reads it where it is public and buys it where it is not",
    )


def rough_total(
    private: Handle, records: int | None, *, budget: Budget | Fraction
) -> RoughTotal:
    """Return the number of records: as given, as public, or bought for `budget`.

    Parameters
    ----------
    private : Handle
        Access to the counts.
    records : int or None
        A public number; None if there is none.
    budget : Budget or Fraction
        What the number may cost.

    Returns
    -------
    RoughTotal
        The number.

    Raises
    ------
    DataDependentError
        In a dry run, which has no records, unless the number was given.
    """
    if records is not None:
        return RoughTotal(float(records), [])
    if private.dry_run:
        raise DataDependentError(
            "the size of this grid follows the number of records, so its error cannot "
            "be predicted; give a public rough count with records=..."
        )
    if not private.policy.components().private.any():
        return RoughTotal(float(private.public_totals.sum()), [])
    whole = private.coarsened(Buckets(np.array([0, private.policy.domain.size])))
    bought = whole.measure(
        TreeStrategy(kernels.regular_tree(1, 2), np.ones(1)), budget=budget
    )
    return RoughTotal(max(float(bought.noisy[0]), 0.0), [bought])


def count_epsilon(policy: Policy, budget: Budget | Fraction) -> float:
    """Return one over the Laplace scale of a count; in rho, that of equal variance.

    Parameters
    ----------
    policy : Policy
        What is secret.
    budget : Budget or Fraction
        What the counts may cost.

    Returns
    -------
    float
        The epsilon of one count.
    """
    each = Budget.of(budget).over(policy.group_size)
    if policy.has_moves:
        # Two counts move by one: half of the budget for each, in either currency.
        each = each / 2
    return equal_noise_epsilon(each)


def parts_per_axis(
    sides: IntArray, records: Any, epsilon: float, constant: float, *, least: int = 1
) -> IntArray:
    """Return into how many parts each axis of a grid is cut.

    Parameters
    ----------
    sides : ndarray of int64, shape (boxes, axes)
        Cells of each side.
    records : float or ndarray of float64
        Records in each box, public or noisy.
    epsilon : float
        What `count_epsilon` returned.
    constant : float
        A part should hold so many records over `epsilon`.
    least : int, default 1
        At least so many parts, where a side has as many cells.

    Returns
    -------
    ndarray of int64, shape (boxes, axes)
        The numbers of parts.
    """
    wide = np.maximum((sides > 1).sum(axis=1), 1)
    held = np.maximum(np.asarray(records, dtype=np.float64), 0.0) * epsilon / constant
    # Beyond the longest axis the power could overflow; it is cut there anyway.
    wanted = np.minimum(held ** (2.0 / (wide + 2.0)), float(sides.max(initial=1)))
    parts = np.maximum(np.rint(wanted).astype(np.int64), least)
    cut: IntArray = np.minimum(parts[:, None], sides)
    return cut


class Layer(NamedTuple):
    """A measurement whose row i is a total of node ``nodes[i]`` of some tree.

    Attributes
    ----------
    measurement : Measurement
        The measurement.
    nodes : ndarray of int64, shape (rows,)
        The node of each row.
    """

    measurement: Measurement
    nodes: IntArray


def one_measurement(
    tree: Tree, buckets: Buckets, layers: Sequence[Layer]
) -> Measurement:
    """Return several measurements of the nodes of one tree as a single one.

    No node may carry noise in two layers; exact rows win, and published rows stay.

    Parameters
    ----------
    tree : Tree
        The shape; it may be that of a layer, and is not copied.
    buckets : Buckets
        Its leaves.
    layers : Sequence[Layer]
        The measurements.

    Returns
    -------
    Measurement
        The joint measurement.
    """
    unit, rescaled = rates_at_common_unit(
        [layer.measurement.scales for layer in layers]
    )
    rates = np.zeros(tree.nodes, dtype=np.int64)
    exact = np.zeros(tree.nodes, dtype=np.bool_)
    noisy = np.zeros(tree.nodes, dtype=np.int64)
    for (measurement, nodes), in_units in zip(layers, rescaled, strict=True):
        scales = measurement.scales
        here, sure = nodes[scales.measured], nodes[scales.exact]
        assert not rates[here].any(), "a node was measured twice"
        rates[here] = in_units[scales.measured]
        noisy[here] = measurement.noisy[scales.measured]
        exact[sure] = True
        noisy[sure] = measurement.noisy[scales.exact]
    rates[exact] = 0
    weights = rates / max(int(rates.max(initial=0)), 1)
    strategy = TreeStrategy(tree, weights)
    power = layers[0].measurement.scales.power
    law = strategy.with_noise(Scales(rates, unit, exact, power))
    return Measurement(law, noisy, buckets)
