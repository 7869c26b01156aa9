"""CSV files of records, however an office saved them, as tables of DuckDB.

Python unpacks and decodes, since DuckDB takes the half of a torn gzip file for the
whole, knows few encodings, and refuses mixed line ends. How numbers, dates and blanks
are written is stated (`TextForm`), never guessed: a wrong guess at 1,234 or 03/04/2024
would put people into wrong cells without a word.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import gzip
import io
import os
import re
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from blowfish_fast._support.optional import require
from blowfish_fast.errors import InputError, nearest

DELIMITERS = (",", ";", "\t", "|")
ZIP, GZIP = b"PK\x03\x04", b"\x1f\x8b"
"""How a zipped file begins, a workbook of Excel among them, and one of gzip."""
MARK = "\ufeff"
"""The byte order mark of Unicode, which is also an ordinary sign inside a text."""
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
TORN = (EOFError, zlib.error, gzip.BadGzipFile)
"""What a file that is not packed as its name says raises."""
COLUMN_TYPES = ("BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "VARCHAR")
"""What a column of a table may become: yes, true and 12:00 stay texts, as stated."""
MOST_LINES = 50
"""Lines that the names may take."""
LONGEST_LINE = 2**20
ALIKE = 0.6
"""How like two names are, at least, that may be taken for each other; at most 1."""
BYTES_AT_ONCE = 2**20
PLACE = re.compile(r"(.+\.xls[xm])(?:#(.*))?", re.IGNORECASE | re.DOTALL)
"""A workbook, and a sheet of it."""


class SheetPlace(NamedTuple):
    """A workbook and a sheet of it.

    Attributes
    ----------
    file : Path
        The workbook.
    sheet : str or None
        The sheet; None for the only one.
    """

    file: Path
    sheet: str | None


def sheet_place(path: Path) -> SheetPlace | None:
    """Return the workbook and the sheet that a path names.

    Parameters
    ----------
    path : Path
        The path, with ``#`` and the name of a sheet at its end or without.

    Returns
    -------
    SheetPlace or None
        The place; None where the path names no workbook.

    Examples
    --------
    >>> sheet_place(Path("survey.xlsx#wave 2")).sheet
    'wave 2'
    >>> sheet_place(Path("survey.csv")) is None
    True
    """
    named = PLACE.fullmatch(str(path))
    return None if named is None else SheetPlace(Path(named[1]), named[2] or None)


def file_of(path: Path) -> Path:
    """Return the file that a path names, without the sheet of a workbook.

    Parameters
    ----------
    path : Path
        The path.

    Returns
    -------
    Path
        The file.
    """
    place = sheet_place(path)
    return path if place is None else place.file


class CsvHead(NamedTuple):
    """What the first lines of a CSV file say; nothing of records.

    Attributes
    ----------
    names : list[str]
        The names of the columns.
    delimiter : str
        What stands between two fields.
    encoding : str
        The encoding of the text.
    lines : int
        How many lines the head has; the names stand on the last of them.
    """

    names: list[str]
    delimiter: str
    encoding: str
    lines: int


def duckdb_module() -> Any:
    """Return DuckDB, or say which extra brings it."""
    return require("duckdb", extra="files", purpose="reading files of records")


def read_head(path: Path, wanted: Sequence[str], form: TextForm) -> CsvHead:
    """Return the head of a file with the wanted columns; no record is read.

    Parameters
    ----------
    path : Path
        The file.
    wanted : Sequence[str]
        Columns that have to be there.
    form : TextForm
        What was stated about the texts.

    Returns
    -------
    CsvHead
        The head.

    Raises
    ------
    InputError
        If a column is missing, or the file cannot be read.
    """
    encoding = _encoding(path, form)
    delimiters: Sequence[str] = DELIMITERS
    with (
        _own_words(path, encoding),
        path.open("rb") as packed,
        io.TextIOWrapper(_unpack(path, packed), encoding) as file,
    ):
        line, lines = file.readline(LONGEST_LINE), 1
        if line.lower().startswith("sep=") and len(line.rstrip("\n")) == 5:
            # Written by Excel, and for it, above the names.
            delimiters, line, lines = [line[4]], file.readline(LONGEST_LINE), 2
        while line.count('"') % 2 and lines < MOST_LINES:
            # A name with a line break in it, as spreadsheets write them.
            line, lines = line + file.readline(LONGEST_LINE), lines + 1
    heads = []
    for delimiter in delimiters:
        names = next(csv.reader([line], delimiter=delimiter), [])
        names = [name if name in wanted else " ".join(name.split()) for name in names]
        heads.append(CsvHead(names, delimiter, encoding, lines))
    return fitting_head(path, heads, wanted)


def fitting_head(path: Path, heads: list[CsvHead], wanted: Sequence[str]) -> CsvHead:
    """Return the head with the wanted columns, and most columns, of those possible.

    Parameters
    ----------
    path : Path
        The file, for messages.
    heads : list[CsvHead]
        One for each delimiter that the file may have.
    wanted : Sequence[str]
        Columns that have to be there.

    Returns
    -------
    CsvHead
        The head.

    Raises
    ------
    InputError
        If a column is missing, or has a name that others have too.
    """
    fitting = [
        candidate
        for candidate in heads
        if {*wanted} <= {*candidate.names, *told_apart(candidate.names)}
    ]
    head = max(fitting or heads, key=lambda candidate: len(candidate.names))
    if not fitting or not any(head.names):
        raise lacking_columns(path, wanted, head.names)
    apart = told_apart(head.names)
    for name in wanted:
        if name not in apart:
            places = [
                other
                for other, old in zip(apart, head.names, strict=True)
                if old == name
            ]
            raise InputError(
                f"{path} has more than one column {name!r}",
                way_out=f"Call it by its place, {' or '.join(map(repr, places))}, or "
                "rename the others",
            )
    # A column that nobody asks for by its place stays without a name.
    names = [
        other if old or other in wanted else old
        for other, old in zip(apart, head.names, strict=True)
    ]
    return head._replace(names=names)


def told_apart(names: Sequence[str]) -> list[str]:
    """Return different names of columns, with the place where others have the name.

    Parameters
    ----------
    names : sequence of str
        The names of a header.

    Returns
    -------
    list of str
        Different names.

    Examples
    --------
    >>> told_apart(["age", "answer", "", "answer"])
    ['age', 'answer (column 2)', 'column 3', 'answer (column 4)']
    """
    apart = []
    for at, name in enumerate(names, start=1):
        place = f"{name} (column {at})" if name else f"column {at}"
        while place in names:
            place += " of the file"
        apart.append(name if name and names.count(name) == 1 else place)
    return apart


def mark_kept(blocks: Iterator[str]) -> Iterator[str]:
    """Yield the texts of records so that the first keeps a byte order mark.

    DuckDB takes one mark off the beginning of what it reads. The mark of a file went
    with its head, so that a mark there belongs to the first value: it is written twice.

    Parameters
    ----------
    blocks : iterator of str
        The texts, one after the other.

    Yields
    ------
    str
        The same, with one mark more if they begin with one.
    """
    begun = False
    for block in blocks:
        yield MARK + block if not begun and block.startswith(MARK) else block
        begun = begun or bool(block)


class CsvTable:
    """The records below the head of a CSV file; `part` is the share read, 0 to 1.

    Parameters
    ----------
    path : Path
        The file.
    head : CsvHead
        What its first lines say.
    """

    def __init__(self, path: Path, head: CsvHead) -> None:
        self.path, self.head = path, head
        self.part = 0.0
        self._problem: Exception | None = None
        self._pipe = -1

    @contextmanager
    def open(self) -> Iterator[CsvTable]:
        """Feed the file to DuckDB; raise what was wrong with it, in our words."""
        self._pipe, end = os.pipe()
        feeding = threading.Thread(target=self._feed, args=(end,), daemon=True)
        feeding.start()
        try:
            yield self
        except duckdb_module().Error as problem:
            self._raise_own()
            raise self._parse_error(str(problem)) from None
        finally:
            # Whoever still writes is told that nobody reads any more.
            os.close(self._pipe)
        feeding.join()
        self._raise_own()

    def source(self, *, texts: bool) -> str:
        """Return the SQL of the table: texts c0, c1, ..., or named, typed columns."""
        options = {
            "delim": literal(self.head.delimiter),
            "quote": literal('"'),
            "escape": literal('"'),
            "header": "false",
            "strict_mode": "true",
        }
        if texts:
            count = len(self.head.names)
            columns = ", ".join(f"'c{at}': 'VARCHAR'" for at in range(count))
            options |= {"auto_detect": "false", "columns": f"{{{columns}}}"}
        else:
            names = ", ".join(map(literal, self.column_names()))
            kinds = ", ".join(map(literal, COLUMN_TYPES))
            options |= {"sample_size": "-1", "names": f"[{names}]"}
            options["auto_type_candidates"] = f"[{kinds}]"
        stated = ", ".join(f"{name} = {value}" for name, value in options.items())
        return f"read_csv('/dev/fd/{self._pipe}', {stated})"

    def column_names(self) -> list[str]:
        """Return the names of the columns in DuckDB, to which a and A are the same."""
        names = told_apart(self.head.names)
        small = [name.lower() for name in names]
        apart = [
            f"{name} (column {at})" if small.count(name.lower()) > 1 else name
            for at, name in enumerate(names, start=1)
        ]
        # No name in SQL holds the sign of number 0.
        return [name.replace("\0", " ") for name in apart]

    def _feed(self, end: int) -> None:
        try:
            self._write(end)
        except BrokenPipeError:
            # DuckDB stopped reading, and says why.
            pass
        except Exception as problem:
            self._problem = problem

    def _write(self, end: int) -> None:
        """Write the records to the end of a pipe, and close it."""
        with os.fdopen(end, "wb", buffering=0) as pipe, self.path.open("rb") as packed:
            size = max(self.path.stat().st_size, 1)
            for block in mark_kept(self._blocks(packed)):
                rest = memoryview(block.encode("utf-8"))
                while rest:
                    rest = rest[pipe.write(rest) :]
                self.part = min(1.0, packed.tell() / size)

    def _blocks(self, packed: io.BufferedReader) -> Iterator[str]:
        """Yield the texts below the head, every line end as a line feed."""
        file = _unpack(self.path, packed)
        plain = codecs.getincrementaldecoder(self.head.encoding)()
        decoder = io.IncrementalNewlineDecoder(plain, translate=True)
        above, more = self.head.lines, True
        while more:
            block = file.read(BYTES_AT_ONCE)
            more = bool(block)
            text = decoder.decode(block, final=not more)
            while above and text:
                _, end, text = text.partition("\n")
                above -= bool(end)
            yield text

    def _raise_own(self) -> None:
        if self._problem is None:
            return
        with _own_words(self.path, self.head.encoding):
            if isinstance(self._problem, (UnicodeError, InputError, *TORN)):
                raise self._problem
        raise InputError(
            f"{self.path} cannot be read ({type(self._problem).__name__}). Nothing was "
            "charged"
        ) from None

    def other_fields(self) -> InputError:
        """Return the refusal of lines that are longer or shorter than the first."""
        return InputError(
            f"{self.path}: some line has more or fewer fields than the first; "
            "values with the delimiter in them need quotes. Nothing was charged"
        )

    def _parse_error(self, words: str) -> InputError:
        """Say what is wrong without a word of what the file holds."""
        # The rest lists the options of DuckDB, "quote" among them.
        words = words.partition("Possible fixes")[0].partition("LINE 1")[0]
        if "Number of Columns" in words or "having less columns" in words:
            return self.other_fields()
        if "quote" in words:
            return InputError(
                f"{self.path}: every quotation mark that opens a value must be closed "
                "at its end; one is not, and the lines after it would be lost. Close "
                "it, or double a mark that belongs to a value. Nothing was charged"
            )
        return InputError(
            f"{self.path} cannot be read as a CSV file: some quotation mark is not "
            "closed, some line has other fields than the first, or is longer than 2 "
            "MB. Nothing was charged"
        )


def load_csv(connection: Any, path: Path, table: str) -> None:
    """Make a table of DuckDB from a CSV file; types are settled by all rows.

    Parameters
    ----------
    connection : duckdb connection
        Where the table is made.
    path : Path
        The file.
    table : str
        The name of the table.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    load_table(connection, CsvTable(path, read_head(path, [], TextForm())), table)


