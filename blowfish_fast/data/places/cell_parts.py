"""Which part of each cell of a grid lies in a district: areas, from edges alone.

An edge that goes up by dy has the district to its left. It takes away, to its right,
dy times the width of every cell of the row, and in its own cell what lies between it
and the right side:

    +------+------+------+
    |      |  /###|######|    an edge that goes up inside the middle cell: # is taken
    |      | /####|######|    away; an edge that goes down adds the same
    +------+------+------+

Edges are cut where they cross lines of the grid, so that each piece lies in one cell:
O(edges and their crossings) for each district, and no polygon is clipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import InputError

from .polygon_files import Polygon

NOTHING = 1e-9
"""Parts of a cell below this are rounding: districts along lines of the grid."""


class DistrictParts(NamedTuple):
    """Parts of cells that lie in districts, a row for each pair of them.

    Attributes
    ----------
    district : ndarray of int64
        The number of the district.
    column : ndarray of int64
        The number of the cell from west to east.
    row : ndarray of int64
        The number of the cell from south to north.
    part : ndarray of float64
        Above 0; 1 where the whole cell lies in the district.
    sticks_out : ndarray of bool, shape (districts,)
        Whether a district reaches beyond the grid.
    """

    district: IntArray
    column: IntArray
    row: IntArray
    part: FloatArray
    sticks_out: BoolArray


def turned_ring(ring: FloatArray, *, outer: bool) -> FloatArray:
    """Return a ring against the clock, or with it where it is a hole.

    Parameters
    ----------
    ring : ndarray of float64, shape (points, 2)
        The points, the last one like the first.
    outer : bool
        Whether it is the outer ring of a polygon.

    Returns
    -------
    ndarray of float64, shape (points, 2)
        The ring, in its own direction or the other.
    """
    x, y = (ring - ring[0]).T
    area = float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]))
    return ring if (area > 0) == outer else ring[::-1]


def parts_of_cells(
    shapes: Sequence[list[Polygon]], x: FloatArray, y: FloatArray
) -> DistrictParts:
    """Return which part of each cell lies in each district.

    Parameters
    ----------
    shapes : sequence of lists of polygons
        The polygons of each district.
    x : ndarray of float64, shape (columns + 1,)
        Rising edges of the cells from west to east.
    y : ndarray of float64, shape (rows + 1,)
        Rising edges of the cells from south to north.

    Returns
    -------
    DistrictParts
        The parts, by area in the plane of x and y.

    Examples
    --------
    A triangle over two cells of width 1: all below its slope.

    >>> ring = np.array([(0.0, 0.0), (2.0, 0.0), (0.0, 1.0), (0.0, 0.0)])
    >>> parts = parts_of_cells([[[ring]]], np.arange(3.0), np.arange(2.0))
    >>> parts.column.tolist(), parts.part.tolist()
    ([0, 1], [0.75, 0.25])
    """
    districts, columns, rows, parts, beyond = [], [], [], [], []
    for number, polygons in enumerate(shapes):
        rings = [
            turned_ring(ring, outer=at == 0)
            for polygon in polygons
            for at, ring in enumerate(polygon)
        ]
        starts = np.concatenate([ring[:-1] for ring in rings])
        ends = np.concatenate([ring[1:] for ring in rings])
        (west, south), (east, north) = starts.min(axis=0), starts.max(axis=0)
        beyond.append(
            bool(west < x[0] or east > x[-1] or south < y[0] or north > y[-1])
        )
        first_x, last_x = _reached(x, west, east)
        first_y, last_y = _reached(y, south, north)
        if first_x >= last_x or first_y >= last_y:
            continue
        near_x, near_y = x[first_x : last_x + 1], y[first_y : last_y + 1]
        share = _areas(starts, ends, near_x, near_y)
        share /= np.diff(near_x)[:, None] * np.diff(near_y)
        at_x, at_y = np.nonzero(share > NOTHING)
        part = share[at_x, at_y]
        parts.append(np.where(part > 1.0 - NOTHING, 1.0, part))
        columns.append(at_x + first_x)
        rows.append(at_y + first_y)
        districts.append(np.full(part.size, number))
    return DistrictParts(
        _joined(districts),
        _joined(columns),
        _joined(rows),
        np.concatenate([np.zeros(0), *parts]),
        np.array(beyond),
    )


FULL_TURN = 360.0
"""Degrees of longitude after which a place is the same again."""


def parts_around_globe(
    shapes: Sequence[list[Polygon]], longitudes: FloatArray, latitudes: FloatArray
) -> DistrictParts:
    """Return which part of each cell lies in each district, on both sides of 180.

    A place at 181 degrees is that at -179 degrees. A district that crosses the date
    line is drawn on one side of it, and its cells may lie on both:

        grid    -180 |####. . . . . . . . . . ..##| 180
        drawn                                   ##|####
        and       ##|####                                  again, 360 degrees before

    Parameters
    ----------
    shapes : sequence of lists of polygons
        The polygons of each district, in degrees.
    longitudes : ndarray of float64, shape (columns + 1,)
        Rising edges of the cells from west to east.
    latitudes : ndarray of float64, shape (rows + 1,)
        Rising edges of the cells from south to north.

    Returns
    -------
    DistrictParts
        The parts, by area in the plane of degrees. A cell that is filled only by what
        was drawn on both sides together counts as touched: its part is below 1.

    Raises
    ------
    InputError
        If a district covers a place twice, once on each side.

    Examples
    --------
    From 170 to 190 degrees, over the first and the last cell of a grid.

    >>> ring = np.array([(170.0, 0.0), (190.0, 0.0), (190.0, 9.0), (170.0, 9.0)])
    >>> ring = np.concatenate([ring, ring[:1]])
    >>> parts = parts_around_globe(
    ...     [[[ring]]], np.arange(-180.0, 181.0, 10.0), np.array([0.0, 9.0])
    ... )
    >>> parts.column.tolist(), parts.part.tolist()
    ([0, 35], [1.0, 1.0])
    """
    drawn = parts_of_cells(shapes, longitudes, latitudes)
    extents = [
        (
            min(ring[:, 0].min() for ring in rings),
            max(ring[:, 0].max() for ring in rings),
        )
        for rings in (
            [ring for polygon in shape for ring in polygon] for shape in shapes
        )
    ]
    west, east = np.array(extents).T
    first, last = longitudes[0], longitudes[-1]
    least = int(np.floor((first - east.max()) / FULL_TURN)) + 1
    most = int(np.ceil((last - west.min()) / FULL_TURN)) - 1
    listed = [drawn]
    sticks_out = drawn.sticks_out.copy()
    for turns in range(least, most + 1):
        by = FULL_TURN * turns
        reached = np.flatnonzero((west + by < last) & (east + by > first))
        if turns == 0 or not reached.size:
            continue
        turned = [
            [[ring + np.array([by, 0.0]) for ring in polygon] for polygon in shapes[at]]
            for at in reached.tolist()
        ]
        again = parts_of_cells(turned, longitudes, latitudes)
        sticks_out[reached] |= again.sticks_out
        listed.append(again._replace(district=reached[again.district]))
    if len(listed) == 1:
        return drawn
    return _added(listed, sticks_out, (longitudes.size - 1, latitudes.size - 1))


def _added(
    listed: list[DistrictParts], sticks_out: BoolArray, shape: tuple[int, int]
) -> DistrictParts:
    """Return parts of the same cells and districts as one, in order of both."""
    district, column, row, part = (
        np.concatenate([getattr(parts, name) for parts in listed])
        for name in ("district", "column", "row", "part")
    )
    cells = np.ravel_multi_index(
        (district, column, row), (sticks_out.size, shape[0], shape[1])
    )
    places, inverse, times = np.unique(cells, return_inverse=True, return_counts=True)
    total: FloatArray = np.zeros(places.size)
    np.add.at(total, inverse, part)
    if (total > 1.0 + NOTHING).any():
        number = int(district[np.argmax((total > 1.0 + NOTHING)[inverse])])
        raise InputError(
            "a district covers every place once; longitudes 360 degrees apart are one "
            "place",
            received=f"the district at place {number}, which covers cells twice",
            way_out="Draw its parts on one side of the date line, or on both without "
            "an overlap",
        )
    # Whether two parts of one cell overlap is not known here: it counts as touched.
    several = times > 1
    total[several] = np.minimum(total[several], 1.0 - NOTHING)
    at = np.unravel_index(places, (sticks_out.size, shape[0], shape[1]))
    return DistrictParts(at[0], at[1], at[2], total, sticks_out)


def _joined(listed: list[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *listed])


def _reached(cuts: FloatArray, low: float, high: float) -> tuple[int, int]:
    """Return the first cell that an extent reaches, and the one behind the last."""
    first = int(np.searchsorted(cuts, low, side="right")) - 1
    behind = int(np.searchsorted(cuts, high, side="left"))
    return max(first, 0), min(behind, cuts.size - 1)


def _areas(
    starts: FloatArray, ends: FloatArray, x: FloatArray, y: FloatArray
) -> FloatArray:
    """Return the area of a district in each cell, shape (columns, rows)."""
    row, starts, ends = _cut_by_rows(starts, ends, y)
    column, row, starts, ends = _cut_by_columns(row, starts, ends, x)
    columns, rows = x.size - 1, y.size - 1
    rise = ends[:, 1] - starts[:, 1]
    # What lies right of an edge that is beyond the west of the grid is all of the row.
    over = np.zeros((columns + 1, rows))
    np.add.at(over, (np.minimum(column + 1, columns), row), rise)
    taken = np.cumsum(over, axis=0)[:columns] * np.diff(x)[:, None]
    inside = (column >= 0) & (column < columns)
    at, middle = column[inside], (starts[inside, 0] + ends[inside, 0]) / 2.0
    np.add.at(taken, (at, row[inside]), rise[inside] * (x[at + 1] - middle))
    return -taken


def _cut_by_rows(
    starts: FloatArray, ends: FloatArray, y: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Cut edges at lines from west to east; what lies beyond the grid is dropped."""
    low = np.minimum(starts[:, 1], ends[:, 1])
    high = np.maximum(starts[:, 1], ends[:, 1])
    first = np.maximum(np.searchsorted(y, low, side="right") - 1, 0)
    last = np.minimum(np.searchsorted(y, high, side="left") - 1, y.size - 2)
    # Level edges take nothing away.
    many = np.where(high > low, np.maximum(last - first + 1, 0), 0)
    edge, row = _repeated(first, many)
    x_from, y_from = starts[edge].T
    x_to, y_to = ends[edge].T
    begin = np.clip(y_from, y[row], y[row + 1])
    end = np.clip(y_to, y[row], y[row + 1])
    slope = (x_to - x_from) / (y_to - y_from)
    cut_from = np.where(begin == y_from, x_from, x_from + (begin - y_from) * slope)
    cut_to = np.where(end == y_to, x_to, x_from + (end - y_from) * slope)
    return row, np.stack([cut_from, begin], 1), np.stack([cut_to, end], 1)


