"""What noisy running totals tell about counts: they never decrease, and are smooth.

Everything here reads noisy values and public totals, after the noise: it is free.

    isotonic     the closest totals that never decrease
    piecewise    straight pieces first, each at the price of its parameters
    multiscale   windows of every size, halved towards equal halves

Which of them serves best depends on how much is asked at once, and on how many records
there are for the noise; both are public.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, FloatArray
from blowfish_fast.measure.handle import Measurement

from .ordered_hierarchy import OrderedHierarchy
from .prefix_sums import PrefixSums

SINGLE_CELLS = 1.5
"""Up to so many cells per query, each cell counts by itself."""

SHORT_RANGES = 64.0
"""Beyond so many cells per query, smoothing single cells gains nothing."""

FEW_RECORDS = 0.1
"""Records per cell, in units of the noise, below which straight pieces help too."""


class Totals(NamedTuple):
    """Running totals of buckets, which of them are exact, and the others' noise."""

    values: FloatArray
    known: BoolArray
    variance: float
    width: float


def running_totals(measured: Measurement) -> Totals | None:
    """Return the estimated running totals, if running totals were measured."""
    strategy, scales = measured.strategy, measured.scales
    noisy = scales.measured
    variance = float(scales.variances[noisy].max(initial=0.0))
    width = float(scales.widths.max(initial=0.0))
    if isinstance(strategy, PrefixSums):
        values = strategy.totals(measured.noisy, scales)
        return Totals(values, scales.exact, variance, width)
    if not isinstance(strategy, OrderedHierarchy):
        return None
    values = np.cumsum(strategy.infer(measured.noisy, scales))
    exact = scales.exact[: strategy.blocks]
    ends = strategy.edges[1:][exact] - 1
    known = np.zeros(strategy.cells, dtype=np.bool_)
    known[ends] = True
    # Least squares meets exact totals up to rounding; fits pass through them.
    values[ends] = measured.noisy[: strategy.blocks][exact]
    return Totals(values, known, variance, width)


def monotone_buckets(totals: Totals) -> FloatArray:
    """Return the counts whose running totals are closest and never decrease."""
    fitted = kernels.isotonic_fit(totals.values, totals.known, low=0.0)
    return np.diff(fitted, prepend=0.0)


def smoothed_cells(totals: Totals, query_cells: float) -> FloatArray:
    """Return counts from running totals of single cells, the last of them exact.

    Parameters
    ----------
    totals : Totals
        With noise of one size on all that are not exact.
    query_cells : float
        How many cells a typical query covers.
    """
    if query_cells > SHORT_RANGES or not totals.variance:
        return monotone_buckets(totals)
    by_scale = monotone_buckets(_multiscale(totals))
    records = float(totals.values[-1])
    few = records < FEW_RECORDS * totals.width * totals.values.size
    if query_cells <= SINGLE_CELLS and not few:
        return by_scale
    by_pieces = monotone_buckets(_piecewise(totals))
    both: FloatArray = 0.5 * (by_scale + by_pieces)
    return both


def _multiscale(totals: Totals) -> Totals:
    cells = kernels.multiscale_cells(totals.values, totals.known, totals.variance)
    values = np.where(totals.known, totals.values, np.cumsum(cells))
    return totals._replace(values=values)


def _piecewise(totals: Totals) -> Totals:
    """Fit straight pieces between exact totals; ln(cells) variances per parameter."""
    ends = np.flatnonzero(totals.known)
    starts = np.append(0, ends[:-1] + 1)
    penalties = totals.variance * np.log(ends - starts + 1.0)
    return totals._replace(
        values=kernels.piecewise_linear(totals.values, starts, ends, penalties)
    )
