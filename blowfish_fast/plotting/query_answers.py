"""Answers with their intervals: to a handful of queries, or side by side by group."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from blowfish_fast._support import palette
from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import AnyArray, FloatArray
from blowfish_fast._support.validation import as_confidence, quoted
from blowfish_fast.data.axes import Axis, as_dates
from blowfish_fast.errors import InputError, IntervalError
from blowfish_fast.policies.drawing import cell_labels, shorten
from blowfish_fast.release.file import Release
from blowfish_fast.release.grants import counts_records, interval_label, shown_counts
from blowfish_fast.release.group_answers import GroupedAnswers
from blowfish_fast.workloads import Identity, Ranges, Rectangles, Total, Workload

from .canvas import (
    axes_for,
    date_marks,
    heading,
    in_full,
    names_along,
    plain_numbers,
    reference_answers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ANSWERS = 60
LONGEST_NAME = 40
MOST_LINES = len(palette.SERIES)
MOST_NAMED = 60
FROM_ZERO = ("count", "relative_count", "sum")
"""What is compared by its size: such axes begin at 0."""

SIDE_BY_SIDE = 0.6
"""Part of a name's room over which its dots are spread."""


def answers(
    release: Release,
    workload: Workload,
    *,
    names: Sequence[str] | None = None,
    confidence: float = 0.95,
    reference: Any = None,
    reference_name: str | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw the answers to a few queries with their noise intervals.

    At most 60 queries are drawn, from the top in their order.

    Parameters
    ----------
    release : Release
        What was published.
    workload : Workload
        The queries.
    names : Sequence[str], optional
        A name for each; ranges and rectangles are named by their values by default.
    confidence : float, default 0.95
        How surely the intervals hold.
    reference : HistogramRelease or array-like, optional
        Something public to compare with, as in `histogram`.
    reference_name : str, optional
        The public source of an array.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    InputError
        If there are too many queries, or the reference may be true counts.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.Domain.from_edges(range(0, 101, 10), name="age")
    >>> laplace = bf.Laplace(
    ...     bf.policies.AddRemove(ages), bf.workloads.Identity(ages), epsilon=1
    ... )
    >>> asked = bf.workloads.Ranges(ages, [0, 2], [2, 7])
    >>> axes = bf.plotting.answers(laplace.release([30] * 10), asked)
    >>> [text.get_text() for text in axes.get_yticklabels()]
    ['age 0 to 20', 'age 20 to 70']
    """
    if not isinstance(release, Release) or not hasattr(release, "answer"):
        raise InputError(
            f"answers draws a release that answers queries; received {release!r}"
        )
    if not isinstance(workload, Workload) or not 0 < workload.queries <= MOST_ANSWERS:
        raise InputError(
            f"answers draws a workload of 1 to {MOST_ANSWERS} queries; received "
            f"{workload!r}. Take some of them, such as Ranges(domain, starts, ends)"
        )
    named = _names(workload) if names is None else [str(name) for name in names]
    if len(named) != workload.queries:
        raise InputError(
            f"give one name per query: {workload.queries} queries, {len(named)} names"
        )
    public = reference_answers(reference, reference_name, workload)
    values = release.answer(workload)
    drawn = axes_for(axes, (7.0, 1.7 + 0.32 * len(named)), "Drawing answers")
    heights = np.arange(len(named))
    kind = release.interval_kind(workload, confidence)
    if kind != "noise" or release.interval_scope == "noise":
        bounds = release.intervals(workload, confidence, of=kind)
        if kind != "noise" and release.counts_people and counts_records(workload):
            values, bounds = shown_counts(values, bounds)
        drawn.errorbar(
            bounds.mean(axis=1),
            heights,
            xerr=(bounds[:, 1] - bounds[:, 0]) / 2,
            fmt="none",
            ecolor=palette.NOISE,
            elinewidth=5,
            alpha=0.6,
            linestyle="solid" if kind == "truth" else "dotted",
            label=interval_label(kind, confidence),
        )
    drawn.plot(values, heights, "o", color=palette.ESTIMATE, label="answer")
    if public is not None:
        beside, label = public
        drawn.plot(beside, heights, "x", color=palette.REFERENCE, mew=2, label=label)
    drawn.set_yticks(heights, labels=[shorten(name, LONGEST_NAME) for name in named])
    drawn.set_ylim(len(named) - 0.5, -0.5)
    drawn.grid(True, axis="x", color="0.9")
    drawn.set_axisbelow(True)
    plain_numbers(drawn.xaxis)
    drawn.set_xlabel("records")
    drawn.set_title(heading(release), fontsize="medium")
    _legend_below(drawn)
    return drawn


def _legend_below(axes: Axes) -> None:
    transforms = require("matplotlib.transforms", extra="plot", purpose="Drawing")
    down = transforms.ScaledTranslation(0.0, -0.5, axes.figure.dpi_scale_trans)
    axes.legend(
        frameon=False,
        fontsize="small",
        ncols=3,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=axes.transAxes + down,
    )


def _names(workload: Workload) -> list[str]:
    """Name queries by their values where these are ranges, by number otherwise."""
    attributes = workload.domain.attributes
    if isinstance(workload, Ranges) and len(attributes) == 1:
        ends = zip(workload.starts.tolist(), workload.ends.tolist(), strict=True)
        return [_span(attributes[0], *bounds) for bounds in ends]
    if isinstance(workload, Rectangles):
        corners = zip(workload.starts.tolist(), workload.ends.tolist(), strict=True)
        return [", ".join(map(_span, attributes, *bounds)) for bounds in corners]
    if isinstance(workload, Identity) and len(attributes) == 1:
        return [
            _span(attributes[0], cell, cell + 1) for cell in range(workload.queries)
        ]
    if isinstance(workload, Total):
        return ["all records"]
    return [f"query {number}" for number in range(workload.queries)]


def _span(attribute: Axis, start: float, end: float) -> str:
    name = f"{attribute.name} " if attribute.name else ""
    first, last = math.floor(start), math.ceil(end) - 1
    if attribute.levels is not None or last >= attribute.regular:
        ends = cell_labels(attribute, np.array([first, last]))
        return name + (ends[0] if first == last else f"{ends[0]} to {ends[1]}")
    if attribute.cuts is None:
        return f"{name or 'cells '}{start:g} to {end:g}"
    cuts = np.interp([start, end], np.arange(attribute.regular + 1), attribute.cuts)
    if attribute.unit is not None:
        dates = as_dates(cuts.tolist(), attribute.unit)
        return f"{name}{dates[0]} to {dates[1]}"
    return f"{name}{in_full(cuts[0])} to {in_full(cuts[1])}"


def groups(
    answers: GroupedAnswers, *, confidence: float = 0.95, axes: Axes | None = None
) -> Axes:
    """Draw what ``group_by`` answered, with noise intervals where they are known.

    Groups are by one attribute, or by two, one of which has at most 7 groups. Each
    interval holds by itself.

    Parameters
    ----------
    answers : GroupedAnswers
        What was answered.
    confidence : float, default 0.95
        How surely the intervals hold.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    InputError
        If there are too many groups.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> people = bf.Domain.product(
    ...     bf.Domain.from_edges(range(0, 101, 10), name="age"),
    ...     bf.Domain.from_levels(["F", "M"], name="sex"))
    >>> release = bf.Laplace(
    ...     bf.policies.Full(people), bf.workloads.Identity(people), epsilon=1
    ... ).release([[30, 20]] * 10)
    >>> axes = bf.plotting.groups(release.group_by("age", "sex").count())
    >>> axes.get_xlabel(), [one.get_text() for one in axes.get_legend().get_texts()]
    ('age', ['F', 'M'])
    """
    if not isinstance(answers, GroupedAnswers):
        raise InputError(
            "groups draws what group_by answered, such as "
            f"release.group_by('age').count(); received {quoted(answers)}"
        )
    if len(answers.attributes) not in (1, 2):
        raise InputError(
            f"groups draws one or two attributes; these are {len(answers.attributes)}. "
            "Select one group of the others first: release.where(...)"
        )
    if not len(answers):
        raise InputError("there is no group to draw")
    along, lines = _arrange(answers)
    confidence, bounds = as_confidence(confidence), None
    values = answers.values_array
    with contextlib.suppress(IntervalError):
        kind = answers.interval_kind(confidence)
        bounds = answers.intervals(confidence, of=kind)
        if kind != "noise" and answers.counts_people:
            values, bounds = shown_counts(values, bounds)
    drawn = axes_for(axes, (8.0, 3.8), "Drawing groups")
    names = list(dict.fromkeys(name for name, _ in along))
    ranged = all(isinstance(name, tuple) for name in names)
    if not ranged and len(names) > MOST_NAMED:
        raise InputError(
            f"groups names at most {MOST_NAMED} groups along the axis; these are "
            f"{len(names)}. Group into fewer: group_by(name={{...}})"
        )
    places = (
        _range_places(names, drawn)
        if ranged
        else {name: (at - 0.5, at + 0.5) for at, name in enumerate(names)}
    )
    for number, line in enumerate(lines):
        colour, marker, dash = palette.series(number)
        mine = np.array([at for at, (_, own) in enumerate(along) if own == line])
        spans = np.array([places[along[at][0]] for at in mine])
        label = _words(line) if len(lines) > 1 else None
        look: dict[str, Any] = {"color": colour, "label": label}
        look |= {"marker": None if ranged else marker, "linestyle": dash}
        if not ranged and len(lines) > 1:
            spans += SIDE_BY_SIDE * (number / (len(lines) - 1) - 0.5)
        held = None if bounds is None else bounds[mine]
        _draw_line(drawn, spans, values[mine], held, look)
    if not ranged:
        names_along(drawn, [_words(name) for name in names])
        drawn.set_xlim(-0.5, len(names) - 0.5)
    _finish_groups(drawn, answers, lines, bounds is not None, confidence)
    return drawn


def _arrange(answers: GroupedAnswers) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """Return (place along the axis, line) of each group, and the lines."""
    if len(answers.attributes) == 1:
        return [(answer, None) for answer in answers], [None]
    pairs = list(answers)
    lines = list(dict.fromkeys(second for _, second in pairs))
    if len(lines) > MOST_LINES:
        raise InputError(
            f"the second attribute, {answers.attributes[1]}, would make {len(lines)} "
            f"lines; at most {MOST_LINES} can be told apart. Name it first, or group "
            "it into fewer"
        )
    return pairs, lines


def _range_places(names: list[Any], axes: Axes) -> dict[Any, tuple[float, float]]:
    """Return where ranges lie along the axis; dates get an axis of dates."""
    ends: AnyArray = np.array([end for bounds in names for end in bounds])
    if ends.dtype.kind == "M" or any(hasattr(end, "isoformat") for end in names[0]):
        dates = require("matplotlib.dates", extra="plot", purpose="Drawing dates")
        numbers = np.asarray(dates.date2num(ends.astype("datetime64[us]")))
        date_marks(axes.xaxis)
    else:
        numbers = ends.astype(np.float64)
        plain_numbers(axes.xaxis)
    pairs = numbers.reshape(-1, 2).tolist()
    return {name: (pair[0], pair[1]) for name, pair in zip(names, pairs, strict=True)}


def _draw_line(
    axes: Axes,
    spans: FloatArray,
    values: FloatArray,
    bounds: FloatArray | None,
    look: dict[str, Any],
) -> None:
    """Draw answers over ranges, which may have gaps between them, or as dots."""
    middles, colour = spans.mean(axis=1), look["color"]
    marker, dash = look.pop("marker"), look.pop("linestyle")
    if marker is not None:
        if bounds is not None:
            axes.vlines(middles, *bounds.T, color=colour, linewidth=5, alpha=0.3)
        axes.plot(middles, values, marker, **look)
        return
    axes.hlines(values, *spans.T, linewidth=1.6, linestyle=dash, **look)
    if bounds is not None:
        heights, widths = bounds[:, 1] - bounds[:, 0], spans[:, 1] - spans[:, 0]
        style = {"align": "edge", "color": colour, "alpha": 0.22, "linewidth": 0}
        axes.bar(spans[:, 0], heights, widths, bounds[:, 0], **style)


def _finish_groups(
    axes: Axes,
    answers: GroupedAnswers,
    lines: list[Any],
    covered: bool,
    confidence: float,
) -> None:
    axes.set_xlabel(answers.attributes[0])
    measure = "records" if answers.measure == "count" else answers.measure
    words = measure.replace("_", " ")
    axes.set_ylabel(words if answers.of is None else f"{words} of {answers.of}")
    if answers.measure in FROM_ZERO:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    plain_numbers(axes.yaxis)
    axes.grid(True, axis="y", color="0.9")
    axes.set_axisbelow(True)
    kind = answers.interval_kind(confidence) if covered else None
    title = "" if kind is None else interval_label(kind, confidence)
    seeded = "(seeded: an experiment)" if answers.seeded else ""
    axes.set_title(f"{title} {seeded}".strip(), fontsize="medium")
    if len(lines) > 1:
        axes.legend(title=answers.attributes[1], frameon=False, fontsize="small")


def _words(name: Any) -> str:
    if isinstance(name, tuple):
        return " to ".join(
            in_full(end) if isinstance(end, int | float) else str(end) for end in name
        )
    return str(name)
