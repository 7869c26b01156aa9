"""Sheets of workbooks as tables of records, read row by row.

A sheet is read as the texts that a CSV file of it would hold, by the same rules of
missing values, numbers and dates:

- numbers in the 15 digits that a spreadsheet shows and compares, with the decimal mark
  that was stated; dates as stated, else as 2024-05-31; truths as their column's
  categories spell them, else TRUE and FALSE; #N/A is missing;
- of formulas the values that the spreadsheet stored; a formula without one is refused;
- a cell merged over rows has its value in each of them; one merged over columns is
  refused;
- the names stand in the first row that holds something, or below a title: a row with
  one cell, above one of three words or more, or of two after an empty row;
- rows without a value in any named column are no records, and neither is whatever
  stands beside the names.

``survey.xlsx#Sheet2`` names a sheet; a workbook with one sheet needs no name.
"""

from __future__ import annotations

import csv
import datetime
import io
import os
import posixpath
import re
import zipfile
import zlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.parsers import expat

from blowfish_fast._support.optional import require
from blowfish_fast.data.csv_files import (
    ISO,
    CsvHead,
    CsvTable,
    SheetPlace,
    TextForm,
    date_forms,
    file_of,
    fitting_head,
    is_number,
    load_table,
    mark_kept,
    sheet_place,
)
from blowfish_fast.errors import InputError, nearest

MISSING = "#N/A"
"""What a spreadsheet shows where a value is not available."""
TRUTHS = ("FALSE", "TRUE")
ROWS_AT_ONCE = 1000
ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
"""A character that XML cannot hold, as workbooks write it."""
TORN = (zipfile.BadZipFile, EOFError, zlib.error, expat.ExpatError)
"""What a damaged workbook raises."""

Row = tuple[int, Sequence[Any]]
"""A row's number, and its values."""
Rows = Generator[Row]
"""Numbers and values of rows that hold something, from the head on."""


def head_of_sheet(path: Path, wanted: Sequence[str], form: TextForm) -> CsvHead:
    """Return the head of a sheet with the wanted columns.

    Parameters
    ----------
    path : Path
        A workbook, with the sheet or without.
    wanted : sequence of str
        Columns that have to be there.
    form : TextForm
        What was stated about the texts.

    Returns
    -------
    CsvHead
        The head; no record is read.

    Raises
    ------
    InputError
        If a column is missing, or the file cannot be read.
    """
    if form.encoding is not None:
        raise InputError(
            "an encoding says how a CSV file is written, and a workbook says so itself",
            received=f"the encoding {form.encoding!r}",
            way_out="Leave it out",
        )
    with _opened(path) as sheet, closing(_filled_rows(sheet)) as lines:
        first, second = next(lines, (0, ())), next(lines, (0, ()))
    number, values = first
    texts = [_as_text(value, form, TRUTHS) for value in values]
    if _is_title(first, second) and not (wanted and {*texts} >= {*wanted}):
        number, values = second
        texts = [_as_text(value, form, TRUTHS) for value in values]
    names = [text if text in wanted else " ".join(text.split()) for text in texts]
    while names and not names[-1]:
        names.pop()
    return fitting_head(path, [CsvHead(names, ",", "utf-8", number)], wanted)


def load_sheet(connection: Any, path: Path, table: str) -> None:
    """Make a table of DuckDB from a sheet; types are settled by all rows.

    Parameters
    ----------
    connection : duckdb connection
        Where the table is made.
    path : Path
        A workbook, with the sheet or without.
    table : str
        The name of the table.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    form = TextForm()
    head = head_of_sheet(path, [], form)
    load_table(connection, SheetTable(path, head, form, {}), table)


def lines_of(path: Path, head: CsvHead) -> list[list[str]]:
    """Return the lines below the head of a small public sheet, as texts.

    Parameters
    ----------
    path : Path
        A workbook, with the sheet or without.
    head : CsvHead
        What `head_of_sheet` returned.

    Returns
    -------
    list of list of str
        The rows that are not empty, of one length.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    return list(SheetTable(path, head, TextForm(), {}).rows())


