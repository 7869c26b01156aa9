"""Grey-box audit: the noise that was declared, against every edge of the policy.

Runs a mechanism, reads the record of its handle, and computes from the definition how
much each edge moves each measured row. Discrete Laplace noise of scale b on a row that
an edge moves by d costs exactly d / b, so the sum over rows is an exact price, found
without the formulas by which the mechanism calibrated itself.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Account, Measurement
from blowfish_fast.measure.randomness import Randomness
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
    worst, where = Fraction(0), None
    for edges in policy.edges():
        for start, end in edges.tolist():
            # Under constraints one move brings others with it.
            edge = Budget(edge_cost(measurement, start, end), charged.power)
            cost = edge.at_distance(policy.group_size).amount
            if cost > worst:
                worst, where = cost, (start, end)
    subject = f"{name}: {measurement.strategy.kind}"
    return Price(subject, charged.amount, worst, where)


def edge_cost(measurement: Measurement, start: int, end: int) -> Fraction:
    """Return the exact price of moving one record from `start` to `end` (-1: absent).

    The price is that of the cheapest shift of the draws that turns what one database
    publishes into what the other does: each draw by itself where rows have their own,
    found by trying them all where one draw reaches several rows. Infinite prices cannot
    be paid: a row published exactly that the edge moves raises, because no epsilon
    covers it.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(4)
    >>> mechanism, data = bf.Ordered.example(line, bf.policies.Line(line), Fraction(1))
    >>> kept = mechanism.release(data, rng=1).measurements[0]
    >>> [str(edge_cost(kept, 0, other)) for other in (1, 2, 3)]
    ['1', '2', '3']
    """
    change = _rows_of(measurement, start) - _rows_of(measurement, end)
    scales = measurement.scales
    if change.size != scales.rates.size or _reaches_several(measurement):
        return _price_of_one_draw(measurement, change)
    if change[scales.exact].any():
        raise AssertionError(f"edge ({start}, {end}) moves a row published exactly")
    moves = np.abs(change).astype(object) ** scales.power
    moved = moves * scales.rates.astype(object)
    return Fraction(int(moved.sum()), scales.unit)


def _reaches_several(measurement: Measurement) -> bool:
    unit = np.zeros(measurement.scales.rates.size, dtype=np.int64)
    if unit.size:
        unit[0] = 1
    return bool(np.abs(_shift(measurement, unit)).sum() > 1)


def _shift(measurement: Measurement, noise: IntArray) -> IntArray:
    """Return how draws change what is published, rows being zero."""
    rows = measurement.strategy.rows(np.zeros(measurement.buckets.count, np.int64))
    return measurement.strategy.published(rows, noise, measurement.scales)


def _price_of_one_draw(measurement: Measurement, change: IntArray) -> Fraction:
    if not change.any():
        return Fraction(0)
    scales = measurement.scales
    prices = []
    for draw in np.flatnonzero(scales.measured):
        unit = np.zeros(scales.rates.size, dtype=np.int64)
        unit[draw] = 1
        moved = _shift(measurement, unit)
        if (moved == change).all() or (moved == -change).all():
            prices.append(Fraction(int(scales.rates[draw]), scales.unit))
    if not prices:
        raise AssertionError("no single draw pays for this edge")
    return min(prices)


def _rows_of(measurement: Measurement, cell: int) -> IntArray:
    """Return the rows of a single record in `cell`; none for "absent"."""
    record = np.zeros(measurement.buckets.cells, dtype=np.int64)
    if cell != ABSENT:
        record[cell] = 1
    return measurement.strategy.rows(measurement.buckets.sum(record))
