"""Lines of a CSV file as columns, chunk by chunk.

    age,district          age       float64, NaN where missing
    34,north       ->     district  texts, None where empty
    ,south                day       texts like 2024-05-31

Read by pyarrow where it is installed, and by Python's own reader otherwise; both take
the same values. Numbers and dates count as missing when they are empty or read NA,
N/A, NaN, null or None; a category only when it is empty. What cannot be read is said
without quoting it: it could be a person's value.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._typing import AnyArray
from ..errors import InputError
from .words import nearest

BLANKS = ["", "NA", "N/A", "na", "n/a", "NaN", "nan", "NULL", "null", "None", "NaT"]
"""How missing numbers and dates are written."""
_BLANKS = frozenset(BLANKS)
NO_DATE = (
    "dates must read like 2024-05-31 or 2024-05-31T12:00; some read otherwise. Nothing "
    "was charged"
)

DELIMITERS = (",", ";", "\t", "|")
ROWS = 2**16
"""Rows of a chunk."""
BLOCK_BYTES = 2**22

Part = Callable[[float], None]
"""Takes the part of the file that has been read, from 0 to 1."""


class Column(NamedTuple):
    """A column that is needed: its name, and what its values are."""

    name: str
    kind: str


def csv_header(path: Path, wanted: Sequence[str]) -> tuple[str, list[str]]:
    """Return the delimiter and the names of the first line; nothing else is read."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            line = file.readline(2**20)
    except UnicodeDecodeError:
        raise InputError(_not_utf8(path)) from None
    found: list[str] = []
    for delimiter in DELIMITERS:
        names = next(csv.reader([line], delimiter=delimiter), [])
        if all(one in names for one in wanted):
            return delimiter, _once_each(names, wanted, path)
        found = max(found, names, key=len)
    raise InputError(lacking_column(wanted, found, path))


def _once_each(names: list[str], wanted: Sequence[str], path: Path) -> list[str]:
    twice = [one for one in wanted if names.count(one) > 1]
    if twice:
        raise InputError(
            f"{path} has more than one column {twice[0]!r}; rename the others"
        )
    return names


def lacking_column(wanted: Sequence[str], found: Sequence[str], path: Path) -> str:
    """Say which column is not there, and which one may be meant."""
    lacks = next(one for one in wanted if one not in found)
    if not found or any(_is_number(one) for one in found):
        # Without names the first line is a person's, and not for a message.
        return (
            f"{path} has no column {lacks!r}: its first line must name the columns, "
            "with commas between, and names none. Write such a line"
        )
    shown = ", ".join(list(found)[:20])
    return (
        f"{path} has no column {lacks!r}{nearest(lacks, found)}; its columns are "
        f"{shown}"
    )


def _is_number(text: str) -> bool:
    try:
        return not np.isnan(_number(text))
    except ValueError:
        return False


def lines_in_chunks(
    path: Path, delimiter: str, header: list[str], wanted: list[Column], done: Part
) -> Iterator[dict[str, Any]]:
    """Yield the wanted columns, chunk by chunk."""
    installed = importlib.util.find_spec("pyarrow") is not None
    read = _arrow_csv if installed else _plain_csv
    return read(path, delimiter, header, wanted, done)


def _arrow_csv(
    path: Path, delimiter: str, header: list[str], wanted: list[Column], done: Part
) -> Iterator[dict[str, Any]]:
    import pyarrow
    import pyarrow.csv

    kinds = {
        one.name: pyarrow.float64() if one.kind == "number" else pyarrow.string()
        for one in wanted
    }
    size = max(path.stat().st_size, 1)
    try:
        with _QuoteCounter(path) as file:
            reader = pyarrow.csv.open_csv(
                file,
                read_options=pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    include_columns=list(kinds), column_types=kinds, null_values=BLANKS
                ),
            )
            for batch in reader:
                yield {
                    one.name: _from_texts(batch.column(one.name), one) for one in wanted
                }
                done(min(1.0, file.tell() / size))
            _refuse_open_quote(path, delimiter, file.quotes)
    except pyarrow.ArrowInvalid as problem:
        raise InputError(_unreadable(path, wanted, str(problem))) from None


def _from_texts(column: Any, wanted: Column) -> Any:
    """Turn a column of a CSV file into what cells are found from."""
    if wanted.kind == "number":
        return column.to_numpy(zero_copy_only=False)
    if wanted.kind == "date":
        return date_texts(column.to_pylist(), wanted.name)
    import pyarrow
    import pyarrow.compute

    empty = pyarrow.compute.equal(column, "")
    absent = pyarrow.scalar(None, pyarrow.string())
    return pyarrow.compute.if_else(empty, absent, column)


DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])")
ZONE = re.compile(r"(Z|[+-][0-9]{2}:?[0-9]{2})$")


