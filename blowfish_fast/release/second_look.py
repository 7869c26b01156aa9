"""What a noisy result says about the way in, told afterwards and for free.

A misspelt category counts nobody, and all its people lie in the cell "(outside)". The
release shows that, so it can be said: this is post-processing, which reads published
numbers and costs nothing.

    much lies outside    the least that may lie outside is a fifth of all records
    one value only       the most that may have another value is 1 % of all records

Both rules compare ends of intervals at 99 %, so that noise alone sets off a remark at
most once in 50 columns, and hardly ever where records are few beside the noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.data.axes import MISSING, OUTSIDE, Axis
from blowfish_fast.data.predicates import cell_name
from blowfish_fast.errors import BlowfishError
from blowfish_fast.workloads import Identity, Total

from .release import HistogramRelease
from .tables_release import TablesRelease

SURE = 0.99
"""Confidence of the intervals that are compared."""
MUCH = 0.2
"""Share of a column outside its cells from which it is said."""
FEW = 0.01
"""Share of records with another value up to which a column has one value only."""
MOST_CELLS = 256
"""Cells of a column that is looked at: maps and fine histograms are not."""
MOST_COLUMNS = 200


class ColumnCounts(NamedTuple):
    """What a release says of one column.

    Attributes
    ----------
    attribute : Axis
        The column.
    outside : int or None
        The cell that holds the values outside all others; None where there is none.
    name_of : callable
        Takes the number of a cell and returns what it stands for: a level, a pair of
        edges, or `MISSING`. It is asked only for the one cell that a remark names.
    estimates : ndarray of float64, shape (cells,)
        The estimated records of each cell.
    bounds : ndarray of float64, shape (cells, 2)
        Their intervals, at the confidence `SURE`.
    total : (float, float)
        The interval of the number of all records.
    """

    attribute: Axis
    outside: int | None
    name_of: Callable[[int], Any]
    estimates: FloatArray
    bounds: FloatArray
    total: tuple[float, float]

    def remarks(self) -> list[str]:
        """Return what should be looked at, in words; nothing where all is well."""
        least, most = self.total
        if least <= 0.0 or self.estimates.size < 2:
            return []
        name, remarks = self.attribute.name or "the column", []
        outside = self.outside
        if outside is not None and self.bounds[outside, 0] >= MUCH * most:
            share = min(100.0 * self.estimates[outside] / ((least + most) / 2), 100.0)
            remarks.append(f"about {share:.0f} % of `{name}` {self._lies_outside()}")
        top = int(np.argmax(self.estimates))
        if most - self.bounds[top, 0] <= FEW * least and top != outside:
            value = self._single(self.name_of(top))
            remarks.append(f"{value} of `{name}`: is that so?")
        return remarks

    def _lies_outside(self) -> str:
        if self.attribute.borders is not None:
            return (
                "lies outside your districts: are points and borders in one reference "
                "system, the longitude first, and do the districts cover the area?"
            )
        if self.attribute.levels is not None:
            return (
                "lies outside your categories: are they spelled as in the file "
                "(capitals, blanks, leading zeros, 1.0 for 1)?"
            )
        return "lies outside your cells: are these its units, and its range?"

    def _single(self, label: Any) -> str:
        if label == MISSING:
            return "nearly all records miss the value"
        shown = f"{label[0]} to {label[1]}" if isinstance(label, tuple) else repr(label)
        return f"nearly all records have one value, {shown},"


def look_again(release: Any) -> list[str]:
    """Return what a release says about the cells that were stated for it.

    Parameters
    ----------
    release : HistogramRelease or TablesRelease
        What was published. Columns of more than 256 cells are not looked at, nor are
        releases whose intervals are unknown.

    Returns
    -------
    list of str
        A sentence for each column of which much lies outside its cells, or nearly all
        records have one value.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> kinds = bf.Domain.from_levels(["Permanent", "Fixed"], name="contract")
    >>> rows = {"contract": ["permanent"] * 960 + ["Fixed"] * 40}
    >>> data = bf.Histogram.from_records(kinds, rows, outside="cell")
    >>> policy = bf.policies.Full(data.domain)
    >>> laplace = bf.Laplace(policy, bf.workloads.Identity(data.domain), epsilon=1)
    >>> look_again(laplace.release(data, rng=1))[0][:62]
    'about 96 % of `contract` lies outside your categories: are the'
    """
    if not isinstance(release, HistogramRelease | TablesRelease):
        return []
    names = [attribute.name for attribute in release.domain.attributes]
    axes = [
        axis
        for axis, attribute in enumerate(release.domain.attributes)
        if 1 < attribute.size <= MOST_CELLS
    ]
    if isinstance(release, TablesRelease):
        alone = {name for table in release.asked for name in table if len(table) == 1}
        axes = [axis for axis in axes if {axis, names[axis]} & alone]
    remarks: list[str] = []
    for axis in axes[:MOST_COLUMNS]:
        column = _column(release, axis)
        remarks += [] if column is None else column.remarks()
    return remarks


def _column(release: Any, axis: int) -> ColumnCounts | None:
    """Return the counts of one column; None where their intervals are unknown."""
    attribute = release.domain.attributes[axis]
    outside, name_of = attribute.extra_cell(OUTSIDE), partial(cell_name, attribute)
    try:
        with warnings.catch_warnings():
            # Intervals of the noise alone are as good here: nothing is promised.
            warnings.simplefilter("ignore")
            if isinstance(release, TablesRelease):
                release = release.table(axis)
            if release.domain.ndim == 1:
                return counts_of_cells(release, attribute, outside, name_of)
            groups = release.group_by(axis).count()
            bounds = groups.intervals(SURE, together=True, of="noise")
            low, high = release.where().count().interval(SURE, of="noise")
    except BlowfishError:
        return None
    estimates = groups.values_array
    return ColumnCounts(attribute, outside, name_of, estimates, bounds, (low, high))


def counts_of_cells(
    release: Any,
    attribute: Axis,
    outside: int | None,
    name_of: Callable[[int], Any],
) -> ColumnCounts | None:
    """Return what a release over one attribute says of it.

    Parameters
    ----------
    release : Release
        A release over one attribute.
    attribute : Axis
        How the attribute was described.
    outside : int or None
        The cell of the release that holds the values outside all others, if any.
    name_of : callable
        Takes the number of a cell of the release and returns what it stands for.

    Returns
    -------
    ColumnCounts or None
        The counts; None where there may be no record at all, since nothing is a large
        share of that.

    Raises
    ------
    IntervalError
        If the intervals of the release are unknown.
    """
    cells, all_records = Identity(release.domain), Total(release.domain)
    ((low, high),) = release.intervals(all_records, SURE, of="noise").tolist()
    if low <= 0.0:
        return None
    bounds = release.intervals(cells, SURE, of="noise", together=True)
    estimates = release.answer(cells)
    return ColumnCounts(attribute, outside, name_of, estimates, bounds, (low, high))
