"""(error, delta)-usefulness: a bound on all counts that are sums of noisy cells.

With probability 1 - delta all answers lie within `error` of the truth. Sums over sets
of noisy cells are off by at most the sum of all |noise|, whichever the set:

    printed   P(sum > t)  <=  cells * exp(-t / (cells * b))     union over the cells
    exact     P(sum > t)   =  P(Gamma(cells, b) > t)            |noise| is exponential

The first is Lemma 41 of the DPCube paper. Noise on the integers exceeds an exponential
by ``b * ln(2 / (1 + exp(-1 / b)))`` at most in every cell; `discrete` adds this.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from blowfish_fast._support.validation import (
    as_choice,
    as_epsilon,
    as_positive,
    as_whole,
)
from blowfish_fast.errors import InputError

Bound = Literal["exact", "printed"]
BOUNDS = ("exact", "printed")

__all__ = ["cells_delta", "cells_error", "parity_agreement"]


def __dir__() -> list[str]:
    return sorted(__all__)


def cells_error(
    cells: int,
    *,
    epsilon: Any,
    delta: float,
    sensitivity: float = 1.0,
    bound: Bound = "exact",
    discrete: bool = False,
    records: int | None = None,
) -> float:
    """Return the error within which all counts lie, with probability 1 - delta.

    Parameters
    ----------
    cells : int
        Number of noisy cells.
    epsilon : number, str or Fraction
        What they were paid with.
    delta : float
        The probability that some count is farther off.
    sensitivity : float, default 1.0
        1 when a record is added or removed, 2 when it moves; for sums, times the
        largest value.
    bound : Bound, default 'exact'
        The law of the sum of all noise, or the paper's bound on it.
    discrete : bool, default False
        Whether the noise is drawn on the integers, as the library does.
    records : int, optional
        For relative counts: the public number of records, by which errors are divided.

    Returns
    -------
    float
        The error.

    Raises
    ------
    InputError
        If a number is out of range.

    Examples
    --------
    >>> round(cells_error(100, epsilon=0.05, delta=0.05, bound="printed"), 2)
    15201.8
    >>> round(cells_error(100, epsilon=0.05, delta=0.05), 2)
    2339.94
    """
    number, width = _cells_and_width(cells, epsilon, sensitivity)
    chance = float(delta)
    if not 0 < chance < 1:
        raise InputError(
            "delta, the probability of a larger error, lies between 0 and 1",
            received=repr(delta),
        )
    if as_choice(bound, "bound", BOUNDS) == "printed":
        error = number * width * math.log(number / chance)
    else:
        from scipy.special import gammainccinv

        error = float(gammainccinv(number, chance)) * width
    error += _rounding(number, width, discrete)
    return error if records is None else error / as_whole(records, "records", 1)


def cells_delta(
    cells: int,
    *,
    epsilon: Any,
    error: float,
    sensitivity: float = 1.0,
    bound: Bound = "exact",
    discrete: bool = False,
    records: int | None = None,
) -> float:
    """Return the probability that some count is off by more than `error`.

    The inverse of `cells_error`.

    Parameters
    ----------
    cells : int
        Number of noisy cells.
    epsilon : number, str or Fraction
        What they were paid with.
    error : float
        How far a count is off.
    sensitivity : float, default 1.0
        By how much a record changes the cells in all.
    bound : Bound, default 'exact'
        The exact bound, or the printed one.
    discrete : bool, default False
        Whether the noise lives on the integers.
    records : int, optional
        If given, errors are parts of so many records.

    Returns
    -------
    float
        The probability.

    Raises
    ------
    InputError
        If a number is out of range.

    Examples
    --------
    >>> round(cells_delta(100, epsilon=0.05, error=2339.94), 4)
    0.05
    """
    number, width = _cells_and_width(cells, epsilon, sensitivity)
    times = 1 if records is None else as_whole(records, "records", 1)
    distance = as_positive(error, "error") * times
    distance = max(distance - _rounding(number, width, discrete), 0.0)
    if as_choice(bound, "bound", BOUNDS) == "printed":
        return min(1.0, number * math.exp(-distance / (number * width)))
    from scipy.special import gammaincc

    return float(gammaincc(number, distance / width))


def parity_agreement(noise_rate: float, combined: int) -> float:
    """Return how often the sum of some labels modulo 2 is right, each wrong by itself.

    The piling-up lemma: 1/2 + (1 - 2 * noise_rate)^combined / 2. Learning a bit of a
    parity of d - 1 bits by elimination combines up to d - 1 labels (not d - 2, as the
    paper's appendix C has it).

    Parameters
    ----------
    noise_rate : float
        How often a label is wrong.
    combined : int
        How many labels are added up.

    Returns
    -------
    float
        The probability.

    Raises
    ------
    InputError
        If a number is out of range.

    Examples
    --------
    >>> round(parity_agreement(0.1, 6), 6)
    0.631072
    """
    if not 0 <= noise_rate <= 1:
        raise InputError(f"noise_rate must lie in [0, 1]; received {noise_rate!r}")
    labels = as_whole(combined, "combined", 0)
    return float(0.5 + 0.5 * (1.0 - 2.0 * noise_rate) ** labels)


def _cells_and_width(cells: Any, epsilon: Any, sensitivity: float) -> tuple[int, float]:
    reach = as_positive(sensitivity, "sensitivity")
    return as_whole(cells, "cells", 1), reach / float(as_epsilon(epsilon))


def _rounding(cells: int, width: float, discrete: bool) -> float:
    """Return how far sums of integer noise may exceed those of exponential noise."""
    if not discrete:
        return 0.0
    return cells * width * math.log(2.0 / (1.0 + math.exp(-1.0 / width)))
