"""Run `Dawa` once on very many cells: time, peak of memory, and what was declared.

    python asv_benchmarks/measure_large.py                     2^22 cells, a minute
    python asv_benchmarks/measure_large.py --power 26 --record 2^26, for the page
    python asv_benchmarks/measure_large.py --power 24 --kind map grid --record
    python asv_benchmarks/measure_large.py --power 26 --kind rectangles towns --record

Two sets of counts, 2000 ranges, `AddRemove`: steps of 64 cells at epsilon 0.1, where
buckets are few, and counts without two neighbours alike at epsilon 4, where every cell
becomes a bucket; that is what is declared. A *map* has 2000 rectangles and 30 records a
cell at epsilon 40, where every cell becomes a bucket too; *grid* is the adaptive grid,
which `Dawa` may choose there, with a box for every cell on both of its levels.
*Rectangles* are asked for by name (``partition=DyadicRectangles()``), so that no test
may choose the grid, on the counts of *map*; *towns* are the same on a usual map, twelve
towns of many records in an empty country, at epsilon 0.1. Linux only: the peak is that
of ``/proc``.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import blowfish_fast as bf

RECORDED = Path(__file__).resolve().parent / "recorded"
MAPS = ("map", "grid", "rectangles", "towns")


def held(field: str) -> int:
    """Return a number of bytes that the kernel notes of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise ValueError(field)


def on_map(power: int, kind: str, generator: np.random.Generator) -> tuple[Any, Any]:
    """Return what releases a map of 2^power cells, and its counts."""
    side = 2 ** (power // 2)
    grid = bf.Domain((side, 2**power // side))
    asked = bf.workloads.Rectangles.random(grid, 2000, rng=1)
    policy = bf.policies.AddRemove(grid)
    cut = bf.partitions.DyadicRectangles(query_cells=asked.mean_cells())
    if kind == "towns":
        dawa = bf.Dawa(policy, asked, epsilon="0.1", partition=cut)
        return dawa, towns(grid.shape, generator)
    counts = generator.poisson(30, grid.shape)
    if kind == "rectangles":
        return bf.Dawa(policy, asked, epsilon=40, partition=cut), counts
    if kind == "map":
        return bf.Dawa(policy, asked, epsilon=40), counts
    return bf.AdaptiveGrid(policy, asked, epsilon=40, records=10**9), counts


def towns(shape: tuple[int, ...], generator: np.random.Generator) -> Any:
    """Return a map of twelve towns, with a quarter as many records as cells."""
    counts = np.zeros(shape, dtype=np.int64)
    for _ in range(12):
        centre = generator.random(2) * shape
        spread = min(shape) * generator.uniform(0.01, 0.1)
        offsets = generator.normal(size=(counts.size // 48, 2)) * spread
        places = np.clip(centre + offsets, 0, np.array(shape) - 1).astype(np.int64)
        np.add.at(counts, (places[:, 0], places[:, 1]), 1)
    return counts


def measured(power: int, kind: str) -> dict[str, Any]:
    """Release 2^power counts once, and return what it took."""
    cells = 2**power
    generator = np.random.default_rng(1)
    if kind in MAPS:
        mechanism, counts = on_map(power, kind, generator)
    else:
        if kind == "steps":
            heights = generator.gamma(1, 20, cells // 64)
            counts = generator.poisson(np.repeat(heights, 64))
        else:
            counts = generator.integers(0, 2**30, cells)
        line = bf.Domain(cells)
        ranges = bf.workloads.Ranges.random(line, 2000, rng=1)
        policy = bf.policies.AddRemove(line)
        epsilon = "0.1" if kind == "steps" else 4
        mechanism = bf.Dawa(policy, ranges, epsilon=epsilon)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before, wall, cpu = held("VmRSS"), time.perf_counter(), time.process_time()
    release = mechanism.release(counts)
    return {
        "buckets": int(release.details["buckets"]),
        "seconds": round(time.perf_counter() - wall, 2),
        "cpu seconds": round(time.process_time() - cpu, 2),
        "peak GiB": round((held("VmHWM") - before) / 2**30, 2),
        "declared GiB": round(mechanism.memory_needed() / 2**30, 2),
    }


def main(words: list[str]) -> int:
    """Measure, print and perhaps record; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--power", type=int, default=22)
    parser.add_argument("--kind", choices=("steps", "rough", *MAPS), nargs="+")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(words)
    for kind in options.kind or ("steps",):
        measured(12, kind)  # compiles
    kept = RECORDED / platform.machine() / "large.json"
    table = json.loads(kept.read_text()) if kept.exists() else {}
    for kind in options.kind or ("steps", "rough"):
        found = measured(options.power, kind)
        sys.stdout.write(f"2^{options.power}, {kind}: {json.dumps(found)}\n")
        sys.stdout.flush()
        table.setdefault(str(options.power), {})[kind] = found
    if options.record:
        kept.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
