"""Measure the library beside its prototypes, in one run, and print the ratios.

    python asv_benchmarks/compare_prototypes.py PATH_TO_PROTOTYPES
    python asv_benchmarks/compare_prototypes.py PATH --only stage2 noise --threads 2

The path holds the folders ``stage1``, ``stage2`` and ``noise``, whose modules are
imported from there. CPU seconds of the whole process, best of a few runs, the two
sides in turn; both are called once before. Absolute times differ between machines,
ratios in one run hardly do.

    stage1    least-cost partition of 2^20 cells, without and with noise
    stage2    greedy weights: 4096 leaves with 2000 ranges, 2^20 with 200,000
    noise     exact discrete Laplace and geometric draws per second
    growth    ns per window of the partition, from 2^16 cells on
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from time import process_time
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from benchmarks import common

from blowfish_fast.kernels.partition.interval_partition import (
    least_cost_partition,
    partition_cost,
)
from blowfish_fast.kernels.tree_scaling.greedy_weights import greedy_scaling_fractions
from blowfish_fast.kernels.window_costs.count_grid import partition_grid
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions import LeastCost

Call = Callable[[], Any]
PRICE = 12.0
EPSILON = Fraction(1, 40)
DRAWS = 2**20
GROWING = (
    ("dense", "dense"),
    ("distinct", "distinct"),
    ("noisy dense", "dense"),
    ("noisy distinct", "distinct"),
)


class Task(NamedTuple):
    """One thing that both sides do; `work` counts draws, windows or the like."""

    name: str
    ours: Call
    theirs: Call
    at_most: float | None = None
    work: int | None = None
    family: str | None = None


def best_times(tasks: list[Task], runs: int) -> list[list[float]]:
    """Return the least CPU time of each side of each task.

    All tasks take turns in each round, so that a slow spell of the machine falls on
    one round and not on one task.
    """
    sides = [(task.ours, task.theirs) for task in tasks]
    for calls in sides:
        for call in calls:
            call()
    times = [[_repeats(call) for call in calls] for calls in sides]
    rounds = [
        [
            [_seconds(*one) for one in zip(calls, times[place], strict=True)]
            for place, calls in enumerate(sides)
        ]
        for _ in range(runs)
    ]
    return [
        [min(column) for column in zip(*task, strict=True)]
        for task in zip(*rounds, strict=True)
    ]


def _repeats(call: Call) -> int:
    """Return how often to call for a sample of a few hundredths of a second."""
    return max(1, round(0.03 / max(_seconds(call, 1), 1e-6)))


def _seconds(call: Call, repeats: int) -> float:
    start = process_time()
    for _ in range(repeats):
        call()
    return (process_time() - start) / repeats


def counts(kind: str, cells: int) -> np.ndarray:
    """Return the data of one kind, cut where a partition cuts it."""
    if kind == "whole floats":
        return common.counts("dense", cells).astype(np.float64)
    _, cap = partition_grid(cells, PRICE)
    return np.minimum(common.counts(kind, cells), cap)


def plain_partition(x: np.ndarray, threads: int = 1) -> np.ndarray:
    """Partition without noise, every bucket at one price."""
    step, _ = partition_grid(x.size, PRICE)
    prices = np.full(x.size.bit_length(), PRICE)
    return least_cost_partition(x, prices, step=step, threads=threads)


def noisy_partition(x: np.ndarray, threads: int = 1) -> np.ndarray:
    """Partition with secure noise, as the proof asks for it."""
    noise = LeastCost().noise(x.size, EPSILON)
    return least_cost_partition(
        np.minimum(x, noise.cap),
        PRICE + 4 * noise.scales,
        noise.scales,
        Randomness().stream(),
        step=noise.step,
        threads=threads,
    )


class Partitions(NamedTuple):
    """The two sides of stage 1: arrays in, a call out."""

    prototype: ModuleType
    threads: int = 1

    def plain(self, x: np.ndarray) -> tuple[Call, Call]:
        """Return both partitions without noise."""
        ours = _on(plain_partition, x, self.threads)
        stage = self.prototype.Stage1
        return ours, lambda: stage(x, 1 / PRICE, noise=None).run(self.threads)

    def noisy(self, x: np.ndarray) -> tuple[Call, Call]:
        """Return ours with exact noise, the prototype with its floating noise."""
        scales = LeastCost().noise(x.size, EPSILON).scales
        ours = _on(noisy_partition, x, self.threads)
        stage = self.prototype.Stage1
        return ours, lambda: stage(
            x, 1 / PRICE, noise="exp", scale=lambda level: scales[level], rng="secure"
        ).run(self.threads)


def stage1_tasks(both: Partitions, cells: int) -> list[Task]:
    """Return partitions of all kinds of data, first without noise."""
    tasks = []
    for kind in ("dense", "sparse", "distinct", "fractions"):
        x = counts(kind, cells)
        ours, theirs = both.plain(x)
        same_cost(x, ours(), theirs())
        tasks.append(Task(f"partition, {kind}", ours, theirs, 1.25))
    for kind in ("dense", "sparse", "distinct", "whole floats"):
        pair = both.noisy(counts(kind, cells))
        tasks.append(Task(f"noisy partition, {kind}", *pair, 1.6))
    return tasks


def _on(function: Callable[..., object], *arguments: object) -> Call:
    return lambda: function(*arguments)


def same_cost(x: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Stop if one partition is dearer, beyond the rounding of costs to the grid."""
    step, _ = partition_grid(x.size, PRICE)
    totals = [
        partition_cost(x, boundaries) + PRICE * (boundaries.size - 1)
        for boundaries in (ours, np.asarray(theirs, dtype=np.int64))
    ]
    slack = step * max(ours.size, len(theirs)) + 1e-9 * totals[1]
    if abs(totals[0] - totals[1]) > slack:
        raise SystemExit(f"the partitions differ in cost: {totals}")


