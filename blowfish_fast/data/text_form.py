"""How an office writes numbers, dates and blanks in its CSV files, as it states it.

    encoding   utf-8               cp1252, latin-1: what older programs write
    decimal    (none): 1234.5      "," reads 1.234,5 and 1'234,5; "." reads 1,234.5
    dates      YYYY-MM-DD          DD.MM.YYYY, MM/DD/YYYY, YYYYMMDD, ...
    blanks     "", NA, NaN, ...    more spellings of "missing", such as - or n.a.

Nothing of this is guessed from the data: 1,234 and 03/04/2024 mean different things in
different offices, and a wrong guess would put people into wrong cells without a word.
Texts become values inside DuckDB, by the expressions that are written here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from blowfish_fast.errors import InputError

BLANKS = ("", "NA", "N/A", "na", "n/a", "NaN", "nan", "NULL", "null", "None", "NaT")
"""How missing numbers and dates are written."""

ISO = "YYYY-MM-DD"
ISO_DAY = "'[0-9]{4}-[0-9]{2}-[0-9]{2}'"

_SPACES = "'\u2019 \u00a0\u202f"
GROUPS = {",": f".{_SPACES}", ".": f",{_SPACES}"}
"""What may stand between thousands, by the decimal mark that was stated."""

WHITESPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))
"""What may stand around a value without being a part of it."""

CLOCK = (
    r"(?:[ T]+([0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
"""A time after a date, and its zone."""


class TextForm(NamedTuple):
    """How the texts of a file are to be read; None where nothing was stated."""

    encoding: str | None = None
    decimal: str | None = None
    dates: str | None = None
    blanks: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse what is no form."""
        if self.encoding is not None:
            _check_encoding(self.encoding)
        if self.decimal not in (None, ",", "."):
            raise InputError(
                f'the decimal mark is "," or "."; received {self.decimal!r}. Marks '
                "between thousands are then read, too"
            )
        if self.dates is not None:
            _date_pattern(self.dates)

    def value(self, text: str, kind: str) -> str:
        """Return the SQL of a value from the SQL of its text; NULL if there is none.

        The text has no spaces around it; `kind` is "number", "date" or "category".
        Moments with a zone are taken at Greenwich.
        """
        if kind == "date":
            value = _date(text, self.dates or ISO)
        else:
            value = text if kind == "category" else _number(text, self.decimal)
        return f"CASE WHEN {self.is_blank(text, kind)} THEN NULL ELSE {value} END"

    def usual_value(self, column: str, kind: str) -> str:
        """Return the SQL of values that are read at once; NULL for all others.

        No usual spelling of a missing number or date reads like one, and neither do
        spaces around it matter; where more is stated, each text is taken apart.
        """
        if self.blanks:
            return "NULL"
        if kind == "category":
            return f"CASE WHEN {_is_clean(column)} THEN {column} END"
        if kind == "number" and self.decimal is None:
            return _number(column, None)
        if kind == "date" and self.dates is None:
            day = f"TRY_CAST({column} AS DATE)"
            return f"CASE WHEN regexp_full_match({column}, {ISO_DAY}) THEN {day} END"
        return "NULL"

    def is_blank(self, text: str, kind: str) -> str:
        """Return the SQL of whether a text stands for a missing value.

        An empty category is missing; one that reads NA may be Namibia.
        """
        usual = BLANKS[:1] if kind == "category" else BLANKS
        listed = dict.fromkeys([*usual, *(one.strip() for one in self.blanks)])
        return f"({text} IS NULL OR {text} IN ({', '.join(map(literal, listed))}))"


def literal(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def trim_spaces(column: str) -> str:
    """Return the SQL of a text without the spaces around it."""
    # To look at the ends takes a tenth of the time.
    rest = f"trim({column}, {literal(WHITESPACE)})"
    return f"CASE WHEN {_is_clean(column)} THEN {column} ELSE {rest} END"


def _is_clean(column: str) -> str:
    """Return the SQL of whether a text begins and ends with a plain character."""
    return f"regexp_full_match({column}, '[!-~](.*[!-~])?')"


def is_number(text: str) -> bool:
    """Return whether a text is a number, and no missing one."""
    if text.strip() in BLANKS or "_" in text:
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_encoding(name: str) -> None:
    try:
        "a".encode(name)
    except (LookupError, ValueError):
        raise InputError(
            f"there is no encoding {name!r}; common ones are utf-8, cp1252 (older "
            "Windows programs), latin-1 and utf-16"
        ) from None


def _number(text: str, decimal: str | None) -> str:
    if decimal is None:
        plain = f"CASE WHEN contains({text}, '_') THEN NULL ELSE {text} END"
        return f"TRY_CAST({plain} AS DOUBLE)"
    between, mark = re.escape(GROUPS[decimal]), re.escape(decimal)
    whole = rf"(?:[0-9]{{1,3}}(?:[{between}][0-9]{{3}})+|[0-9]+)"
    known = rf"[+-]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    plain = f"translate({text}, {literal(decimal + GROUPS[decimal])}, '.')"
    return (
        f"TRY_CAST(CASE WHEN regexp_full_match({text}, {literal(known)}) THEN {plain} "
        "END AS DOUBLE)"
    )


def _date(text: str, words: str) -> str:
    """Return the SQL of a moment in UTC.

    A date without hyphens is none unless it was stated to be so: 20240131 would be
    read as a year far away.
    """
    pattern, written = _date_pattern(words)
    known = literal(pattern + CLOCK)
    clock = len(re.findall("YYYY|MM|DD", words)) + 1
    parts = literal(rf"{written} \{clock}")
    zone = f"regexp_extract({text}, {known}, {clock + 1})"
    minutes = (
        f"CAST(substr({zone}, 1, 1) || '1' AS INTEGER) * (CAST(substr({zone}, 2, 2) AS "
        f"INTEGER) * 60 + CAST(right({zone}, 2) AS INTEGER))"
    )
    east = f"CASE WHEN {zone} IN ('', 'Z') THEN 0 ELSE {minutes} END"
    moment = f"TRY_CAST(rtrim(regexp_replace({text}, {known}, {parts})) AS TIMESTAMP)"
    at_greenwich = f"{moment} - to_minutes({east})"
    return f"CASE WHEN regexp_full_match({text}, {known}) THEN {at_greenwich} END"


def _date_pattern(words: str) -> tuple[str, str]:
    """Return the pattern of dates such as ``DD.MM.YYYY``, and how ISO writes them."""
    parts = re.split("(YYYY|MM|DD)", words)
    marks, fields = parts[::2], parts[1::2]
    plain = not any(re.search(r"[\w]", mark) for mark in marks)
    if sorted(fields) not in (["DD", "MM", "YYYY"], ["MM", "YYYY"]) or not plain:
        raise InputError(
            "dates are written with YYYY, MM and DD, as in DD.MM.YYYY, MM/DD/YYYY or "
            f"YYYYMMDD; received {words!r}"
        )
    apart = words != ISO and not any(mark == "" for mark in marks[1:-1])
    digits = "([0-9]{1,2})" if apart else "([0-9]{2})"
    found = {"YYYY": "([0-9]{4})", "MM": digits, "DD": digits}
    place = {field: rf"\{at}" for at, field in enumerate(fields, start=1)}
    written = f"{place['YYYY']}-{place['MM']}-{place.get('DD', '01')}"
    return "".join(found.get(one, re.escape(one)) for one in parts), written
