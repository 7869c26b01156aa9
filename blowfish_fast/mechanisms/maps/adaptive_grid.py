"""AdaptiveGrid: a coarse noisy grid, each box refined as far as its count allows.

Pieces: sizes and number of records from ``strategies.grid_plan``, boxes from
``strategies.box_tree``, strategy ``strategies.tree``, both levels combined by
``kernels.fit``.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any, Literal, Unpack

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import as_choice, as_positive, as_share, as_whole
from blowfish_fast.measure.budgets import BudgetTerms
from blowfish_fast.measure.handle import Handle, Measurement
from blowfish_fast.measure.strategies.trees.box_tree import BoxTree
from blowfish_fast.measure.strategies.trees.grid_plan import (
    as_records,
    count_epsilon,
    parts_per_axis,
    rough_total,
)
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import Example, stepped
from blowfish_fast.mechanisms.fits import halved_non_negative
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

from .grid_levels import GridLevel, cut_level, joined_levels, measure_leaves

RECORDS_SHARE = Fraction(1, 100)
"""Part of epsilon that buys the number of records where it is private."""

COARSE_SHARE = Fraction(2, 5)
"""Part of the rest that the coarse grid takes."""

COARSER = 16.0
"""The coarse grid holds this many times fewer boxes than a uniform grid would."""

DRY_RUN_REFUSAL = (
    "the finer grids follow the noisy counts of the coarse one, so their error cannot "
    "be predicted; that of UniformGrid with records=... can be"
)


class AdaptiveGrid(Mechanism):
    """Release a map by an adaptive grid, refined where records are dense.

    Parameters
    ----------
    policy, workload, epsilon
        See `Mechanism`; any number of ordered attributes of any length. The workload
        does not change the noise.
    records : int, optional
        A public rough count of the records. None reads the number where the policy
        makes it public, and buys it with `records_share` of epsilon where it does not.
    records_share : number in (0, 1)
        Part of epsilon that buys the number of records, if it must be bought.
    share : number in (0, 1)
        Part of the rest that the coarse grid takes.
    constant, fine_constant : number
        Records that a box should hold, times epsilon, in a uniform grid (the coarse
        grid has 16 times fewer boxes) and in the finer grids; the larger, the coarser.
    fewest_parts : int
        Parts of each axis of the coarse grid, at least, where it has as many cells.
    fit : {"non_negative", None}
        What is done to the estimate afterwards, at no cost. "non_negative": no cell is
        below 0, and the total is shared among halves of the map and halves of these.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the number of records, where it is bought,
        and the two levels share epsilon (sequential composition). The second level
        reads noisy counts of the first only.
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: one box of each level when a record is added or removed, two when it
        moves; a public total is exact.
    Error: the noise of both levels, known once the boxes are; the error of taking boxes
        as even depends on the data. The finer boxes follow noise that the estimate uses
        again, so intervals hold over all releases, not given the boxes.
    Complexity: O(n) time and memory.
    Source: [1]_, with the number of records bought where the paper reads it, exact
        least squares over both levels, and constants (20, 5/2 and a share of 2/5 in
        place of 10, 5 and 1/2) that served better on four maps; proof in
        ``docs/proofs/adaptive_grid.md``.

    References
    ----------
    .. [1] W. Qardaji, W. Yang, N. Li. Differentially private grids for geospatial data.
       ICDE 2013.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> grid = bf.Domain((200, 300))
    >>> boxes = bf.workloads.Rectangles.random(grid, 100, rng=1)
    >>> mechanism = bf.AdaptiveGrid(bf.policies.Full(grid), boxes, epsilon=1)
    >>> release = mechanism.release([[17] * 300] * 200, rng=1)
    >>> release.details["parts"], float(release.estimate.sum().round(6))
    (array([40, 40]), 1020000.0)
    """

    name = "adaptive_grid"
    cell_bytes = 768
    example_case = Example(partial(stepped, steps=3, height=40), {"fewest_parts": 2})

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        records: int | None = None,
        records_share: Any = RECORDS_SHARE,
        share: Any = COARSE_SHARE,
        constant: float = 20.0,
        fine_constant: float = 2.5,
        fewest_parts: int = 10,
        fit: Literal["non_negative"] | None = "non_negative",
        **budget: Unpack[BudgetTerms],
    ) -> None:
        super().__init__(policy, workload, **budget)
        self.records = as_records(records)
        self.records_share = as_share(records_share, "records_share")
        self.share = as_share(share, "share")
        self.constant = as_positive(constant, "constant")
        self.fine_constant = as_positive(fine_constant, "fine_constant")
        self.fewest_parts = as_whole(fewest_parts, "fewest_parts", 1)
        self.fit = as_choice(fit, "fit", (None, "non_negative"))

    def _run(self, private: Handle) -> Outcome:
        share = self.records_share * self.budget
        records, bought = rough_total(private, self.records, budget=share)
        private.refuse_dry_run(DRY_RUN_REFUSAL)
        parts = self._coarse_parts(private, records)
        whole = BoxTree.whole(self.domain.shape)
        coarse = cut_level(whole, whole.leaves, parts)
        first = measure_leaves(private, coarse, private.remaining * self.share)
        fine = self._fine(private, coarse, first)
        second = measure_leaves(private, fine, private.remaining)
        both = joined_levels(bought, [first, second])
        boxes = fine.placed.buckets.count
        details = {"parts": parts[0], "buckets": boxes, "records": records}
        clamp = partial(halved_non_negative, domain=self.domain)
        fit = None if self.fit is None else clamp
        return Outcome.of(both, details, measurements=[*bought, first, second], fit=fit)

    def _coarse_parts(self, private: Handle, records: float) -> IntArray:
        return parts_per_axis(
            np.array([self.domain.shape]),
            [records],
            count_epsilon(self.policy, private.remaining),
            self.constant * COARSER,
            least=self.fewest_parts,
        )

    def _fine(
        self, private: Handle, coarse: GridLevel, first: Measurement
    ) -> GridLevel:
        """Refine the boxes by their noisy counts, which are public by now."""
        boxes = coarse.tree.leaves
        counts = first.strategy.infer(first.noisy, first.scales)
        parts = parts_per_axis(
            coarse.tree.highs[boxes] - coarse.tree.lows[boxes],
            counts[coarse.placed.numbers[boxes]],
            count_epsilon(self.policy, private.remaining),
            self.fine_constant,
        )
        return cut_level(coarse.tree, boxes, parts)

    def _pieces(self) -> int:
        return 0
