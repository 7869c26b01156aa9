"""Bounds of exp(-x) in fractions, as tight as one asks: what exact draws resolve with.

    x = 1, 5 digits       the decimal 0.36788, one unit of whose last place is 0.00001
    below and above       0.36787 < exp(-1) < 0.36789, widened by 2 units each

Nothing here is compiled, so whoever needs a bound does not load the compiler.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction


def own_context(digits: int, rounding: str = ROUND_FLOOR) -> Context:
    """Return a decimal context of our own: operators would read the caller's.

    Parameters
    ----------
    digits : int
        Precision.
    rounding : str, default ROUND_FLOOR
        One of the rounding modes of `decimal`.

    Returns
    -------
    Context
        The context.
    """
    return Context(digits, rounding, MIN_EMIN, MAX_EMAX, traps=[])


def decimal_of(value: Fraction, context: Context) -> Decimal:
    """Return a fraction as a decimal, rounded as the context says.

    Parameters
    ----------
    value : Fraction
        The fraction.
    context : Context
        Precision and rounding.

    Returns
    -------
    Decimal
        The decimal.
    """
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def exponential_bounds(exponent: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Return numbers below and above ``exp(-exponent)``, about `digits` digits apart.

    Far out 0 and ``10^-(2 digits)`` are near enough, and fractions stay short.

    Parameters
    ----------
    exponent : Fraction
        Not negative.
    digits : int
        How many digits are wanted.

    Returns
    -------
    below : Fraction
        A number that is not above.
    above : Fraction
        A number that is not below.
    """
    if exponent > 5 * digits:
        return Fraction(0), Fraction(1, 10 ** (2 * digits))
    ends = []
    for rounding, sign in ((ROUND_CEILING, -1), (ROUND_FLOOR, 1)):
        context = own_context(digits, rounding)
        power = context.exp(decimal_of(exponent, context).copy_negate())
        ends.append(Fraction(power) * (1 + sign * Fraction(2, 10 ** (digits - 1))))
    return ends[0], ends[1]
