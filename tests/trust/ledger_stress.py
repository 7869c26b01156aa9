"""The ledger under stress: kills at random moments, many analysts, many charges."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

import blowfish_fast as bf
from blowfish_fast.errors import BudgetError
from tests.accounting import crashing

ANALYSTS = 32


def kills(folder, number, questions):
    """Kill a worker so many times and return what is wrong afterwards."""
    code = (
        "import sys; from pathlib import Path; from tests.accounting import crashing; "
        "crashing.mechanism().release(crashing.COUNTS); "
        f"crashing.storm(Path(sys.argv[1]), {questions}, {number})"
    )
    root = str(Path(bf.__file__).parents[1])
    subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        check=True,
        cwd=root,
        env=os.environ | {"PYTHONPATH": root},
    )
    states = json.loads((folder / "states").read_text())
    lines = (folder / "received").read_text().splitlines()
    whole = [json.loads(line) for line in lines if line.endswith("]]")]
    wrong = {"uncharged": 0, "lost": 0, "changed": 0}
    with bf.Ledger(folder / "storm") as ledger:
        ledger.verify()
        history = ledger.history()
        cost = Fraction(1, 100)
        if ledger.spent != cost * len(history):
            wrong["uncharged"] += 1
        wrong["lost"] += sum(entry.state != "stored" for entry in history)
        for answered, estimate in whole:
            stored = ledger.release(
                crashing.mechanism(), crashing.COUNTS, f"question {answered}"
            )
            wrong["changed"] += not np.array_equal(stored.estimate, estimate)
        if ledger.spent != cost * len(history):
            wrong["uncharged"] += 1
    return {"kills": sum(states.values()), "between": states["reserved"], **wrong}


def commits_per_second(folder, seconds=2.0):
    """One-row transactions of SQLite on this disk, synchronous=FULL."""
    connection = sqlite3.connect(folder / "plain", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE rows (number INTEGER)")
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows VALUES (?)", (done,))
        connection.execute("COMMIT")
        done += 1
    rate = done / (time.perf_counter() - start)
    connection.close()
    return rate


def analysts(folder, budget=400):
    """Let 32 analysts race for a budget; return paid releases and their rate."""
    path = folder / "shared"
    bf.Ledger(path, epsilon=Fraction(budget, 100), policy=crashing.FULL).close()
    paid = []

    def ask():
        with bf.Ledger(path) as ledger:
            for _ in range(budget):
                try:
                    ledger.release(crashing.mechanism(), crashing.COUNTS)
                except BudgetError:
                    return
                paid.append(1)

    crashing.mechanism().release(crashing.COUNTS)
    threads = [threading.Thread(target=ask) for _ in range(ANALYSTS)]
    start = time.perf_counter()
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    seconds = time.perf_counter() - start
    with bf.Ledger(path) as ledger:
        ledger.verify()
        spent = ledger.spent
    return len(paid), len(paid) / seconds, spent


def charges_per_second(folder, seconds=1.0):
    """Charges that 32 analysts make at once, through one server's ledger."""
    path = folder / "charged"
    ledger = bf.Ledger(path, epsilon=10**6, policy=crashing.FULL)
    before = _entries(path)
    entry = ledger._terms().entry
    ready = threading.Barrier(ANALYSTS + 1)
    end = []

    def ask(analyst):
        ready.wait()
        while not end:
            name = f"{before} {analyst} {time.perf_counter_ns()}"
            ledger._journal.reserve(name, 1000, entry, {})

    threads = [threading.Thread(target=ask, args=(one,)) for one in range(ANALYSTS)]
    for one in threads:
        one.start()
    ready.wait()
    start = time.perf_counter()
    time.sleep(seconds)
    end.append(True)
    for one in threads:
        one.join()
    taken = time.perf_counter() - start
    ledger.close()
    return (_entries(path) - before) / taken


def _entries(path):
    """Check the ledger, and return how many charges it holds."""
    with bf.Ledger(path) as ledger:
        ledger.verify()
        charges = len(ledger.history())
        assert ledger.spent == Fraction(1000 * charges, 10**9)
    return charges


def both_rates(folder, rounds=4):
    """Return the disk's rate and that of charges, measured in turns."""
    disk, charged = [], []
    for turn in range(rounds):
        part = folder / str(turn)
        part.mkdir()
        disk.append(commits_per_second(part, 1.0))
        charged.append(charges_per_second(part))
    return sum(disk) / rounds, sum(charged) / rounds


def many_charges(folder, number):
    """Return the CPU seconds of the first and of the last tenth of so many charges.

    Charges alone, without the draws and answers between them, whose time is constant.
    """
    path = folder / "many"
    tenth, taken = number // 10, []
    with bf.Ledger(path, epsilon=number, policy=crashing.FULL) as ledger:
        entry = ledger._terms().entry
        for part in range(10):
            start = time.process_time()
            for place in range(tenth):
                name = f"question {part * tenth + place}"
                ledger._journal.reserve(name, 1000, entry, {})
            taken.append(time.process_time() - start)
        ledger.verify()
    return taken[0], taken[-1]
