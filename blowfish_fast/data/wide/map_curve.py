"""Cells of a wide map numbered along one line, so that blocks of numbers are boxes.

    4 x 4 cells        0  1  4  5      the bits of both places take turns:
                       2  3  6  7      row 2 = 10, column 1 = 01  ->  1001 = 9
                       8  9 12 13
                      10 11 14 15

Every block of 2^h numbers that begins at a multiple of 2^h is a box, a square where h
is even. Where one side has more bits, its upper ones come first, so that the longer
side is halved first. Sides are filled up to powers of two; the numbers that are added
belong to no cell. They never begin a block that holds cells: a block begins at the
lower corner of its box.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError

SPREAD = (
    (16, 0x0000FFFF0000FFFF),
    (8, 0x00FF00FF00FF00FF),
    (4, 0x0F0F0F0F0F0F0F0F),
    (2, 0x3333333333333333),
    (1, 0x5555555555555555),
)
"""By how much halves of a number move apart, and which bits they then have."""


def _spread(numbers: IntArray) -> IntArray:
    """Put a 0 between all bits of numbers below 2^31."""
    wide = numbers
    for shift, mask in SPREAD:
        wide = (wide | (wide << np.int64(shift))) & np.int64(mask)
    return wide


def _gathered(numbers: IntArray) -> IntArray:
    """Take every second bit of numbers, from the lowest on."""
    close = numbers & np.int64(SPREAD[-1][1])
    for (shift, _), (_, mask) in zip(SPREAD[::-1], SPREAD[-2::-1], strict=False):
        close = (close | (close >> np.int64(shift))) & np.int64(mask)
    return (close | (close >> np.int64(SPREAD[0][0]))) & np.int64(2**32 - 1)


class MapCurve(NamedTuple):
    """The numbers of the cells of a map along a line.

    Attributes
    ----------
    rows : int
        Cells of the first attribute.
    columns : int
        Cells of the second.

    Examples
    --------
    >>> curve = MapCurve(3, 4)
    >>> curve.cells, curve.numbers(np.array([2]), np.array([1])).tolist()
    (16, [9])
    >>> [places.tolist() for places in curve.places(np.array([9]))]
    [[2], [1]]
    """

    rows: int
    columns: int

    @property
    def bits(self) -> tuple[int, int]:
        """Binary digits of a place along each side."""
        return (self.rows - 1).bit_length(), (self.columns - 1).bit_length()

    @property
    def shared(self) -> int:
        """Bits that both sides have."""
        return min(self.bits)

    @property
    def cells(self) -> int:
        """Numbers of the line, those without a cell included."""
        return 1 << sum(self.bits)

    def numbers(self, rows: IntArray, columns: IntArray) -> IntArray:
        """Return where cells lie along the line.

        Parameters
        ----------
        rows, columns : ndarray of int64, shape (n,)
            Places of cells.

        Returns
        -------
        ndarray of int64, shape (n,)
            Their numbers.
        """
        low = np.int64((1 << self.shared) - 1)
        upper = (rows if self.bits[0] > self.bits[1] else columns) >> self.shared
        both = (_spread(rows & low) << np.int64(1)) | _spread(columns & low)
        return np.asarray((upper << np.int64(2 * self.shared)) | both)

    def places(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        """Return rows and columns of numbers along the line."""
        both = numbers & np.int64((1 << (2 * self.shared)) - 1)
        upper = (numbers >> np.int64(2 * self.shared)) << np.int64(self.shared)
        rows, columns = _gathered(both >> np.int64(1)), _gathered(both)
        if self.bits[0] > self.bits[1]:
            return rows | upper, columns
        return rows, columns | upper

    def holds(self, numbers: IntArray) -> IntArray:
        """Return which numbers belong to a cell."""
        rows, columns = self.places(numbers)
        return np.asarray((rows < self.rows) & (columns < self.columns))

    def sides(self, heights: IntArray) -> tuple[IntArray, IntArray]:
        """Return rows and columns of boxes of 2^height numbers."""
        inside = np.minimum(heights, 2 * self.shared)
        beyond = np.int64(1) << (heights - inside)
        rows = np.int64(1) << (inside // 2)
        columns = np.int64(1) << ((inside + 1) // 2)
        longer = self.bits[0] > self.bits[1]
        return (rows * beyond, columns) if longer else (rows, columns * beyond)


class MapBuckets(Buckets):
    """Boxes of a wide map, in the order of a curve.

    Parameters
    ----------
    edges : ndarray of int64, shape (k + 1,)
        Where boxes begin along the curve, and its end. Behind a box may lie numbers
        without a cell.
    curve : MapCurve
        The curve.

    Examples
    --------
    >>> buckets = MapBuckets(np.array([0, 4, 8, 16]), MapCurve(3, 4))
    >>> buckets.boxes.tolist()
    [[[0, 0], [2, 2]], [[0, 2], [2, 4]], [[2, 0], [3, 4]]]
    """

    def __init__(self, edges: IntArray, curve: MapCurve) -> None:
        super().__init__(edges)
        self.map_curve = curve
        low, high = self.boxes[:, 0], self.boxes[:, 1]
        # Blocks are disjoint, so they make up the map if their cells are as many.
        whole = (high > low).all() and self.cells == curve.cells
        if not whole or int((high - low).prod(axis=1).sum()) != curve.rows * (
            curve.columns
        ):
            raise DomainError("buckets of a map are boxes that make it up")

    @cached_property
    def boxes(self) -> IntArray:
        """Lower and upper corner of each bucket, shape (k, 2, 2)."""
        starts, room = self.edges[:-1], np.diff(self.edges)
        # The largest block that begins here and ends before the next bucket does.
        longest = np.int64(1) << np.int64(62)
        aligned = np.where(starts == 0, longest, starts & -starts)
        heights = np.floor(np.log2(np.minimum(aligned, room))).astype(np.int64)
        # Logarithms of numbers just below a power of two may be rounded up to it.
        heights -= (np.int64(1) << heights) > np.minimum(aligned, room)
        low = np.stack(self.map_curve.places(starts), axis=1)
        size = np.stack(self.map_curve.sides(heights), axis=1)
        grid = np.array(self.map_curve, dtype=np.int64)
        return np.stack([low, np.minimum(low + size, grid)], axis=1)
