"""``blowfish ledger``: whether a ledger still says what it said, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..accounting.ledger import Ledger
from ..accounting.statements import Entry
from ..errors import LedgerError
from .printing import show, show_table


def run_verify(path: Path, head: str | None, *, as_json: bool) -> bool:
    """Check a ledger's chain, sums and answers; print its head, or what is wrong."""
    try:
        with _opened(path) as ledger:
            found: dict[str, Any] = {
                "intact": True,
                "head": ledger.verify(head),
                "epsilon": float(ledger.epsilon),
                "spent": float(ledger.spent),
                "charges": len(ledger.history()),
            }
    except LedgerError as problem:
        show({"intact": False, "problem": str(problem)} if as_json else str(problem))
        return False
    if as_json:
        show(found)
        return True
    show(
        f"intact: {found['charges']} charges, eps = {found['spent']:g} of "
        f"{found['epsilon']:g} spent"
    )
    show(f"head {found['head']}")
    return True


def run_history(path: Path, *, as_json: bool) -> None:
    """Print every charge of a ledger, oldest first."""
    with _opened(path) as ledger:
        entries = ledger.history()
    if as_json:
        show({"charges": [_plain(one) for one in entries]})
        return
    names = ["number", "time", "analyst", "mechanism", "epsilon", "state", "request"]
    rows = [[str(_plain(one)[name]) for name in names] for one in entries]
    show_table(names, rows)


def _plain(entry: Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "time": entry.time.isoformat(timespec="seconds"),
        "analyst": entry.analyst,
        "mechanism": entry.mechanism,
        "epsilon": float(entry.epsilon),
        "state": entry.state,
        "request": entry.request,
        "note": entry.note,
    }


def _opened(path: Path) -> Ledger:
    if not path.exists():
        raise LedgerError(f"there is no ledger at {path}")
    return Ledger(path)
