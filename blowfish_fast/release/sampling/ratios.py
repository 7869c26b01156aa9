"""Shares and means in the population, with the sampling taken as normal.

A share or a mean is the number mu at which "value - mu" adds up to 0 in the
population. So all mu are kept whose noisy sum in the sample is near enough to 0:

    mu          30     32     34     36     38
    noisy sum   900    410   -80   -570   -1060
    half-width  300    290    285    290    300
    kept                      yes

Every mu that is tried is one linear query with a known law of its noise (Lemma PN6).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.measure.noise import Spread
from blowfish_fast.measure.tails import noise_half_widths
from blowfish_fast.measure.total_error import FEWEST_STEPS, sampling_half_widths
from blowfish_fast.release.query_grid import (
    SparseRows,
    without_zeros,
)

from .drawn_sums import sums_of
from .sampled_release import (
    SIDE_SHARE,
    Method,
    Sampled,
    as_sparse,
    steps_of,
)

LOOKED_AT = 4
"""Places between the estimate and its limit that are tried before an end is sought."""


STEPS = 9
"""Steps towards the end of a share or a mean."""


class Ratio:
    """All numbers mu at which sum of "value - mu" may be 0 in the population: PN6.

    Parameters
    ----------
    source : Sampled
        A release with a design.
    over : scipy sparse array, shape (groups, cells)
        The value of a record of each cell, 0 outside of the group.
    under : scipy sparse array, shape (groups, cells)
        1 in the cells of the group.
    limits : tuple
        The least and the largest mu of each group, or of all.
    """

    def __init__(self, source: Sampled, over: Any, under: Any, limits: Any) -> None:
        self.source, self.cells = source, source.release.domain
        self.drawn = sums_of(source)
        weights = self.drawn.weights
        self.values, self.inside = over, under
        self.over = as_sparse(over.multiply(weights[None, :]))
        self.under = as_sparse(under.multiply(weights[None, :]))
        groups = over.shape[0]
        self.limits = [np.broadcast_to(end, groups).astype(float) for end in limits]
        # Rows that are tried are sums of these, so what is granted to all of these
        # is granted to them too: a bias is linear in its row.
        for rows in map(as_sparse, self._demanded()):
            source.demand_noise_alone(SparseRows(self.cells, rows))
        self.sums = source.answers(SparseRows(self.cells, self.over))
        self.sizes = source.answers(SparseRows(self.cells, self.under))

    def _demanded(self) -> list[Any]:
        """Return the rows of which all that are tried are sums."""
        products = [self.values.multiply(rows) for rows in (self.values, self.inside)]
        return [self.over, self.under, *products]

    @cached_property
    def estimate(self) -> FloatArray:
        """The mu at which the noisy sum is 0."""
        positive = self.sizes > 0.0
        quotient = self.sums / np.where(positive, self.sizes, 1.0)
        middle = 0.5 * (self.limits[0] + self.limits[1])
        return np.clip(np.where(positive, quotient, middle), *self.limits)

    def law(self, tried: FloatArray) -> Spread:
        """Return the law of the noise in the sums of "value - mu"."""
        rows = self.over - as_sparse(self.under.multiply(tried[:, None]))
        asked = SparseRows(self.cells, without_zeros(rows))
        law: Spread = self.source.release._spread(asked)
        return law

    def squares(self, tried: FloatArray, miss: float) -> FloatArray:
        """Return the variance of the sampling, from above but for half of `miss`.

        Parameters
        ----------
        tried : ndarray of float64, shape (groups,)
            The mu that is tried in each group.
        miss : float
            0 for the estimate itself.

        Returns
        -------
        ndarray of float64, shape (groups,)
            The variances.
        """
        return self.drawn.variance(self._residuals(tried), miss)

    def squares_of_all(
        self, tried: FloatArray, taken: float, miss: float
    ) -> FloatArray:
        """Return the same, and no less than records that were not drawn hide: PN20.

        Parameters
        ----------
        tried : ndarray of float64, shape (groups,)
            The mu that is tried in each group.
        taken : float
            What the variance that is seen misses with, as in `squares`.
        miss : float
            The miss of the interval in which it is used.

        Returns
        -------
        ndarray of float64, shape (groups,)
            The variances.
        """
        below = self.sums < tried * self.sizes
        return self.drawn.variance_of_all(self._residuals(tried), below, taken, miss)

    def bounded_halves(self, tried: FloatArray) -> FloatArray:
        """Return half-widths of the sums that hold whatever the law of the values.

        Parameters
        ----------
        tried : ndarray of float64, shape (groups,)
            The mu that is tried in each group.

        Returns
        -------
        ndarray of float64, shape (groups,)
            The half-widths: Lemma PN16.
        """
        return self.drawn.half_widths(self._residuals(tried))

    def steps(self, tried: FloatArray) -> FloatArray:
        """Return how far one record moves the sums of "value - mu", at most.

        Parameters
        ----------
        tried : ndarray of float64, shape (groups,)
            The mu that is tried in each group.

        Returns
        -------
        ndarray of float64, shape (groups,)
            The steps.
        """
        return steps_of(self._residuals(tried).multiply(self.drawn.weights[None, :]))

    def _residuals(self, tried: FloatArray) -> Any:
        """Return "value - mu" of a record of each cell, 0 outside of the group."""
        return self.values - as_sparse(self.inside.multiply(tried[:, None]))

    def bounds(self, sides: tuple[int, ...] = (0, 1)) -> FloatArray:
        """Return the ends of all mu that are kept, the variance read off the sample."""
        taken = SIDE_SHARE * self.source.miss
        left = self.source.miss - taken - self._size_share()
        return self._solve(
            lambda tried: sampling_half_widths(
                # Twice the share on both sides is the share on the one that matters.
                self.law(tried),
                self.squares_of_all(tried, 2.0 * taken, left),
                left,
                self.steps(tried),
            ),
            sides,
        )

    def bounded(self, sides: tuple[int, ...] = (0, 1)) -> FloatArray:
        """Return the ends of all mu that no law of the values excludes: PN16."""
        return self._solve(self.bounded_halves, sides)

    def share_bounds(self) -> FloatArray:
        """Return the same of shares p, whose variance is p (1 - p): Wilson's way."""
        taken = SIDE_SHARE * self.source.miss
        asked = SparseRows(self.cells, self.inside)
        _, most, public = self.source.sizes(asked, taken)
        left = self.source.miss - (0.0 if public else taken)
        if not public:
            left -= self._size_share()
        factor = self.source.factor
        return self._solve(
            lambda tried: sampling_half_widths(
                self.law(tried),
                factor * most * tried * (1.0 - tried),
                left,
                # One of everybody is such or not, and counts once.
                np.ones(tried.size),
            )
        )

    def parts(self) -> tuple[FloatArray, FloatArray]:
        """Return variances of sampling and of noise at the estimate, in units of mu."""
        size = np.maximum(self.sizes, 1.0) ** 2
        sampling = self.squares(self.estimate, 0.0) / size
        return sampling, self.law(self.estimate).variance / size

    def _size_share(self) -> float:
        """Return what the miss pays for a private number of records, if it is read."""
        private = self.source.needs_size and not self.source.total[2]
        return SIDE_SHARE * self.source.miss if private else 0.0

    def _solve(
        self,
        halves: Callable[[FloatArray], FloatArray],
        sides: tuple[int, ...] = (0, 1),
    ) -> FloatArray:
        def room(tried: FloatArray) -> FloatArray:
            return np.asarray(halves(tried) - np.abs(self.sums - tried * self.sizes))

        ends = [farthest(room, self.estimate, self.limits[side]) for side in sides]
        return np.stack(ends, axis=-1)


