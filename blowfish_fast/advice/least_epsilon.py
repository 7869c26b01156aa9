"""The least epsilon at which a law of noise keeps within alpha, but for beta.

The law itself is asked at every epsilon that is tried; scaling only says where to
start. Proved in docs/proofs/translation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
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

MOST_LAWS = 24
"""Laws that are worked out on the way to the least epsilon; two or three are usual."""


class ErrorLaw(NamedTuple):
    """The noise of a mechanism by epsilon; `errors` draws and sorts the largest."""

    scales: Callable[[Fraction], Scales]
    spread: Callable[[Scales], Spread]
    half_widths: Callable[[Scales, float], FloatArray]
    errors: Callable[[Fraction, int], FloatArray] | None


class LeastEpsilon:
    """An accuracy for all queries, or for each, that laws are held against."""

    def __init__(self, alpha: float, beta: float, scope: Scope, queries: int) -> None:
        self.alpha, self.beta, self.scope = alpha, beta, scope
        self.queries = queries

    def least(self, law: ErrorLaw, start: float) -> Fraction:
        """Return the least epsilon of the two bounds, checked at that very epsilon.

        The search begins at `start` and ends within a thousandth.
        """
        fails, holds = 0.0, math.inf
        least, lower = Fraction(0), 2.0**-9
        tried = start
        for _ in range(MOST_LAWS):
            epsilon = round_up(min(tried, LARGEST_EPSILON))
            excess = self._excess(law, law.scales(epsilon))
            tried = float(epsilon) * excess
            if excess <= 1.0:
                least, holds = epsilon, float(epsilon)
            elif float(epsilon) >= LARGEST_EPSILON:
                raise EpsilonError(
                    f"no epsilon up to {LARGEST_EPSILON:g} promises this accuracy"
                )
            else:
                fails = float(epsilon)
                # Rates are rounded down, so noise is a little larger than promised.
                tried = max(tried, fails * (1.0 + 2.0**-12))
            if 1.0 - 2.0**-10 <= excess < 1.0 or holds <= fails * (1.0 + 2.0**-9):
                break
            if not fails < tried < holds:
                # Half-widths of few draws are whole numbers, and stay while epsilon
                # falls: steps that grow find where they change.
                tried = math.sqrt(fails * holds) if fails else holds * (1.0 - lower)
                lower = min(4.0 * lower, 0.5)
        return least if least else self._least_by_doubling(law, fails)

    def _least_by_doubling(self, law: ErrorLaw, fails: float) -> Fraction:
        """Return some epsilon that holds, if the search has met none."""
        epsilon = fails
        while epsilon < LARGEST_EPSILON:
            epsilon = min(2.0 * epsilon, LARGEST_EPSILON)
            if self._excess(law, law.scales(round_up(epsilon))) <= 1.0:
                return round_up(epsilon)
        raise EpsilonError(
            f"no epsilon up to {LARGEST_EPSILON:g} promises this accuracy"
        )

    def _excess(self, law: ErrorLaw, scales: Scales) -> float:
        """Return the widest half-width over alpha; at most 1 if the promise holds."""
        widest = float(law.half_widths(scales, self._miss_of_each).max(initial=0.0))
        if widest <= self.alpha or self.scope != "simultaneous":
            return widest / self.alpha
        kinds, counts = _kinds(law.spread(scales))
        return (
            1.0
            if self._tail_sum(kinds, counts, 1.0) <= self.beta
            else (widest / self.alpha)
        )

    @property
    def _miss_of_each(self) -> float:
        return self.beta / (self.queries if self.scope == "simultaneous" else 1)

    def _tail_sum(self, kinds: Spread, counts: IntArray, epsilon: float) -> float:
        """Return the sum of tails beyond alpha, at scales divided by `epsilon`."""
        far = np.full(kinds.square.size, self.alpha * epsilon)
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
    return Spread.bounded(2.0 * square, square, largest, spread.least), counts


def _rounded_up(values: FloatArray) -> FloatArray:
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.ceil(mantissa * MANTISSA) / MANTISSA, exponent)


def round_up(epsilon: float) -> Fraction:
    """Return an epsilon in whole billionths, at least one."""
    return Fraction(max(math.ceil(epsilon * UNITS), 1), UNITS)