def stage2_tasks(module: ModuleType, faster: ModuleType) -> list[Task]:
    """Return greedy weights of small and large trees over unsorted ranges."""
    tasks = []
    for leaves, queries in ((4096, 2000), (2**20, 200_000)):
        generator = np.random.default_rng(leaves)
        ends = np.sort(generator.integers(0, leaves, size=(2, queries)), axis=0)
        part = generator.random((2, queries))
        part[1] = np.where(ends[0] == ends[1], part[0], part[1])
        given = (ends[0], part[0], ends[1], part[1])

        def ours(given: tuple = given, leaves: int = leaves) -> float:
            return greedy_scaling_fractions(*given, None, leaves, 2).objective

        def theirs(given: tuple = given, leaves: int = leaves) -> float:
            return _prototype_greedy(module, faster, given, leaves)

        if not np.isclose(ours(), theirs(), rtol=1e-9):
            raise SystemExit(f"the predicted errors differ: {ours()}, {theirs()}")
        name = f"greedy weights, {leaves:,} leaves, {queries:,} ranges"
        tasks.append(Task(name, ours, theirs, 1.5))
    return tasks


def _prototype_greedy(
    module: ModuleType, faster: ModuleType, given: tuple, leaves: int
) -> float:
    """Sort and run, as the faster prototype does after its look-up of buckets."""
    first, head, last, tail = given
    bits = max(1, int(first.size - 1).bit_length())
    keys = (first << bits) | np.arange(first.size)
    keys.sort()
    order = keys & ((1 << bits) - 1)
    queries = (
        first[order].astype(np.int32),
        head[order],
        last[order].astype(np.int32),
        tail[order],
    )
    sizes, offsets = module.make_tree(leaves, 2)
    decays = module.decay(len(sizes) - 1, 2)
    breaks = module._bp_count(module.breaks_ranges(leaves, *queries))
    ones = np.ones(first.size)
    result = faster._run(2, sizes, offsets, *queries, ones, decays, False, breaks)
    return float(result[2])


