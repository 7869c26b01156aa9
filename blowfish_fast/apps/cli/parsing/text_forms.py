"""How an office writes numbers, dates and blanks in its CSV files, as it states it.

    encoding   utf-8               cp1252, latin-1: what older programs write
    decimal    (none): 1234.5      "," reads 1.234,5 and 1'234,5; "." reads 1,234.5
    dates      YYYY-MM-DD          DD.MM.YYYY, MM/DD/YYYY, YYYYMMDD, ...
    blanks     "", NA, NaN, ...    more spellings of "missing", such as - or n.a.

Nothing of this is guessed from the data: 1,234 and 03/04/2024 mean different things in
different offices, and a wrong guess would put people into wrong cells without a word.
What cannot be read is refused without quoting it.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray
from blowfish_fast.errors import InputError

BLANKS = ("", "NA", "N/A", "na", "n/a", "NaN", "nan", "NULL", "null", "None", "NaT")
"""How missing numbers and dates are written."""
ISO = "YYYY-MM-DD"
NO_DATE = (
    "dates must read like 2024-05-31 or 2024-05-31T12:00; some read otherwise. State "
    'how they are written, as in dates = "DD.MM.YYYY" under [data], or --dates '
    "DD.MM.YYYY. Nothing was charged"
)
_SPACED = "'\u2019 \u00a0\u202f"
GROUPS = {",": f".{_SPACED}", ".": f",{_SPACED}"}
"""What may stand between thousands, by the decimal mark that was stated."""

DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])")
ZONE = re.compile(r"(Z|[+-][0-9]{2}:?[0-9]{2})$")
CLOCK = r"(?:[ T]+(?P<clock>[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?))?"


class TextForm(NamedTuple):
    """How the texts of a file are to be read; None where nothing was stated."""

    encoding: str | None = None
    decimal: str | None = None
    dates: str | None = None
    blanks: tuple[str, ...] = ()

    @property
    def absent(self) -> frozenset[str]:
        """Every spelling of a missing number or date."""
        return frozenset(BLANKS) | frozenset(one.strip() for one in self.blanks)


def checked_form(form: TextForm) -> TextForm:
    """Return the form as it was stated; refuse what is none."""
    if form.encoding is not None:
        _check_encoding(form.encoding)
    if form.decimal not in (None, ",", "."):
        raise InputError(
            f'the decimal mark is "," or "."; received {form.decimal!r}. Marks between '
            "thousands are then read, too"
        )
    if form.dates is not None:
        _date_pattern(form.dates)
    return form


def _check_encoding(name: str) -> None:
    try:
        "a".encode(name)
    except (LookupError, ValueError):
        raise InputError(
            f"there is no encoding {name!r}; common ones are utf-8, cp1252 (older "
            "Windows programs), latin-1 and utf-16"
        ) from None


def read_numbers(texts: list[Any], form: TextForm) -> FloatArray:
    """Return numbers, NaN where they are missing; ValueError where one is none."""
    absent = form.absent
    if form.decimal is None:
        return np.array([_number(one, absent) for one in texts], dtype=np.float64)
    between = re.escape(GROUPS[form.decimal])
    mark = re.escape(form.decimal)
    whole = rf"(?:[0-9]{{1,3}}(?:[{between}][0-9]{{3}})+|[0-9]+)"
    known = re.compile(
        rf"[+-]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?\d+)?"
    )
    plainly = str.maketrans(form.decimal, ".", GROUPS[form.decimal])
    found = np.full(len(texts), np.nan)
    for at, text in enumerate(texts):
        stripped = "" if text is None else text.strip()
        if stripped in absent:
            continue
        if not known.fullmatch(stripped):
            raise ValueError("no number in the form that was stated")
        found[at] = float(stripped.translate(plainly))
    return found


def _number(text: str | None, absent: frozenset[str]) -> float:
    stripped = "" if text is None else text.strip()
    if stripped in absent:
        return np.nan
    if "_" in stripped:
        raise ValueError("an underscore is no part of a number in a table")
    return float(stripped)


def is_number(text: str) -> bool:
    """Return whether a text is a number, and no missing one."""
    try:
        return not np.isnan(_number(text, frozenset(BLANKS)))
    except ValueError:
        return False


def read_dates(texts: list[Any], name: str, form: TextForm) -> AnyArray:
    """Return texts of dates like 2024-05-31, None where they are missing.

    Moments with a zone are taken at Greenwich, as they are in a Parquet file. A date
    without hyphens is refused unless it was stated to be so: 20240131 would be read as
    a year far away.
    """
    absent = form.absent
    pattern = None
    if form.dates not in (None, ISO):
        assert form.dates is not None
        pattern = _date_pattern(form.dates)
    known: dict[str, str | None] = {}
    for text in {"" if one is None else one for one in texts}:
        stripped = text.strip()
        if stripped in absent:
            known[text] = None
        elif pattern is None:
            known[text] = _iso_date(stripped, name)
        else:
            known[text] = _stated_date(stripped, name, pattern, form)
    return np.array([known["" if one is None else one] for one in texts], dtype=object)


def _iso_date(stripped: str, name: str) -> str:
    if not DAY.match(stripped):
        raise InputError(f"values of {name}: {NO_DATE}")
    if len(stripped) > 10 and ZONE.search(stripped, 10):
        try:
            moment = datetime.fromisoformat(stripped).astimezone(UTC)
        except (ValueError, OverflowError):
            raise InputError(f"values of {name}: {NO_DATE}") from None
        return moment.replace(tzinfo=None).isoformat()
    return stripped


def _stated_date(
    stripped: str, name: str, pattern: re.Pattern[str], form: TextForm
) -> str:
    found = pattern.fullmatch(stripped)
    try:
        if found is None:
            raise ValueError(name)
        parts = found.groupdict()
        day = date(int(parts["year"]), int(parts["month"]), int(parts.get("day") or 1))
    except ValueError:
        raise InputError(
            f"every value of {name} must be a date as stated, {form.dates}, a time "
            "after it or not, or missing; some are not. Nothing was charged"
        ) from None
    if parts["clock"] is None:
        return day.isoformat()
    hours, apart, rest = parts["clock"].partition(":")
    return f"{day.isoformat()}T{hours:0>2}{apart}{rest}"


def _date_pattern(words: str) -> re.Pattern[str]:
    """Return the pattern of dates such as ``DD.MM.YYYY``."""
    parts = re.split("(YYYY|MM|DD)", words)
    marks, fields = parts[::2], parts[1::2]
    apart = not any(mark == "" for mark in marks[1:-1])
    plain = not any(re.search(r"[\w]", mark) for mark in marks)
    if sorted(fields) not in (["DD", "MM", "YYYY"], ["MM", "YYYY"]) or not plain:
        raise InputError(
            "dates are written with YYYY, MM and DD, as in DD.MM.YYYY, MM/DD/YYYY or "
            f"YYYYMMDD; received {words!r}"
        )
    digits = "{1,2}" if apart else "{2}"
    found = {
        "YYYY": "(?P<year>[0-9]{4})",
        "MM": f"(?P<month>[0-9]{digits})",
        "DD": f"(?P<day>[0-9]{digits})",
    }
    return re.compile("".join(found.get(one, re.escape(one)) for one in parts) + CLOCK)
