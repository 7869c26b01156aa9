"""The exponential mechanism over integer costs.

Serves every private choice of one candidate among many: bisections, bucket borders,
kept coefficients, queries. A candidate of cost c, a whole number, is drawn with
probability proportional to exp(-rate c), exactly:

    costs        7    5    9          gaps to the least      2    0    4
    weights   e^-2r   1   e^-4r       r = a multiple of 2^-bits, never above the rate

Gaps are cut off at a public number. The cut cost, min(cost, least cost + number),
moves no further than the costs do when a record is added, so a sensitivity of the
costs is one of the cut costs too.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError

from .exponential_choice import ABSENT, MOST_FRACTION_BITS, Words, choose

NO_CANDIDATE = int(np.iinfo(np.int64).max)
"""The cost of a candidate that is not there."""

RATE_BITS = 31
LOG_BITS = 61


def integer_rate(rate: Fraction) -> tuple[int, int]:
    """Return a number and fraction bits that stand for `rate`, rounded down.

    ``number * 2**-bits`` is at most `rate` and, for rates above 2^-25, within one part
    in 2^30 of it; the number is below 2^31.
    """
    if rate <= 0:
        raise InputError(f"a rate must be positive; received {rate}")
    if rate >= 2**RATE_BITS:
        return 2**RATE_BITS - 1, 0
    # One bit too many where the logarithm was rounded up: half the numbers remain.
    bits = min(max(RATE_BITS - 1 - math.floor(math.log2(rate)), 0), MOST_FRACTION_BITS)
    number = math.floor(rate * 2**bits)
    if number >= 2**RATE_BITS:
        number, bits = number >> 1, bits - 1
    return number, bits


def choose_by_cost(
    words: Words,
    start: int,
    costs: IntArray,
    rate: Fraction,
    prior: FloatArray | None = None,
) -> IntArray:
    """Draw one candidate per row, with weights that fall with their costs: Lemma EC1.

    Parameters
    ----------
    words : callable
        ``words(position, count)`` gives `count` random words from `position` on.
    start : int
        Row i reads the word at ``start + i`` and, rarely, its continuation.
    costs : (rows, candidates) int64
        Below 2^61 in size; `NO_CANDIDATE` for a candidate that is not there.
    rate : Fraction
        Positive. With costs that one record moves by at most D, a rate of
        epsilon / (2 D) makes the choice epsilon-private.
    prior : (candidates,) float64, optional
        Public logarithms of weights that the candidates have beforehand.

    Returns
    -------
    (rows,) int64
        The candidates drawn.

    Examples
    --------
    >>> middle = lambda position, count: np.full(count, 1 << 63, dtype=np.uint64)
    >>> choose_by_cost(middle, 0, np.array([[7, 5, 9]]), Fraction(3))
    array([1])
    """
    costs = np.asarray(costs, dtype=np.int64)
    if costs.ndim != 2 or costs.shape[1] == 0:
        raise InputError(
            f"costs need rows and candidates, but have shape {costs.shape}"
        )
    number, bits = integer_rate(rate)
    furthest = (1 << LOG_BITS) // max(number, 1)
    least = costs.min(axis=1, keepdims=True)
    absent = costs == NO_CANDIDATE
    some_absent = bool(absent.any())
    present = np.where(absent, least, costs) if some_absent else costs
    weights = np.minimum(present - least, furthest) * -number
    if prior is not None:
        weights += prior_weights(np.asarray(prior, dtype=np.float64), bits)
    if some_absent:
        weights[absent] = ABSENT
    return choose(words, start, weights, bits)


def prior_weights(prior: FloatArray, bits: int) -> IntArray:
    """Return public log-weights as multiples of 2^-bits, the largest 0, below 2^61.

    Any rounding will do: what is drawn stays private for every public prior.
    """
    nats = np.maximum(prior - prior.max(), -float(1 << (LOG_BITS - 1 - bits)))
    weights: IntArray = np.rint(np.ldexp(nats, bits)).astype(np.int64)
    return weights
