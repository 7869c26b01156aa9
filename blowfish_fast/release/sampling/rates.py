"""Rates in the population: so many of one group for each of another, both private.

    unemployed / labour force       looking / (looking + employed)
    children / women                neither is a part of the other

The rate r is the number at which A - r B is 0 in the population. Where A has no law
beside B, all r are kept at which that sum may be 0 in the sample, each a linear query
with its own noise (Fieller's way). r may be anything from 0 to infinity, so a part u of
both is tried in its place, r = u / (1 - u):

    u               0     .1     .2     .3    ...    1
    r               0     .11    .25    .43   ...    infinity
    A - u (A + B)   60    41     22     3     ...   -130
    half-width      18    17     17     18    ...    24
    kept                                yes

Lemma PN13.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from blowfish_fast._support.validation import as_confidence, as_number
from blowfish_fast.errors import InputError
from blowfish_fast.release.query_grid import Grid, SparseRows

from .designs import Bernoulli, Stratified, Weighted
from .differences import LEAST, Difference, Side, difference_of
from .numbers import exact_counts
from .p_values import p_values_against
from .ratios import Ratio
from .sampled_release import (
    Method,
    Sampled,
    VarianceParts,
    as_sparse,
    check_method,
    sampled_sentence,
    whole_rows_of,
)
from .shares import population_shares


class PartOfBoth(Ratio):
    """All u at which A - u (A + B) may be 0 in the population: Lemmas PN6 and PN13.

    Parameters
    ----------
    source : Sampled
        A release with a design.
    above : scipy sparse array, shape (1, cells)
        1 in the cells of the group that is counted.
    below : scipy sparse array, shape (1, cells)
        1 in the cells of the group that it is divided by.
    """

    def __init__(self, source: Sampled, above: Any, below: Any) -> None:
        super().__init__(source, above, as_sparse(above + below), (0.0, 1.0))


class Rate(float):
    """A rate in the population, usable as a number, with its interval.

    It is made by ``selection.ratio(other)``.

    Parameters
    ----------
    number : float
        The estimate.
    above : Grid
        The group that is counted.
    below : Grid
        The group that it is divided by.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> work = bf.Domain.from_levels(["employed", "looking", "neither"], name="work")
    >>> laplace = bf.Laplace(bf.policies.AddRemove(work), epsilon=1)
    >>> drawn = laplace.release([900, 100, 500], rng=1).sampled(bf.sampling.Simple())
    >>> force = drawn.where(work=["employed", "looking"])
    >>> rate = drawn.where(work="looking").ratio(force)
    >>> low, high = rate.interval()
    >>> bool(0.07 < low < rate < high < 0.13)
    True
    """

    _above: Grid
    _below: Grid

    def __new__(cls, number: float, above: Grid, below: Grid) -> Rate:
        """Keep both groups beside the number."""
        rate = super().__new__(cls, number)
        rate._above, rate._below = above, below
        return rate

    @property
    def _release(self) -> Any:
        return self._above.release

    def interval(
        self, confidence: float = 0.95, *, method: Method | None = None
    ) -> tuple[float, float]:
        """Return an interval over the draw of the sample and the noise.

        Parameters
        ----------
        confidence : float, default 0.95
            How surely it holds.
        method : {"exact", "normal"}, optional
            Sampling by its own law, or as a normal variable; exact where there is such
            a law.

        Returns
        -------
        low : float
            The lower end.
        high : float
            The upper end; infinity where nobody may be in the group that is divided by.
        """
        check_method(method)
        confidence = as_confidence(confidence)
        if method is None:
            method = "exact" if self._has_law else "normal"
        if method == "exact":
            low, high = self._exact(confidence)
        else:
            ratio = self._ratio(confidence)
            low, high = (_rate_of(float(end)) for end in ratio.bounds()[0])
        return min(low, float(self)), max(high, float(self))

    def _exact(self, confidence: float) -> tuple[float, float]:
        """Return the interval by the laws of both numbers: Lemmas PN8 and PN13."""
        source = Sampled(self._release, confidence)
        if isinstance(source.design, Stratified | Weighted):
            low, high = (
                _rate_of(float(end)) for end in self._ratio(confidence).bounded()[0]
            )
            return low, high
        if self._is_part:
            low, high = population_shares(
                self._above, self._below, confidence, "exact"
            )[0]
            return float(low), float(high)
        half = 1.0 - source.miss / 2
        if isinstance(source.design, Bernoulli):
            above, below = (
                exact_counts(
                    source,
                    SparseRows(grid.domain, whole_rows_of(grid)),
                    source.miss / 2,
                )[0]
                for grid in (self._above, self._below)
            )
        else:
            everybody = Grid(
                self._release, [[((0.0, float(n)),)] for n in self._above.domain.shape]
            )
            above, below = (
                population_shares(grid, everybody, half, "exact")[0]
                for grid in (self._above, self._below)
            )
        return _quotient(above[0], below[1]), _quotient(above[1], below[0])

    @cached_property
    def _is_part(self) -> bool:
        """Whether all who are counted are among those that are divided by."""
        above, below = map(whole_rows_of, (self._above, self._below))
        return bool(above.multiply(below).nnz == above.nnz)

    @property
    def _has_law(self) -> bool:
        return not isinstance(self._release.design, Stratified | Weighted)

    def _ratio(self, confidence: float) -> PartOfBoth:
        rows = map(whole_rows_of, (self._above, self._below))
        return PartOfBoth(Sampled(self._release, confidence), *rows)

    def variance_parts(self) -> VarianceParts:
        """Return how much of the error is sampling and how much is noise."""
        return Difference(float(self), difference_of([self._side()])).variance_parts()

    def sentence(self, confidence: float = 0.95, method: Method | None = None) -> str:
        """Say what the interval holds, and on whose word.

        Parameters
        ----------
        confidence : float, default 0.95
            How surely it holds.
        method : {"exact", "normal"}, optional
            As for `interval`.

        Returns
        -------
        str
            The sentence.
        """
        exact = self._has_law if method is None else method == "exact"
        return sampled_sentence(self._release.design, exact, confidence)

    def p_value(
        self, against: float | str | Fraction, *, method: Method | None = None
    ) -> float:
        """Return the p-value of "the rate is this number", of this rate, asked once.

        It is the least miss whose interval leaves the number out, rounded up by less
        than one in a hundred: Lemma PN17. Sampling and noise are counted as in
        `interval`. Who looks at several rates multiplies it by their number.

        Parameters
        ----------
        against : float, str or Fraction
            A number that was stated before, such as a target; no estimate of its own.
        method : {"exact", "normal"}, optional
            As for `interval`.

        Returns
        -------
        float
            The p-value, at least 1e-9.

        Raises
        ------
        EpsilonError
            If it is no finite number.
        InputError
            If it is negative.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> answers = bf.Domain.from_levels(["yes", "no"], name="answer")
        >>> laplace = bf.Laplace(bf.policies.AddRemove(answers), epsilon=1)
        >>> drawn = laplace.release([300, 700], rng=1).sampled(bf.sampling.Simple())
        >>> share = drawn.where(answer="yes").ratio(drawn.where())
        >>> share.p_value(0.5) < 0.001, share.p_value(0.31) > 0.2
        (True, True)
        """
        number = as_number(against, "against", least=0.0)
        ends = partial(self.interval, method=method)
        return float(p_values_against(lambda sure: np.array([ends(sure)]), number)[0])

    def difference(self, other: Rate) -> Difference:
        """Compare with another rate, of this release or of one about different people.

        Parameters
        ----------
        other : Rate
            What is taken off.

        Returns
        -------
        Difference
            The estimate, with ``interval()`` and ``p_value()``: Lemma PN10.

        Raises
        ------
        InputError
            If it is no rate.
        """
        if not isinstance(other, Rate):
            raise InputError(
                "a rate is compared with another: selection.ratio(other)",
                received=type(other).__name__,
                way_out="Compare it with a number by rate.p_value(0.05)",
            )
        sides = [self._side(), other._side()]
        return Difference(float(self) - float(other), difference_of(sides))

    def _side(self) -> Side:
        """Return the rate with the row that its error is: Lemma PN10."""
        ratio = self._ratio(0.95)
        above, below = map(whole_rows_of, (self._above, self._below))
        records = float(ratio.sizes[0] - ratio.sums[0])
        row = as_sparse(above - below * float(self)) / max(records, 1.0)
        return Side(ratio.source, float(self), as_sparse(row), records < LEAST)

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (float(self),)

    def __repr__(self) -> str:
        return f"Rate({float(self):.12g})"

    __str__ = float.__repr__


def population_rate(above: Grid, below: Grid | None) -> Rate:
    """Return how many of a group there are for each of another: Lemma PN13.

    Parameters
    ----------
    above : Grid
        The group that is counted.
    below : Grid or None
        The group that it is divided by, of the same release; None is refused.

    Returns
    -------
    Rate
        The estimate, with its interval.

    Raises
    ------
    InputError
        If it is no selection of the same release.
    IntervalError
        If nobody said how the records were drawn, or answers are off by more than
        noise.
    """
    if below is None or below.release is not above.release or _groups_of(below) > 1:
        raise InputError(
            "a rate is one of two selections of one release: "
            "release.where(...).ratio(release.where(...))"
        )
    ratio = PartOfBoth(
        Sampled(above.release, 0.95), *map(whole_rows_of, (above, below))
    )
    over = max(float(ratio.sums[0]), 0.0)
    under = max(float(ratio.sizes[0] - ratio.sums[0]), 1.0)
    rate = Rate(over / under, above, below)
    # A part is at most the whole, whatever the noise.
    return Rate(min(over / under, 1.0), above, below) if rate._is_part else rate


def _groups_of(grid: Grid) -> int:
    return math.prod(map(len, grid.axes))


def _rate_of(part: float) -> float:
    """Return A / B where A is this part of both."""
    return part / (1.0 - part) if part < 1.0 else np.inf


def _quotient(above: float, below: float) -> float:
    return float(above / below) if below > 0.0 else np.inf
