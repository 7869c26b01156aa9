"""Differences of two groups, or of two waves, in the population, with p-values.

A share or a mean r of a group is a quotient of two linear answers. Near the estimates
its error is that of one linear row, "value - r" over the size of the group; so is the
difference of two, in one release with all that the groups have in common:

    cell            F young  F old    M young  M old      sizes 100 and 80
    value of F       0        1        0        0         share of F that is old: .3
    row of F        -.3/100   .7/100   0        0
    row of M         0        0       -.2/80    .8/80     share of M that is old: .2
    difference      -.3/100   .7/100  +.2/80   -.8/80

Its noise has a known law, and the sampling joins it as a normal variable: Lemma PN10.
Where records lie inside their cells is not known, so a difference of means has two
ends of its own, each with its error:

    age             20-30   30-40               F counts with    M counts with
    least           all at their lower ends     20, 30           30, 40
    estimate        all in the middle           25, 35           25, 35
    largest         all at their upper ends     30, 40           20, 30
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_confidence, as_number
from blowfish_fast.errors import InputError, IntervalError
from blowfish_fast.measure.noise import Spread
from blowfish_fast.measure.tails import noise_half_widths, rough_half_widths
from blowfish_fast.measure.total_error import many_steps_half_widths, variance_of_few
from blowfish_fast.release.query_grid import Grid, SparseRows, ValueRows, without_zeros

from .designs import Bernoulli, Simple, Stratified
from .drawn_sums import sums_of
from .grids import GridMeans
from .numbers import refuse_superpopulation
from .p_values import LARGEST_P, LEAST_P
from .ratios import Ratio
from .sampled_release import (
    SIDE_SHARE,
    Sampled,
    VarianceParts,
    as_sparse,
    steps_of,
    whole_rows_of,
)
from .strata import Strata, strata_of

Compared = Literal["share", "mean", "count"]
"""What is compared: shares of everybody, means of an attribute, numbers of people."""

PRECISION = 1.005
"""P-values are rounded up by at most this factor."""
SIDES = UP, DOWN = 0, 1
"""Whether what is true lies above the estimate, or below it."""
LEAST = 0.5
"""Where a group has fewer records, with their noise, nothing is known of it."""


class Side(NamedTuple):
    """One group: its release, its number, and the row that its error is.

    Attributes
    ----------
    source : Sampled
        A release with a design.
    number : float
        The estimate.
    row : scipy sparse array, shape (1, cells)
        What a record of each cell adds to its error.
    empty : bool, default False
        Whether it is divided by less than one record, so that nothing is known of it.
    """

    source: Sampled
    number: float
    row: Any
    empty: bool = False


class Law(NamedTuple):
    """The error of a row: variance of sampling, what it is unsure by, and noise.

    Attributes
    ----------
    sampling : float
        The variance that the draw of the sample makes, as far as it is known.
    unsure : Spread
        The noise in that variance.
    noise : Spread
        The noise in the answer itself.
    step : float
        How far one record moves the answer, at most.
    hidden : tuple of two floats
        The same as the variance counts it, of records that the sample may lack:
        upwards and downwards, Lemma PN20.
    """

    sampling: float
    unsure: Spread
    noise: Spread
    step: float
    hidden: tuple[float, float]


class End(NamedTuple):
    """The difference if all records lay at one end of their cells, with its error.

    Attributes
    ----------
    number : float
        The estimate of it.
    laws : list of Law
        What is known of its error, one for each release.
    """

    number: float
    laws: list[Law]


class Difference(float):
    """A difference in the population, usable as a number, with interval and p-value.

    It is made by ``selection.difference(other, ...)``.

    Parameters
    ----------
    number : float
        The estimate.
    laws : list of Law
        What is known of its error, one for each release.
    inside : tuple of two End, optional
        The least and the largest difference that places inside cells leave open.
        Without them the difference is known but for its error.
    """

    _laws: list[Law]
    _ends: tuple[End, ...]

    def __new__(
        cls, number: float, laws: list[Law], inside: tuple[End, End] | None = None
    ) -> Difference:
        """Keep the law of the error beside the number."""
        estimate = super().__new__(cls, number)
        estimate._laws = laws
        estimate._ends = inside or (End(number, laws),)
        return estimate

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return an interval over the draw of both samples and the noise.

        Parameters
        ----------
        confidence : float, default 0.95
            About how surely it holds: the sampling is taken as normal.

        Returns
        -------
        low : float
            The lower end.
        high : float
            The upper end.
        """
        return self._interval(1.0 - as_confidence(confidence), fine=True)

    def p_value(self, against: float | str | Fraction = 0.0) -> float:
        """Return the p-value of "there is no difference", of these two, asked once.

        It is the largest miss at which the interval still holds 0, rounded up by less
        than one in two hundred, and at least 1e-9. Noise is counted, and records that
        the sample may lack (Lemma PN20). Of few records it may still be too small,
        since the sampling is taken as normal; of none it is 1. Who looks at several
        pairs multiplies it by their number.

        Parameters
        ----------
        against : float, str or Fraction, default 0
            Another difference that was stated before, such as a promised rise.

        Returns
        -------
        float
            The p-value of "the difference is this number".

        Raises
        ------
        EpsilonError
            If it is no finite number.
        """
        stated = as_number(against, "against", least=-math.inf)
        if self._holds(stated, LARGEST_P):
            return 1.0
        if not self._holds(stated, LEAST_P):
            return LEAST_P
        # Logarithms are halved: a tail changes by factors.
        above, below = LARGEST_P, LEAST_P
        while above > PRECISION * below:
            middle = math.sqrt(above * below)
            if self._holds(stated, middle):
                below = middle
            else:
                above = middle
        return above

    def variance_parts(self) -> VarianceParts:
        """Return how much of the error is sampling and how much is noise."""
        return VarianceParts(
            sum(law.sampling for law in self._laws),
            sum(float(law.noise.variance[0]) for law in self._laws),
        )

    def _holds(self, stated: float, miss: float) -> bool:
        low, high = self._interval(miss, fine=False)
        return low <= stated <= high

    def _interval(self, miss: float, *, fine: bool) -> tuple[float, float]:
        # Half of the miss is spent on each side, whether both sides have the same
        # laws or each has its own.
        least, largest = self._ends[0], self._ends[-1]
        down = self._half_width(least.laws, miss, DOWN, fine=fine)
        up = self._half_width(largest.laws, miss, UP, fine=fine)
        return least.number - down, largest.number + up

    def _half_width(
        self, laws: list[Law], miss: float, side: int, *, fine: bool
    ) -> float:
        half_widths = noise_half_widths if fine else rough_half_widths
        taken = SIDE_SHARE * miss
        above = 0.0
        for law in laws:
            # Each end reads its variances for itself, and has its part of this miss.
            share = taken / len(laws) / len(self._ends)
            unsure = half_widths(law.unsure, 2.0 * share)
            above += max(law.sampling + float(unsure[0]), 0.0)
        if math.isinf(above):
            return math.inf
        noise = _added([law.noise for law in laws])
        step, hidden, seen = (
            np.array([each])
            for each in (
                max(law.step for law in laws),
                max(law.hidden[side] for law in laws),
                sum(law.sampling for law in laws),
            )
        )
        drawn = variance_of_few(np.array([above]), seen, hidden, miss - taken)
        ends = (
            half_widths(noise.plus(drawn), miss - taken),
            many_steps_half_widths(noise, drawn, miss - taken, step),
        )
        return min(float(half[0]) for half in ends)

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (float(self),)

    def __repr__(self) -> str:
        return f"Difference({float(self):.12g})"

    __str__ = float.__repr__


