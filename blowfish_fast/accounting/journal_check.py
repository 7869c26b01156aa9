"""Verification of a journal: its hash chain, the sum of charges, stored answers.

    entry 1 --digest--> entry 2 --digest--> ... --digest--> head

Changing an entry breaks every digest after it. Cutting entries off the end breaks
none, so a cautious curator notes the head elsewhere and asks for it later.
"""

from __future__ import annotations

import sqlite3
from typing import Any, NoReturn

from blowfish_fast.errors import LedgerError

from .journal_file import FIRST_LINK, entry_digest, parse_content, read_answers


class Verification:
    """What the entries read so far add up to, compared with what the tables say."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self.connection = connection
        self.name = name
        self.total, self.spent, self.terms = -1, 0, 0
        self.requests: set[str] = set()
        self.allotted: dict[str, list[int]] = {}
        self.answers = 0

    def run(self, head: str | None) -> str:
        """Return the digest of the last entry, or raise `LedgerError`. O(file)."""
        (state,) = self.connection.execute("PRAGMA integrity_check(1)").fetchone()
        if state != "ok":
            self._fail(str(state))
        before, seen = FIRST_LINK, head is None
        rows = self.connection.execute(
            "SELECT number, kind, request, cost, content, digest FROM log "
            "ORDER BY number"
        )
        for number, (at, kind, request, cost, content, digest) in enumerate(rows, 1):
            expected = entry_digest(before, at, kind, request, cost, content)
            if at != number or expected != digest:
                self._fail(f"entry {number} does not continue the chain")
            if (number == 1) != (kind == "open"):
                self._fail(f'entry {number} is of kind "{kind}"')
            plain = parse_content(content)
            if kind in ("open", "amend"):
                self._check_terms(number, plain)
            elif kind == "charge":
                self._check_charge(number, request, cost, plain)
            elif kind == "raise":
                self._check_raise(number, plain)
            elif kind == "allot":
                self._check_allotment(number, plain)
            else:
                self._check_answer(number, request, plain)
            before = digest
            seen = seen or digest.hex() == head
        self._check_tables()
        if not seen:
            self._fail(
                "the head that was noted is not in the chain; entries were cut off"
            )
        return bytes(before).hex()

    def _check_terms(self, number: int, plain: dict[str, Any]) -> None:
        if self.requests:
            self._fail(f"entry {number} changes the terms after the first charge")
        self.terms, self.total = number, plain.get("total", -1)

    def _check_raise(self, number: int, plain: dict[str, Any]) -> None:
        total = plain.get("total", -1)
        if not isinstance(total, int) or total <= self.total:
            self._fail(f"entry {number} raises the budget to no more than it was")
        self.total = total

    def _check_charge(
        self, number: int, request: str, cost: int, plain: dict[str, Any]
    ) -> None:
        self.requests.add(request)
        self.spent += cost
        if cost < 0:
            self._fail(f"entry {number} refunds a charge")
        if self.spent > self.total:
            self._fail(f"entry {number} spends more than the budget")
        if plain.get("analyst") is not None:
            share = self.allotted.get(plain["analyst"], [-1, 0])
            share[1] += cost
            if share[1] > share[0]:
                self._fail(f"entry {number} spends more than the analyst's allotment")

    def _check_allotment(self, number: int, plain: dict[str, Any]) -> None:
        share = self.allotted.setdefault(str(plain.get("analyst")), [0, 0])
        share[0] = plain.get("total", -1)
        if share[0] < share[1]:
            self._fail(f"entry {number} allots less than was spent")

    def _check_answer(self, number: int, request: str, plain: dict[str, Any]) -> None:
        if request not in self.requests:
            self._fail(f"entry {number} answers what was never charged")
        digests = plain.get("sha256") or []
        self.answers += len(digests)
        read_answers(self.connection, number, digests, self.name)

    def _check_tables(self) -> None:
        budget = self.connection.execute(
            "SELECT total, spent, terms FROM budget"
        ).fetchall()
        summed = (self.total, self.spent, self.terms)
        if budget != [summed]:
            self._fail(f"the budget's row says {budget} and the entries {summed}")
        shares = self.connection.execute("SELECT analyst, total, spent FROM allotment")
        if {one[0]: [one[1], one[2]] for one in shares} != self.allotted:
            self._fail("the allotments differ from what the entries say")
        (kept,) = self.connection.execute(
            "SELECT count(*) FROM answer WHERE piece = 0"
        ).fetchone()
        if kept != self.answers:
            self._fail(f"{kept} answers are kept and {self.answers} were logged")

    def _fail(self, what: str) -> NoReturn:
        raise LedgerError(f"{self.name} is damaged or was tampered with: {what}")
