"""The matrix mechanism: any strategy matrix, written out, for small domains.

Answers to a workload W are W A+ (A x + noise), with A+ the least-squares inverse; all
algebra is dense. Totals that are public join A for free and are met exactly.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_parts, malformed_as
from blowfish_fast.errors import DomainError, InputError, IntervalError, SizeError
from blowfish_fast.measure.linear_strategy import (
    StrategyNoise,
    packed_matrix,
    unpacked_matrix,
)
from blowfish_fast.measure.noise import Scales, Spread
from blowfish_fast.measure.sensitivity.policy import worst_moves
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Fractions, Pieces
from blowfish_fast.workloads.base import form_matrix

from .cells import PartTotals

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_ENTRIES = 2**22
"""Most entries of a dense matrix that is inverted or multiplied."""

TOLERANCE = 1e-8
"""How far, relative to its size, a query may lie outside what was measured."""


class Explicit(PartTotals):
    """Noise of one scale on every row of a matrix, then the totals of connected parts.

    Parameters
    ----------
    matrix : array-like, shape (rows, cells)
        The rows. Noise lives on the integers: entries that are not whole numbers are
        first rounded to multiples of `step`.
    step : float, optional
        A public step for the entries; None where they are whole numbers.
    parts : ndarray of int64, shape (cells,), optional
        The connected part of each cell; None when there is just one.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(3)
    >>> halves = bf.strategies.Explicit([[1, 0, 0], [1, 1, 0]])
    >>> bf.Transformed(
    ...     bf.policies.Line(line),
    ...     bf.workloads.Identity(line),
    ...     epsilon=1,
    ...     strategy=halves,
    ... ).expected_error().round(4)
    array([1.8413, 3.6827, 1.8413])
    """

    kind = "explicit"
    refuses_undetermined = True

    def __init__(
        self, matrix: Any, *, step: float | None = None, parts: IntArray | None = None
    ) -> None:
        self.matrix = _whole(matrix, step)
        super().__init__(*self.matrix.shape, parts)
        entries = self.cells * (self.measured_rows + self.part_sizes.size)
        if entries > MOST_ENTRIES:
            raise SizeError(
                f"a strategy matrix of {self.measured_rows:,} rows over {self.cells:,} "
                f"cells would need {entries:,} dense entries; at most 2^22 = "
                f"{MOST_ENTRIES:,} are held. Use a strategy that is known by its "
                'structure, such as strategy="best"'
            )

    def under(self, policy: Policy) -> Self:
        """Return the strategy with the connected parts of `policy`."""
        if policy.domain.size != self.cells:
            raise DomainError(
                f"this strategy matrix has {self.cells} columns and the policy "
                f"{policy.domain.size} cells"
            )
        components = policy.components()
        labels = components.labels if components.count > 1 else None
        return type(self)(self.matrix, parts=labels)

    @cached_property
    def _dense_rows(self) -> FloatArray:
        labels = np.zeros(self.cells, np.int64) if self.parts is None else self.parts
        totals = np.zeros((self.part_sizes.size, self.cells))
        totals[labels, np.arange(self.cells)] = 1.0
        return np.concatenate([self.matrix.toarray().astype(np.float64), totals])

    def rows(self, counts: IntArray) -> IntArray:
        """Return the matrix times the counts, then the total of each part."""
        return self._with_totals(self.matrix @ counts, counts)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark the rows that are constant on each part, with 0 at "absent"."""
        labels, private = _components(policy)
        order = np.argsort(labels, kind="stable")
        starts = np.searchsorted(labels[order], np.arange(private.size))
        rows = self._dense_rows[:, order]
        least = np.minimum.reduceat(rows, starts, axis=1)
        largest = np.maximum.reduceat(rows, starts, axis=1)
        least[:, private] = np.minimum(least[:, private], 0.0)
        largest[:, private] = np.maximum(largest[:, private], 0.0)
        exact: BoolArray = (least == largest).all(axis=1)
        return exact

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the largest weighted change of the rows along one edge: Lemma ST5.

        Parameters
        ----------
        weights : ndarray of int64, shape (rows,)
            Whole weight of each row of the matrix, then 0 for the total of each
            connected part.
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        int
            The sum, or a bound above it.

        Raises
        ------
        InputError
            If the total of a part has a weight.
        """
        if weights[self.measured_rows :].any():
            raise InputError("totals of parts are published exactly or not at all")
        rows = weights[: self.measured_rows]
        return worst_moves(self.matrix, rows, policy, power)

    def _inverse(self, scales: Scales) -> FloatArray:
        """Return the matrix that turns noisy rows into cells.

        Exact rows hold as equations, measured rows by least squares; the rest has least
        norm. With E the exact rows, M the measured ones over their deviations, and F
        the projection onto what E leaves open::

            x = E+ e + F (M F)+ (m - M E+ e)        F = I - E+ E

        Cells are first what the exact values e say; the measured values m, without
        what e says of them, move the cells where e leaves them free.
        """
        rows = self._dense_rows
        inverse = np.zeros((self.cells, rows.shape[0]))
        exact, noisy = scales.exact, scales.measured
        free = np.eye(self.cells)
        if exact.any():
            inverse_of_exact = np.linalg.pinv(rows[exact])
            inverse[:, exact] = inverse_of_exact
            free -= inverse_of_exact @ rows[exact]
        if noisy.any():
            deviation = np.sqrt(scales.variances[noisy])[:, None]
            unweighted = np.linalg.pinv(rows[noisy] @ free / deviation, rcond=1e-11)
            fitted = free @ unweighted / deviation.T
            # What exact rows say is first taken out of the measured ones.
            inverse[:, exact] -= fitted @ (rows[noisy] @ inverse[:, exact])
            inverse[:, noisy] = fitted
        return inverse

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the least-squares estimate of least norm.

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows,)
            The measured rows of the matrix.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (cells,)
            The estimate of each cell.
        """
        estimate: FloatArray = self._inverse(scales) @ noisy
        return estimate

    def _spread(self, form: Fractions | Pieces, law: StrategyNoise) -> Spread:
        scales = law.scales
        asked, inverse = self._queries(form), self._inverse(scales)
        observed, noisy = scales.measured | scales.exact, scales.measured
        missed = np.abs(
            asked @ inverse[:, observed] @ self._dense_rows[observed] - asked
        )
        limit = TOLERANCE * np.maximum(np.abs(asked).max(axis=1, initial=0.0), 1e-300)
        if (missed.max(axis=1, initial=0.0) > limit).any():
            raise IntervalError(
                "the strategy matrix does not determine these answers: some query is "
                "no combination of its rows. Ask others, or measure more"
            )
        amounts = asked @ inverse[:, noisy]
        variance = amounts**2 @ scales.variances[noisy]
        widths = scales.widths[noisy]
        weighted = np.abs(amounts) * widths
        loudest = weighted.argmax(axis=1) if widths.size else np.zeros(0, np.int64)
        return Spread(
            variance=variance,
            square=(weighted**2).sum(axis=1),
            largest=weighted.max(axis=1, initial=0.0),
            steps=(amounts**2).sum(axis=1),
            width=widths[loudest] if widths.size else np.zeros(len(amounts)),
            least=scales.least,
        )

    def _queries(self, form: Fractions | Pieces) -> FloatArray:
        rows = form_matrix(form, self.cells, most=MOST_ENTRIES)
        if rows is None or rows.shape[0] * self.cells > MOST_ENTRIES:
            raise SizeError(
                "these queries are too many to follow through a strategy matrix; "
                f"queries times cells may be at most 2^22 = {MOST_ENTRIES:,}"
            )
        dense: FloatArray = rows.toarray()
        return dense

    def pack(self) -> dict[str, Any]:
        """Return the matrix and the parts."""
        shape = {"cells": self.cells, "parts": self.parts}
        return {**shape, **packed_matrix(self.matrix)}

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`."""
        shape = (np.size(data["pointers"]) - 1, int(data["cells"]))
        parts = as_parts(data.get("parts"), shape[1])
        return cls(unpacked_matrix(data, shape), parts=parts)


def _components(policy: Policy) -> tuple[IntArray, BoolArray]:
    components = policy.components()
    labels = components.labels
    if labels is None:
        labels = np.zeros(policy.domain.size, dtype=np.int64)
    if not (policy.has_moves or policy.has_bottom):
        labels = np.arange(policy.domain.size)
        return labels, np.zeros(labels.size, dtype=np.bool_)
    return labels, components.private


def _whole(matrix: Any, step: float | None) -> csr_array:
    """Return a matrix of whole numbers: the entries, or how many steps they are."""
    from scipy import sparse

    rule = "a strategy matrix must be numeric, of shape (rows, cells)"
    with malformed_as(InputError, rule):
        rows = sparse.csr_array(matrix)
        values = rows.data.astype(np.float64)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise InputError(
            f"a strategy matrix must have shape (rows, cells); received {rows.shape}"
        )
    if not np.isfinite(values).all():
        raise InputError("a strategy matrix must be finite; found NaN or infinity")
    if step is not None:
        if not (math.isfinite(step) and step > 0):
            raise InputError(f"step must be a positive number; received {step!r}")
        values = np.rint(values / step)
    elif (np.rint(values) != values).any():
        wrong = values[np.rint(values) != values][0]
        raise InputError(
            f"noise lives on the integers, so a strategy matrix must hold whole "
            f"numbers; received {wrong!r}. Give a public step to round to"
        )
    if np.abs(values).max(initial=0.0) >= 2.0**31:
        raise InputError(
            "entries of a strategy matrix must stay below 2^31; received "
            f"{np.abs(values).max():.3g}. Use a larger step"
        )
    whole: csr_array = sparse.csr_array(
        (values.astype(np.int64), rows.indices, rows.indptr), shape=rows.shape
    )
    whole.sum_duplicates()
    whole.eliminate_zeros()
    return whole
