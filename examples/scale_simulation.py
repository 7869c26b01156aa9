"""What 10^10 records and 2^28 cells take, extrapolated from runs on this machine.

    measured here                        predicted
    records 10^5 .. 10^7   GROUP BY      records 10^10      core-seconds
    cells   2^14 .. 2^24   releases      cells 2^28         core-seconds and memory
                           save, answer  cells 2^28         seconds and bytes

Measured costs are carried on to the target, and each step checks itself: the largest
run is predicted from the smaller ones, and prediction over measurement is printed. CPU
time is measured, so that other work on the machine matters less; what runs in threads
or on a cluster is divided by its cores afterwards.

    python examples/scale_simulation.py --quick
    python examples/scale_simulation.py counting releases --json runs.json
    python examples/scale_simulation.py beyond answers --json runs.json
    python examples/scale_simulation.py spark --json runs.json
    python examples/scale_simulation.py --json runs.json --write docs/performance.md

What was measured for the page is kept in ``docs/scale.json``; the last command measures
nothing. ``spark`` needs the extra of that name and Java 17.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib.util
import json
import math
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast.mechanisms.registry import MECHANISMS

PARTS = ("counting", "spark", "releases", "answers", "beyond")
QUICK = ("laplace", "ordered", "dawa, 10^4 ranges")
DAWA: dict[str, dict[str, Any]] = {
    "dawa, 10^4 ranges": {},
    "dawa, stage 1, then plain noise": {"strategy": "cells"},
    "dawa, stage 2 only": {"partition": None},
}
MOST_BYTES = 2**31
"""What one release may need here; this machine is shared."""
LONG_LINE = 2**23
"""On more cells mechanisms declare as much for each as on so many."""


class Between(NamedTuple):
    """Seconds at a size that was not run.

    Low if a cell goes on to cost what it cost in the largest run; high if that goes on
    growing as it grew over the last three.
    """

    low: float
    high: float

    @classmethod
    def at(cls, target: float, sizes: list[float], seconds: list[float]) -> Between:
        """Carry measured points on to `target`."""
        slope = np.polyfit(np.log(sizes[-3:]), np.log(seconds[-3:]), 1)[0]
        step = target / sizes[-1]
        last = seconds[-1]
        return cls(last * step, last * step ** float(np.clip(slope, 1.0, 2.0)))

    @classmethod
    def check(cls, sizes: list[float], seconds: list[float]) -> str:
        """Predict the largest run from the smaller ones; return the ratios."""
        if len(sizes) < 4:
            return "-"
        made = cls.at(sizes[-1], sizes[:-1], seconds[:-1])
        return f"{made.low / seconds[-1]:.2f} to {made.high / seconds[-1]:.2f}"

    def __str__(self) -> str:
        low, high = _duration(self.low), _duration(self.high)
        return low if low == high else f"{low} to {high}"


# Counting: one GROUP BY, on DuckDB in this process or on Spark beside it.


def square(cells: int) -> bf.Domain:
    """Return a map of that many cells over the unit square."""
    side = round(math.sqrt(cells))
    edges = np.linspace(0.0, 1.0, side + 1)
    return bf.Domain.product(
        *(bf.Domain.from_edges(edges, name=name) for name in ("x", "y"))
    )


def counting(quick: bool) -> list[dict[str, float]]:
    """Count random points by cell on DuckDB, for several numbers of both."""
    import ibis

    backend = ibis.duckdb.connect()
    largest = 10**5 if quick else 10**7
    backend.con.execute(
        "CREATE TABLE points AS SELECT i, hash(i) % 1000003 / 1000003.0 AS x, "
        f"hash(i + {2**40}) % 1000003 / 1000003.0 AS y FROM range({largest}) t(i)"
    )
    table = backend.table("points")
    bf.Histogram.from_ibis(square(2**4), table.limit(10))
    found = []
    for exponent in (8, 10, 12) if quick else (12, 16, 20, 22):
        for records in (largest // 100, largest // 10, largest // 3, largest):
            some = table.filter(table.i < records)
            start = process_time()
            counted = bf.Histogram.from_ibis(square(2**exponent), some)
            found.append(
                {
                    "records": records,
                    "cells": 2**exponent,
                    "filled": int((counted.counts > 0).sum()),
                    "seconds": process_time() - start,
                }
            )
    backend.disconnect()
    return found


def spark(quick: bool) -> list[dict[str, float]]:
    """Count the same on a local Spark with one core, by the CPU time of its JVM."""
    import ibis
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    backend = ibis.pyspark.connect(session)
    found = []
    exponents = (6, 8, 10) if quick else (12, 16, 20)
    sizes = (10**3, 10**4) if quick else (10**6, 10**7)
    for warm in (True, False):
        for exponent in exponents[:1] if warm else exponents:
            for records in sizes[:1] if warm else sizes:
                session.sql(
                    "CREATE OR REPLACE TEMPORARY VIEW points AS SELECT "
                    "pmod(hash(id), 1000003) / 1000003D AS x, "
                    f"pmod(hash(id + {2**40}), 1000003) / 1000003D AS y "
                    f"FROM range({records})"
                )
                start = _children_seconds() + process_time()
                counted = bf.Histogram.from_ibis(
                    square(2**exponent), backend.table("points")
                )
                seconds = _children_seconds() + process_time() - start
                if not warm:
                    filled = int((counted.counts > 0).sum())
                    found.append(
                        {
                            "records": records,
                            "cells": 2**exponent,
                            "filled": filled,
                            "seconds": seconds,
                        }
                    )
    session.stop()
    return found


def _children_seconds() -> float:
    """Return the CPU time of running child processes, Spark's JVM among them."""
    parents, spent = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        number = int(path.parent.name)
        parents[number] = int(fields[1])
        spent[number] = int(fields[11]) + int(fields[12])
    ticks = 0
    for number, time in spent.items():
        above = parents.get(number, 0)
        while above not in (0, os.getpid()):
            above = parents.get(above, 0)
        ticks += time if above == os.getpid() else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def counting_at(runs: list[dict[str, float]], records: float, filled: float) -> Between:
    """Carry the counts of most records on to more records and more filled cells.

    A record costs what it cost in the largest run, or more for every doubling of the
    table of filled cells that it is looked up in, as between the last two runs.
    """
    most = max(one["records"] for one in runs)
    large = sorted(
        (one for one in runs if one["records"] == most), key=lambda one: one["filled"]
    )
    before, last = (one["seconds"] / most for one in large[-2:])
    doublings = math.log2(large[-1]["filled"] / large[-2]["filled"])
    growth = max(last - before, 0.0) / doublings
    more = math.log2(filled / large[-1]["filled"])
    return Between(records * last, records * (last + growth * max(more, 0.0)))


