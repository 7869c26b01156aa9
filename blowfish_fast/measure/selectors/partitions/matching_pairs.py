"""MatchingPairs: cells of similar counts in pairs, wherever they lie.

Pairs within a window are found by a dynamic programme, any pairs by maximum-weight
matching (``rustworkx.max_weight_matching``). Lemma MP6 asks for the exact minimum of a
fixed order: by total cost, then mate of cell 0, of cell 1, ...; alone comes first.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast._support.validation import as_whole
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import SizeError
from blowfish_fast.measure.noise import check_scale
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.policies import Policy

from .base import Partition, connected_parts, record_distance

MOST_CELLS = 512
WIDEST_PROGRAMME = 8
MOST_ROUNDS = 8
# For blossoms: fine enough that ties are rare, coarse enough for 128-bit integers.
NOISE_BITS = 34
FINEST_BITS = 48
CAP_BITS = 44
# Prices of all cells together, in steps, so that sums fit 64 bits; more is cut off.
PRICE_BITS = 57
# The solver adds a few weights; far below 127 bits none of its sums overflows.
WEIGHT_BITS = 116


class MatchingPairs(Partition):
    """Choose the pairs of least noisy cost.

    Parameters
    ----------
    window : int, optional
        Cells may be paired if they lie at most so far apart in C order, and in one
        connected part of the policy. Windows up to 8 serve any number of cells; wider
        ones, and None for every pair, serve up to 512 and need the extra ``matching``.
    rounds : int, default 1
        Buckets are paired in so many rounds of equal parts of epsilon, and hold at most
        2^rounds cells.

    Notes
    -----
    Guarantee: epsilon-private choice of buckets under the policy it is given.
    Neighbours: one record added or removed; half of epsilon under moves (Lemma LC2).
    Sensitivity: one record changes the cost of a pair by at most 1 and that of a single
        cell not at all; geometric noise of scale 2 / epsilon goes on every pair and of
        scale 1 / epsilon on every cell alone. Later rounds pair buckets of different
        sizes, which one record changes by up to 2 a / (a + b) for a >= b cells. Costs
        and noise are integers on a public grid and the minimum is exact, ties by a
        fixed order; an approximate matching would void the proof.
    Error: with probability 1 - delta the cost exceeds the least one by at most
        n ln(candidates / delta) / epsilon, twice that under moves (one round).
    Complexity: O(n^3) time for all pairs; O(n w 2^w) for a window of w cells, with
        n 2^(w - 1) bytes.
    Source: the paper of `Matching`, section 5.2, with noise on the integers, half of
        epsilon under moves and no constant from the data; proof in
        ``docs/proofs/buckets_of_equals.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(6)
    >>> policy, asked = bf.policies.AddRemove(line), bf.workloads.Identity(line)
    >>> mechanism = bf.Dawa(policy, asked, epsilon=60, partition=MatchingPairs())
    >>> release = mechanism.release([7, 90, 40, 90, 7, 40], rng=1)
    >>> release.details["buckets"]
    4
    """

    name = "matching_pairs"
    default_share = Fraction(1, 3)

    def __init__(self, window: int | None = None, *, rounds: int = 1) -> None:
        self.window = None if window is None else as_whole(window, "window", 1)
        self.rounds = as_whole(rounds, "rounds", 1, MOST_ROUNDS)
        if self._by_blossoms:
            # Found out before anything is charged.
            rustworkx_module()

    def _check(self, policy: Policy, cells: int) -> None:
        if self._by_blossoms and cells > MOST_CELLS:
            pairs = "every pair" if self.window is None else f"window={self.window}"
            raise SizeError(
                f"pairs of {cells:,} cells are too many to compare: {pairs} is offered "
                f"up to {MOST_CELLS} cells. Use window=1 .. 8, or partitions.NoisySort"
            )

    def _check_epsilon(self, policy: Policy, cells: int, epsilon: Fraction) -> None:
        each = epsilon / record_distance(policy) / self.rounds
        # Buckets hold 1 to 2^(rounds - 1) cells by the last round. One record changes
        # a pair of equal ones least and of the most different ones most.
        for largest in (1, 2 ** (self.rounds - 1)):
            noise = self.noise(cells, each, np.array([1, largest]))
            check_scale(noise.pair, self.name)

    def _choose(
        self, counts: IntArray, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> Buckets:
        cells = counts.size
        each = epsilon / record_distance(policy) / self.rounds
        parts = connected_parts(policy)
        labels = np.arange(cells)
        for _ in range(self.rounds):
            sizes = np.bincount(labels)
            noise = self.noise(cells, each, sizes)
            totals = np.zeros(sizes.size, dtype=np.int64)
            np.add.at(totals, labels, np.minimum(counts, noise.cap))
            part = np.empty(sizes.size, dtype=np.int64)
            part[labels] = parts
            mates = self._mates(totals, sizes, part, noise, rng)
            # Buckets are numbered by the first of their cells.
            named = np.minimum(np.arange(sizes.size), mates)
            labels = np.unique(named, return_inverse=True)[1][labels]
        return Buckets.from_labels(labels)

    @property
    def _by_blossoms(self) -> bool:
        return self.window is None or self.window > WIDEST_PROGRAMME

    def noise(self, cells: int, epsilon: Fraction, sizes: IntArray) -> PairNoise:
        """Return the public grid and the noise of both kinds of candidates: Lemma MP5.

        Parameters
        ----------
        cells : int
            Number of cells.
        epsilon : Fraction
            The budget of one round when one record is added or removed.
        sizes : ndarray of int64, shape (buckets,)
            How many cells each bucket holds.

        Returns
        -------
        PairNoise
            The noise and the prices.
        """
        large, small = int(sizes.max()), int(sizes.min())
        change = Fraction(2 * large, large + small)
        scale = float(change / epsilon)
        if self._by_blossoms:
            magnitude = math.frexp(scale)[1]
            grid = min(0, max(magnitude - NOISE_BITS, -FINEST_BITS))
            cap = 1 << CAP_BITS
            dearest = 1 << (CAP_BITS + FINEST_BITS)
        else:
            coarse, cap = kernels.partition_grid(cells, scale)
            grid = kernels.step_exponent(coarse)
            # Later rounds multiply totals by sizes.
            cap >>= self.rounds
            dearest = (1 << PRICE_BITS) // cells
        step = Fraction(2) ** grid
        steps = math.ceil(change / step)
        price = min(round(Fraction(self.bucket_cost) / step), dearest)
        return PairNoise(
            single=steps / epsilon,
            pair=2 * steps / epsilon,
            price=price,
            grid=grid,
            cap=cap,
        )

    def _mates(
        self,
        totals: IntArray,
        sizes: IntArray,
        parts: IntArray,
        noise: PairNoise,
        rng: Randomness,
    ) -> IntArray:
        if not self._by_blossoms and self.window is not None:
            return kernels.window_mates(
                totals,
                sizes,
                parts,
                window=self.window,
                grid=noise.grid,
                price=noise.price,
                scales=(noise.single, noise.pair),
                words=rng.stream(),
            )
        first, second = np.triu_indices(totals.size, 1)
        offered = parts[first] == parts[second]
        if self.window is not None:
            offered &= second - first <= self.window
        first, second = first[offered], second[offered]
        deviations = pair_deviations(totals, sizes, first, second, noise.grid)
        alone = noise.price - _draw_geometric(noise.single, totals.size, rng)
        paired = deviations + noise.price - _draw_geometric(noise.pair, first.size, rng)
        return cheapest_mates(alone, first, second, paired)


class PairNoise(NamedTuple):
    """Noise scales and prices in steps of 2^grid counts.

    Attributes
    ----------
    single : Fraction
        Scale of the noise on a bucket alone.
    pair : Fraction
        Scale of the noise on a pair.
    price : int
        Price of a bucket.
    grid : int
        Binary logarithm of the step.
    cap : int
        The largest count; larger ones are cut.
    """

    single: Fraction
    pair: Fraction
    price: int
    grid: int
    cap: int


def pair_deviations(
    totals: IntArray, sizes: IntArray, first: IntArray, second: IntArray, grid: int
) -> IntArray:
    """Return how far pairs of buckets deviate from their mean, in steps of 2^grid.

    Parameters
    ----------
    totals : ndarray of int64, shape (buckets,)
        Records of each bucket.
    sizes : ndarray of int64, shape (buckets,)
        Cells of each bucket.
    first : ndarray of int64, shape (pairs,)
        One bucket of each pair.
    second : ndarray of int64, shape (pairs,)
        The other one.
    grid : int
        Binary logarithm of the step.

    Returns
    -------
    ndarray of object, shape (pairs,)
        Whole numbers of any size.
    """
    both = (sizes[first] + sizes[second]).astype(object)
    gap = np.abs(sizes[second] * totals[first] - sizes[first] * totals[second])
    deviations: IntArray = (gap.astype(object) * 2 ** (1 - grid)) // both
    return deviations


def _draw_geometric(scale: Fraction, size: int, rng: Randomness) -> IntArray:
    """Return geometric noise as integers of any size."""
    noise = rng.geometric(scale.numerator, scale.denominator, size=size)
    return noise.astype(object)


def rustworkx_module() -> Any:
    """Return rustworkx, or say which extra brings it."""
    return require(
        "rustworkx", extra="matching", purpose="the best pairing of any two cells"
    )


def cheapest_mates(
    alone: AnyArray, first: IntArray, second: IntArray, paired: AnyArray
) -> IntArray:
    """Return the mate of each cell in the cheapest pairing; a cell alone is its own.

    Costs are integers of any size. Among equal costs a fixed order decides: Lemma MP6.

    Parameters
    ----------
    alone : ndarray of object, shape (cells,)
        Cost of each cell alone.
    first : ndarray of int64, shape (pairs,)
        The lower cell of each pair; pairs stand once.
    second : ndarray of int64, shape (pairs,)
        The higher one.
    paired : ndarray of object, shape (pairs,)
        Cost of each pair.

    Returns
    -------
    ndarray of int64, shape (cells,)
        The mates.
    """
    alone = np.asarray(alone, dtype=object)
    savings = alone[first] + alone[second] - np.asarray(paired, dtype=object)
    cells = alone.size
    assert savings.size == 0 or (cells + 1) * abs(savings).max() < 2**WEIGHT_BITS
    mates = _most_saving(cells, first, second, savings)
    # Each bucket of this pairing becomes dearer by 1 and costs are spread by more than
    # its number of buckets: any other pairing of equal cost is now cheaper.
    single = (mates == np.arange(cells)).astype(object)
    chosen = (mates[first] == second).astype(object)
    spread = (cells + 1) * savings + single[first] + single[second] - chosen
    if (mates == _most_saving(cells, first, second, spread)).all():
        return mates
    return _settle_in_order(cells, first, second, savings)


def _settle_in_order(
    cells: int, first: IntArray, second: IntArray, savings: AnyArray
) -> IntArray:
    """Settle one cell after the other, its mate as near as the minimum allows."""
    settled = np.arange(cells)
    waiting = np.ones(cells, dtype=bool)
    for cell in range(cells):
        if not waiting[cell]:
            continue
        left = waiting[first] & waiting[second]
        first, second, savings = first[left], second[left], savings[left]
        distance = np.where(first == cell, second - cell, 0).astype(object)
        mates = _most_saving(cells, first, second, (cells + 1) * savings - distance)
        mate = mates[cell]
        settled[cell], settled[mate] = mate, cell
        waiting[cell] = waiting[mate] = False
    return settled


def _most_saving(
    cells: int, first: IntArray, second: IntArray, savings: AnyArray
) -> IntArray:
    """Return the mates of one pairing that saves the most."""
    rustworkx = rustworkx_module()
    gains = np.flatnonzero(savings > 0)
    graph = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(cells))
    graph.add_edges_from(
        list(
            zip(
                first[gains].tolist(),
                second[gains].tolist(),
                savings[gains].tolist(),
                strict=True,
            )
        )
    )
    # The solver proves each optimum by its dual, which takes no time beside finding it.
    matching = rustworkx.max_weight_matching(graph, weight_fn=int, verify_optimum=True)
    mates = np.arange(cells)
    for cell, mate in matching:
        mates[cell], mates[mate] = mate, cell
    return mates
