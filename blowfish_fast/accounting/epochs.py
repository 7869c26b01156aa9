"""Epochs of a calendar: names, half-open stretches of days, and their order.

day "2026-11-15"   week "2026-W46"   month "2026-11"   quarter "2026-Q4"   year "2026"
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import NamedTuple

from blowfish_fast.errors import InputError

FORMS = {
    "day": r"(\d{4})-(\d{2})-(\d{2})",
    "week": r"(\d{4})-W(\d{2})",
    "month": r"(\d{4})-(\d{2})",
    "quarter": r"(\d{4})-Q([1-4])",
    "year": r"(\d{4})",
}
EXAMPLES = {
    "day": "2026-11-15",
    "week": "2026-W46",
    "month": "2026-11",
    "quarter": "2026-Q4",
    "year": "2026",
}


class Epoch(NamedTuple):
    """A stretch of days: from `start` to before `stop`."""

    name: str
    start: date
    stop: date


def read_epoch(every: str, name: str) -> Epoch:
    """Read the name of an epoch.

    Examples
    --------
    >>> read_epoch("week", "2026-W46").start.isoformat()
    '2026-11-09'
    >>> read_epoch("quarter", "2026-Q4").stop.isoformat()
    '2027-01-01'
    """
    match = re.fullmatch(FORMS[every], name) if isinstance(name, str) else None
    try:
        if match is None:
            raise ValueError
        return Epoch(name, *_bounds(every, *map(int, match.groups())))
    except ValueError:
        raise InputError(
            f"a {every} is named like {EXAMPLES[every]!r}", received=repr(name)
        ) from None


def _bounds(every: str, year: int, part: int = 1, day: int = 1) -> tuple[date, date]:
    if every == "day":
        start = date(year, part, day)
        return start, start + timedelta(days=1)
    if every == "week":
        start = date.fromisocalendar(year, part, 1)
        return start, start + timedelta(days=7)
    months = {"month": 1, "quarter": 3, "year": 12}[every]
    first = (part - 1) * months if every != "year" else 0
    start = date(year, first + 1, 1)
    after = first + months
    return start, date(year + after // 12, after % 12 + 1, 1)
