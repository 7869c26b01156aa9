"""Answers, by group or alone, that can be used as numbers and know their intervals."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.interval_texts import interval_text, short_number
from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_confidence
from blowfish_fast.data.axes import OUTSIDE, Axis, as_dates
from blowfish_fast.data.frames import Table, attribute_column
from blowfish_fast.errors import InputError, IntervalError, SizeError
from blowfish_fast.workloads import Workload

from .grants import (
    BOUND_NAMES,
    Scope,
    Tabular,
    check_scope,
    say_noise_only,
    shown_counts,
)
from .quantiles import in_values
from .query_grid import Held, JointRows, RowSource
from .sampling.ratios import VarianceRows
from .sampling.sampled_release import (
    Method,
    VarianceParts,
    counted_exactly,
    refuse_method,
    sampled_sentence,
    stated_design,
)

POPULATION_COUNT = "population_count"
"""What ``in_population().count()`` measures: numbers of people, no records."""

MOST_PRINTED = 1000
"""Groups up to which printing works out their intervals."""

Bounds = Callable[[float, Held], FloatArray]
"""From a confidence and what is to be held to intervals, (groups, 2)."""

PopulationBounds = Callable[[float, Method | None], FloatArray]
"""From a confidence and a method to intervals of the population, (groups, 2)."""

Ends = tuple[FloatArray | float, FloatArray | float]
"""The least and the largest of what may be."""


class Claim(NamedTuple):
    """Intervals, whether they can hold the truth, and what is said if they cannot.

    Attributes
    ----------
    bounds : Bounds
        Returns the intervals, given a confidence and what they have to hold.
    kind : Callable[[], Scope]
        Returns what they hold by default.
    sentence : Callable[[Scope], str]
        Says what intervals of a kind hold.
    release : object, optional
        The release, which may have certificates, and a design.
    counted : str, default ''
        Which records count, where not all do: a part of a sentence.
    population : PopulationBounds, optional
        Returns intervals of the population, where such an answer has them.
    parts : Callable[[], tuple[FloatArray, FloatArray]], optional
        Returns the variances of sampling and of noise at the answers.
    workload : Workload, optional
        The queries, where each answer is one of them, in their order.
    """

    bounds: Bounds
    kind: Callable[[], Scope]
    sentence: Callable[[Scope], str]
    release: Any = None
    counted: str = ""
    population: PopulationBounds | None = None
    parts: Callable[[], tuple[FloatArray, FloatArray]] | None = None
    workload: Workload | None = None

    def rows(self) -> tuple[Workload, int]:
        """Return queries that intervals are made of, and of how many they are joint.

        That is 0 where each query is an answer by itself.
        """
        answers = len(self.bounds(0.95, source := RowSource()))
        asked = source.joined()
        alone = asked.queries == answers and not isinstance(asked, JointRows)
        return asked, 0 if alone else answers

    def known(self, confidence: float) -> tuple[Scope, Held, str]:
        """Return what intervals hold, what they are made from, and the sentence."""
        kind = self.kind()
        if kind == "noise" and getattr(self.release, "certificates", None):
            asked, joint = self.rows()
            terms = {"together": joint > 0}
            certificate = self.release._certificate_for(asked, confidence, **terms)
            if certificate is not None:
                rows = self.release.intervals(asked, confidence, of="truth", **terms)
                source = RowSource(rows, scaled=isinstance(asked, JointRows))
                scope: Scope = "truth" if certificate.per_query else "certified"
                return scope, source, str(certificate)
        return kind, kind, self.sentence(kind)

    def of_population(self, confidence: float, method: Method | None) -> FloatArray:
        """Return intervals of the population.

        Parameters
        ----------
        confidence : float
            Over the draw of the sample and the noise.
        method : {"exact", "normal"} or None
            None for exact where there is such a method.

        Returns
        -------
        ndarray of float64, shape (groups, 2)
            The intervals.

        Raises
        ------
        IntervalError
            If there is no design, or such an answer has no interval.
        """
        stated_design(self.release)
        if self.population is None:
            raise IntervalError(
                'of="population" is known of counts, shares, means, variances and '
                "quantiles",
                way_out="Ask where(...).mean(...) in place of a sum",
            )
        return self.population(confidence, method)

    def intervals(
        self, confidence: float, of: Scope | None, method: Method | None = None
    ) -> FloatArray:
        """Return intervals of the truth or the noise; warn where it is unexpected.

        Parameters
        ----------
        confidence : float
            How surely each holds.
        of : Scope or None
            What they have to hold; None for what is known.
        method : {"exact", "normal"}, optional
            How sampling is counted, where they hold the population.

        Returns
        -------
        ndarray of float64, shape (groups, 2)
            The intervals.

        Raises
        ------
        IntervalError
            If the truth was asked for, and is not known.
        """
        if method is not None:
            refuse_method(of, method)
        if isinstance(of, str) and of == "population":
            return self.of_population(confidence, method)
        if isinstance(of, str) and of == "noise":
            return self.bounds(confidence, of)
        check_scope(of)
        known_kind, held, sentence = self.known(confidence)
        if known_kind == "population" and of is None:
            return self.of_population(confidence, None)
        if known_kind == "noise":
            say_noise_only(sentence, refuse=of is not None)
        return self.bounds(confidence, held)


def left_out_words(attribute: Axis, extras: Sequence[str]) -> str:
    """Say that the records without a value of an attribute do not count.

    Parameters
    ----------
    attribute : Axis
        The attribute.
    extras : Sequence[str]
        The cells that have no value: "(missing)", "(outside)".

    Returns
    -------
    str
        A sentence, the same in all doors.
    """
    kinds = " or ".join(kind.strip("()") for kind in reversed(extras))
    name = attribute.name or "value"
    return f"Records whose {name} is {kinds} are left out."


def clamped_words(attribute: Axis) -> str | None:
    """Say what values beyond the cells count as; None where no cell can hold them.

    A release does not say whether values outside were refused or clamped: a mean is
    the true one of the table as it was counted.

    Parameters
    ----------
    attribute : Axis
        The attribute whose values are added up or ordered.

    Returns
    -------
    str or None
        A sentence.
    """
    listed = attribute.levels is None and not attribute.by_rule
    if not listed or OUTSIDE in attribute.extras:
        return None
    name = attribute.name or "the value"
    if attribute.cuts is None:
        low, high = "0", f"{attribute.regular - 1:,}"
    elif attribute.unit is None:
        low, high = (f"{attribute.cuts[end]:,.15g}" for end in (0, -1))
    else:
        low, high = map(str, as_dates(attribute.cuts, attribute.unit)[[0, -1]])
    return (
        f"Values of {name} outside {low} to {high}, where they were clamped, count as "
        "lying in the cell at that end."
    )


class Estimate(float):
    """An estimate, usable as a number, that knows its interval.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.Domain.from_edges(range(0, 101, 10), name="age")
    >>> laplace = bf.Laplace(
    ...     bf.policies.Full(ages), bf.workloads.Identity(ages), epsilon=1
    ... )
    >>> answer = laplace.release([50] * 10, rng=1).where(age=slice(20, 45)).count()
    >>> low, high = answer.interval(confidence=0.95)
    >>> low < answer < high
    True
    """

    _answers: GroupedAnswers
    _place: int

    def __new__(cls, answers: GroupedAnswers, place: int) -> Estimate:
        """Take one of several answers, which know their intervals."""
        answer = super().__new__(cls, answers.values_array[place])
        answer._answers, answer._place = answers, place
        return answer

    def interval(
        self,
        confidence: float = 0.95,
        *,
        of: Scope | None = None,
        method: Method | None = None,
    ) -> tuple[float, float]:
        """Return an interval of one answer, as ``release.intervals`` does.

        Parameters
        ----------
        confidence : float, default 0.95
            How surely it holds.
        of : Scope, optional
            What it has to hold; None for what is known. "population" asks for what
            holds where the records were drawn from, and is never a default; that of a
            count is a number of people, as in ``in_population().count()``.
        method : {"exact", "normal"}, optional
            How the sampling is counted of="population": by its law, or as a normal
            variable; by its law where there is such a method.

        Returns
        -------
        low : float
            The lower end.
        high : float
            The upper end.

        Raises
        ------
        IntervalError
            If the truth was asked for, and is not known.
        """
        return self._answers._interval(self._place, confidence, of, method)

    def p_value(
        self, against: float | str | Fraction, *, method: Method | None = None
    ) -> float:
        """Return the p-value of "it is this number in the population", asked once.

        Parameters
        ----------
        against : float, str or Fraction
            A number that was stated before, such as a target; no estimate of its own.
        method : {"exact", "normal"}, optional
            How the sampling is counted, as for `interval`.

        Returns
        -------
        float
            The least miss whose interval of="population" leaves the number out,
            rounded up by less than one in a hundred, and at least 1e-9; noise counts.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> answers = bf.Domain.from_levels(["yes", "no"], name="answer")
        >>> laplace = bf.Laplace(bf.policies.Full(answers), epsilon=1)
        >>> drawn = laplace.release([300, 700], rng=1).sampled(bf.sampling.Simple())
        >>> share = drawn.where(answer="yes").relative_count()
        >>> share.p_value("0.25") < 0.01, share.p_value("0.31") > 0.2
        (True, True)
        """
        return float(self._answers.p_values(against, method=method)[self._place])

    def variance_parts(self) -> VarianceParts:
        """Return how much of the error is sampling and how much is noise.

        Both are worked out at the estimate; ``str()`` says it in a sentence.
        """
        return self._answers.variance_parts()[self._place]

    def explain(self, confidence: float = 0.95) -> str:
        """Say in words how far off the answer may be, and what would bring it nearer.

        Parameters
        ----------
        confidence : float, default 0.95
            How surely its interval holds.

        Returns
        -------
        str
            The interval, and whether noise or the width of cells makes it wide.
        """
        low, high = self.interval(confidence)
        subject = "the true answer" if self.holds_truth else "the answer without noise"
        sentence = (
            f"{short_number(float(self))}; {subject} lies between "
            f"{interval_text(low, high, 'and')} with a probability of at least "
            f"{confidence:g}."
        )
        for more in (self.left_out, self._answers.clamped):
            sentence = sentence if more is None else f"{sentence} {more}"
        width = self._answers.cell_width
        if width is None or not self.holds_truth:
            return sentence
        noise = np.subtract(*self.interval(confidence, of="noise")[::-1])
        if not cells_widen(high - low, noise):
            return f"{sentence} Noise makes most of its width: a larger budget helps."
        reason = wide_cells(self._answers.of, width)
        return f"{sentence} {reason} values= takes a public value for each cell."

    @property
    def left_out(self) -> str | None:
        """Which records have no value and do not count, in a sentence; None: all do."""
        return self._answers.left_out

    @property
    def holds_truth(self) -> bool:
        """Whether `interval` can hold the true answer, and not the noise alone."""
        return self._answers.interval_kind() == "truth"

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (float(self),)

    def __repr__(self) -> str:
        return f"Estimate({float(self):.12g})"

    __str__ = float.__repr__


def cells_widen(width: float, noise: float) -> bool:
    """Return whether cells make more of an interval's width than its noise does.

    Parameters
    ----------
    width : float
        The width of the interval that holds the truth.
    noise : float
        The width of the interval that holds the noise alone.

    Returns
    -------
    bool
        Whether most of the width remains without noise.
    """
    return width > 2 * noise


def wide_cells(name: str | None, width: float) -> str:
    """Say that the width of cells makes intervals wide, and what helps.

    Parameters
    ----------
    name : str or None
        The attribute.
    width : float
        The width of its widest cell.

    Returns
    -------
    str
        A sentence.
    """
    return (
        f"Cells of {name} that are up to {width:g} wide make most of the width, since "
        "a record may lie anywhere in its cell: narrower cells help, and a larger "
        "budget does not."
    )


class Quotient(NamedTuple):
    """Intervals of ``centre + S / C`` from intervals of S and of a count C.

    Each of the two may miss with half the probability; if the count's interval has no
    width, S may miss with all of it.

    Attributes
    ----------
    dividend : Bounds
        Returns intervals of S.
    divisor : Bounds
        Returns intervals of C.
    limits : Ends
        Quotients lie within these.
    centre : ndarray of float64 or float, default 0.0
        What is added.
    reach : Ends, optional
        True quotients lie within these, where they are others.
    """

    dividend: Bounds
    divisor: Bounds
    limits: Ends
    centre: FloatArray | float = 0.0
    reach: Ends | None = None

    def bounds(self, confidence: float, of: Held) -> FloatArray:
        """Return intervals that hold with at least `confidence` each.

        Parameters
        ----------
        confidence : float
            How surely each holds.
        of : Held
            What they have to hold.

        Returns
        -------
        ndarray of float64, shape (groups, 2)
            The intervals.
        """
        shared = 1.0 - (1.0 - confidence) / 2
        count = self.divisor(shared, of)
        # Whether a count is exact is public: then no edge of the policy moves it.
        exact = bool((count[:, 0] == count[:, 1]).all())
        over = self.dividend(confidence if exact else shared, of)
        reach = (of != "noise" and self.reach) or self.limits
        least, most = np.maximum(count[:, 0], 0.0), np.maximum(count[:, 1], 0.0)
        low = _divide(over[:, 0], np.where(over[:, 0] >= 0, most, least), -np.inf)
        high = _divide(over[:, 1], np.where(over[:, 1] >= 0, least, most), np.inf)
        ends = [np.clip(self.centre + end, *reach) for end in (low, high)]
        return np.stack(ends, axis=-1)


def variance_bounds(
    mean: Quotient, square: Quotient, most: FloatArray, confidence: float, of: Held
) -> FloatArray:
    """Return intervals of E[x^2] - E[x]^2 from those of both means.

    Parameters
    ----------
    mean : Quotient
        Intervals of E[x].
    square : Quotient
        Intervals of E[x^2].
    most : ndarray of float64, shape (groups,)
        The largest variance that values can have.
    confidence : float
        How surely each holds.
    of : Held
        What they have to hold.

    Returns
    -------
    ndarray of float64, shape (groups, 2)
        The intervals.
    """
    shared = 1.0 - (1.0 - confidence) / 2
    moments = mean.bounds(shared, of), square.bounds(shared, of)
    return VarianceRows(*moments, most).bounds()


def _divide(over: FloatArray, under: FloatArray, otherwise: float) -> FloatArray:
    quotient = np.full(over.shape, otherwise)
    # Next to nothing may divide to infinity, which is a bound as well.
    with np.errstate(over="ignore"):
        np.divide(over, under, out=quotient, where=under > 0)
    return quotient


class GroupedAnswers(Tabular, Mapping[Any, Estimate]):
    """One answer per group, by the group's name.

    A name is a level, a pair (low, high) of values or a cell number; a tuple of names
    where there are several attributes.

    Parameters
    ----------
    attributes : Sequence[str]
        The attributes that records were broken down by.
    names : Sequence[Sequence[object]]
        The names of the groups along each of them.
    measure : str
        What was asked, such as "mean".
    values : ndarray of float64, shape (groups,)
        The answers.
    claim : Claim
        Their intervals.
    of : str, optional
        Of which attribute it was asked.
    seeded : bool, default False
        Whether the release is an experiment.
    unit : str, optional
        Answers that are dates count this unit since 1970, "D" or "h", and are shown as
        dates.
    cell_width : float, optional
        Of means: how wide the widest cell is within which values are not known.
    left_out : str, optional
        A sentence about the records that have no value, and do not count.
    clamped : str, optional
        A sentence about values beyond the cells.
    """

    def __init__(
        self,
        attributes: Sequence[str],
        names: Sequence[Sequence[Any]],
        measure: str,
        values: FloatArray,
        claim: Claim,
        *,
        of: str | None = None,
        seeded: bool = False,
        unit: str | None = None,
        cell_width: float | None = None,
        left_out: str | None = None,
        clamped: str | None = None,
    ) -> None:
        self.attributes = tuple(attributes)
        self.left_out = left_out
        self.clamped = clamped
        self.cell_width = cell_width
        self.unit = unit
        self.measure = measure
        self.of = of
        self.seeded = seeded
        self.values_array = values
        self._claim = claim
        self._cache: dict[tuple[float, Scope], FloatArray] = {}
        combined = list(itertools.product(*names))
        single = len(self.attributes) == 1
        self._places = {
            (name[0] if single else name): place for place, name in enumerate(combined)
        }

    @property
    def counts_people(self) -> bool:
        """Whether the answers are counts, and no sums, means or quantiles."""
        return self.measure == "count"

    def queries(self) -> Workload:
        """Return the workload whose queries are these answers, one for each group.

        Returns
        -------
        Workload
            What another mechanism may be asked about.

        Raises
        ------
        InputError
            If these are no counts of districts.
        """
        if self._claim.workload is None:
            raise InputError(
                "counts of districts are queries by themselves",
                received=f"a {self.measure} by {', '.join(self.attributes)}",
                way_out="Hand over release.of(...), release.level(...) or a workload",
            )
        return self._claim.workload

    def __getitem__(self, name: Any) -> Estimate:
        if name not in self._places:
            raise InputError(
                f"there is no group {name!r}; the first are {list(self._places)[:5]}"
            )
        return Estimate(self, self._places[name])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def intervals(
        self,
        confidence: float = 0.95,
        *,
        together: bool = False,
        of: Scope | None = None,
        method: Method | None = None,
    ) -> FloatArray:
        """Return intervals in the order of the groups.

        Intervals of the truth allow for every place that records may have inside their
        cells.

        Parameters
        ----------
        confidence : float, default 0.95
            How surely each holds.
        together : bool, default False
            Whether all of them hold at once.
        of : Scope, optional
            What they have to hold, as in ``release.intervals``.
        method : {"exact", "normal"}, optional
            How the sampling is counted of="population".

        Returns
        -------
        ndarray of float64, shape (groups, 2)
            The intervals.

        Raises
        ------
        IntervalError
            If the truth was asked for, and is not known.
        """
        asked = as_confidence(confidence)
        if together:
            asked = 1.0 - (1.0 - asked) / max(len(self), 1)
        if method is not None:
            of = self._scope(of)
        return self._claim.intervals(asked, of, method)

    def _scope(self, of: Scope | None) -> Scope | None:
        """Return what an interval holds: numbers of people hold for the population."""
        people = of is None and self.measure.startswith("population_")
        return "population" if people else of

    def p_values(
        self,
        against: float | str | Fraction,
        *,
        method: Method | None = None,
        together: bool = False,
    ) -> FloatArray:
        """Return p-values of "it is this number in the population" for each group.

        Parameters
        ----------
        against : float, str or Fraction
            A number that was stated before.
        method : {"exact", "normal"}, optional
            How the sampling is counted, as for `intervals`.
        together : bool, default False
            Whether all groups are looked at. Then each is multiplied by their number:
            with at most 5 % any group is doubted at .05 that truly has this number.

        Returns
        -------
        ndarray of float64, shape (groups,)
            Each is that of one group, asked once, unless ``together`` is stated.
        """
        from .sampling.p_values import p_values_against

        def bounds(confidence: float) -> FloatArray:
            return self.intervals(confidence, of="population", method=method)

        alone = p_values_against(bounds, against)
        return np.minimum(alone * len(self), 1.0) if together else alone

    def interval_kind(self, confidence: float = 0.95) -> Scope:
        """Return what `intervals` hold by default: "truth", "certified" or "noise"."""
        return self._claim.known(confidence)[0]

    def interval_sentence(
        self, kind: Scope, confidence: float = 0.95, method: Method | None = None
    ) -> str:
        """Say in words what intervals of a kind hold, or what is certified of them.

        Parameters
        ----------
        kind : Scope
            What they hold.
        confidence : float, default 0.95
            How surely.
        method : {"exact", "normal"}, optional
            How the sampling is counted, where they hold the population.

        Returns
        -------
        str
            The sentence.
        """
        sentences = [self._sentence(kind, confidence, method), self.left_out]
        if kind != "noise":
            sentences.append(self.clamped)
        if kind == "truth":
            sentences.append(self._why_wide(confidence))
        return " ".join(sentence for sentence in sentences if sentence is not None)

    def _why_wide(self, confidence: float) -> str | None:
        """Say that cells make most intervals wide; None where noise does."""
        if self.cell_width is None or not len(self):
            return None
        if self.interval_kind(confidence) != "truth":
            return None
        widths = np.diff(self.intervals(confidence), axis=1)
        noise = np.diff(self.intervals(confidence, of="noise"), axis=1)
        if not cells_widen(float(np.median(widths)), float(np.median(noise))):
            return None
        return wide_cells(self.of, self.cell_width)

    def _sentence(self, kind: Scope, confidence: float, method: Method | None) -> str:
        if kind == "population":
            design = stated_design(self._claim.release)
            exact = counted_exactly(design, self.measure, method)
            return sampled_sentence(design, exact, confidence)
        _, held, sentence = self._claim.known(confidence)
        if kind == "noise":
            return self._claim.sentence(kind)
        if held != "truth":
            return sentence
        return (
            f"Each interval holds the true {self.measure.replace('_', ' ')}"
            f"{self._claim.counted} with probability at least {confidence:.15g}."
        )

    def variance_parts(self) -> list[VarianceParts]:
        """Return how much of each error is sampling and how much is noise.

        Returns
        -------
        list of VarianceParts
            In the order of the groups, worked out at the estimates.

        Raises
        ------
        IntervalError
            If nobody said how the records were drawn, or the two parts of such an
            answer are not known.
        """
        claim = self._claim
        stated_design(claim.release)
        if claim.parts is None:
            raise IntervalError(
                "the two parts of the variance are known of counts, shares and means"
            )
        drawn, noise = claim.parts()
        pairs = zip(drawn.tolist(), noise.tolist(), strict=True)
        return [VarianceParts(*pair) for pair in pairs]

    def certifiable(self) -> tuple[Workload, int]:
        """Return the queries whose errors decide how far these answers are off.

        Where answers are made of several, all must hold together: for how many answers.
        """
        if self._claim.release is None:
            raise IntervalError(
                "answers that were measured themselves need no certificate"
            )
        return self._claim.rows()

    def _known_intervals(self, confidence: float, of: Scope) -> FloatArray:
        key = (as_confidence(confidence), of)
        if key not in self._cache:
            self._cache[key] = self.intervals(confidence, of=of)
        return self._cache[key]

    def _interval(
        self,
        place: int,
        confidence: float,
        of: Scope | None,
        method: Method | None = None,
    ) -> tuple[float, float]:
        of = self._scope(of)
        if method is not None:
            refuse_method(of, method)
        if isinstance(of, str) and of == "population":
            both = self.intervals(confidence, of=of, method=method)[place]
            return float(both[0]), float(both[1])
        check_scope(of)
        if of is None and self.interval_kind(confidence) == "noise":
            # Warns: the truth was expected, or may have been.
            bounds = self.intervals(confidence)
        else:
            bounds = self._known_intervals(confidence, of or "truth")
        return float(bounds[place, 0]), float(bounds[place, 1])

    def to_table(self, confidence: float | None = 0.95) -> Table:
        """Return columns: names of the groups, answers, intervals (`BOUND_NAMES`)."""
        several = len(self.attributes) > 1
        columns: dict[str, Any] = {}
        for at, attribute in enumerate(self.attributes):
            names = [place[at] if several else place for place in self._places]
            two = bool(names) and all(isinstance(name, tuple) for name in names)
            attribute = attribute_column(attribute, columns, "_from" if two else "")
            if two:
                columns[f"{attribute}_from"] = np.array([name[0] for name in names])
                columns[f"{attribute}_to"] = np.array([name[1] for name in names])
            else:
                column = np.empty(len(names), dtype=object)
                for place, name in enumerate(names):
                    column[place] = name
                columns[attribute] = column
        columns[self.measure] = in_values(self.values_array, self.unit)
        if confidence is not None:
            kind = self.interval_kind(confidence)
            low, high = BOUND_NAMES[kind]
            bounds = self._known_intervals(confidence, kind)
            if kind != "noise" and self.counts_people:
                columns[self.measure], bounds = shown_counts(self.values_array, bounds)
            columns[low], columns[high] = in_values(bounds, self.unit).T
        return Table(columns, experiment=self.seeded)

    def __repr__(self) -> str:
        by = ", ".join(self.attributes) or "nothing"
        asked = self.measure if self.of is None else f"{self.measure} of {self.of}"
        out = "" if self.left_out is None else f"; {self.left_out.rstrip('.')}"
        return f"GroupedAnswers({asked} by {by}: {len(self)} groups{out})"

    def __str__(self) -> str:
        return str(self._table_to_print())

    def _repr_html_(self) -> str:
        from blowfish_fast._support.html import panel

        return panel(repr(self)) + self._table_to_print()._repr_html_()

    def _table_to_print(self) -> Table:
        """Return the table, without intervals where they are unknown or many."""
        if len(self) > MOST_PRINTED:
            return self.to_table(None)
        try:
            return self.to_table()
        except (IntervalError, SizeError):
            return self.to_table(None)
