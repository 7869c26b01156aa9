"""Ranges of 2^32 to 2^60 cells and rectangles of maps, beside coarser cells.

    python -m experiments wide --trials 3       docs/data/wide/errors.csv, costs.csv

Records are generated: addresses of networks of uneven size, moments of two years to the
nanosecond, metres of towns along streets. Half of the queries lie around records, sides
and lengths are spread over many doublings. What is told is the mean absolute error at
epsilon 0.1 and one record more or less, how many intervals of 95 % miss the truth, and
what a release takes: CPU seconds, and bytes for each filled cell beside the data. Each
kind is generated several times, and released several times each.

The queries follow the records so that short ones have something to find. That is for
measuring alone: a workload is public, and nobody may take it from the data.
"""

from __future__ import annotations

import csv
import math
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.typing import FloatArray, IntArray

RECORDS = 10**6
QUERIES = 2000
EPSILON = Fraction(1, 10)
COARSE_BITS = (16, 20)
"""Bits of the coarser cells that are compared."""
MAP_BITS = 30
"""Bits of a side of the map."""
FILLED = 10**7
"""Filled cells of the releases that are timed."""
MANY_RANGES = 10**4
"""Ranges of the release that is timed."""
SETS = 4
"""How often each kind of records is generated."""
SAVED_EPSILON = Fraction(88, 1000)
"""At which the timed release has about 10^5 buckets."""
DATA = Path("docs/data/wide")
"""Where the record is kept."""
WANTED = {"addresses": 0.2}
"""The largest ratio that was asked for, where it is not that of all others."""
WANTED_ELSEWHERE = 0.7


class WideLine(NamedTuple):
    """What was measured of one kind of records.

    Attributes
    ----------
    records : str
        Which.
    cells : str
        How many cells there are.
    errors : dict
        The mean absolute error of each release, by method.
    missed : list of float
        The share of intervals of 95 % that miss the truth, of each release of the first
        method.
    """

    records: str
    cells: str
    errors: dict[str, list[float]]
    missed: list[float]

    def error(self, method: str) -> float:
        """Return the mean error of a method over all releases."""
        return float(np.mean(self.errors[method]))

    @property
    def coarse(self) -> str:
        """The better of the methods of coarser cells."""
        return min((name for name in self.errors if "coarse" in name), key=self.error)

    @property
    def ratio(self) -> tuple[float, float]:
        """The error of the first method over that of coarser cells, and its error."""
        first, coarse = next(iter(self.errors.values())), self.errors[self.coarse]
        each = np.divide(first, coarse)
        return float(np.sum(first) / np.sum(coarse)), _standard_error(each)

    @property
    def wanted(self) -> float:
        """The largest ratio that was asked for."""
        return WANTED.get(self.records, WANTED_ELSEWHERE)

    def __str__(self) -> str:
        told = ", ".join(f"{name} {self.error(name):.0f}" for name in self.errors)
        ratio, error = self.ratio
        return (
            f"{self.records}, {self.cells}, {len(self.missed)} releases: {told}; "
            f"{ratio:.2f} ± {error:.2f} of the better of the coarse ones; "
            f"{np.mean(self.missed):.2%} missed"
        )

    def row(self) -> dict[str, str]:
        """Return the line of the record."""
        ratio, error = self.ratio
        first, second, *coarse = self.errors
        return {
            "records": self.records,
            "cells": self.cells,
            "releases": str(len(self.missed)),
            "descent": f"{self.error(first):.1f}",
            "unevenness": f"{self.error(second):.1f}",
            **{
                f"coarse_{bits}": f"{self.error(name):.1f}"
                for bits, name in zip(COARSE_BITS, coarse, strict=True)
            },
            "ratio": f"{ratio:.3f}",
            "ratio_error": f"{error:.3f}",
            "wanted": f"{self.wanted:g}",
            "missed": f"{np.mean(self.missed):.4f}",
            "missed_error": f"{_standard_error(self.missed):.4f}",
        }


def _standard_error(each: Any) -> float:
    size = len(each)
    return float(np.std(each, ddof=1)) / math.sqrt(size) if size > 1 else math.nan


class CostLine(NamedTuple):
    """What a release takes, or a public number of it.

    Attributes
    ----------
    what : str
        The release.
    amount : float
        How much of the unit.
    unit : str
        What is counted.
    wanted : float
        What it was to be at most.
    """

    what: str
    amount: float
    unit: str
    wanted: float

    def __str__(self) -> str:
        return f"{self.what}: {self.amount:.3g} {self.unit}, at most {self.wanted:g}"

    def row(self) -> dict[str, str]:
        """Return the line of the record."""
        return {
            "what": self.what,
            "amount": f"{self.amount:.3g}",
            "unit": self.unit,
            "wanted": f"{self.wanted:g}",
        }


