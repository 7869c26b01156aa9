"""Detects that the file of an open ledger was replaced, removed or set back.

    ledger        -> the file that was opened    removed, renamed, replaced: refused
    ledger-wal    -> what was committed lately   swept away: refused
    log 1 .. n    -> entry n as it was seen      an older copy written over it: refused

SQLite would go on writing into a file that nobody finds again, and charges would be
forgotten with it. Checked before every use by comparing numbers of files, which costs
far less than a commit.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from blowfish_fast.errors import LedgerError

from .group_commit import Guard

FileNumber = tuple[int, int]
"""Device and number of a file: a path may lead to another one later."""

LogEntry = tuple[int, bytes]
"""Number and digest of an entry of the log."""


class FileWatch(Guard):
    """What was seen of a ledger's file since it was opened.

    Parameters
    ----------
    path : Path
        The ledger; it is there.
    """

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._log = f"{path}-wal"
        self._file = _number(self.path)
        self._recent: FileNumber | None = None
        self._newest: LogEntry | None = None
        self._written: LogEntry | None = None

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

    def after_commit(self) -> None:
        """Remember it: whoever opens this file must find it from now on."""
        self._newest = self._written


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
