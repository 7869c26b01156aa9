"""Figures of answers that are read from earlier ones: what ten follow-ups cost.

    python asv_benchmarks/measure_past.py

Prints, for ages and wards of 40,000 made-up visits, what each question costs by itself,
what it costs after those before it, how it is answered, and the processor's time in
which stored answers are held against it.
"""

from __future__ import annotations

import sys
import time
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


def main() -> None:
    """Print the costs of ten questions under two policies, with both promises."""
    database = ibis.duckdb.connect()
    database.raw_sql(RECORDS)
    for policies in ({}, {"age": {"kind": "threshold", "theta": 1}}):
        table = {"name": "visits", "attributes": [AGE, WARD], "policies": policies}
        for chosen in (True, False):
            explorer = Explorer(table, database, epsilon=50, samples=0)
            promise = "any" if chosen else "fixed"
            say(f"policies {policies or 'none'}, promise {promise}")
            alone = 0.0
            for question in questions(chosen):
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
                    f"{told['cost']:.4f}, {told['how']:5s}; looked up in {spent:.1f} ms"
                )
            say(f"  in all {alone:.3f} alone, {float(explorer.ledger.spent):.3f} so")


if __name__ == "__main__":
    main()