def counting_check(runs: list[dict[str, float]]) -> str:
    """Predict the largest run from those with fewer cells; return the ratios."""
    last = max(runs, key=lambda one: (one["records"], one["filled"]))
    fewer = [one for one in runs if one["cells"] < last["cells"]]
    made = counting_at(fewer, last["records"], last["filled"])
    return f"{made.low / last['seconds']:.2f} to {made.high / last['seconds']:.2f}"


# Releases: every registered mechanism, by growing size.


def releases(quick: bool) -> list[dict[str, Any]]:
    """Release rough counts with every mechanism until it takes too long or too much."""
    found = []
    for name in QUICK if quick else [*MECHANISMS, *DAWA]:
        if name == "kmeans":
            continue  # It places centres; cells are not what it grows with.
        _made(name, 2**8)[0].release(_made(name, 2**8)[1])
        for exponent in (6, 8, 10, 12) if quick else range(14, 25, 2):
            mechanism, counts = _made(name, 2**exponent)
            needed = mechanism.memory_needed()
            if needed > MOST_BYTES:
                break
            risen, seconds = _measured(mechanism, counts)
            found.append(
                {
                    "mechanism": name,
                    "cells": 2**exponent,
                    "seconds": seconds,
                    "peak": risen,
                    "needed": needed,
                    "cell_bytes": mechanism.cell_bytes,
                }
            )
            if seconds > 1.0:
                break
    return found


