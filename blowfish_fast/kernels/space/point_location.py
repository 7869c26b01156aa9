"""Points into districts: exact in 64-bit integers, one district for every point.

Borders and points are whole numbers of a public step, so every comparison is exact. A
ray goes from a point to the right and crosses an edge (x1, y1)-(x2, y2), y1 < y2, if

    y1 <= y < y2   and   (x - x1) (y2 - y1) < (y - y1) (x2 - x1)

and a district holds the points whose ray crosses its edges an odd number of times. That
is the answer for the point moved by a little to the right and by much less upwards, so
corners and borders belong to one district each (``docs/proofs/districts.md``, DI1). The
two products are compared, never their difference: both stay below 2^63 where width
times height of all districts does.

A grid of boxes lies over the districts. In each row of boxes an edge is filed at the
last box that it touches; a box that no edge touches lies in one district, or in none:

    row of boxes   | . | e | . | f |        e and f edges, . no edge
    known district   A       B              a point in the box of e walks right, toggles
                                            the owner of e if its ray crosses e, and
                                            takes the district B of the next free box
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import BoolArray, IntArray
from blowfish_fast.kernels._jit import kernel

NOWHERE = -1
"""The number of a point that lies in no district."""

OVERLAPPING = -2
"""The number of a point that lies in more than one."""


class EdgeIndex(NamedTuple):
    """Edges of districts in a grid of boxes.

    Attributes
    ----------
    edges : ndarray of int64, shape (edges, 4)
        x and y of the first end, then of the second.
    owners : ndarray of int64, shape (edges,)
        The district of each edge.
    frame : ndarray of int64, shape (5,)
        Left, bottom, width and height of a box, and the number of boxes a side.
    first : ndarray of int64, shape (boxes + 1,)
        Where the edges that are filed at each box begin in `filed`.
    filed : ndarray of int64
        The edges, box by box.
    touched : ndarray of bool, shape (boxes,)
        Which boxes an edge touches.
    labels : ndarray of int64, shape (boxes,)
        The district of each box that no edge touches.
    """

    edges: IntArray
    owners: IntArray
    frame: IntArray
    first: IntArray
    filed: IntArray
    touched: BoolArray
    labels: IntArray


@kernel
def _crosses(x: int, y: int, x1: int, y1: int, x2: int, y2: int) -> bool:
    """Return whether the ray from (x, y) to the right crosses the edge."""
    if (y1 <= y) == (y2 <= y):
        return False
    if y1 > y2:
        x1, y1, x2, y2 = x2, y2, x1, y1
    return (x - x1) * (y2 - y1) < (y - y1) * (x2 - x1)


@kernel
def _columns_touched(
    edge: IntArray, low: int, left: int, width: int, height: int, boxes: int
) -> tuple[int, int]:
    """Return the first and last box that an edge touches in a row, a step wider."""
    x1, y1, x2, y2 = edge[0], edge[1], edge[2], edge[3]
    if x1 > x2:
        x1, y1, x2, y2 = x2, y2, x1, y1
    begin, end = float(x1), float(x2)
    if y1 != y2:
        # Floats only widen what is looked at: a step and a part for their rounding.
        slope = (x2 - x1) / (y2 - y1)
        one, two = x1 + (low - y1) * slope, x1 + (low + height - y1) * slope
        slack = 2.0 + 1e-9 * (abs(begin) + abs(end))
        begin = max(begin, min(one, two) - slack)
        end = min(end, max(one, two) + slack)
    first = int((begin - 1.0 - left) // width)
    last = int((end + 1.0 - left) // width)
    return max(0, first), min(boxes - 1, last)


@kernel
def _file_edges(
    edges: IntArray, frame: IntArray
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return where edges are filed, the edges in that order, and the boxes touched."""
    left, bottom, width, height, boxes = (
        frame[0],
        frame[1],
        frame[2],
        frame[3],
        frame[4],
    )
    first = np.zeros(boxes * boxes + 1, dtype=np.int64)
    touched = np.zeros(boxes * boxes, dtype=np.bool_)
    filed = np.empty(0, dtype=np.int64)
    for turn in range(2):
        if turn == 1:
            for box in range(boxes * boxes):
                first[box + 1] += first[box]
            filed = np.empty(first[-1], dtype=np.int64)
        for number in range(edges.shape[0]):
            edge = edges[number]
            row = (min(edge[1], edge[3]) - bottom) // height
            last_row = (max(edge[1], edge[3]) - bottom) // height
            while row <= last_row:
                low = bottom + row * height
                begin, end = _columns_touched(edge, low, left, width, height, boxes)
                box = row * boxes + end
                if turn == 0:
                    first[box + 1] += 1
                    for column in range(begin, end + 1):
                        touched[row * boxes + column] = True
                else:
                    filed[first[box]] = number
                    first[box] += 1
                row += 1
    for box in range(boxes * boxes, 0, -1):
        first[box] = first[box - 1]
    first[0] = 0
    return first, filed, touched


