"""Grey-box audit: the noise that was declared, against what neighbours really change.

A measurement declares its rows (what is counted) and the scale of the noise on each. A
mechanism chose the scales by a formula for its sensitivity. The audit trusts no such
formula: it moves one record along each edge of the policy, sees by how much each row
really changes, and adds up what that costs. Discrete Laplace noise of scale b on a row
that changes by d costs exactly d / b:

    running totals of 3 cells, noise of scale 2; one record moves from cell 0 to cell 2

    rows before    1  1  1
    rows after     0  0  1        d = 1, 1, 0        price 1/2 + 1/2 = 1

In rho a row costs d^2 times its rate instead. The largest price of all edges must not
exceed what was charged. Random backgrounds are tried too: they show a sensitivity that
depends on the other records.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Account, Measurement
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions.descent import Descent
from blowfish_fast.measure.selectors.partitions.matching_pairs import MatchingPairs
from blowfish_fast.measure.selectors.partitions.noisy_sort import CellNoise
from blowfish_fast.measure.strategies.tables.merged_tables import MergedTables
from blowfish_fast.measure.strategies.tables.table_strategy import TableStrategy
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.policies import ABSENT, Policy

from .many_choices.choice_twins import CANDIDATES, Case, groups_offered, noise_on_cells
from .many_choices.many_draws import path_log_ratio
from .neighbours import Pair, all_edges, joint_moves, pairs_at_random, steps_along
from .witness import Draw, Note, WatchedRandomness

MOST_PRICED = 4096
"""The most sets of moves that `price_together` tries."""

ROUNDING = 1e-9
"""By how much, relatively, a sum of logarithms can be rounded up."""


class Price(NamedTuple):
    """What the worst edge, or the worst random pair, costs beside what was charged.

    Attributes
    ----------
    subject : str
        What was priced, for reports.
    charged : Fraction
        What the release was charged for it, in epsilon or in rho.
    worst : Fraction or float
        What the worst edge or pair costs; infinite where an edge moves a row that
        carries no noise.
    edge : tuple[int, int] or None
        The worst edge, if edges were priced.
    pairs : int, default 0
        How many random pairs were priced.
    where : Pair, optional
        The worst random pair, if pairs were priced.
    """

    subject: str
    charged: Fraction
    worst: Fraction | float
    edge: tuple[int, int] | None
    pairs: int = 0
    where: Pair | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing costs more than was charged; floats may be rounded up."""
        if isinstance(self.worst, Fraction):
            return self.worst <= self.charged
        return self.worst <= float(self.charged) * (1 + ROUNDING)


def audit_measurements(
    mechanism: Mechanism, data: Any, *, seed: int = 0
) -> list[Price]:
    """Price every measurement of one run, edge by edge; for small domains.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism, with its budget.
    data : Histogram or array-like
        The counts that the run measures.
    seed : int, default 0
        The seed of the run.

    Returns
    -------
    list[Price]
        A price for each measurement; the last entry holds the account as a whole
        against the mechanism's budget.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> mechanism, data = bf.Ordered.example(
    ...     bf.Domain(4), bf.policies.Line(bf.Domain(4)), Fraction(1)
    ... )
    >>> prices = audit_measurements(mechanism, data)
    >>> all(price.passed for price in prices), prices[0].edge
    (True, (0, 1))
    """
    account = Account(mechanism.budget)
    counts = mechanism._counts(data)
    outcome = mechanism._run(mechanism._handle(counts, account, Randomness(seed)))
    charges: list[Budget] = []
    for call in account.calls:
        if call.kind == "measure":
            charges.append(call.budget)
        elif call.kind == "refine":
            # All noise of these rows, what was paid for the first draw included.
            charges[-1] = charges[-1] + call.budget
    prices = [
        price_edges(mechanism.name, measurement, charge, mechanism.policy)
        for measurement, charge in zip(outcome.measurements, charges, strict=True)
    ]
    charged = sum((call.budget.amount for call in account.calls), Fraction(0))
    granted = mechanism.budget.amount
    prices.append(Price(f"{mechanism.name}: all", granted, charged, None))
    return prices


