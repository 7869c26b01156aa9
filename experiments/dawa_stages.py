"""The two stages of DAWA taken apart: Figures 4 and 6 of its paper.

Figure 4   DAWA | partition, then plain noise | no partition, greedy scaling
Figure 6   one partition, four ways to measure its buckets, four workloads
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from blowfish_fast.advice.experiments.experiment import (
    Experiment,
    PaperVerdict,
    Row,
    Settings,
    Summary,
    Task,
    distinct,
    means,
)
from blowfish_fast.advice.experiments.result_files import grouped_bars, legend_above

from .contenders import Contender
from .dawa_setup import KINDS, NEEDS, OURS, PAPER, PROTOCOL, errors_of, grid_of_tasks
from .row_statistics import by_method, geometric_mean

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

EPSILON = (0.1,)
PLAIN = "Partition+Laplace"
WHOLE = "Greedy, no partition"
UNIFORM = "Partition+Uniform"
GEOMETRIC = "Partition+Geometric"

STAGES = (
    Contender(OURS, "dawa"),
    Contender(PLAIN, "dawa", {"strategy": "cells"}),
    Contender(WHOLE, "dawa", {"partition": None}),
)
SECOND_STAGES = (
    Contender(OURS, "dawa"),
    Contender(UNIFORM, "dawa", {"strategy": "uniform"}),
    Contender(GEOMETRIC, "dawa", {"strategy": "geometric"}),
    Contender(PLAIN, "dawa", {"strategy": "cells"}),
)

THREE_SETS = ("nettrace", "searchlogs", "hepth")
ALMOST = 1.1
"""How much more error still counts as almost as accurate."""


class Figure4(Experiment):
    """DAWA and its two stages alone."""

    name = "dawa-fig4"
    title = f"{PAPER}, Figure 4"
    claim = (
        "On easy sets DAWA has much lower error than greedy scaling without a "
        "partition and about that of partition with plain noise; on hard sets it has "
        "much lower error than partition with plain noise and is almost as accurate as "
        "greedy scaling alone."
    )
    protocol = f"{PROTOCOL} Epsilon 0.1, uniform ranges."
    needs = NEEDS
    size = (9.0, 4.0)

    def tasks(self, settings: Settings) -> list[Task]:
        """Return sets and drawn workloads."""
        return grid_of_tasks(settings, kinds=("uniform",), epsilons=EPSILON)

    def run(self, task: Task, settings: Settings) -> list[Row]:
        """Release DAWA and both parts of it."""
        return errors_of(task, settings, STAGES, same_seed=True)

    def summary(self, rows: Sequence[Row], settings: Settings) -> Summary:
        """Return mean errors by set."""
        errors, methods, lines = by_method(rows, "set")
        sets = distinct(rows, "set")
        if not sets or len(errors) < len(sets) * len(methods):
            return Summary(
                ["set", *methods],
                lines,
                PaperVerdict("not reproduced", "some sets are missing"),
            )
        whole = [errors[name, OURS] / errors[name, WHOLE] for name in sets]
        plain = [errors[name, OURS] / errors[name, PLAIN] for name in sets]
        easy, hard = whole[:3], plain[-2:]
        held = max(whole) <= ALMOST and max(easy) < 1.0 and max(hard) < 1.0
        by = (
            f"DAWA has {min(whole):.2f} to {max(whole):.2f} times the error of greedy "
            f"scaling alone ({max(easy):.2f} at most on the easy sets) and "
            f"{min(plain):.2f} to {max(plain):.2f} times that of partition with plain "
            f"noise ({max(hard):.2f} at most on the two hardest)"
        )
        return Summary(
            ["set", *methods],
            lines,
            PaperVerdict("reproduced" if held else "not reproduced", by),
        )

    def draw(self, rows: Sequence[Row], figure: FigureBase) -> None:
        """Draw mean errors as bars."""
        errors = means(rows, "set", "method")
        axes = figure.subplots()
        grouped_bars(axes, errors, distinct(rows, "set"), distinct(rows, "method"))
        legend_above(figure, axes)


class Figure6(Experiment):
    """Ways to measure the buckets of one partition."""

    name = "dawa-fig6"
    title = f"{PAPER}, Figure 6"
    claim = (
        "DAWA's greedy scaling does very well on all workloads: it always has less "
        "error than geometric scaling on uniform ranges, and equals plain noise on the "
        "identity workload."
    )
    protocol = f"{PROTOCOL} Epsilon 0.1; Nettrace, Search Logs, HepPh; four workloads."
    needs = tuple(f"1d/{name}" for name in THREE_SETS)
    size = (10.0, 7.0)

    def tasks(self, settings: Settings) -> list[Task]:
        """Return sets, kinds of workload and drawn workloads."""
        return grid_of_tasks(settings, kinds=KINDS, epsilons=EPSILON, sets=THREE_SETS)

    def run(self, task: Task, settings: Settings) -> list[Row]:
        """Release with every second stage."""
        return errors_of(task, settings, SECOND_STAGES, same_seed=True)

    def summary(self, rows: Sequence[Row], settings: Settings) -> Summary:
        """Return mean errors by workload and set."""
        errors, methods, lines = by_method(rows, "workload", "set")
        places = [tuple(line[:2]) for line in lines]
        geometric = [
            errors[(*place, OURS)] / errors[(*place, GEOMETRIC)]
            for place in places
            if place[0] == "uniform"
        ]
        identity = [
            errors[(*place, OURS)] / errors[(*place, PLAIN)]
            for place in places
            if place[0] == "identity"
        ]
        best = [
            errors[(*place, OURS)]
            / min(errors[(*place, one)] for one in methods if one != OURS)
            for place in places
        ]
        if not geometric or not identity:
            verdict = PaperVerdict("not reproduced", "some workloads are missing")
        else:
            equal = max(abs(ratio - 1.0) for ratio in identity) <= 0.02
            held = max(geometric) < 1.0 and equal
            verdict = PaperVerdict(
                "reproduced" if held else "not reproduced",
                f"at most {max(geometric):.2f} times the error of geometric scaling on "
                f"uniform ranges, {geometric_mean(identity):.2f} times that of plain "
                f"noise on the same buckets for single cells, at most {max(best):.2f} "
                "times that of the best alternative anywhere",
            )
        return Summary(["workload", "set", *methods], lines, verdict)

    def draw(self, rows: Sequence[Row], figure: FigureBase) -> None:
        """Draw a panel of bars per workload."""
        errors = means(rows, "workload", "set", "method")
        kinds, names = distinct(rows, "workload"), distinct(rows, "set")
        panels = np.ravel(figure.subplots(2, 2))
        for axes, kind in zip(panels, kinds, strict=False):
            grouped_bars(axes, errors, names, distinct(rows, "method"), at=(kind,))
            axes.set_title(str(kind), fontsize=10)
        legend_above(figure, panels[0])


EXPERIMENTS = (Figure4(), Figure6())
