"""Seeded experiments run one after the other, and shown as tables or JSON.

Serves ``blowfish experiment`` and the reproductions of papers beside the package.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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

from .exit_codes import INTERRUPTED
from .printing import bar_counter, console, remark, show, steps_bar


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
    """Run experiments one after the other, and show what came out."""
    # A folder that is wrong is refused before the first of many hours.
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
                    progress=bar_counter(bar, one.name),
                    anew=anew,
                    figure=with_figure,
                )
        except KeyboardInterrupt:
            remark(
                f"interrupted; finished tasks are kept in {out / one.name}.csv. Run "
                "the same command to continue"
            )
            sys.exit(INTERRUPTED)
        results.append(finished)
        if not as_json:
            _show_result(finished)
    if as_json:
        show({"results": [_plain(one) for one in results]})
    elif not with_figure:
        remark("no figures: install blowfish_fast[plot] to get them")


def _show_result(finished: Finished) -> None:
    summary = finished.summary
    texts = [list(summary.columns)]
    texts += [[format_value(value) for value in line] for line in summary.lines]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    console.print(finished.experiment.title, style="bold", highlight=False)
    for line in texts:
        first, *others = zip(line, widths, strict=True)
        cells = [first[0].ljust(first[1])]
        cells += [text.rjust(width) for text, width in others]
        # Wider than the screen, a line runs over its edge rather than lose digits.
        console.print("  ".join(cells), highlight=False, soft_wrap=True, markup=False)
    verdict = verdict_line(summary, finished.settings)
    files = ", ".join(str(one) for one in finished.files)
    told = list(summary.notes)
    if verdict:
        told += [f"The paper: {finished.experiment.claim}", f"Here: {verdict}"]
    for sentence in [*told, run_line(finished.settings), f"written: {files}"]:
        console.print(sentence, highlight=False, markup=False)


def _plain(finished: Finished) -> dict[str, Any]:
    summary = finished.summary
    verdict: dict[str, Any] = {}
    if summary.verdict is not None:
        verdict = {
            "claim": finished.experiment.claim,
            "outcome": summary.verdict.outcome,
            "verdict": verdict_line(summary, finished.settings),
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
        "files": [str(one) for one in finished.files],
        **verdict,
    }