def beyond(quick: bool) -> list[dict[str, Any]]:
    """Release once on more cells than any run that predictions are made from."""
    mechanism, counts = _made("laplace", 2**14 if quick else 2**26)
    risen, seconds = _measured(mechanism, counts)
    found = {"cells": mechanism.domain.size, "seconds": seconds, "peak": risen}
    return [found | {"needed": mechanism.memory_needed()}]


def _mechanism(name: str, cells: int) -> Any:
    """Return a mechanism of its own liking."""
    domain = bf.Domain(cells)
    policy = bf.policies.AddRemove(domain)
    if name in DAWA:
        ranges = bf.workloads.Ranges.random(domain, 10**4, rng=1)
        return bf.Dawa(policy, ranges, epsilon=1, **DAWA[name])
    return MECHANISMS[name].example(domain, policy, 1)[0]


def _made(name: str, cells: int) -> tuple[Any, Any]:
    """Return a mechanism of its own liking, and counts without two alike in a row."""
    counts = np.random.default_rng(1).integers(0, 1000, size=cells)
    return _mechanism(name, cells), counts


def declared_bytes(name: str, cells: int) -> float:
    """Return the bytes per cell that a mechanism declares today on so many cells."""
    # Long lines are declared otherwise than short ones, and all long ones alike.
    asked = min(cells, LONG_LINE)
    return float(_mechanism(name, asked).memory_needed() / asked)


