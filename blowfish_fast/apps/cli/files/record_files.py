"""Records from CSV, Parquet and Excel files, chunk by chunk: memory stays small.

Spaces around a value or a name of a CSV file are no part of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast.data.axes import Axis
from blowfish_fast.data.columns import plain_array
from blowfish_fast.data.csv_files import (
    ISO,
    CsvHead,
    CsvTable,
    TextForm,
    duckdb_module,
    file_of,
    literal,
    read_from_csv,
    read_head,
    sheet_place,
    trim_spaces,
    within_64_bits,
)
from blowfish_fast.data.domain import WideDomain
from blowfish_fast.data.histogram import Counting, Histogram
from blowfish_fast.data.level_numbers import numbered_levels
from blowfish_fast.data.persons import records_per_person
from blowfish_fast.data.records import raise_together
from blowfish_fast.data.rules.steps import EXACT_IN_FLOATS
from blowfish_fast.data.sparse import SparseHistogram
from blowfish_fast.data.table_counts import TableCounts
from blowfish_fast.errors import InputError, nearest

CSV = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
ROWS = 2**18
"""Rows of a chunk: with ten columns of numbers it holds 20 MiB."""

NAMES = ("category", "code")
"""Kinds of values that are texts, whatever they read; codes are written as numbers."""

DATES = ("date", "nanosecond")
"""Kinds of values that are moments."""

PLAIN = TextForm()
"""How a CSV file is written if nobody says otherwise."""

Part = Callable[[float], None]
"""Takes the part of the file that has been read, from 0 to 1."""
Chunks = Iterator[dict[str, AnyArray]]
"""Columns of records, some rows at a time."""
TableAxes = tuple[tuple[int, ...], ...]
"""The attributes of each table that is counted, by number."""


class Needed(NamedTuple):
    """A column that is needed.

    Attributes
    ----------
    name : str
        Its name in the file.
    kind : str
        What its values are: "category", "number", "whole" (whole numbers that floats
        may not hold exactly), "date" or "nanosecond" (times as fine as that).
    """

    name: str
    kind: str


class DataSource(ABC):
    """Something that can be counted: checked by its schema alone, and read once."""

    description: str
    """What messages call it."""

    @abstractmethod
    def check(self, counting: Counting[Any]) -> None:
        """Refuse what cannot be counted so, by its schema alone."""

    @abstractmethod
    def histogram(
        self, counting: Counting[Any], done: Part
    ) -> Histogram | SparseHistogram:
        """Count the records of every cell, or of the filled ones of a wide domain.

        Parameters
        ----------
        counting : Counting
            The domain, what happens to stray values, and whose records there are.
        done : callable
            Takes the part that was read, from 0 to 1.

        Returns
        -------
        Histogram or SparseHistogram
            The true counts; sparse where the domain is wide.
        """

    @abstractmethod
    def tables(
        self, counting: Counting[Any], tables: TableAxes, done: Part
    ) -> TableCounts:
        """Count the records of some tables of a domain of any width.

        Parameters
        ----------
        counting : Counting
            The domain, what happens to stray values, and whose records there are.
        tables : tuple of tuples of int
            The columns of each table.
        done : callable
            Takes the part that was read, from 0 to 1.

        Returns
        -------
        TableCounts
            The true counts of each table.
        """

    @abstractmethod
    def held(self, counting: Counting[Any], done: Part) -> IntArray:
        """Count the records of each person.

        Parameters
        ----------
        counting : Counting
            Which column says whose record it is.
        done : callable
            Takes the part that was read, from 0 to 1.

        Returns
        -------
        (persons,) int64
            How many records each person has, in no order.
        """


class RecordSource(DataSource):
    """Records that are read chunk by chunk and counted here."""

    @abstractmethod
    def open(self, counting: Counting[Any], done: Part) -> tuple[Any, Chunks]:
        """Return the domain as the source spells it, and the needed columns.

        Parameters
        ----------
        counting : Counting
            The domain, and whose records there are.
        done : callable
            Takes the part that was read, from 0 to 1.

        Returns
        -------
        tuple of domain and iterator of dict
            The domain whose levels are spelled as in the source, and columns of
            records, some rows at a time.
        """

    def histogram(
        self, counting: Counting[Any], done: Part
    ) -> Histogram | SparseHistogram:
        """Count the records of every cell, or of the filled ones of a wide domain.

        Parameters
        ----------
        counting : Counting[Domain]
            The domain, and what becomes of missing and stray values.
        done : Part
            Told how much is done, from 0 to 1.

        Returns
        -------
        Histogram or SparseHistogram
            The counts.
        """
        stored, chunks = self.open(counting, done)
        if isinstance(stored, WideDomain):
            listed = SparseHistogram._counted(counting._replace(domain=stored), chunks)
            more = {"keys": listed.keys}
            return SparseHistogram._own(
                counting.domain, listed.counts, listed.bound, **more
            )
        counted = Histogram._counted(counting._replace(domain=stored), chunks)
        return Histogram._own(counting.domain, counted.counts, counted.bound)

    def tables(
        self, counting: Counting[Any], tables: TableAxes, done: Part
    ) -> TableCounts:
        """Count the records of some tables of a domain of any width.

        Parameters
        ----------
        counting : Counting[Domain]
            The domain, and what becomes of missing and stray values.
        tables : TableAxes
            The attributes of each table.
        done : Part
            Told how much is done, from 0 to 1.

        Returns
        -------
        TableCounts
            The counts of every table.
        """
        stored, chunks = self.open(counting, done)
        blocks = counting._replace(domain=stored).places(chunks)
        return TableCounts.from_cells(counting.domain, tables, blocks, counting.bound)

    def held(self, counting: Counting[Any], done: Part) -> IntArray:
        """Count the records of each person.

        Parameters
        ----------
        counting : Counting[Domain]
            The domain, and what becomes of missing and stray values.
        done : Part
            Told how much is done, from 0 to 1.

        Returns
        -------
        ndarray of int64, shape (persons,)
            How many records each person has.
        """
        return records_per_person(self.open(counting, done)[1], counting.keys)


class RecordsFile(RecordSource):
    """A CSV or Parquet file, or a sheet, with a line, or row, for each record.

    Parameters
    ----------
    path : Path
        The file; its ending says which kind it is. ``file.xlsx#Sheet2`` is a sheet.
    form : TextForm
        How texts of a CSV file or a sheet write numbers, dates and missing values.
    """

    def __init__(self, path: Path, form: TextForm = PLAIN) -> None:
        self.path, self.form = path, form
        self.description = str(path)
        refuse_absent(path)

    def check(self, counting: Counting[Any]) -> None:
        """Refuse a file that lacks columns; reads its first line or schema only."""
        if self.path.suffix.lower() in PARQUET:
            table = _ParquetTable(self.path)
            table.check(needed_columns(counting, table.types), counting.domain)
        else:
            needed = needed_columns(counting, self._csv_names(counting))
            _domain_in_csv(counting.domain, self.form, needed)
            head_of(self.path, [column.name for column in needed], self.form)

    def _csv_names(self, counting: Counting[Any]) -> Collection[str]:
        """Return the columns of a CSV file; only polygons may be asked in two ways."""
        if all(axis.borders is None for axis in counting.domain.attributes):
            return ()
        return head_of(self.path, [], self.form).names

    def open(self, counting: Counting[Any], done: Part) -> tuple[Any, Chunks]:
        """Return the domain as the file spells it, and the needed columns in chunks.

        Parameters
        ----------
        counting : Counting[Domain]
            The domain, and what becomes of missing and stray values.
        done : Part
            Told how much is done, from 0 to 1.

        Returns
        -------
        domain : Domain
            The domain, as the file spells it.
        chunks : Chunks
            The needed columns, some records at a time.
        """
        if self.path.suffix.lower() in PARQUET:
            table = _ParquetTable(self.path)
            needed = needed_columns(counting, table.types)
            stored = table.check(needed, counting.domain)
            return stored, self._parquet_chunks(table, needed, done)
        needed = needed_columns(counting, self._csv_names(counting))
        stored = _domain_in_csv(counting.domain, self.form, needed)
        coded = [
            attribute.name for attribute in stored.attributes if _has_codes(attribute)
        ]
        needed = [
            column._replace(kind="code") if column.name in coded else column
            for column in needed
        ]
        return stored, self._csv_chunks(needed, done, truths_of(stored))

    def _csv_chunks(
        self,
        needed: list[Needed],
        done: Part,
        truths: dict[str, tuple[str, str]] | None = None,
    ) -> Chunks:
        head = head_of(self.path, [column.name for column in needed], self.form)
        places = [head.names.index(column.name) for column in needed]
        columns = [
            _Column(f"c{at}", column.kind)
            for at, column in zip(places, needed, strict=True)
        ]
        with records_of(self.path, head, self.form, truths).open() as table:
            batches = _batches(columns, table.source(texts=True), self.form)
            for chunk in self._columns(batches, needed):
                yield chunk
                done(table.part)

    def _parquet_chunks(
        self, table: _ParquetTable, needed: list[Needed], done: Part
    ) -> Chunks:
        read = 0
        try:
            columns = [table.column(column) for column in needed]
            batches = _batches(columns, table.source, PLAIN)
            for chunk in self._columns(batches, needed):
                yield chunk
                read += len(chunk[needed[0].name])
                done(min(1.0, read / max(table.rows, 1)))
        except duckdb_module().Error as problem:
            raise InputError(
                f"{self.path} cannot be read to its end ({type(problem).__name__}). "
                "Nothing was charged"
            ) from None

    def _columns(self, batches: Iterator[Any], needed: list[Needed]) -> Chunks:
        """Yield columns; refuse, once all are read, what is no value nor missing."""
        bad: set[Needed] = set()
        for batch in batches:
            columns = {}
            for at, column in enumerate(needed):
                if batch.column(f"bad{at}").true_count:
                    bad.add(column)
                values = batch.column(f"value{at}")
                if column.kind not in (*NAMES, "whole"):
                    values = plain_array(values)
                columns[column.name] = values
            if not bad:
                yield columns
        raise_together(self._no_value(column) for column in needed if column in bad)

    def _no_value(self, needed: Needed) -> InputError:
        """Say that a value cannot be read, and how others would be."""
        form, name = self.form, needed.name
        if needed.kind == "whole":
            rule = (
                f"{self.path}: every value of {name} must be a whole number, or "
                "missing (empty, NA, null); some are not"
            )
        elif needed.kind in DATES and form.dates is None:
            rule = (
                f"values of {name}: dates must read like 2024-05-31 or "
                "2024-05-31T12:00; some read otherwise. State how they are written, as "
                'in dates = "DD.MM.YYYY" under [data], or --dates DD.MM.YYYY'
            )
        elif needed.kind in DATES and form.dates is not None:
            other = "DD.MM.YYYY" if ISO in form.dates else ISO
            rule = (
                f"every value of {name} must be a date as stated, {form.dates}, a time "
                "after it or not, or missing; some are not. Where a column has dates "
                f'in two ways, state both, as in "{form.dates} or {other}"'
            )
        else:
            marks = (
                'Where 1.234,5 is meant, state decimal = "," under [data], or '
                '--decimal ","; where 1,234.5 is, decimal = "."'
                if form.decimal is None
                else f"The decimal mark was stated to be {form.decimal!r}"
            )
            rule = (
                f"{self.path}: every value of {name} must be a number, or missing "
                f"(empty, NA, NaN, null); some are not. {marks}"
            )
        return InputError(
            f"{rule}; where another word stands for missing, state blanks = "
            '["-"] under [data], or --blank=-. Nothing was charged'
        )


def head_of(path: Path, wanted: Sequence[str], form: TextForm) -> CsvHead:
    """Return the head of a CSV file or a sheet with the wanted columns.

    Parameters
    ----------
    path : Path
        The file, and of a workbook the sheet.
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
    if sheet_place(path) is None:
        return read_head(path, wanted, form)
    from blowfish_fast.data.tables.sheets import head_of_sheet

    return head_of_sheet(path, wanted, form)


