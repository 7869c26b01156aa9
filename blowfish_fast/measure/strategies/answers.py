"""Measure the answers themselves: one noisy row per declared query.

The histogram is the least-squares fit of least norm, which projects the noise onto the
answers that some histogram has. Only the declared queries have intervals, and what adds
up from them with coefficients: [0, 8) and [4, 8) tell [0, 4) as well. Queries of which
none is a combination of the others keep their noise.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Self

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import EpsilonError, IntervalError, SizeError, WorkloadError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.linear_strategy import (
    LinearStrategy,
    StrategyNoise,
    WeighedRows,
    listed,
    one_draw,
    packed_matrix,
    unpacked_matrix,
)
from blowfish_fast.measure.noise import (
    LARGEST_SCALE_BITS,
    WEIGHT_BITS,
    Scales,
    Spread,
    budget_unit,
)
from blowfish_fast.measure.sensitivity.policy import sensitivity, worst_moves
from blowfish_fast.measure.tails import equal_sum_half_widths
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Form, Fractions, Implicit, Linear, Pieces, Workload
from blowfish_fast.workloads.base import form_matrix

MOST_COEFFICIENTS = 2**26

MOST_FOLLOWED = 2**9
"""Queries up to which the fit is followed draw by draw; beyond, noise is bounded."""

UNCLEAR = (1e-13, 1e-5)
"""Relative eigenvalues between which rounding hides whether queries are combined."""

ROUNDING = 1e-8
"""Above the error of the projection: 2^9 roundings of 2^-53 over a gap of 1e-5."""


NEARLY = 1e-9
"""Coefficients up to this size are rounding, and so are queries that are so close."""


class RemainingNoise(NamedTuple):
    """What the fit leaves of the draws in each answer, in units of one draw.

    Attributes
    ----------
    shares : ndarray of float64, shape (queries,)
        Sum of squared coefficients, or a bound; 1 where the fit was not followed.
    largest : ndarray of float64, shape (queries,)
        The largest coefficient in size, or a bound; 1 in the same case.
    followed : bool
        Whether the fit was followed.
    alone : bool
        Whether no query is a combination of others, so that each has its own draw.
    """

    shares: FloatArray
    largest: FloatArray
    followed: bool
    alone: bool


class Answers(LinearStrategy):
    """Independent noise of one scale on every query of a workload.

    Parameters
    ----------
    cells : int
        Number of cells.
    matrix : scipy sparse array, shape (queries, cells)
        Whole coefficients, since noise lives on the integers.
    reach : int
        How far one policy edge moves the answers in all.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> asked = bf.workloads.Ranges(bf.Domain(4), [0, 1], [4, 3])
    >>> policy = bf.policies.Full(bf.Domain(4))
    >>> mechanism = bf.Laplace(policy, asked, epsilon=1, strategy="queries")
    >>> kept = mechanism.release([4, 0, 2, 1], rng=1).measurements[0]
    >>> type(kept.strategy).__name__, kept.noisy.shape
    ('Answers', (2,))
    """

    kind = "answers"
    refuses_undetermined = True

    def __init__(self, cells: int, matrix: Any, reach: int) -> None:
        self.cells = cells
        self.matrix = matrix
        self.reach = reach
        self._made_for: Policy | None = None

    @classmethod
    def under(cls, policy: Policy, workload: Workload) -> Self:
        """List the queries and find their sensitivity under `policy`.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        workload : Workload
            The queries.

        Returns
        -------
        Self
            The strategy.

        Raises
        ------
        SizeError
            If the queries cover too many cells.
        WorkloadError
            If coefficients are no whole numbers.
        """
        workload._refuse_too_many()
        cells = policy.domain.size
        form = workload.explicit_form(Buckets.single_cells(cells))
        matrix = form_matrix(form, cells, most=MOST_COEFFICIENTS)
        if matrix is None:
            raise SizeError(
                "the queries cover more than 2^26 cells in all; noise on each answer "
                "is meant for few queries",
                way_out='Use strategy="cells"',
                code="too_many_cells_in_queries",
            )
        whole = np.rint(matrix.data) == matrix.data
        if not (whole & (np.abs(matrix.data) < 2.0**53)).all():
            raise WorkloadError(
                "noise on each answer needs whole-number coefficients below 2^53, so "
                "that the answers are integers",
                way_out='Scale and round the queries, or use strategy="cells"',
                code="fractional_queries",
            )
        strategy = cls(cells, matrix, _whole(sensitivity(policy, workload)))
        strategy._made_for = policy
        return strategy

    def rows(self, counts: IntArray) -> IntArray:
        """Return the exact answers."""
        return np.asarray(self.matrix.astype(np.int64) @ counts, dtype=np.int64)

    def weights(self) -> IntArray:
        """Give every answer the same weight."""
        return np.full(self.matrix.shape[0], 2**WEIGHT_BITS, dtype=np.int64)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark all answers exact where no edge moves any."""
        return np.full(self.matrix.shape[0], self._reach(policy) == 0)

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the heaviest answer times the sensitivity of all: Lemma LA11.

        Parameters
        ----------
        weights : ndarray of int64, shape (queries,)
            Whole weight of each answer, not negative.
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        int
            The product; a bound above the sum, reached where all weigh the same.
        """
        if power == 1:
            return int(weights.max(initial=0)) * self._reach(policy)
        ones = np.ones(self.matrix.shape[0], dtype=np.int64)
        squares = worst_moves(self.matrix, ones, policy, power)
        return int(weights.max(initial=0)) * squares

    def _reach(self, policy: Policy) -> int:
        """Return the sensitivity under the policy at hand, whoever made this."""
        if policy is self._made_for:
            return self.reach
        return _whole(sensitivity(policy, Linear(policy.domain, self.matrix)))

    def scales_at(self, weighed: WeighedRows, budget: Budget) -> Scales:
        """Return one scale for all answers; refuse a budget that leaves none.

        Parameters
        ----------
        weighed : WeighedRows
            What `weigh` returned, in the currency of the budget.
        budget : Budget
            What the measurement may cost on any edge.

        Returns
        -------
        Scales
            The same scale for every answer.

        Raises
        ------
        EpsilonError
            If the budget leaves nothing for a draw.
        """
        epsilon, reach = budget.amount, self._reach(weighed.policy)
        if reach < 2**24 or budget.power == 2:
            scales = super().scales_at(weighed, budget)
        else:
            # The unit grows with the sensitivity, so that a rate keeps its digits.
            unit = budget_unit(epsilon) << (reach.bit_length() - 20)
            rate = math.floor(epsilon * unit / reach)
            rate *= rate * 2**LARGEST_SCALE_BITS >= unit
            rows = self.matrix.shape[0]
            exact = np.zeros(rows, dtype=np.bool_)
            scales = Scales(np.full(rows, rate, dtype=np.int64), unit, exact)
        if not (scales.measured | scales.exact).all():
            raise EpsilonError(
                f"one policy edge moves the answers by {reach:,}, and noise for that "
                f"at {budget.words()} would exceed 2^40; raise it, or ask in larger "
                "units"
            )
        return scales

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the least-squares histogram of least norm.

        Parameters
        ----------
        noisy : ndarray of int64, shape (queries,)
            The measured answers.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (cells,)
            The estimate of each cell.
        """
        from scipy.sparse.linalg import lsqr

        solution: FloatArray = lsqr(
            self.matrix.astype(np.float64),
            noisy.astype(np.float64),
            atol=1e-12,
            btol=1e-12,
            iter_lim=10 * max(self.matrix.shape),
        )[0]
        return solution

    def _spread(self, form: Fractions | Pieces, law: StrategyNoise) -> Spread:
        """Return the law of each query's noise after the fit, or a bound."""
        rows = self._query_places(form)
        width, variance = one_draw(law.scales)
        if (rows < 0).any():
            parts = np.abs(self._parts(form))
            shares = (parts**2).sum(axis=1)
            squares = ((parts + NEARLY) ** 2).sum(axis=1)
            largest = parts.max(axis=1, initial=0.0) + NEARLY
            spread = Spread.of_one_scale(squares, largest, width, variance)
            return spread._replace(
                variance=variance * shares, width=np.full(rows.size, np.nan)
            )
        shares, largest = self._left.shares[rows], self._left.largest[rows]
        # Enough to leave `square` over `largest` squared above its exact value.
        squares = shares if self._left.alone else shares + 4.0 * ROUNDING
        spread = Spread.of_one_scale(squares, largest, width, variance)
        if not self._left.followed:
            spread = spread._replace(width=np.full(rows.size, np.nan))
        return spread._replace(variance=variance * shares)

    def _half_widths(self, form: Form, law: StrategyNoise, miss: float) -> FloatArray:
        """Use the law of one draw where the fit leaves one alone."""
        bound, scales = super()._half_widths(form, law, miss), law.scales
        if isinstance(form, Implicit) or not scales.measured.all():
            return bound
        rows = self._query_places(form)
        width, _ = one_draw(scales)
        if not self._left.alone or (rows < 0).any():
            return bound
        exact = equal_sum_half_widths(width, np.ones_like(rows), miss, scales.power)
        # Answers and draws are whole numbers, so half a count more holds no more of the
        # law, and covers the rounding of the fit.
        return np.minimum(bound, exact + 0.5)

    def _query_places(self, form: Fractions | Pieces) -> IntArray:
        """Return the place of each query among those declared; -1 for others."""
        asked = self._listed(form)
        rows = asked.shape[0]
        if rows == self.matrix.shape[0] and not (asked != self.matrix).nnz:
            return np.arange(rows)
        places = [self._places.get(_key(asked, row), -1) for row in range(rows)]
        return np.array(places, dtype=np.int64)

    def _listed(self, form: Fractions | Pieces) -> Any:
        """Return queries as rows over the cells; refuse too many coefficients."""
        asked = form_matrix(form, self.cells, most=MOST_COEFFICIENTS)
        if asked is None:
            raise _undeclared()
        return asked

    def _parts(self, form: Fractions | Pieces) -> FloatArray:
        """Return the coefficients with which queries add up from the declared ones.

        Of all that there are, those of least norm lie in the span of the fit, so their
        sum of draws is the noise of the fitted answer. What the declared queries do not
        add up to is refused: the fit would guess it.
        """
        from scipy import sparse

        asked = sparse.csr_array(self._listed(form))
        wide = asked.shape[0] * self.matrix.shape[0] > MOST_COEFFICIENTS
        if wide or not self._left.followed:
            raise _undeclared()
        parts = (asked @ self.matrix.T).toarray() @ self._inverse
        parts[np.abs(parts) < NEARLY] = 0.0
        off = abs(sparse.csr_array(parts) @ self.matrix - asked)
        if off.max() > NEARLY * abs(asked).max():
            raise _undeclared()
        return np.asarray(parts, dtype=np.float64)

    @cached_property
    def _inverse(self) -> FloatArray:
        """The inverse of the products of declared queries, on their span."""
        dense = self.matrix.toarray().astype(np.float64)
        inverse = np.linalg.pinv(dense @ dense.T, rcond=UNCLEAR[1], hermitian=True)
        return np.asarray(inverse, dtype=np.float64)

    @cached_property
    def _places(self) -> dict[tuple[bytes, bytes], int]:
        return {_key(self.matrix, row): row for row in range(self.matrix.shape[0])}

    @cached_property
    def _left(self) -> RemainingNoise:
        queries = self.matrix.shape[0]
        if queries > MOST_FOLLOWED:
            return RemainingNoise(
                np.ones(queries), np.ones(queries), followed=False, alone=False
            )
        dense = self.matrix.toarray().astype(np.float64)
        return _followed((dense @ dense.T).tobytes(), queries)

    def _implicit_variance(self, form: Implicit, law: StrategyNoise) -> float:
        return law.total_variance(_list_queries(form))

    def pack(self) -> dict[str, Any]:
        """Return the matrix and its reach."""
        shape = {"cells": self.cells, "queries": self.matrix.shape[0]}
        return {**shape, "reach": self.reach, **packed_matrix(self.matrix)}

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`."""
        shape = (int(data["queries"]), int(data["cells"]))
        matrix = unpacked_matrix(data, shape).astype(np.float64)
        return cls(shape[1], matrix, int(data["reach"]))


@lru_cache(maxsize=8)
def _followed(products: bytes, queries: int) -> RemainingNoise:
    """Follow the fit by products of queries: noise z becomes P z, P on their span."""
    bound = RemainingNoise(
        np.ones(queries), np.ones(queries), followed=False, alone=False
    )
    square = np.frombuffer(products, dtype=np.float64).reshape(queries, queries)
    values, vectors = np.linalg.eigh(square)
    relative = values / max(float(values[-1]), 1e-300)
    if ((relative > UNCLEAR[0]) & (relative < UNCLEAR[1])).any():
        return bound
    clear = vectors[:, relative >= UNCLEAR[1]]
    if clear.shape[1] == queries:
        return bound._replace(followed=True, alone=True)
    projection = np.abs(clear @ clear.T)
    largest = projection.max(axis=1, initial=0.0) + ROUNDING
    return RemainingNoise(np.diagonal(projection), largest, followed=True, alone=False)


def _undeclared() -> IntervalError:
    """Refuse queries that the declared ones do not add up to."""
    return IntervalError(
        "noise was put on the declared answers, so only those have intervals, and what "
        'adds up from them; ask the declared workload, or release with strategy="cells"'
    )


def _whole(moved: float) -> int:
    """Return a sensitivity of whole-number queries as the whole number it is."""
    return math.ceil(float(moved))


def _list_queries(form: Implicit) -> Fractions:
    cells = form.edges.size - 1
    if int(form.edges[-1]) != cells or cells**2 > MOST_COEFFICIENTS:
        raise SizeError(
            f"the total over {form.kind} is known for single cells, up to 2^13 of "
            "them; list the queries"
        )
    if form.kind != "all_ranges":
        return listed(form)
    first, last = np.triu_indices(cells)
    ones = np.ones(first.size)
    return Fractions(first.astype(np.int64), ones, last.astype(np.int64), ones)


def _key(matrix: Any, row: int) -> tuple[bytes, bytes]:
    """Return the columns and values of one row, as bytes that can be compared."""
    start, end = matrix.indptr[row], matrix.indptr[row + 1]
    return (
        matrix.indices[start:end].astype(np.int64).tobytes(),
        matrix.data[start:end].tobytes(),
    )
