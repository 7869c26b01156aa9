"""Maps: a release over two attributes, public values, or the errors of all tables."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from blowfish_fast._support import palette
from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import AnyArray, FloatArray
from blowfish_fast._support.validation import as_choice, malformed_as
from blowfish_fast.errors import InputError, IntervalError
from blowfish_fast.release.chosen_release import ChosenTablesRelease
from blowfish_fast.release.file import Release
from blowfish_fast.release.release import HistogramRelease
from blowfish_fast.release.table_errors import TableErrors
from blowfish_fast.workloads import Identity
from blowfish_fast.workloads.tables import table_names

from .canvas import axes_for, heading, label_axis, name_extras, refuse_true_counts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EVEN = 1e-9
"""Relative difference of widths below which cells count as equally wide."""

NARROWEST = 0.4
WIDEST = 2.5
"""Height over width of a map: cells look square between these two."""

LONGEST_SIDE = 4.4
"""Inches of the longer side of a map."""

MARGIN = 1.7
"""Inches beside a map, for text and the scale of colours."""

MOST_BOXES = 20_000
"""Buckets up to which their outlines can be told apart."""

MOST_WRITTEN = 16
"""Attributes up to which errors of tables are written into the fields."""


def grid_map(
    release: Release,
    *,
    show: Literal["estimate", "standard_error"] = "estimate",
    buckets: bool = False,
    largest: float | None = None,
    colour_bar: bool | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw a two-dimensional release as a map with a scale of colours.

    The first attribute goes upwards. Estimated counts have a logarithmic scale, with
    negative ones as 0.

    Parameters
    ----------
    release : Release
        What was published, over two attributes.
    show : Literal['estimate', 'standard_error'], default 'estimate'
        Whether estimates are drawn, or standard errors.
    buckets : bool, default False
        Whether those that the mechanism chose are outlined.
    largest : float, optional
        Value of the last colour, to compare maps; the largest one by default.
    colour_bar : bool, optional
        Whether the scale of colours is drawn; by default beside a map with a figure of
        its own.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> city = bf.Domain((8, 8), names=("north", "east"))
    >>> laplace = bf.Laplace(
    ...     bf.policies.AddRemove(city), bf.workloads.Identity(city), epsilon=1
    ... )
    >>> axes = bf.plotting.grid_map(laplace.release([[40] * 8] * 8))
    >>> axes.get_xlabel(), axes.get_ylabel(), axes.images[0].get_array().shape
    ('east', 'north', (8, 8))
    """
    if not isinstance(release, HistogramRelease):
        raise InputError(
            f"grid_map draws a release of a histogram; received {release!r}"
        )
    if release.domain.ndim != 2:
        raise InputError(
            f"grid_map draws two attributes; this release has {release.domain.ndim}. "
            "Use plotting.histogram for one, and for more "
            "plotting.groups(release.group_by('one', 'other').count())"
        )
    as_choice(show, "show", ("estimate", "standard_error"))
    ratio = _ratio(release.domain.shape)
    # Inches in which cells look square, with room for text and colours.
    width, height = LONGEST_SIDE / max(ratio, 1.0), LONGEST_SIDE * min(ratio, 1.0)
    size = width + MARGIN, height + 0.8
    drawn = axes_for(axes, size, "Drawing a map")
    up, across = release.domain.attributes
    side_axis = label_axis(drawn, "y", up, "row")
    # A figure of our own has a known width, into which labels have to fit.
    room = None if axes else size[0] - MARGIN
    bottom_axis = label_axis(drawn, "x", across, "column", room)
    rows, columns = side_axis.edges, bottom_axis.edges
    if show == "estimate":
        shown, words = _logarithms(release.estimate), "records per cell"
        top = _top(shown, largest)
    else:
        words = "standard deviation of the noise"
        try:
            errors = release.standard_errors(Identity(release.domain))
        except IntervalError as problem:
            raise InputError(
                f"the noise of this release is not known: {problem}"
            ) from None
        shown = errors.reshape(release.domain.shape)
        top = float(shown.max()) if largest is None else float(largest)
    image = _image(drawn, shown, rows, columns, top)
    name_extras(drawn, "y", side_axis)
    name_extras(drawn, "x", bottom_axis)
    if axes is not None:
        drawn.set_box_aspect(ratio)
    if colour_bar or (colour_bar is None and axes is None):
        bar = drawn.figure.colorbar(image, ax=drawn, label=words)
        if show == "estimate":
            decades = 10.0 ** np.arange(16)
            marks = np.append(0.0, decades[np.log1p(decades) <= top])
            bar.set_ticks(np.log1p(marks), labels=[f"{mark:,.0f}" for mark in marks])
    if buckets:
        _outline_buckets(drawn, release, rows, columns)
    drawn.set_title(heading(release), fontsize="medium")
    return drawn


