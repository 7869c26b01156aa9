"""What all pictures share: axes to draw on, headings, places of cells, labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.data.axes import Axis, cut_values
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.sparse import SparseHistogram
from blowfish_fast.errors import DomainError, InputError
from blowfish_fast.policies.drawing import cell_labels
from blowfish_fast.release.file import Release
from blowfish_fast.release.guarantee import recipe_name
from blowfish_fast.release.release import HistogramRelease
from blowfish_fast.workloads import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMES = 24
"""Categories named along an axis; of more, every k-th is."""

MOST_IN_FULL = 1e12
CHARACTERS_PER_INCH = 12
"""Of names along an axis; where they need more room, they are turned."""


def axes_for(axes: Axes | None, size: tuple[float, float], purpose: str) -> Axes:
    """Return the caller's axes, or those of a new figure that leaves room for text.

    Parameters
    ----------
    axes : Axes or None
        The caller's, or None.
    size : tuple[float, float]
        Width and height of a new figure in inches.
    purpose : str
        What is drawn, for the message if matplotlib is missing.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    if axes is not None:
        return axes
    pyplot = require("matplotlib.pyplot", extra="plot", purpose=purpose)
    drawn: Axes = pyplot.subplots(figsize=size, layout="constrained")[1]
    return drawn


def heading(release: Release) -> str:
    """Return the title of a picture of a release: what, at which price, for whom."""
    seeded = "" if release.private else " (seeded: an experiment)"
    return f"{recipe_name(release)}, {release.guarantee.spent}{seeded}"


def reference_answers(
    reference: Any, name: str | None, asked: Workload
) -> tuple[AnyArray, str] | None:
    """Return a reference's answers and its label; refuse what may be true counts.

    Parameters
    ----------
    reference : HistogramRelease or array-like
        What is compared with; None for nothing.
    name : str or None
        The public source of an array.
    asked : Workload
        The queries.

    Returns
    -------
    tuple of (ndarray, str), or None
        The answers and the label; None without a reference.

    Raises
    ------
    InputError
        If it may be true counts, or does not fit the domain.
    """
    if reference is None:
        return None
    refuse_true_counts(reference, "compare with another release, or with")
    if isinstance(reference, HistogramRelease):
        values = reference.estimate
        label = name or f"{recipe_name(reference)}, a release"
    elif isinstance(name, str) and name.strip():
        values, label = np.asarray(reference), f"{name} (public)"
    else:
        raise InputError(
            "name the public source of the reference, such as "
            "reference_name='census of 2020'; an array alone could be the true counts"
        )
    if values.dtype.kind not in "biuf":
        raise InputError(
            f"a reference is a release or an array of numbers; received {reference!r}"
        )
    try:
        return asked.answer(values), label
    except DomainError as problem:
        raise InputError(f"the reference does not fit the release: {problem}") from None


def refuse_true_counts(values: Any, instead: str) -> None:
    """Refuse to draw counts that no mechanism released.

    Parameters
    ----------
    values : object
        What is to be drawn.
    instead : str
        What to draw instead, for the message.

    Raises
    ------
    InputError
        If these are true counts.
    """
    if isinstance(values, Histogram | SparseHistogram):
        raise InputError(
            f"{values!r} holds true counts, and a picture of them would publish them; "
            f"{instead} a public array"
        )


class Places(NamedTuple):
    """Where the cells of one attribute lie along an axis; extra cells come last.

    Attributes
    ----------
    edges : ndarray of float64
        The edges.
    kind : str
        "level", "date" or another.
    extras : tuple[tuple[float, str], ...]
        The middle and the name of each extra cell.
    """

    edges: FloatArray
    kind: str
    extras: tuple[tuple[float, str], ...]