class RatioOfSums(Ratio):
    """The same of values from 0 to 1 whose sums were measured, and no sum of squares.

    The square of y = value - mu lies below the line through its ends, which is linear
    in the value, so its sum follows from what was measured (Lemma PN19):

        mu = .4    value    0     .2     .4     .6     .8     1
                   y^2     .16   .04    0      .04    .16    .36
                   line    .16   .2     .24    .28    .32    .36

    A sample may hold none of the few records with such a value. So what it shows counts
    alone only where it is the variance of 30 steps or more; below, no less is taken
    than values of the mean mu can have at the largest weight, up to these 30.
    """

    _people: tuple[float, FloatArray] | None = None

    def _demanded(self) -> list[Any]:
        """Return the rows of which all that are tried are sums: none has squares."""
        return [self.over, self.under, self.values, self.inside]

    def squares(self, tried: FloatArray, miss: float) -> FloatArray:
        """Return the variance of the sampling, from above but for half of `miss`.

        Parameters
        ----------
        tried : ndarray of float64, shape (groups,)
            The mu that is tried in each group.
        miss : float
            0 for the estimate itself.

        Returns
        -------
        ndarray of float64, shape (groups,)
            The variances, as if every value lay at one of its ends.
        """
        left, square = (1.0 - 2.0 * tried)[:, None], (tried**2)[:, None]
        line = as_sparse(self.values.multiply(left) + self.inside.multiply(square))
        if miss == 0.0:
            return self.drawn.variance_of_squares(line, miss)
        seen = self.drawn.variance_of_squares(line, miss / 2.0)
        if self._people is None or self._people[0] != miss:
            self._people = (miss, self._people_from_above(miss))
        widest = self._heaviest * self._people[1] * tried * (1.0 - tried)
        few = FEWEST_STEPS * self.steps(tried) ** 2
        return np.asarray(np.maximum(seen, np.minimum(widest, few)))

    def squares_of_all(
        self, tried: FloatArray, taken: float, miss: float
    ) -> FloatArray:
        """Return `squares`: values at their ends leave no less to hide.

        Parameters
        ----------
        tried : ndarray of float64, shape (groups,)
            The mu that is tried in each group.
        taken : float
            What the variance misses with, as in `squares`.
        miss : float
            The miss of the interval in which it is used.

        Returns
        -------
        ndarray of float64, shape (groups,)
            The variances.
        """
        return self.squares(tried, taken)

    def _people_from_above(self, miss: float) -> FloatArray:
        """Return the people of each group, from above but for a quarter of `miss`."""
        asked = SparseRows(self.cells, without_zeros(self.under))
        law = self.source.release._spread(asked)
        above = self.sizes + noise_half_widths(law, miss / 2.0)
        return np.asarray(np.maximum(above, 0.0))

    @cached_property
    def _heaviest(self) -> FloatArray:
        """The most that one of the people of each group adds to the variance."""
        weight, part = self.source.weights
        each = as_sparse((self.inside != 0).multiply((part / weight)[None, :]))
        return np.asarray(each.max(axis=1).toarray(), dtype=np.float64).reshape(-1)


