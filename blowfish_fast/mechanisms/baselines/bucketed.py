"""Baselines that merge like cells into buckets, before or after noise is drawn."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_positive, as_share, as_whole
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.selectors.partitions import (
    Bisection,
    KBuckets,
    Partition,
    ThresholdedSort,
)
from blowfish_fast.measure.strategies import Cells
from blowfish_fast.measure.strategies.cells import bucket_counts, mean_noise
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import Example, repeated, stepped
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

STOP_SHARE = Fraction(1, 4)
"""Part of the partition's epsilon that decides how many cuts of `Php` are kept."""


class BucketCounts(Mechanism):
    """Buckets are drawn for a share of the budget, and counted with the rest.

    counts     5 5 6 | 90 91 | 4 4      buckets, drawn first: edges 0, 3, 5, 7
    noisy sums    17 |  180  |  9       counted with the rest of the budget
    estimate   5.7.. | 90 90 | 4.5..    each sum is spread evenly over its cells
    """

    cells_by_default = True
    price: ClassVar[float] = 1.0
    """What the partition pays for one more bucket, in mean sizes of its noise."""
    told_by: ClassVar[str] = "edges"
    """How the release's details state the buckets: by "edges", or by "labels"."""

    def _draw_first(self, partition: Partition, share: Any) -> None:
        """Set which partition is drawn first, and which part of the budget it gets."""
        self.partition = partition
        self.share = as_share(share, "share", partition.default_share)

    def _run(self, private: Handle) -> Outcome:
        share = self.share * self.budget
        price = self.price * mean_noise(self.policy, self.budget - share)
        buckets = private.select(self.partition.priced(price), budget=share)
        measurement = bucket_counts(private, buckets)
        by_product = {self.told_by: getattr(buckets, self.told_by)}
        return Outcome.of(measurement, {**by_product, "buckets": buckets.count})


