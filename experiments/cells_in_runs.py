"""Cells fitted in runs, as by default, beside cells that are shrunk one by one.

    python -m experiments runs --data FOLDER --trials 10      docs/data/cells/runs.csv

Single cells of lines of 4,096 cells, one record more or less, mean absolute error per
cell. The default and the same release with ``fit="shrink"`` have the same buckets and
the same noise. `partitions.LeastCost`, whose buckets may begin anywhere, is shrunk as
well. The best sibling is the least of the same cells without buckets, `Hierarchy` with
equal and with greedy levels, and `Privelet`, picked for each line after the fact.

No constant of the fit was chosen on these sets: steps that are exactly level and begin
anywhere, steps, waves and walks from which records are drawn, pairs of letters in the
standard library of Python, and, with a folder, sixteen rows of each of its maps, those
around the row of its middle record: rows in the middle of some maps hold no record.
"""

from __future__ import annotations

import math
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.typing import FloatArray, IntArray

from .record_files import write_record
from .siblings import CELLS, EPSILONS, generator_of

DATA = Path("docs/data/cells/runs.csv")
LEVEL, OTHER = "exactly level", "other"
LEVEL_STEPS = {"8 steps": (8, 1000), "25 steps": (25, 100), "60 steps": (60, 20)}
"""Number of steps that are exactly level, and their median height."""
STRIPS = ("adult", "beijing_taxi_start", "cabspotting_end", "twitter")
"""Maps of a folder of which a few rows are taken."""
STRIP_ROWS = 16
"""How many rows of each map."""
FIRST_SIGN, SIGNS = 64, 64
"""Signs of which pairs are counted: letters of both cases, and a few others."""


class RunsLine(NamedTuple):
    """What was measured of one set at one epsilon.

    Attributes
    ----------
    set : str
        Which.
    kind : str
        "exactly level" or "other".
    epsilon : str
        What a release costs.
    in_runs : float
        Part of the releases whose cells were fitted in runs.
    default : float
        Mean absolute error of a cell by default.
    shrunk : float
        The same releases with ``fit="shrink"``.
    ratio : float
        The first over the second.
    error : float
        Standard error of the ratio, between releases of the same noise.
    least_cost : float
        With `LeastCost`, shrunk.
    sibling : float
        The least of four siblings.
    bare_ratio : float
        The first over the second where both keep every cell, without buckets.
    """

    set: str
    kind: str
    epsilon: str
    in_runs: float
    default: float
    shrunk: float
    ratio: float
    error: float
    least_cost: float
    sibling: float
    bare_ratio: float

    def __str__(self) -> str:
        return (
            f"{self.set} ({self.kind}), epsilon {self.epsilon}: {self.default:.3g}, "
            f"shrunk {self.shrunk:.3g}, {self.ratio:.3f} ± {self.error:.3f}, least "
            f"cost {self.least_cost:.3g}, best sibling {self.sibling:.3g}, in runs "
            f"{self.in_runs:.0%}, without buckets {self.bare_ratio:.3f}"
        )


def level_steps(name: str) -> IntArray:
    """Return steps of one height each, which begin at any cell."""
    steps, height = LEVEL_STEPS[name]
    rng = generator_of("runs", name)
    cuts = np.sort(rng.choice(np.arange(1, CELLS), steps - 1, replace=False))
    heights = np.round(np.exp(rng.normal(math.log(height), 1.0, steps)))
    return np.repeat(heights.astype(np.int64), np.diff([0, *cuts, CELLS]))


def drawn_sets() -> Iterator[tuple[str, IntArray]]:
    """Yield name and counts of the sets whose records are drawn."""
    at = np.arange(CELLS)
    for name, records in (("drawn steps", 200_000), ("waves", 300_000)):
        rng = generator_of("runs", name)
        if name == "waves":
            rates = 1.5 + np.sin(at / 130) + 0.4 * np.sin(at / 17)
        else:
            cuts = np.sort(rng.choice(np.arange(1, CELLS), 29, replace=False))
            rates = np.repeat(rng.exponential(1.0, 30), np.diff([0, *cuts, CELLS]))
        yield name, rng.multinomial(records, rates / rates.sum())
    rng = generator_of("runs", "walk")
    rates = np.exp(np.cumsum(rng.normal(0, 0.08, CELLS)))
    yield "walk", rng.multinomial(100_000, rates / rates.sum())
    rng = generator_of("runs", "ranks")
    rates = 1.0 / rng.permutation(np.arange(1, CELLS + 1))
    yield "ranks", rng.multinomial(500_000, rates / rates.sum())


