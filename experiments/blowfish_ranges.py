"""Ranges under distance thresholds: Figure 2(b) and 2(c) of the Blowfish paper.

theta   1 (ordered)  10  50 ... full (differential privacy)     error of a range
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.advice.experiments.datasets import DataSet
from blowfish_fast.advice.experiments.experiment import (
    Experiment,
    PaperVerdict,
    Row,
    Settings,
    Summary,
    Task,
    Value,
    distinct,
    means,
    seed_of,
)
from blowfish_fast.data.domain import Domain
from blowfish_fast.policies import Full, Line, Policy, Threshold
from blowfish_fast.workloads import Ranges

from .blowfish_clusters import EPSILONS, PAPER, SHOWN
from .contenders import Contender, contender_errors
from .drawing import add_legend, curves
from .paper_sets import line_set, map_set
from .row_statistics import geometric_mean, quartiles

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

ADULT_CELLS = 4357
TWITTER_CELLS = 400
QUERIES = 10_000
FULL = "full"
THETAS: dict[str, dict[str, int]] = {
    "adult": {str(one): one for one in (1000, 500, 100, 50, 10, 1)},
    "twitter": {"500 km": 90, "50 km": 9, "5 km": 1},
}
"""Thresholds as the paper names them, in cells (of 5.555 km for latitudes)."""

WAYS = (
    Contender("fan-out 16", "ordered_hierarchical", {"fan_out": 16}),
    Contender("fan-out chosen", "ordered_hierarchical"),
)
"""The paper's fan-out, and the one of least predicted error."""


