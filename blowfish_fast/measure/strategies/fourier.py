"""Measure the total and the lowest frequencies of one ordered attribute.

The rows are orthogonal, so the inverse transform, with nothing in place of the other
frequencies, is the least-squares histogram. Cosines and sines are whole numbers
(``kernels.fourier_rows``), so noise lives on the integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast.errors import SizeError
from blowfish_fast.measure.linear_strategy import (
    LinearStrategy,
    StrategyNoise,
    known_noise,
)
from blowfish_fast.measure.noise import WEIGHT_BITS, Scales, Spread
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Fractions, Implicit, Pieces
from blowfish_fast.workloads.base import as_pieces

MOST_WORK = 2**29
"""Cells times frequencies that are added up, at most."""

BLOCK = 2**20
SAMPLED = 48


class Fourier(LinearStrategy):
    """The total and the lowest frequencies of a line of cells.

    Parameters
    ----------
    cells : int
        Number of cells.
    frequencies : int
        Frequencies 1 to this one, at most `most_frequencies(cells)`.

    Examples
    --------
    >>> import numpy as np
    >>> strategy = Fourier(cells=8, frequencies=2)
    >>> strategy.rows(np.array([1, 1, 0, 0, 1, 1, 0, 0])).size
    5
    """

    kind = "fourier"
    saved: ClassVar[dict[str, Any]] = {"cells": int, "frequencies": int}

    def __init__(self, cells: int, frequencies: int) -> None:
        if not 0 <= frequencies <= most_frequencies(cells):
            raise SizeError(
                f"{cells:,} cells are measured up to frequency "
                f"{most_frequencies(cells):,}; received {frequencies:,}. Keep fewer"
            )
        self.cells = cells
        self.frequencies = frequencies

    @property
    def alternating(self) -> bool:
        """Whether the last frequency is half of the cells: one row, of 1 and -1."""
        return 0 < self.cells == 2 * self.frequencies

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return 1 + 2 * self.frequencies - self.alternating

    def rows(self, counts: IntArray) -> IntArray:
        """Return the total, then cosine and sine sums. O(cells * frequencies)."""
        self._refuse_other(counts, self.cells)
        rows = np.append(counts.sum(), kernels.circle_sums(counts, self.frequencies))
        if self.alternating:
            # Its cosines are 1 and -1, so the step divides the sum; its sines are 0.
            rows = rows[:-1]
            rows[-1] >>= kernels.STEP_BITS
        return rows

    def weights(self) -> IntArray:
        """Give all rows the same noise once they are scaled to unit length."""
        weights = np.full(self.row_count, 2 ** (WEIGHT_BITS - kernels.STEP_BITS))
        # The total is longer than the others by the root of 2, and so is the last.
        alone = math.floor(2**WEIGHT_BITS / math.sqrt(2))
        weights[0] = alone
        if self.alternating:
            weights[-1] = alone
        return weights

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark the total where it is public; everything if nothing can move."""
        return self._total_exact(self.row_count, policy)

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the heaviest cell, or a bound on the heaviest move: Lemma EF4.

        Exact when a record is added or removed and all waves weigh the same.

        Parameters
        ----------
        weights : ndarray of int64, shape (rows,)
            Whole weight of each row: the total, then a cosine and a sine of each
            frequency.
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        int
            The sum, or a bound above it.
        """
        if power == 2:
            return self._worst_square(weights, policy)
        alone = int(weights[-1]) if self.alternating else 0
        waves = weights[1 : self.row_count - self.alternating]
        heaviest = int(waves.max(initial=0))
        column = heaviest * self._column + alone
        worst = int(weights[0]) + column if policy.has_bottom else 0
        if policy.has_moves:
            bound = _turn_bound(self.cells, self._waves, policy.longest_edge())
            turn = heaviest * bound + 2 * alone
            worst = max(worst, min(2 * column, turn))
        return worst

    def _worst_square(self, weights: IntArray, policy: Policy) -> int:
        """Return a bound on the largest sum of weights times squared moves.

        Cosine and sine of one frequency are a point on a circle, each rounded to the
        step by at most 1/2 of it: a cell lies within sqrt(1/2) of it, a move within
        sqrt(2) of the chord, which is at most the arc.
        """
        alone = int(weights[-1]) if self.alternating else 0
        heaviest = int(weights[1 : self.row_count - self.alternating].max(initial=0))
        radius = 2.0**kernels.STEP_BITS
        worst = 0
        if policy.has_bottom:
            column = _above(self._waves * (radius + math.sqrt(0.5)) ** 2)
            worst = int(weights[0]) + heaviest * column + alone
        if policy.has_moves:
            arc = 2.0 * math.pi * policy.longest_edge() / max(self.cells, 1)
            turns = np.minimum(arc * np.arange(1, self._waves + 1), 2.0)
            moved = _above(float(((turns * radius + math.sqrt(2.0)) ** 2).sum()))
            worst = max(worst, heaviest * moved + 4 * alone)
        return worst

    @property
    def _waves(self) -> int:
        return self.frequencies - self.alternating

    @property
    def _column(self) -> int:
        return _heaviest_column(self.cells, self._waves)

    @property
    def unbiased(self) -> bool:
        """False: the frequencies that are not measured are taken as 0."""
        return False

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the inverse transform. O(cells log cells).

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows,)
            The measured rows: the total, then a cosine and a sine of each frequency.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (cells,)
            The estimate of each cell.
        """
        spectrum = np.zeros(self.cells // 2 + 1, dtype=np.complex128)
        spectrum[0] = noisy[0]
        waves = noisy[1 : 1 + 2 * self._waves].reshape(-1, 2)
        spectrum[1 : 1 + self._waves] = np.ldexp(
            waves[:, 0].astype(np.float64), -kernels.STEP_BITS
        ) - 1j * np.ldexp(waves[:, 1].astype(np.float64), -kernels.STEP_BITS)
        if self.alternating:
            spectrum[-1] = noisy[-1]
        cells: FloatArray = np.fft.irfft(spectrum, self.cells)
        return cells

    def noise_tables(self, scales: Scales) -> RowLaw:
        """Return the noise of every row, times what the row is multiplied by."""
        return RowLaw.of(scales, self._factors())

    def _spread(self, form: Fractions | Pieces, law: StrategyNoise) -> Spread:
        """Return the exact law of each query's noise. O(frequencies) per piece."""
        from scipy import sparse

        pieces = as_pieces(form)
        queries = pieces.pointers.size - 1
        adding = sparse.csr_array(
            (pieces.values, np.arange(pieces.values.size), pieces.pointers),
            shape=(queries, pieces.values.size),
        )
        spread = Spread(*np.zeros((5, queries)))._replace(least=law.scales.least)
        lengths = (pieces.ends - pieces.starts).astype(np.float64)
        total: FloatArray = np.asarray(adding @ lengths, dtype=np.float64)
        _add_rows(spread, total[:, None], law.tables, 0)
        for first, sums in self._interval_sums(pieces.starts, pieces.ends):
            # A frequency's real and imaginary part are two rows, one after the other.
            parts = np.ascontiguousarray(adding @ sums).view(np.float64)
            row = 1 + 2 * first
            _add_rows(spread, parts[:, : self.row_count - row], law.tables, row)
        return spread

    def _implicit_variance(self, form: Implicit, law: StrategyNoise) -> float:
        if form.edges.size - 1 != self.cells:
            raise SizeError("frequencies are measured over single cells")
        variances = law.tables.variances
        if form.kind == "total":
            return float(self.cells**2 * variances[0])
        if form.kind == "identity":
            squares = np.full(self.row_count, self.cells / 2)
            squares[0] = self.cells
            if self.alternating:
                squares[-1] = self.cells
            return float(squares @ variances)
        ends = np.arange(self.cells + 1)
        total = float(_moment(ends.astype(np.float64), form.kind) * variances[0])
        starts = np.zeros_like(ends)
        for first, sums in self._interval_sums(starts, ends):
            for column in range(sums.shape[1]):
                row = 1 + 2 * (first + column)
                total += _moment(sums[:, column].real, form.kind) * variances[row]
                if row + 1 < self.row_count:
                    part = _moment(sums[:, column].imag, form.kind)
                    total += part * variances[row + 1]
        return total

    def _factors(self) -> FloatArray:
        """Return what a row's cosines are multiplied by in the inverse transform."""
        factors = np.full(self.row_count, 2.0 / (self.cells * 2**kernels.STEP_BITS))
        factors[0] = 1.0 / self.cells
        if self.alternating:
            factors[-1] = 1.0 / self.cells
        return factors

    def _interval_sums(
        self, starts: IntArray, ends: IntArray
    ) -> Iterator[tuple[int, AnyArray]]:
        """Yield sums of cos + i sin over cells [start, end), some frequencies a time.

        Geometric sums: (p^start - p^end) / (1 - p) with p = e^(i 2 pi f / cells).
        """
        turns = np.exp(2j * np.pi * np.arange(self.cells) / self.cells)
        width = max(BLOCK // max(starts.size, 1), 1)
        for first in range(0, self.frequencies, width):
            numbers = np.arange(first, min(first + width, self.frequencies)) + 1
            begin = turns[np.outer(starts, numbers) % self.cells]
            end = turns[np.outer(ends, numbers) % self.cells]
            yield first, (begin - end) / (1.0 - turns[numbers % self.cells])


def most_frequencies(cells: int) -> int:
    """Return the highest frequency that is measured: half of the cells, or less.

    On more than 2^15 cells, as many as 2^29 products of cosines and counts allow.

    >>> most_frequencies(4096), most_frequencies(2**20)
    (2048, 512)
    """
    return min(cells // 2, MOST_WORK // cells)


def typical_reach(cells: int, policy: Policy) -> FloatArray:
    """Return about how far an edge moves the rows, for each number of frequencies.

    It is in rows of unit length, over a sample: good to choose by, never to draw noise
    by.

    Parameters
    ----------
    cells : int
        Number of cells.
    policy : Policy
        The policy, without constraints.

    Returns
    -------
    ndarray of float64, shape (frequencies + 1,)
        The reach with 0, 1, 2, ... frequencies.
    """
    most = most_frequencies(cells)
    numbers = np.arange(1, most + 1)
    reach = np.zeros(most + 1)
    length = math.sqrt(2.0 / cells)
    if policy.has_bottom:
        angles = 2.0 * np.pi / cells * _sample(cells)[:, None] * numbers
        waves = np.abs(np.cos(angles)) + np.abs(np.sin(angles))
        reach[1:] = length * np.cumsum(waves, axis=1).max(axis=0)
        reach += 1.0 / math.sqrt(cells)
    if policy.has_moves:
        angles = np.pi / cells * _sample(policy.longest_edge())[:, None] * numbers
        turns = np.cumsum(np.abs(np.sin(angles)), axis=1).max(axis=0, initial=0.0)
        reach[1:] = np.maximum(reach[1:], 2.0 * math.sqrt(2.0) * length * turns)
    return reach


def _sample(most: int) -> FloatArray:
    """Return a few whole numbers from 1 to `most`, near and far."""
    spaced = np.geomspace(1, max(most, 1), SAMPLED)
    return np.unique(np.rint(spaced))


@lru_cache(maxsize=16)
def _heaviest_column(cells: int, frequencies: int) -> int:
    return kernels.heaviest_column(cells, frequencies)


@lru_cache(maxsize=16)
def _turn_bound(cells: int, frequencies: int, longest: int) -> int:
    """Bound what a move of at most `longest` cells changes in all cosines and sines.

    Rounding adds at most one step to each of the two rows of a frequency.
    """
    turn = kernels.largest_turn(cells, frequencies, longest) * (1.0 + 2.0**-30)
    steps: int = math.ceil(2.0 * math.sqrt(2.0) * 2**kernels.STEP_BITS * turn)
    return steps + 2 * frequencies + 1


class RowLaw(NamedTuple):
    """Noise of each row in the estimate.

    Attributes
    ----------
    variances : ndarray of float64, shape (rows,)
        Variance after the factor.
    widths : ndarray of float64, shape (rows,)
        Scale after the factor.
    factors : ndarray of float64, shape (rows,)
        What each row is multiplied by in the estimate.
    drawn : ndarray of float64, shape (rows,)
        Scale before the factor.
    """

    variances: FloatArray
    widths: FloatArray
    factors: FloatArray
    drawn: FloatArray

    @classmethod
    def of(cls, scales: Scales, factors: FloatArray) -> Self:
        """Return the law of the noise, times the factors; unmeasured tells nothing.

        Parameters
        ----------
        scales : Scales
            The noise of each row.
        factors : ndarray of float64, shape (rows,)
            What each row is multiplied by in the estimate.

        Returns
        -------
        Self
            The law.
        """
        variances, widths = known_noise(scales)
        return cls(variances * factors**2, widths * factors, factors, widths)


def _add_rows(spread: Spread, parts: FloatArray, law: RowLaw, first: int) -> None:
    """Add what rows from `first` on contribute to each query, (queries, rows)."""
    rows = slice(first, first + parts.shape[1])
    reach = np.abs(parts) * law.widths[rows]
    np.add(spread.variance, parts**2 @ law.variances[rows], out=spread.variance)
    np.add(spread.square, (reach**2).sum(axis=1), out=spread.square)
    steps = (law.drawn[rows] > 0) * law.factors[rows] ** 2
    np.add(spread.steps, parts**2 @ steps, out=spread.steps)
    loudest = reach.argmax(axis=1)
    largest = reach.max(axis=1)
    louder = largest > spread.largest
    np.copyto(spread.largest, largest, where=louder)
    np.copyto(spread.width, law.drawn[rows][loudest], where=louder)


def _moment(sums: FloatArray, kind: str) -> float:
    """Return the sum of squares over prefixes or all ranges, from running sums."""
    squares = float(sums @ sums)
    if kind == "prefixes":
        return squares
    return sums.size * squares - float(sums.sum()) ** 2


def _above(value: float) -> int:
    """Return a whole number above a sum in floating point."""
    return math.ceil(value * (1.0 + 1e-9))
