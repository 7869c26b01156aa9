"""The distribution function and the quantiles of a release, with intervals.

Intervals of quantiles come from a band that holds *all* running totals at once: each of
m noisy totals may leave it with probability (1 - confidence) / m. True totals never
decrease, so neither do the ends of the band, and the first cells whose ends reach a
rank enclose the true quantile.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast._support.validation import malformed_as, quoted
from blowfish_fast.data.axes import Axis
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.predicates import Cover, intersection
from blowfish_fast.errors import DomainError, InputError, SizeError
from blowfish_fast.measure.noise import Spread, without_rounding

from .query_grid import Grid, GridAnswers, Held, cell_parts, refuse_extras

MOST_TOTALS = 4096
"""Cells of a selected attribute up to which an interval is worked out."""


def check_ordered(domain: Domain, name: str) -> None:
    """Refuse domains whose cells do not all lie along one axis.

    Parameters
    ----------
    domain : Domain
        The cells.
    name : str
        What was asked, for the message.

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
            attributes=domain.ndim,
        )
    extras = domain.attributes[0].extras
    if extras:
        raise DomainError(
            f"{name} asks for cells along one axis; {list(extras)} have no place on it",
            way_out="Count by release.where(...).group_by(...), or clamp such values",
            code="cells_without_place",
            extras=", ".join(extras),
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
    parts = _as_parts(q)
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
    """Return an interval for each quantile, all true at once.

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
    first, last = _enclosing(totals - half, totals + half, _as_parts(q))
    edges = domain.attributes[0].edges
    if edges is None:
        return np.stack([first, last], axis=-1)
    cuts = np.asarray(edges, dtype=np.float64)
    ends = np.stack([cuts[first], cuts[last + 1]], axis=-1)
    return in_values(ends, domain.attributes[0].unit)


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


def _as_parts(q: Any) -> FloatArray:
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
        found = [_reached(row, part, self.lows, self.highs) for row in rows]
        return np.array(found).reshape(counts.shape[:-1])

    def totals(self) -> GridAnswers:
        """Return the number of records up to the end of each cell, in each group."""
        ends = self.pieces.ends.tolist()
        if len(ends) > MOST_TOTALS:
            raise SizeError(
                f"an interval needs the running totals of {len(ends):,} cells; at most "
                f"{MOST_TOTALS:,} are worked out. Select fewer of them, or release "
                "coarser cells"
            )
        prefixes = [intersection(self.cover, ((0.0, end),)) for end in ends]
        return self._grid(prefixes).count()

    def bounds(self, confidence: float, of: Held) -> FloatArray:
        """Return the interval of each group, of the shape of the other axes and 2."""
        many = self.pieces.ends.size
        each = self.totals().bounds(1.0 - (1.0 - confidence) / many, of)
        low, high = (self._along(one, many) for one in each.T)
        first, last = _enclosing(low, high, self.part)
        return np.stack([self.lows[first], self.highs[last]], axis=-1)

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