def load_table(connection: Any, csv_table: CsvTable, table: str) -> None:
    """Make a table of DuckDB from records that are not opened yet.

    Parameters
    ----------
    connection : duckdb connection
        Where the table is made.
    csv_table : CsvTable
        The records.
    table : str
        The name of the table.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    name = table.replace('"', '""')
    with csv_table.open():
        connection.execute(
            f'CREATE TABLE "{name}" AS SELECT * FROM {csv_table.source(texts=False)}'
        )
    columns = connection.execute(f'SELECT * FROM "{name}" LIMIT 0').description
    if len(columns) != len(csv_table.head.names):
        # Where types are found out, longer lines would make columns of their own.
        connection.execute(f'DROP TABLE "{name}"')
        raise csv_table.other_fields()
    for column, kind, *_ in columns:
        if str(kind) in ("VARCHAR", "STRING"):
            quoted = '"' + column.replace('"', '""') + '"'
            plain = trim_spaces(quoted)
            # What is empty without its blanks is missing, as where it has none.
            connection.execute(
                f"UPDATE \"{name}\" SET {quoted} = nullif({plain}, '') "
                f"WHERE {quoted} IS DISTINCT FROM nullif({plain}, '')"
            )


def lacking_columns(
    path: Path, wanted: Sequence[str], found: Sequence[str]
) -> InputError:
    """Say which columns are not there, and which ones are.

    Parameters
    ----------
    path : Path
        The file.
    wanted : Sequence[str]
        Columns that have to be there.
    found : Sequence[str]
        Columns that are there.

    Returns
    -------
    InputError
        The error, to be raised.
    """
    lacks = [name for name in dict.fromkeys(wanted) if name not in found]
    if not any(found) or any(is_number(name) for name in found):
        # Without names the first line is a person's, and not for a message.
        none = f" has no column {lacks[0]!r}:" if lacks else ""
        return InputError(
            f"{path}{none} its first line must name the columns, with commas between, "
            "and names none. Write such a line"
        )
    shown = ", ".join(repr(name)[1:-1] for name in _nearest_first(lacks, found))
    alone = (
        ". Only one was found: the first line must name all columns, with a comma, "
        "semicolon, tab or | between; delete titles above it"
        if len(found) == 1
        else ""
    )
    none = " and ".join(f"no column {name!r}{nearest(name, found)}" for name in lacks)
    return InputError(f"{path} has {none}; its columns are {shown}{alone}")


def _nearest_first(wanted: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return all names, those first that look like what was asked for."""

    def likeness(name: str) -> float:
        return max(
            (
                difflib.SequenceMatcher(None, word.lower(), name.lower()).ratio()
                for word in wanted
            ),
            default=0.0,
        )

    close = [name for name in names if likeness(name) >= ALIKE]
    rest = [name for name in names if name not in close]
    return sorted(close, key=likeness, reverse=True) + rest


