"""Measure releases beside what no release can beat, and beside others, in one run.

    python asv_benchmarks/measure_limits.py             a few minutes
    python asv_benchmarks/measure_limits.py --record    the same, for the page

CPU nanoseconds a cell of one histogram, the least of some rounds in which all of them
take turns in one process:

    copy       a plain copy of the counts: eight bytes read and eight written a cell
    numpy      numpy's own draw of as much Laplace noise, in floating point, not secure
    noise      exact discrete Laplace noise from a secure source, as releases draw it
    laplace    a whole release of `Laplace`: checks, noise, intervals' promise
    dawa       a whole release of `Dawa` for 2000 ranges
    opendp     OpenDP's discrete Laplace noise on the same counts (``pip install
               opendp``); it is left out where that is missing, or takes too long

and nanoseconds a record of counting records into 1,000 cells, beside numpy's bincount
of cells that are known already.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import blowfish_fast as bf
from blowfish_fast.measure.randomness import Randomness

RECORDED = Path(__file__).resolve().parent / "recorded"
POWERS = (12, 14, 16, 18, 20, 22)
RECORDS = (4, 5, 6, 7)
MOST_RIVAL_CELLS = 2**14
"""OpenDP draws for a second there, and in proportion beyond."""
EPSILON = "0.1"
Call = Callable[[], object]


def cell_tasks(cells: int) -> dict[str, Call]:
    """Return what is timed on one histogram of so many cells."""
    generator = np.random.default_rng(cells)
    wave = 1.2 + np.sin(np.arange(cells) * (40.0 / cells))
    counts = generator.poisson(50 * wave)
    room = np.empty_like(counts)
    line = bf.Domain(cells)
    policy = bf.policies.AddRemove(line)
    asked = bf.workloads.Ranges.random(line, 2000, rng=1)
    histogram = bf.Histogram(line, counts)
    laplace = bf.Laplace(policy, asked, epsilon=EPSILON)
    dawa = bf.Dawa(policy, asked, epsilon=EPSILON)
    tasks: dict[str, Call] = {
        "copy": lambda: np.copyto(room, counts),
        "numpy": lambda: generator.laplace(0.0, 10.0, size=cells) + counts,
        "noise": lambda: Randomness().laplace(10, 1, size=cells, threads=1),
        "laplace": lambda: laplace.release(histogram),
        "dawa": lambda: dawa.release(histogram),
    }
    if cells <= MOST_RIVAL_CELLS and importlib.util.find_spec("opendp"):
        tasks["opendp"] = rival(counts)
    return tasks


def rival(counts: Any) -> Call:
    """Return OpenDP's release of the same counts, of one scale."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    measurement = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=10.0)
    listed = counts.tolist()
    return lambda: measurement(listed)


def record_tasks(records: int) -> dict[str, Call]:
    """Return what is timed on so many records."""
    generator = np.random.default_rng(records)
    ages = bf.Domain.from_edges(range(0, 1001), name="amount")
    values = generator.uniform(0, 1000, records)
    cells = values.astype(np.int64)
    return {
        "bincount": lambda: np.bincount(cells, minlength=1000),
        "from_records": lambda: bf.Histogram.from_records(ages, values),
    }


def least(tasks: dict[str, Call], seconds: float) -> dict[str, float]:
    """Return the least CPU seconds of each, over rounds for about so many seconds."""
    for call in tasks.values():
        call()
    best = dict.fromkeys(tasks, float("inf"))
    begun = process_time()
    while process_time() - begun < seconds:
        for name, call in tasks.items():
            start = process_time()
            call()
            # A short call is timed some times over: the clock has its own steps.
            taken = process_time() - start
            if taken < 1e-4:
                start = process_time()
                for _ in range(100):
                    call()
                taken = (process_time() - start) / 100
            best[name] = min(best[name], taken)
    return best


def measured(seconds: float) -> dict[str, Any]:
    """Return nanoseconds a cell and a record, by task and size."""
    by_cells: dict[str, dict[str, float]] = {}
    by_records: dict[str, dict[str, float]] = {}
    sizes = [(by_cells, power, 2**power, cell_tasks) for power in POWERS]
    sizes += [(by_records, power, 10**power, record_tasks) for power in RECORDS]
    for kept, power, size, tasks in sizes:
        for name, taken in least(tasks(size), seconds).items():
            nanoseconds = float(f"{1e9 * taken / size:.3g}")
            kept.setdefault(name, {})[str(power)] = nanoseconds
            sys.stdout.write(f"{name:>14} {size:>10,} {nanoseconds:10.4g} ns each\n")
            sys.stdout.flush()
    rivals = ["opendp"] if "opendp" in by_cells else []
    return {
        "code of": str(datetime.now(UTC).date()),
        "versions": {name: version(name) for name in ["numpy", *rivals]},
        "by cells": by_cells,
        "by records": by_records,
    }


def main(words: list[str]) -> None:
    """Print what was measured, and keep it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="CPU, for each size")
    parser.add_argument("--record", action="store_true", help="keep it for the page")
    options = parser.parse_args(words)
    figures = measured(options.seconds)
    if options.record:
        kept = RECORDED / platform.machine() / "limits.json"
        kept.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
