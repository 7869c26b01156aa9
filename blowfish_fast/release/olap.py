"""Counts, sums, means, variances and quantiles over conditions on attributes.

A condition selects intervals of cells on each axis; their product is one query,
grouping makes a grid of queries, and sums weight their cells by a public value each.
Intervals are proved in docs/proofs/olap.md.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar

import numpy as np

from blowfish_fast._support.near_misses import question_words
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_confidence, malformed_as
from blowfish_fast.data.axes import MISSING, Axis
from blowfish_fast.data.predicates import (
    Cover,
    everything,
    groups_of,
    intersection,
    is_within,
    read_conditions,
)
from blowfish_fast.errors import (
    DomainError,
    InputError,
    IntervalError,
    WorkloadError,
)

from .grants import Scope, counted_records, with_answers
from .group_answers import (
    POPULATION_COUNT,
    Bounds,
    Claim,
    Estimate,
    GroupedAnswers,
    PopulationBounds,
    Quotient,
    clamped_words,
    left_out_words,
    variance_bounds,
)
from .quantiles import SelectedQuantiles
from .query_grid import (
    AnswerSource,
    Grid,
    GridAnswers,
    Held,
    RowSource,
    ValueRows,
    value_rows,
)
from .sampling.grids import (
    GridMeans,
    grid_count_parts,
    grid_counts,
    grid_share_parts,
    share_estimates,
)
from .sampling.numbers import scaled_counts
from .sampling.sampled_release import Method, equally_weighted, stated_design
from .sampling.shares import population_shares

if TYPE_CHECKING:
    from .sampling.differences import Compared, Difference
    from .sampling.rates import Rate

Answer = TypeVar("Answer")
NamedCovers = dict[int, list[tuple[Any, Cover]]]
"""Names and covers of the groups along each axis."""


class Questions(ABC, Generic[Answer]):
    """What can be asked about selected records, together or by group; free.

    Parameters
    ----------
    release : AnswerSource
        What was published.
    groups : NamedCovers
        The names and intervals of the groups along each axis.
    named : Sequence[int], default ()
        The axes in the order in which groups are named. Answers come in the order of
        the axes.
    """

    def __init__(
        self, release: AnswerSource, groups: NamedCovers, named: Sequence[int] = ()
    ) -> None:
        self._release = release
        self._groups = groups
        # Groups are named in the order in which they were asked for, and answered in
        # the order of the axes.
        self._named = named

    def __getattr__(self, name: str) -> Any:
        # Only names that are not there come here.
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(question_words(type(self), name))

    @abstractmethod
    def _hand_over(self, answers: GroupedAnswers) -> Answer:
        """Return the answers in the form in which they were asked for."""

    @abstractmethod
    def _among(self, axis: int, groups: list[tuple[Any, Cover]]) -> Self:
        """Return the same questions with other groups along an axis."""

    def _with_values(self, axis: int) -> tuple[Self, str | None]:
        """Leave out who has no value on an axis; say whom, or None for nobody.

        A group of which nobody has a value stays, and is refused where values are used.
        """
        attribute = self._release.domain.attributes[axis]
        groups = self._groups[axis]
        inside: Cover = ((0.0, float(attribute.regular)),)
        parts = [(name, intersection(cover, inside)) for name, cover in groups]
        if parts == groups or not all(part for _, part in parts):
            return self, None
        return self._among(axis, parts), left_out_words(attribute, attribute.extras)

    @cached_property
    def _grid(self) -> Grid:
        axes = range(self._release.domain.ndim)
        return Grid(
            self._release, [[part for _, part in self._groups[at]] for at in axes]
        )

    def count(self) -> Answer:
        """Return the number of records."""
        counted = self._grid.count()
        return self._answers(
            "count",
            counted.values,
            counted.bounds,
            population=partial(grid_counts, self._grid),
            parts=partial(grid_count_parts, self._grid),
        )

    def in_population(self) -> InPopulation[Answer]:
        """Ask about the population that the records were drawn from.

        ``release.sampled(design)`` says how; `in_population().count()` is a number of
        people, with an interval over the draw of the sample and the noise.
        """
        return InPopulation(self)

    def relative_count(self, of: Selection | None = None) -> Answer:
        """Return the part of all records, or of another selection, that is selected.

        Where values of an attribute are selected, the part is of those who have one:
        records whose value is missing are left out, and `left_out` says so. Where
        missing values are selected too, or are a group, it is of all records.

        Parameters
        ----------
        of : Selection, optional
            What the part is of; taken as it is.

        Returns
        -------
        Estimate or GroupedAnswers
            The part, from 0 to 1.
        """
        whole, left_out = self._whole(of)
        base, counted = whole._grid.count(), self._grid.count()
        quotient = Quotient(counted.bounds, base.bounds, (0.0, 1.0))
        total = float(base.values[0])
        parts = counted.values / total if total > 0 else np.zeros(counted.values.size)
        shares = np.clip(parts, 0.0, 1.0)
        return self._answers(
            "relative_count",
            shares,
            quotient.bounds,
            population=partial(population_shares, self._grid, whole._grid),
            parts=partial(grid_share_parts, self._grid, whole._grid),
            left_out=left_out,
        )

    def _whole(self, of: Selection | None) -> tuple[Selection, str | None]:
        """Return what parts are relative to, and whom it leaves out.

        What does not contain the parts is refused.
        """
        whole, left_out = (of, None) if of is not None else self._everybody()
        if whole._release is not self._release:
            raise InputError("both selections must come from one release")
        for axis, outer in enumerate(whole._covers):
            if not all(is_within(cover, outer) for cover in self._grid.axes[axis]):
                raise InputError(
                    "a part is counted relative to a selection that contains it; on "
                    f"{self._release.domain.column_names[axis]} it does not"
                )
        return whole, left_out

    def _everybody(self) -> tuple[Selection, str | None]:
        """Return all who have a value wherever values were selected."""
        covers, words = [], []
        for axis, attribute in enumerate(self._release.domain.attributes):
            cover = everything(attribute)
            place = attribute.extra_cell(MISSING)
            lacking: Cover = () if place is None else ((float(place), place + 1.0),)
            if lacking and not any(
                intersection(part, lacking) for part in self._grid.axes[axis]
            ):
                # The cell is the last one.
                cover = ((0.0, float(place)),)
                words.append(left_out_words(attribute, [MISSING]))
            covers.append(cover)
        return Selection(self._release, covers), " ".join(words) or None

    def sum(self, name: str | int | None = None, values: Any = None) -> Answer:
        """Return the sum of an attribute over the records.

        Every record counts with a public value: the middle of its cell, or of the
        selected part of the cell; the cell number where there are no edges; the level
        where levels are numbers; or one of `values`. Whole numbers want them: in a cell
        from 20 to 25 the ages are 20 to 24, and 22 is their middle. Records whose value
        is missing or outside have none, and are left out, as `left_out` says of the
        answer; so it is in means, variances and quantiles.

        Parameters
        ----------
        name : str or int, optional
            The attribute; by default the only one.
        values : array-like of float, optional
            A public value for each cell.

        Returns
        -------
        Estimate or GroupedAnswers
            The sum.
        """
        asked, axis, value_rows, left_out = self._valued(name, values)
        summed = asked._grid.value_sums(axis, value_rows.rows(), value_rows.ends())
        return asked._answers(
            "sum", summed.values, summed.bounds, axis, left_out=left_out
        )

    def mean(self, name: str | int | None = None, values: Any = None) -> Answer:
        """Return the mean of an attribute; see `sum` for what records count with.

        Parameters
        ----------
        name : str or int, optional
            The attribute; by default the only one.
        values : array-like of float, optional
            A public value for each cell.

        Returns
        -------
        Estimate or GroupedAnswers
            The mean.
        """
        own, axis, value_rows, left_out = self._valued(name, values)
        along = partial(own._grid.along, axis)
        summed, counted = own._moment(axis, value_rows, 1), own._grid.count()
        low, high = along(value_rows.lowest), along(value_rows.highest)
        centre = along(value_rows.centre)
        estimate = centre + summed.values / np.maximum(counted.values, 1.0)
        least, most = map(along, value_rows.reach())
        quotient = Quotient(
            summed.bounds, counted.bounds, (low, high), centre, (least, most)
        )
        means = np.clip(estimate, low, high)
        width = value_rows.widest or None
        asked = GridMeans(own._grid, axis, value_rows)
        return own._answers(
            "mean",
            means,
            quotient.bounds,
            axis,
            width,
            population=asked.means,
            parts=asked.parts,
            left_out=left_out,
        )

    def variance(self, name: str | int | None = None, values: Any = None) -> Answer:
        """Return the variance of an attribute, of records that count as in `sum`.

        Parameters
        ----------
        name : str or int, optional
            The attribute; by default the only one.
        values : array-like of float, optional
            A public value for each cell.

        Returns
        -------
        Estimate or GroupedAnswers
            The variance.
        """
        own, axis, value_rows, left_out = self._valued(name, values)
        spread, bounds = own._variance(axis, value_rows)
        return own._answers(
            "variance",
            spread,
            bounds,
            axis,
            population=GridMeans(own._grid, axis, value_rows).variances,
            left_out=left_out,
        )

    def std(self, name: str | int | None = None, values: Any = None) -> Answer:
        """Return the standard deviation of an attribute: the root of `variance`.

        Parameters
        ----------
        name : str or int, optional
            The attribute; by default the only one.
        values : array-like of float, optional
            A public value for each cell.

        Returns
        -------
        Estimate or GroupedAnswers
            The standard deviation.
        """
        own, axis, value_rows, left_out = self._valued(name, values)
        spread, squared = own._variance(axis, value_rows)

        def bounds(confidence: float, of: Held) -> FloatArray:
            root: FloatArray = np.sqrt(squared(confidence, of))
            return root

        return own._answers(
            "std",
            np.sqrt(spread),
            bounds,
            axis,
            population=GridMeans(own._grid, axis, value_rows).deviations,
            left_out=left_out,
        )

    def _variance(self, axis: int, rows: ValueRows) -> tuple[FloatArray, Bounds]:
        along = partial(self._grid.along, axis)
        counted = self._grid.count()
        first, second = (self._moment(axis, rows, power) for power in (1, 2))
        many = np.maximum(counted.values, 1.0)
        half = along((rows.highest - rows.lowest) / 2)
        spread = np.clip(second.values / many - (first.values / many) ** 2, 0, half**2)
        least, most = (along(bound - rows.centre) for bound in rows.reach())
        farthest = np.maximum(np.abs(least), np.abs(most))
        mean = Quotient(first.bounds, counted.bounds, (least, most))
        square = Quotient(second.bounds, counted.bounds, (0.0, farthest**2))
        bounds = partial(variance_bounds, mean, square, ((most - least) / 2) ** 2)
        return spread, bounds

    def quantile(self, name: str | int | None = None, q: float = 0.5) -> Answer:
        """Return the value below which a part of the records lies.

        Dates count their unit since 1970: days, hours; tables show them as dates.

        Parameters
        ----------
        name : str or int, optional
            The attribute; by default the only one.
        q : float, default 0.5
            The part, from 0 to 1.

        Returns
        -------
        Estimate or GroupedAnswers
            The value.
        """
        axis = self._named_axis(name)
        own, left_out = self._with_values(axis)
        quantiles = SelectedQuantiles(own._grid, axis, q)
        return own._answers(
            "quantile",
            quantiles.values,
            quantiles.bounds,
            axis,
            population=quantiles.population_bounds,
            left_out=left_out,
        )

    def min(self, name: str | int) -> NoReturn:
        """Refuse: see the error."""
        _refuse_extremes("minimum", name)

    def max(self, name: str | int) -> NoReturn:
        """Refuse: see the error."""
        _refuse_extremes("maximum", name)

    def _moment(self, axis: int, rows: ValueRows, power: int) -> GridAnswers:
        """Return sums of a power of the distance to the centre of the values."""
        ends = rows.ends(rows.centre, power)
        return self._grid.value_sums(axis, rows.rows(rows.centre, power), ends)

    def _named_axis(self, name: str | int | float | None) -> int:
        """Return the axis of an attribute; without a name, that of the only one."""
        domain = self._release.domain
        if name is None and domain.ndim == 1:
            return 0
        if name is None:
            raise DomainError(
                "a question about values names its attribute where there are several, "
                f"{domain.column_names} here",
                way_out=f"Write mean({domain.column_names[0]!r})",
            )
        if isinstance(name, float):
            raise DomainError(
                "the attribute comes first",
                received=repr(name),
                way_out=f"Write quantile({domain.column_names[0]!r}, {name!r})",
            )
        axis: int = domain.axis(name)
        return axis

    def _valued(
        self, name: str | int | None, values: Any
    ) -> tuple[Self, int, ValueRows, str | None]:
        """Return the records with a value: their axis, what they count with, the rest.

        The last part says who was left out, and is None where nobody was.
        """
        axis = self._named_axis(name)
        attribute = self._release.domain.attributes[axis]
        cell_values = None if values is None else _given_values(attribute, values)
        own, left_out = self._with_values(axis)
        rows = value_rows(attribute, own._grid.axes[axis], cell_values)
        return own, axis, rows, left_out

    def _answers(
        self,
        measure: str,
        values: FloatArray,
        bounds: Bounds,
        of: int | None = None,
        cell_width: float | None = None,
        *,
        population: PopulationBounds | None = None,
        parts: Callable[[], tuple[FloatArray, FloatArray]] | None = None,
        left_out: str | None = None,
    ) -> Answer:
        """Name the answers, in the order in which attributes were asked for."""
        release, named = self._release, self._named
        domain = release.domain
        shape = [len(groups) for groups in self._grid.axes]
        rest = (axis for axis in range(domain.ndim) if axis not in named)
        axes: list[int] = [*named, *rest]
        order = np.arange(values.size).reshape(shape).transpose(axes).reshape(-1)
        ordered = values[order]
        # The records' own share is no estimate of the population's where they weigh
        # differently, nor is a count of records one of people.
        design = getattr(release, "design", None)
        weighted = design is not None and not equally_weighted(design)
        beside = measure.startswith("population") or not weighted
        widened = ordered if beside and measure != "count" else None
        answers = GroupedAnswers(
            [domain.column_names[axis] for axis in named],
            [[name for name, _ in self._groups[axis]] for axis in named],
            measure,
            ordered,
            Claim(
                partial(_in_order, bounds, order, ordered),
                partial(_rows_kind, release, bounds),
                release.interval_sentence,
                release,
                counted_records(release),
                population and partial(_drawn, population, order, widened),
                parts and partial(_parts_in_order, parts, order),
            ),
            of=None if of is None else domain.column_names[of],
            seeded=not getattr(release, "private", True),
            unit=None if of is None else domain.attributes[of].unit,
            cell_width=cell_width,
            left_out=left_out,
            clamped=None if of is None else clamped_words(domain.attributes[of]),
        )
        return self._hand_over(answers)


class InPopulation(Generic[Answer]):
    """Questions about the population that records were drawn from; `in_population`.

    Parameters
    ----------
    questions : Questions
        The selected records, together or by group.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> sexes = bf.Domain.from_levels(["F", "M"], name="sex")
    >>> laplace = bf.Laplace(bf.policies.Full(sexes), epsilon=1)
    >>> release = laplace.release([600, 400], rng=1)
    >>> drawn = release.sampled(bf.sampling.Simple(population=50_000))
    >>> women = drawn.where(sex="F").in_population().count()
    >>> low, high = women.interval()
    >>> bool(28_000 < low < women < high < 32_000)
    True
    """

    def __init__(self, questions: Questions[Answer]) -> None:
        self._questions = questions

    def count(self) -> Answer:
        """Return the number of people, an estimate with its interval.

        Of the design `Poisson` it is the number of events that is expected.
        """
        questions = self._questions
        stated_design(questions._release)
        grid = questions._grid
        people = scaled_counts(grid.release, grid.count().workload)
        return questions._answers(
            POPULATION_COUNT,
            people,
            _refuse_truth,
            population=partial(grid_counts, grid),
            parts=partial(grid_count_parts, grid),
        )

    def relative_count(self, of: Selection | None = None) -> Answer:
        """Return the estimated share in the population; weights count where stated."""
        questions = self._questions
        stated_design(questions._release)
        whole, left_out = questions._whole(of)
        return questions._answers(
            "population_share",
            share_estimates(questions._grid, whole._grid),
            _refuse_truth,
            population=partial(population_shares, questions._grid, whole._grid),
            parts=partial(grid_share_parts, questions._grid, whole._grid),
            left_out=left_out,
        )

    def mean(self, name: str | int | None = None, values: Any = None) -> Answer:
        """Return the estimated mean in the population; weights count where stated.

        Parameters
        ----------
        name : str or int, optional
            The attribute; by default the only one.
        values : array-like of float, optional
            A public value for each cell.

        Returns
        -------
        Estimate or GroupedAnswers
            The mean.
        """
        questions = self._questions
        stated_design(questions._release)
        own, axis, value_rows, left_out = questions._valued(name, values)
        asked = GridMeans(own._grid, axis, value_rows)
        return own._answers(
            "population_mean",
            asked.estimates(),
            _refuse_truth,
            axis,
            population=asked.means,
            parts=asked.parts,
            left_out=left_out,
        )


def _refuse_truth(confidence: float, of: Held) -> NoReturn:
    raise IntervalError(
        "a number of people in the population is no count of these records",
        way_out='Ask of="population", or where(...).count() for the records',
    )


class Groups(Questions[GroupedAnswers]):
    """A selection broken down by attributes; each answer comes once per group."""

    def _hand_over(self, answers: GroupedAnswers) -> GroupedAnswers:
        return answers

    def _among(self, axis: int, groups: list[tuple[Any, Cover]]) -> Groups:
        return Groups(self._release, {**self._groups, axis: groups}, self._named)


class Selection(Questions[Estimate]):
    """The records of a release that meet conditions; see ``release.where``.

    Parameters
    ----------
    release : AnswerSource
        What was published.
    selected : Sequence[Cover]
        The selected intervals of cells along each axis.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.Domain.from_edges(range(0, 101, 10), name="age")
    >>> sexes = bf.Domain.from_levels(["F", "M"], name="sex")
    >>> people = bf.Domain.product(ages, sexes)
    >>> release = bf.Laplace(
    ...     bf.policies.Full(people), bf.workloads.Identity(people), epsilon=1
    ... ).release([[300, 200]] * 10, rng=3)
    >>> women = release.where(sex="F")
    >>> bool(600 < women.where(age=slice(20, 45)).count() < 900)
    True
    >>> bool(45 < women.mean("age") < 55), bool(40 < women.quantile("age") < 60)
    (True, True)
    >>> low, high = women.variance("age").interval()
    >>> bool(low < 100**2 / 12 < high), bool(women.std("age") ** 2 < high)
    (True, True)
    >>> len(release.group_by("sex").quantile("age", 0.9))
    2
    """

    def __init__(self, release: AnswerSource, selected: Sequence[Cover]) -> None:
        self._covers = tuple(selected)
        super().__init__(
            release, {axis: [((), cover)] for axis, cover in enumerate(selected)}
        )

    def _hand_over(self, answers: GroupedAnswers) -> Estimate:
        return answers[()]

    def _among(self, axis: int, groups: list[tuple[Any, Cover]]) -> Selection:
        ((_, cover),) = groups
        before, after = self._covers[:axis], self._covers[axis + 1 :]
        return Selection(self._release, [*before, cover, *after])

    @classmethod
    def of(cls, release: AnswerSource, conditions: Mapping[Any, Any]) -> Selection:
        """Select from a release.

        Parameters
        ----------
        release : AnswerSource
            What was published.
        conditions : Mapping[object, object]
            Conditions by attribute, in values.

        Returns
        -------
        Selection
            The selection.
        """
        domain = release.domain
        whole = cls(release, [everything(attribute) for attribute in domain.attributes])
        return whole.where(conditions)

    def where(
        self, conditions: Mapping[Any, Any] | None = None, /, **named: Any
    ) -> Selection:
        """Select further: everything must hold together.

        Parameters
        ----------
        conditions : Mapping[object, object], optional
            Conditions by attribute, in values.
        **named : object
            The same, by the attribute's name.

        Returns
        -------
        Selection
            The selection.

        Raises
        ------
        InputError
            If nothing meets all conditions.
        """
        domain = self._release.domain
        refined = list(self._covers)
        asked = join_conditions(conditions, named)
        for axis, cover in read_conditions(domain, asked).items():
            refined[axis] = intersection(refined[axis], cover)
            if not refined[axis]:
                raise InputError(
                    f"no value of {domain.column_names[axis]} meets all conditions on "
                    "it, so nothing is selected"
                )
        return Selection(self._release, refined)

    def difference(
        self,
        other: Selection,
        *,
        of: Compared = "share",
        name: str | int | None = None,
        values: Any = None,
    ) -> Difference:
        """Compare with another selection, in the population; free.

        The other selection may be one of this release, or one of a release about
        *different* people, such as another wave: whether nobody is in both is your
        word. Both releases have a design, ``release.sampled(...)``.

        Parameters
        ----------
        other : Selection
            What is taken off.
        of : {"share", "mean", "count"}, default "share"
            Shares of all people, means of an attribute, or numbers of people.
        name : str or int, optional
            The attribute of a mean.
        values : array-like of float, optional
            A public value for each of its cells; 0 and 1 for a share inside the groups.
            Without it a record may lie anywhere inside its cell: the estimate takes
            the middle, and the interval counts all that this leaves open.

        Returns
        -------
        Difference
            The estimate, with ``interval()`` and ``p_value()``.

        Raises
        ------
        InputError
            If no attribute is named for a mean.
        """
        from .sampling.differences import population_difference

        if not isinstance(other, Selection):
            raise InputError(
                "a selection is compared with another: where(...)",
                received=type(other).__name__,
            )
        kinds = ("share", "mean", "count")
        if of not in kinds or (of == "mean") != (name is not None):
            raise InputError(
                'shares are compared, of="share", numbers of people, of="count", or '
                'means of an attribute, of="mean" with its name',
                received=f"of={of!r}, name={name!r}",
            )
        if name is None:
            return population_difference((self._grid, other._grid), of, None, None)
        own, axis, first, _ = self._valued(name, values)
        less, _, second, _ = other._valued(name, values)
        return population_difference((own._grid, less._grid), of, axis, (first, second))

    def ratio(self, other: Selection) -> Rate:
        """Return how many there are for each of another selection, in the population.

        Unemployed by labour force, children by women: neither number has to be public,
        and neither selection a part of the other. Free.

        Parameters
        ----------
        other : Selection
            What is divided by, of the same release.

        Returns
        -------
        Rate
            The estimate, with ``interval()``, and ``difference(...)`` to another rate.

        Raises
        ------
        InputError
            If it is no selection of the same release.
        """
        from .sampling.rates import population_rate

        return population_rate(self._grid, getattr(other, "_grid", None))

    def group_by(self, *names: str | int | Sequence[str | int], **bins: Any) -> Groups:
        """Break the selection down by attributes.

        Parameters
        ----------
        *names : str, int or sequence of these
            Attributes that are broken down cell by cell.
        **bins : object
            Attributes with edges in values, ``age=[0, 18, 65]``, with the levels that
            are wanted, or with a mapping from names to conditions.

        Returns
        -------
        Groups
            The groups.

        Raises
        ------
        DomainError
            If there is no such attribute.
        """
        lists = [
            name_or_names
            if isinstance(name_or_names, list | tuple)
            else [name_or_names]
            for name_or_names in names
        ]
        with malformed_as(DomainError, "attributes are named, or numbered"):
            asked: dict[Any, Any] = dict.fromkeys(itertools.chain(*lists)) | bins
        domain = self._release.domain
        groups = {
            axis: groups_of(domain.attributes[axis], self._covers[axis], wanted)
            for axis, wanted in zip(domain.axes(asked), asked.values(), strict=True)
        }
        return Groups(self._release, {**self._groups, **groups}, list(groups))

    def drill_down(self, name: str | int, bins: Any = None) -> dict[Any, Selection]:
        """Return one selection per cell of an attribute, or per bin, by name.

        Parameters
        ----------
        name : str or int
            The attribute.
        bins : iterable or mapping, optional
            Edges, levels, or a mapping from names to conditions.

        Returns
        -------
        dict[object, Selection]
            The selections.
        """
        axis = self._release.domain.axis(name)
        attribute = self._release.domain.attributes[axis]
        before, after = self._covers[:axis], self._covers[axis + 1 :]
        return {
            key: Selection(self._release, [*before, part, *after])
            for key, part in groups_of(attribute, self._covers[axis], bins)
        }

    def __repr__(self) -> str:
        domain = self._release.domain
        parts = [
            f"{domain.column_names[axis]} in cells "
            + ", ".join(f"[{low:g}, {high:g})" for low, high in cover)
            for axis, cover in enumerate(self._covers)
            if cover != everything(domain.attributes[axis])
        ]
        return f"Selection({'; '.join(parts) or 'everything'})"


def join_conditions(
    conditions: Mapping[Any, Any] | None, named: Mapping[str, Any]
) -> dict[Any, Any]:
    """Join conditions in a mapping and by keyword; refuse what is neither.

    Parameters
    ----------
    conditions : Mapping[object, object] or None
        A mapping, or None.
    named : Mapping[str, object]
        Conditions by keyword.

    Returns
    -------
    dict[object, object]
        Both together.

    Raises
    ------
    InputError
        If the first is something else.
    """
    if conditions is not None and not isinstance(conditions, Mapping):
        raise InputError(
            "conditions name attributes: where(age=slice(20, 40), sex='F'), or a "
            f"mapping such as {{'age': slice(20, 40)}}; received a "
            f"{type(conditions).__name__}"
        )
    return {**(conditions or {}), **named}


def _rows_kind(release: AnswerSource, bounds: Bounds) -> Scope:
    """Return what intervals hold: the truth where that of all their rows is known."""
    if bounds is _refuse_truth:
        return "population"
    bounds(0.95, source := RowSource())
    linear = release.interval_scope == "noise"
    holds = linear and all(
        release.holds_truth(workload).all() for workload, _ in source.listed
    )
    return "truth" if holds else "noise"


def _in_order(
    bounds: Bounds, order: IntArray, answers: FloatArray, confidence: float, of: Held
) -> FloatArray:
    return with_answers(bounds(as_confidence(confidence), of)[order], answers)


def _drawn(
    population: PopulationBounds,
    order: IntArray,
    answers: FloatArray | None,
    confidence: float,
    method: Method | None,
) -> FloatArray:
    """Return intervals of the population, widened to answers that estimate the same."""
    bounds = population(as_confidence(confidence), method)[order]
    return bounds if answers is None else with_answers(bounds, answers)


def _parts_in_order(
    parts: Callable[[], tuple[FloatArray, FloatArray]], order: IntArray
) -> tuple[FloatArray, FloatArray]:
    drawn, noise = parts()
    return drawn[order], noise[order]


def _given_values(attribute: Axis, values: Any) -> FloatArray:
    with malformed_as(InputError, "values must be numbers"):
        array = np.asarray(values, dtype=np.float64)
    if array.shape != (attribute.regular,) or not np.isfinite(array).all():
        raise DomainError(
            f"give one finite value for each of the {attribute.regular} cells of "
            f"{attribute.name or 'the attribute'}; received shape {array.shape}"
        )
    return array


def _refuse_extremes(word: str, name: str | int) -> NoReturn:
    raise WorkloadError(
        f"no {word} of {name!r}: a single record decides it, so noise would have to "
        "cover the whole range of values. Ask where(...).quantile(name, 0.99), or "
        "counts by group_by"
    )
