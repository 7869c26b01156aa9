"""The file of a journal: made at once, refused when foreign, guarded by triggers."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3

import pytest

import blowfish_fast as bf
from blowfish_fast.accounting import journal_file
from blowfish_fast.accounting.journal_file import (
    APPLICATION,
    FIRST_LINK,
    FORMAT_IN_RHO,
    _make_durable,
    append_entry,
    connect,
    create_file,
    create_tables,
    entry_digest,
    open_file,
    plain_errors,
)
from blowfish_fast.errors import LedgerError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "made.ledger"


@pytest.fixture
def tables():
    connection = connect(":memory:")
    create_tables(connection, 100, {"policy": "none"})
    yield connection
    connection.close()


def test_a_new_file_is_complete_durable_and_alone(path):
    create_file(path, 100, {"policy": "none"})
    assert os.listdir(path.parent) == [path.name]
    connection = open_file(path)
    rows = connection.execute("SELECT number, kind, content FROM log").fetchall()
    assert [(number, kind) for number, kind, _ in rows] == [(1, "open")]
    assert json.loads(rows[0][2])["terms"] == {"policy": "none"}
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    connection.close()


def test_an_existing_file_is_never_overwritten(path):
    create_file(path, 100, {})
    before = path.read_bytes()
    create_file(path, 200, {})
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_missing_folder_is_a_clear_error(tmp_path):
    with pytest.raises(LedgerError, match="no ledger can be made"):
        create_file(tmp_path / "nowhere" / "x", 100, {})


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100])
def test_damaged_and_foreign_files_are_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(LedgerError), plain_errors("it"):
        open_file(path)
    assert path.read_bytes() == content


def test_other_databases_and_formats_are_refused(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (a)")
    connection.commit()
    with pytest.raises(LedgerError, match="no ledger"):
        open_file(path)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT_IN_RHO + 1}")
    connection.close()
    with pytest.raises(LedgerError, match="Use the version"):
        open_file(path)


def test_no_file_is_made_by_opening(path):
    with pytest.raises(LedgerError, match="cannot be opened"), plain_errors("it"):
        open_file(path)
    assert not path.exists()


def test_entries_form_a_chain(tables):
    append_entry(tables, "charge", "a", 7, {"x": 1})
    rows = tables.execute("SELECT * FROM log ORDER BY number").fetchall()
    before = FIRST_LINK
    for number, kind, request, cost, content, digest in rows:
        text = json.dumps([number, kind, request, cost, content]).encode()
        assert digest == hashlib.sha256(before + text).digest()
        assert digest == entry_digest(before, number, kind, request, cost, content)
        before = digest
    assert [row[0] for row in rows] == [1, 2]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE log SET cost = 0",
        "DELETE FROM log",
        "UPDATE answer SET bytes = x''",
        "DELETE FROM answer",
        "DELETE FROM budget",
        "UPDATE budget SET spent = spent - 1",
        "UPDATE budget SET total = total + 1",
        "UPDATE budget SET terms = terms + 1",
        "UPDATE budget SET spent = 101",
        "UPDATE budget SET spent = 50.5",
        "INSERT INTO budget VALUES (2, 5, 0, 1)",
        "INSERT INTO log SELECT 9, 'charge', 'a', 0, '', digest FROM log LIMIT 1",
        "INSERT INTO log SELECT 9, 'charge', 'b', -1, '', digest FROM log LIMIT 1",
        "INSERT INTO log SELECT 9, 'charge', 'b', 0.5, '', digest FROM log LIMIT 1",
    ],
)
def test_the_tables_refuse_to_forget_or_to_overspend(tables, statement):
    entry = append_entry(tables, "charge", "a", 7, {})
    tables.execute("UPDATE budget SET spent = spent + 7")
    tables.execute("INSERT INTO answer VALUES (?, 0, 0, x'00')", (entry,))
    with pytest.raises(sqlite3.IntegrityError):
        tables.execute(statement)


def test_before_the_first_charge_terms_may_change(tables):
    tables.execute("UPDATE budget SET total = 50, terms = 2")
    assert tables.execute("SELECT total FROM budget").fetchone() == (50,)


def test_errors_become_sentences():
    said = "the thing could not be used: some words"
    with pytest.raises(LedgerError, match=said), plain_errors("the thing"):
        raise sqlite3.OperationalError("some words")


FULL = bf.policies.Full(bf.Domain(4))


def test_an_empty_file_is_called_empty(tmp_path):
    path = tmp_path / "ledger"
    path.touch()
    with pytest.raises(LedgerError, match="is empty, and a ledger never is"):
        bf.Ledger(path, epsilon=1, policy=FULL)
    assert path.read_bytes() == b""


def test_a_ledger_without_its_budget_is_damaged(tmp_path):
    path = tmp_path / "ledger"
    bf.Ledger(path, epsilon=1, policy=FULL).close()
    connection = sqlite3.connect(path)
    guards = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    for (name,) in connection.execute(guards).fetchall():
        connection.execute(f'DROP TRIGGER "{name}"')
    connection.execute("DELETE FROM budget")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="lost its budget"), bf.Ledger(path) as ledger:
        assert ledger.spent == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forked processes")
def test_a_ledger_in_memory_is_refused_to_a_forked_process():
    ledger = bf.Ledger(None, epsilon=1, policy=FULL)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = b"nothing was refused"
        try:
            ledger.history()
        except LedgerError as problem:
            said = str(problem).encode()
        except BaseException as problem:
            said = type(problem).__name__.encode()
        os.write(writing, said)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        assert b"belongs to the process that made it" in told.read()
    assert ledger.spent == 0


def test_a_place_without_a_write_ahead_log_is_refused():
    connection = connect(":memory:")
    with pytest.raises(LedgerError, match="answers 'memory'"):
        _make_durable(connection)
    connection.close()


def test_a_folder_that_cannot_be_held_is_only_read(tmp_path):
    entered = []
    with journal_file.held_folder(tmp_path / "missing"):
        entered.append("missing")
    with journal_file.held_folder(tmp_path):
        entered.append("there")
    assert entered == ["missing", "there"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_only_files_beside_a_ledger_are_read(path, monkeypatch):
    """A pipe that nobody writes to would be waited for without end."""
    create_file(path, 100, {"about": {"source": "one"}})
    other = path.with_name("other.ledger")
    create_file(other, 100, {"about": {"source": "other"}})
    os.mkfifo(path.with_name("a pipe"))
    path.with_name("a folder").mkdir()
    path.with_name("a dangling link").symlink_to("nowhere")
    path.with_name("a note").write_text("no ledger")
    assert list(journal_file.terms_beside(path)) == [{"source": "other"}]

    def unreadable(*_given):
        raise PermissionError

    monkeypatch.setattr(type(path), "open", unreadable)
    assert list(journal_file.terms_beside(path)) == []


@pytest.mark.parametrize("read", [lambda: b"\xff".decode(), lambda: float(10**400)])
def test_texts_and_numbers_that_cannot_be_read_are_told_as_damage(read):
    said = "it could not be used: it is damaged"
    with pytest.raises(LedgerError, match=said), plain_errors("it"):
        read()
