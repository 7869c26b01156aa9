"""Which numbers a kernel may add up: finite ones, and whole ones whose sums fit.

A sum of whole numbers beyond 64 bits turns negative without a word, and a number that
is not finite spreads over a whole fit. Both are refused here, by one look at the
numbers where they are small, which costs a few percent of the kernel at most:

    numbers   3  -5  7        largest size 7, three numbers: 3 * 7 < 2^63, all sums fit
"""

from __future__ import annotations

import math

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError

SUMS_BELOW = 2**63 - 2**24
"""Sums of sizes, added up as doubles, stay below this; what is missing to 2^63 is more
than the rounding of such a sum."""


def largest_size(values: IntArray) -> int:
    """Return the largest absolute value of some whole numbers; 0 without any."""
    if values.size == 0:
        return 0
    # Read without a sign, negative numbers are the largest. One pass tells of none.
    largest = int(values.view(np.uint64).max())
    if largest < 2**63:
        return largest
    return max(-int(values.min()), int(values.max()))


def refuse_wide_sums(values: IntArray, name: str) -> None:
    """Refuse whole numbers of which some add up to what 64 bits do not hold.

    Parameters
    ----------
    values : ndarray of int64
        The numbers, whatever their signs: any of them may be added up.
    name : str
        What the caller calls them, for the message.

    Raises
    ------
    InputError
        If their absolute values add up to 2^63 or more.

    Examples
    --------
    >>> refuse_wide_sums(np.array([3, -5, 7]), "counts")
    """
    largest = largest_size(values)
    if largest * values.size < SUMS_BELOW:
        return
    # As doubles: the sum of int64 would be the one that wraps.
    if np.abs(values.astype(np.float64)).sum() >= SUMS_BELOW:
        raise InputError(
            f"sums of {name} stay below 2^63, or they would turn negative in 64 bits",
            received=f"{values.size:,} {name}, the largest {largest:,}",
            way_out="Count them in coarser units",
            code="sums_beyond_64_bits",
        )


def refuse_odd_variances(variances: FloatArray) -> None:
    """Refuse variances that are negative or nan; infinity means "not measured"."""
    # A minimum is nan where one number is.
    if variances.size and not variances.min() >= 0:
        raise InputError(
            "variances must not be negative or nan; infinity says that nothing was "
            "measured",
            received=f"{variances.min()} among them",
            code="odd_variances",
        )


def refuse_infinite(
    values: FloatArray, name: str, variances: FloatArray | None = None
) -> None:
    """Refuse numbers that are nan or infinite.

    Parameters
    ----------
    values : ndarray of float64
        The numbers.
    name : str
        What the caller calls them, for the message.
    variances : ndarray of float64, optional
        Their variances. A number whose variance is infinite was not measured, and is
        not read.

    Raises
    ------
    InputError
        If one that is read is not finite.

    Examples
    --------
    >>> refuse_infinite(np.array([1.0, np.nan]), "totals", np.array([2.0, np.inf]))
    """
    # A sum is finite only if every number is, and takes one pass without a mask. Huge
    # numbers make it infinite too, and are looked at one by one.
    with np.errstate(all="ignore"):
        total = values.sum()
    if math.isfinite(total):
        return
    wrong = ~np.isfinite(values)
    if variances is not None:
        wrong &= variances < np.inf
    if wrong.any():
        raise InputError(
            f"{name} are finite numbers",
            received=f"{values[wrong][0]} among them",
            way_out="Leave out what is missing, or fill it in, before the call",
            code="not_finite",
        )
