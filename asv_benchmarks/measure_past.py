"""Figures of answers that are read from earlier ones: what ten follow-ups cost.

    python asv_benchmarks/measure_past.py

Prints, for ages and wards of 40,000 made-up visits, what each question costs by itself,
what it costs after those before it, how it is answered, and the processor's time in
which stored answers are held against it. The same for one question at eight accuracies,
each better than the one before, of a frozen file, whose answers are made finer.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ibis

from blowfish_fast.apps.explorer import Explorer

AGE = {
    "name": "age",
    "cells": {"start": 0, "stop": 100, "width": 1},
    "extras_joined": "end",
}
WARD = {"name": "ward", "levels": ["a", "b", "c", "d"], "extras_joined": "apart"}
RECORDS = """create table visits as select (i * 7919) % 100 as age,
    ['a', 'b', 'c', 'd'][1 + (i * 31) % 4] as ward from range(40000) as t(i)"""
REPEATS = 20


def questions(chosen: bool) -> list[dict[str, Any]]:
    """Return ten questions of somebody who follows what she sees.

    Parameters
    ----------
    chosen : bool
        Whether earlier answers may have led to them.

    Returns
    -------
    list of dict
        Questions as plain data.
    """

    def ask(alpha: float, kind: str, **about: Any) -> dict[str, Any]:
        cost = {"alpha": alpha, "beta": 0.05, "chosen": chosen}
        if kind != "marginal":
            about.setdefault("attribute", "age")
        return {"table": "visits", "kind": kind, "cost": cost, **about}

    middle = {"attribute": "age", "low": 20, "high": 60}
    ranges = [[20, 65], [0, 18], [65, 100]]

    def wards(*levels: str) -> list[dict[str, Any]]:
        return [{"attribute": "ward", "values": list(levels)}]

    return [
        ask(50, "cumulative"),
        ask(100, "histogram", width=5),
        ask(100, "histogram", width=10),
        ask(100, "cumulative", width=5),
        ask(100, "ranges", ranges=ranges),
        ask(100, "histogram", width=5, filters=[middle]),
        ask(50, "marginal", attributes=["age", "ward"], granularity=[10, 1]),
        ask(100, "histogram", width=10, filters=wards("a")),
        ask(150, "histogram", width=20, filters=wards("a", "b")),
        ask(100, "histogram", attribute="ward"),
    ]


def say(words: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{words}\n")


def better_and_better(chosen: bool) -> list[dict[str, Any]]:
    """Return one question at eight accuracies, each better than the one before.

    Parameters
    ----------
    chosen : bool
        Whether earlier answers may have led to them.

    Returns
    -------
    list of dict
        Questions as plain data.
    """
    about = {"table": "visits", "kind": "cumulative", "attribute": "age"}
    return [
        {**about, "cost": {"alpha": alpha, "beta": 0.05, "chosen": chosen}}
        for alpha in (200, 170, 150, 130, 110, 100, 90, 80)
    ]


def asked_in_turn(explorer: Explorer, log: list[dict[str, Any]]) -> None:
    """Ask questions one after the other, and print what each costs.

    Parameters
    ----------
    explorer : Explorer
        A table whose answers are all to come.
    log : list of dict
        The questions.
    """
    alone = 0.0
    for question in log:
        told = explorer.explain(question)
        alone += told["price_alone"]
        explorer.known(question)
        start = time.process_time()
        for _ in range(REPEATS):
            explorer.known(question)
        spent = (time.process_time() - start) / REPEATS * 1e3
        explorer.ask(question)
        say(
            f"  {question['kind']:10s} alone {told['price_alone']:.4f}, costs "
            f"{told['cost']:.4f}, {told['how']:6s}; looked up in {spent:.1f} ms"
        )
    say(f"  in all {alone:.3f} alone, {float(explorer.ledger.spent):.3f} so")


def main() -> None:
    """Print the costs of ten questions, and of one at eight accuracies."""
    database = ibis.duckdb.connect()
    database.raw_sql(RECORDS)
    with tempfile.TemporaryDirectory() as folder:
        frozen = Path(folder) / "visits.csv"
        database.raw_sql(f"copy visits to '{frozen}' (header)")
        for policies in ({}, {"age": {"kind": "threshold", "theta": 1}}):
            for chosen in (True, False):
                promise = "any" if chosen else "fixed"
                for source, log in (
                    (database, questions(chosen)),
                    (frozen, questions(chosen)),
                    (frozen, better_and_better(chosen)),
                ):
                    table = {
                        "name": "visits",
                        "attributes": [AGE, WARD],
                        "policies": policies,
                        "snapshot": "March",
                    }
                    explorer = Explorer(table, source, epsilon=50, samples=0)
                    place = "a frozen file" if source is frozen else "a connection"
                    say(
                        f"{len(log)} questions to {place}, policies "
                        f"{policies or 'none'}, promise {promise}"
                    )
                    asked_in_turn(explorer, log)


if __name__ == "__main__":
    main()
