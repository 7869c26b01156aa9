"""From a question to bins, policy and queries over them, without the whole table.

Each attribute that is touched is partitioned, and bins are a partition of the product.
Records that fail a filter, missing values and values outside have bins of their own:
dropping them would make a private total look public and hide edges of the policy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast.data.axes import Axis, as_moments, cut_values
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.sql_cells import Stretch
from blowfish_fast.errors import DomainError, QuestionError, SizeError
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
from .questions import Filter, Question, RangesQuestion, RectanglesQuestion

MOST_BINS = 2**22
"""Bins of one question."""
MOST_COVERED = 2**24
"""Bins of all boxes of one question together, where each box is listed bin by bin."""
ORDERED = ("cumulative", "quantiles", "ranges")
"""Kinds of questions that need an order."""


class AxisBins(NamedTuple):
    """How one attribute is cut for a question.

    `labels` is the bin of each cell, extra cells included. The first `asked` bins are
    shown; the others hold what is outside, missing or filtered out (`fails`). `stretch`
    is the same cut in closed form, for ordered attributes.
    """

    spec: AttributeSpec
    labels: IntArray
    bins: int
    asked: int
    fails: AnyArray
    edges: tuple[Any, ...]
    stretch: Stretch


@dataclass(frozen=True)
class Layout:
    """The bins of a question, and everything that is public about them."""

    table: TableSpec
    question: Question
    axes: tuple[AxisBins, ...]
    shown: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Bins of each touched attribute."""
        return tuple(one.bins for one in self.axes)

    @property
    def coarse(self) -> int:
        """Number of coarse cells."""
        return math.prod(self.shape)

    @cached_property
    def labels(self) -> IntArray | None:
        """Final bin of each coarse cell; None where the coarse cells are the bins.

        Bins that are shown come first, in C order; all that fails a filter is the last.
        """
        fails = np.zeros(self.shape, dtype=np.bool_)
        hidden = np.zeros(self.shape, dtype=np.bool_)
        for at, one in enumerate(self.axes):
            along = [1] * len(self.axes)
            along[at] = one.bins
            fails |= one.fails.reshape(along)
            if at < self.shown:
                hidden |= (np.arange(one.bins) >= one.asked).reshape(along)
        fails, hidden = fails.reshape(-1), (hidden & ~fails).reshape(-1)
        plain = ~(fails | hidden)
        if plain.all():
            return None
        labels = np.empty(plain.size, dtype=np.int64)
        labels[plain] = np.arange(plain.sum())
        labels[hidden] = plain.sum() + np.arange(hidden.sum())
        labels[fails] = plain.sum() + hidden.sum()
        return labels

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
                "attribute": one.spec.name,
                "kind": one.spec.kind,
                "edges": list(one.edges),
                "bins": one.asked,
                **({"unit": one.spec.unit} if one.spec.unit else {}),
            }
            for one in self.axes[: self.shown]
        ]

    @cached_property
    def policy_words(self) -> str:
        """The promise of the table, in its own units, not in the question's bins."""
        return self.table.promise()

    @property
    def asked_shape(self) -> tuple[int, ...]:
        """Bins that are shown, per attribute."""
        return tuple(one.asked for one in self.axes[: self.shown])

    def policy(self, table: TablePolicy | PerPerson) -> Policy:
        """Return the policy on the bins; it descends from the table's."""
        names = [one.spec.name for one in self.axes]
        seen = table.through(names)
        order = [seen.domain.names.index(name) for name in names]
        coarse = self._coarse_policy(seen, order)
        if self.labels is None:
            return coarse
        return coarse.project(self.labels)

    def _coarse_policy(self, seen: Policy, order: list[int]) -> Policy:
        """Project each factor by itself: the quotient of a product is their product."""
        domain = Domain(self.shape, [one.spec.name for one in self.axes])
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
                seen.factors[at].project(one.labels)
                for at, one in zip(order, self.axes, strict=True)
            ]
            coarse = Product(*factors, domain=domain)
        else:
            coarse = seen.project(self.axes[0].labels)
        return coarse.derive_from(seen, coarse.buckets)

    def workload(self, domain: Domain) -> Workload:
        """Return the queries over the bins of `domain`."""
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
        """Return the first bins and the ends of stated stretches or rectangles."""
        question = self.question
        if isinstance(question, RectanglesQuestion):
            boxes = question.rectangles
        else:
            assert isinstance(question, RangesQuestion)
            boxes = [[one] for one in question.ranges]
        stated = zip(self.axes, zip(*boxes, strict=True), strict=False)
        sides = np.stack([_stretches(*one) for one in stated], axis=1)
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
        inside = [grid[tuple(map(slice, *one))].reshape(-1) for one in sides]
        pointers = np.cumsum([0, *map(len, inside)])
        flat = np.concatenate(inside)
        matrix = sparse.csr_array(
            (np.ones(flat.size), flat, pointers), shape=(len(lows), domain.size)
        )
        return Linear(domain, matrix)


