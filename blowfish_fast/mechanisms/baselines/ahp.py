"""AHP: clusters of cells with similar noisy counts, then fresh noise on each cluster.

Pieces: partition ``partitions.thresholded_sort`` with clusters from
``kernels.sorted_groups``, strategy ``strategies.cells``.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

from blowfish_fast._support.validation import as_share
from blowfish_fast.measure.budgets import BudgetTerms
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.selectors.partitions import ThresholdedSort
from blowfish_fast.measure.strategies.counted_buckets import bucket_counts, mean_noise
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import Example, repeated
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload


class Ahp(Mechanism):
    """Release cells by clusters of similar noisy counts, each counted afresh (AHP).

    Parameters
    ----------
    policy, workload, epsilon
        See `Mechanism`; any number of attributes, since clusters know no neighbours.
        The workload changes nothing.
    threshold : float
        Noisy counts up to this many widths of their noise, times the logarithm of the
        number of cells, are taken for empty when clusters are formed.
    share : number in (0, 1), optional
        Part of epsilon spent on the noisy counts that are clustered; by default 17/20,
        as in the paper.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the noisy counts and those of the clusters
        share epsilon (sequential composition, the second step on the quotient policy).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: of either step, 1 when a record is added or removed, 2 when it moves;
        threshold, sorting and clustering read noisy counts only. Public totals are
        exact, and no cluster crosses from one connected part of the policy to another.
    Error: the noise of each cluster, known once the clusters are, plus the deviation of
        the cells from their cluster's mean, which depends on the data. Made for single
        cells: a range adds up deviations of one sign.
    Complexity: O(n log n) time, O(n) memory.
    Source: [1]_, with clusters of least expected squared error, not by a greedy scan,
        and a threshold in widths of the noise; proof in ``docs/proofs/ahp.md``.

    References
    ----------
    .. [1] X. Zhang, R. Chen, J. Xu, X. Meng, Y. Xie. Towards accurate histogram
       publication under differential privacy. SDM 2014.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> cells = bf.workloads.Identity(line)
    >>> ahp = bf.mechanisms.Ahp(bf.policies.AddRemove(line), cells, epsilon=2)
    >>> release = ahp.release([5, 90] * 32, rng=1)
    >>> release.details["buckets"] < 8
    True
    """

    name = "ahp"
    example_case = Example(partial(repeated, period=3, height=9), cells=True)

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        threshold: float = 0.35,
        share: Any = None,
        **budget: Unpack[BudgetTerms],
    ) -> None:
        super().__init__(policy, workload, **budget)
        self.partition = ThresholdedSort(threshold)
        self.share = as_share(share, "share", self.partition.default_share)

    def _run(self, private: Handle) -> Outcome:
        share = self.share * self.budget
        price = mean_noise(self.policy, self.budget - share)
        clusters = private.select(self.partition.priced(price), budget=share)
        measurement = bucket_counts(private, clusters)
        details = {"labels": clusters.labels, "buckets": clusters.count}
        return Outcome.of(measurement, details)