def records_of(
    path: Path,
    head: CsvHead,
    form: TextForm,
    truths: Mapping[str, tuple[str, str]] | None = None,
) -> CsvTable:
    """Return the records below the head of a CSV file or a sheet, as texts.

    Parameters
    ----------
    path : Path
        The file, and of a workbook the sheet.
    head : CsvHead
        What `head_of` returned.
    form : TextForm
        What was stated about the texts.
    truths : mapping from str to tuple of str, optional
        How a column's categories spell false and true; FALSE and TRUE if not stated.

    Returns
    -------
    CsvTable
        The table, which is opened to be read.
    """
    if sheet_place(path) is None:
        return CsvTable(path, head)
    from blowfish_fast.data.tables.sheets import SheetTable

    return SheetTable(path, head, form, truths or {})


class _ParquetTable:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.source = f"read_parquet({literal(str(path))})"
        name = literal(str(path))
        try:
            with duckdb_module().connect() as connection:
                described = connection.execute(f"DESCRIBE SELECT * FROM {self.source}")
                self.types = {row[0]: str(row[1]) for row in described.fetchall()}
                held = f"SELECT sum(num_rows) FROM parquet_file_metadata({name})"
                self.rows = int(connection.execute(held).fetchone()[0])
        except duckdb_module().Error as problem:
            raise InputError(
                f"{path} is no Parquet file that can be read ({type(problem).__name__})"
            ) from None

    def check(self, needed: list[Needed], domain: Any) -> Any:
        """Return the domain as the columns spell it; refuse those of another kind."""
        check_columns(str(self.path), needed, self.types)
        stored = domain_as_stored(
            domain,
            texts=[name for name, kind in self.types.items() if _is_text(kind)],
            truths=[name for name, kind in self.types.items() if kind == "BOOLEAN"],
        )
        levels = {
            attribute.name: None
            if attribute.levels is None
            else attribute.levels[: attribute.regular]
            for attribute in stored.attributes
        }
        raise_together(
            InputError(
                f"the domain says that {column.name!r} is a {column.kind}, and its "
                f"column in {self.path} is of type {self.types[column.name]}; state "
                "cells of that kind, or convert the column"
            )
            for column in needed
            # A person's column is none of the domain, and may be of any type.
            if not _fits(
                self.types[column.name], column.kind, levels.get(column.name, ())
            )
        )
        return stored

    def column(self, needed: Needed) -> _Column:
        """Return a column; only dates may be texts that have to be read."""
        name = needed.name.replace('"', '""')
        column, kind = f'"{name}"', self.types[needed.name]
        if needed.kind == "number":
            return _Column(f"CAST({column} AS DOUBLE)")
        if needed.kind == "whole":
            return _Column(within_64_bits(f"CAST({column} AS HUGEINT)"))
        if needed.kind == "category":
            return _Column(column)
        if _is_text(kind):
            return _Column(column, needed.kind)
        if needed.kind == "nanosecond" and kind == "TIMESTAMP_NS":
            return _Column(column)
        if "TIME ZONE" in kind:
            return _Column(f"make_timestamp(epoch_us({column}))")
        return _Column(f"CAST({column} AS TIMESTAMP)")


