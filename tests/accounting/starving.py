"""A process whose disk fills up, or whose files may not be written.

Run by ``test_ledger_faults``: ``python starving.py SCENARIO FOLDER``; prints JSON.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path

import numpy as np

import blowfish_fast as bf
from blowfish_fast.errors import LedgerError, ReleaseFileError

LINE = bf.Domain(4096)
FULL = bf.policies.Full(LINE)
COUNTS = np.arange(4096) % 9
NOBODY = 65534


def mechanism():
    return bf.Laplace(FULL, bf.workloads.Identity(LINE), epsilon=0.1)


def limited(size):
    """Let no file of this process grow beyond so many bytes."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


def noted(problem):
    return " ".join(getattr(problem, "__notes__", ()))


def full_disk(folder):
    """Release on disks with ever more room; return what happened on each."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    found = []
    for room in (0, 1, 4, 8, 16, 24, 32, 48, 64, 96, 160):
        path = folder / f"room {room}"
        with bf.Ledger(path, epsilon=1, policy=FULL) as ledger:
            ledger.release(mechanism(), COUNTS, "first")
            grown = max(one.stat().st_size for one in folder.glob(f"{path.name}*"))
            limited(grown + room * 1024)
            try:
                ledger.release(mechanism(), COUNTS, "second")
                said = ""
            except LedgerError as problem:
                said = f"{problem} | {noted(problem)}"
            limited(None)
            ledger.verify()
            spent = str(ledger.spent)
            states = [entry.state for entry in ledger.history()]
            again = ledger.release(mechanism(), COUNTS, "second").estimate
            replayed = ledger.release(mechanism(), COUNTS, "second").estimate
            ledger.verify()
            found.append(
                [
                    said,
                    spent,
                    states,
                    str(ledger.spent),
                    bool((again == replayed).all()),
                ]
            )
    return found


def no_room_for_a_ledger(folder):
    """Make ledgers and save releases where nothing can be written."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    release = mechanism().release(COUNTS, rng=1)
    release.save(folder / "kept")
    before = (folder / "kept").read_bytes()
    other = mechanism().release(COUNTS, rng=2)
    said = []
    limited(1024)
    for action in (
        lambda: bf.Ledger(folder / "new", epsilon=1, policy=FULL),
        lambda: other.save(folder / "kept"),
        lambda: other.save(folder / "fresh"),
    ):
        try:
            action()
            said.append("done")
        except (LedgerError, ReleaseFileError) as problem:
            said.append(f"{type(problem).__name__}: {problem}")
    limited(None)
    left = sorted(one.name for one in folder.iterdir())
    same = (folder / "kept").read_bytes() == before
    return [said, left, same]


def read_only(folder):
    """Open, read and try to charge a ledger whose file, then folder, is read-only."""
    path = folder / "kept" / "ledger"
    path.parent.mkdir()
    with bf.Ledger(path, epsilon=1, policy=FULL) as ledger:
        first = ledger.release(mechanism(), COUNTS, "first").estimate
    os.chmod(path, 0o444)
    os.chmod(path.parent, 0o555)
    os.chmod(folder, 0o755)
    mechanism().release(COUNTS, rng=1)
    if os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    said = []
    for request in ("first", "second"):
        try:
            with bf.Ledger(path) as ledger:
                answer = ledger.release(mechanism(), COUNTS, request).estimate
                said.append("replayed" if (answer == first).all() else "drawn")
        except LedgerError as problem:
            said.append(str(problem))
    try:
        bf.Ledger(path.parent / "new", epsilon=1, policy=FULL)
        said.append("made")
    except LedgerError as problem:
        said.append(str(problem))
    return said


if __name__ == "__main__":
    sys.stdout.write(json.dumps(globals()[sys.argv[1]](Path(sys.argv[2]))))