class Ahp(BucketCounts):
    """Release cells by clusters of similar noisy counts, each counted afresh (AHP).

    Takes any attributes; the workload changes nothing.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload, optional
        What will be asked, by default every single cell. It changes nothing in the
        release.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    threshold : float
        Noisy counts up to `threshold` noise widths times ln(cells) are taken for empty
        when clusters are formed.
    share : number in (0, 1), optional
        Part of the budget spent on the first noisy counts; by default 17/20 as in the
        paper.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the noisy counts and those of the clusters
        share epsilon (sequential composition, the second step on the quotient policy).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: of either step, 1 when a record is added or removed, 2 when it moves;
        threshold, sorting and clustering read noisy counts only. Public totals are
        exact, and no cluster crosses from one connected part of the policy to another.
    Error: the noise of the clusters, and the deviation of the data from their means.
        Made for single cells: a range adds up deviations of one sign.
    Complexity: O(n log n) time, O(n) memory.
    Source: X. Zhang, R. Chen, J. Xu, X. Meng, Y. Xie. Towards accurate histogram
        publication under differential privacy. SDM 2014; with clusters of least
        expected squared error; proof in ``docs/proofs/buckets_of_equals.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> cells = bf.workloads.Identity(line)
    >>> ahp = bf.mechanisms.Ahp(bf.policies.AddRemove(line), cells, epsilon=2)
    >>> ahp.release([5, 90] * 32, rng=1).details["buckets"] < 8
    True
    """

    name = "ahp"
    told_by = "labels"
    example_case = Example(partial(repeated, period=3, height=9), cells=True)

    def __init__(
        self,
        policy: Policy,
        workload: Workload | None = None,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        threshold: float = 0.35,
        share: Any = None,
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        self._draw_first(ThresholdedSort(threshold), share)


class Php(BucketCounts):
    """Release ranges by private hierarchical bisection into buckets (P-HP).

    Takes one ordered attribute; the workload changes nothing.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload, optional
        What will be asked, by default every single cell. It changes nothing in the
        release.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    levels : int, optional
        Levels of bisections; None for log2(cells).
    share : number in (0, 1), optional
        Part of the budget spent on the bisections. The default, 3/10, served better on
        the benchmark data than the paper's 1/2.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the buckets and their counts share epsilon
        (sequential composition, the second step on the quotient policy).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: the cost of a bisection moves by at most 2 when a record is added or
        removed (a move counts as both); bucket counts as in `Laplace`.
    Error: the noise of the buckets, and the deviation of the data from their means.
    Complexity: O(n log^2 n) time, O(n) memory.
    Source: G. Acs, C. Castelluccia, R. Chen. Differentially private histogram
        publishing through lossy compression. ICDM 2012; section 5; proof in
        ``docs/proofs/buckets_of_neighbours.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> ranges = bf.workloads.Ranges.random(line, 100, rng=1)
    >>> php = bf.mechanisms.Php(bf.policies.AddRemove(line), ranges, epsilon=2)
    >>> release = php.release([5] * 32 + [90] * 32, rng=1)
    >>> int(release.details["edges"][-1])
    64
    """

    name = "php"
    # The paper's price is 1. On the benchmark data larger buckets served better.
    price = 1.75
    cell_bytes = 128
    example_case = Example(partial(stepped, steps=2, height=9))

    def __init__(
        self,
        policy: Policy,
        workload: Workload | None = None,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        levels: int | None = None,
        share: Any = None,
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        self._require_one_attribute("bisects")
        self._draw_first(Bisection(levels, share=STOP_SHARE), share)


class StructureFirst(BucketCounts):
    """Release ranges by a v-optimal histogram, its bucket borders drawn privately.

    Takes one ordered attribute; the workload changes nothing.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload, optional
        What will be asked, by default every single cell. It changes nothing in the
        release.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    buckets : int, optional
        At most 1024; None for 4 sqrt(cells), but not more than half of the cells.
    largest_count : int
        A public number at which counts are cut while the borders are drawn, not in the
        counts of the buckets. It must not be read off the data.
    share : number in (0, 1), optional
        Part of the budget spent on the borders; by default 1/10.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the buckets and their counts share epsilon
        (sequential composition, the second step on the quotient policy).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: when a record is added or removed, the squared error of a bucket moves
        by at most 2 F - 1, where F is the largest count, and the errors of two
        candidates move by amounts that differ by at most 2 F; a move of a record
        counts as both. Bucket counts are as in `Laplace`.
    Error: the noise of the buckets, and the deviation of the data from their means.
    Complexity: O(n + m^2 k) time for k buckets, m at most 1024 candidate borders.
    Source: J. Xu, Z. Zhang, X. Xiao, Y. Yang, G. Yu, M. Winslett. Differentially
        private histogram publication. The VLDB Journal 22(6), 2013; section 5, with a
        public F, evenly spaced candidates on long domains, and all partitions equally
        likely beforehand; proof in ``docs/proofs/buckets_of_neighbours.md``.

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
        workload: Workload | None = None,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        buckets: int | None = None,
        largest_count: int = 1000,
        share: Any = None,
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        self._require_one_attribute("cuts")
        cut_at = as_whole(largest_count, "largest_count")
        many = None if buckets is None else as_whole(buckets, "buckets")
        self._draw_first(KBuckets(many, largest_count=cut_at), share)
        # Refuses, before anything is charged, counts whose squares would overflow.
        kernels.squares_grid(self.domain.size, cut_at)


class NoiseFirst(Mechanism):
    """Release noisy cells averaged over like neighbours, by dynamic programming.

    Takes one ordered attribute; the workload changes nothing.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload, optional
        What will be asked, by default every single cell. It changes nothing in the
        release.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    price : float
        What a bucket costs, in variances of the noise: 2 makes the cost an unbiased
        estimate of the squared error, as in the paper; 2 ln(n) merges more and serves
        sparse data better.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; differential privacy under `AddRemove`
        (unbounded) and `Full` (bounded). Merging reads published values only.
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: 1 when a record is added or removed, 2 when it moves; public totals are
        exact, and no bucket crosses from one connected part of the policy to another.
    Error: before the merge, the variance of the noise times the number of cells of a
        range; intervals are built around that answer.
    Complexity: O(n) time and memory in practice, O(n^2) time at worst.
    Source: the paper of `StructureFirst`, section 4, with an exact merge by pruning
        instead of the quadratic programme; proof in
        ``docs/proofs/buckets_of_neighbours.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> ranges = bf.workloads.Ranges(line, [0, 16], [16, 64])
    >>> policy = bf.policies.AddRemove(line)
    >>> noise_first = bf.mechanisms.NoiseFirst(policy, ranges, epsilon=1)
    >>> noise_first.expected_error().round(2)
    array([29.46, 88.38])
    >>> noise_first.release([5] * 32 + [90] * 32, rng=1).estimate.shape
    (64,)
    """

    cells_by_default = True
    name = "noise_first"
    cell_bytes = 128
    example_case = Example(partial(stepped, steps=2, height=9))

    def __init__(
        self,
        policy: Policy,
        workload: Workload | None = None,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        price: float = 2.0,
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        self._require_one_attribute("merges neighbours along")
        self.price = as_positive(price, "price")

    def _run(self, private: Handle) -> Outcome:
        strategy = Cells.under(private.policy)
        measurement = private.measure(strategy, budget=private.remaining)
        if private.dry_run:
            return Outcome.of(measurement)
        linear = measurement.estimate()
        variances = measurement.scales.variances[measurement.scales.measured]
        price = self.price * float(variances.max(initial=0.0))
        buckets = Buckets(self._edges(linear, strategy.parts, price))
        merged = buckets.expand(np.add.reduceat(linear, buckets.edges[:-1]))
        details = {"edges": buckets.edges, "buckets": buckets.count}
        return Outcome(merged, [measurement], details, unfitted=linear)

    def _edges(
        self, cells: FloatArray, parts: IntArray | None, price: float
    ) -> IntArray:
        """Merge within each stretch of cells of one part, whose total may be exact."""
        if parts is None:
            return kernels.merge_buckets(cells, price)
        borders = np.flatnonzero(np.diff(parts)) + 1
        starts = np.concatenate([[0], borders])
        merged = [
            start + kernels.merge_buckets(stretch, price)[:-1]
            for start, stretch in zip(starts, np.split(cells, borders), strict=True)
        ]
        return np.concatenate([*merged, [cells.size]])
