"""Which tables of a survey are accurate: a map of errors, attribute by attribute.

      age  sex  job       a field: the table of its row and its column
age    .    .    #        on the diagonal: the table of one attribute
sex         .    .
job              .
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from blowfish_fast._support import palette
from blowfish_fast.errors import InputError
from blowfish_fast.release.tables.accuracy import TableErrors
from blowfish_fast.workloads.tables import table_names

from .canvas import axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_WRITTEN = 16
"""Attributes up to which numbers are written into the fields."""


def table_errors(errors: TableErrors, *, axes: Axes | None = None) -> Axes:
    """Draw the error of every table of one and two attributes as a map.

    Parameters
    ----------
    errors : TableErrors
        ``mechanism.plan(records=...)``, before anything is spent, or
        ``release.errors()``. With a number of records the map shows the error as a part
        of the mean count of a cell: above 1 a table is of use in larger groups only.
    axes : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> survey = bf.Domain((4, 2, 5), names=["age", "sex", "region"])
    >>> asked = bf.workloads.Tables(survey, ways=2)
    >>> mech = bf.Contingency(bf.policies.Full(survey), asked, epsilon=1)
    >>> bf.plotting.table_errors(mech.plan(records=1000)).get_title()
    'error of a cell / mean count'
    """
    if not isinstance(errors, TableErrors):
        raise InputError(
            "give the errors of tables: mechanism.plan(records=1000), or "
            f"release.errors(); received {type(errors).__name__}"
        )
    axes_of_all = sorted({axis for one in errors.tables for axis in one})
    place = {axis: at for at, axis in enumerate(axes_of_all)}
    field = np.full((len(place), len(place)), np.nan)
    size = np.sqrt(errors.variances)
    if errors.records is not None:
        size = size * errors.cells / max(errors.records, 1)
    for table, value in zip(errors.tables, size, strict=True):
        if len(table) <= 2:
            row, column = place[table[0]], place[table[-1]]
            field[row, column] = value
    drawn = axes_for(axes, (6.4, 5.4), "A map of errors")
    _draw(drawn, field, [str(one) for one in table_names(errors.domain, axes_of_all)])
    relative = errors.records is not None
    drawn.set_title(
        "error of a cell / mean count" if relative else "error of a cell (rms, records)"
    )
    return drawn


def _draw(axes: Axes, field: np.ndarray, names: list[str]) -> None:
    known = field[np.isfinite(field)]
    shown = np.log10(np.maximum(field, known[known > 0].min(initial=1e-6)))
    image = axes.imshow(shown, cmap=palette.COUNTS)
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right")
    axes.set_yticks(range(len(names)), names)
    if len(names) <= MOST_WRITTEN:
        middle = np.nanmean(shown)
        for row, column in np.argwhere(np.isfinite(field)):
            value = field[row, column]
            colour = "white" if shown[row, column] < middle else "black"
            text = f"{value:.2g}" if value < 100 else f"{value:.0f}"
            axes.text(
                column, row, text, ha="center", va="center", fontsize=7, color=colour
            )
    bar = axes.figure.colorbar(image, ax=axes)
    low, high = image.get_clim()
    ticks = [one for one in bar.get_ticks() if low <= one <= high]
    bar.set_ticks(ticks, labels=[f"{10.0**one:.3g}" for one in ticks])