class _Column(NamedTuple):
    """SQL of a value; with a kind, of a text from which the value has to be read."""

    expression: str
    kind: str | None = None


def _batches(columns: list[_Column], source: str, form: TextForm) -> Iterator[Any]:
    """Yield batches of values, and of whether each is neither that nor missing."""
    require("pyarrow", extra="files", purpose="reading files of records")
    query = source
    selected = [_steps(*column, at, form) for at, column in enumerate(columns)]
    for step in zip(*selected, strict=True):
        query = f"(SELECT {', '.join(step)} FROM {query})"
    with duckdb_module().connect() as connection:
        connection.execute("SET preserve_insertion_order = false")
        result = connection.execute(f"FROM {query}")
        # Called otherwise before DuckDB 1.5.
        fetch = getattr(result, "to_arrow_reader", None) or result.fetch_record_batch
        yield from fetch(ROWS)


def _steps(expression: str, kind: str | None, at: int, form: TextForm) -> list[str]:
    """Return what nested queries select for a column, from the innermost on.

    Texts that read as usual (u) are not taken apart, and the others (t) once.
    """
    text, usual, value = f"t{at}", f"u{at}", f"v{at}"
    if kind is None:
        passed_on = [f"{expression} AS {value}", value, value]
        return [*passed_on, f"{value} AS value{at}, false AS bad{at}"]
    rest = f"CASE WHEN {usual} IS NULL THEN"
    read = f"COALESCE({usual}, {value})"
    bad = (
        "false" if kind in ("category", "code") else f"NOT {form.is_blank(text, kind)}"
    )
    return [
        f"{expression} AS {text}, {form.usual_value(expression, kind)} AS {usual}",
        f"{usual}, {rest} {trim_spaces(text)} END AS {text}",
        f"{usual}, {text}, {rest} {form.value(text, kind)} END AS {value}",
        f"{read} AS value{at}, {read} IS NULL AND {bad} AS bad{at}",
    ]


