"""Measure the running totals of the cells, all with the same noise, and fit them.

A record that moves from u to v changes the rows between them, so noise grows with the
longest edge of the policy and not with the number of cells. A row that no edge changes
is published exactly: the end of every stretch that no record can leave. Fits read noisy
values and public facts, so they are free. Which one serves best depends on how much is
asked at once, on the records per cell in units of the noise, and on whether few knots
are enough for the noisy totals.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.measure.linear_strategy import (
    LinearStrategy,
    StrategyNoise,
    known_noise,
)
from blowfish_fast.measure.noise import WEIGHT_BITS, Scales, Spread
from blowfish_fast.measure.tails import equal_sum_half_widths
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Form, Fractions, Implicit, Pieces

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


class LineReach:
    """How far the edges of a policy over one ordered attribute go.

    No neighbour of a cell lies further than `far`, which is exact where the policy
    lists its furthest neighbours. `bottom` marks the cells joined to "absent".
    """

    def __init__(self, policy: Policy) -> None:
        cells = policy.domain.size
        band = policy.bandwidth()
        if band is None:
            steps = policy.longest_edge() if policy.has_moves else 0
            self.far = np.minimum(np.arange(cells) + steps, cells - 1)
        else:
            self.far = band.far
        self.bottom = policy.bottom_cells()

    @cached_property
    def furthest(self) -> IntArray:
        """The furthest that any cell up to this one goes; never decreases."""
        return np.maximum.accumulate(self.far)

    @cached_property
    def uncrossed(self) -> BoolArray:
        """Borders after each cell over which no record can move."""
        uncrossed: BoolArray = self.furthest == np.arange(self.far.size)
        return uncrossed

    @cached_property
    def settled(self) -> BoolArray:
        """Prefix sums, by their last cell, that no edge changes."""
        return self.uncrossed & ~np.logical_or.accumulate(self.bottom)

    @property
    def lengths(self) -> IntArray:
        """Cells that the longest edge from each cell spans, to the right."""
        return self.far - np.arange(self.far.size)

    def stretches(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return where stretches that no record can leave begin and end, and reach."""
        ends = np.flatnonzero(self.uncrossed) + 1
        starts = np.append(0, ends[:-1])
        return starts, ends, np.maximum.reduceat(self.lengths, starts)


class Totals(NamedTuple):
    """Running totals of the cells, and their noise.

    Attributes
    ----------
    values : ndarray of float64, shape (cells,)
        The totals.
    known : ndarray of bool, shape (cells,)
        Which of them have no noise.
    variance : float
        Variance of the noise of the others.
    width : float
        Scale of their noise.
    outlier : float
        With chance 19/20 no row is off by more.
    """

    values: FloatArray
    known: BoolArray
    variance: float
    width: float
    outlier: float

    @classmethod
    def with_noise(cls, values: FloatArray, known: BoolArray, scales: Scales) -> Self:
        """Return totals with the noise of their rows.

        Parameters
        ----------
        values : ndarray of float64, shape (cells,)
            The totals.
        known : ndarray of bool, shape (cells,)
            Which of them have no noise.
        scales : Scales
            The noise of the measured rows.

        Returns
        -------
        Self
            The totals.
        """
        variance = float(scales.variances[scales.measured].max(initial=0.0))
        width = float(scales.widths.max(initial=0.0))
        tail = np.log(20.0 * scales.rates.size)
        outlier = width * float(tail if scales.power == 1 else np.sqrt(2.0 * tail))
        return cls(values, known, variance, width, outlier)


def monotone_buckets(totals: Totals) -> FloatArray:
    """Return the counts whose running totals are closest and never decrease."""
    fitted = kernels.isotonic_fit(totals.values, totals.known, low=0.0)
    return np.diff(fitted, prepend=0.0)


def multiscale_buckets(totals: Totals) -> FloatArray:
    """Return counts of 0 or more without differences that noise alone explains."""
    cells = kernels.multiscale_cells(totals.values, totals.known, totals.variance)
    values = np.where(totals.known, totals.values, np.cumsum(cells))
    return monotone_buckets(totals._replace(values=values))


