"""Transactions on the file of a ledger: committed together, and watched.

Waiting for the disk is most of a small transaction, so the next batch gathers while one
is on its way. A file that was replaced, removed or set back while it was open is
refused: SQLite would go on writing into one that nobody finds again.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from blowfish_fast.errors import LedgerError

from .journal_file import plain_errors

Result = TypeVar("Result")
Action = Callable[[sqlite3.Connection], Any]

MOST_TOGETHER = 64
"""Actions of one commit: more would let the first wait for work that is not its own."""

FileNumber = tuple[int, int]
"""Device and number of a file: a path may lead to another one later."""

LogEntry = tuple[int, bytes]
"""Number and digest of an entry of the log."""


@dataclass(slots=True)
class _Waiting:
    action: Action
    done: bool = False
    result: Any = None
    problem: BaseException | None = None


class FileWatch:
    """What was seen of a ledger's file since it was opened.

    Parameters
    ----------
    path : Path
        The file. SQLite keeps its latest charges in a second one beside it, whose name
        ends in ``-wal``.
    """

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._log = f"{path}-wal"
        self._file = _number(self.path)
        self._recent: FileNumber | None = None
        self._newest: LogEntry | None = None

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
        row = connection.execute(
            "SELECT digest FROM log WHERE number = ?", (number,)
        ).fetchone()
        if row is None or bytes(row[0]) != digest:
            raise LedgerError(
                f"{self.path} is damaged: entry {number}, its newest a moment ago, is "
                "gone or another. Was an older copy put back while it was open? It "
                "forgets charges; restore nothing older than the last one"
            )

    @contextmanager
    def committing(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Remember, once it is committed, the newest entry: all must find it then."""
        written = _newest(connection)
        marked = connection.execute("UPDATE in_use SET mark = 1 WHERE mark = 0")
        yield
        self._newest = written
        if marked.rowcount:
            # The mark belongs into the file itself, where a copy of it shows it.
            with suppress(sqlite3.Error):
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


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
    entry: LogEntry | None = connection.execute(
        "SELECT number, digest FROM log ORDER BY number DESC LIMIT 1"
    ).fetchone()
    return entry


def _number(path: str) -> FileNumber | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class GroupCommit:
    """The writing side of one connection.

    Parameters
    ----------
    name : str
        What the ledger is called, for messages.
    connect : Callable[[], sqlite3.Connection]
        Returns the connection, under `lock`.
    """

    def __init__(self, name: str, connect: Callable[[], sqlite3.Connection]) -> None:
        self.name = name
        self.lock = threading.Lock()
        self.guard: FileWatch | None = None
        self._connect = connect
        self._queue: deque[_Waiting] = deque()

    def run(self, action: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run an action in a transaction; return its result after the commit."""
        own = _Waiting(action)
        self._queue.append(own)
        with self.lock:
            # In the order of arrival: one's own turn comes with the first batches.
            while not own.done:
                self._commit_batch()
        if own.problem is not None:
            raise own.problem
        return cast(Result, own.result)

    @contextmanager
    def alone(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """Lend the connection for a transaction of one's own."""
        with self.lock, plain_errors(self.name):
            connection = self._connect()
            with _transaction(connection, self.guard, write=write):
                yield connection

    def forget(self) -> None:
        """Start anew in a forked process: those who wait are in the other one."""
        self.lock = threading.Lock()
        self._queue = deque()

    def _commit_batch(self) -> None:
        waiting = min(len(self._queue), MOST_TOGETHER)
        batch = [self._queue.popleft() for _ in range(waiting)]
        try:
            with plain_errors(self.name):
                connection = self._connect()
                with _transaction(connection, self.guard, write=True):
                    if len(batch) == 1:
                        # What goes wrong undoes the transaction, which is its own.
                        batch[0].result = batch[0].action(connection)
                    else:
                        for queued in batch:
                            self._run_one(connection, queued)
        except Exception as problem:
            for queued in batch:
                queued.problem = problem
        except BaseException:
            # Whether the commit was reached is not known; asking again finds out.
            for queued in batch:
                queued.problem = LedgerError(
                    f"{self.name} was interrupted; ask again with the same request"
                )
            raise
        finally:
            for queued in batch:
                queued.done = True

    def _run_one(self, connection: sqlite3.Connection, queued: _Waiting) -> None:
        connection.execute("SAVEPOINT one")
        try:
            with plain_errors(self.name):
                queued.result = queued.action(connection)
        except Exception as problem:
            if not connection.in_transaction:
                # SQLite gave up the whole transaction: a full disk, for instance.
                raise
            connection.execute("ROLLBACK TO one")
            queued.problem = problem
        connection.execute("RELEASE one")


@contextmanager
def _transaction(
    connection: sqlite3.Connection, guard: FileWatch | None, *, write: bool
) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        if guard is not None:
            guard.after_begin(connection)
        yield
        with guard.committing(connection) if guard and write else nullcontext():
            connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
