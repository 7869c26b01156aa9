"""How cells of one attribute are merged before tables of several are measured.

Everything here reads a noisy single table that was published before, or public sizes,
so nothing of it costs privacy: Lemma DC1 of ``docs/proofs/chosen_tables.md``.
"""

from __future__ import annotations

import math

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.tables.merged_tables import Grouping
from blowfish_fast.measure.strategies.prefix_sums import Totals, multiscale_buckets
from blowfish_fast.release.synthetic import non_negative_shares

MOST_MERGED = 24
"""Merged cells of an attribute, at most. Chosen on Adult: 16 and 32 were not better."""

LEAST_DEVIATIONS = 4.0
"""A merged cell holds at least so many standard deviations of its noise (Adult)."""

LEVELS = (16, 8, 4, 2)
"""Coarser levels at which a table of several attributes may be measured."""

MOST_SMOOTHED = 512
"""Cells of an attribute that are smoothed; the time grows with their square."""

FEWEST_SMOOTHED = 9
RUN_PRICE = 2.0
"""What one more run of equal cells costs, in variances of a cell."""

WIDTHS = (0.7, 1.2, 2.0, 3.5, 6.0)
"""Standard deviations, in cells, of the Gaussian kernels that are tried."""

SPIKE = 4.0
"""A cell so many standard deviations off the median around it is left as it is."""

HALF_WINDOW = 3


def smoothed(noisy: FloatArray, variance: float) -> FloatArray:
    """Return the mean of noisy ordered cells, of runs of equal ones and of a kernel.

    None of the three is best on all attributes; their mean is close to the best.

    Parameters
    ----------
    noisy : (cells,) float64
        Noisy counts of ordered cells.
    variance : float
        The variance of the noise in each of them.

    Returns
    -------
    (cells,) float64
        Smoothed counts. They are `noisy` itself where there are fewer than 9 or more
        than 512 cells, or no noise. O(cells^2).
    """
    if not FEWEST_SMOOTHED <= noisy.size <= MOST_SMOOTHED or not variance > 0:
        return noisy
    return (noisy + _equal_runs(noisy, variance) + _kernel(noisy, variance)) / 3.0


def _equal_runs(noisy: FloatArray, variance: float) -> FloatArray:
    """Return the runs of equal cells with the least squared error and price."""
    sums = np.concatenate([[0.0], np.cumsum(noisy)])
    squares = np.concatenate([[0.0], np.cumsum(noisy**2)])
    costs = np.zeros(noisy.size + 1)
    begins = np.zeros(noisy.size + 1, dtype=np.int64)
    for end in range(1, noisy.size + 1):
        lengths = np.arange(end, 0, -1)
        error = squares[end] - squares[:end] - (sums[end] - sums[:end]) ** 2 / lengths
        # What noise alone would leave is no error.
        error = np.maximum(error - (lengths - 1) * variance, 0.0)
        totals = costs[:end] + error + RUN_PRICE * variance
        begins[end] = int(totals.argmin())
        costs[end] = totals[begins[end]]
    values, end = np.empty(noisy.size), noisy.size
    while end:
        begin = int(begins[end])
        values[begin:end] = (sums[end] - sums[begin]) / (end - begin)
        end = begin
    return values


def _kernel(noisy: FloatArray, variance: float) -> FloatArray:
    """Return a Gaussian smoothing of what is no spike, by Stein's estimate of risk."""
    padded = np.pad(noisy, HALF_WINDOW, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * HALF_WINDOW + 1)
    around = np.median(windows, axis=1)
    spikes = np.abs(noisy - around) > SPIKE * math.sqrt(variance)
    places = np.arange(noisy.size)
    best, least = noisy, variance * noisy.size
    for width in WIDTHS:
        pull = np.exp(-0.5 * ((places[:, None] - places) / width) ** 2) * ~spikes
        pull[spikes] = 0.0
        pull[spikes, places[spikes]] = 1.0
        pull /= pull.sum(axis=1, keepdims=True)
        # No matrix product: sums in a fixed order make the same choices everywhere.
        values = (pull * noisy).sum(axis=1)
        risk = float(((noisy - values) ** 2).sum())
        risk += variance * (2.0 * float(np.trace(pull)) - noisy.size)
        if risk < least:
            best, least = values, risk
    return best


def cells_of_totals(
    noisy: IntArray, variance: float, records: int
) -> tuple[IntArray, float]:
    """Return the cells of noisy running totals, and the variance of each of them.

    Parameters
    ----------
    noisy : (cells,) int64
        Noisy running totals; the last one is not read.
    variance : float
        Of each total.
    records : int
        The last total, which is exact.

    Returns
    -------
    cells : (cells,) int64
        Differences of totals.
    variance : float
        Of a cell between two noisy totals.

    Examples
    --------
    >>> cells_of_totals(np.array([4, 4, 7, 0]), 2.0, 9)
    (array([4, 0, 3, 2]), 4.0)
    """
    totals = noisy.copy()
    totals[-1] = records
    return np.diff(totals, prepend=0), 2.0 * variance


