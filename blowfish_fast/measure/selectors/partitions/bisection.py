"""Borders drawn one by one: hierarchical bisection, and a given number of buckets.

`Bisection` cuts clusters level by level; a last draw decides how many of the cuts, in
this order, are kept. `KBuckets` draws the last border first, by the error of the bucket
behind it and of the best buckets before it; the next border faces one bucket less.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_share, as_whole
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.kernels._arguments import Words
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.policies import Policy

from .base import Partition, record_distance

SENSITIVITY = 2
"""How far one record moves the deviation of a bucket; 2 - 2/L on L cells."""

MOST_FOR_PRICES = 2**57

MOST_STRETCHES = 1024
"""Borders are looked for between this many stretches of cells."""


class Bisection(Partition):
    """Cut clusters of cells in two by the exponential mechanism.

    Parameters
    ----------
    levels : int, optional
        How many levels of cuts there are; the binary logarithm of the number of cells
        by default.
    share : Fraction, default Fraction(1, 2)
        The part of the partition's epsilon that decides how many cuts stay; the levels
        share the rest evenly.

    Notes
    -----
    Guarantee: epsilon-private choice of buckets under the policy it is given.
    Neighbours: one record added or removed; half of epsilon under moves (Lemma LC2).
    Sensitivity: a record lies in one cluster of each level, and moves the cost of each
        of its splits, and of each number of cuts, by at most 2. Costs are whole numbers
        on a public grid, so the draws are exact.
    Complexity: O(n log^2 n) time, O(n) memory.
    Source: the paper of `Php`, section 5; proof in
        ``docs/proofs/buckets_of_neighbours.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(32)
    >>> steps = [0] * 8 + [500] * 8 + [20] * 8 + [900] * 8
    >>> policy, asked = bf.policies.AddRemove(line), bf.workloads.Identity(line)
    >>> mechanism = bf.Dawa(policy, asked, epsilon=200, partition=Bisection(levels=2))
    >>> mechanism.release(steps, rng=1).details["edges"].tolist()
    [0, 8, 24, 25, 32]
    """

    name = "bisection"
    loss_range = 1
    default_share = Fraction(3, 10)
    """Best on the benchmark data; the paper's is half."""

    def __init__(
        self, levels: int | None = None, *, share: Fraction = Fraction(1, 2)
    ) -> None:
        self.levels = None if levels is None else as_whole(levels, "levels", 1, 64)
        self.share = as_share(share, "share")

    def rates(self, cells: int, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """Return how fast weights fall with costs.

        Parameters
        ----------
        cells : int
            Number of cells.
        epsilon : Fraction
            What the partition may use.

        Returns
        -------
        split : Fraction
            The rate of a split.
        number : Fraction
            The rate of the choice of how many cuts stay.
        """
        for_number = self.share * epsilon
        for_level = (epsilon - for_number) / self.levels_over(cells)
        return for_level / (2 * SENSITIVITY), for_number / (2 * SENSITIVITY)

    def parts(self, cells: int) -> tuple[Fraction, ...]:
        """Return an equal part for each level, and that of the number of buckets."""
        levels = self.levels_over(cells)
        return ((1 - self.share) / levels,) * levels + (self.share,)

    def levels_over(self, cells: int) -> int:
        """Return the number of levels on so many cells."""
        return self.levels or max((cells - 1).bit_length(), 1)

    def _choose(
        self, counts: IntArray, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> Buckets:
        """Return the buckets between the cuts that were drawn and kept: Lemma BI1."""
        cells = counts.size
        bits, cap = kernels.bisection_grid(cells)
        for_split, for_number = self.rates(cells, epsilon / record_distance(policy))
        price = min(round(self.bucket_cost * 2**bits), MOST_FOR_PRICES // cells)
        cuts, costs = _level_by_level(
            np.minimum(counts, cap),
            rng.stream(),
            levels=self.levels_over(cells),
            rate=for_split / 2**bits,
            price=price,
            bits=bits,
        )
        cuts_that_stay = kernels.choose_by_cost(
            rng.stream(), 0, costs[None], for_number / 2**bits
        )[0]
        return Buckets(np.concatenate([[0], np.sort(cuts[:cuts_that_stay]), [cells]]))


def _level_by_level(
    values: IntArray,
    words: Words,
    *,
    levels: int,
    rate: Fraction,
    price: int,
    bits: int,
) -> tuple[IntArray, IntArray]:
    """Return the cuts in the order drawn, and the cost after none, one, two ..."""
    from blowfish_fast.kernels.window_costs.baseline_costs import (
        AFTER,
        BEFORE,
        part_clusters,
        sweep_clusters,
    )

    ranked = np.argsort(values, kind="stable")
    before, after = np.empty((2, values.size), dtype=np.int64)
    starts, ends = np.array([0]), np.array([values.size])
    sides = np.array([BEFORE | AFTER])
    cuts: list[IntArray] = []
    changes: list[IntArray] = []
    drawn = 0

    def draw_splits() -> tuple[IntArray, IntArray]:
        """Return the split of each cluster, 0 for none, and the change of cost."""
        splits, change = np.empty((2, starts.size), dtype=np.int64)
        # Clusters of like size share a table, so that little of it is empty.
        kinds = np.frexp((ends - starts).astype(np.float64))[1]
        first = drawn
        for kind in np.unique(kinds):
            alike = np.flatnonzero(kinds == kind)
            own = before, after, starts[alike], ends[alike], price
            costs = kernels.split_table(*own)
            splits[alike] = chosen = kernels.choose_by_cost(words, first, costs, rate)
            first += alike.size
            change[alike] = costs[np.arange(chosen.size), chosen] - costs[:, 0]
        return splits, change

    for _ in range(levels):
        sweep_clusters(values, ranked, starts, ends, sides, bits, before, after)
        if not changes:
            changes.append(after[:1] + price)
        splits, change = draw_splits()
        drawn += starts.size
        cut = splits > 0
        starts, ends = starts[cut], ends[cut]
        middles = starts + splits[cut]
        cuts.append(middles)
        changes.append(change[cut])
        part_clusters(ranked, starts, middles, ends)
        # A left part keeps what lies before its cells, a right part what follows.
        starts = np.stack([starts, middles], axis=1).reshape(-1)
        ends = np.stack([middles, ends], axis=1).reshape(-1)
        sides = np.tile([AFTER, BEFORE], middles.size)
        divisible = ends - starts > 1
        starts, ends, sides = starts[divisible], ends[divisible], sides[divisible]
        if starts.size == 0:
            break
    return np.concatenate(cuts), np.cumsum(np.concatenate(changes))


class KBuckets(Partition):
    """Draw the borders of a given number of buckets by their squared error.

    Parameters
    ----------
    buckets : int, optional
        How many; by default four times the square root of the number of cells, at most
        half of the stretches between candidate borders.
    largest_count : int, default 1000
        Counts above it are cut to it while borders are drawn. One record moves squared
        errors apart by up to twice this public number: best is the height of the steps
        that matter, not read off the data.

    Notes
    -----
    Guarantee: epsilon-private choice of buckets under the policy it is given.
    Neighbours: one record added or removed; half of epsilon under moves (Lemma LC2).
    Sensitivity: a record moves the squared error of each candidate of a draw by at most
        2 F - 1, with F the largest count, and no two of them apart by more than 2 F;
        the k - 1 draws share epsilon.
    Complexity: O(n + m^2 k) time, m at most 1024 borders; O(n + m (m + k)) memory.
    Source: the paper of `StructureFirst`, section 5; proof in
        ``docs/proofs/buckets_of_neighbours.md``.

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
        self.buckets = None if buckets is None else as_whole(buckets, "buckets", 1)
        self.largest_count = as_whole(largest_count, "largest_count", 1)

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
        """Return how fast weights fall with errors, for one added record: Lemma SF4.

        Parameters
        ----------
        cells : int
            Number of cells.
        epsilon : Fraction
            What the partition may use.

        Returns
        -------
        Fraction
            The rate.
        """
        return epsilon / ((self.count(cells) - 1) * self.reach)

    def _choose(
        self, counts: IntArray, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> Buckets:
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
        logarithms = np.log(np.arange(1.0, borders.size + 1))
        log_factorials = np.append(0.0, np.cumsum(logarithms))
        words = rng.stream()
        chosen_borders = [borders.size - 1]
        for rest in range(buckets - 1, 0, -1):
            # `rest` buckets end at the border that is drawn, so it is at least that.
            candidates = np.arange(rest, chosen_borders[-1])
            costs = heads[rest - 1, candidates] + errors[chosen_borders[-1], candidates]
            drawn = kernels.choose_by_cost(
                words,
                buckets - rest,
                costs[None],
                rate,
                _ways(candidates - 1, rest - 1, log_factorials),
            )
            chosen_borders.append(int(candidates[drawn[0]]))
        return Buckets(borders[np.array([0, *chosen_borders[::-1]])])


def evenly_spaced(cells: int, stretches: int) -> IntArray:
    """Return borders that cut cells into stretches of nearly the same length.

    Parameters
    ----------
    cells : int
        Number of cells.
    stretches : int
        Number of stretches.

    Returns
    -------
    ndarray of int64, shape (stretches + 1,)
        The borders, from 0 to `cells`.
    """
    return np.arange(stretches + 1) * cells // stretches


def _ways(places: IntArray, chosen: int, log_factorials: FloatArray) -> FloatArray:
    """Return the logarithm of how many sets of borders there are: an even prior."""
    ways: FloatArray = (
        log_factorials[places]
        - log_factorials[chosen]
        - log_factorials[places - chosen]
    )
    return ways
