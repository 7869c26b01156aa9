"""Adjacent values are the secret: each cell is joined to the next."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain

from .base import Policy, on_one_axis, values_name
from .projection import Projection
from .protocol import Bandwidth, Change


class Line(Policy):
    """Cells next to each other are joined; a record d cells away is d edges away.

    Parameters
    ----------
    domain : Domain
        One ordered attribute.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Line(Domain(8)).edge_count
    7
    >>> Line(Domain(8)).distance(2, 7)
    array(5.)
    """

    kind = "line"
    neighbours = "one record moves to an adjacent cell"

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        on_one_axis(domain, "Line")

    def edges(self, chunk: int = 2**20) -> Iterator[IntArray]:
        """Yield (i, i + 1)."""
        for start in range(0, self.domain.size - 1, chunk):
            low = np.arange(start, min(start + chunk, self.domain.size - 1))
            yield np.column_stack([low, low + 1])

    @property
    def edge_count(self) -> int:
        """One less than cells."""
        return self.domain.size - 1

    @property
    def max_degree(self) -> int:
        """Two, but at the ends."""
        return min(2, self.domain.size - 1)

    def bandwidth(self, order: IntArray | None = None) -> Bandwidth | None:
        """Return that each cell reaches the next, along the cells' own order."""
        if order is not None:
            return None
        last = self.domain.size - 1
        return Bandwidth(np.minimum(np.arange(1, last + 2), last), True)

    def longest_edge(self) -> int:
        """Return 1, or 0 on a single cell."""
        return min(1, self.domain.size - 1)

    def grid_moves(self, shape: tuple[int, ...], most: int) -> IntArray | None:
        """Return the step to the next cell, or to the next of merged ones."""
        if len(shape) > 1:
            return None
        return np.ones((min(1, shape[0] - 1), 1), dtype=np.int64)

    def _distance(self, first: IntArray, second: IntArray) -> FloatArray:
        steps: FloatArray = np.abs(first - second).astype(np.float64)
        return steps

    def largest_change(self, lines: FloatArray) -> Change:
        """Return the largest step from one cell to the next."""
        changes = np.abs(np.diff(lines, axis=1))
        return Change(float(changes.max(initial=0.0)), True)

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        return Line(domain) if buckets.order is None else Projection(self, buckets)

    def describe(self) -> str:
        """Say in plain words what stays indistinguishable."""
        return (
            f"two people whose {values_name(self.domain)} lie in neighbouring cells "
            "cannot be told apart beyond e^eps; d cells apart, e^(eps*d); the number "
            "of people is public"
        )
