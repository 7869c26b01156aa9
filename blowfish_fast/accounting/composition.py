"""Composition: what several releases cost together.

One after the other, costs add up. Side by side only the largest counts, provided that
one record that moves along one edge of the policy changes one part only:

    by ids       {Ann, Bob}    | {Cy, Dee}       different people; always so
    by regions   cells 0 .. 49 | cells 50 .. 99  different values; an edge across the
                                                 border changes both parts

Money is counted in whole billionths of epsilon, or trillionths of rho: charges are
rounded up, budgets down, so rounding never favours the spender. Proofs:
``docs/proofs/composition.md``; all of them hold with amounts of rho.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from blowfish_fast.errors import PolicyError
from blowfish_fast.policies import Policy
from blowfish_fast.policies.constrained import Constrained

Cost = Fraction | float
"""An exact cost, or infinity where nothing bounds it."""


class Currency(NamedTuple):
    """What a ledger counts: epsilon in billionths, or rho in trillionths.

    `name` is in full and `short` as messages write it; `units` make one epsilon or one
    rho, whose power is that of `Budget`.

    Examples
    --------
    >>> EPSILON.charged(Fraction(1, 3)), EPSILON.granted(Fraction(1, 3))
    (333333334, 333333333)
    >>> EPSILON.text(300_000_000), RHO.words(15_000_000_000)
    ('0.3', 'rho = 0.015')
    """

    name: str
    short: str
    units: int
    power: int

    def charged(self, amount: Fraction) -> int:
        """Return a cost in whole units, rounded up."""
        return math.ceil(amount * self.units)

    def granted(self, amount: Fraction) -> int:
        """Return a budget in whole units, rounded down."""
        return math.floor(amount * self.units)

    def amount(self, units: int) -> Fraction:
        """Return what whole units stand for."""
        return Fraction(units, self.units)

    def text(self, units: int) -> str:
        """Write units as a decimal number, exactly."""
        return format((Decimal(units) / self.units).normalize(), "f")

    def words(self, units: int) -> str:
        """Write units as messages do: "eps = 0.3"."""
        return f"{self.short} = {self.text(units)}"


EPSILON = Currency("epsilon", "eps", 10**9, 1)
RHO = Currency("rho", "rho", 10**12, 2)


def currency_of(power: int) -> Currency:
    """Return the currency of budgets of a power."""
    return EPSILON if power == 1 else RHO


def sequential(costs: Iterable[Fraction]) -> Fraction:
    """Return what releases from the same data cost together: the sum (Lemma CO2).

    Each may be chosen after seeing the ones before it.

    Examples
    --------
    >>> float(sequential([Fraction(1, 4), Fraction(1, 2)]))
    0.75
    """
    return sum(costs, Fraction(0))


def parallel_by_ids(
    costs: Sequence[Fraction], policy: Policy, *, scoped: bool = False
) -> Fraction:
    """Return what releases about disjoint sets of people cost together: the largest.

    Lemma CO3.

    Count constraints that some edge changes tie people of different parts to each other
    and are refused, unless `scoped` states that each counts people of one part only.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> policy = bf.policies.Full(bf.Domain(4))
    >>> float(parallel_by_ids([Fraction(1, 4), Fraction(1, 2)], policy))
    0.5
    """
    if not scoped and constraints_bind(policy):
        raise PolicyError(
            "this policy has count constraints, which tie the people of different "
            "parts to each other, so their costs add up",
            way_out="Release the parts one after the other, or pass scoped=True if "
            "each constraint counts people of one part only",
        )
    return max(costs)


def constraints_bind(policy: Policy) -> bool:
    """Return whether a record that moves along some edge changes a known count.

    If none does, neighbours differ in one record, as without constraints.
    """
    if not isinstance(policy, Constrained):
        return False
    if policy.constraints.domain != policy.domain:
        return True
    kinds = policy.constraints.cell_kinds
    # Cells of different kinds lie in different queries, so a move between them counts.
    if policy.unconstrained.project(kinds.labels).has_moves:
        return True
    held = np.diff(kinds.pointers)[kinds.labels] > 0
    return bool(policy.bottom_cells()[held].any())


def parallel_by_regions(
    inside: Sequence[Cost],
    presence: Sequence[Cost],
    crossings: Iterable[tuple[int, int]],
    *,
    bottom: Iterable[int] = (),
) -> Cost:
    """Return the exact price of releases about disjoint regions of the domain.

    Lemma CO4.

    `inside` has the cost of each region when a record moves along an edge inside it,
    `presence` when one enters or leaves it (infinite where the number of its records is
    released exactly); edges join the `crossings`, "absent" the regions of `bottom`.

    Examples
    --------
    >>> half, third = Fraction(1, 2), Fraction(1, 3)
    >>> float(parallel_by_regions([half, third], [half, third], crossings=[]))
    0.5
    >>> joined = parallel_by_regions([half, third], [half, third], crossings=[(0, 1)])
    >>> str(joined)
    '5/6'
    """
    moves = [presence[one] + presence[two] for one, two in crossings]
    return max([*inside, *(presence[one] for one in bottom), *moves], default=0.0)
