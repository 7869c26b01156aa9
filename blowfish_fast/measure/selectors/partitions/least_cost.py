"""Least-cost partition: DAWA's first stage with the noise its proof needs.

Every candidate bucket costs the deviation of its cells, plus the price of a bucket,
less geometric noise; the partition of least total is kept.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.machine import threads_for
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_choice, as_number, float_above
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import SizeError
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.policies import Policy

from .base import Partition, record_distance

MOST_CELLS_ALL_LENGTHS = 4096
# What the grid of the kernel takes for a price or a scale of noise, in counts.
LEAST_PRICE = 1e-9
LARGEST_PRICE = 1e12
QUANTILE = (3, 4)


class LeastCost(Partition):
    """Choose the intervals of least noisy cost.

    Parameters
    ----------
    lengths : Literal['powers', 'all'], default 'powers'
        Candidates have lengths that are powers of two, at every offset, or all lengths,
        for at most 4096 cells.
    cost : Literal['deviation', 'pinball'], default 'deviation'
        The paper's absolute deviation from the mean, or the pinball deviation from the
        third quartile, whose noise is four times smaller.
    offset : float, default 4.0
        A public number that is added to the price of a bucket, in units of its noise
        scale, so that short candidates, of which there are more, do not win by luck.

    Notes
    -----
    Guarantee: epsilon-private choice of buckets under the policy it is given.
    Neighbours: one record added or removed; half of epsilon under moves (Lemma LC2).
    Sensitivity: a bucket of L cells changes its deviation by at most 2 - 2/L; noise of
        scale (largest + own sensitivity) / epsilon goes on every candidate, singletons
        included, and is never clamped. Costs and noise are integers on a public grid,
        so the minimum is exact.
    Error: expected cost within 4 n D ln(candidates / delta) / epsilon of the optimum
        (Theorem 1 of the paper of `Dawa`).
    Complexity: O(n log^2 n) time for powers of two, O(n) memory.
    Source: the paper of `Dawa`, section 3; public implementations use half the noise,
        none on singletons, and clamp; proof in ``docs/proofs/dawa.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(32)
    >>> steps = [0] * 8 + [500] * 8 + [20] * 8 + [900] * 8
    >>> policy, asked = bf.policies.AddRemove(line), bf.workloads.Identity(line)
    >>> mechanism = bf.Dawa(policy, asked, epsilon=20, partition=LeastCost())
    >>> mechanism.release(steps, rng=1).details["edges"].tolist()
    [0, 8, 16, 24, 32]
    """

    name = "least_cost"
    default_share = Fraction(1, 4)
    """The paper's quarter of epsilon."""

    def __init__(
        self,
        lengths: Literal["powers", "all"] = "powers",
        *,
        cost: Literal["deviation", "pinball"] = "deviation",
        offset: float = 4.0,
    ) -> None:
        self.lengths = as_choice(lengths, "lengths", ("powers", "all"))
        self.cost = as_choice(cost, "cost", ("deviation", "pinball"))
        self.offset = as_number(offset, "offset", 0, 2**10)

    def _check(self, policy: Policy, cells: int) -> None:
        if self.lengths == "all" and cells > MOST_CELLS_ALL_LENGTHS:
            raise SizeError(
                f'lengths="all" compares {cells * (cells + 1) // 2:,} intervals; it is '
                f'offered up to {MOST_CELLS_ALL_LENGTHS} cells. Use lengths="powers"'
            )

    def _check_epsilon(self, policy: Policy, cells: int, epsilon: Fraction) -> None:
        from blowfish_fast.kernels.window_costs.count_grid import grid_units

        # The kernel refuses prices and scales that do not fit 64 bits, whatever the
        # counts; those are cut where they fit.
        nothing = np.zeros(cells, dtype=np.int64)
        (_, prices, scales), options = self.candidates(nothing, policy, epsilon)
        grid_units(nothing, 0, prices, scales, options["step"])

    def _choose(
        self, counts: IntArray, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> Buckets:
        candidates, step = self.candidates(counts, policy, epsilon)
        if self.lengths == "all":
            edges = kernels.least_cost_partition_all(*candidates, rng.stream(), **step)
        else:
            edges = kernels.least_cost_partition(
                *candidates, rng.stream(), threads=threads_for(counts.size), **step
            )
        return Buckets(edges)

    def candidates(
        self, counts: IntArray, policy: Policy, epsilon: Fraction
    ) -> tuple[tuple[IntArray, FloatArray, FloatArray], dict[str, Any]]:
        """Return what the kernels of this partition take.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            True counts.
        policy : Policy
            The policy, without constraints.
        epsilon : Fraction
            What the choice may use.

        Returns
        -------
        candidates : tuple of three arrays
            Counts that fit the grid, prices of buckets and scales of their noise, by
            length.
        options : dict[str, object]
            The grid, and the kind of cost.
        """
        noise = self.noise(counts.size, epsilon / record_distance(policy))
        prices = self.bucket_cost + self.offset * noise.scales
        quantile = QUANTILE if self.cost == "pinball" else None
        clipped = np.minimum(counts, noise.cap)
        return (clipped, prices, noise.scales), {
            "step": noise.step,
            "quantile": quantile,
        }

    def noise(self, cells: int, epsilon: Fraction) -> CandidateNoise:
        """Return grid and scale of each length, for one added record: Lemma LC5.

        Parameters
        ----------
        cells : int
            Number of cells.
        epsilon : Fraction
            What the partition may use.

        Returns
        -------
        CandidateNoise
            The noise of the candidates.
        """
        if self.lengths == "powers":
            sizes = [2**power for power in range(cells.bit_length())]
        else:
            sizes = list(range(1, cells + 1))
        own, other = self._sensitivities(sizes)
        smallest = float(min(own) + other) / float(epsilon)
        step, cap = kernels.partition_grid(cells, smallest)
        grid = Fraction(step)
        largest = math.ceil(other / grid)
        scales = [
            float_above((math.ceil(sensitivity / grid) + largest) * grid / epsilon)
            for sensitivity in own
        ]
        return CandidateNoise(np.array(scales), step, cap)

    def _sensitivities(self, sizes: list[int]) -> tuple[list[Fraction], Fraction]:
        """Return how far a record moves a bucket, and another: Lemmas LC4 and LC7."""
        if self.cost == "deviation":
            own = [Fraction(2) - Fraction(2, size) for size in sizes]
            return own, max(own)
        quantile = Fraction(*QUANTILE)
        other = max(quantile, 1 - quantile)
        return [Fraction(0) if size == 1 else 1 - other for size in sizes], other

    def _undrawn(self, counts: IntArray, policy: Policy) -> Buckets:
        if counts.size == 1:
            return Buckets.single_cells(1)
        # Without an edge nothing is drawn, and a bucket may cost nothing at all.
        price = min(max(self.bucket_cost, LEAST_PRICE), LARGEST_PRICE)
        step, cap = kernels.partition_grid(counts.size, price)
        powers = counts.size.bit_length()
        prices = np.full(powers, price)
        edges = kernels.least_cost_partition(np.minimum(counts, cap), prices, step=step)
        return Buckets(edges)


class CandidateNoise(NamedTuple):
    """Noise of the candidates.

    Attributes
    ----------
    scales : ndarray of float64, shape (lengths,)
        Scale of each length, in counts.
    step : float
        The public grid of costs.
    cap : int
        The largest count; larger ones are cut.
    """

    scales: FloatArray
    step: float
    cap: int
