"""Single cells after a test for spikes, as by default, beside cells without it.

    python -m experiments spikes --data FOLDER --trials 8     docs/data/cells/spikes.csv
    python -m experiments spikes-time --trials 8         docs/data/cells/spikes_time.csv

Single cells of lines of 4,096 cells, one record more or less, mean absolute error per
cell. *Before* is the same recipe without the test for spikes. The best sibling is the
least of the same cells without buckets, `Hierarchy` with equal and with greedy levels,
and `Privelet`, picked for each line after the fact.

The constants of the test were chosen on the given sets, which come last, and on lines
with other seeds. No constant was chosen on the other sets: spikes, clumps, ranks, waves
and steps that are generated here, words of the standard library of Python in cells that
their letters decide, and the generated sets of ``python -m experiments siblings``. That
rough lines keep their cells in doubt was seen on another draw of the
generated ones.
"""

from __future__ import annotations

import math
import re
import sysconfig
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.typing import FloatArray, IntArray

from .record_files import write_record
from .siblings import CELLS, DEFAULT, EPSILONS, generator_of, methods
from .siblings import GENERATED as SIBLING_SETS

DATA = Path("docs/data/cells/spikes.csv")
TIME_DATA = Path("docs/data/cells/spikes_time.csv")
LONG_CELLS = 2**20
"""Cells of the lines whose releases are timed."""
ANEW, SIBLINGS, GIVEN = "generated anew", "siblings", "chosen on"
GIVEN_SETS = (
    *("adult", "hepth", "income", "medcost", "nettrace", "patent", "searchlogs"),
)
"""Sets of a folder on which the constants were chosen, beside generated ones."""


class SpikesLine(NamedTuple):
    """What was measured of one set at one epsilon.

    Attributes
    ----------
    set : str
        Which.
    kind : str
        "generated anew", "siblings" for the sets of that experiment, or "chosen on".
    epsilon : str
        What a release costs.
    kept : float
        Part of the releases whose test kept single cells.
    default : float
        Mean absolute error of a cell by default.
    before : float
        The same without the test.
    ratio : float
        The first over the second.
    error : float
        Standard error of the ratio, between releases of independent noise.
    sibling : float
        The least of four siblings.
    """

    set: str
    kind: str
    epsilon: str
    kept: float
    default: float
    before: float
    ratio: float
    error: float
    sibling: float

    def __str__(self) -> str:
        return (
            f"{self.set} ({self.kind}), epsilon {self.epsilon}: {self.default:.3g}, "
            f"before {self.before:.3g}, {self.ratio:.3f} ± {self.error:.3f}, best "
            f"sibling {self.sibling:.3g}, single cells {self.kept:.0%}"
        )


class WithoutTest(bf.Dawa):
    """The default as it was before the test for spikes."""

    def _in_spikes(self, private: Any, look: Any, *, rough: bool) -> bool:
        return False


def _spikes(
    rng: np.random.Generator, *, count: int, spread: float, floor: float = 0.0
) -> FloatArray:
    rates = np.full(CELLS, floor)
    rates[rng.choice(CELLS, count, replace=False)] += np.exp(
        rng.normal(0, spread, count)
    )
    return rates


def _clumps(rng: np.random.Generator) -> FloatArray:
    rates = np.zeros(CELLS)
    for _ in range(30):
        start = int(rng.integers(0, CELLS - 60))
        rates[start : start + int(rng.integers(2, 60))] += rng.exponential(1.0)
    return rates


def _ranks(rng: np.random.Generator) -> FloatArray:
    rates: FloatArray = rng.permutation(np.arange(1, CELLS + 1)) ** -0.8
    return rates


def _waves(rng: np.random.Generator) -> FloatArray:
    at = np.arange(CELLS) + rng.integers(CELLS)
    rates: FloatArray = 1.2 + np.sin(at / 210) + 0.1 * np.sin(at / 9)
    return rates


def _half_empty(rng: np.random.Generator) -> FloatArray:
    cuts = np.sort(rng.choice(np.arange(1, CELLS), 24, replace=False))
    heights = rng.exponential(1.0, 25) * (np.arange(25) % 2)
    return np.repeat(heights, np.diff([0, *cuts, CELLS]))


GENERATED: dict[str, tuple[Callable[[np.random.Generator], FloatArray], int]] = {
    "7 equal spikes": (partial(_spikes, count=7, spread=0.0), 25_000),
    "40 equal spikes": (partial(_spikes, count=40, spread=0.0), 100_000),
    "25 spikes": (partial(_spikes, count=25, spread=1.5), 30_000),
    "120 spikes": (partial(_spikes, count=120, spread=1.5), 80_000),
    "300 spikes on a floor": (
        partial(_spikes, count=300, spread=1.0, floor=0.02),
        150_000,
    ),
    "clumps": (_clumps, 20_000),
    "ranks anew": (_ranks, 300_000),
    "waves anew": (_waves, 100_000),
    "half empty": (_half_empty, 70_000),
}


def words() -> IntArray:
    """Return how often words of Python's library occur, in cells by their letters."""
    counts = np.zeros(CELLS, dtype=np.int64)
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        for word in re.findall(rb"[A-Za-z_]{3,}", path.read_bytes()):
            counts[zlib.crc32(word) % CELLS] += 1
    return counts


def measured_sets(data: Path | None) -> Iterator[tuple[str, str, IntArray]]:
    """Yield name, kind and counts of every set.

    Parameters
    ----------
    data : Path, optional
        A folder with the given lines in ``1d``.

    Yields
    ------
    tuple[str, str, ndarray of int64]
        A set each.
    """
    for name, (rates_of, records) in GENERATED.items():
        rng = generator_of("judged spikes", name)
        rates = rates_of(rng)
        yield name, ANEW, rng.multinomial(records, rates / rates.sum())
    yield "words", ANEW, words()
    for name, made in SIBLING_SETS.items():
        yield name, SIBLINGS, made.counts(name)
    if data is not None:
        for name in GIVEN_SETS:
            yield name, GIVEN, np.load(data / "1d" / f"{name}.npy")


