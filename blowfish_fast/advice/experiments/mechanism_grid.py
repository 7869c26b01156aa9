"""Errors of every mechanism on every data set of a folder, at every budget.

True counts are compared with noisy answers, which nobody may do with private data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import BlowfishError, InputError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.registry import built, find_mechanism
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

from .datasets import DataSet, data_set
from .experiment import (
    Experiment,
    Row,
    Settings,
    Summary,
    Task,
    Value,
    distinct,
    means,
    seed_of,
    skipped_notes,
)
from .result_files import grouped_bars, legend_above

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase


COLUMNS_OF_PANELS = 2


class MechanismGrid(Experiment):
    """The mean absolute error of mechanisms on data sets, for each epsilon.

    Parameters
    ----------
    mechanisms, sets, epsilons : sequence of str
        Names, ``"package:Class"`` for a mechanism from outside, ``"1d/steps"`` for a
        set (``datasets.sets_in`` lists those of a folder), and exact decimals, or
        ``"rho=0.01"``.
    policy, workload : callable
        Make the policy and the workload of a domain. They are pickled, so they stand
        in a module: classes, or ``functools.partial`` of functions.
    max_cells : int, optional
        Neighbours are summed until no axis has more cells.
    words : mapping of str, optional
        How the policy and the workload were asked for; shown in the title.

    Examples
    --------
    >>> from blowfish_fast import policies, workloads
    >>> grid = MechanismGrid(
    ...     ["laplace", "ordered"], ["1d/steps"], ["1"],
    ...     policies.Line, workloads.Prefixes, max_cells=64,
    ... )
    >>> settings = Settings(trials=3, seed=1)
    >>> rows = grid.run(grid.tasks(settings)[0], settings)
    >>> grid.summary(rows, settings).columns
    ('set', 'epsilon', 'laplace', 'ordered', 'lowest')
    >>> grid.summary(rows, settings).lines[0][-1]
    'ordered'
    """

    name = "comparison"

    def __init__(
        self,
        mechanisms: Sequence[str],
        sets: Sequence[str],
        epsilons: Sequence[str],
        policy: Callable[[Domain], Policy],
        workload: Callable[[Domain], Workload],
        max_cells: int | None = None,
        words: Mapping[str, str] | None = None,
    ) -> None:
        for name in mechanisms:
            find_mechanism(name)
        every = {"mechanisms": mechanisms, "sets": sets, "epsilons": epsilons}
        for what, names in every.items():
            if not names or len(set(names)) < len(names):
                raise InputError(
                    f"{what} must be at least one, each named once; received "
                    f"{list(names)}"
                )
        self.mechanisms = tuple(mechanisms)
        self.needs = tuple(sets)
        self.epsilons = tuple(epsilons)
        self.policy = policy
        self.workload = workload
        self.max_cells = max_cells
        words = words or {"policy": str(policy), "workload": str(workload)}
        listed = {what: list(names) for what, names in every.items()}
        self.parameters = {**listed, "max_cells": max_cells, **words}
        self.title = f"Error of {len(mechanisms)} mechanisms on {len(sets)} data sets"
        self.protocol = (
            "Mean absolute error per query over the trials; "
            f"{', '.join(f'{name} {value}' for name, value in words.items())}."
        )
        rows = -(-len(epsilons) // COLUMNS_OF_PANELS)
        self.size = (10.0, 1.5 + 3.2 * rows)

    def check(self, settings: Settings) -> None:
        """Refuse a policy or workload that does not fit a set, before any work."""
        for name in self.needs:
            self._problem(name, settings)

    def tasks(self, settings: Settings) -> list[Task]:
        """Return a task for every set and epsilon."""
        return [
            Task(f"{name}/{epsilon}", {"set": name, "epsilon": epsilon})
            for name in self.needs
            for epsilon in self.epsilons
        ]

    def run(self, task: Task, settings: Settings) -> list[Row]:
        """Release every mechanism on one set at one epsilon, once per trial.

        Parameters
        ----------
        task : Task
            The set and the epsilon.
        settings : Settings
            Trials, seed and where data are.

        Returns
        -------
        list[Row]
            A row for every mechanism and trial.
        """
        epsilon = task.arguments["epsilon"]
        data, policy, workload = self._problem(task.arguments["set"], settings)
        return [
            {"set": data.label, "epsilon": epsilon, **row}
            for name in self.mechanisms
            for row in release_errors(
                name,
                partial(
                    built,
                    find_mechanism(name),
                    policy,
                    workload,
                    epsilon=read_budget(epsilon),
                ),
                workload,
                data.counts,
                [
                    seed_of(settings, task.key, name, trial)
                    for trial in range(settings.trials)
                ],
            )
        ]

    def summary(self, rows: Sequence[Row], settings: Settings) -> Summary:
        """Return a line for every set and epsilon, and who has the lowest error.

        Parameters
        ----------
        rows : Sequence[Row]
            What all tasks returned.
        settings : Settings
            Trials, seed and where data are.

        Returns
        -------
        Summary
            The lines and the verdict.
        """
        # A CSV gives epsilons back as numbers.
        mean_errors = {
            (data, str(epsilon), method): error
            for (data, epsilon, method), error in means(
                rows, "set", "epsilon", "method"
            ).items()
        }
        lines: list[list[Value]] = []
        for data, epsilon in dict.fromkeys((key[0], key[1]) for key in mean_errors):
            errors = [
                mean_errors.get((data, epsilon, method)) for method in self.mechanisms
            ]
            ran = [error for error in errors if error is not None]
            best = self.mechanisms[errors.index(min(ran))]
            lines.append([data, epsilon, *errors, best])
        columns = ("set", "epsilon", *self.mechanisms, "lowest")
        return Summary(columns, lines, notes=skipped_notes(rows))

    def draw(self, rows: Sequence[Row], figure: FigureBase) -> None:
        """Draw bars for every set and mechanism, a panel for each epsilon.

        Parameters
        ----------
        rows : Sequence[Row]
            What all tasks returned.
        figure : FigureBase
            Where the panels are drawn.
        """
        mean_errors = means(rows, "epsilon", "set", "method")
        epsilons, sets = distinct(rows, "epsilon"), distinct(rows, "set")
        if not mean_errors:
            return
        wide = min(COLUMNS_OF_PANELS, len(epsilons))
        panels = figure.subplots(-(-len(epsilons) // wide), wide, squeeze=False).flat
        for panel in list(panels)[len(epsilons) :]:
            panel.set_visible(False)
        for panel, epsilon in zip(panels, epsilons, strict=False):
            grouped_bars(panel, mean_errors, sets, self.mechanisms, at=(epsilon,))
            panel.set_title(read_budget(epsilon).words(), fontsize=9)
        legend_above(figure, panels[0])

    def _problem(
        self, name: str, settings: Settings
    ) -> tuple[DataSet, Policy, Workload]:
        data = data_set(name, settings.data, self.max_cells)
        domain = Domain(data.counts.shape)
        return data, self.policy(domain), self.workload(domain)


def read_budget(words: Any) -> Budget:
    """Read an epsilon, or the rho of "rho=0.01"."""
    named, _, amount = str(words).rpartition("=")
    return Budget.stated(rho=amount) if named else Budget.stated(epsilon=words)


def release_errors(
    label: str,
    build: Callable[[], Mechanism],
    workload: Workload,
    counts: AnyArray,
    seeds: Iterable[int],
    *,
    lost: Callable[[AnyArray], AnyArray] = np.abs,
) -> list[Row]:
    """Return mean losses per query, a release per seed, or one row with a refusal.

    Parameters
    ----------
    label : str
        The name of the method in the rows.
    build : Callable[[], Mechanism]
        Makes the mechanism.
    workload : Workload
        The queries.
    counts : array-like
        The true counts.
    seeds : Iterable[int]
        A seed for each release.
    lost : Callable[[ndarray], ndarray], default np.abs
        The loss of an error.

    Returns
    -------
    list[Row]
        The rows.
    """
    truth = workload.answer(counts)
    rows: list[Row] = []
    try:
        mechanism = build()
        for trial, seed in enumerate(seeds):
            answers = mechanism.release(counts, rng=seed).answer(workload)
            error = float(np.mean(lost(answers - truth)))
            rows.append({"trial": trial, "error": error, "skipped": None})
    except BlowfishError as refusal:
        rows = [{"trial": None, "error": None, "skipped": str(refusal)}]
    return [{"method": label, **row} for row in rows]