def population_difference(
    grids: tuple[Grid, Grid],
    compared: Compared,
    axis: int | None,
    values: tuple[ValueRows, ValueRows] | None,
) -> Difference:
    """Return the difference of the first group minus the second: Lemma PN10.

    Parameters
    ----------
    grids : tuple of two Grid
        The groups, of one release or of two about different people.
    compared : {"share", "mean", "count"}
        What is compared.
    axis : int or None
        The attribute of a mean.
    values : tuple of two ValueRows, or None
        What records count with.

    Returns
    -------
    Difference
        The estimate, with interval and p-value.

    Raises
    ------
    InputError
        If noises are of two kinds.
    """
    if compared != "mean" or axis is None or values is None:
        return Difference(*_compared([_side(grid, compared) for grid in grids]))
    means = [
        GridMeans(grid, axis, rows) for grid, rows in zip(grids, values, strict=True)
    ]
    middle = _compared([_mean_side(mean, mean.middle()) for mean in means])
    if all(rows.widest == 0.0 for rows in values):
        return Difference(*middle)
    least, largest = (
        [_mean_side(mean, ratio) for ratio in mean.ends()] for mean in means
    )
    # The first mean at its least less the second at its largest, and the other way.
    inside = (
        _compared([least[0], largest[1]]),
        _compared([least[1], largest[0]]),
    )
    return Difference(*middle, inside)


def _compared(sides: list[Side]) -> End:
    """Return the first side minus the second with the law of its error."""
    first, second = sides
    return End(first.number - second.number, difference_of(sides))


def difference_of(sides: list[Side]) -> list[Law]:
    """Return the law of the first side minus the second, or of a single one: PN10.

    Parameters
    ----------
    sides : list of Side
        One, two of one release, or two of releases about different people.

    Returns
    -------
    list of Law
        One for each release.

    Raises
    ------
    InputError
        If noises are of two kinds.
    """
    first, last = sides[0], sides[-1]
    if len(sides) == 1:
        return [_law(first.source, first.row)]
    if first.empty or last.empty:
        return [_law(first.source, first.row)._replace(sampling=math.inf)]
    if first.source.release is last.source.release:
        return [_law(first.source, as_sparse(first.row - last.row))]
    laws = [_law(side.source, side.row) for side in sides]
    if len({law.noise.gaussian_rows > 0 for law in laws}) > 1:
        raise InputError(
            "one release has Laplace noise and the other Gaussian noise; their sum has "
            "no known law here",
            way_out="Release both in one currency",
        )
    return laws


