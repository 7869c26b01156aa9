"""``blowfish experiment``: a table or figure of a paper, again."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from blowfish_fast.advice.experiments.datasets import check_data
from blowfish_fast.advice.experiments.experiment import Experiment
from blowfish_fast.advice.experiments.result_files import (
    format_value,
    run_line,
    verdict_line,
)
from blowfish_fast.advice.experiments.runner import (
    Finished,
    run_experiment,
    settings_for,
)
from blowfish_fast.apps.cli.exit_codes import INTERRUPTED
from blowfish_fast.apps.cli.printing import console, counting, remark, show, steps_bar
from blowfish_fast.errors import InputError
from experiments.collection import ALL, all_experiments, experiment_named
from experiments.results_page import write_page

PAGE = "page"


def run_experiments(
    name: str,
    *,
    data: Path | None,
    trials: int | None,
    out: Path,
    seed: int | None,
    processes: int,
    quick: bool,
    anew: bool,
    as_json: bool,
) -> None:
    """Run one experiment or all of them, and show what came out."""
    if name == PAGE:
        _show_page(out, as_json)
        return
    chosen = (
        list(all_experiments().values()) if name == ALL else [experiment_named(name)]
    )
    # A name or folder that is wrong is refused before the first of many hours.
    check_data(data, sorted({need for one in chosen for need in one.needs}))
    asked = [
        settings_for(
            one, out, trials=trials, seed=seed, data=data, quick=quick, anew=anew
        )
        for one in chosen
    ]
    with_figure = find_spec("matplotlib") is not None
    results = []
    for one, settings in zip(chosen, asked, strict=True):
        try:
            with steps_bar() as bar:
                finished = run_experiment(
                    one,
                    settings,
                    out,
                    processes=processes,
                    progress=counting(bar, one.name),
                    anew=anew,
                    figure=with_figure,
                )
        except KeyboardInterrupt:
            _say_interrupted(one, out)
            sys.exit(INTERRUPTED)
        results.append(finished)
        if not as_json:
            _show_result(console, finished)
    if as_json:
        show({"results": [_plain(one) for one in results]})
    elif not with_figure:
        remark("no figures: install blowfish_fast[plot] to get them")


def _show_result(to: Console, finished: Finished) -> None:
    summary = finished.summary
    texts = [list(summary.columns)]
    texts += [[format_value(value) for value in line] for line in summary.lines]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    to.print(finished.experiment.title, style="bold", highlight=False)
    for line in texts:
        first, *others = zip(line, widths, strict=True)
        cells = [first[0].ljust(first[1])]
        cells += [text.rjust(width) for text, width in others]
        # Wider than the screen, a line runs over its edge rather than lose digits.
        to.print("  ".join(cells), highlight=False, soft_wrap=True, markup=False)
    verdict = verdict_line(summary, finished.settings)
    files = ", ".join(str(one) for one in finished.files)
    for note in summary.notes:
        to.print(note, highlight=False, markup=False)
    to.print(f"The paper: {finished.experiment.claim}", highlight=False, markup=False)
    to.print(f"Here: {verdict}", style="bold", highlight=False, markup=False)
    to.print(run_line(finished.settings), highlight=False)
    to.print(f"written: {files}", highlight=False, markup=False)


def _plain(finished: Finished) -> dict[str, Any]:
    summary = finished.summary
    return {
        "experiment": finished.experiment.name,
        "title": finished.experiment.title,
        "claim": finished.experiment.claim,
        "protocol": finished.experiment.protocol,
        "trials": finished.settings.trials,
        "seed": finished.settings.seed,
        "generated_data": finished.settings.data is None,
        "private": False,
        "table": [
            dict(zip(summary.columns, line, strict=True)) for line in summary.lines
        ],
        "notes": list(summary.notes),
        "outcome": summary.verdict.outcome,
        "verdict": verdict_line(summary, finished.settings),
        "files": [str(one) for one in finished.files],
    }


def _say_interrupted(one: Experiment, out: Path) -> None:
    remark(
        f"interrupted; finished tasks are kept in {out / one.name}.csv. The same "
        "command goes on from there"
    )


def _show_page(out: Path, as_json: bool) -> None:
    if not out.is_dir():
        raise InputError(
            f"there are no results in {out}; run experiments with --out {out} first"
        )
    page, names = write_page(out)
    if as_json:
        show({"page": str(page), "experiments": names})
    else:
        console.print(f"written: {page}, from {len(names)} results", highlight=False)
