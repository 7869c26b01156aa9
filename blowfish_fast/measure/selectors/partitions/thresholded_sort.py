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

from .base import Partition, connected_parts, record_distance
from .noisy_sort import CellNoise, NoisySort, on_cells

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
    Source: [1]_, with clusters of least cost instead of a greedy scan; proof in
        ``docs/proofs/ahp.md``.

    References
    ----------
    .. [1] X. Zhang, R. Chen, J. Xu, X. Meng, Y. Xie. Towards accurate histogram
       publication under differential privacy. SDM 2014.

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

    def __init__(self, threshold: float = 0.35) -> None:
        if not (math.isfinite(threshold) and threshold >= 0):
            raise InputError(
                f"threshold must be a number, 0 or more; received {threshold!r}"
            )
        self.threshold = float(threshold)

    @property
    def default_share(self) -> Fraction:
        """Part of epsilon that the paper spends on the clusters at small epsilons.

        It was best on the benchmark data too, beside a half and seven tenths.
        """
        return Fraction(17, 20)

    def noise(self, policy: Policy, epsilon: Fraction) -> CellNoise:
        """Return what is drawn: one draw per cell, or per edge where edges are few."""
        return NoisySort().noise(policy, epsilon)

    def select(
        self,
        counts: IntArray,
        *,
        policy: Policy,
        epsilon: Fraction,
        rng: Randomness,
    ) -> Buckets:
        """Return clusters of cells with similar noisy counts."""
        if counts.size == 1 or record_distance(policy) == 0:
            return Buckets.single_cells(counts.size)
        noise = self.noise(policy, epsilon)
        rate = int(noise.scales.rates[0])
        if rate == 0:
            # An epsilon too small to tell anything buys nothing, and reads nothing.
            return self._clusters(np.zeros(counts.size, np.int64), policy, noise)
        drawn = rng.laplace(noise.scales.unit, rate, size=noise.scales.rates.size)
        noisy = counts + on_cells(drawn, noise.edges, counts.size)
        return self._clusters(noisy, policy, noise)

    def _clusters(self, noisy: IntArray, policy: Policy, noise: CellNoise) -> Buckets:
        """Cut off what is small, sort and cluster; this reads noisy counts only."""
        # Draws that a cell carries: its own, or those of its edges on average.
        carried = 1.0 if noise.edges is None else 2.0 * len(noise.edges) / noisy.size
        variance = float(noise.scales.variances[0]) * carried
        width = math.sqrt(variance / 2.0)
        cutoff = self.threshold * math.log(noisy.size) * width
        likely = np.where(noisy <= cutoff, 0, noisy)
        parts = connected_parts(policy)
        order = np.lexsort((likely, parts))
        turns = np.flatnonzero(np.diff(parts[order])) + 1
        stretches = np.concatenate([[0], turns, [order.size]])
        # Noise pulls the counts of a cluster apart by a variance for each cell but
        # one: with that one as the price, costs are errors but for a constant. Noise
        # of mean size b on the total has the variance 2 b^2, shared by the cells.
        edges = kernels.group_squares(
            likely[order], variance, 2.0 * self.bucket_cost**2, stretches
        )
        # Buckets are numbered by the first of their cells.
        named = np.empty_like(order)
        named[order] = np.repeat(np.minimum.reduceat(order, edges[:-1]), np.diff(edges))
        return Buckets.from_labels(np.unique(named, return_inverse=True)[1])
