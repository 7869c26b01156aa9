"""UniformGrid: noisy counts of a grid whose cells are as large as the records allow.

Pieces: size and number of records from ``strategies.grid_plan``, boxes from
``strategies.box_tree``, strategy ``strategies.tree``.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any, Unpack

from blowfish_fast._support.validation import as_positive, as_share
from blowfish_fast.measure.budgets import BudgetTerms
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.strategies.trees.box_tree import BoxTree
from blowfish_fast.measure.strategies.trees.grid_plan import (
    as_records,
    count_epsilon,
    parts_per_axis,
    rough_total,
)
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import Example, stepped
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

from .grid_levels import cut_level, joined_levels, measure_leaves

RECORDS_SHARE = Fraction(1, 100)
"""Part of epsilon that buys the number of records where it is private."""


class UniformGrid(Mechanism):
    """Release a map by a uniform grid whose boxes are sized to the number of records.

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
    constant : number
        Records that a box should hold, times epsilon; the larger, the coarser.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the number of records, where it is bought,
        and the counts share epsilon (sequential composition).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: one box when a record is added or removed, two when it moves; a public
        total is exact.
    Error: the noise of the boxes, known once their number is; it is predicted if
        `records` is given. The error of taking boxes as even depends on the data.
    Complexity: O(n) time and memory.
    Source: the paper of `AdaptiveGrid`, m = sqrt(records * epsilon / constant) parts
        per axis of a map and the power 2 / (d + 2) for d attributes, with the number of
        records bought where the paper reads it; proof in
        ``docs/proofs/uniform_grid.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> grid = bf.Domain((200, 300))
    >>> boxes = bf.workloads.Rectangles.random(grid, 100, rng=1)
    >>> policy = bf.policies.AddRemove(grid)
    >>> uniform = bf.mechanisms.UniformGrid
    >>> mechanism = uniform(policy, boxes, epsilon=0.1, records=1_000_000)
    >>> mechanism.release([[17] * 300] * 200, rng=1).details["parts"]
    array([100, 100])
    """

    name = "uniform_grid"
    cell_bytes = 320
    example_case = Example(partial(stepped, steps=2, height=30))

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        records: int | None = None,
        records_share: Any = RECORDS_SHARE,
        constant: float = 10.0,
        **budget: Unpack[BudgetTerms],
    ) -> None:
        super().__init__(policy, workload, **budget)
        self.records = as_records(records)
        self.records_share = as_share(records_share, "records_share")
        self.constant = as_positive(constant, "constant")

    def _run(self, private: Handle) -> Outcome:
        share = self.records_share * self.budget
        records, bought = rough_total(private, self.records, budget=share)
        epsilon = count_epsilon(self.policy, private.remaining)
        whole = BoxTree.whole(self.domain.shape)
        parts = parts_per_axis(whole.highs, [records], epsilon, self.constant)
        level = cut_level(whole, whole.leaves, parts)
        counted = measure_leaves(private, level, private.remaining)
        details = {"parts": parts[0], "records": records}
        both = joined_levels(bought, [counted])
        return Outcome.of(both, details, measurements=[*bought, counted])

    def _pieces(self) -> int:
        return 0