def lay_out(table: TableSpec, question: Question) -> Layout:
    """Return the bins of a question."""
    filters = {one.attribute: one for one in question.filters}
    axes = [
        _asked_axis(table.attribute(name), width, filters.pop(name, None))
        for name, width in zip(question.axes, question.widths, strict=True)
    ]
    shown = len(axes)
    if axes[0].spec.kind == "category" and question.kind in ORDERED:
        raise QuestionError(
            f"{question.kind} needs an ordered attribute; {axes[0].spec.name!r} is a "
            "category"
        )
    axes += [
        _filter_axis(table.attribute(one.attribute), one) for one in filters.values()
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


def _asked_axis(spec: AttributeSpec, width: int, chosen: Filter | None) -> AxisBins:
    (attribute,) = spec.domain().attributes
    regular, extras = attribute.regular, len(attribute.extras)
    if width > regular:
        raise QuestionError(
            f"a bin of {width} cells is wider than {spec.name!r}, which has {regular}"
        )
    if spec.kind == "category" and width > 1:
        raise QuestionError(f"{spec.name!r} is a category: its bins are single levels")
    inside = _passing(spec, attribute, chosen)[:regular]
    kept = np.flatnonzero(inside)
    asked = -(-kept.size // width)
    some_fail = int(kept.size < regular)
    # Bins are counted from the first cell that passes the filter.
    number = np.where(inside, (np.cumsum(inside) - 1) // width, asked)
    labels = np.append(number, asked + some_fail + np.arange(extras))
    bins = asked + some_fail + extras
    fails = np.arange(bins) >= asked
    # A filter on this attribute is failed by what has no place on it.
    fails[asked + some_fail :] = chosen is not None
    edges = _edges(attribute, kept[::width], kept)
    stretch = Stretch(int(kept[0]), int(kept[-1]) + 1, width, asked)
    return AxisBins(spec, labels, bins, asked, fails, edges, stretch)


def _filter_axis(spec: AttributeSpec, chosen: Filter) -> AxisBins:
    (attribute,) = spec.domain().attributes
    passing = _passing(spec, attribute, chosen)
    kept = np.flatnonzero(passing)
    stretch = Stretch(int(kept[0]), int(kept[-1]) + 1, attribute.size, 1)
    bins = 1 if passing.all() else 2
    labels = (~passing).astype(np.int64)
    return AxisBins(spec, labels, bins, 1, np.arange(bins) == 1, (), stretch)


def _passing(spec: AttributeSpec, attribute: Axis, chosen: Filter | None) -> AnyArray:
    """Mark the cells that pass; cells of missing values and outside never do."""
    passing = np.full(attribute.size, chosen is None)
    if chosen is None:
        return passing
    if chosen.values is not None:
        if attribute.levels is None:
            raise QuestionError(f"{spec.name!r} is ordered: filter it by low and high")
        known = list(attribute.levels[: attribute.regular])
        for value in chosen.values:
            if value not in known:
                raise QuestionError(
                    f"a value in the filter of {spec.name!r} is none of its levels"
                )
            passing[known.index(value)] = True
        return passing
    if attribute.levels is not None:
        raise QuestionError(f"{spec.name!r} is a category: filter it by values")
    low = 0 if chosen.low is None else cell_of(attribute, chosen.low)
    high = attribute.regular if chosen.high is None else cell_of(attribute, chosen.high)
    if low >= high:
        raise QuestionError(f"the filter of {spec.name!r} must end after it begins")
    passing[low:high] = True
    return passing


def cell_of(attribute: Axis, value: Any) -> int:
    """Return the cell that begins at a value; the value must be an edge."""
    cuts, dated = cut_values(attribute), attribute.unit is not None
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
        ends = [str(one) if dated else f"{one:g}" for one in (cuts[0], cuts[-1])]
        raise QuestionError(
            f"{attribute.name!r} can be cut at the edges of its cells only, from "
            f"{ends[0]} to {ends[1]}; received {value!r}"
        )
    return cell


def _stretches(axis: AxisBins, pairs: Sequence[Any]) -> IntArray:
    """Return the bins [first, last) of stretches of values."""
    (attribute,) = axis.spec.domain().attributes
    cells = np.array(
        [[cell_of(attribute, low), cell_of(attribute, high)] for low, high in pairs]
    )
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


def _edges(attribute: Axis, starts: IntArray, kept: IntArray) -> tuple[Any, ...]:
    if attribute.levels is not None:
        return tuple(attribute.levels[at] for at in kept)
    places = cut_values(attribute)[np.append(starts, kept[-1] + 1)]
    return tuple(places.tolist() if attribute.unit is None else map(str, places))