def date_texts(texts: list[Any], name: str) -> AnyArray:
    """Return texts of dates, None where they are missing.

    Moments with a zone are taken at Greenwich, as they are in a Parquet file. A date
    without hyphens is refused: 20240131 would be read as a year far away.
    """
    return np.array([_date_text(one, name) for one in texts], dtype=object)


def _date_text(text: str | None, name: str) -> str | None:
    stripped = "" if text is None else text.strip()
    if stripped in _BLANKS:
        return None
    if not DAY.match(stripped):
        raise InputError(f"values of {name}: {NO_DATE}")
    if len(stripped) > 10 and ZONE.search(stripped, 10):
        try:
            moment = datetime.fromisoformat(stripped).astimezone(UTC)
        except (ValueError, OverflowError):
            raise InputError(f"values of {name}: {NO_DATE}") from None
        return moment.replace(tzinfo=None).isoformat()
    return stripped


def _plain_csv(
    path: Path, delimiter: str, header: list[str], wanted: list[Column], done: Part
) -> Iterator[dict[str, Any]]:
    places = [header.index(one.name) for one in wanted]
    size = max(path.stat().st_size, 1)
    try:
        with _QuoteCounter(path) as raw:
            lines = io.TextIOWrapper(
                io.BufferedReader(raw), encoding="utf-8-sig", newline=""
            )
            rows = csv.reader(lines, delimiter=delimiter)
            next(rows, None)
            block: list[list[str]] = []
            for row in rows:
                if len(row) != len(header):
                    if not row:
                        continue
                    raise InputError(_unreadable(path, wanted, "columns"))
                block.append([row[at] for at in places])
                if len(block) == ROWS:
                    yield _converted(block, wanted, path)
                    done(min(1.0, raw.tell() / size))
                    block = []
            if block:
                yield _converted(block, wanted, path)
            _refuse_open_quote(path, delimiter, raw.quotes)
    except UnicodeDecodeError:
        raise InputError(_not_utf8(path)) from None
    except csv.Error:
        raise InputError(_unreadable(path, wanted, "")) from None


class _QuoteCounter(io.FileIO):
    """A file that counts the quotation marks read from it."""

    quotes = 0

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(-1 if size is None else size) or b""
        self.quotes += found.count(b'"')
        return found

    def readinto(self, buffer: Any) -> int:
        number = super().readinto(buffer) or 0
        self.quotes += bytes(memoryview(buffer)[:number]).count(b'"')
        return number


def _refuse_open_quote(path: Path, delimiter: str, quotes: int) -> None:
    """Refuse a file whose last quotation mark is never closed.

    Both readers take all lines after such a mark as one text, so the people on them
    would be lost without a word. Marks come in pairs; only where one is odd, as in
    ``5" pipe``, is the file read once more to see whether it ends inside a text.
    """
    if quotes % 2 == 0:
        return
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for _ in csv.reader(file, delimiter=delimiter, strict=True):
                pass
    except csv.Error:
        raise InputError(
            f"{path}: every quotation mark that opens a value must be closed; one is "
            "not, and the lines after it would be lost. Close it, or double a mark "
            "that belongs to a value. Nothing was charged"
        ) from None


def _converted(
    rows: list[list[str]], wanted: list[Column], path: Path
) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for one, texts in zip(wanted, zip(*rows, strict=True), strict=True):
        if one.kind == "date":
            made[one.name] = date_texts(list(texts), one.name)
        elif one.kind == "category":
            made[one.name] = np.array([text or None for text in texts], dtype=object)
        else:
            try:
                made[one.name] = np.array([_number(text) for text in texts])
            except ValueError:
                raise InputError(_unreadable(path, [one], "conversion")) from None
    return made


def _number(text: str) -> float:
    stripped = text.strip()
    if stripped in _BLANKS:
        return np.nan
    if "_" in stripped:
        raise ValueError("an underscore is no part of a number in a table")
    return float(stripped)


def _unreadable(path: Path, wanted: Sequence[Column], problem: str) -> str:
    """Say what is wrong without a word of what the file holds."""
    numbers = [one.name for one in wanted if one.kind == "number"]
    if "conversion" in problem and "UTF8" not in problem and numbers:
        return (
            f"{path}: every value of {', '.join(numbers)} must be a number, or "
            "missing (empty, NA, NaN, null); some are not. Nothing was charged"
        )
    if "olumns" in problem:
        return (
            f"{path}: some line has more or fewer fields than the first; values with "
            "the delimiter in them need quotes. Nothing was charged"
        )
    return f"{_not_utf8(path)}. Nothing was charged"


def _not_utf8(path: Path) -> str:
    return f"{path} cannot be read as a CSV file in UTF-8; save it in that encoding"
