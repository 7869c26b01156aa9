"""Pictures of wide domains: a window of ranges, and the heaviest listed cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from blowfish_fast._support import palette
from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast.data.predicates import whole_cover
from blowfish_fast.errors import InputError
from blowfish_fast.release.wide.ranges_release import RangesRelease
from blowfish_fast.release.wide.sparse_release import SparseRelease
from blowfish_fast.workloads import Ranges, Rectangles

from .canvas import axes_for, heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS = 256
"""Ranges into which a window is cut."""

PARTS_OF_SIDE = 96
"""Parts into which each side of a window of a map is cut."""

MOST_OUTLINES = 4000
"""Boxes whose outlines are drawn; of more, colours alone."""

MOST_LISTED = 24
"""Listed cells that are named; heavier ones first."""

MIDDLE = (0.01, 0.99)
"""Parts of all records between which a window lies by itself."""


def buckets(
    release: RangesRelease,
    *,
    part: Any = None,
    confidence: float = 0.95,
    axes: Axes | None = None,
) -> Axes:
    """Draw a window of a wide domain: how many records lie in each part of it.

    Ticks at the lower border mark where buckets begin; between two of them records are
    taken as even. By itself the window holds the middle 98 of 100 records. A map is
    drawn in colours, with the outlines of its boxes.

    Parameters
    ----------
    release : RangesRelease
        What `Dawa` published of a wide domain.
    part : slice or value, or mapping from attributes to these, optional
        The window, in values: ``slice("2024-03-01", "2024-03-02")``; of a map
        ``{"east": slice(0, 5000), "north": slice(0, 5000)}``.
    confidence : float, default 0.95
        How surely the intervals hold the true counts.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    InputError
        If it is no such release.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> time = bf.WideDomain.from_steps(
    ...     start="2024-01-01", step="1s", cells=2**30, name="time"
    ... )
    >>> asked = bf.workloads.Ranges.between(time, ["2024-01-01"], ["2024-01-02"])
    >>> dawa = bf.Dawa(bf.policies.AddRemove(time), asked, epsilon=1)
    >>> moments = np.datetime64("2024-01-05", "s") + np.arange(5000)
    >>> data = bf.SparseHistogram.from_records(time, {"time": moments})
    >>> axes = bf.plotting.buckets(dawa.release(data), part="2024-01-05")
    >>> axes.get_xlabel(), axes.get_ylabel().startswith("records per")
    ('time', True)
    """
    if not isinstance(release, RangesRelease):
        raise InputError(f"buckets draws ranges of a wide domain; received {release!r}")
    if release.domain.ndim == 2:
        return _map_window(release, part, axes)
    (attribute,) = release.domain.attributes
    if part is None:
        first, last = _middle(release)
    else:
        ((first, last),) = whole_cover(attribute, part)[:1]
    width = max((last - first) // BARS, 1)
    cuts = np.append(np.arange(first, last, width), last).astype(np.int64)
    domain: Any = release.domain
    ranges = Ranges(domain, cuts[:-1], cuts[1:])
    low, high = release.intervals(ranges, confidence, of="truth").T
    # The last part may be shorter: all are drawn as parts of one width.
    share = width / np.diff(cuts)
    edges: AnyArray = attribute.rule.values(np.minimum(cuts, attribute.regular))
    drawn = axes_for(axes, (8.0, 3.8), "Drawing buckets")
    band: Any = {"step": "post", "color": palette.NOISE, "alpha": 0.25}
    label = f"{confidence:.4g} of true counts lie here"
    drawn.fill_between(
        edges,
        np.append(low * share, low[-1]),
        np.append(high * share, high[-1]),
        label=label,
        linewidth=0,
        **band,
    )
    drawn.step(
        edges,
        np.append(release.answer(ranges) * share, np.nan),
        where="post",
        color=palette.NOISE,
        label="estimate",
    )
    inside = (release.edges >= first) & (release.edges <= last)
    begins = attribute.rule.values(release.edges[inside])
    drawn.plot(
        begins,
        np.zeros(begins.size),
        "|",
        color=palette.BLACK,
        transform=drawn.get_xaxis_transform(),
        markersize=8,
        label="buckets begin",
    )
    drawn.set_xlabel(attribute.name or "cell")
    drawn.set_ylabel(f"records per {width:,} cells" if width > 1 else "records")
    drawn.set_title(heading(release), fontsize="medium")
    drawn.legend(frameon=False, fontsize="small")
    return drawn


def _map_window(release: RangesRelease, part: Any, axes: Axes | None) -> Axes:
    """Draw a window of a map: estimates of equal parts of it, and outlines of boxes."""
    from matplotlib.collections import LineCollection

    window = _middle_box(release)
    for name, condition in dict(part or {}).items():
        axis = release.domain.axis(name)
        (window[axis],) = whole_cover(release.domain.attributes[axis], condition)[:1]
    cuts = [
        np.unique(np.linspace(first, last, PARTS_OF_SIDE + 1).astype(np.int64))
        for first, last in window
    ]
    lows = np.stack(np.meshgrid(cuts[0][:-1], cuts[1][:-1], indexing="ij"), axis=-1)
    highs = np.stack(np.meshgrid(cuts[0][1:], cuts[1][1:], indexing="ij"), axis=-1)
    domain: Any = release.domain
    asked = Rectangles(domain, lows.reshape(-1, 2), highs.reshape(-1, 2))
    shown = np.log10(1.0 + np.maximum(release.answer(asked), 0.0))
    up, across = (
        attribute.rule.values(np.minimum(cut, attribute.regular))
        for attribute, cut in zip(domain.attributes, cuts, strict=True)
    )
    drawn = axes_for(axes, (6.4, 5.4), "Drawing a map")
    mesh = drawn.pcolormesh(
        across, up, shown.reshape(lows.shape[:2]), cmap="viridis", shading="flat"
    )
    if axes is None:
        bar = drawn.figure.colorbar(mesh, ax=drawn)
        bar.set_label("records per part, 1 + n, as a power of ten")
    outlines = _outlines(release, window)
    if outlines:
        lines = LineCollection(outlines, colors=palette.BLACK, linewidths=0.3)
        drawn.add_collection(lines, autolim=False)
    drawn.set_xlabel(domain.attributes[1].name or "column")
    drawn.set_ylabel(domain.attributes[0].name or "row")
    drawn.set_title(heading(release), fontsize="medium")
    return drawn


def _outlines(
    release: RangesRelease, window: list[tuple[int, int]]
) -> list[list[tuple[float, float]]]:
    """Return the boxes that reach into a window, each as a closed line of corners.

    None are returned where there are more than `MOST_OUTLINES`: they would cover the
    colours.
    """
    domain: Any = release.domain
    corners = release.boxes
    inside = (corners[:, 1] > [first for first, _ in window]).all(axis=1)
    inside &= (corners[:, 0] < [last for _, last in window]).all(axis=1)
    if inside.sum() > MOST_OUTLINES:
        return []
    bottom, left, top, right = (
        _as_places(
            domain.attributes[axis].rule.values(
                np.minimum(corners[inside, end, axis], domain.attributes[axis].regular)
            )
        )
        for end in (0, 1)
        for axis in (0, 1)
    )
    return [
        [(west, south), (east, south), (east, north), (west, north), (west, south)]
        for west, south, east, north in zip(left, bottom, right, top, strict=True)
    ]


def _as_places(values: AnyArray) -> AnyArray:
    """Return values as matplotlib places them: moments in days."""
    if values.dtype.kind != "M":
        return values
    from matplotlib.dates import date2num

    return np.asarray(date2num(values))


def _middle_box(release: RangesRelease) -> list[tuple[int, int]]:
    """Return, of each side, the part that holds the middle of the published totals."""
    window = []
    for axis, size in enumerate(release.domain.shape):
        low, high = release.boxes[:, 0, axis], release.boxes[:, 1, axis]
        held = np.maximum(release.totals, 0.0)
        if held.sum() <= 0:
            window.append((0, size))
            continue
        ends = []
        for part, places in zip(MIDDLE, (low, high), strict=True):
            order = np.argsort(places, kind="stable")
            running = np.cumsum(held[order])
            at = int(np.searchsorted(running, part * running[-1]))
            ends.append(int(places[order[min(at, order.size - 1)]]))
        window.append((ends[0], ends[1]) if ends[0] < ends[1] else (0, size))
    return window


def _middle(release: RangesRelease) -> tuple[int, int]:
    """Return the run of buckets that holds the middle of the published totals."""
    running = np.cumsum(np.maximum(release.totals, 0.0))
    if running[-1] <= 0:
        return 0, release.domain.size
    places: IntArray = np.searchsorted(running, np.multiply(MIDDLE, running[-1]))
    last = min(int(places[1]), len(release) - 1)
    return int(release.edges[places[0]]), int(release.edges[last + 1])


def listed_cells(
    release: SparseRelease, *, confidence: float = 0.95, axes: Axes | None = None
) -> Axes:
    """Draw the heaviest cells of a list, at most 24, with intervals of the truth.

    Parameters
    ----------
    release : SparseRelease
        What `SparseLaplace` published.
    confidence : float, default 0.95
        How surely each interval holds, given that its cell is listed.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    InputError
        If it is no such release.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ports = bf.Domain(2**16, names=["port"])
    >>> heavy = bf.SparseLaplace(bf.policies.AddRemove(ports), epsilon=1)
    >>> counts = [0] * 2**16
    >>> counts[443] = 900
    >>> axes = bf.plotting.listed_cells(heavy.release(counts))
    >>> axes.get_xlabel()
    'records'
    """
    if not isinstance(release, SparseRelease):
        raise InputError(
            f"listed_cells draws a list of heavy cells; received {release!r}"
        )
    columns = dict(release.cells(confidence).columns)
    count, low, high = (columns.pop(name) for name in ("count", "low", "high"))
    heaviest = np.argsort(-count, kind="stable")[:MOST_LISTED][::-1]
    names = [
        " ".join(str(column[at]) for column in columns.values()) for at in heaviest
    ]
    drawn = axes_for(axes, (8.0, 1.4 + 0.26 * max(len(names), 1)), "Drawing a list")
    lines = np.arange(len(names))
    drawn.barh(lines, count[heaviest], color=palette.NOISE, height=0.7)
    drawn.hlines(lines, low[heaviest], high[heaviest], color=palette.BLACK)
    drawn.set_yticks(lines, names)
    drawn.axvline(float(release.threshold), color=palette.LIMIT, linestyle="--")
    drawn.set_xlabel("records")
    drawn.set_title(heading(release), fontsize="medium")
    return drawn
