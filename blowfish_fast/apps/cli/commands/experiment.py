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
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="May be repeated; package:Class for one of your own; every mechanism "
            "if left out.",
            autocompletion=completions.mechanisms,
        ),
    ] = None
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with 1d/*.npy and 2d/*.npy; generated data if left out."
        ),
    ] = None
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME",
            help="One data set, such as 1d/adult; may be repeated; all if left out.",
        ),
    ] = None
    max_cells: Annotated[
        int | None,
        typer.Option(help="Sum neighbours until no axis has more cells.", min=2),
    ] = None
    trials: Annotated[int, typer.Option(help="Releases of each mechanism.")] = 3
    out: Annotated[
        Path,
        typer.Option(help="Folder of the results; an interrupted run resumes there."),
    ] = Path("blowfish-experiments")
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of all randomness; drawn and noted if left out."),
    ] = None
    processes: Annotated[int, typer.Option(help="Processes to share the work.")] = 2
    anew: Annotated[
        bool, typer.Option("--anew", help="Discard what is in the folder already.")
    ] = False


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
