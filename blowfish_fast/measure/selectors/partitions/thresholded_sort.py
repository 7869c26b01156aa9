"""Clusters of sorted noisy counts (AHP): small ones count as empty, then squares.

    counts     3  90   4  88   0   0        noisy   9  97  -2  81   6   1
    below 10 is 0                                   0  97   0  81   0   0
    sorted     0   0   0   0 | 81  97               clusters {0, 2, 4, 5}, {1, 3}

All that follows the noise is free. Pieces: noise of ``partitions.noisy_sort``,
clusters from ``kernels.sorted_groups``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError
from blowfish_fast.policies import Policy

from .base import Partition
from .noisy_sort import CellNoise, NoisySort, noisy_counts, sorted_buckets

if TYPE_CHECKING:
    from blowfish_fast.measure.randomness import Randomness


class ThresholdedSort(Partition):
    """Cluster cells whose noisy counts are close, all small ones with the empty.

    Parameters
    ----------
    threshold : float
        Noisy counts up to this many widths of their noise, times the logarithm of the
        number of cells, are taken for 0. At 1 nearly all empty cells are.

    Notes
    -----
    Guarantee: epsilon-private choice of buckets under the policy it is given.
    Neighbours: one record moves along one edge of the policy.
    Sensitivity: that of the noisy counts of `NoisySort`: 1 when a record is added or
        removed, 2 when it moves, or noise on every edge where edges are few. Threshold,
        sorting and clusters read noisy counts only.
    Error: none proved.
    Complexity: O(n log n) time, O(n) memory.
    Source: the paper of `Ahp`, with clusters of least cost instead of a greedy scan;
        proof in ``docs/proofs/ahp.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(32)
    >>> steps = [0] * 8 + [500] * 8 + [20] * 8 + [900] * 8
    >>> policy, asked = bf.policies.AddRemove(line), bf.workloads.Identity(line)
    >>> mechanism = bf.Dawa(policy, asked, epsilon=20, partition=ThresholdedSort())
    >>> mechanism.release(steps, rng=1).details["edges"].tolist()
    [0, 8, 16, 24, 32]
    """

    name = "thresholded_sort"
    default_share = Fraction(17, 20)
    """The paper's at small epsilons; best on the benchmark data too."""

    def __init__(self, threshold: float = 0.35) -> None:
        if not (math.isfinite(threshold) and threshold >= 0):
            raise InputError(
                f"threshold must be a number, 0 or more; received {threshold!r}"
            )
        self.threshold = float(threshold)

    def noise(self, policy: Policy, epsilon: Fraction) -> CellNoise:
        """Return what is drawn: one draw per cell, or per edge where edges are few.

        Lemma TS1.
        """
        return NoisySort().noise(policy, epsilon)

    def _choose(
        self, counts: IntArray, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> Buckets:
        """Return clusters of cells with similar noisy counts."""
        noise = self.noise(policy, epsilon)
        return self._clusters(noisy_counts(counts, noise, rng), policy, noise)

    def _clusters(self, noisy: IntArray, policy: Policy, noise: CellNoise) -> Buckets:
        """Cut off what is small, sort and cluster; this reads noisy counts only."""
        # Draws that a cell carries: its own, or those of its edges on average.
        carried = 1.0 if noise.edges is None else 2.0 * len(noise.edges) / noisy.size
        variance = float(noise.scales.variances[0]) * carried
        width = math.sqrt(variance / 2.0)
        cutoff = self.threshold * math.log(noisy.size) * width

        def cut(values: IntArray, stretches: IntArray) -> IntArray:
            # Noise pulls the counts of a cluster apart by a variance for each cell but
            # one: with that one as the price, costs are errors but for a constant.
            # Noise of mean size b on the total has the variance 2 b^2, shared by cells.
            price = 2.0 * self.bucket_cost**2
            return kernels.group_squares(values, variance, price, stretches)

        return sorted_buckets(np.where(noisy <= cutoff, 0, noisy), policy, cut)