def _cut_by_columns(
    rows: IntArray, starts: FloatArray, ends: FloatArray, x: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Cut pieces at lines from south to north; columns -1 and last + 1 are beyond."""
    low = np.minimum(starts[:, 0], ends[:, 0])
    high = np.maximum(starts[:, 0], ends[:, 0])
    first = np.searchsorted(x, low, side="right") - 1
    last = np.maximum(np.searchsorted(x, high, side="left") - 1, first)
    piece, column = _repeated(first, last - first + 1)
    bounds = np.concatenate([[-np.inf], x, [np.inf]])
    x_from, y_from = starts[piece].T
    x_to, y_to = ends[piece].T
    begin = np.clip(x_from, bounds[column + 1], bounds[column + 2])
    end = np.clip(x_to, bounds[column + 1], bounds[column + 2])
    run = x_to - x_from
    slope = np.divide(y_to - y_from, run, out=np.zeros_like(run), where=run != 0)
    cut_from = np.where(begin == x_from, y_from, y_from + (begin - x_from) * slope)
    cut_to = np.where(end == x_to, y_to, y_from + (end - x_from) * slope)
    return (
        column,
        rows[piece],
        np.stack([begin, cut_from], 1),
        np.stack([end, cut_to], 1),
    )


def _repeated(first: IntArray, many: IntArray) -> tuple[IntArray, IntArray]:
    """Return numbers of edges, each as often as stated, and cells from the first on."""
    number = np.repeat(np.arange(many.size), many)
    before = np.cumsum(many) - many
    return number, first[number] + np.arange(number.size) - before[number]
