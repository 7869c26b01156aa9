"""Whether a journal still says what it said: the chain, the sum, the answers.

    entry 1 --digest--> entry 2 --digest--> ... --digest--> head

Changing an entry breaks every digest after it. Cutting entries off the end breaks
none, so a cautious curator notes the head elsewhere and asks for it later.
"""

from __future__ import annotations

import sqlite3
from typing import NoReturn

from blowfish_fast.errors import LedgerError

from .journal_file import FIRST_LINK, entry_digest, parsed, stored


def checked_head(connection: sqlite3.Connection, name: str, head: str | None) -> str:
    """Return the digest of the last entry, or raise `LedgerError`.

    Linear in the size of the file.
    """

    def damaged(what: str) -> NoReturn:
        raise LedgerError(f"{name} is damaged or was tampered with: {what}")

    (state,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if state != "ok":
        damaged(str(state))
    before, spent, parts, terms, total = FIRST_LINK, 0, 0, 0, -1
    seen = head is None
    rows = connection.execute(
        "SELECT number, kind, request, cost, content, digest FROM log ORDER BY number"
    )
    charged: set[str] = set()
    allotted: dict[str, list[int]] = {}
    for number, (at, kind, request, cost, content, digest) in enumerate(rows, 1):
        expected = entry_digest(before, at, kind, request, cost, content)
        if at != number or expected != digest:
            damaged(f"entry {number} does not continue the chain")
        if (number == 1) != (kind == "open"):
            damaged(f'entry {number} is of kind "{kind}"')
        plain = parsed(content)
        if kind in ("open", "amend"):
            if charged:
                damaged(f"entry {number} changes the terms after the first charge")
            terms, total = number, plain.get("total", -1)
        elif kind == "charge":
            spent += cost
            charged.add(request)
            if cost < 0 or spent > total:
                damaged(f"entry {number} spends more than the budget, or refunds")
            if plain.get("analyst") is not None:
                share = allotted.get(plain["analyst"], [-1, 0])
                share[1] += cost
                if share[1] > share[0]:
                    damaged(f"entry {number} spends more than the analyst's allotment")
        elif kind == "allot":
            share = allotted.setdefault(str(plain.get("analyst")), [0, 0])
            share[0] = plain.get("total", -1)
            if share[0] < share[1]:
                damaged(f"entry {number} allots less than was spent")
        else:
            if request not in charged:
                damaged(f"entry {number} answers what was never charged")
            digests = plain.get("sha256") or []
            parts += len(digests)
            stored(connection, number, digests, name)
        before = digest
        seen = seen or digest.hex() == head
    row = connection.execute("SELECT total, spent, terms FROM budget").fetchall()
    if row != [(total, spent, terms)]:
        damaged(f"the budget's row says {row} and the entries {(total, spent, terms)}")
    shares = connection.execute("SELECT analyst, total, spent FROM allotment")
    if {one[0]: [one[1], one[2]] for one in shares} != allotted:
        damaged("the allotments differ from what the entries say")
    (kept,) = connection.execute(
        "SELECT count(*) FROM answer WHERE piece = 0"
    ).fetchone()
    if kept != parts:
        damaged(f"{kept} answers are kept and {parts} were logged")
    if not seen:
        damaged("the head that was noted is not in the chain; entries were cut off")
    return bytes(before).hex()
