"""Tables of surveys by plan, by choice of the data, and by whichever is better.

    python -m experiments chosen --data FOLDER --trials 3
    python -m experiments chosen --only judged          docs/data/tables/judged.csv
    python -m experiments chosen --only judged --only line       some of its rows again

A line for each survey, policy and budget: the share of records in a wrong cell, mean
over all tables of one and two attributes. Estimates are scaled to the true number of
records first. "independent" are the exact single tables multiplied, "singles" noisy and
smoothed ones that have the whole budget; "plan" is the better of the fitted tables and
the synthetic records of `Contingency`.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.typing import FloatArray

from .chosen_records import DATA, write_rows
from .chosen_surveys import JUDGED_ON, LOOKED_AT, chosen_surveys
from .survey_tables import Survey

RHO = "0.014973"
"""What (1, 1e-9) is in rho, rounded down."""


def one_step(domain: Any) -> Any:
    """Return the policy of one attribute at a time, ordered ones by one cell."""
    lines = {
        str(axis.name): bf.policies.Line(domain.marginal([axis.name]))
        for axis in domain.attributes
        if axis.levels is None
    }
    return bf.policies.TablePolicy(domain, lines)


POLICIES: dict[str, Callable[[Any], Any]] = {
    "add_remove": bf.policies.AddRemove,
    "full": bf.policies.Full,
    "attribute": lambda domain: bf.policies.TablePolicy(domain, {}),
    "line": one_step,
}

CASES: tuple[tuple[str, dict[str, str]], ...] = (
    ("add_remove", {"epsilon": "1"}),
    ("add_remove", {"rho": RHO}),
    ("add_remove", {"epsilon": "0.1"}),
    ("full", {"epsilon": "1"}),
    ("attribute", {"epsilon": "1"}),
    ("line", {"epsilon": "1"}),
)
"""Policies and budgets that are compared."""


class ChosenRow(NamedTuple):
    """Shares of records in a wrong cell, and CPU seconds of the release by choice."""

    survey: str
    policy: str
    budget: str
    independent: float
    singles: float
    """Independence of noisy single tables: nobody private does better without pairs."""
    predicted: float
    """Of the linear tables of the plan, by public numbers: what "best" goes by."""
    plan: float
    data: float
    records: float
    best: float
    took: str
    """What "best" decided in each trial: "d" for the data, "p" for the plan."""
    seconds: float

    @property
    def behind(self) -> float:
        """What "best" has over the better of both."""
        return self.best / min(self.plan, self.data)

    @property
    def beside_independence(self) -> float:
        """What "best" has over independence, exact or as well as noise allows."""
        return self.best / max(self.independent, self.singles)


class Truth:
    """True tables of a survey, and how far estimates of them are off."""

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.asked = bf.workloads.Tables(survey.domain, ways=2)
        sizes = survey.domain.shape
        self.codes = [
            np.searchsorted(axis.levels, survey.columns[str(axis.name)])
            if axis.levels is not None
            else np.asarray(survey.columns[str(axis.name)])
            for axis in survey.domain.attributes
        ]
        self.count = len(self.codes[0])
        self.tables = {
            axes: self._table(self.codes, axes, sizes) for axes in self.asked.tables
        }

    @staticmethod
    def _table(
        codes: Sequence[Any], axes: tuple[int, ...], sizes: Sequence[int]
    ) -> FloatArray:
        shape = [sizes[axis] for axis in axes]
        places = np.ravel_multi_index([codes[axis] for axis in axes], shape)
        counts = np.bincount(places, minlength=math.prod(shape)).reshape(shape)
        return counts.astype(np.float64)

    def misplaced(self, estimate: Callable[[tuple[int, ...]], FloatArray]) -> float:
        """Return the share of records in a wrong cell, mean over the asked tables."""
        return float(
            np.mean(
                [self.share(estimate(axes), true) for axes, true in self.tables.items()]
            )
        )

    def share(self, estimate: FloatArray, true: FloatArray) -> float:
        """Return the share of records in a wrong cell of one table, once scaled."""
        scale = self.count / max(float(estimate.sum()), 1e-300)
        return float(np.abs(estimate * scale - true).sum()) / (2.0 * self.count)

    def independent(self, axes: tuple[int, ...]) -> FloatArray:
        """Return the product of exact single tables."""
        product = np.ones(())
        for axis in axes:
            product = np.multiply.outer(product, self.tables[axis,] / self.count)
        return self.count * product

    def of_release(self, out: Any) -> float:
        """Return how far the fitted tables of a release are off."""
        return self.misplaced(out._fitted.table)

    def of_records(self, out: Any, seed: int) -> float:
        """Return how far as many synthetic records are off."""
        cells = out._fitted.cells(self.count, np.random.default_rng(seed))
        sizes = self.survey.domain.shape
        return self.misplaced(lambda axes: self._table(cells, axes, sizes))


def release(
    truth: Truth,
    policy: str,
    budget: dict[str, str],
    seed: int,
    maker: type[bf.ChosenTables] = bf.ChosenTables,
    **more: Any,
) -> tuple[Any, float]:
    """Release a survey once; return what came out and the CPU seconds of it."""
    stated: Any = {**budget, **more}
    asked = stated.pop("asked", truth.asked)
    mechanism = maker(POLICIES[policy](truth.survey.domain), asked, **stated)
    counted = bf.TableCounts.from_records(mechanism, truth.survey.columns)
    begun = time.process_time()
    out = mechanism.release(counted, rng=seed)
    return out, time.process_time() - begun


def compared(
    truth: Truth, policy: str, budget: dict[str, str], trials: int
) -> ChosenRow:
    """Release a survey by plan, by choice and by the better, and compare."""
    found: dict[str, list[float]] = {
        name: [] for name in ("singles", "plan", "data", "records", "best", "seconds")
    }
    took = ""
    alone = bf.workloads.Tables(truth.survey.domain, ways=1)
    for seed in range(trials):
        out, _ = release(truth, policy, budget, seed, choose="data", asked=alone)
        found["singles"].append(truth.of_release(out))
        out, _ = release(truth, policy, budget, seed, choose="plan")
        planned = min(truth.of_release(out), truth.of_records(out, seed))
        found["plan"].append(planned)
        out, seconds = release(truth, policy, budget, seed, choose="data")
        found["data"].append(truth.of_release(out))
        found["records"].append(truth.of_records(out, seed))
        found["seconds"].append(seconds)
        out, _ = release(
            truth, policy, budget, seed, choose="best", records=truth.count
        )
        by_data = isinstance(out, bf.ChosenTablesRelease)
        took += "d" if by_data else "p"
        own = truth.of_release(out)
        found["best"].append(own if by_data else min(own, truth.of_records(out, seed)))
    stated: Any = budget
    asked = bf.ChosenTables(
        POLICIES[policy](truth.survey.domain), truth.asked, choose="data", **stated
    )
    predicted = asked.planned_misplaced(truth.count)
    mean = {name: float(np.mean(values)) for name, values in found.items()}
    ((currency, amount),) = budget.items()
    return ChosenRow(
        truth.survey.name,
        policy,
        f"{currency} {amount}",
        truth.misplaced(truth.independent),
        mean["singles"],
        predicted,
        mean["plan"],
        mean["data"],
        mean["records"],
        mean["best"],
        took,
        mean["seconds"],
    )


def _recorded(path: Path) -> dict[tuple[str, str, str], ChosenRow]:
    """Return the rows of earlier runs by survey, policy and budget."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = [
            ChosenRow(
                row["survey"],
                row["policy"],
                row["budget"],
                independent=float(row["independent"]),
                singles=float(row["singles"]),
                predicted=float(row["predicted"]),
                plan=float(row["plan"]),
                data=float(row["data"]),
                records=float(row["records"]),
                best=float(row["best"]),
                took=row["took"],
                seconds=float(row["seconds"]),
            )
            for row in csv.DictReader(file)
        ]
    return {(row.survey, row.policy, row.budget): row for row in rows}


