"""Sampled partition: draw whole partitions by their cost, not buckets by their noise.

The exponential mechanism over all partitions into aligned dyadic intervals, sampled
exactly from a tree of weights.

    node = leaf (.49)  |  split in two (.49)  |  regular grid (.02)

Pieces: costs from ``kernels.rectangle_costs``, weights and sampling from
``kernels.dyadic_partition``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from blowfish_fast import kernels
from blowfish_fast._support.cores import threads_for
from blowfish_fast._support.typing import IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import EpsilonError, InputError
from blowfish_fast.policies import Policy

from .base import Partition, record_distance

if TYPE_CHECKING:
    from blowfish_fast.measure.randomness import Randomness

QUANTILE = (3, 4)
# Buckets longer than a sixth of a typical query count in full: chosen on the seven
# one-dimensional and four two-dimensional sets of the benchmark.
REACH = 6.0


class DyadicTree(Partition):
    """Sample a partition with probability that falls with its pinball cost.

    Parameters
    ----------
    price : float
        Cost of a bucket, in units of the noise that it will receive.
    query_cells : float
        How many cells a typical query covers; public. A query is hurt by unequal
        cells only in the buckets that its border cuts, which are rarely the short
        ones, so buckets much shorter than a query count for less.
    dimensions : int
        Number of attributes whose cells lie along the line: the border of a box
        grows with the root of its cells.

    Notes
    -----
    Guarantee: epsilon-private choice of buckets under the policy it is given.
    Neighbours: one record added or removed; under a policy with moves half of epsilon
        is used, since a move is a removal and an addition.
    Sensitivity: one record raises the pinball cost of one bucket by at most 3/4 or
        lowers it by at most 1/4, so the range over all partitions is 1 and the rate is
        epsilon, less the numerical slack of the sampler.
    Error: none proved; measured beside `LeastCost` on real data in ``docs``.
    Complexity: O(n log n) time, O(n) memory.
    Source: this project; proof in ``docs/proofs/dyadic_tree.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> policy, asked = bf.policies.AddRemove(line), bf.workloads.Identity(line)
    >>> mechanism = bf.Dawa(policy, asked, epsilon=1, partition=DyadicTree())
    >>> mechanism.release([0] * 32 + [500] * 32, rng=2).details["edges"].tolist()
    [0, 16, 32, 48, 64]
    """

    name = "dyadic_tree"
    loss_range = 1

    def __init__(
        self, *, price: float = 0.5, query_cells: float = 1.0, dimensions: int = 1
    ) -> None:
        if not 0 < price <= 2**10:
            raise InputError(f"price must lie in (0, 1024]; received {price!r}")
        if not query_cells >= 1 or dimensions < 1:
            raise InputError(
                "query_cells and dimensions must be at least 1; received "
                f"{query_cells!r} and {dimensions!r}"
            )
        self.price = float(price)
        self.query_cells = float(query_cells)
        self.dimensions = dimensions

    @property
    def default_share(self) -> Fraction:
        """Part of epsilon by dimension, from the benchmark data (docs/accuracy.md)."""
        return Fraction(1, 5) if self.dimensions == 1 else Fraction(1, 4)

    def _choose(
        self, counts: IntArray, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> Buckets:
        """Return a sampled partition."""
        edges = kernels.sample_dyadic_partition(
            counts,
            rng.stream(),
            rate=self.rate(counts.size, epsilon / record_distance(policy)),
            penalty=self.price * self.bucket_cost,
            quantile=QUANTILE,
            length_weights=self.length_weights(counts.size),
            threads=threads_for(counts.size),
        )
        return Buckets(edges)

    def length_weights(self, cells: int) -> list[float]:
        """Return how much the cost of a bucket of 2^level cells counts, at most 1.

        A public factor of at most 1 on the cost of each bucket lowers what one record
        can change, so the rate stays valid.
        """
        power = 1.0 / (2 * self.dimensions)
        levels = (cells - 1).bit_length() + 1
        return [
            min(1.0, REACH * 2**level / self.query_cells) ** power
            for level in range(levels)
        ]

    def rate(self, cells: int, epsilon: Fraction) -> Fraction:
        """Return the rate that `epsilon` allows once the sampler's slack is paid.

        Lemma DT7.
        """
        slack = kernels.sampling_slack(cells)
        if epsilon <= 2 * slack:
            raise EpsilonError(
                f"choosing a partition of {cells:,} cells needs more than "
                f"{float(2 * slack):.2g} of epsilon for the sampler's rounding; it was "
                f"given {float(epsilon):.2g}. Raise epsilon or share"
            )
        return epsilon - slack