def _encoding(path: Path, form: TextForm) -> str:
    """Return the encoding that is stated or marked; refuse what is no text."""
    with _own_words(path, ""), path.open("rb") as packed:
        head = _unpack(path, packed).read(4)
    if head == ZIP:
        raise InputError(
            f"{path} is a zipped file or an Excel workbook, whatever its name says; "
            "unpack it, or let the name of a workbook end with .xlsx"
        )
    if head[:2] == GZIP:
        raise InputError(f"{path} is packed by gzip; let its name end with .gz")
    if form.encoding is not None and codecs.lookup(form.encoding).name != "utf-8":
        return form.encoding
    return "utf-16" if head[:2] in UTF_16 else "utf-8-sig"


def _unpack(path: Path, packed: io.BufferedReader) -> Any:
    return gzip.GzipFile(fileobj=packed) if path.suffix.lower() == ".gz" else packed


@contextmanager
def _own_words(path: Path, encoding: str) -> Iterator[None]:
    """Say that bytes are no text, or badly packed, without quoting them."""
    try:
        yield
    except UnicodeError:
        raise InputError(
            f"{path} cannot be read as text in {encoding.removesuffix('-sig')}",
            way_out="Save it as CSV (UTF-8), or state how it was saved, such as the "
            "encoding cp1252 of older Windows programs. Nothing was charged",
            code="csv_encoding",
        ) from None
    except TORN:
        raise InputError(
            f"{path} cannot be unpacked: it is no whole gzip file; pack it again. "
            "Nothing was charged"
        ) from None


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
    """How the texts of a file are to be read; None where nothing was stated.

    Attributes
    ----------
    encoding : str, optional
        The encoding of the file.
    decimal : str, optional
        The decimal mark, "," or ".".
    dates : str, optional
        How dates are written, such as "DD.MM.YYYY"; where a column holds several ways,
        "DD.MM.YYYY or YYYY-MM-DD". No text may read as a date in two of them.
    blanks : tuple[str, ...], default ()
        Texts that stand for a missing value.
    """

    encoding: str | None = None
    decimal: str | None = None
    dates: str | None = None
    blanks: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse what is no form."""
        try:
            "a".encode("utf-8" if self.encoding is None else self.encoding)
        except (LookupError, ValueError):
            raise InputError(
                f"there is no encoding {self.encoding!r}; common ones are utf-8, "
                "cp1252 (older Windows programs), latin-1 and utf-16"
            ) from None
        if self.decimal not in (None, ",", "."):
            raise InputError(
                f'the decimal mark is "," or "."; received {self.decimal!r}. Marks '
                "between thousands are then read, too"
            )
        if self.dates is not None:
            _check_date_forms(self.dates)

    def value(self, text: str, kind: str) -> str:
        """Return the SQL of a number, date or category; NULL if the text holds none.

        Spaces around the text are gone; moments with a zone are taken at Greenwich.

        Parameters
        ----------
        text : str
            The SQL of the text.
        kind : str
            "number", "whole", "date", "nanosecond" or "category".

        Returns
        -------
        str
            The SQL of the value.
        """
        if kind == "date":
            value = _date(text, self.dates or ISO)
        elif kind == "nanosecond":
            value = _nanosecond(text, self.dates or ISO)
        elif kind == "whole":
            value = _whole_number(text)
        elif kind == "code":
            value = _plain_numeral(text, self.decimal)
        else:
            value = text if kind == "category" else _number(text, self.decimal)
        return f"CASE WHEN {self.is_blank(text, kind)} THEN NULL ELSE {value} END"

    def usual_value(self, column: str, kind: str) -> str:
        """Return the SQL of values that are read at once; NULL for all others.

        Parameters
        ----------
        column : str
            The SQL of the column.
        kind : str
            "number", "date" or "category".

        Returns
        -------
        str
            The SQL of the value.
        """
        if self.blanks:
            return "NULL"
        if kind == "category" or (kind == "code" and self.decimal is None):
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

        Parameters
        ----------
        text : str
            The SQL of the text.
        kind : str
            "number", "date" or "category".

        Returns
        -------
        str
            The SQL of the condition.
        """
        listed = dict.fromkeys(self.blank_words(kind))
        return f"({text} IS NULL OR {text} IN ({', '.join(map(literal, listed))}))"

    def blank_words(self, kind: str) -> tuple[str, ...]:
        """Return the texts that stand for a missing number, date, category or code."""
        usual = BLANKS[:1] if kind in ("category", "code") else BLANKS
        return (*usual, *(word.strip() for word in self.blanks))


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