def smoothed_totals(cells: FloatArray, variance: float) -> FloatArray:
    """Return cells of 0 or more from differences of noisy running totals, smoothed.

    Parameters
    ----------
    cells : (cells,) float64
        What `cells_of_totals` returned: they add up to an exact number.
    variance : float
        Of a cell between two noisy totals.

    Returns
    -------
    (cells,) float64
        Expected records in each cell, with the same sum.
    """
    ends = np.arange(cells.size) == cells.size - 1
    totals = Totals(np.cumsum(cells), ends, 0.5 * variance, 0.0, 0.0)
    return multiscale_buckets(totals)


def likely_cells(
    noisy: FloatArray, variance: float, total: float, regular: int | None
) -> FloatArray:
    """Return cells without negatives that add up to a total, smoothed if ordered.

    Parameters
    ----------
    noisy : (cells,) float64
        A noisy single table.
    variance : float
        Of each cell; infinite where nothing was measured.
    total : float
        Number of records, positive.
    regular : int or None
        How many of the first cells are ordered; None for unordered levels.

    Returns
    -------
    (cells,) float64
        Expected records in each cell; the same in all where nothing was measured.
    """
    if not math.isfinite(variance):
        return np.full(noisy.size, total / noisy.size)
    values = noisy.astype(np.float64)
    if regular is not None:
        values[:regular] = smoothed(values[:regular], variance)
    # Their own sum is not trusted more than the total: no scaling, a shift.
    values = values + (total - values.sum()) / values.size
    return non_negative_shares(values, total)


def merged_cells(
    shares: FloatArray, ordered: bool, most: int, least: float
) -> Grouping:
    """Merge cells until none of them, but one, holds less than `least`.

    Parameters
    ----------
    shares : (cells,) float64
        Expected records in each cell.
    ordered : bool
        Ordered cells are merged into runs of about equal weight; of others the
        largest stay alone and the rest are put together.
    most : int
        Merged cells, at most.
    least : float
        Records that a merged cell should hold.

    Returns
    -------
    Grouping
        The merged cell of each cell.

    Examples
    --------
    >>> merged_cells(np.array([5.0, 1, 1, 9, 0, 4]), True, 3, 2.0).labels.tolist()
    [0, 0, 0, 1, 2, 2]
    >>> merged_cells(np.array([5.0, 1, 1, 9, 0, 4]), False, 3, 2.0).labels.tolist()
    [1, 2, 2, 0, 2, 2]
    """
    cells = shares.size
    if cells <= most and bool((shares >= least).all()):
        return Grouping.single_cells(cells)
    return Grouping(
        _runs(shares, most, least) if ordered else _largest(shares, most, least)
    )


def _largest(shares: FloatArray, most: int, least: float) -> IntArray:
    """Label the largest cells by rank, and all others as one more."""
    order = np.argsort(-shares, kind="stable")
    alone = min(max(int((shares >= least).sum()), 1), most - 1)
    labels = np.empty(shares.size, dtype=np.int64)
    labels[order] = np.minimum(np.arange(shares.size), alone)
    return labels


def _runs(shares: FloatArray, most: int, least: float) -> IntArray:
    """Label runs of about total / most records; a heavy cell begins its own run."""
    goal = max(float(shares.sum()) / most, least, 1e-300)
    labels = np.zeros(shares.size, dtype=np.int64)
    run, weight = 0, 0.0
    for cell in range(1, shares.size):
        weight += float(shares[cell - 1])
        heavy = bool(shares[cell] >= goal)
        if weight >= (min(least, goal) if heavy else goal) and weight > 0.0:
            run, weight = run + 1, 0.0
        labels[cell] = run
    # What is left over at the end joins the run before.
    if run and float(shares[labels == run].sum()) < least:
        labels[labels == run] = run - 1
        run -= 1
    if run >= most:
        labels = labels * most // (run + 1)
    return labels


def coarser_levels(shares: FloatArray, ordered: bool) -> tuple[Grouping, ...]:
    """Return groupings of merged cells into fewer and fewer, the finest first.

    Parameters
    ----------
    shares : (merged cells,) float64
        Expected records in each merged cell.
    ordered : bool
        As for `merged_cells`.

    Returns
    -------
    tuple of Grouping
        Each groups the merged cells themselves: the first one merges nothing, the next
        ones leave at most 16, 8, 4 and 2. Levels that merge no further are left out.
    """
    levels = [Grouping.single_cells(shares.size)]
    for most in LEVELS:
        if most < levels[-1].count:
            level = merged_cells(shares, ordered, most, 0.0)
            if level.count < levels[-1].count:
                levels.append(level)
    return tuple(levels)
