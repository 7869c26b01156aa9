"""Grey-box audit: the noise that was declared, against every edge of the policy.

Runs a mechanism, reads the record of its handle, and computes from the definition how
much each edge moves each measured row. Discrete Laplace noise of scale b on a row that
an edge moves by d costs exactly d / b, so the sum over rows is an exact price, found
without the formulas by which the mechanism calibrated itself.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Account, Measurement
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.strategies.tables.table_strategy import TableStrategy
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.policies import ABSENT, Policy


class Price(NamedTuple):
    """What the worst edge costs in one measurement, against what was charged.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> mechanism, data = bf.Laplace.example(
    ...     bf.Domain(4), bf.policies.Full(bf.Domain(4)), Fraction(1)
    ... )
    >>> price = audit_measurements(mechanism, data)[0]
    >>> price.worst <= price.charged, price.edge
    (True, (0, 1))
    """

    subject: str
    charged: Fraction
    worst: Fraction
    edge: tuple[int, int] | None

    @property
    def passed(self) -> bool:
        """Whether no edge costs more than was charged."""
        return self.worst <= self.charged


def audit_measurements(
    mechanism: Mechanism, data: Any, *, seed: int = 0
) -> list[Price]:
    """Price every measurement of one run, edge by edge; for small domains.

    The last entry holds the account as a whole against the mechanism's budget.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> mechanism, data = bf.Ordered.example(
    ...     bf.Domain(4), bf.policies.Line(bf.Domain(4)), Fraction(1)
    ... )
    >>> all(price.passed for price in audit_measurements(mechanism, data))
    True
    """
    account = Account(mechanism.budget)
    counts = mechanism._counts(data)
    outcome = mechanism._run(mechanism._handle(counts, account, Randomness(seed)))
    charges = [call for call in account.calls if call.kind == "measure"]
    prices = [
        _price(mechanism.name, measurement, call.budget, mechanism.policy)
        for measurement, call in zip(outcome.measurements, charges, strict=True)
    ]
    charged = sum((call.budget.amount for call in account.calls), Fraction(0))
    granted = mechanism.budget.amount
    prices.append(Price(f"{mechanism.name}: all", granted, charged, None))
    return prices


def _price(
    name: str, measurement: Measurement, charged: Budget, policy: Policy
) -> Price:
    prices = RowPrices(measurement)
    worst, where = Fraction(0), None
    for start, end in (edge for many in policy.edges() for edge in many.tolist()):
        # Under constraints one move brings others with it.
        edge = Budget(prices.edge(start, end), charged.power)
        cost = edge.at_distance(policy.group_size).amount
        if cost > worst:
            worst, where = cost, (start, end)
    subject = f"{name}: {measurement.strategy.kind}"
    return Price(subject, charged.amount, worst, where)


def edge_cost(measurement: Measurement, start: int, end: int) -> Fraction:
    """Return the exact price of moving one record from `start` to `end` (-1: absent).

    Infinite prices cannot be paid: a row published exactly that the edge moves raises,
    because no epsilon covers it.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(4)
    >>> mechanism, data = bf.Ordered.example(line, bf.policies.Line(line), Fraction(1))
    >>> kept = mechanism.release(data, rng=1).measurements[0]
    >>> [str(edge_cost(kept, 0, other)) for other in (1, 2, 3)]
    ['1', '2', '3']
    """
    return RowPrices(measurement).edge(start, end)


class RowPrices:
    """What a change of the rows of a measurement costs at the scales declared.

    The price is that of the cheapest shift of the draws that turns what one database
    publishes into what the other does: each draw by itself where rows have their own,
    found by trying them all where one draw reaches several rows.
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
            if isinstance(strategy, TableStrategy):
                cells = math.prod(strategy.sizes)
            record = np.zeros(cells, dtype=np.int64)
            if cell != ABSENT:
                record[cell] = 1
            self._rows[cell] = self.rows_of(record)
        return self._rows[cell]

    def rows_of(self, counts: IntArray) -> IntArray:
        """Return the rows of counts of all cells, before anything is added."""
        strategy, buckets = self.measurement.strategy, self.measurement.buckets
        if isinstance(strategy, TableStrategy):
            return strategy.tables_of(counts)
        return strategy.rows(buckets.sum(counts))

    def draws_to_rows(self, most: int | None = None) -> IntArray:
        """Return the (draws, rows) matrix of what each draw adds to published rows.

        `most` leaves it at the first draws.
        """
        strategy, scales = self.measurement.strategy, self.measurement.scales
        rows = strategy.rows(np.zeros(self.measurement.buckets.count, np.int64))
        none = np.zeros(scales.rates.size, dtype=np.int64)
        base = strategy.published(rows, none, scales)
        units = np.eye(min(none.size, most or none.size), none.size, dtype=np.int64)
        shifts = [strategy.published(rows, one, scales) - base for one in units]
        return np.array(shifts, dtype=np.int64).reshape(len(units), base.size)

    def edge(self, start: int, end: int) -> Fraction:
        """Return the price of an edge, which must be finite."""
        price = self.price(self.rows(start) - self.rows(end))
        if not isinstance(price, Fraction):
            raise AssertionError(
                f"edge ({start}, {end}) moves a row published exactly, or no single "
                "draw pays for it"
            )
        return price

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