def _number(text: str, decimal: str | None) -> str:
    if decimal is None:
        plain = f"CASE WHEN contains({text}, '_') THEN NULL ELSE {text} END"
        return f"TRY_CAST({plain} AS DOUBLE)"
    return f"TRY_CAST({_plain_digits(text, decimal, 'NULL')} AS DOUBLE)"


def _plain_numeral(text: str, decimal: str | None) -> str:
    """Return the SQL of a category as it stands, and of a number in it as 1234.5."""
    return text if decimal is None else _plain_digits(text, decimal, text)


def numeral_with(decimal: str) -> str:
    """Return the regular expression of numbers with a decimal mark, and thousands.

    Parameters
    ----------
    decimal : str
        The mark, "," or ".".

    Returns
    -------
    str
        For Python and for DuckDB.
    """
    between, mark = re.escape(GROUPS[decimal]), re.escape(decimal)
    whole = rf"(?:[0-9]{{1,3}}(?:[{between}][0-9]{{3}})+|[0-9]+)"
    return rf"[+-]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?"


def _plain_digits(text: str, decimal: str, other: str) -> str:
    """Return the SQL of a number in digits, point and sign; `other` for any text."""
    numeral = numeral_with(decimal)
    plain = f"translate({text}, {literal(decimal + GROUPS[decimal])}, '.')"
    matches = f"regexp_full_match({text}, {literal(numeral)})"
    return f"CASE WHEN {matches} THEN {plain} ELSE {other} END"


