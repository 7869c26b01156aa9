"""Quadtrees: noisy counts of boxes that are halved along all axes, down to cells."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any, Literal, Unpack

from blowfish_fast._support.validation import as_choice, as_share, as_whole
from blowfish_fast.measure.budgets import BudgetTerms
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.selectors.partitions.kd_cells import Medians
from blowfish_fast.measure.strategies.trees.box_tree import BoxTree, pruned_cells
from blowfish_fast.mechanisms.base import Example, Mechanism, Outcome, stepped
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

MEDIAN_SHARE = Fraction(1, 20)
"""Part of epsilon for the medians; the paper's 3/10 served worse on four maps."""


class QuadTree(Mechanism):
    """Release a map by a quadtree: noisy counts of boxes halved along all axes.

    Takes any number of ordered attributes; sides of odd length are halved at the
    ceiling. The workload does not change the noise. With ``fit="shrink"`` boxes of
    fewer records than five noise scales of a cell are taken as even, which divided the
    error on six maps with empty regions by 1.3 to 7.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; differential privacy under `AddRemove`
        (unbounded) and `Full` (bounded, the total is public and exact).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: the boxes from a cell up to the whole when a record is added or
        removed; twice that, without the whole, when it moves. The worst edge is found
        in integers, edge by edge where the policy's edges can be listed.
    Error: with h levels the part of epsilon at depth i goes with 2^(i (d - 1) / 3) for
        d attributes; the prediction is exact for every query, before the fit.
    Complexity: O(n) time and memory.
    Source: G. Cormode, C. Procopiuc, D. Srivastava, E. Shen, T. Yu. Differentially
        private spatial decompositions. ICDE 2012; with exact least squares in place of
        its averages, any shape in place of a square of a power of two, noise on the
        integers, and pruning by noise scales; proof in ``docs/proofs/quad_tree.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> grid = bf.Domain((20, 30))
    >>> boxes = bf.workloads.Rectangles.random(grid, 100, rng=1)
    >>> tree = bf.mechanisms.QuadTree(bf.policies.AddRemove(grid), boxes, epsilon=0.5)
    >>> release = tree.release([[3] * 30] * 20, rng=1)
    >>> release.details["levels"], release.answer(boxes).shape
    (5, (100,))
    """

    name = "quad_tree"
    reads_workload = False
    example_case = Example(partial(stepped, steps=2, height=9))

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        fit: Literal["shrink"] | None = "shrink",
        **budget: Unpack[BudgetTerms],
    ) -> None:
        super().__init__(policy, workload, **budget)
        self.fit = as_choice(fit, "fit", ("shrink", None))

    def _run(self, private: Handle) -> Outcome:
        top, details = self._top(private)
        # Nothing holds on to the corners of the quarters while counts are measured.
        strategy, buckets = top.quartered().counted(
            self.domain.shape, private.remaining.power
        )
        along = private.coarsened(buckets)
        measurement = along.measure(strategy, budget=private.remaining)
        details["boxes"] = strategy.tree.nodes
        fit = None if self.fit is None else lambda _: pruned_cells(measurement)
        return Outcome.of(measurement, details, fit=fit)

    def _top(self, private: Handle) -> tuple[BoxTree, dict[str, Any]]:
        """Return the boxes above the quarters, and what is told of them."""
        levels = (max(self.domain.shape) - 1).bit_length()
        return BoxTree.whole(self.domain.shape), {"levels": levels}


class HybridTree(QuadTree):
    """Release a map by a hybrid tree: private medians above, a quadtree below.

    Each of the `levels` of medians, by default one per attribute, cuts boxes across the
    longest side; below them boxes are halved along all axes down to cells. The medians
    take `share` of epsilon; `fit` is that of `QuadTree`.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the medians and the counts share epsilon
        (sequential composition).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: a record changes the difference between the sides of a cut by 1 in one
        box of each level, twice that under a policy with moves; counts as for
        `QuadTree`, the worst edge of the tree that was chosen.
    Error: the noise of the tree, known once the medians are; it depends on the data
        through them.
    Complexity: O(n) time and memory, and O(2^levels * side) for the medians.
    Source: the paper of `QuadTree`, with medians by the exponential mechanism on whole
        numbers, exact least squares, any shape, and budgets that follow the depth of
        each branch; proof in ``docs/proofs/hybrid_tree.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> grid = bf.Domain((20, 30))
    >>> boxes = bf.workloads.Rectangles.random(grid, 100, rng=1)
    >>> tree = bf.mechanisms.HybridTree(bf.policies.AddRemove(grid), boxes, epsilon=0.5)
    >>> release = tree.release([[3] * 30] * 20, rng=1)
    >>> release.details["lows"].shape, release.answer(boxes).shape
    ((7, 2), (100,))
    """

    name = "hybrid_tree"
    example_case = Example(partial(stepped, steps=3, height=5), {"levels": 2})

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        levels: int | None = None,
        share: Any = MEDIAN_SHARE,
        fit: Literal["shrink"] | None = "shrink",
        **budget: Unpack[BudgetTerms],
    ) -> None:
        super().__init__(policy, workload, fit=fit, **budget)
        if levels is None:
            levels = self.domain.ndim
        without = "A tree without medians is a QuadTree"
        self.levels = as_whole(levels, "levels", 1, 40, way_out=without)
        self.share = as_share(share, "share")

    def _top(self, private: Handle) -> tuple[BoxTree, dict[str, Any]]:
        medians = Medians(self.domain.shape, self.levels)
        boxes = private.select(medians, budget=self.share * self.budget)
        return BoxTree(*boxes), {"lows": boxes.lows, "highs": boxes.highs}
