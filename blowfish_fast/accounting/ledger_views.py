"""A ledger as plain data, as a table of charges, and as a notebook shows it.

Requests, mechanisms, prices and notes are public; stored answers are left out.

    spent 0.3 of 1  [###-------]     request   mechanism   epsilon   analyst
                                     ages      laplace     0.3
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from blowfish_fast._support.html import panel, spent_bar, table
from blowfish_fast.data.frames import Table

from .statements import Entry

if TYPE_CHECKING:
    from .ledger import Ledger

MOST_SHOWN = 8
"""Charges that a notebook lists, the last ones."""


class LedgerViews:
    """How a ledger is handed on and shown; ``Ledger`` has all of it."""

    def to_dict(self) -> dict[str, Any]:
        """Return budget, policy, allotments and charges as plain data, for JSON.

        Numbers are exact fractions in text; stored answers are left out.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> policy = bf.policies.Full(bf.Domain(4))
        >>> ledger = bf.Ledger(None, epsilon=0.5, policy=policy)
        >>> ledger.to_dict()["remaining"], ledger.to_dict()["charges"]
        ('1/2', [])
        """
        return ledger_dict(cast("Ledger", self))

    def to_pandas(self) -> Any:
        """Return `history` as a pandas data frame, a row per charge."""
        return ledger_table(cast("Ledger", self)).to_pandas()

    def _repr_html_(self) -> str:
        return ledger_html(cast("Ledger", self))


def entry_dict(entry: Entry) -> dict[str, Any]:
    """Return a charge as plain data; epsilon as an exact fraction in text."""
    return {
        "number": entry.number,
        "request": entry.request,
        "time": entry.time.isoformat(),
        "mechanism": entry.mechanism,
        "epsilon": str(entry.epsilon),
        "policy": entry.policy,
        "state": entry.state,
        "together": entry.together,
        "analyst": entry.analyst,
        "note": entry.note,
    }


def ledger_dict(ledger: Ledger) -> dict[str, Any]:
    """Return budget, policy, allotments and charges as plain data."""
    return {
        "epsilon": str(ledger.epsilon),
        "spent": str(ledger.spent),
        "remaining": str(ledger.remaining),
        "frozen": ledger.frozen,
        "policy": ledger.policy.to_dict(),
        "about": ledger.about,
        "allotments": {
            analyst: {"epsilon": str(one.epsilon), "spent": str(one.spent)}
            for analyst, one in ledger.allotments().items()
        },
        "charges": [entry_dict(one) for one in ledger.history()],
    }


def ledger_table(ledger: Ledger) -> Table:
    """Return one row per charge, oldest first."""
    entries = ledger.history()
    moments = [one.time.replace(tzinfo=None) for one in entries]
    columns: dict[str, Any] = {
        "number": np.array([one.number for one in entries], dtype=np.int64),
        "time": np.array(moments, dtype="M8[us]"),
        "epsilon": np.array([float(one.epsilon) for one in entries]),
    }
    for name in ("request", "mechanism", "analyst", "state"):
        column = np.empty(len(entries), dtype=object)
        column[:] = [getattr(one, name) for one in entries]
        columns[name] = column
    return Table(columns)


def ledger_html(ledger: Ledger) -> str:
    """Show what is spent, what remains, the policy and the last charges."""
    entries = ledger.history()
    total, spent = float(ledger.epsilon), float(ledger.spent)
    words = ledger.policy.describe()
    rows = [
        (
            one.request,
            one.mechanism,
            f"{float(one.epsilon):g}",
            one.analyst or "",
            one.time.isoformat(sep=" ", timespec="seconds"),
        )
        for one in entries[-MOST_SHOWN:]
    ]
    drawing = spent_bar(spent, total)
    if rows:
        heads = ("request", "mechanism", "epsilon", "analyst", "time")
        drawing += table(heads, rows)
    shares = [
        (analyst, f"spent {float(one.spent):g} of {float(one.epsilon):g}")
        for analyst, one in ledger.allotments().items()
    ]
    count = len(entries)
    listed = f", the last {MOST_SHOWN} listed" if count > MOST_SHOWN else ""
    return panel(
        f"Ledger: eps = {spent:g} of {total:g} spent, "
        f"{float(ledger.remaining):g} left; "
        f"{count:,} {'charge' if count == 1 else 'charges'}{listed}",
        shares,
        sentence=f"{words[0].upper()}{words[1:]}.",
        drawing=drawing,
    )
