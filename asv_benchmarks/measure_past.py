"""Figures of answers that are read from earlier ones: what ten follow-ups cost.

    python asv_benchmarks/measure_past.py
    python asv_benchmarks/measure_past.py follow
    python asv_benchmarks/measure_past.py broad
    python asv_benchmarks/measure_past.py long

Prints, for ages and wards of 40,000 made-up visits, what each question costs by itself,
what it costs after those before it, how it is answered, and the processor's time in
which stored answers are held against it. The same for one question at eight accuracies,
each better than the one before, of a frozen file, whose answers are made finer.

With ``follow``: what follow-ups to a histogram of ages and to a map cost of a frozen
file: a wider alpha, the map turned, ages 0 to 18, and ten drill-downs.

With ``broad``: what the ten questions, and fifty of five people who look into ages and
days by turns, cost of a frozen file in all, where broader answers are bought (`broad`
of a table is .5) and where none are. With ``long``: the same for two hundred questions
of ten people under policies of near values.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ibis
import numpy as np

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
DAY = {"name": "day", "cells": {"start": 0, "stop": 52, "width": 1}} | {
    "extras_joined": "end"
}
STAYS = """create table stays as select (i * 7919) % 100 as age, (i * 131) % 52 as day,
    ['a', 'b', 'c', 'd'][1 + (i * 31) % 4] as ward from range(40000) as t(i)"""
NEAR = {"kind": "threshold", "theta": 1}
APART = {"kind": "blocks", "blocks": [["a"], ["b"], ["c"], ["d"]]}
MOVES = ("bins", "range", "cumulative", "ward", "ranges", "back", "finer")
ODDS = (0.25, 0.15, 0.15, 0.15, 0.1, 0.1, 0.1)
"""What somebody does next, and how often."""


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


def follow_ups(chosen: bool) -> dict[str, list[dict[str, Any]]]:
    """Return what is paid for first, and what follows from a look at it.

    Parameters
    ----------
    chosen : bool
        Whether earlier answers may have led to the follow-ups.

    Returns
    -------
    dict
        Lists of questions by a word for each: "first", "again" and "drill-downs".
    """

    def ask(
        alpha: float, width: int = 1, ages: list[int] | None = None, ward: str = ""
    ) -> dict[str, Any]:
        filters: list[dict[str, Any]] = []
        if ages is not None:
            filters.append({"attribute": "age", "low": ages[0], "high": ages[1]})
        if ward:
            filters.append({"attribute": "ward", "values": [ward]})
        about = {"kind": "histogram", "attribute": "age", "width": width}
        cost = {"alpha": alpha, "beta": 0.05, "chosen": chosen}
        return {"table": "visits", "filters": filters, "cost": cost, **about}

    cost = {"alpha": 400, "beta": 0.05, "chosen": chosen}
    a_map = {"table": "visits", "kind": "marginal", "cost": cost}
    by_ward = {**a_map, "attributes": ["age", "ward"], "granularity": [5, 1]}
    turned = {**a_map, "attributes": ["ward", "age"], "granularity": [1, 5]}
    return {
        "first": [ask(400), by_ward],
        "again": [ask(500), turned, ask(400, ages=[0, 18])],
        # A stretch of bars, a ward, a cell of the map, and back.
        "drill-downs": [
            ask(400, ages=[20, 40]),
            ask(400, ages=[20, 30]),
            ask(400, 5, ward="a"),
            ask(400, 5, ages=[20, 40], ward="a"),
            ask(400, 1, ages=[20, 40], ward="a"),
            ask(400, 5, ward="b"),
            ask(400, 5, ages=[60, 100], ward="b"),
            ask(400, 10),
            ask(400, ages=[60, 100]),
            ask(400, 1, ward="c"),
        ],
    }


def compare_follow_ups() -> None:
    """Print what follow-ups cost, by themselves and after what was paid before."""
    database = ibis.duckdb.connect()
    database.raw_sql(RECORDS)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "visits.csv"
        database.raw_sql(f"copy visits to '{place}' (header)")
        for policies in ({}, {"age": NEAR}):
            for chosen in (True, False):
                table = {
                    "name": "visits",
                    "attributes": [AGE, WARD],
                    "policies": policies,
                    "snapshot": "March",
                }
                explorer = Explorer(table, place, epsilon=50, samples=0)
                promise = "any" if chosen else "fixed"
                say(f"follow-ups, policies {policies or 'none'}, promise {promise}")
                for words, log in follow_ups(chosen).items():
                    say(f" {words}")
                    asked_in_turn(explorer, log)


def compare_long() -> None:
    """Print what two hundred questions cost with broader answers and without."""
    database = ibis.duckdb.connect()
    database.raw_sql(STAYS)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "stays.csv"
        database.raw_sql(f"copy stays to '{place}' (header)")
        for chosen in (True, False):
            log = drill_downs(0, chosen, people=10, each=20)
            for broad in (0, 0.5):
                table = {
                    "name": "stays",
                    "attributes": [AGE, DAY, WARD],
                    "policies": {"age": NEAR, "day": NEAR, "ward": APART},
                    "snapshot": "March",
                    "broad": broad,
                }
                explorer = Explorer(table, place, epsilon=5000, samples=0)
                alone, together = spent_in_all(explorer, log)
                say(
                    f"{len(log)} questions, promise {'any' if chosen else 'fixed'}, "
                    f"broad {broad}: alone {alone:.3f}, so {together:.3f}"
                )


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


def drill_downs(
    seed: int, chosen: bool, people: int = 5, each: int = 10
) -> list[dict[str, Any]]:
    """Return questions of people who look into ages or days, and take turns.

    Parameters
    ----------
    seed : int
        Of the made-up wishes.
    chosen : bool
        Whether earlier answers may have led to them.
    people : int
        How many there are.
    each : int
        How many questions each of them has.

    Returns
    -------
    list of dict
        Questions as plain data, the first of each person first.
    """
    source = np.random.default_rng(seed)
    asked: list[list[dict[str, Any]]] = []
    for _ in range(people):
        axis, cells = ("age", 100) if source.random() < 0.7 else ("day", 52)
        usual = float(source.choice([25, 50, 100]))
        ends: list[int] = []
        wards: list[str] = []
        asked.append([])

        def some_ends(size: int = cells) -> list[int]:
            edges = np.arange(0, size + 1, 5)
            return sorted(source.choice(edges, 2, replace=False).tolist())

        for _ in range(each):
            move = source.choice(MOVES, p=ODDS)
            alpha = usual * float(source.choice([0.5, 1, 1, 2]))
            width = int(source.choice([1, 2, 5, 10, 20]))
            if move == "range":
                ends = some_ends()
            elif move == "back":
                ends, wards = [], []
            elif move == "ward":
                wards = [str(source.choice(["a", "b", "c", "d"]))]
            elif move == "finer":
                alpha = usual * 0.5
            about: dict[str, Any] = {"kind": "histogram", "width": width}
            if move == "cumulative":
                about["kind"] = "cumulative"
            filters: list[dict[str, Any]] = []
            if move == "ranges":
                about = {"kind": "ranges", "ranges": [some_ends() for _ in range(5)]}
            elif ends:
                filters.append({"attribute": axis, "low": ends[0], "high": ends[1]})
            if wards:
                filters.append({"attribute": "ward", "values": wards})
            cost = {"alpha": alpha, "beta": 0.05, "chosen": chosen}
            about |= {"table": "stays", "attribute": axis, "filters": filters}
            asked[-1].append({**about, "cost": cost})
    return [question for turn in zip(*asked, strict=True) for question in turn]


def spent_in_all(explorer: Explorer, log: list[dict[str, Any]]) -> tuple[float, float]:
    """Return what questions cost by themselves, and after one another.

    Parameters
    ----------
    explorer : Explorer
        A table whose answers are all to come.
    log : list of dict
        The questions.

    Returns
    -------
    alone : float
        The sum of the prices of all that differ.
    together : float
        What was charged.
    """
    prices = dict[str, float]()
    for question in log:
        told = explorer.explain(question)
        prices[repr(explorer.canonical(question))] = told["price_alone"]
        explorer.ask(question)
    return sum(prices.values()), float(explorer.ledger.spent)


def compare_broad() -> None:
    """Print what logs cost with broader answers and without."""
    database = ibis.duckdb.connect()
    database.raw_sql(RECORDS)
    database.raw_sql(STAYS)
    tables = {"visits": [AGE, WARD], "stays": [AGE, DAY, WARD]}
    with tempfile.TemporaryDirectory() as folder:
        for name in tables:
            path = Path(folder) / f"{name}.csv"
            database.raw_sql(f"copy {name} to '{path}' (header)")
        for near in (False, True):
            for chosen in (True, False):
                logs = {"visits": questions(chosen), "stays": drill_downs(0, chosen)}
                for name, log in logs.items():
                    rules: dict[str, Any] = {"age": NEAR} if near else {}
                    if near and name == "stays":
                        rules |= {"day": NEAR, "ward": APART}
                    costs = []
                    for broad in (0, 0.5):
                        table = {
                            "name": name,
                            "attributes": tables[name],
                            "policies": rules,
                            "snapshot": "March",
                            "broad": broad,
                        }
                        place = Path(folder) / f"{name}.csv"
                        explorer = Explorer(table, place, epsilon=500, samples=0)
                        costs.append(spent_in_all(explorer, log))
                    (alone, plain), (_, broader) = costs
                    say(
                        f"{len(log)} questions about {name}, policies "
                        f"{rules or 'none'}, promise {'any' if chosen else 'fixed'}: "
                        f"alone {alone:.3f}, so {plain:.3f}, broad {broader:.3f}"
                    )


def asked_in_turn(explorer: Explorer, log: list[dict[str, Any]]) -> None:
    """Ask questions one after the other, and print what each costs.

    Parameters
    ----------
    explorer : Explorer
        The table.
    log : list of dict
        The questions.
    """
    alone, before = 0.0, explorer.ledger.spent
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
    paid = float(explorer.ledger.spent - before)
    say(f"  in all {alone:.3f} alone, {paid:.3f} so")


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
    parts = {
        "follow": compare_follow_ups,
        "broad": compare_broad,
        "long": compare_long,
    }
    parts.get(" ".join(sys.argv[1:]), main)()
