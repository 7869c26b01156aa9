"""The files of a run, each written beside its place and moved there whole."""

from __future__ import annotations

import csv
import io
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from blowfish_fast._support.optional import require
from blowfish_fast._support.palette import BARS

from .experiment import Experiment, Key, Row, Settings, Summary, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase


EMPTY = "-"


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write rows under the columns that any of them has; None is an empty cell.

    Parameters
    ----------
    path : Path
        Where to.
    rows : Sequence[Row]
        The rows.
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    _write(path, text.getvalue().encode())


def write_figure(
    path: Path,
    experiment: Experiment,
    settings: Settings,
    rows: Sequence[Row],
    summary: Summary,
) -> None:
    """Draw the experiment above its title, the paper's claim and the verdict.

    Parameters
    ----------
    path : Path
        Where to.
    experiment : Experiment
        The experiment.
    settings : Settings
        What was asked for.
    rows : Sequence[Row]
        All rows of the run.
    summary : Summary
        Their summary.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    require("matplotlib", extra="plot", purpose="Drawing an experiment")
    from matplotlib.figure import Figure

    width, height = experiment.size
    verdict = verdict_line(summary, settings)
    words = [
        f"{experiment.title}: {experiment.claim or experiment.protocol}",
        f"Here: {verdict}" if verdict else run_line(settings),
    ]
    lines = [
        line
        for sentence in words
        for line in textwrap.wrap(sentence, max(int(width * 16), 60))
    ]
    margin = 0.18 * len(lines) + 0.15
    figure = Figure(figsize=(width, height + margin), layout="constrained")
    foot = margin / (height + margin)
    places = figure.add_gridspec(2, 1, height_ratios=[1.0 - foot, foot])
    above, beneath = figure.add_subfigure(places[0]), figure.add_subfigure(places[1])
    experiment.draw(rows, above)
    beneath.text(
        0.02, 0.95, "\n".join(lines), fontsize=8.5, va="top", ha="left", wrap=False
    )
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=120)
    _write(path, content.getvalue())


def write_summary(
    path: Path,
    experiment: Experiment,
    settings: Settings,
    summary: Summary,
    picture: Path | None,
) -> None:
    """Write claim, protocol, table and verdict as Markdown, beside the figure.

    Parameters
    ----------
    path : Path
        Where to.
    experiment : Experiment
        The experiment.
    settings : Settings
        What was asked for.
    summary : Summary
        The summary of the rows.
    picture : Path or None
        The file of the figure, if there is one.
    """
    parts = [f"# {experiment.title}"]
    if experiment.claim:
        parts.append(f"**The paper:** {experiment.claim}")
    if picture is not None:
        parts.append(f"![{experiment.title}]({picture.name})")
    parts += summary_paragraphs(experiment, settings, summary)
    _write(path, ("\n\n".join(parts) + "\n").encode())


def summary_paragraphs(
    experiment: Experiment, settings: Settings, summary: Summary
) -> list[str]:
    """Return verdict, protocol, table and notes as paragraphs of Markdown.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    settings : Settings
        What was asked for.
    summary : Summary
        The summary of the rows.

    Returns
    -------
    list[str]
        The paragraphs.
    """
    verdict = verdict_line(summary, settings)
    return [
        *([f"**Here:** {verdict}"] if verdict else []),
        f"{experiment.protocol} {run_line(settings)}",
        markdown_table(summary),
        *summary.notes,
    ]


def verdict_line(summary: Summary, settings: Settings) -> str:
    """Return the verdict, if any, with a warning where the data are not the paper's.

    Parameters
    ----------
    summary : Summary
        The summary of the rows.
    settings : Settings
        What was asked for.

    Returns
    -------
    str
        The line; empty without a verdict.
    """
    if summary.verdict is None:
        return ""
    if settings.quick:
        return f"{summary.verdict} (short form, which shows only that it runs)"
    if settings.data is None:
        return f"{summary.verdict} (on generated data, not the paper's)"
    return str(summary.verdict)


def run_line(settings: Settings) -> str:
    """Return how this run was done."""
    form = "Short form: small domains. " if settings.quick else ""
    data = "generated" if settings.data is None else "from files, unless marked"
    times = "1 trial" if settings.trials == 1 else f"{settings.trials} trials"
    return (
        f"{form}This run: {times}, seed {settings.seed}, data: {data}; seeded releases "
        "are experiments, not private."
    )


def markdown_table(summary: Summary) -> str:
    """Return the table of a summary as Markdown."""
    head = markdown_row(summary.columns)
    rule = "|" + "---|" * len(summary.columns)
    lines = [
        markdown_row([format_value(value) for value in line]) for line in summary.lines
    ]
    return "\n".join([head, rule, *lines])


def markdown_row(cells: Sequence[str]) -> str:
    """Return one row of a table; a bar inside a cell, as of |x|, ends no cell."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def format_value(value: Value) -> str:
    """Return a value as a table shows it: three significant digits."""
    if value is None:
        return EMPTY
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    if value == 0.0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"
    return f"{value:.2e}"


