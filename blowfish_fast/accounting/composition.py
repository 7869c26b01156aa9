"""What several releases cost together, and when a ledger may pay for one.

One after the other, costs add up. Side by side only the largest counts, provided that
one record that moves along one edge of the policy changes one part only:

    by ids       {Ann, Bob}    | {Cy, Dee}       different people; always so
    by regions   cells 0 .. 49 | cells 50 .. 99  different values; an edge across the
                                                 border changes both parts

Money is counted in whole billionths of epsilon: charges are rounded up, budgets down,
so rounding never favours the spender. Proofs: ``docs/proofs/composition.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction

from ..errors import PolicyError
from ..policies import Policy

UNITS = 10**9
"""Units of a ledger in one epsilon: a unit is a nano-epsilon."""

Cost = Fraction | float
"""An exact cost, or infinity where nothing bounds it."""


def units_charged(epsilon: Fraction) -> int:
    """Return a cost in whole units, rounded up."""
    return math.ceil(epsilon * UNITS)


def units_granted(epsilon: Fraction) -> int:
    """Return a budget in whole units, rounded down."""
    return math.floor(epsilon * UNITS)


def units_text(units: int) -> str:
    """Write units as a decimal number of epsilon, exactly.

    >>> units_text(300_000_000)
    '0.3'
    """
    return format((Decimal(units) / UNITS).normalize(), "f")


def sequential(costs: Iterable[Fraction]) -> Fraction:
    """Return what releases from the same data cost together: the sum.

    Each may be chosen after seeing the ones before it.
    """
    return sum(costs, Fraction(0))


def parallel_by_ids(
    costs: Sequence[Fraction], policy: Policy, *, scoped: bool = False
) -> Fraction:
    """Return what releases about disjoint sets of people cost together: the largest.

    Parameters
    ----------
    costs : sequence of Fraction
        Of each part under `policy`.
    policy : Policy
        A count constraint ties people of different parts to each other, so a policy
        with constraints is refused, unless
    scoped : bool
        states that every constraint counts people of one part only.
    """
    if policy.has_constraints and not scoped:
        raise PolicyError(
            "this policy has count constraints, which tie the people of different "
            "parts to each other, so their costs add up. Release the parts one after "
            "the other, or pass scoped=True if each constraint counts people of one "
            "part only"
        )
    return max(costs)


def parallel_by_regions(
    inside: Sequence[Cost],
    presence: Sequence[Cost],
    crossings: Iterable[tuple[int, int]],
    *,
    bottom: Iterable[int] = (),
) -> Cost:
    """Return the exact price of releases about disjoint regions of the domain.

    Parameters
    ----------
    inside : sequence
        Cost of each region when a record moves along an edge inside it; 0 if none is.
    presence : sequence
        Cost of each region when a record enters or leaves it; infinite where the
        number of records in the region is released exactly.
    crossings : iterable of pairs
        Regions that an edge joins.
    bottom : iterable
        Regions with a cell that is joined to "absent".
    """
    moves = [presence[one] + presence[two] for one, two in crossings]
    return max([*inside, *(presence[one] for one in bottom), *moves], default=0.0)


def ancestry(policy: Policy) -> Iterator[Policy]:
    """Yield a policy, the one it was projected from, and so on."""
    link: Policy | None = policy
    while link is not None:
        yield link
        link = link.parent


def protects(policy: Policy, demanded: Policy) -> bool:
    """Return whether a mechanism under `policy` may be charged to `demanded`.

    So it is for the same policy, for one with at least its edges, and for a projection
    of either. Under count constraints neighbours differ in several records, so the
    constraints must be the same ones; more edges do not make up for them.
    """
    if not (policy.has_constraints or demanded.has_constraints):
        return policy.covers(demanded)
    return policy.has_constraints and any(one == demanded for one in ancestry(policy))
