"""From a question to bins, policy and queries over them, without the whole table.

Only the attributes that a question asks for, or filters by, are touched. Each is cut
into bins of its own; the product of these cuts gives the coarse cells:

    age, in bins of 20, filtered to [20, 60)     sex, only filtered: "f"

        [20, 40)  [40, 60) | fails  missing          f | fails

        4 x 2 = 8 coarse cells; shown: (f, [20, 40)) and (f, [40, 60))

`Layout.labels` then joins all coarse cells that fail a filter into one last bin, so
this question has three bins. Records that fail a filter, missing values and values
outside keep bins: dropping them would make a private total look public and hide edges
of the policy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast.data.axes import MISSING, OUTSIDE, Axis, as_moments, cut_values
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.predicates import cell_name
from blowfish_fast.data.sql_cells import Stretch
from blowfish_fast.errors import DomainError, QuestionError, SizeError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.policies import (
    AddRemove,
    Full,
    PerPerson,
    Policy,
    Product,
    TablePolicy,
    WithAbsent,
)
from blowfish_fast.workloads import (
    Identity,
    Linear,
    Prefixes,
    Ranges,
    Rectangles,
    Workload,
)

from .catalog import AttributeSpec, TableSpec
from .questions import (
    AmountQuestion,
    Filter,
    Question,
    RangesQuestion,
    RectanglesQuestion,
    ShareQuestion,
)

MOST_BINS = 2**22
"""Bins of one question."""
MOST_COVERED = 2**24
"""Bins of all boxes of one question together, where each box is listed bin by bin."""
ORDERED = ("cumulative", "quantiles", "ranges")
"""Kinds of questions that need an order."""
ALL_RECORDS = {
    "attribute": "all records",
    "kind": "category",
    "edges": ["all"],
    "bins": 1,
}
"""The axis of a sum, mean or share that is not taken by groups."""


class AxisBins(NamedTuple):
    """How one attribute is cut for a question.

    Ages from 0 to 70 lie in cells of 10 years. Asked for are bins of 20 years among the
    ages from 10 to 50: bins 0 and 1 are shown, bin 2 holds what the filter leaves out,
    and bin 3 the missing values.

        age     0-  10-  20-  30-  40-  50-  60-  missing
        label    2    0    0    1    1    2    2        3

    Attributes
    ----------
    spec : AttributeSpec
        The attribute as the table describes it.
    labels : ndarray of int64, shape (cells,)
        The bin of each cell. Extra cells, for missing values and for values outside,
        come after the others.
    bins : int
        How many bins there are, those that are not shown included.
    asked : int
        How many bins are shown: they come first.
    fails : ndarray of bool, shape (bins,)
        The bins whose records do not pass the question's filter on this attribute.
    edges : tuple
        The borders of the shown bins, in values, or the names of their levels. It is
        empty for an attribute that is not shown.
    stretch : Stretch
        The same cut in closed form, for ordered attributes.
    missing : bool, default False
        Whether the last bin that is shown holds the missing values.
    """

    spec: AttributeSpec
    labels: IntArray
    bins: int
    asked: int
    fails: AnyArray
    edges: tuple[Any, ...]
    stretch: Stretch
    missing: bool = False


class AttributeInBins(NamedTuple):
    """All cells of one attribute, and the bin that each lies in.

    Attributes
    ----------
    attribute : Axis
        The attribute.
    bins : ndarray of int64, shape (cells,)
        The bin of each cell. A bin holds neighbouring cells, or one extra cell.

    Examples
    --------
    >>> ages = Axis(4, "age", cuts=(0.0, 20.0, 40.0, 60.0), extras=(MISSING,))
    >>> in_bins = AttributeInBins(ages, np.array([0, 0, 1, 2]))
    >>> in_bins.name_of(0), in_bins.name_of(2), in_bins.bin_outside
    ((0.0, 40.0), '(missing)', None)
    """

    attribute: Axis
    bins: IntArray

    @property
    def bin_outside(self) -> int | None:
        """The bin of values outside all cells; None where none has such a bin."""
        cell = self.attribute.extra_cell(OUTSIDE)
        return None if cell is None else int(self.bins[cell])

    def name_of(self, place: int) -> Any:
        """Return what a bin stands for: a level, a pair of edges, or what is missing.

        Parameters
        ----------
        place : int
            The number of the bin.

        Returns
        -------
        object
            The name of its one cell, or the edges of the first and the last of its
            cells.
        """
        cells = np.flatnonzero(self.bins == place)
        first = cell_name(self.attribute, int(cells[0]))
        last = cell_name(self.attribute, int(cells[-1]))
        return (first[0], last[1]) if isinstance(first, tuple) else first


@dataclass(frozen=True)
class Layout:
    """The bins of a question, and everything that is public about them.

    A coarse cell is a cell of the product of all axes.

    Attributes
    ----------
    table : TableSpec
        The table as it is described.
    question : Question
        The question, with its cost.
    axes : tuple of AxisBins
        The attributes that the question touches. Those that are asked for come first.
        For a sum, mean or share these are the groups, and the next axis is the
        attribute that is added up, bin by bin (see ``amounts``). The others are only
        filtered by.
    shown : int
        How many of the axes are asked for.
    """

    table: TableSpec
    question: Question
    axes: tuple[AxisBins, ...]
    shown: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Bins of each touched attribute."""
        return tuple(axis.bins for axis in self.axes)

    @property
    def coarse(self) -> int:
        """Number of coarse cells, the product of `shape`."""
        return math.prod(self.shape)

    @cached_property
    def labels(self) -> IntArray | None:
        """Final bin of each coarse cell; None where the coarse cells are the bins.

        Bins that are shown come first, in C order; all that fails a filter is the last.
        Where strata or classes of weights are shown, it is one bin for each of them:
        who knows how many were drawn of each can speak of the population.
        """
        fails = np.zeros(self.shape, dtype=np.bool_)
        hidden = np.zeros(self.shape, dtype=np.bool_)
        for at, axis in enumerate(self.axes):
            along = [1] * len(self.axes)
            along[at] = axis.bins
            fails |= axis.fails.reshape(along)
            if at < self.shown:
                hidden |= (np.arange(axis.bins) >= axis.asked).reshape(along)
        fails, hidden = fails.reshape(-1), (hidden & ~fails).reshape(-1)
        plain = ~(fails | hidden)
        if plain.all():
            return None
        labels = np.empty(plain.size, dtype=np.int64)
        labels[plain] = np.arange(plain.sum())
        labels[hidden] = plain.sum() + np.arange(hidden.sum())
        _, stratum = np.unique(self.strata[fails], return_inverse=True)
        labels[fails] = plain.sum() + hidden.sum() + stratum
        return labels

    @cached_property
    def strata(self) -> IntArray:
        """The stratum, or class of weights, of each coarse cell; -1 where it has none.

        All are -1 unless the table is a sample by an attribute that is shown.
        """
        strata = np.full(self.coarse, -1, dtype=np.int64)
        at = self.strata_axis
        if at is None:
            return strata
        axis = self.axes[at]
        (attribute,) = axis.spec.domain().attributes
        of_bin = np.full(axis.bins, -1, dtype=np.int64)
        cells = np.arange(attribute.regular)
        shown = axis.labels[cells] < axis.asked
        of_bin[axis.labels[cells[shown]]] = cells[shown]
        along = [1] * len(self.axes)
        along[at] = axis.bins
        return np.broadcast_to(of_bin.reshape(along), self.shape).reshape(-1)

    @property
    def strata_axis(self) -> int | None:
        """Which of the shown axes has the strata or weights of the sample, by cell."""
        sample = self.table.sample
        if sample is None or sample.column is None:
            return None
        for at, axis in enumerate(self.axes[: self.shown]):
            if axis.spec.name == sample.column and self.question.widths[at] == 1:
                return at
        return None

    @property
    def bins(self) -> int:
        """Number of bins in all."""
        return self.coarse if self.labels is None else int(self.labels.max()) + 1

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The question as plain data."""
        return self.question.model_dump(mode="json")

    @cached_property
    def described(self) -> list[dict[str, Any]]:
        """Name, kind and edges (or levels) of the bins that are shown."""
        return [
            {
                "attribute": axis.spec.name,
                "kind": axis.spec.kind,
                "edges": list(axis.edges),
                "bins": axis.asked,
                **({"unit": axis.spec.unit} if axis.spec.unit else {}),
                **({"missing": True} if axis.missing else {}),
                **({"districts": True} if axis.spec.districts else {}),
            }
            for axis in self.axes[: self.shown]
        ] or [ALL_RECORDS]

    @cached_property
    def bins_of_one(self) -> AttributeInBins | None:
        """The one attribute that the bins are cut from; None unless it is all of one.

        The bins then hold every cell of the attribute, and nothing is filtered out.
        """
        if len(self.axes) != 1 or self.axes[0].fails.any():
            return None
        (axis,) = self.axes
        (attribute,) = axis.spec.domain().attributes
        places = np.arange(axis.bins) if self.labels is None else self.labels
        return AttributeInBins(attribute, places[axis.labels])

    @cached_property
    def _promises(self) -> dict[tuple[int, Fraction], str]:
        return {}

    def promise(self, budget: Budget) -> str:
        """Return what stays indistinguishable, in words that are worked out once.

        Parameters
        ----------
        budget : Budget
            Chooses the currency of the sentence.

        Returns
        -------
        str
            What `TableSpec.promise` says.
        """
        paid = budget.power, budget.amount
        if paid not in self._promises:
            self._promises[paid] = self.table.promise(budget)
        return self._promises[paid]

    @cached_property
    def policy_words(self) -> str:
        """The promise of the table, in its own units, not in the question's bins."""
        return self.table.promise()

    @property
    def asked_shape(self) -> tuple[int, ...]:
        """Bins that are shown, per attribute; one where all records are one group."""
        return tuple(axis.asked for axis in self.axes[: self.shown]) or (1,)

    def policy(self, table: TablePolicy | PerPerson) -> Policy:
        """Return the policy on the bins; it descends from the table's.

        Parameters
        ----------
        table : TablePolicy or PerPerson
            The policy of the whole table.

        Returns
        -------
        Policy
            Two bins are joined if the table's policy joins a cell of one with a
            cell of the other.
        """
        names = [axis.spec.name for axis in self.axes]
        seen = table.through(names)
        order = [seen.domain.names.index(name) for name in names]
        coarse = self._coarse_policy(seen, order)
        if self.labels is None:
            return coarse
        return coarse.project(self.labels)

    def _coarse_policy(self, seen: Policy, order: list[int]) -> Policy:
        """Project each factor by itself: the quotient of a product is their product."""
        domain = Domain(self.shape, [axis.spec.name for axis in self.axes])
        coarse: Policy
        if isinstance(seen, PerPerson):
            inside = self._coarse_policy(seen.base, order)
            coarse = PerPerson(inside, seen.at_most, person=seen.person)
        elif isinstance(seen, WithAbsent):
            inside = self._coarse_policy(seen.base, order)
            coarse = WithAbsent(inside, seen.absent_length)
        elif isinstance(seen, Full | AddRemove):
            coarse = type(seen)(domain)
        elif isinstance(seen, Product):
            factors = [
                seen.factors[at].project(axis.labels)
                for at, axis in zip(order, self.axes, strict=True)
            ]
            coarse = Product(*factors, domain=domain)
        else:
            coarse = seen.project(self.axes[0].labels)
        return coarse.derive_from(seen, coarse.buckets)

    def workload(self, domain: Domain) -> Workload:
        """Return the queries over the bins of `domain`.

        Parameters
        ----------
        domain : Domain
            The domain of the policy on the bins.

        Returns
        -------
        Workload
            One query per shown bin, running total, stretch or box. Of sums, means and
            shares it is `amounts.workload_of`.

        Raises
        ------
        SizeError
            If boxes have to be listed bin by bin and hold more than 2^24 together.
        """
        question = self.question
        if isinstance(question, RangesQuestion):
            lows, highs = self.boxes()
            return Ranges(domain, lows[:, 0], highs[:, 0])
        if isinstance(question, RectanglesQuestion):
            return self._rectangles(domain)
        shown = math.prod(self.asked_shape)
        running = question.kind in ("cumulative", "quantiles")
        if domain.size == shown:
            return Prefixes(domain) if running else Identity(domain)
        bins = np.arange(shown)
        return Ranges(domain, np.zeros_like(bins) if running else bins, bins + 1)

    def boxes(self) -> tuple[IntArray, IntArray]:
        """Return the first bins and the ends of stated stretches or rectangles.

        Returns
        -------
        tuple of two (boxes, axes) int64
            The first bin of each side, and the bin after its last.

        Raises
        ------
        QuestionError
            If a side does not begin and end where bins do.
        """
        return self._boxes

    @cached_property
    def _boxes(self) -> tuple[IntArray, IntArray]:
        question = self.question
        if isinstance(question, RectanglesQuestion):
            boxes = question.rectangles
        else:
            assert isinstance(question, RangesQuestion)
            boxes = [[stretch] for stretch in question.ranges]
        stated = zip(self.axes, zip(*boxes, strict=True), strict=False)
        sides = np.stack([_stretches(axis, pairs) for axis, pairs in stated], axis=1)
        return sides[:, :, 0], sides[:, :, 1]

    def _rectangles(self, domain: Domain) -> Workload:
        lows, highs = self.boxes()
        shape = self.asked_shape
        if domain.shape == shape:
            return Rectangles(domain, lows, highs)
        covered = int((highs - lows).prod(axis=1).sum())
        if covered > MOST_COVERED:
            raise SizeError(
                f"the boxes hold {covered:,} bins together; at most 2^24 = "
                f"{MOST_COVERED:,} are listed. Use fewer boxes, or a coarser "
                "granularity"
            )
        from scipy import sparse

        # Bins beyond the grid stay out of every box.
        grid = np.arange(math.prod(shape)).reshape(shape)
        sides = zip(lows, highs, strict=True)
        inside = [grid[tuple(map(slice, *corners))].reshape(-1) for corners in sides]
        pointers = np.cumsum([0, *map(len, inside)])
        flat = np.concatenate(inside)
        matrix = sparse.csr_array(
            (np.ones(flat.size), flat, pointers), shape=(len(lows), domain.size)
        )
        return Linear(domain, matrix)


