"""What partitions share: a private choice of buckets, calibrated to the policy."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import (
    as_counts,
    as_epsilon,
    as_positive,
    as_whole,
)
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.policies import Policy


class Partition(ABC):
    """Chooses, privately, which neighbouring cells share a bucket.

    It weighs what one more bucket will cost (`priced`) against the error of taking the
    cells of a bucket as equal.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> partition = bf.partitions.LeastCost()
    >>> float(partition.default_share), partition.priced(3.0).bucket_cost
    (0.25, 3.0)
    """

    name: ClassVar[str]
    bucket_cost: float = 1.0
    loss_range: ClassVar[int] = 2
    """By how many epsilons the log odds of two outcomes may change, see `parts`."""

    def parts(self, cells: int) -> tuple[Fraction, ...]:
        """Return which parts of epsilon successive draws take, on so many cells."""
        return (Fraction(1),)

    def priced(self, bucket_cost: float) -> Self:
        """Return the same partition for buckets that cost so much noise; public."""
        other = copy.copy(self)
        other.bucket_cost = bucket_cost
        return other

    @property
    @abstractmethod
    def default_share(self) -> Fraction:
        """Part of epsilon to spend here; by default what served benchmarks best."""

    def select(
        self, counts: IntArray, *, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> Buckets:
        """Return buckets, epsilon-private under `policy`.

        Nothing is drawn where the policy has no edges.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            True counts.
        policy : Policy
            The policy, without constraints.
        epsilon : Fraction
            What the choice may use.
        rng : Randomness
            The source of all noise.

        Returns
        -------
        Buckets
            The buckets.
        """
        self.check_feasible(policy, counts.size, epsilon)
        if counts.size == 1 or record_distance(policy) == 0:
            return self._undrawn(counts, policy)
        return self._choose(counts, policy, epsilon, rng)

    @abstractmethod
    def _choose(
        self, counts: IntArray, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> Buckets:
        """Draw the buckets."""

    def _undrawn(self, counts: IntArray, policy: Policy) -> Buckets:
        """Return the buckets where nothing is drawn."""
        return Buckets.single_cells(counts.size)

    def check_feasible(self, policy: Policy, cells: int, epsilon: Fraction) -> None:
        """Refuse what `select` could not do on any counts, by public values alone.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints, under which buckets would be chosen.
        cells : int
            The number of cells to choose from.
        epsilon : Fraction
            What the choice may cost.

        Raises
        ------
        BlowfishError
            If the domain is not offered, or epsilon too small or too large.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> full, tree = bf.policies.Full(bf.Domain(64)), bf.partitions.DyadicTree()
        >>> tree.check_feasible(full, 64, Fraction(1))
        """
        self._check(policy, cells)
        if cells > 1 and record_distance(policy):
            self._check_epsilon(policy, cells, epsilon)

    def _check(self, policy: Policy, cells: int) -> None:  # noqa: B027
        """Refuse domains for which the partition is not offered."""

    def _check_epsilon(  # noqa: B027
        self, policy: Policy, cells: int, epsilon: Fraction
    ) -> None:
        """Refuse an epsilon at which nothing can be drawn."""


def record_distance(policy: Policy) -> int:
    """Return how many additions and removals of a record an edge is: Lemma LC2.

    A move is one of each; nothing moves at no cost.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(4)
    >>> record_distance(bf.policies.AddRemove(line))
    1
    >>> record_distance(bf.policies.Line(line))
    2
    """
    if policy.has_moves:
        return 2
    return 1 if policy.has_bottom else 0


def connected_parts(policy: Policy) -> IntArray:
    """Return the connected part of the policy of each cell; its total may be public."""
    labels = policy.components().labels
    return np.zeros(policy.domain.size, np.int64) if labels is None else labels


def partition_cost(counts: Any, buckets: Buckets, *, epsilon: Any) -> float:
    """Return the cost of a partition of known data (Definition 5 of the DAWA paper).

    That is the deviation of the cells from their bucket's mean, plus the mean absolute
    noise 1/epsilon of each bucket. It is for research and belongs to no release.

    Parameters
    ----------
    counts : array-like, shape (cells,)
        True counts.
    buckets : Buckets
        The partition.
    epsilon : number, str or Fraction
        What the counts of the buckets would be paid with.

    Returns
    -------
    float
        The cost.

    Examples
    --------
    >>> import numpy as np
    >>> partition_cost([5, 7, 1, 1], Buckets(np.array([0, 2, 4])), epsilon=1)
    4.0
    """
    exact = as_counts(counts, (buckets.cells,))
    along = exact if buckets.order is None else exact[buckets.order]
    noise = buckets.count / float(as_epsilon(epsilon))
    return kernels.partition_cost(along, buckets.edges) + noise


def cost_bound(cells: int, candidates: int, *, delta: float, epsilon: Any) -> float:
    """Bound how far a private partition's cost lies above the optimum (Theorem 1).

    With probability 1 - delta the excess is at most 4 D n ln(candidates / delta) /
    epsilon, where D = 2 bounds the sensitivity of a bucket's cost.

    Parameters
    ----------
    cells : int
        Number of cells n.
    candidates : int
        Number of candidate buckets.
    delta : float
        The probability that the bound does not hold, below 1.
    epsilon : number, str or Fraction
        The part of the budget that is spent on the partition.

    Returns
    -------
    float
        The bound.

    Raises
    ------
    InputError
        If a number is out of range.

    Examples
    --------
    >>> round(cost_bound(1024, 11 * 1024, delta=0.05, epsilon=0.5))
    201934
    """
    miss = as_positive(delta, "delta")
    if miss >= 1.0:
        raise InputError("delta must lie below 1", received=repr(delta))
    odds = as_whole(candidates, "candidates", 1) / miss
    each = 8.0 * math.log(odds) / float(as_epsilon(epsilon))
    return as_whole(cells, "cells", 1) * each
