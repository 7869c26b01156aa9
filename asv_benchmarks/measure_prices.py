"""Figures of prices: what the dearest accepted ones take, and who waits for them.

    python asv_benchmarks/measure_prices.py [--only WORDS] [--seconds 60] [--json]
    python asv_benchmarks/measure_prices.py --waiting [--seconds 60] [--json]

Prices are free, so everybody may ask for any that is accepted. The first form goes
through questions whose public size (``planning_work``) lies at one of its limits, under
policies of every kind, in epsilon and in rho. It prints what each price takes of the
processor, the comparison with whole records included, as a page asks for it. What
kernels take to be compiled or loaded is not counted, since each question is priced
once, by a planner of its own, before it is measured. `--only` names the ones that are
measured: those whose names hold these words.

`--waiting` starts a server of its own. Eight analysts ask for large prices without a
pause, each of them another; a ninth asks for small ones, all different, and her seconds
are told at the middle, at 99 % and at the longest.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blowfish_fast.accounting.composition import EPSILON, RHO
from blowfish_fast.apps.explorer import planning_work
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.apps.explorer.planning import SAMPLES, Planner, rehearse
from blowfish_fast.apps.explorer.questions import read_question
from blowfish_fast.apps.server.keys import CURATOR
from blowfish_fast.apps.server.workspace import Workspace
from blowfish_fast.errors import BlowfishError, SizeError

HEAVY = 8
ALPHA = 300

POLICIES: dict[str, dict[str, Any]] = {
    "whole records": {},
    "line": {"kind": "line"},
    "theta 2": {"kind": "threshold", "theta": 2},
    "theta 7": {"kind": "threshold", "theta": 7},
    "theta 60": {"kind": "threshold", "theta": 60},
}
"""What is stated of each ordered attribute."""


def ordered(name: str, cells: int, missing: str = "cell") -> dict[str, Any]:
    return {
        "name": name,
        "cells": {"start": 0, "stop": cells, "width": 1},
        "missing": missing,
        "extras_joined": "end",
    }


def leveled(name: str, levels: int) -> dict[str, Any]:
    return {
        "name": name,
        "levels": [f"{name}{number}" for number in range(levels)],
        "extras_joined": "apart",
    }


def stretches(cells: int, number: int, longest: int) -> list[list[int]]:
    """Return stretches of mixed lengths, no two of them alike where that can be."""
    return [
        [low, low + 1 + (at * 7919) % min(longest, cells - low)]
        for at, low in ((at, (at * 31) % (cells - 1)) for at in range(number))
    ]


def large_questions() -> Iterator[tuple[str, list[dict[str, Any]], dict[str, Any]]]:
    """Yield a name, attributes and a question near each limit of work."""
    numbers, single = planning_work.MOST_NUMBERS, planning_work.MOST_SINGLE_BINS
    half = numbers // 2 - 8

    def of(kind: str, **about: Any) -> dict[str, Any]:
        return {"kind": kind, **about}

    for cells in (planning_work.FEW_BINS - 8, 2000, half):
        line = [ordered("age", cells)]
        yield f"cumulative, {cells} bins", line, of("cumulative", attribute="age")
        yield f"quantiles, {cells} bins", line, of("quantiles", attribute="age")
    for cells, number in ((100, numbers - 120), (half, half), (numbers - 40, 20)):
        asked = of(
            "ranges", attribute="age", ranges=stretches(cells, number, max(cells, 2))
        )
        yield f"{number} stretches of {cells} bins", [ordered("age", cells)], asked
    for cells in (half // 5, half):
        line = [ordered("age", cells), leveled("ward", 4)]
        passing = [{"attribute": "ward", "values": ["ward1", "ward2"]}]
        filtered = of("cumulative", attribute="age", filters=passing)
        yield f"cumulative, {cells} bins, filtered", line, filtered
        line = [ordered("age", cells), ordered("day", 10)]
        passing = [{"attribute": "day", "low": 2, "high": 5}]
        filtered = of("cumulative", attribute="age", filters=passing)
        yield f"cumulative, {cells} bins, filtered by days", line, filtered
    for side, number in ((22, 300), (22, 4000), (76, 400), (76, 4000), (98, 250)):
        most = planning_work.MOST_PIECES // number
        pairs = (
            [(at % side, min(side, at % side + most)) for at in range(number)],
            stretches(side, number, side),
        )
        boxes = [list(box) for box in zip(*pairs, strict=True)]
        asked = of("rectangles", attributes=["age", "day"], rectangles=boxes)
        plane = [ordered("age", side), ordered("day", side)]
        yield f"{number} boxes of {side} x {side} bins", plane, asked
    for cells in (
        planning_work.FEW_BINS - 8,
        planning_work.FEW_BINS + 8,
        planning_work.MANY_BINS - 8,
        planning_work.MANY_BINS + 8,
        single - 8,
    ):
        line = [ordered("age", cells)]
        yield f"histogram, {cells} bins", line, of("histogram", attribute="age")
    for high, wide in ((22, 20), (90, 88), (500, 500)):
        plane = [ordered("age", high), ordered("day", wide)]
        asked = of("marginal", attributes=["age", "day"])
        yield f"table of {high} x {wide} bins", plane, asked
    cube = [ordered("age", 100), leveled("ward", 19), ordered("day", 100)]
    asked = of("marginal", attributes=["age", "ward", "day"])
    yield "table of 100 x 19 x 100 bins", cube, asked
    for groups, cells in ((4, 4000), (20, 1400), (60, 500), (120, 130)):
        about = [ordered("age", cells), leveled("ward", groups)]
        for kind in ("sum", "mean"):
            asked = of(kind, attribute="age", by="ward", at_least=1000)
            yield f"{kind}, {groups} groups of {cells} values", about, asked
        part = of("share", attribute="age", by="ward", low=0, high=cells // 3)
        yield f"share, {groups} groups", about, {**part, "at_least": 1000}


def priced(
    planner: Planner, about: list[dict[str, Any]], policy: dict[str, Any], asked: Any
) -> tuple[float, Any]:
    """Return the seconds that a price takes, and its plan."""
    stated = {
        attribute["name"]: policy
        for attribute in about
        if policy and "cells" in attribute
    }
    table = as_table({"name": "visits", "attributes": about, "policies": stated})
    amounts = asked["kind"] in ("sum", "mean", "share")
    cost = {"alpha": 1.0 if amounts else ALPHA, "beta": 0.05}
    if asked["kind"] == "sum":
        cost["alpha"] = 10.0**6
    if asked["kind"] == "share":
        cost["alpha"] = 0.1
    question = read_question({"table": "visits", "cost": cost, **asked})
    start = time.process_time()
    plan = planner.plan(table, question)
    planner.without_policies(table, question)
    return time.process_time() - start, plan


def dearest(only: str, most: float) -> Iterator[dict[str, Any]]:
    """Yield what each price takes, as long as there is time."""
    begins, spent = time.monotonic(), list[tuple[float, str]]()
    rehearse()
    for name, about, asked in large_questions():
        for currency, (words, policy) in itertools.product(
            (EPSILON, RHO), POLICIES.items()
        ):
            label = f"{name}; {words}; {currency.name}"
            if only not in label or time.monotonic() - begins > most:
                continue
            try:
                priced(Planner(currency, SAMPLES), about, policy, asked)
                seconds, plan = priced(Planner(currency, SAMPLES), about, policy, asked)
            except SizeError:
                yield {"price": label, "refused": True}
                continue
            except BlowfishError as problem:
                yield {"price": label, "no mechanism": str(problem)}
                continue
            spent.append((seconds, label))
            yield {
                "price": label,
                "s": round(seconds, 2),
                "bins": plan.work.bins,
                "queries": plan.work.queries,
                "covered": plan.work.covered,
                "edges": plan.work.edges,
                "chosen": plan.candidates[0]["name"] if plan.candidates else "public",
            }
    if spent:
        seconds, label = max(spent)
        above = sum(second > 1.0 for second, _ in spent)
        yield {
            "the dearest": label,
            "s": round(seconds, 2),
            "prices": len(spent),
            "above 1 s": above,
        }


def served(folder: Path, address: str) -> tuple[Any, list[str], str]:
    """Start a server of its own; return its process, the secrets and its place."""
    work = Workspace(folder, database=address)
    attributes = [ordered("age", 4000), leveled("ward", 4)]
    policies = {"age": {"kind": "threshold", "theta": 7}}
    table = work.add_table(
        {"name": "visits", "attributes": attributes, "policies": policies}, epsilon=10
    )
    names = [f"analyst {number}" for number in range(HEAVY + 1)]
    secrets = [work.keys.make("analyst", name) for name in names]
    work.keys.make("curator", CURATOR)
    for name in names:
        table.ledger.allot(name, 1)
    work.close()
    words = [sys.executable, "-m", "blowfish_fast", "serve", "--json", "--port", "0"]
    words += ["--folder", str(folder), "--database", address]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    started = json.loads(server.stdout.readline())
    return server, secrets, started["address"].removeprefix("http://")


def ask_prices(
    place: str, secret: str, asked: Iterator[dict[str, Any]], ends: float
) -> tuple[list[float], Counter[int]]:
    """Ask for one price after the other; return their seconds and the statuses."""
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(place, timeout=180)
    seconds, statuses = list[float](), Counter[int]()
    while (begins := time.monotonic()) < ends:
        body = json.dumps({"question": {"table": "visits", **next(asked)}})
        connection.request("POST", "/api/explain", body, headers)
        response = connection.getresponse()
        response.read()
        statuses[response.status] += 1
        seconds.append(time.monotonic() - begins)
        # Slower than the limit of 40 requests a second.
        time.sleep(max(0.0, begins + 0.05 - time.monotonic()))
    return seconds, statuses


def heavy_prices(number: int) -> Iterator[dict[str, Any]]:
    for at in itertools.count(1):
        cost = {"alpha": 100 + number + at / 1000, "beta": 0.05}
        yield {"kind": "cumulative", "attribute": "age", "cost": cost}
        ranges = stretches(4000, 3000, 4000 - number)
        asked = {"kind": "ranges", "attribute": "age", "ranges": ranges}
        yield {**asked, "cost": cost}


def small_prices() -> Iterator[dict[str, Any]]:
    for at in itertools.count(1):
        cost = {"alpha": 100 + at / 1000, "beta": 0.05}
        yield {"kind": "histogram", "attribute": "ward", "cost": cost}
        yield {"kind": "cumulative", "attribute": "age", "width": 40, "cost": cost}


def waiting(folder: Path, seconds: float) -> dict[str, Any]:
    """Return how long small prices wait while eight large ones are asked for."""
    import duckdb

    path = folder / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT i % 4000 AS age, 'ward' || i % 4 AS ward "
            "FROM range(40000) AS t(i)"
        )
    server, secrets, place = served(folder / "state", str(path))
    try:
        while True:
            try:
                ask_prices(place, secrets[0], small_prices(), time.monotonic() + 2)
                break
            except ConnectionRefusedError:
                time.sleep(0.1)
        heavy: list[tuple[list[float], Counter[int]]] = []
        ends = time.monotonic() + seconds

        def ask(number: int) -> None:
            asked = heavy_prices(number)
            heavy.append(ask_prices(place, secrets[number], asked, ends))

        threads = [
            threading.Thread(target=ask, args=(number,))
            for number in range(1, HEAVY + 1)
        ]
        for thread in threads:
            thread.start()
        small, statuses = ask_prices(place, secrets[0], small_prices(), ends)
        for thread in threads:
            thread.join()
        assert server.poll() is None, "the server went away"
    finally:
        server.terminate()
        server.wait()
    waits = sorted(second for large, _ in heavy for second in large)
    small.sort()
    every = sum((found for _, found in heavy), statuses)
    return {
        "small prices": len(small),
        "p50, ms": round(1000 * small[len(small) // 2]),
        "p99, ms": round(1000 * small[min(len(small) - 1, int(0.99 * len(small)))]),
        "longest, ms": round(1000 * small[-1]),
        "large prices": len(waits),
        "large, p50, ms": round(1000 * waits[len(waits) // 2]),
        "large, longest, ms": round(1000 * waits[-1]),
        "statuses": dict(every),
    }


def main() -> None:
    """Print what prices take, or how long small ones wait for large ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows: Any = dearest(chosen.only, chosen.seconds)
        if chosen.waiting:
            rows = [waiting(Path(folder), chosen.seconds)]
        for row in rows:
            words = ", ".join(f"{name} {value}" for name, value in row.items())
            sys.stdout.write((json.dumps(row) if chosen.json else words) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
