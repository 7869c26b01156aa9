"""Group commit: transactions of several threads, committed together.

    threads   a  b  c  d  e                   each brings one action and waits
    commits   [a]   [b c d e]                 whoever comes first takes all who wait

Waiting for the disk is most of a small transaction. While one batch is on its way to
the disk, the next gathers; every thread returns only after the commit that holds its
own action. An action that fails is undone alone, by its savepoint. Serves ``journal``.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, cast

from blowfish_fast.errors import LedgerError

from .journal_file import plain_errors

Result = TypeVar("Result")
Action = Callable[[sqlite3.Connection], Any]

MOST_TOGETHER = 64
"""Actions of one transaction."""


class _Waiting:
    """An action, and what became of it."""

    __slots__ = ("action", "done", "problem", "result")

    def __init__(self, action: Action) -> None:
        self.action = action
        self.done = False
        self.result: Any = None
        self.problem: BaseException | None = None


class Guard:
    """Looks on at every transaction, and may refuse it; this one lets all pass.

    Called under the lock, inside the transaction, where a look at the file costs no
    lock of its own.
    """

    def after_begin(self, connection: sqlite3.Connection) -> None:
        """Look at what was found; an error gives up the transaction."""

    def before_commit(self, connection: sqlite3.Connection) -> None:
        """Look at what was written, before the commit."""

    def after_commit(self) -> None:
        """Hear that it was committed."""


class GroupCommit:
    """The writing side of one connection, which `connect` returns under `lock`."""

    def __init__(self, name: str, connect: Callable[[], sqlite3.Connection]) -> None:
        self.name = name
        self.lock = threading.Lock()
        self.guard = Guard()
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
                    for one in batch:
                        self._run_one(connection, one)
        except Exception as problem:
            for one in batch:
                one.problem = problem
        except BaseException:
            # Whether the commit was reached is not known; asking again finds out.
            for one in batch:
                one.problem = LedgerError(
                    f"{self.name} was interrupted; ask again with the same request"
                )
            raise
        finally:
            for one in batch:
                one.done = True

    def _run_one(self, connection: sqlite3.Connection, one: _Waiting) -> None:
        connection.execute("SAVEPOINT one")
        try:
            with plain_errors(self.name):
                one.result = one.action(connection)
        except Exception as problem:
            if not connection.in_transaction:
                # SQLite gave up the whole transaction: a full disk, for instance.
                raise
            connection.execute("ROLLBACK TO one")
            one.problem = problem
        connection.execute("RELEASE one")


@contextmanager
def _transaction(
    connection: sqlite3.Connection, guard: Guard, *, write: bool
) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        guard.after_begin(connection)
        yield
        if write:
            guard.before_commit(connection)
        connection.execute("COMMIT")
        if write:
            guard.after_commit()
    finally:
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
