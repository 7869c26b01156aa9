"""Adult by choice of the data, and surveys that begin with tables of another one.

    python -m experiments census --data FOLDER --trials 3    docs/data/tables/census.csv
    python -m experiments census --data FOLDER --only line      some of its rows again
    python -m experiments prior --data FOLDER                docs/data/tables/prior.csv

FOLDER holds tables/adult.csv.gz and tables/adult-domain.json, as `rivals` takes them.
Shares of records in a wrong cell; estimates are scaled to the true number of records
first. A prior is a part of the survey itself, drawn at random or the records with the
lowest values of one attribute, and what is left is released.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.typing import FloatArray

from .chosen_records import DATA, write_rows
from .chosen_surveys import JUDGED_ON, adult, chosen_surveys
from .chosen_tables import RHO, Truth, release
from .survey_tables import Survey

Estimate = Callable[[tuple[int, ...]], FloatArray]


class CensusCase(NamedTuple):
    """What is released, under which promise."""

    neighbours: str
    policy: str
    budget: dict[str, str]
    ways: int = 2
    maker: type[bf.ChosenTables] = bf.ChosenTables


class ByCells(bf.ChosenTables):
    """Single tables are measured by their cells, never by running totals."""

    def _spans(self) -> dict[int, int]:
        return {}


CENSUS_CASES = (
    CensusCase("one record more or less", "add_remove", {"epsilon": "1"}),
    CensusCase("one record more or less", "add_remove", {"rho": RHO}),
    CensusCase("one record more or less", "add_remove", {"epsilon": "1"}, 3),
    CensusCase("one record more or less", "add_remove", {"rho": RHO}, 3),
    CensusCase("any record to any other", "full", {"epsilon": "1"}),
    CensusCase("one attribute at a time", "attribute", {"epsilon": "1"}),
    CensusCase(
        "one attribute at a time, ordered ones to the next cell",
        "line",
        {"epsilon": "1"},
    ),
    CensusCase(
        "the same, single tables by cells in place of running totals",
        "line",
        {"epsilon": "1"},
        maker=ByCells,
    ),
)


class CensusRow(NamedTuple):
    """Shares of records in a wrong cell, and CPU seconds of a release."""

    neighbours: str
    budget: str
    asked: int
    model: float
    records: float
    three_model: float
    three_records: float
    seconds: float
    tables: float
    """Measured after single ones, screens included."""
    trials: int


def of_three(truth: Truth, estimate: Estimate) -> float:
    """Return the share of records in a wrong cell, mean over all tables of three."""
    sizes = truth.survey.domain.shape
    shares = []
    for axes in combinations(range(len(sizes)), 3):
        true = truth._table(truth.codes, axes, sizes)
        shares.append(truth.share(estimate(axes), true))
    return float(np.mean(shares))


def one_census(truth: Truth, case: CensusCase, seed: int) -> tuple[float, ...]:
    """Release a survey once and compare with the truth.

    Parameters
    ----------
    truth : Truth
        The survey.
    case : CensusCase
        What is released.
    seed : int
        Of the release, and of its synthetic records.

    Returns
    -------
    tuple of float
        Shares of records in a wrong cell, CPU seconds and tables, in the order of
        `CensusRow`.
    """
    sizes = truth.survey.domain.shape
    asked = bf.workloads.Tables(truth.survey.domain, ways=case.ways)
    out, seconds = release(
        truth,
        case.policy,
        case.budget,
        seed,
        case.maker,
        choose="data",
        asked=asked,
    )
    cells = out._fitted.cells(truth.count, np.random.default_rng(seed))

    def drawn(axes: tuple[int, ...]) -> FloatArray:
        return truth._table(cells, axes, sizes)

    model: Estimate = out.model.table
    return (
        truth.misplaced(model),
        truth.misplaced(drawn),
        of_three(truth, model),
        of_three(truth, drawn),
        seconds,
        sum(step != "single" for step in out.measured["step"]),
    )


def census_row(case: CensusCase, releases: Sequence[tuple[float, ...]]) -> CensusRow:
    """Return the means over some releases of a case, each as `one_census` has it."""
    ((currency, amount),) = case.budget.items()
    means = np.mean(releases, axis=0).tolist()
    return CensusRow(
        case.neighbours,
        f"{currency} {amount}",
        case.ways,
        model=means[0],
        records=means[1],
        three_model=means[2],
        three_records=means[3],
        seconds=means[4],
        tables=means[5],
        trials=len(releases),
    )


def _recorded(path: Path) -> dict[tuple[str, str, int], CensusRow]:
    """Return the rows of earlier runs by neighbours, budget and tables asked."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = [
            CensusRow(
                row["neighbours"],
                row["budget"],
                int(row["asked"]),
                model=float(row["model"]),
                records=float(row["records"]),
                three_model=float(row["three_model"]),
                three_records=float(row["three_records"]),
                seconds=float(row["seconds"]),
                tables=float(row["tables"]),
                trials=int(row["trials"]),
            )
            for row in csv.DictReader(file)
        ]
    return {row[:3]: row for row in rows}