def straight_pieces(totals: Totals) -> Totals:
    """Fit straight pieces between exact totals; ln(cells) variances per parameter."""
    ends = np.flatnonzero(totals.known)
    starts = np.append(0, ends[:-1] + 1)
    penalties = totals.variance * np.log(ends - starts + 1.0)
    return totals._replace(
        values=kernels.piecewise_linear(totals.values, starts, ends, penalties)
    )


def smoothed_cells(totals: Totals, query_cells: float) -> FloatArray:
    """Return counts from running totals of single cells, the last of them exact.

    Parameters
    ----------
    totals : Totals
        The totals, all with noise of one size.
    query_cells : float
        How many cells a typical query covers.

    Returns
    -------
    ndarray of float64, shape (cells,)
        Counts of 0 or more.
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
    by_scale = multiscale_buckets(totals)
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
    is_knot = bent | totals.known
    if np.count_nonzero(is_knot & ~totals.known) * FEW_KNOTS > 4 * cells:
        return None
    running = _running_moments(totals.values)
    while True:
        knots = np.flatnonzero(is_knot) + 1
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
        is_knot[knots[dropped] - 1] = False
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


class PrefixSums(LinearStrategy):
    """Running totals of `cells` cells.

    >>> import numpy as np
    >>> PrefixSums(4).rows(np.array([5, 0, 2, 1]))
    array([5, 5, 7, 8])
    """

    kind = "prefix_sums"
    saved: ClassVar[dict[str, Any]] = {"cells": int}

    def __init__(self, cells: int) -> None:
        self.cells = cells

    def rows(self, counts: IntArray) -> IntArray:
        """Return the running totals."""
        self._refuse_other(counts, self.cells)
        return np.cumsum(counts)

    def weights(self) -> IntArray:
        """Give every row the same weight."""
        return np.full(self.cells, 2**WEIGHT_BITS, dtype=np.int64)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark the rows that no edge changes: Lemma OR5."""
        return LineReach(policy).settled

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the largest sum of weights between the two ends of an edge: Lemma OR6.

        With equal weights it is their number: the length of the longest edge, or for
        "absent" the cells from its first neighbour to the end of the line.

        Parameters
        ----------
        weights : ndarray of int64, shape (cells,)
            Whole weight of each running total.
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        int
            The sum over the totals between the two ends.
        """
        reach = LineReach(policy)
        before = np.zeros(self.cells + 1, dtype=np.int64)
        np.cumsum(weights, out=before[1:])
        worst = int((before[reach.far] - before[:-1]).max())
        if reach.bottom.any():
            worst = max(worst, int(before[-1] - before[reach.bottom.argmax()]))
        return worst

    def totals(self, noisy: IntArray, scales: Scales) -> Totals:
        """Return the noisy running totals with their noise.

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows,)
            The measured rows.
        scales : Scales
            The noise of each row.

        Returns
        -------
        Totals
            The totals.
        """
        return Totals.with_noise(self._values(noisy, scales), scales.exact, scales)

    def _values(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the noisy running totals; those not measured are interpolated."""
        observed = scales.measured | scales.exact
        if observed.all():
            return noisy.astype(np.float64)
        ends = np.concatenate([[0], np.flatnonzero(observed) + 1])
        values = np.concatenate([[0], noisy[observed]]).astype(np.float64)
        return np.interp(np.arange(1, self.cells + 1), ends, values)

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the differences of the running totals.

        Parameters
        ----------
        noisy : ndarray of int64, shape (cells,)
            The measured running totals.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (cells,)
            The estimate of each cell.
        """
        return np.diff(self._values(noisy, scales), prepend=0.0)

    def noise_tables(self, scales: Scales) -> BorderNoise:
        """Return the noise at each border between cells."""
        return _noise_at(scales)

    def _spread(self, form: Fractions | Pieces, law: StrategyNoise) -> Spread:
        """Return the exact law of each query's noise: a few rows per query."""
        return self._spread_and_terms(form, law.tables)[0]

    def _spread_and_terms(
        self, form: Fractions | Pieces, noise: BorderNoise
    ) -> tuple[Spread, IntArray]:
        """Return the spread, and how many equal draws each query adds up; else -1."""
        moments, terms = kernels.border_moments(*_steps(form, self.cells), *noise[:3])
        variance, square, largest, steps = moments
        width = np.full(terms.size, noise.width)
        return Spread(variance, square, largest, steps, width, noise.least), terms

    def _half_widths(self, form: Form, law: StrategyNoise, miss: float) -> FloatArray:
        """Use the exact law of sums and differences of running totals."""
        if isinstance(form, Implicit):
            return super()._half_widths(form, law, miss)
        spread, terms = self._spread_and_terms(form, law.tables)
        bound = law.bound(spread, miss)
        plain = np.maximum(terms, 0)
        exact = equal_sum_half_widths(spread.least, plain, miss, law.scales.power)
        return np.where(terms >= 0, np.minimum(bound, exact), bound)

    def _implicit_variance(self, form: Implicit, law: StrategyNoise) -> float:
        variances = law.tables.variances
        if form.kind == "total":
            return float(variances[-1])
        if form.kind == "identity":
            # Each of m cells is 1/m of its bucket: m / m^2 of the bucket's variance.
            return float(((variances[:-1] + variances[1:]) / np.diff(form.edges)).sum())
        sums, squares = _cut_weights(form.edges)
        if form.kind == "prefixes":
            return float(squares @ variances)
        # Over all pairs of cuts: cuts * (sum of squares) - (sum)^2, row by row.
        cuts = float(form.edges[-1] + 1)
        return float((cuts * squares - sums**2) @ variances)