def addresses(rng: np.random.Generator, size: int) -> IntArray:
    """Return addresses of 32 bits: few networks hold most of the hosts."""
    networks = rng.choice(2**16, 3000, replace=False)
    weights = 1.0 / np.arange(1, 3001) ** 1.1
    network = rng.choice(networks, size, p=weights / weights.sum())
    part = np.minimum(rng.zipf(1.3, size) - 1, 255) * 37 % 256
    host = np.minimum(rng.geometric(0.03, size), 254)
    return (network.astype(np.int64) << 16) | (part << 8) | host


def moments(rng: np.random.Generator, size: int) -> IntArray:
    """Return nanoseconds of 730 days, by day, with a tenth in twenty bursts."""
    day = 86_400 * 10**9
    start = 17_000 * day % 2**60
    hour = np.clip(rng.normal(13.0, 3.0, size), 0.0, 23.999) / 24.0
    places = rng.integers(0, 730, size) * day + (hour * day).astype(np.int64)
    bursts = rng.integers(0, 730 * day, 20)
    often = size // 10
    near = rng.exponential(30e9, often).astype(np.int64)
    places[:often] = bursts[rng.integers(0, 20, often)] + near
    return start + places + rng.integers(0, 10**9, size)


def metres(rng: np.random.Generator, size: int, bits: int) -> IntArray:
    """Return places of a map of 2^bits metres a side: towns, half along streets."""
    towns, side = 400, 2**bits
    weights = 1.0 / np.arange(1, towns + 1)
    town = rng.choice(towns, size, p=weights / weights.sum())
    spread = (300.0 + 6000.0 * weights[town])[:, None] * side / 2**20
    places = (
        rng.integers(0, side, (towns, 2))[town] + rng.normal(size=(size, 2)) * spread
    )
    street = rng.random(size) < 0.5
    block = 100.0 * side / 2**20
    places[street, 0] = np.round(places[street, 0] / block) * block
    inside: IntArray = np.clip(places, 0, side - 1).astype(np.int64)
    return inside


