"""Boxes of a kd-tree: cut where noisy cells say so, or near private medians.

Rules read cells that are noisy already and public facts, so they cost nothing. Medians
are asked of the data level by level: every box is cut across its longest side, a cut
costs |records left - records right| and is drawn with weight exp(-rate * cost). Boxes
of one level are disjoint, so a record pays once per level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, NamedTuple, Protocol, get_args

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_choice, as_positive, as_whole
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError
from blowfish_fast.measure.noise import laplace_variance, noise_mean_size
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.policies import Policy

Thresholds = Literal["or", "and", "uniformity"]

SIGNIFICANT = 2.0
"""Standard deviations of noise by which an uneven box must exceed what noise gives."""


class Boxes(NamedTuple):
    """Corners of boxes that cover a grid, half-open.

    Attributes
    ----------
    lows : ndarray of int64, shape (boxes, axes)
        The first cell of each box along each axis.
    highs : ndarray of int64, shape (boxes, axes)
        The cell after its last.
    """

    lows: IntArray
    highs: IntArray


class NoisyCells(NamedTuple):
    """Published counts and the noise in them.

    Attributes
    ----------
    values : ndarray of float64
        The counts, in the shape of the grid.
    width : float
        Scale of a cell's noise, in rho its sigma; 0 for none.
    fresh_variance : float
        Variance of the count of a box which is still to be drawn.
    power : int, default 1
        1 if paid in epsilon, 2 if paid in rho.
    """

    values: FloatArray
    width: float
    fresh_variance: float
    power: int = 1

    @property
    def variance(self) -> float:
        """Variance of the noise of a cell."""
        if self.power == 2:
            return self.width**2
        return float(laplace_variance(self.width)) if self.width else 0.0

    @property
    def mean_noise(self) -> float:
        """Mean absolute noise of a cell."""
        return noise_mean_size(self.width, self.power)


class SplitRule(Protocol):
    """Says when a box of a kd-tree is cut."""

    def boxes(self, cells: NoisyCells, levels: int) -> Boxes:
        """Return the leaves of the tree.

        Parameters
        ----------
        cells : NoisyCells
            Published counts.
        levels : int
            At most so many cuts lie above a box.

        Returns
        -------
        Boxes
            The boxes.
        """


@dataclass(frozen=True)
class GainRule:
    """Cut at the best place of any axis while rectangles gain more than it costs.

    Attributes
    ----------
    price : float, default 0.8
        Cost of a further box in variances of a fresh count.
    caution : float, default 1.3
        How many times the contrast of noise alone is taken off.

    Examples
    --------
    >>> cells = NoisyCells(np.array([[3.0, 3.0, 8.0, 8.0]] * 4), 0.0, 0.0)
    >>> GainRule().boxes(cells, 9).lows.tolist()
    [[0, 0], [0, 2]]
    """

    price: float = 0.8
    caution: float = 1.3

    def __post_init__(self) -> None:
        as_positive(self.price, "price")
        as_positive(self.caution, "caution")

    def boxes(self, cells: NoisyCells, levels: int) -> Boxes:
        """Return boxes whose cuts gain more than the noise of another count.

        Parameters
        ----------
        cells : NoisyCells
            Published counts.
        levels : int
            At most so many cuts lie above a box.

        Returns
        -------
        Boxes
            The boxes.
        """
        return Boxes(
            *kernels.gain_boxes(
                cells.values,
                cell_variance=cells.variance,
                price=self.price * cells.fresh_variance,
                caution=self.caution,
                depth=levels,
            )
        )


@dataclass(frozen=True)
class UniformityRule:
    """Cut across the longest side, at the median, where a box is uneven or crowded.

    Attributes
    ----------
    thresholds : Thresholds, default 'or'
        Whether either is asked for, both, or unevenness alone.
    uniformity : float, optional
        A box is uneven if its noisy cells deviate from their mean by so many times what
        noise alone gives; None: by two standard deviations more.
    count : float, default 0.01
        A box is crowded with this part of the total.

    Examples
    --------
    >>> cells = NoisyCells(np.array([[3.0, 3.0, 8.0, 8.0]] * 4), 0.0, 0.0)
    >>> UniformityRule("uniformity").boxes(cells, 9).lows.tolist()[:2]
    [[0, 0], [0, 2]]
    """

    thresholds: Thresholds = "or"
    uniformity: float | None = None
    count: float = 0.01

    def __post_init__(self) -> None:
        as_choice(self.thresholds, "thresholds", get_args(Thresholds))
        if self.uniformity is not None:
            as_positive(self.uniformity, "uniformity")
        as_positive(self.count, "count")

    def boxes(self, cells: NoisyCells, levels: int) -> Boxes:
        """Return boxes cut at medians until they are uniform, or hold few records.

        Parameters
        ----------
        cells : NoisyCells
            Published counts.
        levels : int
            At most so many cuts lie above a box.

        Returns
        -------
        Boxes
            The boxes.
        """
        mean = cells.mean_noise
        deviation = math.sqrt(max(cells.variance - mean**2, 0.0))
        level, slack = mean, SIGNIFICANT * deviation
        if self.uniformity is not None:
            level, slack = self.uniformity * mean, 0.0
        return Boxes(
            *kernels.median_boxes(
                cells.values,
                level=level,
                slack=slack,
                count=self.count * max(float(cells.values.sum()), 0.0),
                mode=self.thresholds,
                depth=levels,
            )
        )


RULES: dict[str, SplitRule] = {
    "gain": GainRule(),
    "or": UniformityRule("or"),
    "and": UniformityRule("and"),
    "uniformity": UniformityRule("uniformity"),
}
"""Rules by name, with the thresholds that served well."""


def default_levels(cells: int) -> int:
    """Return how deep a tree over so many cells may be: four times a balanced one."""
    return 4 * max(cells.bit_length(), 1)


def box_buckets(
    boxes: Boxes, shape: tuple[int, ...], parts: IntArray | None
) -> Buckets:
    """Return boxes as buckets, each within one connected part of the policy.

    The total of a part may be public. Buckets of one part stand together.

    Parameters
    ----------
    boxes : Boxes
        Boxes that cover the grid.
    shape : tuple[int, ...]
        Cells of each axis.
    parts : ndarray of int64 or None, shape (cells,)
        The connected part of each cell; None where there is one.

    Returns
    -------
    Buckets
        The buckets.
    """
    edges, order = kernels.cells_of_boxes(boxes.lows, boxes.highs, shape)
    if parts is None:
        return Buckets(edges, order)
    box = np.empty(order.size, dtype=np.int64)
    box[order] = np.repeat(np.arange(edges.size - 1), np.diff(edges))
    keys = parts.astype(np.int64) * np.int64(edges.size - 1) + box
    return Buckets.from_labels(np.unique(keys, return_inverse=True)[1])


class KdBoxes(NamedTuple):
    """Boxes that split in two; every box comes after its parent, the whole first.

    Attributes
    ----------
    parents : ndarray of int64, shape (boxes,)
        The box above each box; -1 for the whole.
    lows : ndarray of int64, shape (boxes, axes)
        The first cell of each box along each axis.
    highs : ndarray of int64, shape (boxes, axes)
        The cell after its last.
    """

    parents: IntArray
    lows: IntArray
    highs: IntArray


class Medians:
    """Cut boxes of a grid near the median of their records, level by level.

    Parameters
    ----------
    shape : tuple[int, ...]
        Cells of each axis.
    levels : int
        How many levels of cuts; with 0 the whole grid stays one box.

    Notes
    -----
    Guarantee: epsilon-private choice of all cuts under the policy it is given.
    Neighbours: one record added or removed; half of epsilon under moves (Lemma HY5).
    Sensitivity: a record lies in one box of each level and changes the difference
        between its two sides by 1, whatever the cut. Each level takes an equal part
        of epsilon; costs are whole numbers, so the draws are exact.

    Examples
    --------
    >>> import numpy as np
    >>> from fractions import Fraction
    >>> import blowfish_fast as bf
    >>> from blowfish_fast.measure.randomness import Randomness
    >>> counts = np.array([[90, 10, 0, 0], [0, 0, 0, 0]])
    >>> chosen = Medians(shape=(2, 4), levels=1).select(
    ...     counts, policy=bf.policies.AddRemove(bf.Domain((2, 4))),
    ...     epsilon=Fraction(9), rng=Randomness(1),
    ... )
    >>> chosen.parents.tolist()
    [-1, 0, 0]
    """

    name = "medians"
    loss_range: ClassVar[int] = 1

    def __init__(self, shape: tuple[int, ...], levels: int) -> None:
        self.shape = shape
        self.levels = as_whole(levels, "levels", 0)

    def parts(self, cells: int) -> tuple[Fraction, ...]:
        """Return an equal part of epsilon for each level."""
        levels = max(self.levels, 1)
        return (Fraction(1, levels),) * levels

    def rate(self, policy: Policy, epsilon: Fraction) -> Fraction:
        """Return how fast weights fall with costs, at each level: Lemma HY4.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        epsilon : Fraction
            What all levels together may use.

        Returns
        -------
        Fraction
            The rate.
        """
        return epsilon / (2 * (2 if policy.has_moves else 1) * max(self.levels, 1))

    def select(
        self, counts: IntArray, *, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> KdBoxes:
        """Return the boxes of all levels.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            True counts.
        policy : Policy
            The policy, without constraints.
        epsilon : Fraction
            What the choice may use.
        rng : Randomness
            The source of all noise.

        Returns
        -------
        KdBoxes
            The boxes.

        Raises
        ------
        DomainError
            If there are not as many counts as the grid has cells.
        """
        if counts.size != int(np.prod(self.shape)):
            raise DomainError(
                f"a grid of shape {self.shape} has {int(np.prod(self.shape))} cells; "
                f"received {counts.size} counts"
            )
        table = kernels.summed_area_table(counts.reshape(self.shape))
        moved = policy.has_moves or policy.has_bottom
        rate = self.rate(policy, epsilon) if moved else None
        sides = np.array([self.shape], dtype=np.int64)
        tree = KdBoxes(np.array([-1]), np.zeros_like(sides), sides)
        boxes = np.zeros(1, dtype=np.int64)
        words = rng.stream()
        drawn = 0
        for _ in range(self.levels):
            wide = (tree.highs[boxes] - tree.lows[boxes] > 1).any(axis=1)
            boxes = boxes[wide]
            if boxes.size == 0:
                break
            lows, highs = tree.lows[boxes], tree.highs[boxes]
            axes = np.argmax(highs - lows, axis=1)
            costs = median_costs(table, lows, highs, axes)
            if rate is None:
                cuts = np.argmin(costs, axis=1) + 1
            else:
                cuts = kernels.choose_by_cost(words, drawn, costs, rate) + 1
            drawn += boxes.size
            before = tree.parents.size
            tree = _split(tree, boxes, axes, cuts)
            boxes = np.arange(before, tree.parents.size)
        return tree


def median_costs(
    table: IntArray, lows: IntArray, highs: IntArray, axes: IntArray
) -> IntArray:
    """Return the difference between the two sides of each cut, from summed areas.

    Parameters
    ----------
    table : ndarray of int64
        What `kernels.summed_area_table` returned.
    lows : ndarray of int64, shape (boxes, axes)
        The first cell of each box along each axis.
    highs : ndarray of int64, shape (boxes, axes)
        The cell after its last.
    axes : ndarray of int64, shape (boxes,)
        The axis across which each box is cut.

    Returns
    -------
    ndarray of int64, shape (boxes, cuts)
        Column j is the cut after j + 1 cells, or `NO_CANDIDATE`.
    """
    rows = np.arange(axes.size)
    sides = highs[rows, axes] - lows[rows, axes]
    box = np.repeat(rows, sides - 1)
    cut = np.arange(box.size) - np.repeat(np.cumsum(sides - 1) - sides + 1, sides - 1)
    ends = highs[box].copy()
    ends[np.arange(box.size), axes[box]] = lows[box, axes[box]] + cut + 1
    left = kernels.rectangle_sums(table, lows[box], ends)
    whole = kernels.rectangle_sums(table, lows, highs)
    costs = np.full(
        (axes.size, int(sides.max()) - 1), kernels.NO_CANDIDATE, dtype=np.int64
    )
    costs[box, cut] = np.abs(2 * left - whole[box])
    return costs


def _split(tree: KdBoxes, boxes: IntArray, axes: IntArray, cuts: IntArray) -> KdBoxes:
    """Add the two halves of each box, the lower one first."""
    rows = np.arange(boxes.size)
    middles = tree.lows[boxes, axes] + cuts
    lows = np.repeat(tree.lows[boxes], 2, axis=0)
    highs = np.repeat(tree.highs[boxes], 2, axis=0)
    highs[2 * rows, axes] = middles
    lows[2 * rows + 1, axes] = middles
    return KdBoxes(
        np.concatenate([tree.parents, np.repeat(boxes, 2)]),
        np.concatenate([tree.lows, lows]),
        np.concatenate([tree.highs, highs]),
    )