def density(
    values: Any,
    *,
    axes: Axes | None = None,
    title: str = "",
    labels: tuple[str, str] = ("row", "column"),
    largest: float | None = None,
) -> Axes:
    """Draw public non-negative values as log(1 + value); negative ones as 0.

    A histogram of true counts is refused.

    Parameters
    ----------
    values : array-like, shape (rows, columns)
        The values.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.
    title : str, default ''
        The title.
    labels : tuple[str, str], default ('row', 'column')
        The names of rows and columns.
    largest : float, optional
        The value of the last colour.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    InputError
        If these are true counts.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> axes = bf.plotting.density([[0, 9], [99, 999]], title="generated")
    >>> axes.images[0].get_array().round(1).tolist()
    [[0.0, 2.3], [4.6, 6.9]]
    """
    refuse_true_counts(values, "draw a release, or")
    if isinstance(values, HistogramRelease):
        raise InputError("density draws arrays; a release has plotting.grid_map")
    with malformed_as(InputError, "density draws an array of numbers"):
        array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2:
        raise InputError(
            f"a map has rows and columns; received values of shape {array.shape}"
        )
    drawn = axes_for(axes, (5.0, 5.0), "Drawing a map")
    shown = _logarithms(array)
    _image(
        drawn,
        shown,
        np.arange(array.shape[0] + 1.0) - 0.5,
        np.arange(array.shape[1] + 1.0) - 0.5,
        _top(shown, largest),
    )
    drawn.set_box_aspect(_ratio(array.shape))
    drawn.set_title(title, fontsize="medium")
    drawn.set_ylabel(labels[0])
    drawn.set_xlabel(labels[1])
    return drawn


def _logarithms(values: FloatArray) -> FloatArray:
    """Return log(1 + value): 0 stays 0, and negative estimates are drawn as 0."""
    shown: FloatArray = np.log1p(np.maximum(values, 0.0))
    return shown


def _top(shown: FloatArray, largest: float | None) -> float:
    """Return the logarithm of the last colour; above 0, also where nothing is shown."""
    top = float(shown.max()) if largest is None else float(np.log1p(largest))
    return max(top, 1e-9)


def _image(
    axes: Axes, shown: FloatArray, rows: FloatArray, columns: FloatArray, top: float
) -> Any:
    """Draw one rectangle per cell; an image where all are alike, at any size."""
    style: dict[str, Any] = {"cmap": palette.COUNTS, "vmin": 0.0, "vmax": top}
    widths = np.diff(rows), np.diff(columns)
    if all(np.ptp(sizes) <= EVEN * sizes.max() for sizes in widths):
        extent = (columns[0], columns[-1], rows[0], rows[-1])
        style |= {"extent": extent, "origin": "lower", "interpolation": "nearest"}
        return axes.imshow(shown, aspect="auto", **style)
    return axes.pcolorfast(columns, rows, shown, **style)


def _ratio(shape: tuple[int, ...]) -> float:
    """Return height over width of a box in which cells look square where they can."""
    return min(max(shape[0] / shape[1], NARROWEST), WIDEST)


def bucket_boxes_of(release: HistogramRelease) -> AnyArray | None:
    """Return corners of rectangular buckets, shape (buckets, 2, 2), or None."""
    details = release.details
    lows, highs = details.get("lows"), details.get("highs")
    if isinstance(lows, np.ndarray) and isinstance(highs, np.ndarray):
        return np.stack([lows, highs], axis=1)
    boxes = details.get("boxes")
    return boxes if isinstance(boxes, np.ndarray) and boxes.ndim == 3 else None


