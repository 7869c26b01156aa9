"""Full disks, read-only disks and jumping clocks: nothing charged in vain or lost."""

from __future__ import annotations

import os
import tempfile
import time
from datetime import datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import BudgetError, LedgerError
from tests.own_process import found_by

from . import starving

pytestmark = pytest.mark.long

LINE = bf.Domain(4)
FULL = bf.policies.Full(LINE)
CLOCKS = [0.0, 1.0, 4e9, -1e9, 2.5e11]

posix = pytest.mark.skipif(os.name != "posix", reason="needs limits on file sizes")


@posix
def test_a_full_disk_charges_nothing_or_keeps_the_charge(tmp_path):
    found = found_by(starving, "full_disk", tmp_path)
    outcomes = set()
    for said, spent, states, after, replayed in found:
        assert (after, replayed) == ("1/5", True)
        if not said:
            outcomes.add("released")
            assert (spent, states) == ("1/5", ["stored", "stored"])
        elif len(states) == 1:
            outcomes.add("uncharged")
            assert (spent, states) == ("1/10", ["stored"])
            assert "finishes under this charge" not in said
        else:
            outcomes.add("charged")
            assert (spent, states) == ("1/5", ["stored", "reserved"])
            assert "no answer has left" in said
            assert "request='second' finishes under this charge" in said
        assert not said or "disk" in said
    assert outcomes == {"uncharged", "charged", "released"}


@posix
def test_nothing_half_written_stays_on_a_full_disk(tmp_path):
    said, left, same = found_by(starving, "no_room_for_a_ledger", tmp_path)
    assert "done" not in said
    assert said[0].startswith("LedgerError")
    assert left == ["kept"]
    assert same


@posix
def test_a_read_only_disk_replays_or_refuses_in_words():
    # The child gives up being root, so its folder must be reachable for everybody.
    with tempfile.TemporaryDirectory() as folder:
        first, second, new = found_by(starving, "read_only", folder)
        os.chmod(Path(folder, "kept"), 0o755)
    for said in (first, second):
        assert said == "replayed" or "only be read" in said or "permissions" in said
    assert second != "replayed"
    assert "no ledger can be made" in new


class Jumping(datetime):
    """A clock that is told the time."""

    seconds = 0.0

    @classmethod
    def now(cls, zone=None):
        moment = cls.seconds % 2e11
        return datetime.fromtimestamp(moment, zone)


@pytest.mark.parametrize("place", ["memory", "disk"])
def test_no_clock_decides_anything(place, tmp_path, monkeypatch):
    monkeypatch.setattr("blowfish_fast.accounting.journal_file.datetime", Jumping)
    path = tmp_path / "ledger" if place == "disk" else None
    ledger = bf.Ledger(path, epsilon=Fraction(1, 2), policy=FULL)
    made = bf.Laplace(FULL, bf.workloads.Identity(LINE), epsilon=Fraction(1, 10))
    heads, answers = [], []
    for number, clock in enumerate(CLOCKS):
        monkeypatch.setattr(Jumping, "seconds", clock)
        monkeypatch.setattr(time, "time", lambda clock=clock: clock)
        monkeypatch.setattr(time, "monotonic", lambda clock=clock: -clock)
        answers.append(ledger.release(made, [1, 2, 3, 4], f"{number}").estimate)
        heads.append(ledger.verify())
    with pytest.raises(BudgetError):
        ledger.release(made, [1, 2, 3, 4], "one too many")
    monkeypatch.setattr(Jumping, "seconds", 1e9)
    assert [entry.request for entry in ledger.history()] == list("01234")
    for head in heads:
        ledger.verify(head)
    for number, answer in enumerate(answers):
        replayed = ledger.release(made, [0, 0, 0, 0], f"{number}").estimate
        assert np.array_equal(replayed, answer)
    assert ledger.remaining == 0
    ledger.close()
    if path is not None:
        with bf.Ledger(path) as again:
            again.verify(heads[0])
            assert again.remaining == 0


def test_a_deleted_file_is_never_started_anew(tmp_path):
    path = tmp_path / "ledger"
    made = bf.Laplace(FULL, bf.workloads.Identity(LINE), epsilon=1)
    bf.Ledger(path, epsilon=1, policy=FULL).close()
    path.unlink()
    with pytest.raises(bf.BlowfishError, match="there is no ledger"):
        bf.Ledger(path)
    path.mkdir()
    with pytest.raises(LedgerError):
        bf.Ledger(path, epsilon=1, policy=FULL).release(made, [1, 2, 3, 4])
