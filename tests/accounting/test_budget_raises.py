"""Budgets are raised with a record, and a file copied without its log is noticed."""

from __future__ import annotations

import shutil
import sqlite3

import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.journal_file import copy_file
from blowfish_fast.errors import BudgetError, InputError, LedgerError

LINE = bf.Domain(4)
POLICY = bf.policies.Full(LINE)
COUNTS = [3, 1, 4, 1]


def laplace(epsilon):
    return bf.Laplace(POLICY, bf.workloads.Identity(LINE), epsilon=epsilon)


def charged(path, *, epsilon=1):
    ledger = bf.Ledger(path, epsilon=epsilon, policy=POLICY)
    ledger.release(laplace("0.75"), COUNTS, request="first")
    return ledger


@pytest.mark.parametrize("kept", [True, False])
def test_a_raised_budget_pays_for_more_and_says_why(tmp_path, kept):
    ledger = charged(tmp_path / "a.ledger" if kept else None)
    with pytest.raises(BudgetError):
        ledger.release(laplace("0.75"), COUNTS)
    ledger.raise_budget(2, why="a second year", by="cleo")
    ledger.release(laplace("0.75"), COUNTS)
    assert ledger.epsilon == 2
    (record,) = ledger.raises()
    assert (record["amount"], record["why"], record["by"]) == (
        2,
        "a second year",
        "cleo",
    )
    ledger.verify()
    ledger.close()


def test_a_budget_is_never_lowered_and_never_raised_without_a_word(tmp_path):
    ledger = charged(tmp_path / "a.ledger")
    for amount in ("0.5", 1):
        with pytest.raises(LedgerError, match="raised to more"):
            ledger.raise_budget(amount, why="less")
    with pytest.raises(InputError, match="say why"):
        ledger.raise_budget(2, why="  ")
    assert ledger.epsilon == 1
    assert ledger.raises() == []
    ledger.close()


def test_a_budget_raised_behind_the_ledger_is_refused_and_noticed(tmp_path):
    path = tmp_path / "a.ledger"
    charged(path).close()
    raw = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="raised with a record"):
        raw.execute("UPDATE budget SET total = total + 1")
    raw.execute("DROP TRIGGER raises_are_logged")
    raw.execute("UPDATE budget SET total = total + 1")
    raw.commit()
    raw.close()
    with bf.Ledger(path) as ledger, pytest.raises(LedgerError, match="tampered"):
        ledger.verify()


def test_a_copy_made_while_in_use_without_its_log_is_noticed(tmp_path):
    path, copy = tmp_path / "a.ledger", tmp_path / "copy.ledger"
    ledger = charged(path)
    ledger.release(laplace("0.1"), COUNTS, request="second")
    shutil.copy(path, copy)
    for _ in range(2):
        # Opening it, and closing it again, does not wash it clean.
        with bf.Ledger(copy) as found, pytest.raises(LedgerError, match="write-ahead"):
            found.verify()
    ledger.close()


def test_whole_copies_are_not_suspected(tmp_path):
    path = tmp_path / "a.ledger"
    ledger = charged(path)
    both = tmp_path / "both.ledger"
    shutil.copy(path, both)
    shutil.copy(f"{path}-wal", f"{both}-wal")
    backup = tmp_path / "backup.ledger"
    copy_file(path, backup)
    head = ledger.verify()
    ledger.close()
    closed = tmp_path / "closed.ledger"
    shutil.copy(path, closed)
    for one in (path, both, backup, closed):
        with bf.Ledger(one) as found:
            assert found.verify() == head
            assert found.spent == ledger_spent(found)


def ledger_spent(ledger):
    return sum(one.epsilon for one in ledger.history())


@pytest.mark.long
def test_a_process_that_was_killed_leaves_no_suspicion(tmp_path):
    import subprocess
    import sys

    path = tmp_path / "a.ledger"
    charged(path).close()
    killed = f"""
import os, blowfish_fast as bf
line = bf.Domain(4)
ledger = bf.Ledger({str(path)!r})
asked = bf.workloads.Identity(line)
ledger.release(bf.Laplace(bf.policies.Full(line), asked, epsilon="0.1"), [1, 2, 3, 4])
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", killed], timeout=120, check=False)
    for _ in range(2):
        with bf.Ledger(path) as found:
            found.verify()
            assert len(found.history()) == 2
