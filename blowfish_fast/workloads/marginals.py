"""Counts of the table over some of the attributes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast._support.validation import as_whole
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import InputError, WorkloadError

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
        self.axes = _axes(domain, axes)

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


def _axes(domain: Domain, axes: Any) -> tuple[int, ...]:
    single = isinstance(axes, str) or not isinstance(axes, Iterable)
    chosen = []
    for axis in [axes] if single else list(axes):
        if isinstance(axis, str):
            number = domain.axis(axis)
        else:
            try:
                number = as_whole(axis, "each axis")
            except InputError as problem:
                raise WorkloadError(str(problem)) from None
        if not 0 <= number < domain.ndim:
            raise WorkloadError(
                f"axes must lie between 0 and {domain.ndim - 1}", received=repr(axis)
            )
        chosen.append(number)
    if not chosen:
        raise WorkloadError(
            "keep at least one axis; the table over none of them is Total(domain)"
        )
    if len(set(chosen)) < len(chosen):
        raise WorkloadError("axes must differ", received=repr(axes))
    return tuple(sorted(chosen))
