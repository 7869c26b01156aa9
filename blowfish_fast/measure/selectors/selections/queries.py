"""Which query is answered worst: the private choice of each round of MWEM.

    true answers      12   40    7        exact
    estimated         10   25    7        public, rounded to whole numbers
    error              2   15    0        drawn with weight exp(rate * error)

Pieces: draws from ``kernels.cost_choice``.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError, SizeError, WorkloadError
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Fractions, Pieces, Workload
from blowfish_fast.workloads.base import form_matrix, row_moments

from .base import ByCost

if TYPE_CHECKING:
    pass

LARGEST_ERROR = 2**60
MOST_COEFFICIENTS = 2**26


class Runs(NamedTuple):
    """One query: whole coefficients on runs [start, end) of cells in C order."""

    starts: IntArray
    ends: IntArray
    values: IntArray


class WorstQuery(ByCost):
    """Choose a query whose estimated answer is far from the truth.

    Parameters
    ----------
    workload : Workload
        Queries with whole coefficients, so that true answers are integers.

    Notes
    -----
    Guarantee: epsilon-private choice of a query under the policy it is given.
    Neighbours: one record moves along one edge of the policy.
    Sensitivity: an edge (u, v) moves the answer of a query q by |q_u - q_v|: by 1 for
        queries that count records, also when a record moves. The error of each query
        moves no further, since the estimate is public.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> asked = bf.workloads.Ranges(bf.Domain(4), [0, 2], [2, 4])
    >>> guessed, asked_before = np.array([5.0, 5.0]), np.array([False, False])
    >>> choice = WorstQuery(asked).against(guessed, asked_before)
    >>> choice.sensitivity(bf.policies.Full(bf.Domain(4)))
    1
    >>> choice.errors(np.array([9, 0, 1, 0]))
    array([4, 4])
    """

    name = "worst_query"

    def __init__(self, workload: Workload) -> None:
        workload._refuse_too_many()
        if workload.queries == 0:
            raise WorkloadError("there is no query to choose from; ask at least one")
        self.workload = workload
        cells = workload.domain.size
        self.form = workload.explicit_form(Buckets.single_cells(cells))
        moments = row_moments(self.form, cells)
        values = self.form.values if isinstance(self.form, Pieces) else np.ones(1)
        if (np.rint(values) != values).any() or np.abs(values).max(initial=0) > 2**31:
            raise WorkloadError(
                "the queries need whole coefficients below 2^31, so that their answers "
                "are integers; scale and round them, or use Dawa"
            )
        self.size = int(np.maximum(moments.largest, -moments.least).max())
        self.span = int((moments.largest - moments.least).max())
        # Weighted queries are summed by a matrix; too many are refused here, before
        # anything is charged.
        nothing = workload.answer(np.zeros(workload.domain.shape, dtype=np.int64))
        counted = nothing.dtype == np.int64
        self._matrix: Any = None if counted else self._whole_matrix(cells)
        self._estimated = np.zeros(workload.queries, dtype=np.int64)
        self._asked = np.zeros(workload.queries, dtype=np.bool_)

    def against(self, answers: FloatArray, asked: BoolArray) -> Self:
        """Return the same choice against estimated answers, among queries not asked."""
        if asked.all():
            raise InputError("every query has been asked; make fewer rounds")
        other = copy.copy(self)
        other._estimated = np.rint(
            np.clip(answers, -LARGEST_ERROR, LARGEST_ERROR)
        ).astype(np.int64)
        # A copy: the caller marks further queries in its own.
        other._asked = asked.copy()
        return other

    def sensitivity(self, policy: Policy) -> int:
        """Return how far one edge of the policy moves an answer, at most: Lemma MW4."""
        moved = self.span if policy.has_moves else 0
        return max(moved, self.size) if policy.has_bottom else moved

    def errors(self, counts: IntArray) -> IntArray:
        """Return how far off each estimated answer is, cut at a public number."""
        answers = self._answers(counts)
        far: IntArray = np.minimum(np.abs(answers - self._estimated), LARGEST_ERROR)
        return far

    def costs(self, counts: IntArray) -> IntArray:
        """Return the errors with a minus sign; queries asked before are not there."""
        return np.where(self._asked, kernels.NO_CANDIDATE, -self.errors(counts))

    def runs(self, query: int) -> Runs:
        """Return one query as runs of cells."""
        if isinstance(self.form, Fractions):
            first, last = self.form.first[query], self.form.last[query]
            return Runs(np.array([first]), np.array([last + 1]), np.ones(1, np.int64))
        own = slice(self.form.pointers[query], self.form.pointers[query + 1])
        return Runs(
            self.form.starts[own],
            self.form.ends[own],
            np.rint(self.form.values[own]).astype(np.int64),
        )

    def _answers(self, counts: IntArray) -> AnyArray:
        """Return the true answers, exactly; cells are cut where sums would overflow."""
        if self._matrix is None:
            return self.workload.answer(counts.reshape(self.workload.domain.shape))
        cap = LARGEST_ERROR // (max(self.size, 1) * counts.size)
        exact: AnyArray = self._matrix @ np.minimum(counts, cap)
        return exact

    def _whole_matrix(self, cells: int) -> Any:
        """Return the coefficients of all queries as a sparse matrix of integers."""
        rows = form_matrix(self.form, cells, most=MOST_COEFFICIENTS)
        if rows is None:
            raise SizeError(
                "the queries cover more than 2^26 cells in all; weighted queries are "
                "chosen from below that. Ask fewer"
            )
        return rows.astype(np.int64)
