"""What the experiments of the kd-tree paper share: a census, queries, two errors.

The paper uses 1,000,000 census records with age, education, occupation and income
(79 x 14 x 23 x 100 values), which cannot be had. A generated stand-in has the size,
the domain, the skew and the dependence of its attributes on one another:

    age --> education --> occupation --> income     each from all before it, and
                                                    income with a long tail and heaps
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast.advice.experiments.experiment import Row, Settings, seed_of
from blowfish_fast.data.domain import Domain
from blowfish_fast.policies import AddRemove
from blowfish_fast.workloads import Ranges, Rectangles, Workload

from .contenders import Contender, seeded_release
from .stand_ins import generator_of

PAPER = "Xiao, Xiong, Yuan, multidimensional partitioning (DPCube)"
ALPHA = "0.05"
DELTA = 0.05
RELEASES = 100
QUERIES = 1000
NAMES = ("age", "education", "occupation", "income")
SHAPE = (79, 14, 23, 100)
RECORDS = 1_000_000
STAND_IN = "census (generated)"
LEAST_PART = 0.001
"""Relative errors are divided by the answer, or by this part of the records."""


class Scale(NamedTuple):
    """How much of everything a run uses."""

    shape: tuple[int, ...]
    records: int
    queries: int


def scale_of(settings: Settings) -> Scale:
    """Return the paper's sizes, or small ones."""
    if settings.quick:
        return Scale((16, 3, 4, 20), 20_000, 50)
    return Scale(SHAPE, RECORDS, QUERIES)


def census(scale: Scale) -> tuple[IntArray, ...]:
    """Return the columns of the generated census, as cell numbers."""
    rng = generator_of(f"census/{scale.shape}/{scale.records}")
    size = scale.records
    life = np.clip(rng.gamma(4.0, 0.09, size), 0.0, 1.0)
    learned = np.clip(
        0.35 + 0.3 * np.minimum(life, 0.3) + rng.normal(0, 0.17, size), 0, 1
    )
    craft = np.clip(0.9 * learned + rng.exponential(0.15, size) - 0.1, 0, 1)
    earned = 0.02 * np.exp(1.6 * learned + 0.5 * craft + rng.normal(0, 0.8, size))
    earned *= 0.6 + np.minimum(life * 2.0, 0.6)
    heaped = rng.random(size) < 0.3
    earned = np.where(heaped, np.round(earned * 20.0) / 20.0, earned)
    parts = (life, learned, craft, np.clip(earned, 0.0, 1.0))
    return tuple(
        np.minimum((part * cells).astype(np.int64), cells - 1)
        for part, cells in zip(parts, scale.shape, strict=True)
    )


@lru_cache(maxsize=4)
def census_counts(scale: Scale, *names: str) -> IntArray:
    """Return the histogram of some attributes of the generated census."""
    axes = [NAMES.index(name) for name in names]
    columns = census(scale)
    shape = tuple(scale.shape[axis] for axis in axes)
    cells = np.ravel_multi_index(tuple(columns[axis] for axis in axes), shape)
    flat = np.bincount(cells, minlength=int(np.prod(shape)))
    counts = flat.reshape(shape).astype(np.int64)
    counts.flags.writeable = False
    return counts


class Problem(NamedTuple):
    """Counts, the policy of the paper (one record more or less), random queries."""

    counts: IntArray
    policy: AddRemove
    queries: int

    @property
    def records(self) -> int:
        """Number of records."""
        return int(self.counts.sum())

    def asked(self, settings: Settings, trial: int) -> Workload:
        """Return the queries of one release: two uniform ends per attribute."""
        seed = seed_of(settings, "queries", trial)
        domain = self.policy.domain
        if domain.ndim == 1:
            return Ranges.random(domain, self.queries, rng=seed)
        return Rectangles.random(domain, self.queries, rng=seed)


def problem(settings: Settings, *names: str) -> Problem:
    """Return the problem over some attributes."""
    scale = scale_of(settings)
    counts = census_counts(scale, *names)
    return Problem(counts, AddRemove(Domain(counts.shape)), scale.queries)


def error_columns(answers: AnyArray, truth: AnyArray, records: int) -> Row:
    """Return the mean absolute and relative error of answers."""
    off = np.abs(answers - truth)
    base = np.maximum(truth, LEAST_PART * records)
    return {"absolute": float(off.mean()), "relative": float((off / base).mean())}


def released_errors(
    contender: Contender,
    over: Problem,
    settings: Settings,
    *,
    alpha: str = ALPHA,
) -> list[Row]:
    """Release once per trial and measure each release on queries of its own."""
    rows: list[Row] = []
    for trial in range(settings.trials):
        asked = over.asked(settings, trial)
        seed = seed_of(settings, contender.label, alpha, trial)
        release = seeded_release(
            contender.build(over.policy, asked, alpha), over.counts, seed
        )
        buckets = release.details.get("buckets", over.counts.size)
        rows.append(
            {
                "set": STAND_IN,
                "method": contender.label,
                "alpha": float(alpha),
                "trial": trial,
                "buckets": int(buckets),
                **error_columns(
                    release.answer(asked), asked.answer(over.counts), over.records
                ),
            }
        )
    return rows
