"""HierarchicalKdTree: medians asked for level by level, then counts of the leaves.

Pieces: strategy ``strategies.cells`` once per level and once for the leaves, medians
from ``kernels.kd_split``.
"""

from __future__ import annotations

from functools import partial
from typing import Unpack

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_whole
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.budgets import Budget, BudgetTerms
from blowfish_fast.measure.handle import Handle, Measurement
from blowfish_fast.measure.selectors.partitions.kd_cells import Boxes
from blowfish_fast.measure.strategies.counted_buckets import bucket_counts
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import Example, striped
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

DEEPEST = 13
"""Height that the paper found best on its 79 x 100 grid."""


class HierarchicalKdTree(Mechanism):
    """Release a histogram by the leaves of a kd-tree that asks the data for medians.

    The method that the two-step kd-tree is measured against: every level of the tree
    costs a part of epsilon.

    Parameters
    ----------
    policy, workload, epsilon
        See `Mechanism`. The workload changes nothing.
    levels : int, optional
        Levels of the tree; each, and the counts of the leaves, get epsilon / (levels +
        1). None: as many as single cells would need, at most 13.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the levels and the leaves share epsilon in
        equal parts (sequential composition, each step on a quotient policy).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: at each step 1 when a record is added or removed, 2 when it moves: the
        slabs of all boxes of a level do not overlap. Public totals are exact.
    Error: the noise of the leaves at epsilon / (levels + 1), known once they are, plus
        the deviation of their cells from the mean, which depends on the data.
    Complexity: O(n) per level, n cells.
    Source: [1]_, section 4.3, after [2]_; proof in
        ``docs/proofs/hierarchical_kd_tree.md``.

    References
    ----------
    .. [1] Y. Xiao, L. Xiong, C. Yuan. Differentially private data release through
       multidimensional partitioning. Secure Data Management, 2010.
    .. [2] A. Inan, M. Kantarcioglu, G. Ghinita, E. Bertino. Private record matching
       using differential privacy. EDBT, 2010.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> grid = bf.Domain((16, 16))
    >>> asked = bf.workloads.Rectangles.random(grid, 100, rng=1)
    >>> policy = bf.policies.AddRemove(grid)
    >>> tree = bf.mechanisms.HierarchicalKdTree(policy, asked, epsilon=1, levels=3)
    >>> tree.release([[50] * 8 + [0] * 8] * 16, rng=1).details["buckets"]
    8
    """

    name = "hierarchical_kd_tree"
    example_case = Example(partial(striped, stripes=4, height=9), {"levels": 2})

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        levels: int | None = None,
        **budget: Unpack[BudgetTerms],
    ) -> None:
        super().__init__(policy, workload, **budget)
        if levels is None:
            levels = min((self.domain.size - 1).bit_length(), DEEPEST)
        self.levels = as_whole(levels, "levels", 0, 64)

    def _run(self, private: Handle) -> Outcome:
        if self.levels:
            private.refuse_dry_run(
                "the medians of a hierarchical kd-tree are asked of the data, so its "
                "error cannot be predicted before it is released"
            )
        share = self.budget / (self.levels + 1)
        whole = np.array([self.domain.shape])
        boxes = Boxes(np.zeros_like(whole), whole)
        measurements: list[Measurement] = []
        for _ in range(self.levels):
            boxes, measured = self._split(private, boxes, share)
            measurements.append(measured)
        leaves = self._counts_of(private, boxes, private.remaining)
        details = {"buckets": len(boxes.lows), "lows": boxes.lows, "highs": boxes.highs}
        return Outcome.of(leaves, details, measurements=[*measurements, leaves])

    def _split(
        self, private: Handle, boxes: Boxes, budget: Budget
    ) -> tuple[Boxes, Measurement]:
        """Cut every box across its longest side, near its noisy median."""
        axis = np.argmax(boxes.highs - boxes.lows, axis=1)
        slabs, edges = _slabs(boxes, axis)
        measured = self._counts_of(private, slabs, budget)
        noisy = measured.strategy.infer(measured.noisy, measured.scales)
        return _halves(boxes, axis, noisy, edges), measured

    def _counts_of(self, private: Handle, boxes: Boxes, budget: Budget) -> Measurement:
        """Measure the records of boxes that cover the domain."""
        edges, order = kernels.cells_of_boxes(
            boxes.lows, boxes.highs, self.domain.shape
        )
        return bucket_counts(private, Buckets(edges, order), budget=budget)


def _slabs(boxes: Boxes, axis: IntArray) -> tuple[Boxes, IntArray]:
    """Cut each box into slabs one cell thick; also where those of each box begin."""
    each = np.arange(len(axis))
    lengths = (boxes.highs - boxes.lows)[each, axis]
    edges = np.concatenate([[0], np.cumsum(lengths)])
    owner = np.repeat(each, lengths)
    lows, highs = boxes.lows[owner], boxes.highs[owner]
    place = np.arange(owner.size)
    begins = lows[place, axis[owner]] + place - edges[owner]
    lows[place, axis[owner]] = begins
    highs[place, axis[owner]] = begins + 1
    return Boxes(lows, highs), edges


def _halves(boxes: Boxes, axis: IntArray, noisy: FloatArray, edges: IntArray) -> Boxes:
    """Cut each box at the median of its noisy slabs; single cells stay as they are."""
    cuts = kernels.median_cuts(noisy, edges)
    divided = cuts > 0
    owner = np.repeat(np.arange(len(axis)), 1 + divided)
    lows, highs = boxes.lows[owner], boxes.highs[owner]
    first = np.cumsum(1 + divided) - (1 + divided)
    left = first[divided]
    cut_axis = axis[divided]
    borders = boxes.lows[divided, cut_axis] + cuts[divided]
    highs[left, cut_axis] = borders
    lows[left + 1, cut_axis] = borders
    return Boxes(lows, highs)
