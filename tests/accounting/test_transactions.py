"""Transactions share commits; a file that was replaced while it is open is refused."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from blowfish_fast.accounting.journal import Journal
from blowfish_fast.accounting.transactions import MOST_TOGETHER, GroupCommit
from blowfish_fast.errors import BudgetError, LedgerError

TERMS = {"policy": "none"}


@pytest.fixture
def journal(tmp_path):
    made = Journal(tmp_path / "x.ledger", 100, TERMS)
    made.reserve("a", 10, 1, {"n": 1})
    yield made
    made.close()


def refuses(journal, match):
    """Whatever charges, stores, reads or replays raises."""
    for use in (
        lambda: journal.reserve("b", 10, 1, {"n": 2}),
        lambda: journal.store("a", [b"answer"]),
        lambda: journal.allot("ann", 10),
        lambda: journal.answers("a"),
        journal.standing,
        journal.history,
        journal.verify,
    ):
        with pytest.raises(LedgerError, match=match):
            use()
    return True


def test_a_file_that_was_removed_is_not_charged_any_more(journal):
    journal.path.unlink()
    assert refuses(journal, "removed or replaced")


def test_an_older_file_in_its_place_is_not_taken_for_it(journal, tmp_path):
    with closing(Journal(tmp_path / "y.ledger", 100, TERMS)):
        pass
    os.replace(tmp_path / "y.ledger", journal.path)
    assert refuses(journal, "removed or replaced")


def test_a_file_that_comes_back_is_charged_on(journal, tmp_path):
    os.rename(journal.path, tmp_path / "elsewhere")
    assert refuses(journal, "removed or replaced")
    os.rename(tmp_path / "elsewhere", journal.path)
    journal.reserve("b", 20, 1, {"n": 2})
    assert journal.standing().spent == 30


def test_the_latest_charges_are_not_swept_away(journal):
    recent = journal.path.with_name("x.ledger-wal")
    recent.unlink()
    assert refuses(journal, "holds the latest charges")


def test_entries_that_vanish_under_an_open_ledger_are_missed(journal):
    with closing(sqlite3.connect(journal.path, isolation_level=None)) as owner:
        owner.execute("DROP TRIGGER log_is_kept")
        owner.execute("DROP TRIGGER nothing_is_refunded")
        owner.execute("DELETE FROM log WHERE kind = 'charge'")
        owner.execute("UPDATE budget SET spent = 0")
    with pytest.raises(LedgerError, match="entry 2, its newest a moment ago"):
        journal.reserve("b", 100, 1, {"n": 2})


def test_other_processes_may_write_close_and_open_meanwhile(journal):
    for round_ in range(3):
        with closing(Journal(journal.path)) as other:
            other.reserve(f"other {round_}", 1, 1, {"n": 2})
        journal.reserve(f"own {round_}", 1, 1, {"n": 2})
    assert journal.standing().spent == 16
    journal.verify()


def test_a_copy_that_was_opened_by_itself_is_another_ledger(journal, tmp_path):
    journal.close()
    shutil.copy(journal.path, tmp_path / "copy.ledger")
    with closing(Journal(tmp_path / "copy.ledger")) as copy:
        copy.reserve("b", 10, 1, {"n": 2})
        assert copy.standing().spent == 20


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


def test_whoever_closes_while_another_reads_leaves_the_mark(journal):
    with closing(sqlite3.connect(journal.path)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM log").fetchone()
        journal.reserve("b", 10, 1, {"n": 2})
        journal.close()
        # What the reader holds cannot be moved into the file, so it does not say that
        # it holds everything.
        with closing(sqlite3.connect(journal.path)) as other:
            assert other.execute("SELECT mark FROM in_use").fetchone() == (1,)
    with closing(Journal(journal.path, 100, TERMS)) as opened:
        assert len(opened.history()) == 2
