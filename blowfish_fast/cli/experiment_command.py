"""``blowfish experiment``: a table or figure of a paper, again."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ..errors import InputError
from ..experiments.base import Experiment
from ..experiments.collection import ALL, all_experiments, experiment_named
from ..experiments.datasets import check_data
from ..experiments.result_files import run_line, shown, verdict_line
from ..experiments.results_page import write_page
from ..experiments.runner import Finished, run_experiment, settings_for
from ..experiments.runner import Progress as Report
from .printing import console, show

PAGE = "page"
INTERRUPTED = 130


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
    with _progress(hidden=as_json) as bar:
        for one, settings in zip(chosen, asked, strict=True):
            try:
                finished = run_experiment(
                    one,
                    settings,
                    out,
                    processes=processes,
                    progress=_reporter(bar, one.name),
                    anew=anew,
                    figure=with_figure,
                )
            except KeyboardInterrupt:
                bar.stop()
                _say_interrupted(one, out)
                sys.exit(INTERRUPTED)
            results.append(finished)
            if not as_json:
                _show_result(bar.console, finished)
    if as_json:
        show({"results": [_plain(one) for one in results]})
    elif not with_figure:
        console.print("no figures: install blowfish_fast[plot] to get them")


def _progress(*, hidden: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[last]}"),
        console=console,
        disable=hidden or not console.is_terminal,
        transient=True,
    )


def _reporter(bar: Progress, name: str) -> Report:
    """Return what moves the bar of one experiment."""
    task = bar.add_task(name, total=None, last="")
    return lambda done, total, last: bar.update(
        task, completed=done, total=total, last=last
    )


def _show_result(to: Console, finished: Finished) -> None:
    summary = finished.summary
    texts = [list(summary.columns)]
    texts += [[shown(value) for value in line] for line in summary.lines]
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
    Console(stderr=True).print(
        f"interrupted; finished tasks are kept in {out / one.name}.csv. The same "
        "command goes on from there",
        highlight=False,
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
