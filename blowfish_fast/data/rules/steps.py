"""Cells by a rule: they begin at a start and follow each other at one step.

    start 2000-01-01, step 1 ns     cell i begins i nanoseconds after the start
    start 0, step 256               cell i holds [256 i, 256 (i + 1))

Nobody lists the edges, of which there may be 2^60, and none is ever a float: a double
tells nanoseconds apart for a hundred days only. All arithmetic is in whole ticks, which
are numbers, or units of time since 1970.
"""

from __future__ import annotations

import datetime
import re
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, IntArray
from blowfish_fast._support.validation import as_whole, malformed_as, quoted
from blowfish_fast.errors import DomainError

NANOSECONDS = {
    "D": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
"""Units of time by numpy's names, coarsest first."""

ATTOSECONDS = {name: 10**9 * length for name, length in NANOSECONDS.items()} | {
    "ps": 10**6,
    "fs": 10**3,
    "as": 1,
}
"""All units of numpy that have one length, in the finest of them."""

CLOCK_WORDS = ("today", "now")
"""Texts that numpy reads as the time at which it reads them: no date of a record."""

UNIT_WORDS = {
    "day": "D",
    "hour": "h",
    "h": "h",
    "minute": "m",
    "min": "m",
    "second": "s",
    "s": "s",
    "ms": "ms",
    "us": "us",
    "ns": "ns",
}
"""How people call them."""

MOST_STEPS = 2**62
"""Cells are numbered in 64 bits."""

FARTHEST_TICK = 2**63 - 1
"""Ticks are held in 64 bits."""

EXACT_IN_FLOATS = 2**53
"""Whole numbers up to here are told apart by doubles."""


class Steps(NamedTuple):
    """The rule of an axis: cell i holds the ticks from start + i step on.

    Attributes
    ----------
    start : int
        The first tick of cell 0: a number, or units of time since 1970.
    step : int
        Ticks to a cell, at least 1.
    unit : str, optional
        The unit of time, as numpy calls it; None for numbers.

    Examples
    --------
    >>> Steps(100, 10).values(np.array([0, 3])).tolist()
    [100, 130]
    >>> Steps(0, 1, "D").values(np.array([1])).tolist()
    [datetime.date(1970, 1, 2)]
    """

    start: int
    step: int
    unit: str | None = None

    @property
    def is_single(self) -> bool:
        """Whether a cell is one tick: its value says all of it."""
        return self.step == 1

    def end(self, cells: int) -> int:
        """Return the tick behind the last of so many cells."""
        return self.start + self.step * cells

    def values(self, places: IntArray) -> AnyArray:
        """Return where cells begin: numbers, or times."""
        ticks: AnyArray = self.start + places * self.step
        return ticks if self.unit is None else ticks.astype(f"M8[{self.unit}]")

    def words(self, cells: int) -> str:
        """Say where so many cells begin and end, and how large each is."""
        first, last = self._shown(self.start), self._shown(self.end(cells))
        unit = "" if self.unit is None else f" {self.unit}"
        return f"{first} to {last}, in steps of {self.step:,}{unit}"

    def _shown(self, tick: int) -> str:
        if self.unit is None:
            return f"{tick:,}"
        return str(np.int64(tick).astype(f"M8[{self.unit}]"))

    def tick(self, value: Any) -> int:
        """Return the tick at which a value begins, in Python's whole numbers.

        Raises
        ------
        DomainError
            If it is no whole number, or no moment in whole units.
        """
        if self.unit is None:
            if isinstance(value, float) and abs(value) > EXACT_IN_FLOATS:
                raise DomainError(
                    "a double tells whole numbers apart up to 2^53 only",
                    received=repr(value),
                    way_out="State the value as an int",
                )
            with malformed_as(DomainError, "values of this axis are whole numbers"):
                return as_whole(value, "a value of this axis")
        moment = _nanosecond(value)
        length = NANOSECONDS[self.unit]
        if moment % length:
            raise DomainError(
                f"moments are whole numbers of the unit of the steps, {self.unit}",
                received=quoted(value),
            )
        return moment // length

    def place(self, value: Any, cells: int) -> int:
        """Return which cell begins at a value, cut at both ends of the axis.

        Parameters
        ----------
        value : int, or date
            Where a cell begins.
        cells : int
            How many cells there are.

        Returns
        -------
        int
            The number of the cell; `cells` at the end and behind it.

        Raises
        ------
        DomainError
            If the value lies inside a cell.
        """
        tick = min(max(self.tick(value), self.start), self.end(cells))
        place, inside = divmod(tick - self.start, self.step)
        if inside:
            raise DomainError(
                f"ranges go from cell to cell, {self.words(cells)}",
                received=f"{quoted(value)}, which lies inside a cell",
            )
        return place

    def to_list(self) -> list[Any]:
        """Return plain data, for JSON."""
        return [self.start, self.step, self.unit]


def read_steps(start: Any, step: Any) -> Steps:
    """Return the rule of a start and a step, as people state them.

    Parameters
    ----------
    start : int, str, date or datetime64
        The first value, a whole number, or a moment.
    step : int, str, timedelta or timedelta64
        How far apart cells begin: a whole number, or a time such as "5min" or "1ns".

    Returns
    -------
    Steps
        The rule; times in the coarsest unit that holds both.

    Raises
    ------
    DomainError
        If one is a time and the other none, or the step is below 1.
    """
    if _is_whole(start) and _is_whole(step):
        rule = Steps(int(start), int(step))
    elif _is_whole(start) or _is_whole(step) or isinstance(start, float):
        raise DomainError(
            "an axis by a rule has whole numbers for start and step, or a date and a "
            "length of time",
            received=f"start={start!r} and step={step!r}",
            way_out='Write start=0, step=256, or start="2000-01-01", step="1ns"; '
            "count in smaller units where steps are fractions",
        )
    else:
        first, length = _nanosecond(start), _length(step)
        unit = next(
            name
            for name, nanoseconds in NANOSECONDS.items()
            if first % nanoseconds == 0 and length % nanoseconds == 0
        )
        rule = Steps(first // NANOSECONDS[unit], length // NANOSECONDS[unit], unit)
    if rule.step < 1:
        raise DomainError("a step goes forward", received=f"step={step!r}")
    return rule


def check_steps(rule: Steps, cells: int) -> None:
    """Refuse a rule whose cells 64 bits do not number, or whose ticks do not fit.

    Parameters
    ----------
    rule : Steps
        Start, step and unit of the axis.
    cells : int
        How many cells it has.

    Raises
    ------
    DomainError
        If there are more than 2^62 cells, or a tick needs more than 64 bits.
    """
    if not 1 <= cells <= MOST_STEPS:
        raise DomainError(
            "an axis by a rule has from 1 to 2^62 cells",
            received=f"{cells:,}",
            way_out="Take longer steps",
        )
    last = rule.end(cells)
    if max(abs(rule.start), abs(last), last - rule.start) > FARTHEST_TICK:
        raise DomainError(
            "the values of an axis by a rule fit into 64 bits",
            received=f"from {rule.start:,} to {last:,}"
            + ("" if rule.unit is None else f" {rule.unit}"),
            way_out="Take a coarser unit, or an axis that ends sooner",
        )


class PlacedTicks(NamedTuple):
    """Where values lie along an axis by a rule.

    Attributes
    ----------
    cells : ndarray of int64
        The cell of each value; 0 where it has none.
    below, above : ndarray of bool
        Which values lie before the start, and behind the end.
    """

    cells: IntArray
    below: BoolArray
    above: BoolArray


def place_ticks(
    rule: Steps, cells: int, values: AnyArray, tick: int = 1, parts: int = 1
) -> PlacedTicks:
    """Return the cells of whole numbers, each worth `tick` / `parts` ticks of the rule.

    Comparisons come first, in the units of the values, so that nothing overflows.

    Parameters
    ----------
    rule : Steps
        The rule.
    cells : int
        How many cells there are.
    values : ndarray of int64 or uint64
        The values.
    tick : int, default 1
        How many ticks a value of 1 is.
    parts : int, default 1
        How many values make a tick; one of the two is 1.

    Returns
    -------
    PlacedTicks
        The cells, and which values have none.

    Examples
    --------
    >>> found = place_ticks(Steps(100, 10), 3, np.array([99, 100, 129, 130]))
    >>> found.cells.tolist(), found.below.tolist()
    ([0, 0, 2, 0], [True, False, False, False])
    """
    # The least value at or behind a tick: that many values, rounded up.
    first, last = (-(-edge * parts // tick) for edge in (rule.start, rule.end(cells)))
    below, above = _is_below(values, first), ~_is_below(values, last)
    inside = ~(below | above)
    whole = np.where(inside, values, 0).astype(np.int64)
    ticks = whole * np.int64(tick) if parts == 1 else whole // np.int64(parts)
    places = (np.where(inside, ticks, rule.start) - rule.start) // rule.step
    return PlacedTicks(places.astype(np.int64), below, above)


def place_moments(rule: Steps, cells: int, moments: AnyArray) -> PlacedTicks:
    """Return the cells of times of any unit of numpy; missing ones have none.

    Parameters
    ----------
    rule : Steps
        A rule of times.
    cells : int
        How many cells there are.
    moments : ndarray of datetime64
        The times.

    Returns
    -------
    PlacedTicks
        The cells, and which times lie before or behind them.
    """
    assert rule.unit is not None
    unit, many = np.datetime_data(moments.dtype)
    if unit in ("Y", "M", "W", "generic"):
        moments, unit, many = moments.astype("M8[D]"), "D", 1
    own, wanted = many * ATTOSECONDS[unit], ATTOSECONDS[rule.unit]
    absent = np.isnat(moments)
    numbers = np.where(absent, 0, moments.view(np.int64))
    if own % wanted == 0:
        placed = place_ticks(rule, cells, numbers, tick=own // wanted)
    elif wanted % own == 0:
        placed = place_ticks(rule, cells, numbers, parts=wanted // own)
    else:
        return place_moments(rule, cells, moments.astype(f"M8[{unit}]"))
    return placed._replace(below=placed.below & ~absent, above=placed.above & ~absent)


def _is_below(values: AnyArray, edge: int) -> BoolArray:
    """Return which whole numbers lie below an edge that may need more than 64 bits."""
    limits = np.iinfo(values.dtype)
    if edge <= limits.min:
        return np.zeros(values.shape, dtype=np.bool_)
    if edge > limits.max:
        return np.ones(values.shape, dtype=np.bool_)
    return np.asarray(values < values.dtype.type(edge))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(
        value, bool | np.timedelta64
    )


def _nanosecond(value: Any) -> int:
    """Return the nanoseconds since 1970 at which a date or moment begins, exactly."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    zoned = isinstance(value, str) and re.search(r"[T ].*(Z|[+-][0-9:]+)$", value)
    of_clock = isinstance(value, str) and value.lower() in CLOCK_WORDS
    dated = isinstance(value, str | datetime.date | np.datetime64)
    try:
        if zoned or of_clock or not dated:
            raise ValueError
        moment = np.datetime64(value)
        if np.isnat(moment):
            raise ValueError
    except ValueError:
        raise DomainError(
            "moments read like 2024-05-31 or 2024-05-31T12:00:00.5, without a zone, or "
            "are date objects",
            received=quoted(value),
        ) from None
    unit, many = np.datetime_data(moment.dtype)
    if unit in ("Y", "M", "W"):
        moment, unit, many = moment.astype("M8[D]"), "D", 1
    if unit not in NANOSECONDS:
        raise DomainError("moments are told to the nanosecond", received=quoted(value))
    return int(moment.astype(np.int64)) * many * NANOSECONDS[unit]


def _length(step: Any) -> int:
    """Return how many nanoseconds a step of time has."""
    if isinstance(step, datetime.timedelta):
        return round(step / datetime.timedelta(microseconds=1)) * 1000
    if isinstance(step, np.timedelta64):
        unit, many = np.datetime_data(step.dtype)
        if unit == "W":
            unit, many = "D", 7 * many
        if unit in NANOSECONDS and not np.isnat(step):
            return int(step.astype(np.int64)) * many * NANOSECONDS[unit]
    if isinstance(step, str):
        match = re.fullmatch(r"\s*([0-9]{0,18})\s*([a-z]+?)\s*", step)
        word = "" if match is None else match[2]
        plural = word[:-1] if word.endswith("s") and len(word) > 2 else word
        unit = UNIT_WORDS.get(word) or UNIT_WORDS.get(plural) or ""
        if match is not None and unit:
            return int(match[1] or 1) * NANOSECONDS[unit]
    raise DomainError(
        "a step of time is a whole number of "
        f"{', '.join(dict.fromkeys(UNIT_WORDS))}, such as 1ns or 5min",
        received=quoted(step),
        way_out="Write 1500ms for one and a half seconds",
    )
