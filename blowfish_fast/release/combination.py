"""Releases added up, set against each other, or averaged: all of it post-processing."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray
from blowfish_fast._support.validation import as_confidence, quoted
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import DomainError, InputError, PolicyError
from blowfish_fast.measure.noise import Spread
from blowfish_fast.measure.tails import noise_half_widths
from blowfish_fast.workloads import Identity, Workload

from .grants import (
    Scope,
    Tabular,
    counted_records,
    counts_records,
    truth_sentence,
    with_answers,
)
from .guarantee import Guarantee

if TYPE_CHECKING:
    from .olap import Groups, Selection

Part = Any
"""A `Release`, whose module uses this one."""

Kind = Literal["sum", "sum of different people", "difference", "average", "series"]
"""What was made of the parts; its budget follows from it."""

NOTES: dict[Kind, str] = {
    "sum": "Several releases were added up; their budgets add up for whoever is in all "
    "of them.",
    "sum of different people": "Several releases were added up, about different people "
    "each: nobody is in two of them.",
    "difference": "Releases were set against each other; their budgets add up for "
    "whoever is in all of them.",
    "average": "Several releases of the same people were averaged; their budgets add "
    "up.",
    "series": "Releases of a series were weighed and added up.",
}


class CombinedRelease(Tabular):
    """Independent releases over the same cells, added up with weights.

    Budgets add up for ``a + b``, ``a - b`` and the average ``a.combine(b)``, since the
    same person may be in both releases. Only ``a.combine(b, disjoint=True)`` costs no
    more than the dearer one: that nobody is in both is the caller's promise.

    Parameters
    ----------
    parts : Sequence[Part]
        The releases.
    weights : Sequence[float]
        The weight of each.
    kind : {"sum", "sum of different people", "difference", "average", "series"}
        What was made of the parts. The budget of the combination follows from it: it is
        the largest one of the parts for different people, and the sum otherwise.

    Attributes
    ----------
    parts : tuple of Release
        What was combined.
    weights : float64, one per part
        What each part is multiplied by.
    kind : str
        What was made of the parts.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.Domain.from_edges([0, 20, 65, 120], name="age")
    >>> cells = bf.workloads.Identity(ages)
    >>> laplace = bf.Laplace(bf.policies.AddRemove(ages), cells, epsilon=1)
    >>> north, south = laplace.release([9, 40, 7], 1), laplace.release([5, 22, 8], 2)
    >>> both = north.combine(south, disjoint=True)
    >>> both.estimate.shape, float(both.guarantee.epsilon), both.kind
    ((3,), 1.0, 'sum of different people')
    >>> float((north + south).guarantee.epsilon)
    2.0
    >>> change = south - north
    >>> change.intervals(cells, confidence=0.9).shape, float(change.guarantee.epsilon)
    ((3, 2), 2.0)
    >>> again = laplace.at_epsilon(2).release([9, 40, 7], 3)
    >>> north.combine(again).weights.round(2).tolist()
    [0.16, 0.84]
    """

    interval_scope = "noise"

    def __init__(
        self, parts: Sequence[Part], weights: Sequence[float], kind: Kind
    ) -> None:
        self.parts = tuple(parts)
        self.weights: FloatArray = np.asarray(weights, dtype=np.float64)
        self.kind = kind
        _check_parts(self.parts)
        self.domain: Domain = self.parts[0].domain
        self.estimate: FloatArray = np.tensordot(
            self.weights, np.stack([part.estimate for part in self.parts]), axes=1
        )
        self.estimate.flags.writeable = False

    @property
    def private(self) -> bool:
        """Whether the noise of every part was secure."""
        return all(part.private for part in self.parts)

    @property
    def mechanism(self) -> str:
        """The mechanism of all parts, or "several"."""
        names = {str(part.mechanism) for part in self.parts}
        return names.pop() if len(names) == 1 else "several"

    @property
    def version(self) -> str:
        """The version of the package that made the last part."""
        return str(self.parts[-1].version)

    @property
    def details(self) -> Mapping[str, Any]:
        """What the last part says of how it was made."""
        details: Mapping[str, Any] = self.parts[-1].details
        return details

    @property
    def measurements(self) -> tuple[Any, ...]:
        """What was measured in all parts, one after the other."""
        return tuple(
            measurement for part in self.parts for measurement in part.measurements
        )

    @property
    def counts_people(self) -> bool:
        """Whether it counts records: a difference does not."""
        return bool((self.weights >= 0.0).all())

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to whoever is in one part, or in several."""
        budgets = [part.guarantee.budget for part in self.parts]
        join = max if self.kind == "sum of different people" else operator.add
        together = functools.reduce(join, budgets)
        notes = {note: None for part in self.parts for note in part.guarantee.notes}
        first: Guarantee = self.parts[0].guarantee
        return replace(
            first,
            budget=together,
            secure=self.private,
            notes=(*notes, NOTES[self.kind]),
        )

    def answer(self, workload: Workload) -> AnyArray:
        """Return one estimated answer per query."""
        answers = [part.answer(workload) for part in self.parts]
        summed: AnyArray = np.tensordot(self.weights, np.stack(answers), axes=1)
        return summed

    def standard_errors(self, workload: Workload) -> FloatArray:
        """Return the exact standard deviation of the noise in each linear answer."""
        return np.sqrt(self._spread(workload).variance)

    def holds_truth(self, workload: Workload) -> BoolArray:
        """Mark the queries whose intervals hold the true answer."""
        marks = [part.holds_truth(workload) for part in self.parts]
        granted: BoolArray = np.logical_and.reduce(marks)
        return granted

    def interval_kind(self, workload: Workload, confidence: float = 0.95) -> Scope:
        """Return what `intervals` are of by default.

        Parameters
        ----------
        workload : Workload
            The queries.
        confidence : float, default 0.95
            How surely an interval has to hold.

        Returns
        -------
        "truth" or "noise"
            What they hold.
        """
        return "truth" if self.holds_truth(workload).all() else "noise"

    def intervals(
        self,
        workload: Workload,
        confidence: float = 0.95,
        *,
        of: Scope | None = None,
        together: bool = False,
    ) -> FloatArray:
        """Return intervals that hold the answers too, as those of a release do.

        Parameters
        ----------
        workload : Workload
            The queries.
        confidence : float, default 0.95
            How surely each interval holds, from 0 to 1.
        of : Scope, optional
            "truth" refuses where only the noise is known; "noise" asks for the noise
            alone. By default what is known is returned, with a warning where that is
            the noise.
        together : bool, default False
            Whether all intervals hold at once.

        Returns
        -------
        ndarray of float64, shape (queries, 2)
            The lower and the upper end of each.

        Raises
        ------
        IntervalError
            If the truth was asked for, and is not known.
        """
        miss = 1.0 - as_confidence(confidence)
        if together:
            miss /= max(workload.queries, 1)
        for part in self.parts:
            part._check(workload)
        granted = [part._demand(of, workload) for part in self.parts]
        half = noise_half_widths(self._spread(workload), miss)
        centre = np.zeros(half.size)
        for weight, part in zip(self.weights, self.parts, strict=True):
            centre += weight * workload.answer_again(*part._linear_sums).reshape(-1)
        bounds = np.column_stack([centre - half, centre + half])
        if all(granted) and self.counts_people and counts_records(workload):
            np.maximum(bounds, 0.0, out=bounds)
        return with_answers(bounds, self.answer(workload))

    def interval_sentence(
        self,
        kind: Scope,
        confidence: float = 0.95,
        workload: Workload | None = None,
    ) -> str:
        """Say what intervals of a kind hold, as the part does that knows least.

        Parameters
        ----------
        kind : Scope
            What they hold.
        confidence : float, default 0.95
            How surely each interval holds.
        workload : Workload, optional
            The queries; certificates of parts say nothing of what is made of them.

        Returns
        -------
        str
            The sentence.
        """
        if kind == "truth" and not self.counts_people:
            return truth_sentence(
                confidence, counted_records(self), "true difference of counts"
            )
        least = min(
            self.parts, key=lambda part: (part.fresh, part._linear().buckets.count)
        )
        return str(least.interval_sentence(kind, confidence))

    def where(
        self, conditions: Mapping[Any, Any] | None = None, /, **named: Any
    ) -> Selection:
        """Select records of sums and averages, as `HistogramRelease.where` does.

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
            If this is a difference, which counts no records.
        """
        if not self.counts_people:
            raise InputError(
                "records are selected from sums and averages of releases",
                received="a difference, which counts no records",
                way_out="Ask where(...) of each release, and subtract the answers",
                code="difference_counts_no_records",
            )
        from .olap import Selection, join_conditions

        return Selection.of(self, join_conditions(conditions, named))

    def group_by(self, *names: Any, **bins: Any) -> Groups:
        """Break all records down by attributes: ``where().group_by(...)`` in short.

        Parameters
        ----------
        *names : str or int
            Attributes that are broken down cell by cell.
        **bins : object
            Attributes with edges, levels, or a mapping from names to conditions.

        Returns
        -------
        Groups
            The groups.
        """
        return self.where().group_by(*names, **bins)

    def _spread(self, workload: Workload) -> Spread:
        spreads = [item._spread(workload) for item in self.parts]
        return weighed_spread(self.weights, spreads)

    def __add__(self, other: Any) -> CombinedRelease:
        """Add a release; its budget is added, too."""
        return add(self, other)

    def __repr__(self) -> str:
        terms = ", ".join(f"{weight:g}" for weight in self.weights)
        weighed = f" with weights {terms}" if self.kind == "average" else ""
        return (
            f"CombinedRelease({self.kind}: {len(self.parts)} releases{weighed}, "
            f"{self.guarantee.spent})"
        )