def letter_pairs() -> IntArray:
    """Return how often each pair of signs occurs in Python's standard library."""
    counts = np.zeros(SIGNS * SIGNS, dtype=np.int64)
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        signs = np.frombuffer(path.read_bytes(), dtype=np.uint8).astype(np.int64)
        first, second = signs[:-1] - FIRST_SIGN, signs[1:] - FIRST_SIGN
        inside = (np.minimum(first, second) >= 0) & (np.maximum(first, second) < SIGNS)
        pairs = (first * SIGNS + second)[inside]
        counts += np.bincount(pairs, minlength=counts.size)
    return counts


def judged_sets(data: Path | None) -> Iterator[tuple[str, str, IntArray]]:
    """Yield name, kind and counts of every set.

    Parameters
    ----------
    data : Path, optional
        A folder with maps in ``2d``.

    Yields
    ------
    tuple[str, str, ndarray of int64]
        A set each.
    """
    for name in LEVEL_STEPS:
        yield name, LEVEL, level_steps(name)
    for name, counts in drawn_sets():
        yield name, OTHER, counts
    yield "letter pairs", OTHER, letter_pairs()
    if data is not None:
        for name in STRIPS:
            strip = busy_rows(np.load(data / "2d" / f"{name}.npy"))
            yield f"rows of {name}", OTHER, strip.reshape(-1)[:CELLS].astype(np.int64)


def busy_rows(cells: IntArray) -> IntArray:
    """Return the `STRIP_ROWS` rows around the one that holds the middle record.

    Parameters
    ----------
    cells : ndarray of int64, shape (rows, columns)
        Counts of a map, of at least so many rows.

    Returns
    -------
    ndarray of int64, shape (STRIP_ROWS, columns)
        The rows.
    """
    up_to = np.cumsum(cells.sum(axis=1))
    middle = int(np.searchsorted(up_to, up_to[-1] / 2))
    first = min(max(middle - STRIP_ROWS // 2, 0), cells.shape[0] - STRIP_ROWS)
    return cells[first : first + STRIP_ROWS]


def _errors(mechanism: Any, counts: IntArray, seeds: IntArray) -> FloatArray:
    released = [mechanism.release(counts, rng=int(seed)) for seed in seeds]
    return np.array([np.abs(each.estimate - counts).mean() for each in released])


def runs_report(
    data: Path | None, trials: int, epsilons: tuple[str, ...] = EPSILONS
) -> Iterator[RunsLine]:
    """Yield what was measured of each set and epsilon.

    Parameters
    ----------
    data : Path, optional
        A folder with maps in ``2d``.
    trials : int
        Releases of each, at least 2.
    epsilons : tuple[str, ...]
        What a release costs.

    Yields
    ------
    RunsLine
        A line each.
    """
    line = bf.Domain(CELLS)
    policy, asked = bf.policies.AddRemove(line), bf.workloads.Identity(line)
    for name, kind, counts in judged_sets(data):
        for epsilon in epsilons:
            seeds = generator_of("runs", name, epsilon).integers(2**32, size=trials)
            own = bf.Dawa(policy, asked, epsilon=epsilon)
            shrunk: Any = {"epsilon": epsilon, "strategy": "cells", "fit": "shrink"}
            tree = bf.partitions.LeastCost()
            siblings: list[Any] = [
                bf.Dawa(policy, asked, partition=None, **shrunk),
                bf.Hierarchy(policy, asked, epsilon=epsilon),
                bf.Hierarchy(policy, asked, epsilon=epsilon, strategy="greedy"),
                bf.mechanisms.Privelet(policy, asked, epsilon=epsilon),
            ]
            fits = [own.release(counts, rng=int(s)).details["fit"] for s in seeds]
            first = _errors(own, counts, seeds)
            second = _errors(bf.Dawa(policy, asked, **shrunk), counts, seeds)
            third = bf.Dawa(policy, asked, partition=tree, **shrunk)
            ratio = float(first.mean() / second.mean())
            off = np.std(first - ratio * second, ddof=1) / second.mean()
            others = [float(_errors(each, counts, seeds).mean()) for each in siblings]
            bare = bf.Dawa(policy, asked, partition=None, epsilon=epsilon)
            yield RunsLine(
                name,
                kind,
                epsilon,
                float(np.mean([fit == "runs" for fit in fits])),
                float(first.mean()),
                float(second.mean()),
                ratio,
                float(off / math.sqrt(trials)),
                float(_errors(third, counts, seeds).mean()),
                min(others),
                float(_errors(bare, counts, seeds).mean()) / others[0],
            )


def write_runs(data: Path | None, trials: int, path: Path = DATA) -> Iterator[RunsLine]:
    """Measure cells in runs, and keep the record.

    Parameters
    ----------
    data : Path, optional
        A folder with maps in ``2d``.
    trials : int
        Releases of each, at least 2.
    path : Path
        The file, written once everything is measured.

    Yields
    ------
    RunsLine
        A line each, as it is measured.
    """
    lines = list[RunsLine]()
    for line in runs_report(data, trials):
        lines.append(line)
        yield line
    write_record(path, lines, digits=4)
