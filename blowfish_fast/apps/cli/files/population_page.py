"""What a table and a page of a release say of the population it was drawn from.

A release that says how its records were drawn has intervals of the population beside
those of its records: numbers of people, or shares where nobody stated how many people
there are. Which part of each variance is noise stands beside them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from blowfish_fast._support.interval_texts import end_text
from blowfish_fast._support.typing import AnyArray
from blowfish_fast.apps.cli.answer_table import group_text
from blowfish_fast.apps.cli.explanations import Section
from blowfish_fast.data.frames import Table
from blowfish_fast.errors import IntervalError
from blowfish_fast.release.grants import BOUND_NAMES
from blowfish_fast.release.release import HistogramRelease
from blowfish_fast.release.sampling.designs import Simple
from blowfish_fast.workloads import Rectangles

MOST_CELLS = 1024
"""Cells of a table up to which each has an interval of the population. An exact one
takes some milliseconds where a part of all people was drawn."""
FEW = 12
"""Values of a column up to which a page shows the share of each."""
HEADING = "What it says of the population"


def population_columns(
    release: Any, confidence: float, most: int = MOST_CELLS
) -> dict[str, AnyArray]:
    """Return columns about the population, for the first cells of a table.

    Parameters
    ----------
    release : Release
        What was published; only one with a design has such columns.
    confidence : float
        Over the draw of the sample and the noise.
    most : int
        Of how many cells; the rest is filled with NaN.

    Returns
    -------
    dict of ndarray
        Estimates, both ends, and the part of the variance that is noise; empty where
        no design was stated, or nothing is known of single cells.
    """
    if not isinstance(release, HistogramRelease) or release.design is None:
        return {}
    domain = release.domain
    many = min(domain.size, most)
    places = np.stack(np.unravel_index(np.arange(many), domain.shape), axis=-1)
    cells = Rectangles(domain, places, places + 1)
    try:
        answers = _Cells(release, cells, confidence).columns()
    except IntervalError:
        # Cells of merged buckets have no intervals of the population.
        return {}
    filled = {}
    for name, column in answers.items():
        filled[name] = np.full(domain.size, np.nan)
        filled[name][:many] = column
    return filled


def with_population(
    table: Table, release: Any, confidence: float, most: int | None = None
) -> Table:
    """Return a table of cells with columns about the population, where there are such.

    Parameters
    ----------
    table : Table
        A line for each cell.
    release : Release
        What was published.
    confidence : float
        Over the draw of the sample and the noise.
    most : int, optional
        How many cells are shown. By default all are written, and a table of more than
        `MOST_CELLS` stays as it is.

    Returns
    -------
    Table
        The table.
    """
    if most is None and release.domain.size > MOST_CELLS:
        return table
    columns = population_columns(release, confidence, most or MOST_CELLS)
    return Table({**table.columns, **columns}, experiment=table.experiment)


class _Cells:
    """Single cells of a release, asked about the population."""

    def __init__(
        self, release: HistogramRelease, cells: Rectangles, confidence: float
    ) -> None:
        self.release, self.cells, self.confidence = release, cells, confidence

    def columns(self) -> dict[str, AnyArray]:
        from blowfish_fast.release.sampling.numbers import count_parts, scaled_counts

        low, high = BOUND_NAMES["population"]
        design = self.release.design
        if isinstance(design, Simple) and design.population is None:
            return self._shares()
        bounds = self.release.intervals(self.cells, self.confidence, of="population")
        drawn, noise = count_parts(self.release, self.cells)
        return {
            "population_count": scaled_counts(self.release, self.cells),
            low: bounds[:, 0],
            high: bounds[:, 1],
            "noise_share": noise / np.maximum(drawn + noise, 1e-300),
        }

    def _shares(self) -> dict[str, AnyArray]:
        low, high = BOUND_NAMES["population"]
        if self.release.domain.size > MOST_CELLS:
            raise IntervalError(f"shares of more than {MOST_CELLS:,} cells take long")
        asked = self.release.group_by(*range(self.release.domain.ndim))
        shares = asked.in_population().relative_count()
        bounds = shares.intervals(self.confidence, of="population")
        parts = [part.noise_share for part in shares.variance_parts()]
        many = self.cells.queries
        return {
            "population_share": shares.values_array[:many],
            low: bounds[:many, 0],
            high: bounds[:many, 1],
            "noise_share": np.array(parts[:many]),
        }


def population_section(release: Any, confidence: float) -> list[Section]:
    """Say what intervals of the population hold, and what makes them wide.

    Parameters
    ----------
    release : Release
        What was published.
    confidence : float
        Over the draw of the sample and the noise.

    Returns
    -------
    list of Section
        One section; none for a release without a design.
    """
    if not isinstance(release, HistogramRelease) or release.design is None:
        return []
    sentences, rows = [release.interval_sentence("population", confidence)], []
    small = (at for at, cells in enumerate(release.domain.shape) if cells <= FEW)
    column = next(small, None)
    if column is not None:
        with suppress(IntervalError):
            rows = _share_rows(release, column, confidence)
            sentences.append(
                f"Shares by {release.domain.column_names[column]}, with the part of "
                "each variance that comes from drawing the records, and the part that "
                "comes from privacy noise:"
            )
    return [Section(HEADING, sentences, tuple(rows))]


def _share_rows(
    release: HistogramRelease, column: int, confidence: float
) -> list[tuple[str, ...]]:
    """Return a line for each value of a column: its share, interval, and both parts."""
    shares = release.group_by(column).in_population().relative_count()
    bounds = shares.intervals(confidence, of="population")
    name = release.domain.column_names[column]
    rows: list[tuple[str, ...]] = [
        (name, "share", "from", "to", "by sampling", "by noise")
    ]
    lines = zip(
        shares, shares.values_array, bounds, shares.variance_parts(), strict=True
    )
    for group, share, (low, high), parts in lines:
        label = group_text(group)
        ends = [
            end_text(100.0 * low, 1, upwards=False),
            end_text(100.0 * high, 1, upwards=True),
        ]
        noise = 100.0 * parts.noise_share
        numbers = (
            f"{100.0 * share:.1f}",
            *ends,
            f"{100.0 - noise:.1f}",
            f"{noise:.1f}",
        )
        rows.append((label, *(f"{number} %" for number in numbers)))
    return rows
