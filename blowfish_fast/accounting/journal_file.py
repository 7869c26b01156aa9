"""The file of a journal: its tables, how it is made, opened and verified.

Triggers refuse to change or delete entries and to lower `spent`. Changing an entry
breaks every digest after it; cutting entries off the end breaks none, so a cautious
curator notes the head elsewhere and asks `Verification` for it later.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from blowfish_fast.errors import LedgerError

APPLICATION = 0x626C6F77
"""Marks our files among SQLite files: "blow"."""

FORMAT = 6
"""A ledger in epsilon. Raised whenever the tables or the fingerprints change."""

FORMAT_IN_RHO = 7
"""The same tables in trillionths of rho, which must not be taken for epsilon."""

BUSY_SECONDS = 60.0

FIRST_LINK = hashlib.sha256(b"blowfish_fast ledger").digest()

_TABLES = Path(__file__).with_name("journal.sql").read_text()

ANALYST = "json_extract(c.content, '$.analyst')"
"""Who paid a charge, of the log as `c`."""
BY_ANALYST = (
    "CREATE INDEX IF NOT EXISTS charges_by_analyst "
    "ON log (json_extract(content, '$.analyst'), number) WHERE kind = 'charge'"
)
"""Makes one analyst's last charges quick to find in a ledger of a million."""
REFINED = "json_extract(content, '$.refines')"
"""Which request a charge made finer."""
ONE_SUCCESSOR = (
    f"CREATE UNIQUE INDEX IF NOT EXISTS one_successor ON log ({REFINED}) "
    f"WHERE kind = 'charge' AND {REFINED} IS NOT NULL"
)
"""Lets each release be made finer once: two successors would cost more (Lemma RF3)."""

RECIPIENT_TABLE = (
    "CREATE TABLE IF NOT EXISTS recipient (number INTEGER PRIMARY KEY, "
    "time TEXT NOT NULL, public BLOB NOT NULL CHECK (length(public) = 32))",
    "CREATE TRIGGER IF NOT EXISTS recipients_are_fixed BEFORE UPDATE ON recipient "
    "BEGIN SELECT RAISE (ABORT, 'recipients never change'); END",
    "CREATE TRIGGER IF NOT EXISTS recipients_are_kept BEFORE DELETE ON recipient "
    "BEGIN SELECT RAISE (ABORT, 'recipients are never deleted'); END",
)
"""Who may open later draws, made when somebody is named; the last one counts."""

_PROBLEMS = {
    "SQLITE_BUSY": "another process keeps it busy; try again",
    "SQLITE_FULL": "the disk is full; free some room and try again",
    "SQLITE_READONLY": "it can only be read; allow writing to the file and its folder",
    "SQLITE_CANTOPEN": "it cannot be opened; check the path and its permissions",
    "SQLITE_NOTADB": "it is no ledger: it is damaged, or another kind of file",
    "SQLITE_CORRUPT": "it is damaged; restore nothing older than the last charge",
    "SQLITE_IOERR": "the disk reports an error; check it and try again",
}


def connect(target: str, *, uri: bool = False) -> sqlite3.Connection:
    """Open a database whose transactions are begun and ended by hand.

    Parameters
    ----------
    target : str
        The file, or a URI.
    uri : bool, default False
        Whether it is a URI.

    Returns
    -------
    sqlite3.Connection
        The connection.
    """
    return sqlite3.connect(
        target,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=uri,
    )


