"""The law of the noise in one table that was estimated from many.

The estimate of table A is off by a sum over all draws in all measured tables. It splits
by subsets S of A into parts that are uncorrelated, and how a draw at cell u of table B
enters depends on A and B together and on the attributes in which u agrees. So 2^k
numbers per kind say everything about a table of k attributes:

    subset   ()     (a)    (b)    (a, b)
    I_S      ...    ...    ...    ...      information: 1 / I_S is the variance of r_S
    h_S      ...    ...    ...    ...      the same with b^2 in place of the variance
    K_T      ...    ...    ...    ...      largest b_B / (V_B N(B)) of B meeting A in T
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import IntervalError, ReleaseFileError, SizeError
from blowfish_fast.measure.noise import Scales, Spread
from blowfish_fast.measure.strategies.base import LinearStrategy
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Form, Fractions, Implicit, Pieces
from blowfish_fast.workloads.base import form_matrix, row_moments

from .residuals import AxisSet, NoisyTables, refuse_unmeasured, subsets

MOST_COEFFICIENTS = 2**26
ENTRIES_AT_ONCE = 2**21
"""Coefficients of queries that are spread out at a time."""
MOST_ATTRIBUTES = 16


class TableNoise(LinearStrategy):
    """What is known of the noise in one estimated table; nothing is measured by it.

    It stands in a `Release` of one table for the measurements of all tables, and has no
    rows of its own.

    Parameters
    ----------
    shape : tuple of int
        Cells along each attribute of the table.
    information, squares, pulls : (2^k,) float64
        I_S, h_S and K_T; subset number s holds attribute i where bit i of s is set.
    least : float
        Smallest scale of any draw; 0 where there is none.
    gaussian_draws : int
        How many draws there are, where they are Gaussian; 0 where they are Laplace.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> one = TableNoise((3,), np.array([4.0, 2.0]), np.zeros(2), np.zeros(2))
    >>> from blowfish_fast.data.buckets import Buckets
    >>> cells = bf.workloads.Identity(bf.Domain(3))
    >>> form = cells.explicit_form(Buckets.single_cells(3))
    >>> none = Scales(np.zeros(0, np.int64), 1, np.zeros(0, bool))
    >>> one.spread(form, none).variance.round(4).tolist()
    [0.3611, 0.3611, 0.3611]
    """

    kind = "table_noise"
    refuses_undetermined = True

    def __init__(
        self,
        shape: tuple[int, ...],
        information: FloatArray,
        squares: FloatArray,
        pulls: FloatArray,
        least: float = 0.0,
        gaussian_draws: int = 0,
    ) -> None:
        self.shape = tuple(shape)
        self.information = information
        self.squares = squares
        self.pulls = pulls
        self.least = least
        self.gaussian_draws = gaussian_draws

    @classmethod
    def of(cls, measured: NoisyTables, table: AxisSet, gaussian_draws: int = 0) -> Self:
        """Return the law for `table`; refused where nothing measured holds it."""
        parts = _numbered(table)
        information = np.array([measured.information(part) for part in parts])
        refuse_unmeasured(float(information[-1]), table)
        squares = np.array(
            [
                measured.square_share(part, float(known))
                for part, known in zip(parts, information, strict=True)
            ]
        )
        pulls = np.zeros(2 ** len(table))
        meeting = measured.holds[:, list(table)] @ (1 << np.arange(len(table)))
        np.maximum.at(pulls, meeting, measured.pulls)
        shape = tuple(measured.sizes[axis] for axis in table)
        return cls(shape, information, squares, pulls, measured.least, gaussian_draws)

    @property
    def cells(self) -> int:
        """Cells of the table."""
        return math.prod(self.shape)

    @cached_property
    def _spare(self) -> FloatArray:
        """Cells of the table per cell of each subset: N(A without S)."""
        return self.cells / self._within

    @cached_property
    def _within(self) -> FloatArray:
        """Cells of each subset: N(S)."""
        sides = [
            [side for at, side in enumerate(self.shape) if part >> at & 1]
            for part in range(self.information.size)
        ]
        return np.array([float(math.prod(one)) for one in sides])

    @cached_property
    def _variances(self) -> FloatArray:
        """1 / I_S; 0 where a residual is known exactly."""
        return 1.0 / self.information

    def cell_variance(self) -> float:
        """Return the variance of any one cell, the same for all."""
        return float((self._variances * self._cell_norms() / self._spare**2).sum())

    def _cell_norms(self) -> FloatArray:
        """Return what a single cell keeps in each residual: prod of 1 - 1/n."""
        norms = np.ones(1)
        for side in self.shape:
            norms = np.concatenate([norms, norms * (1.0 - 1.0 / side)])
        return norms

    def spread(self, form: Form, scales: Scales) -> Spread:
        """Return the law of each query's noise over the table's cells.

        Single cells by closed formulas; `largest` is exact for them and a bound above
        for other queries. O(queries x cells x 2^k) for those.
        """
        if isinstance(form, Implicit):
            raise IntervalError("list the queries first: use explicit_form")
        moments = row_moments(form, self.cells)
        single = (moments.total == 1.0) & (moments.squares == 1.0)
        single &= (moments.largest == 1.0) & (moments.least >= 0.0)
        law = [np.zeros(single.size) for _ in range(3)]
        if single.any():
            for target, value in zip(law, self._cell_spread(), strict=True):
                target[single] = value
        if not single.all():
            self._fill_others(form, np.flatnonzero(~single), law)
        known = Spread.bounded(law[0], law[1], law[2], self.least)
        return known._replace(gaussian_rows=self.gaussian_draws)

    def _cell_spread(self) -> tuple[float, float, float]:
        """Return variance, squares and largest of one cell, by agreement patterns."""
        norms = self._cell_norms() / self._spare**2
        variance = float((self._variances * norms).sum())
        square = float((self.squares * norms).sum())
        terms = self._within / self._spare * self._variances
        largest = 0.0
        for meeting in np.flatnonzero(self.pulls):
            inside = [at for at in range(len(self.shape)) if meeting >> at & 1]
            for agree in subsets(tuple(inside)):
                change = self._agreement(terms, inside, agree)
                largest = max(largest, abs(change) * float(self.pulls[meeting]))
        return variance, square, largest

    def _agreement(
        self, terms: FloatArray, inside: list[int], agree: tuple[int, ...]
    ) -> float:
        """Return the coefficient of a draw whose cell agrees in `agree` alone."""
        factors, numbers = np.ones(1), np.zeros(1, dtype=np.int64)
        for at in inside:
            factor = float(at in agree) - 1.0 / self.shape[at]
            factors = np.concatenate([factors, factors * factor])
            numbers = np.concatenate([numbers, numbers | 1 << at])
        return float((terms[numbers] * factors).sum())

    def _fill_others(
        self, form: Fractions | Pieces, rows: IntArray, law: list[FloatArray]
    ) -> None:
        matrix = form_matrix(form, self.cells, most=MOST_COEFFICIENTS)
        if matrix is None:
            raise SizeError(
                "these queries cover more than 2^26 cells in all; ask fewer at a time"
            )
        at_once = max(1, ENTRIES_AT_ONCE // self.cells)
        for first in range(0, rows.size, at_once):
            part = rows[first : first + at_once]
            queries = matrix[part].toarray().reshape(-1, *self.shape)
            for target, value in zip(law, self._query_spread(queries), strict=True):
                target[part] = value

    def _query_spread(self, queries: FloatArray) -> tuple[FloatArray, ...]:
        """Return variance, squares and a bound on the largest draw of dense queries."""
        norms = np.zeros((self.information.size, len(queries)))
        heights = np.zeros_like(norms)
        for part in range(self.information.size):
            residual = self._residual(queries, part).reshape(len(queries), -1)
            norms[part] = (residual**2).sum(axis=1) / self._spare[part] ** 2
            heights[part] = np.abs(residual).max(axis=1)
        # Rounding of a query that a residual does not see.
        norms[norms < 1e-24 * norms.max(axis=0, initial=0.0)] = 0.0
        heights *= (self._within / self._spare * self._variances)[:, None]
        largest = np.zeros(len(queries))
        for meeting in np.flatnonzero(self.pulls):
            parts = [one for one in range(len(norms)) if one & meeting == one]
            reach = self.pulls[meeting] * heights[parts].sum(axis=0)
            largest = np.maximum(largest, reach)
        return self._variances @ norms, self.squares @ norms, largest

    def _residual(self, queries: FloatArray, part: int) -> FloatArray:
        """Return P_S q_S: sums over the attributes of S, less their means."""
        sides = range(len(self.shape))
        dropped = tuple(1 + at for at in sides if not part >> at & 1)
        sums: FloatArray = queries.sum(axis=dropped)
        for axis in range(1, sums.ndim):
            sums = sums - sums.mean(axis=axis, keepdims=True)
        return sums

    def total_variance(self, form: Form, scales: Scales) -> float:
        """Return the variance summed over all queries."""
        if isinstance(form, Implicit):
            if form.kind != "identity":
                raise IntervalError("list the queries first: use explicit_form")
            return self.cell_variance() * self.cells
        return float(self.spread(form, scales).variance.sum())

    def rows(self, counts: IntArray) -> IntArray:
        """Return nothing: the table was estimated from others."""
        return np.zeros(0, dtype=np.int64)

    def weights(self) -> IntArray:
        """Return nothing: there are no rows."""
        return np.zeros(0, dtype=np.int64)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Return nothing: there are no rows."""
        return np.zeros(0, dtype=np.bool_)

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Refuse: the tables that it comes from were charged for."""
        self._refuse()

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Refuse: the estimate was made from all measured tables."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise IntervalError(
            "this table was estimated from several measured ones, which the release of "
            "all tables holds"
        )

    def pack(self) -> dict[str, Any]:
        """Return the shape and three arrays."""
        names = ("information", "squares", "pulls", "least", "gaussian_draws")
        known = {name: getattr(self, name) for name in names}
        return {"shape": list(self.shape), **known}

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`."""
        shape = tuple(int(one) for one in data["shape"])
        if not 0 < len(shape) <= MOST_ATTRIBUTES or min(shape) < 1:
            raise ReleaseFileError("a table has a shape that no table has")
        names = ("information", "squares", "pulls")
        arrays = [np.asarray(data[name], dtype=np.float64) for name in names]
        if any(one.shape != (2 ** len(shape),) for one in arrays):
            raise ReleaseFileError("the law of a table's noise does not fit its shape")
        least, draws = float(data["least"]), int(data["gaussian_draws"])
        possible = all((one >= 0).all() for one in arrays) and (arrays[0] > 0).all()
        if not possible or not 0.0 <= least < math.inf:
            raise ReleaseFileError("a table's noise has a law of impossible numbers")
        return cls(shape, arrays[0], arrays[1], arrays[2], least, max(draws, 0))


def _numbered(table: AxisSet) -> list[AxisSet]:
    """Return the subsets in the order of their bits."""
    return [
        tuple(axis for at, axis in enumerate(table) if part >> at & 1)
        for part in range(2 ** len(table))
    ]
