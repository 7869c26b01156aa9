"""A policy as a picture: small graphs node by node, large ones by their distances."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from blowfish_fast._support import palette
from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.axes import Axis
from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.policies import Policy
from blowfish_fast.policies.drawing import (
    GraphDrawing,
    cell_labels,
    draw_graph,
    is_small,
)

from .canvas import axes_for, in_full, marks_along, names_along, note

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SAMPLED = 48
"""Cells along each side of a coarse picture."""

TITLE_LETTERS, SENTENCE_LETTERS = 11.5, 14.0
"""Letters to an inch, in a title and in the sentence below."""

FEWEST_LETTERS, MOST_LETTERS = 24, 80
LEAST_FARTHEST = 4.0


def policy_graph(policy: Policy, *, axes: Axes | None = None) -> Axes:
    """Draw what a policy keeps indistinguishable.

    Up to 24 cells (64 on a grid) are drawn as a graph. Larger policies show how many
    edges lie between cells, or from the middle cell of a grid to the others: few edges,
    strong protection; no path, none. Constraints are not drawn.

    Parameters
    ----------
    policy : Policy
        What is secret.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.Domain.from_edges(range(0, 101, 10), name="age")
    >>> axes = bf.plotting.policy_graph(bf.policies.Threshold(ages, theta=2))
    >>> axes.get_title()
    'Threshold: 10 cells, 17 edges'
    """
    if not isinstance(policy, Policy):
        raise InputError(
            f"policy_graph draws a policy, such as policies.Line(domain); received "
            f"{policy!r}"
        )
    drawn = (_small if is_small(policy.domain) else _coarse)(policy, axes)
    facts = textwrap.fill(graph_facts(policy), letters(drawn, TITLE_LETTERS))
    drawn.set_title(facts, fontsize="medium")
    _sentence(drawn, policy)
    return drawn


def graph_facts(policy: Policy) -> str:
    """Return size, edges and parts of a policy as one line."""
    parts = [f"{type(policy).__name__}: {policy.domain.size:,} cells"]
    try:
        parts.append(f"{policy.edge_count:,} edges")
        apart = policy.components().count
    except SizeError:
        return ", ".join(parts)
    if apart > 1:
        parts.append(f"{apart:,} parts without a path between them")
    return ", ".join(parts)


def _small(policy: Policy, axes: Axes | None) -> Axes:
    layout = draw_graph(policy)
    drawn = axes_for(axes, _size(layout), "Drawing a policy")
    if len(layout.curves):
        alpha = 0.75 if len(layout.curves) < 200 else 0.35
        look = {"colors": palette.BLUE, "linewidths": 1.3, "alpha": alpha}
        _add_lines(
            drawn, sampled_curves(layout.curves), "edge: not to be told apart", **look
        )
    if layout.absent is not None:
        look = {"colors": palette.ABSENT, "linewidths": 1.0, "alpha": 0.7}
        words = "edge to absent: presence is a secret"
        _add_lines(drawn, layout.spokes, words, linestyles="--", **look)
        drawn.plot(*layout.absent, "s", color=palette.ABSENT, markersize=9, zorder=3)
        away = (0, -8 if layout.form == "line" else -10)
        style = {"ha": "center", "va": "top", "color": palette.ABSENT}
        note(drawn, "absent", tuple(layout.absent), away, fontsize=None, **style)
    drawn.plot(*layout.nodes.T, "o", color=palette.BLACK, markersize=7, zorder=3)
    _frame(drawn, policy, layout)
    return drawn


def _add_lines(axes: Axes, lines: FloatArray, words: str, **look: Any) -> None:
    collections = require("matplotlib.collections", extra="plot", purpose="Drawing")
    axes.add_collection(collections.LineCollection(list(lines), label=words, **look))


def _size(layout: GraphDrawing) -> tuple[float, float]:
    """Return inches: lines need little height, all but their arcs."""
    if layout.form != "line":
        return 5.6, 5.4
    flat = layout.absent is None and (layout.curves[:, 1, 1] == 0).all()
    return 8.0, 2.0 if flat else 3.8


def sampled_curves(curves: FloatArray, points: int = 24) -> FloatArray:
    """Return points along parabolas given by start, control and end.

    Parameters
    ----------
    curves : ndarray of float64, shape (curves, 3, 2)
        The three points of each.
    points : int, default 24
        How many points.

    Returns
    -------
    ndarray of float64, shape (curves, points, 2)
        The points.
    """
    along = np.linspace(0.0, 1.0, points)[None, :, None]
    start, control, end = (curves[:, None, corner] for corner in range(3))
    return (1 - along) ** 2 * start + 2 * along * (1 - along) * control + along**2 * end


def _frame(axes: Axes, policy: Policy, layout: GraphDrawing) -> None:
    points = [layout.nodes]
    if len(layout.curves):
        points.append(sampled_curves(layout.curves).reshape(-1, 2))
    if layout.absent is not None:
        points.append(layout.absent[None])
    low = np.concatenate(points).min(axis=0)
    high = np.concatenate(points).max(axis=0)
    attributes = policy.domain.attributes
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0)
    if layout.form == "circle":
        for place, label in zip(layout.nodes, layout.labels, strict=True):
            x, y = place.tolist()
            where = "center" if abs(x) < 0.2 else ("left" if x > 0 else "right")
            usual = {"ha": where, "va": "center", "color": None, "fontsize": None}
            note(axes, label, (x, y), (13 * x, 13 * y), **usual)
        axes.set(xticks=[], yticks=[], aspect="equal")
        axes.set_xlim(low[0] - 0.75, high[0] + 0.75)
        axes.set_ylim(low[1] - 0.35, high[1] + 0.3)
        return
    axes.set_xlim(low[0] - 0.6, high[0] + 0.6)
    axes.set_ylim(low[1] - 0.6, high[1] + 0.6)
    along = attributes[-1]
    names_along(axes, cell_labels(along))
    axes.set_xlabel(_axis_name(along, "cell" if layout.form == "line" else "column"))
    if layout.form == "line":
        axes.set_yticks([])
        return
    names_along(axes, cell_labels(attributes[0]), "y")
    axes.set_ylabel(_axis_name(attributes[0], "row"))
    axes.set_aspect("equal")


def _axis_name(attribute: Axis, fallback: str) -> str:
    name = attribute.name or fallback
    return name if attribute.cuts is None else f"{name} (where cells begin)"


def letters(axes: Axes, per_inch: float) -> int:
    """Return how many letters fit into a line over the width of axes.

    Parameters
    ----------
    axes : Axes
        The axes.
    per_inch : float
        How many letters an inch has.

    Returns
    -------
    int
        The number.
    """
    inches = axes.bbox.width / axes.figure.dpi
    return int(min(max(per_inch * inches, FEWEST_LETTERS), MOST_LETTERS))


def _sentence(axes: Axes, policy: Policy) -> None:
    words = policy.describe()
    sentence = words[0].upper() + words[1:] + "."
    if not axes.get_xlabel():
        # An empty label has no place to hang the sentence on.
        axes.set_xlabel(" ")
    text = textwrap.fill(sentence, letters(axes, SENTENCE_LETTERS))
    style = {"ha": "center", "va": "top", "annotation_clip": False}
    note(axes, text, (0.5, 0.0), (0, -6), xycoords=axes.xaxis.label, **style)


def sampled_cells(count: int) -> IntArray:
    """Return at most 48 cells, evenly spread, both ends among them."""
    return np.unique(np.linspace(0, count - 1, min(count, SAMPLED)).astype(np.int64))


def _coarse(policy: Policy, axes: Axes | None) -> Axes:
    """Draw edges between sampled cells, of a grid from its middle cell alone."""
    drawn = axes_for(axes, (6.4, 6.4), "Drawing a policy")
    domain = policy.domain
    if domain.ndim == 2:
        (rows, columns), (up, across) = domain.shape, domain.attributes
        down, right = sampled_cells(rows), sampled_cells(columns)
        middle = rows // 2 * columns + columns // 2
        distances = policy.distance(middle, down[:, None] * columns + right[None, :])
        names, words = (
            (up.name or "row", across.name or "column"),
            "from the middle cell",
        )
        at = [np.searchsorted(right, columns // 2), np.searchsorted(down, rows // 2)]
        drawn.plot(*at, "+", color=palette.VERMILLION, markersize=12, mew=2)
    else:
        down = right = sampled_cells(domain.size)
        distances = policy.distance(down[:, None], right[None, :])
        up = across = domain.attributes[0] if domain.ndim == 1 else Axis(domain.size)
        name = up.name or "cell"
        names, words = (
            (f"{name} of another", f"{name} of one person"),
            "between two cells",
        )
    _distances(drawn, distances, f"edges {words}")
    _sampled_axis(drawn, "y", up, down)
    _sampled_axis(drawn, "x", across, right)
    drawn.set(ylabel=names[0], xlabel=names[1])
    return drawn


def _distances(axes: Axes, distances: FloatArray, words: str) -> None:
    """Draw distances in colour, those without a path in grey."""
    matplotlib = require("matplotlib", extra="plot", purpose="Drawing a policy")
    # Near is dark in every picture, also where all cells are near.
    farthest = distances[np.isfinite(distances)].max(initial=LEAST_FARTHEST)
    colours = matplotlib.colormaps[palette.COUNTS].with_extremes(bad="0.8")
    image = axes.imshow(
        np.ma.masked_invalid(distances),
        origin="lower",
        cmap=colours,
        vmin=0.0,
        vmax=farthest,
        interpolation="nearest",
        aspect="auto",
    )
    bar = axes.figure.colorbar(image, ax=axes, label=words)
    bar.locator = matplotlib.ticker.MaxNLocator(6, integer=True)
    bar.formatter = matplotlib.ticker.FuncFormatter(in_full)
    bar.update_ticks()
    if not np.isfinite(distances).all():
        axes.plot([], [], "s", color="0.8", label="no path: not protected")
        axes.legend(loc="upper left", framealpha=0.9, fontsize="small")


def _sampled_axis(axes: Axes, which: str, attribute: Axis, cells: IntArray) -> None:
    """Mark round values between sampled cells, or some of the cells by name."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    if attribute.levels is None and attribute.unit is None and not attribute.extras:
        ticker = require("matplotlib.ticker", extra="plot", purpose="Drawing a policy")
        cuts = attribute.cuts
        begins = cells if cuts is None else [cuts[cell] for cell in cells.tolist()]
        values = np.asarray(begins, dtype=np.float64)
        rounded = ticker.MaxNLocator(marks_along(axes, which))
        marks = rounded.tick_values(values[0], values[-1])
        marks = marks[(marks >= values[0]) & (marks <= values[-1])]
        places = np.interp(marks, values, np.arange(cells.size))
        axis.set_ticks(places.tolist(), labels=[in_full(mark) for mark in marks])
        return
    some = np.unique(np.linspace(0, cells.size - 1, 5).astype(np.int64))
    axis.set_ticks(some.tolist(), labels=cell_labels(attribute, cells[some]))
