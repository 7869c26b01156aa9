"""What a ledger agreed to, and what it reports: previews, allotments, its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from blowfish_fast._support.validation import malformed_as
from blowfish_fast.errors import BlowfishError, InputError, LedgerError
from blowfish_fast.measure.budgets import Budget, HasBudget
from blowfish_fast.policies import Policy, from_dict
from blowfish_fast.policies.protocol import extends

from .composition import EPSILON, Currency
from .journal import BudgetStanding, Charge, Journal, ReleasedColumns, State


class Terms(NamedTuple):
    """The terms in force.

    Attributes
    ----------
    entry : int
        The entry of the log that says so.
    policy : Policy
        What is secret.
    about : dict[str, object]
        What else was agreed.
    """

    entry: int
    policy: Policy
    about: dict[str, Any]


def plain_terms(
    policy: Policy, about: Mapping[str, Any] | None, currency: Currency = EPSILON
) -> dict[str, Any]:
    """Return terms as plain data, for JSON; no currency stands for epsilon.

    Parameters
    ----------
    policy : Policy
        What is secret.
    about : Mapping[str, object] or None
        What else was agreed.
    currency : Currency, default EPSILON
        What the ledger counts.

    Returns
    -------
    dict[str, object]
        Plain data.

    Raises
    ------
    InputError
        If `about` is no mapping of plain values.
    """
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
    return _terms_of(journal, entry, terms)


def _terms_of(journal: Journal, entry: int, terms: Mapping[str, Any]) -> Terms:
    try:
        about = dict(terms.get("about") or {})
        return Terms(entry, from_dict(terms["policy"]), about)
    except (BlowfishError, KeyError, TypeError, ValueError) as problem:
        raise LedgerError(
            f"the policy of {journal.name} cannot be read ({problem}); was it written "
            "by a newer version?"
        ) from None


def refused_columns(agreed: Policy, released: ReleasedColumns, policy: Policy) -> str:
    """Say why a charged ledger cannot go on under a policy (Lemma CO14).

    Parameters
    ----------
    agreed : Policy
        The policy in force.
    released : ReleasedColumns
        Of which columns something was charged.
    policy : Policy
        The policy that is to be in force.

    Returns
    -------
    str
        The reason; empty if it can.
    """
    names = agreed.domain.names
    if None in names:
        return "columns without names cannot be told from those that come later"
    if extends(policy, agreed):
        return ""
    charged, shown = agreed, list(names)
    if released.names is not None and released.names <= {*names}:
        shown = [name for name in names if name in released.names]
        part = agreed.domain.marginal(shown)
        views = agreed.domain.columns_for(part)
        seen = None if views is None else agreed._seen_through(views, part)
        charged = agreed if seen is None else seen
    # Of the same kind: what was promised about several columns at once stays promised.
    if policy.kind == agreed.kind and extends(policy, charged):
        return ""
    return (
        f"something was released of {', '.join(map(str, shown))}, at prices for their "
        "cells and their policy: these stay as they are (cells may be cut finer), and "
        "other columns are added beside them under a policy of the same kind"
    )


def decisions_of(journal: Journal) -> list[dict[str, Any]]:
    """Return what was decided about a ledger since it was made, for people.

    Parameters
    ----------
    journal : Journal
        The journal of the ledger.

    Returns
    -------
    list of dict
        Entry, time, what was changed in words, why and by whom, oldest first.
    """
    (number, _, agreed), *later = journal.decisions()
    total, policy = int(agreed["total"]), _policy_of(journal, number, agreed)
    decisions = []
    for number, kind, content in later:
        changed = []
        if kind == "amend":
            latest = _policy_of(journal, number, content)
            changed, policy = _changes(policy, latest), latest
        raised = int(content["total"])
        if raised != total:
            before, after = (journal.currency.text(units) for units in (total, raised))
            changed.append(f"budget {after} in place of {before}")
        total = raised
        decisions.append(
            {
                "number": number,
                "time": content.get("time"),
                "changed": "; ".join(changed) or "what is noted",
                "why": content.get("why", ""),
                "by": content.get("by", ""),
            }
        )
    return decisions


def _policy_of(journal: Journal, entry: int, content: Mapping[str, Any]) -> Policy:
    return _terms_of(journal, entry, content.get("terms") or {}).policy


def _changes(before: Policy, after: Policy) -> list[str]:
    """Say how a policy over columns differs from the one that it follows."""
    old, new = (
        dict(zip(policy.domain.column_names, policy.domain.attributes, strict=True))
        for policy in (before, after)
    )
    shared = [name for name in new if name in old]
    lists = {
        "added": [name for name in new if name not in old],
        "left out": [name for name in old if name not in new],
        "with other cells": [name for name in shared if old[name] != new[name]],
    }
    changed = [f"{', '.join(names)} {how}" for how, names in lists.items() if names]
    if before != after and not changed:
        changed.append(f"policy: {after.describe()}")
    return changed


def raises_of(journal: Journal) -> list[dict[str, Any]]:
    """Return how a budget was raised, for people.

    Parameters
    ----------
    journal : Journal
        The journal of the ledger.

    Returns
    -------
    list of dict
        Time, amount, why and by whom, oldest first.
    """
    return [
        {
            "time": change.get("time"),
            "amount": journal.currency.amount(int(change["total"])),
            "why": change.get("why", ""),
            "by": change.get("by", ""),
        }
        for change in journal.raises()
    ]


def add_columns(
    journal: Journal, terms: Terms, policy: Policy, note: dict[str, Any]
) -> None:
    """Go on under a policy over more columns, where Lemma CO14 covers it.

    Parameters
    ----------
    journal : Journal
        The journal of the ledger.
    terms : Terms
        The terms in force.
    policy : Policy
        The policy that is to be in force.
    note : dict[str, object]
        Why, and by whom.

    Raises
    ------
    LedgerError
        If the lemma does not cover it, or something else describes the tables.
    """
    if terms.about:
        raise LedgerError(
            "the tables of this ledger are described by an explorer or a population, "
            "which its columns must fit",
            way_out="Describe another table there, or make a ledger of its own",
        )
    released = journal.released_columns()
    reason = refused_columns(terms.policy, released, policy)
    if reason:
        raise LedgerError(reason, received=repr(policy))
    plain = plain_terms(policy, terms.about, journal.currency)
    journal.add_columns(plain, terms.entry, released, note)


def check_changes(journal: Journal) -> None:
    """Refuse a log whose terms were changed otherwise than by adding columns.

    Parameters
    ----------
    journal : Journal
        The journal of the ledger, whose chain was checked.

    Raises
    ------
    LedgerError
        If a change after the first charge is not covered by Lemma CO14.
    """
    for change in journal.changes_of_terms():
        before = _terms_of(journal, change.number, change.before)
        after = _terms_of(journal, change.number, change.after)
        reason = refused_columns(before.policy, change.released, after.policy)
        if reason or before.about != after.about:
            raise LedgerError(
                f"{journal.name} is damaged or was tampered with: entry "
                f"{change.number} does more than to add columns"
            )


def refuse_other_terms(
    journal: Journal, agreed: Policy, budget: Budget | None, policy: Policy | None
) -> None:
    """Refuse to reopen a ledger under another budget or policy.

    Parameters
    ----------
    journal : Journal
        The journal of the ledger.
    agreed : Policy
        The policy that was agreed.
    budget : Budget or None
        The budget that is stated now; None if none is.
    policy : Policy or None
        The policy that is stated now; None if none is.

    Raises
    ------
    LedgerError
        If one of them is another.
    """
    total, currency = journal.standing().total, journal.currency
    if budget is not None and (
        budget.power != currency.power or currency.granted(budget.amount) != total
    ):
        raise LedgerError(
            f"{journal.name} has a budget of {currency.words(total)}; received "
            f"{budget.words()}. Leave the budget out, or give the same"
        )
    if policy is not None and policy != agreed:
        raise LedgerError(
            f"{journal.name} is kept under {agreed!r}; received {policy!r}. Leave the "
            "policy out, or give the same"
        )


@dataclass(frozen=True)
class Preview:
    """What a release would cost, or why it is refused; ``str()`` gives a sentence.

    Parameters
    ----------
    mechanism : str
        The name of the mechanism.
    cost : Fraction
        What it would cost.
    before : Fraction
        What remains of the budget now.
    after : Fraction
        What would remain.
    accepted : bool
        Whether the ledger would take it.
    reason : str
        Why not; empty if it would.
    currency : Currency
        Epsilon or rho.
    """

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
        standing: BudgetStanding,
        refusal: str,
        currency: Currency = EPSILON,
    ) -> Preview:
        """Weigh a cost against the budget, unless the ledger refuses anyway.

        Parameters
        ----------
        mechanism : str
            The name of the mechanism.
        cost : int
            Units.
        standing : BudgetStanding
            What is spent so far.
        refusal : str
            Why the ledger refuses; empty if it does not.
        currency : Currency, default EPSILON
            What the ledger counts.

        Returns
        -------
        Preview
            The preview.
        """
        left = standing.total - standing.spent
        if not refusal and cost > left:
            refusal = (
                f"it costs {currency.words(cost)}, and {currency.text(left)} of "
                f"{currency.text(standing.total)} remains"
            )
        after = left if refusal else left - cost
        price, before, later = (currency.amount(units) for units in (cost, left, after))
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
    """An analyst's part of the budget, in the ledger's currency.

    Parameters
    ----------
    granted : Fraction
        What was allotted.
    spent : Fraction
        What was spent of it.
    """

    granted: Fraction
    spent: Fraction

    @property
    def remaining(self) -> Fraction:
        """What is left of the allotment; the whole budget may run out earlier."""
        return self.granted - self.spent


@dataclass(frozen=True)
class Entry(HasBudget):
    """One charge, as `Ledger.history` lists it.

    `together` says why the parts that `mechanism` names cost no more than the largest
    ("ids", "regions"). The `state` is "reserved" (not answered yet), "stored" (answered
    and kept) or "returned"; `analyst` is whose allotment paid.

    Parameters
    ----------
    number : int
        The number of the charge.
    request : str
        The name of the request.
    time : datetime
        When it was charged.
    mechanism : str
        The mechanism, or the parts that were charged together.
    budget : Budget
        What it cost.
    policy : str
        The policy, in words.
    state : {"reserved", "stored", "returned"}
        How far it has come.
    together : str, optional
        Why several parts cost no more than the largest.
    analyst : str, optional
        Whose allotment paid.
    note : dict, optional
        What was noted with the charge.
    snapshot : str, default ''
        Which state of the data was asked.
    version : str, default ''
        The label of the content of the data, where one was stated.
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
    version: str = ""

    @classmethod
    @malformed_as(LedgerError, "an entry of the ledger is damaged: it must name parts")
    def of(cls, charge: Charge, currency: Currency = EPSILON) -> Entry:
        """Read a charge of a journal in some currency.

        Parameters
        ----------
        charge : Charge
            The charge.
        currency : Currency, default EPSILON
            What the ledger counts.

        Returns
        -------
        Entry
            The entry.
        """
        parts = charge.content.get("parts", [])
        policies = dict.fromkeys(str(part["policy"]) for part in parts)
        return cls(
            number=charge.number,
            request=charge.request,
            time=datetime.fromisoformat(charge.content["time"]),
            mechanism=", ".join(str(part["mechanism"]) for part in parts),
            budget=Budget(currency.amount(charge.cost), currency.power),
            policy="; ".join(policies),
            state=charge.state,
            together=charge.content.get("together"),
            analyst=charge.content.get("analyst"),
            note=charge.content.get("note"),
            snapshot=str(charge.content.get("snapshot", "")),
            version=str(charge.content.get("version", "")),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the charge as plain data; its budget as an exact fraction in text."""
        plain = {name: value for name, value in vars(self).items() if name != "budget"}
        return {**plain, "time": self.time.isoformat(), **self.budget.to_dict()}
