"""The least epsilon at which a law of noise keeps within alpha, but for beta.

The law itself is asked at every epsilon that is tried; scaling only says where to
start. Draws of the noise may show that less will do (docs/proofs/choosing_epsilon.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from itertools import count
from typing import Literal, NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import EpsilonError
from blowfish_fast.measure.noise import Scales, Spread, chernoff_tail
from blowfish_fast.measure.tails import noise_half_widths

Scope = Literal["simultaneous", "per_query"]

UNITS = 10**9
"""Epsilons are found to a billionth, rounded up, as ledgers charge them."""

LARGEST_EPSILON = 1000.0
"""Beyond this nothing is promised that is worth the name."""

MANTISSA = 2.0**12
"""Spreads are rounded up to so many steps, so that few kinds stand for all queries."""

LEAST_EPSILON = Fraction(1, UNITS)

OPEN_SHARE = 0.01
"""Part of beta that pays for the confidence of a simulation."""

MOST_WEIGHED = 2**20
"""Rows times queries up to which a simulation multiplies by one matrix."""

DRAWN_TOGETHER = 256
"""Draws of the whole noise that are multiplied at a time."""

GUIDED_LAWS = 24
"""Laws that say where to look next; two or three are usual. Then halves decide."""


class ErrorLaw(NamedTuple):
    """The noise of a mechanism by epsilon.

    Attributes
    ----------
    scales : Callable[[Fraction], Scales]
        Returns the scales at an epsilon.
    spread : Callable[[Scales], Spread]
        Returns the law of each answer's noise.
    widest : Callable[[Scales, float], float]
        Returns the largest half-width over all queries, given a probability to miss.
    errors : Callable[[Fraction, int], ndarray of float64] or None
        Draws the noise and sorts the largest errors; None where it cannot.
    """

    scales: Callable[[Fraction], Scales]
    spread: Callable[[Scales], Spread]
    widest: Callable[[Scales, float], float]
    errors: Callable[[Fraction, int], FloatArray] | None


class LeastEpsilon:
    """An accuracy for all queries, or for each, that laws are held against.

    Parameters
    ----------
    alpha : float
        How far answers may be off.
    beta : float
        The probability that they are farther off.
    scope : Scope
        Whether the promise is for all answers together, or for each.
    queries : int
        How many there are.
    """

    def __init__(self, alpha: float, beta: float, scope: Scope, queries: int) -> None:
        self.alpha, self.beta, self.scope = alpha, beta, scope
        self.queries = queries

    def least(self, law: ErrorLaw, start: float) -> Fraction:
        """Return the least epsilon of the two bounds, checked at that very epsilon.

        The search ends within a thousandth (Lemma TL6).

        Parameters
        ----------
        law : ErrorLaw
            The noise of a mechanism.
        start : float
            Where the search begins.

        Returns
        -------
        Fraction
            The epsilon.
        """
        fails, holds = 0.0, math.inf
        lower, tried = 2.0**-9, start
        for laws in count(1):
            epsilon = round_up(min(tried, LARGEST_EPSILON))
            excess = self._excess(law, law.scales(epsilon))
            tried = float(epsilon) * excess
            if excess <= 1.0:
                least, holds = epsilon, float(epsilon)
                # An excess of 1 says that tails add up, not how far they are from it.
                if 1.0 - 2.0**-10 <= excess < 1.0 or least == LEAST_EPSILON:
                    break
            elif float(epsilon) >= LARGEST_EPSILON:
                least = self._held_below(law, fails)
                holds = float(least)
            else:
                fails = float(epsilon)
                # Rates are rounded down, so noise is a little larger than promised.
                near = fails * (1.0 + 2.0**-12)
                # Where tails add up at the start, half-widths lead far beyond it.
                far = laws > 1 or excess <= 1.0 + 2.0**-9
                tried = max(tried, near) if far else near
            if holds <= fails * (1.0 + 2.0**-9):
                break
            if laws >= GUIDED_LAWS:
                # Between, or twice as far where nothing is known on one side.
                between = math.sqrt(fails * holds) if fails else 0.5 * holds
                tried = 2.0 * fails if math.isinf(holds) else between
            elif not fails < tried < holds:
                # Half-widths of few draws are whole numbers, and stay while epsilon
                # falls: steps that grow find where they change.
                tried = math.sqrt(fails * holds) if fails else holds * (1.0 - lower)
                lower = min(4.0 * lower, 0.5)
        return least

    def _held_below(self, law: ErrorLaw, fails: float) -> Fraction:
        """Return an epsilon that holds although the largest fails, or refuse.

        Bounds of hierarchies may grow with epsilon where scales are below 1.
        """
        tried = 0.5 * LARGEST_EPSILON
        while tried > max(fails, 1.0):
            epsilon = round_up(tried)
            if self._excess(law, law.scales(epsilon)) <= 1.0:
                return epsilon
            tried *= 0.5
        raise EpsilonError(
            f"no epsilon up to {LARGEST_EPSILON:g} promises this accuracy"
        )

    def _excess(self, law: ErrorLaw, scales: Scales) -> float:
        """Return the widest half-width over alpha; at most 1 if the promise holds."""
        widest = law.widest(scales, self._miss_of_each)
        if widest <= self.alpha or self.scope != "simultaneous":
            return widest / self.alpha
        kinds, counts = _kinds(law.spread(scales))
        together = self._tail_sum(kinds, counts, 1.0) <= self.beta
        return 1.0 if together else widest / self.alpha

    @property
    def _miss_of_each(self) -> float:
        return self.beta / (self.queries if self.scope == "simultaneous" else 1)

    def _tail_sum(self, kinds: Spread, counts: IntArray, epsilon: float) -> float:
        """Return the sum of tails beyond alpha, at scales divided by `epsilon`."""
        far = np.full(kinds.square.size, self.alpha * epsilon)
        if kinds.gaussian_rows:
            with np.errstate(divide="ignore"):
                tails = 2.0 * np.exp(-0.5 * far**2 / kinds.square)
            return float(np.minimum(tails, 1.0) @ counts)
        return float(chernoff_tail(far, kinds) @ counts)

    def scaled_start(self, spread: Spread) -> float:
        """Return about the least epsilon, from one law: noise is nearly 1 / epsilon."""
        kinds, counts = _kinds(spread)
        widest = float(noise_half_widths(kinds, self._miss_of_each).max(initial=0.0))
        start = max(widest / self.alpha, 1.0 / UNITS)
        if self.scope != "simultaneous":
            return start
        low, high = start / 16.0, start
        if self._tail_sum(kinds, counts, high) > self.beta:
            return start
        for _ in range(20):
            middle = math.sqrt(low * high)
            if self._tail_sum(kinds, counts, middle) <= self.beta:
                high = middle
            else:
                low = middle
        return high


def one_scale(scales: Scales) -> bool:
    """Return whether all rows have Laplace noise of one scale, or none."""
    rates = scales.rates[scales.measured]
    return bool(
        scales.power == 1
        and rates.size
        and rates.min() == rates.max()
        and (scales.measured | scales.exact).all()
    )


def _kinds(spread: Spread) -> tuple[Spread, IntArray]:
    """Return the distinct spreads, rounded up to 12 bits, and how often each occurs."""
    square, largest = _rounded_up(spread.square), _rounded_up(spread.largest)
    kinds, counts = np.unique(square + 1j * largest, return_counts=True)
    square, largest = kinds.real.copy(), kinds.imag.copy()
    bounded = Spread.bounded(2.0 * square, square, largest, spread.least)
    return bounded._replace(gaussian_rows=spread.gaussian_rows), counts


def _rounded_up(values: FloatArray) -> FloatArray:
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.ceil(mantissa * MANTISSA) / MANTISSA, exponent)


def round_up(epsilon: float) -> Fraction:
    """Return an epsilon in whole billionths, at least one."""
    return Fraction(max(math.ceil(epsilon * UNITS), 1), UNITS)


def lowest_safe_rank(samples: int, beta: float, tries: int) -> int | None:
    """Return which order statistic bounds the quantile.

    The number of draws below the quantile is binomial.

    Parameters
    ----------
    samples : int
        How many draws.
    beta : float
        The probability beyond the quantile.
    tries : int
        How often a rank is used in all.

    Returns
    -------
    int or None
        The rank; None if none is safe.
    """
    from scipy.stats import binom

    share = beta * OPEN_SHARE
    below = 1.0 - (beta - share)
    # P(Bin >= rank) <= share / tries.
    rank = int(binom.isf(share / tries, samples, below)) + 1
    while binom.sf(rank - 1, samples, below) > share / tries:
        rank += 1
    return rank if rank <= samples else None


class _FixedScales(Scales):
    """Scales that many draws share: their variances are worked out once."""

    @cached_property
    def variances(self) -> FloatArray:
        return super().variances


def largest_errors(
    scales: Scales,
    answers_of: Callable[[Scales, IntArray], FloatArray],
    samples: int,
) -> FloatArray:
    """Draw the noise from a fixed seed and return the largest errors, sorted.

    Parameters
    ----------
    scales : Scales
        The noise.
    answers_of : Callable[[Scales, ndarray of int64], ndarray of float64]
        Returns the errors of answers, given rows of noise.
    samples : int
        How many draws.

    Returns
    -------
    ndarray of float64, shape (samples,)
        The errors.
    """
    scales = _FixedScales(*scales)
    noisy = np.flatnonzero(scales.measured)
    widths = scales.widths[noisy, None]
    source = np.random.default_rng(20140622)
    errors = np.empty(samples)
    matrix = None
    if noisy.size < samples:
        matrix = _answers_to_units(scales, answers_of, noisy)
    noise = np.zeros(scales.rates.size, dtype=np.int64)
    for first in range(0, samples, DRAWN_TOGETHER):
        count = min(DRAWN_TOGETHER, samples - first)
        # The whole part of an exponential draw is geometric, and the difference of two
        # such draws follows the discrete Laplace law.
        up, down = source.standard_exponential((2, noisy.size, count))
        drawn = np.floor(up * widths) - np.floor(down * widths)
        if matrix is not None:
            largest = np.abs(matrix @ drawn).max(axis=0, initial=0.0)
            errors[first : first + count] = largest
            continue
        for at in range(count):
            noise[noisy] = drawn[:, at]
            errors[first + at] = np.abs(answers_of(scales, noise)).max(initial=0.0)
    return np.sort(errors)


def _answers_to_units(
    scales: Scales,
    answers_of: Callable[[Scales, IntArray], FloatArray],
    noisy: IntArray,
) -> FloatArray | None:
    """Return what one unit of noise in each row changes; None if that is too much."""
    noise = np.zeros(scales.rates.size, dtype=np.int64)
    columns = []
    for row in noisy:
        noise[row] = 1
        columns.append(answers_of(scales, noise).reshape(-1))
        noise[row] = 0
        if columns[0].size * noisy.size > MOST_WEIGHED:
            return None
    return np.column_stack(columns) if columns else None
