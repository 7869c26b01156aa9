"""The durable half of the ledger: one SQLite file, one chain of entries.

Each entry of the log holds the SHA-256 of the entry before it and of its own content. A
charge is checked, written and counted in one ``BEGIN IMMEDIATE`` transaction, which is
on disk before anything is drawn; the answer follows in a second one.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import weakref
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from blowfish_fast._support.validation import quoted
from blowfish_fast.errors import BudgetError, InputError, LedgerError, PolicyError

from . import journal_file as file
from .composition import EPSILON, RHO, Currency
from .series_charges import series_due
from .transactions import FileWatch, GroupCommit, close_cleanly, was_in_use

PIECE_BYTES = 2**26
"""Answers are cut: SQLite holds at most 10^9 bytes in one value."""

State = Literal["reserved", "stored", "returned"]


class BudgetStanding(NamedTuple):
    """How much of a budget, or of an analyst's allotment, is spent.

    Attributes
    ----------
    total : int
        Units in all.
    spent : int
        Units spent.
    terms : int, default 0
        The entry of the terms in force.
    """

    total: int
    spent: int
    terms: int = 0

    @property
    def left(self) -> int:
        """Units that remain."""
        return self.total - self.spent


class Charge(NamedTuple):
    """One charge, and what became of it.

    Attributes
    ----------
    number : int
        The number of its entry.
    request : str
        The name of the request.
    cost : int
        Units.
    content : dict[str, object]
        What the entry says.
    state : State
        Whether it was answered.
    """

    number: int
    request: str
    cost: int
    content: dict[str, Any]
    state: State


class Reservation(NamedTuple):
    """What is to be charged, as `Journal.reserve_together` takes it.

    Attributes
    ----------
    request : str
        The name of the request.
    cost : int
        Units.
    terms : int
        The entry that the request was judged by.
    content : dict[str, object]
        What the log says about it.
    analyst : str, optional
        Whose allotment pays.
    commitment : dict[str, object], optional
        The commitment to the key of the draw that follows.
    """

    request: str
    cost: int
    terms: int
    content: dict[str, Any]
    analyst: str | None = None
    commitment: dict[str, Any] | None = None


class ReleasedColumns(NamedTuple):
    """Of which columns something was charged.

    Attributes
    ----------
    last : int
        The entry of the last charge; 0 before the first one.
    names : frozenset[str] or None
        The columns; None where a charge does not say, which may be about all.
    """

    last: int
    names: frozenset[str] | None

    @classmethod
    def of(cls, charges: Iterable[Charge]) -> ReleasedColumns:
        """Return the columns of charges."""
        last, names, all_named = 0, set[str](), True
        for charge in charges:
            last = max(last, charge.number)
            for part in charge.content.get("parts") or [{}]:
                columns = part.get("columns")
                all_named = all_named and columns is not None
                names.update(columns or ())
        return cls(last, frozenset(names) if all_named else None)

    def plain(self) -> list[str] | str:
        """Return the names for the log, in order; "all" where a charge names none."""
        return "all" if self.names is None else sorted(self.names)


class TermsChange(NamedTuple):
    """A change of the terms after the first charge.

    Attributes
    ----------
    number : int
        Its entry.
    before : dict[str, object]
        What was agreed before.
    after : dict[str, object]
        What is agreed since.
    released : ReleasedColumns
        What had been charged by then.
    """

    number: int
    before: dict[str, Any]
    after: dict[str, Any]
    released: ReleasedColumns


class ChargeOutcome(NamedTuple):
    """What a charge has come to, as `Journal.store_together` takes it.

    Attributes
    ----------
    request : str
        The name of the request.
    answers : Sequence[bytes] or None
        The bytes of the answers; None records that they were returned.
    commitment : str, optional
        The commitment to the key that they were drawn with.
    """

    request: str
    answers: Sequence[bytes] | None
    commitment: str | None = None


class Journal:
    """Charges and answers in one SQLite file, or in memory.

    Parameters
    ----------
    path : Path or None
        The file; None for memory.
    total : int, optional
        The units that may be spent; a new file needs it.
    terms : dict[str, object], optional
        What was agreed; a new file needs it.
    """

    def __init__(
        self,
        path: Path | None,
        total: int | None = None,
        terms: dict[str, Any] | None = None,
    ) -> None:
        self.path = path
        self.name = "the ledger in memory" if path is None else f"the ledger {path}"
        self._commits = GroupCommit(self.name, self._current_connection)
        self._reading = threading.Lock()
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._closed = False
        self._by_analyst = False
        self._watch: FileWatch | None = None
        self.copied_alone = False
        """Whether the file was copied while in use, without its write-ahead log."""
        with file.plain_errors(self.name):
            if path is None:
                assert total is not None
                assert terms is not None
                self._connection = file.connect(":memory:")
                file.create_tables(self._connection, total, terms)
            else:
                if not path.exists() and total is not None and terms is not None:
                    file.create_file(path, total, terms)
                alone = not os.path.exists(f"{path}-wal")
                self._connection = file.open_file(path)
                self.copied_alone = alone and was_in_use(self._connection)
                self._watch = FileWatch(path)
                self._watch.attach(self._connection)
                self._commits.guard = self._watch
            self.currency = RHO if file.counts_rho(self._connection) else EPSILON
        self._cleanly = path is not None and not self.copied_alone
        weakref.finalize(
            self, _close_in, os.getpid(), self._connection, cleanly=self._cleanly
        )
        _JOURNALS.add(self)

    def close(self) -> None:
        """Close the file; a closed journal refuses everything."""
        with self._commits.lock, self._reading:
            self._closed = True
            _close_in(self._process, self._reader)
            _close_in(self._process, self._connection, cleanly=self._cleanly)
            self._connection = self._reader = None

    def standing(self) -> BudgetStanding:
        """Return the budget as it stands."""
        with self._statement() as connection:
            return _standing(connection)

    def terms(self) -> tuple[int, dict[str, Any]]:
        """Return the terms in force and the number of their entry."""
        with self._commits.alone(write=False) as connection:
            number = _standing(connection).terms
            row = connection.execute(
                "SELECT content FROM log WHERE number = ?", (number,)
            ).fetchone()
        terms = file.parse_content(row and row[0]).get("terms")
        if not isinstance(terms, dict):
            raise LedgerError(f"{self.name} is damaged: entry {number} holds no terms")
        return number, terms

    def find(self, request: str) -> Charge | None:
        """Return the charge of a request, if there is one. O(log n)."""
        with self._statement() as connection:
            return _find(connection, request)

    def find_all(self, requests: Sequence[str]) -> dict[str, Charge]:
        """Return the charges of several requests, as of one moment, by name."""
        # One statement, which sees the file as it is at one moment.
        named = "AND c.request IN (SELECT value FROM json_each(?))"
        with self._statement() as connection:
            charges = _charges(connection, named, json.dumps(list(requests)))
            return {charge.request: charge for charge in charges}

    def has_charges(self) -> bool:
        """Return whether anything was ever charged: the terms are frozen then."""
        with self._statement() as connection:
            return _has_charges(connection)

    def allotments(self, analyst: str | None = None) -> dict[str, BudgetStanding]:
        """Return what each analyst, or this one, may spend and has spent."""
        with self._statement() as connection:
            rows = connection.execute(
                "SELECT analyst, total, spent FROM allotment "
                "WHERE :one IS NULL OR analyst = :one ORDER BY analyst",
                {"one": analyst},
            ).fetchall()
        return {analyst: BudgetStanding(total, spent) for analyst, total, spent in rows}

    def left(self, analyst: str | None) -> int:
        """Return the units that may still be spent: in all, or by an analyst."""
        with self._statement() as connection:
            left = _standing(connection).left
            if analyst is None:
                return left
            share = _allotment(connection, analyst)
        return 0 if share is None else min(left, share.left)

    def check_affordable(self, cost: int, analyst: str | None) -> None:
        """Refuse what cannot be paid, before anybody looks at data; charges nothing.

        Parameters
        ----------
        cost : int
            Units.
        analyst : str or None
            Whose allotment pays too. An analyst without an allotment is refused later,
            when the charge is written.

        Raises
        ------
        BudgetError
            If less than `cost` is left of the budget, or of the analyst's part of it.
        """
        with self._statement() as connection:
            held = _standing(connection)
            share = None if analyst is None else _allotment(connection, analyst)
        _refuse_overdraft(cost, held, self.currency, "")
        if share is not None:
            _refuse_overdraft(cost, share, self.currency, f"{analyst}'s ")

    def allot(self, analyst: str, total: int) -> None:
        """Set what an analyst may spend in all; never less than was spent already.

        Parameters
        ----------
        analyst : str
            The name.
        total : int
            Units.

        Raises
        ------
        BudgetError
            If more was spent already.
        """
        with self._commits.alone(write=True) as connection:
            held = _allotment(connection, analyst)
            if held is not None and total < held.spent:
                raise BudgetError(
                    f"{analyst} has spent {self.currency.words(held.spent)} already; "
                    f"an allotment of {self.currency.text(total)} would take some of "
                    "it back"
                )
            connection.execute(
                "INSERT INTO allotment VALUES (?, ?, 0) "
                "ON CONFLICT (analyst) DO UPDATE SET total = excluded.total",
                (analyst, total),
            )
            granted = {"analyst": analyst, "total": total}
            file.append_entry(connection, "allot", None, 0, granted)

    def reserve(
        self,
        request: str,
        cost: int,
        terms: int,
        content: dict[str, Any],
        analyst: str | None = None,
        commitment: dict[str, Any] | None = None,
    ) -> Charge:
        """Check and charge, once per request, and return the charge that stands.

        Parameters
        ----------
        request : str
            The name of the request.
        cost : int
            Units.
        terms : int
            The entry that the request was judged by.
        content : dict[str, object]
            What the log says about it.
        analyst : str, optional
            Whose allotment pays.
        commitment : dict[str, object], optional
            The commitment to the key of the draw that follows, kept with the charge;
            that of another attempt under a charge that stands, beside it.

        Returns
        -------
        Charge
            The charge.

        Raises
        ------
        BudgetError
            If too little remains.
        LedgerError
            If the terms have changed meanwhile.
        """
        asked = Reservation(request, cost, terms, content, analyst, commitment)
        return self._commits.run(lambda connection: self._charge(connection, asked))

    def reserve_together(self, reservations: Sequence[Reservation]) -> list[Charge]:
        """Check and charge several requests in one commit: all of them, or none.

        Parameters
        ----------
        reservations : Sequence[Reservation]
            What is charged, each under a name of its own. What was charged before is
            not charged again.

        Returns
        -------
        list of Charge
            The charges that stand, in the same order.

        Raises
        ------
        BudgetError
            If too little remains for all of them.
        LedgerError
            If the terms have changed meanwhile.
        """

        def charge(connection: sqlite3.Connection) -> list[Charge]:
            # Said of the sum: of one after another, a refusal would name what remains
            # after charges that are undone by it.
            dues: dict[str | None, int] = {}
            for asked in reservations:
                if _find(connection, asked.request) is None:
                    dues[asked.analyst] = dues.get(asked.analyst, 0) + asked.cost
            standing = _standing(connection)
            _refuse_overdraft(sum(dues.values()), standing, self.currency, "")
            for analyst, due in dues.items():
                share = None if analyst is None else _allotment(connection, analyst)
                if share is not None:
                    _refuse_overdraft(due, share, self.currency, f"{analyst}'s ")
            return [self._charge(connection, asked) for asked in reservations]

        return self._commits.run(charge)

    def _charge(self, connection: sqlite3.Connection, asked: Reservation) -> Charge:
        """Charge one request within a transaction, unless it was charged before."""
        request, cost, terms, content, analyst, commitment = asked
        earlier = _find(connection, request)
        if earlier is None or earlier.state == "reserved":
            _refuse_other_people(connection, content.get("person"))
        if earlier is not None:
            if commitment is not None and earlier.state == "reserved":
                _commit_again(connection, request, commitment)
            return earlier
        standing = _standing(connection)
        if standing.terms != terms:
            raise LedgerError(
                f"the terms of {self.name} changed while the request was checked; "
                "nothing was charged. Ask again"
            )
        series = content.get("series")
        due = cost
        if series is not None:
            contents = (charge.content for charge in _charges(connection, ""))
            due = series_due(contents, series, cost)
        if "refines" in content:
            due = _refined_due(connection, content, cost)
        _refuse_overdraft(due, standing, self.currency, "")
        noted = {"time": file.time_now(), **content}
        if commitment is not None:
            noted["commitment"] = commitment
        if analyst is not None:
            noted["analyst"] = analyst
            _charge_allotment(connection, analyst, due, self.currency)
        connection.execute("UPDATE budget SET spent = spent + ?", (due,))
        number = file.append_entry(connection, "charge", request, due, noted)
        return Charge(number, request, due, noted, "reserved")

    def end_series(self, name: str, why: str) -> None:
        """Note that a series releases nothing any more; a second time changes nothing.

        Parameters
        ----------
        name : str
            What its charges are filed under.
        why : str
            A public reason.
        """
        request = f"{name}/ended"

        def end(connection: sqlite3.Connection) -> None:
            if _find(connection, request) is not None:
                return
            content = {"time": file.time_now(), "ended_series": name, "why": why}
            file.append_entry(connection, "charge", request, 0, content)
            file.append_entry(connection, "answer", request, 0, {"sha256": None})

        self._commits.run(end)

    def keep_reading(
        self,
        request: str,
        content: dict[str, Any],
        answer: bytes,
        analyst: str | None = None,
    ) -> Charge:
        """Note an answer that follows from stored ones, at no cost, once per request.

        Parameters
        ----------
        request : str
            The name of the request.
        content : dict[str, object]
            What the log says about it.
        answer : bytes
            The numbers that were read.
        analyst : str, optional
            Whose question it was; no allotment is charged.

        Returns
        -------
        Charge
            The entry that stands: this one, or what was noted or charged before.
        """
        digest = hashlib.sha256(answer).hexdigest()

        def keep(connection: sqlite3.Connection) -> Charge:
            earlier = _find(connection, request)
            if earlier is not None:
                return earlier
            noted = {"time": file.time_now(), **content}
            if analyst is not None:
                noted["analyst"] = analyst
            number = file.append_entry(connection, "charge", request, 0, noted)
            digests = {"sha256": [digest]}
            entry = file.append_entry(connection, "answer", request, 0, digests)
            connection.execute(
                "INSERT INTO answer VALUES (?, 0, 0, ?)", (entry, answer)
            )
            return Charge(number, request, 0, noted, "stored")

        return self._commits.run(keep)

    def count_charges(
        self, before: int, analyst: str | None = None, *, everybody: bool = False
    ) -> int:
        """Return how many charges of more than nothing have smaller numbers.

        Parameters
        ----------
        before : int
            The number of an entry.
        analyst : str, optional
            Whose charges; None for those that no allotment paid.
        everybody : bool
            Whether charges are counted whoever paid.

        Returns
        -------
        int
            Their number.
        """
        which = "SELECT COUNT(*) FROM log c WHERE c.kind = 'charge' AND c.cost > 0 "
        which += "AND c.number < ?"
        values: list[str | int | None] = [before]
        if not everybody:
            # An index of who paid is made when it is first needed.
            self._index_by_analyst()
            which += f" AND {file.ANALYST} IS ?"
            values.append(analyst)
        with self._commits.alone(write=False) as connection:
            return int(connection.execute(which, values).fetchone()[0])

    def store(
        self,
        request: str,
        answers: Sequence[bytes] | None,
        commitment: str | None = None,
    ) -> bool:
        """Store the answers of a reserved request.

        Parameters
        ----------
        request : str
            The name of the request.
        answers : Sequence[bytes] or None
            The bytes of the answers; None records that they were returned.
        commitment : str, optional
            The commitment to the key that they were drawn with, which they name.

        Returns
        -------
        bool
            False, with the older ones left in place, if there are some: one draw may
            leave.
        """
        (first,) = self.store_together([ChargeOutcome(request, answers, commitment)])
        return first

    def store_together(self, outcomes: Sequence[ChargeOutcome]) -> list[bool]:
        """Store the answers of several reserved requests in one commit.

        Parameters
        ----------
        outcomes : Sequence[ChargeOutcome]
            What each charge has come to.

        Returns
        -------
        list of bool
            For each, as `store` returns it.
        """
        noted = [_noted(outcome) for outcome in outcomes]

        def keep(connection: sqlite3.Connection) -> list[bool]:
            return [
                _keep(connection, outcome, about)
                for outcome, about in zip(outcomes, noted, strict=True)
            ]

        return self._commits.run(keep)

    def answers(self, request: str) -> list[bytes]:
        """Return the stored answers of a request, checked against the log."""
        with self._commits.alone(write=False) as connection:
            entry, content = connection.execute(
                "SELECT number, content FROM log WHERE kind = 'answer' AND request = ?",
                (request,),
            ).fetchone()
            digests = file.parse_content(content).get("sha256")
            if not isinstance(digests, list):
                raise LedgerError(
                    f"{self.name} is damaged: entry {entry} does not say what it kept"
                )
            return file.read_answers(connection, entry, digests, self.name)

    def drawn_under(self) -> dict[str, str | None]:
        """Return the commitment that each stored answer names, by request."""
        with self._commits.alone(write=False) as connection:
            rows = connection.execute(
                "SELECT request, content FROM log WHERE kind = 'answer' ORDER BY number"
            ).fetchall()
        return {
            request: file.parse_content(content).get("commitment")
            for request, content in rows
        }

    def name_recipient(self, public: bytes) -> None:
        """Note who may open later draws; who was named before stays noted."""

        def name(connection: sqlite3.Connection) -> None:
            for statement in file.RECIPIENT_TABLE:
                connection.execute(statement)
            connection.execute(
                "INSERT INTO recipient (time, public) VALUES (?, ?)",
                (file.time_now(), public),
            )

        self._commits.run(name)

    def recipient(self) -> bytes | None:
        """Return the public key of who was named last; None if nobody was."""
        with self._statement() as connection:
            if not _has_table(connection, "recipient"):
                return None
            row = connection.execute(
                "SELECT public FROM recipient ORDER BY number DESC LIMIT 1"
            ).fetchone()
        return None if row is None else bytes(row[0])

    def commitments(self, request: str) -> list[dict[str, Any]]:
        """Return what was committed to before each attempt to draw a request."""
        with self._commits.alone(write=False) as connection:
            charge = _find(connection, request)
            first = None if charge is None else charge.content.get("commitment")
            rows = []
            if _has_table(connection, "later_attempt"):
                rows = connection.execute(
                    "SELECT content FROM later_attempt WHERE request = ? "
                    "ORDER BY number",
                    (request,),
                ).fetchall()
        later = [file.parse_content(content) for (content,) in rows]
        return later if first is None else [first, *later]

    def amend(self, total: int, terms: dict[str, Any]) -> None:
        """Change budget and terms; only while nothing has been charged.

        Parameters
        ----------
        total : int
            Units.
        terms : dict[str, object]
            What is agreed.

        Raises
        ------
        LedgerError
            If something has been charged.
        """
        with self._commits.alone(write=True) as connection:
            if _has_charges(connection):
                raise LedgerError(
                    f"{self.name} has been charged, so its policy and budget are "
                    "frozen: charges under different policies do not add up"
                )
            agreed = {"total": total, "terms": terms}
            number = file.append_entry(connection, "amend", None, 0, agreed)
            connection.execute(
                "UPDATE budget SET total = ?, terms = ?", (total, number)
            )

    def released_columns(self) -> ReleasedColumns:
        """Return of which columns something was charged, and up to which entry."""
        with self._commits.alone(write=False) as connection:
            return ReleasedColumns.of(_charges(connection, ""))

    def add_columns(
        self,
        terms: dict[str, Any],
        before: int,
        released: ReleasedColumns,
        note: dict[str, Any],
    ) -> None:
        """Change the terms after the first charge, with an entry that says so.

        Whether the new terms have the same meaning for what was charged is for the
        caller to decide (Lemma CO14); here it is made sure that nobody changed the
        terms or charged anything since he did.

        Parameters
        ----------
        terms : dict[str, object]
            What is agreed from now on.
        before : int
            The entry of the terms that he looked at.
        released : ReleasedColumns
            The charges that he looked at.
        note : dict[str, object]
            Why, and by whom.

        Raises
        ------
        LedgerError
            If something was charged or agreed since, or the file was made before
            columns could be added.
        """
        with self._commits.alone(write=True) as connection:
            standing = _standing(connection)
            latest = ReleasedColumns.of(_charges(connection, ""))
            if standing.terms != before or latest != released:
                raise LedgerError(
                    f"{self.name} was charged or amended meanwhile; nothing was "
                    "changed. Ask again"
                )
            agreed = {
                **note,
                "total": standing.total,
                "terms": terms,
                "released": released.plain(),
            }
            number = file.append_entry(connection, "amend", None, 0, agreed)
            try:
                connection.execute("UPDATE budget SET terms = ?", (number,))
            except sqlite3.IntegrityError:
                raise LedgerError(
                    f"{self.name} was made before columns could be added, and keeps "
                    "its own; nothing was changed",
                    way_out="Make another ledger, and add what both have spent",
                ) from None

    def changes_of_terms(self) -> list[TermsChange]:
        """Return how the terms were changed after the first charge, oldest first."""
        with self._commits.alone(write=False) as connection:
            rows = connection.execute(
                "SELECT number, content FROM log WHERE kind IN ('open', 'amend') "
                "ORDER BY number"
            ).fetchall()
            charges = [] if len(rows) == 1 else list(_charges(connection, ""))
        changes: list[TermsChange] = []
        agreed: dict[str, Any] = {}
        for number, content in rows:
            plain = file.parse_content(content)
            earlier = [charge for charge in charges if charge.number < number]
            terms = plain.get("terms") or {}
            if earlier:
                released = ReleasedColumns.of(earlier)
                changes.append(TermsChange(number, agreed, terms, released))
            agreed = terms
        return changes

    def raise_total(self, total: int, note: dict[str, Any]) -> None:
        """Raise the budget, at any time, with an entry that says so.

        Parameters
        ----------
        total : int
            Units, more than before.
        note : dict[str, object]
            Why, and by whom.

        Raises
        ------
        LedgerError
            If it would not be raised.
        """
        with self._commits.alone(write=True) as connection:
            before = _standing(connection).total
            if total <= before:
                raise LedgerError(
                    f"a budget is raised to more than it is, "
                    f"{self.currency.text(before)}; nothing was changed",
                    received=self.currency.text(total),
                )
            file.append_entry(connection, "raise", None, 0, {**note, "total": total})
            connection.execute("UPDATE budget SET total = ?", (total,))

    def raises(self) -> list[dict[str, Any]]:
        """Return how the budget was raised: time, total and note, oldest first."""
        with self._commits.alone(write=False) as connection:
            rows = connection.execute(
                "SELECT content FROM log WHERE kind = 'raise' ORDER BY number"
            ).fetchall()
        return [file.parse_content(content) for (content,) in rows]

    def decisions(self) -> list[tuple[int, str, dict[str, Any]]]:
        """Return entry, kind and content of what was agreed, the first terms first."""
        with self._commits.alone(write=False) as connection:
            rows = connection.execute(
                "SELECT number, kind, content FROM log "
                "WHERE kind IN ('open', 'amend', 'raise') ORDER BY number"
            ).fetchall()
        return [
            (number, kind, file.parse_content(content))
            for number, kind, content in rows
        ]

    def history(
        self,
        last: int | None = None,
        before: int | None = None,
        analyst: str | None = None,
    ) -> list[Charge]:
        """Return charges, oldest first: every one, or the last ones.

        Parameters
        ----------
        last : int, optional
            How many; by default all.
        before : int, optional
            Only charges whose entries have smaller numbers.
        analyst : str, optional
            Only charges that this analyst's allotment paid.

        Returns
        -------
        list of Charge
            The charges. Of the last ones no others are read.
        """
        which, values = "", list[str | int]()
        if analyst is not None:
            self._index_by_analyst()
            which += f"AND {file.ANALYST} = ? "
            values.append(analyst)
        if before is not None:
            which += "AND c.number < ? "
            values.append(before)
        which += "ORDER BY c.number DESC LIMIT ?"
        # SQLite takes a negative limit for none.
        values.append(-1 if last is None else last)
        with self._commits.alone(write=False) as connection:
            return list(_charges(connection, which, *values))[::-1]

    def _index_by_analyst(self) -> None:
        """Index charges by who paid, when that is first asked for."""
        if not self._by_analyst:
            # On a full disk all charges are read instead.
            with suppress(LedgerError):
                self._commits.run(
                    lambda connection: connection.execute(file.BY_ANALYST)
                )
                self._by_analyst = True

    def verify(self, head: str | None = None) -> str:
        """Check everything, and that `head` is in the chain; return the last digest."""
        if not isinstance(head, str | None):
            raise InputError("a head is what verify returned", received=quoted(head))
        if self.copied_alone:
            raise LedgerError(
                f"{self.name} was copied while it was in use, without its write-ahead "
                "log: the latest charges may be missing",
                way_out=f"Put {self.path}-wal beside it, or copy with `blowfish "
                "backup`, which leaves nothing out",
            )
        with self._commits.alone(write=False) as connection:
            return file.Verification(connection, self.name).run(head)

    def _current_connection(self) -> sqlite3.Connection:
        if self._closed:
            raise LedgerError(f"{self.name} was closed; open it again")
        if self._process != os.getpid():
            if self.path is None:
                raise LedgerError(
                    "a ledger in memory belongs to the process that made it: in a "
                    "forked one it would be spent twice. Give it a file"
                )
            self._connection = file.open_file(self.path)
            weakref.finalize(self, _close_in, os.getpid(), self._connection)
            self._process = os.getpid()
            assert self._watch is not None, "every file is watched"
            self._watch.attach(self._connection)
        assert self._connection is not None
        if self._watch is not None:
            self._watch.check_place()
        return self._connection

    @contextmanager
    def _statement(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection for reading, which does not wait for commits."""
        if self.path is None:
            with self._commits.lock, file.plain_errors(self.name):
                yield self._current_connection()
            return
        with self._reading, file.plain_errors(self.name):
            if self._closed:
                raise LedgerError(f"{self.name} was closed; open it again")
            if self._watch is not None and self._process == os.getpid():
                self._watch.check_place()
            if self._reader is None:
                self._reader = file.open_file(self.path)
                weakref.finalize(self, _close_in, os.getpid(), self._reader)
            yield self._reader


