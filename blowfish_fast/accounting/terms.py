"""What was agreed when a ledger was opened: its policy, and what it is about.

Terms are plain data in the first entry of the journal, or in a later one that amended
them before anything was charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from blowfish_fast.errors import BlowfishError, LedgerError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.policies import Policy, from_dict

from .composition import EPSILON, Currency
from .journal import Journal


class Terms(NamedTuple):
    """The terms in force, and the entry of the log that says so."""

    entry: int
    policy: Policy
    about: dict[str, Any]


def plain_terms(
    policy: Policy, about: Mapping[str, Any] | None, currency: Currency = EPSILON
) -> dict[str, Any]:
    """Return terms as plain data, for JSON; no currency stands for epsilon."""
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
