"""What a mechanism costs a ledger, known before anything is drawn.

    ledger in    mechanism in epsilon                    mechanism in rho
    epsilon      its epsilon                             refused
    rho          measurements at their squares,          its rho
                 or epsilon^2 / 2

A pure release of many rows costs far less rho than epsilon^2 / 2: a row of rate r that
an edge moves by m pays (r m)^2 / 2. That is charged where a dry run shows all scales;
where scales follow from draws, epsilon^2 / 2 is, which always holds. Proof:
``docs/proofs/zcdp.md``.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import Self

from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import BudgetError, DataDependentError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Account, Handle, Measurement, Strategy
from blowfish_fast.measure.strategies import LinearStrategy
from blowfish_fast.mechanisms import Mechanism

from .composition import Currency


class _Pricing(Handle):
    """A dry run that adds up the rho of its measurements."""

    prices: list[Fraction]

    @classmethod
    def over(cls, handle: Handle, prices: list[Fraction]) -> Self:
        pricing = cls.__new__(cls)
        pricing.__dict__.update(handle.__dict__)
        pricing.prices = prices
        return pricing

    def measure(self, strategy: Strategy, *, budget: Budget | Fraction) -> Measurement:
        measurement = super().measure(strategy, budget=budget)
        rho = self._read(budget).rho
        if isinstance(strategy, LinearStrategy):
            edge = Budget(strategy.cost_in_rho(self.policy, measurement.scales), 2)
            rho = min(rho, edge.at_distance(self._group_size).amount)
        self.prices.append(rho)
        return measurement

    def coarsened(self, buckets: Buckets) -> Self:
        return type(self).over(super().coarsened(buckets), self.prices)


def refuse_currency(mechanism: Mechanism, currency: Currency) -> str:
    """Say why a ledger in `currency` cannot charge a mechanism; "" if it can."""
    if mechanism.budget.power <= currency.power:
        return ""
    return (
        f"the ledger counts {currency.name}, and {mechanism.name} costs "
        f"{mechanism.budget.words()}, which no {currency.name} bounds. State epsilon "
        "alone, or keep a ledger in rho: Ledger(path, rho=..., policy=...)"
    )


def price_in(mechanism: Mechanism, currency: Currency) -> Fraction:
    """Return what a mechanism costs in a currency, from public values alone.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> from blowfish_fast.accounting.composition import RHO
    >>> line = bf.Domain(512)
    >>> policy, asked = bf.policies.AddRemove(line), bf.workloads.AllRanges(line)
    >>> tree = bf.Hierarchy(policy, asked, epsilon="0.1", fan_out=2, weights="uniform")
    >>> round(float(price_in(tree, RHO)), 9)   # ten levels: epsilon^2 / 20
    0.0005
    """
    reason = refuse_currency(mechanism, currency)
    if reason:
        raise BudgetError(f"{reason}. Nothing was charged")
    if mechanism.budget.power == currency.power:
        return mechanism.budget.amount
    most = mechanism.budget.rho
    with suppress(DataDependentError):
        prices: list[Fraction] = []
        handle = mechanism._handle(None, Account(mechanism.budget), None)
        mechanism._run(_Pricing.over(handle, prices))
        return min(sum(prices, Fraction(0)), most)
    return most
