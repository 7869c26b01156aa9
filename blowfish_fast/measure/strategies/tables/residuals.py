"""Least squares over noisy contingency tables, by residuals, and the noise it leaves.

Every table splits into orthogonal parts r_S, one per subset S of its attributes: what S
says beyond its own subsets. The noise in a table of k attributes is known from 2^k
numbers of three kinds: I_S, where 1 / I_S is the variance of r_S; h_S, the same with
b^2 in place of the variance; and K_T, the largest b_B / (V_B N(B)) of tables B that
meet A in T. Proof: ``docs/proofs/contingency.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NoReturn, Self

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import IntervalError, ReleaseFileError, SizeError
from blowfish_fast.measure.linear_strategy import LinearStrategy, StrategyNoise
from blowfish_fast.measure.noise import Scales, Spread
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Fractions, Implicit, Pieces
from blowfish_fast.workloads.base import form_matrix, row_moments

AxisSet = tuple[int, ...]
"""Attributes of a table, by number, increasing."""

LEAST_VARIANCE = 1e-100
MOST_COEFFICIENTS = 2**26
ENTRIES_AT_ONCE = 2**21
"""Coefficients of queries that are spread out at a time."""
MOST_ATTRIBUTES = 16


def subsets(table: AxisSet) -> Iterator[AxisSet]:
    """Yield every subset of a set of attributes, small ones first, () included."""
    for size in range(len(table) + 1):
        yield from combinations(table, size)


def cell_count(sizes: Sequence[int], table: Iterable[int]) -> int:
    """Return the number of cells of a table.

    Parameters
    ----------
    sizes : Sequence[int]
        Cells of every attribute of the domain.
    table : Iterable[int]
        The attributes of the table.

    Returns
    -------
    int
        The number.
    """
    return math.prod(sizes[axis] for axis in table)


def closure(tables: Iterable[AxisSet]) -> list[AxisSet]:
    """Return all subsets of some tables, small ones first."""
    parts = {part for table_or_part in tables for part in subsets(table_or_part)}
    return sorted(parts, key=lambda table_or_part: (len(table_or_part), table_or_part))


@dataclass(eq=False)
class NoisyTables:
    """Tables as they were measured: one scale each, exact ones marked.

    Attributes
    ----------
    sizes : tuple[int, ...]
        Cells of every attribute of the domain.
    tables : tuple[AxisSet, ...]
        The attributes of each table.
    variances : ndarray of float64, shape (tables,)
        Variance of a cell; infinite where a table was not measured.
    widths : ndarray of float64, shape (tables,)
        Scale of its noise.
    exact : ndarray of bool, shape (tables,)
        Which tables have no noise.
    """

    sizes: tuple[int, ...]
    tables: tuple[AxisSet, ...]
    variances: FloatArray
    widths: FloatArray
    exact: BoolArray

    def __post_init__(self) -> None:
        self._laws: dict[AxisSet, tuple[float, float]] = {}

    @classmethod
    def of(
        cls,
        sizes: tuple[int, ...],
        tables: tuple[AxisSet, ...],
        scales: Scales,
        starts: IntArray,
    ) -> NoisyTables:
        """Read one scale per table from those of its first rows.

        Parameters
        ----------
        sizes : tuple[int, ...]
            Cells of every attribute of the domain.
        tables : tuple[AxisSet, ...]
            The attributes of each table.
        scales : Scales
            The noise of all rows.
        starts : ndarray of int64, shape (tables,)
            The first row of each table.

        Returns
        -------
        NoisyTables
            The tables.
        """
        first = scales._replace(rates=scales.rates[starts], exact=scales.exact[starts])
        return cls(sizes, tables, first.variances, first.widths, first.exact)

    @cached_property
    def holds(self) -> IntArray:
        """1 where a table (row) holds an attribute (column)."""
        holds = np.zeros((len(self.tables), len(self.sizes)), dtype=np.int64)
        for number, table in enumerate(self.tables):
            holds[number, list(table)] = 1
        return holds

    @cached_property
    def _cells(self) -> FloatArray:
        cells = [cell_count(self.sizes, table) for table in self.tables]
        return np.array(cells, dtype=np.float64)

    @cached_property
    def _noisy(self) -> BoolArray:
        return np.isfinite(self.variances) & ~self.exact

    @cached_property
    def _inverse(self) -> FloatArray:
        """1 / (V_A N(A)) where a table carries noise, else 0."""
        inverse = np.zeros(self._cells.size)
        noisy = self._noisy
        # Far below any noise that matters, and its square is still a number.
        least = np.maximum(self.variances[noisy], LEAST_VARIANCE)
        inverse[noisy] = 1.0 / (least * self._cells[noisy])
        return inverse

    @cached_property
    def pulls(self) -> FloatArray:
        """Return b_A / (V_A N(A)), which a draw's coefficient is in proportion to."""
        return self.widths * self._inverse

    @property
    def least(self) -> float:
        """Smallest scale of any draw; 0 where there is none."""
        drawn = self.widths[self.widths > 0]
        return float(drawn.min()) if drawn.size else 0.0

    def information(self, part: AxisSet) -> float:
        """Return I_S: infinite where S is known exactly, 0 where nothing is known."""
        return self.law(part)[0]

    def law(self, part: AxisSet) -> tuple[float, float]:
        """Return I_S and h_S, computed once.

        h_S is the sum of b_A^2 / (V_A^2 N(A without S)) over I_S^2: scales at S.
        """
        if part not in self._laws:
            holding = self.holds[:, list(part)].sum(axis=1) == len(part)
            within = cell_count(self.sizes, part)
            information = float(self._inverse[holding].sum()) * within
            information = math.inf if (holding & self.exact).any() else information
            squares = 0.0
            if 0.0 < information < math.inf:
                shares = self.pulls[holding] ** 2 * self._cells[holding]
                squares = float(shares.sum()) * within / information**2
            self._laws[part] = information, squares
        return self._laws[part]

    def spare_cells(self, table: AxisSet, part: AxisSet) -> float:
        """Return N(A without S): cells of a table per cell of a part of it.

        Parameters
        ----------
        table : AxisSet
            The attributes A.
        part : AxisSet
            Some of them, S.

        Returns
        -------
        float
            The number.
        """
        return cell_count(self.sizes, table) / cell_count(self.sizes, part)