_JOURNALS: weakref.WeakSet[Journal] = weakref.WeakSet()
_INHERITED: list[sqlite3.Connection | None] = []


def _drop_inherited() -> None:
    """Give up, after a fork, what SQLite must not share: connections and locks."""
    for journal in _JOURNALS:
        _INHERITED.extend([journal._connection, journal._reader])
        journal._connection = journal._reader = None
        journal._reading = threading.Lock()
        journal._commits.forget()


with suppress(AttributeError):
    # Where there are no forks, nothing is inherited.
    os.register_at_fork(after_in_child=_drop_inherited)


def _close_in(
    process: int, connection: sqlite3.Connection | None, *, cleanly: bool = False
) -> None:
    if connection is not None and process == os.getpid():
        (close_cleanly if cleanly else sqlite3.Connection.close)(connection)


def _has_charges(connection: sqlite3.Connection) -> bool:
    row = connection.execute("SELECT 1 FROM log WHERE kind = 'charge' LIMIT 1")
    return row.fetchone() is not None


def _standing(connection: sqlite3.Connection) -> BudgetStanding:
    row = connection.execute("SELECT total, spent, terms FROM budget").fetchone()
    if row is None:
        raise LedgerError("the ledger has lost its budget: the file is damaged")
    return BudgetStanding(*row)