def _write(path: Path, content: bytes) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_bytes(content)
    beside.replace(path)


DRAWS = 50


def with_errors(
    experiment: Experiment, rows: Sequence[Row], settings: Settings, summary: Summary
) -> Summary:
    """Return a summary whose numbers carry standard errors, and how sure it is.

    Both come from the bootstrap over trials, of which there must be three.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    rows : Sequence[Row]
        All rows of the run.
    settings : Settings
        What was asked for.
    summary : Summary
        Their summary.

    Returns
    -------
    Summary
        The summary; the same one with fewer trials.
    """
    by_trial: dict[tuple[Value, Value], list[Row]] = {}
    for row in rows:
        # A sample of queries is a part of chance as well.
        by_trial.setdefault((row.get("sample"), row.get("trial")), []).append(row)
    always = [
        row for (_, trial), item in by_trial.items() if trial is None for row in item
    ]
    trials = [item for (_, trial), item in by_trial.items() if trial is not None]
    if len(trials) < 3:
        return summary
    generator = np.random.default_rng(settings.seed)
    drawn = []
    for _ in range(DRAWS):
        taken = generator.integers(0, len(trials), len(trials))
        again = [row for item in taken for row in trials[item]]
        drawn.append(experiment.summary([*again, *always], settings))
    lines = [
        [_with_error(value, place, column, drawn) for column, value in enumerate(line)]
        for place, line in enumerate(summary.lines)
    ]
    verdict = summary.verdict
    if verdict is not None:
        outcomes = [item.verdict.outcome for item in drawn if item.verdict is not None]
        agreeing = outcomes.count(verdict.outcome)
        sure = (
            f"{verdict.by}; so judged in {agreeing} of {DRAWS} redrawings of the trials"
        )
        verdict = replace(verdict, by=sure)
    return replace(summary, lines=lines, verdict=verdict)


def _with_error(value: Value, line: int, column: int, drawn: list[Summary]) -> Value:
    """Return a number with the spread of its place in the tables drawn again."""
    if not isinstance(value, float):
        return value
    others = [other.lines[line][column] for other in drawn if line < len(other.lines)]
    numbers = [number for number in others if isinstance(number, float)]
    if len(numbers) < len(drawn) or min(numbers) == max(numbers):
        return value
    error = float(f"{np.std(numbers, ddof=1):.2g}")
    return f"{format_value(value)} ± {format_value(error)}"


def grouped_bars(
    axes: Axes,
    heights: Mapping[Key, float],
    places: Sequence[Value],
    methods: Sequence[Value],
    *,
    at: Key = (),
    label: str = "mean error",
) -> None:
    """Draw bars on a logarithmic scale.

    Parameters
    ----------
    axes : Axes
        Where to.
    heights : Mapping[Key, float]
        The heights, by `at`, place and method.
    places : Sequence[Value]
        The places of the groups.
    methods : Sequence[Value]
        The bars of a group.
    at : Key, default ()
        The beginning of the keys.
    label : str, default 'mean error'
        The label of the vertical axis.
    """
    width = 0.8 / max(len(methods), 1)
    for number, method in enumerate(methods):
        of_method = [heights.get((*at, place, method)) for place in places]
        shown = [(i, h) for i, h in enumerate(of_method) if h is not None and h > 0]
        axes.bar(
            [i + (number - (len(methods) - 1) / 2) * width for i, _ in shown],
            [h for _, h in shown],
            width,
            label=str(method),
            color=BARS[number % len(BARS)],
        )
    axes.set_yscale("log")
    names = [str(place) for place in places]
    axes.set_xticks(range(len(names)), names, rotation=20, ha="right", fontsize=8)
    axes.set_ylabel(label)
    axes.grid(axis="y", alpha=0.3)


def legend_above(figure: FigureBase, axes: Axes, *, columns: int = 5) -> None:
    """Name, above all panels, what is drawn in each of them.

    Parameters
    ----------
    figure : FigureBase
        The figure.
    axes : Axes
        A panel that holds everything.
    columns : int, default 5
        The most columns of the legend.
    """
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        figure.legend(
            handles,
            labels,
            loc="outside upper center",
            ncols=min(columns, len(labels)),
            fontsize=8,
            frameon=False,
        )