class SheetTable(CsvTable):
    """The records of a sheet, written to DuckDB as a CSV file would hold them.

    Parameters
    ----------
    path : Path
        A workbook, with the sheet or without.
    head : CsvHead
        What `head_of_sheet` returned.
    form : TextForm
        What was stated about the texts.
    truths : mapping from str to tuple of str
        How a column's categories spell false and true; FALSE and TRUE if not stated.
    """

    def __init__(
        self,
        path: Path,
        head: CsvHead,
        form: TextForm,
        truths: Mapping[str, tuple[str, str]],
    ) -> None:
        super().__init__(path, head)
        self.form = form
        self.spelt = [truths.get(name, TRUTHS) for name in head.names]

    def _write(self, end: int) -> None:
        with os.fdopen(end, "w", encoding="utf-8", newline="") as pipe:
            for block in mark_kept(self._lines()):
                pipe.write(block)

    def _lines(self) -> Iterator[str]:
        """Yield the lines of a CSV file, many at a time."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        for number, row in enumerate(self.rows(), start=1):
            writer.writerow(row)
            if number % ROWS_AT_ONCE == 0:
                yield text.getvalue()
                text.seek(0)
                text.truncate()
        yield text.getvalue()

    def rows(self) -> Iterator[list[str]]:
        """Yield the records as texts, one for each column of the head."""
        with _opened(self.path) as sheet, closing(_filled_rows(sheet)) as lines:
            # As far as the workbook says; only the progress depends on it.
            total, top = sheet.max_row or 1, self.head.lines
            marks = _read_marks(file_of(self.path), sheet.title)
            down = self._merged_down(marks, top)
            self._refuse_formulas(marks, top)
            values: dict[tuple[int, int], Any] = {}
            for number, line in lines:
                if number <= top:
                    continue
                row = self._filled(number, line, down.get(number, {}), values)
                texts = [
                    _as_text(value, self.form, spelt)
                    for value, spelt in zip(row, self.spelt, strict=True)
                ]
                named = zip(texts, self.head.names, strict=True)
                if any(text and name for text, name in named):
                    yield texts
                self.part = min(1.0, number / total)

    def _filled(
        self,
        number: int,
        line: Sequence[Any],
        down: Mapping[int, int],
        values: dict[tuple[int, int], Any],
    ) -> list[Any]:
        """Return a row whose merged cells have the value of the first of them."""
        width = len(self.head.names)
        row = [*line[:width], *(None,) * (width - len(line))]
        for column, first in down.items():
            if number == first:
                values[column, first] = row[column]
            # Nothing is there where the first row was empty.
            row[column] = values.get((column, first))
        return row

    def _merged_down(self, marks: _Marks, top: int) -> dict[int, dict[int, int]]:
        """Return the merged columns of each row, each with its first row."""
        down: dict[int, dict[int, int]] = {}
        for left, first, right, last in marks.merged:
            if last <= top or not any(self.head.names[left - 1 : right]):
                continue
            if left != right:
                raise InputError(
                    f"{self.path}: cells of records may be merged over rows, and some "
                    "are merged over columns, so that it is open which column their "
                    "value belongs to",
                    way_out="Unmerge them in the spreadsheet. Nothing was charged",
                )
            for row in range(first, last + 1):
                down.setdefault(row, {})[left - 1] = first
        return down

    def _refuse_formulas(self, marks: _Marks, top: int) -> None:
        empty = [
            name
            for at, name in enumerate(self.head.names)
            if name and marks.uncomputed.get(at + 1, 0) > top
        ]
        if empty:
            raise InputError(
                f"{self.path}: some formulas of {', '.join(empty)} have no stored "
                "value, since no spreadsheet computed them",
                way_out="Open the workbook in a spreadsheet and save it. Nothing was "
                "charged",
            )


def _is_title(first: Row, second: Row) -> bool:
    """Tell whether a row is a title above the names: alone, above a row of words.

    A record with a note beside it must not be taken for names, so that these are three
    words at least, or stand apart.
    """
    (number, above), (next_number, below) = first, second
    filled = [value for value in below if value not in (None, "")]
    words = all(isinstance(value, str) and not is_number(value) for value in filled)
    apart = next_number > number + 1 and len(filled) == 2
    alone = sum(value not in (None, "") for value in above) == 1
    return alone and words and (apart or len(filled) > 2)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Yield a sheet to be read row by row; refuse one that is not there."""
    place = sheet_place(path) or SheetPlace(path, None)
    openpyxl = require("openpyxl", extra="excel", purpose="reading a workbook")
    try:
        book = openpyxl.load_workbook(place.file, read_only=True, data_only=True)
    except Exception as problem:
        raise InputError(
            f"{place.file} is no workbook that can be read ({type(problem).__name__})",
            way_out="Open it in a spreadsheet and save it as .xlsx without a password, "
            "or as CSV (UTF-8). Nothing was charged",
        ) from None
    try:
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        if place.sheet is None and len(sheets) == 1:
            chosen = next(iter(sheets.values()))
        elif place.sheet in sheets:
            chosen = sheets[place.sheet]
        else:
            raise _no_sheet(place, list(sheets))
        yield chosen
    finally:
        book.close()


def _no_sheet(place: SheetPlace, titles: Sequence[str]) -> InputError:
    listed = ", ".join(titles) or "none with cells"
    if place.sheet is None:
        return InputError(
            f"{place.file} has more than one sheet: {listed}",
            way_out=f"Say which one holds the records, as in {place.file}#{titles[0]}"
            if titles
            else None,
        )
    return InputError(
        f"{place.file} has no sheet {place.sheet!r}{nearest(place.sheet, titles)}; its "
        f"sheets are {listed}"
    )


def _filled_rows(sheet: Any) -> Rows:
    """Yield rows that hold something.

    The size that a workbook states is not used: where it is wrong, rows would be lost.
    """
    sheet.reset_dimensions()
    with _own_words(sheet.title):
        for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
            if any(value is not None and value != "" for value in row):
                yield number, row