def _allotment(connection: sqlite3.Connection, analyst: str) -> BudgetStanding | None:
    row = connection.execute(
        "SELECT total, spent FROM allotment WHERE analyst = ?", (analyst,)
    ).fetchone()
    return None if row is None else BudgetStanding(*row)


def _refuse_overdraft(
    cost: int, held: BudgetStanding, currency: Currency, of: str
) -> None:
    if cost > held.left:
        raise BudgetError(
            f"the release costs {currency.words(cost)}, and {currency.text(held.left)} "
            f"of {of}{currency.text(held.total)} remains; nothing was charged. Ask for "
            f"a smaller {currency.name}"
        )


def _charge_allotment(
    connection: sqlite3.Connection, analyst: str, cost: int, currency: Currency
) -> None:
    allotment = _allotment(connection, analyst)
    if allotment is None:
        raise BudgetError(
            f"{analyst!r} has no allotment; nothing was charged. The curator grants "
            f"one with ledger.allot(analyst, {currency.name})"
        )
    _refuse_overdraft(cost, allotment, currency, f"{analyst}'s ")
    connection.execute(
        "UPDATE allotment SET spent = spent + ? WHERE analyst = ?", (cost, analyst)
    )


def _refuse_other_people(connection: sqlite3.Connection, person: str | None) -> None:
    """Refuse other people than the first charge that names any is about."""
    if person is None:
        return
    with closing(_charges(connection, "ORDER BY c.number")) as charges:
        named = (charge.content.get("person") for charge in charges)
        first = next((name for name in named if name is not None), person)
    if first != person:
        raise PolicyError(
            f"this ledger charges releases about whom {first!r} names, and the data "
            f"are about whom {person!r} names; nothing was charged now. Keep a ledger "
            "for each"
        )


