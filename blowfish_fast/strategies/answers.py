"""Measure the answers themselves: one noisy row per declared query.

The histogram is the least-squares fit to the noisy answers, of least norm; only the
declared queries have intervals.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._typing import BoolArray, FloatArray, IntArray
from ..buckets import Buckets
from ..errors import IntervalError, SizeError, WorkloadError
from ..noise import WEIGHT_BITS, Scales, Spread
from ..policies import Policy
from ..policy_sensitivity import sensitivity
from ..workloads import Form, Implicit, Workload
from ..workloads.base import form_matrix
from .base import LinearStrategy

MOST_COEFFICIENTS = 2**26


class Answers(LinearStrategy):
    """Independent noise of one scale on every query of a workload.

    Parameters
    ----------
    cells : int
        Number of cells.
    matrix : sparse array of shape (queries, cells)
        Whole-number coefficients: noise lives on the integers.
    reach : int
        How far one policy edge moves the answers in all, summed over queries.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> asked = bf.workloads.Ranges(bf.Domain(4), [0, 1], [4, 3])
    >>> policy = bf.policies.Full(bf.Domain(4))
    >>> mechanism = bf.Laplace(policy, asked, epsilon=1, on="queries")
    >>> kept = mechanism.release([4, 0, 2, 1], rng=1).measurements[0]
    >>> type(kept.strategy).__name__, kept.noisy.shape
    ('Answers', (2,))
    """

    kind = "answers"

    def __init__(self, cells: int, matrix: Any, reach: int) -> None:
        self.cells = cells
        self.matrix = matrix
        self.reach = reach

    @classmethod
    def under(cls, policy: Policy, workload: Workload) -> Self:
        """List the queries and find their sensitivity under `policy`."""
        workload._refuse_too_many()
        cells = policy.domain.size
        form = workload.explicit_form(Buckets.single_cells(cells))
        matrix = form_matrix(form, cells, most=MOST_COEFFICIENTS)
        if matrix is None:
            raise SizeError(
                "the queries cover more than 2^26 cells in all; noise on each answer "
                'is meant for few queries. Use on="cells"'
            )
        if (np.rint(matrix.data) != matrix.data).any():
            raise WorkloadError(
                "noise on each answer needs whole-number coefficients, so that the "
                'answers are integers; scale and round the queries, or use on="cells"'
            )
        moved = sensitivity(policy, workload)
        return cls(cells, matrix, int(np.ceil(float(moved) - 1e-9)))

    def rows(self, counts: IntArray) -> IntArray:
        """Return the exact answers."""
        return np.asarray(self.matrix.astype(np.int64) @ counts, dtype=np.int64)

    def weights(self) -> IntArray:
        """Give every answer the same weight."""
        return np.full(self.matrix.shape[0], 2**WEIGHT_BITS, dtype=np.int64)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark all answers exact where no edge moves any."""
        return np.full(self.matrix.shape[0], self.reach == 0)

    def worst_edge(self, weights: IntArray, policy: Policy) -> int:
        """Return the heaviest answer times the sensitivity of all answers."""
        return int(weights.max(initial=0)) * self.reach

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the least-squares histogram of least norm."""
        from scipy.sparse.linalg import lsqr

        solution: FloatArray = lsqr(
            self.matrix.astype(np.float64),
            noisy.astype(np.float64),
            atol=1e-12,
            btol=1e-12,
            iter_lim=10 * max(self.matrix.shape),
        )[0]
        return solution

    def spread(self, form: Form, scales: Scales) -> Spread:
        """Return the noise of declared queries; a bound above after the fit."""
        if isinstance(form, Implicit):
            raise IntervalError("list the queries first: use explicit_form")
        asked = form_matrix(form, self.cells, most=MOST_COEFFICIENTS)
        known = {_key(self.matrix, row) for row in range(self.matrix.shape[0])}
        if asked is None or any(
            _key(asked, row) not in known for row in range(asked.shape[0])
        ):
            raise IntervalError(
                "noise was put on the declared answers, so only those have intervals; "
                'ask the declared workload, or release with on="cells"'
            )
        one = np.ones(asked.shape[0])
        width = float(scales.widths.max(initial=0.0))
        variances = scales.variances
        variance = float(variances.max()) if variances.size else 0.0
        return Spread(variance * one, width**2 * one, width * one)

    def total_variance(self, form: Form, scales: Scales) -> float:
        """Return the variance summed over the declared queries."""
        if isinstance(form, Implicit):
            return float(scales.variances.sum())
        return float(self.spread(form, scales).variance.sum())

    def pack(self) -> dict[str, Any]:
        """Return the matrix and its reach."""
        return {
            "cells": self.cells,
            "reach": self.reach,
            "queries": self.matrix.shape[0],
            "pointers": self.matrix.indptr,
            "columns": self.matrix.indices,
            "values": self.matrix.data,
        }

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`."""
        from scipy import sparse

        shape = (int(data["queries"]), int(data["cells"]))
        parts = (data["values"], data["columns"], data["pointers"])
        matrix = sparse.csr_array(parts, shape=shape, dtype=np.float64)
        matrix.check_format(full_check=True)
        return cls(int(data["cells"]), matrix, int(data["reach"]))


def _key(matrix: Any, row: int) -> tuple[bytes, bytes]:
    """Return the columns and values of one row, as bytes that can be compared."""
    start, end = matrix.indptr[row], matrix.indptr[row + 1]
    return (
        matrix.indices[start:end].astype(np.int64).tobytes(),
        matrix.data[start:end].tobytes(),
    )
