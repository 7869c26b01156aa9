"""Any linear queries, as a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast._support.validation import malformed_as
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import WorkloadError

from .base import Pieces, Workload

LARGEST_COEFFICIENT = 2.0**400
"""Squares of coefficients, times counts, are added up for variances."""


class Linear(Workload):
    """One query per row of a matrix over the cells, in C order.

    Parameters
    ----------
    domain : Domain
        Any number of attributes.
    matrix : sparse matrix or array_like of shape (queries, cells)
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


def check_coefficients(values: FloatArray, name: str) -> None:
    """Refuse what is not finite, or whose squares and sums would not be."""
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