def places_of(attribute: Axis) -> Places:
    """Return where cells lie: at their values, on their dates, or one after another."""
    if attribute.levels is not None:
        return Places(np.arange(attribute.size + 1.0) - 0.5, "level", ())
    if attribute.cuts is None:
        return Places(np.arange(attribute.size + 1.0), "number", ())
    if attribute.unit is not None:
        dates = require("matplotlib.dates", extra="plot", purpose="Drawing dates")
        cuts: FloatArray = np.asarray(dates.date2num(cut_values(attribute)))
    else:
        cuts = np.array(attribute.cuts, dtype=np.float64)
    kind = "value" if attribute.unit is None else "date"
    width = (cuts[-1] - cuts[0]) / max(min(attribute.regular, 16), 1)
    beyond = cuts[-1] + width * np.arange(1, len(attribute.extras) + 1)
    extras = tuple(zip((beyond - width / 2).tolist(), attribute.extras, strict=True))
    return Places(np.concatenate([cuts, beyond]), kind, extras)


def label_axis(
    axes: Axes,
    which: str,
    attribute: Axis,
    fallback: str,
    inches: float | None = None,
) -> Places:
    """Write an attribute's name, and its categories or dates, along an axis.

    Parameters
    ----------
    axes : Axes
        Where to.
    which : str
        "x" or "y".
    attribute : Axis
        The attribute.
    fallback : str
        The name, if it has none.
    inches : float, optional
        The length of the axis, where it is not that of the axes.

    Returns
    -------
    Places
        Where its cells lie.
    """
    places = places_of(attribute)
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_label_text(attribute.name or fallback)
    if places.kind == "level":
        names_along(axes, cell_labels(attribute), which, inches)
    elif places.kind == "date":
        date_marks(axis)
    else:
        ticker = require("matplotlib.ticker", extra="plot", purpose="Drawing")
        axis.set_major_locator(ticker.MaxNLocator(marks_along(axes, which)))
        plain_numbers(axis)
    return places


