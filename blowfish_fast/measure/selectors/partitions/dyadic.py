"""Sampled partitions: a whole partition is drawn by its cost, by the exponential law.

The candidates are the partitions of a line into dyadic intervals, or of a grid into
dyadic rectangles: stretches of 2^level cells that begin at a multiple of 2^level.

    cells        0 1 2 3 4 5 6 7
    a candidate  [      ][  ][][]     lengths 4, 2, 1 and 1

A partition costs what it loses, summed over its buckets: the pinball cost of the cells
of a bucket, which is 0 where they are equal, and the price of the noise that the bucket
will receive. It is drawn with a chance in proportion to exp(-rate * cost) times a
public number, exactly, from the weights of a tree or a lattice (``kernels.partition``).
"""

from __future__ import annotations

import copy
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.machine import threads_for
from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import (
    as_fraction,
    as_number,
    as_positive,
    as_truth,
    as_whole,
)
from blowfish_fast.data.buckets import Buckets, cells_along_curve
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import EpsilonError, InputError
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.policies import Policy

from .base import Partition, record_distance

if TYPE_CHECKING:
    from blowfish_fast.kernels.window_costs.rectangle_costs import Costs, SharedCosts

QUANTILE = (3, 4)
"""Numerator and denominator of the quantile of the pinball cost: a count is charged 3/4
of what it lies above the quantile of its bucket, and 1/4 of what it lies below."""
REACH = 6.0
"""The cost of a bucket of a line counts in full from 1 / 6 of a typical query's cells
on. It was chosen on the seven one-dimensional and the four two-dimensional sets of the
benchmark."""
SIDE_REACH = 8 / 3
"""The cost of a rectangle counts in full where its mean side is 3 / 8 of a typical
query's side or more. It was chosen on the four two-dimensional sets of the benchmark,
as were the next two."""
CELL_PRICE = 0.5
"""The price of a rectangle, in units of its noise, where queries are single cells."""
LARGE_PRICE = 0.2
"""What the price falls to as queries become large."""
SHORTEST_LIMIT = 64
"""Buckets of so many cells are never cut, however short the line is."""
# The next four were chosen on the seven given histograms, on fifteen generated lines of
# 4,096 cells with seeds of their own and on the sets of ``experiments.siblings``.
MOSTLY_LONG = Fraction(2, 3)
"""The part of a line that buckets above the limit must cover, as they were drawn, for
the limit to be loosened."""
LOOSENED = 2
"""How many times higher the limit is then."""
FINE_PARTS = 16
"""A bucket is fine if it has at most a sixteenth of the cells of the limit."""
FEWEST_FINE = 2
"""Fine buckets that the limit is loosened for, at least: they show where records stand.
Where fewer are drawn, long buckets only say that the draw has found nothing."""


class _Sampled(Partition):
    """A partition drawn by its costs, which a look at the same counts may have left."""

    loss_range = 1
    _shared: SharedCosts | None = None

    def sharing(self, costs: SharedCosts) -> Self:
        """Return the same partition, which takes costs that another choice left.

        Parameters
        ----------
        costs : SharedCosts
            Where they are kept.

        Returns
        -------
        Self
            The partition, for one choice.
        """
        other = copy.copy(self)
        other._shared = costs
        return other

    def _costs(self, grid: IntArray) -> Costs:
        """Return the pinball costs of all dyadic rectangles; a line is one row."""
        shared = self._shared or kernels.SharedCosts(QUANTILE)
        return shared.take(grid, threads=threads_for(grid.size))