def farthest(
    room: Callable[[FloatArray], FloatArray], start: FloatArray, stop: FloatArray
) -> FloatArray:
    """Return how far towards `stop` numbers are kept, or slightly farther.

    A number is kept where its room is 0 or more. A few places are looked at from the
    start on; between the last that is kept and the next one the end is sought by
    straight lines, and halved values where one side moves twice (the Illinois way).

    Parameters
    ----------
    room : Callable[[ndarray], ndarray]
        From the number of each group to how much room its half-width leaves.
    start : ndarray of float64, shape (groups,)
        Numbers that are kept.
    stop : ndarray of float64, shape (groups,)
        The last that are possible.

    Returns
    -------
    ndarray of float64, shape (groups,)
        The ends.
    """
    places = np.linspace(0.0, 1.0, LOOKED_AT + 1)
    rooms = np.array([room(start + (stop - start) * place) for place in places])
    rooms[0] = np.maximum(rooms[0], 0.0)
    last = LOOKED_AT - np.argmax(rooms[::-1] >= 0.0, axis=0)
    after = np.minimum(last + 1, LOOKED_AT)
    groups = np.arange(start.size)
    inner, outer = (start + (stop - start) * places[at] for at in (last, after))
    spare, lack = rooms[last, groups], rooms[after, groups]
    moved = np.zeros(start.size)
    for _ in range(STEPS):
        part = spare / np.maximum(spare - lack, 1e-300)
        middle = inner + np.clip(part, 0.02, 0.98) * (outer - inner)
        here = room(middle)
        accepted = here >= 0.0
        lack = np.where(accepted, np.where(moved > 0, 0.5 * lack, lack), here)
        spare = np.where(accepted, here, np.where(moved < 0, 0.5 * spare, spare))
        inner, outer = (
            np.where(accepted, middle, inner),
            np.where(accepted, outer, middle),
        )
        moved = np.where(accepted, 1.0, -1.0)
    return np.asarray(outer)


def population_means(
    rows: tuple[Any, Any],
    under: Any,
    limits: Any,
    release: Any,
    confidence: float,
    method: Method | None = None,
) -> FloatArray:
    """Return intervals of a mean in the population; sampling is taken as normal.

    Parameters
    ----------
    rows : tuple of two scipy sparse arrays, shape (groups, cells)
        The least and the largest value that a record of each cell may have.
    under : scipy sparse array, shape (groups, cells)
        1 in the cells of each group.
    limits : tuple
        The least and the largest mean.
    release : HistogramRelease
        A release with a design.
    confidence : float
        Over the draw of the sample and the noise.
    method : {"exact", "normal"} or None
        "exact" holds whatever the law of the values: Lemma PN16.

    Returns
    -------
    ndarray of float64, shape (groups, 2)
        The intervals.
    """
    source = Sampled(release, confidence)
    ends = []
    for side, over in enumerate(rows):
        ratio = Ratio(source, over, under, limits)
        exact = method == "exact"
        ends.append(ratio.bounded((side,)) if exact else ratio.bounds((side,)))
    return np.concatenate(ends, axis=1)


class VarianceRows(NamedTuple):
    """Variances from intervals of the first and the second moment.

    Attributes
    ----------
    first : ndarray of float64, shape (groups, 2)
        Intervals of means, from a public centre.
    second : ndarray of float64, shape (groups, 2)
        Intervals of means of squares, from the same centre.
    most : ndarray of float64, shape (groups,)
        The largest variance that values can have.
    """

    first: FloatArray
    second: FloatArray
    most: FloatArray

    def bounds(self) -> FloatArray:
        """Return intervals of the second moment minus the square of the first."""
        first, second = self.first, self.second
        nearest = np.maximum(np.maximum(first[:, 0], -first[:, 1]), 0.0)
        low = second[:, 0] - (first**2).max(axis=1)
        ends = (low, second[:, 1] - nearest**2)
        return np.stack([np.clip(end, 0.0, self.most) for end in ends], axis=-1)