@kernel
def _toggled(district: int, opened: IntArray, count: int) -> int:
    """Put a district into the list of opened ones, or take it out; return how many."""
    for place in range(count):
        if opened[place] == district:
            opened[place] = opened[count - 1]
            return count - 1
    opened[count] = district
    return count + 1


@kernel
def _walk(
    x: int, y: int, row: int, column: int, index: EdgeIndex, opened: IntArray
) -> int:
    """Return the district of a point, from a box on to the right."""
    boxes = index.frame[4]
    count = 0
    while column < boxes and index.touched[row * boxes + column]:
        box = row * boxes + column
        for place in range(index.first[box], index.first[box + 1]):
            number = index.filed[place]
            edge = index.edges[number]
            if _crosses(x, y, edge[0], edge[1], edge[2], edge[3]):
                count = _toggled(index.owners[number], opened, count)
        column += 1
    if column < boxes and index.labels[row * boxes + column] >= 0:
        count = _toggled(index.labels[row * boxes + column], opened, count)
    if count == 0:
        return NOWHERE
    return opened[0] if count == 1 else OVERLAPPING


@kernel
def _label_boxes(index: EdgeIndex, opened: IntArray) -> None:
    """Write the district of every box that no edge touches, from right to left."""
    left, bottom, width, height = (
        index.frame[0],
        index.frame[1],
        index.frame[2],
        index.frame[3],
    )
    boxes = index.frame[4]
    for row in range(boxes):
        y = bottom + row * height + height // 2
        for column in range(boxes - 1, -1, -1):
            box = row * boxes + column
            if index.touched[box]:
                continue
            if column + 1 < boxes and not index.touched[box + 1]:
                index.labels[box] = index.labels[box + 1]
            else:
                x = left + column * width + width // 2
                index.labels[box] = _walk(x, y, row, column + 1, index, opened)


@kernel
def _locate(xs: IntArray, ys: IntArray, index: EdgeIndex, opened: IntArray) -> IntArray:
    left, bottom, width, height = (
        index.frame[0],
        index.frame[1],
        index.frame[2],
        index.frame[3],
    )
    boxes = index.frame[4]
    districts = np.full(xs.size, NOWHERE, dtype=np.int64)
    for point in range(xs.size):
        x, y = xs[point], ys[point]
        row, column = (y - bottom) // height, (x - left) // width
        if row < 0 or row >= boxes or column < 0 or column >= boxes:
            continue
        if index.touched[row * boxes + column]:
            districts[point] = _walk(x, y, row, column, index, opened)
        else:
            districts[point] = index.labels[row * boxes + column]
    return districts


@kernel
def _side(x: int, y: int, edge: IntArray) -> int:
    """Return on which side of an edge's line a point lies: -1, 0 or 1; exact."""
    first = (x - edge[0]) * (edge[3] - edge[1])
    second = (y - edge[1]) * (edge[2] - edge[0])
    return int(first > second) - int(first < second)


@kernel
def _within(x: int, y: int, edge: IntArray) -> bool:
    """Return whether a point of the edge's line lies strictly between its ends."""
    ends = (x == edge[0] and y == edge[1]) or (x == edge[2] and y == edge[3])
    across = min(edge[0], edge[2]) <= x <= max(edge[0], edge[2])
    return across and min(edge[1], edge[3]) <= y <= max(edge[1], edge[3]) and not ends


@kernel
def edges_by_box(index: EdgeIndex) -> tuple[IntArray, IntArray]:
    """Return where the edges of each box end, and the edges that touch it.

    Parameters
    ----------
    index : EdgeIndex
        What `edge_index` returned.

    Returns
    -------
    held : ndarray of int64, shape (boxes + 1,)
        Where the edges of each box end in `members`.
    members : ndarray of int64
        The edges, box by box; one that touches several boxes stands in each.
    """
    left, bottom, width, height, boxes = (
        index.frame[0],
        index.frame[1],
        index.frame[2],
        index.frame[3],
        index.frame[4],
    )
    held = np.zeros(boxes * boxes + 1, dtype=np.int64)
    members = np.empty(0, dtype=np.int64)
    for turn in range(2):
        if turn == 1:
            for box in range(boxes * boxes):
                held[box + 1] += held[box]
            members = np.empty(held[-1], dtype=np.int64)
        for number in range(index.edges.shape[0]):
            edge = index.edges[number]
            row = (min(edge[1], edge[3]) - bottom) // height
            last_row = (max(edge[1], edge[3]) - bottom) // height
            while row <= last_row:
                low = bottom + row * height
                begin, end = _columns_touched(edge, low, left, width, height, boxes)
                for column in range(begin, end + 1):
                    box = row * boxes + column
                    if turn == 0:
                        held[box + 1] += 1
                    else:
                        members[held[box]] = number
                        held[box] += 1
                row += 1
    return held, members


