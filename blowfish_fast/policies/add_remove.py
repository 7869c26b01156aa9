"""Unbounded differential privacy: someone's presence is the secret."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain

from .base import Policy
from .protocol import ABSENT, Bandwidth, Change, PolicyGraph


class AddRemove(Policy):
    """Every cell is joined to "absent": adding or removing one record stays hidden.

    A mechanism that is private under `AddRemove` at eps / 2 is private at eps under
    every policy without "absent": a move is a removal and an addition.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> AddRemove(Domain(8)).has_bottom
    True
    >>> AddRemove(Domain(8)).distance(2, [2, 5, -1])
    array([0., 2., 1.])
    """

    kind = "add_remove"
    takes_wide = True

    has_bottom = True
    has_moves = False
    neighbours = "one record is added or removed"

    def edges(self, chunk: int = 2**20) -> Iterator[IntArray]:
        """Yield (cell, -1) for every cell."""
        for start in range(0, self.domain.size, chunk):
            cells = np.arange(start, min(start + chunk, self.domain.size))
            yield np.column_stack([cells, np.full(cells.size, ABSENT)])

    @property
    def edge_count(self) -> int:
        """One per cell."""
        return self.domain.size

    @property
    def max_degree(self) -> int:
        """Each cell has the one edge to "absent"."""
        return 1

    def bottom_cells(self) -> BoolArray:
        """Mark every cell."""
        return np.ones(self.domain.size, dtype=np.bool_)

    def bandwidth(self, order: IntArray | None = None) -> Bandwidth | None:
        """Return that no cell is joined to another, along any order."""
        return Bandwidth(np.arange(self.domain.size), True)

    def longest_edge(self) -> int:
        """Return 0: no edge joins two cells."""
        return 0

    def _distance(self, first: IntArray, second: IntArray) -> FloatArray:
        through = np.where((first == ABSENT) | (second == ABSENT), 1.0, 2.0)
        return np.where(first == second, 0.0, through)

    def largest_change(self, lines: FloatArray) -> Change:
        """Return 0: no record moves."""
        return Change(0.0, True)

    def _includes(self, other: PolicyGraph) -> bool | None:
        return not other.has_moves

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        return AddRemove(domain)

    def describe(self) -> str:
        """Say in plain words what stays indistinguishable."""
        return (
            "nobody can tell, beyond a factor e^eps, whether any one person is in the "
            "data at all (unbounded differential privacy)"
        )