def weighed_spread(weights: FloatArray, spreads: Sequence[Spread]) -> Spread:
    """Return the law of a weighted sum of independent noises.

    Parameters
    ----------
    weights : float64 (parts,)
        The weight of each part.
    spreads : sequence of Spread
        The laws of the parts.

    Returns
    -------
    Spread
        The law of their sum, for each query.
    """

    def weigh(name: str) -> FloatArray:
        listed = np.stack([getattr(item, name) for item in spreads])
        return np.asarray(weights**2 @ listed)

    largest = np.stack([item.largest for item in spreads])
    return Spread(
        weigh("variance"),
        weigh("square"),
        (np.abs(weights)[:, None] * largest).max(axis=0),
        weigh("steps"),
        np.full(largest.shape[1], np.nan),
        min(item.least for item in spreads),
        sum(item.gaussian_rows for item in spreads),
    )


def add(augend: Part, addend: Any) -> CombinedRelease:
    """Return the sum of two releases; their budgets add up.

    Parameters
    ----------
    augend : Part
        A release, or a sum of releases.
    addend : object
        Another one.

    Returns
    -------
    CombinedRelease
        The sum.

    Raises
    ------
    InputError
        One of the two is no release, or a difference, an average, or a sum of
        different people.
    """
    parts: list[Part] = []
    for part in (augend, addend):
        if isinstance(part, CombinedRelease) and part.kind == "sum":
            parts += part.parts
        else:
            parts.append(_as_release(part))
    return CombinedRelease(parts, np.ones(len(parts)).tolist(), "sum")


