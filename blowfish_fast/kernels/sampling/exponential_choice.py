"""The exponential mechanism: exact choices among candidates, by log-weights or costs.

Row by row, candidate i is taken with probability proportional to exp(t_i), where t_i is
an int64 multiple of ``2**-fraction_bits``. A random 64-bit word and its unlimited
continuation spell a number U, uniform in [0, 1), and the choice is the part of the unit
interval that holds it:

    weights   1.0 0.5 0.5       0         1/2       3/4        1
    U = .61 -> candidate 1      |----0-----|----1----|----2----|

A floating-point filter places the word; its error is at most `margin` (in the code
below). A word too close to a border goes to the resolver, which reads further words
and compares fractions until U is on one side. Either way the result is *the* function
of the bits of U: no candidate's probability is rounded, not even to zero. The filter
uses ``+ - *``, conversions and two tables: no library logarithm, no fused operations,
so that a compiled run, a plain run and another machine agree.

Whole costs become weights by their gaps to the least one, times a rate rounded down:

    costs        7    5    9          weights   e^-2r   1   e^-4r
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray, WordArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import (
    RESOLVER_BASE,
    RESOLVER_BITS,
    Words,
    check_places,
    check_start,
    further_words,
    read_words,
    whole_numbers,
)
from blowfish_fast.kernels._jit import kernel

from .decimal_bounds import exponential_bounds

ABSENT = int(np.iinfo(np.int64).min)
"""The log-weight of a candidate that is not there."""

MOST_FRACTION_BITS = 55

_ROWS = 1 << 13  # rows per block, so that words and scratch stay in the cache

_FARTHEST = 64  # nats below the best; anything farther counts as this far

# Decimal arithmetic is the same on every machine; each constant is rounded once.
_DECIMAL = Context(prec=40)


def _powers(factor: Decimal, count: int) -> list[float]:
    """Return 1, factor, factor**2 ..., each rounded to a double."""
    powers = [Decimal(1)]
    while len(powers) < count:
        powers.append(_DECIMAL.multiply(powers[-1], factor))
    return [float(power) for power in powers]


_LOG_TWO_DIGITS = _DECIMAL.ln(Decimal(2))
_LOG_TWO = float(_LOG_TWO_DIGITS)

# Exponentials: a whole number of steps of ln(2) / 128 from a table, then a series.
_STEP_DIGITS = _DECIMAL.divide(_LOG_TWO_DIGITS, Decimal(128))
_STEPS_PER_NAT = float(_DECIMAL.divide(Decimal(1), _STEP_DIGITS))
# The upper half has 38 significant bits: its product with a step number is exact.
_STEP_HIGH = int(_DECIMAL.multiply(_STEP_DIGITS, Decimal(2**45))) / 2.0**45
_STEP_LOW = float(_DECIMAL.subtract(_STEP_DIGITS, Decimal(_STEP_HIGH)))
_STEP_POWERS = np.array(_powers(_DECIMAL.exp(_DECIMAL.minus(_STEP_DIGITS)), 128))
_HALVINGS = np.array([2.0**-j for j in range(94)])

# Logarithms: of a mantissa m in [1, 2) around c, by the series of artanh at
# y = (m - c) / (m + c), which stays below .172 in size.
_CENTRE = 1.4142135623730951
_CENTRE_LOG = float(_DECIMAL.ln(Decimal(_CENTRE)))


@kernel
def weigh_rows(
    log_weights: IntArray,
    words: WordArray,
    fraction_bits: int,
    choices: IntArray,
    totals: IntArray,
    doubtful: IntArray,
) -> int:
    """Choose in every row, and add the row's weights up.

    Parameters
    ----------
    log_weights : ndarray of int64, shape (rows, candidates)
        Natural logarithms of the weights, in units of ``2**-fraction_bits``, below
        2**62 in size, or `ABSENT`.
    words : ndarray of uint64, shape (rows,)
        The leading 64 bits of each row's uniform number.
    fraction_bits : int
        From 0 to 55.
    choices : ndarray of int64, shape (rows,)
        Receives the candidate of each row.
    totals : ndarray of int64, shape (rows,)
        Receives the logarithms of the sums of weights in the same units, off by at most
        `total_error`.
    doubtful : ndarray of int64, shape (rows,)
        Receives, first, the rows that need the resolver.

    Returns
    -------
    int
        How many rows need the resolver.
    """
    rows, candidates = log_weights.shape
    unit = 2.0**-fraction_bits
    scale = 2.0**fraction_bits
    farthest = np.int64(_FARTHEST) << np.int64(fraction_bits)
    reached = np.empty(candidates)
    doubts = 0
    for row in range(rows):
        best = log_weights[row, 0]
        for candidate in range(1, candidates):
            best = max(best, log_weights[row, candidate])
        lowest = best - farthest
        total = 0.0
        for candidate in range(candidates):
            gap = np.float64(best - max(log_weights[row, candidate], lowest)) * unit
            step = np.rint(gap * _STEPS_PER_NAT)
            rest = (gap - step * _STEP_HIGH) - step * _STEP_LOW
            whole = np.int64(step)
            power = _STEP_POWERS[whole & 127] * _HALVINGS[whole >> 7]
            series = 0.5 - rest * (1 / 6 - rest * (1 / 24 - rest * (1 / 120)))
            total += power - power * (rest - rest * rest * series)
            reached[candidate] = total

        place = np.float64(words[row]) * 2.0**-64 * total
        # Each weight is within 5 units of 2**-53, each addition within one unit of
        # the sum; twice, because the total scales the word. See the proof page.
        margin = (12 * candidates + (2 * candidates + 2) * total) * 2.0**-53
        choice = 0
        close = False
        for candidate in range(candidates - 1):
            beyond = place - reached[candidate]
            choice += beyond >= 0.0
            close |= abs(beyond) <= margin
        choices[row] = choice
        if close:
            doubtful[doubts] = row
            doubts += 1

        bits = np.float64(total).view(np.uint64)
        exponent = np.int64(bits >> np.uint64(52)) - 1023
        fraction = bits & np.uint64((1 << 52) - 1)
        mantissa = np.uint64(fraction | np.uint64(1023 << 52)).view(np.float64)
        ratio = (mantissa - _CENTRE) / (mantissa + _CENTRE)
        square = ratio * ratio
        series = 1 / 21
        for odd in (19, 17, 15, 13, 11, 9, 7, 5, 3):
            series = series * square + 1.0 / odd
        logarithm = exponent * _LOG_TWO + (
            _CENTRE_LOG + 2.0 * ratio * (1.0 + square * series)
        )
        totals[row] = best + np.int64(np.rint(logarithm * scale))
    return doubts


def total_error(candidates: int, fraction_bits: int) -> Fraction:
    """Return a bound, in nats, on the error of the totals of `weigh_rows`.

    Half a unit is for rounding to the grid, the rest for the floating-point sum and
    logarithm. It is proved for at most 64 candidates.

    Parameters
    ----------
    candidates : int
        Number of candidates of a row.
    fraction_bits : int
        Binary digits of the log-weights behind the point.

    Returns
    -------
    Fraction
        The bound.
    """
    return Fraction(1, 2 << fraction_bits) + Fraction(6 * candidates + 17, 1 << 53)


def resolve_choice(
    words: Words, position: int, log_weights: list[int], fraction_bits: int
) -> int:
    """Choose one candidate with fractions, reading words until it is certain.

    Parameters
    ----------
    words : callable
        ``words(position, count)`` gives `count` random words.
    position : int
        Place of the row's first word.
    log_weights : list[int]
        The log-weights of the row, or `ABSENT`.
    fraction_bits : int
        Binary digits of the log-weights behind the point.

    Returns
    -------
    int
        The number of the candidate.
    """
    present = [i for i, weight in enumerate(log_weights) if weight != ABSENT]
    best = max(log_weights[i] for i in present)
    uniform = int(read_words(words, position, 1)[0])
    bits = 64
    further = further_words(words, RESOLVER_BASE + (position << RESOLVER_BITS))
    while True:
        gaps = [Fraction(best - log_weights[i], 1 << fraction_bits) for i in present]
        bounds = [exponential_bounds(gap, bits // 3 + 8) for gap in gaps]
        # The place U * total, times 2**bits, lies in [at_least, below).
        at_least = uniform * sum(low for low, _ in bounds)
        below = (uniform + 1) * sum(high for _, high in bounds)
        low_border = high_border = Fraction(0)
        for candidate, (low, high) in zip(present, bounds, strict=True):
            low_border += low * (1 << bits)
            high_border += high * (1 << bits)
            if below <= low_border or candidate == present[-1]:
                return candidate
            if at_least < high_border:
                break
        uniform = (uniform << 64) | next(further)
        bits += 64


def choose(
    words: Words, start: int, log_weights: IntArray, fraction_bits: int
) -> IntArray:
    """Draw one candidate per row, exactly in proportion to the weights: Lemma EC2.

    Parameters
    ----------
    words : callable
        ``words(position, count)`` gives `count` random words from `position` on.
    start : int
        Row i reads the word at ``start + i`` and, rarely, its continuation.
    log_weights : ndarray of int64, shape (rows, candidates)
        Natural logarithms of the weights, in units of ``2**-fraction_bits``, below
        2**62 in size; `ABSENT` for a candidate that is not there.
    fraction_bits : int
        From 0 to 55.

    Returns
    -------
    ndarray of int64, shape (rows,)
        The candidates drawn.

    Raises
    ------
    InputError
        If there is no candidate in some row, or the fraction bits are out of range.

    Examples
    --------
    >>> middle = lambda position, count: np.full(count, 1 << 63, dtype=np.uint64)
    >>> choose(middle, 0, np.array([[0, 0, 0], [0, 512, 0], [ABSENT, 0, 0]]), 8)
    array([1, 1, 2])
    """
    weights = np.ascontiguousarray(whole_numbers(log_weights))
    if weights.ndim != 2 or weights.shape[1] == 0:
        raise InputError(
            f"log-weights need rows and candidates, but have shape {weights.shape}"
        )
    if not 0 <= fraction_bits <= MOST_FRACTION_BITS:
        raise InputError(
            f"fraction bits go from 0 to {MOST_FRACTION_BITS}, not {fraction_bits}"
        )
    check_start(start, weights.shape[0])
    if weights.shape[0] and weights.max(axis=1).min() == ABSENT:
        raise InputError("every row needs a candidate that is not absent")
    choices = np.empty(weights.shape[0], dtype=np.int64)
    for first in range(0, choices.size, _ROWS):
        block = weights[first : first + _ROWS].copy()
        choices[first : first + _ROWS], _ = weigh_block(
            words, start + first, block, fraction_bits
        )
    return choices


def weigh_block(
    words: Words, start: int, log_weights: IntArray, fraction_bits: int
) -> tuple[IntArray, IntArray]:
    """Return choice and rounded log-total of every row of a small table, unchecked.

    Parameters
    ----------
    words : callable
        ``words(position, count)`` gives `count` random words.
    start : int
        Row i reads the word at ``start + i`` and, rarely, its continuation.
    log_weights : ndarray of int64, shape (rows, candidates)
        As for `choose`.
    fraction_bits : int
        From 0 to 55.

    Returns
    -------
    choices : ndarray of int64, shape (rows,)
        The candidates drawn.
    totals : ndarray of int64, shape (rows,)
        Logarithms of the sums of weights, off by at most `total_error`.
    """
    rows = log_weights.shape[0]
    choices, totals, doubtful = np.empty((3, rows), dtype=np.int64)
    # A copy: the source may hand out a read-only view.
    leading = read_words(words, start, rows).copy()
    check_places(words, start, leading)
    doubts = weigh_rows(log_weights, leading, fraction_bits, choices, totals, doubtful)
    for row in doubtful[:doubts].tolist():
        choices[row] = resolve_choice(
            words, start + row, log_weights[row].tolist(), fraction_bits
        )
    return choices, totals


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

    Weights follow from the gaps to the least cost, times the rate rounded down.

    Parameters
    ----------
    words : callable
        ``words(position, count)`` gives `count` random words from `position` on.
    start : int
        Row i reads the word at ``start + i`` and, rarely, its continuation.
    costs : ndarray of int64, shape (rows, candidates)
        Costs, below 2^61 in size; `NO_CANDIDATE` for a candidate that is not there.
    rate : Fraction
        A positive number. With costs that one record moves by at most D, a rate of
        epsilon / (2 D) makes the choice epsilon-private.
    prior : ndarray of float64, shape (candidates,), optional
        Public logarithms of weights that the candidates have beforehand.

    Returns
    -------
    ndarray of int64, shape (rows,)
        The candidates drawn.

    Raises
    ------
    InputError
        If shapes do not fit, a row has no candidate, or the rate is not positive.

    Examples
    --------
    >>> middle = lambda position, count: np.full(count, 1 << 63, dtype=np.uint64)
    >>> choose_by_cost(middle, 0, np.array([[7, 5, 9]]), Fraction(3))
    array([1])
    """
    costs = whole_numbers(costs)
    if costs.ndim != 2 or costs.shape[1] == 0:
        raise InputError(
            f"costs need rows and candidates, but have shape {costs.shape}"
        )
    number, bits = integer_rate(rate)
    # A cut gap moves no further than the costs do, so their sensitivity holds for it.
    furthest = (1 << LOG_BITS) // max(number, 1)
    least = costs.min(axis=1, keepdims=True)
    absent = costs == NO_CANDIDATE
    some_absent = bool(absent.any())
    present = np.where(absent, least, costs) if some_absent else costs
    if present.size and int(present.max()) - int(least.min()) >= 2**63:
        raise InputError(
            "costs lie so far apart that their differences do not fit 64 bits",
            received=f"{least.min():,} to {present.max():,}",
        )
    weights = np.minimum(present - least, furthest) * -number
    if prior is not None:
        weights += prior_weights(np.asarray(prior, dtype=np.float64), bits)
    if some_absent:
        weights[absent] = ABSENT
    return choose(words, start, weights, bits)


def prior_weights(prior: FloatArray, bits: int) -> IntArray:
    """Return public log-weights as multiples of 2^-bits, the largest 0, below 2^61.

    Any rounding will do: what is drawn stays private for every public prior.

    Parameters
    ----------
    prior : ndarray of float64, shape (candidates,)
        Public logarithms of weights, in nats.
    bits : int
        Binary digits behind the point.

    Returns
    -------
    ndarray of int64, shape (candidates,)
        The multiples, none positive.
    """
    nats = np.maximum(prior - prior.max(), -float(1 << (LOG_BITS - 1 - bits)))
    weights: IntArray = np.rint(np.ldexp(nats, bits)).astype(np.int64)
    return weights
