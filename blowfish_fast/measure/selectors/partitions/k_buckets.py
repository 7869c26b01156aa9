"""A given number of buckets, their borders drawn one by one (StructureFirst).

    best k - 1 buckets of the rest ......|<- last bucket ->|
                                         drawn by the error of both

The last border is drawn first; the next one then faces one bucket less.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError
from blowfish_fast.policies import Policy

from .base import Partition, record_distance

if TYPE_CHECKING:
    from blowfish_fast.measure.randomness import Randomness

MOST_STRETCHES = 1024
"""Borders are looked for between this many stretches of cells."""


class KBuckets(Partition):
    """Draw the borders of a given number of buckets by their squared error.

    Parameters
    ----------
    buckets : int, optional
        Number of buckets; None for four times the square root of the number of cells,
        at most half of the stretches between candidate borders.
    largest_count : int
        A public number; larger counts are cut to it while the borders are drawn. One
        record moves squared errors apart by up to twice this number, so it is best
        near the height of the steps that matter, and must not be read off the data.

    Notes
    -----
    Guarantee: epsilon-private choice of buckets under the policy it is given.
    Neighbours: one record added or removed; under a policy with moves half of epsilon
        is used, since a move is a removal and an addition.
    Sensitivity: a record moves the squared error of each candidate of a draw by at most
        2 F - 1, with F the largest count, and no two of them apart by more than 2 F;
        the k - 1 draws share epsilon.
    Error: none proved.
    Complexity: O(n + m^2 k) time, m at most 1024 borders; O(n + m (m + k)) memory.
    Source: the paper of `StructureFirst`, section 5; proof in
        ``docs/proofs/structure_first.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(32)
    >>> steps = [0] * 8 + [500] * 8 + [20] * 8 + [900] * 8
    >>> policy, asked = bf.policies.AddRemove(line), bf.workloads.Identity(line)
    >>> mechanism = bf.Dawa(policy, asked, epsilon=4000, partition=KBuckets(4))
    >>> mechanism.release(steps, rng=1).details["edges"].tolist()
    [0, 8, 16, 24, 32]
    """

    name = "k_buckets"
    loss_range = 1
    default_share = Fraction(1, 10)

    def __init__(
        self, buckets: int | None = None, *, largest_count: int = 1000
    ) -> None:
        if buckets is not None and buckets < 1:
            raise InputError(f"buckets must be at least 1; received {buckets!r}")
        if largest_count < 1:
            raise InputError(
                f"largest_count must be at least 1; received {largest_count!r}"
            )
        self.buckets = buckets
        self.largest_count = largest_count

    @property
    def reach(self) -> int:
        """How far a record moves the errors of two partitions apart."""
        return 2 * self.largest_count

    def count(self, cells: int) -> int:
        """Return the number of buckets on so many cells."""
        stretches = min(cells, MOST_STRETCHES)
        if self.buckets is not None:
            return min(self.buckets, stretches)
        return min(math.ceil(4 * math.sqrt(cells)), (stretches + 1) // 2)

    def parts(self, cells: int) -> tuple[Fraction, ...]:
        """Return an equal part for each of the k - 1 borders."""
        draws = max(self.count(cells) - 1, 1)
        return (Fraction(1, draws),) * draws

    def _check(self, policy: Policy, cells: int) -> None:
        kernels.squares_grid(cells, self.largest_count)

    def rate(self, cells: int, epsilon: Fraction) -> Fraction:
        """Return how fast weights fall with errors in each draw: Lemma SF4.

        `epsilon` is the budget when one record is added or removed.
        """
        return epsilon / ((self.count(cells) - 1) * self.reach)

    def _choose(
        self, counts: IntArray, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> Buckets:
        """Return the buckets between the borders that were drawn."""
        cells, buckets = counts.size, self.count(counts.size)
        bits = kernels.squares_grid(cells, self.largest_count)
        borders = evenly_spaced(cells, min(cells, MOST_STRETCHES))
        if buckets in (1, borders.size - 1):
            return Buckets(borders if buckets > 1 else np.array([0, cells]))
        rate = self.rate(cells, epsilon / record_distance(policy)) / 2**bits
        errors = kernels.bucket_errors(
            np.minimum(counts, self.largest_count), borders, bits
        )
        heads = kernels.best_heads(errors, buckets - 1)
        log_factorials = _log_factorials(borders.size)
        words = rng.stream()
        kept = [borders.size - 1]
        for rest in range(buckets - 1, 0, -1):
            # `rest` buckets end at the border that is drawn, so it is at least that.
            candidates = np.arange(rest, kept[-1])
            costs = heads[rest - 1, candidates] + errors[kept[-1], candidates]
            drawn = kernels.choose_by_cost(
                words,
                buckets - rest,
                costs[None],
                rate,
                _ways(candidates - 1, rest - 1, log_factorials),
            )
            kept.append(int(candidates[drawn[0]]))
        return Buckets(borders[np.array([0, *kept[::-1]])])


def evenly_spaced(cells: int, stretches: int) -> IntArray:
    """Return borders that cut cells into stretches of nearly the same length."""
    return np.arange(stretches + 1) * cells // stretches


def _log_factorials(count: int) -> FloatArray:
    """Return ln 0!, ln 1!, ... ln count!."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, count + 1)))])


def _ways(places: IntArray, chosen: int, log_factorials: FloatArray) -> FloatArray:
    """Return the logarithm of how many sets of `chosen` borders lie within places.

    As a prior it makes all partitions equally likely before the data speak; without
    it each border would fall halfway between the last one and the start.
    """
    ways: FloatArray = (
        log_factorials[places]
        - log_factorials[chosen]
        - log_factorials[places - chosen]
    )
    return ways
