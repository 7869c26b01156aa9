"""What is looked up before a change of the journal is looked up in its transaction."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from blowfish_fast.accounting import journal
from blowfish_fast.accounting.journal import Journal
from tests.accounting.test_journal_check import TERMS


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.allot("ann", 30),
        lambda made: made.amend(50, TERMS),
        lambda made: made.raise_total(200, {"why": "a second year"}),
    ],
    ids=["allot", "amend", "raise"],
)
def test_nobody_writes_between_a_look_and_a_change(tmp_path, monkeypatch, change):
    path = tmp_path / "x.ledger"
    looks = []

    def watched(name):
        look = getattr(journal, name)

        def looked(*given):
            locked = pytest.raises(sqlite3.OperationalError, match="locked")
            with closing(sqlite3.connect(path, timeout=0)) as other, locked:
                other.execute("BEGIN IMMEDIATE")
            looks.append(name)
            return look(*given)

        return looked

    with closing(Journal(path, 100, TERMS)) as made:
        for name in ("_allotment", "_has_charges", "_standing"):
            monkeypatch.setattr(journal, name, watched(name))
        change(made)
        monkeypatch.undo()
        made.verify()
    assert looks
