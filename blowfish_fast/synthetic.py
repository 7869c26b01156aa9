"""Records drawn from an estimate: a table that looks like the data, and is public.

    estimate      -1.2    3.4    0.3    9.5      total 12.0
    shares         0.0    3.0    0.0    9.0      nearest with no negatives, same total
    counts         0      3      0      9        each rounded up or down at random
    records        3 uniform in cell 1, 9 in cell 3, shuffled

Post-processing of public values: it costs no privacy, and any randomness will do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._typing import AnyArray, FloatArray, IntArray
from ._validation import as_integers
from .axes import MISSING, OUTSIDE, Attribute
from .cell_values import as_array, column_name, cut_values
from .domain import Domain
from .errors import InputError, SizeError
from .frames import Table

MOST_RECORDS = 2**28


def sampled_records(
    domain: Domain,
    estimate: FloatArray,
    count: Any = None,
    rng: int | np.random.Generator | None = None,
) -> Table:
    """Return records whose histogram is the estimate, rounded to whole records.

    Parameters
    ----------
    domain : Domain
        What the cells stand for.
    estimate : float64 of the domain's shape
        Public.
    count : int, optional
        How many records; by default the estimate's total, rounded.
    rng : int or numpy Generator, optional
        For the same records again.

    Returns
    -------
    Table
        A column per attribute: values uniform inside cells between edges (dates to
        their unit), levels, cell numbers. Missing values are missing; values outside
        are infinite, just after the last edge for dates, "(outside)" among levels.
    """
    generator = np.random.default_rng(rng)
    records = _record_count(estimate, count)
    shares = non_negative_shares(estimate.reshape(-1), records)
    counts = rounded_counts(shares, records, generator)
    cells = np.repeat(np.arange(domain.size), counts)
    generator.shuffle(cells)
    places = np.unravel_index(cells, domain.shape)
    return Table(
        {
            column_name(domain, axis): _values(attribute, place, generator)
            for axis, (attribute, place) in enumerate(
                zip(domain.attributes, places, strict=True)
            )
        }
    )


def _record_count(estimate: FloatArray, count: Any) -> int:
    records = (
        max(round(float(estimate.sum())), 0)
        if count is None
        else int(as_integers(count, "n"))
    )
    if records < 0:
        raise InputError(f"n must not be negative; received {count!r}")
    if records > MOST_RECORDS:
        raise SizeError(
            f"{records:,} records would be drawn; at most 2^28 = {MOST_RECORDS:,} are. "
            "Ask for fewer: sample(n=...)"
        )
    return records


def non_negative_shares(estimate: FloatArray, total: float) -> FloatArray:
    """Return the nearest cells, in least squares, without negatives and with a total.

    The estimate is first scaled to `total` where its own is positive. The nearest
    point takes one constant from all cells and sets negatives to 0, so that small
    noise on many empty cells does not outweigh the rest. O(n log n).
    """
    own = float(estimate.sum())
    values = estimate * (total / own) if own > 0 else estimate
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    kept = int(np.flatnonzero(ordered >= excess)[-1])
    shares: FloatArray = np.maximum(values - excess[kept], 0.0)
    return shares


def rounded_counts(
    shares: FloatArray, total: int, generator: np.random.Generator
) -> IntArray:
    """Round shares up or down to whole numbers with their total, without bias.

    Systematic rounding: marks at u, u + 1, u + 2, ... on the running totals, with one
    uniform u; a cell gets the marks that fall into it.
    """
    if total == 0:
        return np.zeros(shares.size, dtype=np.int64)
    ends = np.cumsum(shares)
    ends *= total / ends[-1]
    marks = np.floor(ends + generator.random()).astype(np.int64)
    marks[-1] = total
    return np.diff(np.minimum(marks, total), prepend=0)


def _values(
    attribute: Attribute, place: IntArray, generator: np.random.Generator
) -> AnyArray:
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
    step = np.minimum((share * length).astype(np.int64), length - 1)
    dates: AnyArray = low + step.astype(f"timedelta64[{attribute.unit}]")
    dates[place == attribute.extra_cell(OUTSIDE)] = cuts[-1]
    dates[place == attribute.extra_cell(MISSING)] = np.datetime64("NaT")
    return dates


def _numbers(attribute: Attribute, place: IntArray, drawn: FloatArray) -> AnyArray:
    if not attribute.extras:
        return drawn if attribute.cuts is not None else place
    drawn[place == attribute.extra_cell(OUTSIDE)] = np.inf
    drawn[place == attribute.extra_cell(MISSING)] = np.nan
    return drawn
