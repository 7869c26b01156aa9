"""A release over one attribute: estimate, intervals, buckets and a reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from blowfish_fast._support import palette
from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.release.file import Release
from blowfish_fast.release.grants import interval_label, shown_counts
from blowfish_fast.release.release import HistogramRelease
from blowfish_fast.workloads import Ranges

from .canvas import (
    Places,
    axes_for,
    heading,
    inner_cuts,
    label_axis,
    name_extras,
    plain_numbers,
    reference_answers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 1024
MOST_MARKED = 40
"""Categories up to which each has a bar with its interval as a whisker."""

RUG_HEIGHT = 0.035


def histogram(
    release: Release,
    *,
    confidence: float = 0.95,
    reference: Any = None,
    reference_name: str | None = None,
    buckets: bool = True,
    logarithmic: bool = False,
    axes: Axes | None = None,
) -> Axes:
    """Draw the estimate of a one-dimensional release with its noise intervals.

    More than 1024 cells are drawn as at most 1024 ranges of equally many cells.

    Parameters
    ----------
    release : Release
        What was published, over one attribute.
    confidence : float, default 0.95
        How surely the intervals hold.
    reference : HistogramRelease or array-like, optional
        Something public to compare with, such as last year's release.
    reference_name : str, optional
        The source of an array, which needs one because true counts are no reference.
    buckets : bool, default True
        Whether ticks at the lower border mark where the mechanism began another bucket.
    logarithmic : bool, default False
        Whether counts above 10 are drawn in steps of ten.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    InputError
        If the reference may be true counts.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.Domain.from_edges(range(0, 101, 10), name="age")
    >>> laplace = bf.Laplace(
    ...     bf.policies.AddRemove(ages), bf.workloads.Identity(ages), epsilon=1
    ... )
    >>> axes = bf.plotting.histogram(laplace.release([30] * 10))
    >>> axes.get_title(), axes.get_xlabel(), axes.get_ylabel()
    ('laplace, eps = 1', 'age', 'records')
    """
    if not isinstance(release, HistogramRelease):
        raise InputError(
            f"histogram draws a release of a histogram; received {release!r}"
        )
    if release.domain.ndim != 1:
        raise InputError(
            f"histogram draws one attribute; this release has {release.domain.ndim}. "
            "Use plotting.grid_map for two, plotting.groups for more"
        )
    together, cuts = bar_cuts(release.domain.size)
    ranges = Ranges(release.domain, cuts[:-1], cuts[1:])
    public = reference_answers(reference, reference_name, ranges)
    drawn = axes_for(axes, (8.0, 3.8), "Drawing a release")
    attribute = release.domain.attributes[0]
    places = label_axis(drawn, "x", attribute, "cell")
    estimate = release.answer(ranges)
    kind = release.interval_kind(ranges, confidence)
    bounds = None
    if kind != "noise" or release.interval_scope == "noise":
        bounds = release.intervals(ranges, confidence, of=kind)
        if kind != "noise" and release.counts_people:
            estimate, bounds = shown_counts(estimate, bounds)
    few = places.kind == "level" and release.domain.size <= MOST_MARKED
    style: dict[str, Any] = {"label": interval_label(kind, confidence), "bars": few}
    # What holds the noise alone must not look like more.
    if kind == "noise":
        style["hatch"] = "///"
    _draw(drawn, places.edges[cuts], estimate, bounds, style)
    if public is not None:
        beside, label = public
        drawn.stairs(
            beside,
            places.edges[cuts],
            color=palette.REFERENCE,
            linewidth=1.2,
            linestyle="--",
            label=label,
            baseline=None,
        )
    if buckets:
        _mark_buckets(drawn, release, places)
    drawn.set_xlim(places.edges[0], places.edges[-1])
    name_extras(drawn, "x", places)
    if logarithmic:
        drawn.set_yscale("symlog", linthresh=10)
    if bounds is None or bounds.min() >= 0:
        drawn.set_ylim(bottom=min(0.0, float(estimate.min())))
    else:
        drawn.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
    plain_numbers(drawn.yaxis)
    drawn.set_ylabel("records" if together == 1 else f"records per {together:,} cells")
    drawn.set_title(heading(release), fontsize="medium")
    entries = zip(*drawn.get_legend_handles_labels(), strict=True)
    ordered = sorted(entries, key=lambda entry: entry[1] != "estimate")
    drawn.legend(*zip(*ordered, strict=True), frameon=False, fontsize="small")
    return drawn


def bar_cuts(cells: int) -> tuple[int, IntArray]:
    """Return how many cells make a bar, and the borders of the bars."""
    least = -(-cells // MOST_BARS)
    together = next((k for k in range(least, 2 * least) if cells % k == 0), least)
    return together, np.append(np.arange(0, cells, together), cells).astype(np.int64)


def _draw(
    axes: Axes,
    edges: FloatArray,
    estimate: AnyArray,
    bounds: FloatArray | None,
    style: dict[str, Any],
) -> None:
    """Draw stairs with a band; bars with whiskers where cells have no neighbours."""
    if style.pop("bars"):
        middles = (edges[:-1] + edges[1:]) / 2
        axes.bar(middles, estimate, width=0.7, color=palette.NOISE, label="estimate")
        if bounds is not None:
            axes.errorbar(
                middles,
                bounds.mean(axis=1),
                yerr=(bounds[:, 1] - bounds[:, 0]) / 2,
                fmt="none",
                ecolor=palette.BLACK,
                elinewidth=1.2,
                capsize=3,
                linestyle="dotted" if "hatch" in style else "solid",
                label=style["label"],
            )
        return
    line: dict[str, Any] = {"color": palette.ESTIMATE, "label": "estimate"}
    axes.stairs(estimate, edges, baseline=None, linewidth=1.3, **line)
    if bounds is not None:
        low, high = bounds.T
        style |= {"color": palette.NOISE, "alpha": 0.35}
        axes.stairs(high, edges, baseline=low, fill=True, **style)


def bucket_starts(release: HistogramRelease) -> IntArray:
    """Return the cells at which another bucket begins; none where cells stand alone."""
    details = release.details
    if isinstance(details.get("edges"), np.ndarray):
        starts = np.asarray(details["edges"], dtype=np.int64)[1:-1]
    elif isinstance(details.get("labels"), np.ndarray):
        starts = inner_cuts(np.asarray(details["labels"]).reshape(-1))
    elif len(release.measurements) == 1:
        starts = inner_cuts(release.measurements[0].buckets.labels)
    else:
        return np.zeros(0, dtype=np.int64)
    alone = starts.size >= release.domain.size - 1
    return starts[:0] if alone else starts


def _mark_buckets(axes: Axes, release: HistogramRelease, places: Places) -> None:
    starts = bucket_starts(release)
    if not starts.size:
        return
    axes.vlines(
        places.edges[starts],
        0.0,
        RUG_HEIGHT,
        transform=axes.get_xaxis_transform(),
        color=palette.BUCKETS,
        linewidth=0.8,
        alpha=0.9 if starts.size < 200 else 0.5,
        label=f"{starts.size:,} bucket boundaries"
        if starts.size > 1
        else "bucket boundary",
    )
