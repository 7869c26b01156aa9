"""Districts in classes of colours, hatched where the noise drowns the count.

A class holds equally many districts, unless its breaks are stated:

    breaks   0   20   60   150   400   900     the ends of five classes
    tract A  35 +- 10     second class
    tract B  35 +- 40     second class, hatched: its interval is wider than its count
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import malformed_as
from blowfish_fast.data.places.cell_parts import turned_ring
from blowfish_fast.data.places.districts import Districts
from blowfish_fast.data.places.polygon_files import WGS84, Polygon
from blowfish_fast.errors import InputError
from blowfish_fast.release.file import Release
from blowfish_fast.release.places.map_classes import (
    CLASSES,
    class_breaks,
    colour_classes,
)
from blowfish_fast.release.places.map_files import (
    WIDE,
    MapRows,
    interval_names,
    map_rows,
    placed_estimates,
)
from blowfish_fast.release.release import HistogramRelease

from .canvas import axes_for, heading, refuse_true_counts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (8.0, 4.8)
"""Width and height of a map, in inches."""

HATCH = "////"
"""The pattern, in matplotlib's words, over districts that should not be read."""

UNSURE = "interval wider than\nthe count: do not read"
"""What the legend says of hatched districts."""

MOST_LATITUDE = 80.0
"""Degrees. A map is stretched by 1 / cos(latitude), which has no bound at the poles, so
the middle of a map counts as no further north or south than this."""


def choropleth(
    release: Release,
    districts: Districts | None = None,
    *,
    breaks: Any = None,
    confidence: float = 0.95,
    axes: Axes | None = None,
) -> Axes:
    """Draw districts, or cells of a grid, in classes of colours by their estimates.

    Where an interval is wider than the estimate itself the district is hatched, as in
    the style of `HistogramRelease.to_geopackage`.

    Parameters
    ----------
    release : Release
        Counts of districts, or of a grid of lon and lat, or x and y.
    districts : Districts, optional
        The polygons of the cells; left out for a grid.
    breaks : sequence of float, optional
        Rising public numbers, the ends of the five classes: six of them. By default
        classes hold equal numbers of districts by their estimates.
    confidence : float, default 0.95
        How surely intervals hold.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    InputError
        If these are no counts of such districts, or breaks do not rise.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> def square(x):
    ...     ring = [[x, 0], [x + 1, 0], [x + 1, 1], [x, 1]]
    ...     return {"type": "Polygon", "coordinates": [ring]}
    >>> tracts = bf.Districts.from_shapes(map(square, range(3)), ["A", "B", "C"])
    >>> place = bf.Domain.from_polygons(tracts, name="tract")
    >>> laplace = bf.Laplace(bf.policies.AddRemove(place), epsilon=1)
    >>> axes = bf.plotting.choropleth(laplace.release([40, 500, 900]), tracts)
    >>> len(axes.collections[0].get_paths())
    3
    """
    refuse_true_counts(release, "draw a release, or")
    if not isinstance(release, HistogramRelease):
        raise InputError(
            f"choropleth draws a release of a histogram; received {release!r}"
        )
    rows = map_rows(release, districts, confidence)
    if breaks is None:
        ends = class_breaks(placed_estimates(rows))
    else:
        ends = _as_breaks(breaks)
    classes = colour_classes(ends)
    drawn = axes_for(axes, SIZE, "Drawing a map")
    patches = require("matplotlib.patches", extra="plot", purpose="Drawing a map")
    collections = require("matplotlib.collections", extra="plot", purpose="A map")
    placed = np.flatnonzero([bool(shape) for shape in rows.shapes])
    estimates = rows.columns["estimate"]
    # Estimates beyond the stated ends belong to the first and the last class.
    shade = np.searchsorted(ends[1:-1], estimates, side="right")
    paths = [_path(rows.shapes[at]) for at in placed]
    style: dict[str, Any] = {"edgecolors": "white", "linewidths": 0.3}
    colours = [classes[shade[at]].colour for at in placed]
    drawn.add_collection(
        collections.PathCollection(paths, facecolors=colours, **style), autolim=True
    )
    low, high = interval_names(rows)
    unsure = rows.columns[high] - rows.columns[low] > WIDE * estimates
    hatched = [path for path, at in zip(paths, placed, strict=True) if unsure[at]]
    style = {"facecolors": "none", "edgecolors": "#3c3c3c", "linewidths": 0.0}
    drawn.add_collection(
        collections.PathCollection(hatched, hatch=HATCH, **style), autolim=False
    )
    _place(drawn, rows)
    legend = [patches.Patch(color=each.colour, label=each.label) for each in classes]
    if hatched:
        unread = {"facecolor": "none", "edgecolor": "#3c3c3c", "hatch": HATCH}
        legend.append(patches.Patch(label=UNSURE, **unread))
    # Beside the map: a legend on it would hide districts.
    beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    drawn.legend(handles=legend, title="records", fontsize="small", **beside)
    drawn.set_title(heading(release), fontsize="medium")
    lacking = [str(rows.ids[at]) for at in range(len(rows.ids)) if not rows.shapes[at]]
    if lacking:
        shown = ", ".join(lacking[:3]) + (", ..." if len(lacking) > 3 else "")
        drawn.set_xlabel(f"not on the map: {shown}")
    return drawn


def _as_breaks(breaks: Any) -> FloatArray:
    with malformed_as(InputError, "breaks are rising numbers"):
        ends = np.asarray(breaks, dtype=np.float64).reshape(-1)
    if ends.size != len(CLASSES) + 1 or not (np.diff(ends) > 0).all():
        raise InputError(
            f"breaks are {len(CLASSES) + 1} rising numbers, the ends of "
            f"{len(CLASSES)} classes",
            received=repr(breaks),
        )
    return ends


def _path(polygons: list[Polygon]) -> Any:
    """Return a district as one path, in which holes turn the other way.

    The first ring of a polygon is its outline, the others are holes. Matplotlib fills
    what a path winds around; a hole that turns the other way undoes the outline's turn.
    """
    path = require("matplotlib.path", extra="plot", purpose="Drawing a map").Path
    return path.make_compound_path(
        *(
            path(turned_ring(ring, outer=at == 0), closed=True)
            for polygon in polygons
            for at, ring in enumerate(polygon)
        )
    )


def _place(axes: Axes, rows: MapRows) -> None:
    """Show the whole map, without distortion at its middle.

    In degrees (WGS 84), one of longitude is shorter than one of latitude by the cosine
    of the latitude.
    """
    points = np.concatenate(
        [ring for shape in rows.shapes for polygon in shape for ring in polygon]
    )
    (west, south), (east, north) = points.min(axis=0), points.max(axis=0)
    axes.set_xlim(west, east)
    axes.set_ylim(south, north)
    aspect = 1.0
    if rows.system == WGS84:
        middle = min(abs(south + north) / 2.0, MOST_LATITUDE)
        aspect = float(1.0 / np.cos(np.radians(middle)))
    axes.set_aspect(aspect)
    axes.set_xticks([])
    axes.set_yticks([])
