"""What a ledger reports: previews of a charge, allotments, entries of its history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from blowfish_fast._support.validation import malformed_as
from blowfish_fast.errors import LedgerError

from .composition import UNITS, units_text
from .journal import Charge, Standing, State


@dataclass(frozen=True)
class Preview:
    """What a release would cost; ``str()`` gives it as a sentence.

    Attributes
    ----------
    cost : Fraction
        Epsilon that would be charged.
    before, after : Fraction
        What remains now, and what would remain.
    accepted : bool
        Whether the ledger would release it.
    reason : str
        Why not; empty if accepted.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> policy = bf.policies.Full(bf.Domain(4))
    >>> ledger = bf.Ledger(None, epsilon=1, policy=policy)
    >>> asked = bf.workloads.Identity(policy.domain)
    >>> mechanism = bf.Laplace(policy, asked, epsilon=0.3)
    >>> print(ledger.preview(mechanism))
    laplace would cost eps = 0.3 of the 1 that remains; 0.7 would be left
    """

    mechanism: str
    cost: Fraction
    before: Fraction
    after: Fraction
    accepted: bool
    reason: str

    @classmethod
    def of(cls, mechanism: str, cost: int, standing: Standing, refusal: str) -> Preview:
        """Weigh a cost against the budget, unless the ledger refuses anyway."""
        left = standing.total - standing.spent
        if not refusal and cost > left:
            refusal = (
                f"it costs eps = {units_text(cost)}, and {units_text(left)} of "
                f"{units_text(standing.total)} remains"
            )
        after = left if refusal else left - cost
        price, before, later = (Fraction(one, UNITS) for one in (cost, left, after))
        return cls(mechanism, price, before, later, not refusal, refusal)

    def __str__(self) -> str:
        if not self.accepted:
            return f"{self.mechanism} would be refused: {self.reason}"
        return (
            f"{self.mechanism} would cost eps = {_text(self.cost)} of the "
            f"{_text(self.before)} that remains; {_text(self.after)} would be left"
        )


@dataclass(frozen=True)
class Share:
    """An analyst's part of the budget.

    Attributes
    ----------
    epsilon, spent, remaining : Fraction
        Granted, charged so far, and left.
    """

    epsilon: Fraction
    spent: Fraction

    @property
    def remaining(self) -> Fraction:
        """What is left of the allotment; the whole budget may run out earlier."""
        return self.epsilon - self.spent


@dataclass(frozen=True)
class Entry:
    """One charge, as `Ledger.history` lists it.

    Attributes
    ----------
    number : int
        Place in the log.
    request : str
        Id under which the answer is replayed.
    time : datetime
        When it was charged, by this machine's clock; nothing depends on it.
    mechanism : str
        Name, or names of parts that were charged together.
    epsilon : Fraction
        Charged in all.
    policy : str
        What the mechanism keeps indistinguishable, in words.
    state : {"reserved", "stored", "returned"}
        Charged and not answered yet; answered and kept; answered and not kept.
    together : {None, "ids", "regions"}
        Why the parts cost no more than the largest, for `Ledger.release_disjoint`.
    analyst : str or None
        Whose allotment was charged.
    note : dict or None
        Public data that was kept with the charge.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> policy = bf.policies.Full(bf.Domain(4))
    >>> ledger = bf.Ledger(None, epsilon=1, policy=policy)
    >>> asked = bf.workloads.Identity(policy.domain)
    >>> mechanism = bf.Laplace(policy, asked, epsilon=0.3)
    >>> release = ledger.release(mechanism, [4, 0, 2, 1], request="ages, March")
    >>> entry = ledger.history()[0]
    >>> entry.request, float(entry.epsilon), entry.mechanism
    ('ages, March', 0.3, 'laplace')
    """

    number: int
    request: str
    time: datetime
    mechanism: str
    epsilon: Fraction
    policy: str
    state: State
    together: str | None = None
    analyst: str | None = None
    note: dict[str, Any] | None = None

    @classmethod
    @malformed_as(LedgerError, "an entry of the ledger is damaged: it must name parts")
    def of(cls, charge: Charge) -> Entry:
        """Read a charge of the journal."""
        parts = charge.content.get("parts", [])
        policies = dict.fromkeys(str(one["policy"]) for one in parts)
        return cls(
            number=charge.number,
            request=charge.request,
            time=datetime.fromisoformat(charge.content["time"]),
            mechanism=", ".join(str(one["mechanism"]) for one in parts),
            epsilon=Fraction(charge.cost, UNITS),
            policy="; ".join(policies),
            state=charge.state,
            together=charge.content.get("together"),
            analyst=charge.content.get("analyst"),
            note=charge.content.get("note"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the charge as plain data; epsilon as an exact fraction in text."""
        plain = {"time": self.time.isoformat(), "epsilon": str(self.epsilon)}
        return {**vars(self), **plain}


def _text(epsilon: Fraction) -> str:
    return units_text(int(epsilon * UNITS))
