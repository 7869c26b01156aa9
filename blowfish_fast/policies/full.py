"""Bounded differential privacy: everybody's value is secret, their number is not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain

from .base import Policy
from .protocol import Bandwidth, Change, PolicyGraph


class Full(Policy):
    """Every two cells are joined: any record may have any value; the total is public.

    The edges are never stored: a domain of 2^20 cells has 5 * 10^11 of them.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Full(Domain(8)).components().private
    array([False])
    """

    kind = "full"
    takes_wide = True

    neighbours = "one record changes its value to any other"

    def edges(self, chunk: int = 2**20) -> Iterator[IntArray]:
        """Yield every pair of cells, n (n - 1) / 2 in all: for small domains."""
        for low in range(self.domain.size - 1):
            for start in range(low + 1, self.domain.size, chunk):
                cells = np.arange(start, min(start + chunk, self.domain.size))
                yield np.column_stack([np.full(cells.size, low), cells])

    @property
    def edge_count(self) -> int:
        """Every pair of cells."""
        return self.domain.size * (self.domain.size - 1) // 2

    @property
    def max_degree(self) -> int:
        """Every other cell."""
        return self.domain.size - 1

    def bandwidth(self, order: IntArray | None = None) -> Bandwidth | None:
        """Return that every cell reaches the last one, along any order."""
        cells = self.domain.size
        return Bandwidth(np.full(cells, cells - 1, dtype=np.int64), True)

    def longest_edge(self) -> int:
        """Return the span of the whole line, in C order."""
        return self.domain.size - 1

    def grid_moves(self, shape: tuple[int, ...], most: int) -> IntArray | None:
        """Return every step along a line; on a grid there are too many."""
        if len(shape) > 1 or shape[0] - 1 > most:
            return None
        return np.arange(1, shape[0])[:, None]

    def _distance(self, first: IntArray, second: IntArray) -> FloatArray:
        return np.where(first == second, 0.0, 1.0)

    def largest_change(self, lines: FloatArray) -> Change:
        """Return the range of the values."""
        return Change(float((lines.max(axis=1) - lines.min(axis=1)).max()), True)

    def _includes(self, other: PolicyGraph) -> bool | None:
        return not other.has_bottom

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        return Full(domain)

    def describe(self) -> str:
        """Say in plain words what stays indistinguishable."""
        return (
            "nobody can tell, beyond a factor e^eps, which of any two values a person "
            "has; the number of people is public (bounded differential privacy)"
        )
