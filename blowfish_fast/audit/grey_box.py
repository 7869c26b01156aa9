"""Grey-box audit: the noise that was declared, against what neighbours really change.

Computes from the definition how much each edge moves each measured row. Discrete
Laplace noise of scale b on a row that an edge moves by d costs exactly d / b, so the
sum over rows is an exact price, found without the formulas by which the mechanism
calibrated itself. Random backgrounds show a sensitivity that hides behind other
records.
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
"""Sets of moves that are priced together."""


ROUNDING = 1e-9
"""What adding up logarithms can err by."""


class Price(NamedTuple):
    """What the worst edge, or random pair, costs, against what was charged.

    Attributes
    ----------
    subject : str
        What was priced.
    charged : Fraction
        What was charged.
    worst : Fraction or float
        What the worst one costs.
    edge : tuple[int, int] or None
        The worst edge.
    pairs : int, default 0
        How many random pairs were priced.
    where : Pair, optional
        The worst random pair.
    """

    subject: str
    charged: Fraction
    worst: Fraction | float
    """Infinite where an edge moves a row that no draw covers."""
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
        The mechanism.
    data : Histogram or array-like
        The counts.
    seed : int, default 0
        Where chance begins.

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
        The name of the mechanism.
    measurement : Measurement
        What was measured.
    charged : Budget
        What was charged.
    policy : Policy
        What is secret.

    Returns
    -------
    Price
        The price of the worst edge.
    """
    prices = RowPrices(measurement)
    worst: Fraction | float = Fraction(0)
    where = None
    for edge in all_edges(policy):
        start, end = map(prices.rows, edge)
        # Under constraints one move brings others with it.
        times = policy.group_size / steps_along(policy, edge)
        cost = times**charged.power * prices.price(start - end)
        if cost > worst:
            worst, where = cost, edge
    subject = f"{name}: {measurement.strategy.kind}"
    return Price(subject, charged.amount, worst, where)