def _charges(
    connection: sqlite3.Connection, which: str, *values: str | int
) -> Generator[Charge]:
    rows = connection.execute(
        "SELECT c.number, c.request, c.cost, c.content, a.content FROM log c "
        "LEFT JOIN log a ON a.kind = 'answer' AND a.request = c.request "
        f"WHERE c.kind = 'charge' {which}",
        values,
    )
    for number, request, cost, content, answer in rows:
        yield Charge(number, request, cost, file.parse_content(content), _state(answer))


def _find(connection: sqlite3.Connection, request: str) -> Charge | None:
    with closing(_charges(connection, "AND c.request = ?", request)) as charges:
        return next(charges, None)


def _refined_due(
    connection: sqlite3.Connection, content: dict[str, Any], cost: int
) -> int:
    """Return what a finer release adds to its chain: Lemma CO13."""
    name = content["refines"]
    before = _find(connection, name)
    assert before is not None, "what is stored stays"
    connection.execute(file.ONE_SUCCESSOR)
    taken = connection.execute(
        f"SELECT request FROM log WHERE kind = 'charge' AND {file.REFINED} = ?", (name,)
    ).fetchone()
    if taken is not None:
        raise LedgerError(
            f"{name!r} was made finer already, as {taken[0]!r}: two successors of one "
            "draw would cost more than both differences. Nothing was charged",
            way_out="Make that one finer",
        )
    return cost - int(before.content.get("level", before.cost))


