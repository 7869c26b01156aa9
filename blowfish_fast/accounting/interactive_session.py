"""Questions one at a time, each paid from a ledger: noisy counts, sums, partitions.

Conditions select whole cells and values are rounded to a public step, so every question
is a matrix of whole numbers, and its noise is discrete. Proof:
``docs/proofs/composition.md``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import NamingRightWords, as_fraction
from blowfish_fast.data.axes import representatives
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.predicates import (
    Cover,
    everything,
    groups_of,
    intersection,
    read_conditions,
)
from blowfish_fast.errors import DomainError, InputError, LedgerError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.tails import gaussian_draw_half_widths
from blowfish_fast.mechanisms.laplace import Gaussian, Laplace
from blowfish_fast.policies import PerPerson, refuse_units
from blowfish_fast.release.file import Release
from blowfish_fast.release.group_answers import (
    Claim,
    Estimate,
    GroupedAnswers,
    left_out_words,
)
from blowfish_fast.release.olap import join_conditions
from blowfish_fast.release.query_grid import (
    SparseRows,
    coverage_rows,
    product_rows,
    refuse_extras,
)

from .known_rows import NoisyRows, least_squares
from .ledger import Ledger
from .request import RandomLike

STEP_BITS = 16
"""Sums are taken in steps of at most the largest value over 2^15."""

SUMMED = (
    "Noise only: records count with the middle of their cell, clamped and in steps, "
    "and what that is off by is not covered."
)

KNOWN = (
    "Read from the counts that were asked so far, free: the interval holds the true "
    "count for a question that was not chosen by looking at them."
)

MOST_STEPS = 2**24
"""Largest value in steps: sums over a hundred billion records stay exact."""


class Session(NamingRightWords):
    """Interactive questions about one histogram, paid from one ledger.

    The session holds the data: hand out answers, not the session.

    Parameters
    ----------
    ledger : Ledger
        What pays.
    data : Histogram or array-like
        The true counts, over the domain of the ledger's policy.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.Domain.from_edges(range(0, 101, 10), name="age")
    >>> sexes = bf.Domain.from_levels(["F", "M"], name="sex")
    >>> policy = bf.policies.AddRemove(bf.Domain.product(ages, sexes))
    >>> ledger = bf.Ledger(epsilon=1, policy=policy)
    >>> session = bf.Session(ledger, [[30, 20]] * 10)
    >>> women = session.noisy_count(sex="F", epsilon=0.2, rng=1)
    >>> by_sex = session.partition("sex").noisy_count(epsilon=0.3, rng=2)
    >>> years = session.noisy_sum("age", epsilon=0.1, rng=3)
    >>> sorted(by_sex), ledger.remaining
    (['F', 'M'], Fraction(2, 5))
    """

    def __init__(self, ledger: Ledger, data: Any) -> None:
        if not isinstance(ledger, Ledger):
            raise LedgerError(
                "a session is paid from a Ledger",
                received=repr(ledger),
                way_out="Write Session(Ledger(path, epsilon=..., policy=...), data)",
            )
        domain = ledger.policy.domain
        self._data = data if isinstance(data, Histogram) else Histogram(domain, data)
        if self._data.domain != domain:
            raise DomainError(
                "data and the ledger's policy lie over one Domain",
                received=f"{data.domain!r} and {domain!r}",
            )
        self.ledger = ledger
        self._asked: dict[Any, NoisyRows] = {}

    @property
    def domain(self) -> Domain:
        """The public cells."""
        return self._data.domain

    def noisy_count(
        self,
        conditions: Mapping[Any, Any] | None = None,
        /,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        request: str | None = None,
        rng: RandomLike | None = None,
        **named: Any,
    ) -> Estimate:
        """Count the records that meet conditions, with noise.

        Conditions are those of ``release.where``, along borders of cells; the budget is
        charged, and the answer stored under `request`, as in `Ledger.release`.

        Parameters
        ----------
        conditions : mapping, optional
            From attributes, by name or number, to what their values must meet.
        epsilon, rho, delta : number
            What the answer costs: `epsilon`, or `rho`, or `epsilon` with `delta`.
        request : str, optional
            The name under which the answer is stored and comes back, free.
        rng : int or Generator, optional
            A seed makes an experiment; None draws secure noise.
        **named
            Conditions by the names of attributes. An attribute called as one of the
            words above goes into `conditions`.

        Returns
        -------
        Estimate
            The noisy count, with its interval.
        """
        budget = Budget.stated(epsilon=epsilon, rho=rho, delta=delta)
        return self._all(conditions, named).ask(budget, request, rng)[()]

    def noisy_sum(
        self,
        name: str | int,
        conditions: Mapping[Any, Any] | None = None,
        /,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        low: float | None = None,
        high: float | None = None,
        step: Any = None,
        request: str | None = None,
        rng: RandomLike | None = None,
        **named: Any,
    ) -> Estimate:
        """Sum an attribute over the records that meet conditions, with noise.

        A record counts with the middle of its cell, clamped to the public bounds `low`
        and `high` and rounded to multiples of `step`: by default a power of two, far
        below the largest value. Noise grows with the largest value that a record can
        add or the longest way it can move; intervals hold the noise alone where cells
        have a width or values were changed. Records whose value is missing or outside
        add nothing, and `left_out` says so. All else is as for `noisy_count`.

        Parameters
        ----------
        name : str or int
            The attribute whose values are added.
        conditions : mapping, optional
            From attributes, by name or number, to what their values must meet.
        epsilon, rho, delta : number
            What the answer costs: `epsilon`, or `rho`, or `epsilon` with `delta`.
        low, high : float, optional
            Public bounds to which values are clamped.
        step : number, optional
            Values are rounded to its multiples.
        request : str, optional
            The name under which the answer is stored and comes back, free.
        rng : int or Generator, optional
            A seed makes an experiment; None draws secure noise.
        **named
            Conditions by the names of attributes.

        Returns
        -------
        Estimate
            The noisy sum, with its interval.
        """
        budget = Budget.stated(epsilon=epsilon, rho=rho, delta=delta)
        question = self._all(conditions, named)
        question.weigh(name, low, high, step)
        return question.ask(budget, request, rng)[()]

    def known(
        self, conditions: Mapping[Any, Any] | None = None, /, **named: Any
    ) -> Estimate | None:
        """Return what the counts asked so far say about another one. Free; no data.

        Least squares over all rows that this session counted: women and everybody give
        men. The interval holds for a count that was not chosen by looking at the
        answers (Lemma PA7).

        Parameters
        ----------
        conditions : mapping, optional
            From attributes, by name or number, to what their values must meet.
        **named
            Conditions by the names of attributes.

        Returns
        -------
        Estimate or None
            None where the rows do not determine the count.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> sexes = bf.Domain.from_levels(["F", "M"], name="sex")
        >>> ledger = bf.Ledger(epsilon=1, policy=bf.policies.AddRemove(sexes))
        >>> session = bf.Session(ledger, [30, 20])
        >>> everybody = session.noisy_count(epsilon="0.3", rng=1)
        >>> session.known(sex="M") is None
        True
        >>> women = session.noisy_count(sex="F", epsilon="0.3", rng=2)
        >>> men = session.known(sex="M")
        >>> round(men - (everybody - women), 6), float(ledger.spent)
        (0.0, 0.6)
        """
        count = self._all(conditions, named).known()
        return None if count is None else count[()]

    def partition(self, name: str | int, bins: Any = None, /, **named: Any) -> Parts:
        """Divide the records by the cells of an attribute, or by bins of it.

        Parameters
        ----------
        name : str or int
            The attribute.
        bins : iterable or mapping, optional
            Edges in values, or a mapping from names to conditions that exclude each
            other.
        **named : object
            Conditions on all parts.

        Returns
        -------
        Parts
            The parts.

        Raises
        ------
        InputError
            If parts share cells.
        """
        axis = self.domain.axis(name)
        selected = self._covers(None, named)
        groups = groups_of(self.domain.attributes[axis], selected[axis], bins)
        for at, (_, part) in enumerate(groups):
            if any(intersection(part, other) for _, other in groups[:at]):
                raise InputError(
                    f"parts must exclude each other; {groups[at][0]!r} shares cells "
                    "with an earlier one"
                )
        return Parts(self, axis, selected, groups)

    def _all(
        self, conditions: Mapping[Any, Any] | None, named: Mapping[str, Any]
    ) -> IntegerRows:
        selected = self._covers(conditions, named)
        return IntegerRows(self, [[cell] for cell in selected])

    def _covers(
        self, conditions: Mapping[Any, Any] | None, named: Mapping[str, Any]
    ) -> list[Cover]:
        selected = dict(enumerate(map(everything, self.domain.attributes)))
        asked = read_conditions(self.domain, join_conditions(conditions, named))
        return list((selected | asked).values())

    def __repr__(self) -> str:
        return f"Session({self.ledger!r}, {self.domain!r}, counts hidden)"

    def _repr_html_(self) -> str:
        """Show the ledger that pays in a notebook; counts stay hidden."""
        from blowfish_fast._support.html import panel

        shown = self.ledger._repr_html_()
        return panel(f"Session over {self.domain!r}, counts hidden", drawing=shown)


@dataclass(frozen=True, repr=False)
class Parts:
    """Records divided by one attribute; each question is asked of all parts at once."""

    _session: Session
    _axis: int
    _selected: list[Cover]
    _groups: list[tuple[Any, Cover]]

    @property
    def names(self) -> list[Any]:
        """What the parts are called."""
        return [name for name, _ in self._groups]

    def _question(self) -> IntegerRows:
        axes = [[cell] for cell in self._selected]
        axes[self._axis] = [part for _, part in self._groups]
        return IntegerRows(self._session, axes, [(self._axis, self.names)])

    def noisy_count(
        self,
        *,
        request: str | None = None,
        rng: RandomLike | None = None,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
    ) -> GroupedAnswers:
        """Count the records of every part, for one charge.

        Parameters
        ----------
        request : str, optional
            The name under which the ledger holds the answer.
        rng : int or numpy.random.Generator, optional
            A seed, for experiments.
        epsilon : number, str or Fraction, optional
            The price.
        rho : number, str or Fraction, optional
            The price in rho.
        delta : number, str or Fraction, optional
            With `epsilon`.

        Returns
        -------
        GroupedAnswers
            The counts.

        Raises
        ------
        BudgetError
            If too little remains.
        """
        return self._question().ask(
            Budget.stated(epsilon=epsilon, rho=rho, delta=delta), request, rng
        )

    def known(self) -> GroupedAnswers | None:
        """Return what the counts asked so far say about every part. Free; no data.

        Returns
        -------
        GroupedAnswers or None
            None where they do not determine all parts; see `Session.known`.
        """
        return self._question().known()

    def noisy_sum(
        self,
        name: str | int,
        *,
        low: float | None = None,
        high: float | None = None,
        step: Any = None,
        request: str | None = None,
        rng: RandomLike | None = None,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
    ) -> GroupedAnswers:
        """Sum an attribute over every part, for one charge; see `Session.noisy_sum`.

        Parameters
        ----------
        name : str or int
            The attribute.
        low : float, optional
            Values below are taken for it.
        high : float, optional
            Values above are taken for it.
        step : number, optional
            A public step that values are rounded to.
        request : str, optional
            The name under which the ledger holds the answer.
        rng : int or numpy.random.Generator, optional
            A seed, for experiments.
        epsilon : number, str or Fraction, optional
            The price.
        rho : number, str or Fraction, optional
            The price in rho.
        delta : number, str or Fraction, optional
            With `epsilon`.

        Returns
        -------
        GroupedAnswers
            The sums.

        Raises
        ------
        BudgetError
            If too little remains.
        """
        question = self._question()
        question.weigh(name, low, high, step)
        return question.ask(
            Budget.stated(epsilon=epsilon, rho=rho, delta=delta), request, rng
        )

    def __repr__(self) -> str:
        name = self._session.domain.column_names[self._axis]
        return f"Parts(by {name}: {len(self._groups)})"


class IntegerRows:
    """Rows that are products of whole cells.

    Parameters
    ----------
    session : Session
        The session that asks.
    axes : Sequence[Sequence[Cover]]
        The intervals of the groups along each axis.
    groups : Sequence[tuple[int, list[object]]], default ()
        The axes by which answers are named, and the names.
    """

    def __init__(
        self,
        session: Session,
        axes: Sequence[Sequence[Cover]],
        groups: Sequence[tuple[int, list[Any]]] = (),
    ) -> None:
        for cover in itertools.chain(*axes):
            check_whole_cells(cover)
        self.session, self.axes, self.groups = session, axes, groups
        self.measure, self.step, self.exact = "count", 1.0, True
        self.left_out: str | None = None
        self.rows = list(map(coverage_rows, axes, session.domain.shape))

    def weigh(
        self, name: str | int, low: float | None, high: float | None, step: Any
    ) -> None:
        """Weight the rows of an attribute by its values, in steps.

        Parameters
        ----------
        name : str or int
            The attribute.
        low : float or None
            Values below are taken for it.
        high : float or None
            Values above are taken for it.
        step : number or None
            A public step that values are rounded to.
        """
        domain = self.session.domain
        axis = domain.axis(name)
        attribute = domain.attributes[axis]
        inside: Cover = ((0.0, float(attribute.regular)),)
        parts = [intersection(cover, inside) for cover in self.axes[axis]]
        if not all(parts):
            # A part of which nobody has a value has no sum.
            refuse_extras(attribute, self.axes[axis])
        if parts != list(self.axes[axis]):
            # Their weight stays 0.
            self.left_out = left_out_words(attribute, attribute.extras)
        middles = representatives(attribute)
        values = _clamp(middles, low, high)
        self.measure, self.step = "sum", _step(values, step)
        weights = np.zeros(attribute.size)
        weights[: attribute.regular] = np.rint(values / self.step)
        same = (weights[: attribute.regular] * self.step == middles).all()
        self.exact = bool(same) and attribute.cuts is None
        self.rows[axis] = self.rows[axis] * weights[None]

    def ask(
        self, budget: Budget, request: str | None, rng: RandomLike | None
    ) -> GroupedAnswers:
        """Charge, draw, and name the answers.

        Parameters
        ----------
        budget : Budget
            The price.
        request : str or None
            The name under which the ledger holds the answer.
        rng : RandomLike or None
            A seed, for experiments.

        Returns
        -------
        GroupedAnswers
            The answers.
        """
        ledger, data = self.session.ledger, self.session._data
        domain, policy = data.domain, ledger.policy
        workload = SparseRows(domain, product_rows(self.rows))
        if isinstance(policy, PerPerson) and data.at_most is not None:
            # The ledger's policy leaves open what each body of data states.
            policy = policy.with_at_most(data.at_most)
            refuse_units(policy, "the answer to one question")
        kind = Laplace if budget.power == 1 else Gaussian
        recipe = kind(policy, workload, epsilon=budget, strategy="queries")
        release = ledger.release(recipe, data, request, rng)
        (measurement,) = release.measurements
        if self.measure == "count":
            # Under its name a question comes back with the noise that it had.
            key = object() if request is None else request
            self.session._asked[key] = NoisyRows(
                product_rows(self.rows),
                measurement.noisy.astype(np.float64),
                measurement.scales,
            )
        return GroupedAnswers(
            [domain.column_names[axis] for axis, _ in self.groups],
            [names for _, names in self.groups],
            self.measure,
            measurement.noisy.astype(np.float64) * self.step,
            Claim(
                lambda confidence, _: _noise_intervals(release, confidence) * self.step,
                lambda: "truth" if self.exact else "noise",
                release.interval_sentence if self.exact else lambda _: SUMMED,
                counted=release.guarantee.counted_records(),
            ),
            left_out=self.left_out,
        )

    def known(self) -> GroupedAnswers | None:
        """Return what the session's counts say about these rows; None if too little.

        Rows that were paid in the other currency than the ledger's are left out: the
        two kinds of noise have no common law.
        """
        power = self.session.ledger.currency.power
        asked = [
            rows for rows in self.session._asked.values() if rows.scales.power == power
        ]
        fit = least_squares(asked, product_rows(self.rows)) if asked else None
        if fit is None:
            return None
        names = self.session.domain.column_names
        return GroupedAnswers(
            [names[axis] for axis, _ in self.groups],
            [parts for _, parts in self.groups],
            "count",
            fit.values,
            Claim(
                lambda confidence, _: fit.intervals(confidence),
                lambda: "truth",
                lambda _: KNOWN,
            ),
        )


def _noise_intervals(release: Release, confidence: float) -> FloatArray:
    (measurement,) = release.measurements
    scales, miss = measurement.scales, 1.0 - confidence
    widths = scales.widths
    if scales.power == 1:
        half = np.array([single_draw_half_width(width, miss) for width in widths])
    else:
        half = gaussian_draw_half_widths(widths, miss)
    return np.stack([measurement.noisy - half, measurement.noisy + half], axis=-1)


def single_draw_half_width(width: float, miss: float) -> float:
    """Return the least h with P(|Z| > h) <= miss for a discrete Laplace draw (SS4).

    Parameters
    ----------
    width : float
        The scale of the draw.
    miss : float
        The probability.

    Returns
    -------
    float
        The half-width.
    """
    if width == 0.0:
        return 0.0
    decay = math.exp(-1.0 / width)
    reach = -width * math.log(0.5 * miss * (1.0 + decay))
    # Rounding is far below this margin, which at worst costs one unit.
    return max(math.ceil(reach * (1.0 + 2.0**-40)) - 1.0, 0.0)


def check_whole_cells(cover: Cover) -> None:
    """Refuse parts of cells."""
    if any(end != math.floor(end) for interval in cover for end in interval):
        raise InputError(
            "a session answers along borders of cells, since it knows nothing finer; "
            "choose values at the edges of the domain, or finer edges"
        )


def _clamp(values: FloatArray, low: float | None, high: float | None) -> FloatArray:
    least = -np.inf if low is None else float(as_fraction(low, "low"))
    most = np.inf if high is None else float(as_fraction(high, "high"))
    if least > most:
        raise InputError(f"low must not exceed high; received {low!r} and {high!r}")
    return np.clip(values, least, most)


def _step(values: FloatArray, step: Any) -> float:
    if step is None:
        largest = float(np.abs(values).max())
        return 2.0 ** (math.frexp(largest)[1] - STEP_BITS) if largest > 0 else 1.0
    unit = float(as_fraction(step, "step"))
    if unit <= 0 or float(np.abs(values).max()) / unit > MOST_STEPS:
        raise InputError(
            "step must be greater than 0, and the largest value at most 2^24 steps; "
            f"received {step!r}"
        )
    return unit
