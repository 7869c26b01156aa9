"""Intervals of counts that were listed because noise lifted them to a threshold.

A cell that was named before anybody looked has the plain interval of its noise. A cell
that was taken from the list has another one: that it is listed at all says that its
noise was high. The plain interval would miss an empty cell that is listed every time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.measure.noise import Scales

SAFETY = 1.0 - 1e-9
"""Chances of a miss are lowered by this, far more than sums of floats may err by."""

FARTHEST = 48.0
"""Gaussian tails are added up to so many deviations beyond the threshold.

Farther out the last of these sums stands for the tail. It is too large there, so that
intervals are wider than they need be, by a chance below e^-1152.
"""


class NoiseTail:
    """Logarithms of P(Z >= k) for the noise of one cell, k any whole number.

    Parameters
    ----------
    scales : Scales
        The noise of one cell.
    threshold : int
        The public threshold of the list.
    """

    def __init__(self, scales: Scales, threshold: int) -> None:
        self.power = scales.power
        self.width = float(scales.widths[0])
        if self.power == 2:
            reach = threshold + int(np.ceil(FARTHEST * self.width)) + 2
            place = np.arange(reach, dtype=np.float64)
            terms = -0.5 * np.square(place / self.width)
            upper = np.logaddexp.accumulate(terms[::-1])[::-1]
            # upper[0] sums the values from 0 on, upper[1] those from 1 on, which the
            # negative values repeat: together they are the whole law.
            whole = np.logaddexp(upper[0], upper[1])
            self._upper: FloatArray = upper - whole

    def log_upper(self, place: IntArray) -> FloatArray:
        """Return ln P(Z >= k)."""
        above: FloatArray = self._log_above(np.maximum(place, 1))
        below = np.log1p(-np.exp(self._log_above(np.maximum(1 - place, 1))))
        return np.where(place >= 1, above, below)

    def _log_above(self, place: IntArray) -> FloatArray:
        if self.power == 1:
            fade = np.exp(-1.0 / self.width)
            return np.asarray(-place / self.width - np.log1p(fade))
        # Farther out the tail is smaller still, which only widens intervals.
        return np.asarray(self._upper[np.minimum(place, self._upper.size - 1)])

    def half_width(self, miss: float) -> int:
        """Return the least h with P(|Z| > h) <= miss."""
        goal = np.log(0.5 * miss * SAFETY)
        below, enough = -1, 1
        while float(self.log_upper(np.array(enough + 1))) > goal:
            below, enough = enough, 2 * enough
        while enough - below > 1:
            middle = (below + enough) // 2
            if float(self.log_upper(np.array(middle + 1))) > goal:
                below = middle
            else:
                enough = middle
        return enough


class Bounds(NamedTuple):
    """Intervals of counts.

    Attributes
    ----------
    low : ndarray of int64, shape (cells,)
        The lower end for each cell, in records.
    high : ndarray of int64, shape (cells,)
        The upper end, which belongs to the interval.
    """

    low: IntArray
    high: IntArray


def beforehand_bounds(
    noisy: IntArray, listed: BoolArray, threshold: int | IntArray, half: int
) -> Bounds:
    """Return intervals of cells named before the list was seen: Lemma SL8.

    Parameters
    ----------
    noisy : ndarray of int64, shape (cells,)
        The noisy count of each cell; read only where it was listed.
    listed : ndarray of bool, shape (cells,)
        Whether it was listed.
    threshold : int, or ndarray of int64, shape (cells,)
        The public threshold, or that of each cell.
    half : int
        How far noise moves a count but for a small chance.

    Returns
    -------
    tuple of two ndarrays
        The lower and the upper ends.
    """
    high = np.where(listed, noisy, threshold - 1) + half
    return Bounds(np.where(listed, np.maximum(noisy - half, 0), 0), high)


def listed_bounds(
    noisy: IntArray, threshold: int, tail: NoiseTail, miss: float
) -> Bounds:
    """Return intervals of cells taken from the list, given that they are: Lemma SL9.

    Parameters
    ----------
    noisy : ndarray of int64, shape (cells,)
        Listed counts, all at `threshold` or above.
    threshold : int
        The public threshold.
    tail : NoiseTail
        The law of the noise.
    miss : float
        How often an interval may miss the true count, given the list.

    Returns
    -------
    tuple of two ndarrays
        The lower and the upper ends.
    """
    values, back = np.unique(noisy, return_inverse=True)
    goal = np.log(0.5 * miss * SAFETY)
    rest = np.log1p(-0.5 * miss * SAFETY)

    def too_small(count: IntArray) -> BoolArray:
        """Whether a cell of so many records seldom has a noisy count so high."""
        seen = tail.log_upper(values - count) - tail.log_upper(threshold - count)
        return np.asarray(seen <= goal)

    def too_large(count: IntArray) -> BoolArray:
        """Whether it seldom has one so low."""
        above = tail.log_upper(values + 1 - count) - tail.log_upper(threshold - count)
        return np.asarray(above >= rest)

    # The least count that is not too small; the noisy count itself never is.
    below, low = np.full(values.size, -1, dtype=np.int64), values.copy()
    while (wide := low - below > 1).any():
        middle = (below + low) // 2
        refused = too_small(middle)
        below = np.where(wide & refused, middle, below)
        low = np.where(wide & ~refused, middle, low)
    # The largest that is not too large; none may be left, close to the threshold.
    high, beyond = values.copy(), values + 1
    while not (refused := too_large(beyond)).all():
        beyond = np.where(refused, beyond, 2 * beyond - values + 1)
    while (wide := beyond - high > 1).any():
        middle = (high + beyond) // 2
        refused = too_large(middle)
        beyond = np.where(wide & refused, middle, beyond)
        high = np.where(wide & ~refused, middle, high)
    return Bounds(low[back], high[back])
