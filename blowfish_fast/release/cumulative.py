"""The distribution function and the quantiles of a release, with intervals.

Everything here reads public values: the estimate of the cells of one ordered
attribute, and the spread of the noise in its running totals.

    running totals   2.1  1.7  6.0  9.0    -> never decreasing, from 0 to the total
    cdf              .21  .21  .67  1.0    -> over the total
    quantile .5      cell 2                -> the first cell whose cdf reaches it

An interval of the cdf holds the noise of one running total. Intervals of quantiles come
from a band that holds *all* running totals at once: each of m noisy totals may leave it
with probability (1 - confidence) / m. The true totals never decrease, so the band's
lower end is raised to all lower ends before it and its upper end lowered to all upper
ends after it. The first cell whose upper end reaches a rank and the first whose lower
end does enclose the true quantile, for all quantiles at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast._support.validation import malformed_as
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import DomainError, InputError
from blowfish_fast.measure.laplace_tails import noise_half_widths
from blowfish_fast.measure.noise import Spread, without_rounding


def check_ordered(domain: Domain, name: str) -> None:
    """Refuse domains whose cells do not all lie along one axis."""
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
    """Return the part of all records at or before each cell; uniform if there is none.

    The last entry is 1.
    """
    totals = monotone_totals(estimate)
    if totals[-1] == 0.0:
        return np.arange(1, totals.size + 1) / totals.size
    fractions: FloatArray = totals / totals[-1]
    return fractions


def cdf_bounds(linear: FloatArray, spread: Spread, miss: float) -> FloatArray:
    """Return an interval for each entry of the cdf, shape (cells, 2).

    Each misses with probability `miss` at most. Where the total is private, half of
    that goes to the running total and half to the total it is divided by.
    """
    totals = _linear_totals(linear, spread)
    private = spread.square[-1] > 0.0
    half = noise_half_widths(spread, 0.5 * miss if private else miss)
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
    """Return the quantiles of an estimate.

    With edges, values along the axis, records taken as uniform inside a cell, or dates
    in the unit of the axis; else cell numbers: the first cell up to which at least a
    part q of all records lies.
    """
    parts = _as_parts(q)
    totals = monotone_totals(estimate)
    ranks = parts * totals[-1]
    # A rank that a cell reaches but for rounding is reached there.
    cells = _first_reaching(totals, ranks * (1.0 - 2.0**-40))
    edges = domain.attributes[0].edges
    if edges is None:
        return cells
    cuts = np.asarray(edges, dtype=np.float64)
    before = np.append(0.0, totals)[cells]
    inside = totals[cells] - before
    share = np.clip((ranks - before) / np.where(inside > 0.0, inside, 1.0), 0.0, 1.0)
    values: FloatArray = cuts[cells] + share * (cuts[cells + 1] - cuts[cells])
    return _in_values(domain, values)


def quantile_bounds(
    domain: Domain, linear: FloatArray, spread: Spread, q: Any, miss: float
) -> AnyArray:
    """Return an interval for each quantile, shape (..., 2), all true at once.

    Together they miss with probability `miss` at most. With edges, values; else the
    first and the last cell that may hold the quantile.
    """
    parts = _as_parts(q)
    low, high = _band(linear, spread, miss)
    first = _first_reaching(high, parts * low[-1])
    last = np.maximum(_first_reaching(low, parts * high[-1]), first)
    edges = domain.attributes[0].edges
    if edges is None:
        return np.stack([first, last], axis=-1)
    cuts = np.asarray(edges, dtype=np.float64)
    return _in_values(domain, np.stack([cuts[first], cuts[last + 1]], axis=-1))


def _band(
    linear: FloatArray, spread: Spread, miss: float
) -> tuple[FloatArray, FloatArray]:
    """Return bounds that hold all running totals at once."""
    noisy = int((spread.square > 0.0).sum())
    half = noise_half_widths(spread, miss / max(noisy, 1))
    totals = _linear_totals(linear, spread)
    low = np.maximum.accumulate(np.maximum(totals - half, 0.0))
    high = np.minimum.accumulate((totals + half)[::-1])[::-1]
    return low, np.maximum(high, 0.0)


def _linear_totals(linear: FloatArray, spread: Spread) -> FloatArray:
    """Return running totals; those without noise are whole numbers but for rounding."""
    return without_rounding(np.cumsum(linear), np.sqrt(spread.square), linear)


def _first_reaching(totals: FloatArray, ranks: FloatArray) -> IntArray:
    """Return the first cell whose total is at least the rank, else the last cell."""
    return np.minimum(np.searchsorted(totals, ranks), totals.size - 1)


def _in_values(domain: Domain, places: FloatArray) -> AnyArray:
    """Return places along the axis as dates where the axis has dates."""
    unit = domain.attributes[0].unit
    return (
        places
        if unit is None
        else np.floor(places).astype(np.int64).astype(f"M8[{unit}]")
    )


def _as_parts(q: Any) -> FloatArray:
    with malformed_as(InputError, "quantiles are asked for as parts from 0 to 1"):
        parts = np.asarray(q, dtype=np.float64)
    if not ((parts >= 0.0) & (parts <= 1.0)).all():
        raise InputError(
            f"quantiles are asked for as parts from 0 to 1; received {q!r}. The median "
            "is 0.5"
        )
    return parts
