"""Detects that the file of an open ledger was replaced, removed or set back.

    ledger        -> the file that was opened    removed, renamed, replaced: refused
    ledger-wal    -> what was committed lately   swept away: refused
    log 1 .. n    -> entry n as it was seen      an older copy written over it: refused

SQLite would go on writing into a file that nobody finds again. Checked before every
use by comparing numbers of files, which costs far less than a commit.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from blowfish_fast.errors import LedgerError

from .group_commit import Guard

FileNumber = tuple[int, int]
"""Device and number of a file: a path may lead to another one later."""

LogEntry = tuple[int, bytes]
"""Number and digest of an entry of the log."""


class FileWatch(Guard):
    """What was seen of a ledger's file since it was opened."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._log = f"{path}-wal"
        self._file = _number(self.path)
        self._recent: FileNumber | None = None
        self._newest: LogEntry | None = None
        self._written: LogEntry | None = None
        self._marking: sqlite3.Connection | None = None

    def attach(self, connection: sqlite3.Connection) -> None:
        """Watch a new connection, in this process or after a fork."""
        self.after_begin(connection)
        self._newest = _newest(connection)
        # SQLite makes it with the first reading, and removes it with the last closing.
        self._recent = _number(self._log)

    def check_place(self) -> None:
        """Refuse to go on with a file that its path does not lead to any more."""
        if self._file is None or _number(self.path) != self._file:
            raise LedgerError(
                f"{self.path} was removed or replaced while it was open, and what lies "
                "there now may not know what was charged; nothing was charged. Put "
                "back the very file, nothing older, and open it again"
            )
        if self._recent is not None and _number(self._log) != self._recent:
            raise LedgerError(
                f"{self._log} was removed or replaced while the ledger was open. It "
                "holds the latest charges; nothing was charged now. Put it back, and "
                "open the ledger again"
            )

    def after_begin(self, connection: sqlite3.Connection) -> None:
        """Refuse a log that has lost the entry which was its newest."""
        if self._newest is None:
            return
        number, digest = self._newest
        found = connection.execute(
            "SELECT digest FROM log WHERE number = ?", (number,)
        ).fetchone()
        if found is None or bytes(found[0]) != digest:
            raise LedgerError(
                f"{self.path} is damaged: entry {number}, its newest a moment ago, is "
                "gone or another. Was an older copy put back while it was open? It "
                "forgets charges; restore nothing older than the last one"
            )

    def before_commit(self, connection: sqlite3.Connection) -> None:
        """Read the newest entry, which the commit is about to make last."""
        self._written = _newest(connection)
        marked = connection.execute("UPDATE in_use SET mark = 1 WHERE mark = 0")
        self._marking = connection if marked.rowcount else None

    def after_commit(self) -> None:
        """Remember it: whoever opens this file must find it from now on."""
        self._newest = self._written
        if self._marking is not None:
            # The mark belongs into the file itself, where a copy of it shows it.
            with suppress(sqlite3.Error):
                self._marking.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._marking = None


def was_in_use(connection: sqlite3.Connection) -> bool:
    """Return whether the file says that somebody had not closed it yet."""
    (mark,) = connection.execute("SELECT mark FROM in_use").fetchone()
    return bool(mark)


def close_cleanly(connection: sqlite3.Connection) -> None:
    """Close a connection; the file then holds everything, and says so."""
    with suppress(sqlite3.Error):
        # Where somebody else still writes, they close it.
        connection.execute("PRAGMA busy_timeout = 0")
        for step in ("", "UPDATE in_use SET mark = 0 WHERE mark = 1"):
            if step:
                connection.execute(step)
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                break
    connection.close()


def _newest(connection: sqlite3.Connection) -> LogEntry | None:
    found: LogEntry | None = connection.execute(
        "SELECT number, digest FROM log ORDER BY number DESC LIMIT 1"
    ).fetchone()
    return found


def _number(path: str) -> FileNumber | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