def chosen_report(
    folder: Path | None,
    trials: int,
    only: Sequence[str] = (),
    path: Path = DATA / "judged.csv",
) -> Iterator[str]:
    """Yield a line for each survey, policy and budget, and how far "best" is behind.

    Parameters
    ----------
    folder : Path or None
        Holds tables/adult.csv.gz; without it Adult is left out.
    trials : int
        Releases of each kind.
    only : sequence of str
        Names of surveys, "judged" or "looked", and of policies; all without.
    path : Path
        Takes the rows of surveys that played no part, once all of them are known; a
        row takes the place of an earlier one of the same survey, policy and budget.

    Yields
    ------
    str
        A line, as soon as it is known.
    """
    names = ChosenRow._fields
    recorded = _recorded(path)
    yield "  ".join(f"{name:>11}" for name in names)
    behind: dict[str, list[float]] = {"looked at": [], "judged on": []}
    beside: dict[str, list[float]] = {kind: [] for kind in behind}
    policies = {*POLICIES} & {*only} or {*POLICIES}
    named = {*only} - policies
    for survey in chosen_surveys(folder):
        kind = "judged on" if survey.name in JUDGED_ON else "looked at"
        assert survey.name in (*JUDGED_ON, *LOOKED_AT)
        if named and not {survey.name, kind.partition(" ")[0]} & named:
            continue
        truth = Truth(survey)
        for policy, budget in CASES:
            if policy not in policies:
                continue
            row = compared(truth, policy, budget, trials)
            behind[kind].append(row.behind)
            beside[kind].append(row.beside_independence)
            if kind == "judged on":
                recorded[row.survey, row.policy, row.budget] = row
            texts = (f"{one:.4f}" if isinstance(one, float) else one for one in row)
            yield "  ".join(f"{text:>11}" for text in texts)
    order = [
        (survey, policy, " ".join(*budget.items()))
        for survey in JUDGED_ON
        for policy, budget in CASES
    ]
    if behind["judged on"] and {*order} <= {*recorded}:
        write_rows(path, [recorded[place] for place in order])
    for kind, ratios in behind.items():
        if ratios:
            mean = math.exp(float(np.mean(np.log(ratios))))
            yield (
                f"{kind}: best over the better of both, geometric mean {mean:.3f}, "
                f"at most {max(ratios):.3f}; over independence, exact or of noisy "
                f"single tables, at most {max(beside[kind]):.3f}"
            )
