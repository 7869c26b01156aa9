"""Actions of many threads share commits; each keeps its own result or error."""

from __future__ import annotations

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from blowfish_fast.accounting.transactions import MOST_TOGETHER, GroupCommit
from blowfish_fast.errors import BudgetError, LedgerError


@pytest.fixture
def connection(tmp_path):
    opened = sqlite3.connect(
        tmp_path / "file", isolation_level=None, check_same_thread=False
    )
    opened.execute("CREATE TABLE number (value INTEGER UNIQUE)")
    yield opened
    opened.close()


@pytest.fixture
def commits(connection):
    return GroupCommit("the file", lambda: connection)


def adding(value, *, fails=None):
    def action(connection):
        connection.execute("INSERT INTO number VALUES (?)", (value,))
        if fails is not None:
            raise fails
        return 10 * value

    return action


def kept(connection):
    return [value for (value,) in connection.execute("SELECT value FROM number")]


def test_results_and_errors_go_to_those_who_asked(commits, connection):
    def ask(value):
        problem = BudgetError(f"no {value}") if value % 3 == 0 else None
        try:
            return commits.run(adding(value, fails=problem))
        except BudgetError as error:
            return str(error)

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(ask, range(200)))
    assert found == [f"no {one}" if one % 3 == 0 else 10 * one for one in range(200)]
    assert sorted(kept(connection)) == [one for one in range(200) if one % 3]


def test_those_who_wait_share_one_commit(commits, connection):
    begun = []
    connection.set_trace_callback(
        lambda text: begun.append(text) if text.startswith("BEGIN") else None
    )
    gathered = MOST_TOGETHER + 6
    with ThreadPoolExecutor(gathered) as pool, commits.lock:
        found = [pool.submit(commits.run, adding(at)) for at in range(gathered)]
        while len(commits._queue) < gathered:
            time.sleep(0.001)
    connection.set_trace_callback(None)
    assert [one.result() for one in found] == [10 * at for at in range(gathered)]
    assert len(begun) == 2
    assert kept(connection) == sorted(kept(connection))


def test_an_action_sees_those_before_it(commits, connection):
    commits.run(adding(1))
    with pytest.raises(LedgerError, match="could not be used"):
        commits.run(adding(1))
    assert kept(connection) == [1]
    assert not connection.in_transaction


def test_a_commit_that_fails_keeps_nothing_of_anybody(tmp_path):
    path = tmp_path / "full"
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("CREATE TABLE number (value)")
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    commits = GroupCommit("the file", lambda: connection)
    with ThreadPoolExecutor(4) as pool, commits.lock:
        found = [pool.submit(commits.run, adding("x" * 3000)) for _ in range(4)]
        while len(commits._queue) < 4:
            time.sleep(0.001)
    errors = [one.exception() for one in found]
    assert all(isinstance(one, LedgerError) for one in errors[1:])
    assert len(kept(connection)) == sum(one is None for one in errors)
    assert not connection.in_transaction
    connection.close()


def test_an_interruption_reaches_its_thread_and_is_told_to_others(commits, connection):
    def interrupted(connection):
        connection.execute("INSERT INTO number VALUES (7)")
        raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as pool, commits.lock:
        first = pool.submit(commits.run, interrupted)
        while len(commits._queue) < 1:
            time.sleep(0.001)
        second = pool.submit(commits.run, adding(8))
        while len(commits._queue) < 2:
            time.sleep(0.001)
    ends = {type(first.exception()), type(second.exception())}
    assert ends == {KeyboardInterrupt, LedgerError}
    assert kept(connection) == []
    assert commits.run(adding(9)) == 90


def test_a_transaction_of_ones_own_waits_for_the_others(commits, connection):
    with commits.alone(write=True) as own:
        own.execute("INSERT INTO number VALUES (1)")
        thread = threading.Thread(target=commits.run, args=(adding(2),))
        thread.start()
        time.sleep(0.01)
        assert kept(connection) == [1]
    thread.join()
    assert kept(connection) == [1, 2]


def test_a_forked_process_starts_with_nobody_waiting(commits, connection):
    commits.lock.acquire()
    commits._queue.append(object())
    commits.forget()
    assert commits.run(adding(3)) == 30