def _outline_buckets(
    axes: Axes, release: HistogramRelease, rows: FloatArray, columns: FloatArray
) -> None:
    """Draw the buckets as boxes where the release names them, else by their borders."""
    collections = require("matplotlib.collections", extra="plot", purpose="Outlines")
    boxes = bucket_boxes_of(release)
    many = len(boxes) if boxes is not None else release.details.get("buckets", 0)
    style: dict[str, Any] = {
        "linewidths": 0.6 if many < 500 else 0.3,
        "alpha": 0.7,
        "label": "bucket",
    }
    if boxes is not None and len(boxes) <= MOST_BOXES:
        places = boxes.astype(np.int64)
        around_rows, around_columns = [0, 0, 1, 1], [0, 1, 1, 0]
        upright = rows[places[:, around_rows, 0]]
        corners = np.stack([columns[places[:, around_columns, 1]], upright], axis=-1)
        axes.add_collection(
            collections.PolyCollection(
                list(corners), facecolors="none", edgecolors="white", **style
            )
        )
        return
    if len(release.measurements) != 1:
        return
    buckets = release.measurements[0].buckets
    if buckets.are_single_cells or buckets.count > MOST_BOXES:
        return
    labels = buckets.labels.reshape(release.domain.shape)
    lines = border_lines(labels, rows, columns)
    axes.add_collection(
        collections.LineCollection(list(lines), colors="white", **style)
    )