def names_along(
    axes: Axes, names: list[str], which: str = "x", inches: float | None = None
) -> None:
    """Write one name at each of 0, 1, 2, ... along an axis, turned where crowded.

    Parameters
    ----------
    axes : Axes
        Where to.
    names : list[str]
        The names.
    which : str, default 'x'
        "x" or "y".
    inches : float, optional
        The length of the axis, where it is not that of the axes.
    """
    every = -(-len(names) // MOST_NAMES)
    shown = range(0, len(names), every)
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_ticks(list(shown), labels=[names[place] for place in shown])
    axis.set_tick_params(length=0)
    room = axes.bbox.width / axes.figure.dpi if inches is None else inches
    needed = sum(len(names[place]) + 1 for place in shown)
    if which == "x" and needed > CHARACTERS_PER_INCH * room:
        rotate_names(axes)


def date_marks(axis: Any) -> None:
    """Mark an axis of dates at round ones."""
    dates = require("matplotlib.dates", extra="plot", purpose="Drawing dates")
    ticks = dates.AutoDateLocator(maxticks=8)
    axis.set_major_locator(ticks)
    axis.set_major_formatter(dates.ConciseDateFormatter(ticks))


def plain_numbers(axis: Any) -> None:
    """Write the numbers of an axis in full, with commas."""
    ticker = require("matplotlib.ticker", extra="plot", purpose="Drawing")
    axis.set_major_formatter(ticker.FuncFormatter(in_full))


def name_extras(axes: Axes, which: str, places: Places) -> None:
    """Mark cells without a place on the axis by name; call it when limits are set.

    Parameters
    ----------
    axes : Axes
        Where to.
    which : str
        "x" or "y".
    places : Places
        Where the cells lie.
    """
    if not places.extras:
        return
    axis = axes.xaxis if which == "x" else axes.yaxis
    middles, names = zip(*places.extras, strict=True)
    last = places.edges[-1 - len(names)]
    ticks = [tick for tick in axis.get_ticklocs() if places.edges[0] <= tick <= last]
    tick_labels = axis.get_major_formatter().format_ticks(ticks)
    axis.set_ticks([*ticks, *middles], labels=[*tick_labels, *names])
    line = axes.axvline if which == "x" else axes.axhline
    line(last, color="0.6", linestyle=":", linewidth=1)
    if which == "x":
        rotate_names(axes)


def in_full(value: float, place: Any = None) -> str:
    """Return a number with commas, whole numbers in all their digits: 1,000,000.

    Parameters
    ----------
    value : float
        The number.
    place : object, optional
        Its place on the axis, which matplotlib hands over.

    Returns
    -------
    str
        The text.
    """
    whole = float(value).is_integer() and abs(value) < MOST_IN_FULL
    return f"{value:,.0f}" if whole else f"{value:,g}"


def marks_along(axes: Axes, which: str) -> int:
    """Return how many marks with numbers fit along an axis: an inch and more each.

    Parameters
    ----------
    axes : Axes
        The axes.
    which : str
        "x" or "y".

    Returns
    -------
    int
        The number.
    """
    box = axes.bbox
    inches = (box.width if which == "x" else 2 * box.height) / axes.figure.dpi
    return int(min(max(inches * 1.2, 2), 8))


def rotate_names(axes: Axes) -> None:
    """Turn the names along the lower axis, ending below their marks."""
    for text in axes.get_xticklabels():
        text.set(rotation=40, ha="right", rotation_mode="anchor")


def note(
    axes: Axes, text: str, place: Any, away: tuple[float, float], **style: Any
) -> None:
    """Write a remark so many points away from a place.

    Parameters
    ----------
    axes : Axes
        Where to.
    text : str
        The remark.
    place : pair of numbers
        The place.
    away : tuple[float, float]
        How many points to the right and up.
    **style : object
        Options of the annotation.
    """
    look: dict[str, Any] = {"fontsize": "small", "color": "0.25", **style}
    axes.annotate(text, place, xytext=away, textcoords="offset points", **look)


def line_names(axes: Axes, names: list[tuple[str, float, str]], gap: float) -> None:
    """Write names beside the right border.

    Parameters
    ----------
    axes : Axes
        Where to.
    names : list[tuple[str, float, str]]
        Text, height and colour of each.
    gap : float
        How far they are apart at least, in parts of the axes.
    """
    scale = axes.transData.transform
    inverse = axes.transAxes.inverted().transform
    left = axes.get_xlim()[0]
    wanted = [float(inverse(scale((left, height)))[1]) for _, height, _ in names]
    moved = apart(wanted, gap)
    # All the names move together where the lowest would hang below the axis.
    lift = max(0.0, 0.02 - min(moved, default=1.0))
    for (text, _, colour), height, end in zip(names, wanted, moved, strict=True):
        axes.annotate(
            text,
            (1.0, height),
            xycoords="axes fraction",
            xytext=(1.04, end + lift),
            textcoords="axes fraction",
            color=colour,
            va="center",
            ha="left",
            fontsize="small",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.8,
                "shrinkA": 1,
                "shrinkB": 0,
                "relpos": (0.0, 0.5),
            },
        )


def apart(heights: list[float], gap: float) -> list[float]:
    """Move heights apart, as little as may be, in their order.

    Parameters
    ----------
    heights : list[float]
        The heights.
    gap : float
        How far they are apart at least.

    Returns
    -------
    list[float]
        The new heights.
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(heights, kind="stable")
    room = gap * np.arange(len(heights))
    moved = np.zeros(len(heights))
    # Heights less their least room never decrease: the closest such sequence.
    if moved.size:
        moved[order] = isotonic_regression(np.array(heights)[order] - room).x + room
    return [round(height, 9) for height in moved.tolist()]


def inner_cuts(labels: IntArray) -> IntArray:
    """Return the cells at which another bucket begins than that of the cell before."""
    return np.flatnonzero(np.diff(labels)) + 1