def price_edges(
    name: str, measurement: Measurement, charged: Budget, policy: Policy
) -> Price:
    """Price every edge of a small policy in one measurement.

    Parameters
    ----------
    name : str
        The name of the mechanism, for reports.
    measurement : Measurement
        A measurement of a run.
    charged : Budget
        What the run was charged for it.
    policy : Policy
        The policy whose edges are priced.

    Returns
    -------
    Price
        The price of the worst edge.
    """
    prices = RowPrices(measurement)
    worst: Fraction | float = Fraction(0)
    worst_edge = None
    for edge in all_edges(policy):
        start, end = map(prices.rows, edge)
        # Under constraints one move brings others with it, `group_size` in all. An edge
        # that stands for several steps may cost as many times what one step may.
        times = policy.group_size / steps_along(policy, edge)
        cost = times**charged.power * prices.price(start - end)
        if cost > worst:
            worst, worst_edge = cost, edge
    subject = f"{name}: {measurement.strategy.kind}"
    return Price(subject, charged.amount, worst, worst_edge)


def edge_cost(measurement: Measurement, start: int, end: int) -> Fraction:
    """Return the exact price of moving one record.

    Parameters
    ----------
    measurement : Measurement
        A measurement of a release.
    start : int
        The cell that it leaves; -1 is "absent".
    end : int
        The cell that it goes to; -1 is "absent".

    Returns
    -------
    Fraction
        The price.

    Raises
    ------
    AssertionError
        If the move changes a row that was published without noise: no price covers it.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(4)
    >>> mechanism, data = bf.Ordered.example(line, bf.policies.Line(line), Fraction(1))
    >>> totals = mechanism.release(data, rng=1).measurements[0]
    >>> [str(edge_cost(totals, 0, other)) for other in (1, 2, 3)]
    ['1', '2', '3']
    """
    prices = RowPrices(measurement)
    price = prices.price(prices.rows(start) - prices.rows(end))
    if not isinstance(price, Fraction):
        raise AssertionError(
            f"edge ({start}, {end}) moves a row published exactly, or no single draw "
            "pays for it"
        )
    return price


class RowPrices:
    """What a change of the rows of a measurement costs at the declared scales.

    Neighbours are told apart only if the noise would have to be drawn differently for
    the same published rows: the price of a change is that of shifting the draws until
    they make up for it. Mostly each row has a draw of its own, and the shift is the
    change itself. Some strategies add one draw to several rows.

    Parameters
    ----------
    measurement : Measurement
        The rows, with the scale of each draw.
    """

    def __init__(self, measurement: Measurement) -> None:
        self.measurement = measurement
        # Python's integers: products with squared moves may exceed 64 bits.
        self.rates = measurement.scales.rates.astype(object)
        first = self.draws_to_rows(1)
        self.own_draws = first.shape[1] == self.rates.size and abs(first).sum() <= 1
        """Whether each row carries a draw of its own."""
        self._rows: dict[int, IntArray] = {}

    def rows(self, cell: int) -> IntArray:
        """Return the rows of a single record in `cell`; none for "absent"."""
        if cell not in self._rows:
            strategy, cells = self.measurement.strategy, self.measurement.buckets.cells
            if isinstance(strategy, TableStrategy | MergedTables):
                cells = math.prod(strategy.sizes)
            record = np.zeros(cells, dtype=np.int64)
            if cell != ABSENT:
                record[cell] = 1
            self._rows[cell] = self.rows_of(record)
        return self._rows[cell]

    def rows_of(self, counts: IntArray) -> IntArray:
        """Return the rows of counts of all cells, without noise."""
        strategy, buckets = self.measurement.strategy, self.measurement.buckets
        if isinstance(strategy, TableStrategy | MergedTables):
            return strategy.tables_of(counts)
        return strategy.rows(buckets.sum(counts))

    def draws_to_rows(self, most: int | None = None) -> IntArray:
        """Return what a draw of 1 adds to the published rows, for each draw.

        Parameters
        ----------
        most : int, optional
            How many draws are looked at, from the first one; all of them by default.

        Returns
        -------
        ndarray of int64, shape (draws, rows)
            A line for each draw.
        """
        strategy, scales = self.measurement.strategy, self.measurement.scales
        rows = strategy.rows(np.zeros(self.measurement.buckets.count, np.int64))
        no_noise = np.zeros(scales.rates.size, dtype=np.int64)
        base = strategy.published(rows, no_noise, scales)
        draws = no_noise.size
        units = np.eye(min(draws, most or draws), draws, dtype=np.int64)
        shifts = [strategy.published(rows, unit, scales) - base for unit in units]
        return np.array(shifts, dtype=np.int64).reshape(len(units), base.size)

    def price(self, change: IntArray) -> Fraction | float:
        """Return the price of a change of rows; infinite where no draw makes up for it.

        Where draws are shared by rows, only changes that one draw makes up for are
        priced, and all others count as infinite.
        """
        scales = self.measurement.scales
        if self.own_draws:
            if change[scales.exact].any():
                return math.inf
            moves = np.abs(change).astype(object) ** scales.power
            return Fraction(int((moves * self.rates).sum()), scales.unit)
        if not change.any():
            return Fraction(0)
        shifts = self._all_shifts
        fits = (shifts == change).all(axis=1) | (shifts == -change).all(axis=1)
        rates = scales.rates[fits & scales.measured]
        return Fraction(int(rates.min()), scales.unit) if rates.size else math.inf

    @cached_property
    def _all_shifts(self) -> IntArray:
        return self.draws_to_rows()