def ranges_around(
    rng: np.random.Generator, records: IntArray, bits: int, queries: int
) -> tuple[IntArray, IntArray]:
    """Return ranges of 2^bits cells, every second one around a record.

    Parameters
    ----------
    rng : numpy Generator
        What they are drawn from.
    records : ndarray of int64
        Cells of records.
    bits : int
        Of the number of cells.
    queries : int
        How many ranges.

    Returns
    -------
    starts, ends : ndarray of int64, shape (queries,)
        Lengths are spread over up to 35 doublings.
    """
    lengths = (2.0 ** rng.uniform(max(bits - 36, 2), bits - 1, queries)).astype(int)
    centres = rng.integers(0, 2**bits, queries)
    centres[::2] = rng.choice(records, (queries + 1) // 2)
    starts = np.maximum(centres - (rng.random(queries) * lengths).astype(int), 0)
    return starts, np.minimum(starts + lengths, 2**bits)


def coarse_answers(
    records: IntArray, starts: IntArray, ends: IntArray, bits: int, coarse: int
) -> Callable[[int], FloatArray]:
    """Return what answers ranges from a release of coarser cells, given a seed.

    Parameters
    ----------
    records : ndarray of int64
        Cells of records.
    starts, ends : ndarray of int64
        The ranges.
    bits : int
        Of the number of cells.
    coarse : int
        Bits of the coarser cells.

    Returns
    -------
    callable
        From a seed to answers; parts of a coarse cell count in proportion.
    """
    shift = bits - coarse
    line = bf.Domain(2**coarse)
    counts = np.bincount(records >> shift, minlength=2**coarse)
    last = -(-ends >> shift)
    asked = bf.workloads.Ranges(line, starts >> shift, np.maximum(last, 1))
    mechanism = bf.Dawa(bf.policies.AddRemove(line), asked, epsilon=EPSILON)

    def answer(seed: int) -> FloatArray:
        estimate = mechanism.release(counts, rng=seed).estimate
        running = np.concatenate([[0.0], np.cumsum(estimate)])

        def below(places: IntArray) -> FloatArray:
            cell = np.minimum(places >> shift, 2**coarse - 1)
            part = (places - (cell << shift)) / 2.0**shift
            return np.asarray(running[cell] + part * estimate[cell])

        return below(ends) - below(starts)

    return answer


def line_report(kind: str, trials: int) -> WideLine:
    """Compare ways to answer ranges of one kind of records.

    Parameters
    ----------
    kind : {"addresses", "moments", "metres"}
        Which records.
    trials : int
        Releases of each method, of each set of records.

    Returns
    -------
    WideLine
        The errors.
    """
    bits = {"addresses": 32, "moments": 60, "metres": 40}[kind]
    sets = (_line_set(kind, bits, trials, seed) for seed in range(SETS))
    return _joined(kind, f"2^{bits} cells", sets)


Found = tuple[dict[str, list[float]], list[float]]
"""Errors of each release by method, and shares of intervals that miss."""


def _joined(records: str, cells: str, sets: Iterable[Found]) -> WideLine:
    errors, missed = dict[str, list[float]](), list[float]()
    for found, share in sets:
        missed += share
        for name, each in found.items():
            errors.setdefault(name, []).extend(each)
    return WideLine(records, cells, errors, missed)


def _line_set(kind: str, bits: int, trials: int, seed: int) -> Found:
    rng = np.random.default_rng(seed)
    if kind == "metres":
        from blowfish_fast.data.wide.map_curve import MapCurve

        places = metres(rng, RECORDS, 20)
        records = MapCurve(2**20, 2**20).numbers(*places.T)
    else:
        records = {"addresses": addresses, "moments": moments}[kind](rng, RECORDS)
    ordered = np.sort(records)
    starts, ends = ranges_around(rng, ordered, bits, QUERIES)
    true = np.searchsorted(ordered, ends) - np.searchsorted(ordered, starts)
    line: Any = bf.WideDomain(2**bits, names="place")
    data = bf.SparseHistogram.from_records(line, {"place": records})
    asked: Any = bf.workloads.Ranges(line, starts, ends)
    errors, missed = wide_errors(line, asked, data, true, trials)
    for coarse in COARSE_BITS:
        answer = coarse_answers(ordered, starts, ends, bits, coarse)
        errors[f"2^{coarse} coarse cells"] = [
            float(np.abs(answer(number) - true).mean()) for number in range(trials)
        ]
    return errors, missed


def wide_errors(
    domain: Any, asked: Any, data: Any, true: IntArray, trials: int
) -> Found:
    """Return the errors of both descents, and how often intervals of the first miss.

    Parameters
    ----------
    domain : WideDomain
        The cells.
    asked : Ranges or Rectangles
        The queries.
    data : SparseHistogram
        The records.
    true : ndarray of int64
        The true answers.
    trials : int
        Releases of each.

    Returns
    -------
    errors : dict
        Of each release, by score.
    missed : list of float
        The share of intervals of 95 % without the truth, of each release.
    """
    errors, missed = dict[str, list[float]](), list[float]()
    policy = bf.policies.AddRemove(domain)
    for score in ("records", "unevenness"):
        partition = bf.partitions.Descent(score=score)
        mechanism = bf.Dawa(policy, asked, epsilon=EPSILON, partition=partition)
        off = []
        for seed in range(trials):
            release: Any = mechanism.release(data, rng=seed)
            off.append(float(np.abs(release.answer(asked) - true).mean()))
            if score == "records":
                low, high = release.intervals(asked, of="truth").T
                missed.append(float(((true < low) | (true > high)).mean()))
        errors[f"descent by {score}"] = off
    return errors, missed


def map_report(trials: int) -> WideLine:
    """Compare rectangles of a wide map with those of coarser cells.

    Parameters
    ----------
    trials : int
        Releases of each method, of each set of records.

    Returns
    -------
    WideLine
        The errors.
    """
    sets = (_map_set(trials, seed) for seed in range(SETS))
    return _joined("a map", f"2^{MAP_BITS} x 2^{MAP_BITS} cells", sets)


def _map_set(trials: int, seed: int) -> Found:
    rng, side = np.random.default_rng(seed), 2**MAP_BITS
    places = metres(rng, RECORDS, MAP_BITS)
    queries = QUERIES // 4
    sides = (2.0 ** rng.uniform(MAP_BITS - 13, MAP_BITS - 1, (queries, 2))).astype(int)
    centres = rng.integers(0, side, (queries, 2))
    centres[::2] = places[rng.integers(0, len(places), (queries + 1) // 2)]
    lows = np.maximum(centres - sides // 2, 0)
    highs = np.minimum(lows + sides, side)
    true = np.array(
        [
            ((places >= low) & (places < high)).all(axis=1).sum()
            for low, high in zip(lows, highs, strict=True)
        ]
    )
    names = ("east", "north")
    wide: Any = bf.WideDomain((side, side), names=names)
    data = bf.SparseHistogram.from_records(
        wide, dict(zip(names, places.T, strict=True))
    )
    asked: Any = bf.workloads.Rectangles(wide, lows, highs)
    errors, missed = wide_errors(wide, asked, data, true, trials)
    for bits in COARSE_BITS:
        half = bits // 2
        side, grid = 2**half, bf.Domain((2**half, 2**half))
        rows, columns = (places >> (MAP_BITS - half)).T
        counts = np.bincount(rows * side + columns, minlength=side**2)
        shift = 2.0 ** (MAP_BITS - half)
        coarse = bf.workloads.Rectangles(grid, lows / shift, highs / shift)
        mechanism = bf.Dawa(bf.policies.AddRemove(grid), coarse, epsilon=EPSILON)
        errors[f"{side} x {side} coarse cells"] = [
            float(
                np.abs(
                    mechanism.release(counts.reshape(side, side), rng=one).answer(
                        coarse
                    )
                    - true
                ).mean()
            )
            for one in range(trials)
        ]
    return errors, missed


def seconds_of(action: Callable[[], Any], trials: int) -> float:
    """Return the least CPU time of some runs, after one that is not timed.

    Parameters
    ----------
    action : callable
        What is run.
    trials : int
        How often it is timed.

    Returns
    -------
    float
        Seconds.
    """
    action()
    spent = []
    for _ in range(trials):
        begin = time.process_time()
        action()
        spent.append(time.process_time() - begin)
    return min(spent)


def bytes_of(action: Callable[[], Any]) -> int:
    """Return the most bytes that a run holds at a time."""
    tracemalloc.start()
    action()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def cost_report(trials: int, seed: int = 0) -> Iterator[CostLine]:
    """Time a list and a release of ranges on 2^60 cells; tell thresholds.

    Parameters
    ----------
    trials : int
        How often each is timed.
    seed : int
        Of the records.

    Yields
    ------
    CostLine
        What each took.
    """
    rng = np.random.default_rng(seed)
    line: Any = bf.WideDomain(2**60, names="place")
    policy = bf.policies.AddRemove(line)
    for epsilon, highest in (("1", 42), ("0.1", 410)):
        least = bf.SparseLaplace(policy, epsilon=epsilon).threshold
        what = f"threshold of a list at epsilon {epsilon}, one false cell in 2^60"
        yield CostLine(what, float(least), "records", highest)
    clusters = rng.integers(0, 2**60 - 2**40, 10_000)
    near = clusters[rng.integers(0, 10_000, FILLED)] + rng.integers(0, 2**40, FILLED)
    data = bf.SparseHistogram.from_records(line, {"place": near})
    filled = data.keys.size
    starts, ends = ranges_around(rng, near, 60, MANY_RANGES)
    asked: Any = bf.workloads.Ranges(line, starts, ends)
    # Not the default: with 1000 false cells the empty ones take their time, too.
    lister = bf.SparseLaplace(policy, epsilon=EPSILON, false_cells=1000)
    dawa = bf.Dawa(policy, asked, epsilon=EPSILON)
    for name, mechanism, wanted in (
        ("list", lister, 0.3),
        (f"{MANY_RANGES:,} ranges", dawa, 1.0),
    ):
        what = f"{name} of {filled:,} filled cells of 2^60"

        def release(mechanism: Any = mechanism) -> None:
            mechanism.release(data, rng=1)

        yield CostLine(what, seconds_of(release, trials), "CPU s", wanted)
        each = bytes_of(release) / filled
        yield CostLine(what, each, "bytes for each filled cell", 64)
    yield from _saving(bf.Dawa(policy, asked, epsilon=SAVED_EPSILON), data, trials)


def _saving(mechanism: Any, data: Any, trials: int) -> Iterator[CostLine]:
    """Yield how long a release is written and read; files of seeded ones warn."""
    release = mechanism.release(data)
    buckets = release.details["buckets"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ranges.blowfish"
        for name, action in (
            ("saving", lambda: release.save(path)),
            ("loading", lambda: bf.Release.load(path)),
        ):
            spent = 1000 * seconds_of(action, trials)
            yield CostLine(f"{name} {buckets:,} buckets", spent, "CPU ms", 50)


def wide_report(trials: int) -> Iterator[WideLine | CostLine]:
    """Yield what is told of wide domains: errors first, then times and memory.

    Parameters
    ----------
    trials : int
        Releases of each method, of each set of records.

    Yields
    ------
    WideLine or CostLine
        A line each.
    """
    for kind in ("addresses", "moments", "metres"):
        yield line_report(kind, trials)
    yield map_report(trials)
    yield from cost_report(trials)


def write_wide_report(
    trials: int, folder: Path = DATA
) -> Iterator[WideLine | CostLine]:
    """Measure wide domains, and keep the record: `errors.csv` and `costs.csv`.

    Parameters
    ----------
    trials : int
        Releases of each method, of each set of records.
    folder : Path
        Where the two files are written, once everything is measured.

    Yields
    ------
    WideLine or CostLine
        A line each, as it is measured.
    """
    lines = list[WideLine | CostLine]()
    for line in wide_report(trials):
        lines.append(line)
        yield line
    folder.mkdir(parents=True, exist_ok=True)
    for name, kind in (("errors", WideLine), ("costs", CostLine)):
        rows = [line.row() for line in lines if isinstance(line, kind)]
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
