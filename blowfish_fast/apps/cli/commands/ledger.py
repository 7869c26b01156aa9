"""``blowfish ledger``: make a budget, see what is left, and check its chain."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.accounting.statements import Entry
from blowfish_fast.apps.cli.files.picture_files import write_picture
from blowfish_fast.apps.cli.parsing.words import parsed_domain, parsed_policy
from blowfish_fast.apps.cli.printing import (
    counted,
    remark,
    show,
    show_pairs,
    show_table,
)
from blowfish_fast.errors import LedgerError


def run_create(
    path: Path, epsilon: str, cells: Sequence[str], policy: str, *, as_json: bool
) -> None:
    """Make a ledger where there is none yet."""
    if path.exists():
        raise LedgerError(
            f"there is something at {path} already, and a ledger is never overwritten; "
            "blowfish ledger status shows one"
        )
    stated = parsed_policy(policy, parsed_domain(cells))
    Ledger(path, epsilon=epsilon, policy=stated).close()
    run_status(path, as_json=as_json)


def run_allot(path: Path, analyst: str, epsilon: str, *, as_json: bool) -> None:
    """Set an analyst's part and show what stands now."""
    with _opened(path) as ledger:
        ledger.allot(analyst, epsilon)
    run_status(path, as_json=as_json)


def run_status(path: Path, *, as_json: bool) -> None:
    """Print budget, charges and allotments."""
    with _opened(path) as ledger:
        shares = ledger.allotments()
        found: dict[str, Any] = {
            "ledger": str(path),
            "epsilon": float(ledger.epsilon),
            "spent": float(ledger.spent),
            "remaining": float(ledger.remaining),
            "charges": len(ledger.history()),
            "frozen": ledger.frozen,
            "allotments": {
                analyst: {
                    "epsilon": float(one.epsilon),
                    "spent": float(one.spent),
                    "remaining": float(one.remaining),
                }
                for analyst, one in shares.items()
            },
            "domain": repr(ledger.policy.domain),
            "promise": ledger.policy.describe(),
            "policy": ledger.policy.to_dict(),
            "about": ledger.about,
        }
    if as_json:
        show(found)
        return
    frozen = "fixed, since something was charged" if found["frozen"] else "may change"
    show_pairs(
        str(path),
        [
            ("budget", f"eps = {found['epsilon']:g}"),
            ("spent", f"{found['spent']:g}, in {counted(found['charges'], 'charge')}"),
            ("remaining", f"{found['remaining']:g}"),
            ("domain", found["domain"]),
            ("policy", found["promise"]),
            ("terms", f"policy and budget: {frozen}"),
        ],
    )
    if shares:
        rows = [
            [name, *(f"{float(x):g}" for x in (one.epsilon, one.spent, one.remaining))]
            for name, one in shares.items()
        ]
        show_table(["analyst", "may spend", "spent", "remaining"], rows)


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
        f"intact: {counted(found['charges'], 'charge')}, eps = {found['spent']:g} of "
        f"{found['epsilon']:g} spent"
    )
    show(f"head {found['head']}")
    return True


def run_history(path: Path, picture: Path | None, *, as_json: bool) -> None:
    """Print every charge of a ledger, oldest first; draw the budget over time."""
    with _opened(path) as ledger:
        entries = ledger.history()
        if picture is not None:
            from blowfish_fast.plotting import budget_over_time

            write_picture(lambda: budget_over_time(ledger), picture)
    if as_json:
        listed: dict[str, Any] = {"charges": [_plain(one) for one in entries]}
        if picture is not None:
            listed["picture"] = str(picture)
        show(listed)
        return
    if entries:
        _show_charges(entries)
    else:
        show("nothing was charged yet")
    if picture is not None:
        remark(f"written: {picture}")


def _show_charges(entries: list[Entry]) -> None:
    names = ["number", "time (UTC)", "mechanism", "epsilon", "state", "request"]
    rows = [
        [
            str(one.number),
            f"{one.time.astimezone(UTC):%Y-%m-%d %H:%M}",
            one.mechanism,
            f"{float(one.epsilon):g}",
            one.state,
            one.request,
        ]
        for one in entries
    ]
    if any(one.analyst for one in entries):
        names.insert(2, "analyst")
        for row, one in zip(rows, entries, strict=True):
            row.insert(2, one.analyst or "")
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
        raise LedgerError(
            f"there is no ledger at {path}; blowfish ledger create makes one"
        )
    return Ledger(path)
