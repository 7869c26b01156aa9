"""Linear queries: each cell, all of them, a sum, a marginal table, any matrix."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast._support.validation import malformed_as
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import WorkloadError

from .base import Fractions, Pieces, Workload

LARGEST_COEFFICIENT = 2.0**400
"""Squares of coefficients, times counts, are added up for variances."""


class Identity(Workload):
    """One query per cell, in C order.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Identity(Domain(3)).answer([4, 0, 2])
    array([4, 0, 2])
    """

    closed_form = "identity"
    takes_wide = True

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

    def _answer(self, counts: AnyArray) -> AnyArray:
        return np.array([counts.sum()])

    def explicit_form(self, buckets: Buckets) -> Fractions:
        """List the range of all buckets."""
        self._check_buckets(buckets)
        ones = np.ones(1)
        first, last = np.zeros(1, np.int64), np.array([buckets.count - 1])
        return Fractions(first, ones, last, ones)


class Linear(Workload):
    """One query per row of a sparse or dense matrix over the cells, in C order.

    Parameters
    ----------
    domain : Domain
        The cells.
    matrix : array-like or scipy sparse array, shape (queries, cells)
        Finite coefficients.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Linear(Domain(3), [[1, 0, -1]]).answer([4, 0, 2])
    array([2.])
    """

    def __init__(self, domain: Domain, matrix: Any) -> None:
        from scipy import sparse

        super().__init__(domain)
        with malformed_as(WorkloadError, "matrix must be numeric, (queries, cells)"):
            rows = sparse.csr_array(matrix, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != domain.size:
            raise WorkloadError(
                f"matrix must have one column per cell, {domain.size}",
                received=f"shape {rows.shape}",
            )
        check_coefficients(rows.data, "matrix")
        rows.sum_duplicates()
        rows.eliminate_zeros()
        self.matrix = rows

    @property
    def queries(self) -> int:
        """One per row."""
        return int(self.matrix.shape[0])

    def _pieces(self) -> int:
        return int(self.matrix.nnz)

    def _answer(self, counts: AnyArray) -> AnyArray:
        answers: AnyArray = self.matrix @ counts.reshape(-1)
        return answers

    def explicit_form(self, buckets: Buckets) -> Pieces:
        """Average each row over the buckets; merge equal neighbours into runs."""
        from scipy import sparse

        self._check_buckets(buckets)
        labels = buckets.labels[self.matrix.indices]
        rows = sparse.csr_array(
            (
                self.matrix.data / buckets.sizes[labels],
                labels,
                self.matrix.indptr.copy(),
            ),
            shape=(self.queries, buckets.count),
        )
        rows.sum_duplicates()
        rows.sort_indices()
        rows.eliminate_zeros()
        return _runs(
            rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data
        )


class Sum(Workload):
    """The single query that adds up a weight for every record, by its cell.

    Parameters
    ----------
    domain : Domain
        The cells.
    weights : array-like of float
        Finite weights, of the domain's shape or flat in C order; they may be negative.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Sum(Domain(3), [0, 1, 2]).answer([4, 0, 2])
    array([4.])
    """

    queries = 1

    def __init__(self, domain: Domain, weights: Any) -> None:
        super().__init__(domain)
        with malformed_as(WorkloadError, "weights must be numbers, one per cell"):
            array = np.array(weights, dtype=np.float64)
        if array.shape not in (domain.shape, (domain.size,)):
            raise WorkloadError(
                f"weights must have the domain's shape {domain.shape}, or "
                f"({domain.size},) in C order",
                received=array.shape,
            )
        check_coefficients(array, "weights")
        self.weights = array.reshape(-1)
        self.weights.flags.writeable = False

    def _pieces(self) -> int:
        return self.domain.size

    def _answer(self, counts: AnyArray) -> AnyArray:
        return np.array([self.weights @ counts.reshape(-1)])

    def explicit_form(self, buckets: Buckets) -> Pieces:
        """Average the weights over the buckets; merge equal neighbours into runs."""
        return Linear(self.domain, self.weights[None]).explicit_form(buckets)


class Marginals(Workload):
    """The marginal table over some attributes, in the domain's C order.

    Parameters
    ----------
    domain : Domain
        The cells.
    axes : int, str or sequence of these
        The attributes, by number or name.

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

    def _pieces(self) -> int:
        return self.domain.size

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


def check_coefficients(values: FloatArray, name: str) -> None:
    """Refuse what is not finite, or whose squares and sums would not be.

    Parameters
    ----------
    values : ndarray of float64
        Coefficients.
    name : str
        What the caller calls them, for the message.

    Raises
    ------
    WorkloadError
        If one is not finite, or too large.
    """
    if not np.isfinite(values).all():
        raise WorkloadError(f"{name} must be finite; found NaN or infinity")
    largest = float(np.abs(values).max(initial=0.0))
    if largest > LARGEST_COEFFICIENT:
        raise WorkloadError(
            f"coefficients must lie below {LARGEST_COEFFICIENT:.0e} in size",
            received=f"{largest:g}",
            way_out="Scale the queries, and scale their answers back",
        )


def _runs(pointers: IntArray, columns: IntArray, values: FloatArray) -> Pieces:
    """Merge consecutive columns of one row that hold the same value."""
    row_start = np.zeros(columns.size + 1, dtype=bool)
    row_start[pointers] = True
    begins = row_start[:-1].copy()
    if columns.size:
        begins[1:] |= (np.diff(columns) != 1) | (np.diff(values) != 0)
    at = np.flatnonzero(begins)
    lengths = np.diff(np.append(at, columns.size))
    runs_before = np.concatenate([[0], np.cumsum(begins)])
    return Pieces(
        runs_before[pointers].astype(np.int64),
        columns[at],
        columns[at] + lengths,
        values[at],
    )
