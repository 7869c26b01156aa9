"""Every interval against the truth, and every kind of certificate against its promise.

    python -m experiments coverage          docs/data/coverage/intervals.csv, anew
    python -m experiments certificates      shares of false claims over 10,000 of each

Data are made up: one dense cell among empty ones, a smooth hill, and sparse cells.
"""

from __future__ import annotations

import csv
import math
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import BlowfishError, NoiseOnlyWarning
from blowfish_fast.mechanisms.certifier import Certifier
from blowfish_fast.mechanisms.registry import MECHANISMS
from blowfish_fast.release.certificates import KINDS, Kind

CELLS = 128
CONFIDENCE = 0.95
DATA = Path("docs/data/coverage/intervals.csv")
DRAWS = 400
"""Draws of the noise from which its exact half-widths are read off."""
LAWS = 5
"""Releases of each row for which they are."""

ROOM = 3.0
"""Standard deviations by which a share may exceed what is allowed."""


def made_up_counts() -> dict[str, IntArray]:
    """Return the data sets, over `CELLS` cells."""
    rng = np.random.default_rng(5)
    spike = np.zeros(CELLS, dtype=np.int64)
    spike[40] = 2000
    places = np.arange(CELLS)
    hill = np.rint(300 * np.exp(-(((places - 70) / 25) ** 2))).astype(np.int64)
    sparse = np.where(rng.random(CELLS) < 0.1, rng.integers(1, 400, CELLS), 0)
    return {"spike": spike, "hill": hill, "sparse": sparse}


def asked_queries() -> dict[str, bf.workloads.Workload]:
    """Return the workloads."""
    line = bf.Domain(CELLS)
    ends = np.sort(np.random.default_rng(6).integers(0, CELLS, (2, 200)), axis=0)
    return {
        "cells": bf.workloads.Identity(line),
        "ranges": bf.workloads.Ranges(line, ends[0], ends[1] + 1),
        "prefixes": bf.workloads.Prefixes(line),
    }


class CoverageRow(NamedTuple):
    """What was found of one mechanism, workload and data set.

    `said` is what the intervals are called; `noise` and `truth` are the shares of
    intervals that held the noise and the true answer, `error` the standard error of the
    latter between releases, `width` the mean half-width over the exact one, and
    `certified` the share of true answers in certified intervals.
    """

    mechanism: str
    workload: str
    data: str
    said: str
    noise: float
    truth: float
    error: float
    width: float
    certified: float


def coverage(trials: int) -> Iterator[CoverageRow]:
    """Return one row for each mechanism that has intervals, workload and data set."""
    for name, kind in MECHANISMS.items():
        for asked_name, asked in asked_queries().items():
            policy = bf.policies.AddRemove(asked.domain)
            try:
                mechanism: Any = kind(policy, asked, epsilon="0.5")
            except (BlowfishError, TypeError):
                continue
            for data_name, counts in made_up_counts().items():
                # Seeds of their own, so that rows are independent of each other.
                seed = zlib.crc32(f"{name} {asked_name} {data_name}".encode())
                found = [
                    _one_release(mechanism, counts, seed + at, at < LAWS)
                    for at in range(trials)
                ]
                known = [one for one in found if one is not None]
                if known:
                    said = "truth" if all(one[0] for one in known) else "noise only"
                    shares = np.array([one[1:] for one in known])
                    noise, truth, width, certified = np.nanmean(shares, axis=0).tolist()
                    error = float(shares[:, 1].std() / math.sqrt(len(known)))
                    yield CoverageRow(
                        *(name, asked_name, data_name, said),
                        *(noise, truth, error, width, certified),
                    )


def _one_release(
    mechanism: Any, counts: IntArray, seed: int, with_law: bool
) -> tuple[float, ...] | None:
    release = mechanism.release(counts, rng=seed)
    if release.interval_scope != "noise" or len(release.measurements) != 1:
        return None
    asked = mechanism.workload
    low, high = release.intervals(asked, CONFIDENCE, of="noise").T
    true = np.asarray(asked.answer(counts))
    width = math.nan
    if with_law:
        exact = _noise_widths(release, asked)
        width = float((high - low).mean() / 2 / max(exact.mean(), 1e-12))
    certifier = Certifier(release, asked, epsilon="0.25")
    kept = release.certified(certifier.release(counts, rng=seed + 2**32))
    certified = math.nan
    if math.isfinite(kept.certificates[0].extra):
        certified = _share_inside(true, *kept.intervals(asked, of="truth").T)
    return (
        float(release.holds_truth(asked).all()),
        _share_inside(_without_noise(release, asked, counts), low, high),
        _share_inside(true, low, high),
        width,
        certified,
    )


