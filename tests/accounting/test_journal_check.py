"""Verification: every way of tampering is noticed."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from contextlib import closing

import pytest

from blowfish_fast.accounting.journal import Journal
from blowfish_fast.accounting.journal_file import FIRST_LINK, entry_digest
from blowfish_fast.errors import LedgerError

TERMS = {"policy": "none"}


@pytest.fixture
def path(tmp_path):
    """Make a closed journal: open, charge a, its answer, charge b, allot, charge c."""
    place = tmp_path / "x.ledger"
    with closing(Journal(place, 100, TERMS)) as made:
        made.reserve("a", 10, 1, {"n": 1})
        made.store("a", [b"answer of a"])
        made.reserve("b", 20, 1, {"n": 2})
        made.allot("ann", 30)
        made.reserve("c", 25, 1, {"n": 3}, analyst="ann")
    return place


def tamper(path, *statements, chained=False):
    """Act as the owner of the closed file, who can drop triggers and constraints."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for rule, none in ((" AND cost >= 0", ""), ("spent <= total", "1")):
            connection.execute(
                "UPDATE sqlite_master SET sql = replace(sql, ?, ?)", (rule, none)
            )
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for one in statements:
            connection.execute(one)
        if chained:
            rechain(connection)


def refuse(path, reason, head=None):
    """Open the file again and check why it is refused."""
    with closing(Journal(path)) as again:
        with pytest.raises(LedgerError) as caught:
            again.verify(head)
        assert re.search(reason, str(caught.value)), str(caught.value)


def rechain(connection):
    """Make every digest fit again."""
    before = FIRST_LINK
    for row in connection.execute(
        "SELECT number, kind, request, cost, content FROM log ORDER BY number"
    ).fetchall():
        before = entry_digest(before, *row)
        connection.execute(
            "UPDATE log SET digest = ? WHERE number = ?", (before, row[0])
        )


def test_an_untouched_journal_has_a_head_that_grows(path):
    with closing(Journal(path)) as journal:
        head = journal.verify()
        assert len(bytes.fromhex(head)) == 32
        assert journal.verify(head) == head
        journal.reserve("d", 1, 1, {})
        assert journal.verify(head) != head


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE log SET cost = 1 WHERE request = 'b'", "entry 4 does not continue"),
        ("UPDATE log SET content = '{}' WHERE number = 2", "entry 2 does not continue"),
        ("UPDATE log SET content = 'x' WHERE number = 2", "entry 2 does not continue"),
        ("UPDATE log SET request = 'z' WHERE number = 4", "entry 4 does not continue"),
        ("UPDATE log SET kind = 'amend' WHERE number = 4", "entry 4 does not continue"),
        (
            "UPDATE log SET digest = zeroblob(32) WHERE number = 4",
            "entry 4 does not continue",
        ),
        ("DELETE FROM log WHERE number = 2", "entry 2 does not continue"),
        ("DELETE FROM log WHERE number = 6", r"row says \[\(100, 55, 1\)\] and .* 30"),
        ("UPDATE budget SET spent = 10", r"row says \[\(100, 10, 1\)\]"),
        ("UPDATE budget SET spent = 54", r"row says \[\(100, 54, 1\)\]"),
        ("UPDATE budget SET total = 200", r"row says \[\(200, 55, 1\)\]"),
        ("UPDATE budget SET terms = 2", r"row says \[\(100, 55, 2\)\]"),
        ("DELETE FROM budget", r"row says \[\] and the entries \(100, 55, 1\)"),
        ("UPDATE allotment SET spent = 0", "the allotments differ"),
        ("UPDATE allotment SET total = 99", "the allotments differ"),
        ("DELETE FROM allotment", "the allotments differ"),
        ("UPDATE answer SET bytes = x'00'", "stored by entry 3 is not the one"),
        ("DELETE FROM answer", "stored by entry 3 is not the one"),
        ("INSERT INTO answer VALUES (4, 0, 0, x'00')", "2 answers are kept and 1 were"),
    ],
)
def test_tampering_is_noticed_for_its_own_reason(path, statement, reason):
    tamper(path, statement)
    refuse(path, reason)


def test_an_emptied_log_is_noticed(path):
    tamper(path, "DELETE FROM log")
    refuse(path, r"the entries \(-1, 0, 0\)")