@contextmanager
def _own_words(title: str) -> Iterator[None]:
    """Say that a sheet is damaged, without quoting it."""
    try:
        yield
    except (SyntaxError, ValueError, LookupError, *TORN) as problem:
        # Errors of XML are errors of syntax or of expat.
        raise InputError(
            f"the sheet {title!r} cannot be read to its end "
            f"({type(problem).__name__}). Nothing was charged"
        ) from None


def _as_text(value: Any, form: TextForm, spelt: tuple[str, str]) -> str:
    """Return a value of a sheet as a CSV file with these forms would write it."""
    if value is None or value == MISSING:
        return ""
    if isinstance(value, str):
        plain = ESCAPED.sub(lambda sign: chr(int(sign[1], 16)), value)
        return re.sub("\r\n?", "\n", plain)
    if isinstance(value, bool):
        return spelt[value]
    if isinstance(value, int | float):
        # A sum of 0.1 and 0.2 is 0.3 in a spreadsheet.
        text = f"{value:.15g}" if isinstance(value, float) else str(value)
        return text.replace(".", form.decimal or ".")
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        clock = "" if midnight else f"T{value.time().isoformat()}"
        return _day(value, form) + clock
    return _day(value, form) if isinstance(value, datetime.date) else str(value)


def _day(day: datetime.date, form: TextForm) -> str:
    words = date_forms(form.dates or ISO)[0]
    for field, part in (
        ("YYYY", f"{day.year:04d}"),
        ("MM", f"{day.month:02d}"),
        ("DD", f"{day.day:02d}"),
    ):
        words = words.replace(field, part)
    return words


class _Marks(NamedTuple):
    """What a sheet says of its cells beside their values.

    Attributes
    ----------
    merged : list of tuple of int
        Left column, first row, right column and last row of merged cells, from 1.
    uncomputed : dict from int to int
        The last row of each column with a formula that has no stored value.
    """

    merged: list[tuple[int, int, int, int]]
    uncomputed: dict[int, int]


def _read_marks(path: Path, title: str) -> _Marks:
    """Return merged cells and formulas without values, which row readers leave out."""
    reading = _MarkReader()
    with (
        _own_words(title),
        zipfile.ZipFile(path) as book,
        book.open(_part_of(book, title)) as sheet,
    ):
        reading.parser.ParseFile(sheet)
    reading.end_cell()
    return _Marks(reading.merged, reading.uncomputed)


class _MarkReader:
    """Takes the elements of a sheet; texts are looked at inside formulas' values only.

    A cell ends where the next begins: ends of elements need not be told.
    """

    def __init__(self) -> None:
        self.merged: list[tuple[int, int, int, int]] = []
        self.uncomputed: dict[int, int] = {}
        self.row, self.column = 0, 0
        self.open_formula, self.is_text = False, False
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self.start

    def start(self, name: str, about: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        if tag == "c":
            self.end_cell()
            self.column += 1
            if "r" in about:
                self.column, self.row = _place(about["r"])
            # A formula may store an empty text.
            self.is_text = about.get("t") == "str"
        elif tag == "f":
            self.open_formula = not self.is_text
        elif tag == "v" and self.open_formula:
            self.parser.CharacterDataHandler = self.text
        elif tag == "row":
            self.end_cell()
            self.row, self.column = int(about.get("r", self.row + 1)), 0
        elif tag == "mergeCell":
            first, _, last = about["ref"].partition(":")
            self.merged.append((*_place(first), *_place(last or first)))

    def text(self, text: str) -> None:
        if text.strip():
            self.open_formula = False
            self.parser.CharacterDataHandler = None

    def end_cell(self) -> None:
        if self.open_formula:
            self.uncomputed[self.column] = self.row
            self.open_formula = False
            self.parser.CharacterDataHandler = None


def _place(reference: str) -> tuple[int, int]:
    """Return column and row of a cell such as B12, from 1."""
    letters = reference.replace("$", "").rstrip("0123456789")
    column = 0
    for letter in letters.upper():
        column = 26 * column + ord(letter) - ord("A") + 1
    return column, int(reference.replace("$", "")[len(letters) :])


def _part_of(book: zipfile.ZipFile, title: str) -> str:
    """Return the file inside a workbook that holds a sheet."""
    main = next(
        _inside("", item.attrib["Target"])
        for item in _items(book, "_rels/.rels")
        if item.attrib.get("Type", "").endswith("/officeDocument")
    )
    folder, _, name = main.rpartition("/")
    targets = {
        item.attrib["Id"]: _inside(folder, item.attrib["Target"])
        for item in _items(book, posixpath.join(folder, "_rels", f"{name}.rels"))
        if "Id" in item.attrib
    }
    for item in _items(book, main):
        if item.tag.endswith("}sheet") and item.attrib["name"] == title:
            key = next(name for name in item.attrib if name.endswith("}id"))
            return targets[item.attrib[key]]
    raise InputError(f"the workbook has no sheet {title!r}")


def _items(book: zipfile.ZipFile, part: str) -> Iterator[ElementTree.Element]:
    return ElementTree.fromstring(book.read(part)).iter()


def _inside(folder: str, target: str) -> str:
    """Return where a part of a workbook stands that another part refers to."""
    return posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
