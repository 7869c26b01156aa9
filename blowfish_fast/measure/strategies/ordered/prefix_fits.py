"""What noisy running totals tell about counts: they never decrease, and are smooth.

Everything here reads noisy values and public facts, after the noise: it is free. Which
fit serves best depends on how much is asked at once, on the records per cell in units
of the noise, and on whether few knots are enough for the noisy totals.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.measure.handle import Measurement

from .ordered_hierarchy import OrderedHierarchy
from .prefix_sums import PrefixSums, Totals, monotone_buckets, straight_pieces

SINGLE_CELLS = 1.5
"""Up to so many cells per query, each cell counts by itself."""

SHORT_RANGES = 64.0
"""Beyond so many cells per query, smoothing single cells gains nothing."""

FEW_RECORDS = 0.1
"""Records per cell, in units of the noise, below which straight pieces help too."""

FEW_KNOTS = 8
"""Cells per knot, at least, of data that count as even between knots."""

LAGS = (1, 2, 3, 4)

LONG = 8
"""Cells of a stretch that counts as even; these must hold half of the records."""


def running_totals(measured: Measurement) -> Totals | None:
    """Return the estimated running totals, if running totals were measured."""
    strategy, scales = measured.strategy, measured.scales
    if isinstance(strategy, PrefixSums):
        return strategy.totals(measured.noisy, scales)
    if not isinstance(strategy, OrderedHierarchy):
        return None
    values = np.cumsum(strategy.infer(measured.noisy, scales))
    exact = scales.exact[: strategy.blocks]
    ends = strategy.edges[1:][exact] - 1
    known = np.zeros(strategy.cells, dtype=np.bool_)
    known[ends] = True
    # Least squares meets exact totals up to rounding; fits pass through them.
    values[ends] = measured.noisy[: strategy.blocks][exact]
    return Totals.with_noise(values, known, scales)


def smoothed_cells(totals: Totals, query_cells: float) -> FloatArray:
    """Return counts from running totals of single cells, the last of them exact.

    All noise is of one size; a typical query covers `query_cells` cells.
    """
    if not totals.variance:
        return monotone_buckets(totals)
    records = float(totals.values[-1])
    few = records < FEW_RECORDS * totals.width * totals.values.size
    knotted = None if few and query_cells <= SINGLE_CELLS else _knotted(totals)
    if knotted is not None:
        return monotone_buckets(knotted)
    if query_cells > SHORT_RANGES:
        return monotone_buckets(totals)
    cells = kernels.multiscale_cells(totals.values, totals.known, totals.variance)
    values = np.where(totals.known, totals.values, np.cumsum(cells))
    by_scale = monotone_buckets(totals._replace(values=values))
    if query_cells <= SINGLE_CELLS and not few:
        return by_scale
    by_pieces = monotone_buckets(straight_pieces(totals))
    both: FloatArray = 0.5 * (by_scale + by_pieces)
    return both


def _knotted(totals: Totals) -> Totals | None:
    """Fit totals that are straight between few knots; None where few are not enough.

    Knots are sought where straight pieces end, and dropped while one saves less squared
    error than its two parameters cost, 2 ln(cells) variances, or than one outlier may.
    """
    cells = totals.values.size
    pieces = straight_pieces(totals).values
    bends = np.abs(np.diff(np.diff(pieces, prepend=0.0), append=np.inf))
    bent = bends > 1e-9 * totals.width
    kept = bent | totals.known
    if np.count_nonzero(kept & ~totals.known) * FEW_KNOTS > 4 * cells:
        return None
    running = _running_moments(totals.values)
    while True:
        knots = np.flatnonzero(kept) + 1
        heights, gains = _between_knots(totals, knots, running)
        lengths = np.diff(knots, prepend=0)
        short = np.minimum(lengths, np.append(lengths[1:], cells))
        # A knot between long stretches listens to many totals, none of them much.
        heard = totals.outlier**2 * np.minimum(1.0, 4.0 / short)
        price = np.maximum(2.0 * np.log(cells) * totals.variance, heard)
        free = ~totals.known[knots - 1]
        around = np.concatenate([[np.inf], np.where(free, gains, np.inf), [np.inf]])
        least = np.minimum(around[:-2], around[2:])
        dropped = free & (gains < price) & (gains <= least)
        if not dropped.any():
            break
        kept[knots[dropped] - 1] = False
    places = np.append(0, knots)
    even = np.diff(np.append(0.0, heights))[lengths >= LONG].sum()
    few = np.count_nonzero(free) * FEW_KNOTS <= cells
    if not few or 2.0 * even < totals.values[-1]:
        return None
    straight = np.interp(np.arange(1, cells + 1), places, np.append(0.0, heights))
    # Noise has no memory: residuals that go together tell of something straightened
    # that is not straight. Four standard deviations, over several lags; chosen, as the
    # constants above, on steps, ramps and spikes of 1,024 cells.
    off = totals.values - straight
    together = sum(float(off[lag:] @ off[:-lag]) for lag in LAGS if lag < cells)
    if together > 4.0 * np.sqrt(len(LAGS) / cells) * float(off @ off):
        return None
    return totals._replace(values=np.where(totals.known, totals.values, straight))


def _running_moments(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return running sums of the values, and of the values times their place."""
    place = np.arange(1.0, values.size + 1.0)
    return (
        np.append(0.0, np.cumsum(values)),
        np.append(0.0, np.cumsum(place * values)),
    )


def _between_knots(
    totals: Totals, knots: IntArray, running: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return least-squares totals at the knots, and the error that each one saves."""
    sums, moments = running
    begin = np.append(0, knots[:-1])
    length = (knots - begin).astype(np.float64)
    # Sums over j = 1 .. L of (j/L)^2, (1 - j/L)^2 and their product.
    rising = (length + 1.0) * (2.0 * length + 1.0) / (6.0 * length)
    mixed = (length + 1.0) / 2.0 - rising
    total = sums[knots] - sums[begin]
    leaned = (moments[knots] - moments[begin] - begin * total) / length
    diagonal = rising + np.append(rising[1:] - 1.0, 0.0)
    right = leaned + np.append((total - leaned)[1:], 0.0)
    fixed = totals.known[knots - 1]
    right = np.where(fixed, totals.values[knots - 1], right)
    return kernels.knot_heights(diagonal, mixed, right, length, fixed)