@kernel
def _first_clash(index: EdgeIndex) -> tuple[int, int, int]:
    """Return two edges that cross (kind 2) or touch (kind 1); kind 0 if none do."""
    boxes = index.frame[4]
    held, members = edges_by_box(index)
    begin_of = 0
    for box in range(boxes * boxes):
        for one in range(begin_of, held[box]):
            for two in range(one + 1, held[box]):
                a, b = index.edges[members[one]], index.edges[members[two]]
                if (
                    min(a[0], a[2]) > max(b[0], b[2])
                    or min(b[0], b[2]) > max(a[0], a[2])
                    or min(a[1], a[3]) > max(b[1], b[3])
                    or min(b[1], b[3]) > max(a[1], a[3])
                ):
                    continue
                b1, b2 = _side(b[0], b[1], a), _side(b[2], b[3], a)
                a1, a2 = _side(a[0], a[1], b), _side(a[2], a[3], b)
                if a1 * a2 < 0 and b1 * b2 < 0:
                    return 2, members[one], members[two]
                if (
                    (b1 == 0 and _within(b[0], b[1], a))
                    or (b2 == 0 and _within(b[2], b[3], a))
                    or (a1 == 0 and _within(a[0], a[1], b))
                    or (a2 == 0 and _within(a[2], a[3], b))
                ):
                    return 1, members[one], members[two]
        begin_of = held[box]
    return 0, 0, 0


def edge_index(edges: IntArray, owners: IntArray) -> EdgeIndex:
    """File edges of districts, so that points are found quickly. O(edges).

    Parameters
    ----------
    edges : ndarray of int64, shape (edges, 4)
        x and y of both ends, in whole steps; width times height of all of them stays
        below 2^63.
    owners : ndarray of int64, shape (edges,)
        The district of each edge, from 0 on.

    Returns
    -------
    EdgeIndex
        The index.

    Examples
    --------
    >>> square = np.array([[0, 0, 4, 0], [4, 0, 4, 4], [4, 4, 0, 4], [0, 4, 0, 0]])
    >>> index = edge_index(square, np.zeros(4, dtype=np.int64))
    >>> locate_points(np.array([0, 2, 4, 9]), np.array([0, 2, 2, 2]), index)
    array([ 0,  0, -1, -1])
    """
    edges = np.ascontiguousarray(edges, dtype=np.int64)
    owners = np.ascontiguousarray(owners, dtype=np.int64)
    ends = edges.reshape(-1, 2)
    low, high = ends.min(axis=0) - 2, ends.max(axis=0) + 2
    boxes = int(np.clip(2 * np.sqrt(owners.size), 4, 2048))
    box = -(-(high - low + 1) // boxes)
    frame = np.array([low[0], low[1], box[0], box[1], boxes], dtype=np.int64)
    first, filed, touched = _file_edges(edges, frame)
    labels = np.full(boxes * boxes, NOWHERE, dtype=np.int64)
    index = EdgeIndex(edges, owners, frame, first, filed, touched, labels)
    _label_boxes(index, np.empty(int(owners.max()) + 2, dtype=np.int64))
    return index


def locate_points(xs: IntArray, ys: IntArray, index: EdgeIndex) -> IntArray:
    """Return the district of every point: Lemma DI1. Exact, O(points).

    Parameters
    ----------
    xs, ys : ndarray of int64, shape (points,)
        Coordinates, in whole steps.
    index : EdgeIndex
        What `edge_index` returned.

    Returns
    -------
    ndarray of int64, shape (points,)
        The districts; `NOWHERE` outside all of them, `OVERLAPPING` where some overlap.
    """
    xs = np.ascontiguousarray(xs, dtype=np.int64)
    ys = np.ascontiguousarray(ys, dtype=np.int64)
    opened = np.empty(int(index.owners.max()) + 2, dtype=np.int64)
    return _locate(xs, ys, index, opened)


def first_clash(index: EdgeIndex) -> tuple[int, int, int]:
    """Return the first two edges that cross, or touch elsewhere than at common ends.

    Parameters
    ----------
    index : EdgeIndex
        What `edge_index` returned.

    Returns
    -------
    kind : int
        2 where two edges cross, 1 where an end lies inside another edge, 0 for none.
    first : int
        The number of an edge.
    second : int
        The number of the other.
    """
    kind, first, second = _first_clash(index)
    return int(kind), int(first), int(second)
