"""Private medians of boxes: the splits of a kd-tree, level by level.

Every box is cut across its longest side. A cut costs |records left - records right| and
is drawn with weight exp(-rate * cost). Boxes of one level are disjoint, so a record
pays once per level.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import as_whole
from blowfish_fast.errors import DomainError
from blowfish_fast.policies import Policy

if TYPE_CHECKING:
    from blowfish_fast.measure.randomness import Randomness


class KdBoxes(NamedTuple):
    """Boxes that split in two; every box comes after its parent, the whole first.

    `parents` is -1 for the whole; `lows` and `highs` are half-open corners, (boxes, d).
    """

    parents: IntArray
    lows: IntArray
    highs: IntArray


class Medians:
    """Cut boxes of a grid near the median of their records, level by level.

    With 0 levels the whole grid stays one box.

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
        """Return how fast weights fall with costs, at each level: Lemma HY4."""
        return epsilon / (2 * (2 if policy.has_moves else 1) * max(self.levels, 1))

    def select(
        self, counts: IntArray, *, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> KdBoxes:
        """Return the boxes of all levels."""
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

    Column j of (boxes, cuts) is the cut after j + 1 cells, or `NO_CANDIDATE`.
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