def write_census(
    folder: Path,
    trials: int,
    only: Sequence[str] = (),
    path: Path = DATA / "census.csv",
) -> Iterator[CensusRow]:
    """Release Adult in every case; write the rows once all of them are known.

    Parameters
    ----------
    folder : Path
        Holds tables/adult.csv.gz.
    trials : int
        Releases of each case.
    only : sequence of str
        Names of policies, as `POLICIES` has them; all without.
    path : Path
        The file. A row takes the place of an earlier one of the same case.

    Yields
    ------
    CensusRow
        As soon as it is known.
    """
    truth, recorded = Truth(adult(folder)), _recorded(path)
    for case in CENSUS_CASES:
        if only and case.policy not in only:
            continue
        releases = [one_census(truth, case, seed) for seed in range(trials)]
        row = census_row(case, releases)
        recorded[row[:3]] = row
        yield row
    write_rows(path, list(recorded.values()))


class PriorRow(NamedTuple):
    """One survey with and without another one's tables, at epsilon 1."""

    survey: str
    role: str
    records: int
    prior: int
    drawn: str
    without: float
    with_prior: float

    @property
    def ratio(self) -> float:
        """What a prior leaves of the error."""
        return self.with_prior / self.without


PRIOR_CASES: tuple[tuple[str, float, str], ...] = (
    ("adult", 0.2, "random"),
    ("adult", 0.05, "random"),
    ("adult", 0.3, "lowest"),
    ("cps91", 0.3, "random"),
    ("cps91", 0.3, "lowest"),
    *((name, 0.3, how) for name in JUDGED_ON for how in ("random", "lowest")),
)
"""Surveys, the part that serves as a prior, and which records that is."""


def parted(survey: Survey, part: float, how: str) -> tuple[Survey, Survey]:
    """Return the part of a survey that serves as a prior, and what is left.

    Parameters
    ----------
    survey : Survey
        All records.
    part : float
        Share of the records in the prior, about.
    how : {"random", "lowest"}
        A part drawn with seed 1, or the records with the lowest values of age, or of
        the first attribute where there is no age; ties are all taken.

    Returns
    -------
    prior, rest : Survey
        Both over the same cells.
    """
    names = list(survey.columns)
    count = len(survey.columns[names[0]])
    if how == "random":
        first = np.random.default_rng(1).random(count) < part
    else:
        values = survey.columns["age" if "age" in names else names[0]]
        first = values <= np.sort(values)[int(part * count)]
    halves = [
        survey._replace(
            columns={name: values[mask] for name, values in survey.columns.items()}
        )
        for mask in (first, ~first)
    ]
    return halves[0], halves[1]


def prior_row(survey: Survey, part: float, how: str) -> PriorRow:
    """Release what is left of a survey once without and once with a prior.

    Parameters
    ----------
    survey : Survey
        All records.
    part, how : float, str
        As `parted` takes them.

    Returns
    -------
    PriorRow
        Shares of records in a wrong cell, mean over all pairs of attributes.
    """
    other, rest = parted(survey, part, how)
    known, truth = Truth(other), Truth(rest)
    pairs = {axes: table for axes, table in known.tables.items() if len(axes) == 2}
    shares = []
    for prior in (None, pairs):
        out, _ = release(
            truth, "add_remove", {"epsilon": "1"}, 0, choose="data", prior=prior
        )
        away = [
            truth.share(out.model.table(axes), true)
            for axes, true in truth.tables.items()
            if len(axes) == 2
        ]
        shares.append(float(np.mean(away)))
    role = "judged" if survey.name in JUDGED_ON else "looked at"
    return PriorRow(survey.name, role, truth.count, known.count, how, *shares)


def write_priors(
    folder: Path | None, only: Sequence[str] = (), path: Path = DATA / "prior.csv"
) -> Iterator[PriorRow]:
    """Release surveys with and without a prior; write the rows at the end.

    Surveys whose package or file is not there are left out.

    Parameters
    ----------
    folder : Path or None
        Holds tables/adult.csv.gz.
    only : sequence of str
        Names of surveys; all without.
    path : Path
        The file.

    Yields
    ------
    PriorRow
        As soon as it is known.
    """
    every = {survey.name: survey for survey in chosen_surveys(folder)}
    rows = []
    for name, part, how in PRIOR_CASES:
        if name in every and (not only or name in only):
            rows.append(prior_row(every[name], part, how))
            yield rows[-1]
    if rows and not only:
        write_rows(path, rows)
