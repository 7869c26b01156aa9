"""QuadTree: noisy counts of boxes that are halved along all axes, down to cells.

Pieces: boxes from ``strategies.box_tree``, strategy ``strategies.tree``, inference
from ``kernels.fit``, sparse boxes from ``kernels.pruning``.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, Unpack

from blowfish_fast._support.validation import as_choice
from blowfish_fast.measure.budgets import BudgetTerms
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.strategies.trees.box_tree import BoxTree, pruned_cells
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import Example, stepped
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload


class QuadTree(Mechanism):
    """Release a map by a quadtree: noisy counts of boxes halved along all axes.

    Parameters
    ----------
    policy, workload, epsilon
        See `Mechanism`; any number of ordered attributes of any length. A box is
        halved along all of them at once, sides of odd length at the ceiling. The
        workload does not change the noise.
    fit : {"shrink", None}
        What is done to the estimate afterwards, at no cost: boxes that hold fewer
        records than five noise scales of a cell are taken as even. On six maps with
        empty regions this divided the error by 1.3 to 7; None keeps the least-squares
        estimate.

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
    Source: [1]_, with exact least squares in place of its averages, any shape in place
        of a square of a power of two, noise on the integers, and pruning by noise
        scales; proof in ``docs/proofs/quad_tree.md``.

    References
    ----------
    .. [1] G. Cormode, C. Procopiuc, D. Srivastava, E. Shen, T. Yu. Differentially
       private spatial decompositions. ICDE 2012.

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
        shape = self.domain.shape
        # Nothing holds on to the corners of the boxes while counts are measured.
        strategy, buckets = (
            BoxTree.whole(shape).quartered().counted(shape, private.remaining.power)
        )
        along = private.coarsened(buckets)
        measurement = along.measure(strategy, budget=private.remaining)
        details = {
            "levels": (max(self.domain.shape) - 1).bit_length(),
            "boxes": strategy.tree.nodes,
        }
        fit = None if self.fit is None else lambda _: pruned_cells(measurement)
        return Outcome.of(measurement, details, fit=fit)

    def _pieces(self) -> int:
        return 0
