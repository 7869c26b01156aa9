"""``blowfish experiment``: mechanisms compared over a folder of data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from blowfish_fast.apps.cli import completions
from blowfish_fast.apps.cli.options import (
    Json,
    PolicyWords,
    WorkloadWords,
    look_here_for,
    option,
    with_options,
)


@dataclass(frozen=True)
class ExperimentOptions:
    """What is compared, on which data, and how often."""

    policy: PolicyWords
    workload: WorkloadWords
    epsilon: Annotated[
        list[str],
        typer.Option(metavar="NUMBER", help="May be repeated.", show_default=False),
    ]
    mechanism: list[str] | None = option(
        "NAME",
        "May be repeated; package:Class for one of your own; every mechanism if left "
        "out.",
        autocompletion=completions.mechanisms,
    )
    data: Path | None = option(
        None, "Folder with 1d/*.npy and 2d/*.npy; generated data if left out."
    )
    sets: list[str] | None = option(
        "NAME",
        "One data set, such as 1d/adult; may be repeated; all if left out.",
        "--set",
    )
    max_cells: int | None = option(
        None, "Sum neighbours until no axis has more cells.", min=2
    )
    trials: int = option(None, "Releases of each mechanism.", default=3)
    out: Path = option(
        None,
        "Folder of the results; an interrupted run resumes there.",
        default=Path("blowfish-experiments"),
    )
    seed: int | None = option(
        None, "Seed of all randomness; drawn and noted if left out."
    )
    processes: int = option(None, "Processes to share the work.", default=2)
    anew: bool = option(
        None, "Discard what is in the folder already.", "--anew", default=False
    )


@with_options
def run_experiment(asked: ExperimentOptions, as_json: Json = False) -> None:
    """Compare mechanisms by their error on data that are not secret.

    Releases are seeded experiments: errors come from the true counts.
    """
    from blowfish_fast.advice.experiments.datasets import check_data, sets_in
    from blowfish_fast.advice.experiments.mechanism_grid import MechanismGrid
    from blowfish_fast.advice.experiments.runner import settings_for
    from blowfish_fast.apps.cli.experiment_runs import run_experiments
    from blowfish_fast.apps.cli.parsing.policy import parse_policy
    from blowfish_fast.apps.cli.parsing.workload import parse_workload
    from blowfish_fast.mechanisms.registry import MECHANISMS

    look_here_for(asked.mechanism)
    check_data(asked.data, asked.sets or ())
    comparison = MechanismGrid(
        asked.mechanism or list(MECHANISMS),
        asked.sets or sets_in(asked.data),
        asked.epsilon,
        partial(parse_policy, asked.policy),
        partial(parse_workload, asked.workload),
        asked.max_cells,
        {"policy": asked.policy, "workload": asked.workload},
    )
    # What does not fit a set is refused before the first release.
    comparison.check(settings_for(comparison, asked.out, data=asked.data))
    run_experiments(
        [comparison],
        data=asked.data,
        trials=asked.trials,
        out=asked.out,
        seed=asked.seed,
        processes=asked.processes,
        anew=asked.anew,
        as_json=as_json,
    )
