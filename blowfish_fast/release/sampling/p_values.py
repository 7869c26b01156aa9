"""P-values of one answer against a number that was stated before.

An interval at a miss b leaves the true number out with a chance of at most b. So a
stated number is doubted by the smallest miss whose interval leaves it out:

    miss        .9        .3        .05        .01
    interval    [.11, .12] [.10, .13] [.09, .14] [.08, .15]
    0.095       out       out       held       held         p between .05 and .3

Misses are looked at on a fixed ladder, and p is a rung that leaves the number out
beside one that holds it, sought by halves: Lemma PN17.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_number

LEAST_P = 1.0e-9
"""P-values below this are given as it."""
LARGEST_P = 0.9
"""P-values above this are given as 1."""
RUNG = 1.01
"""P-values are rounded up by at most this factor."""
RUNGS = math.ceil(math.log(LARGEST_P / LEAST_P) / math.log(RUNG))
"""Steps from the largest p-value to the least."""
SLACK = 1.0e-12
"""Rounding of the ends of intervals, relative to their size."""

Bounds = Callable[[float], FloatArray]
"""From a confidence to intervals, (answers, 2)."""


def p_values_against(bounds: Bounds, against: float | str | Fraction) -> FloatArray:
    """Return the p-value of "it is this number" of each answer: Lemma PN17.

    Parameters
    ----------
    bounds : Callable[[float], ndarray]
        From a confidence to the intervals of all answers, each row one of them.
    against : float, str or Fraction
        The number; stated before, no estimate of its own.

    Returns
    -------
    ndarray of float64, shape (answers,)
        Each is that of one answer, asked once.

    Raises
    ------
    EpsilonError
        If it is no finite number.

    Examples
    --------
    Of a normal estimate of 2 with the standard error 1, against 0:

    >>> from scipy.special import ndtri
    >>> def bounds(confidence):
    ...     half = ndtri(0.5 + confidence / 2)
    ...     return np.array([[2.0 - half, 2.0 + half]])
    >>> round(float(p_values_against(bounds, 0)[0]), 3)
    0.046
    """
    number = as_number(against, "against", least=-math.inf)
    looked_at: dict[int, np.ndarray] = {}

    def left_out(rung: int) -> np.ndarray:
        if rung not in looked_at:
            low, high = bounds(1.0 - _miss_of(rung)).T
            room = SLACK * (1.0 + abs(number))
            looked_at[rung] = (low > number + room) | (high < number - room)
        return looked_at[rung]

    p = np.where(left_out(0), LARGEST_P, 1.0)
    for answer in np.flatnonzero(left_out(0)):
        out, held = 0, RUNGS
        if left_out(RUNGS)[answer]:
            out = RUNGS
        while held - out > 1:
            middle = (out + held) // 2
            if left_out(middle)[answer]:
                out = middle
            else:
                held = middle
        p[answer] = _miss_of(out)
    return p


def _miss_of(rung: int) -> float:
    return max(LARGEST_P * RUNG**-rung, LEAST_P)
