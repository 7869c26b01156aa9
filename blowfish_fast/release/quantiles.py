"""The distribution function and the quantiles of a release, with intervals.

The q-quantile lies in the first cell k whose *surplus* is not negative: the records up
to the end of a cell, minus q times all records. Each surplus is one linear answer with
its own interval, and cells are scanned from outside:

    cell          0      1      2      3      4      5
    surplus    -9..-5 -7..-1 -4..2  -1..5   1..7   4..9
               low    low    ?      ?       high   high
                             first          last

Only two intervals have to hold, those of cells k - 1 and k, which the data fix before
any noise is drawn (Lemma OL4). So no probability is shared among the cells.

Where an interval comes from a certificate, or where surpluses would be too many
coefficients, a band holds *all* running totals at once instead: each of m noisy totals
may leave it with probability (1 - confidence) / m. True totals never decrease, so
neither do the ends of the band, and the first cells whose ends reach a rank enclose the
true quantile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast._support.validation import malformed_as, quoted
from blowfish_fast.data.axes import Axis
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.predicates import Cover, intersection
from blowfish_fast.errors import DomainError, InputError, SizeError
from blowfish_fast.measure.noise import Spread, without_rounding
from blowfish_fast.workloads import Workload
from blowfish_fast.workloads.base import Pieces

from .query_grid import (
    Grid,
    GridAnswers,
    Held,
    RowSource,
    cell_parts,
    refuse_extras,
    scattered_rows,
)
from .sampling.sampled_release import Method, whole_rows_of
from .sampling.shares import quantile_tests, tested_cells

MOST_TOTALS = 4096
"""Cells of a selected attribute up to which an interval is worked out."""

MOST_SURPLUSES = 2**22
"""Coefficients of all surpluses of a selection, above which a band is used."""

ROUNDING = 1e-9
"""A surplus this near to 0, relative to its size, is taken for either sign."""


def check_ordered(domain: Domain, name: str, *, extras: bool = False) -> None:
    """Refuse domains whose cells do not all lie along one axis.

    Parameters
    ----------
    domain : Domain
        The cells.
    name : str
        What was asked, for the message.
    extras : bool, default False
        Whether cells without a place are left out by whoever asks.

    Raises
    ------
    DomainError
        If there are several attributes, or cells without a place.
    """
    if domain.ndim != 1:
        raise DomainError(
            f"{name} asks for one ordered attribute",
            received=f"a release of {domain.ndim} attributes",
            way_out="Ask release.where(...).quantile(attribute, q), or release one "
            "attribute",
            code="release_needs_one_attribute",
            data={"attributes": domain.ndim},
        )
    unplaced = domain.attributes[0].extras
    if unplaced and not extras:
        raise DomainError(
            f"{name} asks for cells along one axis; {list(unplaced)} have no place on "
            "it",
            way_out="Ask release.quantile(q), which leaves them out, count by "
            "release.where(...).group_by(...), or clamp such values",
            code="cells_without_place",
            data={"extras": ", ".join(unplaced)},
        )


def monotone_totals(estimate: FloatArray) -> FloatArray:
    """Return running totals that start above 0, never decrease and keep the total."""
    totals = np.cumsum(estimate)
    totals[-1] = max(float(totals[-1]), 0.0)
    last = np.zeros(totals.size, dtype=np.bool_)
    last[-1] = True
    return kernels.isotonic_fit(totals, last, low=0.0)


def cdf_values(estimate: FloatArray) -> FloatArray:
    """Return the part of all records up to each cell; uniform if there is none."""
    totals = monotone_totals(estimate)
    if totals[-1] == 0.0:
        return np.arange(1, totals.size + 1) / totals.size
    fractions: FloatArray = totals / totals[-1]
    return fractions


def cdf_bounds(totals: FloatArray, half: FloatArray) -> FloatArray:
    """Return an interval for each entry of the cdf.

    Parameters
    ----------
    totals : ndarray of float64, shape (cells,)
        Running totals.
    half : ndarray of float64, shape (cells,)
        Their half-widths.

    Returns
    -------
    ndarray of float64, shape (cells, 2)
        The intervals, within 0 and 1.
    """
    low, high = np.maximum(totals - half, 0.0), np.maximum(totals + half, 0.0)
    least, most = totals[-1] - half[-1], totals[-1] + half[-1]
    bounds = np.zeros((totals.size, 2))
    bounds[:, 1] = 1.0
    if most > 0.0:
        bounds[:, 0] = np.minimum(low / most, 1.0)
    if least > 0.0:
        bounds[:, 1] = np.minimum(high / least, 1.0)
    bounds[-1] = 1.0
    return bounds


def quantile_places(domain: Domain, estimate: FloatArray, q: Any) -> AnyArray:
    """Return values or dates where there are edges, else the first cells reaching q.

    Parameters
    ----------
    domain : Domain
        One ordered attribute.
    estimate : ndarray of float64, shape (cells,)
        Estimated cells.
    q : float or array-like of float
        Parts from 0 to 1.

    Returns
    -------
    ndarray
        A place for each part.
    """
    parts = as_parts(q)
    edges = domain.attributes[0].edges
    if edges is None:
        cells = np.arange(domain.size)
        return _reached(estimate, parts, cells, cells)
    cuts = np.asarray(edges, dtype=np.float64)
    places = _reached(estimate, parts, cuts[:-1], cuts[1:])
    return in_values(places, domain.attributes[0].unit)


def _reached(
    counts: FloatArray, parts: FloatArray, lows: AnyArray, highs: AnyArray
) -> AnyArray:
    """Return where parts of all records are reached in cells from `lows` to `highs`."""
    totals = monotone_totals(counts)
    ranks = parts * totals[-1]
    # A rank that a cell reaches but for rounding is reached there.
    cells = _first_reaching(totals, ranks * (1.0 - 2.0**-40))
    if lows is highs:
        return lows[cells]
    before = np.append(0.0, totals)[cells]
    inside = totals[cells] - before
    share = np.clip((ranks - before) / np.where(inside > 0.0, inside, 1.0), 0.0, 1.0)
    places: FloatArray = lows[cells] + share * (highs[cells] - lows[cells])
    return places


def quantile_bounds(
    domain: Domain, totals: FloatArray, half: FloatArray, q: Any
) -> AnyArray:
    """Return an interval for each quantile, all true at once, from a band.

    Parameters
    ----------
    domain : Domain
        One ordered attribute.
    totals : ndarray of float64, shape (cells,)
        Running totals.
    half : ndarray of float64, shape (cells,)
        Their half-widths, all true at once.
    q : float or array-like of float
        Parts from 0 to 1.

    Returns
    -------
    ndarray, shape (..., 2)
        Values where there are edges; else the first and the last cell that may hold the
        quantile.
    """
    first, last = _enclosing(totals - half, totals + half, as_parts(q))
    return bounds_of_cells(domain, first, last)


def bounds_of_cells(domain: Domain, first: IntArray, last: IntArray) -> AnyArray:
    """Return intervals that reach from one cell to another.

    Parameters
    ----------
    domain : Domain
        One ordered attribute.
    first : ndarray of int64
        The first cell of each interval.
    last : ndarray of int64
        The last cell of each.

    Returns
    -------
    ndarray, shape (..., 2)
        Values where there are edges; else the two cells.
    """
    edges = domain.attributes[0].edges
    if edges is None:
        return np.stack([first, last], axis=-1)
    cuts = np.asarray(edges, dtype=np.float64)
    ends = np.stack([cuts[first], cuts[last + 1]], axis=-1)
    return in_values(ends, domain.attributes[0].unit)


class RankRows(Workload):
    """The surplus of each cell of a line: records up to its end, minus q times all.

    Parameters
    ----------
    domain : Domain
        One ordered attribute.
    part : float
        The part q, from 0 to 1.

    Examples
    --------
    >>> rows = RankRows(Domain(4), 0.5)
    >>> rows.answer([1, 1, 3, 1])
    array([-2., -1.,  2.,  3.])
    """

    def __init__(self, domain: Domain, part: float) -> None:
        super().__init__(domain)
        self.part = part

    @property
    def queries(self) -> int:
        """One per cell."""
        return self.domain.size

    def _answer(self, counts: AnyArray) -> AnyArray:
        totals = np.cumsum(counts)
        surpluses: FloatArray = totals - self.part * totals[-1]
        return surpluses

    def explicit_form(self, buckets: Buckets) -> Pieces:
        """List each surplus as at most three runs of buckets.

            bucket    0     1     2       3     4        the row of a cell that ends
            value    1-q   1-q   f - q   -q    -q        at a part f of bucket 2

        Parameters
        ----------
        buckets : Buckets
            Buckets in the order of the cells.

        Returns
        -------
        Pieces
            The rows over the buckets; uniform inside each bucket.
        """
        self._check_buckets(buckets)
        edges, cells = buckets.edges, np.arange(self.domain.size)
        last = edges.size - 1
        bucket = np.searchsorted(edges, cells, side="right") - 1
        reached = (cells + 1 - edges[bucket]) / (edges[bucket + 1] - edges[bucket])
        starts = np.stack([np.zeros_like(bucket), bucket, bucket + 1], axis=1)
        ends = np.stack([bucket, bucket + 1, np.full_like(bucket, last)], axis=1)
        values = np.empty(starts.shape)
        values[:, 0] = 1.0 - self.part
        values[:, 1] = reached - self.part
        values[:, 2] = -self.part
        # The first bucket has none before it, and the last one none behind it.
        filled = starts < ends
        pointers = np.append(0, np.cumsum(filled.sum(axis=1)))
        return Pieces(
            pointers.astype(np.int64),
            starts[filled].astype(np.int64),
            ends[filled].astype(np.int64),
            values[filled],
        )


def scanned_places(
    low: FloatArray, high: FloatArray, part: float
) -> tuple[IntArray, IntArray]:
    """Return the first and the last cell that may hold a quantile: Lemma OL4.

    Parameters
    ----------
    low : ndarray of float64, shape (..., cells)
        Lower ends of the intervals of the surpluses.
    high : ndarray of float64, shape (..., cells)
        Their upper ends.
    part : float
        The part q, from 0 to 1.

    Returns
    -------
    first : ndarray of int64, shape (...)
        The first cell whose surplus may be 0 or more.
    last : ndarray of int64, shape (...)
        The cell behind the last one whose surplus may be negative.

    Examples
    --------
    >>> ends = np.array([-9, -7, -4, -1, 1, 4]), np.array([-5, -1, 2, 5, 7, 9])
    >>> [int(cell) for cell in scanned_places(*ends, 0.5)]
    [2, 4]
    """
    slack = ROUNDING * (1.0 + np.maximum(np.abs(low), np.abs(high)))
    may_reach = high >= -slack
    # A surplus without noise is known: a part reached but for rounding is reached.
    may_miss = np.where(low == high, low < -slack, low <= slack)
    if part == 0.0:
        # A number of records is never negative.
        may_miss = np.zeros_like(may_miss)
    many = low.shape[-1]
    first = np.where(may_reach.any(axis=-1), may_reach.argmax(axis=-1), many - 1)
    behind = many - may_miss[..., ::-1].argmax(axis=-1)
    last = np.where(may_miss.any(axis=-1), behind, 0)
    return first, np.clip(last, first, many - 1)


def _enclosing(
    low: FloatArray, high: FloatArray, parts: FloatArray | float
) -> tuple[IntArray, IntArray]:
    """Return the first and the last cell that may hold a quantile, by its band."""
    low = np.maximum.accumulate(np.maximum(low, 0.0), axis=-1)
    high = np.minimum.accumulate(high[..., ::-1], axis=-1)[..., ::-1]
    high = np.maximum(high, 0.0)
    first = _first_reaching(high, parts * low[..., -1])
    last = _first_reaching(low, parts * high[..., -1])
    return first, np.maximum(last, first)


def _first_reaching(totals: FloatArray, ranks: FloatArray) -> IntArray:
    """Return the first cell whose total reaches the rank of its row, else the last."""
    if totals.ndim == 1:
        below: IntArray = np.searchsorted(totals, ranks)
    else:
        below = (totals < ranks[..., None]).sum(axis=-1)
    places: IntArray = np.minimum(below, totals.shape[-1] - 1)
    return places


def linear_totals(linear: FloatArray, spread: Spread) -> FloatArray:
    """Return running totals; those without noise are whole numbers but for rounding.

    Parameters
    ----------
    linear : ndarray of float64, shape (cells,)
        The linear estimate of the cells.
    spread : Spread
        The law of the noise in the totals.

    Returns
    -------
    ndarray of float64, shape (cells,)
        The totals.
    """
    return without_rounding(np.cumsum(linear), np.sqrt(spread.square), linear)


def in_values(places: FloatArray, unit: str | None) -> AnyArray:
    """Return places along an axis, as dates where they count a unit of time.

    Parameters
    ----------
    places : ndarray of float64
        The places.
    unit : str or None
        The unit, or None.

    Returns
    -------
    ndarray
        Values or dates.
    """
    if unit is None:
        return places
    return np.floor(places).astype(np.int64).astype(f"M8[{unit}]")


def as_parts(q: Any) -> FloatArray:
    """Return parts of all records as numbers; refuse any beyond 0 and 1."""
    with malformed_as(InputError, "quantiles are asked for as parts from 0 to 1"):
        parts = np.asarray(q, dtype=np.float64)
    if not ((parts >= 0.0) & (parts <= 1.0)).all():
        raise InputError(
            f"quantiles are asked for as parts from 0 to 1; received {q!r}. The median "
            "is 0.5"
        )
    return parts


class SelectedQuantiles:
    """The quantile of one attribute in each group of a grid.

    Running totals are counts of the release, at the borders of the attribute's cells.

    Parameters
    ----------
    grid : Grid
        The groups.
    axis : int
        The attribute.
    part : float
        The part of the records below the quantile, from 0 to 1.
    """

    def __init__(self, grid: Grid, axis: int, part: Any) -> None:
        attribute = grid.domain.attributes[axis]
        _check_order(attribute, grid.axes[axis])
        number: Any = part
        if not isinstance(part, Real) or not 0 <= number <= 1:
            raise InputError(
                "a quantile is asked for as one part from 0 to 1; received "
                f"{quoted(part)}. The median is 0.5"
            )
        self.axis = axis
        self.stretches = [
            _Stretch(grid, axis, cover, float(part)) for cover in grid.axes[axis]
        ]

    @cached_property
    def values(self) -> FloatArray:
        """One value along the axis per group, in the order of the grid."""
        listed = [stretch.values() for stretch in self.stretches]
        return np.stack(listed, axis=self.axis).reshape(-1)

    def bounds(self, confidence: float, of: Held) -> FloatArray:
        """Return intervals that hold with at least `confidence` each.

        Parameters
        ----------
        confidence : float
            How surely each holds.
        of : Held
            What they have to hold.

        Returns
        -------
        ndarray of float64, shape (groups, 2)
            The intervals.
        """
        listed = [stretch.bounds(confidence, of) for stretch in self.stretches]
        return np.stack(listed, axis=self.axis).reshape(-1, 2)

    def population_bounds(self, confidence: float, method: Method | None) -> FloatArray:
        """Return intervals of the population's quantile in each group.

        Parameters
        ----------
        confidence : float
            Over the draw of the sample and the noise.
        method : {"exact", "normal"} or None
            None for exact where there is such a method.

        Returns
        -------
        ndarray of float64, shape (groups, 2)
            The intervals.
        """
        listed = [
            stretch.population_bounds(confidence, method) for stretch in self.stretches
        ]
        return np.stack(listed, axis=self.axis).reshape(-1, 2)


class _Stretch:
    """Running totals over one cover of the axis, for all groups of the others."""

    def __init__(self, grid: Grid, axis: int, cover: Cover, part: float) -> None:
        self.grid, self.axis, self.cover, self.part = grid, axis, cover, part
        self.pieces = cell_parts(cover)
        attribute = grid.domain.attributes[axis]
        if attribute.cuts is None:
            # Without edges, a cell is its number, and so is any part of it.
            self.lows = self.highs = self.pieces.cells.astype(np.float64)
        else:
            cuts = np.array(attribute.cuts)
            self.lows = self.pieces.along(cuts, self.pieces.starts)
            self.highs = self.pieces.along(cuts, self.pieces.ends)

    def values(self) -> FloatArray:
        """Return the quantile of each group, of the shape of the other axes."""
        starts, ends = self.pieces.starts.tolist(), self.pieces.ends.tolist()
        parts = [((low, high),) for low, high in zip(starts, ends, strict=True)]
        counts = self._along(self._grid(parts).count().values, len(parts))
        part = np.asarray(self.part)
        rows = counts.reshape(-1, len(parts))
        places = [_reached(row, part, self.lows, self.highs) for row in rows]
        return np.array(places).reshape(counts.shape[:-1])

    def _check_size(self) -> None:
        """Refuse more cells than intervals are worked out for."""
        many = self.pieces.ends.size
        if many > MOST_TOTALS:
            raise SizeError(
                f"an interval needs the running totals of {many:,} cells; at most "
                f"{MOST_TOTALS:,} are worked out. Select fewer of them, or release "
                "coarser cells"
            )

    def _coefficients(self) -> int:
        """Return how many coefficients the surpluses of all groups have."""
        rest = [
            int(rows.nnz) for at, rows in enumerate(self.grid.rows) if at != self.axis
        ]
        return self.pieces.ends.size**2 * math.prod(rest)

    def _prefixes(self) -> Grid:
        """Return the grid of the records up to the end of each cell, in each group."""
        ends = self.pieces.ends.tolist()
        return self._grid([intersection(self.cover, ((0.0, end),)) for end in ends])

    def totals(self) -> GridAnswers:
        """Return the number of records up to the end of each cell, in each group."""
        return self._prefixes().count()

    def surpluses(self) -> GridAnswers:
        """Return these numbers minus the part q of all records of the group.

        A condition may cut cells, and may consist of several pieces of one cell. The
        rows below belong to q = 1/2 and the cover of three pieces: the first half of
        cell 0, its last quarter, and all of cell 1. A record counts 1 - q if it lies up
        to the end of the row's piece, and -q if it lies in a later one.

            row of piece        cell 0 (even)           its least    its most
            0                   1/2 - q 3/4 =  1/8      -1/2         1/2
            1                   3/4 - q 3/4 =  3/8       0           1/2
            2                   3/4 - q 3/4 =  3/8       0           1/2

        The even value takes the records of a cell as spread evenly over it. The least
        and the most say what a single record of the cell may count: that of any of its
        pieces, and 0 where a part of the cell is not covered.
        """
        # Of every cell that is covered: its number, its first piece and its last one.
        columns, first, back = np.unique(
            self.pieces.cells, return_index=True, return_inverse=True
        )
        last = np.full(columns.size, -1)
        np.maximum.at(last, back, np.arange(back.size))
        lengths = self.pieces.ends - self.pieces.starts
        covered = np.bincount(back, weights=lengths)
        ends_at = np.arange(back.size)[:, None]
        by_piece = np.zeros((back.size, columns.size))
        by_piece[np.arange(back.size), back] = lengths
        values = np.cumsum(by_piece, axis=0) - self.part * covered
        least = np.where(last > ends_at, -self.part, 1.0 - self.part)
        most = np.where(first <= ends_at, 1.0 - self.part, -self.part)
        partly = covered < 1.0
        least = np.where(partly, np.minimum(least, 0.0), least)
        most = np.where(partly, np.maximum(most, 0.0), most)
        size = self.grid.domain.shape[self.axis]
        rows, lower, upper = (
            scattered_rows(columns, table, size) for table in (values, least, most)
        )
        return self._prefixes().value_sums(self.axis, rows, (lower, upper))

    def bounds(self, confidence: float, of: Held) -> FloatArray:
        """Return the interval of each group, of the shape of the other axes and 2."""
        many = self.pieces.ends.size
        self._check_size()
        if not isinstance(of, RowSource) and self._coefficients() <= MOST_SURPLUSES:
            ends = self.surpluses().bounds(confidence, of)
            low, high = (self._along(bound, many) for bound in ends.T)
            first, last = scanned_places(low, high, self.part)
            return np.stack([self.lows[first], self.highs[last]], axis=-1)
        each = self.totals().bounds(1.0 - (1.0 - confidence) / many, of)
        low, high = (self._along(bound, many) for bound in each.T)
        first, last = _enclosing(low, high, self.part)
        return np.stack([self.lows[first], self.highs[last]], axis=-1)

    def population_bounds(self, confidence: float, method: Method | None) -> FloatArray:
        """Return the population's interval of each group, scanned from outside."""
        many = self.pieces.ends.size
        self._check_size()
        prefixes = self._prefixes()
        rows = whole_rows_of(prefixes)
        places = np.arange(rows.shape[0]).reshape(
            [len(groups) for groups in prefixes.axes]
        )
        # This axis last: all cells of a group stand side by side.
        ordered = np.moveaxis(places, self.axis, -1).reshape(-1, many)
        bases = np.repeat(ordered[:, -1], many)
        tests = quantile_tests(
            rows[ordered.reshape(-1)],
            rows[bases],
            self.part,
            self.grid.release,
            confidence,
            method,
        )
        first, last = tested_cells(tests, many)
        rest = np.moveaxis(places, self.axis, -1).shape[:-1]
        ends = np.stack([self.lows[first], self.highs[last]], axis=-1)
        return ends.reshape(*rest, 2)

    def _grid(self, covers: Sequence[Cover]) -> Grid:
        axes = [*self.grid.axes]
        axes[self.axis] = covers
        return Grid(self.grid.release, axes)

    def _along(self, answers: FloatArray, many: int) -> FloatArray:
        """Bring answers into the shape of the other axes, this one last."""
        shape = [len(groups) for groups in self.grid.axes]
        shape[self.axis] = many
        return np.moveaxis(answers.reshape(shape), self.axis, -1)


def _check_order(attribute: Axis, groups: Sequence[Cover]) -> None:
    """Refuse attributes whose cells are in no order, or are no numbers."""
    called = attribute.name or "this attribute"
    if attribute.levels is not None:
        raise DomainError(
            f"{called} has levels, which are in no order, so it has no quantiles; "
            "count them, or group by them"
        )
    refuse_extras(attribute, groups)
