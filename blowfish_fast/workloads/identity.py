"""Each cell by itself, and all cells together."""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast.data.buckets import Buckets

from .base import Fractions, Workload


class Identity(Workload):
    """One query per cell, in C order.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Identity(Domain(3)).answer([4, 0, 2])
    array([4, 0, 2])
    """

    closed_form = "identity"

    @property
    def queries(self) -> int:
        """One per cell."""
        return self.domain.size

    def mean_cells(self) -> float:
        """Return 1: a query is one cell."""
        return 1.0

    def _answer(self, counts: AnyArray) -> AnyArray:
        return counts.reshape(-1).copy()

    def explicit_form(self, buckets: Buckets) -> Fractions:
        """List each cell as its share of its bucket."""
        self._check_buckets(buckets)
        share = 1.0 / buckets.sizes[buckets.labels]
        return Fractions(buckets.labels, share, buckets.labels, share)


class Total(Workload):
    """The single query that counts all records.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Total(Domain(3)).answer([4, 0, 2])
    array([6])
    """

    closed_form = "total"

    queries = 1

    def mean_cells(self) -> float:
        """Return all cells."""
        return float(self.domain.size)

    def _answer(self, counts: AnyArray) -> AnyArray:
        return np.array([counts.sum()])

    def explicit_form(self, buckets: Buckets) -> Fractions:
        """List the range of all buckets."""
        self._check_buckets(buckets)
        one = np.ones(1)
        first, last = np.zeros(1, np.int64), np.array([buckets.count - 1])
        return Fractions(first, one, last, one)