def _commit_again(
    connection: sqlite3.Connection, request: str, commitment: dict[str, Any]
) -> None:
    """Keep what another attempt commits to; its table is made when it is needed."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS later_attempt "
        "(number INTEGER PRIMARY KEY, request TEXT NOT NULL, content TEXT NOT NULL)"
    )
    connection.execute(
        "INSERT INTO later_attempt (request, content) VALUES (?, ?)",
        (request, json.dumps(commitment, sort_keys=True)),
    )


def _has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Return whether a table that is made when it is needed is there."""
    named = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,))
    return named.fetchone() is not None


def _noted(outcome: ChargeOutcome) -> dict[str, Any]:
    """Return what the log says of answers: their digests, and how they were drawn."""
    digests = None
    if outcome.answers is not None:
        digests = [hashlib.sha256(answer).hexdigest() for answer in outcome.answers]
    noted: dict[str, Any] = {"sha256": digests}
    if outcome.commitment is not None:
        noted["commitment"] = outcome.commitment
    return noted


def _keep(
    connection: sqlite3.Connection, outcome: ChargeOutcome, noted: dict[str, Any]
) -> bool:
    """Store answers within a transaction; False if there are some already."""
    charged, answered = (
        connection.execute(
            f"SELECT 1 FROM log WHERE kind = '{kind}' AND request = ?",
            (outcome.request,),
        ).fetchone()
        for kind in ("charge", "answer")
    )
    assert charged, "an answer without a charge"
    if answered:
        return False
    entry = file.append_entry(connection, "answer", outcome.request, 0, noted)
    connection.executemany(
        "INSERT INTO answer VALUES (?, ?, ?, ?)",
        (
            (entry, part, piece, content)
            for part, answer in enumerate(outcome.answers or ())
            for piece, content in enumerate(_pieces(answer))
        ),
    )
    return True


def _pieces(answer: bytes) -> Iterator[memoryview]:
    """Cut an answer; the empty one has one empty piece."""
    view = memoryview(answer)
    for start in range(0, max(len(answer), 1), PIECE_BYTES):
        yield view[start : start + PIECE_BYTES]


def _state(answer: str | None) -> State:
    if answer is None:
        return "reserved"
    return "returned" if file.parse_content(answer).get("sha256") is None else "stored"