def edge_cost(measurement: Measurement, start: int, end: int) -> Fraction:
    """Return the exact price of moving one record.

    A row published exactly that the edge moves raises: no epsilon covers it.

    Parameters
    ----------
    measurement : Measurement
        What was measured.
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
        If no price covers it.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(4)
    >>> mechanism, data = bf.Ordered.example(line, bf.policies.Line(line), Fraction(1))
    >>> kept = mechanism.release(data, rng=1).measurements[0]
    >>> [str(edge_cost(kept, 0, other)) for other in (1, 2, 3)]
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
    """What a change of the rows of a measurement costs at the scales declared.

    The price is that of the cheapest shift of the draws that explains the change.
    """

    def __init__(self, measurement: Measurement) -> None:
        self.measurement = measurement
        self.rates = measurement.scales.rates.astype(object)
        first = self.draws_to_rows(1)
        self.own_draws = first.shape[1] == self.rates.size and abs(first).sum() <= 1
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
        """Return the rows of counts of all cells, before anything is added."""
        strategy, buckets = self.measurement.strategy, self.measurement.buckets
        if isinstance(strategy, TableStrategy | MergedTables):
            return strategy.tables_of(counts)
        return strategy.rows(buckets.sum(counts))

    def draws_to_rows(self, most: int | None = None) -> IntArray:
        """Return what each draw, or the first so many, adds to published rows."""
        strategy, scales = self.measurement.strategy, self.measurement.scales
        rows = strategy.rows(np.zeros(self.measurement.buckets.count, np.int64))
        none = np.zeros(scales.rates.size, dtype=np.int64)
        base = strategy.published(rows, none, scales)
        units = np.eye(min(none.size, most or none.size), none.size, dtype=np.int64)
        shifts = [strategy.published(rows, unit, scales) - base for unit in units]
        return np.array(shifts, dtype=np.int64).reshape(len(units), base.size)

    def price(self, change: IntArray) -> Fraction | float:
        """Return the price of a change of rows; infinite where no draw pays for it."""
        scales = self.measurement.scales
        if self.own_draws:
            if change[scales.exact].any():
                return math.inf
            moves = np.abs(change).astype(object) ** scales.power
            return Fraction(int((moves * self.rates).sum()), scales.unit)
        if not change.any():
            return Fraction(0)
        spread = self._spread
        equal = (spread == change).all(axis=1) | (spread == -change).all(axis=1)
        paid = scales.rates[equal & scales.measured]
        return Fraction(int(paid.min()), scales.unit) if paid.size else math.inf

    @cached_property
    def _spread(self) -> IntArray:
        return self.draws_to_rows()


def price_together(measurement: Measurement, policy: Policy) -> Fraction | float:
    """Return the largest exact price of a set of moves.

    Parameters
    ----------
    measurement : Measurement
        What was measured.
    policy : Policy
        What is secret.

    Returns
    -------
    Fraction or float
        The price; 0 where draws share rows.
    """
    prices = RowPrices(measurement)
    if not prices.own_draws:
        return Fraction(0)
    worst: Fraction | float = Fraction(0)
    for moves in itertools.islice(joint_moves(policy), MOST_PRICED):
        changes = [prices.rows(end) - prices.rows(start) for start, end in moves]
        far = steps_along(policy, itertools.chain(*moves)) ** measurement.scales.power
        worst = max(worst, prices.price(np.sum(changes, axis=0)) / far)
    return worst


Cost = Callable[[Pair], float]


def observe_measurement(
    measurement: Measurement,
    policy: Policy,
    charged: Fraction,
    pairs: int,
    generator: np.random.Generator,
) -> Price:
    """Price what random neighbours change in the rows measured.

    Parameters
    ----------
    measurement : Measurement
        What was measured.
    policy : Policy
        What is secret.
    charged : Fraction
        What was charged.
    pairs : int
        How many pairs are tried.
    generator : numpy.random.Generator
        Draws them.

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
    """Price what random neighbours change in a choice.

    Parameters
    ----------
    selector : Selector
        What chooses.
    policy : Policy
        What is secret.
    charged : Fraction
        What was charged.
    pairs : int
        How many pairs are tried.
    generator : numpy.random.Generator
        Draws them.

    Returns
    -------
    Price or None
        The price of the worst pair; None if nothing is declared.
    """
    drawn = pairs_at_random(policy, pairs, generator)
    if policy.domain.size == 1 or not drawn:
        return None
    case = Case(selector, policy, charged)
    on_cells = noise_on_cells(case)
    if type(selector) in CANDIDATES or on_cells is not None:
        cost = _cell_price(on_cells) if on_cells is not None else _cheapest_price(case)
        worst = _largest(cost, drawn, charged)
        wrong = _draws_otherwise(case, drawn[0])
        return worst._replace(worst=math.inf) if wrong else worst

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
    worst, where = 0.0, None
    for pair in pairs:
        price = cost(pair)
        if price > worst:
            worst, where = price, pair
    return Price("random pairs", charged, worst, None, len(pairs), where)


REPEATED = 10
"""Runs of a descent that its twin repeats, for every hundredth pair and the first."""


def _price_of_trees(case: Case, pairs: list[Pair]) -> Price | None:
    """Price pairs by the exact law of all trees, which real runs must agree with."""
    if case.law(pairs[0].sides[0]) is None:
        return None

    def cost(pair: Pair) -> float:
        first, second = map(case.law, pair.sides)
        if first is None or second is None or first.keys() != second.keys():
            return math.inf
        return max(abs(math.log(first[tree] / second[tree])) for tree in first)

    worst = _largest(cost, pairs, case.epsilon)
    repeated = (case.descent(pair.sides[0]) for pair in pairs[::100])
    wrong = any(twin.differs(REPEATED) for twin in repeated)
    return worst._replace(worst=math.inf) if wrong else worst


def _cheapest_price(case: Case) -> Cost:
    """Return the price of a pair for the cheapest of noisy costs.

    A candidate wins if its noise exceeds a threshold, which moves by the change of its
    own cost less that of the best competitor. A move is a removal and an addition.
    """
    offer = CANDIDATES[type(case.selector)]

    def step(first: IntArray, second: IntArray) -> float:
        _, before, scales = offer(case, first)
        change = offer(case, second).costs - before
        apart = np.maximum(change - change.min(), change.max() - change)
        return max(
            float(Fraction(far) / scale)
            for far, scale in zip(apart.tolist(), scales, strict=True)
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