class Figure2(Experiment):
    """Mean squared error of random ranges by epsilon and threshold."""

    name = "blowfish-fig2"
    title = f"{PAPER}, Figure 2(b, c)"
    claim = (
        "The error of the ordered hierarchical mechanism falls with the threshold, by "
        "orders of magnitude between the whole domain (differential privacy) and "
        "theta = 1 (the ordered mechanism)."
    )
    protocol = (
        "Mean squared error of 10000 random ranges, epsilon 0.1 to 1, fan-out 16. "
        "Capital loss (Adult) has 4096 published cells, followed by empty ones up to "
        "the paper's 4357; latitudes of tweets are spread from 256 to 400 cells. The "
        "first block has the same noise as all others, more than is printed."
    )
    needs = ("1d/adult", "2d/twitter")
    trials = 50
    size = (11.0, 4.5)

    def tasks(self, settings: Settings) -> list[Task]:
        """Return every set, threshold and epsilon."""
        epsilons = (0.5,) if settings.quick else EPSILONS
        return [
            Task(
                f"{name}/{theta}/{epsilon}",
                {"set": name, "theta": theta, "epsilon": epsilon},
            )
            for name, thetas in THETAS.items()
            for theta in (FULL, *(list(thetas)[-2:] if settings.quick else thetas))
            for epsilon in epsilons
        ]

    def run(self, task: Task, settings: Settings) -> list[Row]:
        """Release once per trial and ask the same ranges."""
        name, theta = task.arguments["set"], task.arguments["theta"]
        epsilon = task.arguments["epsilon"]
        data = _ordered_set(name, settings)
        domain = Domain(data.counts.size)
        queries = 200 if settings.quick else QUERIES
        ranges = Ranges.random(domain, queries, rng=seed_of(settings, "ranges", name))
        policy = _policy(name, theta, domain)
        rows: list[Row] = []
        for way in WAYS:
            seeds = [
                seed_of(settings, task.key, way.label, trial)
                for trial in range(settings.trials)
            ]
            predicted = way.build(policy, ranges, str(epsilon)).expected_error().mean()
            for row in contender_errors(
                way, policy, ranges, str(epsilon), data.counts, seeds, measure="squared"
            ):
                rows.append(
                    {
                        "set": data.label,
                        "theta": theta,
                        "epsilon": epsilon,
                        **row,
                        "predicted": float(predicted),
                    }
                )
        return rows

    def summary(self, rows: Sequence[Row], settings: Settings) -> Summary:
        """Return errors at three epsilons, and how far theta = 1 lies below full."""
        errors = means(rows, "set", "theta", "method", "epsilon")
        predicted = means(rows, "set", "theta", "method", "epsilon", value="predicted")
        epsilons = [one for one in distinct(rows, "epsilon") if one in SHOWN]
        places = list(dict.fromkeys(key[:3] for key in errors))
        lines: list[list[Value]] = [
            [*place, *(errors.get((*place, one)) for one in epsilons)]
            for place in places
        ]
        gains = []
        for (name, theta, method, epsilon), error in errors.items():
            whole = errors.get((name, FULL, method, epsilon))
            if whole and method == WAYS[0].label and theta in ("1", "5 km", 1):
                gains.append(whole / error)
        if not gains:
            verdict = PaperVerdict("not reproduced", "no error was measured")
        else:
            exact = geometric_mean(
                errors[key] / predicted[key] for key in errors if predicted[key] > 0
            )
            verdict = PaperVerdict(
                "reproduced" if min(gains) >= 10 else "not reproduced",
                f"at theta = 1 the error is {min(gains):,.0f} to {max(gains):,.0f} "
                "times lower than under differential privacy; measured errors are "
                f"{exact:.3f} of those predicted from noise alone (geometric mean), "
                "because the fit knows that running totals never fall",
            )
        return Summary(
            ["set", "theta", "method", *(f"epsilon {one}" for one in epsilons)],
            lines,
            verdict,
            [
                "The text of the paper says that error decreases as theta increases; "
                "its figure, and the mechanism, show the opposite."
            ],
        )

    def draw(self, rows: Sequence[Row], figure: FigureBase) -> None:
        """Draw a panel per set, with quartiles."""
        errors = means(rows, "set", "theta", "method", "epsilon")
        spread = quartiles(rows, "set", "theta", "method", "epsilon")
        names = distinct(rows, "set")
        panels = np.atleast_1d(figure.subplots(1, max(len(names), 1)))
        for axes, name in zip(panels, names, strict=False):
            series: dict[str, dict[float, float]] = {}
            bands: dict[str, dict[float, tuple[float, float]]] = {}
            for key, error in errors.items():
                where, theta, method, epsilon = key
                if where == name and method == WAYS[0].label:
                    assert isinstance(epsilon, int | float)
                    label = f"theta = {theta}"
                    series.setdefault(label, {})[float(epsilon)] = error
                    bands.setdefault(label, {})[float(epsilon)] = spread[key]
            curves(axes, series, label="mean squared error", bands=bands)
            axes.set_title(str(name), fontsize=10)
            add_legend(axes)


def _ordered_set(name: str, settings: Settings) -> DataSet:
    """Return capital loss or latitudes over as many cells as the paper has."""
    if name == "adult":
        cells = 256 if settings.quick else ADULT_CELLS
        found = line_set("adult", settings.data, min(cells, 4096))
        padded = np.zeros(cells, dtype=np.int64)
        padded[: found.counts.size] = found.counts[:cells]
        return found._replace(counts=padded)
    found = map_set("twitter", settings.data)
    latitudes = found.counts.sum(axis=1)
    return found._replace(counts=_spread(latitudes, TWITTER_CELLS))


def _spread(counts: IntArray, cells: int) -> IntArray:
    """Spread counts over more cells, whole records, keeping running totals close."""
    totals = np.concatenate([[0], np.cumsum(counts)])
    places = np.linspace(0, counts.size, cells + 1)
    between = np.interp(places, np.arange(counts.size + 1), totals)
    spread: IntArray = np.diff(np.rint(between).astype(np.int64))
    return spread


def _policy(name: str, theta: str, domain: Domain) -> Policy:
    if theta == FULL:
        return Full(domain)
    cells = THETAS[name][theta]
    return Line(domain) if cells == 1 else Threshold(domain, theta=cells)


EXPERIMENTS = (Figure2(),)
