"""The last charges are read without the others, by a page or by an analyst."""

from __future__ import annotations

import sqlite3

import pytest

import blowfish_fast as bf
from blowfish_fast.accounting import journal_file
from blowfish_fast.errors import InputError

POLICY = bf.policies.Full(bf.Domain(2))


@pytest.fixture
def ledger(tmp_path):
    with bf.Ledger(tmp_path / "a.ledger", epsilon=1, policy=POLICY) as opened:
        opened.allot("ann", 0.5)
        opened.allot("bob", 0.5)
        for at in range(7):
            opened.release(
                bf.Laplace(POLICY, epsilon=0.1),
                [3, 4],
                request=f"r{at}",
                analyst=["ann", "bob"][at % 2],
            )
        yield opened


def names(entries):
    return [entry.request for entry in entries]


def test_pages_follow_each_other(ledger):
    whole = ledger.history()
    assert names(whole) == [f"r{at}" for at in range(7)]
    latest = ledger.history(last=3)
    assert latest == whole[-3:]
    assert ledger.history(last=3, before=latest[0].number) == whole[-6:-3]
    assert ledger.history(before=whole[0].number) == []
    assert ledger.history(last=100) == whole


def test_one_analyst_reads_her_own(ledger):
    assert names(ledger.history(analyst="ann")) == ["r0", "r2", "r4", "r6"]
    assert names(ledger.history(analyst="ann", last=2)) == ["r4", "r6"]
    (last,) = ledger.history(analyst="bob", last=1)
    assert names(ledger.history(analyst="bob", before=last.number)) == ["r1", "r3"]
    assert ledger.history(analyst="eve") == []
    ledger.verify()


@pytest.mark.parametrize("stated", [{"last": 0}, {"before": -1}, {"last": "x"}])
def test_what_is_no_number_is_refused(ledger, stated):
    with pytest.raises(InputError, match="must be"):
        ledger.history(**stated)


def test_the_last_ones_are_found_by_an_index(ledger):
    ledger.history(analyst="ann", last=1)
    with sqlite3.connect(ledger.path) as connection:
        for which, index in (
            ("", "c USING INTEGER PRIMARY KEY|SCAN c"),
            (f"AND {journal_file.ANALYST} = 'ann'", "INDEX charges_by_analyst"),
        ):
            plan = connection.execute(
                "EXPLAIN QUERY PLAN SELECT c.number, a.content FROM log c LEFT JOIN "
                "log a ON a.kind = 'answer' AND a.request = c.request WHERE c.kind = "
                f"'charge' {which} ORDER BY c.number DESC LIMIT 1"
            ).fetchall()
            words = " ".join(str(row[-1]) for row in plan)
            assert any(part in words for part in index.split("|")), words
            assert "TEMP B-TREE" not in words
    connection.close()


def test_without_room_for_an_index_all_charges_are_read(ledger, monkeypatch):
    monkeypatch.setattr(journal_file, "BY_ANALYST", "INSERT INTO nowhere VALUES (1)")
    assert names(ledger.history(analyst="ann", last=1)) == ["r6"]
