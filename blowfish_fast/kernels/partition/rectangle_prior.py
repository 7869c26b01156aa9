"""Prior weights of dyadic rectangles and their splits, in fixed point.

A node of the lattice is a rectangle of 2**i rows and 2**j columns; what it may become,
and with which prior weight, depends on (i, j) alone:

    one bucket   halves, one below     halves, side     quarters    equal windows of
                 the other             by side                      2**(i-r) x 2**(j-r)
    +-----+      +-----+               +--+--+          +--+--+     +-+-+-+-+
    |     |      +-----+               |  |  |          +--+--+     +-+-+-+-+
    +-----+      +-----+               +--+--+          +--+--+     +-+-+-+-+

Log-weights are int64 multiples of 2**-f, relative to single cells, the partition that
is always there; f leaves room for every sum formed. Nothing here depends on counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import NamedTuple, TypeAlias

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels.sampling.exponential_choice import total_error

Number: TypeAlias = int | float | Fraction

LARGEST = 1 << 10  # nats for a unit of cost, or for a bucket; more would be no use
_MOST_BITS = 48
_DECIMAL = Context(prec=60)


class FixedPoint(NamedTuple):
    """The unit of log-weights, and two numbers in it.

    Attributes
    ----------
    fraction_bits : int
        Log-weights are multiples of ``2**-fraction_bits`` nats.
    unit : Fraction
        What a unit of cost takes from a log-weight.
    penalty : int
        What a bucket takes from a log-weight.
    """

    fraction_bits: int
    unit: Fraction
    penalty: int


def fixed_point(
    rate: Number, penalty: Number, base: Iterable[float], levels: int, room: int
) -> FixedPoint:
    """Return the constants for a rate, rounded down, and the price of a bucket.

    No sum over 2**levels buckets leaves 62 bits.

    Parameters
    ----------
    rate : int, float or Fraction
        Log-weight lost per unit of cost, in nats.
    penalty : int, float or Fraction
        Cost of a bucket.
    base : Iterable[float]
        Prior weights, all positive.
    levels : int
        Binary logarithm of the number of cells, rounded up.
    room : int
        How far a sum of log-weights may fall below 0, in nats: the lowest of one of
        them, times how many the caller adds up.

    Returns
    -------
    FixedPoint
        The constants.

    Raises
    ------
    InputError
        If a rate or penalty is negative, or a base weight is not positive.
    """
    if min(rate, penalty) < 0 or min(base) <= 0:
        raise InputError(
            "rate and penalty may not be negative and base weights must be positive, "
            f"but they are {rate}, {penalty} and {base}"
        )
    cost = Fraction(penalty)
    speed = min(Fraction(rate), Fraction(LARGEST) / max(cost, Fraction(1)))
    bound = ceil((speed * cost * (1 << levels)) + speed) + room
    bits = min(_MOST_BITS, 62 - bound.bit_length())
    scaled = speed * (1 << bits)
    return FixedPoint(bits, scaled, round(scaled * cost))


@lru_cache(maxsize=256)
def logarithm(value: Fraction) -> Fraction:
    """Return a natural logarithm to 60 digits."""
    quotient = _DECIMAL.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Fraction(_DECIMAL.ln(quotient))


def cut_to_one(weight: Number) -> Fraction:
    """Return a public factor on costs, cut to [0, 1]."""
    return max(min(Fraction(weight), Fraction(1)), Fraction(0))


Shape: TypeAlias = tuple[int, int]

BUCKET, ROWS, COLUMNS, QUARTERS, WINDOWS = range(5)
"""Kinds of choices; a kind of WINDOWS + r means windows r halvings down."""


class Base(NamedTuple):
    """Prior weight of each kind of choice; divided by the sum of those offered.

    Attributes
    ----------
    bucket : float, default 0.5
        Of one bucket.
    halves : float, default 0.43
        Of halves along either axis, together.
    quarters : float, default 0.04
        Of quarters.
    windows : float, default 0.03
        Of all equal windows together.
    """

    bucket: float = 0.5
    halves: float = 0.43
    quarters: float = 0.04
    windows: float = 0.03


BASE = Base()
"""The default prior; no cells, epsilon or data enter it."""


class Choices(NamedTuple):
    """What a node may become: one column per choice.

    Attributes
    ----------
    kinds : tuple[int, ...]
        The kind of each choice: `BUCKET`, `ROWS`, `COLUMNS`, `QUARTERS`, or `WINDOWS` +
        r.
    logarithms : ndarray of int64, shape (choices,)
        Logarithm of the prior weight of each, in fixed point.
    """

    kinds: tuple[int, ...]
    logarithms: IntArray
    """Log prior weights, in units of ``2**-fraction_bits``."""


class RectangleWeights(NamedTuple):
    """The public numbers of the lattice, in units of ``2**-fraction_bits`` nats.

    Attributes
    ----------
    fraction_bits : int
        Binary digits behind the point.
    coefficients : list[list[int]]
        Item [i][j]: what a unit of integer cost takes from the log-weight of a bucket
        of 2**i by 2**j cells.
    penalty : int
        What a bucket costs.
    floor : int
        What log-weights do not fall below; negative.
    choices : dict[tuple[int, int], Choices]
        What a node of levels (i, j) may become.
    """

    fraction_bits: int
    coefficients: list[list[int]]
    penalty: int
    floor: int
    choices: dict[tuple[int, int], Choices]


def lattice_levels(shape: Shape) -> tuple[int, int]:
    """Return how often rows and columns double until one node covers the grid."""
    rows, columns = shape
    return (rows - 1).bit_length(), (columns - 1).bit_length()


@lru_cache(maxsize=64)
def fixed_point_weights(
    shape: Shape,
    *,
    rate: Number,
    penalty: Number,
    quantile: tuple[int, int] = (3, 4),
    base: Base = BASE,
    level_weights: tuple[tuple[float, ...], ...] | None = None,
) -> RectangleWeights:
    """Return the fixed-point constants for a grid; the rate is rounded down, never up.

    Parameters
    ----------
    shape : Shape
        Rows and columns of the grid.
    rate : int, float or Fraction
        Log-weight lost per unit of pinball cost.
    penalty : int, float or Fraction
        Public cost of a bucket, in the unit of counts.
    quantile : tuple[int, int], default (3, 4)
        Numerator and denominator of the pinball cost's quantile.
    base : Base, default BASE
        Prior weights of the choices.
    level_weights : tuple of tuples of floats, optional
        Public factor on the cost of buckets of 2**i by 2**j cells; cut to [0, 1].

    Returns
    -------
    RectangleWeights
        The constants.

    Raises
    ------
    InputError
        If the level weights do not fit the shape.
    """
    tall, wide = lattice_levels(shape)
    factors = [[Fraction(1)] * (wide + 1) for _ in range(tall + 1)]
    if level_weights is not None:
        factors = [[cut_to_one(factor) for factor in row] for row in level_weights]
        if len(factors) != tall + 1 or {len(row) for row in factors} != {wide + 1}:
            raise InputError(
                f"level weights: {tall + 1} lists of {wide + 1} numbers for a grid of "
                f"shape {shape}"
            )
    floor = _floor(tall, wide, base) if min(base) > 0 else 0
    # Four quarters at the floor are added up before the sum is cut there again. Twice
    # as much is set aside, so that prior weights have room beside them.
    room = 8 * floor
    bits, unit, price = fixed_point(rate, penalty, base, tall + wide, room)
    return RectangleWeights(
        bits,
        [[int(unit * factor / quantile[1]) for factor in row] for row in factors],
        price,
        -(floor << bits),
        _choices(tall, wide, base, bits),
    )


def rectangle_slack(
    shape: Shape, *, rate: Number | None = None, penalty: Number | None = None
) -> Fraction:
    """Return what the rounding of totals can add to the privacy loss.

    The output of `sample_rectangles` on two histograms that differ by one record has
    log-likelihood ratio at most ``rate * range + rectangle_slack(...)``, the range
    being 1 if a record is added or removed and 2 if it moves.

    Parameters
    ----------
    shape : Shape
        Rows and columns of the grid.
    rate : int, float or Fraction, optional
        Upper bound of the rate.
    penalty : int, float or Fraction, optional
        Upper bound of the penalty; both make the slack smaller, one alone does not.

    Returns
    -------
    Fraction
        ``8 * levels * total_error``, the levels of both axes added up; 4e-8 for 1024 x
        1024 cells.
    """
    tall, wide = lattice_levels(shape)
    if rate is None or penalty is None:
        rate, penalty = LARGEST, 1  # no other pair leaves fewer fraction bits
    weights = fixed_point_weights(shape, rate=rate, penalty=penalty)
    return 8 * (tall + wide) * total_error(max(tall, wide) + 4, weights.fraction_bits)


@lru_cache(maxsize=64)
def _floor(tall: int, wide: int, base: Base) -> int:
    """Return how many nats below single cells a candidate is beyond hope.

    To isolate one bad window the sampler divides at most max(tall, wide) times and
    chooses once more at each sibling; 64 nats below the price of that nothing is ever
    drawn.
    """
    steps = max(tall, wide)
    bucket, halves, quarters, windows = (Fraction(weight) for weight in base)
    rarest = min(bucket, halves / 2, quarters, windows / (1 << steps))
    dearest = -logarithm(rarest / sum(map(Fraction, base)))
    return 64 + ceil((4 * steps + 1) * dearest)


def _shares(tall: int, wide: int, base: Base) -> dict[int, Fraction]:
    """Return the prior weight of each choice of a node, summing to 1.

    Windows r halvings down share in proportion to 2**r: the finest are the heaviest.
    Choices that mean the same are one choice: halves of a pair and its cells, quarters
    of 2 x 2 cells and its cells.
    """
    shares = {BUCKET: Fraction(base.bucket)}
    halves, quarters, windows = (Fraction(weight) for weight in base[1:])
    steps = max(tall, wide)
    if tall and wide:
        shares[ROWS] = shares[COLUMNS] = halves / 2
        shares[QUARTERS] = quarters
    elif steps:
        shares[ROWS if tall else COLUMNS] = halves + quarters
    if steps == 1:
        last = max(shares)
        shares[last] += windows
    else:
        whole = (1 << steps) - 1
        for halvings in range(1, steps + 1):
            shares[WINDOWS + halvings] = windows * (1 << (halvings - 1)) / whole
    total = sum(shares.values())
    return {kind: share / total for kind, share in shares.items()}


@lru_cache(maxsize=16)
def _choices(
    tall: int, wide: int, base: Base, bits: int
) -> dict[tuple[int, int], Choices]:
    """Return the choices of every kind of node with more than one cell."""
    choices = {}
    for row in range(tall + 1):
        for column in range(wide + 1):
            if row + column == 0:
                continue
            shares = _shares(row, column, base)
            logarithms = np.array(
                [round(logarithm(share) * (1 << bits)) for share in shares.values()],
                dtype=np.int64,
            )
            logarithms.flags.writeable = False
            choices[row, column] = Choices(tuple(shares), logarithms)
    return choices
