"""A ledger whose file is removed, replaced or set back while it is open refuses."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from blowfish_fast.accounting.journal import Journal
from blowfish_fast.errors import LedgerError

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
