"""Noise that is lowered later without loss: a second draw, given the first.

Discrete Laplace noise of a low rate is noise of a higher rate and something that is
independent of it. So the noise of the higher rate can be drawn afterwards, given the
lower one, and both together cost what the higher rate costs alone:

    count  + noise of rate 1/10        published first
    count  + noise of rate 1/4         drawn given the first, published later
                                       price of both: 1/4, not 1/10 + 1/4

The draw takes four geometric numbers for each row and compares them. With z the size of
the first noise, r < s the two rates, on the side of its sign:

    near - across     <= z         that difference is the new noise
    near - across - z - 1 >= stay  the noise stays z
    otherwise                      it is z + 1 + beyond

`docs/proofs/refinement.md` proves law and price.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import EpsilonError, PrivacyError

from .noise import Scales, rates_at_common_unit

if TYPE_CHECKING:
    from .randomness import Randomness

FARTHEST_BITS = 28
"""Units of two measurements of a chain differ by so many binary digits at most."""


def lowered_scales(before: Scales, wanted: Scales) -> Scales:
    """Give every row the faster of two rates, in one unit: Lemma RF3.

    Parameters
    ----------
    before : Scales
        The noise that the rows have.
    wanted : Scales
        The noise that they shall have.

    Returns
    -------
    Scales
        The larger rate of each row.

    Raises
    ------
    PrivacyError
        If the scales are of different rows, or of Gaussian noise.
    EpsilonError
        If one unit is no multiple of the other, or they lie so far apart that rates
        leave 64 bits.

    Examples
    --------
    >>> exact = np.array([False, False])
    >>> rough = Scales(np.array([1, 3]), 10, exact)
    >>> lowered_scales(rough, Scales(np.array([2, 1]), 5, exact))[:2]
    (array([4, 3]), 10)
    """
    if before.power != 1 or wanted.power != 1:
        raise PrivacyError(
            "only Laplace noise is lowered later; a refinement of Gaussian noise is a "
            "second measurement, whose precision adds to that of the first. Measure "
            "again for the difference of rho; nothing was drawn"
        )
    if not np.array_equal(before.exact, wanted.exact):
        raise PrivacyError(
            "a refinement is about the rows that were measured, under the same policy: "
            f"{before.exact.size} rows with {int(before.exact.sum())} exact ones; "
            f"received scales of {wanted.exact.size} with {int(wanted.exact.sum())}"
        )
    small, large = sorted((before.unit, wanted.unit))
    # Rates below 2^33 in the smaller unit, and their sums, fit 64 bits in the larger.
    if large % small or large > small << FARTHEST_BITS:
        raise EpsilonError(
            "noise is lowered at rates in one unit, by a factor of up to "
            f"2^{FARTHEST_BITS} at a time; received rates in units of 1/{before.unit} "
            f"and 1/{wanted.unit}"
        )
    unit, (slow, fast) = rates_at_common_unit([before, wanted])
    return Scales(np.maximum(slow, fast), unit, before.exact)


def lowered_noise(
    noise: IntArray, before: Scales, after: Scales, rng: Randomness
) -> IntArray:
    """Draw noise of faster rates, given noise of slower ones: Lemma RF2.

    Parameters
    ----------
    noise : ndarray of int64, shape (rows,)
        The noise that was drawn at the rates of `before`; not read elsewhere.
    before : Scales
        Its scales.
    after : Scales
        What `lowered_scales` made of them.
    rng : Randomness
        The source of all noise.

    Returns
    -------
    ndarray of int64, shape (rows,)
        Noise of the rates of `after`; 0 where a row has none.

    Examples
    --------
    >>> from blowfish_fast.measure.randomness import Randomness
    >>> exact = np.array([False, False])
    >>> slow = Scales(np.array([1, 1]), 100, exact)
    >>> fast = Scales(np.array([1, 100]), 100, exact)
    >>> new = lowered_noise(np.array([70, 70]), slow, fast, Randomness(1))
    >>> int(new[0]), abs(int(new[1])) < 70
    (70, True)
    """
    _, (slow, fast) = rates_at_common_unit([before, after])
    lowered = np.where(after.measured, noise, 0)
    grown = after.measured & (fast > slow)
    fresh = np.flatnonzero(grown & (slow == 0))
    if fresh.size:
        lowered[fresh] = rng.laplace(after.unit, fast[fresh])
    again = np.flatnonzero(grown & (slow > 0))
    if again.size:
        first, second = slow[again], fast[again]
        lowered[again] = settled(
            noise[again],
            near=rng.geometric(after.unit, second - first),
            across=rng.geometric(after.unit, second + first),
            stay=rng.geometric(after.unit, 2 * first),
            beyond=rng.geometric(after.unit, second + first),
        )
    return lowered


def settled(
    noise: IntArray,
    *,
    near: IntArray,
    across: IntArray,
    stay: IntArray,
    beyond: IntArray,
) -> IntArray:
    """Return the new noise that four geometric numbers decide: Lemma RF2.

    Parameters
    ----------
    noise : ndarray of int64, shape (rows,)
        The first noise.
    near : ndarray of int64, shape (rows,)
        Geometric numbers whose rate is the difference of both rates.
    across : ndarray of int64, shape (rows,)
        Geometric numbers whose rate is the sum of both.
    stay : ndarray of int64, shape (rows,)
        Geometric numbers of twice the first rate.
    beyond : ndarray of int64, shape (rows,)
        Geometric numbers whose rate is the sum of both, independent of `across`.

    Returns
    -------
    ndarray of int64, shape (rows,)
        The new noise.

    Examples
    --------
    >>> few = [np.array([3, 9, 9, 1]), np.array([1, 1, 1, 4])]
    >>> near, across = few
    >>> stay, beyond = np.array([0, 3, 4, 0]), np.array([0, 0, 2, 0])
    >>> settled(np.array([5, 4, -4, 6]), near=near, across=across, stay=stay,
    ...         beyond=beyond)
    array([ 2,  4, -7, -3])
    """
    size = np.abs(noise)
    step = near - across
    outer = np.where(stay <= step - size - 1, size, size + 1 + beyond)
    new: IntArray = np.where(step <= size, step, outer)
    return np.where(noise < 0, -new, new)
