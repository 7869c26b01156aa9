"""Counts of the table over some of the attributes."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast._support.validation import malformed_as
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import WorkloadError

from .base import Pieces, Workload
from .linear import Linear


class Marginals(Workload):
    """The marginal table over the named axes, in C order of the kept axes.

    Parameters
    ----------
    domain : Domain
        One or more attributes.
    axes : int, str, or iterable of them
        Axes to keep, by number or attribute name. The table keeps the order that they
        have in the domain.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Marginals(Domain((2, 3)), [1]).answer([[1, 2, 3], [4, 5, 6]])
    array([5, 7, 9])
    """

    def __init__(self, domain: Domain, axes: Any) -> None:
        super().__init__(domain)
        with malformed_as(WorkloadError, "axes are names or numbers of attributes"):
            self.axes = tuple(sorted(domain.axes(axes)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells of each kept axis."""
        return tuple(self.domain.shape[axis] for axis in self.axes)

    @property
    def queries(self) -> int:
        """One per cell of the table."""
        return math.prod(self.shape)

    @cached_property
    def labels(self) -> IntArray:
        """The table's cell to which each cell of the domain belongs, in C order."""
        table = np.arange(self.queries).reshape(
            [
                side if axis in self.axes else 1
                for axis, side in enumerate(self.domain.shape)
            ]
        )
        return np.broadcast_to(table, self.domain.shape).reshape(-1)

    def _answer(self, counts: AnyArray) -> AnyArray:
        dropped = tuple(
            axis for axis in range(self.domain.ndim) if axis not in self.axes
        )
        answers: AnyArray = counts.sum(axis=dropped).reshape(-1)
        return answers

    def explicit_form(self, buckets: Buckets) -> Pieces:
        """List the cells of each entry as runs of buckets."""
        from scipy import sparse

        cells = self.domain.size
        pointers = np.arange(self.queries + 1) * (cells // self.queries)
        columns = np.argsort(self.labels, kind="stable")
        matrix = sparse.csr_array(
            (np.ones(cells), columns, pointers), shape=(self.queries, cells)
        )
        return Linear(self.domain, matrix).explicit_form(buckets)
