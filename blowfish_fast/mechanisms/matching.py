"""Matching: cells of similar counts share a bucket wherever they lie."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, Unpack

from blowfish_fast._support.validation import as_share
from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.measure.budgets import Budget, BudgetTerms
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.selectors import partitions
from blowfish_fast.measure.selectors.partitions.matching_pairs import MOST_CELLS
from blowfish_fast.measure.strategies import Cells, LinearStrategy
from blowfish_fast.measure.strategies.cells import mean_noise
from blowfish_fast.measure.strategies.strategy_choice import best_choice
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

from .base import Example, Mechanism, Outcome, repeated

# Queries over scattered buckets are listed cell by cell; beyond this many coefficients
# the prediction would take longer than it is worth.
MOST_COEFFICIENTS = 2**24


class Matching(Mechanism):
    """Release a histogram by clustering cells of similar counts, wherever they lie.

    Suits counts that repeat in no order: categories, or spikes of a few heights. Where
    neighbouring cells are alike, `Dawa` and `Transformed` are more accurate. The "best"
    `partition` compares every pair of up to 512 cells, with the extra ``matching``, and
    groups more cells by noisy counts; `share` is the part of epsilon that it gets.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the partition and the measurement share
        epsilon (sequential composition, the second step on the quotient policy).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: that of the partition; then 1 or 2 on buckets, or 1 on each edge of
        the quotient policy, whichever gives the queries less noise.
    Error: the noise of the buckets, and the deviation of the data from their means.
        Pairs divide the variance of a cell's noise by at most 4.
    Complexity: that of the partition, O(n^3) for all pairs and O(n log n) for noisy
        counts, and near-linear in the edges of the policy for its quotient.
    Source: A. Anuarbek. Data-dependent Blowfish private algorithm for histogram
        queries; sections 4 and 5.2, with half of epsilon under moves and exact discrete
        noise; proof in ``docs/proofs/matching.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(6)
    >>> matching = bf.mechanisms.Matching(
    ...     bf.policies.Full(line), bf.workloads.Identity(line), epsilon=1
    ... )
    >>> matching.release([3, 900, 3, 900, 50, 3], rng=3).details["labels"]
    array([0, 1, 0, 1, 2, 3])
    """

    name = "matching"
    example_case = Example(partial(repeated, period=3, height=40), cells=True)

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        partition: (
            Literal["best"] | partitions.MatchingPairs | partitions.NoisySort
        ) = "best",
        share: Any = None,
        **budget: Unpack[BudgetTerms],
    ) -> None:
        super().__init__(policy, workload, **budget)
        if isinstance(partition, str) and partition == "best":
            few = self.domain.size <= MOST_CELLS
            partition = partitions.MatchingPairs() if few else partitions.NoisySort()
        if not isinstance(partition, partitions.MatchingPairs | partitions.NoisySort):
            raise InputError(
                'partition must be "best", partitions.MatchingPairs() or '
                f"partitions.NoisySort(); received {partition!r}. Transformed takes "
                "other partitions"
            )
        self.partition = partition
        self.share = as_share(share, "share", partition.default_share)

    def _run(self, private: Handle) -> Outcome:
        share = self.share * self.budget
        price = mean_noise(self.policy, self.budget - share)
        buckets = private.select(self.partition.priced(price), budget=share)
        bucketed = private.coarsened(buckets)
        left = private.remaining.over(self.policy.group_size)
        strategy = self._strategy(bucketed, left)
        measurement = bucketed.measure(strategy, budget=private.remaining)
        details = {
            "labels": buckets.labels,
            "buckets": buckets.count,
            "strategy": strategy.kind,
        }
        return Outcome.of(measurement, details)

    def _strategy(self, bucketed: Handle, budget: Budget) -> LinearStrategy:
        """Put noise on buckets or on edges; this reads public facts only."""
        covered = self.workload.queries * self.workload.mean_cells()
        scattered = bucketed.buckets.order is not None
        try:
            if not scattered or covered <= MOST_COEFFICIENTS:
                form = self.workload.form(bucketed.buckets)
                return best_choice(
                    bucketed.policy, form, budget, names=("vertex", "edge")
                )
        except SizeError:
            pass
        return Cells.under(bucketed.policy)

    def _pieces(self) -> int:
        # Buckets of scattered cells turn every cell of a query into a piece.
        covered = self.workload.queries * self.workload.mean_cells()
        return int(min(covered, MOST_COEFFICIENTS)) + super()._pieces()
