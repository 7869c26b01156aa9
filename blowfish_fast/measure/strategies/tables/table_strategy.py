"""Measure whole contingency tables, each with noise of one scale.

    counts   | cells of table 1 | cells of table 2 | ...     nobody lists the domain
    rows     the same
    rate        w_1  w_1  w_1       w_2  w_2                 0: not measured, or exact

The entries of `counts` are the cells of the tables one after the other, in C order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn, Self

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import IntervalError, ReleaseFileError
from blowfish_fast.measure.noise import Scales, Spread, integer_weights
from blowfish_fast.measure.strategies.base import LinearStrategy
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Form

from .edge_prices import AxisSet, check_shape, edge_kinds, heaviest_edge, is_exact
from .residuals import NoisyTables, ResidualFit, cell_count


class TableStrategy(LinearStrategy):
    """Contingency tables of a wide domain, a rate for each.

    Parameters
    ----------
    sizes : tuple of int
        Cells of every attribute of the domain.
    tables : sequence of sets of attributes
        What is measured: numbers of attributes, increasing.
    shares : sequence of float
        Relative rate of each table, from 0 to 1; 0 leaves a table out unless no edge of
        the policy moves it.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> strategy = TableStrategy((2, 3), [(0,), (0, 1)], [0.5, 1.0])
    >>> policy = bf.policies.AddRemove(bf.Domain((2, 3)))
    >>> strategy.weights().size, strategy.worst_edge(strategy.weights(), policy) / 2**30
    (8, 1.5)
    """

    kind = "tables"

    def __init__(
        self,
        sizes: tuple[int, ...],
        tables: Sequence[AxisSet],
        shares: Sequence[float],
    ) -> None:
        self.sizes = tuple(sizes)
        self.tables: tuple[AxisSet, ...] = tuple(tables)
        self.shares = np.asarray(shares, dtype=np.float64)
        cells = [cell_count(self.sizes, one) for one in self.tables]
        self.cells = np.array(cells, dtype=np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.cells)]).astype(np.int64)

    @property
    def size(self) -> int:
        """Entries of `counts`: the cells of all tables."""
        return int(self.starts[-1])

    def tables_of(self, counts: IntArray) -> IntArray:
        """Return what `rows` takes, from counts of all cells of a small domain."""
        grid, every = counts.reshape(self.sizes), range(len(self.sizes))
        parts = [
            grid.sum(axis=tuple(axis for axis in every if axis not in one))
            for one in self.tables
        ]
        return np.concatenate([np.asarray(one).reshape(-1) for one in parts])

    def rows(self, counts: IntArray) -> IntArray:
        """Return the cells themselves."""
        return counts.copy()

    def weights(self) -> IntArray:
        """Give every cell of a table the table's weight."""
        return np.repeat(integer_weights(self.shares), self.cells)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark the tables that no edge moves: public attributes, and nobody absent.

        Lemma CT4.
        """
        check_shape(policy, self.sizes)
        kinds = edge_kinds(policy)
        exact = np.array([is_exact(one, kinds) for one in self.tables])
        return np.repeat(exact, self.cells)

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the heaviest edge: two cells of every table it moves, one if absent.

        Lemma CT3.

        Exact where all cells of a table weigh the same; a bound above otherwise.
        """
        check_shape(policy, self.sizes)
        heaviest = np.maximum.reduceat(weights, self.starts[:-1])
        return heaviest_edge(heaviest.tolist(), self.tables, edge_kinds(policy), power)

    def measured(self, scales: Scales) -> NoisyTables:
        """Return the noise of each table."""
        return NoisyTables.of(self.sizes, self.tables, scales, self.starts[:-1])

    def fit(self, noisy: IntArray, scales: Scales) -> ResidualFit:
        """Return the least squares fit of everything that was measured."""
        parts = np.split(noisy, self.starts[1:-1])
        shapes = ([self.sizes[axis] for axis in one] for one in self.tables)
        values = [one.reshape(shape) for one, shape in zip(parts, shapes, strict=True)]
        return ResidualFit(self.measured(scales), values)

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the estimate of every measured table, one after the other."""
        fit = self.fit(noisy, scales)
        known = np.isfinite(fit.measured.variances)
        tables = zip(self.tables, known, self.cells, strict=True)
        return np.concatenate(
            [
                fit.table(one).reshape(-1) if measured else np.zeros(cells)
                for one, measured, cells in tables
            ]
        )

    def spread(self, form: Form, scales: Scales) -> Spread:
        """Refuse: queries are asked of one table (`TableNoise`)."""
        self._refuse()

    def total_variance(self, form: Form, scales: Scales) -> float:
        """Refuse: queries are asked of one table (`TableNoise`)."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise IntervalError(
            "queries are asked of one table at a time",
            way_out='Write release.table("age", "sex") first',
        )

    def pack(self) -> dict[str, Any]:
        """Return sizes, tables and their shares."""
        return {
            "sizes": list(self.sizes),
            "tables": [list(one) for one in self.tables],
            "shares": self.shares,
        }

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`."""
        sizes = tuple(int(one) for one in data["sizes"])
        tables = [tuple(int(axis) for axis in one) for one in data["tables"]]
        shares = np.asarray(data["shares"], dtype=np.float64)
        for one in tables:
            inside = all(0 <= axis < len(sizes) for axis in one)
            if not inside or list(one) != sorted(set(one)):
                raise ReleaseFileError("a table names attributes that are not there")
        if min(sizes) < 1 or shares.shape != (len(tables),):
            raise ReleaseFileError("tables, sizes and shares do not fit together")
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ReleaseFileError("a table's share lies outside 0 to 1")
        if (
            math.prod(sizes) < 1
            or sum(cell_count(sizes, one) for one in tables) > 2**40
        ):
            raise ReleaseFileError("the tables are larger than any that are written")
        return cls(sizes, tables, shares.tolist())