def spikes_report(
    data: Path | None, trials: int, epsilons: tuple[str, ...] = EPSILONS
) -> Iterator[SpikesLine]:
    """Yield what was measured of each set and epsilon.

    Parameters
    ----------
    data : Path, optional
        A folder with the given lines in ``1d``.
    trials : int
        Releases of each, at least 2.
    epsilons : tuple[str, ...]
        What a release costs.

    Yields
    ------
    SpikesLine
        A line each.
    """
    line = bf.Domain(CELLS)
    policy, asked = bf.policies.AddRemove(line), bf.workloads.Identity(line)
    for name, kind, counts in measured_sets(data):
        for epsilon in epsilons:
            errors, kept = {}, 0
            builds = {"before": WithoutTest, **methods(cells=True)}
            for method, build in builds.items():
                mechanism = build(policy, asked, epsilon=epsilon)
                seeds = generator_of("judged spikes", name, epsilon, method)
                off = np.empty(trials)
                for at, seed in enumerate(seeds.integers(2**32, size=trials)):
                    release: Any = mechanism.release(counts, rng=int(seed))
                    off[at] = np.abs(release.estimate - counts).mean()
                    if method == DEFAULT:
                        kept += release.details.get("chosen") == "cells"
                errors[method] = off
            own, before = errors.pop(DEFAULT), errors.pop("before")
            ratio = float(own.mean() / before.mean())
            parts = [np.std(each, ddof=1) / each.mean() for each in (own, before)]
            yield SpikesLine(
                name,
                kind,
                epsilon,
                kept / trials,
                float(own.mean()),
                float(before.mean()),
                ratio,
                ratio * math.hypot(*parts) / math.sqrt(trials),
                min(float(each.mean()) for each in errors.values()),
            )


def write_spikes(
    data: Path | None, trials: int, path: Path = DATA
) -> Iterator[SpikesLine]:
    """Measure cells after a test for spikes, and keep the record.

    Parameters
    ----------
    data : Path, optional
        A folder with the given lines in ``1d``.
    trials : int
        Releases of each, at least 2.
    path : Path
        The file, written once everything is measured.

    Yields
    ------
    SpikesLine
        A line each, as it is measured.
    """
    lines = list[SpikesLine]()
    for line in spikes_report(data, trials):
        lines.append(line)
        yield line
    write_record(path, lines, digits=3)


class TimeLine(NamedTuple):
    """What releases of one long line take, in CPU seconds of all threads.

    Attributes
    ----------
    set : str
        Which.
    default : float
        By default.
    untested : float
        Without the test for spikes.
    shrunk : float
        Without the test, and with cells that are shrunk, not fitted in runs.
    """

    set: str
    default: float
    untested: float
    shrunk: float

    def __str__(self) -> str:
        return (
            f"{self.set}: {self.default:.3f} s, without the test {self.untested:.3f} "
            f"s, shrunk {self.shrunk:.3f} s"
        )


def long_lines(cells: int) -> Iterator[tuple[str, IntArray]]:
    """Yield name and counts of lines whose releases are timed.

    Parameters
    ----------
    cells : int
        Cells of each, a multiple of 64 and at least 2,100.

    Yields
    ------
    tuple[str, ndarray of int64]
        A line each.
    """
    for count, records in ((30, 30_000), (2_100, 3_000)):
        rng = generator_of("timed spikes", str(count))
        counts = np.zeros(cells, dtype=np.int64)
        places = rng.choice(cells, count, replace=False)
        counts[places] = rng.integers(records // 10, 2 * records, count)
        yield f"{count:,} spikes", counts
    rng = generator_of("timed spikes", "steps")
    rates = np.repeat(rng.exponential(20.0, cells // 64), 64)
    yield "drawn steps of 64 cells", rng.poisson(rates)


def time_report(trials: int, cells: int = LONG_CELLS) -> Iterator[TimeLine]:
    """Yield what releases of each long line take at epsilon .1, the least of some.

    Parameters
    ----------
    trials : int
        Releases of each that are timed, after one that is not.
    cells : int
        Cells of each line.

    Yields
    ------
    TimeLine
        A line each.
    """
    line = bf.Domain(cells)
    policy, asked = bf.policies.AddRemove(line), bf.workloads.Identity(line)
    shrunk: Any = {"strategy": "cells", "fit": "shrink"}
    ways = (
        bf.Dawa(policy, asked, epsilon="0.1"),
        WithoutTest(policy, asked, epsilon="0.1"),
        WithoutTest(policy, asked, epsilon="0.1", **shrunk),
    )
    for name, counts in long_lines(cells):
        taken = np.full((trials + 1, len(ways)), math.inf)
        for trial in range(trials + 1):
            for place, way in enumerate(ways):
                start = time.process_time()
                way.release(counts, rng=trial)
                taken[trial, place] = time.process_time() - start
        yield TimeLine(name, *map(float, taken[1:].min(axis=0)))


def write_times(trials: int, path: Path = TIME_DATA) -> Iterator[TimeLine]:
    """Time releases of long lines, and keep the record.

    Parameters
    ----------
    trials : int
        Releases of each.
    path : Path
        The file, written once everything is timed.

    Yields
    ------
    TimeLine
        A line each, as it is timed.
    """
    lines = list[TimeLine]()
    for line in time_report(trials):
        lines.append(line)
        yield line
    write_record(path, lines, digits=3)
