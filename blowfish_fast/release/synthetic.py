"""Records drawn from an estimate, or from tables: like the data, and public.

Tables are raked to their margins from the top down, because clipping large tables first
adds its bias up in all their sums. Attributes are drawn one after another, given one or
two before them, by what dependence is seen above the noise; then values of records
change, one at a time, until all two-way tables fit. Free, and biased.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_generator, as_whole, malformed_as
from blowfish_fast.data.axes import MISSING, OUTSIDE, Axis, as_array, cut_values
from blowfish_fast.data.domain import Attributes, Domain
from blowfish_fast.data.frames import Table
from blowfish_fast.data.records import domain_with_rules, place_blocks
from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.measure.strategies.tables.residuals import AxisSet

MOST_RECORDS = 2**28
LEAST_PART = 2.0**-20
"""Of all cells together, without their signs, that a total is taken seriously."""

ROUNDS = 12
MIXED = 0.02
"""Most of the product of one-way tables mixed in, so that raking can reach any cell."""
MIXED_NOISE = 0.1
"""Part of the noise of a cell by which mixing may move cells, root mean square."""
SWEEPS = 3
"""Chosen on generated surveys of 2,000 and 40,000 records: more follow the noise."""
MOST_PARENTS = 2
CLOSEST = 3
"""Candidates among which pairs of parents are tried."""
DOUBT = 0.4
"""How much of the noise is held against a dependence."""

Cells = npt.NDArray[np.int32]


def sample_records(
    domain: Domain,
    estimate: FloatArray,
    count: Any = None,
    rng: int | np.random.Generator | None = None,
) -> Table:
    """Return records whose histogram is the estimate, rounded to whole records.

    There is a column per attribute: values uniform inside cells between edges (dates to
    their unit), levels, cell numbers. Missing values are missing; values outside are
    infinite, just after the last edge for dates, "(outside)" among levels.

    Parameters
    ----------
    domain : Domain
        The cells.
    estimate : ndarray of float64
        Estimated cells.
    count : int, optional
        How many records; the total of the estimate by default.
    rng : int or numpy.random.Generator, optional
        A seed or a generator.

    Returns
    -------
    Table
        The records.

    Raises
    ------
    SizeError
        If there would be too many.
    """
    with malformed_as(InputError, "rng must be a whole number or a numpy Generator"):
        generator = as_generator(rng)
    records = record_count(float(estimate.sum()), count)
    shares = non_negative_shares(estimate.reshape(-1), records)
    counts = round_counts(shares, records, generator)
    cells = np.repeat(np.arange(domain.size), counts)
    generator.shuffle(cells)
    places = np.unravel_index(cells, domain.shape)
    return Table(
        {
            domain.column_names[axis]: draw_values(attribute, place, generator)
            for axis, (attribute, place) in enumerate(
                zip(domain.attributes, places, strict=True)
            )
        }
    )


def record_count(total: float, count: Any) -> int:
    """Read how many records are drawn.

    Parameters
    ----------
    total : float
        The total of the estimate, which is taken by default.
    count : int or None
        What was asked for.

    Returns
    -------
    int
        The number.

    Raises
    ------
    SizeError
        If there would be too many.
    """
    records = max(round(total), 0) if count is None else as_whole(count, "n", 0)
    if records > MOST_RECORDS:
        raise SizeError(
            f"{records:,} records would be drawn; at most 2^28 = {MOST_RECORDS:,} are. "
            "Ask for fewer: sample(n=...)"
        )
    return records


def non_negative_shares(estimate: FloatArray, total: float) -> FloatArray:
    """Return the nearest cells, in least squares, without negatives and with a total.

    The estimate is scaled to `total` first where its own is positive. O(n log n).

    Parameters
    ----------
    estimate : ndarray of float64, shape (n,)
        Estimated cells.
    total : float
        What the cells add up to.

    Returns
    -------
    ndarray of float64, shape (n,)
        The cells.
    """
    own = float(estimate.sum())
    # Next to nothing would be scaled to infinity, and what rounding left to much.
    nothing = max(float(np.abs(estimate).sum()) * LEAST_PART, 1e-100)
    values = estimate * (total / own) if own > nothing else estimate
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    last_positive = int(np.flatnonzero(ordered >= excess)[-1])
    shares: FloatArray = np.maximum(values - excess[last_positive], 0.0)
    return shares


def publishable_counts(estimate: FloatArray) -> IntArray:
    """Return whole counts, none negative, with the estimate's own total, rounded.

    Coins come from the estimate, so that a release is always rounded alike.
    """
    total = max(round(float(estimate.sum())), 0)
    shares = non_negative_shares(estimate.reshape(-1), total)
    counts = round_counts(shares, total, coins_of(estimate))
    return counts.reshape(estimate.shape)


def coins_of(published: AnyArray) -> np.random.Generator:
    """Return coins that published numbers decide: the same again, also from a file."""
    digest = hashlib.sha256(np.ascontiguousarray(published).tobytes()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))


def round_counts(
    shares: FloatArray, total: int, generator: np.random.Generator
) -> IntArray:
    """Round shares up or down to whole numbers with their total, without bias.

    Pivotal sampling (Deville and Tille 1998) along a tree: neighbours pool the chances
    of one record more, one of them is decided, and the other goes on. Stretches of
    cells keep their totals but for a record or so. O(n).

    Parameters
    ----------
    shares : ndarray of float64, shape (n,)
        Shares of 0 or more.
    total : int
        What they add up to, a whole number.
    generator : numpy.random.Generator
        Decides.

    Returns
    -------
    ndarray of int64, shape (n,)
        Whole numbers.
    """
    whole = np.floor(shares)
    counts: IntArray = whole.astype(np.int64)
    places: IntArray = np.flatnonzero(shares > whole)
    chances = (shares - whole)[places]
    while places.size > 1:
        paired = places.size - places.size % 2
        pool = chances[:paired].reshape(-1, 2).sum(axis=1)
        second = chances[1:paired:2]
        # Below 1 together, the second stays in with its part of the pool; above, one
        # record is given out, and the second stays in if the first one gets it.
        is_lifted = pool >= 1.0
        stays = np.where(is_lifted, 1.0 - second, second)
        parts = np.where(is_lifted, 2.0 - pool, pool)
        last = generator.random(pool.size) * parts < stays
        pairs = places[:paired].reshape(-1, 2)
        remaining = np.where(last, pairs[:, 1], pairs[:, 0])
        decided = np.where(last, pairs[:, 0], pairs[:, 1])
        counts[decided[is_lifted]] += 1
        places = np.append(remaining, places[paired:])
        chances = np.append(np.where(is_lifted, pool - 1.0, pool), chances[paired:])
    if places.size:
        # The last chance is 0 or 1 but for rounding: the total decides it.
        counts[places[0]] += total - int(counts.sum())
    return counts


def draw_values(
    attribute: Axis, place: IntArray, generator: np.random.Generator
) -> AnyArray:
    """Return values of one attribute, uniform inside their cells.

    Parameters
    ----------
    attribute : Axis
        The cells.
    place : ndarray of int64
        The cell of each record.
    generator : numpy.random.Generator
        Draws the values.

    Returns
    -------
    ndarray
        The values.
    """
    if attribute.levels is not None:
        levels = as_array(attribute.levels)
        if MISSING in attribute.extras:
            levels[-1] = None
        return levels[place]
    if attribute.cuts is None:
        return _numbers(attribute, place, place.astype(np.float64))
    cuts = cut_values(attribute)
    inside = np.minimum(place, attribute.regular - 1)
    low, high = cuts[inside], cuts[inside + 1]
    share = generator.random(place.size)
    if attribute.unit is None:
        # Rounding may reach the upper edge, which belongs to the next cell.
        drawn = np.minimum(low + share * (high - low), np.nextafter(high, low))
        return _numbers(attribute, place, drawn)
    length = (high - low).astype(np.int64)
    # A share below 1 of a whole number is below it, rounded too.
    step = (share * length).astype(np.int64)
    dates: AnyArray = low + step.astype(f"timedelta64[{attribute.unit}]")
    dates[place == attribute.extra_cell(OUTSIDE)] = cuts[-1]
    dates[place == attribute.extra_cell(MISSING)] = "NaT"
    return dates


def _numbers(attribute: Axis, place: IntArray, drawn: FloatArray) -> AnyArray:
    if not attribute.extras:
        return drawn if attribute.cuts is not None else place
    drawn[place == attribute.extra_cell(OUTSIDE)] = np.inf
    drawn[place == attribute.extra_cell(MISSING)] = np.nan
    return drawn


@dataclass(eq=False)
class FittedTables:
    """Tables without negatives, fitted when they are first asked for, and records.

    Attributes
    ----------
    domain : Attributes
        All attributes.
    tables : tuple[AxisSet, ...]
        The attributes of each table.
    total : float
        The number of records.
    linear : Callable[[AxisSet], ndarray of float64]
        Returns a table without bias.
    information : Callable[[AxisSet], float]
        Returns the information on a table's residuals; infinite where it is exact.
    deviation : Callable[[AxisSet], float]
        Returns by how much a cell of a table is off.
    """

    domain: Attributes
    tables: tuple[AxisSet, ...]
    total: float
    linear: Callable[[AxisSet], FloatArray]
    information: Callable[[AxisSet], float]
    deviation: Callable[[AxisSet], float]

    def __post_init__(self) -> None:
        self.sizes, self._known = self.domain.shape, set(self.tables)
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
        # Noise alone cuts cells that hold records to 0; beyond it, mixing is a bias.
        away = self._product(axes) - shares
        far = max(math.sqrt(float(np.mean(away**2))), 1e-9)
        mixed = shares + away * min(MIXED, MIXED_NOISE * self.deviation(axes) / far)
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

    def records(self, count: Any, generator: np.random.Generator) -> Table:
        """Return synthetic records as values: uniform inside cells, levels, dates.

        Parameters
        ----------
        count : int or None
            How many; the total by default.
        generator : numpy.random.Generator
            Draws them.

        Returns
        -------
        Table
            The records.
        """
        cells = self.cells(count, generator)
        order = generator.permutation(cells.shape[1])
        return Table(
            {
                self.domain.column_names[axis]: draw_values(
                    attribute, cells[axis][order].astype(np.int64), generator
                )
                for axis, attribute in enumerate(self.domain.attributes)
            }
        )

    def cells(self, count: Any, generator: np.random.Generator) -> Cells:
        """Return synthetic records as cell numbers.

        Parameters
        ----------
        count : int or None
            How many; the total by default.
        generator : numpy.random.Generator
            Draws them.

        Returns
        -------
        ndarray of int32, shape (attributes, records)
            The cell numbers.
        """
        records = record_count(self.total, count)
        columns = np.zeros((len(self.sizes), records), dtype=np.int32)
        if records == 0 or self.total <= 0:
            return columns
        for axis, parents in self._order():
            columns[axis] = self._draw_given(columns, axis, parents, generator)
        for axis, size in enumerate(self.sizes):
            if (axis,) not in self._known:
                columns[axis] = generator.integers(0, size, records)
        pairs = [table for table in self.tables if len(table) == 2]
        share = records / self.total
        goals = [self.table(table).reshape(-1) * share for table in pairs]
        seed = int(generator.integers(2**62))
        kernels.exchange_records(columns, self.sizes, pairs, goals, SWEEPS, seed)
        return columns

    def _order(self) -> list[tuple[int, AxisSet]]:
        """Return attributes in the order in which they are drawn, with parents."""
        tables = self._known
        left = {axis for axis in range(len(self.sizes)) if (axis,) in tables}
        pairs = {
            pair: self._dependence(pair, pair[1]) for pair in tables if len(pair) == 2
        }

        def strength(first: int, second: int) -> float:
            return pairs.get((min(first, second), max(first, second)), 0.0)

        order: list[tuple[int, AxisSet]] = []
        while left:
            best: tuple[float, int, AxisSet] | None = None
            parents: AxisSet
            drawn = [axis for axis, _ in order]
            for axis in sorted(left):
                if not drawn:
                    ties = (
                        max(strength(axis, neighbour), 0.0)
                        for neighbour in left - {axis}
                    )
                    gain, parents = sum(ties), ()
                else:
                    gain, parents = self._best_parents(axis, drawn, strength)
                if best is None or gain > best[0]:
                    best = (gain, axis, parents)
            assert best is not None
            order.append((best[1], best[2]))
            left.remove(best[1])
        return order

    def _best_parents(
        self, axis: int, drawn: list[int], strength: Callable[[int, int], float]
    ) -> tuple[float, AxisSet]:
        """Return the parents on which an attribute depends most, above the noise."""
        best: tuple[float, AxisSet] = (0.0, ())
        by_strength = sorted(drawn, key=lambda parent: -strength(axis, parent))
        if by_strength and strength(axis, by_strength[0]) > 0:
            best = (strength(axis, by_strength[0]), (by_strength[0],))
        for pair in combinations(sorted(by_strength[:CLOSEST]), MOST_PARENTS):
            table = tuple(sorted((*pair, axis)))
            if table in self._known:
                value = self._dependence(table, axis)
                best = (value, pair) if value > best[0] else best
        return best

    def _dependence(self, table: AxisSet, axis: int) -> float:
        """Return how many records are not independent, less what noise explains."""
        values, total = self.table(table), self.total
        at = table.index(axis)
        rest = values.sum(axis=at, keepdims=True)
        shape = [-1 if place == at else 1 for place in range(values.ndim)]
        alone = self.table((axis,)).reshape(shape) / max(total, 1e-9)
        moved = 0.5 * float(np.abs(values - rest * alone).sum())
        filled = int((values > 1e-3 * total / values.size).sum())
        return moved - DOUBT * min(self.deviation(table) * filled, 1.2 * total)

    def _draw_given(
        self,
        columns: Cells,
        axis: int,
        parents: AxisSet,
        generator: np.random.Generator,
    ) -> IntArray:
        """Draw an attribute by systematic sampling inside every cell of its parents."""
        table = tuple(sorted((*parents, axis)))
        values = np.moveaxis(self.table(table), table.index(axis), -1)
        rows = values.reshape(-1, self.sizes[axis]) + 1e-9
        shares = np.cumsum(rows / rows.sum(axis=1, keepdims=True), axis=1)
        shares[:, -1] = 1.0
        records = columns.shape[1]
        group = np.zeros(records, dtype=np.int64)
        for parent in parents:
            group = group * self.sizes[parent] + columns[parent]
        order = np.lexsort(np.stack([generator.random(records), group]))
        counts = np.bincount(group, minlength=len(rows))
        firsts = np.cumsum(counts) - counts
        ranked = group[order]
        place = np.arange(records) - firsts[ranked]
        offset = generator.random(len(rows))[ranked]
        quantile = np.minimum((place + offset) / counts[ranked], 1.0 - 1e-12)
        steps = shares + np.arange(len(rows))[:, None]
        cells = np.searchsorted(steps.reshape(-1), ranked + quantile, side="right")
        drawn = np.empty(records, dtype=np.int64)
        drawn[order] = np.clip(cells - ranked * rows.shape[1], 0, rows.shape[1] - 1)
        return drawn

    def count(self, cells: Cells, table: AxisSet) -> FloatArray:
        """Return one table of records given as cell numbers.

        Parameters
        ----------
        cells : ndarray of int32, shape (attributes, records)
            The records.
        table : AxisSet
            The attributes of the table.

        Returns
        -------
        ndarray of float64
            The counts.
        """
        shape = [self.sizes[axis] for axis in table]
        counts = np.zeros(math.prod(shape), dtype=np.int64)
        kernels.count_tables(counts, cells, self.sizes, [table])
        return counts.reshape(shape).astype(np.float64)

    def place(self, records: Any) -> Cells:
        """Return the cell numbers of records of any frame."""
        if isinstance(records, Table):
            records = dict(records)
        _, rules = domain_with_rules(self.domain, None, None)
        blocks = list(place_blocks(self.domain, rules, records))
        if not blocks:
            raise InputError("compare at least one record", received="none")
        columns = np.array(
            [np.concatenate(parts) for parts in zip(*blocks, strict=True)]
        )
        return columns.astype(np.int32)

    def misplaced(self, tables: tuple[AxisSet, ...], cells: Cells) -> list[float]:
        """Return how far tables of records lie from the fitted ones, as a share.

        Parameters
        ----------
        tables : tuple[AxisSet, ...]
            The attributes of each table.
        cells : ndarray of int32, shape (attributes, records)
            The records.

        Returns
        -------
        list[float]
            The share of the records that lie elsewhere, by table.
        """
        shares = []
        for table in tables:
            own = self.count(cells, table) / max(cells.shape[1], 1)
            fitted = self.table(table) / max(self.total, 1e-9)
            shares.append(0.5 * float(np.abs(own - fitted).sum()))
        return shares


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