class ResidualFit:
    """The least squares estimate of every table that the measured ones determine.

    Parameters
    ----------
    measured : NoisyTables
        The tables and their noise.
    values : Sequence[ndarray of int64]
        The noisy tables, in the order and shape of ``measured.tables``.
    """

    def __init__(self, measured: NoisyTables, values: Sequence[IntArray]) -> None:
        self.measured = measured
        self._values = values
        self._residuals: dict[AxisSet, FloatArray] = {}
        # I_S, computed once.
        self.information = measured.information

    def prepare(self, parts: Iterable[AxisSet]) -> None:
        """Compute residuals of several sets together: each table is read once."""
        wanted = [part for part in parts if part not in self._residuals]
        if not wanted:
            return
        shape = self.measured.sizes
        sums = {
            part: np.zeros([shape[axis] for axis in part])
            for part in sorted(wanted, key=len, reverse=True)
        }
        for number, table in enumerate(self.measured.tables):
            variance = float(self.measured.variances[number])
            if not math.isfinite(variance):
                continue
            inside = set(table)
            own = [part for part in sums if inside.issuperset(part)]
            if not own:
                continue
            tables = {table: self._values[number].astype(np.float64)}
            for part in own:
                total = _sum_down(tables, table, part)
                weight = self._weight(table, part, variance)
                if weight:
                    sums[part] += weight * total
        for part, total in sums.items():
            self._residuals[part] = _project(total)

    def _weight(self, table: AxisSet, part: AxisSet, variance: float) -> float:
        """Return the share of a measured table in the estimate of a residual."""
        information = self.information(part)
        if math.isinf(information):
            return 1.0 if self._known_from(part) == table else 0.0
        spare = self.measured.spare_cells(table, part)
        return 1.0 / (max(variance, LEAST_VARIANCE) * spare * information)

    def _known_from(self, part: AxisSet) -> AxisSet:
        """Return the first exact table that holds a part."""
        rows = zip(self.measured.tables, self.measured.exact, strict=True)
        return next(table for table, exact in rows if exact and set(part) <= set(table))

    def table(self, table: AxisSet) -> FloatArray:
        """Return the estimate of a table; refused where nothing measured holds it."""
        refuse_unmeasured(self.information(table), table)
        self.prepare(subsets(table))
        sizes = self.measured.sizes
        estimate = np.zeros([sizes[axis] for axis in table])
        for part in subsets(table):
            shape = [sizes[axis] if axis in part else 1 for axis in table]
            spare = self.measured.spare_cells(table, part)
            estimate += self._residuals[part].reshape(shape) / spare
        return estimate


def refuse_unmeasured(information: float, table: AxisSet) -> None:
    """Refuse a table that no measured table contains: its error has no bound.

    Parameters
    ----------
    information : float
        What was measured of the table; 0 for nothing.
    table : AxisSet
        Its attributes.

    Raises
    ------
    IntervalError
        If nothing was measured.
    """
    if information <= 0:
        raise IntervalError(
            "a table is answered where a measured table holds all its attributes",
            received=f"attributes {table}, which were measured apart",
            way_out="Ask for this table in workloads.Tables before the release",
        )


def _sum_down(
    tables: dict[AxisSet, FloatArray], table: AxisSet, part: AxisSet
) -> FloatArray:
    """Sum a table down to a part of it, from the smallest sum known so far."""
    if part in tables:
        return tables[part]
    source = table
    for axis in table:
        larger = tuple(sorted({*part, axis}))
        is_summed = axis not in part and larger in tables
        if is_summed and tables[larger].size < tables[source].size:
            source = larger
    dropped = tuple(at for at, axis in enumerate(source) if axis not in part)
    tables[part] = tables[source].sum(axis=dropped)
    return tables[part]