def _share_inside(answers: FloatArray, low: FloatArray, high: FloatArray) -> float:
    return float(((answers >= low - 1e-9) & (answers <= high + 1e-9)).mean())


def _inferred(release: bf.Release, asked: Any, rows: Any, noise: Any) -> FloatArray:
    """Return the answers that given rows and given noise lead to."""
    (measurement,) = release.measurements
    strategy, scales = measurement.strategy, measurement.scales
    published = strategy.published(rows, noise, scales)
    cells = measurement.buckets.expand(strategy.infer(published, scales))
    return np.asarray(asked.answer(cells))


def _without_noise(release: bf.Release, asked: Any, counts: IntArray) -> FloatArray:
    (measurement,) = release.measurements
    rows = measurement.strategy.rows(measurement.buckets.sum(counts))
    none = np.zeros(measurement.scales.rates.size, dtype=np.int64)
    return _inferred(release, asked, rows, none)


def _noise_widths(release: bf.Release, asked: Any) -> FloatArray:
    """Return quantiles of the absolute noise in each answer, by many draws."""
    (measurement,) = release.measurements
    scales = measurement.scales
    rng = np.random.default_rng(9)
    measured = scales.measured
    stay = -np.expm1(-1.0 / scales.widths[measured])
    noise = np.zeros(scales.rates.size, dtype=np.int64)
    empty = np.zeros(measurement.buckets.edges.size - 1, dtype=np.int64)
    rows = measurement.strategy.rows(empty)
    drawn = np.empty((DRAWS, asked.queries))
    for at in range(DRAWS):
        noise[measured] = rng.geometric(stay) - rng.geometric(stay)
        drawn[at] = np.abs(_inferred(release, asked, rows, noise))
    return np.quantile(drawn, CONFIDENCE, axis=0)


def write_coverage(path: Path = DATA, trials: int = 100) -> list[CoverageRow]:
    """Write what was found as CSV; return it.

    Parameters
    ----------
    path : Path
        The file; ``docs/fill_figures.py`` sums it up for ``docs/accuracy.md``.
    trials : int
        Releases of each mechanism, workload and data set.

    Returns
    -------
    list of CoverageRow
        The rows, not rounded.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoiseOnlyWarning)
        rows = list(coverage(trials))
    write_table(path, rows)
    return rows


def write_table(path: Path, rows: Sequence[Any]) -> None:
    """Write named tuples as CSV, three digits after the point; nothing for nan.

    Parameters
    ----------
    path : Path
        The file.
    rows : sequence of named tuples
        All of one kind, at least one.
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0]._fields)
        for row in rows:
            writer.writerow([_shown(value) for value in row])


def _shown(value: str | float) -> str:
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return ""
    return f"{value:.3f}" if value < 10 else f"{value:.4g}"


def false_claims(kind: Kind, certificates: int, miss: float = 0.05) -> float:
    """Return the share of false claims of one kind, about releases of a spike."""
    counts, asked = made_up_counts()["spike"], asked_queries()["ranges"]
    if kind == "curve":
        asked = asked_queries()["cells"]
    true = np.asarray(asked.answer(counts))
    policy = bf.policies.AddRemove(asked.domain)
    wide = bf.mechanisms.StructureFirst(policy, asked, epsilon=1, buckets=4)
    wrong = 0
    for at in range(certificates):
        if at % 20 == 0 or kind == "shape":
            release = wide.release(counts, rng=at)
            certifier = Certifier(release, asked, epsilon=1, kind=kind, fraction=0.9)
        found: Any = certifier.release(counts, rng=10**6 + at)
        kept = release.certified(found)
        if not math.isfinite(kept.certificates[0].extra):
            continue
        low, high = kept.intervals(asked, 1 - miss, of="truth").T
        held = (true >= low - 1e-9) & (true <= high + 1e-9)
        if kind == "shape":
            # Of each range by itself: one of them, taken in turn, stands for all.
            wrong += not held[at % held.size]
        else:
            needed = held.size if kind == "all" else math.ceil(0.9 * held.size)
            wrong += int(held.sum()) < needed
    return wrong / certificates


def certificate_report(certificates: int) -> Iterator[tuple[str, float, float]]:
    """Yield each kind, its share of false claims, and what chance allows."""
    allowed = 0.05 + ROOM * math.sqrt(0.05 * 0.95 / certificates)
    for kind in KINDS:
        yield kind, false_claims(kind, certificates), allowed
