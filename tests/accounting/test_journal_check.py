"""Verification: every way of tampering is noticed."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing

import pytest

from blowfish_fast.accounting.journal import Journal
from blowfish_fast.accounting.journal_file import FIRST_LINK, entry_digest
from blowfish_fast.errors import LedgerError

TERMS = {"policy": "none"}


@pytest.fixture
def journal(tmp_path):
    made = Journal(tmp_path / "x.ledger", 100, TERMS)
    made.reserve("a", 10, 1, {"n": 1})
    made.store("a", [b"answer of a"])
    made.reserve("b", 20, 1, {"n": 2})
    yield made
    made.close()


def tamper(journal, *statements):
    """Act as the owner of the file, who can drop every trigger."""
    connection = sqlite3.connect(journal.path, isolation_level=None)
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    for one in statements:
        connection.execute(one)
    connection.close()


def rechain(journal):
    """Make every digest fit again."""
    connection = sqlite3.connect(journal.path, isolation_level=None)
    before = FIRST_LINK
    for row in connection.execute(
        "SELECT number, kind, request, cost, content FROM log ORDER BY number"
    ).fetchall():
        before = entry_digest(before, *row)
        connection.execute(
            "UPDATE log SET digest = ? WHERE number = ?", (before, row[0])
        )
    connection.close()


def test_an_untouched_journal_has_a_head_that_grows(journal):
    head = journal.verify()
    assert len(bytes.fromhex(head)) == 32
    assert journal.verify(head) == head
    journal.reserve("c", 1, 1, {})
    assert journal.verify(head) != head


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE log SET cost = 1 WHERE request = 'b'",
        "UPDATE log SET content = '{}' WHERE number = 2",
        "UPDATE log SET content = 'x' WHERE number = 2",
        "UPDATE log SET request = 'z' WHERE number = 4",
        "UPDATE log SET kind = 'amend' WHERE number = 4",
        "UPDATE log SET digest = zeroblob(32) WHERE number = 4",
        "DELETE FROM log WHERE number = 2",
        "DELETE FROM log WHERE number = 4",
        "DELETE FROM log",
        "UPDATE budget SET spent = 10",
        "UPDATE budget SET total = 200",
        "UPDATE budget SET terms = 2",
        "DELETE FROM budget",
        "UPDATE answer SET bytes = x'00'",
        "DELETE FROM answer",
        "INSERT INTO answer VALUES (4, 0, 0, x'00')",
    ],
)
def test_tampering_is_noticed(journal, statement):
    tamper(journal, statement)
    with pytest.raises(LedgerError, match="damaged"):
        journal.verify()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE log SET cost = 1 WHERE request = 'b'",
        "UPDATE log SET cost = -5 WHERE request = 'b'",
        "UPDATE log SET cost = 1000 WHERE request = 'b'",
        "UPDATE log SET kind = 'open' WHERE number = 4",
        "UPDATE log SET kind = 'amend' WHERE number = 4",
        "UPDATE log SET request = 'z' WHERE number = 3",
        "UPDATE log SET content = '{\"sha256\": []}' WHERE number = 3",
        "UPDATE log SET content = '[1]' WHERE number = 3",
        "DELETE FROM log WHERE number = 3",
    ],
)
def test_rewriting_the_chain_does_not_hide_a_contradiction(journal, statement):
    tamper(journal, statement)
    rechain(journal)
    with pytest.raises(LedgerError, match="damaged"):
        journal.verify()


def test_only_a_noted_head_shows_that_the_end_was_cut_off(journal):
    head = journal.verify()
    tamper(
        journal,
        "DELETE FROM log WHERE number = 4",
        "UPDATE budget SET spent = 10",
    )
    with closing(Journal(journal.path)) as again:
        again.verify()
        with pytest.raises(LedgerError, match="entries were cut off"):
            again.verify(head)


def test_a_stored_answer_is_checked_when_it_is_read(journal):
    tamper(journal, "UPDATE answer SET bytes = x'00'")
    with pytest.raises(LedgerError, match="not the one that was logged"):
        journal.answers("a")


def test_broken_pages_are_noticed(journal):
    journal.reserve("c", 1, 1, {"filler": "x" * 20000})
    journal.close()
    content = bytearray(journal.path.read_bytes())
    content[4096:] = hashlib.sha256(b"noise").digest() * (len(content[4096:]) // 32)
    journal.path.write_bytes(content)
    with pytest.raises(LedgerError, match="damaged"):
        Journal(journal.path).verify()


@pytest.mark.parametrize("content", ["{}", '{"terms": 7, "sha256": 7}', "[]", "\x01"])
def test_entries_that_lost_their_content_are_clear_errors(journal, content):
    tamper(journal, f"UPDATE log SET content = '{content}' WHERE kind <> 'charge'")
    for ask in (journal.terms, lambda: journal.answers("a")):
        with pytest.raises(LedgerError, match="damaged"):
            ask()
