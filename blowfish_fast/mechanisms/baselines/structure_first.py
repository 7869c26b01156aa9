"""StructureFirst: a given number of buckets drawn privately, then noise on each.

Pieces: partition ``partitions.k_buckets`` with errors from ``kernels.k_bucket_costs``,
strategy ``strategies.cells``.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

from blowfish_fast import kernels
from blowfish_fast._support.validation import as_share, as_whole
from blowfish_fast.measure.budgets import BudgetTerms
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.selectors.partitions import KBuckets
from blowfish_fast.measure.strategies.counted_buckets import bucket_counts
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import Example, stepped
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload


class StructureFirst(Mechanism):
    """Release ranges by a v-optimal histogram, its bucket borders drawn privately.

    Parameters
    ----------
    policy, workload, epsilon
        See `Mechanism`. The workload changes nothing; one ordered attribute.
    buckets : int, optional
        Number of buckets, at most 1024; None for four times the square root of the
        number of cells, at most half of them.
    largest_count : int
        A public number at which counts are cut while the borders are drawn (the counts
        of the buckets are not cut). It must not be read off the data.
    share : number in (0, 1), optional
        Part of epsilon spent on the buckets; by default 1/10.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the buckets and their counts share epsilon
        (sequential composition, the second step on the quotient policy).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: squared errors move by at most 2 F - 1, and apart by at most 2 F, when
        a record is added or removed (a move counts as both), F the largest count;
        bucket counts as in `Laplace`.
    Error: the noise of each bucket, known once the buckets are, plus the deviation of
        the cells from their bucket's mean, which depends on the data.
    Complexity: O(n + m^2 k) time for k buckets, m at most 1024 candidate borders.
    Source: [1]_, section 5, with a public F, candidates that are evenly spaced on long
        domains, and a prior that makes all partitions equally likely; proof in
        ``docs/proofs/structure_first.md``.

    References
    ----------
    .. [1] J. Xu, Z. Zhang, X. Xiao, Y. Yang, G. Yu, M. Winslett. Differentially private
       histogram publication. The VLDB Journal 22(6), 2013.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> ranges = bf.workloads.Ranges.random(line, 100, rng=1)
    >>> mechanism = bf.mechanisms.StructureFirst(
    ...     bf.policies.AddRemove(line), ranges, epsilon=9, buckets=2, largest_count=100
    ... )
    >>> mechanism.release([5] * 32 + [90] * 32, rng=1).details["edges"]
    array([ 0, 32, 64])
    """

    name = "structure_first"
    cell_bytes = 96
    example_case = Example(
        partial(stepped, steps=2, height=9), {"buckets": 3, "largest_count": 9}
    )

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        buckets: int | None = None,
        largest_count: int = 1000,
        share: Any = None,
        **budget: Unpack[BudgetTerms],
    ) -> None:
        super().__init__(policy, workload, **budget)
        self._require_one_attribute("cuts")
        self.partition = KBuckets(
            None if buckets is None else as_whole(buckets, "buckets"),
            largest_count=as_whole(largest_count, "largest_count"),
        )
        # Refuses, before anything is charged, counts whose squares would overflow.
        kernels.squares_grid(self.domain.size, self.partition.largest_count)
        self.share = as_share(share, "share", self.partition.default_share)

    def _run(self, private: Handle) -> Outcome:
        share = self.share * self.budget
        buckets = private.select(self.partition, budget=share)
        measurement = bucket_counts(private, buckets)
        details = {"edges": buckets.edges, "buckets": buckets.count}
        return Outcome.of(measurement, details)
