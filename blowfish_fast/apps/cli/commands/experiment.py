"""``blowfish experiment``: mechanisms compared over a folder of data."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blowfish_fast.apps.cli.exit_codes import INTERRUPTED
from blowfish_fast.apps.cli.options import (
    DEFAULT_WORKLOAD,
    Json,
    PolicyWords,
    WorkloadWords,
    look_here_for,
    offer_mechanisms,
    option,
    with_options,
)
from blowfish_fast.apps.cli.printing import console, counter, plural, remark, show

from .compare import Budgets

if TYPE_CHECKING:
    from blowfish_fast.advice.experiments.experiment import Experiment
    from blowfish_fast.advice.experiments.runner import Finished


@dataclass(frozen=True)
class ExperimentOptions:
    """What is compared, on which data, and how often.

    ``--help`` describes every field.

    Attributes
    ----------
    policy : str
        The policy, in the words of ``--policy``.
    workload : str
        The queries, in the words of ``--workload``.
    """

    policy: PolicyWords
    workload: WorkloadWords = DEFAULT_WORKLOAD
    mechanism: list[str] | None = option(
        "NAME",
        "May be repeated; package:Class for one of your own; every mechanism if left "
        "out.",
        autocompletion=offer_mechanisms,
    )
    data: Path | None = option(
        None, "Folder of counts, .npy or .csv; generated data if left out."
    )
    sets: list[str] | None = option(
        "NAME",
        "One data set, such as ages.csv; may be repeated; all if left out.",
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
def run_experiment(
    asked: ExperimentOptions, spending: Budgets, as_json: Json = False
) -> None:
    """Compare mechanisms by their error on data that are not secret.

    Releases are seeded experiments: errors come from the true counts.
    """
    from blowfish_fast.advice.experiments.datasets import check_data, sets_in
    from blowfish_fast.advice.experiments.mechanism_grid import MechanismGrid
    from blowfish_fast.advice.experiments.runner import settings_for
    from blowfish_fast.apps.cli.parsing.policy import parse_policy
    from blowfish_fast.apps.cli.parsing.workload import parse_workload
    from blowfish_fast.mechanisms.registry import MECHANISMS, RHO_MECHANISMS

    in_rho = [budget.amount for budget in spending.stated() if budget.power == 2]
    every = MECHANISMS | RHO_MECHANISMS if in_rho else MECHANISMS
    look_here_for(asked.mechanism)
    check_data(asked.data, asked.sets or ())
    sets = asked.sets or sets_in(asked.data)
    if asked.data is not None:
        remark(f"{plural(len(sets), 'data set')} in {asked.data}: {', '.join(sets)}")
    comparison = MechanismGrid(
        asked.mechanism or list(every),
        sets,
        [*spending.epsilon, *(f"rho={float(rho):.12g}" for rho in in_rho)],
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


def run_experiments(
    chosen: Sequence[Experiment],
    *,
    data: Path | None,
    trials: int | None,
    out: Path,
    seed: int | None,
    processes: int,
    anew: bool,
    as_json: bool,
    quick: bool = False,
) -> None:
    """Run seeded experiments one after the other, and show what came out."""
    from blowfish_fast.advice.experiments.datasets import check_data
    from blowfish_fast.advice.experiments.runner import run_experiment, settings_for

    # A folder that is wrong is refused before the first of many hours.
    check_data(
        data, sorted({need for experiment in chosen for need in experiment.needs})
    )
    asked = [
        settings_for(
            experiment, out, trials=trials, seed=seed, data=data, quick=quick, anew=anew
        )
        for experiment in chosen
    ]
    with_figure = find_spec("matplotlib") is not None
    results = []
    for experiment, settings in zip(chosen, asked, strict=True):
        try:
            with counter(experiment.name) as step:
                finished = run_experiment(
                    experiment,
                    settings,
                    out,
                    processes=processes,
                    progress=step,
                    anew=anew,
                    figure=with_figure,
                )
        except KeyboardInterrupt:
            remark(
                f"interrupted; finished tasks are kept in "
                f"{out / experiment.name}.csv. Run the same command to continue"
            )
            sys.exit(INTERRUPTED)
        results.append(finished)
        if not as_json:
            _show_result(finished)
    if as_json:
        show({"results": [_plain(result) for result in results]})
    elif not with_figure:
        remark("no figures: install blowfish_fast[plot] to get them")


def _show_result(finished: Finished) -> None:
    from blowfish_fast.advice.experiments import result_files as written

    summary = finished.summary
    texts = [list(summary.columns)]
    texts += [[written.format_value(value) for value in line] for line in summary.lines]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    console.print(finished.experiment.title, style="bold", highlight=False)
    for line in texts:
        first, *others = zip(line, widths, strict=True)
        cells = [first[0].ljust(first[1])]
        cells += [text.rjust(width) for text, width in others]
        # Wider than the screen, a line runs over its edge rather than lose digits.
        console.print("  ".join(cells), highlight=False, soft_wrap=True, markup=False)
    verdict = written.verdict_line(summary, finished.settings)
    files = ", ".join(str(file) for file in finished.files)
    notes = list(summary.notes)
    if verdict:
        notes += [f"The paper: {finished.experiment.claim}", f"Here: {verdict}"]
    for sentence in [*notes, written.run_line(finished.settings), f"written: {files}"]:
        console.print(sentence, highlight=False, markup=False)


def _plain(finished: Finished) -> dict[str, Any]:
    from blowfish_fast.advice.experiments import result_files as written

    summary = finished.summary
    verdict: dict[str, Any] = {}
    if summary.verdict is not None:
        verdict = {
            "claim": finished.experiment.claim,
            "outcome": summary.verdict.outcome,
            "verdict": written.verdict_line(summary, finished.settings),
        }
    return {
        "experiment": finished.experiment.name,
        "title": finished.experiment.title,
        "protocol": finished.experiment.protocol,
        "trials": finished.settings.trials,
        "seed": finished.settings.seed,
        "generated_data": finished.settings.data is None,
        "private": False,
        "table": [
            dict(zip(summary.columns, line, strict=True)) for line in summary.lines
        ],
        "notes": list(summary.notes),
        "files": [str(file) for file in finished.files],
        **verdict,
    }
