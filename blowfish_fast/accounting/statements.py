"""What a ledger agreed to, and what it reports: previews, allotments, its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from blowfish_fast._support.validation import malformed_as
from blowfish_fast.errors import BlowfishError, InputError, LedgerError
from blowfish_fast.measure.budgets import Budget, Paid
from blowfish_fast.policies import Policy, from_dict

from .composition import EPSILON, Currency
from .journal import Charge, Journal, Standing, State


class Terms(NamedTuple):
    """The terms in force, the entry of the log that says so, and whether they stay."""

    entry: int
    policy: Policy
    about: dict[str, Any]
    final: bool = False


def plain_terms(
    policy: Policy, about: Mapping[str, Any] | None, currency: Currency = EPSILON
) -> dict[str, Any]:
    """Return terms as plain data, for JSON; no currency stands for epsilon."""
    with malformed_as(InputError, "about is a mapping of plain values"):
        plain = {"policy": policy.to_dict(), "about": dict(about or {})}
    return plain if currency == EPSILON else {**plain, "currency": currency.name}


def read_terms(journal: Journal) -> Terms:
    """Read the terms in force."""
    entry, terms = journal.terms()
    if terms.get("currency", EPSILON.name) != journal.currency.name:
        raise LedgerError(
            f"{journal.name} is damaged: its format counts {journal.currency.name} and "
            f"its terms {terms.get('currency', EPSILON.name)!r}"
        )
    try:
        about = dict(terms.get("about") or {})
        return Terms(entry, from_dict(terms["policy"]), about)
    except (BlowfishError, KeyError, TypeError, ValueError) as problem:
        raise LedgerError(
            f"the policy of {journal.name} cannot be read ({problem}); was it written "
            "by a newer version?"
        ) from None


def refuse_other_terms(
    journal: Journal, agreed: Policy, budget: Budget | None, policy: Policy | None
) -> None:
    """Refuse to reopen a ledger under another budget or policy."""
    known, currency = journal.standing().total, journal.currency
    if budget is not None and (
        budget.power != currency.power or currency.granted(budget.amount) != known
    ):
        raise LedgerError(
            f"{journal.name} has a budget of {currency.words(known)}; received "
            f"{budget.words()}. Leave the budget out, or give the same"
        )
    if policy is not None and policy != agreed:
        raise LedgerError(
            f"{journal.name} is kept under {agreed!r}; received {policy!r}. Leave the "
            "policy out, or give the same"
        )


@dataclass(frozen=True)
class Preview:
    """What a release would cost, or why it is refused; ``str()`` gives a sentence."""

    mechanism: str
    cost: Fraction
    before: Fraction
    after: Fraction
    accepted: bool
    reason: str
    currency: Currency = EPSILON

    @classmethod
    def of(
        cls,
        mechanism: str,
        cost: int,
        standing: Standing,
        refusal: str,
        currency: Currency = EPSILON,
    ) -> Preview:
        """Weigh a cost against the budget, unless the ledger refuses anyway."""
        left = standing.total - standing.spent
        if not refusal and cost > left:
            refusal = (
                f"it costs {currency.words(cost)}, and {currency.text(left)} of "
                f"{currency.text(standing.total)} remains"
            )
        after = left if refusal else left - cost
        price, before, later = (currency.amount(one) for one in (cost, left, after))
        return cls(mechanism, price, before, later, not refusal, refusal, currency)

    def __str__(self) -> str:
        if not self.accepted:
            return f"{self.mechanism} would be refused: {self.reason}"
        return (
            f"{self.mechanism} would cost {self.currency.short} = "
            f"{self._text(self.cost)} of the {self._text(self.before)} that remains; "
            f"{self._text(self.after)} would be left"
        )

    def _text(self, amount: Fraction) -> str:
        return self.currency.text(int(amount * self.currency.units))


@dataclass(frozen=True)
class Share:
    """An analyst's part of the budget, in the ledger's currency."""

    granted: Fraction
    spent: Fraction

    @property
    def remaining(self) -> Fraction:
        """What is left of the allotment; the whole budget may run out earlier."""
        return self.granted - self.spent


@dataclass(frozen=True)
class Entry(Paid):
    """One charge, as `Ledger.history` lists it.

    `together` says why the parts that `mechanism` names cost no more than the largest
    ("ids", "regions"). The `state` is "reserved" (not answered yet), "stored" (answered
    and kept) or "returned"; `analyst` is whose allotment paid.
    """

    number: int
    request: str
    time: datetime
    mechanism: str
    budget: Budget
    policy: str
    state: State
    together: str | None = None
    analyst: str | None = None
    note: dict[str, Any] | None = None
    snapshot: str = ""

    @classmethod
    @malformed_as(LedgerError, "an entry of the ledger is damaged: it must name parts")
    def of(cls, charge: Charge, currency: Currency = EPSILON) -> Entry:
        """Read a charge of a journal in some currency."""
        parts = charge.content.get("parts", [])
        policies = dict.fromkeys(str(one["policy"]) for one in parts)
        return cls(
            number=charge.number,
            request=charge.request,
            time=datetime.fromisoformat(charge.content["time"]),
            mechanism=", ".join(str(one["mechanism"]) for one in parts),
            budget=Budget(currency.amount(charge.cost), currency.power),
            policy="; ".join(policies),
            state=charge.state,
            together=charge.content.get("together"),
            analyst=charge.content.get("analyst"),
            note=charge.content.get("note"),
            snapshot=str(charge.content.get("snapshot", "")),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the charge as plain data; its budget as an exact fraction in text."""
        plain = {name: one for name, one in vars(self).items() if name != "budget"}
        return {**plain, "time": self.time.isoformat(), **self.budget.to_dict()}
