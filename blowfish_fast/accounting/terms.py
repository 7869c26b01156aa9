"""What was agreed when a ledger was opened: its policy, and what it is about.

Terms are plain data in the first entry of the journal, or in a later one that amended
them before anything was charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from blowfish_fast.errors import BlowfishError, LedgerError
from blowfish_fast.policies import Policy, from_dict

from .composition import units_text
from .journal import Journal


class Terms(NamedTuple):
    """The terms in force, and the entry of the log that says so."""

    entry: int
    policy: Policy
    about: dict[str, Any]


def plain_terms(policy: Policy, about: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return terms as plain data, for JSON."""
    return {"policy": policy.to_dict(), "about": dict(about or {})}


def read_terms(journal: Journal) -> Terms:
    """Read the terms in force."""
    entry, terms = journal.terms()
    try:
        about = dict(terms.get("about") or {})
        return Terms(entry, from_dict(terms["policy"]), about)
    except (BlowfishError, KeyError, TypeError, ValueError) as problem:
        raise LedgerError(
            f"the policy of {journal.name} cannot be read ({problem}); was it written "
            "by a newer version?"
        ) from None


def refuse_other_terms(
    journal: Journal, agreed: Policy, total: int | None, policy: Policy | None
) -> None:
    """Refuse to reopen a ledger under another budget or policy."""
    known = journal.standing().total
    if total is not None and total != known:
        raise LedgerError(
            f"{journal.name} has a budget of {units_text(known)}; received "
            f"epsilon={units_text(total)}. Leave epsilon out, or give the same"
        )
    if policy is not None and policy != agreed:
        raise LedgerError(
            f"{journal.name} is kept under {agreed!r}; received {policy!r}. Leave the "
            "policy out, or give the same"
        )
