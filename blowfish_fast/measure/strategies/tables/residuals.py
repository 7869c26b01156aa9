"""Least squares over noisy contingency tables, by residuals, in closed form.

Every table splits into orthogonal parts, one per subset S of its attributes: what S
says beyond its own subsets. Gram matrices of tables act on each part as one number, so
the normal equations are diagonal and no matrix is built:

    table (a, b)  =  r_()  +  r_a  +  r_b  +  r_ab         each spread evenly
    information   I_S = sum over measured A containing S of 1 / (V_A N(A without S))

``docs/proofs/contingency.md`` has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import IntervalError
from blowfish_fast.measure.noise import Scales

AxisSet = tuple[int, ...]
"""Attributes of a table, by number, increasing."""

LEAST_VARIANCE = 1e-100


def subsets(table: AxisSet) -> Iterator[AxisSet]:
    """Yield every subset of a set of attributes, small ones first, () included."""
    for size in range(len(table) + 1):
        yield from combinations(table, size)


def cell_count(sizes: Sequence[int], table: Iterable[int]) -> int:
    """Return the number of cells of a table."""
    return math.prod(sizes[axis] for axis in table)


def closure(tables: Iterable[AxisSet]) -> list[AxisSet]:
    """Return all subsets of some tables, small ones first."""
    found = {part for one in tables for part in subsets(one)}
    return sorted(found, key=lambda one: (len(one), one))


class NoisyTables:
    """Tables as they were measured: one scale each, exact ones marked.

    `sizes` has the cells of every attribute of the domain; for each table `variances`
    has that of a cell, infinite where it was not measured, and `widths` its scale.
    """

    def __init__(
        self,
        sizes: tuple[int, ...],
        tables: tuple[AxisSet, ...],
        variances: FloatArray,
        widths: FloatArray,
        exact: BoolArray,
    ) -> None:
        self.sizes = sizes
        self.tables = tables
        self.variances = variances
        self.widths = widths
        self.exact = exact

    @classmethod
    def of(
        cls,
        sizes: tuple[int, ...],
        tables: tuple[AxisSet, ...],
        scales: Scales,
        starts: IntArray,
    ) -> NoisyTables:
        """Read one scale per table from those of its first rows."""
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
        cells = [cell_count(self.sizes, one) for one in self.tables]
        return np.array(cells, dtype=np.float64)

    @cached_property
    def _noisy(self) -> BoolArray:
        return np.isfinite(self.variances) & ~self.exact

    @cached_property
    def _inverse(self) -> FloatArray:
        """1 / (V_A N(A)) where a table carries noise, else 0."""
        inverse = np.zeros(self._cells.size)
        known = self._noisy
        # Far below any noise that matters, and its square is still a number.
        least = np.maximum(self.variances[known], LEAST_VARIANCE)
        inverse[known] = 1.0 / (least * self._cells[known])
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

    def _holding(self, part: AxisSet) -> BoolArray:
        """Mark the tables that hold all attributes of a part."""
        marked: BoolArray = self.holds[:, list(part)].sum(axis=1) == len(part)
        return marked

    def information(self, part: AxisSet) -> float:
        """Return I_S: infinite where S is known exactly, 0 where nothing is known."""
        holding = self._holding(part)
        if (holding & self.exact).any():
            return math.inf
        within = cell_count(self.sizes, part)
        return float(self._inverse[holding].sum()) * within

    def square_share(self, part: AxisSet, information: float) -> float:
        """Return the squares of scales that reach S: as 1 / I_S, for b^2 in place of V.

        The sum over measured A of b_A^2 / (V_A^2 N(A without S)), over I_S^2.
        """
        if not 0.0 < information < math.inf:
            return 0.0
        holding = self._holding(part)
        shares = self.pulls[holding] ** 2 * self._cells[holding]
        return float(shares.sum()) * cell_count(self.sizes, part) / information**2

    def spare_cells(self, table: AxisSet, part: AxisSet) -> float:
        """Return N(A without S): cells of a table per cell of a part of it."""
        return cell_count(self.sizes, table) / cell_count(self.sizes, part)


class ResidualFit:
    """The least squares estimate of every table that the measured ones determine.

    `values` are the noisy tables, in the order and shape of ``measured.tables``.

    Examples
    --------
    >>> none = np.zeros(2, dtype=bool)
    >>> one = NoisyTables((2, 2), ((0,), (0, 1)), np.ones(2), np.ones(2), none)
    >>> fit = ResidualFit(one, [np.array([3, 6]), np.array([[1, 1], [2, 2]])])
    >>> fit.table((0,)).round(2).tolist(), fit.table((1,)).round(2).tolist()
    ([2.67, 5.33], [4.0, 4.0])
    """

    def __init__(self, measured: NoisyTables, values: Sequence[IntArray]) -> None:
        self.measured = measured
        self._values = values
        self._residuals: dict[AxisSet, FloatArray] = {}
        self._information: dict[AxisSet, float] = {}

    def information(self, part: AxisSet) -> float:
        """Return I_S, computed once."""
        if part not in self._information:
            self._information[part] = self.measured.information(part)
        return self._information[part]

    def prepare(self, parts: Iterable[AxisSet]) -> None:
        """Compute residuals of several sets together: each table is read once.

        O(2^k cells) over the measured tables of k attributes.
        """
        wanted = [one for one in parts if one not in self._residuals]
        if not wanted:
            return
        shape = self.measured.sizes
        sums = {
            one: np.zeros([shape[axis] for axis in one])
            for one in sorted(wanted, key=len, reverse=True)
        }
        for number, table in enumerate(self.measured.tables):
            variance = float(self.measured.variances[number])
            if not math.isfinite(variance):
                continue
            inside = set(table)
            own = [one for one in sums if inside.issuperset(one)]
            if not own:
                continue
            found = {table: self._values[number].astype(np.float64)}
            for part in own:
                total = _sum_down(found, table, part)
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
        return next(one for one, exact in rows if exact and set(part) <= set(one))

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
    """Refuse a table that no measured table contains: its error has no bound."""
    if information <= 0:
        raise IntervalError(
            "a table is answered where a measured table holds all its attributes",
            received=f"attributes {table}, which were measured apart",
            way_out="Ask for this table in workloads.Tables before the release",
        )


def _sum_down(
    found: dict[AxisSet, FloatArray], table: AxisSet, part: AxisSet
) -> FloatArray:
    """Sum a table down to a part of it, from the smallest sum known so far."""
    if part in found:
        return found[part]
    source = table
    for axis in table:
        larger = tuple(sorted({*part, axis}))
        known = axis not in part and larger in found
        if known and found[larger].size < found[source].size:
            source = larger
    dropped = tuple(at for at, axis in enumerate(source) if axis not in part)
    found[part] = found[source].sum(axis=dropped)
    return found[part]


def _project(values: FloatArray) -> FloatArray:
    """Take out of a table what its own sub-tables say: means along every axis."""
    for axis in range(values.ndim):
        values = values - values.mean(axis=axis, keepdims=True)
    return values
