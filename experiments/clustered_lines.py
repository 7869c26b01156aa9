"""Buckets by descent beside the default, on long lines whose records lie in few cells.

    python -m experiments clustered --trials 5      docs/data/wide/clustered.csv

`recommend` offers `Dawa` with `partitions.Descent` on lines of 2^16 cells and more, and
puts it first where public guesses, `records` and `filled`, say that few cells hold the
records and many each. Its constants were chosen on the sets called "chosen on"; the
sets called "judged" played no part in that. Ranges are 1000, of lengths spread over all
doublings or with both ends anywhere; one record more or less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.advice.typical_error import reference_shapes
from blowfish_fast.data.wide.map_curve import MapCurve

from .record_files import write_record
from .wide_domains import addresses, metres, moments

DATA = Path("docs/data/wide/clustered.csv")
RECORDS = 10**6
QUERIES = 1000
EPSILON = Fraction(1, 10)
LINE_BITS = (16, 20)
"""Bits of the numbers of cells."""
CHOSEN_ON = ("addresses", "metres", "spikes")
"""Sets on which the constants of `recommend` were chosen."""
JUDGED = ("accounts", "sessions", "moments", "bells")
"""Sets that played no part: two clustered ones, and two that are not."""


class ClusteredLine(NamedTuple):
    """What was measured of one set.

    Attributes
    ----------
    records : str
        Which.
    role : str
        "chosen on" or "judged".
    cells : str
        How many cells the line has.
    ranges : str
        Which ranges were asked.
    filled : float
        The part of the cells that holds records.
    advised : str
        What `recommend` puts first, told the numbers of records and of filled cells.
    default : float
        The mean absolute error of `Dawa` as it is.
    descent : float
        That of `Dawa` with buckets by descent.
    ratio : float
        The second over the first.
    error : float
        The standard error of the ratio, between releases.
    """

    records: str
    role: str
    cells: str
    ranges: str
    filled: float
    advised: str
    default: float
    descent: float
    ratio: float
    error: float

    def __str__(self) -> str:
        return (
            f"{self.records} ({self.role}), {self.cells} cells, {self.ranges}, "
            f"{self.filled:.1%} filled: default {self.default:.0f}, descent "
            f"{self.descent:.0f}, {self.ratio:.2f} ± {self.error:.2f}; advised "
            f"{self.advised}"
        )


def counts_of(kind: str, bits: int, seed: int = 0) -> IntArray:
    """Return the counts of a generated set over 2^bits cells.

    Parameters
    ----------
    kind : str
        One of `CHOSEN_ON` or `JUDGED`.
    bits : int
        Of the number of cells.
    seed : int
        Of the records.

    Returns
    -------
    ndarray of int64, shape (2^bits,)
        The counts.
    """
    rng, cells = np.random.default_rng([seed, bits]), 2**bits
    if kind in ("spikes", "bells"):
        return reference_shapes(bf.Domain(cells), RECORDS)[kind]
    if kind == "addresses":
        place = addresses(rng, RECORDS) >> (32 - bits)
    elif kind == "metres":
        curve = MapCurve(2**20, 2**20)
        place = curve.numbers(*metres(rng, RECORDS, 20).T) >> (40 - bits)
    elif kind == "moments":
        # Two years of them, from the first to the last.
        found = moments(rng, RECORDS)
        since = (found - found.min()) / (found.max() - found.min() + 1)
        place = np.minimum((since * cells).astype(np.int64), cells - 1)
    elif kind == "accounts":
        # Numbers that were given out at random, used very unevenly.
        given = rng.choice(cells, cells // 100, replace=False)
        weights = rng.lognormal(0.0, 2.0, given.size)
        place = rng.choice(given, RECORDS, p=weights / weights.sum())
    else:
        # Sessions: 80 of them, each a few cells long with more at its begin.
        begin = rng.integers(0, cells, 80)
        length = 2.0 ** rng.uniform(0, bits - 12, 80)
        which = rng.choice(80, RECORDS, p=rng.dirichlet(np.full(80, 0.5)))
        later = rng.exponential(length[which]).astype(np.int64)
        place = np.minimum(begin[which] + later, cells - 1)
    return np.bincount(place, minlength=cells)


def ranges_of(name: str, bits: int) -> bf.workloads.Ranges:
    """Return the ranges of a name over 2^bits cells.

    Parameters
    ----------
    name : {"all lengths", "any ends"}
        Lengths spread over all doublings, or both ends anywhere.
    bits : int
        Of the number of cells.

    Returns
    -------
    Ranges
        The same each time.
    """
    rng, cells = np.random.default_rng(bits), 2**bits
    if name == "all lengths":
        lengths = (2.0 ** rng.uniform(0, bits - 1, QUERIES)).astype(np.int64)
        starts = rng.integers(0, cells - lengths + 1)
        ends = starts + lengths
    else:
        ends = np.sort(rng.integers(0, cells, (QUERIES, 2)), axis=1)
        starts, ends = ends[:, 0], ends[:, 1] + 1
    return bf.workloads.Ranges(bf.Domain(cells), starts, ends)


def _errors(
    mechanism: bf.Dawa, counts: IntArray, true: FloatArray, trials: int
) -> FloatArray:
    asked = mechanism.workload
    return np.array(
        [
            np.abs(mechanism.release(counts, rng=seed).answer(asked) - true).mean()
            for seed in range(trials)
        ]
    )


def clustered_report(trials: int) -> Iterator[ClusteredLine]:
    """Yield what was measured of each set, line and kind of ranges.

    Parameters
    ----------
    trials : int
        Releases of each, at least 2.

    Yields
    ------
    ClusteredLine
        A line each.
    """
    for bits in LINE_BITS:
        policy = bf.policies.AddRemove(bf.Domain(2**bits))
        for name in ("all lengths", "any ends"):
            asked = ranges_of(name, bits)
            default = bf.Dawa(policy, asked, epsilon=EPSILON)
            descent = bf.Dawa(
                policy, asked, epsilon=EPSILON, partition=bf.partitions.Descent()
            )
            for kind in (*CHOSEN_ON, *JUDGED):
                counts = counts_of(kind, bits)
                filled = float((counts > 0).mean())
                true = asked.answer(counts)
                first = _errors(default, counts, true, trials)
                second = _errors(descent, counts, true, trials)
                advice = bf.recommend(
                    policy, asked, epsilon=EPSILON, records=RECORDS, filled=filled
                )
                error = float(np.std(second / first.mean(), ddof=1))
                yield ClusteredLine(
                    kind,
                    "chosen on" if kind in CHOSEN_ON else "judged",
                    f"2^{bits}",
                    name,
                    filled,
                    advice.best.name,
                    float(first.mean()),
                    float(second.mean()),
                    float(second.mean() / first.mean()),
                    math.hypot(error, float(np.std(first / first.mean(), ddof=1)))
                    / math.sqrt(trials),
                )


def write_clustered(trials: int, path: Path = DATA) -> Iterator[ClusteredLine]:
    """Measure clustered lines, and keep the record.

    Parameters
    ----------
    trials : int
        Releases of each, at least 2.
    path : Path
        The file, written once everything is measured.

    Yields
    ------
    ClusteredLine
        A line each, as it is measured.
    """
    lines = list[ClusteredLine]()
    for line in clustered_report(trials):
        lines.append(line)
        yield line
    write_record(path, lines, digits=4)
