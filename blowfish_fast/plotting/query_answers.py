"""A handful of answers, each with its noise interval, against something public.

[0, 18)     |---o---|   x
[18, 65)      |---o---|
records
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from blowfish_fast._support import palette
from blowfish_fast._support.optional import require
from blowfish_fast.data.axes import Axis, as_dates
from blowfish_fast.errors import InputError
from blowfish_fast.policies.drawing import cell_labels, shorten
from blowfish_fast.release.grants import interval_label
from blowfish_fast.release.release import Release
from blowfish_fast.workloads import Identity, Ranges, Rectangles, Total, Workload

from .canvas import axes_for, heading, in_full, plain_numbers, reference_answers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ANSWERS = 60
LONGEST_NAME = 40


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

    Parameters
    ----------
    release : Release
        Any release; without intervals only the answers are drawn.
    workload : Workload
        At most 60 queries, drawn from the top in their order.
    names : sequence of str, optional
        What to call the queries; ranges and rectangles are named by their values.
    confidence : float
        Of the noise intervals.
    reference, reference_name
        Something public to compare with, as in `histogram`.
    axes : Axes, optional
        Where to draw; a new figure otherwise.

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
    if not isinstance(release, Release):
        raise InputError(f"answers draws a Release; received {release!r}")
    if not isinstance(workload, Workload) or not 0 < workload.queries <= MOST_ANSWERS:
        raise InputError(
            f"answers draws a workload of 1 to {MOST_ANSWERS} queries; received "
            f"{workload!r}. Take some of them, such as Ranges(domain, starts, ends)"
        )
    named = _names(workload) if names is None else [str(one) for one in names]
    if len(named) != workload.queries:
        raise InputError(
            f"give one name per query: {workload.queries} queries, {len(named)} names"
        )
    public = reference_answers(reference, reference_name, workload)
    found = release.answer(workload)
    drawn = axes_for(axes, (7.0, 1.7 + 0.32 * len(named)), "Drawing answers")
    heights = np.arange(len(named))
    kind = release.interval_kind(workload, confidence)
    if kind != "noise" or release.interval_scope == "noise":
        bounds = release.intervals(workload, confidence, of=kind)
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
    drawn.plot(found, heights, "o", color=palette.ESTIMATE, label="answer")
    if public is not None:
        beside, label = public
        drawn.plot(beside, heights, "x", color=palette.REFERENCE, mew=2, label=label)
    drawn.set_yticks(heights, labels=[shorten(one, LONGEST_NAME) for one in named])
    drawn.set_ylim(len(named) - 0.5, -0.5)
    drawn.grid(True, axis="x", color="0.9")
    drawn.set_axisbelow(True)
    plain_numbers(drawn.xaxis)
    drawn.set_xlabel("records")
    drawn.set_title(heading(release), fontsize="medium")
    _legend_below(drawn)
    return drawn


def _legend_below(axes: Axes) -> None:
    """Put the legend under the axis, as far down at any height of the picture."""
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
        return [_span(attributes[0], *one) for one in ends]
    if isinstance(workload, Rectangles):
        corners = zip(workload.lows.tolist(), workload.highs.tolist(), strict=True)
        return [", ".join(map(_span, attributes, *one)) for one in corners]
    if isinstance(workload, Identity) and len(attributes) == 1:
        return [_span(attributes[0], one, one + 1) for one in range(workload.queries)]
    if isinstance(workload, Total):
        return ["all records"]
    return [f"query {one}" for one in range(workload.queries)]


def _span(attribute: Axis, start: float, end: float) -> str:
    """Say which cells a range covers, in values where there are any."""
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