OVERSPENT = json.dumps({"total": 30, "terms": TERMS})
AGREED = json.dumps({"total": 100, "terms": TERMS})


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (
            ["UPDATE log SET cost = 1 WHERE request = 'b'"],
            r"the entries \(100, 36, 1\)",
        ),
        (["UPDATE log SET cost = -5 WHERE request = 'b'"], "entry 4 refunds a charge"),
        (
            [f"UPDATE log SET content = '{OVERSPENT}' WHERE number = 1"],
            "entry 6 spends more than the budget",
        ),
        (
            [
                "UPDATE log SET cost = 1000 WHERE request = 'b'",
                "UPDATE budget SET spent = 1035",
            ],
            "entry 4 spends more than the budget",
        ),
        (
            ["UPDATE log SET kind = 'open' WHERE number = 4"],
            'entry 4 is of kind "open"',
        ),
        (
            ["UPDATE log SET kind = 'amend' WHERE number = 1"],
            'entry 1 is of kind "amend"',
        ),
        (
            [
                f"UPDATE log SET kind = 'amend', content = '{AGREED}' WHERE number = 4",
                "UPDATE budget SET spent = 35, terms = 4",
            ],
            "entry 4 changes the terms after the first charge",
        ),
        (
            ["UPDATE log SET request = 'z' WHERE number = 3"],
            "entry 3 answers what was never charged",
        ),
        (
            ["UPDATE log SET content = '{\"sha256\": []}' WHERE number = 3"],
            "1 answers are kept and 0 were logged",
        ),
        (
            ["UPDATE log SET content = '[1]' WHERE number = 3"],
            "an entry cannot be read",
        ),
        (["DELETE FROM log WHERE number = 3"], "entry 3 does not continue the chain"),
        (
            [
                "UPDATE log SET content = "
                '\'{"analyst": "ann", "total": 24}\' WHERE number = 5',
                "UPDATE allotment SET total = 24",
            ],
            "entry 6 spends more than the analyst's allotment",
        ),
        (
            ['UPDATE log SET content = \'{"analyst": "bob"}\' WHERE number = 6'],
            "entry 6 spends more than the analyst's allotment",
        ),
        (
            [
                "INSERT INTO log VALUES (7, 'allot', NULL, 0, "
                '\'{"analyst": "ann", "total": 24}\', zeroblob(32))',
                "UPDATE allotment SET total = 24",
            ],
            "entry 7 allots less than was spent",
        ),
    ],
)
def test_rewriting_the_chain_does_not_hide_a_contradiction(path, statements, reason):
    tamper(path, *statements, chained=True)
    refuse(path, reason)


def test_only_a_noted_head_shows_that_the_end_was_cut_off(path):
    with closing(Journal(path)) as journal:
        head = journal.verify()
    tamper(
        path,
        "DELETE FROM log WHERE number = 6",
        "UPDATE budget SET spent = 30",
        "UPDATE allotment SET spent = 0",
    )
    with closing(Journal(path)) as again:
        again.verify()
    refuse(path, "entries were cut off", head)


def test_a_stored_answer_is_checked_when_it_is_read(path):
    tamper(path, "UPDATE answer SET bytes = x'00'")
    with (
        closing(Journal(path)) as journal,
        pytest.raises(LedgerError, match="not the one that was logged"),
    ):
        journal.answers("a")


def test_broken_pages_are_noticed(path):
    with closing(Journal(path)) as journal:
        journal.reserve("d", 1, 1, {"filler": "x" * 20000})
    content = bytearray(path.read_bytes())
    content[4096:] = hashlib.sha256(b"noise").digest() * (len(content[4096:]) // 32)
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="it is damaged; restore nothing older"):
        Journal(path).verify()


def test_what_sqlite_itself_finds_broken_is_named(path):
    # Entries under another index: every table still reads, and only SQLite notices.
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'kind =', 'kind <>') "
            "WHERE name = 'one_charge'"
        )
    refuse(path, "damaged or was tampered with: .*index one_charge")


def test_a_row_that_breaks_a_rule_of_its_table_is_named(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("UPDATE budget SET spent = 101")
    refuse(path, "damaged or was tampered with: CHECK constraint failed in budget")


@pytest.mark.parametrize(
    ("content", "terms", "answers"),
    [
        ("{}", "entry 1 holds no terms", "entry 3 does not say what it kept"),
        (
            '{"terms": 7, "sha256": 7}',
            "entry 1 holds no terms",
            "entry 3 does not say what it kept",
        ),
        ("[]", "an entry cannot be read", "an entry cannot be read"),
        ("\x01", "an entry cannot be read", "an entry cannot be read"),
    ],
)
def test_entries_without_their_content_are_clear_errors(path, content, terms, answers):
    tamper(path, f"UPDATE log SET content = '{content}' WHERE kind <> 'charge'")
    with closing(Journal(path)) as journal:
        with pytest.raises(LedgerError, match=terms):
            journal.terms()
        with pytest.raises(LedgerError, match=answers):
            journal.answers("a")
