"""Journals: charges once, answers once, errors that leave everything as it was."""

from __future__ import annotations

import os
import threading
from datetime import datetime

import pytest

from blowfish_fast.accounting import journal as module
from blowfish_fast.accounting.journal import Journal
from blowfish_fast.errors import BudgetError, LedgerError

TERMS = {"policy": {"kind": "none"}}


@pytest.fixture(params=["memory", "disk"])
def journal(request, tmp_path):
    path = None if request.param == "memory" else tmp_path / "x.ledger"
    made = Journal(path, 100, TERMS)
    yield made
    made.close()


def test_a_charge_is_counted_once_per_request(journal):
    first = journal.reserve("a", 60, 1, {"fingerprint": "f"})
    again = journal.reserve("a", 60, 1, {"fingerprint": "g"})
    assert (first.number, first.state) == (again.number, "reserved")
    assert again.content["fingerprint"] == "f"
    assert journal.standing() == (100, 60, 1)


def test_a_refused_charge_leaves_no_trace(journal):
    journal.reserve("a", 60, 1, {})
    with pytest.raises(BudgetError, match=r"costs eps = 0\.000000041.*0\.00000004 of"):
        journal.reserve("b", 41, 1, {})
    assert journal.find("b") is None
    assert journal.standing().spent == 60
    journal.reserve("c", 40, 1, {})
    assert journal.standing().spent == 100
    journal.verify()


def test_answers_come_back_byte_by_byte(journal, monkeypatch):
    monkeypatch.setattr(module, "PIECE_BYTES", 4)
    journal.reserve("a", 1, 1, {})
    answers = [b"0123456789", b"", b"abcd"]
    assert journal.store("a", answers)
    assert journal.answers("a") == answers
    assert journal.find("a").state == "stored"
    journal.verify()


def test_the_first_answer_stays(journal):
    journal.reserve("a", 1, 1, {})
    assert journal.store("a", [b"first"])
    assert not journal.store("a", [b"second"])
    assert journal.answers("a") == [b"first"]


def test_an_answer_may_be_returned_without_being_kept(journal):
    journal.reserve("a", 1, 1, {})
    assert journal.store("a", None)
    assert journal.find("a").state == "returned"
    journal.verify()


def test_history_is_in_the_order_of_numbers(journal):
    for name in "cab":
        journal.reserve(name, 1, 1, {"name": name})
    journal.store("a", [b""])
    past = journal.history()
    assert [(one.request, one.state) for one in past] == [
        ("c", "reserved"),
        ("a", "stored"),
        ("b", "reserved"),
    ]
    assert [one.number for one in past] == [2, 3, 4]


def test_a_clock_that_jumps_back_changes_nothing(journal, monkeypatch):
    journal.reserve("a", 1, 1, {})

    class Past(datetime):
        @classmethod
        def now(cls, zone=None):
            return cls(1970, 1, 1, tzinfo=zone)

    monkeypatch.setattr("blowfish_fast.accounting.journal_file.datetime", Past)
    journal.reserve("b", 1, 1, {})
    assert [one.request for one in journal.history()] == ["a", "b"]
    journal.verify()


def test_terms_change_only_before_the_first_charge(journal):
    journal.amend(50, {"policy": "new"})
    assert journal.standing() == (50, 0, 2)
    assert journal.terms() == (2, {"policy": "new"})
    with pytest.raises(LedgerError, match="changed while the request"):
        journal.reserve("a", 1, 1, {})
    journal.reserve("a", 1, 2, {})
    with pytest.raises(LedgerError, match="frozen"):
        journal.amend(70, {"policy": "newer"})
    journal.verify()


def test_a_full_disk_refuses_and_harms_nothing(journal):
    journal.reserve("a", 1, 1, {})
    pages = journal._connection.execute("PRAGMA page_count").fetchone()[0]
    journal._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LedgerError, match="disk is full"):
        journal.store("a", [bytes(10**6)])
    assert journal.find("a").state == "reserved"
    journal._connection.execute("PRAGMA max_page_count = 1000000")
    assert journal.store("a", [bytes(10**6)])
    journal.verify()


def test_a_read_only_file_is_a_clear_error(journal):
    journal._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(LedgerError, match="can only be read"):
        journal.reserve("a", 1, 1, {})
    assert journal.standing().spent == 0


def test_a_busy_file_is_a_clear_error(tmp_path):
    one = Journal(tmp_path / "x", 100, TERMS)
    other = Journal(tmp_path / "x")
    other._connection.execute("PRAGMA busy_timeout = 20")
    one._connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="busy; try again"):
        other.reserve("a", 1, 1, {})
    one._connection.execute("ROLLBACK")
    assert other.reserve("a", 1, 1, {}).state == "reserved"
    one.close()
    other.close()


def test_a_closed_journal_says_so(journal):
    journal.close()
    with pytest.raises(LedgerError, match="open it again"):
        journal.standing()
    journal.close()


def test_threads_never_overspend(journal):
    outcomes = []

    def spend(name):
        for number in range(10):
            try:
                journal.reserve(f"{name}-{number}", 3, 1, {})
                outcomes.append(3)
            except BudgetError:
                outcomes.append(0)

    threads = [threading.Thread(target=spend, args=(name,)) for name in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sum(outcomes) == journal.standing().spent == 99
    assert len(outcomes) == 60
    journal.verify()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["reserve", "store"])
def test_work_per_charge_does_not_grow(kind):
    # Instructions of SQLite's machine instead of seconds: exact, and the same anywhere.
    journal = Journal(None, 10**6, TERMS)
    steps = [0]

    def count():
        steps[0] += 1

    journal._connection.set_progress_handler(count, 1)
    work = []
    for number in range(3000):
        name = f"{number * 7919 % 10007}"
        if kind == "store":
            journal.reserve(name, 1, 1, {})
        steps[0] = 0
        if kind == "store":
            journal.store(name, [b"answer"])
        else:
            journal.reserve(name, 1, 1, {})
        work.append(steps[0])
    assert max(work[-100:]) <= 2 * min(work[:100])
    journal.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_process_opens_the_file_anew_and_never_memory(journal):
    def in_child(action):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writing, action().encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        text = os.read(reading, 1000).decode()
        os.close(reading)
        return text

    def spend():
        try:
            journal.reserve("child", 30, 1, {})
            return f"spent {journal.standing().spent}"
        except LedgerError as problem:
            return str(problem)

    def read():
        try:
            return f"{journal.standing().spent} was spent"
        except LedgerError as problem:
            return str(problem)

    journal.reserve("parent", 20, 1, {})
    seen, said = in_child(read), in_child(spend)
    if journal.path is None:
        assert "would be spent twice" in seen
        assert "would be spent twice" in said
        assert journal.standing().spent == 20
    else:
        assert seen == "20 was spent"
        assert said == "spent 50"
        assert journal.standing().spent == 50
    journal.verify()