def _has_codes(attribute: Axis) -> bool:
    """Return whether all categories of a column are numbers."""
    plain = (attribute.levels or ())[: attribute.regular]
    return bool(plain) and numbered_levels(plain) is not None


def truths_of(domain: Any) -> dict[str, tuple[str, str]]:
    """Return how columns of truths spell false and true among their categories.

    Parameters
    ----------
    domain : Domain or WideDomain
        The stated cells.

    Returns
    -------
    dict from str to tuple of str
        By column, the category that is false and the one that is true.
    """
    spelt = {}
    for attribute in domain.attributes:
        plain = (attribute.levels or ())[: attribute.regular]
        words = {level.lower(): level for level in plain if isinstance(level, str)}
        if len(words) == len(plain) and words.keys() <= {"false", "true"}:
            spelt[attribute.name] = (
                words.get("false", "FALSE"),
                words.get("true", "TRUE"),
            )
    return spelt


def _domain_in_csv(domain: Any, form: TextForm, needed: list[Needed]) -> Any:
    """Return the domain with categories as they are read from a CSV file."""
    # Districts of points are not spelled in the file.
    names = [column.name for column in needed]
    stored = domain_as_stored(domain, texts=names, truths=[])
    attributes = []
    for attribute in stored.attributes:
        levels, regular = attribute.levels, attribute.regular
        if levels is not None and attribute.name in names:
            kind = "code" if _has_codes(attribute) else "category"
            read = [read_from_csv(level) for level in levels[:regular]]
            lost = [level for level in read if level in form.blank_words(kind)]
            if lost:
                raise InputError(
                    f"{lost[0]!r} stands for a missing value in a CSV file, and "
                    f"{attribute.name!r} has a category of that name",
                    way_out='Leave the category out and state missing = "cell" under '
                    "[data], or --missing cell",
                )
            if len(set(read)) < len(read):
                raise InputError(
                    f"categories of {attribute.name!r} must differ in more than blanks "
                    "at their ends and kinds of line breaks, which a CSV file does not "
                    "keep",
                    way_out="Leave one out, or use a Parquet file",
                )
            levels = (*read, *levels[regular:])
        attributes.append(replace(attribute, levels=levels))
    return type(domain)._of(attributes)


