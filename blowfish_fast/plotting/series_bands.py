"""A series of releases over time: running totals or windows, each with its band."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from blowfish_fast._support import palette
from blowfish_fast._support.optional import require
from blowfish_fast._support.validation import as_confidence, quoted
from blowfish_fast.accounting.series.epochs import read_epoch
from blowfish_fast.accounting.series.readings import SeriesReadings
from blowfish_fast.errors import InputError
from blowfish_fast.policies.drawing import cell_labels, shorten
from blowfish_fast.release.grants import interval_label, shown_counts
from blowfish_fast.workloads import Marginals, Total, Workload

from .canvas import axes_for, date_marks, plain_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LINES = len(palette.SERIES)
LONGEST_NAME = 40


def series(
    releases: SeriesReadings,
    *,
    by: str | int | None = None,
    last: int | None = None,
    confidence: float = 0.95,
    axes: Axes | None = None,
) -> Axes:
    """Draw the running totals of a series with their bands; only rows are read.

    Parameters
    ----------
    releases : Series or SavedSeries
        The series.
    by : str or int, optional
        An attribute of at most 7 cells, each of which gets a line; left out, all
        records together.
    last : int, optional
        Draw the last so many epochs together instead, 1 for each epoch by itself.
    confidence : float, default 0.95
        How surely each interval holds.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    InputError
        If there would be too many lines.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.Domain.from_levels(["young", "old"], name="age")
    >>> policy = bf.policies.AddRemove(ages)
    >>> ledger = bf.Ledger(rho=1, policy=policy)
    >>> weeks = bf.Series(ledger, column="received", every="week", totals=True)
    >>> gaussian = bf.Gaussian(policy, bf.workloads.Identity(ages), rho="0.5")
    >>> row = weeks.release("2026-W45", gaussian, [[40, 90]])
    >>> row = weeks.release("2026-W46", gaussian, [[40, 90], [30, 50]])
    >>> axes = bf.plotting.series(weeks, by="age")
    >>> [one.get_text() for one in axes.get_legend().get_texts()]
    ['young', 'old']
    >>> axes.get_ylabel()
    'records since 2026-W45'
    """
    if not isinstance(releases, SeriesReadings):
        raise InputError(
            "series draws a Series, or a SavedSeries", received=quoted(releases)
        )
    as_confidence(confidence)
    epochs = releases.epochs()
    if not epochs:
        raise InputError("the series has no release yet; there is nothing to draw")
    domain = releases._row(epochs[0]).domain
    asked: Workload = Total(domain)
    names = [""]
    if by is not None:
        asked = Marginals(domain, [by])
        if asked.queries > MOST_LINES:
            raise InputError(
                f"a series is drawn by an attribute of at most {MOST_LINES} cells",
                received=f"{by!r}, with {asked.queries}",
                way_out="Leave it out, or ask history(workload) for the numbers",
            )
        names = cell_labels(domain.attributes[domain.axis(by)])
    history = releases.history(asked, last=last, confidence=confidence)
    drawn = axes_for(axes, (8.0, 3.8), "Drawing a series")
    # An epoch is known when it is over.
    ends = [read_epoch(releases.every, name).stop for name in history.epochs]
    dates: Any = require("matplotlib.dates", extra="plot", purpose="Drawing dates")
    places = np.asarray(dates.date2num(ends))
    answers, bounds = history.answers, history.bounds
    if history.kind == "truth":
        # No total is shown below 0, beside an interval that ends there.
        shown = shown_counts(answers.reshape(-1), bounds.reshape(-1, 2))
        answers, bounds = (
            shown[0].reshape(answers.shape),
            shown[1].reshape(bounds.shape),
        )
    for number, name in enumerate(names):
        colour, marker, dash = palette.series(number)
        style: Any = {"color": colour, "linestyle": dash, "marker": marker}
        drawn.plot(
            places,
            answers[:, number],
            markersize=3,
            linewidth=1.4,
            label=shorten(name, LONGEST_NAME) if name else None,
            **style,
        )
        low, high = bounds[:, number].T
        drawn.fill_between(places, low, high, color=colour, alpha=0.22, linewidth=0)
    date_marks(drawn.xaxis)
    plain_numbers(drawn.yaxis)
    drawn.set_ylim(bottom=min(0.0, float(bounds.min())))
    drawn.grid(True, axis="y", color="0.9")
    drawn.set_axisbelow(True)
    drawn.set_xlabel(f"end of the {releases.every}")
    drawn.set_ylabel(_measured(releases.every, history.epochs[0], last))
    seeded = "" if _private(releases, epochs) else " (seeded: an experiment)"
    label = interval_label(history.kind, confidence)
    drawn.set_title(f"{label}{seeded}", fontsize="medium")
    if by is not None:
        title = str(domain.column_names[domain.axis(by)])
        drawn.legend(title=title, frameon=False, fontsize="small")
    return drawn


def _measured(every: str, first: str, last: int | None) -> str:
    if last is None:
        return f"records since {first}"
    return f"records of the {every}" if last == 1 else f"records of {last} {every}s"


def _private(releases: SeriesReadings, epochs: list[str]) -> bool:
    return all(releases._row(name).private for name in epochs)