def _side(grid: Grid, compared: Compared) -> Side:
    """Return the number of a group, or its share of everybody, with its row."""
    source, inside = Sampled(grid.release, 0.95), whole_rows_of(grid)
    people = 1.0
    if compared == "count":
        refuse_superpopulation(source.design)
        if not isinstance(source.design, Simple):
            return _number(source, inside)
        people = float(source.design.population or 0)
    everybody = as_sparse(np.ones((1, grid.domain.size)))
    return _quotient(Ratio(source, inside, everybody, (0.0, 1.0)), people)


def _mean_side(mean: GridMeans, ratio: Ratio) -> Side:
    """Return the mean of a group, whose values are taken from their centre."""
    side = _quotient(ratio, 1.0)
    return side._replace(number=side.number + float(mean.values.centre[0]))


def _quotient(ratio: Ratio, people: float) -> Side:
    """Return so many times a quotient, and the row that its error is: Lemma PN10."""
    estimate, records = ratio.estimate, float(ratio.sizes[0])
    size = max(records, 1.0)
    rows = ratio.values - as_sparse(ratio.inside.multiply(estimate[:, None]))
    number = people * float(estimate[0])
    row = as_sparse(rows * (people / size))
    return Side(ratio.source, number, row, records < LEAST)


def _number(source: Sampled, inside: Any) -> Side:
    """Return a number of people where no number of records is divided by.

    Where everybody was drawn with a chance that is known, a record stands for so many
    people; of events it stands for itself.
    """
    design, weights = source.design, source.weights[0]
    rate = float(design.rate) if isinstance(design, Bernoulli) else 1.0
    if isinstance(design, Stratified):
        weights = strata_of(source).weights
    row = as_sparse(inside / rate)
    weighted = without_zeros(row.multiply(weights[None, :]))
    total = source.answers(SparseRows(source.release.domain, weighted))
    return Side(source, float(total[0]), row)


def _law(source: Sampled, row: Any) -> Law:
    """Return the law of one row: of its noise, and of the sampling's variance."""
    domain, (weights, variances) = source.release.domain, source.weights
    values = row
    if isinstance(source.design, Stratified):
        strata = strata_of(source)
        weights, variances = strata.weights, strata.variances
        values = as_sparse(from_means(source, row.toarray(), strata))
    linear = SparseRows(domain, without_zeros(row.multiply(weights[None, :])))
    squares = values.multiply(values).multiply(variances[None, :])
    squared = SparseRows(domain, without_zeros(squares))
    drawn = float(source.answers(squared)[0])
    (step,) = steps_of(linear.matrix).tolist()
    sums = sums_of(source)
    up, down = (float(sums.farthest(row, np.array([side == UP]))[0]) for side in SIDES)
    noises = source.spread(squared), source.spread(linear)
    return Law(max(drawn, 0.0), *noises, step, (up, down))


def from_means(source: Sampled, row: FloatArray, strata: Strata) -> FloatArray:
    """Return values of records from the mean of their stratum in the sample.

    The variance of a stratum is the least mean square from any number, so that its
    estimate from a noisy mean is from above.

    Parameters
    ----------
    source : Sampled
        A release with a stratified design.
    row : ndarray of float64, shape (1, cells)
        The value of a record of each cell.
    strata : Strata
        Its strata.

    Returns
    -------
    ndarray of float64, shape (1, cells)
        The values less their mean.

    Raises
    ------
    IntervalError
        If nobody, or a single person, was drawn of a stratum that has values.
    """
    domain, many = source.release.domain, strata.people.size
    inside = strata.labels[None, :] == np.arange(many)[:, None]
    if (np.any(inside * row != 0.0, axis=1) & (strata.drawn == 0.0)).any():
        raise IntervalError(
            "nobody was drawn of a stratum, so nothing is known of it",
            way_out="Compare the other strata",
        )
    if (np.any(inside * row != 0.0, axis=1) & strata.unknown).any():
        raise IntervalError(
            "a single record was drawn of a stratum, which says nothing of how far it "
            "varies",
            way_out="Compare the other strata",
        )
    sums = source.answers(SparseRows(domain, as_sparse(inside * row)))
    means = sums / np.maximum(strata.drawn, 1.0)
    centred: FloatArray = row - means[strata.labels][None, :]
    return centred


def _added(spreads: list[Spread]) -> Spread:
    """Return the law of a sum of independent noises: their moments add up."""
    if len(spreads) == 1:
        return spreads[0]
    first, second = spreads
    least: float = min(first.least, second.least)
    largest: FloatArray = np.maximum(first.largest, second.largest)
    return Spread(
        first.variance + second.variance,
        first.square + second.square,
        largest,
        first.steps + second.steps,
        np.where(first.largest >= second.largest, first.width, second.width),
        least,
        first.gaussian_rows + second.gaussian_rows,
    )
