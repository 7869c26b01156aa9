"""Sorts of noisy counts: cells in groups of similar ones; what follows noise is free.

`ThresholdedSort` takes small noisy counts for 0 before it sorts.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import as_number, as_whole
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.noise import WEIGHT_BITS, Scales, scales_within
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.policies import ABSENT, Policy

from .base import Partition, connected_parts, record_distance


class SortedCounts(Partition):
    """Group cells by their noisy counts, which are all that `group` reads."""

    def noise(self, policy: Policy, epsilon: Fraction) -> CellNoise:
        """Return a draw per cell, or per edge where edges are few: Lemma NS2.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        epsilon : Fraction
            What the partition may use.

        Returns
        -------
        CellNoise
            The noise.
        """
        edges = _few_edges(policy)
        draws, worst = (
            (policy.domain.size, record_distance(policy))
            if edges is None
            else (len(edges), 1)
        )
        weights = np.full(draws, 2**WEIGHT_BITS, dtype=np.int64)
        exact = np.zeros(draws, dtype=bool)
        scales = scales_within(weights, worst * 2**WEIGHT_BITS, epsilon, exact)
        return CellNoise(scales, edges)

    def _choose(
        self, counts: IntArray, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> Buckets:
        noise = self.noise(policy, epsilon)
        noisy = noisy_counts(counts, noise, rng)
        return Buckets.from_labels(self.group(noisy[None], policy, noise)[0])

    @abstractmethod
    def group(self, noisy: IntArray, policy: Policy, noise: CellNoise) -> IntArray:
        """Return a group for each cell, in every row of noisy counts.

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows, cells)
            Noisy counts.
        policy : Policy
            The policy, without constraints.
        noise : CellNoise
            The noise in them.

        Returns
        -------
        ndarray of int64, shape (rows, cells)
            The groups.
        """


class NoisySort(SortedCounts):
    """Group cells whose noisy counts are close, at most `largest` in a bucket.

    Cells of different connected parts of the policy never share a bucket.

    Notes
    -----
    Guarantee: epsilon-private choice of buckets under the policy it is given.
    Neighbours: one record moves along one edge of the policy.
    Sensitivity: of the cells, 1 when a record is added or removed and 2 when it moves;
        discrete Laplace noise of that scale over epsilon goes on every cell. Where a
        policy has fewer than two edges per cell, noise of scale 1 / epsilon goes on
        every edge instead. Sorting and grouping read noisy counts only.
    Complexity: O(n log n) time, O(n) memory.
    Source: this project, after the paper of `Matching`, section 5.2; proof in
        ``docs/proofs/buckets_of_equals.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(32)
    >>> steps = [0] * 8 + [500] * 8 + [20] * 8 + [900] * 8
    >>> policy, asked = bf.policies.AddRemove(line), bf.workloads.Identity(line)
    >>> mechanism = bf.Dawa(policy, asked, epsilon=20, partition=NoisySort())
    >>> mechanism.release(steps, rng=1).details["edges"].tolist()
    [0, 8, 16, 24, 32]
    """

    name = "noisy_sort"
    default_share = Fraction(3, 4)
    """Large: noisy counts alone tell cells apart, while large totals stand noise."""

    def __init__(self, largest: int | None = None) -> None:
        self.largest = None if largest is None else as_whole(largest, "largest", 1)

    def group(self, noisy: IntArray, policy: Policy, noise: CellNoise) -> IntArray:
        """Sort the noisy counts and cut them where the cost is least.

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows, cells)
            Noisy counts, a row for each draw.
        policy : Policy
            The policy, without constraints.
        noise : CellNoise
            The noise in them.

        Returns
        -------
        ndarray of int64, shape (rows, cells)
            The group of each cell, numbered by its first cell.
        """

        def cut(values: IntArray, stretches: IntArray) -> IntArray:
            return kernels.group_sorted(
                values, self.bucket_cost, self.largest, stretches
            )

        # No count is negative, so what lies below 0 is as good as 0.
        return sorted_groups(np.maximum(noisy, 0), policy, cut)


class ThresholdedSort(SortedCounts):
    """Cluster cells whose noisy counts are close, all small ones with the empty.

    Noisy counts up to `threshold` widths of their noise, times the logarithm of the
    number of cells, are taken for 0. At 1 nearly all empty cells are.

    Notes
    -----
    Guarantee: epsilon-private choice of buckets under the policy it is given.
    Neighbours: one record moves along one edge of the policy.
    Sensitivity: that of the noisy counts of `NoisySort`; thresholds, sorting and
        clusters read noisy counts only.
    Complexity: O(n log n) time, O(n) memory.
    Source: the paper of `Ahp`, with clusters of least cost instead of a greedy scan;
        proof in ``docs/proofs/buckets_of_equals.md``.

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
        self.threshold = as_number(threshold, "threshold", 0)

    def group(self, noisy: IntArray, policy: Policy, noise: CellNoise) -> IntArray:
        """Cut off what is small, sort and cluster noisy counts alone: Lemma TS1.

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows, cells)
            Noisy counts, a row for each draw.
        policy : Policy
            The policy, without constraints.
        noise : CellNoise
            The noise in them.

        Returns
        -------
        ndarray of int64, shape (rows, cells)
            The cluster of each cell, numbered by its first cell.
        """
        cells = noisy.shape[1]
        # Draws that a cell carries: its own, or those of its edges on average.
        carried = 1.0 if noise.edges is None else 2.0 * len(noise.edges) / cells
        variance = float(noise.scales.variances[0]) * carried
        width = math.sqrt(variance / 2.0)
        cutoff = self.threshold * math.log(cells) * width

        def cut(values: IntArray, stretches: IntArray) -> IntArray:
            # Noise pulls the counts of a cluster apart by a variance for each cell but
            # one: with that one as the price, costs are errors but for a constant.
            # Noise of mean size b on the total has the variance 2 b^2, shared by cells.
            price = 2.0 * self.bucket_cost**2
            return kernels.group_squares(values, variance, price, stretches)

        return sorted_groups(np.where(noisy <= cutoff, 0, noisy), policy, cut)


