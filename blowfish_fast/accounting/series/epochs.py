"""Epochs: named, half-open stretches of days that follow each other without a gap.

::

    every      name          start        stop         number
    day        2026-11-15    2026-11-15   2026-11-16   days since year 1
    week       2026-W46      2026-11-09   2026-11-16   days since year 1, over 7
    month      2026-11       2026-11-01   2026-12-01   months since year 0
    quarter    2026-Q4       2026-10-01   2027-01-01   quarters since year 0
    year       2026          2026-01-01   2027-01-01   the year

Numbers of neighbouring epochs differ by 1, so an age in epochs is a difference of two.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import NamedTuple

from blowfish_fast.errors import InputError

FORMS = {
    "day": (r"(\d{4})-(\d{2})-(\d{2})", "2026-11-15"),
    "week": (r"(\d{4})-W(\d{2})", "2026-W46"),
    "month": (r"(\d{4})-(\d{2})", "2026-11"),
    "quarter": (r"(\d{4})-Q([1-4])", "2026-Q4"),
    "year": (r"(\d{4})", "2026"),
}
"""How epochs of each length are written: a pattern, and an example."""

MONTHS = {"month": 1, "quarter": 3, "year": 12}


class Epoch(NamedTuple):
    """A stretch of days: from `start` to before `stop`.

    Attributes
    ----------
    every : {"day", "week", "month", "quarter", "year"}
        The length of the epoch.
    name : str
        The name as a person writes it, such as "2026-W46".
    start : date
        The first day.
    stop : date
        The day after the last one.
    """

    every: str
    name: str
    start: date
    stop: date

    @property
    def number(self) -> int:
        """A whole number that is one more for the next epoch."""
        if self.every == "day":
            return self.start.toordinal()
        if self.every == "week":
            # Ordinal 1 is a Monday, and so is the first day of every ISO week.
            return (self.start.toordinal() - 1) // 7
        months = MONTHS[self.every]
        return (self.start.year * 12 + self.start.month - 1) // months

    def before(self, steps: int) -> Epoch:
        """Return the epoch that lies so many epochs earlier (later, below 0)."""
        return epoch_of_number(self.every, self.number - steps)


def read_epoch(every: str, name: str) -> Epoch:
    """Read the name of an epoch.

    Parameters
    ----------
    every : {"day", "week", "month", "quarter", "year"}
        The length of the epochs.
    name : str
        Such as "2026-W46".

    Returns
    -------
    Epoch
        With its first day, and that of the next epoch.

    Raises
    ------
    InputError
        Where the name is not written as epochs of this length are.
    """
    form, example = FORMS[every]
    # Digits of other scripts would name an epoch a second time.
    match = re.fullmatch(form, name, re.ASCII) if isinstance(name, str) else None
    try:
        if match is None:
            raise ValueError
        return Epoch(every, name, *_bounds(every, *map(int, match.groups())))
    except (ValueError, OverflowError):
        raise InputError(
            f"a {every} is named like {example!r}", received=repr(name)
        ) from None


def epoch_at(every: str, day: date) -> Epoch:
    """Return the epoch that a day lies in.

    Parameters
    ----------
    every : {"day", "week", "month", "quarter", "year"}
        The length of the epochs.
    day : datetime.date
        The day.

    Returns
    -------
    Epoch
        The epoch.

    Examples
    --------
    >>> epoch_at("week", date(2027, 1, 1)).name
    '2026-W53'
    """
    if every == "day":
        return read_epoch(every, day.isoformat())
    if every == "week":
        year, week, _ = day.isocalendar()
        return read_epoch(every, f"{year:04}-W{week:02}")
    parts = {
        "month": f"{day.year:04}-{day.month:02}",
        "quarter": f"{day.year:04}-Q{(day.month + 2) // 3}",
        "year": f"{day.year:04}",
    }
    return read_epoch(every, parts[every])


def epoch_of_number(every: str, number: int) -> Epoch:
    """Return the epoch of a `number`; the inverse of ``Epoch.number``.

    Parameters
    ----------
    every : {"day", "week", "month", "quarter", "year"}
        The length of the epochs.
    number : int
        One more for each epoch.

    Returns
    -------
    Epoch
        The epoch.
    """
    if every == "day":
        return epoch_at(every, date.fromordinal(number))
    if every == "week":
        return epoch_at(every, date.fromordinal(7 * number + 1))
    months = number * MONTHS[every]
    return epoch_at(every, date(months // 12, months % 12 + 1, 1))


def _bounds(every: str, year: int, part: int = 1, day: int = 1) -> tuple[date, date]:
    """Return the first day of an epoch, and that of the next."""
    if every == "day":
        start = date(year, part, day)
        return start, start + timedelta(days=1)
    if every == "week":
        start = date.fromisocalendar(year, part, 1)
        return start, start + timedelta(days=7)
    months = MONTHS[every]
    first = (part - 1) * months if every != "year" else 0
    start = date(year, first + 1, 1)
    after = first + months
    return start, date(year + after // 12, after % 12 + 1, 1)
