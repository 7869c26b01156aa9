"""Records drawn from an estimate: a table that looks like the data, and is public."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_generator, as_whole, malformed_as
from blowfish_fast.data.axes import MISSING, OUTSIDE, Axis, as_array, cut_values
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.frames import Table
from blowfish_fast.errors import InputError, SizeError

MOST_RECORDS = 2**28
LEAST_PART = 2.0**-20
"""Of all cells together, without their signs, that a total is taken seriously."""


def sample_records(
    domain: Domain,
    estimate: FloatArray,
    count: Any = None,
    rng: int | np.random.Generator | None = None,
) -> Table:
    """Return records whose histogram is the estimate, rounded to whole records.

    A column per attribute: values uniform inside cells between edges (dates to their
    unit), levels, cell numbers. Missing values are missing; values outside are
    infinite, just after the last edge for dates, "(outside)" among levels.
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
    """Read how many records are drawn; by default so many as the total says."""
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
    """
    own = float(estimate.sum())
    # Next to nothing would be scaled to infinity, and what rounding left to much.
    nothing = max(float(np.abs(estimate).sum()) * LEAST_PART, 1e-100)
    values = estimate * (total / own) if own > nothing else estimate
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    kept = int(np.flatnonzero(ordered >= excess)[-1])
    shares: FloatArray = np.maximum(values - excess[kept], 0.0)
    return shares


def publishable_counts(estimate: FloatArray) -> IntArray:
    """Return whole counts, none negative, with the estimate's own total, rounded.

    Coins come from a digest of the estimate, so that a release is always rounded alike.
    """
    total = max(round(float(estimate.sum())), 0)
    digest = hashlib.sha256(np.ascontiguousarray(estimate).tobytes()).digest()
    generator = np.random.default_rng(int.from_bytes(digest[:16], "little"))
    shares = non_negative_shares(estimate.reshape(-1), total)
    return round_counts(shares, total, generator).reshape(estimate.shape)


def round_counts(
    shares: FloatArray, total: int, generator: np.random.Generator
) -> IntArray:
    """Round shares up or down to whole numbers with their total, without bias.

    Pivotal sampling (Deville and Tille 1998) along a tree: neighbours pool the chances
    of one record more, one of them is decided, and the other goes on. Stretches of
    cells keep their totals but for a record or so. O(n).
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
        given = pool >= 1.0
        stays = np.where(given, 1.0 - second, second)
        parts = np.where(given, 2.0 - pool, pool)
        last = generator.random(pool.size) * parts < stays
        pairs = places[:paired].reshape(-1, 2)
        remaining = np.where(last, pairs[:, 1], pairs[:, 0])
        decided = np.where(last, pairs[:, 0], pairs[:, 1])
        counts[decided[given]] += 1
        places = np.append(remaining, places[paired:])
        chances = np.append(np.where(given, pool - 1.0, pool), chances[paired:])
    if places.size:
        # The last chance is 0 or 1 but for rounding: the total decides it.
        counts[places[0]] += total - int(counts.sum())
    return counts


def draw_values(
    attribute: Axis, place: IntArray, generator: np.random.Generator
) -> AnyArray:
    """Return values of one attribute, uniform inside their cells."""
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
    dates[place == attribute.extra_cell(MISSING)] = "NaT"
    return dates


def _numbers(attribute: Axis, place: IntArray, drawn: FloatArray) -> AnyArray:
    if not attribute.extras:
        return drawn if attribute.cuts is not None else place
    drawn[place == attribute.extra_cell(OUTSIDE)] = np.inf
    drawn[place == attribute.extra_cell(MISSING)] = np.nan
    return drawn
