"""Intervals of lists, ranges and maps of wide domains, against the truth.

    python -m experiments wide-coverage --trials 40     docs/data/coverage/wide.csv

A list holds cells that were named before anybody looked and cells that were taken from
it; they have different intervals. Cells are empty, close to the threshold, or heavy.
Ranges of 2^60 cells and rectangles of 2^30 x 2^30 lie over clustered records.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.typing import BoolArray, IntArray

CONFIDENCE = 0.95
DATA = Path("docs/data/coverage/wide.csv")
CELLS = 2**40
"""Cells of the domain that is listed."""
EACH = 300
"""Cells of each kind, and false cells in the mean."""
RECORDS = 20_000
QUERIES = 200
BUDGETS: dict[str, dict[str, Any]] = {
    "epsilon 0.5": {"epsilon": "0.5"},
    "rho 0.05": {"rho": "0.05"},
}
ROOM = 3.0
"""Standard deviations by which a share may fall short of what is said."""


class WideCoverage(NamedTuple):
    """What was found of one kind of interval.

    Attributes
    ----------
    release : str
        "list", "ranges" or "map".
    asked : str
        What the intervals are about.
    budget : str
        What a release spent.
    intervals : int
        How many were looked at.
    held : float
        The share that held the true count.
    error : float
        The standard error of the share: of single cells, whose noise is independent,
        or between releases.
    """

    release: str
    asked: str
    budget: str
    intervals: int
    held: float
    error: float

    @property
    def enough(self) -> bool:
        """Whether no fewer intervals hold than was said, but for chance."""
        return self.held >= CONFIDENCE - ROOM * max(self.error, 1e-9)


def _row(
    release: str, asked: str, budget: str, held: list[BoolArray], *, single: bool
) -> WideCoverage:
    whole = np.concatenate(held)
    # As if the share were the stated one: few misses would tell of no error.
    error = math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / max(whole.size, 1))
    if not single:
        shares = np.array([one.mean() for one in held])
        error = max(error, float(shares.std(ddof=1)) / math.sqrt(len(shares)))
    return WideCoverage(release, asked, budget, whole.size, float(whole.mean()), error)


def list_rows(trials: int, budget: str) -> Iterator[WideCoverage]:
    """Yield the rows of a list: cells named beforehand, and taken from it, by kind.

    Parameters
    ----------
    trials : int
        Releases, at least 2.
    budget : str
        A key of `BUDGETS`.

    Yields
    ------
    WideCoverage
        Six rows.
    """
    domain: Any = bf.WideDomain(CELLS, names="cell")
    policy, terms = bf.policies.AddRemove(domain), BUDGETS[budget]
    kind = bf.SparseLaplace if "epsilon" in terms else bf.SparseGaussian
    mechanism = kind(policy, false_cells=EACH, **terms)
    least = int(mechanism.threshold)
    places = np.random.default_rng(1).choice(2**30, (3, EACH), replace=False) * 1000
    counts = {"empty": 0, "close to the threshold": least - 1, "heavy": 3 * least}
    records = np.concatenate(
        [
            np.repeat(np.sort(where), many)
            for where, many in zip(places, counts.values(), strict=True)
        ]
    )
    data = bf.SparseHistogram.from_records(domain, {"cell": records})
    named: dict[str, list[BoolArray]] = {name: [] for name in counts}
    taken: dict[str, list[BoolArray]] = {name: [] for name in counts}
    for seed in range(trials):
        release: Any = mechanism.release(data, rng=seed)
        listed = release.cells(CONFIDENCE)
        known = np.zeros(len(release), dtype=np.bool_)
        for name, where in zip(counts, places, strict=True):
            own = release.at(where, CONFIDENCE)
            held = (own["low"] <= counts[name]) & (counts[name] <= own["high"])
            named[name].append(held)
            if name != "empty":
                mine = np.isin(listed["cell"], where)
                known |= mine
                low, high = listed["low"][mine], listed["high"][mine]
                taken[name].append((low <= counts[name]) & (counts[name] <= high))
        # Whatever else is listed is empty.
        taken["empty"].append(listed["low"][~known] <= 0)
    for asked, found in (("named before", named), ("taken from the list", taken)):
        for name, held in found.items():
            yield _row("list", f"{name}, {asked}", budget, held, single=True)


def _clusters(rng: np.random.Generator, size: int, axes: int, side: int) -> IntArray:
    centres = rng.integers(side // 8, side // 2, (20, axes))
    spread = 2.0 ** rng.uniform(10, 20, (size, 1))
    near = rng.normal(size=(size, axes)) * spread
    return np.abs(centres[rng.integers(0, 20, size)] + near).astype(np.int64)


def range_rows(trials: int, budget: str) -> Iterator[WideCoverage]:
    """Yield the rows of ranges and of rectangles, whose intervals hold the truth.

    Parameters
    ----------
    trials : int
        Releases, at least 2.
    budget : str
        A key of `BUDGETS`.

    Yields
    ------
    WideCoverage
        Two rows.
    """
    for name, side, axes in (("ranges", 2**60, 1), ("map", 2**30, 2)):
        rng = np.random.default_rng(2)
        places = _clusters(rng, RECORDS, axes, side)
        sides = (2.0 ** rng.uniform(12, 28, (QUERIES, axes))).astype(np.int64)
        lows = np.maximum(places[:QUERIES] - sides // 2, 0)
        highs = np.minimum(lows + sides, side)
        true = np.array(
            [
                ((places >= low) & (places < high)).all(axis=1).sum()
                for low, high in zip(lows, highs, strict=True)
            ]
        )
        names = ("east", "north")[:axes]
        domain: Any = bf.WideDomain((side,) * axes, names=names)
        data = bf.SparseHistogram.from_records(
            domain, dict(zip(names, places.T, strict=True))
        )
        asked: Any = (
            bf.workloads.Ranges(domain, lows[:, 0], highs[:, 0])
            if axes == 1
            else bf.workloads.Rectangles(domain, lows, highs)
        )
        policy = bf.policies.AddRemove(domain)
        mechanism = bf.Dawa(policy, asked, **BUDGETS[budget])
        held = []
        for seed in range(trials):
            release: Any = mechanism.release(data, rng=seed)
            low, high = release.intervals(asked, CONFIDENCE, of="truth").T
            held.append((low <= true) & (true <= high))
        yield _row(name, "around records", budget, held, single=False)


def wide_coverage(trials: int) -> list[WideCoverage]:
    """Return every row, in epsilon and in rho."""
    return [
        row
        for budget in BUDGETS
        for row in (*list_rows(trials, budget), *range_rows(trials, budget))
    ]


def write_wide_coverage(path: Path = DATA, *, trials: int = 40) -> list[WideCoverage]:
    """Write the table of wide domains.

    Parameters
    ----------
    path : Path
        The file.
    trials : int
        Releases of each row.

    Returns
    -------
    list of WideCoverage
        The rows.
    """
    rows = wide_coverage(trials)
    with path.open("w", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(WideCoverage._fields)
        for row in rows:
            lines.writerow([*row[:4], f"{row.held:.4f}", f"{row.error:.4f}"])
    return rows