def noise_tasks(module: ModuleType, keys: ModuleType) -> list[Task]:
    """Return draws with one scale and with a scale each, secure, on one thread."""
    above = np.random.default_rng(1).integers(1, 1000, size=DRAWS)
    below = np.full(DRAWS, 3)

    def geometric() -> None:
        reader = keys.Reader(keys.subkey(keys.release_key(), b"words"), 0)
        drawn = np.empty(DRAWS, dtype=np.int64)
        undecided = np.empty(keys.CH, dtype=np.int64)
        for start in range(0, DRAWS, keys.CH):
            part = drawn[start : start + keys.CH]
            module.k_geo(reader.next(part.size), 40 / 3, module.TAB, part, undecided, 0)

    def rates(numerators: object, denominators: object) -> Call:
        def draw() -> None:
            module.sample(module.Plan(numerators, denominators), DRAWS)

        return draw

    def laplace(numerators: int | np.ndarray, denominators: int | np.ndarray) -> Call:
        return lambda: Randomness().laplace(
            numerators, denominators, size=DRAWS, threads=1
        )

    shared = laplace(40, 3), rates(40, 3)
    own = laplace(above, below), rates(above, below)
    one_sided = lambda: Randomness().geometric(40, 3, size=DRAWS, threads=1)  # noqa: E731
    return [
        Task("Laplace draws, one scale", *shared, work=DRAWS),
        Task("Laplace draws, own scales", *own, work=DRAWS),
        Task("geometric draws, one scale", one_sided, geometric, work=DRAWS),
    ]


def growth_tasks(both: Partitions, largest: int) -> list[Task]:
    """Return partitions of growing size; the work is the number of windows."""
    tasks = []
    for family, kind in GROWING:
        for power in range(16, largest + 1, 2):
            cells = 2**power
            x = counts(kind, cells)
            pair = both.plain(x) if family == kind else both.noisy(x)
            windows = sum(cells - 2**level + 1 for level in range(power + 1))
            name = f"partition, {family}, 2^{power}"
            tasks.append(Task(name, *pair, work=windows, family=family))
    return tasks


def report(tasks: list[Task], runs: int) -> None:
    """Measure the tasks and write a line for each."""
    smallest: dict[str, list[float]] = {}
    for task, times in zip(tasks, best_times(tasks, runs), strict=True):
        line = f"{task.name:50} ours {times[0] * 1e3:9.2f} ms"
        line += f"   prototype {times[1] * 1e3:9.2f} ms"
        line += f"   ratio {times[0] / times[1]:5.2f}"
        if task.at_most is not None:
            line += f"   (to reach: {task.at_most})"
        if task.work is not None:
            each = times[0] / task.work
            line += f"   {each * 1e9:6.2f} ns each, {1e-6 / each:6.1f} M/s"
        if task.family and task.work:
            per_window = [one / task.work for one in times]
            first = smallest.setdefault(task.family, per_window)
            ours, theirs = (a / b for a, b in zip(per_window, first, strict=True))
            line += f"   of 2^16: {ours:.2f}, prototype {theirs:.2f} (to reach: 1.3)"
        sys.stdout.write(line + "\n")


def main() -> None:
    """Read the arguments and run what they ask for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("prototypes", type=Path)
    parts = ("stage1", "stage2", "noise", "growth")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--threads", type=int, default=1, help="for the partitions")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cells", type=int, default=2**20, help="for stage 1")
    parser.add_argument("--largest", type=int, default=22, help="power, for growth")
    chosen = parser.parse_args()
    for folder in ("stage1", "stage2", "noise"):
        if not (chosen.prototypes / folder).is_dir():
            parser.error(f"{chosen.prototypes} has no folder {folder}")
        sys.path.insert(0, str(chosen.prototypes / folder))
    load = importlib.import_module
    for part in chosen.only:
        sys.stdout.write(f"--- {part}\n")
        if part == "stage1":
            both = Partitions(load("stage1"), chosen.threads)
            tasks = stage1_tasks(both, chosen.cells)
        elif part == "stage2":
            tasks = stage2_tasks(load("tree2"), load("fast1b"))
        elif part == "noise":
            tasks = noise_tasks(load("dlap"), load("keystream"))
        else:
            tasks = growth_tasks(Partitions(load("stage1")), chosen.largest)
        report(tasks, chosen.runs)


if __name__ == "__main__":
    main()
