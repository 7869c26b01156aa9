"""Conditions on named attributes, in values, as intervals of cells.

    age=slice(20, 40)          20 <= age < 40            [4.0, 8.0) in cells of 5 years
    town=["Bern", "Chur"]      any of several            [2, 3) and [5, 6)
    day="2024-05"              a month of dates          [121, 152)

Intervals are disjoint, so conditions are intersected exactly; a part of a cell counts
in proportion.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from blowfish_fast._support.validation import malformed_as
from blowfish_fast.errors import DomainError, InputError

from .axes import MICROSECONDS, MOST_LABELS, Axis, as_dates, few_words
from .domain import Attributes
from .level_numbers import numbered_levels
from .rules.steps import CLOCK_WORDS

ZONE = re.compile(r"[T ].*(Z|[+-][0-9:]+)$")
"""A time of day that ends in a zone."""

Cover = tuple[tuple[float, float], ...]
"""Disjoint half-open intervals along the cells of one axis, in order."""


def read_conditions(
    domain: Attributes, conditions: Mapping[Any, Any]
) -> dict[int, Cover]:
    """Read conditions by attribute name or number.

    Parameters
    ----------
    domain : Attributes
        The attributes.
    conditions : Mapping[object, object]
        By attribute: a value, a slice, or a list of these.

    Returns
    -------
    dict[int, Cover]
        The selected intervals of cells, by axis.

    Raises
    ------
    InputError
        If a condition selects nothing.
    """
    covers: dict[int, Cover] = {}
    for name, condition in conditions.items():
        axis = domain.axis(name)
        attribute = domain.attributes[axis]
        cover = attribute_cover(attribute, condition)
        covers[axis] = intersection(covers[axis], cover) if axis in covers else cover
        if not covers[axis]:
            raise InputError(
                f"{name}={condition!r} selects no part of any cell; "
                f"{extent(attribute)}",
                code="nothing_selected",
                data={"condition": condition, "extent": extent(attribute)},
            )
    return covers


def everything(attribute: Axis) -> Cover:
    """Cover every cell, extras included."""
    return ((0.0, float(attribute.size)),)


def attribute_cover(attribute: Axis, condition: Any) -> Cover:
    """Return the cells that one condition selects.

    Parameters
    ----------
    attribute : Axis
        The attribute.
    condition : value, slice or list of these
        The condition.

    Returns
    -------
    tuple of pairs of floats
        Disjoint intervals of cells; empty if nothing is selected.
    """
    condition = pair_as_range(attribute, condition)
    single = isinstance(condition, str | bytes | Mapping | np.generic) or (
        isinstance(condition, np.ndarray) and condition.ndim == 0
    )
    several = isinstance(condition, Iterable) and not single
    listed: Iterable[Any] = condition if several else [condition]
    return union(
        interval for value in listed for interval in _intervals(attribute, value)
    )


def pair_as_range(attribute: Axis, condition: Any) -> Any:
    """Return the range that a pair of numbers or dates stands for.

    ``age=(20, 30)`` is ``age=slice(20, 30)``: from 20 up to 30, which is left out, for
    cells of every width. Levels have no ranges: there a tuple lists some, as a list.

    Parameters
    ----------
    attribute : Axis
        The attribute.
    condition : value, slice, tuple or list of these
        The condition.

    Returns
    -------
    value, slice or list of these
        The condition, with a range in place of a pair.

    Raises
    ------
    InputError
        For a tuple of another length.
    """
    ordered = attribute.levels is None and attribute.keys is None
    if not isinstance(condition, tuple) or not ordered:
        return condition
    if len(condition) != 2:
        called = attribute.name or "attribute"
        raise InputError(
            "a tuple of numbers or dates is a range, (low, high)",
            received=repr(condition),
            way_out=f"List values and ranges: {called}=[...]",
        )
    return slice(*condition)


def whole_cover(attribute: Axis, condition: Any) -> list[tuple[int, int]]:
    """Return the cells of an axis of any length that a condition selects, exactly.

    Ranges begin and end where cells do: no double holds a part of a cell of 2^60.

    Parameters
    ----------
    attribute : Axis
        An axis by a rule, or of numbers; no levels, no listed edges.
    condition : value, slice or list of these
        The condition; a text such as "2024-05" is that month.

    Returns
    -------
    list of pairs of int
        Disjoint half-open runs of cells, in order.

    Raises
    ------
    InputError
        If a range runs backwards, cuts a cell, or selects nothing.
    """
    condition = pair_as_range(attribute, condition)
    several = isinstance(condition, list | tuple)
    listed = list(condition) if several else [condition]
    runs = union(_whole_run(attribute, value) for value in listed)
    if not runs:
        raise InputError(
            f"{attribute.name or 'the attribute'}={condition!r} selects no cell; "
            f"{extent(attribute)}",
            code="nothing_selected",
            data={"condition": condition, "extent": extent(attribute)},
        )
    return [(int(low), int(high)) for low, high in runs]


def _whole_run(attribute: Axis, value: Any) -> tuple[int, int]:
    if isinstance(value, str) and value in attribute.extras:
        cell = attribute.extra_cell(value)
        assert cell is not None
        return cell, cell + 1
    rule, cells = attribute.rule, attribute.regular
    if not isinstance(value, slice):
        if rule.unit is not None:
            start, end = _date_span(value)
            low = rule.place(start, cells)
            return low, max(rule.place(end, cells), min(low + 1, cells))
        low = rule.place(value, cells)
        inside = rule.start <= rule.tick(value) < rule.end(cells)
        return low, low + inside
    if value.step is not None:
        raise InputError(
            "a range of values has no step",
            received=repr(value),
            way_out="Ask for several ranges in a list",
        )
    low = 0 if value.start is None else rule.place(value.start, cells)
    high = cells if value.stop is None else rule.place(value.stop, cells)
    backwards = low > high
    if value.start is not None and value.stop is not None and not backwards:
        backwards = rule.tick(value.start) > rule.tick(value.stop)
    if backwards:
        raise InputError(
            "a range of values must start before it ends",
            received=repr(value),
            code="range_runs_backwards",
            data={"condition": value},
        )
    return low, high


def union(intervals: Iterable[tuple[float, float]]) -> Cover:
    """Sort intervals and merge those that touch or overlap."""
    merged: list[tuple[float, float]] = []
    for low, high in sorted(
        interval for interval in intervals if interval[0] < interval[1]
    ):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def intersection(first: Cover, second: Cover) -> Cover:
    """Return what lies in both.

    Parameters
    ----------
    first : Cover
        Disjoint intervals.
    second : Cover
        Disjoint intervals.

    Returns
    -------
    tuple of pairs of floats
        Disjoint intervals.
    """
    return union(
        (max(left[0], right[0]), min(left[1], right[1]))
        for left in first
        for right in second
    )


def is_within(inner: Cover, outer: Cover) -> bool:
    """Return whether every interval of `inner` lies in one of `outer`.

    Parameters
    ----------
    inner : Cover
        Disjoint intervals.
    outer : Cover
        Disjoint intervals.

    Returns
    -------
    bool
        Whether it does.
    """
    return all(
        any(low <= interval[0] and interval[1] <= high for low, high in outer)
        for interval in inner
    )


def extent(attribute: Axis) -> str:
    """Say in words which values an attribute has."""
    called = attribute.name or "this attribute"
    extras = "".join(f", and the cell {extra!r}" for extra in attribute.extras)
    if attribute.levels is not None:
        shown = few_words(map(repr, attribute.levels[: attribute.regular]))
        return f"{called} has the levels {shown}{extras}"
    if attribute.keys is not None:
        return f"{called} has {attribute.keys.words()}{extras}"
    if attribute.steps is not None:
        return f"{called} goes from {attribute.steps.words(attribute.regular)}{extras}"
    if attribute.cuts is None:
        return f"{called} has the cells 0 to {attribute.regular - 1}{extras}"
    first, last = attribute.cuts[0], attribute.cuts[-1]
    if attribute.unit is None:
        return f"{called} goes from {first:.15g} to {last:.15g}{extras}"
    dates = as_dates((first, last), attribute.unit)
    return f"{called} goes from {dates[0]} to {dates[1]}{extras}"


def _intervals(attribute: Axis, value: Any) -> list[tuple[float, float]]:
    if isinstance(value, str) and value in attribute.extras:
        cell = attribute.extra_cell(value)
        assert cell is not None
        return [(float(cell), cell + 1.0)]
    if attribute.levels is not None:
        return _level_intervals(attribute, value)
    if isinstance(value, slice):
        if value.step is not None:
            raise InputError(
                "a range of values has no step",
                received=repr(value),
                way_out="Ask for several ranges in a list",
            )
        low = 0.0 if value.start is None else _coordinate(attribute, value.start)
        high = (
            float(attribute.regular)
            if value.stop is None
            else _coordinate(attribute, value.stop)
        )
        if value.start is not None and value.stop is not None and low > high:
            raise InputError(
                "a range of values must start before it ends",
                received=repr(value),
                code="range_runs_backwards",
                data={"condition": value},
            )
        return [(low, high)]
    return _single(attribute, value)


def _level_intervals(attribute: Axis, asked_value: Any) -> list[tuple[float, float]]:
    assert attribute.levels is not None
    if isinstance(asked_value, slice):
        if asked_value == slice(None):
            return [(0.0, float(attribute.regular))]
        raise InputError(
            "levels have no ranges",
            received=repr(asked_value),
            way_out=f"List the levels: {attribute.name or 'attribute'}=[...]",
        )
    is_scalar = isinstance(asked_value, np.generic)
    value = asked_value.item() if is_scalar else asked_value
    cell = _level_cell(attribute, value)
    if cell < 0:
        raise InputError(f"{value!r} is not known here; {extent(attribute)}")
    return [(float(cell), cell + 1.0)]


def _level_cell(attribute: Axis, value: Any) -> int:
    """Return the cell of a level, or of another way to write its number; else -1."""
    assert attribute.levels is not None
    if value in attribute.levels:
        return attribute.levels.index(value)
    numbered = numbered_levels(attribute.levels[: attribute.regular])
    return -1 if numbered is None else numbered.cell(value)


def _single(attribute: Axis, asked_value: Any) -> list[tuple[float, float]]:
    """Read a value: a date is its day, month or unit, a whole number its cell."""
    if attribute.unit is not None:
        start, end = (
            moment.astype(f"datetime64[{attribute.unit}]")
            for moment in _date_span(asked_value)
        )
        end = max(end, start + 1)
        return [(_date_place(attribute, start), _date_place(attribute, end))]
    value = _number(attribute, asked_value)
    if attribute.cuts is None and attribute.regular > MOST_LABELS:
        ((low, high),) = whole_cover(attribute, asked_value)
        return [(float(low), float(high))]
    cuts = attribute.cuts or tuple(float(cell) for cell in range(attribute.regular + 1))
    if value in cuts[:-1]:
        cell = cuts.index(value)
        if cuts[cell + 1] - value == 1.0:
            return [(float(cell), cell + 1.0)]
    raise InputError(
        f"{asked_value!r} is no cell of width 1; {extent(attribute)}",
        way_out="Ask for a range of values: "
        f"{attribute.name or 'attribute'}=slice(low, high)",
        code="no_single_cell",
        data={
            "condition": asked_value,
            "extent": extent(attribute),
            "column": attribute.name or "COLUMN",
        },
    )


def _coordinate(attribute: Axis, value: Any) -> float:
    """Return where a value lies along the cells, clipped to the axis."""
    if attribute.unit is not None:
        return _date_place(attribute, _date_span(value)[0])
    return _place(attribute, _number(attribute, value))


def _place(attribute: Axis, value: float) -> float:
    if attribute.cuts is None:
        return min(max(value, 0.0), float(attribute.regular))
    cuts = np.array(attribute.cuts)
    if value <= cuts[0]:
        return 0.0
    if value >= cuts[-1]:
        return float(attribute.regular)
    cell = int(np.searchsorted(cuts, value, side="right")) - 1
    return cell + float((value - cuts[cell]) / (cuts[cell + 1] - cuts[cell]))


def _date_place(attribute: Axis, moment: Any) -> float:
    assert attribute.unit is not None
    ticks = int(moment.astype("datetime64[us]").astype(np.int64))
    return _place(attribute, ticks / MICROSECONDS[attribute.unit])


def _date_span(value: Any) -> tuple[Any, Any]:
    """Return the first moment of a date and the first after it, as it was written."""
    try:
        if isinstance(value, str | np.datetime64):
            text = str(value)
            if isinstance(value, str) and ZONE.search(text):
                # numpy warns of it.
                raise ValueError
            if text.lower() in CLOCK_WORDS:
                # The same question would be another one tomorrow.
                raise ValueError
            moment = np.datetime64(value)
        elif isinstance(value, datetime.datetime):
            if value.tzinfo is not None:
                value = value.astimezone(datetime.UTC).replace(tzinfo=None)
            moment = np.datetime64(value, "us")
        elif isinstance(value, datetime.date):
            moment = np.datetime64(value, "D")
        else:
            raise TypeError
    except (TypeError, ValueError):
        raise InputError(
            "dates are asked for as date objects or texts like 2024-05-31 or 2024-05",
            received=repr(value),
            code="not_a_date",
        ) from None
    if np.isnat(moment):
        raise InputError("a missing date cannot be asked for; its cell is '(missing)'")
    return moment, moment + 1


def _number(attribute: Axis, value: Any) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real | np.number):
        raise InputError(
            f"{value!r} is no number; {extent(attribute)}. Ask for a range of values: "
            f"{attribute.name or 'attribute'}=slice(low, high)"
        )
    with malformed_as(InputError, "a value to ask for is no larger than 1e308"):
        number = float(value)
    if number != number:
        raise InputError("NaN is no value to ask for; missing values may have a cell")
    return number


def groups_of(
    attribute: Axis, cover: Cover, bins: Any = None
) -> list[tuple[Any, Cover]]:
    """Return the parts of a cover by cell, or by bins, each with a name.

    Parts of which nothing is selected are left out.

    Parameters
    ----------
    attribute : Axis
        The attribute.
    cover : Cover
        The selected intervals of cells.
    bins : iterable or mapping, optional
        Increasing edges in values, the levels that are wanted, or a mapping from names
        to conditions; by cell if left out.

    Returns
    -------
    list[tuple[object, Cover]]
        The name and the intervals of each part. Names are levels, cell numbers, or
        pairs (low, high) of values.

    Raises
    ------
    InputError
        If the bins are something else.
    """
    if bins is None:
        # A cell of which two parts are selected is one group.
        cells = {
            cell: None
            for low, high in cover
            for cell in range(int(low), int(np.ceil(high)))
        }
        named: list[tuple[Any, Cover]] = [
            (cell_name(attribute, cell), ((float(cell), cell + 1.0),)) for cell in cells
        ]
    elif isinstance(bins, Mapping):
        named = [
            (name, attribute_cover(attribute, condition))
            for name, condition in bins.items()
        ]
    elif not isinstance(bins, Iterable) or isinstance(bins, str):
        raise InputError(
            f"bins of {attribute.name or 'an attribute'} are edges in values, such as "
            "[0, 18, 65], levels, or a mapping from names to conditions",
            received=repr(bins),
        )
    elif attribute.levels is not None:
        named = [
            (condition, attribute_cover(attribute, condition)) for condition in bins
        ]
    else:
        with malformed_as(InputError, "bins are a list of edges"):
            edges = list(bins)
        if len(edges) < 2:
            raise DomainError(
                f"bins of {attribute.name or 'an attribute'} are at least two edges, "
                "or a mapping from names to conditions",
                received=repr(bins),
                code="too_few_edges",
                data={"column": attribute.name or "COLUMN", "edges": edges},
            )
        named = [
            ((low, high), attribute_cover(attribute, slice(low, high)))
            for low, high in itertools.pairwise(edges)
        ]
    parts = [(name, intersection(cover, condition)) for name, condition in named]
    return [(name, part) for name, part in parts if part]


def cell_name(attribute: Axis, cell: int) -> Any:
    """Return what a cell stands for.

    Parameters
    ----------
    attribute : Axis
        The attribute.
    cell : int
        The number of the cell.

    Returns
    -------
    object
        A level, a pair of edges, or the number.
    """
    if attribute.levels is not None:
        return attribute.levels[cell]
    if cell >= attribute.regular:
        return attribute.extras[cell - attribute.regular]
    if attribute.cuts is None:
        return cell
    low, high = attribute.cuts[cell], attribute.cuts[cell + 1]
    if attribute.unit is None:
        return (low, high)
    return tuple(as_dates((low, high), attribute.unit))
