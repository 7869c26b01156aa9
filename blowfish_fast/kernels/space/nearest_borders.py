"""The nearest edge of a district to a point: ring by ring over a grid of boxes.

The rings lie around the box of the point, or around the box of the grid that is next to
it. Each is four rows of boxes, and a row whose distance exceeds the least one so far is
left out:

    2 2 2 2 2
    2 1 1 1 2        the point lies in box 0, or to the left of it where 0 is the first
    2 1 0 1 2        of its row; the search ends with the first ring of which no row is
    2 1 1 1 2        near enough
    2 2 2 2 2

Distances are floats. A row is left out only where a bound a millionth below its
distance is too far, so that rounding never hides the nearest edge, and of edges at one
distance the first counts (``docs/proofs/districts.md``, DI4).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.kernels._jit import kernel

from .point_location import NOWHERE, EdgeIndex, edges_by_box


@kernel
def _squared_distance(x: float, y: float, stretch: float, edge: IntArray) -> float:
    """Return the squared distance of a point from an edge; ends are taken exactly."""
    x1, y1 = (edge[0] - x) * stretch, edge[1] - y
    x2, y2 = (edge[2] - x) * stretch, edge[3] - y
    along_x, along_y = x2 - x1, y2 - y1
    length = along_x * along_x + along_y * along_y
    foot = -(x1 * along_x + y1 * along_y)
    if foot <= 0.0:
        return float(x1 * x1 + y1 * y1)
    if foot >= length:
        return float(x2 * x2 + y2 * y2)
    apart = x1 * along_y - y1 * along_x
    return float(apart * apart / length)


@kernel
def _boxes_apart(
    point: FloatArray,
    first_column: int,
    last_column: int,
    first_row: int,
    last_row: int,
    frame: IntArray,
) -> float:
    """Return a bound below the squared distance of a point from a block of boxes."""
    x, y, stretch = point[0], point[1], point[2]
    west = float(frame[0] + first_column * frame[2])
    east = float(frame[0] + (last_column + 1) * frame[2])
    south = float(frame[1] + first_row * frame[3])
    north = float(frame[1] + (last_row + 1) * frame[3])
    across = max(0.0, west - x, x - east) * stretch
    up = max(0.0, south - y, y - north)
    # A little less than it is: floats may be rounded either way.
    return float(0.999999 * (across * across + up * up))


@kernel
def _nearest(
    point: FloatArray,
    own: int,
    groups: IntArray,
    index: EdgeIndex,
    held: IntArray,
    members: IntArray,
) -> tuple[int, float]:
    """Return the nearest edge of another group, the first of several; ring by ring."""
    boxes = index.frame[4]
    x, y, stretch = point[0], point[1], point[2]
    home_column = int(min(max((x - index.frame[0]) // index.frame[2], 0), boxes - 1))
    home_row = int(min(max((y - index.frame[1]) // index.frame[3], 0), boxes - 1))
    best, chosen = np.inf, NOWHERE
    for ring in range(boxes):
        reached = False
        for side in range(4):
            if ring == 0 and side > 0:
                break
            level = side < 2
            middle, home = home_row, home_column
            reach = ring
            if not level:
                # Corners belong to the level sides.
                middle, home, reach = home_column, home_row, ring - 1
            fixed = middle + ring if side % 2 == 0 else middle - ring
            if fixed < 0 or fixed >= boxes:
                continue
            first, last = max(0, home - reach), min(boxes - 1, home + reach)
            if level:
                bound = _boxes_apart(point, first, last, fixed, fixed, index.frame)
            else:
                bound = _boxes_apart(point, fixed, fixed, first, last, index.frame)
            if bound > best:
                continue
            reached = True
            for way in (1, -1):
                # Boxes lie the farther off the farther they are from the home box.
                at = home if way == 1 else home - 1
                while first <= at <= last:
                    column, row = at, fixed
                    if not level:
                        column, row = fixed, at
                    if (
                        _boxes_apart(point, column, column, row, row, index.frame)
                        > best
                    ):
                        break
                    box = row * boxes + column
                    begin = 0 if box == 0 else held[box - 1]
                    for place in range(begin, held[box]):
                        number = members[place]
                        if groups[number] == own:
                            continue
                        apart = _squared_distance(x, y, stretch, index.edges[number])
                        if apart < best or (apart == best and number < chosen):
                            best, chosen = apart, number
                    at += way
        if not reached:
            break
    return chosen, best


@kernel
def _nearest_of_all(
    points: FloatArray,
    own: IntArray,
    groups: IntArray,
    index: EdgeIndex,
    held: IntArray,
    members: IntArray,
) -> tuple[IntArray, FloatArray]:
    edges = np.empty(points.shape[0], dtype=np.int64)
    apart = np.empty(points.shape[0], dtype=np.float64)
    for at in range(points.shape[0]):
        edges[at], apart[at] = _nearest(
            points[at], own[at], groups, index, held, members
        )
    return edges, apart


class EdgeBoxes(NamedTuple):
    """Edges of districts by every box that they touch, for nearest ones.

    Attributes
    ----------
    grid : EdgeIndex
        The edges and their boxes.
    held : ndarray of int64, shape (boxes + 1,)
        Where the edges of each box end in `members`.
    members : ndarray of int64
        The edges, box by box.
    """

    grid: EdgeIndex
    held: IntArray
    members: IntArray


def edge_boxes(index: EdgeIndex) -> EdgeBoxes:
    """Return edges by every box that they touch. O(edges).

    Parameters
    ----------
    index : EdgeIndex
        What `edge_index` returned.

    Returns
    -------
    EdgeBoxes
        The edges of each box.
    """
    return EdgeBoxes(index, *edges_by_box(index))


def nearest_edges(
    points: FloatArray,
    boxes: EdgeBoxes,
    groups: IntArray | None = None,
    own: IntArray | None = None,
) -> tuple[IntArray, FloatArray]:
    """Return the nearest edge to every point: Lemma DI4.

    Rings of boxes around a point are visited until no further one can be nearer. Of
    several edges at the same distance the first is taken, so that the answer depends on
    the point and the borders alone.

    Parameters
    ----------
    points : ndarray of float64, shape (points, 3)
        x and y in steps, and how long a step along x is at the point, in steps along y.
    boxes : EdgeBoxes
        What `edge_boxes` returned.
    groups : ndarray of int64, shape (edges,), optional
        The group of each edge.
    own : ndarray of int64, shape (points,), optional
        A group for each point, whose edges do not count for it.

    Returns
    -------
    edges : ndarray of int64, shape (points,)
        The edges; `NOWHERE` where all belong to the own group.
    apart : ndarray of float64, shape (points,)
        The squared distances.

    Examples
    --------
    >>> from blowfish_fast.kernels.space.point_location import edge_index
    >>> square = np.array([[0, 0, 4, 0], [4, 0, 4, 4], [4, 4, 0, 4], [0, 4, 0, 0]])
    >>> boxes = edge_boxes(edge_index(square, np.zeros(4, dtype=np.int64)))
    >>> edges, apart = nearest_edges(np.array([[7.0, 1.0, 1.0]]), boxes)
    >>> edges.tolist(), apart.tolist()
    ([1], [9.0])
    """
    placed = np.ascontiguousarray(points, dtype=np.float64)
    index, held, members = boxes.grid, boxes.held, boxes.members
    if groups is None or own is None:
        groups = np.zeros(index.owners.size, dtype=np.int64)
        own = np.full(placed.shape[0], NOWHERE, dtype=np.int64)
    groups = np.ascontiguousarray(groups, dtype=np.int64)
    own = np.ascontiguousarray(own, dtype=np.int64)
    return _nearest_of_all(placed, own, groups, index, held, members)
