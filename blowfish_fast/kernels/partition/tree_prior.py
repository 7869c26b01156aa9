"""Prior weights of a dyadic tree, in fixed point: of its buckets, cuts and runs.

What a node of 2**h cells may become, and with which prior weight, depends on h alone,
never on counts: one bucket, two halves, equal windows of 2**k cells, or a run of nearly
empty cells, the few others of which stand alone. A spike between zeros takes a split at
every height to isolate, and each costs a little of the prior and a bucket. In a run
each cell is one of the rest, at the price of its records, or an outlier with a bucket
of its own, whatever its neighbours are:

    . . . . 9 . . . . . . 7 . .      one run, two outliers
    [     ][ ][         ][ ][  ]     five buckets
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import NamedTuple, TypeAlias

import numpy as np

from blowfish_fast._support.typing import IntArray

from .rectangle_prior import FixedPoint, Number, cut_to_one, fixed_point, logarithm

Base: TypeAlias = tuple[float, float, float]

BASE: Base = (0.49, 0.49, 0.02)
"""Prior weight of one bucket, of a split, and of all equal cuts together."""

_HOPELESS = 64
"""A choice whose log-weight lies this many nats below another is never drawn: its
probability is below e^-64, about 10^-28."""


class Outliers(NamedTuple):
    """Which part of a run's cells may stand alone; public.

    Attributes
    ----------
    shares : tuple[Fraction, ...], optional
        Runs with each of these shares of outliers are offered.
    weight : float, default 0.02
        Prior weight of a run of each share, in addition to those of other choices.
    height : int, default 4
        Runs are nodes of 2**height cells and more; at least 2.
    """

    shares: tuple[Fraction, ...] = (
        Fraction(1, 16),
        Fraction(1, 128),
        Fraction(1, 1024),
    )
    weight: float = 0.02
    height: int = 4


OUTLIERS = Outliers()
"""Weighed as all equal cuts together; shares chosen on generated histograms."""


class OutlierWeights(NamedTuple):
    """What a cell weighs in runs, in the units of `TreeWeights`.

    Attributes
    ----------
    height : int
        Runs are nodes of 2**height cells and more.
    prior : int
        Log prior weight of a run.
    in_run : tuple[int, ...]
        Log-weight of a cell that is one of the rest, by share.
    alone : tuple[int, ...]
        Log-weight of a cell that stands alone, by share.
    record : int
        What each record of a cell of the rest takes from its log-weight.
    most : int
        With this many records a cell all but surely stands alone; more count as this
        many.
    """

    height: int
    prior: int
    in_run: tuple[int, ...]
    alone: tuple[int, ...]
    record: int
    most: int


def deepest_sum(levels: int, outliers: Outliers) -> int:
    """Return how many nats the cells of a run add up to at most, prices apart.

    Parameters
    ----------
    levels : int
        Binary logarithm of the number of cells, rounded up.
    outliers : Outliers
        The shares that are offered.

    Returns
    -------
    int
        A bound on the absolute value.
    """
    return (1 << levels) * (ceil(-logarithm(min(outliers.shares))) + 1)


def outlier_weights(
    outliers: Outliers, fixed: FixedPoint, quantile: tuple[int, int]
) -> OutlierWeights:
    """Return the fixed-point constants of runs; a record's part is rounded down.

    Parameters
    ----------
    outliers : Outliers
        The shares that are offered.
    fixed : FixedPoint
        The unit of log-weights, and the price of a bucket.
    quantile : tuple[int, int]
        Numerator and denominator of the pinball cost's quantile.

    Returns
    -------
    OutlierWeights
        The constants.
    """
    bits, unit, penalty = fixed
    scale = 1 << bits
    record = int(unit / quantile[1]) * quantile[0]
    # Relative to single cells: a cell of the rest saves a bucket, and an outlier cuts
    # its run in two, which takes one more.
    in_run = [
        penalty + round(logarithm(1 - share) * scale) for share in outliers.shares
    ]
    alone = [round(logarithm(share) * scale) - penalty for share in outliers.shares]
    farthest = in_run[-1] - min(alone) + _HOPELESS * scale
    return OutlierWeights(
        outliers.height,
        round(logarithm(Fraction(outliers.weight)) * scale) - penalty,
        tuple(in_run),
        tuple(alone),
        record,
        farthest // record + 1 if record else 0,
    )


class TreeWeights(NamedTuple):
    """The public numbers of the tree, in units of ``2**-fraction_bits`` nats.

    Attributes
    ----------
    fraction_bits : int
        Binary digits behind the point.
    coefficients : tuple[int, ...]
        By level, what a unit of integer cost takes from a bucket's log-weight.
    penalty : int
        What a bucket costs.
    floor : int
        What log-weights of a bucket or an equal cut do not fall below; negative.
    bases : tuple[ndarray of int64, ...]
        By height, the log prior weight of one bucket, a split, windows of 1, 2, 4 ...,
        runs.
    outliers : OutlierWeights, optional
        What cells weigh in runs; None if no runs are offered.
    """

    fraction_bits: int
    coefficients: tuple[int, ...]
    penalty: int
    floor: int
    bases: tuple[IntArray, ...]
    outliers: OutlierWeights | None = None


@lru_cache(maxsize=64)
def fixed_point_tree(
    length_weights: tuple[Number, ...],
    rate: Number,
    penalty: Number,
    quantile: tuple[int, int],
    base: Base,
    runs: Outliers | None,
) -> TreeWeights:
    """Return the constants: public, and the same for every release of a mechanism.

    Parameters
    ----------
    length_weights : tuple of numbers
        Public factor on the cost of buckets of 1, 2, 4 ... cells.
    rate : int, float or Fraction
        Log-weight lost per unit of pinball cost; rounded down.
    penalty : int, float or Fraction
        Public cost of a bucket.
    quantile : tuple[int, int]
        Numerator and denominator of the pinball cost's quantile.
    base : tuple of three floats
        Prior weights of one bucket, a split, and all equal cuts.
    runs : Outliers or None
        Which runs are offered; None for none.

    Returns
    -------
    TreeWeights
        The constants.

    Raises
    ------
    InputError
        If a rate, penalty or weight is out of range.
    """
    levels = len(length_weights) - 1
    weights = [cut_to_one(weight) for weight in length_weights]
    floor = _floor(levels, base) if min(base) > 0 else 0
    # Two halves at the floor are added up before the sum is cut there again. Twice as
    # much is set aside, so that prior weights have room beside them.
    room = 4 * floor + (0 if runs is None else deepest_sum(levels, runs))
    fixed = fixed_point(rate, penalty, base, levels, room)
    bits = fixed.fraction_bits
    bases, alone = _base_logarithms(levels, base, bits), None
    if runs is not None:
        alone = outlier_weights(runs, fixed, quantile)
        more = np.full(len(alone.in_run), alone.prior)
        bases = (
            *bases[: alone.height],
            *(
                np.concatenate([base_of_height, more])
                for base_of_height in bases[alone.height :]
            ),
        )
    return TreeWeights(
        bits,
        tuple(int(fixed.unit * weight / quantile[1]) for weight in weights),
        fixed.penalty,
        -(floor << bits),
        bases,
        alone,
    )


@lru_cache(maxsize=64)
def _floor(levels: int, base: Base) -> int:
    """Return how many nats below single cells a candidate is beyond hope.

    Isolating one bad window takes at most `levels` splits and a choice at each sibling;
    `_HOPELESS` nats below the price of that nothing is ever drawn.
    """
    bucket, split, cuts = (-logarithm(share) for share in _shares(base))
    cut = cuts + levels * logarithm(Fraction(2))
    return _HOPELESS + ceil(levels * (split + max(cut, bucket)) + cut)


def _shares(base: Base) -> list[Fraction]:
    """Return the base weights, made to sum to 1."""
    whole = sum(Fraction(weight) for weight in base)
    return [Fraction(weight) / whole for weight in base]


@lru_cache(maxsize=64)
def _base_logarithms(levels: int, base: Base, bits: int) -> tuple[IntArray, ...]:
    """Return the logarithms of the base measure, an array per height."""
    bucket, split, cuts = _shares(base)
    table = [np.empty(0, dtype=np.int64)]
    for height in range(1, levels + 1):
        if height == 1:  # a split and a cut into cells are the same here
            shares = [bucket, split + cuts]
        else:
            first = cuts * (1 << (height - 1)) / ((1 << height) - 1)
            shares = [bucket, split, *(first / (1 << k) for k in range(height))]
        logarithms = [round(logarithm(share) * (1 << bits)) for share in shares]
        table.append(np.array(logarithms, dtype=np.int64))
    return tuple(table)