def _project(values: FloatArray) -> FloatArray:
    """Take out of a table what its own sub-tables say: means along every axis."""
    for axis in range(values.ndim):
        values = values - values.mean(axis=axis, keepdims=True)
    return values


class TableNoise(LinearStrategy):
    """What is known of the noise in one estimated table, which has no rows of its own.

    Subset number s holds attribute i where bit i of s is set.

    Parameters
    ----------
    shape : tuple[int, ...]
        Cells of each of the table's k attributes.
    information : ndarray of float64, shape (2^k,)
        I_S of the head of this file.
    squares : ndarray of float64, shape (2^k,)
        h_S.
    pulls : ndarray of float64, shape (2^k,)
        K_T.
    least : float, default 0.0
        The smallest scale of any draw; 0 where there is none.
    gaussian_draws : int, default 0
        Number of draws of Gaussian noise; 0 for Laplace noise.

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
        """Return the law for one table; refused where nothing measured holds it.

        Parameters
        ----------
        measured : NoisyTables
            The tables and their noise.
        table : AxisSet
            The attributes.
        gaussian_draws : int, default 0
            Number of draws of Gaussian noise; 0 for Laplace noise.

        Returns
        -------
        Self
            The law.

        Raises
        ------
        IntervalError
            If no measured table holds all these attributes.
        """
        # Subsets in the order of their bits.
        parts = [
            tuple(axis for at, axis in enumerate(table) if part >> at & 1)
            for part in range(2 ** len(table))
        ]
        information, squares = np.array([measured.law(part) for part in parts]).T
        refuse_unmeasured(float(information[-1]), table)
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
        return np.array([float(math.prod(lengths)) for lengths in sides])

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

    def _spread(self, form: Fractions | Pieces, law: StrategyNoise) -> Spread:
        """Return the law over the table's cells; in closed form for single cells."""
        moments = row_moments(form, self.cells)
        single = (moments.total == 1.0) & (moments.squares == 1.0)
        single &= (moments.largest == 1.0) & (moments.least >= 0.0)
        parts = [np.zeros(single.size) for _ in range(3)]
        if single.any():
            for target, value in zip(parts, self._cell_spread(), strict=True):
                target[single] = value
        if not single.all():
            self._fill_others(form, np.flatnonzero(~single), parts)
        spread = Spread.bounded(parts[0], parts[1], parts[2], self.least)
        return spread._replace(gaussian_rows=self.gaussian_draws)

    def _cell_spread(self) -> tuple[float, float, float]:
        """Return variance, squares and largest of one cell, by agreement patterns."""
        norms = self._cell_norms() / self._spare**2
        square = float((self.squares * norms).sum())
        terms = self._within / self._spare * self._variances
        largest = 0.0
        for meeting in np.flatnonzero(self.pulls):
            inside = [at for at in range(len(self.shape)) if meeting >> at & 1]
            for agree in subsets(tuple(inside)):
                change = self._agreement(terms, inside, agree)
                largest = max(largest, abs(change) * float(self.pulls[meeting]))
        return self.cell_variance(), square, largest

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
            parts = [part for part in range(len(norms)) if part & meeting == part]
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

    def _implicit_variance(self, form: Implicit, law: StrategyNoise) -> float:
        if form.kind != "identity":
            return super()._implicit_variance(form, law)
        return self.cell_variance() * self.cells

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
        """Refuse: the tables that it comes from were charged for.

        Parameters
        ----------
        weights : ndarray of int64, shape (rows,)
            Not read.
        policy : Policy
            Not read.
        power : int, default 1
            Not read.

        Returns
        -------
        int
            Nothing is ever returned.

        Raises
        ------
        IntervalError
            Always.
        """
        self._refuse()

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Refuse: the estimate was made from all measured tables.

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows,)
            Not read.
        scales : Scales
            Not read.

        Returns
        -------
        ndarray of float64
            Nothing is ever returned.

        Raises
        ------
        IntervalError
            Always.
        """
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise IntervalError(
            "this table was estimated from several measured ones, which the release of "
            "all tables holds"
        )

    def pack(self) -> dict[str, Any]:
        """Return the shape and three arrays."""
        names = ("information", "squares", "pulls", "least", "gaussian_draws")
        arrays = {name: getattr(self, name) for name in names}
        return {"shape": list(self.shape), **arrays}

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`."""
        shape = tuple(int(size) for size in data["shape"])
        if not 0 < len(shape) <= MOST_ATTRIBUTES or min(shape) < 1:
            raise ReleaseFileError("a table has a shape that no table has")
        names = ("information", "squares", "pulls")
        arrays = [np.asarray(data[name], dtype=np.float64) for name in names]
        if any(array.shape != (2 ** len(shape),) for array in arrays):
            raise ReleaseFileError("the law of a table's noise does not fit its shape")
        least, draws = float(data["least"]), int(data["gaussian_draws"])
        possible = all((array >= 0).all() for array in arrays) and (arrays[0] > 0).all()
        if not possible or not 0.0 <= least < math.inf:
            raise ReleaseFileError("a table's noise has a law of impossible numbers")
        return cls(shape, arrays[0], arrays[1], arrays[2], least, max(draws, 0))
