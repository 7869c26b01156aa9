"""Figures of the explorer: how long an answer takes, and how many can be given at once.

    python asv_benchmarks/measure_explorer.py [--folder DIR] [--json]

Answers: questions on 4096 bins of 100,000 records in DuckDB, after the first of each
kind; planned, counted, charged, drawn, stored and written as JSON. Rates: 32 analysts
with new questions on 64 bins, beside the rate at which the same folder takes one-row
transactions of SQLite with synchronous=FULL, in turns within one run; once with the
database and the intervals, once the ledger's part alone.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from blowfish_fast.apps.explorer import Database, Explorer

RECORDS = 100_000
ANALYSTS = 32
EACH = 8
ROUNDS = 5
COMMITS = 300


def make_database(path: Path) -> None:
    import duckdb

    connection = duckdb.connect(str(path))
    connection.execute("SELECT setseed(0.5)")
    for name, cells in (("wide", 4096), ("narrow", 64)):
        connection.execute(f"CREATE TABLE {name} (value DOUBLE NOT NULL)")
        records = RECORDS if name == "wide" else 1000
        connection.execute(
            f"INSERT INTO {name} SELECT random() * {cells} FROM range({records})"
        )
    connection.close()


def explorer(engine: Database, folder: Path, name: str, theta: int | None) -> Explorer:
    cells = {"wide": 4096, "narrow": 64}[name]
    attribute = {
        "name": "value",
        "cells": {"start": 0, "stop": cells, "width": 1},
        "missing": "none",
    }
    policies = {} if theta is None else {"value": {"kind": "threshold", "theta": theta}}
    table = {"name": name, "attributes": [attribute], "policies": policies}
    path = folder / f"{name}-{theta}.ledger"
    return Explorer(table, engine, epsilon=1000, ledger=path)


def timed(action: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds and the processor's seconds of an action."""
    start, work = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - start, time.process_time() - work


def answer_times(engine: Database, folder: Path) -> list[dict[str, Any]]:
    rows = []
    for theta in (None, 41):
        asked = explorer(engine, folder, "wide", theta)
        for kind in ("histogram", "cumulative"):
            question = {
                "kind": kind,
                "table": "wide",
                "attribute": "value",
                "cost": {"alpha": 500, "beta": 0.05},
            }
            plan, planning = timed(lambda: asked.plan(question))  # noqa: B023
            asked.ask(question)
            found = [
                timed(
                    lambda at=at: json.dumps(
                        asked.ask(question, request=f"{kind}{at}").to_dict()  # noqa: B023
                    )
                )
                for at in range(9)
            ]
            rows.append(
                {
                    "question": kind,
                    "theta": theta,
                    "first plan, s": round(plan, 3),
                    "first plan, s of processor": round(planning, 3),
                    "answer, ms": round(1000 * statistics.median(f[0] for f in found)),
                    "least, ms": round(1000 * min(f[0] for f in found)),
                    "processor, ms": round(
                        1000 * statistics.median(f[1] for f in found)
                    ),
                }
            )
        asked.ledger.close()
    return rows


def commit_rate(path: Path) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS row (content TEXT)")
    start = time.perf_counter()
    for _ in range(COMMITS):
        connection.execute("INSERT INTO row VALUES ('one row')")
    rate = COMMITS / (time.perf_counter() - start)
    connection.close()
    return rate


def rate_of_all(ask: Callable[[int, str], Any], number: int) -> float:
    """Return how many answers 32 analysts get per second, together."""
    start_together = threading.Barrier(ANALYSTS + 1)
    failures: list[BaseException] = []

    def analyst(who: int) -> None:
        start_together.wait()
        try:
            for at in range(EACH):
                ask(who, f"{number}-{who}-{at}")
        except BaseException as problem:
            failures.append(problem)

    threads = [threading.Thread(target=analyst, args=(at,)) for at in range(ANALYSTS)]
    for one in threads:
        one.start()
    start_together.wait()
    start = time.perf_counter()
    for one in threads:
        one.join()
    assert not failures, failures[0]
    return ANALYSTS * EACH / (time.perf_counter() - start)


def rates(engine: Database, folder: Path) -> list[dict[str, Any]]:
    asked = explorer(engine, folder, "narrow", None)
    ledger = asked.ledger
    for who in range(ANALYSTS):
        ledger.allot(f"analyst {who}", 30)
    question = {
        "kind": "histogram",
        "table": "narrow",
        "attribute": "value",
        "cost": {"epsilon": 0.01},
    }
    plan = asked.plan(question)
    counts = engine.counts(plan.layout)

    def whole(who: int, name: str) -> None:
        asked.ask(question, analyst=f"analyst {who}", request=name)

    def charged(who: int, name: str) -> None:
        name = f"ledger {name}"
        ledger.release(plan.mechanism, counts, name, analyst=f"analyst {who}")

    # As the server does: threads that wait for a disk get their turn back quickly.
    sys.setswitchinterval(0.001)
    rows = []
    for what, ask in (("whole answers", whole), ("charged, drawn, stored", charged)):
        rate_of_all(ask, -1)
        pairs = []
        for number in range(ROUNDS):
            before = commit_rate(folder / "commits")
            answers = rate_of_all(ask, number)
            after = commit_rate(folder / "commits")
            pairs.append((answers, (before + after) / 2))
        ratio = statistics.median(one / other for one, other in pairs)
        rows.append(
            {
                "32 analysts": what,
                "per second": round(statistics.median(one for one, _ in pairs)),
                "one-row commits per second": round(
                    statistics.median(one for _, one in pairs)
                ),
                "ratio": round(ratio, 2),
            }
        )
    given = 2 * ANALYSTS * EACH * (ROUNDS + 1)
    assert ledger.spent == given * Fraction(1, 100), "the sum is not right"
    ledger.verify()
    ledger.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as made:
        folder = Path(made)
        make_database(folder / "data.duckdb")
        engine = Database.connect(folder / "data.duckdb")
        found = {
            "answers": answer_times(engine, folder),
            "rates": rates(engine, folder),
        }
        engine.close()
    if chosen.json:
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
        return
    for row in [*found["answers"], *found["rates"]]:
        words = ", ".join(f"{name} {value}" for name, value in row.items())
        sys.stdout.write(words + "\n")


if __name__ == "__main__":
    main()
