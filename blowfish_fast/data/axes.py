"""One attribute of a domain: its cells, what they mean, and cells of their own.

edges     0    18    65   120       cell i holds [edges[i], edges[i + 1])
dates     Jan  Feb   Mar            the same, in days or seconds since 1970
steps     start, start + step, ...  the same by a rule, of which nobody lists the edges
levels    "F"  "M"                  one cell each
extras    ... (outside) (missing)   public cells after all others, with noise
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import DomainError

from .places.districts import Borders
from .rules.steps import CLOCK_WORDS, Steps
from .rules.texts import WordRule

OUTSIDE = "(outside)"
MISSING = "(missing)"

MICROSECONDS = {
    "D": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
"""Units of dates, coarsest first. Months have no fixed length and become days."""

MOST_LABELS = 2**28
"""Cells of an axis that are numbered one by one."""

MOST_CUT_STEPS = 2**20
"""Cells of an axis by a rule whose edges are listed where a `Domain` is wanted."""


@dataclass(frozen=True)
class Axis:
    """One axis of a domain: cells in order, with edges, levels or neither.

    Attributes
    ----------
    size : int
        Number of cells, those of `extras` among them.
    name : str, optional
        The name of the attribute.
    cuts : tuple[float, ...], optional
        The edges of the cells, one more than there are cells without those of `extras`.
    levels : tuple[object, ...], optional
        The value of each cell of a categorical attribute.
    unit : str, optional
        The unit of edges that are dates: days "D", hours "h", ... since 1970.
    extras : tuple[str, ...], default ()
        Kinds of extra cells, `OUTSIDE` and `MISSING` in this order; they come last and
        have no place between the edges.
    steps : Steps, optional
        The rule of cells that nobody lists; only a `WideDomain` has such axes.
    keys : WordRule, optional
        Which words there are, where nobody listed them; only a `KeyDomain` has such an
        axis.
    borders : Borders, optional
        Where levels are districts with polygons: what is known of these.
    """

    size: int
    name: str | None = None
    cuts: tuple[float, ...] | None = None
    levels: tuple[Any, ...] | None = None
    unit: str | None = None
    extras: tuple[str, ...] = ()
    steps: Steps | None = None
    keys: WordRule | None = None
    borders: Borders | None = None

    _later_fields: ClassVar = ("borders",)
    """Fields that fingerprints of questions leave out where they are None."""

    @property
    def edges(self) -> tuple[float, ...] | None:
        """Edges of all cells; None where some cell has no place on the axis."""
        return None if self.extras else self.cuts

    @property
    def regular(self) -> int:
        """Number of cells that are no extras."""
        return self.size - len(self.extras)

    @property
    def by_rule(self) -> bool:
        """Whether nobody lists the cells: they follow a rule, or are too many."""
        forms = (self.cuts, self.levels, self.keys)
        listed = any(form is not None for form in forms)
        many = not listed and self.regular > MOST_LABELS
        return self.steps is not None or many

    @property
    def rule(self) -> Steps:
        """The rule of cells that nobody lists; their numbers where none is stated."""
        return Steps(0, 1) if self.steps is None else self.steps

    def extra_cell(self, kind: str) -> int | None:
        """Return the cell of `OUTSIDE` or `MISSING`; None if there is none."""
        return self.regular + self.extras.index(kind) if kind in self.extras else None

    def cells_within(self, coarse: Axis) -> IntArray | None:
        """Return the cell of `coarse` that each cell lies in; None if one is cut."""
        if self == coarse:
            return None if self.size > MOST_LABELS else np.arange(self.size)
        alike = replace(coarse, size=0, cuts=None) == replace(self, size=0, cuts=None)
        if not alike or self.cuts is None or coarse.cuts is None:
            return None
        ends = (coarse.cuts[0], coarse.cuts[-1]) == (self.cuts[0], self.cuts[-1])
        if not ends or not set(coarse.cuts) <= set(self.cuts):
            return None
        cells = np.searchsorted(coarse.cuts, self.cuts[:-1], side="right") - 1
        return np.concatenate([cells, coarse.regular + np.arange(len(self.extras))])

    def describe(self) -> str:
        """Say what the cells stand for; as long for any number of them.

        Categories stand as they are typed, with quotation marks where they need them.
        """
        if self.levels is not None:
            from .listed_items import written_item

            words = few_words(
                written_item(str(at)) for at in self.levels[: self.regular]
            )
        elif self.keys is not None:
            words = self.keys.words()
        elif self.steps is not None:
            words = self.steps.words(self.regular)
        elif self.cuts is None:
            words = f"numbers 0 to {self.regular - 1:,}"
        else:
            ends = (*self.cuts[:8], self.cuts[-1])
            shown = (
                [f"{end:g}" for end in ends]
                if self.unit is None
                else [str(end) for end in as_dates(ends, self.unit)]
            )
            inner = shown[1 : min(self.regular, 8)]
            words = f"{shown[0]} to {shown[-1]}"
            words += f", cut at {few_words(inner)}" if inner else ""
        return "; ".join([words, *self.extras])


def with_listed_edges(attribute: Axis) -> Axis:
    """Return an axis by a rule with its edges listed; any other as it is.

    Raises
    ------
    DomainError
        If it has more than 2^20 cells, or edges that no double holds.
    """
    rule = attribute.steps
    if rule is None:
        return attribute
    if not can_list_edges(attribute):
        raise DomainError(
            "an axis by a rule is listed cell by cell up to 2^20 cells, of whole "
            "microseconds or of numbers up to 2^53",
            received=f"{attribute.name or 'an axis'}, {attribute.describe()}",
            way_out="Keep it in a WideDomain, or take longer steps",
        )
    ticks = rule.start + np.arange(attribute.regular + 1) * rule.step
    return replace(
        attribute,
        cuts=tuple(ticks.astype(np.float64).tolist()),
        unit=rule.unit,
        steps=None,
    )


def can_list_edges(attribute: Axis) -> bool:
    """Return whether `with_listed_edges` lists the edges of an axis."""
    rule = attribute.steps
    if rule is None:
        return True
    farthest = max(abs(rule.start), abs(rule.end(attribute.regular)))
    few = attribute.regular <= MOST_CUT_STEPS
    return few and farthest <= 2**53 and (rule.unit is None or rule.unit != "ns")


def few_words(words: Iterable[str]) -> str:
    """Join words, at most six; more of them end in dots."""
    shown = list(islice(words, 7))
    return ", ".join(shown[:6]) + (", ..." if len(shown) > 6 else "")


def from_cuts(edges: Iterable[Any], name: str | None) -> Axis:
    """Read edges of numbers or dates.

    Parameters
    ----------
    edges : iterable
        Increasing edges.
    name : str or None
        The name of the attribute.

    Returns
    -------
    Axis
        The attribute.

    Raises
    ------
    DomainError
        If edges are neither, or do not increase.
    """
    listed = edges if isinstance(edges, np.ndarray) else list(edges)
    array = np.asarray(listed)
    if array.dtype.kind in "MO":
        return from_date_cuts(array, name)
    try:
        cuts: FloatArray = array.astype(np.float64)
    except (TypeError, ValueError):
        raise DomainError(
            "edges must be numbers or dates",
            received=f"dtype {array.dtype}",
            way_out="Texts that are dates go to Domain.from_dates, categories to "
            "Domain.from_levels",
        ) from None
    check_cuts(cuts)
    return Axis(cuts.size - 1, name, cuts=tuple(cuts.tolist()))


def from_date_cuts(edges: Iterable[Any], name: str | None) -> Axis:
    """Read edges that are dates, in the coarsest unit that holds them all.

    Parameters
    ----------
    edges : iterable
        Increasing dates.
    name : str or None
        The name of the attribute.

    Returns
    -------
    Axis
        The attribute.

    Raises
    ------
    DomainError
        If a date is missing or out of range, or edges do not increase.
    """
    moments = as_moments(np.asarray(edges if hasattr(edges, "dtype") else list(edges)))
    if np.isnat(moments).any():
        raise DomainError("edges must be dates; found a missing one")
    ticks = moments.astype(np.int64)
    unit = next(
        name for name, length in MICROSECONDS.items() if not (ticks % length).any()
    )
    cuts = ticks // MICROSECONDS[unit]
    if cuts.size and np.abs(cuts).max() > 2**53:
        raise DomainError(
            "dates to the microsecond must lie between 1684 and 2255; use coarser edges"
        )
    check_cuts(cuts.astype(np.float64))
    floats = tuple(cuts.astype(np.float64).tolist())
    return Axis(cuts.size - 1, name, cuts=floats, unit=unit)


def check_cuts(cuts: FloatArray) -> None:
    """Refuse edges that are no finite numbers which rise."""
    if cuts.ndim != 1 or cuts.size < 2:
        raise DomainError(
            "edges must be at least two numbers",
            received=cuts.size,
            way_out="n cells have n + 1 edges",
        )
    if not np.isfinite(cuts).all():
        raise DomainError("edges must be finite; clamp the values at both ends")
    if not (np.diff(cuts) > 0).all():
        raise DomainError("edges must increase strictly; sort them, drop repeats")


BLANK_TYPES = ("NAType", "NaTType")
"""What pandas and numpy put where a value is missing."""

EPOCH = date(1970, 1, 1).toordinal()


def as_moments(values: AnyArray) -> AnyArray:
    """Read dates, times or ISO texts as microseconds; None becomes a missing date."""
    if values.dtype.kind not in "MOU":
        raise DomainError(
            "dates must be datetime64, date objects or ISO texts",
            received=f"dtype {values.dtype}",
            way_out="Numbers go to Domain.from_edges",
        )
    if values.dtype.kind == "O":
        values = _without_blanks(values)
    _refuse_odd_texts(values)
    try:
        with warnings.catch_warnings():
            # Of moments with a zone numpy takes the time in UTC, and warns.
            warnings.simplefilter("ignore", UserWarning)
            moments = values.astype("datetime64[us]")
    except (TypeError, ValueError, OverflowError):
        raise DomainError(
            "dates must read like 2024-05-31 or 2024-05-31T12:00; found another form"
        ) from None
    if values.dtype.kind == "M" and not np.isnat(values).all():
        lost = moments.astype(values.dtype) != values
        if (lost & ~np.isnat(values)).any():
            # Finer than a microsecond: the part of a cell that a date lies in is kept.
            return np.where(moments.astype(values.dtype) > values, moments - 1, moments)
    return moments


def _without_blanks(values: AnyArray) -> AnyArray:
    """Return objects with None for what is missing; refuse numbers."""
    listed = values.tolist()
    kinds = set(map(type, listed))
    if any(issubclass(kind, float) or kind.__name__ in BLANK_TYPES for kind in kinds):
        listed = [None if is_blank(level) else level for level in listed]
        kinds = set(map(type, listed))
    if any(issubclass(kind, Real) for kind in kinds):
        raise DomainError(
            "dates must be datetime64, date objects or ISO texts; found a number. "
            "Numbers go to Domain.from_edges"
        )
    if kinds == {date}:
        # numpy reads objects one by one, ten times slower.
        days = np.fromiter(map(date.toordinal, listed), np.int64, len(listed))
        return (days - EPOCH).astype("datetime64[D]")
    return np.array(listed, dtype=object)


def _refuse_odd_texts(values: AnyArray) -> None:
    """Refuse texts that numpy would read as something else than was meant."""
    if values.dtype.kind == "O":
        listed = values.tolist()
        if not any(issubclass(kind, str) for kind in set(map(type, listed))):
            return
        values = np.array([level for level in listed if isinstance(level, str)], "U")
    if values.dtype.kind != "U" or values.size == 0:
        return
    small = np.char.lower(values)
    if any((small == word).any() for word in CLOCK_WORDS):
        # The same records would be counted on another day tomorrow.
        raise DomainError(
            "dates must read like 2024-05-31; found a word for the time at which it is "
            "read"
        )
    # 20240105 would be a year, and so would seconds since 1970.
    if (np.char.isdigit(values) & (np.char.str_len(values) != 4)).any():
        raise DomainError(
            "dates must read like 2024-05-31; found digits alone, which would be taken "
            "for a year"
        )
    zoned = np.char.endswith(values, "Z") | (np.char.find(values, "+") >= 0)
    if (zoned | (np.char.rfind(values, "-") > len("2024-05-31") - 1)).any():
        raise DomainError(
            "times must read like 2024-05-31T12:00, without a zone; found one. Convert "
            "them to the zone of the domain's edges first"
        )


def as_dates(ticks: Sequence[float], unit: str) -> AnyArray:
    """Return whole units since 1970 as dates.

    Parameters
    ----------
    ticks : Sequence[float]
        Numbers of units.
    unit : str
        The unit, as numpy calls it.

    Returns
    -------
    ndarray of datetime64
        The dates.
    """
    return np.array(ticks, dtype=np.float64).astype(np.int64).astype(f"M8[{unit}]")


def is_blank(value: Any) -> bool:
    """Return whether a Python value stands for a missing one."""
    return (
        value is None
        or type(value).__name__ in BLANK_TYPES
        or (isinstance(value, float) and value != value)
    )


def from_level_list(levels: Iterable[Any], name: str | None) -> Axis:
    """Read the public values of a categorical attribute.

    Parameters
    ----------
    levels : iterable
        Different texts, numbers or truth values.
    name : str or None
        The name of the attribute.

    Returns
    -------
    Axis
        The attribute.

    Raises
    ------
    DomainError
        If the levels are no list, a level is something else, or stands there twice.
    """
    if isinstance(levels, str | bytes | Mapping | set | frozenset):
        # A text would give a level for each letter and a mapping its keys; a set has
        # another order in every process, and cells are known by their order.
        raise DomainError(
            "levels are a list, in the order of their cells",
            received=repr(levels),
            way_out='Write Domain.from_levels(["F", "M"], name="sex"); several '
            "attributes are joined by Domain.product",
        )
    values = tuple(
        level.item() if isinstance(level, np.generic) else level for level in levels
    )
    if not values:
        raise DomainError("levels must not be empty; list every possible value")
    for level in values:
        if not isinstance(level, str | int | float) or level != level:
            raise DomainError(
                "a level is a text, a number or a truth value",
                received=repr(level),
                way_out="Missing values get a cell by with_extra_cells(missing=True), "
                "dates by Domain.from_dates",
            )
    if len(set(values)) != len(values):
        raise DomainError("levels must differ; a value stands in the list twice")
    return Axis(len(values), name, levels=values)


def extend_axis(attribute: Axis, kinds: Iterable[str]) -> Axis:
    """Add the extra cells that are not there yet.

    Parameters
    ----------
    attribute : Axis
        The attribute.
    kinds : Iterable[str]
        `OUTSIDE`, `MISSING` or both.

    Returns
    -------
    Axis
        The attribute with these cells.

    Raises
    ------
    DomainError
        If a level has the name of an extra cell.
    """
    wanted = {*attribute.extras, *kinds}
    extras = tuple(kind for kind in (OUTSIDE, MISSING) if kind in wanted)
    if extras == attribute.extras:
        return attribute
    levels = attribute.levels
    if levels is not None:
        plain = levels[: attribute.regular]
        clash = [kind for kind in extras if kind in plain]
        if clash:
            raise DomainError(
                f"{clash[0]!r} is already a level of {attribute.name or 'the domain'}; "
                "rename that level"
            )
        levels = plain + extras
    return replace(
        attribute, size=attribute.regular + len(extras), levels=levels, extras=extras
    )


def merge_cells(attribute: Axis, groups: Any) -> tuple[Axis, IntArray]:
    """Merge cells; return the attribute and the new cell of each old one.

    Parameters
    ----------
    attribute : Axis
        The attribute.
    groups : iterable or mapping
        The edges that stay, or a mapping from new levels to lists of old ones.

    Returns
    -------
    attribute : Axis
        The coarser attribute.
    labels : ndarray of int64
        The new cell of each old one.

    Raises
    ------
    DomainError
        If an edge or level is not there.
    """
    by_rule = attribute.steps is not None or attribute.keys is not None
    if attribute.size > MOST_LABELS or by_rule:
        raise DomainError(
            f"the cells of {attribute.name or 'this attribute'} are too many to be "
            "merged one by one",
            received=f"{attribute.size:,} cells, by a rule",
            way_out="Count over a domain with longer steps",
        )
    if attribute.levels is not None:
        merged, labels = _merge_levels(attribute, groups)
    else:
        merged, labels = _merge_cuts(attribute, groups)
    merged = extend_axis(merged, attribute.extras)
    tail = merged.regular + np.arange(len(attribute.extras))
    return merged, np.concatenate([labels, tail]).astype(np.int64)


def _merge_cuts(attribute: Axis, groups: Any) -> tuple[Axis, IntArray]:
    cuts = (
        np.arange(attribute.regular + 1.0)
        if attribute.cuts is None
        else np.array(attribute.cuts)
    )
    dated = attribute.unit is not None
    coarser = (from_date_cuts if dated else from_cuts)(groups, attribute.name)
    new = np.array(coarser.cuts, dtype=np.float64)
    if attribute.unit is not None and coarser.unit is not None:
        new = new * MICROSECONDS[coarser.unit] / MICROSECONDS[attribute.unit]
    places = np.searchsorted(cuts, new)
    is_old_edge = np.isin(new, cuts)
    if not is_old_edge.all() or places[0] != 0 or places[-1] != attribute.regular:
        raise DomainError(
            f"cells of {attribute.name or 'this attribute'} can only be merged: new "
            "edges must be some of its edges, with the first and the last"
        )
    labels = np.repeat(np.arange(places.size - 1), np.diff(places))
    merged = Axis(places.size - 1, attribute.name)
    if attribute.cuts is not None:
        merged = replace(merged, cuts=tuple(new.tolist()), unit=attribute.unit)
    return merged, labels


def _merge_levels(attribute: Axis, groups: Any) -> tuple[Axis, IntArray]:
    assert attribute.levels is not None
    old = attribute.levels[: attribute.regular]
    if not isinstance(groups, Mapping):
        raise DomainError(
            f"levels of {attribute.name or 'this attribute'} are merged by a mapping, "
            "new level to a list of old ones",
            received=type(groups).__name__,
        )
    listed = []
    for cell, group in enumerate(groups.values()):
        alone = isinstance(group, str) or not isinstance(group, Sequence | Set)
        listed += [(old_level, cell) for old_level in ([group] if alone else group)]
    number = dict(listed)
    if len(listed) != len(number) or set(number) != set(old):
        raise DomainError(
            f"every level of {attribute.name or 'this attribute'} must lie in exactly "
            "one new level"
        )
    labels = np.array([number[old_level] for old_level in old], dtype=np.int64)
    return from_level_list(list(groups), attribute.name), labels


def cut_values(attribute: Axis) -> AnyArray:
    """Return edges as numbers or dates."""
    assert attribute.cuts is not None
    if attribute.unit is not None:
        return as_dates(attribute.cuts, attribute.unit)
    return np.array(attribute.cuts, dtype=np.float64)


def as_array(levels: tuple[Any, ...]) -> AnyArray:
    """Return levels as an array: numbers where all are, else objects."""
    if all(type(level) is int for level in levels) or all(
        type(level) is float for level in levels
    ):
        return np.array(levels)
    array = np.empty(len(levels), dtype=object)
    array[:] = levels
    return array


def representatives(attribute: Axis) -> FloatArray:
    """Return the middle, level or number of each regular cell, or refuse."""
    called = attribute.name or "this attribute"
    if attribute.unit is not None:
        raise DomainError(
            f"{called} holds dates, which have no sum; count them, or group by them"
        )
    if attribute.levels is not None:
        plain = attribute.levels[: attribute.regular]
        if any(isinstance(level, bool | str) for level in plain):
            raise DomainError(
                f"{called} has levels, which have no sum",
                way_out="Count them, group by them, or give their public values: "
                "sum(name, values=[...])",
                code="levels_have_no_sum",
                data={"column": called},
            )
        return np.array(plain, dtype=np.float64)
    few = attribute.keys is None and attribute.regular <= MOST_LABELS
    if attribute.cuts is None and few:
        return np.arange(attribute.regular, dtype=np.float64)
    if attribute.cuts is None:
        raise DomainError(f"nobody lists the {attribute.regular:,} cells of {called}")
    cuts = np.array(attribute.cuts, dtype=np.float64)
    return cuts[:-1] + (cuts[1:] - cuts[:-1]) / 2
