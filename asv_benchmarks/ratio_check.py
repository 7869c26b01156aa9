"""Has a kernel become slower, measured against numpy in the same process?

    python asv_benchmarks/ratio_check.py                  compare with what is recorded
    python asv_benchmarks/ratio_check.py --record         measure that anew
    python asv_benchmarks/ratio_check.py --only laplace   some of them
    python asv_benchmarks/ratio_check.py --record --file mine.json

Seconds differ from machine to machine and from hour to hour. What stays is the ratio
of the CPU time of a kernel to that of fixed numpy work of the same size, when both take
turns in one process:

    round 1   numpy kernel | numpy kernel | ...       least time of the kernel
    round 2   numpy kernel | numpy kernel | ...  -->  -------------------------
    ...                                                least time of numpy

The least times are those that no other process disturbed. A ratio more than 20 % above
the recorded one is measured again, up to ten times, and only the smallest counts; what
is then still above is a regression, and the exit status is 1. Wall time is never used.

A ratio says something only where numpy is as fast as it was. A neighbour on the same
core slows arithmetic more than memory, so a busy machine moves ratios by a third
without any change of ours; there the kernel is named, not judged. Compilers and
processors differ too, so each architecture has its own ``recorded/NAME/ratios.json``,
which says where it was recorded; with another processor, Python, numpy or numba, or
where nothing is recorded, the ratios are reported and the status is 0.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from benchmarks import common, kernels

from blowfish_fast import policies
from blowfish_fast.mechanisms import OrderedHierarchical

Call = Callable[[], Any]
FOLDER = Path(__file__).resolve().parent / "recorded"
RECORDED = FOLDER / platform.machine() / "ratios.json"
ALLOWED = 1.2
# How far numpy may be from its recorded time for a ratio to count as evidence. On one
# idle machine it stays within 8 %; beside a busy neighbour log takes 50 % more.
STEADY = 1.15
ROUNDS = 20
SMALL, MIDDLE = 2**14, 2**16
ATTEMPTS = 11
SAMPLE_SECONDS = 0.008
RECORDING_RUNS = 7


class Task(NamedTuple):
    """A kernel, and the numpy work of as many cells that it is held against."""

    name: str
    cells: int
    reference: str
    prepare: Callable[[], Call]


def sorting(cells: int) -> Call:
    """Return a sort of random floats: comparisons and moves."""
    values = np.random.default_rng(cells).random(cells)
    return lambda: np.sort(values)


def logarithms(cells: int) -> Call:
    """Return logarithms of random floats: arithmetic on each value alone."""
    values = np.random.default_rng(cells).random(cells) + 0.1
    return lambda: np.log(values)


def passes(cells: int) -> Call:
    """Return running totals and two more passes: memory in order."""
    values = np.random.default_rng(cells).random(cells)
    totals = np.empty_like(values)

    def work() -> None:
        np.cumsum(values, out=totals)
        np.multiply(totals, 0.5, out=totals)
        np.subtract(totals, values, out=totals)

    return work


REFERENCES = {"sort": sorting, "log": logarithms, "passes": passes}


def all_tasks() -> list[Task]:
    """Return the core kernels and a whole release, on generated data.

    A release of Dawa is left out: from run to run it takes 9.5 to 12.8 ms, more than
    the limit, while the kernels that it is made of are steady.
    """
    known = (
        ("window_deviations", SMALL, "sort", kernels.WindowDeviations, "dense", 1024),
        ("least_cost_partition", SMALL, "sort", kernels.LeastCostPartition, "dense"),
        (
            *("noisy_least_cost_partition", SMALL, "sort"),
            *(kernels.NoisyLeastCostPartition, "dense", "deviation"),
        ),
        (
            *("sample_dyadic_partition", SMALL, "sort"),
            *(kernels.SampleDyadicPartition, "dense"),
        ),
        ("discrete_laplace", MIDDLE, "log", kernels.DiscreteLaplace, "shared"),
        ("discrete_laplace_own_scales", MIDDLE, "log", kernels.DiscreteLaplace, "own"),
        ("greedy_scaling", SMALL, "sort", kernels.GreedyScalingRanges, 16),
        ("tree_fit", MIDDLE, "passes", kernels.TreeLeastSquares, 16),
        ("tree_spread_ranges", SMALL, "sort", kernels.TreeSpreadRanges, 16),
        ("hilbert_order", MIDDLE, "passes", kernels.HilbertOrder, "square"),
    )
    tasks = [
        Task(name, cells, reference, partial(kind().prepare, cells, *parameters))
        for name, cells, reference, kind, *parameters in known
    ]
    release = partial(_ordered_release, SMALL)
    return [*tasks, Task("ordered_hierarchical_release", SMALL, "sort", release)]


def _ordered_release(cells: int) -> Call:
    domain, data = common.line(cells)
    policy = policies.Threshold(domain, theta=64)
    asked = common.ranges(domain, 500)
    mechanism = OrderedHierarchical(policy, asked, epsilon=common.EPSILON)
    return lambda: mechanism.release(data, rng=1)


class Measured(NamedTuple):
    """Least CPU seconds of one call of either side."""

    kernel: float
    reference: float

    @property
    def ratio(self) -> float:
        """How many times the reference the kernel takes."""
        return self.kernel / self.reference

    def where_numpy_is_as_fast_as(self, recorded: Measured) -> bool:
        """Return whether the machine is the one, and as idle, as at the recording."""
        return 1 / STEADY <= self.reference / recorded.reference <= STEADY


class Suspicion(NamedTuple):
    """A kernel above the limit at every attempt."""

    excess: float
    proved: bool


def measure(tasks: Iterable[Task], *, rounds: int = ROUNDS) -> dict[str, Measured]:
    """Return the least time of both sides of each task, over rounds in turns."""
    sides = [
        (
            task.name,
            _sampler(task.prepare()),
            _sampler(REFERENCES[task.reference](task.cells)),
        )
        for task in tasks
    ]
    least = {name: Measured(np.inf, np.inf) for name, _, _ in sides}
    for _ in range(rounds):
        for name, kernel, reference in sides:
            theirs, ours = reference(), kernel()
            least[name] = Measured(
                min(least[name].kernel, ours), min(least[name].reference, theirs)
            )
    return least


def _sampler(call: Call) -> Callable[[], float]:
    """Return a function that times a few calls together and divides."""
    call()
    single = min(_seconds(call, 1) for _ in range(3))
    calls = max(1, round(SAMPLE_SECONDS / max(single, 1e-7)))
    return lambda: _seconds(call, calls)


def _seconds(call: Call, calls: int) -> float:
    start = process_time()
    for _ in range(calls):
        call()
    return (process_time() - start) / calls


def record(tasks: list[Task], *, runs: int = RECORDING_RUNS) -> dict[str, Any]:
    """Return what is written down: the typical ratio of several runs, and where."""
    found = [measure(tasks) for _ in range(runs)]
    return {
        "recorded on": fingerprint(),
        "kernels": {
            task.name: {
                "cells": task.cells,
                "reference": task.reference,
                "ratio": _digits(median(run[task.name].ratio for run in found)),
                "microseconds": _digits(
                    median(run[task.name].kernel for run in found) * 1e6
                ),
                "numpy microseconds": _digits(
                    median(run[task.name].reference for run in found) * 1e6
                ),
            }
            for task in tasks
        },
    }


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


def suspicions(
    tasks: list[Task],
    recorded: dict[str, Measured],
    *,
    attempts: int = ATTEMPTS,
    rounds: int = ROUNDS,
) -> dict[str, Suspicion]:
    """Return how many times its recorded ratio each kernel above the limit takes.

    A kernel that is above the limit is measured again, alone with the others above
    it; one attempt below the limit acquits it. It is proved slower by an attempt at
    which numpy was as fast as recorded.
    """
    accused, found = list(tasks), dict[str, Suspicion]()
    for attempt in range(attempts):
        measured = measure(accused, rounds=rounds)
        for task in accused:
            now, before = measured[task.name], recorded[task.name]
            relative = now.ratio / before.ratio
            excess, proved = found.get(task.name, Suspicion(np.inf, proved=False))
            found[task.name] = Suspicion(
                min(relative, excess), proved or now.where_numpy_is_as_fast_as(before)
            )
            if attempt == 0 or relative <= ALLOWED:
                _say(_line(task, now, relative))
        accused = [task for task in accused if found[task.name].excess > ALLOWED]
        if not accused:
            break
        names = ", ".join(task.name for task in accused)
        if attempt + 1 < attempts:
            _say(f"  above {ALLOWED:g} of the recorded ratio, measured again: {names}")
    return {task.name: found[task.name] for task in accused}


def _line(task: Task, now: Measured, relative: float) -> str:
    return (
        f"{task.name:30} {task.cells:>7} cells {now.kernel * 1e6:>10.1f} us "
        f"{now.ratio:>9.3f} of {task.reference:6} {relative:>6.2f} of the recorded"
    )


def fingerprint() -> dict[str, str]:
    """Return what ratios depend on: the processor and what makes the code."""
    return {
        "processor": _processor(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": version("numpy"),
        "numba": version("numba"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = dict(_fact(line) for line in reversed(lines) if ":" in line)
    x86, arm = "cpu family,model,stepping", "CPU implementer,CPU part,CPU variant"
    numbers = [facts[word] for word in f"{x86},{arm}".split(",") if word in facts]
    name = facts.get("model name", platform.machine())
    # Virtual machines hide the name; these numbers tell them apart.
    return f"{name}, {'-'.join(numbers)}"


def _fact(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()


def check(
    tasks: list[Task],
    kept: dict[str, Any],
    *,
    attempts: int = ATTEMPTS,
    rounds: int = ROUNDS,
) -> int:
    """Compare with what was recorded; return the exit status."""
    known = {name: _as_recorded(one) for name, one in kept["kernels"].items()}
    unknown = [task.name for task in tasks if task.name not in known]
    if unknown:
        _say(f"not recorded yet, use --record: {', '.join(unknown)}")
        return 1
    here = fingerprint()
    elsewhere = kept["recorded on"] != here
    attempts = 1 if elsewhere else attempts
    suspected = suspicions(tasks, known, attempts=attempts, rounds=rounds)
    if elsewhere:
        _say(f"recorded on {kept['recorded on']}")
        _say(f"measured on {here}")
        _say("another machine or other versions: reported only")
        return 0
    for name, (excess, proved) in suspected.items():
        taken = f"{name} takes {excess:.2f} of its recorded ratio to numpy"
        if proved:
            _say(f"REGRESSION: {taken}")
        else:
            _say(f"NOT JUDGED: {taken}, but numpy is not as fast as recorded either")
    if not suspected:
        _say(f"no kernel takes more than {ALLOWED:g} of its recorded ratio to numpy")
    return int(any(one.proved for one in suspected.values()))


def _as_recorded(one: dict[str, Any]) -> Measured:
    reference = one["numpy microseconds"] / 1e6
    return Measured(kernel=one["ratio"] * reference, reference=reference)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(words: list[str]) -> int:
    """Measure, and record or compare; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write the file anew")
    parser.add_argument("--file", type=Path, default=RECORDED)
    parser.add_argument("--only", help="kernels whose names contain this")
    options = parser.parse_args(words)
    tasks = [task for task in all_tasks() if (options.only or "") in task.name]
    if options.record:
        if options.only:
            parser.error("--record measures all kernels; leave --only out")
        options.file.parent.mkdir(parents=True, exist_ok=True)
        options.file.write_text(json.dumps(record(tasks), indent=2) + "\n")
        _say(f"recorded in {options.file}")
        return 0
    if not options.file.exists():
        for name, now in measure(tasks).items():
            _say(f"{name}: {now.ratio:.3g} of numpy")
        _say(f"nothing is recorded on {platform.machine()}: reported only")
        return 0
    return check(tasks, json.loads(options.file.read_text()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