def read_from_csv(text: str) -> str:
    """Return a text as it is read from a CSV file.

    Blanks around a value are no part of it, and every line break is a line feed.
    """
    return re.sub("\r\n?", "\n", text).strip()


def _nanosecond(text: str, words: str) -> str:
    """Return the SQL of a moment to the nanosecond; with a zone, to the microsecond.

    Moments that 64 bits of nanoseconds do not hold stand at the end they are nearer to.
    """
    coarse = _date(text, words)
    least, most = "TIMESTAMP '1677-09-23'", "TIMESTAMP '2262-04-11'"
    within = f"greatest(least({coarse}, {most}), {least})"
    plain = literal(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{7,9}"
    )
    finer = f"TRY_CAST({text} AS TIMESTAMP_NS)"
    return (
        f"CASE WHEN regexp_full_match({text}, {plain}) AND {coarse} BETWEEN {least} "
        f"AND {most} THEN {finer} ELSE CAST({within} AS TIMESTAMP_NS) END"
    )


def _whole_number(text: str) -> str:
    """Return the SQL of a whole number; one that 64 bits do not hold is far outside."""
    digits = literal("[+-]?[0-9]+")
    short = f"length({text}) <= 30"
    number = within_64_bits(f"TRY_CAST({text} AS HUGEINT)")
    far = f"CASE WHEN starts_with({text}, '-') THEN {LEAST_64} ELSE {MOST_64} END"
    nearest = f"CASE WHEN {short} THEN {number} ELSE {far} END"
    return f"CASE WHEN regexp_full_match({text}, {digits}) THEN {nearest} END"