def price_together(measurement: Measurement, policy: Policy) -> Fraction | float:
    """Return the largest exact price of a set of moves that neighbours may differ by.

    Parameters
    ----------
    measurement : Measurement
        A measurement of a release.
    policy : Policy
        A policy under which several records may move together: all of a person, or
        those that known counts tie to each other.

    Returns
    -------
    Fraction or float
        The price, per step along the policy. 0 where draws are shared by rows, since a
        sum of changes has no price then.
    """
    prices = RowPrices(measurement)
    if not prices.own_draws:
        return Fraction(0)
    worst: Fraction | float = Fraction(0)
    for moves in itertools.islice(joint_moves(policy), MOST_PRICED):
        changes = [prices.rows(end) - prices.rows(start) for start, end in moves]
        steps = steps_along(policy, itertools.chain(*moves))
        cost = prices.price(np.sum(changes, axis=0))
        worst = max(worst, cost / steps**measurement.scales.power)
    return worst


Cost = Callable[[Pair], float]
"""What it costs to tell the two sides of a pair apart."""


def observe_measurement(
    measurement: Measurement,
    policy: Policy,
    charged: Fraction,
    pairs: int,
    generator: np.random.Generator,
) -> Price:
    """Price what random neighbours change in the rows of a measurement.

    Parameters
    ----------
    measurement : Measurement
        A measurement of a release.
    policy : Policy
        The policy that says which databases are neighbours.
    charged : Fraction
        What the release was charged for the measurement.
    pairs : int
        How many pairs of neighbours are tried.
    generator : numpy.random.Generator
        Draws the pairs.

    Returns
    -------
    Price
        The price of the worst pair.
    """
    prices = RowPrices(measurement)

    def cost(pair: Pair) -> float:
        first, second = map(prices.rows_of, pair.sides)
        times = policy.group_size / steps_along(policy, pair.edge)
        return float(times**measurement.scales.power * prices.price(first - second))

    return _largest(cost, pairs_at_random(policy, pairs, generator), charged)


def observe_choice(
    selector: Any,
    policy: Policy,
    charged: Fraction,
    pairs: int,
    generator: np.random.Generator,
) -> Price | None:
    """Price what random neighbours change in a private choice.

    How a choice is priced depends on what it is drawn by: noise on cells or on costs,
    a walk whose every step has a known probability, or trees that are all listed.

    Parameters
    ----------
    selector : Selector
        A partition or another private choice.
    policy : Policy
        The policy that says which databases are neighbours.
    charged : Fraction
        The epsilon of the choice.
    pairs : int
        How many pairs of neighbours are tried.
    generator : numpy.random.Generator
        Draws the pairs.

    Returns
    -------
    Price or None
        The price of the worst pair. None if there is nothing to choose, or if the
        selector is of a kind whose law nobody can compute here.
    """
    drawn = pairs_at_random(policy, pairs, generator)
    if policy.domain.size == 1 or not drawn:
        return None
    case = Case(selector, policy, charged)
    on_cells = noise_on_cells(case)
    if type(selector) in CANDIDATES or on_cells is not None:
        cost = _cell_price(on_cells) if on_cells is not None else _cheapest_price(case)
        worst = _largest(cost, drawn, charged)
        # The price is that of the declared noise. A run that draws other noise than
        # that has no price.
        is_undeclared = _draws_otherwise(case, drawn[0])
        return worst._replace(worst=math.inf) if is_undeclared else worst

    if isinstance(selector, Descent):
        return _price_of_trees(case, drawn)

    def ratio(pair: Pair) -> float | None:
        return path_log_ratio(
            selector, pair.sides, policy=policy, epsilon=charged, generator=generator
        )

    if ratio(drawn[0]) is None:
        return None
    return _largest(lambda pair: ratio(pair) or 0.0, drawn, charged)