def open_file(path: Path) -> sqlite3.Connection:
    """Open the file of a journal; refuse whatever is none."""
    if path.is_file() and path.stat().st_size == 0:
        raise LedgerError(
            f"{path} is empty, and a ledger never is: it was damaged, or made by "
            "something else. Choose another path"
        )
    connection = connect(f"{path.as_uri()}?mode=rw", uri=True)
    try:
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if mark != APPLICATION:
            raise LedgerError(
                f"{path} is an SQLite file and no ledger; choose another path"
            )
        if version not in (FORMAT, FORMAT_IN_RHO):
            raise LedgerError(
                f"{path} is a ledger of format {version}, and this version reads "
                f"formats {FORMAT} and {FORMAT_IN_RHO}. Use the version of "
                "blowfish_fast that wrote it"
            )
        _make_durable(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def counts_rho(connection: sqlite3.Connection) -> bool:
    """Return whether a journal counts rho, by its format."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(version == FORMAT_IN_RHO)


def create_file(path: Path, total: int, terms: dict[str, Any]) -> None:
    """Make a ledger in one step: it is there with its first entry, or not at all.

    Parameters
    ----------
    path : Path
        Where to.
    total : int
        Units that may be spent.
    terms : dict[str, object]
        What was agreed.

    Raises
    ------
    LedgerError
        If no file can be made there.
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    except OSError as problem:
        raise LedgerError(
            f"no ledger can be made at {path}: {problem.strerror or problem}"
        ) from None
    os.close(handle)
    try:
        connection = connect(temporary)
        try:
            _make_durable(connection)
            create_tables(connection, total, terms)
        finally:
            connection.close()
        # Unlike a rename, a link never replaces what another process made meanwhile.
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        for ending in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(temporary + ending)


@contextmanager
def held_folder(folder: Path) -> Iterator[None]:
    """Let one process at a time make ledgers in a folder; its end lets go."""
    handle = None
    with suppress(ImportError, OSError):
        # Windows has no such locks, nor have some disks: there the folder is only read.
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def terms_beside(path: Path) -> Iterator[dict[str, Any]]:
    """Yield what the other ledgers in a folder say they are about."""
    for other in sorted(path.parent.iterdir()):
        if other == path or other.name.startswith(".") or not _is_ledger(other):
            continue
        with plain_errors(f"the ledger {other}"):
            connection = connect(f"{other.as_uri()}?mode=ro", uri=True)
            try:
                row = connection.execute(
                    "SELECT content FROM log JOIN budget ON number = terms"
                ).fetchone()
            finally:
                connection.close()
        terms = parse_content(row and row[0]).get("terms") or {}
        yield dict(terms.get("about") or {})


def _is_ledger(path: Path) -> bool:
    """Return whether a file bears our mark, where SQLite puts it."""
    try:
        # A pipe would be waited for, without end.
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(72)[68:] == APPLICATION.to_bytes(4, "big")
    except OSError:
        return False


def copy_file(path: Path, target: Path) -> None:
    """Copy a ledger, whole, while others write to it: by SQLite's own backup.

    Parameters
    ----------
    path : Path
        The ledger.
    target : Path
        Where to.
    """
    with plain_errors(f"the ledger {path}"):
        source = open_file(path)
        copy = connect(str(target))
        try:
            source.backup(copy)
            copy.execute("UPDATE in_use SET mark = 0")
        finally:
            copy.close()
            source.close()


def create_tables(
    connection: sqlite3.Connection, total: int, terms: dict[str, Any]
) -> None:
    """Make the tables and the first entry.

    Parameters
    ----------
    connection : sqlite3.Connection
        An empty database.
    total : int
        Units that may be spent.
    terms : dict[str, object]
        What was agreed.
    """
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    version = FORMAT_IN_RHO if terms.get("currency") == "rho" else FORMAT
    connection.execute(f"PRAGMA user_version = {version}")
    connection.executescript(f"BEGIN;{_TABLES}")
    number = append_entry(connection, "open", None, 0, {"total": total, "terms": terms})
    connection.execute("INSERT INTO budget VALUES (1, ?, 0, ?)", (total, number))
    connection.execute("COMMIT")


def _make_durable(connection: sqlite3.Connection) -> None:
    """Ask that a committed transaction survives the loss of power."""
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise LedgerError(
            "the folder of the ledger does not support SQLite's write-ahead log "
            f"(it answers {mode!r}); use a local disk"
        )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    # Names of requests are random, so their index is read all over the place.
    connection.execute("PRAGMA cache_size = -32768")


def entry_digest(
    before: bytes, number: int, kind: str, request: str | None, cost: int, content: str
) -> bytes:
    """Return the digest of an entry, chained to the one before it.

    Parameters
    ----------
    before : bytes
        The digest of the entry before.
    number : int
        The number of the entry.
    kind : str
        Its kind.
    request : str or None
        The request that it belongs to.
    cost : int
        Units.
    content : str
        What it says, as JSON.

    Returns
    -------
    bytes
        The digest.
    """
    text = json.dumps([number, kind, request, cost, content])
    return hashlib.sha256(before + text.encode()).digest()


def time_now() -> str:
    """Return the time as entries state it."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def append_entry(
    connection: sqlite3.Connection,
    kind: str,
    request: str | None,
    cost: int,
    content: dict[str, Any],
) -> int:
    """Add an entry to the log, chained to the last one.

    Parameters
    ----------
    connection : sqlite3.Connection
        The database.
    kind : str
        Its kind.
    request : str or None
        The request that it belongs to.
    cost : int
        Units.
    content : dict[str, object]
        What it says.

    Returns
    -------
    int
        The number of the entry.
    """
    last = connection.execute(
        "SELECT number, digest FROM log ORDER BY number DESC LIMIT 1"
    ).fetchone()
    number, before = (last[0] + 1, last[1]) if last else (1, FIRST_LINK)
    text = json.dumps({"time": time_now(), **content}, sort_keys=True)
    digest = entry_digest(before, number, kind, request, cost, text)
    connection.execute(
        "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)",
        (number, kind, request, cost, text, digest),
    )
    return number


@contextmanager
def plain_errors(name: str) -> Iterator[None]:
    """Turn SQLite's errors into sentences about the ledger called `name`."""
    try:
        yield
    except sqlite3.Error as problem:
        code = getattr(problem, "sqlite_errorname", "") or ""
        kind = "_".join(code.split("_")[:2])
        raise LedgerError(
            f"{name} could not be used: {_PROBLEMS.get(kind, problem)}"
        ) from problem
    except (UnicodeDecodeError, OverflowError) as problem:
        # SQLite hands out what it finds; a damaged text or number cannot be read.
        raise LedgerError(
            f"{name} could not be used: {_PROBLEMS['SQLITE_CORRUPT']}"
        ) from problem


def parse_content(content: str | None) -> dict[str, Any]:
    """Read the content of an entry."""
    try:
        plain = json.loads(content or "")
    except (TypeError, ValueError):
        plain = None
    if not isinstance(plain, dict):
        raise LedgerError("the ledger is damaged: an entry cannot be read")
    return plain


def read_answers(
    connection: sqlite3.Connection, entry: int, digests: list[str], name: str
) -> list[bytes]:
    """Return the answers of an entry, checked against their digests.

    Parameters
    ----------
    connection : sqlite3.Connection
        The database.
    entry : int
        The number of the entry.
    digests : list[str]
        The digest of each answer.
    name : str
        What the ledger is called, for the message.

    Returns
    -------
    list[bytes]
        The answers.

    Raises
    ------
    LedgerError
        If an answer is not the one that was logged.
    """
    answers = []
    for part, digest in enumerate(digests):
        pieces = connection.execute(
            "SELECT bytes FROM answer WHERE entry = ? AND part = ? ORDER BY piece",
            (entry, part),
        )
        answer = b"".join(piece for (piece,) in pieces)
        if hashlib.sha256(answer).hexdigest() != digest:
            raise LedgerError(
                f"{name} is damaged: the answer stored by entry {entry} is not the one "
                "that was logged"
            )
        answers.append(answer)
    return answers


class Verification:
    """What the entries read so far add up to, compared with what the tables say.

    Parameters
    ----------
    connection : sqlite3.Connection
        The database.
    name : str
        What the ledger is called, for messages.
    """

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
        # Columns may be added; whether nothing else was is for `Ledger.verify` to see.
        if self.requests and not self._adds_columns(plain):
            self._fail(f"entry {number} changes the terms after the first charge")
        self.terms, self.total = number, plain.get("total", -1)

    def _adds_columns(self, plain: dict[str, Any]) -> bool:
        return "released" in plain and plain.get("total") == self.total

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
            # What is noted at no cost needs no allotment.
            if cost and share[1] > share[0]:
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
        if {share[0]: [share[1], share[2]] for share in shares} != self.allotted:
            self._fail("the allotments differ from what the entries say")
        (answers,) = self.connection.execute(
            "SELECT count(*) FROM answer WHERE piece = 0"
        ).fetchone()
        if answers != self.answers:
            self._fail(f"{answers} answers are kept and {self.answers} were logged")

    def _fail(self, what: str) -> NoReturn:
        raise LedgerError(f"{self.name} is damaged or was tampered with: {what}")
