"""NoiseFirst: noise on every cell, then the best merge of what was published.

Pieces: strategy ``strategies.cells``, merge from ``kernels.bucket_merge``.
"""

from __future__ import annotations

from functools import partial
from typing import Unpack

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_positive
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.budgets import BudgetTerms
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.strategies import Cells
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import Example, stepped
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload


class NoiseFirst(Mechanism):
    """Release noisy cells averaged over like neighbours, by dynamic programming.

    Parameters
    ----------
    policy, workload, epsilon
        See `Mechanism`. The workload changes nothing; one ordered attribute.
    price : float
        Cost of a bucket in variances of the noise. 2 makes the cost an unbiased
        estimate of the squared error, as in the paper; 2 ln(n), more cautious, merges
        more and serves sparse data better.

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
        instead of the quadratic programme; proof in ``docs/proofs/noise_first.md``.

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

    name = "noise_first"
    cell_bytes = 128
    example_case = Example(partial(stepped, steps=2, height=9))

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        price: float = 2.0,
        **budget: Unpack[BudgetTerms],
    ) -> None:
        super().__init__(policy, workload, **budget)
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