def _largest(cost: Cost, pairs: list[Pair], charged: Fraction) -> Price:
    worst, worst_pair = 0.0, None
    for pair in pairs:
        price = cost(pair)
        if price > worst:
            worst, worst_pair = price, pair
    return Price("random pairs", charged, worst, None, len(pairs), worst_pair)


REPEATED = 10
"""How many runs of a descent are repeated by its twin, for every hundredth pair."""


def _price_of_trees(case: Case, pairs: list[Pair]) -> Price | None:
    """Price pairs by the exact probability of every tree that a descent can draw.

    The probabilities are those of a slow twin. Real runs are repeated by the twin with
    the noise that they drew, and must come out alike.
    """
    if case.law(pairs[0].sides[0]) is None:
        return None

    def cost(pair: Pair) -> float:
        first, second = map(case.law, pair.sides)
        if first is None or second is None or first.keys() != second.keys():
            return math.inf
        return max(abs(math.log(first[tree] / second[tree])) for tree in first)

    worst = _largest(cost, pairs, case.epsilon)
    repeated = (case.descent(pair.sides[0]) for pair in pairs[::100])
    differs = any(twin.differs(REPEATED) for twin in repeated)
    return worst._replace(worst=math.inf) if differs else worst


def _cheapest_price(case: Case) -> Cost:
    """Return what a pair costs where the candidate of the least noisy cost is chosen.

    A candidate wins if its noise passes a threshold, which the noise of the others
    sets. Between neighbours that threshold moves by the change of the candidate's own
    cost less the change of another's: at most by the largest difference of two changes.
    A move is priced as a removal and an addition.
    """
    offer = CANDIDATES[type(case.selector)]

    def step(first: IntArray, second: IntArray) -> float:
        _, before, scales = offer(case, first)
        change = offer(case, second).costs - before
        moved = np.maximum(change - change.min(), change.max() - change)
        return max(
            float(Fraction(distance) / scale)
            for distance, scale in zip(moved.tolist(), scales, strict=True)
        )

    def cost(pair: Pair) -> float:
        background = np.array(pair.background, dtype=np.int64)
        return sum(
            step(background, side)
            for side, cell in zip(pair.sides, pair.edge, strict=True)
            if cell != ABSENT
        )

    return cost


def _cell_price(noise: CellNoise) -> Cost:
    """Return what a pair costs where a choice reads noisy counts alone.

    With `edges` the noise lies on edges of the policy: a move along one of them costs
    one rate, and no other move has a price.
    """
    scales, edges = noise
    rate = int(scales.rates[0]) / scales.unit
    joined = None if edges is None else {frozenset(edge) for edge in edges.tolist()}

    def cost(pair: Pair) -> float:
        if joined is None:
            return rate * float(np.abs(pair.sides[0] - pair.sides[1]).sum())
        return rate if frozenset(pair.edge) in joined else math.inf

    return cost


def _draws_otherwise(case: Case, pair: Pair) -> bool:
    """Whether a watched run draws noise of another scale than was declared."""
    selector, counts = case.selector, pair.sides[0]
    diary: list[Note] = []
    case.select(counts, WatchedRandomness(0, diary))
    declared: set[Fraction] = set()
    if isinstance(selector, MatchingPairs) and selector.rounds == 1:
        declared.update(groups_offered(case, counts).scales)
    elif (noise := noise_on_cells(case)) is not None:
        declared.add(Fraction(noise.scales.unit, int(noise.scales.rates[0])))
    else:
        return False
    drawn = {
        Fraction(int(note.numerators), int(note.denominators))
        for note in diary
        if isinstance(note, Draw)
    }
    return not drawn <= declared