class CellNoise(NamedTuple):
    """The noise of the counts that are sorted.

    Attributes
    ----------
    scales : Scales
        Scales of the draws.
    edges : ndarray of int64, shape (edges, 2), or None
        The edges they belong to; None for one draw per cell.
    """

    scales: Scales
    edges: IntArray | None


def noisy_counts(counts: IntArray, noise: CellNoise, rng: Randomness) -> IntArray:
    """Return the counts with their noise: all that the groups are made from.

    Parameters
    ----------
    counts : ndarray of int64, shape (cells,)
        True counts.
    noise : CellNoise
        The noise.
    rng : Randomness
        The source of all noise.

    Returns
    -------
    ndarray of int64, shape (cells,)
        Noisy counts; zeros where epsilon is too small to tell anything.
    """
    scales, edges = noise
    rate = int(scales.rates[0])
    if rate == 0:
        # An epsilon too small to tell anything buys nothing, and reads nothing.
        return np.zeros(counts.size, dtype=np.int64)
    drawn = rng.laplace(scales.unit, rate, size=scales.rates.size)
    return counts + on_cells(drawn, edges, counts.size)


def sorted_groups(
    rows: IntArray,
    policy: Policy,
    cut: Callable[[IntArray, IntArray], IntArray],
) -> IntArray:
    """Sort each row by value, connected parts by themselves, and cut it into groups.

    Groups are numbered by the first of their cells, in every row from 0.

    Parameters
    ----------
    rows : ndarray of int64, shape (rows, cells)
        Noisy counts.
    policy : Policy
        The policy, whose connected parts are sorted by themselves.
    cut : Callable[[ndarray of int64, ndarray of int64], ndarray of int64]
        Returns the edges of the groups, given sorted values and where parts begin.

    Returns
    -------
    ndarray of int64, shape (rows, cells)
        The groups.
    """
    parts = connected_parts(policy)
    values = rows.reshape(-1)
    each = (parts + (parts.max() + 1) * np.arange(len(rows))[:, None]).reshape(-1)
    order = np.lexsort((values, each))
    turns = np.flatnonzero(np.diff(each[order])) + 1
    edges = cut(values[order], np.concatenate([[0], turns, [order.size]]))
    named = np.empty_like(order)
    named[order] = np.repeat(np.minimum.reduceat(order, edges[:-1]), np.diff(edges))
    numbers = np.unique(named, return_inverse=True)[1].reshape(rows.shape)
    groups: IntArray = numbers - numbers[:, :1]
    return groups


def on_cells(drawn: IntArray, edges: IntArray | None, cells: int) -> IntArray:
    """Add up the noise of every cell: + at the first end of an edge, - at the other.

    Parameters
    ----------
    drawn : ndarray of int64, shape (draws,)
        The draws.
    edges : ndarray of int64, shape (draws, 2), or None
        The edges; None for one draw per cell.
    cells : int
        Number of cells.

    Returns
    -------
    ndarray of int64, shape (cells,)
        The noise of each cell.
    """
    if edges is None:
        return drawn
    noise = np.zeros(cells, dtype=np.int64)
    for end, signed in ((0, drawn), (1, -drawn)):
        inside = edges[:, end] != ABSENT
        np.add.at(noise, edges[inside, end], signed[inside])
    return noise


def _few_edges(policy: Policy) -> IntArray | None:
    """List the edges if noise on them is less than noise on the cells."""
    # A cell with d edges has the variance of d draws; a draw on the cell itself, which
    # must pay for a move at both ends, has that of four.
    most = 2 * policy.domain.size - 1
    if not policy.has_moves or policy.edges_up_to(most) is None:
        return None
    return np.concatenate(list(policy.edges()))
