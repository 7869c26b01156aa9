"""How many frequencies are kept: the private choice of EFPA.

    kept frequencies     0     1     2     3    ...
    what is dropped    high ............... low       L2 norm of the other coefficients
    noise               low ............. high        public
    cost               root of the sum of squares, drawn with weight exp(-rate * cost)

Pieces: draws from ``kernels.cost_choice``.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.policies import Policy

from .base import ByCost

COST_BITS = 6
"""Costs are whole numbers of 2^-6."""

LARGEST_NORM_BITS = 28
TRANSFORM_BITS = 36
"""Norms, the transform and all sums included, are off by at most 2^-36 of their size.

See the proof.
"""

IN_A_ROW = 2**14
"""Squares are added up in rows of so many, then the rows.

One after the other, millions of small squares behind a large one would all be rounded
the same way, and together be lost.
"""

ROOT_OF_TWO = Fraction(141422, 100000)
"""A little more than the square root of 2."""


class KeptFrequencies(ByCost):
    """Choose how many low frequencies to keep.

    Parameters
    ----------
    noise : (candidates,) float64
        Public: the L2 norm that the noise will have if frequencies 0 to i are kept.

    Notes
    -----
    Guarantee: epsilon-private choice of a number under the policy it is given.
    Neighbours: one record moves along one edge of the policy.
    Sensitivity: the norm of dropped coefficients of an orthonormal transform moves by
        at most 1 when a record is added or removed, by the root of 2 when it moves; the
        transform's rounding and that of costs are added.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> choice = KeptFrequencies(np.array([1.0, 2.0, 3.0]))
    >>> choice.costs(np.array([9, 1, 1, 1])).size
    3
    """

    name = "kept_frequencies"

    def __init__(self, noise: FloatArray) -> None:
        if noise.ndim != 1 or noise.size == 0 or not np.isfinite(noise).all():
            raise InputError("there must be a finite noise for each candidate")
        self.noise_norms = noise

    def sensitivity(self, policy: Policy) -> int:
        """Return how far one edge moves a cost, in units of 2^-6; 0 without edges.

        Lemma EF3.
        """
        if not (policy.has_moves or policy.has_bottom):
            return 0
        norm = ROOT_OF_TWO if policy.has_moves else Fraction(1)
        slack = Fraction(2, 2 ** (TRANSFORM_BITS - LARGEST_NORM_BITS))
        steps: int = math.ceil(2**COST_BITS * (norm + slack))
        return steps

    def costs(self, counts: IntArray) -> IntArray:
        """Return the cost of keeping frequencies 0 to i, for each candidate i.

        Counts are cut at a public number, which keeps the norm below 2^28.
        """
        cells = counts.size
        if self.noise_norms.size > cells // 2 + 1:
            raise InputError(
                f"{cells} cells have {cells // 2 + 1} frequencies; received "
                f"{self.noise_norms.size} candidates"
            )
        cap = int(2**LARGEST_NORM_BITS / math.sqrt(cells))
        spectrum = np.fft.rfft(np.minimum(counts, cap), norm="ortho")
        energy = 2.0 * (spectrum.real**2 + spectrum.imag**2)
        if cells % 2 == 0:
            energy[-1] /= 2.0
        # From the highest frequency down, so that small parts are added first.
        dropped = np.append(running_sums(energy[:0:-1])[::-1], 0.0)
        error = np.hypot(np.sqrt(dropped[: self.noise_norms.size]), self.noise_norms)
        highest = 2.0 ** (LARGEST_NORM_BITS + 2)
        costs: IntArray = np.floor(
            np.ldexp(np.minimum(error, highest), COST_BITS)
        ).astype(np.int64)
        return costs


def running_sums(terms: FloatArray) -> FloatArray:
    """Add up terms that are not negative, with few additions behind every sum.

    No sum of n terms has more than `IN_A_ROW` + n / `IN_A_ROW` roundings behind it, of
    at most 2^-53 of the sum each.

    Examples
    --------
    >>> running_sums(np.array([1.0, 2.0, 4.0]))
    array([1., 3., 7.])
    """
    rows = np.zeros((-(-terms.size // IN_A_ROW), IN_A_ROW))
    rows.reshape(-1)[: terms.size] = terms
    np.cumsum(rows, axis=1, out=rows)
    rows[1:] += np.cumsum(rows[:-1, -1])[:, None]
    sums: FloatArray = rows.reshape(-1)[: terms.size]
    return sums
