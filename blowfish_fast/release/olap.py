"""Counts, sums, means, variances and quantiles over conditions on attributes.

A condition selects intervals of cells on each axis; their product is one query,
grouping makes a grid of queries, and sums weight their cells by a public value each.
Intervals are proved in docs/proofs/olap.md.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_confidence, malformed_as
from blowfish_fast.data.axes import Axis
from blowfish_fast.data.predicates import (
    Cover,
    everything,
    groups_of,
    intersection,
    is_within,
    read_conditions,
)
from blowfish_fast.errors import DomainError, InputError, WorkloadError

from .grants import Scope, counted_records, with_answers
from .group_answers import (
    Bounds,
    Claim,
    Estimate,
    GroupedAnswers,
    Quotient,
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

    @abstractmethod
    def _hand_over(self, answers: GroupedAnswers) -> Answer:
        """Return the answers in the form in which they were asked for."""

    @cached_property
    def _grid(self) -> Grid:
        axes = range(self._release.domain.ndim)
        return Grid(
            self._release, [[part for _, part in self._groups[at]] for at in axes]
        )

    def count(self) -> Answer:
        """Return the number of records."""
        counted = self._grid.count()
        return self._answers("count", counted.values, counted.bounds)

    def relative_count(self, of: Selection | None = None) -> Answer:
        """Return the part of all records, or of another selection, that is selected."""
        whole = of or Selection.of(self._release, {})
        if whole._release is not self._release:
            raise InputError("both selections must come from one release")
        for axis, outer in enumerate(whole._covers):
            if not all(is_within(cover, outer) for cover in self._grid.axes[axis]):
                raise InputError(
                    "a part is counted relative to a selection that contains it; on "
                    f"{self._release.domain.column_names[axis]} it does not"
                )
        base, counted = whole._grid.count(), self._grid.count()
        quotient = Quotient(counted.bounds, base.bounds, (0.0, 1.0))
        total = float(base.values[0])
        parts = counted.values / total if total > 0 else np.zeros(counted.values.size)
        shares = np.clip(parts, 0.0, 1.0)
        return self._answers("relative_count", shares, quotient.bounds)

    def sum(self, name: str | int, values: Any = None) -> Answer:
        """Return the sum of an attribute over the records.

        Every record counts with a public value: the middle of its cell, or of the
        selected part of the cell; the cell number where there are no edges; the level
        where levels are numbers; or one of `values`. Whole numbers want them: in a cell
        from 20 to 25 the ages are 20 to 24, and 22 is their middle.

        Parameters
        ----------
        name : str or int
            The attribute.
        values : array-like of float, optional
            A public value for each cell.

        Returns
        -------
        Estimate or GroupedAnswers
            The sum.
        """
        axis, value_rows = self._value_rows(name, values)
        summed = self._grid.value_sums(axis, value_rows.rows(), value_rows.ends())
        return self._answers("sum", summed.values, summed.bounds, axis)

    def mean(self, name: str | int, values: Any = None) -> Answer:
        """Return the mean of an attribute; see `sum` for what records count with.

        Parameters
        ----------
        name : str or int
            The attribute.
        values : array-like of float, optional
            A public value for each cell.

        Returns
        -------
        Estimate or GroupedAnswers
            The mean.
        """
        axis, value_rows = self._value_rows(name, values)
        along = partial(self._grid.along, axis)
        summed, counted = self._moment(axis, value_rows, 1), self._grid.count()
        low, high = along(value_rows.lowest), along(value_rows.highest)
        centre = along(value_rows.centre)
        estimate = centre + summed.values / np.maximum(counted.values, 1.0)
        least, most = map(along, value_rows.reach())
        quotient = Quotient(
            summed.bounds, counted.bounds, (low, high), centre, (least, most)
        )
        means = np.clip(estimate, low, high)
        width = value_rows.widest or None
        return self._answers("mean", means, quotient.bounds, axis, width)

    def variance(self, name: str | int, values: Any = None) -> Answer:
        """Return the variance of an attribute, of records that count as in `sum`.

        Parameters
        ----------
        name : str or int
            The attribute.
        values : array-like of float, optional
            A public value for each cell.

        Returns
        -------
        Estimate or GroupedAnswers
            The variance.
        """
        axis, spread, bounds = self._variance(name, values)
        return self._answers("variance", spread, bounds, axis)

    def std(self, name: str | int, values: Any = None) -> Answer:
        """Return the standard deviation of an attribute: the root of `variance`.

        Parameters
        ----------
        name : str or int
            The attribute.
        values : array-like of float, optional
            A public value for each cell.

        Returns
        -------
        Estimate or GroupedAnswers
            The standard deviation.
        """
        axis, spread, squared = self._variance(name, values)

        def bounds(confidence: float, of: Held) -> FloatArray:
            root: FloatArray = np.sqrt(squared(confidence, of))
            return root

        return self._answers("std", np.sqrt(spread), bounds, axis)

    def _variance(self, name: str | int, values: Any) -> tuple[int, FloatArray, Bounds]:
        axis, rows = self._value_rows(name, values)
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
        return axis, spread, bounds

    def quantile(self, name: str | int, q: float = 0.5) -> Answer:
        """Return the value below which a part of the records lies.

        Dates count their unit since 1970: days, hours; tables show them as dates.

        Parameters
        ----------
        name : str or int
            The attribute.
        q : float, default 0.5
            The part, from 0 to 1.

        Returns
        -------
        Estimate or GroupedAnswers
            The value.
        """
        axis = self._release.domain.axis(name)
        quantiles = SelectedQuantiles(self._grid, axis, q)
        return self._answers("quantile", quantiles.values, quantiles.bounds, axis)

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

    def _value_rows(self, name: str | int, values: Any) -> tuple[int, ValueRows]:
        axis = self._release.domain.axis(name)
        attribute = self._release.domain.attributes[axis]
        cell_values = None if values is None else _given_values(attribute, values)
        return axis, value_rows(attribute, self._grid.axes[axis], cell_values)

    def _answers(
        self,
        measure: str,
        values: FloatArray,
        bounds: Bounds,
        of: int | None = None,
        cell_width: float | None = None,
    ) -> Answer:
        """Name the answers, in the order in which attributes were asked for."""
        release, named = self._release, self._named
        domain = release.domain
        shape = [len(groups) for groups in self._grid.axes]
        rest = (axis for axis in range(domain.ndim) if axis not in named)
        axes: list[int] = [*named, *rest]
        order = np.arange(values.size).reshape(shape).transpose(axes).reshape(-1)
        ordered = values[order]
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
            ),
            of=None if of is None else domain.column_names[of],
            seeded=not getattr(release, "private", True),
            unit=None if of is None else domain.attributes[of].unit,
            cell_width=cell_width,
        )
        return self._hand_over(answers)


class Groups(Questions[GroupedAnswers]):
    """A selection broken down by attributes; each answer comes once per group."""

    def _hand_over(self, answers: GroupedAnswers) -> GroupedAnswers:
        return answers


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
