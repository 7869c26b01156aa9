"""Counts, sums and means over conditions on attributes, from a release alone.

    release.where(age=slice(20, 40), sex="F").mean("income")

Everything here is post-processing of public values, so it is free and may be asked as
often as wanted. A condition selects intervals of cells on each axis; their product is
one query, and grouping makes a grid of queries:

                 sex  F    M
    age  [20, 30)    .-----.-----.      counts   one row of the estimate's cells each
         [30, 40)    |-----|-----|      sums     the same rows, weighted by a public
                     '-----'-----'               value per cell, or part of a cell

Intervals of the truth allow for every place of a record inside its cell: the true sum
lies between the answers of two queries, in which each record counts with the least and
with the largest value that its cell, or the covered part of it, may hold.

A mean is a quotient: with S the sum
of (value - centre), the centre lying in the middle of the values asked for, and C the
count, S and C lie in their intervals together but for the stated probability (half of
it each), and every quotient of two such numbers lies in the interval given here, cut
to the range of the values. That is a proved bound, a little wide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_confidence
from blowfish_fast.data.axes import Axis
from blowfish_fast.data.cell_values import column_name
from blowfish_fast.data.predicates import (
    Cover,
    everything,
    groups_of,
    intersection,
    is_within,
    read_conditions,
)
from blowfish_fast.errors import DomainError, InputError, WorkloadError

from .grants import Scope
from .group_answers import Bounds, Claim, Claimed, Estimate, GroupedAnswers, Quotient
from .query_grid import Answering, Grid, ValueRows, value_rows
from .selected_quantiles import SelectedQuantiles


class Selection:
    """The records of a release that meet conditions; see ``release.where``.

    Counts and sums are estimates with intervals; conditions are refined with `where`,
    and broken down with `group_by` and `drill_down`.
    """

    def __init__(self, release: Answering, selected: Sequence[Cover]) -> None:
        self._release = release
        self._covers = tuple(selected)

    @classmethod
    def of(cls, release: Answering, conditions: Mapping[Any, Any]) -> Selection:
        """Select from a release."""
        domain = release.domain
        whole = cls(release, [everything(one) for one in domain.attributes])
        return whole.where(conditions)

    def where(
        self, conditions: Mapping[Any, Any] | None = None, /, **named: Any
    ) -> Selection:
        """Select further: everything must hold together."""
        domain = self._release.domain
        refined = list(self._covers)
        for axis, cover in read_conditions(domain, merged(conditions, named)).items():
            refined[axis] = intersection(refined[axis], cover)
            if not refined[axis]:
                raise InputError(
                    f"no value of {column_name(domain, axis)} meets all conditions on "
                    "it, so nothing is selected"
                )
        return Selection(self._release, refined)

    def count(self) -> Estimate:
        """Return the number of records."""
        return _Measures(self._release, self._single()).count()[()]

    def relative_count(self, of: Selection | None = None) -> Estimate:
        """Return the part of all records, or of another selection, that is selected.

        Its interval lets the two counts miss theirs with half the probability each;
        where the total is exact, only the first can.
        """
        return _Measures(self._release, self._single()).relative_count(of)[()]

    def sum(self, name: str | int, values: Any = None) -> Estimate:
        """Return the sum of an attribute over the records.

        Parameters
        ----------
        name : str or int
            A numeric attribute. Every record counts with a public value: the middle
            of its cell, or of the selected part of the cell; the cell number where
            there are no edges; the level where levels are numbers.
        values : array_like, optional
            Other public values, one per cell. Whole numbers want them: in a cell from
            20 to 25 the ages are 20 to 24, and 22 is their middle, not 22.5.
        """
        return _Measures(self._release, self._single()).sum(name, values)[()]

    def mean(self, name: str | int, values: Any = None) -> Estimate:
        """Return the mean of an attribute; see `sum` for what records count with.

        The estimate divides by at least one record. How the interval is proved stands
        at the head of ``olap``; it never leaves the range of the values.
        """
        return _Measures(self._release, self._single()).mean(name, values)[()]

    def quantile(self, name: str | int, q: float = 0.5) -> Estimate:
        """Return the value below which a part `q` of the records lies: the median.

        Parameters
        ----------
        name : str or int
            An attribute with edges, or with plain cell numbers.
        q : float
            From 0 to 1.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> people = bf.Domain.product(
        ...     bf.Domain.from_edges(range(0, 101, 10), name="age"),
        ...     bf.Domain.from_levels(["F", "M"], name="sex"))
        >>> release = bf.Laplace(
        ...     bf.policies.Full(people), bf.workloads.Identity(people), epsilon=1
        ... ).release([[30, 20]] * 10, rng=3)
        >>> bool(40 < release.where(sex="F").quantile("age") < 60)
        True
        >>> len(release.group_by("sex").quantile("age", 0.9))
        2
        """
        return _Measures(self._release, self._single()).quantile(name, q)[()]

    def group_by(self, *names: str | int | Sequence[str | int], **bins: Any) -> Groups:
        """Break the selection down by attributes.

        Parameters
        ----------
        names : str or int, or a list of them
            Attributes to break down by cell.
        bins
            Attributes with edges in values, ``age=[0, 18, 65]``, with the levels that
            are wanted, or with a mapping from names to conditions.
        """
        listed = [one for name in names for one in _each(name)]
        asked: dict[Any, Any] = {**dict.fromkeys(listed), **bins}
        domain = self._release.domain
        axes = domain.axes(asked)
        groups = {
            axis: groups_of(domain.attributes[axis], self._covers[axis], wanted)
            for axis, wanted in zip(axes, asked.values(), strict=True)
        }
        return Groups(self._release, self._covers, groups)

    def drill_down(self, name: str | int, bins: Any = None) -> dict[Any, Selection]:
        """Return one selection per cell of an attribute, or per bin, by name."""
        axis = self._release.domain.axis(name)
        attribute = self._release.domain.attributes[axis]
        return {
            key: Selection(
                self._release,
                [*self._covers[:axis], part, *self._covers[axis + 1 :]],
            )
            for key, part in groups_of(attribute, self._covers[axis], bins)
        }

    def min(self, name: str | int) -> NoReturn:
        """Refuse: see the error."""
        _refuse_extremes("minimum", name)

    def max(self, name: str | int) -> NoReturn:
        """Refuse: see the error."""
        _refuse_extremes("maximum", name)

    def _single(self) -> dict[int, list[tuple[Any, Cover]]]:
        return {axis: [((), cover)] for axis, cover in enumerate(self._covers)}

    def __repr__(self) -> str:
        domain = self._release.domain
        parts = [
            f"{column_name(domain, axis)} in cells "
            + ", ".join(f"[{low:g}, {high:g})" for low, high in cover)
            for axis, cover in enumerate(self._covers)
            if cover != everything(domain.attributes[axis])
        ]
        return f"Selection({'; '.join(parts) or 'everything'})"


class Groups:
    """A selection broken down by attributes; each answer comes once per group."""

    def __init__(
        self,
        release: Answering,
        selected: Sequence[Cover],
        groups: dict[int, list[tuple[Any, Cover]]],
    ) -> None:
        every = {
            axis: groups.get(axis, [((), cover)]) for axis, cover in enumerate(selected)
        }
        # Groups are named in the order in which they were asked for, and answered in
        # the order of the axes.
        self._measures = _Measures(release, every, list(groups))

    def count(self) -> GroupedAnswers:
        """Return the number of records of each group."""
        return self._measures.count()

    def relative_count(self, of: Selection | None = None) -> GroupedAnswers:
        """Return the part of all records, or of `of`, in each group."""
        return self._measures.relative_count(of)

    def sum(self, name: str | int, values: Any = None) -> GroupedAnswers:
        """Return the sum of an attribute in each group; see `Selection.sum`."""
        return self._measures.sum(name, values)

    def mean(self, name: str | int, values: Any = None) -> GroupedAnswers:
        """Return the mean of an attribute in each group; see `Selection.mean`."""
        return self._measures.mean(name, values)

    def quantile(self, name: str | int, q: float = 0.5) -> GroupedAnswers:
        """Return a quantile of an attribute in each group; see `Selection.quantile`."""
        return self._measures.quantile(name, q)

    def min(self, name: str | int) -> NoReturn:
        """Refuse: see the error."""
        _refuse_extremes("minimum", name)

    def max(self, name: str | int) -> NoReturn:
        """Refuse: see the error."""
        _refuse_extremes("maximum", name)


class _Measures:
    """Aggregates over a grid of groups."""

    def __init__(
        self,
        release: Answering,
        groups: dict[int, list[tuple[Any, Cover]]],
        named: Sequence[int] = (),
    ) -> None:
        axes = range(release.domain.ndim)
        self.release = release
        self.grid = Grid(release, [[part for _, part in groups[at]] for at in axes])
        self.groups = groups
        self.named = named

    def count(self) -> GroupedAnswers:
        counted = self.grid.count()
        return self._packed("count", counted.values, counted)

    def relative_count(self, of: Selection | None) -> GroupedAnswers:
        domain = self.release.domain
        whole = of or Selection.of(self.release, {})
        if whole._release is not self.release:
            raise InputError("both selections must come from one release")
        for axis, outer in enumerate(whole._covers):
            if not all(is_within(one, outer) for one in self.grid.axes[axis]):
                raise InputError(
                    "a part is counted relative to a selection that contains it; on "
                    f"{column_name(domain, axis)} it does not"
                )
        base = Grid(self.release, [[cover] for cover in whole._covers]).count()
        counted = self.grid.count()
        quotient = Quotient(
            counted.bounds, base.bounds, lowest=0.0, highest=1.0, centre=0.0
        )
        total = float(base.values[0])
        parts = counted.values / total if total > 0 else np.zeros(counted.values.size)
        claim = self._claim(quotient.bounds, counted, base)
        return self._packed("relative_count", np.clip(parts, 0.0, 1.0), claim)

    def sum(self, name: str | int, values: Any) -> GroupedAnswers:
        axis = self.release.domain.axis(name)
        found = self._value_rows(axis, values)
        summed = self.grid.weighted(axis, found.rows, found.ends())
        return self._packed("sum", summed.values, summed, axis)

    def mean(self, name: str | int, given: Any) -> GroupedAnswers:
        axis = self.release.domain.axis(name)
        found = self._value_rows(axis, given)
        lowest, highest = found.lowest, found.highest
        least, most = found.reach()
        centre = lowest + (highest - lowest) / 2
        from scipy import sparse

        shifted = found.rows - sparse.diags_array(centre) @ self.grid.rows[axis]
        summed = self.grid.weighted(axis, sparse.csr_array(shifted), found.ends(centre))
        counted = self.grid.count()
        low, high, middle = (
            self.grid.along(axis, one) for one in (lowest, highest, centre)
        )
        estimate = middle + summed.values / np.maximum(counted.values, 1.0)
        quotient = Quotient(
            summed.bounds,
            counted.bounds,
            lowest=low,
            highest=high,
            centre=middle,
            reach=(self.grid.along(axis, least), self.grid.along(axis, most)),
        )
        values = np.clip(estimate, low, high)
        claim = self._claim(quotient.bounds, summed, counted)
        return self._packed("mean", values, claim, axis)

    def quantile(self, name: str | int, q: float) -> GroupedAnswers:
        axis = self.release.domain.axis(name)
        found = SelectedQuantiles(self.grid, axis, q)
        return self._packed("quantile", found.values, found, axis)

    def _claim(self, bounds: Bounds, *parts: Claimed) -> Claim:
        """Return intervals that hold the truth where all their parts do."""
        return Claim(
            bounds, partial(_common_kind, parts), self.release.interval_sentence
        )

    def _value_rows(self, axis: int, values: Any) -> ValueRows:
        attribute = self.release.domain.attributes[axis]
        given = None if values is None else _given_values(attribute, values)
        return value_rows(attribute, self.grid.axes[axis], given)

    def _packed(
        self,
        measure: str,
        values: FloatArray,
        found: Claim | Claimed,
        of: int | None = None,
    ) -> GroupedAnswers:
        """Name the answers, in the order in which attributes were asked for."""
        claim = found if isinstance(found, Claim) else self._claim(found.bounds, found)
        domain = self.release.domain
        shape = [len(groups) for groups in self.grid.axes]
        rest = [axis for axis in range(domain.ndim) if axis not in self.named]
        order = (
            np.arange(values.size)
            .reshape(shape)
            .transpose([*self.named, *rest])
            .reshape(-1)
        )
        names = [[name for name, _ in self.groups[axis]] for axis in self.named]
        return GroupedAnswers(
            [column_name(domain, axis) for axis in self.named],
            names,
            measure,
            values[order],
            claim._replace(bounds=partial(_in_order, claim.bounds, order)),
            of=None if of is None else column_name(domain, of),
            seeded=not getattr(self.release, "private", True),
        )


def merged(
    conditions: Mapping[Any, Any] | None, named: Mapping[str, Any]
) -> dict[Any, Any]:
    """Join conditions in a mapping and by keyword; refuse what is neither."""
    if conditions is not None and not isinstance(conditions, Mapping):
        raise InputError(
            "conditions name attributes: where(age=slice(20, 40), sex='F'), or a "
            f"mapping such as {{'age': slice(20, 40)}}; received a "
            f"{type(conditions).__name__}"
        )
    return {**(conditions or {}), **named}


def _each(name: Any) -> Sequence[Any]:
    """Return a name, or the names of a list, one by one."""
    return list(name) if isinstance(name, list | tuple) else [name]


def _common_kind(parts: Sequence[Claimed]) -> Scope:
    return "truth" if all(one.kind() == "truth" for one in parts) else "noise"


def _in_order(
    bounds: Bounds, order: IntArray, confidence: float, of: Scope
) -> FloatArray:
    return bounds(as_confidence(confidence), of)[order]


def _given_values(attribute: Axis, values: Any) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"values must be numbers; received {values!r}") from None
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