class BorderNoise(NamedTuple):
    """Noise of the running total at each border between cells.

    The first border, before all cells, has the total 0 without noise. A row that was
    neither measured nor is exact tells nothing, and has a very large variance.

    Attributes
    ----------
    variances : ndarray of float64, shape (cells + 1,)
        The variance of the noise at each border, in squared records.
    widths : ndarray of float64, shape (cells + 1,)
        Its scale: that of discrete Laplace noise, or the standard deviation of discrete
        Gaussian noise.
    least : float
        The smallest scale of a row with noise; 0 where no row has any.
    width : float
        The same if every row was measured or is exact; nan else.
    """

    variances: FloatArray
    widths: FloatArray
    least: float
    width: float


def _noise_at(scales: Scales) -> BorderNoise:
    variances, widths = (np.append(0.0, per_row) for per_row in known_noise(scales))
    is_complete = bool((scales.measured | scales.exact).all())
    least = scales.least
    return BorderNoise(variances, widths, least, least if is_complete else math.nan)


def _steps(
    form: Fractions | Pieces, cells: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return each query as a combination of running totals, for `border_moments`."""
    if isinstance(form, Fractions):
        return kernels.range_borders(*form)
    from scipy.sparse import csr_array

    pair = np.stack([form.starts, form.ends], axis=1).reshape(-1)
    signed = np.stack([-form.values, form.values], axis=1).reshape(-1)
    shape = (form.pointers.size - 1, cells + 1)
    rows = csr_array((signed, pair, 2 * form.pointers), shape=shape)
    rows.sum_duplicates()
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data


def _cut_weights(edges: IntArray) -> tuple[FloatArray, FloatArray]:
    """Sum the weights, and their squares, that all cuts give to each border.

    A cut t / m of the way through a bucket weighs its borders 1 - t / m and t / m.
    """
    sizes = np.diff(edges).astype(np.float64)
    # Sums over t = 1 .. m of t / m and of (t / m)^2; t = 0 is the border before.
    ahead = (sizes + 1.0) / 2.0
    ahead_squares = (sizes + 1.0) * (2.0 * sizes + 1.0) / (6.0 * sizes)
    sums = np.zeros(edges.size)
    squares = np.zeros(edges.size)
    sums[1:] += ahead
    squares[1:] += ahead_squares
    sums[:-1] += sizes - ahead
    squares[:-1] += sizes - 2.0 * ahead + ahead_squares
    sums[0] += 1.0
    squares[0] += 1.0
    return sums, squares