def _measured(mechanism: Any, counts: Any) -> tuple[int, float]:
    """Return how far the peak of memory rises, and CPU seconds."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        before = _held("VmRSS")
    except (AttributeError, OSError):
        before = None
    seconds = _least_seconds(lambda: mechanism.release(counts))
    return (0 if before is None else max(_held("VmHWM") - before, 0)), seconds


def _least_seconds(act: Callable[[], Any]) -> float:
    """Return the least CPU time of an action, repeated while that is quick."""
    spent: list[float] = []
    while not spent or (sum(spent) < 0.1 and len(spent) < 5):
        start = process_time()
        act()
        spent.append(max(process_time() - start, 1e-6))
    return min(spent)


def _held(field: str) -> int:
    text = Path("/proc/self/status").read_text()
    (amount,) = re.findall(rf"{field}:\s+(\d+) kB", text)
    return int(amount) * 1024


# Afterwards: what is public is saved, loaded and asked.


def answers(quick: bool) -> list[dict[str, Any]]:
    """Save, load and ask a Laplace release; draw noise alone."""
    from blowfish_fast.measure.randomness import Randomness

    found = []
    for exponent in (6, 8, 10, 12) if quick else (16, 18, 20, 22):
        mechanism, counts = _made("laplace", 2**exponent)
        release = mechanism.release(counts)
        ranges = bf.workloads.Ranges.random(mechanism.domain, 10**4, rng=1)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "release.bf")
            run: dict[str, Any] = {"cells": 2**exponent}
            steps: dict[str, Callable[[], Any]] = {
                "save": lambda release=release, path=path: release.save(path),
                "load": lambda path=path: bf.Release.load(path),
                "answer": lambda release=release, ranges=ranges: release.answer(ranges),
                "noise": lambda draws=2**exponent: Randomness().laplace(1, 1, draws),
            }
            for step, act in steps.items():
                run[step] = _least_seconds(act)
            run["bytes"] = path.stat().st_size
        found.append(run)
    return found


# The plan: what was measured, carried to the target.


class Target(NamedTuple):
    """What is planned for, and what the reader assumes about machines."""

    records: float
    cells: float
    cores: int
    gigabits: float
    memory: float
    price: float | None

    @property
    def filled(self) -> float:
        """Cells that hold records, at most."""
        return min(self.records, self.cells)


def counting_table(runs: dict[str, Any], target: Target) -> list[str]:
    """Lay out what counting takes."""
    rows = [
        "| engine | largest run | per record there | predicted / measured | "
        f"{_power(target.records)} records, {_power(target.cells)} cells, all filled | "
        f"on {target.cores} cores |",
        "|---|---|---|---|---|---|",
    ]
    for part, engine in (("counting", "DuckDB"), ("spark", "Spark, local")):
        if part not in runs:
            continue
        predicted = counting_at(runs[part], target.records, target.filled)
        shared = Between(*(one / target.cores for one in predicted))
        last = max(runs[part], key=lambda one: (one["records"], one["filled"]))
        rows.append(
            f"| {engine} | {_power(last['records'])} records, {_power(last['cells'])} "
            f"cells | {_small(last['seconds'] / last['records'])} | "
            f"{counting_check(runs[part])} | {_hours(predicted, target)} | {shared} |"
        )
    return rows


def release_table(runs: dict[str, Any], target: Target) -> list[str]:
    """Lay out what each mechanism takes, the quickest first."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for one in runs["releases"]:
        by_name.setdefault(one["mechanism"], []).append(one)
    made = []
    for name, points in by_name.items():
        sizes = [float(one["cells"]) for one in points]
        seconds = [one["seconds"] for one in points]
        last = points[-1]
        predicted = Between.at(target.cells, sizes, seconds)
        each = declared_bytes(name, target.cells)
        needed = each * target.cells
        fits = needed <= target.memory * 2**30
        made.append(
            (
                predicted,
                f"| {name} | 2^{int(math.log2(last['cells']))} | "
                f"{_small(seconds[-1] / sizes[-1])} | "
                f"{Between.check(sizes, seconds)} | "
                f"{last['peak'] / last['cells']:.0f} | {each:.0f} | "
                f"{predicted} | {needed / 2**30:.0f} GiB"
                f"{'' if fits else ' (too much)'} |",
            )
        )
    head = [
        "| mechanism | measured up to | per cell there | largest run predicted / "
        "measured | bytes per cell, peak | declared on long lines | "
        f"{_power(target.cells)} cells, core time | memory declared |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return head + [row for _, row in sorted(made)]


def beyond_line(runs: dict[str, Any]) -> str:
    """Hold the run beyond all others against its prediction."""
    (run,) = runs["beyond"]
    points = [one for one in runs["releases"] if one["mechanism"] == "laplace"]
    made = Between.at(
        run["cells"],
        [float(one["cells"]) for one in points],
        [one["seconds"] for one in points],
    )
    peak = points[-1]["peak"] / points[-1]["cells"] * run["cells"]
    return (
        f"One run beyond: laplace on {_power(run['cells'])} cells was predicted to "
        f"take {made} and {peak / 2**30:.2f} GiB from the runs up to "
        f"{_power(points[-1]['cells'])}; it took {_duration(run['seconds'])} and "
        f"{run['peak'] / 2**30:.2f} GiB, of {run['needed'] / 2**30:.2f} GiB declared."
    )


def answer_table(runs: dict[str, Any], target: Target) -> list[str]:
    """Lay out what noise, saving, loading and asking take."""
    rows = [
        "| step | per cell | largest run predicted / measured | "
        f"{_power(target.cells)} cells |",
        "|---|---|---|---|",
    ]
    points = runs["answers"]
    sizes = [float(one["cells"]) for one in points]
    words = {
        "noise": "drawing exact noise, one draw per cell",
        "save": "saving a release",
        "load": "loading it",
        "answer": "answering 10^4 ranges",
    }
    for step, said in words.items():
        seconds = [one[step] for one in points]
        rows.append(
            f"| {said} | {_small(seconds[-1] / sizes[-1])} | "
            f"{Between.check(sizes, seconds)} | "
            f"{Between.at(target.cells, sizes, seconds)} |"
        )
    per_cell = points[-1]["bytes"] / sizes[-1]
    size = per_cell * target.cells / 2**30
    rows.append(f"| size of the file | {per_cell:.1f} bytes | - | {size:.1f} GiB |")
    return rows


def travel(target: Target) -> str:
    """Say what the counted cells take on the network."""
    size = 16 * target.filled
    seconds = size * 8 / (target.gigabits * 1e9)
    return (
        f"Counted cells travel at 16 bytes each: at most {size / 2**30:.1f} GiB, "
        f"{_duration(seconds)} at {target.gigabits:g} Gbit/s. The histogram then holds "
        f"{8 * target.cells / 2**30:.1f} GiB."
    )


def report(runs: dict[str, Any], target: Target) -> list[str]:
    """Lay out everything that was measured."""
    lines = []
    if "counting" in runs or "spark" in runs:
        lines += [*counting_table(runs, target), "", travel(target), ""]
    if "releases" in runs:
        lines += [*release_table(runs, target), ""]
    if "releases" in runs and "beyond" in runs:
        lines += [beyond_line(runs), ""]
    if "answers" in runs:
        lines += [*answer_table(runs, target), ""]
    return lines[:-1]


def _power(number: float) -> str:
    two, ten = math.log2(number), math.log10(number)
    if two == int(two):
        return f"2^{int(two)}"
    return f"10^{int(ten)}" if ten == int(ten) else f"{number:,.0f}"


def _small(seconds: float) -> str:
    return f"{seconds * 1e9:,.0f} ns" if seconds < 1e-6 else f"{seconds * 1e6:,.1f} µs"


def _duration(seconds: float) -> str:
    for length, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s" if seconds >= 0.1 else f"{seconds * 1e3:.1f} ms"


def _hours(seconds: Between, target: Target) -> str:
    low, high = (one / 3600 for one in seconds)
    cost = ""
    if target.price is not None:
        cost = f", costs {low * target.price:.2f} to {high * target.price:.2f}"
    return f"{low:.2f} to {high:.2f} core-hours{cost}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--quick", action="store_true", help="all parts, in seconds")
    parser.add_argument("--json", type=Path, help="add to the runs in this file")
    parser.add_argument("--write", type=Path, help="renew the tables of this page")
    parser.add_argument("--records", type=float, default=1e10)
    parser.add_argument("--cells", type=float, default=2.0**28)
    parser.add_argument("--cores", type=int, default=64, help="of the cluster")
    parser.add_argument("--gigabits", type=float, default=10.0, help="per second")
    parser.add_argument("--memory", type=float, default=128.0, help="GiB to release in")
    parser.add_argument("--price", type=float, help="of a core for an hour")
    return parser.parse_args()


def main() -> None:
    """Measure what is asked, add it to the file, print the plan."""
    given = _arguments()
    runs: dict[str, Any] = {}
    if given.json is not None and given.json.exists():
        runs = json.loads(given.json.read_text())
    parts = given.parts
    if given.quick:
        parts = ["releases", "beyond", "answers"]
        if importlib.util.find_spec("ibis") and importlib.util.find_spec("duckdb"):
            parts = ["counting", *parts]
    for part in parts:
        runs[part] = globals()[part](given.quick)
        if given.json is not None:
            given.json.write_text(json.dumps(runs, indent=1) + "\n")
    target = Target(
        given.records,
        given.cells,
        given.cores,
        given.gigabits,
        given.memory,
        given.price,
    )
    lines = report(runs, target)
    print("\n".join(lines))
    if given.write is not None:
        begin, end = "<!-- scale: begin -->", "<!-- scale: end -->"
        before, _, rest = given.write.read_text().partition(begin)
        after = rest.partition(end)[2]
        text = "\n".join([before + begin, "", *lines, "", end + after])
        given.write.write_text(text)


if __name__ == "__main__":
    main()
