"""How far published answers lie off, as whole numbers that are measured with noise.

The excess of a query is v_q = |R_q - 16 q(x)| + 1 - H_q, with the published answer R_q
and a noise half-width H_q in sixteenths of a record. Proofs:
``docs/proofs/certificates.md``.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import EpsilonError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.linear_strategy import PreparedStrategy
from blowfish_fast.measure.noise import Scales, scales_within
from blowfish_fast.measure.sensitivity.policy import sensitivity
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Identity, Workload
from blowfish_fast.workloads.base import as_pieces, row_moments

PARTS = 16
"""Errors are whole numbers of this part of a record."""

TOP = PARTS * 2**24
"""Where the public edges of a curve end: beyond it nothing is claimed."""


FURTHEST = 2**60
"""Errors end here, in sixteenths: 2^56 records, far above any table."""

MOST_IN_BOXES = 2**57
"""Records in all cells together of which boxes are compared, at most."""


class ErrorStatistic(ABC):
    """Whole numbers that say how far a release is off; all rows have one scale."""

    kind: ClassVar[str]
    parts: ClassVar[int] = PARTS
    """Rows are whole numbers of this part of a record."""

    @property
    def size(self) -> int:
        """Number of rows: one, unless there are classes or buckets."""
        return 1

    @abstractmethod
    def rows(self, counts: IntArray) -> IntArray:
        """Return the exact values that are measured."""

    @abstractmethod
    def move(self, policy: Policy) -> int:
        """Return the largest sum of |moves| of the rows along one edge, or more."""

    def scales(self, policy: Policy, budget: Budget | Fraction) -> Scales:
        """Return the scale whose worst edge costs at most `budget`: Lemma CE1.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        budget : Budget or Fraction
            What the measurement may cost on any edge.

        Returns
        -------
        Scales
            The scales, the same for all rows.

        Raises
        ------
        EpsilonError
            If the noise would be more than can be drawn.
        """
        move = self.move(policy)
        ones = np.ones(self.size, dtype=np.int64)
        worst = move ** Budget.of(budget).power
        scales = scales_within(ones, worst, budget, ones * move == 0)
        if not (scales.measured | scales.exact).all():
            raise EpsilonError(
                f"noise at {Budget.of(budget).words()} for errors that an edge moves "
                f"by {move / self.parts:,.0f} records is more than can be drawn",
                way_out="Raise it, or ask in larger units",
                code="noise_on_errors_too_large",
            )
        return scales

    def prepare(self, policy: Policy, budget: Budget | Fraction) -> PreparedStrategy:
        """Return the statistic with the noise that policy and budget ask for.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        budget : Budget or Fraction
            What the measurement may cost on any edge.

        Returns
        -------
        PreparedStrategy
            Statistic, scales and price; no query is answered from it.
        """
        price, itself = Budget.of(budget), cast(Any, self)
        return PreparedStrategy(itself, self.scales(policy, price), policy, price)

    def cost(self, policy: Policy, scales: Scales) -> Fraction:
        """Return the cost of the worst edge: squares sum up to at most its square.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        scales : Scales
            The noise of each row.

        Returns
        -------
        Fraction
            The cost.
        """
        worst = int(scales.rates.max(initial=0)) * self.move(policy) ** scales.power
        return Fraction(worst, scales.unit)

    def published(self, rows: IntArray, noise: IntArray, scales: Scales) -> IntArray:
        """Return what leaves the handle: every row with a draw of its own.

        Parameters
        ----------
        rows : ndarray of int64, shape (rows,)
            True rows.
        noise : ndarray of int64, shape (rows,)
            A draw for each.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of int64, shape (rows,)
            The noisy rows.
        """
        return rows + noise


class ErrorQuantile(ErrorStatistic):
    """The k-th smallest excess of all queries.

    Parameters
    ----------
    workload : Workload
        The queries.
    answers : ndarray of int64, shape (queries,)
        Published answers, in sixteenths of a record.
    half : ndarray of int64, shape (queries,)
        Half-widths of their noise, in sixteenths.
    rank : int
        The number k.
    """

    kind = "error_quantile"

    def __init__(
        self, workload: Workload, answers: IntArray, half: IntArray, rank: int
    ) -> None:
        self.workload, self.answers, self.half = workload, answers, half
        self.rank = rank

    @cached_property
    def largest_coefficient(self) -> int:
        """The largest coefficient of any query, which is a whole number."""
        cells = Buckets.single_cells(self.workload.domain.size)
        form = as_pieces(self.workload.explicit_form(cells))
        return int(np.abs(form.values).max(initial=1.0))

    def excess(self, counts: IntArray) -> IntArray:
        """Return by how much each answer is off beyond its half-width, rounded up.

        No number of records is too large: sums that may leave 64 bits are found in
        Python's own integers, and what is beyond `FURTHEST` is cut there (Lemma CE8).
        """
        most = PARTS * self.largest_coefficient * int(counts.sum())
        wide = most >= FURTHEST
        answers: Any = whole_answers(self.workload, counts, wide=wide)
        published = self.answers.astype(object) if wide else self.answers
        off = np.abs(published - PARTS * answers) + 1 - self.half
        return np.asarray(np.clip(off, -FURTHEST, FURTHEST), dtype=np.int64)

    def rows(self, counts: IntArray) -> IntArray:
        """Return the order statistic: the supremum norm bounds its change."""
        at = self.rank - 1
        return np.partition(self.excess(counts), at)[at : at + 1]

    def move(self, policy: Policy) -> int:
        """Return the largest move of one query, in sixteenths."""
        return PARTS * largest_query_move(policy, self.workload)


class ErrorCurve(ErrorQuantile):
    """How much excess lies on each of several ramps, for each class of queries.

    Parameters
    ----------
    workload : Workload
        The queries.
    answers : ndarray of int64, shape (queries,)
        Published answers, in sixteenths of a record.
    half : ndarray of int64, shape (queries,)
        Half-widths of their noise, in sixteenths.
    labels : ndarray of int64, shape (queries,)
        The class of each query.
    ramps : list[ndarray of int64]
        The edges of the ramps of each class.
    """

    kind = "error_curve"

    def __init__(
        self,
        workload: Workload,
        answers: IntArray,
        half: IntArray,
        labels: IntArray,
        ramps: list[IntArray],
    ) -> None:
        super().__init__(workload, answers, half, 0)
        self.labels, self.ramps = labels, ramps

    @property
    def size(self) -> int:
        """One row for each ramp of each class."""
        return sum(edges.size - 1 for edges in self.ramps)

    def rows(self, counts: IntArray) -> IntArray:
        """Return the excess on each ramp; ramps are disjoint, classes too."""
        excess, amounts = self.excess(counts), []
        for label, edges in enumerate(self.ramps):
            mine = excess[self.labels == label]
            for low, high in itertools.pairwise(edges.tolist()):
                amounts.append(int(np.clip(mine - low, 0, high - low).sum()))
        return np.array(amounts, dtype=np.int64)

    def move(self, policy: Policy) -> int:
        """Return the largest sum of moves of all queries, in sixteenths."""
        return PARTS * math.ceil(sensitivity(policy, self.workload))


class LargestError(ErrorStatistic):
    """The largest error of any range of a line, or rectangle of a grid."""

    kind = "largest_error"

    def __init__(self, estimate: FloatArray) -> None:
        self.estimate = estimate

    def rows(self, counts: IntArray) -> IntArray:
        """Return the largest difference, from running sums rounded to sixteenths."""
        axes, sums = range(self.estimate.ndim), self.estimate
        for axis in axes:
            sums = np.cumsum(sums, axis=axis)
        cells = np.pad(sixteenths(sums), [(1, 0)] * len(axes))
        for axis in axes:
            cells = np.diff(cells, axis=axis)
        # Cut cell by cell, so that a record changes no box by more than one (CE8).
        counted = np.minimum(counts, MOST_IN_BOXES // counts.size)
        off = cells - PARTS * counted.reshape(cells.shape)
        # Both ends of a range, or four corners, were rounded by half a part each; one
        # part more is above the rounding of sums in floating point.
        largest = kernels.largest_rectangle_sum(off) + self.estimate.ndim + 1
        return np.array([largest], dtype=np.int64)

    def move(self, policy: Policy) -> int:
        """Return 16: one record changes no box by more than one."""
        return PARTS


class BucketShapes(ErrorStatistic):
    """How far the running totals inside each bucket lie from those of even records."""

    kind = "bucket_shapes"

    def __init__(self, edges: IntArray) -> None:
        self.edges = edges

    @property
    def size(self) -> int:
        """One row for each bucket."""
        return self.edges.size - 1

    def rows(self, counts: IntArray) -> IntArray:
        """Return ceil(max_j |prefix_j - j total / cells|) of each bucket."""
        lengths = np.diff(self.edges)
        first = np.repeat(self.edges[:-1], lengths)
        cells = np.repeat(lengths, lengths)
        sums = np.concatenate([[0], np.cumsum(counts)])
        even, rest = divmod(np.repeat(np.diff(sums[self.edges]), lengths), cells)
        place = np.arange(1, counts.size + 1) - first
        # In whole numbers, of which none exceeds the total or the squared cells.
        above = sums[1:] - sums[first] - place * even
        off = np.maximum(
            above - place * rest // cells, -(-place * rest // cells) - above
        )
        return np.maximum.reduceat(off, self.edges[:-1])

    def move(self, policy: Policy) -> int:
        """Return 1, or 2 where records move: each end changes one bucket by one."""
        return math.ceil(sensitivity(policy, Identity(policy.domain)))


def sixteenths(published: FloatArray) -> IntArray:
    """Return published numbers in whole sixteenths; cut where no table reaches."""
    return np.asarray(np.clip(np.rint(PARTS * published), -FURTHEST, FURTHEST)).astype(
        np.int64
    )


def whole_answers(workload: Workload, counts: IntArray, *, wide: bool = False) -> Any:
    """Return answers without any rounding, where all coefficients are whole numbers.

    Parameters
    ----------
    workload : Workload
        The queries.
    counts : ndarray of int64, shape (cells,)
        True counts.
    wide : bool, default False
        Whether sums may exceed 64 bits: Python integers are summed then.

    Returns
    -------
    ndarray of int64 or object, shape (queries,)
        The answers.
    """
    if not wide:
        answers = workload.answer(counts.reshape(workload.domain.shape)).reshape(-1)
        if answers.dtype.kind == "i":
            return answers
    # In floats, sums above 2^53 would change by more than the record that moves.
    form = as_pieces(workload.explicit_form(Buckets.single_cells(counts.size)))
    totals = np.append(0, np.cumsum(counts))
    counted: Any = totals[form.ends] - totals[form.starts]
    values: Any = form.values.astype(object if wide else np.int64)
    if wide:
        counted, values = (
            counted.astype(object),
            np.vectorize(int, otypes=[object])(values),
        )
    inside = values * counted
    return np.diff(np.append(0, np.cumsum(inside))[form.pointers])


def largest_query_move(policy: Policy, workload: Workload) -> int:
    """Return by how much one edge moves any single query, or a number above it.

    Parameters
    ----------
    policy : Policy
        The policy, without constraints.
    workload : Workload
        The queries.

    Returns
    -------
    int
        The number, rounded up.
    """
    form = workload.explicit_form(Buckets.single_cells(workload.domain.size))
    moments = row_moments(form, workload.domain.size)
    largest, least = moments.largest, moments.least
    moves = largest - least
    if policy.components().private.any():
        moves = np.maximum(moves, np.maximum(np.abs(largest), np.abs(least)))
    return math.ceil(float(moves.max(initial=0.0)))


def ramp_edges(step: int) -> IntArray:
    """Return edges -step, 0, step, ... of widening ramps up to `TOP`, in sixteenths."""
    edges = [-step, 0]
    while edges[-1] < TOP:
        edges.append(edges[-1] + max(step, 35 * edges[-1] // 100))
    return np.array(edges, dtype=np.int64)
