"""Tables without negatives, and records whose tables they are; free, and biased.

Tables are raked to their margins from the top down, because clipping large tables first
adds its bias up in all their sums. Attributes are drawn one after another, given one or
two before them, by what dependence is seen above the noise; then records move between
cells until all two-way tables fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.domain import Attributes
from blowfish_fast.data.frames import Table
from blowfish_fast.data.records import domain_with_rules, place_blocks
from blowfish_fast.errors import InputError
from blowfish_fast.measure.strategies.tables.residuals import AxisSet
from blowfish_fast.release.synthetic import (
    draw_values,
    non_negative_shares,
    record_count,
)

ROUNDS = 12
MIXED = 0.02
"""Part of the product of one-way tables mixed in, so that raking can reach any cell."""
SWEEPS = 12
MOST_PARENTS = 2
CLOSEST = 3
"""Candidates among which pairs of parents are tried."""
DOUBT = 0.4
"""How much of the noise is held against a dependence."""

Cells = npt.NDArray[np.int32]


class RakedTables:
    """Non-negative tables, each fitted when it is first asked for.

    `information` on residuals is infinite where a table is exact.
    """

    def __init__(
        self,
        linear: Callable[[AxisSet], FloatArray],
        total: float,
        information: Callable[[AxisSet], float],
    ) -> None:
        self.linear = linear
        self.total = total
        self.information = information
        self._fitted: dict[AxisSet, FloatArray] = {}

    def table(self, axes: AxisSet) -> FloatArray:
        """Return the fitted table of some attributes."""
        if axes not in self._fitted:
            self._fitted[axes] = self._fit(axes)
        return self._fitted[axes]

    def _fit(self, axes: AxisSet) -> FloatArray:
        linear = self.linear(axes)
        if math.isinf(self.information(axes)):
            return linear
        shares = non_negative_shares(linear.reshape(-1), self.total)
        shares = shares.reshape(linear.shape)
        if len(axes) == 1 or self.total <= 0:
            return shares
        mixed = (1.0 - MIXED) * shares + MIXED * self._product(axes)
        margins = [
            (tuple(at for at, axis in enumerate(axes) if axis not in part), part)
            for part in combinations(axes, len(axes) - 1)
        ]
        return _rake(mixed, [(dropped, self.table(part)) for dropped, part in margins])

    def _product(self, axes: AxisSet) -> FloatArray:
        """Return the table in which the attributes are independent."""
        product = np.array(self.total)
        for axis in axes:
            product = np.multiply.outer(product, self.table((axis,)) / self.total)
        return product


def _rake(
    values: FloatArray, margins: list[tuple[tuple[int, ...], FloatArray]]
) -> FloatArray:
    """Scale a table to each of its margins in turn, some rounds."""
    for _ in range(ROUNDS):
        for dropped, goal in margins:
            now = values.sum(axis=dropped, keepdims=True)
            shape = now.shape
            scale = np.divide(
                goal.reshape(shape), now, out=np.zeros(shape), where=now > 0
            )
            values = values * scale
    return values


class TableSources(NamedTuple):
    """Fitted tables that records are drawn from, and how noisy each was."""

    sizes: tuple[int, ...]
    tables: tuple[AxisSet, ...]
    raked: RakedTables
    deviation: Callable[[AxisSet], float]


def sample_cells(
    sources: TableSources, count: Any, generator: np.random.Generator
) -> Cells:
    """Return synthetic records as cell numbers, shape (attributes, records)."""
    total = sources.raked.total
    records = record_count(total, count)
    columns = np.zeros((len(sources.sizes), records), dtype=np.int32)
    if records == 0 or total <= 0:
        return columns
    for axis, parents in _order(sources):
        columns[axis] = _draw_given(sources, columns, axis, parents, generator)
    pairs = [one for one in sources.tables if len(one) == 2]
    goals = [sources.raked.table(one).reshape(-1) * (records / total) for one in pairs]
    seed = int(generator.integers(2**62))
    kernels.exchange_records(columns, sources.sizes, pairs, goals, SWEEPS, seed)
    return columns


def _order(sources: TableSources) -> list[tuple[int, AxisSet]]:
    """Return attributes in the order in which they are drawn, with their parents."""
    known = set(sources.tables)
    left = {axis for axis in range(len(sources.sizes)) if (axis,) in known}
    pairs = {one: _dependence(sources, one, one[1]) for one in known if len(one) == 2}

    def strength(one: int, other: int) -> float:
        return pairs.get((min(one, other), max(one, other)), 0.0)

    order: list[tuple[int, AxisSet]] = []
    while left:
        best: tuple[float, int, AxisSet] | None = None
        drawn = [axis for axis, _ in order]
        for axis in sorted(left):
            if not drawn:
                ties = (max(strength(axis, one), 0.0) for one in left - {axis})
                found: tuple[float, AxisSet] = (sum(ties), ())
            else:
                found = _best_parents(sources, known, axis, drawn, strength)
            if best is None or found[0] > best[0]:
                best = (found[0], axis, found[1])
        assert best is not None
        order.append((best[1], best[2]))
        left.remove(best[1])
    return order


def _best_parents(
    sources: TableSources,
    known: set[AxisSet],
    axis: int,
    drawn: list[int],
    strength: Callable[[int, int], float],
) -> tuple[float, AxisSet]:
    """Return the parents on which an attribute depends most, above the noise."""
    found: tuple[float, AxisSet] = (0.0, ())
    by_strength = sorted(drawn, key=lambda one: -strength(axis, one))
    if by_strength and strength(axis, by_strength[0]) > 0:
        found = (strength(axis, by_strength[0]), (by_strength[0],))
    for pair in combinations(sorted(by_strength[:CLOSEST]), MOST_PARENTS):
        table = tuple(sorted((*pair, axis)))
        if table in known:
            value = _dependence(sources, table, axis)
            if value > found[0]:
                found = (value, pair)
    return found


def _dependence(sources: TableSources, table: AxisSet, axis: int) -> float:
    """Return how many records differ from independence, less what noise explains."""
    values, total = sources.raked.table(table), sources.raked.total
    at = table.index(axis)
    rest = values.sum(axis=at, keepdims=True)
    shape = [-1 if place == at else 1 for place in range(values.ndim)]
    alone = sources.raked.table((axis,)).reshape(shape) / max(total, 1e-9)
    moved = 0.5 * float(np.abs(values - rest * alone).sum())
    filled = int((values > 1e-3 * total / values.size).sum())
    return moved - DOUBT * min(sources.deviation(table) * filled, 1.2 * total)


def _draw_given(
    sources: TableSources,
    columns: Cells,
    axis: int,
    parents: AxisSet,
    generator: np.random.Generator,
) -> IntArray:
    """Draw an attribute by systematic sampling inside every cell of its parents."""
    table = tuple(sorted((*parents, axis)))
    values = np.moveaxis(sources.raked.table(table), table.index(axis), -1)
    rows = values.reshape(-1, sources.sizes[axis]) + 1e-9
    shares = np.cumsum(rows / rows.sum(axis=1, keepdims=True), axis=1)
    shares[:, -1] = 1.0
    records = columns.shape[1]
    group = np.zeros(records, dtype=np.int64)
    for parent in parents:
        group = group * sources.sizes[parent] + columns[parent]
    order = np.lexsort(np.stack([generator.random(records), group]))
    counts = np.bincount(group, minlength=len(rows))
    firsts = np.cumsum(counts) - counts
    ranked = group[order]
    place = np.arange(records) - firsts[ranked]
    offset = generator.random(len(rows))[ranked]
    quantile = np.minimum((place + offset) / counts[ranked], 1.0 - 1e-12)
    steps = shares + np.arange(len(rows))[:, None]
    found = np.searchsorted(steps.reshape(-1), ranked + quantile, side="right")
    drawn = np.empty(records, dtype=np.int64)
    drawn[order] = np.clip(found - ranked * rows.shape[1], 0, rows.shape[1] - 1)
    return drawn


def record_table(
    domain: Attributes, columns: Cells, generator: np.random.Generator
) -> Table:
    """Return records as values: uniform inside cells, levels, dates."""
    order = generator.permutation(columns.shape[1])
    return Table(
        {
            domain.column_names[axis]: draw_values(
                attribute, columns[axis][order].astype(np.int64), generator
            )
            for axis, attribute in enumerate(domain.attributes)
        }
    )


def count_cells(columns: Cells, sizes: tuple[int, ...], table: AxisSet) -> FloatArray:
    """Return one table of records given as cell numbers."""
    shape = [sizes[axis] for axis in table]
    counts = np.zeros(int(np.prod(shape)), dtype=np.int64)
    kernels.count_tables(counts, columns, sizes, [table])
    return counts.reshape(shape).astype(np.float64)


def misplaced_shares(
    sources: TableSources,
    tables: tuple[AxisSet, ...],
    domain: Attributes,
    records: Any,
) -> list[float]:
    """Return how far tables of records lie from the fitted ones, as a share."""
    if isinstance(records, Table):
        records = dict(records)
    _, rules = domain_with_rules(domain, None, None)
    blocks = list(place_blocks(domain, rules, records))
    if not blocks:
        raise InputError("compare at least one record", received="none")
    columns = np.array([np.concatenate(one) for one in zip(*blocks, strict=True)])
    cells = columns.astype(np.int32)
    count, total = cells.shape[1], max(sources.raked.total, 1e-9)
    shares = []
    for table in tables:
        own = count_cells(cells, sources.sizes, table) / count
        fitted = sources.raked.table(table) / total
        shares.append(0.5 * float(np.abs(own - fitted).sum()))
    return shares