def lay_out(table: TableSpec, question: Question) -> Layout:
    """Return the bins of a question.

    Parameters
    ----------
    table : TableSpec
        The described table.
    question : Question
        What is asked, with its filters.

    Returns
    -------
    Layout
        The bins of the attributes that are asked for or filtered by.

    Raises
    ------
    QuestionError
        If widths, filters or stretches do not fit the attributes.
    SizeError
        If there would be more than 2^22 coarse cells.
    """
    filters = {stated.attribute: stated for stated in question.filters}
    added = question if isinstance(question, AmountQuestion | ShareQuestion) else None
    values = [] if added is None else [added.attribute]
    for name in (*question.axes, *values, *filters):
        if table.attribute(name).words is not None:
            raise QuestionError(
                f"{name!r} holds words that nobody listed; ask which are frequent: "
                f'{{"kind": "frequent", "attribute": {name!r}}}, with a budget'
            )
    in_row = added is None and bool(getattr(question, "missing", False))
    axes = [
        _asked_axis(table.attribute(name), width, filters.pop(name, None), in_row)
        for name, width in zip(question.axes, question.widths, strict=True)
    ]
    if in_row and not any(axis.spec.missing == "cell" for axis in axes):
        raise QuestionError(
            "no value can be missing here, so there is no row for it; leave missing out"
        )
    shown = len(axes)
    if added is not None:
        axes.append(_added_axis(table, added, filters.pop(added.attribute, None)))
    if axes[0].spec.kind == "category" and question.kind in ORDERED:
        raise QuestionError(
            f"{question.kind} needs an ordered attribute; {axes[0].spec.name!r} is a "
            "category"
        )
    axes += [
        _filter_axis(table.attribute(stated.attribute), stated)
        for stated in filters.values()
    ]
    layout = Layout(table, question, tuple(axes), shown)
    if layout.coarse > MOST_BINS:
        raise SizeError(
            f"the question needs {layout.coarse:,} bins; at most 2^22 = {MOST_BINS:,} "
            "are counted. Use a coarser granularity, or fewer filters"
        )
    if isinstance(question, RangesQuestion | RectanglesQuestion):
        # What does not fit is refused here, before anything is counted.
        layout.boxes()
    return layout


