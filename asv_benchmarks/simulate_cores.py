"""How releases would go on 4, 8 and 16 cores: jobs measured, their schedule simulated.

    python asv_benchmarks/simulate_cores.py                 print the table
    python asv_benchmarks/simulate_cores.py --record        keep it for the page
    python asv_benchmarks/simulate_cores.py --powers 16     fewer cells, in seconds

A release is run as if the process had so many cores, in one thread. Every job that it
would have given to others is run where it is handed out, and its CPU time is noted:

    main    |---a---|             |--b--|              a, b: CPU time outside of jobs
    jobs            1 2 3 4 5 6          7 8 9         durations of the jobs
    cores   |---a---|1|3|5|       |--b--|7|9|          as two cores would do it
                    |2|4|6|             |8|

The jobs of a list go, in their order, to the core that is free first (list scheduling);
those of blocks also wait for what they need. What this leaves out: threads that wait
for the interpreter or for memory, and the time to start them.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support import machine
from blowfish_fast._support.machine import CLOSE
from blowfish_fast.measure.selectors.partitions import LeastCost

RECORDED = Path(__file__).resolve().parent / "recorded"
CORES = (1, 2, 4, 8, 16)


class Listed(NamedTuple):
    """Jobs that wait for nothing but a core."""

    threads: int
    seconds: list[float]

    def makespan(self, cores: int) -> float:
        """Return when the last job ends, each going to the core that is free first."""
        free = [0.0] * min(cores, self.threads)
        for seconds in self.seconds:
            heapq.heapreplace(free, free[0] + seconds)
        return max(free)


class Blocked(NamedTuple):
    """Jobs of `machine.run_blocks`, which wait for buffers, states and each other."""

    threads: int
    blocks: int
    seconds: dict[tuple[int, int], float]
    in_order: list[bool]

    def makespan(self, cores: int) -> float:
        """Return when the last block is closed, by the rules of `run_blocks`."""
        jobs = len(self.in_order)
        waiting = list(machine._tasks(self.blocks, jobs, self.threads))
        buffers = machine.buffers_needed(self.blocks, self.threads)
        ends: dict[tuple[int, int], float] = {}
        free = [0.0] * min(cores, self.threads)

        def may_start(block: int, job: int, now: float) -> bool:
            def is_over(*task: int) -> bool:
                return task[0] < 0 or ends.get(task, float("inf")) <= now

            if job == CLOSE:
                every = all(is_over(block, one) for one in range(jobs))
                return every and is_over(block - 1, CLOSE)
            before = not self.in_order[job] or is_over(block - 1, job)
            return before and is_over(block - buffers, CLOSE)

        while waiting:
            now = heapq.heappop(free)
            # Whatever lies beyond the buffers cannot start.
            near = waiting[: (jobs + 1) * (buffers + 1)]
            task = next((one for one in near if may_start(*one, now)), None)
            if task is None:
                later = min(end for end in ends.values() if end > now)
                heapq.heappush(free, later)
                continue
            waiting.remove(task)
            ends[task] = now + self.seconds[task]
            heapq.heappush(free, ends[task])
        return max(ends.values())


class Recorder:
    """Stands in for threads: runs each job at once, and notes how long it takes."""

    def __init__(self) -> None:
        self.stages: list[Listed | Blocked] = []

    def pool(self, threads: int) -> RecordedPool:
        """Stand in for `ThreadPoolExecutor`."""
        return RecordedPool(self, threads)

    def run_blocks(
        self,
        blocks: int,
        jobs: list[Callable[[int, Any], None]],
        close: Callable[[int, Any], None],
        *,
        threads: int,
        make_room: Callable[[], Any],
        in_order: list[bool] | None = None,
    ) -> None:
        """Stand in for `machine.run_blocks`."""
        room = make_room()
        seconds = {}
        for block in range(blocks):
            for number, job in enumerate([*jobs, close]):
                began = time.thread_time()
                job(block, room)
                task = block, number if number < len(jobs) else CLOSE
                seconds[task] = time.thread_time() - began
        carried = in_order or [True] * len(jobs)
        self.stages.append(Blocked(threads, blocks, seconds, carried))

    def seconds(self, cpu: float, cores: int) -> float:
        """Return how long a release of so much CPU time takes on so many cores."""
        alone = cpu
        for stage in self.stages:
            jobs = stage.seconds
            alone -= sum(jobs.values() if isinstance(jobs, dict) else jobs)
        return alone + sum(stage.makespan(cores) for stage in self.stages)


class RecordedPool:
    """A pool of threads without threads."""

    def __init__(self, recorder: Recorder, threads: int) -> None:
        self._recorder, self._threads = recorder, threads

    def __enter__(self) -> RecordedPool:
        return self

    def __exit__(self, *_failure: object) -> None:
        pass

    def map(self, work: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        """Run a list of jobs, and return what they return."""
        results, seconds = [], []
        for one in zip(*arguments, strict=False):
            began = time.thread_time()
            results.append(work(*one))
            seconds.append(time.thread_time() - began)
        if seconds:
            self._recorder.stages.append(Listed(self._threads, seconds))
        return iter(results)


@contextmanager
def recorded(cores: int) -> Iterator[Recorder]:
    """Let the library believe in so many cores, and note its jobs."""
    recorder = Recorder()
    changed: list[tuple[Any, str, Any]] = []

    def change(owner: Any, name: str, value: Any) -> None:
        changed.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    for name, module in list(sys.modules.items()):
        if name.startswith("blowfish_fast."):
            if "ThreadPoolExecutor" in vars(module):
                change(module, "ThreadPoolExecutor", recorder.pool)
            if "run_blocks" in vars(module) and module is not machine:
                change(module, "run_blocks", recorder.run_blocks)
    change(os, "sched_getaffinity", lambda _process: set(range(cores)))
    try:
        yield recorder
    finally:
        for owner, name, value in reversed(changed):
            setattr(owner, name, value)


def cases(power: int) -> dict[str, Callable[[], Any]]:
    """Return releases on 2^power cells, by what the page calls them."""
    cells = 2**power
    generator = np.random.default_rng(1)
    steps = generator.poisson(np.repeat(generator.gamma(1, 20, cells // 64), 64))
    rough = generator.integers(0, 2000, cells)
    line = bf.Domain(cells)
    policy = bf.policies.AddRemove(line)
    ranges = bf.workloads.Ranges.random(line, 2000, rng=1)
    side = 2 ** (power // 2)
    grid = bf.Domain((side, cells // side))
    boxes = bf.workloads.Rectangles.random(grid, 2000, rng=1)
    published = LeastCost()
    dawa = bf.Dawa(policy, ranges, epsilon="0.1")
    single = bf.Laplace(policy, bf.workloads.Identity(line), epsilon="0.1")
    chosen = bf.Dawa(policy, ranges, epsilon="0.1", partition=published)
    on_map = bf.Dawa(bf.policies.AddRemove(grid), boxes, epsilon="0.1")
    return {
        "`Laplace`": lambda: single.release(steps),
        "`Dawa`, steps": lambda: dawa.release(steps),
        "`Dawa`, rough counts": lambda: dawa.release(rough),
        "`Dawa`, `LeastCost`": lambda: chosen.release(steps),
        "`Dawa` on a map": lambda: on_map.release(steps.reshape(grid.shape)),
    }


def simulate(
    power: int, rounds: int, names: list[str] | None = None
) -> dict[str, dict[str, float]]:
    """Return the least simulated seconds of each release, by cores."""
    found: dict[str, dict[str, float]] = {}
    for name, release in cases(power).items():
        if names and not any(one in name for one in names):
            continue
        release()
        best = dict.fromkeys(map(str, CORES), float("inf"))
        for _ in range(rounds):
            for cores in CORES:
                with recorded(cores) as recorder:
                    began = time.thread_time()
                    release()
                    cpu = time.thread_time() - began
                seconds = recorder.seconds(cpu, cores)
                best[str(cores)] = min(best[str(cores)], float(f"{seconds:.3g}"))
        found[name] = best
    return found


def main(words: list[str]) -> int:
    """Print or record the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--powers", type=int, nargs="+", default=[20])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", help="parts of the names of releases")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(words)
    kept = RECORDED / platform.machine() / "cores.json"
    table = json.loads(kept.read_text()) if kept.exists() else {}
    for power in options.powers:
        found = simulate(power, options.rounds, options.only)
        table[str(power)] = table.get(str(power), {}) | found
        for name, seconds in found.items():
            each = "  ".join(f"{cores}: {one:.3g} s" for cores, one in seconds.items())
            sys.stdout.write(f"2^{power} cells, {name:24} {each}\n")
    if options.record:
        kept.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
