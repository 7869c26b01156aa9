"""Answers of a grid of groups about the population: counts, shares, means, variances.

The files beside this one work on rows over cells; here
the rows of groups are made. A
record of a cell with edges may have any value of the cell, so a mean lies between that
of the least and that of the largest values (Lemma IN9).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.release.query_grid import Grid, ValueRows, product_rows

from .bounded_means import drawn_independently, means_by_bounds
from .designs import Stratified
from .numbers import count_parts, population_counts, scaled_counts
from .ratios import Ratio, VarianceRows, population_means
from .sampled_release import (
    Method,
    Sampled,
    check_method,
    whole_rows_of,
)


def grid_counts(grid: Grid, confidence: float, method: Method | None) -> FloatArray:
    """Return intervals of numbers of people of each group.

    Parameters
    ----------
    grid : Grid
        The groups.
    confidence : float
        Over the draw of the sample and the noise.
    method : {"exact", "normal"} or None
        None for exact where there is such a method.

    Returns
    -------
    ndarray of float64, shape (groups, 2)
        The intervals.
    """
    whole_rows_of(grid)
    counted = grid.count().workload
    return population_counts(grid.release, counted, confidence, method)


def grid_count_parts(grid: Grid) -> tuple[FloatArray, FloatArray]:
    """Return variances of sampling and of noise in numbers of people."""
    whole_rows_of(grid)
    return count_parts(grid.release, grid.count().workload)


def grid_share_parts(part: Grid, whole: Grid) -> tuple[FloatArray, FloatArray]:
    """Return variances of sampling and of noise in shares.

    Parameters
    ----------
    part : Grid
        The groups whose shares are asked for.
    whole : Grid
        What they are parts of: one group that contains them.

    Returns
    -------
    sampling : ndarray of float64, shape (groups,)
        Variance that comes from the draw of the sample.
    noise : ndarray of float64, shape (groups,)
        Variance of the noise.
    """
    rows, base = whole_rows_of(part), whole_rows_of(whole)
    source = Sampled(part.release, 0.95)
    everything = base.nnz == source.release.domain.size
    if isinstance(source.design, Stratified) and everything:
        drawn, noise = grid_count_parts(part)
        everybody = float(source.design.everybody) ** 2
        return drawn / everybody, noise / everybody
    bases = base[np.zeros(rows.shape[0], dtype=np.int64)]
    return Ratio(source, rows, bases, (0.0, 1.0)).parts()


def share_estimates(part: Grid, whole: Grid) -> FloatArray:
    """Return estimates of shares in the population.

    Parameters
    ----------
    part : Grid
        The groups whose shares are asked for.
    whole : Grid
        What they are parts of: one group that contains them.

    Returns
    -------
    ndarray of float64, shape (groups,)
        The shares, from 0 to 1.
    """
    rows, base = whole_rows_of(part), whole_rows_of(whole)
    source = Sampled(part.release, 0.95)
    everything = base.nnz == source.release.domain.size
    if isinstance(source.design, Stratified) and everything:
        people = scaled_counts(part.release, part.count().workload)
        return np.minimum(people / source.design.everybody, 1.0)
    bases = base[np.zeros(rows.shape[0], dtype=np.int64)]
    return Ratio(source, rows, bases, (0.0, 1.0)).estimate


class GridMeans:
    """Means and variances of an attribute in each group of a grid.

    Parameters
    ----------
    grid : Grid
        The groups.
    axis : int
        The attribute.
    values : ValueRows
        What records count with.
    """

    def __init__(self, grid: Grid, axis: int, values: ValueRows) -> None:
        self.grid, self.axis, self.values = grid, axis, values

    def _rows(self, along: Any) -> Any:
        """Return rows over all cells from values along the axis of each group."""
        return product_rows(self.grid._with(self.grid.rows, self.axis, along))

    def _moments(self, power: int) -> tuple[Any, Any]:
        low, high = self.values.ends(self.values.centre, power)
        return self._rows(low), self._rows(high)

    def _reach(self) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest value, from the centre, of each group."""
        ends = (end - self.values.centre for end in self.values.reach())
        low, high = (self.grid.along(self.axis, end) for end in ends)
        return low, high

    def means(self, confidence: float, method: Method | None) -> FloatArray:
        """Return intervals of means; the sampling is taken as normal by default.

        Parameters
        ----------
        confidence : float
            Over the draw of the sample and the noise.
        method : {"exact", "normal"} or None
            "exact" holds whatever the law of the values, and is wider: Lemmas PN12
            and PN16.

        Returns
        -------
        ndarray of float64, shape (groups, 2)
            The intervals.
        """
        check_method(method)
        around = self._about_centre(1, self._reach(), confidence, method)
        return around + self.grid.along(self.axis, self.values.centre)[:, None]

    def _about_centre(
        self, power: int, limits: Any, confidence: float, method: Method | None
    ) -> FloatArray:
        under, release = whole_rows_of(self.grid), self.grid.release
        asked = (self._moments(power), under, limits, release, confidence)
        if method == "exact" and drawn_independently(release, under):
            return means_by_bounds(*asked)
        return population_means(*asked, method)

    def variances(self, confidence: float, method: Method | None) -> FloatArray:
        """Return intervals of E[x^2] - E[x]^2 in the population, from both means.

        Parameters
        ----------
        confidence : float
            Over the draw of the sample and the noise.
        method : {"exact", "normal"} or None
            "exact" holds whatever the law of the values, and is wider.

        Returns
        -------
        ndarray of float64, shape (groups, 2)
            The intervals.
        """
        check_method(method)
        shared = 1.0 - (1.0 - confidence) / 2
        least, most = self._reach()
        farthest = np.maximum(np.abs(least), np.abs(most)) ** 2
        squared = (np.zeros(least.size), farthest)
        first = self._about_centre(1, (least, most), shared, method)
        second = self._about_centre(2, squared, shared, method)
        return VarianceRows(first, second, ((most - least) / 2) ** 2).bounds()

    def deviations(self, confidence: float, method: Method | None) -> FloatArray:
        """Return the roots of `variances`.

        Parameters
        ----------
        confidence : float
            Over the draw of the sample and the noise.
        method : {"exact", "normal"} or None
            As for `variances`.

        Returns
        -------
        ndarray of float64, shape (groups, 2)
            The intervals.
        """
        return np.asarray(np.sqrt(self.variances(confidence, method)))

    def middle(self) -> Ratio:
        """Return the means of what records count with, from the centre of values."""
        under, source = whole_rows_of(self.grid), Sampled(self.grid.release, 0.95)
        middle = self._rows(self.values.rows(self.values.centre))
        return Ratio(source, middle, under, self._reach())

    def ends(self) -> tuple[Ratio, Ratio]:
        """Return the means if all records lay at the lower, or the upper, ends.

        Returns
        -------
        least : Ratio
            The least that places inside cells leave open, from the centre of values.
        largest : Ratio
            The largest.
        """
        under, source = whole_rows_of(self.grid), Sampled(self.grid.release, 0.95)
        reach = self._reach()
        low, high = (Ratio(source, over, under, reach) for over in self._moments(1))
        return low, high

    def estimates(self) -> FloatArray:
        """Return estimates of the means in the population."""
        centre = self.grid.along(self.axis, self.values.centre)
        return np.asarray(self.middle().estimate + centre)

    def parts(self) -> tuple[FloatArray, FloatArray]:
        """Return variances of sampling and of noise in the means."""
        return self.middle().parts()