def _asked_axis(
    spec: AttributeSpec, width: int, chosen: Filter | None, in_row: bool = False
) -> AxisBins:
    (attribute,) = spec.domain().attributes
    regular, extras = attribute.regular, len(attribute.extras)
    if width > regular:
        raise QuestionError(
            f"a bin of {width} cells is wider than {spec.name!r}, which has {regular}"
        )
    if spec.kind == "category" and width > 1:
        raise QuestionError(f"{spec.name!r} is a category: its bins are single levels")
    passing = _passing(spec, attribute, chosen)
    inside = passing[:regular]
    passing_cells = np.flatnonzero(inside)
    if not passing_cells.size:
        raise QuestionError(
            f"only missing values of {spec.name!r} pass the filter, and its bins are "
            "asked for; ask for other bins, and filter by it"
        )
    asked = -(-passing_cells.size // width)
    some_fail = int(passing_cells.size < regular)
    # Bins are counted from the first cell that passes the filter.
    number = np.where(inside, (np.cumsum(inside) - 1) // width, asked)
    labels = np.append(number, asked + some_fail + np.arange(extras))
    bins = asked + some_fail + extras
    fails = np.zeros(bins, dtype=np.bool_)
    fails[asked : asked + some_fail] = True
    # A filter on this attribute is failed by what has no place on it.
    fails[labels[regular:]] = ~passing[regular:]
    edges = _edges(attribute, passing_cells[::width], passing_cells)
    stretch = Stretch(int(passing_cells[0]), int(passing_cells[-1]) + 1, width, asked)
    cell = attribute.extra_cell(MISSING)
    if not in_row or cell is None or not passing[cell]:
        return AxisBins(spec, labels, bins, asked, fails, edges, stretch)
    # The bin of missing values is the first after those of values.
    turn = np.arange(bins)
    turn[asked : labels[cell]] += 1
    turn[labels[cell]] = asked
    moved = np.empty_like(fails)
    moved[turn] = fails
    stretch = stretch._replace(rest=asked + 1)
    return AxisBins(
        spec, turn[labels], bins, asked + 1, moved, edges, stretch, missing=True
    )


def _added_axis(
    table: TableSpec, question: AmountQuestion | ShareQuestion, chosen: Filter | None
) -> AxisBins:
    """Cut the attribute that is added up; what does not count fails."""
    spec = table.attribute(question.attribute)
    (attribute,) = spec.domain().attributes
    if isinstance(question, ShareQuestion):
        return _share_axis(spec, attribute, question, chosen)
    if spec.kind != "number":
        raise QuestionError(
            f"sums and means are of numbers; {spec.name!r} is a {spec.kind}"
        )
    axis = _asked_axis(spec, question.width, chosen)
    # What is missing has no value to add, and what lies outside has none that is known.
    return axis._replace(fails=np.arange(axis.bins) >= axis.asked)


def _share_axis(
    spec: AttributeSpec,
    attribute: Axis,
    question: ShareQuestion,
    chosen: Filter | None,
) -> AxisBins:
    """Cut an attribute in two: has the property, has it not; the rest fails."""
    if chosen is not None:
        raise QuestionError(
            f"a share of {spec.name!r} is not filtered by {spec.name!r} as well; state "
            "the property alone"
        )
    having = _passing(spec, attribute, question.property_)
    labels = (~having).astype(np.int64)
    if not question.missing and (cell := attribute.extra_cell(MISSING)) is not None:
        labels[cell] = 2
    if not (labels == 0).any() or not (labels == 1).any():
        raise QuestionError(
            f"the share of {spec.name!r} is 0 or 1 whatever the records: state a "
            "property that some values have and others have not"
        )
    bins = int(labels.max()) + 1
    stretch = _whole_stretch(attribute, having)
    return AxisBins(spec, labels, bins, 2, np.arange(bins) >= 2, (), stretch)


def _whole_stretch(attribute: Axis, chosen: AnyArray) -> Stretch:
    """Return one bin, number 0, of the chosen cells; all others are bin 1."""
    cells = np.flatnonzero(chosen[: attribute.regular])
    first, end = (int(cells[0]), int(cells[-1]) + 1) if cells.size else (0, 0)
    return Stretch(first, end, attribute.size, 1)


def _filter_axis(spec: AttributeSpec, chosen: Filter) -> AxisBins:
    (attribute,) = spec.domain().attributes
    passing = _passing(spec, attribute, chosen)
    stretch = _whole_stretch(attribute, passing)
    bins = 1 if passing.all() else 2
    labels = (~passing).astype(np.int64)
    return AxisBins(spec, labels, bins, 1, np.arange(bins) == 1, (), stretch)


def _passing(spec: AttributeSpec, attribute: Axis, chosen: Filter | None) -> AnyArray:
    """Mark the cells that pass; values outside, and missing ones unasked, do not."""
    passing = np.full(attribute.size, chosen is None)
    if chosen is None:
        return passing
    if chosen.missing is not None:
        cell = attribute.extra_cell(MISSING)
        if cell is None:
            raise QuestionError(
                f"no value of {spec.name!r} can be missing by its description; leave "
                "missing out"
            )
        passing[cell] = True
        if chosen.missing is False:
            return ~passing
        if chosen.values is None and chosen.low is None and chosen.high is None:
            return passing
    if chosen.values is not None:
        if attribute.levels is None:
            raise QuestionError(f"{spec.name!r} is ordered: filter it by low and high")
        levels = list(attribute.levels[: attribute.regular])
        for value in chosen.values:
            if value not in levels:
                raise QuestionError(
                    f"a value in the filter of {spec.name!r} is none of its levels"
                )
            passing[levels.index(value)] = True
        return passing
    if attribute.levels is not None:
        raise QuestionError(f"{spec.name!r} is a category: filter it by values")
    low = 0 if chosen.low is None else cell_of(attribute, chosen.low)
    high = attribute.regular if chosen.high is None else cell_of(attribute, chosen.high)
    if low >= high:
        raise QuestionError(f"the filter of {spec.name!r} must end after it begins")
    passing[low:high] = True
    return passing


def cell_of(attribute: Axis, value: Any, cuts: AnyArray | None = None) -> int:
    """Return the cell that begins at a value; the value must be an edge.

    Parameters
    ----------
    attribute : Axis
        An ordered attribute.
    value : number or str
        A number, or a date in ISO form.
    cuts : array, optional
        The edges as `cut_values` returns them, for whoever looks up many values.

    Returns
    -------
    int
        The number of the cell; the number of regular cells for the last edge.

    Raises
    ------
    QuestionError
        If the value is no edge, or not of the attribute's kind.
    """
    dated = attribute.unit is not None
    cuts = cut_values(attribute) if cuts is None else cuts
    try:
        if dated and datetime.fromisoformat(str(value)).tzinfo is not None:
            raise ValueError("dates carry no time zone here")
        place = as_moments(np.array([str(value)]))[0] if dated else float(value)
    except (DomainError, TypeError, ValueError):
        raise QuestionError(
            f"values of {attribute.name!r} are "
            + ("dates, without a time zone" if dated else "numbers")
        ) from None
    cell = int(np.searchsorted(cuts, place))
    if cell == cuts.size or cuts[cell] != place:
        near = cuts[[max(cell - 1, 0), min(cell, cuts.size - 1)]]
        ends = [
            str(cut).removesuffix("T00:00:00") if dated else f"{cut:g}"
            for cut in (cuts[0], cuts[-1], *near)
        ]
        nearest = " and ".join(dict.fromkeys(ends[2:]))
        raise QuestionError(
            f"{attribute.name!r} can be cut at the edges of its cells only, from "
            f"{ends[0]} to {ends[1]}; received {value!r}, near {nearest}"
        )
    return cell


def _stretches(axis: AxisBins, pairs: Sequence[Any]) -> IntArray:
    """Return the bins [first, last) of stretches of values."""
    (attribute,) = axis.spec.domain().attributes
    # Many stretches share few ends: each is looked up once, among edges read once.
    ends = {value for pair in pairs for value in pair}
    cuts = cut_values(attribute)
    cell_at = {value: cell_of(attribute, value, cuts) for value in ends}
    cells = np.array([[cell_at[low], cell_at[high]] for low, high in pairs])
    shown = np.flatnonzero(axis.labels < axis.asked)
    firsts = shown[np.searchsorted(axis.labels[shown], np.arange(axis.asked))]
    starts = np.append(firsts, shown[-1] + 1)
    places = np.searchsorted(starts, cells).clip(max=axis.asked)
    if (starts[places] != cells).any():
        raise QuestionError(
            f"stretches of {axis.spec.name!r} must begin and end where its bins do; "
            "use a finer granularity"
        )
    if (places[:, 0] >= places[:, 1]).any():
        raise QuestionError("a stretch must end after it begins")
    return places.astype(np.int64)


def _edges(
    attribute: Axis, starts: IntArray, passing_cells: IntArray
) -> tuple[Any, ...]:
    if attribute.levels is not None:
        return tuple(attribute.levels[at] for at in passing_cells)
    places = cut_values(attribute)[np.append(starts, passing_cells[-1] + 1)]
    return tuple(places.tolist() if attribute.unit is None else map(str, places))
