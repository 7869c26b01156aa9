"""Transactions on the file of a ledger: committed together, and watched.

Most of a small transaction is waiting for the disk. Actions that arrive meanwhile are
queued, and the next transaction runs them all:

    action a    |--- commit of a ---|
    action b       waits            |--- commit of b, c and d ---|
    action c           waits        |
    action d                waits   |

Each of several actions has a savepoint, so that one that fails undoes itself alone.

A ledger must not lose charges, so its file is watched. SQLite goes on writing into a
file that was removed or replaced while it is open, where nobody would find the charges
again, and it does not notice an older copy that was put back. Both are refused here.
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
"""The most actions of one commit: the first of them waits until the last has run."""

FileNumber = tuple[int, int]
"""Device and inode number: they tell a file from another one at the same path."""

LogEntry = tuple[int, bytes]
"""Number and digest of an entry of the log."""


@dataclass(slots=True)
class _Waiting:
    """An action in the queue, and what became of it."""

    action: Action
    done: bool = False
    result: Any = None
    problem: BaseException | None = None


class FileWatch:
    """Whether a ledger's file is still the one that was opened, with all its entries.

    Parameters
    ----------
    path : Path
        The file. SQLite keeps its latest charges in a second file beside it, whose name
        ends in ``-wal``.
    """

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._log = f"{path}-wal"
        self._file_number = _file_number(self.path)
        self._log_number: FileNumber | None = None
        self._newest: LogEntry | None = None

    def attach(self, connection: sqlite3.Connection) -> None:
        """Watch a new connection, in this process or after a fork."""
        self.after_begin(connection)
        self._newest = _newest_entry(connection)
        # Only now: SQLite makes the second file at the first reading. It removes that
        # file when the last connection is closed.
        self._log_number = _file_number(self._log)

    def check_place(self) -> None:
        """Refuse to go on with a file that its path does not lead to any more."""
        number = self._file_number
        if number is None or _file_number(self.path) != number:
            raise LedgerError(
                f"{self.path} was removed or replaced while it was open, and what lies "
                "there now may not know what was charged; nothing was charged. Put "
                "back the very file, nothing older, and open it again"
            )
        number = self._log_number
        if number is not None and _file_number(self._log) != number:
            raise LedgerError(
                f"{self._log} was removed or replaced while the ledger was open. It "
                "holds the latest charges; nothing was charged now. Put it back, and "
                "open the ledger again"
            )

    def after_begin(self, connection: sqlite3.Connection) -> None:
        """Refuse a log that has lost the entry which was its newest when last seen."""
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
        """Remember the newest entry once it is committed, for later checks.

        The first commit after a clean closing also marks the file as in use.
        """
        written = _newest_entry(connection)
        marked = connection.execute("UPDATE in_use SET mark = 1 WHERE mark = 0")
        yield
        self._newest = written
        if marked.rowcount:
            # The mark belongs into the file itself, where a copy of it shows it.
            with suppress(sqlite3.Error):
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def was_in_use(connection: sqlite3.Connection) -> bool:
    """Return whether the file is marked as in use: it was copied, or not closed."""
    (mark,) = connection.execute("SELECT mark FROM in_use").fetchone()
    return bool(mark)


def close_cleanly(connection: sqlite3.Connection) -> None:
    """Close a connection; the file then holds every charge, and its mark is taken off.

    First what SQLite keeps in the second file is written into the file itself, then the
    mark is taken off, then that is written, too. Where another connection still writes,
    it is left to that one.
    """
    with suppress(sqlite3.Error):
        connection.execute("PRAGMA busy_timeout = 0")
        for step in ("", "UPDATE in_use SET mark = 0 WHERE mark = 1"):
            if step:
                connection.execute(step)
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                break
    connection.close()


def _newest_entry(connection: sqlite3.Connection) -> LogEntry | None:
    entry: LogEntry | None = connection.execute(
        "SELECT number, digest FROM log ORDER BY number DESC LIMIT 1"
    ).fetchone()
    return entry


def _file_number(path: str) -> FileNumber | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class GroupCommit:
    """The queue of actions that write through one connection, a batch at a time.

    Parameters
    ----------
    name : str
        What messages call the ledger.
    connect : Callable[[], sqlite3.Connection]
        Returns the connection. It is called only while `lock` is held.
    """

    def __init__(self, name: str, connect: Callable[[], sqlite3.Connection]) -> None:
        self.name = name
        self.lock = threading.Lock()
        self.guard: FileWatch | None = None
        self._connect = connect
        self._queue: deque[_Waiting] = deque()

    def run(self, action: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run an action in a transaction; return its result after the commit."""
        waiting = _Waiting(action)
        self._queue.append(waiting)
        with self.lock:
            # Whoever holds the lock commits for all that wait, in the order of their
            # arrival. So this action may be done before its caller gets the lock.
            while not waiting.done:
                self._commit_batch()
        if waiting.problem is not None:
            raise waiting.problem
        return cast(Result, waiting.result)

    @contextmanager
    def alone(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """Lend the connection for a transaction that no other action takes part in."""
        with self.lock, plain_errors(self.name):
            connection = self._connect()
            with _transaction(connection, self.guard, write=write):
                yield connection

    def forget(self) -> None:
        """Start anew in a forked process: whoever waits, waits in the parent."""
        self.lock = threading.Lock()
        self._queue = deque()

    def _commit_batch(self) -> None:
        """Run the first actions of the queue in one transaction; note each outcome."""
        size = min(len(self._queue), MOST_TOGETHER)
        batch = [self._queue.popleft() for _ in range(size)]
        try:
            with plain_errors(self.name):
                connection = self._connect()
                with _transaction(connection, self.guard, write=True):
                    if len(batch) == 1:
                        # Without a savepoint: a failure undoes the whole transaction,
                        # in which nothing else happens.
                        batch[0].result = batch[0].action(connection)
                    else:
                        for queued in batch:
                            self._run_one(connection, queued)
        except Exception as problem:
            for queued in batch:
                queued.problem = problem
        except BaseException:
            # An interrupt, such as Ctrl-C. Whether the commit was reached is not known;
            # asking again with the same request finds out.
            for queued in batch:
                queued.problem = LedgerError(
                    f"{self.name} was interrupted; ask again with the same request"
                )
            raise
        finally:
            for queued in batch:
                queued.done = True

    def _run_one(self, connection: sqlite3.Connection, queued: _Waiting) -> None:
        """Run one action of several; a failure undoes this action alone."""
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
