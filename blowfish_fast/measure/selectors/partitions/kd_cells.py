"""Buckets of a kd-tree over cells that are noisy already: when a box is cut.

The rules read published values and public facts only, so they cost nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, get_args

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_choice, as_positive
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.noise import laplace_variance, noise_mean_size

Thresholds = Literal["or", "and", "uniformity"]

SIGNIFICANT = 2.0
"""Standard deviations of noise by which an uneven box must exceed what noise gives."""


class Boxes(NamedTuple):
    """Corners of boxes that cover a grid, half-open, shape (boxes, axes)."""

    lows: IntArray
    highs: IntArray


class NoisyCells(NamedTuple):
    """Published counts and the noise in them.

    `width` is the scale of a cell's noise, 0 for none, in rho (`power` 2) sigma;
    `fresh_variance` is that of the count of a box which is still to be drawn.
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
        """Return the leaves of the tree, at most `levels` cuts deep."""


@dataclass(frozen=True)
class GainRule:
    """Cut at the best place of any axis while rectangles gain more than it costs.

    `price` is the cost of a further box in variances of a fresh count; `caution` says
    how many times the contrast of noise alone is taken off.

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
        """Return boxes whose cuts gain more than the noise of another count."""
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

    `thresholds` asks for either, for both, or for unevenness alone. A box is uneven if
    its noisy cells deviate from their mean by `uniformity` times what noise alone
    gives; None: by two standard deviations more. It is crowded with the part `count` of
    the total.

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
        """Return boxes cut at medians until they are uniform, or hold few records."""
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
    """
    edges, order = kernels.cells_of_boxes(boxes.lows, boxes.highs, shape)
    if parts is None:
        return Buckets(edges, order)
    box = np.empty(order.size, dtype=np.int64)
    box[order] = np.repeat(np.arange(edges.size - 1), np.diff(edges))
    keys = parts.astype(np.int64) * np.int64(edges.size - 1) + box
    return Buckets.from_labels(np.unique(keys, return_inverse=True)[1])
