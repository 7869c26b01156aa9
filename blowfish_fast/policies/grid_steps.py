"""Moves on a grid that look the same from every cell: their number, pairs, lengths."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import SizeError

from .protocol import Change

Metric = Literal["l1", "l2", "linf"]

MOST_SHIFTED = 2**28
"""Most values that are compared one by one before a larger ball is used instead."""


class Ball(NamedTuple):
    """All steps of at most a given length.

    Attributes
    ----------
    metric : Metric
        How length is measured.
    limit : int
        The largest length; squared for "l2".
    """

    metric: Metric
    limit: int

    def length(self, steps: IntArray) -> IntArray:
        """Return the length of steps along the last axis, squared for "l2"."""
        lengths: IntArray
        if self.metric == "l1":
            lengths = np.abs(steps).sum(axis=-1)
        elif self.metric == "l2":
            lengths = (steps * steps).sum(axis=-1)
        else:
            lengths = np.abs(steps).max(axis=-1, initial=0)
        return lengths

    def left_over(self, lengths: IntArray) -> IntArray:
        """Return how far a further axis may go after steps of these lengths."""
        if self.metric == "l1":
            return self.limit - lengths
        if self.metric == "l2":
            # Roots of large integers may be rounded to the wrong side; both are mended.
            room = self.limit - lengths
            root = np.sqrt(np.maximum(room, 0)).astype(np.int64)
            root -= root * root > room
            root += (root + 1) * (root + 1) <= room
            return np.where(room < 0, -1, root)
        return np.where(lengths <= self.limit, self.limit, -1)

    def radius(self) -> int:
        """Return how far the ball goes along one axis."""
        return math.isqrt(self.limit) if self.metric == "l2" else self.limit

    def weigh(self, weights: list[IntArray]) -> int:
        """Return the sum over steps of the product of ``weights[axis][length]``."""
        if self.metric == "linf":
            return math.prod(
                int(weights_along[: self.limit + 1].sum()) for weights_along in weights
            )
        lengths, products = np.zeros(1, np.int64), np.ones(1, np.int64)
        for weights_along in weights[:-1]:
            sizes = np.arange(weights_along.size)
            sizes = sizes * sizes if self.metric == "l2" else sizes
            lengths = (lengths[:, None] + sizes).reshape(-1)
            products = (products[:, None] * weights_along).reshape(-1)
            inside = lengths <= self.limit
            lengths, where = np.unique(lengths[inside], return_inverse=True)
            merged = np.zeros(lengths.size, dtype=np.int64)
            np.add.at(merged, where, products[inside])
            products = merged
        upto = np.concatenate([[0], np.cumsum(weights[-1])])
        reach = np.minimum(self.left_over(lengths), weights[-1].size - 1)
        return int((products * upto[reach + 1]).sum())


def pairs_in_ball(shape: tuple[int, ...], ball: Ball) -> int:
    """Return the number of pairs of cells whose difference lies in the ball.

    Parameters
    ----------
    shape : tuple[int, ...]
        Cells of each axis.
    ball : Ball
        The steps.

    Returns
    -------
    int
        The number.
    """
    cells = math.prod(shape)
    weights = []
    for side in shape:
        ways = 2 * (side - np.arange(side))
        ways[0] = side
        weights.append(ways)
    return (ball.weigh(weights) - cells) // 2


def maximal_boxes(shape: tuple[int, ...], ball: Ball) -> IntArray:
    """Return the sides of the largest boxes whose diagonal steps lie in the ball.

    Parameters
    ----------
    shape : tuple[int, ...]
        Cells of each axis.
    ball : Ball
        The steps.

    Returns
    -------
    ndarray of int64, shape (boxes, axes)
        The sides, in cells.
    """
    steps = np.zeros((1, 0), dtype=np.int64)
    for side in shape[:-1]:
        most = min(side - 1, ball.radius())
        longer = np.repeat(np.arange(most + 1), steps.shape[0])
        steps = np.column_stack([np.tile(steps, (most + 1, 1)), longer])
        steps = steps[ball.length(steps) <= ball.limit]
    room = np.minimum(ball.left_over(ball.length(steps)), shape[-1] - 1)
    steps = np.column_stack([steps, room])[room >= 0]
    outermost = np.ones(steps.shape[0], dtype=np.bool_)
    for axis, side in enumerate(shape):
        further = steps.copy()
        further[:, axis] += 1
        fits = further[:, axis] < side
        outermost &= ~(fits & (ball.length(further) <= ball.limit))
    boxes = steps[outermost] + 1
    return boxes[np.lexsort(boxes.T[::-1])]


def half_ball(shape: tuple[int, ...], ball: Ball, most: int) -> IntArray | None:
    """Return one of each step and its opposite.

    Parameters
    ----------
    shape : tuple[int, ...]
        Cells of each axis.
    ball : Ball
        The steps.
    most : int
        How many steps may be listed.

    Returns
    -------
    ndarray of int64, shape (steps, axes), or None
        The steps; None if there are more.
    """
    weights = [np.where(np.arange(side) > 0, 2, 1) for side in shape]
    if ball.weigh(weights) // 2 > most:
        return None
    sides = [min(side - 1, ball.radius()) for side in shape]
    steps = np.zeros((1, 0), dtype=np.int64)
    for side in sides:
        along = np.arange(-side, side + 1)
        further = np.tile(along, steps.shape[0])
        steps = np.column_stack([np.repeat(steps, along.size, axis=0), further])
        steps = steps[ball.length(steps) <= ball.limit]
    # The steps stand in C order, opposite ones mirrored around the zero step.
    return steps[steps.shape[0] // 2 + 1 :]


def step_pairs(grid: IntArray, steps: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the values at both ends of every move, step by step.

    Parameters
    ----------
    grid : ndarray of int64
        A value for each cell.
    steps : ndarray of int64, shape (steps, axes)
        The steps.

    Yields
    ------
    tuple of two ndarrays of int64
        Values at the starts and at the ends of one step.
    """
    for step in steps:
        here, there = kernels.step_slices(grid.shape, step)
        yield grid[here].reshape(-1), grid[there].reshape(-1)