class DyadicTree(_Sampled):
    """Sample a partition of a line with a probability that falls with its cost.

    A few single cells of many records may stand out of a bucket that is even but for
    them: each then has a bucket of its own, which need not be dyadic
    (`kernels.sample_dyadic_partition`, ``outliers``).

    Parameters
    ----------
    price : float, default 0.5
        Cost of a bucket in units of the noise that it will receive.
    query_cells : float, default 1.0
        How many cells a typical query covers, a public number. Unequal cells hurt a
        query only in the buckets that its ends cut, so the cost of a bucket that is
        much shorter than a query counts less.
    dimensions : int, default 1
        The number of attributes of the grid whose cells lie along the line, in the
        order of a curve through it. It decides how fast short buckets count less: in
        two dimensions the border of a query grows with the root of its cells.
    longest : number in (0, 1], optional
        The part of the line that a bucket covers at most, rounded down to a power of
        two of cells; 64 cells are always allowed. A longer bucket is cut at multiples
        of that length, which are public places. None leaves buckets as they are drawn.
        A single bucket over half of the line takes all its cells as even where little
        is known of them. Ranges suffer from that more than from a few more buckets.
    loosens : bool, default False
        Whether buckets may be twice as long as `longest` says on lines of which the
        draw shows that records mostly stand together: where buckets above that length,
        as they were drawn, cover two thirds of the line, and two buckets or more have a
        sixteenth of it at most. To cut the rest of such a line costs noise and shows
        little.

    Notes
    -----
    Guarantee: epsilon-private choice of buckets under the policy it is given.
    Neighbours: one record added or removed; half of epsilon under moves (Lemma LC2).
    Sensitivity: one record raises the pinball cost of one bucket by at most 3/4 or
        lowers it by at most 1/4, so the range over all partitions is 1 and the rate is
        epsilon, less the numerical slack of the sampler.
    Complexity: O(n log n) time, O(n) memory.
    Source: this project; proof in ``docs/proofs/dyadic_partitions.md``.

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
    longest: Fraction | None = None
    loosens: bool = False
    _shortest: int | None = None

    def __init__(
        self,
        *,
        price: float = 0.5,
        query_cells: float = 1.0,
        dimensions: int = 1,
        longest: Any = None,
        loosens: bool = False,
    ) -> None:
        self.price = _as_price(price)
        self.query_cells = as_number(query_cells, "query_cells", 1)
        self.dimensions = as_whole(dimensions, "dimensions", 1)
        if longest is not None:
            # Only then: without it a tree keeps the fingerprint that ledgers know.
            self.longest = _as_part(longest)
        if as_truth(loosens, "loosens"):
            self.loosens = True

    @property
    def default_share(self) -> Fraction:
        """Part of epsilon by dimension, chosen on the benchmark data.

        ``docs/explanation/how_the_defaults_were_chosen.md`` has the figures.
        """
        return Fraction(1, 5) if self.dimensions == 1 else Fraction(1, 4)

    def _choose(
        self, counts: IntArray, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> Buckets:
        costs = self._costs(counts.reshape(1, -1))
        weights = kernels.tree_weights(
            counts.size,
            rate=self.rate(counts.size, epsilon / record_distance(policy)),
            penalty=self.price * self.bucket_cost,
            quantile=QUANTILE,
            length_weights=self.length_weights(counts.size),
            outliers=True,
        )
        edges = kernels.sample_tree_of_costs(
            counts,
            [of_width[0] for of_width in costs[0]],
            rng.stream(),
            weights,
            threads=threads_for(counts.size),
        )
        return Buckets(self._cut_short(self._cut_long(edges)))

    def without_shorter(self, cells: int) -> Self:
        """Return the same partition, whose buckets of fewer cells are cut afterwards.

        Parameters
        ----------
        cells : int
            Cells of a bucket, at least. One that was drawn with fewer is cut into
            single cells.

        Returns
        -------
        Self
            The partition.
        """
        other = copy.copy(self)
        other._shortest = cells
        return other

    def _cut_short(self, edges: IntArray) -> IntArray:
        """Cut buckets below the shortest length into single cells: Lemma DT20."""
        sizes = np.diff(edges)
        if self._shortest is None or not (sizes < self._shortest).any():
            return edges
        borders = np.repeat(sizes < self._shortest, sizes)
        borders[edges[:-1]] = True
        return np.append(np.flatnonzero(borders), edges[-1])

    def _cut_long(self, edges: IntArray) -> IntArray:
        """Cut buckets above the longest length at its multiples: Lemma DT19."""
        cells = int(edges[-1])
        most = self._most_of(edges)
        places = np.arange(most, cells, most)
        bucket = np.searchsorted(edges, places, side="right") - 1
        places = places[np.diff(edges)[bucket] > most]
        return np.union1d(edges, places) if places.size else edges

    def _most_of(self, edges: IntArray) -> int:
        """Return how many cells a bucket has at most, of those drawn: Lemma DT21."""
        cells = int(edges[-1])
        most = self.most_cells(cells)
        if not self.loosens:
            return most
        sizes = np.diff(edges)
        covered = int(sizes[sizes > most].sum())
        fine = np.count_nonzero(sizes * FINE_PARTS <= most)
        mostly = covered >= MOSTLY_LONG * cells and fine >= FEWEST_FINE
        return LOOSENED * most if mostly else most

    def most_cells(self, cells: int) -> int:
        """Return the longest length that `longest` allows on a line of so many cells.

        It is a power of two, or the whole line.
        """
        if self.longest is None:
            return cells
        wanted = max(int(self.longest * cells), SHORTEST_LIMIT)
        return min(cells, 1 << (wanted.bit_length() - 1))

    def length_weights(self, cells: int) -> list[float]:
        """Return how much the cost of a bucket of 2^level cells counts, by level.

        The factors are public and at most 1, so they only lower what a record can
        change, and the rate stays valid.
        """
        power = 1.0 / (2 * self.dimensions)
        levels = (cells - 1).bit_length() + 1
        return [
            min(1.0, REACH * 2**level / self.query_cells) ** power
            for level in range(levels)
        ]

    def rate(self, cells: int, epsilon: Fraction) -> Fraction:
        """Return what the sampler's slack leaves of `epsilon`: Lemma DT7.

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
        return _tree_rate(cells, epsilon, self.price * self.bucket_cost)

    def _check_epsilon(self, policy: Policy, cells: int, epsilon: Fraction) -> None:
        self.rate(cells, epsilon / record_distance(policy))