def add_disjoint(releases: Sequence[Part]) -> CombinedRelease:
    """Return the sum of releases about different people, which the caller promises."""
    parts = [_as_release(release) for release in releases]
    return CombinedRelease(
        parts, np.ones(len(parts)).tolist(), "sum of different people"
    )


def subtract(minuend: Part, subtrahend: Any) -> CombinedRelease:
    """Return the difference of two releases; their budgets add up.

    Parameters
    ----------
    minuend : Part
        A release.
    subtrahend : object
        What is taken from it.

    Returns
    -------
    CombinedRelease
        The difference.
    """
    return CombinedRelease(
        [minuend, _as_release(subtrahend)], [1.0, -1.0], "difference"
    )


def combine(
    releases: Sequence[Part], workload: Workload | None = None
) -> CombinedRelease:
    """Return the average of releases of the same people with the least variance.

    Weights are inverse to the public variances of the noise, summed over the workload.

    Parameters
    ----------
    releases : Sequence[Part]
        The releases.
    workload : Workload, optional
        The queries whose variance is least; all cells by default.

    Returns
    -------
    CombinedRelease
        The average.

    Raises
    ------
    InputError
        If the releases lie over different cells.
    """
    parts = [_as_release(release) for release in releases]
    _check_parts(parts)
    asked = Identity(parts[0].domain) if workload is None else workload
    totals = np.array(
        [(release.standard_errors(asked) ** 2).sum() for release in parts]
    )
    exact = totals == 0
    precision = exact.astype(float) if exact.any() else 1.0 / totals
    weights = precision / precision.sum()
    return CombinedRelease(parts, weights.tolist(), "average")


def _as_release(part: Any) -> Part:
    release = isinstance(getattr(part, "guarantee", None), Guarantee) and isinstance(
        getattr(part, "estimate", None), np.ndarray
    )
    if not release or isinstance(part, CombinedRelease):
        raise InputError(
            "releases of histograms are combined with each other; received "
            f"{quoted(part)}",
            way_out="Combine all of them at once: a.combine(b, c, disjoint=True) adds "
            "up parts about different people",
        )
    return part


def _check_parts(parts: Sequence[Part]) -> None:
    """Refuse other cells, policies or currencies, and the same noise twice."""
    first = parts[0]
    mine = first.guarantee
    for at, part in enumerate(parts[1:], 1):
        theirs = part.guarantee
        if part.domain != first.domain:
            raise DomainError(
                "releases are combined cell by cell",
                received=f"{first.domain!r} and {part.domain!r}",
            )
        if theirs.policy != mine.policy:
            raise PolicyError(
                "releases are combined under one policy, for budgets under different "
                "ones do not add up",
                received=f"{mine!r} and {theirs!r}",
            )
        if theirs.budget.power != mine.budget.power:
            raise PolicyError(
                "releases paid in epsilon and in rho are not combined",
                received=f"{mine.spent} and {theirs.spent}",
            )
        if any(_same_noise(part, other) for other in parts[:at]):
            raise InputError(
                "a release is combined with others, whose noise is independent of its "
                f"own; received {part!r} twice"
            )


def _same_noise(part: Part, other: Part) -> bool:
    if part is other or (part.identity and other.identity):
        return bool(part.identity == other.identity)
    # Seeded experiments have none: equal numbers are the same noise.
    pairs = list(zip(part.measurements, other.measurements, strict=False))
    return bool(pairs) and all(
        np.array_equal(mine.noisy, theirs.noisy)
        and np.array_equal(mine.scales.rates, theirs.scales.rates)
        and bool(mine.scales.measured.any())
        for mine, theirs in pairs
    )
