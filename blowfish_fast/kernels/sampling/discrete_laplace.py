"""Exact discrete Laplace and geometric noise: one random word, one logarithm a draw.

A word holds a uniform number U and a sign; inversion gives the size of the noise,

    word   [ 63 bits of U | sign ]       size = floor(scale * -ln U + offset)

with offset 0 for the geometric law. Floating point only proposes a value, together
with a proved bound on its own error. Where a whole number lies within the bound the
draw stays undecided; then more words lengthen U, and decimal arithmetic of growing
precision decides. So each draw is the exact function of the words, on any machine.

        2           3           4          scale * -ln U + offset
    ----|----(.)----|----------(|.)----    left: 2 for sure; right: undecided

`docs/proofs/exact_noise.md` proves the bound, function by function.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

from blowfish_fast._support.compiler_watch import in_plain_python
from blowfish_fast._support.typing import FloatArray, IntArray, WordArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import (
    RESOLVER_BASE,
    RESOLVER_BITS,
    Ratio,
    Ratios,
    Words,
    check_places,
    check_start,
    draw_target,
    further_words,
    read_words,
)
from blowfish_fast.kernels._jit import exact_kernel, helper

# At this scale a draw leaves 64 bits with probability exp(-128).
LARGEST_SCALE = 1 << 56

# Words fetched at a time (1 MiB, so that threads seldom meet in the interpreter), and
# the part of them worked on in the first cache. Draws do not depend on either.
CHUNK = 1 << 17
BLOCK = 256

# What becomes of the sizes: signed, stored as they are, or subtracted.
_SIGNED, _ONE_SIDED, _SUBTRACTED = 0, 1, 2

# Bit fields of a double.
_FRACTION_BITS = 52
_SHIFT_TO_EXPONENT = np.uint64(_FRACTION_BITS)
_FRACTION = np.uint64((1 << _FRACTION_BITS) - 1)
_EXPONENT = np.uint64(2047 << _FRACTION_BITS)
_EXPONENT_OF_ONE = np.uint64(1023 << _FRACTION_BITS)
_TWICE_EXPONENT_OF_ONE = np.uint64(2046 << _FRACTION_BITS)
_LOWEST_BIT = np.uint64(1)
_SHIFT_TO_SIGN = np.uint64(63)

# A whole number below 2^52 becomes a double without a conversion when its bits are
# placed under this exponent; and adding `_ROUNDER` rounds a double to a whole number.
_WHOLE = np.uint64(1075 << _FRACTION_BITS)
_WHOLE_EXPONENT_OF_WORD_RANGE = 2.0**52 + 1023 + 64
_ROUNDER = 1.5 * 2.0**52
_ROUNDER_BITS = np.int64((1075 << _FRACTION_BITS) | (1 << (_FRACTION_BITS - 1)))

# The mantissa range [1, 2) is cut into cells; the logarithm is tabulated at their
# centres and continued from there by a polynomial.
_CELL_BITS = 8
_CELL_SHIFT = np.uint64(_FRACTION_BITS - _CELL_BITS)
_CELL = np.uint64(((1 << _CELL_BITS) - 1) << (_FRACTION_BITS - _CELL_BITS))
_CENTRE = np.uint64((1023 << _FRACTION_BITS) | 1 << (_FRACTION_BITS - _CELL_BITS - 1))


def _log_table() -> tuple[FloatArray, FloatArray]:
    """Return 1/centre and ln(centre) of every cell, each rounded to nearest."""
    cells = 1 << _CELL_BITS
    context = Context(prec=40)
    centres = [Fraction(2 * cells + 2 * cell + 1, 2 * cells) for cell in range(cells)]
    logarithms = [
        context.ln(context.divide(Decimal(c.numerator), Decimal(c.denominator)))
        for c in centres
    ]
    return np.array([float(1 / c) for c in centres]), np.array(logarithms, dtype=float)


_RECIPROCALS, _LOGARITHMS = _log_table()
_LOG_TWO = float(Context(prec=40).ln(Decimal(2)))

# Error of the argument of the floor, in units of the rounding 2^-53: see the proof.
_ERROR_OF_LOG = 4 * 2.0**-53
_ERROR_PER_SIZE = 10 * 2.0**-53
_ERROR_OF_OFFSET = 2.0**-46

# From the first scale on, the series for the Laplace offset has converged; below the
# second, exp(-1 / scale) no longer counts.
_WIDE = 8.0
_NARROW = 1 / 64
_SERIES = np.array([1 / math.factorial(n) for n in range(13, -1, -1)])


@helper
def _cell(value: float) -> np.uint64:
    """Return the table cell of the mantissa of `value`."""
    return (np.float64(value).view(np.uint64) & _FRACTION) >> _CELL_SHIFT


@helper
def _minus_log(value: float, reciprocal: float, logarithm: float) -> float:
    """Return ``-ln(value / 2^64)`` for `value` in [1, 2^64], given its table cell."""
    bits = np.float64(value).view(np.uint64)
    fraction = bits & _FRACTION
    mantissa = np.uint64(fraction | _EXPONENT_OF_ONE).view(np.float64)
    centre = np.uint64((fraction & _CELL) | _CENTRE).view(np.float64)
    halvings = _WHOLE_EXPONENT_OF_WORD_RANGE - np.uint64(
        (bits >> _SHIFT_TO_EXPONENT) | _WHOLE
    ).view(np.float64)
    step = (mantissa - centre) * reciprocal
    square = step * step
    from_centre = (step - 0.5 * square) + square * step * (
        (1 / 3 - step * 0.25) + square * 0.2
    )
    return (halvings * _LOG_TWO - logarithm) - from_centre


@exact_kernel
def _draw(
    words: WordArray,
    scales: FloatArray,
    offsets: FloatArray,
    finish: int,
    out: IntArray,
    undecided: IntArray,
) -> int:
    """Turn words into draws; list the undecided ones and return their number.

    There is one scale and one offset (less 1/2) for each word, or one for all; `finish`
    says whether sizes are signed, stored or subtracted; undecided ones count as 0.
    Blocks stay in the first cache, and table look-ups have a loop of their own, so that
    the arithmetic becomes vectors.
    """
    shared = scales.size == 1
    scale, offset = np.empty(BLOCK), np.empty(BLOCK)
    for i in range(BLOCK):
        scale[i], offset[i] = scales[0], offsets[0]
    value = np.empty(BLOCK)
    reciprocal = np.empty(BLOCK)
    logarithm = np.empty(BLOCK)
    doubt = np.empty(BLOCK, dtype=np.uint64)
    size = np.empty(BLOCK, dtype=np.int64)
    undecided_draws = 0
    for first in range(0, words.size, BLOCK):
        last = min(first + BLOCK, words.size)
        count = last - first
        block = words[first:last]
        target = out[first:last]
        if not shared:
            scale = scales[first:last]
            offset = offsets[first:last]
        for i in range(count):
            value[i] = np.float64(block[i] | _LOWEST_BIT)
        for i in range(count):
            cell = _cell(value[i])
            reciprocal[i] = _RECIPROCALS[cell]
            logarithm[i] = _LOGARITHMS[cell]
        any_doubt = np.uint64(0)
        for i in range(count):
            # U * 2^64 lies within 1 of the odd number; half_width bounds what that
            # means for ln U, save for the number 1, where U may be 0.
            exponent = np.float64(value[i]).view(np.uint64) & _EXPONENT
            half_width = np.uint64(_TWICE_EXPONENT_OF_ONE - exponent).view(np.float64)
            surprise = _minus_log(value[i], reciprocal[i], logarithm[i])
            # Half below the argument of the floor: rounded to nearest, it gives the
            # floor. The argument is never negative, so low values need no accuracy.
            middle = scale[i] * surprise + offset[i]
            middle = middle if middle > -0.25 else -0.25
            error = scale[i] * (half_width + _ERROR_OF_LOG) + (
                middle * _ERROR_PER_SIZE + _ERROR_OF_OFFSET
            )
            rounded = middle + _ROUNDER
            distance = abs(middle - (rounded - _ROUNDER))
            margin = np.float64((0.5 - error) - distance)
            above_zero = np.float64(value[i] - 2.0)
            doubt[i] = margin.view(np.uint64) | above_zero.view(np.uint64)
            any_doubt |= doubt[i]
            size[i] = np.float64(rounded).view(np.int64) - _ROUNDER_BITS
        if any_doubt >> _SHIFT_TO_SIGN:
            for i in range(count):
                if doubt[i] >> _SHIFT_TO_SIGN:
                    size[i] = 0
                    undecided[undecided_draws] = first + i
                    undecided_draws += 1
        if finish == _SIGNED:
            for i in range(count):
                negative = np.int64(block[i] & _LOWEST_BIT)
                target[i] = (size[i] ^ -negative) + negative
        elif finish == _ONE_SIDED:
            for i in range(count):
                target[i] = size[i]
        else:
            for i in range(count):
                target[i] -= size[i]
    return undecided_draws


@exact_kernel
def _fill_offsets(scales: FloatArray, offsets: FloatArray) -> None:
    """Fill in ``scale * ln(2 / (1 + exp(-1 / scale))) - 1/2``, the Laplace offset.

    For wide noise by the series of ``-scale * ln cosh(1 / (2 scale))``; below scale 8
    by an exponential and a logarithm.
    """
    value = np.empty(BLOCK)
    reciprocal = np.empty(BLOCK)
    logarithm = np.empty(BLOCK)
    for first in range(0, scales.size, BLOCK):
        last = min(first + BLOCK, scales.size)
        scale = scales[first:last]
        offset = offsets[first:last]
        narrow = False
        for i in range(last - first):
            narrow |= scale[i] < _WIDE
            half = np.divide(0.5, scale[i] if scale[i] > _WIDE else _WIDE)
            square = half * half
            inner = 1 / 90 - square * (17 / 5040 - square * (31 / 28350))
            offset[i] = -half * (0.25 - square * (1 / 24 - square * inner))
        if not narrow:
            continue
        for i in range(last - first):
            rate = np.divide(1.0, scale[i] if scale[i] > _NARROW else _NARROW)
            rounded = rate * (1 / _LOG_TWO) + _ROUNDER
            rest = (rounded - _ROUNDER) * _LOG_TWO - rate
            exponential = _SERIES[0]
            for n in range(1, _SERIES.size):
                exponential = exponential * rest + _SERIES[n]
            halvings = np.float64(rounded).view(np.int64) - _ROUNDER_BITS
            power = np.int64((1023 + 63 - halvings) << _FRACTION_BITS)
            value[i] = 2.0**63 + exponential * power.view(np.float64)
        for i in range(last - first):
            cell = _cell(value[i])
            reciprocal[i] = _RECIPROCALS[cell]
            logarithm[i] = _LOGARITHMS[cell]
        for i in range(last - first):
            surprise = _minus_log(value[i], reciprocal[i], logarithm[i])
            exact = scale[i] * surprise - 0.5
            offset[i] = exact if scale[i] < _WIDE else offset[i]


@lru_cache(maxsize=256)
def _shared_offset(scale: float) -> float:
    """Return the Laplace offset of one scale, less 1/2, in plain Python.

    That takes a tenth of a millisecond, and the compiler would take a second. Scales
    are public. Roundings may differ from those of the compiled function: the bound on
    the error allows for it, so draws do not differ.
    """
    offset = np.empty(1)
    in_plain_python(_fill_offsets)(np.array([scale]), offset)
    return float(offset[0])


def laplace(
    words: Words,
    start: int,
    numerators: Ratio,
    denominators: Ratio,
    size: int | None = None,
    out: IntArray | None = None,
) -> IntArray:
    """Draw exact discrete Laplace noise, P(z) proportional to exp(-|z| / scale): EN1.

    Parameters
    ----------
    words : callable
        ``words(position, count)`` gives `count` random words, uint64, a pure function
        of both.
    start : int
        Place of the first word; draw i takes the word at ``start + i``.
    numerators : int or ndarray of int64, shape (n,)
        Numerators of the scales: shared, or one for each draw. A shared one may be any
        Python integer.
    denominators : int or ndarray of int64, shape (n,)
        Denominators of the scales.
    size : int, optional
        Number of draws; needed only if neither the scale nor `out` tells.
    out : ndarray of int64, shape (n,), optional
        Where to put the draws.

    Returns
    -------
    ndarray of int64, shape (n,)
        The draws. Each is an exact function of the words, the same on every machine.

    Raises
    ------
    InputError
        If a scale is not positive or too large, or places and sizes do not fit.

    Examples
    --------
    >>> words = lambda position, count: np.full(count, 1 << 61, dtype=np.uint64)
    >>> laplace(words, 0, np.array([3, 30]), np.array([1, 1]))
    array([ 6, 62])
    """
    return _fill(words, start, numerators, denominators, size, out, _SIGNED)


def geometric(
    words: Words,
    start: int,
    numerators: Ratio,
    denominators: Ratio,
    size: int | None = None,
    out: IntArray | None = None,
) -> IntArray:
    """Draw exact geometric noise, P(G >= k) = exp(-k / scale): Lemma EN1.

    Parameters
    ----------
    words : callable
        ``words(position, count)`` gives `count` random words, uint64.
    start : int
        Place of the first word; draw i takes the word at ``start + i``.
    numerators : int or ndarray of int64, shape (n,)
        Numerators of the scales: shared, or one for each draw.
    denominators : int or ndarray of int64, shape (n,)
        Denominators of the scales.
    size : int, optional
        Number of draws; needed only if neither the scale nor `out` tells.
    out : ndarray of int64, shape (n,), optional
        Where to put the draws.

    Returns
    -------
    ndarray of int64, shape (n,)
        The draws, none negative.

    Raises
    ------
    InputError
        If a scale is not positive or too large, or places and sizes do not fit.

    Examples
    --------
    >>> words = lambda position, count: np.full(count, 1 << 61, dtype=np.uint64)
    >>> geometric(words, 0, np.array([3, 30]), np.array([1, 1]))
    array([ 6, 62])
    """
    return _fill(words, start, numerators, denominators, size, out, _ONE_SIDED)


def subtract_geometric(costs: IntArray, words: Words, start: int, scale: float) -> None:
    """Subtract exact geometric noise from each of the `costs`, in place.

    Parameters
    ----------
    costs : ndarray of int64, shape (n,)
        Costs; they are changed.
    words : callable
        ``words(position, count)`` gives `count` random words, uint64.
    start : int
        Place of the first word.
    scale : float
        Scale of the noise, taken as the exact binary fraction that the double is.

    Raises
    ------
    InputError
        If the scale is not finite or not positive.

    Examples
    --------
    >>> words = lambda position, count: np.full(count, 1 << 61, dtype=np.uint64)
    >>> costs = np.array([50, 60])
    >>> subtract_geometric(costs, words, 0, 2.5)
    >>> costs
    array([45, 55])
    """
    if not math.isfinite(scale):
        raise InputError(f"a noise scale must be finite; received {scale}")
    numerator, denominator = float(scale).as_integer_ratio()
    _fill(words, start, numerator, denominator, None, costs, _SUBTRACTED)


def _fill(
    words: Words,
    start: int,
    numerators: Ratio,
    denominators: Ratio,
    size: int | None,
    out: IntArray | None,
    finish: int,
) -> IntArray:
    """Draw chunk by chunk, and resolve what the floating filter left undecided."""
    out = draw_target(numerators, denominators, size, out)
    check_start(start, out.size)
    if out.size == 0:
        return out
    ratios = Ratios(numerators, denominators, out.size, "noise scale", LARGEST_SCALE)
    scales = offsets = np.empty(0)
    undecided = np.empty(min(CHUNK, out.size), dtype=np.int64)
    for first in range(0, out.size, CHUNK):
        last = min(first + CHUNK, out.size)
        part = out[first:last]
        drawn = read_words(words, start + first, part.size)
        if first == 0:
            check_places(words, start, drawn)
        if not drawn.flags.carray:
            drawn = np.require(drawn, np.uint64, ["C", "W"])
        if first == 0 or not ratios.shared:
            scales = ratios.doubles(first, last)
            offsets = np.full(scales.size, -0.5)
            if finish == _SIGNED and scales.size == 1:
                offsets[0] = _shared_offset(float(scales[0]))
            elif finish == _SIGNED:
                _fill_offsets(scales, offsets)
        undecided_draws = _draw(drawn, scales, offsets, finish, part, undecided)
        for i in undecided[:undecided_draws].tolist():
            at, ratio = start + first + i, ratios.exact(first + i)
            draw = resolve(words, at, int(drawn[i]), *ratio, signed=finish == _SIGNED)
            part[i] = part[i] - draw if finish == _SUBTRACTED else draw
    return out


def resolve(
    words: Words,
    position: int,
    word: int,
    numerator: int,
    denominator: int,
    *,
    signed: bool,
) -> int:
    """Return the draw of one word for certain, for any positive rational scale: EN6.

    No threshold is rational, so each round decides but for a chance of about
    ``scale / 2^64`` to the power of the round.

    Parameters
    ----------
    words : callable
        ``words(position, count)`` gives the further words that lengthen U.
    position : int
        Place of the first word of the draw.
    word : int
        That word.
    numerator : int
        Numerator of the scale.
    denominator : int
        Denominator of the scale.
    signed : bool
        Discrete Laplace if so, else geometric.

    Returns
    -------
    int
        The draw.
    """
    first_bits, bits = word >> 1, 63
    further = further_words(words, RESOLVER_BASE + (position << RESOLVER_BITS))
    while True:
        if first_bits > 0:
            least, most = _size_between(
                first_bits, bits, numerator, denominator, signed
            )
            if least == most:
                return -least if signed and word & 1 else least
        first_bits = (first_bits << 64) | next(further)
        bits += 64


def _size_between(
    first_bits: int, bits: int, numerator: int, denominator: int, signed: bool
) -> tuple[int, int]:
    """Bound the size of a draw of which the first bits of U are known.

    U lies in ``[first_bits, first_bits + 1) / 2^bits``. Every decimal operation rounds
    to nearest, so the error stays far below the slack; the digits make the slack small
    beside what is not known of U.
    """
    exact, scale, summit, slack = _terms(bits, numerator, denominator, signed)
    lowest_logarithm = exact.ln(Decimal(first_bits))
    most = exact.multiply(scale, exact.subtract(summit, lowest_logarithm))
    # The logarithm rises by less than 1 / known up to the end of the interval.
    least = exact.subtract(most, exact.divide(scale, Decimal(first_bits)))
    least, most = exact.subtract(least, slack), exact.add(most, slack)
    return max(math.floor(least), 0), math.floor(most)


@lru_cache(maxsize=256)
def _terms(
    bits: int, numerator: int, denominator: int, signed: bool
) -> tuple[Context, Decimal, Decimal, Decimal]:
    """Return context, scale, summit, slack: floor(scale * (summit - ln(U 2^bits)))."""
    bits_of_scale = max(numerator.bit_length() - denominator.bit_length() + 1, 0)
    digits = (bits + bits_of_scale) * 302 // 1000 + 25
    exact = Context(digits, ROUND_HALF_EVEN, MIN_EMIN, MAX_EMAX, traps=[])
    scale = exact.divide(Decimal(numerator), Decimal(denominator))
    summit = exact.ln(Decimal(1 << bits))
    if signed:
        rate = exact.divide(Decimal(denominator), Decimal(numerator))
        both_signs = exact.add(Decimal(1), exact.exp(rate.copy_negate()))
        shift = exact.subtract(exact.ln(Decimal(2)), exact.ln(both_signs))
        summit = exact.add(summit, shift)
    units = exact.scaleb(Decimal(10 * (bits + 10)), Decimal(1 - digits))
    slack = exact.multiply(scale, units)
    return exact, scale, summit, slack
