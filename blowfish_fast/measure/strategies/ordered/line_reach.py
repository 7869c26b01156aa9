"""Edges of a policy seen along one line of cells, as prefix sums feel them.

An edge between cells u < v changes the prefix sums that end at u, u + 1, ..., v - 1 by
one and no others; an edge from u to "absent" changes all that end at u or later.

    cells        0   1   2   3   4           edges  0 - 1, 1 - 2, 3 - 4
    ends after   |   |   |   |   |
    settled      no  no  yes no  yes         no edge steps over the border after 2

Where no edge steps over a border the records before it are known exactly, and the line
falls into stretches that have nothing to do with each other.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from blowfish_fast._support.typing import BoolArray, IntArray
from blowfish_fast.policies import Policy


class LineReach:
    """How far the edges of a policy go along the cells' own order.

    Parameters
    ----------
    policy : Policy
        Over one ordered attribute.

    Attributes
    ----------
    far : (cells,) int64
        No neighbour of a cell lies further than this; its own number if none lies
        after it. Exact where the policy lists its furthest neighbours, else the
        longest edge from everywhere.
    bottom : (cells,) bool
        The cells that are joined to "absent".
    """

    def __init__(self, policy: Policy) -> None:
        cells = policy.domain.size
        band = policy.bandwidth()
        if band is None:
            steps = policy.longest_edge() if policy.has_moves else 0
            self.far = np.minimum(np.arange(cells) + steps, cells - 1)
        else:
            self.far = band.far
        self.bottom = policy.bottom_cells()

    @cached_property
    def furthest(self) -> IntArray:
        """The furthest that any cell up to this one goes; never decreases."""
        return np.maximum.accumulate(self.far)

    @cached_property
    def uncrossed(self) -> BoolArray:
        """Borders after each cell over which no record can move."""
        uncrossed: BoolArray = self.furthest == np.arange(self.far.size)
        return uncrossed

    @cached_property
    def settled(self) -> BoolArray:
        """Prefix sums, by their last cell, that no edge changes."""
        return self.uncrossed & ~np.logical_or.accumulate(self.bottom)

    @property
    def lengths(self) -> IntArray:
        """Cells that the longest edge from each cell spans, to the right."""
        return self.far - np.arange(self.far.size)
