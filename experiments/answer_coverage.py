"""Answers of selections and groups against records: counts, sums, means, quantiles.

    python -m experiments answers           docs/data/coverage/answers.csv, anew

Records are made up, by group: many, a heavy tail, one alone, none at all, and values
below 0. Values lie anywhere in their cells, many of them on an edge.
"""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import BlowfishError, NoiseOnlyWarning
from blowfish_fast.mechanisms.certifier import Certifier
from blowfish_fast.mechanisms.registry import MECHANISMS

from .interval_coverage import write_table

DATA = Path("docs/data/coverage/answers.csv")
EDGES = (-50, -20, -5, 0, 1, 2, 5, 10, 15, 20, 30, 40, 60, 80, 120, 200, 400, 1000)
GROUPS = ("many", "tail", "one", "none", "below")
DOMAIN = bf.Domain.product(
    bf.Domain.from_edges(EDGES, name="value"), bf.Domain.from_levels(GROUPS, name="of")
)

Measure = tuple[Callable[[Any], Any], Callable[[FloatArray, int], float]]
MEASURES: dict[str, Measure] = {
    "count": (lambda groups: groups.count(), lambda one, _: one.size),
    "share": (
        lambda groups: groups.relative_count(),
        lambda one, all_: one.size / all_,
    ),
    "sum": (lambda groups: groups.sum("value"), lambda one, _: one.sum()),
    "mean": (lambda groups: groups.mean("value"), lambda one, _: one.mean()),
    "variance": (lambda groups: groups.variance("value"), lambda one, _: one.var()),
    "median": (lambda groups: groups.quantile("value"), lambda one, _: _median(one)),
}
"""How a measure is asked, and what it is of the records of a group."""


def made_up_records(seed: int = 11) -> list[FloatArray]:
    """Return the values of each group."""
    rng = np.random.default_rng(seed)
    tail = np.minimum(rng.pareto(1.1, 400) * 3, 999.0)
    on_edges = np.repeat([5.0, 20.0, 40.0], 60)
    many = np.concatenate([rng.normal(18, 12, 900).clip(-40, 190), on_edges])
    return [many, tail, np.array([7.0]), np.zeros(0), rng.uniform(-50, -1, 150)]


def counted(records: list[FloatArray]) -> IntArray:
    """Return the records of each cell."""
    each = [np.histogram(one, bins=[*EDGES[:-1], math.inf])[0] for one in records]
    return np.stack(each, axis=1).astype(np.int64)


def _median(values: FloatArray) -> float:
    """Return the first value that half of the records do not exceed."""
    return float(np.sort(values)[math.ceil(values.size / 2) - 1])


class AnswerRow(NamedTuple):
    """What was found of one mechanism and measure.

    `said` is the share of releases whose intervals are called "truth", `held` the share
    of true answers in them, `error` its standard error between releases, `width` their
    mean width, `bought` the share of certificates all of whose intervals held.
    """

    mechanism: str
    measure: str
    said: float
    held: float
    error: float
    width: float
    bought: float


def answer_coverage(
    trials: int, names: list[str] | None = None, *, certified: bool = True
) -> Iterator[AnswerRow]:
    """Yield a row for each mechanism over two attributes, and each measure.

    Unless `certified`, nothing is bought where the truth is not known.
    """
    records = made_up_records()
    counts, policy = counted(records), bf.policies.AddRemove(DOMAIN)
    for name in MECHANISMS if names is None else names:
        try:
            kind: Any = MECHANISMS[name]
            mechanism = kind(policy, bf.workloads.Identity(DOMAIN), epsilon="0.5")
            mechanism.release(counts, rng=1).group_by("of").count().interval_kind()
        except (BlowfishError, TypeError, AttributeError):
            continue
        seed = zlib.crc32(name.encode())
        made = [mechanism.release(counts, rng=seed + at) for at in range(trials)]
        for measure in MEASURES:
            yield _row(
                name, measure, made, records, counts, seed if certified else None
            )


def _row(
    name: str,
    measure: str,
    made: list[Any],
    records: list[FloatArray],
    counts: IntArray,
    seed: int | None,
) -> AnswerRow:
    ask, known = MEASURES[measure]
    # A group without records has no mean, variance or median.
    some = np.array(
        [one.size > 0 or measure in ("count", "share", "sum") for one in records]
    )
    everybody = int(counts.sum())
    true = np.array(
        [known(one, everybody) for one, has in zip(records, some, strict=True) if has]
    )
    shares, widths, bought = [], [], []
    for at, release in enumerate(made):
        answers = ask(release.group_by("of"))
        if answers.interval_kind() == "truth":
            low, high = answers.intervals(of="truth")[some].T
            shares.append(((true >= low - 1e-9) & (true <= high + 1e-9)).mean())
            widths.append((high - low).mean())
            continue
        if seed is None:
            continue
        found = Certifier(release, answers, epsilon="0.5").release(
            counts, seed + 2**32 + at
        )
        kept = ask(release.certified(found).group_by("of"))
        low, high = kept.intervals(of="truth")[some].T
        bought.append(((true >= low - 1e-9) & (true <= high + 1e-9)).all())
    return AnswerRow(
        name,
        measure,
        len(shares) / len(made),
        float(np.mean(shares)) if shares else math.nan,
        float(np.std(shares) / math.sqrt(len(shares))) if shares else math.nan,
        float(np.mean(widths)) if widths else math.nan,
        float(np.mean(bought)) if bought else math.nan,
    )


def write_answers(path: Path = DATA, trials: int = 40) -> list[AnswerRow]:
    """Write what was found as CSV; return it.

    Parameters
    ----------
    path : Path
        The file; ``docs/fill_figures.py`` sums it up for ``docs/accuracy.md``.
    trials : int
        Releases of each mechanism.

    Returns
    -------
    list of AnswerRow
        The rows, not rounded.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoiseOnlyWarning)
        rows = list(answer_coverage(trials))
    write_table(path, rows)
    return rows