def border_lines(labels: AnyArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Return the lines between cells of different labels.

    Of two rows and three columns with these labels three lines are drawn: an upright
    one behind the first cell of the upper row, and one below each of its other cells.

        0 | 1   1
          +-------
        0   0   0

    Parameters
    ----------
    labels : ndarray, shape (rows, columns)
        The labels.
    rows : ndarray of float64, shape (rows + 1,)
        The edges of the rows.
    columns : ndarray of float64, shape (columns + 1,)
        The edges of the columns.

    Returns
    -------
    ndarray of float64, shape (lines, 2, 2)
        The two ends of each line.
    """
    both_ends = np.array([0, 1])
    # An upright line stands where a cell differs from the next one of its row. Both of
    # its ends have one x, and the y of the lower and the upper edge of the row.
    row, left_cell = np.nonzero(np.diff(labels, axis=1))
    upright_x = np.repeat(columns[left_cell + 1][:, None], 2, axis=1)
    upright_y = rows[row[:, None] + both_ends]
    # A level line lies where a cell differs from the next one of its column.
    lower_cell, column = np.nonzero(np.diff(labels, axis=0))
    level_x = columns[column[:, None] + both_ends]
    level_y = np.repeat(rows[lower_cell + 1][:, None], 2, axis=1)
    x = np.concatenate([upright_x, level_x])
    y = np.concatenate([upright_y, level_y])
    return np.stack([x, y], axis=-1)


def table_errors(errors: TableErrors, *, axes: Axes | None = None) -> Axes:
    """Draw the error of every table of one and two attributes as a map.

    With a number of records the map shows the error as a part of the mean count of a
    cell: above 1 a table is of use in larger groups only. Below the diagonal stands the
    median over tables of three or more attributes that hold both.

    Parameters
    ----------
    errors : TableErrors
        ``mechanism.plan(records=...)``, before anything is spent, or
        ``release.errors()``.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    InputError
        If these are no errors of tables.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> survey = bf.Domain((4, 2, 5), names=["age", "sex", "region"])
    >>> asked = bf.workloads.Tables(survey, ways=2)
    >>> mech = bf.Contingency(bf.policies.Full(survey), asked, epsilon=1)
    >>> bf.plotting.table_errors(mech.plan(records=1000)).get_title()
    'error of a cell / mean count'
    """
    if not isinstance(errors, TableErrors):
        raise InputError(
            "give the errors of tables: mechanism.plan(records=1000), or "
            f"release.errors(); received {type(errors).__name__}"
        )
    columns = sorted({axis for table in errors.tables for axis in table})
    place = {axis: at for at, axis in enumerate(columns)}
    field = np.full((len(place), len(place)), np.nan)
    size = np.sqrt(errors.variances)
    if errors.records is not None:
        size = size * errors.cells / max(errors.records, 1)
    larger: dict[tuple[int, int], list[float]] = {}
    for table, value in zip(errors.tables, size, strict=True):
        if len(table) <= 2:
            field[place[table[0]], place[table[-1]]] = value
        for first, second in combinations(table, 2) if len(table) > 2 else ():
            larger.setdefault((place[second], place[first]), []).append(value)
    for below, values in larger.items():
        field[below] = np.median(values)
    side = max(6.4, 2.4 + 0.58 * len(columns))
    drawn = axes_for(axes, (side, side - 1.0), "A map of errors")
    _draw_errors(
        drawn, field, [str(name) for name in table_names(errors.domain, columns)]
    )
    parts = "/ mean count" if errors.records is not None else "(rms, records)"
    rest = "\nbelow the diagonal: median of the larger tables that hold both"
    drawn.set_title(f"error of a cell {parts}{rest if larger else ''}")
    return drawn


def measured_tables(release: ChosenTablesRelease, *, axes: Axes | None = None) -> Axes:
    """Draw which tables of a release were measured, and how finely, as a map.

    Above the diagonal stand the merged cells of the first measurement of each pair, on
    the diagonal the cells of single tables; below it how often a pair was measured. A
    place without a number comes from the model alone.

    Parameters
    ----------
    release : ChosenTablesRelease
        Tables that the data chose.
    axes : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes
        The map.

    Raises
    ------
    InputError
        If the release is not of tables that the data chose.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> survey = bf.Domain((4, 2, 5), names=["age", "sex", "region"])
    >>> asked = bf.workloads.Tables(survey, ways=2)
    >>> policy = bf.policies.AddRemove(survey)
    >>> mech = bf.ChosenTables(policy, asked, choose="data", epsilon=1)
    >>> out = mech.release(bf.Histogram(survey, np.full((4, 2, 5), 90)), rng=1)
    >>> bf.plotting.measured_tables(out).get_title().splitlines()[0]
    'cells at which a table was measured'
    """
    if not isinstance(release, ChosenTablesRelease):
        raise InputError(
            "give a release of tables that the data chose, of ChosenTables",
            received=type(release).__name__,
            way_out="Draw others with plotting.table_errors(release.errors())",
        )
    shown = release.measured_cells()
    columns = sorted({axis for table in release.asked_axes for axis in table})
    place = {axis: at for at, axis in enumerate(columns)}
    field = np.full((len(columns), len(columns)), np.nan)
    for table, (cells, times) in shown.items():
        if len(table) <= 2:
            field[place[table[0]], place[table[-1]]] = cells
        if len(table) == 2:
            field[place[table[1]], place[table[0]]] = times
    side = max(6.4, 2.4 + 0.58 * len(columns))
    drawn = axes_for(axes, (side, side - 1.0), "A map of measured tables")
    _draw_errors(
        drawn, field, [str(name) for name in table_names(release.domain, columns)]
    )
    rest = "below the diagonal: how often; blank: from the model alone"
    triples = sum(len(table) == 3 for table in shown)
    more = f"\nnot drawn: {triples} of three attributes" if triples else ""
    drawn.set_title(f"cells at which a table was measured\n{rest}{more}")
    return drawn


def _draw_errors(axes: Axes, field: np.ndarray, names: list[str]) -> None:
    """Draw a field of two attributes each, on a logarithmic scale; NaN stays blank."""
    finite = field[np.isfinite(field)]
    noisy = finite[finite > 0]
    shown = np.log10(np.maximum(field, noisy.min() if noisy.size else 1.0))
    image = axes.imshow(shown, cmap=palette.COUNTS)
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right")
    axes.set_yticks(range(len(names)), names)
    if len(names) <= MOST_WRITTEN:
        middle = np.nanmean(shown)
        for row, column in np.argwhere(np.isfinite(field)):
            value = field[row, column]
            colour = "white" if shown[row, column] < middle else "black"
            text = f"{value:.2g}" if value < 100 else f"{value:,.0f}"
            text = text if value else "exact"
            axes.text(
                column, row, text, ha="center", va="center", fontsize=7, color=colour
            )
    if noisy.size:
        bar = axes.figure.colorbar(image, ax=axes)
        low, high = image.get_clim()
        ticks = [tick for tick in bar.get_ticks() if low <= tick <= high]
        bar.set_ticks(ticks, labels=[f"{10.0**tick:.3g}" for tick in ticks])
