"""Quantiles of one attribute over selected records, with intervals.

Serves ``release.where(town="Bern").quantile("income", 0.5)`` and the same by group. The
selection is cut at the borders of the attribute's cells; its running totals are counts
of the release, and the quantile is found in them:

    income       [0, 10)  [10, 20)  [20, 25)     the selection: income below 25
    count            40       35        20
    totals           40       75        95       half of 95 is reached in [10, 20)

An interval comes from a band that holds all m running totals at once: each may miss
with probability (1 - confidence) / m. True totals never decrease, so the band's lower
end is raised to all lower ends before it, and its upper end lowered to all upper ends
after it. The first cell whose upper end reaches the part q of the least total, and the
first whose lower end reaches q of the largest, enclose the quantile. As everywhere,
records count as spread evenly inside cells, and buckets as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import quoted
from blowfish_fast.data.axes import Axis
from blowfish_fast.data.predicates import Cover, intersection
from blowfish_fast.errors import DomainError, InputError, SizeError

from .cumulative import monotone_totals
from .grants import Scope
from .query_grid import Grid, GridAnswers, cell_parts

MOST_TOTALS = 4096
"""Cells of the attribute up to which an interval is worked out."""


class SelectedQuantiles:
    """The quantile of one attribute in each group of a grid.

    Parameters
    ----------
    grid : Grid
        The groups, one cover per axis.
    axis : int
        Of the attribute.
    part : float
        From 0 to 1; 0.5 is the median.
    """

    def __init__(self, grid: Grid, axis: int, part: Any) -> None:
        attribute = grid.domain.attributes[axis]
        _check_order(attribute, grid.axes[axis])
        if not isinstance(part, Real) or not 0.0 <= float(part) <= 1.0:
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
        listed = [one.values() for one in self.stretches]
        return np.stack(listed, axis=self.axis).reshape(-1)

    def bounds(self, confidence: float, of: Scope) -> FloatArray:
        """Return intervals, (groups, 2), that hold with at least `confidence` each."""
        listed = [one.bounds(confidence, of) for one in self.stretches]
        return np.stack(listed, axis=self.axis).reshape(-1, 2)

    def kind(self) -> Scope:
        """Return whether intervals hold the truth: where all running totals do."""
        known = (one.totals().kind() == "truth" for one in self.stretches)
        return "truth" if all(known) else "noise"


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
            cells, cuts = self.pieces.cells, np.array(attribute.cuts)
            widths = cuts[cells + 1] - cuts[cells]
            self.lows = cuts[cells] + (self.pieces.starts - cells) * widths
            self.highs = cuts[cells] + (self.pieces.ends - cells) * widths

    def values(self) -> FloatArray:
        """Return the quantile of each group, of the shape of the other axes."""
        starts, ends = self.pieces.starts.tolist(), self.pieces.ends.tolist()
        parts = [((low, high),) for low, high in zip(starts, ends, strict=True)]
        counts = self._along(self._grid(parts).count().values, len(parts))
        rows = counts.reshape(-1, len(parts))
        found = np.array([self._place(row) for row in rows])
        return found.reshape(counts.shape[:-1])

    def _place(self, counts: FloatArray) -> float:
        totals = monotone_totals(counts)
        rank = self.part * totals[-1]
        cell = min(int(np.searchsorted(totals, rank)), totals.size - 1)
        before = totals[cell - 1] if cell else 0.0
        inside = totals[cell] - before
        share = min(max((rank - before) / inside, 0.0), 1.0) if inside > 0 else 0.0
        return float(self.lows[cell] + share * (self.highs[cell] - self.lows[cell]))

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

    def bounds(self, confidence: float, of: Scope) -> FloatArray:
        """Return the interval of each group, of the shape of the other axes and 2."""
        many = self.pieces.ends.size
        each = self.totals().bounds(1.0 - (1.0 - confidence) / many, of)
        low = np.maximum(self._along(each[:, 0], many), 0.0)
        high = np.maximum(self._along(each[:, 1], many), 0.0)
        low = np.maximum.accumulate(low, axis=-1)
        high = np.minimum.accumulate(high[..., ::-1], axis=-1)[..., ::-1]
        first = _first_reaching(high, self.part * low[..., -1:])
        last = np.maximum(_first_reaching(low, self.part * high[..., -1:]), first)
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


def _first_reaching(totals: FloatArray, rank: FloatArray) -> IntArray:
    """Return the first place whose total is at least the rank, else the last."""
    below: IntArray = (totals < rank).sum(axis=-1)
    found: IntArray = np.minimum(below, totals.shape[-1] - 1)
    return found


def _check_order(attribute: Axis, groups: Sequence[Cover]) -> None:
    """Refuse attributes whose cells are in no order, or are no numbers."""
    called = attribute.name or "this attribute"
    if attribute.levels is not None:
        raise DomainError(
            f"{called} has levels, which are in no order, so it has no quantiles; "
            "count them, or group by them"
        )
    if attribute.unit is not None:
        raise DomainError(
            f"{called} holds dates; ask quantiles of a release over it alone, or count "
            "by group_by"
        )
    if any(cover[-1][1] > attribute.regular for cover in groups):
        raise InputError(
            f"the selection holds the cells {list(attribute.extras)} of {called}, "
            "which have no place among the others",
            way_out="Select its values first: "
            f"where({attribute.name or 'attribute'}=slice(None))",
        )