def domain_as_stored(domain: Any, *, texts: list[str], truths: list[str]) -> Any:
    """Return the domain with categories as columns of texts or truths spell them.

    Parameters
    ----------
    domain : Domain or WideDomain
        The stated cells.
    texts : list of str
        Columns that hold texts.
    truths : list of str
        Columns that hold true or false.

    Returns
    -------
    Domain or WideDomain
        The same cells, with levels of the columns' types.

    Raises
    ------
    InputError
        If two levels become the same text.
    """
    attributes = []
    for attribute in domain.attributes:
        levels, regular = attribute.levels, attribute.regular
        if levels is not None and attribute.name in texts:
            levels = tuple(str(level) for level in levels)
            if len(set(levels)) < len(levels):
                raise InputError(
                    f"categories of {attribute.name!r} must differ as texts, since its "
                    "column holds texts",
                    way_out='State one of 1 and "1"',
                )
        elif levels is not None and attribute.name in truths:
            spelt = [str(level).lower() for level in levels[:regular]]
            if set(spelt) <= {"true", "false"}:
                levels = (*(level == "true" for level in spelt), *levels[regular:])
        attributes.append(replace(attribute, levels=levels))
    return type(domain)._of(attributes)


def refuse_absent(path: Path) -> None:
    """Refuse a path at which no file is."""
    if not file_of(path).is_file():
        raise InputError(
            f"there is no file {file_of(path)}; check the path of the data"
        )