def largest_change_in_ball(
    lines: FloatArray, shape: tuple[int, ...], ball: Ball
) -> Change:
    """Return the largest change along a step.

    Parameters
    ----------
    lines : ndarray of float64, shape (lines, cells)
        Values of the cells, for several functions.
    shape : tuple[int, ...]
        Cells of each axis.
    ball : Ball
        The steps.

    Returns
    -------
    Change
        The change; a bound above if there are too many steps.
    """
    # Steps along all axes but the last; the room left then goes to the last.
    outer = half_ball((*shape[:-1], 1), ball, MOST_SHIFTED // lines.size)
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    grid = lines.reshape(-1, *shape)
    if ball.metric == "linf" or outer is None:
        high = grid
        for axis, side in enumerate(shape, start=1):
            size = 2 * min(ball.radius(), side - 1) + 1
            high = maximum_filter1d(high, size, axis=axis, mode="nearest")
        return Change(float((high - grid).max()), ball.metric == "linf")
    outer = np.concatenate([np.zeros((1, len(shape)), np.int64), outer])
    room = np.minimum(ball.left_over(ball.length(outer)), shape[-1] - 1)
    best = 0.0
    for radius in np.unique(room).tolist():
        high = maximum_filter1d(grid, 2 * radius + 1, axis=-1, mode="nearest")
        low = minimum_filter1d(grid, 2 * radius + 1, axis=-1, mode="nearest")
        for step in outer[room == radius]:
            here, there = kernels.step_slices(shape, step)
            base = grid[(slice(None), *here)]
            if base.size:
                rise = (high[(slice(None), *there)] - base).max()
                fall = (base - low[(slice(None), *there)]).max()
                best = max(best, float(rise), float(fall))
    return Change(best, True)


def hull_distances(offsets: IntArray, limit: int) -> IntArray:
    """Return how many steps of limited length make up plane offsets, exactly.

    The steps are counted by the sides of a polygon (``docs/proofs/policies.md``).

    Parameters
    ----------
    offsets : ndarray of int64, shape (n, 2)
        Differences of coordinates.
    limit : int
        The largest squared length of a step.

    Returns
    -------
    ndarray of int64, shape (n,)
        The numbers of steps.
    """
    # Exact, by the sides of a polygon: docs/proofs/policies.md.
    points = np.abs(offsets)
    radius = math.isqrt(limit)
    hull: list[tuple[int, int]] = []
    for x in range(-radius, radius + 1):
        y = math.isqrt(limit - x * x)
        # The last corner goes if it lies on or below the line around it.
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) < 0:
                break
            hull.pop()
        hull.append((x, y))
    steps = -(-points[:, 0] // radius)
    for (x0, y0), (x1, y1) in pairwise(hull):
        normal = (y0 - y1, x1 - x0)
        if normal[0] < 0:
            continue
        support = normal[0] * x0 + normal[1] * y0
        reach = normal[0] * points[:, 0] + normal[1] * points[:, 1]
        steps = np.maximum(steps, -(-reach // support))
    return steps


def ball_distances(offsets: IntArray, ball: Ball) -> FloatArray:
    """Return the fewest steps of the ball that make up each offset; all stay inside.

    Parameters
    ----------
    offsets : ndarray of int64, shape (n, axes)
        Differences of coordinates.
    ball : Ball
        The steps.

    Returns
    -------
    ndarray of float64, shape (n,)
        The numbers of steps.
    """
    if ball.metric != "l2":
        steps = -(-ball.length(offsets) // ball.limit)
    elif offsets.shape[-1] == 2:
        steps = hull_distances(offsets, ball.limit)
    else:
        steps = _search_distances(np.abs(offsets), ball)
    return steps.astype(np.float64, copy=False)


def _search_distances(points: IntArray, ball: Ball) -> IntArray:
    box = tuple(int(side) + 1 for side in points.max(axis=0, initial=0))
    steps = half_ball(box, ball, MOST_SHIFTED // math.prod(box))
    if steps is None:
        raise SizeError(
            f"l2 distances over offsets in a box of shape {box} need a search of more "
            f"than 2^28 = {MOST_SHIFTED:,} steps",
            way_out='Ask for nearer cells, or use metric="l1" or "linf", which have '
            "closed forms",
            code="l2_search_too_long",
        )
    # Steps that go back along an axis never shorten a walk inside the box.
    forward = steps[(steps >= 0).all(axis=1)]
    distances = kernels.corner_distances(box, forward)
    counted: IntArray = distances[np.ravel_multi_index(tuple(points.T), box)]
    return counted
