"""Scales of discrete noise, its law, and bounds on sums of it.

Noise paid in epsilon is P(Z = z) proportional to exp(-|z| / b) on the integers; paid in
rho it is proportional to exp(-z^2 / (2 sigma^2)). Scales are held as integers, so that
the cost of a measurement is an exact fraction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import EpsilonError

from .budgets import Budget

# Integer weights before they are scaled to rates, and the budget in units; their
# product must stay below 2^63.
WEIGHT_BITS = 30
BUDGET_BITS = 32
# Rows noisier than this tell nothing; they are not measured at all.
LARGEST_SCALE_BITS = 40
# Draws of a choice may be noisier; beyond this scale the sampler refuses.
LARGEST_DRAWN_BITS = 56


class Scales(NamedTuple):
    """Noise scales of the rows of one measurement, as exact rationals.

    Row i carries Laplace noise of scale ``unit / rates[i]`` (power 1) or Gaussian noise
    of variance ``unit / (2 rates[i])`` (power 2).

    Attributes
    ----------
    rates : ndarray of int64, shape (rows,)
        Whole rates. At rate 0 a row is not measured, unless it is exact.
    unit : int
        What rates are divided into.
    exact : ndarray of bool, shape (rows,)
        Rows that no edge of the policy moves: they are published as they are.
    power : int, default 1
        1 for Laplace noise, paid in epsilon; 2 for Gaussian noise, paid in rho.
    """

    rates: IntArray
    unit: int
    exact: BoolArray
    power: int = 1

    @property
    def measured(self) -> BoolArray:
        """Rows that carry noise."""
        return (self.rates > 0) & ~self.exact

    @property
    def widths(self) -> FloatArray:
        """Scale b, or sigma, of each row; 0 without noise (exact or unmeasured)."""
        widths = self._by_row(lambda ratio: ratio, 0.0)
        return widths if self.power == 1 else np.sqrt(widths / 2.0)

    @property
    def least(self) -> float:
        """Smallest scale of a row with noise; 0 where no row has any."""
        fastest = int(self.rates.max(where=~self.exact, initial=0))
        width = float(self.unit) / fastest if fastest else 0.0
        return width if self.power == 1 else math.sqrt(width / 2.0)

    @property
    def variances(self) -> FloatArray:
        """Variance of each row: 0 where exact, infinite where not measured."""
        if self.power == 1:
            return self._by_row(laplace_variance, np.inf)
        # The discrete Gaussian varies by at most its parameter, and little less.
        return self._by_row(lambda ratio: ratio / 2.0, np.inf)

    def _by_row(
        self, law: Callable[[FloatArray], FloatArray], unmeasured: float
    ) -> FloatArray:
        """Return what `law` makes of unit / rate for each row; 0 where exact."""
        values = np.full(self.rates.size, unmeasured)
        noisy = measured_rows(self)
        rates = self.rates[noisy]
        # Rows of one level share a rate: the law is worked out once for each run.
        inner = np.flatnonzero(rates[1:] != rates[:-1])
        borders = np.empty(inner.size + 2, dtype=np.int64)
        borders[0], borders[1:-1], borders[-1] = 0, inner + 1, rates.size
        begins = borders[:-1]
        if 4 * begins.size < rates.size:
            each = law(float(self.unit) / rates[begins])
            values[noisy] = np.repeat(each, borders[1:] - begins)
        else:
            values[noisy] = law(float(self.unit) / rates)
        values[self.exact] = 0.0
        return values


def measured_rows(scales: Scales) -> slice | BoolArray:
    """Return an index of the rows that carry noise: a slice where it can."""
    measured = scales.measured
    count = int(np.count_nonzero(measured))
    first = int(measured.argmax()) if count else 0
    together = slice(first, first + count)
    return together if measured[together].all() else measured


def integer_weights(weights: FloatArray) -> IntArray:
    """Round weights in [0, 1] to integers; one too small becomes 0: not measured."""
    return np.floor(weights * float(2**WEIGHT_BITS)).astype(np.int64)


def scales_within(
    weights: IntArray, worst: int, budget: Budget | Fraction, exact: BoolArray
) -> Scales:
    """Give each row a rate in proportion to its weight, within `budget` on every edge.

    In epsilon, flooring each rate keeps the sum over the rows that an edge moves at
    most ``epsilon * unit``; in rho, weights are the rates, and the unit is rounded up.

    Parameters
    ----------
    weights : ndarray of int64, shape (rows,)
        Whole weight of each row, not negative.
    worst : int
        The largest sum of `weights` times |move|^power over the rows that one edge
        moves.
    budget : Budget or Fraction
        What an edge may cost.
    exact : ndarray of bool, shape (rows,)
        Rows that no edge moves.

    Returns
    -------
    Scales
        The scales.
    """
    price = Budget.of(budget)
    if price.power == 2:
        return _gaussian_scales(weights, worst, price.amount, exact)
    epsilon = price.amount
    unit = budget_unit(epsilon)
    units = math.floor(epsilon * unit)
    if worst == 0:
        rates = np.zeros(weights.size, dtype=np.int64)
    else:
        # floor(w * units / worst) exactly: weights < 2^31, units < 2^32.
        rates = weights * np.int64(units)
        rates //= np.int64(worst)
    if unit >> LARGEST_SCALE_BITS:
        rates[rates < unit >> LARGEST_SCALE_BITS] = 0
    rates[exact] = 0
    return Scales(rates, unit, exact)


def _gaussian_scales(
    weights: IntArray, worst: int, rho: Fraction, exact: BoolArray
) -> Scales:
    rates = weights.copy() if worst else np.zeros(weights.size, dtype=np.int64)
    unit = max(math.ceil(worst / rho), 1)
    # 2 rate / unit < 2^-80: a sigma above 2^40.
    rates[rates < unit >> (2 * LARGEST_SCALE_BITS + 1)] = 0
    rates[exact] = 0
    return Scales(rates, unit, exact, 2)


def check_scale(scale: Fraction, chooser: str) -> None:
    """Refuse a scale of Laplace or geometric noise whose draws leave 64 bits.

    Parameters
    ----------
    scale : Fraction
        The scale that would be drawn at, from public values.
    chooser : str
        Who would draw, for the message.

    Raises
    ------
    EpsilonError
        If the scale is above 2^56.

    Examples
    --------
    >>> check_scale(Fraction(2**56), "medians")
    """
    if scale > 2**LARGEST_DRAWN_BITS:
        raise EpsilonError(
            f"{chooser} would draw noise of scale {float(scale):.2g}, and draws fit 64 "
            f"bits up to a scale of 2^{LARGEST_DRAWN_BITS}. Raise epsilon or share"
        )


def rates_at_common_unit(parts: Sequence[Scales]) -> tuple[int, list[IntArray]]:
    """Return the largest unit of several measurements, and all rates in terms of it.

    Rates of Gaussian noise are rounded down, which overstates the noise a little.
    """
    unit = max(scales.unit for scales in parts)
    rescaled = []
    for scales in parts:
        if not scales.rates.any():
            # All rows are exact, or none is measured: their unit says nothing, and
            # rates in terms of another may not fit 64 bits.
            rescaled.append(scales.rates)
            continue
        whole = unit // scales.unit
        longest = int(scales.rates.max(initial=0)).bit_length() + whole.bit_length()
        bits = 0 if unit == whole * scales.unit else max(62 - longest, 0)
        rescaled.append(scales.rates * ((unit << bits) // scales.unit) >> bits)
    return unit, rescaled


def budget_unit(epsilon: Fraction) -> int:
    """Return the power of two that gives `epsilon` about 32 bits, below 2^52."""
    bits = BUDGET_BITS - 1 - math.ceil(math.log2(epsilon))
    return int(2 ** min(max(bits, 0), 52))


def laplace_variance(width: FloatArray | float) -> FloatArray:
    """Return the variance 2 q / (1 - q)^2, q = exp(-1/b), accurate for large b."""
    half = 0.5 / np.asarray(width, dtype=np.float64)
    # Beyond 350 the variance is below the smallest double.
    variance: FloatArray = 0.5 / np.sinh(np.minimum(half, 350.0)) ** 2
    return variance


def noise_mean_size(width: float, power: int = 1) -> float:
    """Return E|Z| of discrete Laplace noise, or of a normal variable.

    Parameters
    ----------
    width : float
        Scale of the Laplace noise, or standard deviation.
    power : int, default 1
        1 for Laplace noise, 2 for a normal variable.

    Returns
    -------
    float
        The mean absolute value.
    """
    if power == 2:
        return width * math.sqrt(2.0 / math.pi)
    return 1.0 / math.sinh(min(1.0 / width, 700.0)) if width else 0.0


class Spread(NamedTuple):
    """What is known of the noise in each query's answer before any draw.

    An answer is off by a sum of a_i Z_i, with b_i the scale of Z_i. All arrays have one
    entry per query.

    Attributes
    ----------
    variance : ndarray of float64
        Exact variance of the sum.
    square : ndarray of float64
        Sum of (a_i b_i)^2, or a bound above it.
    largest : ndarray of float64
        The largest |a_i b_i|, or a bound above it.
    steps : ndarray of float64
        Sum of a_i^2, or a bound above it.
    width : ndarray of float64
        Scale of the row that is the largest; NaN where `largest` is only a bound.
    least : float, default 0.0
        The smallest scale of any row; 0 where it is not known.
    gaussian_rows : int, default 0
        Number of rows of Gaussian noise, whose scale is sigma; 0 for Laplace noise.
    """

    variance: FloatArray
    square: FloatArray
    largest: FloatArray
    steps: FloatArray
    width: FloatArray
    least: float = 0.0
    gaussian_rows: int = 0

    def under(self, scales: Scales) -> Self:
        """Return the same moments of the noise that `scales` say: Laplace, Gaussian."""
        if scales.power == 1:
            return self
        return self._replace(gaussian_rows=int(np.count_nonzero(scales.measured)))

    @classmethod
    def bounded(
        cls, variance: FloatArray, square: FloatArray, largest: FloatArray, least: float
    ) -> Self:
        """Return a spread without largest row; `steps` is at most square / least^2.

        Parameters
        ----------
        variance : ndarray of float64, shape (queries,)
            Exact variance of the sum.
        square : ndarray of float64, shape (queries,)
            A bound on the sum of (a_i b_i)^2.
        largest : ndarray of float64, shape (queries,)
            A bound on the largest |a_i b_i|.
        least : float
            The smallest scale of any row; 0 where it is not known.

        Returns
        -------
        Self
            The spread.
        """
        each = least**-2 if least else np.inf
        steps = np.multiply(square, each, where=square > 0, out=np.zeros(square.size))
        return cls(
            variance, square, largest, steps, np.full(square.size, np.nan), least
        )

    def divided(self, units: int) -> Self:
        """Return the spread of answers over `units`; the draws stay what they are."""
        return self._replace(
            variance=self.variance / units**2,
            square=self.square / units**2,
            largest=self.largest / units,
            steps=self.steps / units**2,
        )

    def plus(self, variance: FloatArray) -> Self:
        """Return the spread with an independent normal variable: Lemma PN3.

        It is the limit of many small draws: of Laplace noise of squared scale v / 2 in
        all, or of Gaussian noise of squared sigma v. Their coefficients vanish.
        """
        shared = 1.0 if self.gaussian_rows else 0.5
        square = self.square + shared * variance
        # An answer without noise has no largest draw; any number above 0 may stand for
        # it, and where it is a thousandth of all the law is the normal one.
        silent = (self.largest == 0.0) & (variance > 0.0)
        return self._replace(
            variance=self.variance + variance,
            square=square,
            largest=np.where(silent, 1e-3 * np.sqrt(square), self.largest),
            width=np.where(silent, np.nan, self.width),
        )

    def at_scale(self, scales: Scales) -> Self:
        """Return the spread at another scale, where all draws have one."""
        width = scales.least
        ratio = width / self.least
        return self._replace(
            variance=self.steps * float(laplace_variance(width)),
            square=self.square * ratio**2,
            largest=self.largest * ratio,
            width=self.width * ratio,
            least=width,
        )

    @classmethod
    def of_one_scale(
        cls, squares: FloatArray, largest: FloatArray, width: float, variance: float
    ) -> Self:
        """Return the spread of draws of one scale, from squares of coefficients.

        Parameters
        ----------
        squares : ndarray of float64, shape (queries,)
            Sum of squared coefficients.
        largest : ndarray of float64, shape (queries,)
            The largest coefficient in size.
        width : float
            The scale.
        variance : float
            The variance of one draw.

        Returns
        -------
        Self
            The spread.
        """
        return cls(
            variance * squares,
            width**2 * squares,
            width * largest,
            squares,
            np.full(squares.size, width),
            width,
        )


FARTHEST = 1e100
"""How many times beyond its own size a distance is still told apart from others."""


def chernoff_tail(distance: FloatArray, spread: Spread) -> FloatArray:
    """Bound P(|sum a_i Z_i| > distance) for each query, by Chernoff.

    The moment function 1 / (1 - s^2 b^2) is not below the discrete one
    (``docs/proofs/laplace.md``); the best s has a closed form.

    Parameters
    ----------
    distance : ndarray of float64, shape (queries,)
        How far an answer is off.
    spread : Spread
        The law of the noise.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The bounds, at most 1.
    """
    square, largest = spread.square, spread.largest
    noisy = (largest > 0) & (square > 0)
    safe = np.where(noisy, largest, 1.0)
    total = np.where(noisy, square, 1.0)
    # A bound at a smaller distance holds at a larger one, and is a number.
    distance = np.minimum(distance, FARTHEST * (total / safe))
    reach = distance * safe
    root = np.hypot(total, reach)
    both = total + root
    slope = reach / both
    # 1 - slope without cancellation: the noise may be tiny beside the distance.
    rest = total * (1.0 + total / (root + reach)) / both
    exponent = -(total / safe**2) * _log_rest(slope, rest) - slope * distance / safe
    bound: FloatArray = np.minimum(1.0, 2.0 * np.exp(np.minimum(exponent, 0.0)))
    return np.where(noisy, bound, 0.0)


def _log_rest(slope: FloatArray, rest: FloatArray) -> FloatArray:
    """Return ln(1 - slope^2), exact to rounding at both ends; rest = 1 - slope."""
    near_one = np.log(rest) + np.log1p(slope)
    near_zero = np.log1p(-(np.minimum(slope, 0.5) ** 2))
    return np.where(slope > 0.5, near_one, near_zero)


def chernoff_half_width(spread: Spread, miss: float) -> FloatArray:
    """Return the smallest distance whose Chernoff bound is at most `miss`.

    Parameters
    ----------
    spread : Spread
        The law of the noise.
    miss : float
        The probability.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The distances.
    """
    low = np.zeros(spread.square.size)
    high = np.sqrt(spread.square) * (4.0 + 4.0 * math.log(2.0 / miss))
    for _ in range(45):
        middle = 0.5 * (low + high)
        enough = chernoff_tail(middle, spread) <= miss
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    # Rounding in the bound is far below this margin.
    return high * (1.0 + 2.0**-30)


ROUNDED = 2.0**-10
"""Noise below this is none, or the rounding of none."""


def largest_rounding(estimate: FloatArray) -> float:
    """Return how far sums in floating point may miss exact answers, at most 2^-10."""
    return min(float(np.abs(estimate).sum()) * estimate.size * 2.0**-50, ROUNDED)


def without_rounding(
    answers: FloatArray, noise: FloatArray, estimate: FloatArray
) -> FloatArray:
    """Return answers, those without noise as the whole numbers that they are.

    Parameters
    ----------
    answers : ndarray of float64, shape (queries,)
        Answers from floating-point sums.
    noise : ndarray of float64, shape (queries,)
        Half-width of the noise in each.
    estimate : ndarray of float64
        The cells that they were summed from.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The answers.
    """
    if not (noise < ROUNDED).any():
        return answers
    whole = np.rint(answers)
    near = np.abs(answers - whole) <= largest_rounding(estimate)
    return np.where((noise < ROUNDED) & near, whole, answers)