LEAST_64, MOST_64 = (f"CAST({sign}9223372036854775807 AS BIGINT)" for sign in ("-", ""))


def within_64_bits(number: str) -> str:
    """Return the SQL of a whole number in 64 bits; larger ones become the largest."""
    return f"CAST(greatest(least({number}, {MOST_64}), {LEAST_64}) AS BIGINT)"


def date_forms(words: str) -> list[str]:
    """Return the ways to write dates of ``DD.MM.YYYY or YYYY-MM-DD``, one by one."""
    return [form.strip() for form in words.split(" or ")]


def _check_date_forms(words: str) -> None:
    """Refuse what is no way to write dates, and two ways that read one text."""
    forms = date_forms(words)
    patterns = [_date_pattern(form)[0] for form in forms]
    for at, form in enumerate(forms):
        shown = form.replace("YYYY", "2003").replace("MM", "02").replace("DD", "01")
        others = (other for other in range(len(forms)) if other != at)
        twin = next((at for at in others if re.fullmatch(patterns[at], shown)), None)
        if twin is not None:
            raise InputError(
                "no text may be a date in two of the stated ways",
                received=f"{form} and {forms[twin]}, and {shown} reads as both",
                way_out="State one of them, and convert the dates that are written in "
                "the other",
            )


def _date(text: str, words: str) -> str:
    """Return the SQL of a moment in UTC, written in one of the stated ways."""
    moments = [_moment(text, form) for form in date_forms(words)]
    return moments[0] if len(moments) == 1 else f"COALESCE({', '.join(moments)})"


def _moment(text: str, words: str) -> str:
    """Return the SQL of a moment in UTC that is written in one way."""
    pattern, written = _date_pattern(words)
    regexp = literal(pattern + CLOCK)
    clock = len(re.findall("YYYY|MM|DD", words)) + 1
    parts = literal(rf"{written} \{clock}")
    zone = f"regexp_extract({text}, {regexp}, {clock + 1})"
    minutes = (
        f"CAST(substr({zone}, 1, 1) || '1' AS INTEGER) * (CAST(substr({zone}, 2, 2) AS "
        f"INTEGER) * 60 + CAST(right({zone}, 2) AS INTEGER))"
    )
    east = f"CASE WHEN {zone} IN ('', 'Z') THEN 0 ELSE {minutes} END"
    moment = f"TRY_CAST(rtrim(regexp_replace({text}, {regexp}, {parts})) AS TIMESTAMP)"
    at_greenwich = f"{moment} - to_minutes({east})"
    return f"CASE WHEN regexp_full_match({text}, {regexp}) THEN {at_greenwich} END"


def _date_pattern(words: str) -> tuple[str, str]:
    """Return the pattern of dates such as ``DD.MM.YYYY``, and how ISO writes them."""
    parts = re.split("(YYYY|MM|DD)", words)
    marks, fields = parts[::2], parts[1::2]
    plain = not any(re.search(r"[\w]", mark) for mark in marks)
    if sorted(fields) not in (["DD", "MM", "YYYY"], ["MM", "YYYY"]) or not plain:
        raise InputError(
            "dates are written with YYYY, MM and DD, as in DD.MM.YYYY, MM/DD/YYYY or "
            "YYYYMMDD, and in several ways as in DD.MM.YYYY or YYYY-MM-DD; received "
            f"{words!r}"
        )
    apart = words != ISO and not any(mark == "" for mark in marks[1:-1])
    digits = "([0-9]{1,2})" if apart else "([0-9]{2})"
    pattern_of = {"YYYY": "([0-9]{4})", "MM": digits, "DD": digits}
    place = {field: rf"\{at}" for at, field in enumerate(fields, start=1)}
    written = f"{place['YYYY']}-{place['MM']}-{place.get('DD', '01')}"
    return "".join(pattern_of.get(part, re.escape(part)) for part in parts), written