def check_columns(where: str, needed: list[Needed], columns: Collection[str]) -> None:
    """Refuse a table that lacks some of the needed columns.

    Parameters
    ----------
    where : str
        What messages call the table.
    needed : list of Needed
        The columns that are needed.
    columns : collection of str
        The columns that there are.

    Raises
    ------
    InputError
        If some are lacking; the message names all of them.
    """
    raise_together(
        InputError(
            f"{where} has no column {column.name!r}{nearest(column.name, columns)}; "
            f"its columns are {', '.join(columns)}"
        )
        for column in needed
        if column.name not in columns
    )


def needed_columns(
    counting: Counting[Any], columns: Collection[str] = ()
) -> list[Needed]:
    """Return the columns that are needed, by name.

    Parameters
    ----------
    counting : Counting
        The domain, and whose records there are.
    columns : collection of str, optional
        The columns that there are. Where a column names districts it is taken; else
        districts with polygons need the coordinates of points.

    Returns
    -------
    list of Needed
        The columns.
    """
    needed = []
    for attribute in counting.domain.attributes:
        if attribute.borders is not None and attribute.name not in columns:
            needed += [Needed(name, "number") for name in attribute.borders.columns]
        else:
            needed.append(_needed_column(attribute))
    if counting.weight is not None:
        needed.append(Needed(counting.weight, "number"))
    if counting.arrivals is not None:
        needed.append(_needed_column(counting.arrivals.attribute))
    keys = [key for key in counting.keys if key is not None]
    return needed + [Needed(key, "category") for key in keys]


def _needed_column(attribute: Axis) -> Needed:
    if attribute.name is None:
        raise InputError(
            "records have columns with names, and the domain names none; state it as "
            "--cells age=0:101:1, for instance. Cells without names are for files of "
            "counts (.npy)"
        )
    if attribute.levels is not None or attribute.keys is not None:
        return Needed(attribute.name, "category")
    if attribute.by_rule:
        rule = attribute.rule
        if rule.unit is not None:
            return Needed(attribute.name, "nanosecond" if rule.unit == "ns" else "date")
        farthest = max(abs(rule.start), abs(rule.end(attribute.regular)))
        exact = farthest <= EXACT_IN_FLOATS
        return Needed(attribute.name, "number" if exact else "whole")
    return Needed(attribute.name, "number" if attribute.unit is None else "date")


def _is_text(kind: str) -> bool:
    return kind == "VARCHAR" or kind.startswith("ENUM")


def _fits(kind: str, stated: str, levels: tuple[Any, ...] | None) -> bool:
    """Return whether a type of DuckDB holds values of the stated kind."""
    if "[" in kind or kind.startswith(("STRUCT", "MAP", "INTERVAL")):
        return False
    whole = "INT" in kind or kind == "BOOLEAN"
    if stated == "number":
        return whole or kind.startswith(("FLOAT", "DOUBLE", "DECIMAL"))
    if stated == "whole":
        return whole
    if stated in ("date", "nanosecond"):
        return _is_text(kind) or kind.startswith(("DATE", "TIMESTAMP"))
    if _is_text(kind) or levels is None:
        return _is_text(kind)
    if numbered_levels(levels or ()) is not None:
        return whole or kind.startswith(("FLOAT", "DOUBLE", "DECIMAL"))
    return whole and all(isinstance(level, int) for level in levels or ())