class DyadicRectangles(_Sampled):
    """Sample a partition into rectangles, likelier the less their cells differ.

    Parameters
    ----------
    price : float, optional
        Cost of a bucket in units of the noise that it will receive. By default it is
        0.5 where queries are single cells and falls towards 0.2 as they become larger:
        the noises of many buckets in one answer cancel in part.
    query_cells : float, default 1.0
        How many cells a typical query covers, as for `DyadicTree`.

    Notes
    -----
    Guarantee: epsilon-private choice of buckets under the policy it is given.
    Neighbours: one record added or removed; half of epsilon under moves (Lemma LC2).
    Sensitivity: as for `DyadicTree`, the range over all partitions is 1 and the rate
        is epsilon, less the numerical slack of the sampler.
    Complexity: O(n log(rows) log(columns)) time, O(n) memory.
    Source: this project; proof in ``docs/proofs/dyadic_partitions.md``.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> grid = bf.Domain((4, 4))
    >>> policy, asked = bf.policies.AddRemove(grid), bf.workloads.Identity(grid)
    >>> mechanism = bf.Dawa(policy, asked, epsilon=400, partition=DyadicRectangles())
    >>> halves = np.repeat([[0, 0, 800, 800]], 4, axis=0)
    >>> int(mechanism.release(halves, rng=1).details["buckets"])
    4
    """

    name = "dyadic_rectangles"
    default_share = Fraction(3, 10)

    def __init__(self, *, price: float | None = None, query_cells: float = 1.0) -> None:
        self.query_cells = as_number(query_cells, "query_cells", 1)
        large = LARGE_PRICE + (CELL_PRICE - LARGE_PRICE) / sqrt(self.query_cells)
        self.price = large if price is None else _as_price(price)

    def _choose(
        self, counts: IntArray, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> Buckets:
        shape = policy.domain.shape
        edges, order = kernels.sample_rectangles_of_costs(
            self._costs(counts.reshape(shape)),
            rng.stream(),
            rate=self.rate(shape, epsilon / record_distance(policy)),
            penalty=self.price * self.bucket_cost,
            quantile=QUANTILE,
            level_weights=self.level_weights(shape),
            walk=cells_along_curve(policy.domain),
        )
        if edges.size == counts.size + 1:
            # Every bucket is one cell. Their order is then known to be the curve's.
            return self._undrawn(counts, policy)
        return Buckets(edges, order)

    def _undrawn(self, counts: IntArray, policy: Policy) -> Buckets:
        """Return single cells, in the order of the curve that numbers all buckets."""
        walk = cells_along_curve(policy.domain)
        return Buckets.single_cells(counts.size, walk, curve=True)

    def _check(self, policy: Policy, cells: int) -> None:
        self.check_grid(policy.domain)

    @staticmethod
    def check_grid(domain: Domain) -> None:
        """Refuse domains that are not a grid of two attributes."""
        if domain.ndim != 2:
            raise InputError(
                "DyadicRectangles asks for a grid of two attributes; this domain has "
                f"{domain.ndim}. Use DyadicTree, which works along a line or a curve "
                "through the cells"
            )

    def level_weights(self, shape: tuple[int, ...]) -> list[list[float]]:
        """Return how much the cost of a bucket of 2^i by 2^j cells counts.

        As for a line, the factors are public and at most 1. Sides are measured as parts
        of the grid's sides.

        Parameters
        ----------
        shape : tuple[int, int]
            Rows and columns of the grid.

        Returns
        -------
        list of lists of float
            The factor of buckets of 2^i by 2^j cells, as item [i][j].
        """
        rows, columns = shape
        query_side = sqrt(self.query_cells / (rows * columns))
        heights, widths = (
            [min(1.0, 2**level / side) for level in range((side - 1).bit_length() + 1)]
            for side in shape
        )
        return [
            [
                min(1.0, SIDE_REACH * (tall + wide) / 2 / query_side) ** 0.5
                for wide in widths
            ]
            for tall in heights
        ]

    def rate(self, shape: tuple[int, ...], epsilon: Fraction) -> Fraction:
        """Return what the sampler's slack leaves of `epsilon`: Lemma DR7.

        Parameters
        ----------
        shape : tuple[int, ...]
            Rows and columns of the grid.
        epsilon : Fraction
            What the partition may use.

        Returns
        -------
        Fraction
            The rate.
        """
        rows, columns = shape
        slack = kernels.rectangle_slack((rows, columns))
        if epsilon <= 2 * slack:
            # As on a line: weights of so slow a rate are held with more bits.
            slack = kernels.rectangle_slack(
                (rows, columns), rate=epsilon, penalty=self.price * self.bucket_cost
            )
        return _less_slack(epsilon, slack, f"{rows:,} x {columns:,}")

    def _check_epsilon(self, policy: Policy, cells: int, epsilon: Fraction) -> None:
        self.rate(policy.domain.shape, epsilon / record_distance(policy))


@lru_cache(maxsize=64)
def _tree_rate(cells: int, epsilon: Fraction, penalty: float) -> Fraction:
    """Return `DyadicTree.rate`: each check of a release asks for the same one."""
    slack = kernels.sampling_slack(cells, outliers=True)
    if epsilon <= 2 * slack:
        # That slack holds for any rate. The rate here stays below epsilon, and weights
        # of so slow a rate are held with more bits, so that less of them is rounded.
        slack = kernels.sampling_slack(
            cells, rate=epsilon, penalty=penalty, outliers=True
        )
    return _less_slack(epsilon, slack, f"{cells:,}")


def _as_price(price: Any) -> float:
    if as_positive(price, "price") > 2**10:
        raise InputError("price must be at most 1024", received=repr(price))
    return float(price)


def _as_part(longest: Any) -> Fraction:
    part = as_fraction(longest, "longest")
    if not 0 < part <= 1:
        raise InputError(
            "longest is the part of the line that a bucket covers at most, above 0 and "
            "up to 1",
            received=repr(longest),
            way_out="State longest=1/16, or None for buckets of any length",
        )
    return part


def _less_slack(epsilon: Fraction, slack: Fraction, cells: str) -> Fraction:
    """Return what the sampler's rounding leaves of epsilon; refuse less than half."""
    if epsilon <= 2 * slack:
        raise EpsilonError(
            f"choosing a partition of {cells} cells needs more than "
            f"{float(2 * slack):.2g} of epsilon for the sampler's rounding; it was "
            f"given {float(epsilon):.2g}. Raise epsilon or share"
        )
    return epsilon - slack
