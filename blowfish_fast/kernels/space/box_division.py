"""Boxes of a grid cut into nearly equal boxes, and the cells that boxes hold.

Serves every tree and grid over space: one cut in half per axis is a level of a
quadtree, one cut in m parts per axis is a uniform grid, and cutting each box of a grid
by a number of its own is an adaptive grid.

    box 0, parts 2 x 3          0 1 2      children in C order, side 5 cut in 3: each
                                3 4 5      cut at the ceiling, 2 + 2 + 1
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import as_input, kernel


@kernel
def _divide(
    lows: IntArray,
    highs: IntArray,
    parts: IntArray,
    owners: IntArray,
    child_lows: IntArray,
    child_highs: IntArray,
) -> None:
    boxes, axes = lows.shape
    place = np.empty(axes, dtype=np.int64)
    child = 0
    for box in range(boxes):
        children = 1
        for axis in range(axes):
            children *= parts[box, axis]
            place[axis] = 0
        for _ in range(children):
            owners[child] = box
            for axis in range(axes):
                side = highs[box, axis] - lows[box, axis]
                cuts = parts[box, axis]
                begin = place[axis] * side + cuts - 1
                child_lows[child, axis] = lows[box, axis] + begin // cuts
                child_highs[child, axis] = lows[box, axis] + (begin + side) // cuts
            child += 1
            axis = axes - 1
            while axis >= 0:
                place[axis] += 1
                if place[axis] < parts[box, axis]:
                    break
                place[axis] = 0
                axis -= 1


def divide_boxes(
    lows: IntArray, highs: IntArray, parts: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Cut each box into `parts` nearly equal intervals per axis. O(children * axes).

    Parameters
    ----------
    lows, highs : (boxes, d) int64
        Half-open corners.
    parts : (boxes, d) int64
        From 1 to the side of the box.

    Returns
    -------
    owners : (children,) int64
        The box that each child lies in, in order.
    lows, highs : (children, d) int64
        Corners of the children; those of one box in C order.

    Examples
    --------
    >>> owners, lows, highs = divide_boxes(
    ...     np.array([[0, 0]]), np.array([[1, 5]]), np.array([[1, 3]])
    ... )
    >>> lows.tolist(), highs.tolist()
    ([[0, 0], [0, 2], [0, 4]], [[1, 2], [1, 4], [1, 5]])
    """
    lows, highs, parts = (as_input(one, np.int64) for one in (lows, highs, parts))
    if lows.ndim != 2 or not lows.shape == highs.shape == parts.shape:
        raise InputError(
            "lows, highs and parts must all have shape (boxes, axes); they have "
            f"{lows.shape}, {highs.shape} and {parts.shape}"
        )
    if lows.size and ((parts < 1) | (parts > highs - lows)).any():
        raise InputError("each side is cut into 1 part up to as many as it has cells")
    children = int(np.prod(parts, axis=1).sum())
    owners = np.empty(children, dtype=np.int64)
    child_lows = np.empty((children, lows.shape[1]), dtype=np.int64)
    child_highs = np.empty_like(child_lows)
    _divide(lows, highs, parts, owners, child_lows, child_highs)
    return owners, child_lows, child_highs


@kernel
def _list_cells(
    lows: IntArray, highs: IntArray, strides: IntArray, edges: IntArray, order: IntArray
) -> None:
    boxes, axes = lows.shape
    place = np.empty(axes, dtype=np.int64)
    for box in range(boxes):
        cell = 0
        for axis in range(axes):
            place[axis] = lows[box, axis]
            cell += place[axis] * strides[axis]
        for step in range(edges[box], edges[box + 1]):
            order[step] = cell
            axis = axes - 1
            while axis >= 0:
                place[axis] += 1
                cell += strides[axis]
                if place[axis] < highs[box, axis]:
                    break
                cell -= (place[axis] - lows[box, axis]) * strides[axis]
                place[axis] = lows[box, axis]
                axis -= 1


def cells_of_boxes(
    lows: IntArray, highs: IntArray, shape: tuple[int, ...]
) -> tuple[IntArray, IntArray]:
    """List the cells of disjoint boxes that fill a grid, box by box. O(cells).

    Parameters
    ----------
    lows, highs : (boxes, d) int64
        Half-open corners.
    shape : tuple of int
        Cells of each axis.

    Returns
    -------
    edges : (boxes + 1,) int64
        Box b holds the places from ``edges[b]`` up to ``edges[b + 1]``.
    order : (cells,) int64
        C-order index of the cell at each place.

    Examples
    --------
    >>> edges, order = cells_of_boxes(
    ...     np.array([[0, 1], [0, 0]]), np.array([[2, 3], [2, 1]]), (2, 3)
    ... )
    >>> edges.tolist(), order.tolist()
    ([0, 4, 6], [1, 2, 4, 5, 0, 3])
    """
    lows = as_input(lows, np.int64)
    highs = as_input(highs, np.int64)
    sides = np.array(shape, dtype=np.int64)
    if lows.shape != highs.shape or lows.ndim != 2 or lows.shape[1] != sides.size:
        raise InputError(
            f"corners must have shape (boxes, {sides.size}); they have {lows.shape} "
            f"and {highs.shape}"
        )
    inside = (lows >= 0) & (lows < highs) & (highs <= sides)
    edges = np.zeros(len(lows) + 1, dtype=np.int64)
    np.cumsum(np.prod(highs - lows, axis=1), out=edges[1:])
    if not inside.all() or edges[-1] != np.prod(sides):
        raise InputError(
            f"the boxes must fill the grid of shape {shape}, each cell once"
        )
    strides = np.append(np.cumprod(sides[:0:-1])[::-1], 1)
    order = np.empty(int(edges[-1]), dtype=np.int64)
    _list_cells(lows, highs, strides, edges, order)
    return edges, order
