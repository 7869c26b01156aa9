"""Whole weights by age: what a record counts in each release of a series.

In the release of epoch t a record that arrived k epochs earlier counts ``c[k]`` times,
so that release t is drawn from ``u[t] = c[0] x[t] + c[1] x[t-1] + ...``, where ``x[j]``
is the histogram of epoch j. Written as power series in z (one factor z is one epoch),
``u = c x``. Hence every epoch and every running total is linear in the releases::

            epochs            releases (public, each with noise of its own)
    x0  x1  x2  x3             u0 = c0 x0
    |   |   |   |    weights   u1 = c0 x1 + c1 x0
    +---+---+---+---- c ---->  u2 = c0 x2 + c1 x1 + c2 x0
                               u3 = c0 x3 + c1 x2 + c2 x1 + c3 x0

            epoch t   =  sum over k of d[k] u[t-k],   d = 1 / c
            total     =  sum over k of b[k] u[t-k],   b = 1 / (c (1 - z))
            last w    =  sum over k of (b[k] - b[k-w]) u[t-k]

One example by hand: c = (2, 1) gives d = (1/2, -1/4, 1/8, ...) and b = (1/2, 1/4, 3/8).
After two epochs the total is b0 u1 + b1 u0 = (2 x1 + x0) / 2 + 2 x0 / 4 = x1 + x0.

Weights that fall like a fractional power, ``(1 - z)^-a``, spread the noise best: a = 0
counts every epoch alone, a = 1/2 is the best known factorisation of running totals.
Proofs: ``docs/proofs/series.md``, Lemmas SW1 to SW6.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_fraction, as_whole, quoted
from blowfish_fast.errors import InputError

__all__ = ["Weights"]

SCALE = 2**10
"""What the newest record counts. From 64 on the mean variance of running totals of 365
epochs stays within one part in a thousand of that of weights that are not rounded."""

FINE_SCALE = 2**12
LONG_BAND = 512
"""Exponents below 1/4 take the finer scale in longer bands: at 1/8 and 2^10 records
older than 606 epochs would be rounded away."""

LARGEST_WEIGHT = 2**20
LONGEST_BAND = 2**15

FRACTION_BITS = 160
"""The recurrence of the exact weights is cut to so many bits, to keep it cheap."""

BANDS = {"day": 4096, "week": 1024, "month": 256, "quarter": 128, "year": 128}
"""After how many epochs records count no more, where nobody states it: some ten years
of days, twenty of weeks and months, thirty of quarters."""

EXPONENTS = tuple(Fraction(eighths, 8) for eighths in range(5))
"""What `Series.plan` chooses from: 0, 1/8, 1/4, 3/8 and 1/2."""

DEFAULT_EXPONENT = Fraction(3, 8)
"""Beats two levels of blocks in single epochs, windows and totals at once."""

NOISE = {1: 2.0, 2: 0.5}
"""Variance of a cell that is counted once: at epsilon 1 (power 1) and at rho 1 (2)."""


@dataclass(frozen=True)
class Weights:
    """How often a record counts, by its age in epochs: whole numbers that never rise.

    Parameters
    ----------
    values : sequence of int
        ``values[k]`` is what a record counts that arrived k epochs before the newest
        one. The first is at least 1, none is larger than the one before, and records
        older than the list count no more.
    exponent : Fraction, optional
        The exponent a of ``(1 - z)^-a`` that the values were rounded from; None for
        values of one's own.

    Raises
    ------
    InputError
        For values that are no whole numbers, and for weights that rise with age:
        persons in several epochs would be dearer than the price that is charged (Lemma
        SW5), and records that come late might count below 0 (Lemma SW4).

    Examples
    --------
    >>> halves = Weights.falling(Fraction(1, 2), band=4, scale=16)
    >>> halves.values
    (16, 8, 6, 5)
    >>> halves.price(power=2), halves.price(power=1)
    (381, 35)
    >>> Weights((2, 1)).total_shares(3).tolist()
    [0.5, 0.25, 0.375]
    """

    values: tuple[int, ...]
    exponent: Fraction | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _as_values(self.values))

    @classmethod
    def falling(cls, exponent: Any, band: int, scale: int | None = None) -> Self:
        """Return the rounded coefficients of ``(1 - z)^-exponent``.

        Parameters
        ----------
        exponent : number
            From 0 (every epoch by itself) to 1/2 (best for running totals).
        band : int
            How many epochs back records still count.
        scale : int, optional
            What the newest record counts: by default 2^10, and 2^12 for exponents below
            1/4 in bands of more than 512 epochs.

        Returns
        -------
        Weights
            At most `band` of them; those that round to 0 are left out.
        """
        power = as_fraction(exponent, "exponent")
        if not 0 <= power <= Fraction(1, 2):
            raise InputError(
                "the exponent of weights lies between 0, single epochs, and 1/2, "
                "running totals",
                received=quoted(exponent),
            )
        length = as_whole(band, "band", 1)
        if length > LONGEST_BAND:
            raise InputError(
                f"a band has at most {LONGEST_BAND:,} epochs", received=quoted(band)
            )
        if scale is None:
            fine = power < Fraction(1, 4) and length > LONG_BAND
            scale = FINE_SCALE if fine else SCALE
        newest = as_whole(scale, "scale", 1)
        coefficient, values = Fraction(1), list[int]()
        for age in range(length):
            value = int(coefficient * newest + Fraction(1, 2))
            if value == 0:
                break
            values.append(value)
            coefficient = coefficient * (age + power) / (age + 1)
            if coefficient.denominator.bit_length() > 2 * FRACTION_BITS:
                cut = int(coefficient * 2**FRACTION_BITS)
                coefficient = Fraction(cut, 2**FRACTION_BITS)
        return cls(tuple(values), power)

    @property
    def band(self) -> int:
        """Number of epochs, the newest included, in which a record counts."""
        return len(self.values)

    @cached_property
    def digest(self) -> str:
        """Twelve hexadecimal digits that tell these weights from all others."""
        text = ",".join(map(str, self.values))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def price(
        self, power: int, epochs_at_most: int = 1, records_at_most: int = 1
    ) -> int:
        """Return what one unit of price in each release costs in all: Lemmas SW1, SW5.

        Parameters
        ----------
        power : {1, 2}
            1 for epsilon, whose distances add up, and 2 for rho, whose squares do.
        epochs_at_most : int
            In how many epochs the protected person has records; 1 protects a record, or
            a person in one epoch.
        records_at_most : int
            How many records she has in each of these epochs.

        Returns
        -------
        int
            ``sum c[k]^power`` for one epoch. For w epochs: w times that in epsilon; in
            rho the squared length of w neighbouring columns added up, since weights
            that fall make neighbouring epochs the dearest.
        """
        if power == 1:
            return records_at_most * epochs_at_most * sum(self.values)
        column = [0] * (self.band + epochs_at_most - 1)
        for shift in range(epochs_at_most):
            for age, value in enumerate(self.values):
                column[shift + age] += value
        return records_at_most**2 * sum(value * value for value in column)

    def epoch_shares(self, epochs: int) -> FloatArray:
        """Return d = 1 / c: with what share each release enters the newest epoch.

        Parameters
        ----------
        epochs : int
            How many releases there are.

        Returns
        -------
        float64 (epochs,)
            The share of the newest release first. O(epochs * band).
        """
        shares = np.zeros(epochs)
        ratios = np.array(self.values[1:], dtype=np.float64) / self.values[0]
        shares[0] = 1.0 / self.values[0]
        for age in range(1, epochs):
            reach = min(age, ratios.size)
            # The product c d has no term of this age: solve it for the newest d.
            shares[age] = -(ratios[:reach] @ shares[age - reach : age][::-1])
        return shares

    def total_shares(self, epochs: int) -> FloatArray:
        """Return b = 1 / (c (1 - z)): the shares of a running total, newest first."""
        return np.cumsum(self.epoch_shares(epochs))

    def window_shares(self, epochs: int, last: int) -> FloatArray:
        """Return the shares of the `last` epochs together, newest release first.

        Parameters
        ----------
        epochs : int
            How many releases there are.
        last : int
            How many of the newest epochs are added up.

        Returns
        -------
        float64 (epochs,)
            What each release is multiplied by.
        """
        shares = self.total_shares(epochs)
        earlier = np.zeros(epochs)
        if last < epochs:
            # What the total had before the window began.
            earlier[last:] = shares[:-last]
        return shares - earlier

    def variances(
        self,
        epochs: int,
        power: int,
        *,
        last: int | None = None,
        epochs_at_most: int = 1,
    ) -> FloatArray:
        """Return the variance of one cell after each epoch at a budget of 1: Lemma SW6.

        Parameters
        ----------
        epochs : int
            How many releases there are.
        power : {1, 2}
            The budget is epsilon = 1, or rho = 1.
        last : int, optional
            Of the last so many epochs together, 1 for a single one; left out, of the
            running total.
        epochs_at_most : int
            In how many epochs the protected person has records.

        Returns
        -------
        float64 (epochs,)
            The variance after the first release, after the second, and so on.
        """
        price = self.price(power, epochs_at_most)
        unit = NOISE[power] * float(price) ** (3 - power)
        if last is None or last >= epochs:
            return unit * np.cumsum(self.total_shares(epochs) ** 2)
        shares = self.total_shares(epochs)
        whole = np.cumsum(shares**2)
        windowed = np.cumsum(self.window_shares(epochs, last) ** 2)
        # Until the window is full it is the running total.
        return unit * np.where(np.arange(epochs) < last, whole, windowed)

    def weigh(self, histories: Sequence[IntArray]) -> IntArray:
        """Return the weighted sum of the counts of epochs, oldest first.

        Parameters
        ----------
        histories : sequence of int64 arrays of one shape
            Counts of every epoch from the first on; only the newest `band` are read.

        Returns
        -------
        int64 array of that shape
            Counts of the newest epoch times the first weight, of the one before times
            the second, and so on.
        """
        recent = list(histories)[-self.band :]
        total = np.zeros(np.shape(recent[-1]), dtype=np.int64)
        for value, counts in zip(self.values, reversed(recent), strict=False):
            total += value * np.asarray(counts, dtype=np.int64)
        return total

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for the ledger: exponent, band, scale and digest."""
        return {
            "exponent": None if self.exponent is None else str(self.exponent),
            "band": self.band,
            "scale": self.values[0],
            "digest": self.digest,
        }


def _as_values(values: Any) -> tuple[int, ...]:
    """Read whole weights that never rise; refuse others with the place of the first."""
    wrong = "weights are whole numbers from 1 on, one for each age, that never rise"
    if isinstance(values, str | Mapping) or not isinstance(values, Sequence):
        raise InputError(wrong, received=quoted(values))
    whole = [as_whole(value, "a weight", 0) for value in values]
    if not whole or not 1 <= whole[0] <= LARGEST_WEIGHT or len(whole) > LONGEST_BAND:
        raise InputError(
            f"{wrong}; the first is at most 2^20, and there are at most "
            f"{LONGEST_BAND:,}",
            received=quoted(whole[:4]),
        )
    for age, (newer, older) in enumerate(itertools.pairwise(whole), start=1):
        if older > newer:
            raise InputError(
                f"{wrong}: a person in several epochs would be dearer than what is "
                "charged",
                received=f"{newer} at age {age - 1} and {older} at age {age}",
            )
    while whole[-1] == 0:
        whole.pop()
    return tuple(whole)
