"""Exact rectangles over the bell curve, and the draws that floats cannot decide.

The curve exp(-x^2 / 2) lies under 255 rectangles of exactly one area and an exponential
tail of the same area:

    f_256 ------+                 strip i = [0, x_i) x [f_i, f_(i+1)),  x_i doubles,
    f_255 ------+--+              f_i fractions with  x_i (f_(i+1) - f_i) = area
          ...       `-.           strip 0 = [0, R) x [0, f_1), and beyond R a tail of
    f_1   -----------+-.          height f_1 exp(-RATE (x - R))
    0     -----------R---...

A draw is a point (y, h) under the strips, rounded to k = floor(s y + 1/2), and kept
where h < exp(-k^2 / 2v - 1 / (8 (s^2 - v))). Roundings of x_i, s or the area change the
speed, never the law; ``docs/proofs/exact_noise.md`` shows why.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from .decimal_bounds import decimal_of, exponential_bounds, own_context

STRIPS = 256
"""Rectangles and the tail: each of the values that eight bits of a word can have."""

STRIP_BITS = 8
UNIFORM_BITS = 55
"""What is left of a word of 64 bits after the strip and the sign: the abscissa."""

BORDER = 3.6554204243168607
"""Where the tail begins; any number near it would do, this one wastes least."""

RATE = Fraction(BORDER - 2.0**-20)
"""Rate of the tail: below the slope of the curve's logarithm beyond the border."""


def _build() -> tuple[list[Fraction], list[Fraction]]:
    """Return the ends x_i and heights f_i of all strips, all above the curve.

    All from decimals of 50 digits, so that every machine gets the same strips.
    """
    context = own_context(50)
    border = Fraction(BORDER)
    height = exponential_bounds(border * border / 2, 50)[1]
    # A little more area than the curve needs pays for the roundings of the x_i.
    area = height * (border + 1 / RATE) * (1 + Fraction(1, 2**44))
    ends = [border + 1 / RATE, border]
    heights = [Fraction(0), area / ends[0]]
    while len(ends) < STRIPS:
        heights.append(heights[-1] + area / ends[-1])
        logarithm = context.ln(decimal_of(heights[-1], context))
        root = context.sqrt(context.multiply(Decimal(-2), logarithm))
        ends.append(Fraction(float(root) * (1.0 + 2.0**-50)))
    heights.append(heights[-1] + area / ends[-1])
    for end, above in zip(ends[1:], heights[1:], strict=False):
        assert above >= exponential_bounds(end * end / 2, 50)[1]
    assert heights[-1] >= 1
    return ends, heights


ENDS, HEIGHTS = _build()


class _Uniform:
    """A uniform number in [0, 1) whose bits are read as far as they are needed."""

    def __init__(self, known: int, bits: int, more: Iterator[int]) -> None:
        self.known, self.bits, self.more = known, bits, more

    def lengthen(self) -> None:
        self.known = (self.known << 64) | next(self.more)
        self.bits += 64

    def ends(self) -> tuple[Fraction, Fraction]:
        below, above = self.known, self.known + 1
        return Fraction(below, 1 << self.bits), Fraction(above, 1 << self.bits)


def resolve_point(
    words: tuple[int, int, int], stretch: float, variance: Fraction, more: Iterator[int]
) -> int | None:
    """Decide one point in fractions: its draw, or None where the point is rejected.

    Parameters
    ----------
    words : tuple[int, int, int]
        Strip, sign and abscissa; the height; the abscissa in the tail.
    stretch : float
        Any double whose square is above the variance.
    variance : Fraction
        The exact variance.
    more : Iterator[int]
        Further words, which lengthen the others where their bits do not decide.

    Returns
    -------
    int or None
        The draw, or None.
    """
    word, second, third = words
    strip, negative = word & (STRIPS - 1), (word >> STRIP_BITS) & 1
    across = _Uniform(word >> (STRIP_BITS + 1), UNIFORM_BITS, more)
    upward = _Uniform(second, 64, more)
    beyond = _Uniform(third, 64, more)
    scale = Fraction(stretch)
    tail = strip == 0 and _in_tail(across)
    size = (
        _tail_size(beyond, scale) if tail else _strip_size(across, ENDS[strip] * scale)
    )
    exponent = size * size / (2 * variance) + 1 / (8 * (scale * scale - variance))
    digits = 40
    while True:
        low, high = upward.ends()
        if tail:
            least, most = beyond.ends()
            low, high = low * HEIGHTS[1] * least, high * HEIGHTS[1] * most
        else:
            span = HEIGHTS[strip + 1] - HEIGHTS[strip]
            low, high = HEIGHTS[strip] + low * span, HEIGHTS[strip] + high * span
        below, above = exponential_bounds(exponent, digits)
        if high <= below:
            return -size if negative else size
        if low >= above:
            return None
        upward.lengthen()
        if tail:
            beyond.lengthen()
        digits += 20


def _in_tail(across: _Uniform) -> bool:
    """Return whether a point of the lowest strip lies beyond the border."""
    while True:
        low, high = across.ends()
        if high * ENDS[0] <= BORDER:
            return False
        if low * ENDS[0] >= BORDER:
            return True
        across.lengthen()


def _strip_size(across: _Uniform, reach: Fraction) -> int:
    """Return floor(reach u + 1/2)."""
    while True:
        low, high = (end * reach + Fraction(1, 2) for end in across.ends())
        size = math.floor(low)
        if high <= size + 1:
            return size
        across.lengthen()


def _tail_size(beyond: _Uniform, scale: Fraction) -> int:
    """Return floor(s (R - ln u / RATE) + 1/2)."""
    digits = 40
    while True:
        low, high = beyond.ends()
        if low > 0:
            context = own_context(digits)
            slack = Fraction(1, 10 ** (digits - 6))
            places = [
                Fraction(BORDER) - Fraction(context.ln(decimal_of(end, context))) / RATE
                for end in (high, low)
            ]
            least = math.floor((places[0] - slack) * scale + Fraction(1, 2))
            most = math.floor((places[1] + slack) * scale + Fraction(1, 2))
            if least == most:
                return least
        beyond.lengthen()
        digits += 20
